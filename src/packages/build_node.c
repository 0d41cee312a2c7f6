/*
 * Builds of layers of Node: npm resolves and installs.  The index serves tarballs of a registry alone, so a package of
 * another source (git, an address, a folder), an alias and a bundled package are refused.
 *
 * The tree of modules is npm's: one version of a package may be in several folders.  So the folder of each module is
 * part of the lock, and of the layer's id.
 */
#include "packages/packages_private.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FOLDER "node_modules/"
#define FOLDER_LEN (sizeof FOLDER - 1)
#define OWN_NAME "layer" /* the package with all packages of the request as dependencies */

static const char *url(const struct settings *settings)
{
        return settings->node_packages.registry_url;
}

static const char *token_file(const struct settings *settings)
{
        return settings->node_packages.registry_token_file;
}

/* ---- the package of the request ---- */

/* {"left-pad": "1.x"}; the caller owns the reference. */
static json_t *dependencies_of(const struct package_set *set)
{
        json_t *dependencies = json_object();
        for (size_t i = 0; i < set->n; i++)
                json_object_set_new(dependencies, set->specs[i].name,
                        json_string(set->specs[i].version[0] ? set->specs[i].version : "*"));
        return dependencies;
}

static json_t *own_package(const struct package_set *set)
{
        return json_pack("{s:s, s:s, s:b, s:o}", "name", OWN_NAME, "version", "1.0.0", "private", 1, "dependencies",
                dependencies_of(set));
}

static char *input(struct build *build)
{
        json_t *package = own_package(&build->set);
        char *text = json_dumps(package, JSON_COMPACT);
        char *copy = arena_copy(&build->arena, text ? text : "", text ? strlen(text) : 0);
        json_decref(package);
        free(text);
        return copy;
}

/* ---- the platform ---- */

/* Node's name for this processor; "": unknown. */
static const char *processor(void)
{
        static const struct {
                const char *machine, *name;
        } rows[] = { { "x86_64", "x64" }, { "aarch64", "arm64" }, { "i686", "ia32" }, { "armv7l", "arm" },
                { "ppc64le", "ppc64" }, { "s390x", "s390x" }, { "riscv64", "riscv64" } };
        struct utsname host;
        for (size_t i = 0; uname(&host) == 0 && i < ARRAY_LEN(rows); i++)
                if (strcmp(rows[i].machine, host.machine) == 0)
                        return rows[i].name;
        return "";
}

/* Whether a list such as ["linux", "darwin"] or ["!win32"] permits a name; no list permits all, as for npm. */
static bool permits(const json_t *list, const char *name)
{
        bool permitted = !json_is_array(list) || !json_array_size(list) || !name[0];
        size_t refusals = 0;
        for (size_t i = 0; i < json_array_size(list); i++) {
                const char *item = json_string_value(json_array_get(list, i));
                if (item && item[0] == '!' && strcmp(item + 1, name) == 0)
                        return false;
                refusals += item && item[0] == '!';
                permitted = permitted || (item && (strcmp(item, name) == 0 || strcmp(item, "any") == 0));
        }
        return permitted || refusals == json_array_size(list);
}

/* An optional module for another platform: npm does not install the module. */
static bool is_foreign(const json_t *entry)
{
        return json_is_true(json_object_get(entry, "optional")) &&
                !(permits(json_object_get(entry, "os"), "linux") &&
                        permits(json_object_get(entry, "cpu"), processor()) &&
                        permits(json_object_get(entry, "libc"), "glibc"));
}

/* ---- judging ---- */

/*
 * The name of the module in a folder such as node_modules/a/node_modules/@b/c: @b/c.  NULL: no such folder.
 */
static const char *module_of(const char *folder)
{
        for (;;) {
                if (strncmp(folder, FOLDER, FOLDER_LEN) != 0)
                        return NULL;
                const char *name = folder + FOLDER_LEN;
                size_t len = strcspn(name, "/");
                if (name[0] == '@' && name[len])
                        len += 1 + strcspn(name + len + 1, "/");
                if (!len || name[0] == '.' || (name[0] == '@' && (!memchr(name, '/', len) || name[len - 1] == '/')))
                        return NULL;
                if (!name[len])
                        return name;
                folder = name + len + 1;
        }
}

/* Why the index cannot serve an entry of the lock, as the end of a sentence; NULL: no such reason. */
static const char *foreign_source(const json_t *entry)
{
        const char *address = json_string_value(json_object_get(entry, "resolved"));
        if (json_is_true(json_object_get(entry, "link")))
                return "is a link to a folder, and a layer has packages of the registry alone";
        if (json_is_true(json_object_get(entry, "inBundle")))
                return "is bundled in another package, and a layer has packages of the registry alone";
        if (json_array_size(json_object_get(entry, "bundleDependencies")) ||
                json_is_true(json_object_get(entry, "bundleDependencies")))
                return "has bundled packages, and a layer has packages of the registry alone";
        if (address && strncmp(address, PACKAGE_INDEX_BASE "/", sizeof PACKAGE_INDEX_BASE) != 0)
                return "is from git, an address or a folder, and a layer has packages of the registry alone";
        return NULL;
}

/* The offered file of an entry; NULL: the build has failed. */
static const struct package_file *file_of(struct build *build, const char *folder, const json_t *entry)
{
        const char *name = module_of(folder), *why = name ? foreign_source(entry) : NULL;
        const char *alias = json_string_value(json_object_get(entry, "name")), *of = alias ? alias : name;
        const char *address = json_string_value(json_object_get(entry, "resolved"));
        const char *version = json_string_value(json_object_get(entry, "version"));
        const char *hash = json_string_value(json_object_get(entry, "integrity"));
        const struct package_file *file = address && !why ? package_index_file(build->index, address) : NULL;
        if (why)
                layer_build_fail(build, "not_allowed", "%.100s %s", name, why);
        else if (!name)
                layer_build_fail(build, "not_allowed", "%.100s is no folder of a module", folder);
        else if (!file || !version || !hash || strcmp(file->name, of) != 0 || strcmp(file->version, version) != 0 ||
                strcmp(file->hash, hash) != 0)
                layer_build_fail(build, "index_untrusted", "%.100s: npm chose a file that the index has not offered", name);
        else
                return file;
        return NULL;
}

/* npm runs installation scripts, and a build does not: the package may lack files made by its script. */
static void note_script(struct build *build, const struct package_file *file)
{
        if (!file->has_install_script || build->warnings_n == LAYER_WARNINGS_MAX)
                return;
        if (!build->warnings)
                build->warnings = arena_alloc(&build->arena, LAYER_WARNINGS_MAX * sizeof *build->warnings);
        build->warnings[build->warnings_n++] = arena_text(&build->arena,
                "%s %s has an installation script, which has not run", file->name, file->version);
}

/* Does a module find another module, in its own folder or the folders above, as Node looks? */
static bool finds(json_t *lock, const char *folder, const char *name, struct arena *arena)
{
        for (size_t len = strlen(folder);;) {
                char *path = arena_text(arena, "%.*s%s" FOLDER "%s", (int)len, folder, len ? "/" : "", name);
                if (json_object_get(lock, path))
                        return true;
                if (!len)
                        return false;
                while (len && strncmp(folder + len, FOLDER, FOLDER_LEN) != 0)
                        len--;
                len -= len > 0; /* the slash before */
        }
}

/* npm leaves out optional modules that were not found, and npm ci requires all modules named. */
static json_t *found_optionals(struct build *build, json_t *lock, const char *folder, json_t *optionals)
{
        const char *name;
        json_t *version, *found = json_object();
        json_object_foreach(optionals, name, version) {
                if (finds(lock, folder, name, &build->arena))
                        json_object_set(found, name, version);
        }
        return found;
}

/* The entry for npm ci: version, address and hash from the index, and the dependencies from the resolver's lock. */
static void lock_entry(struct build *build, json_t *lock, const char *folder, const struct package_file *file,
        const char *name)
{
        static const char *const kept[] = { "dependencies", "peerDependencies", "peerDependenciesMeta", "bin", "engines",
                "os", "cpu", "libc", "optional", "peer", "devOptional" };
        json_t *entry = json_object_get(lock, folder);
        json_t *optionals = found_optionals(build, lock, folder, json_object_get(entry, "optionalDependencies"));
        json_t *made = json_pack("{s:s, s:s+, s:s}", "version", file->version, "resolved", "file:files/", name,
                "integrity", file->hash);
        if (strcmp(module_of(folder), file->name) != 0)
                json_object_set_new(made, "name", json_string(file->name));
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                if (json_object_get(entry, kept[i]))
                        json_object_set(made, kept[i], json_object_get(entry, kept[i]));
        if (json_object_size(optionals))
                json_object_set(made, "optionalDependencies", optionals);
        json_decref(optionals);
        json_object_set_new(build->lock, folder, made);
}

static bool take_entry(struct build *build, json_t *lock, const char *folder)
{
        const json_t *entry = json_object_get(lock, folder);
        const struct package_file *file = file_of(build, folder, entry);
        char *name = arena_text(&build->arena, "%zu.tgz", build->files_n);
        if (!file)
                return false;
        if (is_foreign(entry)) {
                lock_entry(build, lock, folder, file, "none.tgz");
                return true;
        }
        lock_entry(build, lock, folder, file, name);
        note_script(build, file);
        build->names[build->files_n] = name;
        build->places[build->files_n] = arena_text(&build->arena, "%s", folder + FOLDER_LEN);
        build->files[build->files_n++] = file;
        return true;
}

/*
 * The resolver is not trusted: the index must have offered each file of its lock, and no package of the request may be
 * missing.
 */
static bool judge(struct build *build, json_t *lock)
{
        const char *folder;
        json_t *entry;
        size_t n = 0;
        json_object_foreach(lock, folder, entry) {
                n += folder[0] && !is_foreign(entry);
        }
        if (!layer_build_take_files(build, n))
                return false;
        build->lock = json_object();
        json_object_foreach(lock, folder, entry) {
                if (folder[0] && !take_entry(build, lock, folder))
                        return false;
        }
        for (size_t i = 0; i < build->set.n; i++) {
                char *wanted = arena_text(&build->arena, FOLDER "%s", build->set.specs[i].name);
                if (!json_object_get(build->lock, wanted)) {
                        layer_build_fail(build, "build_failed", "npm has not resolved %s", build->set.specs[i].name);
                        return false;
                }
        }
        return true;
}

static int write_json(int work_fd, const char *name, json_t *json, struct csn_error *err)
{
        char *text = json_dumps(json, JSON_COMPACT);
        int rc = layer_build_write(work_fd, name, text ? text : "", text ? strlen(text) : 0, err);
        free(text);
        return rc;
}

/* An alias among the packages of a request, possible with a lock, is also an alias for npm ci. */
static void name_aliases(const struct build *build, json_t *package)
{
        json_t *dependencies = json_object_get(package, "dependencies");
        for (size_t i = 0; i < build->set.n; i++) {
                char folder[sizeof FOLDER + SPEC_NAME_MAX];
                snprintf(folder, sizeof folder, FOLDER "%s", build->set.specs[i].name);
                const json_t *entry = json_object_get(build->lock, folder), *of = json_object_get(entry, "name");
                if (of)
                        json_object_set_new(dependencies, build->set.specs[i].name,
                                json_sprintf("npm:%s@%s", json_string_value(of),
                                        json_string_value(json_object_get(entry, "version"))));
        }
}

static int write_lock(const struct build *build, int work_fd, struct csn_error *err)
{
        json_t *package = own_package(&build->set);
        name_aliases(build, package);
        json_object_set(build->lock, "", package);
        json_t *lock = json_pack("{s:s, s:s, s:i, s:b, s:O}", "name", OWN_NAME, "version", "1.0.0", "lockfileVersion", 3,
                "requires", 1, "packages", build->lock);
        int rc = write_json(work_fd, "package.json", package, err);
        rc = rc < 0 ? rc : write_json(work_fd, "package-lock.json", lock, err);
        json_decref(package);
        json_decref(lock);
        return rc;
}

/* ---- the tree ---- */

static int open_beneath(int tree_fd, const char *path, int flags)
{
        struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
        return (int)syscall(SYS_openat2, tree_fd, path, &how, sizeof how);
}

/* The length of the folder of a path such as left/node_modules/.bin/left-cli; 0: the path is not in a .bin folder. */
static size_t bin_folder(const char *path)
{
        static const char bin[] = ".bin", nested[] = "/node_modules/.bin";
        const char *slash = strrchr(path, '/');
        size_t len = slash ? (size_t)(slash - path) : 0;
        bool is_bin = len == sizeof bin - 1 && memcmp(path, bin, len) == 0;
        bool is_nested = len > sizeof nested - 1 && memcmp(slash - (sizeof nested - 1), nested, sizeof nested - 1) == 0;
        return (is_bin || is_nested) && slash[1] ? len : 0;
}

/*
 * Make the link of a command, and make its target executable.  Without a regular file as target there is no link.  The
 * installer, which is not trusted, has chosen both texts.
 */
static void add_link(struct build *build, int tree_fd, const char *path, const char *target)
{
        size_t len = bin_folder(path);
        struct stat st;
        if (!len || strlen(path) > LAYER_PATH_MAX || strlen(target) > LAYER_PATH_MAX)
                return;
        char *folder = arena_copy(&build->arena, path, len);
        char *slash = strrchr(folder, '/');
        char *above = arena_copy(&build->arena, slash ? folder : ".", slash ? (size_t)(slash - folder) : 1);
        auto_fd above_fd = open_beneath(tree_fd, above, O_RDONLY | O_DIRECTORY);
        if (above_fd < 0 || (mkdirat(above_fd, ".bin", 0755) < 0 && errno != EEXIST))
                return;
        auto_fd folder_fd = open_beneath(above_fd, ".bin", O_RDONLY | O_DIRECTORY);
        auto_fd file = open_beneath(tree_fd, arena_text(&build->arena, "%s/%s", folder, target), O_RDONLY | O_NONBLOCK);
        if (folder_fd >= 0 && file >= 0 && fstat(file, &st) == 0 && S_ISREG(st.st_mode) && fchmod(file, 0755) == 0)
                (void)!symlinkat(target, folder_fd, path + len + 1); /* the first link of a name stays */
}

static void list_modules(struct build *build)
{
        const struct layer_key *key = &build->meta.key;
        const char **modules = arena_alloc(&build->arena, (key->lock_n + 1) * sizeof *modules);
        size_t n = 0;
        for (size_t i = 0; i < key->lock_n && n < LAYER_MODULES_MAX; i++)
                if (!strstr(key->lock[i].file, "/" FOLDER))
                        modules[n++] = key->lock[i].file; /* an alias has another name than its package */
        build->meta.modules = modules;
        build->meta.modules_n = n;
}

static void finish(struct build *build, int tree_fd)
{
        json_t *links = json_object_get(build->report, "links"), *link;
        size_t i;
        json_array_foreach(links, i, link) {
                const char *path = json_string_value(json_object_get(link, "path"));
                const char *target = json_string_value(json_object_get(link, "target"));
                if (path && target && target[0] != '/')
                        add_link(build, tree_fd, path, target);
        }
        list_modules(build);
}

const struct package_language packages_node = {
        .name = "javascript",
        .kind = PACKAGE_NODE,
        .installer = "npm",
        .url_setting = "packages.node.registry_url",
        .token_setting = "packages.node.registry_token_file",
        .files = (const char *const[]){ "/usr/bin/node", "/usr/bin/npm", NULL },
        .resolve = packages_npm_resolve,
        .install = packages_npm_install,
        .probe = packages_node_probe,
        .url = url,
        .token_file = token_file,
        .input_name = "package.json",
        .input = input,
        .judge = judge,
        .resolve_lock = lock_resolve,
        .write_lock = write_lock,
        .finish = finish,
};
