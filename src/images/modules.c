/*
 * The libraries and modules of a tree, by the names in the module folders of Python and Node.
 *
 * No program of the image runs at an import, so only the default folders of the interpreters of Debian, python.org and
 * nodejs.org count.  A folder added by a .pth file or NODE_PATH is not read.
 */
#include "images/images_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NODE_LAYER "opt/node_modules" /* the mount point of a layer of Node, to which /node_modules leads */

int image_open_inside(int tree_fd, const char *path, int flags)
{
        struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        return (int)syscall(SYS_openat2, tree_fd, path, &how, sizeof how);
}

/* ---- lists ---- */

struct list {
        struct arena *arena;
        const char **texts;
        size_t n, max;
        const char *scope; /* of the current folder: "@scope"; or NULL */
};

static struct list list_new(size_t max, struct arena *arena)
{
        return (struct list){ .arena = arena, .texts = arena_alloc(arena, max * sizeof(char *)), .max = max };
}

static void list_add(struct list *list, const char *text, size_t len)
{
        if (len && list->n < list->max && utf8_valid(text, len))
                list->texts[list->n++] = arena_copy(list->arena, text, len);
}

static int by_text_of_any_case(const void *a, const void *b)
{
        return strcasecmp(*(char *const *)a, *(char *const *)b);
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sort a list, and keep one of equal texts. */
static void list_settle(struct list *list)
{
        size_t kept = 0;
        if (list->n)
                qsort(list->texts, list->n, sizeof *list->texts, by_text);
        for (size_t i = 0; i < list->n; i++)
                if (!i || strcmp(list->texts[i], list->texts[i - 1]) != 0)
                        list->texts[kept++] = list->texts[i];
        list->n = kept;
}

/* ---- folders ---- */

/* Call a function with each name of a folder of the tree, which may be missing. */
static void each_name(int tree_fd, const char *path, void (*add)(struct list *list, const char *name),
        struct list *list)
{
        int fd = image_open_inside(tree_fd, path, O_RDONLY | O_DIRECTORY);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                fd_close(&fd);
                return;
        }
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
                add(list, entry->d_name);
        closedir(dir);
}

static void each_python_name(int tree_fd, const char *version, void (*add)(struct list *list, const char *name),
        struct list *list)
{
        static const char *const roots[] = { "usr", "usr/local" }, *const ends[] = { "site-packages", "dist-packages" };
        char path[100];
        each_name(tree_fd, "usr/lib/python3/dist-packages", add, list);
        for (size_t i = 0; version[0] && i < ARRAY_LEN(roots); i++)
                for (size_t k = 0; k < ARRAY_LEN(ends); k++) {
                        snprintf(path, sizeof path, "%s/lib/python%.20s/%s", roots[i], version, ends[k]);
                        each_name(tree_fd, path, add, list);
                }
}

/* ---- Python ---- */

static void add_library(struct list *list, const char *entry)
{
        const char *end = strstr(entry, ".dist-info");
        end = end ? end : strstr(entry, ".egg-info");
        const char *dash = end ? memchr(entry, '-', (size_t)(end - entry)) : NULL;
        if (!end || !utf8_valid(entry, strlen(entry)))
                return;
        size_t name_len = (size_t)((dash ? dash : end) - entry);
        const char *version = dash ? dash + 1 : "";
        size_t version_len = dash ? strcspn(version, "-") : 0;
        if (dash && version_len > (size_t)(end - version))
                version_len = (size_t)(end - version);
        const char *text = arena_text(list->arena, "%.*s%s%.*s", (int)name_len, entry, version_len ? " " : "",
                (int)version_len, version);
        list_add(list, text, strlen(text));
}

/* "numpy", "six.py" and "lxml.cpython-311-x86_64-linux-gnu.so" are modules; "six-1.16.dist-info" is none. */
static void add_python_module(struct list *list, const char *entry)
{
        size_t len = strcspn(entry, ".");
        const char *end = strrchr(entry, '.');
        if (strcmp(entry, "__pycache__") == 0 || memchr(entry, '-', len) ||
                (end && strcmp(end, ".py") != 0 && strcmp(end, ".so") != 0))
                return;
        list_add(list, entry, len);
}

/* ---- Node ---- */

/* "acorn" and "nopt.js" are modules. */
static void add_node_module(struct list *list, const char *entry)
{
        size_t len = strlen(entry);
        if (len > 3 && strcmp(entry + len - 3, ".js") == 0)
                len -= 3;
        if (entry[0] != '.' && entry[0] != '@')
                list_add(list, entry, len);
}

static void add_scope(struct list *list, const char *entry)
{
        if (entry[0] == '@')
                list_add(list, entry, strlen(entry));
}

static void add_scoped_module(struct list *list, const char *entry)
{
        if (entry[0] == '.' || list->n == list->max)
                return;
        const char *name = arena_text(list->arena, "%s/%s", list->scope, entry);
        list_add(list, name, strlen(name));
}

static void add_scoped_modules(int tree_fd, const char *folder, struct list *list)
{
        struct list scopes = list_new(IMAGE_MODULES_MAX, list->arena);
        each_name(tree_fd, folder, add_scope, &scopes);
        for (size_t i = 0; i < scopes.n && list->n < list->max; i++) {
                list->scope = scopes.texts[i];
                each_name(tree_fd, arena_text(list->arena, "%s/%s", folder, list->scope), add_scoped_module, list);
        }
}

/* Default module folders of Debian's Node, and /node_modules. */
static void find_node_modules(int tree_fd, struct arena *arena, struct stored_image *image)
{
        static const char *const folders[] = { "usr/share/nodejs", "usr/lib/nodejs", "usr/lib/x86_64-linux-gnu/nodejs",
                "usr/lib/aarch64-linux-gnu/nodejs", "node_modules" };
        struct list modules = list_new(IMAGE_MODULES_MAX, arena);
        char target[sizeof NODE_LAYER + 1];
        for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
                each_name(tree_fd, folders[i], add_node_module, &modules);
                add_scoped_modules(tree_fd, folders[i], &modules);
        }
        ssize_t len = readlinkat(tree_fd, "node_modules", target, sizeof target - 1);
        target[len > 0 ? len : 0] = 0;
        list_settle(&modules);
        image->hides_node_packages = strcmp(target, NODE_LAYER) != 0;
        image->modules[IMAGE_NODE] = modules.texts;
        image->modules_n[IMAGE_NODE] = modules.n;
}

void image_find_modules(int tree_fd, struct arena *arena, struct stored_image *image)
{
        struct list libraries = list_new(IMAGE_LIBRARIES_MAX, arena), modules = list_new(IMAGE_MODULES_MAX, arena);
        const char *version = image->interpreters[IMAGE_PYTHON].version;
        each_python_name(tree_fd, version, add_library, &libraries);
        if (libraries.n)
                qsort(libraries.texts, libraries.n, sizeof *libraries.texts, by_text_of_any_case);
        image->libraries = libraries.texts;
        image->libraries_n = libraries.n;
        each_python_name(tree_fd, version, add_python_module, &modules);
        list_settle(&modules);
        image->modules[IMAGE_PYTHON] = modules.texts;
        image->modules_n[IMAGE_PYTHON] = modules.n;
        find_node_modules(tree_fd, arena, image);
        image->lists_modules = true;
}

bool image_has_module(const struct stored_image *image, enum image_language language, const char *name)
{
        return image->modules_n[language] &&
                bsearch(&name, image->modules[language], image->modules_n[language], sizeof name, by_text);
}
