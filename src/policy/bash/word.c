/* Words: quotes, expansions and here-documents, as in the Bash manual's "Shell Operation". */
#include "policy/bash/bash.h"

/* ---- the reader ---- */

void bash_fail(struct bash_reader *r, size_t at, const char *why)
{
        if (!r->failed) {
                r->failed = true;
                r->failed_at = at;
                r->why = why;
        }
        r->at = r->len;
}

void bash_unexpected(struct bash_reader *r)
{
        size_t at = r->at, end = at;
        if (r->failed)
                return;
        if (at >= r->len) {
                bash_fail(r, at, "syntax error: unexpected end of file");
                return;
        }
        bool sign = r->text[at] && strchr(";&|<>", r->text[at]);
        while (end < r->len && end < at + 40 &&
                (sign ? r->text[end] && strchr(";&|<>", r->text[end]) : !bash_is_meta((unsigned char)r->text[end])))
                end++;
        end += end == at;
        bash_fail(r, at,
                r->text[at] == '\n' ? "syntax error near unexpected token `newline'"
                                    : arena_text(r->arena, "syntax error near unexpected token `%.*s'", (int)(end - at),
                                              r->text + at));
}

bool bash_enter(struct bash_reader *r)
{
        if (++r->depth <= DEPTH_MAX)
                return true;
        r->depth--;
        bash_fail(r, r->at, "nested too deeply to be checked");
        return false;
}

void *bash_object(struct bash_reader *r, size_t size)
{
        if (++r->objects > OBJECTS_MAX)
                bash_fail(r, r->at, "too long to be checked");
        return arena_alloc(r->arena, size);
}

int bash_peek(const struct bash_reader *r, size_t ahead)
{
        return r->at + ahead < r->len ? (unsigned char)r->text[r->at + ahead] : -1;
}

uint32_t bash_start(const struct bash_reader *r, size_t at)
{
        return r->fixed ? r->fixed_start : (uint32_t)at;
}

uint32_t bash_end(const struct bash_reader *r, size_t at)
{
        return r->fixed ? r->fixed_end : (uint32_t)at;
}

void bash_blanks(struct bash_reader *r)
{
        for (;;) {
                int c = bash_peek(r, 0);
                if (c == ' ' || c == '\t')
                        r->at++;
                else if (c == '\\' && bash_peek(r, 1) == '\n')
                        r->at += 2;
                else if (c == '#')
                        while (r->at < r->len && r->text[r->at] != '\n')
                                r->at++;
                else
                        return;
        }
}

/* ---- parts ---- */

static struct part *add(struct bash_reader *r, struct word *word, enum part_kind kind, bool quoted)
{
        struct part *part = bash_object(r, sizeof *part);
        part->kind = kind;
        part->quoted = quoted;
        if (word->last)
                word->last->next = part;
        else
                word->parts = part;
        word->last = part;
        return part;
}

static void add_text(struct bash_reader *r, struct word *word, const char *text, size_t len, bool quoted)
{
        struct part *part = add(r, word, PART_TEXT, quoted);
        part->text = text;
        part->len = len;
}

/* A reader for a separate text; all places in the text are `start` and `end`. */
static struct bash_reader reader_of(const struct bash_reader *r, const char *text, size_t len, size_t start, size_t end)
{
        struct bash_reader inner = { .text = text,
                .len = len,
                .arena = r->arena,
                .depth = r->depth,
                .objects = r->objects,
                .extglob = r->extglob,
                .fixed = true,
                .fixed_start = bash_start(r, start),
                .fixed_end = bash_end(r, end) };
        return inner;
}

static uint32_t escape_number(const char *text, size_t len, size_t *at, unsigned base, size_t digits)
{
        uint32_t number = 0;
        for (size_t n = 0; n < digits && *at < len; n++, ++*at) {
                int c = (unsigned char)text[*at],
                    d = c >= '0' && c <= '9'                     ? c - '0'
                        : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                 : 99;
                if ((unsigned)d >= base)
                        break;
                number = number * base + (unsigned)d;
        }
        return number;
}

const char *bash_ansi(struct arena *arena, const char *text, size_t len, size_t *ret_len)
{
        static const char from[] = "abeEfnrtv\\'\"?", to[] = "\a\b\033\033\f\n\r\t\v\\'\"?";
        struct buf buf;
        buf_init(&buf, len + 8);
        for (size_t at = 0; at < len;) {
                char c = text[at++];
                if (c != '\\' || at == len) {
                        buf_add(&buf, &c, 1);
                        continue;
                }
                c = text[at++];
                const char *simple = c ? strchr(from, c) : NULL;
                uint32_t number = 0;
                if (simple) {
                        buf_add(&buf, &to[simple - from], 1);
                        continue;
                }
                if (c == 'u' || c == 'U') {
                        number = escape_number(text, len, &at, 16, c == 'u' ? 4 : 8);
                        if (!number)
                                break;
                        unicode_put(&buf, number);
                        continue;
                }
                if (c >= '0' && c <= '7') {
                        at--;
                        number = escape_number(text, len, &at, 8, 3) & 0xff;
                } else if (c == 'x') {
                        number = escape_number(text, len, &at, 16, 2);
                } else if (c == 'c' && at < len) {
                        number = (uint32_t)text[at++] & 0x1f;
                } else {
                        buf_add(&buf, "\\", 1);
                        buf_add(&buf, &c, 1);
                        continue;
                }
                /* \0 ends the text, as in C. */
                if (!number)
                        break;
                c = (char)number;
                buf_add(&buf, &c, 1);
        }
        char *copy = arena_copy(arena, buf.bytes ? buf.bytes : "", buf.len);
        *ret_len = buf.len;
        buf_done(&buf);
        return copy;
}

static void single_quotes(struct bash_reader *r, struct word *word)
{
        size_t from = ++r->at;
        const char *end = memchr(r->text + from, '\'', r->len - from);
        if (!end) {
                bash_fail(r, from - 1, "unexpected EOF while looking for matching `''");
                return;
        }
        add_text(r, word, r->text + from, (size_t)(end - r->text) - from, true);
        r->at = (size_t)(end - r->text) + 1;
}

static void ansi_quotes(struct bash_reader *r, struct word *word)
{
        size_t from = r->at += 2, len;
        while (r->at < r->len && r->text[r->at] != '\'')
                r->at += r->text[r->at] == '\\' && r->at + 1 < r->len ? 2 : 1;
        if (r->at >= r->len) {
                bash_fail(r, from - 1, "unexpected EOF while looking for matching `''");
                return;
        }
        const char *text = bash_ansi(r->arena, r->text + from, r->at++ - from, &len);
        add_text(r, word, text, len, true);
}

/* ---- expansions ---- */

static void backquotes(struct bash_reader *r, struct word *word, bool quoted)
{
        size_t from = r->at++, n = 0, to = r->at;
        while (to < r->len && r->text[to] != '`')
                to += r->text[to] == '\\' && to + 1 < r->len ? 2 : 1;
        if (to >= r->len) {
                bash_fail(r, from, "unexpected EOF while looking for matching ``'");
                return;
        }
        char *text = arena_alloc(r->arena, to - r->at + 1);
        for (; r->at < to; r->at++) {
                if (r->text[r->at] == '\\' &&
                        (strchr("\\`$", r->text[r->at + 1]) || (quoted && r->text[r->at + 1] == '"')))
                        r->at++;
                text[n++] = r->text[r->at];
        }
        r->at = to + 1;
        struct part *part = add(r, word, PART_COMMAND, quoted);
        struct bash_reader inner = reader_of(r, text, n, from, to + 1);
        if (!bash_enter(r))
                return;
        inner.depth = r->depth;
        /* A mistake in the body is a mistake of the run, not of the program; only too deep nesting is an error here. */
        part->body = bash_parse(&inner);
        r->objects = inner.objects;
        r->depth--;
        if (inner.failed && inner.depth >= DEPTH_MAX)
                bash_fail(r, from, inner.why);
}

static void substitution(struct bash_reader *r, struct word *word, bool quoted, enum part_kind kind)
{
        size_t from = r->at;
        struct part *part = add(r, word, kind, quoted);
        part->text = r->text[r->at] == '>' ? ">" : "<";
        r->at += 2;
        if (!bash_enter(r))
                return;
        /* Its here-documents are its own. */
        struct redirect *documents = r->documents, *last = r->last_document;
        r->documents = r->last_document = NULL;
        part->body = bash_list_in(r);
        if (r->last_document)
                r->last_document->next_document = documents;
        else
                r->documents = documents;
        r->last_document = last ? last : r->last_document;
        if (bash_peek(r, 0) == ')')
                r->at++;
        else if (r->at >= r->len)
                bash_fail(r, from, "unexpected EOF while looking for matching `)'");
        else
                bash_unexpected(r);
        r->depth--;
}

bool bash_arithmetic_ahead(struct bash_reader *r, size_t at)
{
        size_t depth = 0, from = at;
        for (; at < r->len; at++) {
                char c = r->text[at];
                if (c == '\\')
                        at++;
                else if (c == '\'' || c == '"') {
                        const char *end = memchr(r->text + at + 1, c, r->len - at - 1);
                        if (!end)
                                break;
                        at = (size_t)(end - r->text);
                } else if (c == '(')
                        depth++;
                else if (c == ')' && depth-- == 0)
                        break;
        }
        r->scanned += at - from;
        if (r->scanned > 64 * MIB)
                bash_fail(r, from, "nested too deeply to be checked");
        return at + 1 < r->len && r->text[at] == ')' && r->text[at + 1] == ')';
}

static void arithmetic(struct bash_reader *r, struct word *word, bool quoted, bool bracket)
{
        size_t from = r->at;
        struct part *part = add(r, word, PART_ARITHMETIC, quoted);
        r->at += bracket ? 2 : 3;
        part->operand = bash_inside(r, bracket ? END_BRACKET : END_PAREN, true);
        if (!r->failed && r->at >= r->len)
                bash_fail(r, from,
                        bracket ? "unexpected EOF while looking for matching `]'"
                                : "unexpected EOF while looking for matching `)'");
        r->at += !r->failed && !bracket && bash_peek(r, 0) == ')';
}

static void parameter_operator(struct bash_reader *r, struct part *part)
{
        static const char *const operators[] = { ":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", "#",
                "%", "/", "^", ",", "-", "=", "?", "+", ":", "@" };
        for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
                size_t len = strlen(operators[i]);
                if (r->len - r->at < len || memcmp(r->text + r->at, operators[i], len) != 0)
                        continue;
                memcpy(part->operator, operators[i], len);
                r->at += len;
                return;
        }
        part->operator[0] = '!';   /* bash refuses the operator at run time */
}

static void braced_parameter(struct bash_reader *r, struct word *word, bool quoted)
{
        size_t from = r->at;
        struct part *part = add(r, word, PART_VARIABLE, quoted);
        r->at += 2;
        if (!bash_enter(r))
                return;
        int c = bash_peek(r, 0), next = bash_peek(r, 1);
        if ((c == '!' || c == '#') && next > 0 &&
                (bash_is_name(next, false) || strchr("@*?$!", next) || (next == '#' && c == '!') ||
                        (next == '-' && bash_peek(r, 2) == '}')) &&
                !(c == '#' && strchr("?", next) && bash_peek(r, 2) != '}')) {
                part->indirect = c == '!';
                part->count = c == '#';
                r->at++;
        }
        part->text = r->text + r->at;
        c = bash_peek(r, 0);
        if (bash_is_name(c, true))
                while (bash_is_name(bash_peek(r, 0), false))
                        r->at++;
        else if (c >= '0' && c <= '9')
                while (bash_peek(r, 0) >= '0' && bash_peek(r, 0) <= '9')
                        r->at++;
        else if (c > 0 && strchr("@*#?-$!", c))
                r->at++;
        part->len = (size_t)(r->text + r->at - part->text);
        if (part->len && bash_peek(r, 0) == '[') {
                r->at++;
                part->index = bash_inside(r, END_BRACKET, false);
        }
        if (bash_peek(r, 0) != '}') {
                parameter_operator(r, part);
                /* Patterns have quotes of their own even inside of "". */
                part->operand = bash_inside(r, END_BRACE, quoted && !strchr("#%/^,", part->operator[0]));
        } else {
                r->at++;
        }
        if (r->at > r->len || (r->at == r->len && r->text[r->len - 1] != '}'))
                bash_fail(r, from, "unexpected EOF while looking for matching `}'");
        r->depth--;
}

static void dollar(struct bash_reader *r, struct word *word, bool quoted)
{
        int next = bash_peek(r, 1);
        if (next == '(' && bash_peek(r, 2) == '(' && bash_arithmetic_ahead(r, r->at + 3)) {
                arithmetic(r, word, quoted, false);
        } else if (next == '(') {
                substitution(r, word, quoted, PART_COMMAND);
        } else if (next == '{') {
                braced_parameter(r, word, quoted);
        } else if (next == '[') {
                arithmetic(r, word, quoted, true);
        } else if (next == '\'' && !quoted) {
                ansi_quotes(r, word);
        } else if (next == '"' && !quoted) {
                r->at++;
        } else if (bash_is_name(next, false) || (next > 0 && strchr("@*#?-$!", next))) {
                struct part *part = add(r, word, PART_VARIABLE, quoted);
                part->text = r->text + ++r->at;
                part->len = 1;
                r->at++;
                while (bash_is_name(next, true) && bash_is_name(bash_peek(r, 0), false))
                        r->at++, part->len++;
        } else {
                add_text(r, word, r->text + r->at++, 1, quoted);
        }
}

/* ---- words ---- */

static void double_quotes(struct bash_reader *r, struct word *word)
{
        r->at++;
        struct word *inside = bash_inside(r, END_QUOTE, true);
        if (r->failed)
                return;
        if (!inside->parts)
                add_text(r, word, "", 0, true);
        else if (word->last)
                word->last->next = inside->parts, word->last = inside->last;
        else
                word->parts = inside->parts, word->last = inside->last;
}

static void backslash(struct bash_reader *r, struct word *word, enum ending ending, bool quoted)
{
        int next = bash_peek(r, 1);
        if (next < 0) {
                add_text(r, word, r->text + r->at++, 1, true);
                return;
        }
        bool special = !quoted || strchr("$`\\", next) || (next == '"' && ending != END_TEXT) ||
                (next == '}' && ending == END_BRACE);
        if (next == '\n')
                r->at += 2;
        else if (special)
                add_text(r, word, r->text + r->at + 1, 1, true), r->at += 2;
        else
                add_text(r, word, r->text + r->at, 2, true), r->at += 2;
}

/* Whether this sign ends the text; `open` counts brackets. */
static bool ends(struct bash_reader *r, enum ending ending, int c, size_t *open)
{
        switch (ending) {
        case END_WORD: return bash_is_meta(c);
        case END_REGEX:
                *open += c == '(';
                if (c == ')' && *open)
                        return --*open, false;
                return !*open && (c == ' ' || c == '\t' || c == '\n' || c == ')');
        case END_QUOTE: return c == '"';
        case END_BRACE: return c == '}';
        case END_BRACKET:
                *open += c == '[';
                return c == ']' && (*open)-- == 0;
        case END_PAREN: case END_GLOB:
                *open += c == '(';
                return c == ')' && (*open)-- == 0;
        case END_TEXT: default: return r->at >= r->len;
        }
}

static bool is_process(const struct bash_reader *r, enum ending ending, bool quoted)
{
        int c = bash_peek(r, 0);
        return (c == '<' || c == '>') && bash_peek(r, 1) == '(' && !quoted &&
                (ending == END_WORD || ending == END_BRACE);
}

static bool is_glob(const struct bash_reader *r, enum ending ending, size_t from)
{
        return r->extglob && ending == END_WORD && bash_peek(r, 0) == '(' && r->at > from &&
                strchr("?*+@!", r->text[r->at - 1]) != NULL;
}

static void read_parts(struct bash_reader *r, struct word *word, enum ending ending, bool quoted)
{
        size_t open = 0, from = r->at;
        while (r->at < r->len) {
                int c = (unsigned char)r->text[r->at];
                if (is_process(r, ending, quoted)) {
                        substitution(r, word, false, PART_PROCESS);
                } else if (is_glob(r, ending, from)) {
                        add_text(r, word, r->text + r->at++, 1, false);
                        struct word *inside = bash_inside(r, END_GLOB, false);
                        for (struct part *part = inside->parts; part; part = part->next)
                                word->last = word->last->next = part;
                        add_text(r, word, ")", 1, false);
                } else if (c == '\\' ) {
                        backslash(r, word, ending, quoted);
                } else if (c == '\'' && !quoted) {
                        single_quotes(r, word);
                } else if (c == '"' && ending != END_QUOTE && ending != END_TEXT) {
                        double_quotes(r, word);
                } else if (c == '$') {
                        dollar(r, word, quoted);
                } else if (c == '`') {
                        backquotes(r, word, quoted);
                } else if (ends(r, ending, c, &open)) {
                        return;
                } else if (!c) {
                        add(r, word, PART_HOLE, quoted);
                        r->at++;
                } else {
                        size_t run = r->at++;
                        while (r->at < r->len && !strchr("\\'\"$`()[]{}<>;&| \t\n", r->text[r->at]))
                                r->at++;
                        add_text(r, word, r->text + run, r->at - run, quoted);
                }
        }
}

struct word *bash_inside(struct bash_reader *r, enum ending ending, bool quoted)
{
        struct word *word = bash_object(r, sizeof *word);
        size_t from = r->at;
        word->start = bash_start(r, r->at);
        if (!bash_enter(r))
                return word;
        read_parts(r, word, ending, quoted);
        word->end = bash_end(r, r->at);
        r->depth--;
        if (r->at < r->len)
                r->at += ending != END_TEXT;
        else if (ending != END_TEXT && !r->failed)
                bash_fail(r, from ? from - 1 : 0,
                        ending == END_QUOTE             ? "unexpected EOF while looking for matching `\"'"
                                : ending == END_BRACE   ? "unexpected EOF while looking for matching `}'"
                                : ending == END_BRACKET ? "unexpected EOF while looking for matching `]'"
                                                        : "unexpected EOF while looking for matching `)'");
        return word;
}

struct word *bash_word(struct bash_reader *r, enum ending ending)
{
        size_t from = r->at;
        struct word word = { .start = bash_start(r, from) };
        if (r->at >= r->len)
                return NULL;
        read_parts(r, &word, ending, false);
        if (r->at == from || r->failed)
                return NULL;
        word.end = bash_end(r, r->at);
        struct word *ret = bash_object(r, sizeof *ret);
        *ret = word;
        return ret;
}

bool bash_word_is(const struct word *word, const char *text)
{
        return word && word->parts && !word->parts->next && word->parts->kind == PART_TEXT && !word->parts->quoted &&
               word->parts->len == strlen(text) && memcmp(word->parts->text, text, word->parts->len) == 0;
}

/* ---- assignments ---- */

static void read_array(struct bash_reader *r, struct assign *ret)
{
        struct assign **tail = &ret->items;
        ret->is_array = true;
        for (r->at++;;) {
                bash_blanks(r);
                if (bash_newline(r))
                        continue;
                if (bash_peek(r, 0) == ')') {
                        r->at++;
                        return;
                }
                struct assign *item = bash_object(r, sizeof *item);
                item->start = bash_start(r, r->at);
                /* [key]=value */
                size_t at = r->at;
                if (bash_peek(r, 0) == '[') {
                        r->at++;
                        item->index = bash_inside(r, END_BRACKET, false);
                        item->append = bash_peek(r, 0) == '+' && bash_peek(r, 1) == '=';
                        if (bash_peek(r, 0) == '=' || item->append)
                                r->at += 1 + item->append;
                        else
                                item->index = NULL, r->at = r->failed ? r->len : at;
                }
                item->value = bash_word(r, END_WORD);
                if (!item->value && !item->index) {
                        if (r->at >= r->len)
                                bash_fail(r, at, "unexpected EOF while looking for matching `)'");
                        else
                                bash_unexpected(r);
                        return;
                }
                item->end = bash_end(r, r->at);
                *tail = item;
                tail = &item->next;
        }
}

/* The place behind "name", "name[…]"; 0: no name.  A subscript is on one line and not long. */
static size_t left_side(const struct bash_reader *r)
{
        size_t at = r->at;
        if (!bash_is_name(bash_peek(r, 0), true))
                return 0;
        while (at < r->len && bash_is_name((unsigned char)r->text[at], false))
                at++;
        if (at >= r->len || r->text[at] != '[')
                return at;
        size_t open = 0, end = at + 1000 < r->len ? at + 1000 : r->len;
        for (char quote = 0; at < end && r->text[at] != '\n'; at++) {
                char c = r->text[at];
                if (c == '\\' && quote != '\'')
                        at++;
                else if (quote)
                        quote = c == quote ? 0 : quote;
                else if (c == '\'' || c == '"')
                        quote = c;
                else if (c == '[')
                        open++;
                else if (c == ']' && --open == 0)
                        return at + 1;
        }
        return 0;
}

bool bash_assignment(struct bash_reader *r, bool array_only, struct assign *ret)
{
        size_t from = r->at, left = left_side(r), at = left;
        bool append = left && left + 1 < r->len && r->text[left] == '+' && r->text[left + 1] == '=';
        at += append;
        if (!left || at >= r->len || r->text[at] != '=' || (array_only && (at + 1 >= r->len || r->text[at + 1] != '(')))
                return false;
        *ret = (struct assign){ .name = r->text + from, .append = append, .start = bash_start(r, from) };
        while (bash_is_name(bash_peek(r, 0), false))
                r->at++, ret->len++;
        if (bash_peek(r, 0) == '[') {
                r->at++;
                ret->index = bash_inside(r, END_BRACKET, false);
        }
        r->at = r->failed ? r->len : at + 1;
        if (bash_peek(r, 0) == '(')
                read_array(r, ret);
        else
                ret->value = bash_word(r, END_WORD);
        ret->end = bash_end(r, r->at);
        return true;
}

/* ---- here-documents ---- */

/* A delimiter is a word without its quotes and without expansions. */
static char *delimiter(struct bash_reader *r, const struct redirect *document, size_t *ret_len, bool *ret_quoted)
{
        size_t start = document->target->start, end = document->target->end, n = 0;
        const char *text = r->text + start;
        char *out;
        if (r->fixed) {                        /* no places: the plain text of the parts */
                const struct part *part = document->target->parts;
                size_t len = 0;
                for (; part; part = part->next)
                        len += part->len;
                out = arena_alloc(r->arena, len + 1);
                for (part = document->target->parts; part; part = part->next) {
                        memcpy(out + n, part->text ? part->text : "", part->len);
                        *ret_quoted = *ret_quoted || part->quoted;
                        n += part->len;
                }
                *ret_len = n;
                return out;
        }
        out = arena_alloc(r->arena, end - start + 1);
        for (size_t i = 0, len = end - start; i < len; i++) {
                char c = text[i];
                if (c == '\\' && i + 1 < len) {
                        *ret_quoted = true;
                        if (text[++i] != '\n')
                                out[n++] = text[i];
                } else if (c == '\'' || c == '"') {
                        *ret_quoted = true;
                        while (++i < len && text[i] != c)
                                out[n++] = text[i];
                } else if (c != '$' || i + 1 == len || (text[i + 1] != '\'' && text[i + 1] != '"')) {
                        out[n++] = c;
                }
        }
        *ret_len = n;
        return out;
}

static void read_document(struct bash_reader *r, struct redirect *document)
{
        bool quoted = false, strip = document->operator[2] == '-';
        size_t word_len, start = r->at, end = r->len, n = 0;
        const char *word = delimiter(r, document, &word_len, &quoted);
        while (r->at < r->len) {
                const char *feed = memchr(r->text + r->at, '\n', r->len - r->at);
                size_t line = r->at, line_end = feed ? (size_t)(feed - r->text) : r->len;
                r->at = feed ? line_end + 1 : r->len;
                while (strip && line < line_end && r->text[line] == '\t')
                        line++;
                if (line_end - line == word_len && memcmp(r->text + line, word, word_len) == 0) {
                        end = r->at - (feed ? line_end + 1 - line : line_end - line);
                        while (strip && end > start && r->text[end - 1] == '\t')
                                end--;
                        break;
                }
        }
        struct bash_reader inner = *r;
        inner.at = start;
        inner.len = end;
        inner.documents = inner.last_document = NULL;
        if (strip) {
                char *text = arena_alloc(r->arena, end - start + 1);
                bool first = true;
                for (size_t i = start; i < end; i++) {
                        if (!first || r->text[i] != '\t')
                                text[n++] = r->text[i], first = r->text[i] == '\n';
                }
                inner = reader_of(r, text, n, start, end);
        }
        if (quoted) {
                struct word *target = bash_object(r, sizeof *target);
                add_text(r, target, inner.text + inner.at, inner.len - inner.at, true);
                target->start = document->target->start, target->end = document->target->end;
                document->target = target;
                return;
        }
        document->target = bash_inside(&inner, END_TEXT, true);
        r->objects = inner.objects;
        /* A mistake in the text of a document is a mistake of the run. */
        if (inner.failed && inner.depth >= DEPTH_MAX)
                bash_fail(r, start, inner.why);
}

bool bash_newline(struct bash_reader *r)
{
        if (bash_peek(r, 0) != '\n')
                return false;
        r->at++;
        while (r->documents) {
                struct redirect *document = r->documents;
                r->documents = document->next_document;
                read_document(r, document);
        }
        r->last_document = NULL;
        return true;
}
