/* The program from its first command to its last. */
#include "policy/bash/bash.h"

#define CODE_DEPTH_MAX 8
#define CODE_BYTES_MAX (4 * MIB)

/* ---- commands in words ---- */

static void visit_word(struct shell *sh, const struct word *word);

/* A command in a process of its own leaves the shell unchanged. */
static void walk_apart(struct shell *sh, const struct command *command)
{
        const char *cwd = sh->cwd;
        bool element = sh->element;
        sh->conditional++;
        sh->element = false;
        bash_walk(sh, command);
        sh->conditional--;
        sh->element = element;
        sh->cwd = cwd;
}

void bash_arithmetic(struct shell *sh, const char *text, size_t len, uint32_t start, uint32_t end)
{
        for (size_t at = 0; at < len;) {
                size_t from = at, n;
                while (at < len && bash_is_name((unsigned char)text[at], at == from))
                        at++;
                n = at - from;
                at += n == 0;
                size_t sign = at + strspn(text + at, " \t\n");
                if (!n || sign >= len)
                        continue;
                /* = += <<= ++, not ==; and ++x. */
                size_t signs = strspn(text + sign, "+-*/%<>&^|");
                bool equals = text[sign + signs] == '=' && text[sign + signs + 1] != '=' &&
                        !(signs == 1 && strchr("<>", text[sign]));
                bool counts = signs > 1 && (text[sign] == '+' || text[sign] == '-') && text[sign + 1] == text[sign];
                if (equals || counts)
                        bash_report(sh, FACT_ASSIGN, text + from, n, start, end);
        }
}

static void visit_arithmetic(struct shell *sh, const struct word *word)
{
        size_t len = 0;
        for (const struct part *part = word ? word->parts : NULL; part; part = part->next)
                len += part->kind == PART_TEXT ? part->len : 1;
        if (!len || !sh->report)
                return;
        char *text = arena_alloc(sh->arena, len + 1);
        len = 0;
        for (const struct part *part = word->parts; part; part = part->next) {
                size_t n = part->kind == PART_TEXT ? part->len : 1;
                memcpy(text + len, part->kind == PART_TEXT ? part->text : "0", n);
                len += n;
        }
        bash_arithmetic(sh, text, len, word->start, word->end);
}

static void visit_word(struct shell *sh, const struct word *word)
{
        for (const struct part *part = word ? word->parts : NULL; part; part = part->next) {
                enum fed fed = sh->fed;
                if (part->kind == PART_VARIABLE && part->operator[part->operator[0] == ':'] == '=' && !part->indirect)
                        bash_report(sh, FACT_ASSIGN, part->text, part->len, word->start, word->end);
                if (part->kind == PART_ARITHMETIC)
                        visit_arithmetic(sh, part->operand);
                visit_word(sh, part->index);
                visit_word(sh, part->operand);
                if (!part->body)
                        continue;
                /* The input of a >(…) is the output of the command. */
                sh->fed = part->kind == PART_PROCESS && part->text[0] == '>' ? FED_PIPE : FED_NOT;
                const char *fed_text = sh->fed_text;
                sh->fed_text = NULL;
                walk_apart(sh, part->body);
                sh->fed = fed;
                sh->fed_text = fed_text;
        }
}

static void visit_assign(struct shell *sh, const struct assign *assign)
{
        visit_word(sh, assign->index);
        visit_word(sh, assign->value);
        for (const struct assign *item = assign->items; item; item = item->next) {
                visit_word(sh, item->index);
                visit_word(sh, item->value);
        }
}

/* ---- assignments ---- */

static void assign_array(struct shell *sh, struct variable *v, const struct assign *assign)
{
        if (!assign->append)
                bash_set_item(sh, v, NULL, 0, (struct field){ 0 }, true);
        for (const struct assign *item = assign->items; item; item = item->next) {
                struct fields fields = { 0 };
                struct field key = { 0 };
                sh->choice = 0;
                if (item->index) {
                        key = bash_text(sh, item->index);
                        bash_field_add(sh, &fields, bash_text(sh, item->value));
                } else {
                        bash_expand(sh, item->value, &fields);
                }
                for (size_t i = 0; i < fields.n; i++)
                        bash_set_item(sh, v, item->index ? key.text : NULL, key.len, fields.list[i], false);
        }
}

/* BASH_CMDS and BASH_ALIASES define commands. */
static void assign_command(struct shell *sh, const struct assign *assign)
{
        bool table = (assign->len == 9 && memcmp(assign->name, "BASH_CMDS", 9) == 0) ||
                (assign->len == 12 && memcmp(assign->name, "BASH_ALIASES", 12) == 0);
        struct field code;
        if (!table)
                return;
        if (assign->value)
                code = bash_text(sh, assign->value), bash_embedded(sh, &code, NULL, assign->start, assign->end);
        for (const struct assign *item = assign->items; item; item = item->next)
                if (item->value)
                        code = bash_text(sh, item->value), bash_embedded(sh, &code, NULL, assign->start, assign->end);
}

static void assign_one(struct shell *sh, const struct assign *assign, bool local)
{
        struct choices choices = { 0 };
        struct variable *v = bash_variable(sh, assign->name, assign->len, local);
        bash_report(sh, FACT_ASSIGN, assign->name, assign->len, assign->start, assign->end);
        sh->choice = 0;
        assign_command(sh, assign);
        if (assign->is_array) {
                assign_array(sh, v, assign);
                return;
        }
        while (bash_more(sh, &choices)) {
                struct field value = bash_text(sh, assign->value);
                if (assign->index) {
                        struct field key = bash_text(sh, assign->index);
                        bash_set_item(sh, v, key.text, key.len, value, false);
                        if (field_is(&key, "0") || key.hole)
                                bash_set(sh, v, value, true);
                } else {
                        bash_set(sh, v, value, assign->append);
                }
        }
}

/* ---- redirections ---- */

static bool is_fd(const struct field *target)
{
        size_t digits = strspn(target->text, "0123456789");
        return target->len && (digits == target->len || (digits + 1 == target->len && target->text[digits] == '-'));
}

static void redirect_file(struct shell *sh, const struct redirect *redirect, const struct field *target)
{
        const char *operator = redirect->operator;
        bool reads = operator[0] == '<', writes = operator[0] != '<' || operator[1] == '>';
        if (strcmp(operator, "<&") == 0 || (strcmp(operator, ">&") == 0 && is_fd(target)))
                return;
        if (field_begins(target, "/dev/tcp/") || field_begins(target, "/dev/udp/"))
                bash_report(sh, FACT_OPEN, target->text, target->len, redirect->start, redirect->end);
        if (reads)
                bash_reads(sh, target, redirect->start, redirect->end);
        if (writes)
                bash_writes(sh, target, redirect->start, redirect->end);
}

static void redirects(struct shell *sh, const struct redirect *redirect)
{
        for (; redirect; redirect = redirect->next) {
                struct choices choices = { 0 };
                visit_word(sh, redirect->target);
                bool input = redirect->operator[0] == '<' && !redirect->other_fd;
                if (redirect->document || strcmp(redirect->operator, "<<<") == 0) {
                        sh->choice = 0;
                        struct field text = bash_text(sh, redirect->target);
                        if (!input)
                                continue;
                        sh->fed = FED_DOCUMENT;
                        sh->fed_text = text.text;
                        sh->fed_len = text.len;
                        continue;
                }
                while (bash_more(sh, &choices)) {
                        struct fields fields = { 0 };
                        bash_expand(sh, redirect->target, &fields);
                        if (fields.n)
                                redirect_file(sh, redirect, &fields.list[0]);
                        if (input && fields.n && strcmp(redirect->operator, "<") == 0) {
                                sh->fed = field_begins(&fields.list[0], "/dev/fd/") ? FED_PROCESS : FED_NOT;
                                sh->fed_text = NULL;
                        }
                }
        }
}

/* ---- simple commands ---- */

static void declare(struct shell *sh, const struct command *command)
{
        const struct word *first = command->words;
        bool local = sh->function &&
                (bash_word_is(first, "local") || bash_word_is(first, "declare") || bash_word_is(first, "typeset"));
        for (const struct word *word = command->words; word; word = word->next)
                if (word->array)
                        assign_one(sh, word->array, local);
}

/* NAME=VALUE in front of a command. */
static void assign_before(struct shell *sh, const struct assign *assign)
{
        bash_report(sh, FACT_ASSIGN, assign->name, assign->len, assign->start, assign->end);
        if (assign->len == 3 && memcmp(assign->name, "IFS", 3) == 0) {
                sh->choice = 0;
                sh->separators = bash_text(sh, assign->value).text;
        }
}

static void simple(struct shell *sh, const struct command *command)
{
        struct choices choices = { 0 };
        const char *separators = sh->separators;
        for (const struct assign *assign = command->assigns; assign; assign = assign->next) {
                visit_assign(sh, assign);
                if (command->words)
                        assign_before(sh, assign);
                else
                        assign_one(sh, assign, false);
        }
        for (const struct word *word = command->words; word; word = word->next) {
                visit_word(sh, word);
                if (word->array)
                        visit_assign(sh, word->array);
        }
        declare(sh, command);
        while (command->words && bash_more(sh, &choices)) {
                struct run run = { .start = command->words->start, .end = command->words->end };
                for (const struct word *word = command->words; word; word = word->next) {
                        if (!word->array)
                                bash_expand(sh, word, &run.words);
                        run.end = word->end;
                }
                if (run.words.n)
                        bash_run(sh, &run);
        }
        sh->separators = separators;
}

/* ---- the output of echo ---- */

static bool escapes(const struct field *option)
{
        return option->len > 1 && option->text[0] == '-' && strspn(option->text + 1, "neE") == option->len - 1;
}

static bool echo_output(struct shell *sh, const struct fields *words, struct buf *out)
{
        bool escape = false, feed = true;
        size_t i = 1;
        for (; i < words->n && escapes(&words->list[i]); i++) {
                escape = escape || strchr(words->list[i].text, 'e');
                feed = feed && !strchr(words->list[i].text, 'n');
        }
        for (size_t first = i; i < words->n; i++) {
                const struct field *field = &words->list[i];
                size_t len = field->len;
                if (field->hole || field->glob)
                        return false;
                buf_add(out, " ", i > first);
                const char *text = escape ? bash_ansi(sh->arena, field->text, len, &len) : field->text;
                buf_add(out, text, len);
        }
        return buf_add(out, "\n", feed);
}

static bool printf_output(struct shell *sh, const struct fields *words, struct buf *out)
{
        size_t len, arg = 2 + (words->n > 1 && field_is(&words->list[1], "--"));
        for (size_t i = 1; i < words->n; i++)
                if (words->list[i].hole || words->list[i].glob)
                        return false;
        if (words->n < arg || words->list[arg - 1].text[0] == '-')
                return false;
        const char *format = bash_ansi(sh->arena, words->list[arg - 1].text, words->list[arg - 1].len, &len);
        for (bool again = true; again && out->len < TEXT_MAX;) {
                again = false;
                for (size_t i = 0; i < len; i++) {
                        size_t text_len = 0;
                        const char *text = "";
                        if (format[i] != '%' || i + 1 == len || format[i + 1] == '%') {
                                i += format[i] == '%' && i + 1 < len;
                                buf_add(out, format + i, 1);
                                continue;
                        }
                        i++;
                        if (arg < words->n) {
                                text = words->list[arg].text;
                                text_len = words->list[arg++].len;
                                again = arg < words->n;
                        }
                        if (format[i] == 'b')
                                text = bash_ansi(sh->arena, text, text_len, &text_len);
                        else if (format[i] != 's' && format[i] != 'd' && format[i] != 'c')
                                return false;
                        buf_add(out, text, format[i] == 'c' && text_len ? 1 : text_len);
                }
        }
        return true;
}

static const struct command *only_simple(const struct command *command)
{
        while (command && !command->next &&
                (command->kind == NODE_LIST || command->kind == NODE_AND_OR || command->kind == NODE_PIPELINE)) {
                if (command->redirects || !command->child || command->child->next)
                        return NULL;
                command = command->child;
        }
        return command && command->kind == NODE_SIMPLE && command->words ? command : NULL;
}

/* cat <<END, cat <<<text */
static bool document_output(struct shell *sh, const struct command *command, const char **ret, size_t *ret_len)
{
        const struct redirect *redirect = command->redirects;
        if (!bash_word_is(command->words, "cat") ||
                (command->words->next && (!bash_word_is(command->words->next, "-") || command->words->next->next)) ||
                redirect->next || redirect->other_fd ||
                !(redirect->document || strcmp(redirect->operator, "<<<") == 0) || bash_function(sh, "cat", 3))
                return false;
        struct field text = bash_text(sh, redirect->target);
        while (text.len && text.text[text.len - 1] == '\n')
                text.len--;
        *ret = arena_copy(sh->arena, text.text, text.len);
        *ret_len = text.len;
        return true;
}

bool bash_output(struct shell *sh, const struct command *command, const char **ret, size_t *ret_len)
{
        struct fields words = { 0 };
        struct buf out;
        command = only_simple(command);
        if (!command || sh->depth > CODE_DEPTH_MAX)
                return false;
        if (command->redirects)
                return document_output(sh, command, ret, ret_len);
        sh->depth++;
        for (const struct word *word = command->words; word; word = word->next)
                if (!word->array)
                        bash_expand(sh, word, &words);
        sh->depth--;
        if (!words.n || bash_function(sh, words.list[0].text, words.list[0].len))
                return false;
        buf_init(&out, TEXT_MAX);
        const struct field *first = words.list;
        bool good = false;
        if (field_is(first, "echo"))
                good = echo_output(sh, &words, &out);
        else if (field_is(first, "printf"))
                good = printf_output(sh, &words, &out);
        else if ((field_is(first, "command") || field_is(first, "type") || field_is(first, "which")) && words.n > 1) {
                const struct field *last = &words.list[words.n - 1];
                good = !last->hole && last->len && last->text[0] != '-' &&
                        (words.n == 2 ? !field_is(first, "command") : words.n == 3) &&
                        buf_add(&out, last->text, last->len);
        }
        while (out.len && out.bytes[out.len - 1] == '\n')
                out.len--;
        *ret = arena_copy(sh->arena, out.bytes ? out.bytes : "", out.len);
        *ret_len = out.len;
        buf_done(&out);
        return good;
}

/* ---- compound commands ---- */

/* Whether two parts of a pipe begin with the same word. */
static bool repeats(const struct command *command)
{
        for (const struct command *one = command->child; one; one = one->next)
                for (const struct command *two = one->next; two; two = two->next) {
                        const struct part *a = one->words && one->kind == NODE_SIMPLE ? one->words->parts : NULL;
                        const struct part *b = two->words && two->kind == NODE_SIMPLE ? two->words->parts : NULL;
                        if (a && b && a->kind == b->kind && a->len == b->len && a->text && b->text &&
                                memcmp(a->text, b->text, a->len) == 0)
                                return true;
                }
        return false;
}

static void pipeline(struct shell *sh, const struct command *command, bool background)
{
        bool many = command->child && command->child->next, element = sh->element;
        enum fed fed = sh->fed;
        const char *fed_text = sh->fed_text, *text = NULL, *cwd = sh->cwd;
        size_t fed_len = sh->fed_len, len = 0;
        sh->conditional += many || background;
        /* f | f, f & double the processes; recursion in a branch or a loop may come to its end. */
        const bool doubles = background || (many && (!(sh->conditional - 1 + sh->loops) || repeats(command)));
        for (const struct command *child = command->child; child; child = child->next) {
                sh->element = doubles || (!many && element && child->kind != NODE_FUNCTION);
                bash_walk(sh, child);
                if (!child->next)
                        break;
                sh->choice = 0;
                sh->fed = FED_PIPE;
                sh->fed_text = bash_output(sh, child, &text, &len) ? text : NULL;
                sh->fed_len = len;
        }
        sh->conditional -= many || background;
        sh->element = element;
        sh->fed = fed;
        sh->fed_text = fed_text;
        sh->fed_len = fed_len;
        sh->cwd = many || background ? cwd : sh->cwd;
}

static void and_or(struct shell *sh, const struct command *command)
{
        for (const struct command *child = command->child; child; child = child->next) {
                sh->conditional += child != command->child;
                pipeline(sh, child, command->background);
                sh->conditional -= child != command->child;
        }
}

static void for_words(struct shell *sh, const struct command *command)
{
        struct variable *v = bash_variable(sh, command->name, command->name_len, false);
        struct choices choices = { 0 };
        bash_report(sh, FACT_ASSIGN, command->name, command->name_len, command->start, command->end);
        sh->loops++;
        for (const struct word *word = command->words; word; word = word->next)
                visit_word(sh, word);
        while (bash_more(sh, &choices)) {
                struct fields fields = { 0 };
                struct part all = { .kind = PART_VARIABLE, .text = "@", .len = 1, .quoted = true };
                const struct word args = { .parts = &all };
                for (const struct word *word = command->no_words ? &args : command->words; word; word = word->next)
                        bash_expand(sh, word, &fields);
                for (size_t i = 0; i < fields.n; i++) {
                        struct field value = fields.list[i];
                        if (value.many || value.glob)
                                value = value.many ? (struct field){ .text = "", .len = 1, .hole = true } : value;
                        bash_set(sh, v, value, false);
                }
        }
        sh->loops--;
}

static void function(struct shell *sh, const struct command *command)
{
        struct function *outer = sh->function, *f = sh->functions;
        struct frame *frame = sh->frame;
        unsigned conditional = sh->conditional, loops = sh->loops;
        bool element = sh->element;
        enum fed fed = sh->fed;
        const char *cwd = sh->cwd, *fed_text = sh->fed_text;
        const size_t fed_len = sh->fed_len;
        while (f &&
                !(f->start == command->start && f->len == command->name_len &&
                        memcmp(f->name, command->name, f->len) == 0))
                f = f->next;
        if (!f) {
                f = arena_alloc(sh->arena, sizeof *f);
                *f = (struct function){ .name = arena_copy(sh->arena, command->name, command->name_len),
                        .len = command->name_len,
                        .called = UINT32_MAX,
                        .start = command->start,
                        .end = command->end,
                        .certain = !sh->conditional && !sh->loops && !outer && !sh->fixed,
                        .process = sh->process,
                        .next = sh->functions };
                sh->functions = f;
        }
        sh->function = f;
        sh->frame = &f->frame;
        f->frame.shift = 0;
        f->frame.shifted = false;
        sh->conditional = sh->loops = 0;
        sh->element = false;
        sh->fed = f->fed;
        sh->fed_text = f->fed_text;
        sh->fed_len = f->fed_len;
        sh->cwd = NULL;
        bash_walk(sh, command->child);
        sh->function = outer;
        sh->frame = frame;
        sh->conditional = conditional;
        sh->loops = loops;
        sh->element = element;
        sh->fed = fed;
        sh->fed_text = fed_text;
        sh->fed_len = fed_len;
        sh->cwd = cwd;
}

static void children(struct shell *sh, const struct command *command)
{
        for (const struct command *child = command->child; child; child = child->next)
                bash_walk(sh, child);
}

static void inside(struct shell *sh, const struct command *command)
{
        bool element = sh->element;
        const char *cwd = sh->cwd;
        /* f | { f; } is as direct as f | f; a loop or a branch is not. */
        sh->element = element &&
                (command->kind == NODE_GROUP || command->kind == NODE_SUBSHELL || command->kind == NODE_LIST);
        switch (command->kind) {
        case NODE_GROUP: case NODE_LIST: children(sh, command); break;
        case NODE_COPROC:
                sh->element = true;
                sh->fed = FED_PIPE;
                sh->fed_text = NULL;
                /* fall through */
        case NODE_SUBSHELL:
                sh->conditional++;
                children(sh, command);
                sh->conditional--;
                sh->cwd = cwd;
                break;
        case NODE_LOOP: case NODE_FOR:
                for (const struct word *word = command->words; command->kind == NODE_LOOP && word; word = word->next) {
                        visit_word(sh, word);
                        visit_arithmetic(sh, word);
                }
                if (command->kind == NODE_FOR)
                        for_words(sh, command);
                sh->conditional++;
                sh->loops++;
                children(sh, command);
                sh->loops--;
                sh->conditional--;
                break;
        default:
                for (const struct word *word = command->words; word; word = word->next) {
                        visit_word(sh, word);
                        if (command->kind == NODE_ARITHMETIC)
                                visit_arithmetic(sh, word);
                }
                sh->conditional++;
                children(sh, command);
                sh->conditional--;
                break;
        }
        sh->element = element;
}

/* "exec <…": the input of all commands from here on. */
static void exec_input(struct shell *sh, const struct redirect *redirect)
{
        bool input = false;
        for (; redirect; redirect = redirect->next)
                input = input || (redirect->operator[0] == '<' && redirect->operator[1] != '&' && !redirect->other_fd);
        if (!input)
                return;
        sh->exec_fed = sh->fed;
        sh->exec_text = sh->fed_text;
        sh->exec_len = sh->fed_len;
}

void bash_walk(struct shell *sh, const struct command *command)
{
        enum fed fed = sh->fed;
        const char *fed_text = sh->fed_text;
        size_t fed_len = sh->fed_len;
        if (sh->too_complex)
                return;
        if (command->kind == NODE_SIMPLE && fed == FED_NOT && sh->exec_fed != FED_NOT)
                sh->fed = sh->exec_fed, sh->fed_text = sh->exec_text, sh->fed_len = sh->exec_len;
        redirects(sh, command->redirects);
        if (command->kind == NODE_SIMPLE && command->words && !command->words->next &&
                bash_word_is(command->words, "exec"))
                exec_input(sh, command->redirects);
        switch (command->kind) {
        case NODE_AND_OR: and_or(sh, command); break;
        case NODE_PIPELINE: pipeline(sh, command, false); break;
        case NODE_SIMPLE: simple(sh, command); break;
        case NODE_FUNCTION: function(sh, command); break;
        default: inside(sh, command); break;
        }
        sh->fed = fed;
        sh->fed_text = fed_text;
        sh->fed_len = fed_len;
}

/* ---- code in texts ---- */

bool bash_embedded(struct shell *sh, const struct field *code, const struct fields *args, uint32_t start, uint32_t end)
{
        struct bash_reader reader = { .text = code->text,
                .len = code->len,
                .arena = sh->arena,
                .fixed = true,
                .fixed_start = start,
                .fixed_end = end,
                .extglob = true,
                .depth = sh->depth * (DEPTH_MAX / CODE_DEPTH_MAX) };
        if (sh->depth >= CODE_DEPTH_MAX || (sh->code_bytes += code->len) > CODE_BYTES_MAX) {
                sh->too_complex = true;
                return false;
        }
        struct shell before = *sh;
        struct frame frame = { .n = 1, .zero = args && args->n ? &args->list[0] : NULL };
        for (size_t i = 1; args && i < args->n; i++)
                bash_field_add(sh, &frame.calls[0], args->list[i]);
        const struct command *list = bash_parse(&reader);
        if (!sh->fixed)
                sh->start = start, sh->end = end;
        sh->fixed = true;
        sh->depth++;
        sh->conditional++;
        sh->element = false;
        if (args)
                sh->frame = &frame;
        bash_walk(sh, list);
        sh->frame = before.frame;
        sh->fixed = before.fixed;
        sh->start = before.start;
        sh->end = before.end;
        sh->depth--;
        sh->conditional--;
        sh->element = before.element;
        sh->choice = before.choice;
        sh->total = before.total;
        sh->cwd = before.cwd;
        if (reader.failed && !code->hole)
                bash_report(sh, FACT_CODE, "broken", 6, start, end);
        return !reader.failed;
}
