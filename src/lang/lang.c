/* The list of languages, and the search in the list. */
#include "lang/lang.h"

#include <stdio.h>
#include <strings.h>

static const struct language *const languages[] = { &lang_python, &lang_javascript, &lang_typescript, &lang_bash };

const struct language *lang_at(size_t n)
{
        return n < ARRAY_LEN(languages) ? languages[n] : NULL;
}

/* Built-in ones first: a file cannot put itself in the place of python. */
static const struct language *next_of(const struct language *added, size_t *at)
{
        size_t n = (*at)++;
        if (n < ARRAY_LEN(languages))
                return languages[n];
        for (n -= ARRAY_LEN(languages); added && n; n--)
                added = added->next;
        return added;
}

static bool is_word(const char *word, const char *text, size_t len)
{
        return strlen(word) == len && strncasecmp(word, text, len) == 0;
}

static bool is_named(const struct language *language, const char *name, size_t len)
{
        if (is_word(language->name, name, len))
                return true;
        for (const char *const *alias = language->aliases; *alias; alias++)
                if (is_word(*alias, name, len))
                        return true;
        return false;
}

static int unknown(const struct language *added, const char *name, struct csn_error *err)
{
        char known[300];
        size_t len = 0, at = 0;
        for (const struct language *l = next_of(added, &at); l && len < sizeof known; l = next_of(added, &at))
                len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "", l->name);
        err_field(err, "/language", "Unsupported language: %.40s; known are %s", name, known);
        if (err)
                err->code = CSN_E_LANGUAGE;
        return -CSN_E_LANGUAGE;
}

int lang_find(const struct language *added, const char *name, const struct language **ret, struct csn_error *err)
{
        const char *text = name + strspn(name, " \t\r\n");
        size_t len = strlen(text), at = 0;
        while (len && strchr(" \t\r\n", text[len - 1]))
                len--;
        for (const struct language *l = next_of(added, &at); l; l = next_of(added, &at))
                if (is_named(l, text, len)) {
                        *ret = l;
                        return 0;
                }
        return unknown(added, name, err);
}

const struct language *lang_of_file(const struct language *added, const char *path)
{
        const char *dot = strrchr(path, '.');
        size_t at = 0;
        if (!dot || strchr(dot, '/'))
                return NULL;
        for (const struct language *l = next_of(added, &at); l; l = next_of(added, &at))
                for (const char *const *extension = l->extensions; *extension; extension++)
                        if (strcasecmp(dot + 1, *extension) == 0)
                                return l;
        return NULL;
}

char **lang_argv(const struct language *language, const char *interpreter, struct arena *arena, const char *options,
        const char *file, char *const *args, size_t args_n, size_t *ret_n)
{
        const char *const with_runner[] = { interpreter ? interpreter : language->interpreter,
                arena_text(arena, LANG_RUNNER_MOUNT "/%s", language->runner), options, file, NULL };
        const char *const *command = language->command ? language->command : with_runner;
        size_t n = 0;
        while (command[n])
                n++;
        char **argv = arena_alloc(arena, (n + args_n + 1) * sizeof *argv);
        for (size_t i = 0; i < n; i++)
                argv[i] = (char *)(uintptr_t)(strcmp(command[i], "{file}") == 0 ? file : command[i]);
        for (size_t i = 0; i < args_n; i++)
                argv[n++] = args[i];
        *ret_n = n;
        return argv;
}

static char **copy_list(const char *const *first, const char *const *second, struct arena *arena, size_t *ret_n)
{
        const char *const *const lists[] = { first, second };
        size_t n = 0;
        for (size_t l = 0; l < ARRAY_LEN(lists); l++)
                for (const char *const *at = lists[l]; at && *at; at++)
                        n++;
        char **texts = arena_alloc(arena, (n + 1) * sizeof *texts);
        *ret_n = 0;
        for (size_t l = 0; l < ARRAY_LEN(lists); l++)
                for (const char *const *at = lists[l]; at && *at; at++)
                        texts[(*ret_n)++] = arena_text(arena, "%s", *at);
        return texts;
}

void lang_wait_program(const struct language *language, const char *interpreter, const char *const *usual,
        struct arena *arena, struct wire_program *ret)
{
        ret->argv = copy_list(language->wait_argv, NULL, arena, &ret->argv_n);
        if (interpreter)
                ret->argv[0] = arena_text(arena, "%s", interpreter);
        ret->env = copy_list(usual, language->wait_env, arena, &ret->env_n);
}

void lang_context_program(const struct language *language, const char *interpreter, struct arena *arena, bool warm,
        struct wire_program *ret)
{
        size_t n = 0;
        while (language->context[n])
                n++;
        ret->argv = arena_alloc(arena, (n + 1) * sizeof *ret->argv);
        ret->argv_n = n;
        for (size_t i = 0; i < n; i++)
                ret->argv[i] = (char *)(uintptr_t)(i == 0 && interpreter ? interpreter : language->context[i]);
        ret->argv[n - 1] = arena_text(arena, "%s%s", warm ? "context=1," : "",
                language->context[n - 1][0] ? language->context[n - 1] : "value_max=200000");
}
