/*
 * The hint for an import that fails: the installed module with the nearest name.  The names are those in the module
 * folders of this host's Python, because a sandbox sees the same /usr; in an image, those of its distributions.
 */
#include "engine/output/verdict.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>

#define DISTANCE_MAX 2                 /* changes of a letter that are taken for a mistake */

static const char *const folder_patterns[] = {
        "/usr/lib/python3.[0-9]*", "/usr/lib/python3/dist-packages", "/usr/local/lib/python3.[0-9]*/dist-packages",
};

struct nearest {
        const char *wanted;
        size_t len;
        char name[DISTANCE_LEN_MAX + 1];
        size_t distance;
};

/* "json/", "six.py" and "lxml.cpython-311-x86_64-linux-gnu.so" are modules; "six-1.16.dist-info" is none. */
static void consider(struct nearest *nearest, const char *entry)
{
        size_t len = strcspn(entry, ".");
        const char *end = strrchr(entry, '.');
        if (!len || len > DISTANCE_LEN_MAX || entry[0] == '_' || memchr(entry, '-', len))
                return;
        if (end && strcmp(end, ".py") != 0 && strcmp(end, ".so") != 0)
                return;
        size_t found = text_distance(nearest->wanted, nearest->len, entry, len);
        if (!found || found >= nearest->distance || found * 2 >= nearest->len)
                return;
        nearest->distance = found;
        memcpy(nearest->name, entry, len);
        nearest->name[len] = 0;
}

static void consider_folder(struct nearest *nearest, const char *path)
{
        DIR *dir = opendir(path);
        for (struct dirent *entry; dir && (entry = readdir(dir));)
                consider(nearest, entry->d_name);
        if (dir)
                closedir(dir);
}

static void consider_host(struct nearest *nearest)
{
        for (size_t i = 0; i < ARRAY_LEN(folder_patterns); i++) {
                glob_t found = { 0 };
                if (glob(folder_patterns[i], GLOB_NOSORT, NULL, &found) == 0)
                        for (size_t k = 0; k < found.gl_pathc; k++)
                                consider_folder(nearest, found.gl_pathv[k]);
                globfree(&found);
        }
}

static void consider_image(struct nearest *nearest, const struct complaint *of)
{
        char name[DISTANCE_LEN_MAX + 2];
        for (size_t i = 0; i < of->libraries_n; i++) {
                snprintf(name, sizeof name, "%.*s", (int)strcspn(of->libraries[i], " "), of->libraries[i]);
                consider(nearest, name);
        }
}

static char *modules_nearest(const struct complaint *of, const char *wanted, struct arena *arena)
{
        struct nearest nearest = { .wanted = wanted, .len = strlen(wanted), .distance = DISTANCE_MAX + 1 };
        if (nearest.len > DISTANCE_LEN_MAX)
                return NULL;
        if (of->image)
                consider_image(&nearest, of);
        else
                consider_host(&nearest);
        return nearest.name[0] ? arena_text(arena, "%s", nearest.name) : NULL;
}

char *modules_advice(const struct complaint *of, struct arena *arena)
{
        static const char begin[] = "No module named '";
        char name[DISTANCE_LEN_MAX + 1];
        const char *message = of->message && strncmp(of->message, begin, sizeof begin - 1) == 0
                ? of->message + sizeof begin - 1
                : "";
        size_t len = strcspn(message, "'.");
        if (!of->type || strcmp(of->type, "ModuleNotFoundError") != 0 || !len || len > DISTANCE_LEN_MAX)
                return NULL;
        memcpy(name, message, len);
        name[len] = 0;
        char *nearest = modules_nearest(of, name, arena);
        return arena_text(arena,
                "The module %s is not installed in %s%s.%s%s%s Use the standard library or an installed package, or "
                "name the package in the field packages.",
                name, of->image ? "the image " : "this image", of->image ? of->image : "",
                nearest ? " Did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}
