/*
 * Texts that clients of other services write, from any bytes: ranges of versions, arguments, answers of models, and
 * output to compare.
 */
#include "front/compat/parse.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool condition)
{
        if (!condition)
                abort();
}

/* A further range takes nothing away, and * has everything. */
static void check_range(struct arena *arena, const char *text)
{
        bool in = compat_in_range("3.11.2", text);
        require(!in || compat_in_range("3.11.2", arena_text(arena, "99 || %s", text)));
        require(!in || !strpbrk(text, "\n\t&"));
        require(compat_in_range("3.11.2", "*"));
        compat_in_range(text, "*");
}

/* What is quoted comes back. */
static void check_split(struct arena *arena, const char *text)
{
        size_t n, again_n, left = 0;
        char **words = compat_split(text, arena, &n);
        for (size_t i = 0; i < n; i++) {
                require(!strpbrk(words[i], "$&;<>|`"));
                left += strlen(words[i]);
        }
        require(left <= strlen(text) && n <= strlen(text));
        for (size_t i = 0; i < n; i++)
                if (!strchr(words[i], '\'')) {
                        char **again = compat_split(arena_text(arena, "'%s'", words[i]), arena, &again_n);
                        require(again_n == 1 && strcmp(again[0], words[i]) == 0);
                }
}

static void check_program(struct arena *arena, const char *text)
{
        static const char *const languages[] = { "python", "javascript", "typescript", "bash", "lua" };
        for (size_t i = 0; i < ARRAY_LEN(languages); i++) {
                struct bytes program = compat_program(text, languages[i], arena);
                require(program.len <= strlen(text) + 1 && strnlen(program.bytes, program.len) == program.len);
        }
        struct bytes fenced = compat_program(arena_text(arena, "```lua\n%s\n```", text), "lua", arena);
        if (strstr(text, "```"))
                return;
        require(fenced.len <= strlen(text) && memcmp(fenced.bytes, text, fenced.len) == 0);
        require(!text[fenced.len + strspn(text + fenced.len, " \t\r\v\f\n")]);
}

/* Anything equals itself, also with more white space at its end. */
static void check_output(struct arena *arena, const char *text, const uint8_t *bytes, size_t len)
{
        const struct bytes one = { (char *)(uintptr_t)text, strlen(text) }, whole = { (char *)(uintptr_t)bytes, len };
        const struct bytes more = { arena_text(arena, "%s \n\n", text), one.len + 3 };
        const struct bytes other = { arena_text(arena, "%s\nx", text), one.len + 2 };
        require(compat_same(&one, &one) && compat_same(&one, &more) && compat_same(&more, &one) &&
                compat_same(&whole, &whole));
        require(!compat_same(&one, &other) && !compat_same(&other, &one));
        require(compat_alike(&one, text) && compat_alike(&more, text) && !compat_alike(&other, text));
        compat_alike(&whole, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        const char *text = arena_copy(&arena, (const char *)bytes, len);
        check_range(&arena, text);
        check_split(&arena, text);
        check_program(&arena, text);
        check_output(&arena, text, bytes, len);
        arena_done(&arena);
        return 0;
}
