/*
 * awk: the commands, input files and output files of its program.
 *
 * The tokens are read by the rules of awk, because a | in a regular expression is no pipe.  Texts are folded as far as
 * names and concatenation go; an unknown part is a NUL byte, as in the fields of the shell.
 */
#include "policy/bash/bash.h"

#include <ctype.h>

#define TOKENS_MAX 20000
#define LIST_LEN_MAX 300       /* [...] in a regular expression */
#define NAMES_MAX 500          /* names with known values */
#define FOLDED_MAX 8           /* possible texts of an expression */
#define FOLDED_LEN_MAX 256     /* the rest is unknown */
#define GROUPS_MAX 20          /* folded brackets in each other */

enum awk_kind { AWK_END, AWK_TEXT, AWK_REGEX, AWK_NAME, AWK_NUMBER, AWK_HOLE, AWK_SIGN };

struct token {
        enum awk_kind kind;
        const char *text;
        size_t len;
        size_t close;                  /* of ( and [ */
};

struct folded {
        struct field texts[FOLDED_MAX];
        size_t n;
};

struct awk_name {
        const char *name;
        size_t len;
        struct folded values;
        size_t parameters;             /* of a function: token of the first */
        struct awk_name *next;
};

struct awk {
        struct shell *sh;
        const struct run *run;
        struct token *tokens;
        size_t n;
        struct awk_name *names;
        size_t names_n;
};

/* ---- words ---- */

static bool is_word(const struct token *token, const char *text)
{
        return token->len == strlen(text) && memcmp(token->text, text, token->len) == 0 &&
                (token->kind == AWK_SIGN || token->kind == AWK_NAME);
}

static bool is_one_of(const struct token *token, const char *const *words)
{
        while (*words && !is_word(token, *words))
                words++;
        return *words;
}

static const char *const keywords[] = { "print", "printf", "return", "in", "if", "else", "while", "do", "for", "delete",
        "exit", "case", "BEGIN", "END", "switch", "next", "function", "func", NULL };

/* Whether a / behind the token divides. */
static bool is_operand(const struct token *token)
{
        if (token->kind == AWK_SIGN)
                return is_word(token, ")") || is_word(token, "]") || is_word(token, "++") || is_word(token, "--") ||
                        is_word(token, "$");
        return token->kind != AWK_END && !is_one_of(token, keywords);
}

static size_t text_end(const char *text, size_t len, size_t at)
{
        while (at < len && text[at] != '"' && text[at] != '\n')
                at += 1 + (text[at] == '\\' && at + 1 < len);
        return at < len ? at : len;
}

/* The ] of the [ at `at`; `at` if no list begins there. */
static size_t list_end(const char *text, size_t len, size_t at)
{
        size_t end = at + 1, stop = len - at < LIST_LEN_MAX ? len : at + LIST_LEN_MAX;
        end += end < stop && text[end] == '^';
        for (end += end < stop && text[end] == ']'; end < stop && text[end] != ']' && text[end] != '\n'; end++) {
                end += text[end] == '\\';
                bool class = end + 2 < stop && text[end] == '[' && strchr(":.=", text[end + 1]);
                const char *named = class ? memchr(text + end + 2, text[end + 1], stop - end - 2) : NULL;
                if (named && named + 1 < text + stop && named[1] == ']')
                        end = (size_t)(named + 1 - text);
        }
        return end < stop && text[end] == ']' ? end : at;
}

/* The / at the end of the expression, or the end of the line.  A / in [...] does not end the expression. */
static size_t regex_end(const char *text, size_t len, size_t at)
{
        for (; at < len && text[at] != '\n' && text[at] != '/'; at++) {
                if (text[at] == '\\' && at + 1 < len)
                        at++;
                else if (text[at] == '[')
                        at = list_end(text, len, at);
        }
        return at;
}

static size_t sign_length(const char *text, size_t len)
{
        static const char *const signs[] = { "||", "&&", "|&", ">>", "++", "--", "==", "<=", ">=", "!=", "!~",
                "+=", "-=", "*=", "/=", "%=", "^=" };
        for (size_t i = 0; i < ARRAY_LEN(signs); i++)
                if (len > 1 && memcmp(text, signs[i], 2) == 0)
                        return 2;
        return 1;
}

/* Read the token at `at`; returns the place behind the token. */
static size_t read_token(const char *text, size_t len, size_t at, const struct token *before, struct token *ret)
{
        char c = text[at];
        size_t from = at;
        *ret = (struct token){ .kind = AWK_SIGN, .text = text + at, .len = 1 };
        if (c == '"' || (c == '/' && !is_operand(before))) {
                ret->kind = c == '"' ? AWK_TEXT : AWK_REGEX;
                at = c == '"' ? text_end(text, len, at + 1) : regex_end(text, len, at + 1);
                ret->text = text + from + 1;
                ret->len = at - from - 1;
                return at < len ? at + 1 : len;
        }
        if (!c) {
                ret->kind = AWK_HOLE;
                return at + 1;
        }
        if (bash_is_name((unsigned char)c, true) || isdigit((unsigned char)c)) {
                ret->kind = isdigit((unsigned char)c) ? AWK_NUMBER : AWK_NAME;
                while (at < len && bash_is_name((unsigned char)text[at], false))
                        at++;
                ret->len = at - from;
                return at;
        }
        ret->len = sign_length(text + at, len - at);
        return at + ret->len;
}

static void read_tokens(struct awk *awk, const char *text, size_t len)
{
        const struct token none = { 0 };
        size_t at = 0;
        awk->tokens = arena_alloc(awk->sh->arena, ((len < TOKENS_MAX ? len : TOKENS_MAX) + 2) * sizeof *awk->tokens);
        awk->n = 0;
        while (at < len && awk->n < TOKENS_MAX) {
                if (text[at] == '#') {
                        const char *line = memchr(text + at, '\n', len - at);
                        at = line ? (size_t)(line - text) : len;
                } else if (text[at] == ' ' || text[at] == '\t' || text[at] == '\r') {
                        at++;
                } else if (text[at] == '\\' && at + 1 < len && text[at + 1] == '\n') {
                        at += 2;
                } else {
                        at = read_token(text, len, at, awk->n ? &awk->tokens[awk->n - 1] : &none, &awk->tokens[awk->n]);
                        awk->n++;
                }
        }
        if (at < len || (awk->sh->steps += awk->n / 8) > STEPS_MAX)
                awk->sh->too_complex = true;
        awk->tokens[awk->n] = (struct token){ .text = "" };
        awk->tokens[awk->n + 1] = (struct token){ .text = "" };
}

/* Pair ( with ) and [ with ]; an open bracket gets the end. */
static void pair(struct awk *awk)
{
        size_t *open = arena_alloc(awk->sh->arena, (awk->n + 1) * sizeof *open), depth = 0;
        for (size_t i = 0; i < awk->n; i++) {
                awk->tokens[i].close = awk->n;
                if (is_word(&awk->tokens[i], "(") || is_word(&awk->tokens[i], "["))
                        open[depth++] = i;
                else if ((is_word(&awk->tokens[i], ")") || is_word(&awk->tokens[i], "]")) && depth)
                        awk->tokens[open[--depth]].close = i;
        }
}

/* ---- values of texts ---- */

static const struct field unknown = { .text = "", .len = 1, .hole = true };
static const struct folded nobody_knows = { { { .text = "", .len = 1, .hole = true } }, 1 };

static void add_text(struct folded *folded, struct field text)
{
        for (size_t i = 0; i < folded->n; i++)
                if (folded->texts[i].len == text.len && memcmp(folded->texts[i].text, text.text, text.len) == 0)
                        return;
        if (folded->n < FOLDED_MAX)
                folded->texts[folded->n++] = text;
        else
                folded->texts[FOLDED_MAX - 1] = unknown;
}

/* Each text of `left` with each text of `right` behind. */
static void join(struct awk *awk, struct folded *left, const struct folded *right)
{
        struct folded all = { .n = 0 };
        if (left->n * right->n > FOLDED_MAX)
                right = &nobody_knows;
        if ((awk->sh->steps += left->n * right->n) > STEPS_MAX)
                awk->sh->too_complex = true;
        for (size_t i = 0; i < left->n && !awk->sh->too_complex; i++)
                for (size_t k = 0; k < right->n; k++) {
                        const struct field *a = &left->texts[i], *b = &right->texts[k];
                        if (a->len > FOLDED_LEN_MAX) {
                                add_text(&all, *a);
                                continue;
                        }
                        if (a->len + b->len > FOLDED_LEN_MAX)
                                b = &unknown;
                        char *text = arena_alloc(awk->sh->arena, a->len + b->len + 1);
                        for (size_t c = 0; c < a->len + b->len; c++)
                                text[c] = c < a->len ? a->text[c] : b->text[c - a->len];
                        add_text(&all,
                                (struct field){ .text = text, .len = a->len + b->len, .hole = a->hole || b->hole });
                }
        *left = all;
}

static struct awk_name *name_of(struct awk *awk, const struct token *token)
{
        for (struct awk_name *name = awk->names; name; name = name->next)
                if (name->len == token->len && memcmp(name->name, token->text, name->len) == 0)
                        return name;
        if (awk->names_n++ >= NAMES_MAX)
                return NULL;
        struct awk_name *name = arena_alloc(awk->sh->arena, sizeof *name);
        *name = (struct awk_name){ .name = token->text, .len = token->len, .next = awk->names };
        return awk->names = name;
}

static void assign(struct awk *awk, const struct token *token, const struct folded *values)
{
        struct awk_name *name = name_of(awk, token);
        for (size_t i = 0; name && i < values->n; i++)
                add_text(&name->values, values->texts[i]);
}

static struct field plain(struct awk *awk, const struct token *token)
{
        size_t len;
        const char *nul = memchr(token->text, 0, token->len), *text;
        text = nul ? token->text : bash_ansi(awk->sh->arena, token->text, token->len, &len);
        return bash_field(awk->sh, text, nul ? token->len : len);
}

static size_t fold(struct awk *awk, size_t at, unsigned depth, struct folded *ret);

/* sprintf("curl %s", x): the values are unknown. */
static struct field format(struct awk *awk, struct field text)
{
        char *out = arena_alloc(awk->sh->arena, text.len + 1);
        size_t n = 0;
        for (size_t i = 0; i < text.len; i++) {
                bool percent = text.text[i] == '%' && i + 1 < text.len;
                if (percent && text.text[i + 1] != '%')
                        i += 1 + strspn(text.text + i + 1, "-+ #0123456789.*"), out[n++] = 0;
                else
                        i += percent, out[n++] = text.text[i];
        }
        return bash_field(awk->sh, out, n);
}

/* Fold an operand; returns the place behind the operand. */
static size_t operand(struct awk *awk, size_t at, unsigned depth, struct folded *ret)
{
        const struct token *token = &awk->tokens[at], *next = &awk->tokens[at + 1];
        bool group = is_word(token, "("), call = token->kind == AWK_NAME && (is_word(next, "(") || is_word(next, "["));
        *ret = nobody_knows;
        if (group || call) {
                size_t open = at + call, end = awk->tokens[open].close;
                struct folded inner = { .n = 0 };
                bool prints = call && is_word(token, "sprintf");
                if ((group || prints) && depth < GROUPS_MAX) {
                        size_t stop = fold(awk, open + 1, depth + 1, &inner);
                        if ((stop == end || prints) && inner.n)
                                *ret = inner;
                        for (size_t i = 0; prints && i < ret->n; i++)
                                ret->texts[i] = format(awk, ret->texts[i]);
                }
                return end < awk->n ? end + 1 : awk->n;
        }
        if (token->kind == AWK_TEXT)
                ret->texts[0] = plain(awk, token);
        else if (token->kind == AWK_NUMBER)
                ret->texts[0] = bash_field(awk->sh, token->text, token->len);
        const struct awk_name *name = token->kind == AWK_NAME ? name_of(awk, token) : NULL;
        if (name && name->values.n)
                *ret = name->values;
        return at + 1;
}

/* Fold the expression from `at` on: joined operands, and both sides of a ?:.  Returns its end. */
static size_t fold(struct awk *awk, size_t at, unsigned depth, struct folded *ret)
{
        static const char *const sums[] = { "+", "-", "*", "/", "%", "^", "++", "--", NULL };
        const struct folded empty = { { { .text = "" } }, 1 };
        struct folded now = empty, one;
        bool any = false;
        while (at < awk->n) {
                const struct token *token = &awk->tokens[at];
                if (is_word(token, "$")) {
                        at = operand(awk, at + 1, GROUPS_MAX, &one);
                        join(awk, &now, &nobody_knows);
                } else if (is_one_of(token, sums)) {
                        join(awk, &now, &nobody_knows);
                        at++;
                } else if (is_word(token, "?") || is_word(token, ":")) {
                        for (size_t i = 0; any && is_word(token, ":") && i < now.n; i++)
                                add_text(ret, now.texts[i]);
                        now = empty;
                        at++;
                        any = false;
                        continue;
                } else if ((token->kind == AWK_SIGN && !is_word(token, "(")) || is_one_of(token, keywords)) {
                        break;
                } else {
                        at = operand(awk, at, depth, &one);
                        join(awk, &now, &one);
                }
                any = true;
        }
        for (size_t i = 0; any && i < now.n; i++)
                add_text(ret, now.texts[i]);
        return at;
}

/* ---- values of names ---- */

/* f(a, b): values for the parameters of "function f(x, y)". */
static void call(struct awk *awk, size_t at)
{
        struct awk_name *name = name_of(awk, &awk->tokens[at]);
        size_t to = name ? name->parameters : 0;
        if (at && (is_word(&awk->tokens[at - 1], "function") || is_word(&awk->tokens[at - 1], "func"))) {
                if (name)
                        name->parameters = at + 2;
                return;
        }
        if (!to)
                return;
        size_t end = awk->tokens[at + 1].close;
        for (at += 2; at < end && to < awk->n && awk->tokens[to].kind == AWK_NAME; to += 2) {
                struct folded value = { .n = 0 };
                size_t stop = fold(awk, at, 0, &value);
                if (stop > end || !(is_word(&awk->tokens[stop], ",") || stop == end))
                        return;
                assign(awk, &awk->tokens[to], &value);
                at = stop + 1;
        }
}

static void learn(struct awk *awk, size_t at)
{
        const struct token *token = &awk->tokens[at];
        struct folded value = { .n = 0 };
        if (token->kind != AWK_NAME)
                return;
        if (is_word(&awk->tokens[at + 1], "(")) {
                call(awk, at);
        } else if (is_word(&awk->tokens[at + 1], "=")) {
                fold(awk, at + 2, 0, &value);
                assign(awk, token, value.n ? &value : &nobody_knows);
        } else if (at && is_word(&awk->tokens[at - 1], "getline")) {
                assign(awk, token, &nobody_knows);
        }
}

/* ---- commands and files ---- */

/*
 * Code for the shell.  Text joined to a known command is its argument, and an argument may be data.  With
 * `strict`, which the function system of awk sets, joined text counts as code.  bash_embedded() reports the argument of
 * a shell.
 */
static void runs(struct awk *awk, const struct folded *codes, bool strict, enum fed fed)
{
        struct shell *sh = awk->sh;
        const enum fed fed_before = sh->fed;
        const char *text_before = sh->fed_text;
        struct fields none = { 0 };
        if (fed != FED_NOT)
                sh->fed = fed, sh->fed_text = NULL;
        for (size_t i = 0; i < codes->n; i++) {
                const struct field *code = &codes->texts[i];
                if (field_begins(code, "/inet"))
                        bash_report(sh, FACT_OPEN, code->text, code->len, awk->run->start, awk->run->end);
                bool begins_unknown = code->len && !code->text[0];
                if (code->hole && (strict || begins_unknown))
                        bash_report(sh, FACT_CODE, "argument", 8, awk->run->start, awk->run->end);
                if (!begins_unknown)
                        bash_embedded(sh, code, &none, awk->run->start, awk->run->end);
        }
        if (!codes->n && !strict)
                bash_report(sh, FACT_CODE, "argument", 8, awk->run->start, awk->run->end);
        sh->fed = fed_before;
        sh->fed_text = text_before;
}

static void opens(struct awk *awk, size_t at, void (*how)(struct shell *, const struct field *, uint32_t, uint32_t))
{
        struct folded files = { .n = 0 };
        fold(awk, at, 0, &files);
        for (size_t i = 0; i < files.n; i++) {
                if (field_begins(&files.texts[i], "/inet"))
                        bash_report(awk->sh, FACT_OPEN, files.texts[i].text, files.texts[i].len, awk->run->start,
                                awk->run->end);
                how(awk->sh, &files.texts[i], awk->run->start, awk->run->end);
        }
}

/* The position of the walk. */
struct place {
        size_t start;                  /* of the expression */
        size_t outer[GROUPS_MAX];      /* starts of the expressions around */
        size_t depth, printing;        /* open brackets; depth at print, plus 1 */
};

static void step(struct awk *awk, const struct place *place, size_t at)
{
        const struct token *token = &awk->tokens[at];
        const bool printing = place->printing == place->depth + 1;
        struct folded code = { .n = 0 };
        if (is_word(token, "system") && is_word(&awk->tokens[at + 1], "(")) {
                fold(awk, at + 2, 0, &code);
                runs(awk, &code, true, FED_NOT);
        } else if (is_word(token, "@") && is_word(&awk->tokens[at + 2], "(")) {
                const struct awk_name *name = name_of(awk, &awk->tokens[at + 1]);
                for (size_t i = 0; name && i < name->values.n; i++)
                        if (field_is(&name->values.texts[i], "system"))
                                bash_report(awk->sh, FACT_CODE, "argument", 8, awk->run->start, awk->run->end);
        } else if (is_word(token, "|") || is_word(token, "|&")) {
                bool reads = is_word(&awk->tokens[at + 1], "getline");
                if (!reads && !printing)
                        return;
                fold(awk, reads ? place->start : at + 1, 0, &code);
                runs(awk, &code, false, reads ? FED_NOT : FED_PIPE);
        } else if (printing && (is_word(token, ">") || is_word(token, ">>"))) {
                opens(awk, at + 1, bash_writes);
        } else if (is_word(token, "<")) {
                for (size_t i = place->start; i < at; i++)
                        if (is_word(&awk->tokens[i], "getline")) {
                                opens(awk, at + 1, bash_reads);
                                return;
                        }
        }
}

static void place_step(struct place *place, const struct token *token, size_t at)
{
        static const char *const begin[] = { ";", "{", "}", "\n", ",", "&&", "||", "!", "=", "?", ":", "~", "!~", ">",
                "<", "==", NULL };
        static const char *const heads[] = { "if", "while", "for", "switch", NULL };
        if (is_word(token, "(") || is_word(token, "[")) {
                if (place->depth < GROUPS_MAX)
                        place->outer[place->depth] =
                                at && is_one_of(token - 1, heads) ? token->close + 1 : place->start;
                place->depth++;
                place->start = at + 1;
        } else if (is_word(token, ")") || is_word(token, "]")) {
                place->depth -= place->depth > 0;
                if (place->depth < GROUPS_MAX)
                        place->start = place->outer[place->depth];
        } else if (is_one_of(token, begin) || is_one_of(token, keywords)) {
                place->start = at + 1;
        }
        if (is_word(token, "print") || is_word(token, "printf"))
                place->printing = place->depth + 1;
        else if (is_word(token, ";") || is_word(token, "}") || is_word(token, "\n"))
                place->printing = 0;
}

static void program(struct awk *awk, const struct field *text)
{
        struct place place = { 0 };
        read_tokens(awk, text->text, text->len);
        pair(awk);
        for (unsigned round = 0; round < 3; round++)
                for (size_t i = 0; i < awk->n; i++)
                        learn(awk, i);
        for (size_t i = 0; i < awk->n && !awk->sh->too_complex; i++) {
                step(awk, &place, i);
                place_step(&place, &awk->tokens[i], i);
        }
}

/* NAME=TEXT, of -v or as an operand. */
static void given(struct awk *awk, const struct field *word)
{
        size_t len = 0;
        while (len < word->len && bash_is_name((unsigned char)word->text[len], len == 0))
                len++;
        if (!len || len == word->len || word->text[len] != '=')
                return;
        const struct token name = { AWK_NAME, word->text, len, 0 },
                           text = { AWK_TEXT, word->text + len + 1, word->len - len - 1, 0 };
        const struct folded value = { { plain(awk, &text) }, 1 };
        assign(awk, &name, &value);
}

/* awk -f FILE: nothing is known of an ordinary file. */
static void program_file(struct awk *awk, const struct field *file)
{
        struct shell *sh = awk->sh;
        const struct field text = {
                .text = sh->fed_text, .len = sh->fed_len, .hole = sh->fed_text && memchr(sh->fed_text, 0, sh->fed_len)
        };
        const char *how = sh->fed == FED_DOCUMENT ? "document" : sh->fed == FED_PROCESS ? "substitution" : "pipe";
        if (field_is(file, "-") || field_is(file, "/dev/stdin")) {
                if (sh->fed != FED_NOT && text.text)
                        program(awk, &text);
                else if (sh->fed != FED_NOT)
                        bash_report(sh, FACT_CODE, how, strlen(how), awk->run->start, awk->run->end);
        } else if (field_begins(file, "/dev/fd/")) {
                bash_report(sh, FACT_CODE, "substitution", 12, awk->run->start, awk->run->end);
        }
}

/* The value of the option at *at: the rest of the word, or the next word; NULL: another option. */
static const struct field *value_of(struct awk *awk, size_t *at, char letter, const char *name)
{
        const struct fields *words = &awk->run->words;
        const struct field *word = &words->list[*at];
        size_t len = strlen(name), skip = 2;
        if (field_is(word, arena_text(awk->sh->arena, "-%c", letter)) || field_is(word, name))
                return *at + 1 < words->n ? &words->list[++*at] : NULL;
        if (field_begins(word, name) && word->len > len && word->text[len] == '=')
                skip = len + 1;
        else if (word->text[1] != letter)
                return NULL;
        struct field *rest = arena_alloc(awk->sh->arena, sizeof *rest);
        *rest = bash_field(awk->sh, word->text + skip, word->len - skip);
        return rest;
}

void bash_awk(struct shell *sh, const struct run *run)
{
        struct awk awk = { .sh = sh, .run = run };
        const struct field *code = NULL, *value;
        bool file = false;
        size_t at = 1;
        for (; at < run->words.n && run->words.list[at].len > 1 && run->words.list[at].text[0] == '-'; at++) {
                if (field_is(&run->words.list[at], "--") && ++at)
                        break;
                if ((value = value_of(&awk, &at, 'f', "--file")) || (value = value_of(&awk, &at, 'E', "--exec")))
                        file = true, program_file(&awk, value);
                else if ((value = value_of(&awk, &at, 'e', "--source")))
                        file = true, code = value;
                else if ((value = value_of(&awk, &at, 'v', "--assign")))
                        given(&awk, value);
                else
                        value_of(&awk, &at, 'F', "--field-separator");
        }
        if (!file && at < run->words.n)
                code = &run->words.list[at++];
        for (; at < run->words.n; at++)
                given(&awk, &run->words.list[at]);
        if (code)
                program(&awk, code);
}
