/* Languages that an administrator adds by a file: a command line, and the names under which it is known. */
#include "lang/lang.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#define LANGUAGES_MAX 100

static int wrong(const char *file, unsigned line, const char *what, struct csn_error *err)
{
        return err_set(err, CSN_E_CONFIG, 0, "%s:%u: %s", file, line, what);
}

static const char *const *texts_of(const struct yaml_node *list, struct arena *arena)
{
        size_t n = 0;
        for (const struct yaml_node *item = list ? list->children : NULL; item; item = item->next)
                n++;
        const char **texts = arena_alloc(arena, (n + 1) * sizeof *texts);
        n = 0;
        for (const struct yaml_node *item = list ? list->children : NULL; item; item = item->next)
                texts[n++] = item->value ? item->value : "";
        return texts;
}

struct entries {
        const struct yaml_node *command, *title, *aliases, *file, *extensions;
};

static int sort_entries(const struct yaml_node *root, const char *path, struct entries *ret, struct csn_error *err)
{
        for (const struct yaml_node *node = root->children; node; node = node->next) {
                const struct { const char *key; bool list; const struct yaml_node **into; } keys[] = {
                        { "command", true, &ret->command },   { "title", false, &ret->title },
                        { "aliases", true, &ret->aliases },   { "file", false, &ret->file },
                        { "extensions", true, &ret->extensions },
                };
                size_t i = 0;
                while (i < ARRAY_LEN(keys) && strcmp(keys[i].key, node->key) != 0)
                        i++;
                if (i == ARRAY_LEN(keys))
                        return wrong(path, node->line, "a language has command, title, aliases, file and extensions",
                                err);
                if (keys[i].list ? !node->is_list : !node->value)
                        return wrong(path, node->line, keys[i].list ? "has to be a list" : "has to be one text", err);
                *keys[i].into = node;
        }
        return 0;
}

static int load_one(const char *path, const char *name, struct arena *arena, const struct language **ret,
        struct csn_error *err)
{
        static char text[64 * KIB + 1];
        struct yaml_node root;
        struct entries entries = { 0 };
        ssize_t len = io_read_file(AT_FDCWD, path, text, 64 * KIB);
        if (len < 0)
                return err_set(err, CSN_E_CONFIG, errno, "read %s", path);
        if (yaml_parse(text, (size_t)len, path, arena, &root, err) < 0 || sort_entries(&root, path, &entries, err) < 0)
                return -err->code;
        const char *const *command = texts_of(entries.command, arena);
        if (!command[0] || command[0][0] != '/')
                return wrong(path, entries.command ? entries.command->line : 1,
                             "command has to be a list whose first item is the interpreter's absolute path", err);
        struct language *language = arena_alloc(arena, sizeof *language);
        *language = (struct language){
                .name = name,
                .aliases = texts_of(entries.aliases, arena),
                .title = entries.title ? entries.title->value : name,
                .interpreter = command[0],
                .file = entries.file ? entries.file->value : arena_text(arena, "main.%s", name),
                .extensions = texts_of(entries.extensions, arena),
                .command = command,
                .next = *ret,
        };
        *ret = language;
        return 0;
}

int lang_load(const char *folder, struct arena *arena, const struct language **ret, struct csn_error *err)
{
        *ret = NULL;
        if (!folder || !folder[0])
                return 0;
        DIR *dir = opendir(folder);
        if (!dir)
                return err_set(err, CSN_E_CONFIG, errno, "engine.languages_dir: open %s", folder);
        int rc = 0;
        unsigned n = 0;
        for (struct dirent *entry = readdir(dir); entry && rc == 0; entry = readdir(dir)) {
                const char *dot = strrchr(entry->d_name, '.');
                if (!dot || dot == entry->d_name || (strcmp(dot, ".yaml") != 0 && strcmp(dot, ".json") != 0))
                        continue;
                if (++n > LANGUAGES_MAX)
                        rc = err_set(err, CSN_E_CONFIG, 0, "engine.languages_dir: more than %d languages in %s",
                                LANGUAGES_MAX, folder);
                else
                        rc = load_one(arena_text(arena, "%s/%s", folder, entry->d_name),
                                      arena_copy(arena, entry->d_name, (size_t)(dot - entry->d_name)), arena, ret, err);
        }
        closedir(dir);
        return rc;
}
