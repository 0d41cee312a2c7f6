/*
 * The hint for an import that fails: the installed module with the nearest name.  Candidates are the run's packages and
 * the module folders of this host's Python or Node, because a sandbox sees the same /usr; in an imported image, the
 * image's list.
 */
#include "engine/output/verdict.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>

#define DISTANCE_MAX 2                 /* most changed letters of a misspelled name */

#define PACKAGES_NAMED_MAX 20          /* most packages listed in a hint, of a run or of an image */

static const char *const python_folders[] = { "/usr/lib/python3.[0-9]*", "/usr/lib/python3/dist-packages",
        "/usr/local/lib/python3.[0-9]*/dist-packages", NULL };

/* Folders in which Node of Debian looks by itself. */
static const char *const node_folders[] = { "/usr/share/nodejs", "/usr/lib/nodejs", NULL };

/* How a language reports a missing module, and how its hint reads. */
struct missing {
        const char *language, *type, *begin;
        const char *const *folders;
        const char *library; /* "the standard library": modules that each program has */
};

static const struct missing kinds[] = {
        { "python", "ModuleNotFoundError", "No module named '", python_folders, "the standard library" },
        { "javascript", NULL, "Cannot find module '", node_folders, "the modules of Node" },
        { "javascript", NULL, "Cannot find package '", node_folders, "the modules of Node" },
        { "typescript", NULL, "Cannot find module '", node_folders, "the modules of Node" },
        { "typescript", NULL, "Cannot find package '", node_folders, "the modules of Node" },
};

struct nearest {
        const char *wanted;
        size_t len;
        char name[DISTANCE_LEN_MAX + 1];
        size_t distance;
};

static void consider(struct nearest *nearest, const char *name, size_t len)
{
        if (!len || len > DISTANCE_LEN_MAX)
                return;
        size_t found = text_distance(nearest->wanted, nearest->len, name, len);
        if (!found || found >= nearest->distance || found * 2 >= nearest->len)
                return;
        nearest->distance = found;
        memcpy(nearest->name, name, len);
        nearest->name[len] = 0;
}

/* "json/", "six.py" and "lxml.cpython-311-x86_64-linux-gnu.so" are modules of Python; "six-1.16.dist-info" is none. */
static void consider_python(struct nearest *nearest, const char *entry)
{
        size_t len = strcspn(entry, ".");
        const char *end = strrchr(entry, '.');
        if (entry[0] == '_' || memchr(entry, '-', len) || (end && strcmp(end, ".py") != 0 && strcmp(end, ".so") != 0))
                return;
        consider(nearest, entry, len);
}

static void consider_folder(struct nearest *nearest, const char *path, bool python)
{
        DIR *dir = opendir(path);
        for (struct dirent *entry; dir && (entry = readdir(dir));)
                if (python)
                        consider_python(nearest, entry->d_name);
                else if (entry->d_name[0] != '.' && entry->d_name[0] != '@')
                        consider(nearest, entry->d_name, strlen(entry->d_name));
        if (dir)
                closedir(dir);
}

/* "six" of "six==1.16.0", and "@scope/x" of "@scope/x@1.2.3". */
static size_t name_length(const char *package)
{
        const char *at = strrchr(package, '@');
        return at > package ? (size_t)(at - package) : strcspn(package, "=");
}

static void consider_image(struct nearest *nearest, const struct complaint *of)
{
        for (size_t i = 0; i < of->modules_n; i++)
                consider(nearest, of->modules[i], strlen(of->modules[i]));
}

static const char *modules_nearest(const struct complaint *of, const struct missing *kind, const char *wanted,
        struct nearest *nearest)
{
        bool python = kind->folders == python_folders;
        *nearest = (struct nearest){ .wanted = wanted, .len = strlen(wanted), .distance = DISTANCE_MAX + 1 };
        for (size_t i = 0; i < of->layers_n; i++)
                if (strcmp(of->layers[i].language, python ? "python" : "javascript") == 0)
                        for (size_t k = 0; k < of->layers[i].packages_n; k++)
                                consider(nearest, of->layers[i].packages[k], name_length(of->layers[i].packages[k]));
        if (of->image)
                consider_image(nearest, of);
        for (size_t i = 0; !of->image && kind->folders[i]; i++) {
                glob_t found = { 0 };
                if (glob(kind->folders[i], GLOB_NOSORT, NULL, &found) == 0)
                        for (size_t k = 0; k < found.gl_pathc; k++)
                                consider_folder(nearest, found.gl_pathv[k], python);
                globfree(&found);
        }
        return nearest->name[0] ? nearest->name : NULL;
}

/* The module's name in a message, without lower levels: json of json.nothing, @a/b of @a/b/c.  0: none. */
static size_t module_name(const struct missing *kind, const char *text)
{
        size_t len = strcspn(text, kind->folders == python_folders ? "'." : "'/");
        if (text[0] == '@' && text[len] == '/')
                len += 1 + strcspn(text + len + 1, "'/");
        return text[0] == '.' || text[0] == '/' || len > DISTANCE_LEN_MAX ? 0 : len;
}

/* " The packages of this run are six==1.16.0, x==1.0."; "": no packages. */
static const char *packages_text(const struct complaint *of, struct arena *arena)
{
        const char *text = "";
        size_t n = 0;
        for (size_t i = 0; i < of->layers_n; i++)
                for (size_t k = 0; k < of->layers[i].packages_n && n < PACKAGES_NAMED_MAX; k++, n++)
                        text = arena_text(arena, "%s%s%.100s", text, n ? ", " : "", of->layers[i].packages[k]);
        return n ? arena_text(arena, " The packages of this run are %s.", text) : "";
}

/* " The image has numpy 1.24.2, six 1.16.0 and 40 more: caisson image show NAME."; "": none, or the host's image. */
static const char *image_text(const struct complaint *of, struct arena *arena)
{
        const char *text = "";
        size_t n = of->installed_n < PACKAGES_NAMED_MAX ? of->installed_n : PACKAGES_NAMED_MAX;
        if (!of->image || !n)
                return "";
        for (size_t i = 0; i < n; i++)
                text = arena_text(arena, "%s%s%.100s", text, i ? ", " : "", of->installed[i]);
        return n == of->installed_n
                ? arena_text(arena, " The image has %s.", text)
                : arena_text(arena, " The image has %s and %zu more, see caisson image show %s.", text,
                          of->installed_n - n, of->image);
}

char *modules_advice(const struct complaint *of, struct arena *arena)
{
        for (size_t i = 0; of->message && i < ARRAY_LEN(kinds); i++) {
                const struct missing *kind = &kinds[i];
                struct nearest nearest;
                if (strcmp(of->language, kind->language) != 0 ||
                        strncmp(of->message, kind->begin, strlen(kind->begin)) != 0)
                        continue;
                const char *text = of->message + strlen(kind->begin);
                size_t len = module_name(kind, text);
                if (!len || (kind->type && (!of->type || strcmp(of->type, kind->type) != 0)))
                        return NULL;
                const char *name = arena_copy(arena, text, len), *near = modules_nearest(of, kind, name, &nearest);
                return arena_text(arena,
                        "The module %s is not installed in %s%s.%s%s%s%s%s Use %s or an installed package, or name the "
                        "package in the field packages.",
                        name, of->image ? "the image " : "this image", of->image ? of->image : "",
                        near ? " Did you mean " : "", near ? near : "", near ? "?" : "", packages_text(of, arena),
                        image_text(of, arena), kind->library);
        }
        return NULL;
}
