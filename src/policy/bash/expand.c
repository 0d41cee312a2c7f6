/* The expansion of words: the Bash manual's "Shell Expansions", as far as constants go. */
#include "policy/bash/bash.h"

#include <fnmatch.h>

/* Kinds of the bytes of an expansion. */
enum { PLAIN, QUOTED, RESULT, BREAK, EMPTY };

struct rich {
        char *bytes;
        unsigned char *flags;
        size_t len, size;
        bool substituted;
};

static void put(struct shell *sh, struct rich *rich, const char *text, size_t len, unsigned char flag)
{
        if (rich->len + len > TEXT_MAX) {
                text = "";
                len = rich->len < TEXT_MAX;
        }
        if (rich->len + len > rich->size) {
                size_t size = 2 * (rich->len + len) + 64;
                char *bytes = arena_alloc(sh->arena, size);
                unsigned char *flags = arena_alloc(sh->arena, size);
                if (rich->len) {
                        memcpy(bytes, rich->bytes, rich->len);
                        memcpy(flags, rich->flags, rich->len);
                }
                rich->bytes = bytes;
                rich->flags = flags;
                rich->size = size;
        }
        if (len) {
                memcpy(rich->bytes + rich->len, text, len);
                memset(rich->flags + rich->len, flag, len);
        }
        rich->len += len;
}

static void put_hole(struct shell *sh, struct rich *rich, bool quoted)
{
        put(sh, rich, "", 1, quoted ? QUOTED : RESULT);
}

struct field bash_field(struct shell *sh, const char *text, size_t len)
{
        return (struct field){
                .text = arena_copy(sh->arena, text, len), .len = len, .hole = memchr(text, 0, len) != NULL
        };
}

void bash_field_add(struct shell *sh, struct fields *fields, struct field field)
{
        if (fields->n == fields->size) {
                size_t size = fields->size ? 2 * fields->size : 8;
                struct field *list = arena_alloc(sh->arena, size * sizeof *list);
                if (fields->n)
                        memcpy(list, fields->list, fields->n * sizeof *list);
                fields->list = list;
                fields->size = size;
        }
        fields->list[fields->n++] = field;
}

/* ---- parameters ---- */

/* The environment of a program. */
static const char *environment(const char *name, size_t len)
{
        static const struct { const char *name, *value;
        } known[] = {
                { "HOME", "/home/user" },
                { "SHELL", "/bin/bash" },
                { "BASH", "/bin/bash" },
                { "IFS", " \t\n" },
                { "PATH", "/usr/local/bin:/usr/bin:/bin" },
        };
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                if (strlen(known[i].name) == len && memcmp(known[i].name, name, len) == 0)
                        return known[i].value;
        return NULL;
}

/* The fields of "$@" or "${a[@]}". */
static bool list_of(struct shell *sh, const struct part *part, struct fields *ret)
{
        if (part->len == 1 && (part->text[0] == '@' || part->text[0] == '*')) {
                const struct frame *frame = sh->frame;
                if (!frame->n)
                        return false;
                const struct fields *call = &frame->calls[bash_pick(sh, frame->n)];
                const bool any = frame->shifted || (sh->loops && frame->loop_shifts);
                size_t skip = frame->shift;
                for (size_t i = 0; (i < skip || any) && i < call->n; i++)
                        if (call->list[i].many)
                                return false;
                if (any && skip < call->n)
                        skip += bash_pick(sh, call->n - skip);
                for (size_t i = skip; i < call->n; i++)
                        bash_field_add(sh, ret, call->list[i]);
                return true;
        }
        const struct values *values = bash_values(sh, bash_variable(sh, part->text, part->len, false));
        if (values->arrays_n) {
                for (const struct item *item = values->arrays[bash_pick(sh, values->arrays_n)]; item; item = item->next)
                        bash_field_add(sh, ret, item->value);
                return true;
        }
        if (values->n)
                bash_field_add(sh, ret, values->texts[bash_pick(sh, values->n)]);
        return values->n > 0;
}

static bool item_of(struct shell *sh, const struct values *values, const struct field *key, struct field *ret)
{
        const struct item *item = values->arrays[bash_pick(sh, values->arrays_n)];
        char *end = NULL;
        long place = key->len && !key->hole ? strtol(key->text, &end, 10) : -1;
        bool number = end && !*end && end != key->text;
        size_t n = 0, all = 0;
        const struct item *first = item, *found = NULL;
        for (; item; item = item->next, all++) {
                if (item->key ? !key->hole && item->key_len == key->len && memcmp(item->key, key->text, key->len) == 0
                              : number && (long)n == place)
                        found = item;
                n += item->key == NULL;
        }
        if (number && place < 0 && (size_t)-place <= n)
                for (item = first, place += (long)n; item; item = item->next)
                        if (!item->key && place-- == 0)
                                found = item;
        /* An unknown key: any of the items. */
        if (!found && (key->hole || !number) && all)
                for (size_t pick = bash_pick(sh, all); first; first = first->next)
                        if (pick-- == 0)
                                found = first;
        if (found)
                *ret = found->value;
        return found;
}

/* The value of a parameter; false: unknown, with *ret_set whether the program sets the parameter. */
static bool value_of(struct shell *sh, const struct part *part, struct field *ret, bool *ret_set)
{
        char c = part->len ? part->text[0] : 0;
        *ret_set = false;
        if (c == '0' && part->len == 1 && sh->frame->zero) {
                *ret = *sh->frame->zero;
                return *ret_set = true;
        }
        if (c >= '1' && c <= '9') {
                struct fields list = { 0 };
                struct part all = { .text = "@", .len = 1 };
                size_t n = 0;
                for (size_t i = 0; i < part->len && n < 10000; i++)
                        n = n * 10 + (size_t)(part->text[i] - '0');
                if (!list_of(sh, &all, &list))
                        return false;
                for (size_t i = 0; i < n && i < list.n; i++)
                        if (list.list[i].many)
                                return false;
                *ret_set = n <= list.n;
                *ret = *ret_set && list.list ? list.list[n - 1] : (struct field){ .text = "" };
                return true;
        }
        if (!bash_is_name((unsigned char)c, true))
                return false;
        const struct variable *v = bash_variable(sh, part->text, part->len, false);
        const struct values *values = bash_values(sh, v);
        if (values->arrays_n && (part->index || !values->n)) {
                struct field key = { .text = "0", .len = 1 };
                if (part->index)
                        key = bash_text(sh, part->index);
                *ret_set = true;
                if (!item_of(sh, values, &key, ret))
                        *ret = (struct field){ .text = "" };
                return true;
        }
        const char *given = environment(part->text, part->len);
        if (!values->n && !given)
                return false;
        *ret_set = true;
        *ret = values->n ? values->texts[bash_pick(sh, values->n)]
                         : (struct field){ .text = given, .len = strlen(given) };
        return true;
}

/* ---- ${x…}: operators ---- */

static struct rich rich_of(struct shell *sh, const struct word *word, unsigned depth);

/* A pattern for fnmatch(3). */
static char *pattern_of(struct shell *sh, const struct rich *rich, size_t from, size_t to)
{
        char *pattern = arena_alloc(sh->arena, 2 * (to - from) + 1);
        size_t n = 0;
        for (size_t i = from; i < to; i++) {
                if (rich->flags[i] == QUOTED && strchr("*?[]\\()|@+!", rich->bytes[i]))
                        pattern[n++] = '\\';
                pattern[n++] = rich->bytes[i];
        }
        pattern[n] = 0;
        return pattern;
}

static bool matches(struct shell *sh, const char *pattern, const char *text, size_t len)
{
        return fnmatch(pattern, arena_copy(sh->arena, text, len), FNM_EXTMATCH) == 0;
}

static void cut(struct shell *sh, struct field *value, const char *operator, const char *pattern)
{
        bool longest = operator[1] != 0, front = operator[0] == '#';
        for (size_t i = 0; i <= value->len; i++) {
                size_t len = longest ? value->len - i : i;
                const char *piece = front ? value->text : value->text + value->len - len;
                if (!matches(sh, pattern, piece, len))
                        continue;
                *value = bash_field(sh, front ? value->text + len : value->text, value->len - len);
                return;
        }
}

static void replace(struct shell *sh, struct field *value, const char *operator, const char * pattern,
        const struct field *by)
{
        struct buf out;
        buf_init(&out, TEXT_MAX);
        bool all = operator[1] == '/', done = false;
        for (size_t at = 0; at < value->len || (at == 0 && value->len == 0);) {
                size_t found = 0;
                bool here = !done && (operator[1] != '#' || at == 0);
                for (size_t len = value->len - at; here && len > 0 && !found; len--)
                        if ((operator[1] != '%' || at + len == value->len) &&
                                matches(sh, pattern, value->text + at, len))
                                found = len;
                if (found) {
                        buf_add(&out, by->text, by->len);
                        at += found;
                        done = !all;
                } else {
                        buf_add(&out, value->text + at++, value->len ? 1 : 0);
                }
        }
        *value = bash_field(sh, out.bytes ? out.bytes : "", out.len);
        buf_done(&out);
}

static bool change_by_pattern(struct shell *sh, struct field *value, const struct part *part, unsigned depth)
{
        struct rich operand = rich_of(sh, part->operand, depth);
        size_t to = operand.len;
        struct field by = { .text = "" };
        size_t stars = 0;
        for (size_t i = 0; i < operand.len; i++)
                stars += operand.bytes[i] == '*' || operand.bytes[i] == '(';
        /* fnmatch(3) is slow with many stars. */
        if (stars > 2 || value->len > 200 || operand.len > 200 ||
                memchr(operand.bytes ? operand.bytes : "", 0, operand.len))
                return false;
        if (part->operator[0] == '/') {
                for (to = 0; to < operand.len && (operand.bytes[to] != '/' || operand.flags[to] == QUOTED);)
                        to++;
                if (to < operand.len)
                        by = bash_field(sh, operand.bytes + to + 1, operand.len - to - 1);
                replace(sh, value, part->operator, pattern_of(sh, &operand, 0, to), &by);
        } else {
                cut(sh, value, part->operator, pattern_of(sh, &operand, 0, to));
        }
        return true;
}

static bool substring(struct shell *sh, struct field *value, const struct word *operand)
{
        struct field text = bash_text(sh, operand);
        char *end;
        if (text.hole)
                return false;
        long len = (long)value->len, from = strtol(text.text + strspn(text.text, " ("), &end, 10), n = len;
        end += strspn(end, " )");
        if (*end == ':') {
                const char *second = end + 1;
                n = strtol(second + strspn(second, " ("), &end, 10);
                end += strspn(end, " )");
        }
        if (*end || end == text.text)
                return false;
        from = from < 0 ? from + len : from;
        if (from < 0 || from > len)
                from = len;
        n = n < 0 ? len + n - from : n;
        n = n < 0 ? 0 : n > len - from ? len - from : n;
        *value = bash_field(sh, value->text + from, (size_t)n);
        return true;
}

static void change_case(struct shell *sh, struct field *value, bool up, bool all)
{
        char *text = arena_copy(sh->arena, value->text, value->len);
        for (size_t i = 0; i < value->len && (all || i == 0); i++) {
                if (up && text[i] >= 'a' && text[i] <= 'z')
                        text[i] = (char)(text[i] - 32);
                else if (!up && text[i] >= 'A' && text[i] <= 'Z')
                        text[i] = (char)(text[i] + 32);
        }
        value->text = text;
}

/* Apply an operator to the value; false: unknown. */
static bool change(struct shell *sh, struct field *value, const struct part *part, unsigned depth)
{
        const char *operator = part->operator;
        if (!operator[0] || strchr("-+=?", operator[operator[0] == ':']))
                if (operator[0] != ':' || operator[1])
                        return true;
        if (value->hole)
                return false;
        if (operator[0] == ':')
                return substring(sh, value, part->operand);
        if (operator[0] == '^' || operator[0] == ',') {
                if (part->operand && part->operand->parts)
                        return false;
                change_case(sh, value, operator[0] == '^', operator[1] != 0);
                return true;
        }
        if (operator[0] == '@') {
                if (bash_word_is(part->operand, "E"))
                        value->text = bash_ansi(sh->arena, value->text, value->len, &value->len);
                else if (bash_word_is(part->operand, "U") || bash_word_is(part->operand, "L") ||
                        bash_word_is(part->operand, "u"))
                        change_case(sh, value, !bash_word_is(part->operand, "L"), !bash_word_is(part->operand, "u"));
                else
                        return bash_word_is(part->operand, "Q") || bash_word_is(part->operand, "a");
                return true;
        }
        return strchr("#%/", operator[0]) && change_by_pattern(sh, value, part, depth);
}

/* ---- parts ---- */

static void put_rich(struct shell *sh, struct rich *to, const struct rich *from, bool quoted)
{
        for (size_t i = 0; i < from->len; i++)
                put(sh, to, from->bytes + i, 1,
                        quoted && from->flags[i] != BREAK ? QUOTED
                                : from->flags[i] == PLAIN ? RESULT
                                                          : from->flags[i]);
        to->substituted = to->substituted || from->substituted;
}

static void put_field(struct shell *sh, struct rich *rich, const struct field *field, bool quoted)
{
        put(sh, rich, field->text, field->len, quoted ? QUOTED : RESULT);
        if (quoted && !field->len)
                put(sh, rich, "", 1, EMPTY);
        rich->substituted = rich->substituted || field->substituted;
}

static void put_list(struct shell *sh, struct rich *rich, const struct fields *list, const struct part *part, bool star)
{
        const struct values *ifs = bash_values(sh, bash_variable(sh, "IFS", 3, false));
        const char *between = ifs->n ? ifs->texts[0].text : " ";
        for (size_t i = 0; i < list->n; i++) {
                if (i && star && part->quoted)
                        put(sh, rich, between, *between != 0, QUOTED);
                else if (i)
                        put(sh, rich, " ", 1, BREAK);
                if (list->list[i].many)
                        put(sh, rich, "", 1, RESULT);
                else
                        put_field(sh, rich, &list->list[i], part->quoted);
        }
}

static bool is_list(const struct part *part, bool *ret_star)
{
        const struct part *index = part->index ? part->index->parts : NULL;
        char c = part->len == 1 ? part->text[0] : 0;
        if (index && !index->next && index->kind == PART_TEXT && index->len == 1)
                c = index->text[0];
        *ret_star = c == '*';
        return (c == '@' || c == '*') && !part->count && !part->indirect;
}

/* Whether ${x:-…} takes its default; bash_pick() chooses where both are possible. */
static bool is_missing(struct shell *sh, const struct part *part, const struct field *value, bool set, bool known)
{
        bool missing = !set || (!value->len && part->operator[0] == ':');
        /* An unknown argument is not always missing. */
        if (!known && !part->indirect && part->text[0] >= '1' && part->text[0] <= '9')
                return bash_pick(sh, 2) == 0;
        if (missing || part->indirect || part->index || !bash_is_name((unsigned char)part->text[0], true))
                return missing;
        return bash_variable(sh, part->text, part->len, false)->unset && (!value->len || bash_pick(sh, 2) == 1);
}

static void put_variable(struct shell *sh, struct rich *rich, const struct part *part, unsigned depth)
{
        struct field value = { 0 };
        bool star, set = false, known;
        char act = part->operator[part->operator[0] == ':'];
        struct part indirect = *part;
        if (is_list(part, &star)) {
                struct fields list = { 0 };
                bool cut = part->operator[0] == ':' && !part->operator[1];
                struct field from = cut ? bash_text(sh, part->operand) : (struct field){ .text = "" };
                size_t skip = cut && !from.hole && from.len && strspn(from.text, "0123456789") == from.len
                        ? (size_t)strtoul(from.text, NULL, 10)
                        : 0;
                if ((part->operator[0] && !skip) || !list_of(sh, part, &list)) {
                        put(sh, rich, "", 1, RESULT);
                        return;
                }
                skip -= skip && part->text[0] == '@';
                skip = skip < list.n ? skip : list.n;
                if (list.n > skip)
                        put_list(sh, rich, &(struct fields){ list.list + skip, list.n - skip, 0 }, part, star);
                return;
        }
        if (part->count) {
                put(sh, rich, "", 1, QUOTED);
                return;
        }
        known = value_of(sh, part, &value, &set);
        if (part->indirect) {
                if (!known || value.hole || !value.len || !bash_is_name((unsigned char)value.text[0], true) ||
                        part->operator[0]) {
                        put_hole(sh, rich, part->quoted);
                        return;
                }
                indirect.text = value.text;
                indirect.len = value.len;
                indirect.index = NULL;
                known = value_of(sh, &indirect, &value, &set);
        }
        if ((act == '-' || act == '=') && part->operator[0] != '!' && is_missing(sh, part, &value, set, known)) {
                struct rich operand = rich_of(sh, part->operand, depth);
                put_rich(sh, rich, &operand, part->quoted);
                return;
        }
        if (act == '+') {
                struct rich operand = rich_of(sh, part->operand, depth);
                if (set ? value.len || value.hole : bash_pick(sh, 2) == 0)
                        put_rich(sh, rich, &operand, part->quoted);
                return;
        }
        if (!known || value.many || !change(sh, &value, part, depth))
                put_hole(sh, rich, part->quoted);
        else
                put_field(sh, rich, &value, part->quoted);
}

static struct rich rich_of(struct shell *sh, const struct word *word, unsigned depth)
{
        struct rich rich = { 0 };
        if (depth > DEPTH_MAX) {
                put_hole(sh, &rich, false);
                return rich;
        }
        for (const struct part *part = word ? word->parts : NULL; part; part = part->next) {
                struct field output = { 0 };
                switch (part->kind) {
                case PART_TEXT:
                        put(sh, &rich, part->text, part->len, part->quoted ? QUOTED : PLAIN);
                        if (part->quoted && !part->len)
                                put(sh, &rich, "", 1, EMPTY);
                        break;
                case PART_VARIABLE: put_variable(sh, &rich, part, depth + 1); break;
                case PART_COMMAND:
                        rich.substituted = true;
                        if (part->body && bash_output(sh, part->body, &output.text, &output.len))
                                put_field(sh, &rich, &output, part->quoted);
                        else
                                put_hole(sh, &rich, part->quoted);
                        break;
                case PART_PROCESS: put(sh, &rich, "/dev/fd/63", 10, QUOTED); break;
                case PART_ARITHMETIC: put(sh, &rich, "", 1, QUOTED); break;
                case PART_HOLE: default: put_hole(sh, &rich, part->quoted); break;
                }
        }
        return rich;
}

struct field bash_text(struct shell *sh, const struct word *word)
{
        struct rich rich = rich_of(sh, word, 0);
        size_t n = 0;
        for (size_t i = 0; i < rich.len; i++)
                if (rich.flags[i] != EMPTY)
                        rich.bytes[n++] = rich.bytes[i];
        struct field field = bash_field(sh, rich.bytes ? rich.bytes : "", n);
        field.substituted = rich.substituted;
        if (n && rich.flags[0] == PLAIN && field.text[0] == '~' && (n == 1 || field.text[1] == '/')) {
                /* The text behind the ~ may have NUL bytes. */
                struct rich home = { 0 };
                put(sh, &home, "/home/user", 10, PLAIN);
                put(sh, &home, field.text + 1, n - 1, PLAIN);
                field.text = home.bytes;
                field.len = home.len;
        }
        return field;
}

/* ---- braces, and splitting into fields ---- */

#define BRACES_MAX 256
#define BRACED_LEN_MAX 2000

static void finish_field(struct shell *sh, struct fields *ret, const struct rich *rich, size_t from, size_t to,
        bool seen)
{
        struct field field = { .text = "", .substituted = rich->substituted, .quoted_hole = true };
        char *text = arena_alloc(sh->arena, to - from + 11);
        size_t n = 0;
        bool bracket = false;
        if (from < to && rich->flags[from] == PLAIN && rich->bytes[from] == '~' &&
                (from + 1 == to || rich->bytes[from + 1] == '/')) {
                for (const char *c = "/home/user"; *c; c++)
                        text[n++] = *c;
                from++;
        }
        for (size_t i = from; i < to; i++) {
                char c = rich->bytes[i];
                if (rich->flags[i] == EMPTY)
                        continue;
                text[n++] = c;
                if (!c) {
                        field.hole = true;
                        field.many = field.many || rich->flags[i] == RESULT;
                        field.quoted_hole = field.quoted_hole && rich->flags[i] == QUOTED;
                }
                if (rich->flags[i] == QUOTED)
                        continue;
                bracket = bracket || c == '[';
                field.glob = field.glob || c == '*' || c == '?' || (c == ']' && bracket && n > 2);
        }
        field.text = text;
        field.len = n;
        if (n || seen)
                bash_field_add(sh, ret, field);
}

static bool is_space(struct shell *sh, char c)
{
        const struct variable *ifs = bash_variable(sh, "IFS", 3, false);
        const struct values *values = bash_values(sh, ifs);
        for (size_t i = 0; i < values->n; i++)
                if (c && memchr(values->texts[i].text, c, values->texts[i].len))
                        return true;
        return c == ' ' || c == '\t' || c == '\n';
}

static void split(struct shell *sh, const struct rich *rich, struct fields *ret)
{
        size_t from = 0;
        bool seen = false;
        for (size_t i = 0; i <= rich->len; i++) {
                bool end = i == rich->len || rich->flags[i] == BREAK ||
                        (rich->flags[i] == RESULT && is_space(sh, rich->bytes[i]));
                seen = seen || (i < rich->len && (rich->flags[i] == QUOTED || rich->flags[i] == EMPTY));
                if (!end)
                        continue;
                finish_field(sh, ret, rich, from, i, seen);
                from = i + 1;
                seen = false;
        }
}

static bool plain(const struct rich *rich, size_t i, char c)
{
        return rich->flags[i] == PLAIN && rich->bytes[i] == c;
}

/* The first {…} with a comma or two dots; its end, and where its parts are divided. */
static bool find_braces(const struct rich *rich, size_t *ret_open, size_t *ret_close, bool *ret_range)
{
        for (size_t open = 0; open < rich->len; open++) {
                size_t depth = 0, comma = 0, dots = 0;
                if (!plain(rich, open, '{'))
                        continue;
                for (size_t i = open; i < rich->len; i++) {
                        depth += plain(rich, i, '{');
                        comma += depth == 1 && plain(rich, i, ',');
                        dots += depth == 1 && i + 1 < rich->len && plain(rich, i, '.') && plain(rich, i + 1, '.');
                        if (!plain(rich, i, '}') || --depth)
                                continue;
                        *ret_open = open;
                        *ret_close = i;
                        *ret_range = !comma;
                        if (comma || dots)
                                return true;
                        break;
                }
        }
        return false;
}

static struct rich joined(struct shell *sh, const struct rich *rich, size_t open, size_t from, size_t to, size_t close)
{
        struct rich ret = { .substituted = rich->substituted };
        const size_t pieces[3][2] = { { 0, open }, { from, to }, { close + 1, rich->len } };
        for (size_t k = 0; k < 3; k++)
                for (size_t i = pieces[k][0]; i < pieces[k][1]; i++)
                        put(sh, &ret, rich->bytes + i, 1, rich->flags[i]);
        return ret;
}

/* Depth first, with a list instead of recursion. */
static void braces(struct shell *sh, struct rich rich, struct fields *ret)
{
        struct rich *todo = arena_alloc(sh->arena, BRACES_MAX * sizeof *todo);
        size_t n = 0, made = 0;
        for (todo[n++] = rich; n;) {
                struct rich one = todo[--n];
                size_t open, close, from;
                bool range;
                if (one.len > BRACED_LEN_MAX || !find_braces(&one, &open, &close, &range)) {
                        split(sh, &one, ret);
                        continue;
                }
                /* From the last to the first, so the first is taken first. */
                for (size_t i = close, to = close, depth = 0; i-- > open;) {
                        depth += plain(&one, i, '}');
                        depth -= depth && plain(&one, i, '{');
                        if (!range && (i == open || (!depth && plain(&one, i, ',')))) {
                                from = i + 1;
                                if (n == BRACES_MAX || ++made > BRACES_MAX) {
                                        bash_field_add(sh, ret,
                                                (struct field){ .text = "", .len = 1, .hole = true, .many = true });
                                        return;
                                }
                                todo[n++] = joined(sh, &one, open, from, to, close);
                                to = i;
                        }
                }
                if (range) {
                        /* {a..e}: the text with a hole; no rule depends on the items. */
                        one.flags[open] = QUOTED;
                        put_hole(sh, &one, true);
                        split(sh, &one, ret);
                }
        }
}

void bash_expand(struct shell *sh, const struct word *word, struct fields *ret)
{
        struct rich rich = rich_of(sh, word, 0);
        if (rich.len && rich.len <= BRACED_LEN_MAX && memchr(rich.bytes, '{', rich.len))
                braces(sh, rich, ret);
        else if (rich.len)
                split(sh, &rich, ret);
}
