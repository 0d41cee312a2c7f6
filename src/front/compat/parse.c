/* Texts from clients of other services; see parse.h. */
#include "front/compat/parse.h"

#include <ctype.h>
#include <math.h>

/* ---- npm's ranges of versions (node-semver) ---- */

#define PART_MAX 0xfffffUL
#define VERSION(a, b, c) ((uint64_t)(a) << 40 | (uint64_t)(b) << 20 | (uint64_t)(c))

struct partial {
        uint64_t n[3];
        size_t parts;                      /* before a * or the end */
};

static bool read_partial(const char **at, struct partial *ret)
{
        *ret = (struct partial){ 0 };
        *at += **at == 'v';
        for (size_t i = 0; i < 3; i++) {
                bool any = **at && strchr("xX*", **at);
                char *end;
                if (!any && !isdigit((unsigned char)**at))
                        return false;
                unsigned long number = any ? 0 : strtoul(*at, &end, 10);
                if (number >= PART_MAX)
                        return false;
                *at = any ? *at + 1 : end;
                if (!any && ret->parts == i)
                        ret->n[ret->parts++] = number;
                if (**at != '.')
                        break;
                ++*at;
        }
        return !**at || strchr(" |", **at);
}

/* The first version after all versions of a partial version: after 1.2 comes 1.3.0. */
static uint64_t after(const struct partial *partial, size_t parts)
{
        const uint64_t *n = partial->n;
        return parts == 0    ? UINT64_MAX
                : parts == 1 ? VERSION(n[0] + 1, 0, 0)
                : parts == 2 ? VERSION(n[0], n[1] + 1, 0)
                             : VERSION(n[0], n[1], n[2] + 1);
}

/* ^: all versions with the same numbers up to the first other than 0. */
static size_t caret(const struct partial *partial)
{
        size_t parts = 0;
        while (parts < partial->parts && !partial->n[parts])
                parts++;
        return parts < partial->parts ? parts + 1 : parts;
}

/* A range such as "^1.2", ">= 1.2.3", "1.x"; false: no range. */
static bool read_range(const char **at, uint64_t *low, uint64_t *high)
{
        static const char *const operators[] = { ">=", "<=", ">", "<", "=", "^", "~", "" };
        struct partial partial;
        size_t op = 0;
        while (strncmp(*at, operators[op], strlen(operators[op])) != 0)
                op++;
        *at += strlen(operators[op]);
        *at += strspn(*at, " ");
        if (!read_partial(at, &partial))
                return false;
        uint64_t from = VERSION(partial.n[0], partial.n[1], partial.n[2]), to = after(&partial, partial.parts);
        size_t tilde = partial.parts < 2 ? partial.parts : 2;
        switch (operators[op][0]) {
        case '>':
                *low = max_u64(*low, operators[op][1] ? from : to);
                break;
        case '<':
                *high = min_u64(*high, operators[op][1] ? to : from);
                break;
        default:
                *low = max_u64(*low, from);
                *high = min_u64(*high,
                        operators[op][0] == '^'           ? after(&partial, caret(&partial))
                                : operators[op][0] == '~' ? after(&partial, tilde)
                                                          : to);
        }
        return true;
}

bool compat_in_range(const char *version, const char *ranges)
{
        const char *at = version;
        struct partial partial;
        bool found = false;
        if (!read_partial(&at, &partial) || *at)
                return false;
        uint64_t is = VERSION(partial.n[0], partial.n[1], partial.n[2]);
        for (at = ranges;; at += 2) {
                uint64_t low = 0, high = UINT64_MAX;
                for (at += strspn(at, " "); *at && *at != '|'; at += strspn(at, " "))
                        if (!read_range(&at, &low, &high))
                                return false;
                found = found || (is >= low && is < high);
                if (!*at)
                        return found;
                if (at[1] != '|')
                        return false;
        }
}

/* ---- arguments ---- */

static char *without(const char *text, const char *letters, struct arena *arena)
{
        char *rest = arena_alloc(arena, strlen(text) + 1), *to = rest;
        for (; *text; text++)
                if (!strchr(letters, *text))
                        *to++ = *text;
        return rest;
}

char **compat_split(const char *line, struct arena *arena, size_t *ret_n)
{
        size_t len = strlen(line), n = 0;
        char **list = arena_alloc(arena, (len + 1) * sizeof *list), *word = arena_alloc(arena, 2 * len + 2),
             *end = word;
        char quote = 0;
        bool inside = false;
        for (const char *at = without(line, "$&;<>|`", arena);; at++) {
                if (!*at || (!quote && strchr(" \t\r\n", *at))) {
                        if (inside) {
                                list[n++] = word;
                                word = ++end;
                        }
                        inside = false;
                        if (!*at)
                                break;
                } else if (quote ? *at == quote : *at == '\'' || *at == '"') {
                        quote = quote ? 0 : *at;
                        inside = true;
                } else {
                        at += *at == '\\' && quote != '\'' && at[1];
                        *end++ = *at;
                        inside = true;
                }
        }
        *ret_n = n;
        return list;
}

/* ---- the program in an answer ---- */

static bool is_blank(const char *at, size_t len)
{
        while (len && isspace((unsigned char)*at))
                at++, len--;
        return !len;
}

static bool is_word(const char *word, const char *at, size_t len)
{
        while (len && isspace((unsigned char)*at))
                at++, len--;
        while (len && isspace((unsigned char)at[len - 1]))
                len--;
        return strlen(word) == len && memcmp(word, at, len) == 0;
}

/* Whether a fence names this language. */
static bool names(const char *language, const char *at, size_t len)
{
        static const struct { const char *language, *words[6]; } rows[] = {
                { "python", { "python", "Python", "py", "Python3", "python3", "PY" } },
                { "javascript", { "javascript", "Javascript", "JavaScript", "JS", "js" } },
                { "typescript", { "typescript" } },
                { "bash", { "bash", "Bash", "BASH", "sh", "shell" } },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                for (size_t k = 0;
                        strcmp(rows[i].language, language) == 0 && k < ARRAY_LEN(rows[i].words) && rows[i].words[k];
                        k++)
                        if (is_word(rows[i].words[k], at, len))
                                return true;
        return is_word(language, at, len);
}

/* From ``` to ``` at the beginning of a line; the first of the language, else the first of all. */
static bool find_fenced(const char *text, const char *language, struct bytes *ret)
{
        bool found = false;
        for (const char *at = strstr(text, "```"); at; at = strstr(at, "```")) {
                const char *label = at + 3, *from = strchr(label, '\n'), *to = from ? strchr(from + 1, '\n') : NULL;
                while (to && strncmp(to + strspn(to, " \t\r\v\f\n"), "```", 3) != 0)
                        to = strchr(to + strspn(to, " \t\r\v\f\n"), '\n');
                if (!to)
                        return found;
                bool fits = names(language, label, (size_t)(from - label));
                if (fits || !found)
                        *ret = (struct bytes){ (char *)(uintptr_t)(from + 1), (size_t)(to - from) - 1 };
                found = true;
                if (fits)
                        return true;
                at = to + strspn(to, " \t\r\v\f\n") + 3;
        }
        return found;
}

/* An unclosed fence: all text behind its line. */
static bool find_open(const char *text, struct bytes *ret)
{
        const char *fence = strstr(text, "```"), *from = fence ? strchr(fence, '\n') : NULL;
        if (from)
                *ret = (struct bytes){ (char *)(uintptr_t)(from + 1), strlen(from + 1) };
        return from;
}

static bool begins(const char *line, const char *word)
{
        size_t len = strlen(word);
        return strncmp(line, word, len) == 0 && line[len] && line[len] != '\n';
}

/* In lines of which none is blank: the first def or class with a body, and the imports right above. */
static bool find_python(const char *text, struct bytes *ret)
{
        const char *above = NULL;
        for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
                const char *next = strchr(line, '\n') + 1;
                if ((begins(line, "def ") || begins(line, "class ")) && isspace((unsigned char)*next)) {
                        while (isspace((unsigned char)*next))
                                next = strchr(next, '\n') + 1;
                        const char *from = above ? above : line;
                        *ret = (struct bytes){ (char *)(uintptr_t)from, (size_t)(next - from) };
                        return true;
                }
                bool import = begins(line, "import") || begins(line, "from") || begins(line, "#");
                above = !import ? NULL : above ? above : line;
        }
        return false;
}

static char *without_blank_lines(const char *text, struct arena *arena)
{
        char *lines = arena_alloc(arena, strlen(text) + 2), *to = lines;
        for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
                size_t len = strcspn(at, "\n");
                if (is_blank(at, len))
                        continue;
                memcpy(to, at, len);
                to += len;
                *to++ = '\n';
        }
        return lines;
}

struct bytes compat_program(const char *text, const char *language, struct arena *arena)
{
        struct bytes found = { arena_text(arena, "%s", ""), 0 };
        if (find_fenced(text, language, &found) || find_open(text, &found))
                return found;
        char *lines = without_blank_lines(text, arena);
        if (strcmp(language, "python") == 0)
                find_python(lines, &found);
        else if (strcmp(language, "bash") == 0)
                found = (struct bytes){ lines, strlen(lines) };
        return found;
}

/* ---- output of programs ---- */

static size_t right_stripped(const char *line, size_t len)
{
        while (len && (!line[len - 1] || strchr(" \t\n\v\f\r", line[len - 1])))
                len--;
        return len;
}

bool compat_same(const struct bytes *a, const struct bytes *b)
{
        size_t an = right_stripped(a->bytes, a->len), bn = right_stripped(b->bytes, b->len), ai = 0, bi = 0;
        while (ai < an && bi < bn) {
                const char *a_end = memchr(a->bytes + ai, '\n', an - ai), *b_end = memchr(b->bytes + bi, '\n', bn - bi);
                size_t a_len = a_end ? (size_t)(a_end - a->bytes) - ai : an - ai,
                       b_len = b_end ? (size_t)(b_end - b->bytes) - bi : bn - bi;
                size_t len = right_stripped(a->bytes + ai, a_len);
                if (len != right_stripped(b->bytes + bi, b_len) || memcmp(a->bytes + ai, b->bytes + bi, len) != 0)
                        return false;
                ai += a_len + 1;
                bi += b_len + 1;
        }
        return ai >= an && bi >= bn;
}

static struct bytes stripped(const char *text, size_t len)
{
        while (len && isspace((unsigned char)*text))
                text++, len--;
        while (len && isspace((unsigned char)text[len - 1]))
                len--;
        return (struct bytes){ (char *)(uintptr_t)text, len };
}

static bool as_number(const struct bytes *line, double *ret)
{
        char text[400], *end;
        if (!line->len || line->len >= sizeof text)
                return false;
        memcpy(text, line->bytes, line->len);
        text[line->len] = 0;
        *ret = strtod(text, &end);
        return !*end && strlen(text) == line->len && !strpbrk(text, "xXpP(");
}

/* Without regard to case and white space around; numbers may differ a little. */
static bool same_line(const struct bytes *line, const struct bytes *expected)
{
        double a, b;
        if (line->len == expected->len && strncasecmp(line->bytes, expected->bytes, line->len) == 0)
                return true;
        return as_number(line, &a) && as_number(expected, &b) &&
                fabs(a - b) < 1e-5 * (fabs(b) > 1e-10 ? fabs(b) : 1e-10);
}

bool compat_alike(const struct bytes *output, const char *expected_text)
{
        struct bytes all = stripped(output->bytes ? output->bytes : "", output->len),
                     wanted = stripped(expected_text, strlen(expected_text));
        for (;;) {
                const char *end = memchr(all.bytes, '\n', all.len),
                           *wanted_end = memchr(wanted.bytes, '\n', wanted.len);
                struct bytes line = stripped(all.bytes, end ? (size_t)(end - all.bytes) : all.len);
                struct bytes expected =
                        stripped(wanted.bytes, wanted_end ? (size_t)(wanted_end - wanted.bytes) : wanted.len);
                if (!same_line(&line, &expected) || !end != !wanted_end)
                        return false;
                if (!end)
                        return true;
                all = (struct bytes){ (char *)(uintptr_t)(end + 1), all.len - (size_t)(end + 1 - all.bytes) };
                wanted = (struct bytes){ (char *)(uintptr_t)(wanted_end + 1),
                        wanted.len - (size_t)(wanted_end + 1 - wanted.bytes) };
        }
}
