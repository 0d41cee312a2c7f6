/* The list of languages, and finding one in it. */
#include "lang/lang.h"

#include <strings.h>

static const struct language *const languages[] = { &lang_python, &lang_javascript, &lang_typescript, &lang_bash };

const struct language *lang_at(size_t n)
{
        return n < ARRAY_LEN(languages) ? languages[n] : NULL;
}

static bool is_named(const struct language *language, const char *name, size_t len)
{
        if (strlen(language->name) == len && strncasecmp(language->name, name, len) == 0)
                return true;
        for (const char *const *alias = language->aliases; *alias; alias++)
                if (strlen(*alias) == len && strncasecmp(*alias, name, len) == 0)
                        return true;
        return false;
}

int lang_find(const char *name, const struct language **ret, struct csn_error *err)
{
        const char *at = name + strspn(name, " \t\r\n");
        size_t len = strlen(at);
        while (len && strchr(" \t\r\n", at[len - 1]))
                len--;
        for (size_t i = 0; i < ARRAY_LEN(languages); i++)
                if (is_named(languages[i], at, len)) {
                        *ret = languages[i];
                        return 0;
                }
        err_field(err, "language", "Unsupported language: %.40s; known are python, javascript, typescript and bash", name);
        if (err)
                err->code = CSN_E_LANGUAGE;
        return -CSN_E_LANGUAGE;
}

const struct language *lang_of_file(const char *path)
{
        const char *dot = strrchr(path, '.');
        if (!dot || strchr(dot, '/'))
                return NULL;
        for (size_t i = 0; i < ARRAY_LEN(languages); i++)
                for (const char *const *extension = languages[i]->extensions; *extension; extension++)
                        if (strcasecmp(dot + 1, *extension) == 0)
                                return languages[i];
        return NULL;
}

char **lang_argv(const struct language *language, struct arena *arena, const char *options, const char *file,
                 char *const *args, size_t args_n, size_t *ret_n)
{
        char **argv = arena_alloc(arena, (5 + args_n) * sizeof *argv);
        size_t n = 0;
        argv[n++] = arena_text(arena, "%s", language->interpreter);
        argv[n++] = arena_text(arena, LANG_RUNNER_MOUNT "/%s", language->runner);
        argv[n++] = arena_text(arena, "%s", options);
        argv[n++] = arena_text(arena, "%s", file);
        for (size_t i = 0; i < args_n; i++)
                argv[n++] = arena_text(arena, "%s", args[i]);
        *ret_n = n;
        return argv;
}
