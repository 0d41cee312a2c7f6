/*
 * A tree after unpacking: make the mount points of a sandbox folders and files, and record the interpreters and
 * libraries.
 *
 * src/sandbox/image_root.c mounts at these places by name, so no link may be among the mount points.
 */
#include "images/images_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define NAME_LINES_MAX ((size_t)65536) /* bytes of /usr/share/caisson/libraries */

/* Parents first.  Other content of the image at an emptied place could never be seen, and goes. */
static const struct {
        const char *path;
        bool is_emptied;
} folders[] = {
        { "usr", false }, { "etc", false }, { "opt", false }, { "var", false }, { "proc", true }, { "dev", true },
        { "run", true }, { "tmp", true }, { "home", true }, { "home/user", false },
        { "opt/caisson", true }, { "opt/packages", true }, { "opt/node_modules", true },
        { "mnt", false },
};

/*
 * Each file is covered by a file of the sandbox.  The accounts and groups stay, for sandboxes with root, and are added
 * to the sandbox's accounts and groups (src/sandbox/overlay.c).
 */
static const struct {
        const char *name;
        bool stays;
} files[] = {
        { "passwd", true }, { "group", true }, { "nsswitch.conf", false }, { "hosts", false }, { "hostname", false },
        { "resolv.conf", false },
};

static const struct {
        const char *path, *target;
        bool replaces;
} links[] = {
        { "var/tmp", "../tmp", true },
        { "var/run", "../run", true },
        { "etc/mtab", "../proc/self/mounts", true },
        { "node_modules", "opt/node_modules", false },
};

static int failed(struct csn_error *err, const char *path)
{
        return err_storage(err, errno, "make /%s of an image", path);
}

static int make_folder(int tree_fd, const char *path, bool is_emptied, struct csn_error *err)
{
        struct stat st;
        bool there = fstatat(tree_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (there && (is_emptied || !S_ISDIR(st.st_mode)) && image_remove_entry(tree_fd, path) < 0)
                return failed(err, path);
        if (mkdirat(tree_fd, path, 0755) < 0 && errno != EEXIST)
                return failed(err, path);
        return fchmodat(tree_fd, path, 0755, 0) < 0 ? failed(err, path) : 0;
}

static int make_files(int tree_fd, struct csn_error *err)
{
        auto_fd etc = openat(tree_fd, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (etc < 0)
                return failed(err, "etc");
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                const char *name = files[i].name;
                struct stat st;
                bool stays = files[i].stays && fstatat(etc, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
                if (!stays && image_remove_entry(etc, name) < 0)
                        return failed(err, name);
                auto_fd fd = openat(etc, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
                if (fd < 0 || fchmod(fd, 0644) < 0)
                        return failed(err, name);
        }
        return 0;
}

static int make_links(int tree_fd, struct csn_error *err)
{
        for (size_t i = 0; i < ARRAY_LEN(links); i++) {
                if (links[i].replaces && image_remove_entry(tree_fd, links[i].path) < 0)
                        return failed(err, links[i].path);
                if (symlinkat(links[i].target, tree_fd, links[i].path) < 0 && errno != EEXIST)
                        return failed(err, links[i].path);
        }
        return 0;
}

/* ---- interpreters ---- */

/* The version in the last name of the resolved path: 3.11 for python3.11. */
static const char *version_of(int fd, const char *word, struct arena *arena)
{
        char link[40], target[IMAGE_PATH_MAX + 1];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(link, target, sizeof target - 1);
        target[len > 0 ? len : 0] = 0;
        const char *name = strrchr(target, '/');
        name = name && strncmp(name + 1, word, strlen(word)) == 0 ? name + 1 + strlen(word) : "";
        return arena_text(arena, "%.*s", (int)strspn(name, "0123456789."), name);
}

static struct stored_interpreter find_interpreter(int tree_fd, const char *const *paths, const char *word,
        struct arena *arena)
{
        for (; *paths; paths++) {
                struct stat st;
                auto_fd fd = image_open_inside(tree_fd, *paths, O_PATH);
                if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111)
                        return (struct stored_interpreter){ *paths, version_of(fd, word, arena) };
        }
        return (struct stored_interpreter){ "", "" };
}

static void find_interpreters(int tree_fd, struct arena *arena, struct stored_image *image)
{
        static const char *const python[] = { "/usr/bin/python3", "/usr/local/bin/python3", NULL };
        static const char *const node[] = { "/usr/bin/node", "/usr/local/bin/node", NULL };
        static const char *const bash[] = { "/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", NULL };
        static const char *const *const paths[IMAGE_LANGUAGES] = {
                [IMAGE_PYTHON] = python, [IMAGE_NODE] = node, [IMAGE_BASH] = bash
        };
        for (int i = 0; i < IMAGE_LANGUAGES; i++)
                image->interpreters[i] =
                        find_interpreter(tree_fd, paths[i], image_language_name((enum image_language)i), arena);
}

/* The loader by which programs are linked with the GNU C library (the ABI of x86-64 and of AArch64). */
static bool has_glibc(int tree_fd)
{
        static const char *const loaders[] = { "lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1" };
        for (size_t i = 0; i < ARRAY_LEN(loaders); i++) {
                auto_fd fd = image_open_inside(tree_fd, loaders[i], O_PATH);
                if (fd >= 0)
                        return true;
        }
        return false;
}

/* ---- libraries named by the image ---- */

/* Each line names a distribution; blank lines and lines with a leading # are skipped. */
static void find_expected(int tree_fd, struct arena *arena, struct stored_image *image)
{
        char *text = arena_alloc(arena, NAME_LINES_MAX + 1);
        const char **names = arena_alloc(arena, IMAGE_LIBRARIES_MAX * sizeof *names);
        size_t n = 0;
        auto_fd fd = image_open_inside(tree_fd, "usr/share/caisson/libraries", O_RDONLY | O_NONBLOCK | O_NOCTTY);
        ssize_t len = fd < 0 ? 0 : read(fd, text, NAME_LINES_MAX);
        text[len > 0 ? len : 0] = 0;
        char *rest = NULL;
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                line += strspn(line, " \t");
                line[strcspn(line, " \t\r")] = 0;
                if (line[0] && line[0] != '#' && utf8_valid(line, strlen(line)) && n < IMAGE_LIBRARIES_MAX)
                        names[n++] = line;
        }
        image->expected = names;
        image->expected_n = n;
}

int image_settle(const struct image_staging *staging, struct arena *arena, struct stored_image *image,
        struct csn_error *err)
{
        int tree_fd = staging->tree_fd;
        struct stat st;
        bool has_usr = fstatat(tree_fd, "usr", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
        bool has_bin = fstatat(tree_fd, "bin", &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!has_usr && !has_bin)
                return err_field(err, "archive",
                        "the archive is no root file system, docker save output or OCI layout: it has neither /usr nor "
                        "/bin, and neither manifest.json nor index.json");
        for (size_t i = 0; i < ARRAY_LEN(folders); i++)
                if (make_folder(tree_fd, folders[i].path, folders[i].is_emptied, err) < 0)
                        return -err->code;
        if (image_remove_entry(tree_fd, "sys") < 0)
                return failed(err, "sys");
        if (make_files(tree_fd, err) < 0 || make_links(tree_fd, err) < 0)
                return -err->code;
        find_interpreters(tree_fd, arena, image);
        image->has_glibc = has_glibc(tree_fd);
        image_find_modules(tree_fd, arena, image);
        find_expected(tree_fd, arena, image);
        return 0;
}
