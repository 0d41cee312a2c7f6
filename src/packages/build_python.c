/* Builds of layers of Python: pip resolves and installs, and wheels are the only files. */
#include "packages/packages_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static const char *url(const struct settings *settings)
{
        return settings->python_packages.index_url;
}

static const char *token_file(const struct settings *settings)
{
        return settings->python_packages.index_token_file;
}

static char *input(struct build *build)
{
        return package_set_text(&build->set);
}

/* ---- judging ---- */

static bool has_hash(const struct package_set *set, const struct package_file *file)
{
        for (size_t i = 0; i < set->n; i++) {
                if (strcmp(set->specs[i].name, file->name) != 0 || !set->specs[i].hashes_n)
                        continue;
                for (size_t k = 0; k < set->specs[i].hashes_n; k++)
                        if (strcmp(set->specs[i].hashes[k], file->hash) == 0)
                                return true;
                return false;
        }
        return true;
}

/* The resolver is not trusted: the index must have offered each file of its lock. */
static bool judge(struct build *build, json_t *lock)
{
        size_t i;
        json_t *item;
        if (!layer_build_take_files(build, json_array_size(lock)))
                return false;
        json_array_foreach(lock, i, item)
        {
                const char *address = json_string_value(json_object_get(item, "url"));
                const char *hash = json_string_value(json_object_get(item, "sha256"));
                const struct package_file *file = address ? package_index_file(build->index, address) : NULL;
                if (!file || !hash || strcmp(hash, file->hash) != 0) {
                        layer_build_fail(build, "index_untrusted",
                                "the resolver chose a file that the index has not offered");
                        return false;
                }
                if (!has_hash(&build->set, file)) {
                        layer_build_fail(build, "hash_mismatch", "%s %s has another hash than the request", file->name,
                                file->version);
                        return false;
                }
                build->names[build->files_n] = build->places[build->files_n] =
                        arena_text(&build->arena, "%s", file->filename);
                build->files[build->files_n++] = file;
        }
        return true;
}

static int write_lock(const struct build *build, int work_fd, struct csn_error *err)
{
        struct buf text;
        buf_init(&text, 16 * MIB);
        for (size_t i = 0; i < build->files_n; i++)
                buf_printf(&text, "%s==%s --hash=sha256:%s\n", build->files[i]->name, build->files[i]->version,
                        build->files[i]->hash);
        int rc = layer_build_write(work_fd, "lock.txt", text.bytes, text.len, err);
        buf_done(&text);
        return rc;
}

/* ---- the tree ---- */

static void mark_scripts(int tree_fd)
{
        auto_fd bin = openat(tree_fd, "bin", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *dir = bin < 0 ? NULL : fdopendir(fcntl(bin, F_DUPFD_CLOEXEC, 0));
        for (struct dirent *entry; dir && (entry = readdir(dir));) {
                struct stat st;
                if (fstatat(bin, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
                        (void)!fchmodat(bin, entry->d_name, 0755,
                                0); /* a script without the bit can be run by its interpreter */
        }
        if (dir)
                closedir(dir);
}

/* "six.py", "yaml/" and "_x.cpython-311-x86_64-linux-gnu.so" are modules; metadata and scripts are none. */
static size_t module_length(const char *name, bool is_folder)
{
        size_t len = strcspn(name, ".");
        if (name[0] == '.' || strcmp(name, "bin") == 0 || strcmp(name, "__pycache__") == 0)
                return 0;
        if (is_folder)
                return name[len] ? 0 : len;
        const char *end = strrchr(name, '.');
        return end && (strcmp(end, ".py") == 0 || strcmp(end, ".so") == 0) ? len : 0;
}

static void list_modules(struct build *build, int tree_fd)
{
        DIR *dir = fdopendir(fcntl(tree_fd, F_DUPFD_CLOEXEC, 0));
        const char **modules = arena_alloc(&build->arena, LAYER_MODULES_MAX * sizeof *modules);
        size_t n = 0;
        for (struct dirent *entry; dir && n < LAYER_MODULES_MAX && (entry = readdir(dir));) {
                struct stat st;
                size_t len = fstatat(tree_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0
                        ? 0
                        : module_length(entry->d_name, S_ISDIR(st.st_mode));
                if (len)
                        modules[n++] = arena_copy(&build->arena, entry->d_name, len);
        }
        if (dir)
                closedir(dir);
        build->meta.modules = modules;
        build->meta.modules_n = n;
}

static void finish(struct build *build, int tree_fd)
{
        mark_scripts(tree_fd);
        list_modules(build, tree_fd);
}

const struct package_language packages_python = {
        .name = "python",
        .kind = PACKAGE_PYTHON,
        .installer = "pip",
        .url_setting = "packages.python.index_url",
        .token_setting = "packages.python.index_token_file",
        .files = (const char *const[]){ "/usr/bin/python3", NULL },
        .resolve = packages_pip_resolve,
        .install = packages_pip_install,
        .url = url,
        .token_file = token_file,
        .input_name = "requirements.txt",
        .input = input,
        .judge = judge,
        .write_lock = write_lock,
        .finish = finish,
};
