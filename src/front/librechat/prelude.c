/* Tools as functions of a program: asynchronous ones in Python, functions with one JSON text in Bash. */
#include "front/librechat/librechat.h"

#define PRELUDE_MAX (256 * KIB)

/* ---- names ---- */

/* Words that are no names; the same lists as in @librechat/agents. */
static const char *const python_words[] = { "False", "None", "True", "and", "as", "assert", "async", "await", "break",
        "class", "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
        "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with",
        "yield", NULL };
static const char *const bash_words[] = { "if", "then", "else", "elif", "fi", "case", "esac", "for", "while", "until",
        "do", "done", "in", "function", "select", "time", "coproc", "declare", "typeset", "local", "readonly", "export",
        "unset", NULL };

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

char *librechat_function(const struct language *language, const char *tool, struct arena *arena)
{
        const char *becomes_line = language == &lang_bash ? "-. \t\r\n\v\f" : "- \t\r\n\v\f";
        char *name = arena_alloc(arena, strlen(tool) + 2), *to = name;
        if (tool[0] >= '0' && tool[0] <= '9')
                *to++ = '_';
        for (const char *at = tool; *at; at++)
                if (is_letter(*at))
                        *to++ = *at;
                else if (strchr(becomes_line, *at))
                        *to++ = '_';
        *to = 0;
        for (const char *const *word = language == &lang_bash ? bash_words : python_words; *word; word++)
                if (strcmp(*word, name) == 0)
                        return arena_text(arena, "%s_tool", name);
        return name;
}

/* ---- code ---- */

/* Names of functions and tools are letters, digits and "_-./" alone, so neither language needs an escape. */
static void print_python(struct buf *buf, char *const *functions, char *const *tools, size_t n)
{
        buf_printf(buf, "import asyncio, json\n"
                        "def __tools__(names):\n"
                        "    from concurrent.futures import ThreadPoolExecutor\n"
                        "    call, pool = tools.call, ThreadPoolExecutor(64)\n"
                        "    def function_of(tool):\n"
                        "        async def function(**arguments):\n"
                        "            return await asyncio.get_running_loop().run_in_executor(pool, call, tool, arguments)\n"
                        "        return function\n"
                        "    return {name: function_of(tool) for name, tool in names.items()}\n"
                        "globals().update(__tools__({");
        for (size_t i = 0; i < n; i++)
                buf_printf(buf, "'%s': '%s', ", functions[i], tools[i]);
        buf_printf(buf, "}))\ndel __tools__\n");
}

static void print_bash(struct buf *buf, char *const *functions, char *const *tools, size_t n)
{
        for (size_t i = 0; i < n; i++)
                buf_printf(buf, "%s() { if [ -n \"${1-}\" ]; then tool %s \"$1\"; else tool %s '{}'; fi; }\n",
                        functions[i], tools[i], tools[i]);
}

json_t *librechat_prelude(const struct language *language, char *const *functions, char *const *tools, size_t n)
{
        struct buf buf;
        buf_init(&buf, PRELUDE_MAX);
        (language == &lang_bash ? print_bash : print_python)(&buf, functions, tools, n);
        json_t *json = json_text(buf.bytes, buf.len);
        buf_done(&buf);
        return json;
}
