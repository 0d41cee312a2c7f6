/* A command with known words: a function, a builtin with an effect on the shell, or a wrapper of another command. */
#include "policy/bash/bash.h"

#define WRAPPED_MAX 30         /* env env env … */

struct function *bash_function(const struct shell *sh, const char *name, size_t len)
{
        for (struct function *f = sh->functions; f; f = f->next)
                if (f->len == len && memcmp(f->name, name, len) == 0)
                        return f;
        return NULL;
}

static void code_say(struct shell *sh, const struct run *run, const char *how)
{
        bash_report(sh, FACT_CODE, how, strlen(how), run->start, run->end);
}

/* The command from its word `at` on. */
static void run_rest(struct shell *sh, const struct run *run, size_t at)
{
        if (at >= run->words.n || run->depth > WRAPPED_MAX)
                return;
        struct run rest = *run;
        rest.words.list += at;
        rest.words.n -= at;
        rest.words.size = rest.words.n;
        rest.depth++;
        bash_run(sh, &rest);
}

/* ---- options ---- */

/* Steps over options; `with` are letters with a value in a word of its own, `longs` such long options. */
static size_t skip_options(const struct fields *words, size_t at, const char *with, const char *longs)
{
        for (; at < words->n; at++) {
                const struct field *word = &words->list[at];
                if (field_is(word, "--"))
                        return at + 1;
                if (word->len < 2 || word->text[0] != '-' || word->many)
                        return at;
                if (word->text[1] == '-') {
                        const char *found = !memchr(word->text, '=', word->len) ? strstr(longs, word->text) : NULL;
                        at += found && (found[word->len] == ' ' || !found[word->len]);
                        continue;
                }
                /*
                 * In a row of letters, the value of the first letter with a value is the rest of the word, or the next
                 * word.
                 */
                for (size_t i = 1; i < word->len; i++)
                        if (word->text[i] && strchr(with, word->text[i])) {
                                at += i + 1 == word->len;
                                break;
                        }
        }
        return at < words->n ? at : words->n;   /* the last may lack its value */
}

/* ---- shells, and code in words ---- */

static void run_code(struct shell *sh, const struct run *run, size_t at, bool own_args)
{
        const struct field *code = &run->words.list[at];
        if (own_args && (code->substituted || (code->hole && (!run->no_function || code->len == 1))))
                code_say(sh, run, "argument");
        struct fields args = { run->words.list + at + 1, run->words.n - at - 1, 0 };
        const unsigned process = sh->process;
        if (own_args)
                sh->process = process * 31 + run->start + 1;
        bash_embedded(sh, code, own_args ? &args : NULL, run->start, run->end);
        sh->process = process;
}

static void fed_say(struct shell *sh, const struct run *run)
{
        if (sh->fed == FED_PIPE)
                code_say(sh, run, "pipe");
        else if (sh->fed == FED_DOCUMENT)
                code_say(sh, run, "document");
        else if (sh->fed == FED_PROCESS)
                code_say(sh, run, "substitution");
        if (sh->fed != FED_NOT && sh->fed_text) {
                struct field code = { .text = sh->fed_text, .len = sh->fed_len };
                struct fields none = { 0 };
                bash_embedded(sh, &code, &none, run->start, run->end);
        }
}

static bool is_input(const struct field *file)
{
        return field_is(file, "/dev/stdin") || field_is(file, "-") || field_is(file, "/proc/self/fd/0") ||
                field_is(file, "/dev/fd/0");
}

/* A file read by a shell: an ordinary file is unknown. */
static void run_script(struct shell *sh, const struct run *run, const struct field *file)
{
        if (is_input(file))
                fed_say(sh, run);
        else if (field_begins(file, "/dev/fd/") || field_begins(file, "/proc/self/fd/"))
                code_say(sh, run, "substitution");
}

static void shell(struct shell *sh, const struct run *run)
{
        const struct fields *words = &run->words;
        bool code = false, input = false;
        size_t at = 1;
        for (; at < words->n; at++) {
                const struct field *word = &words->list[at];
                if (word->len < 2 || (word->text[0] != '-' && word->text[0] != '+') || word->many)
                        break;
                if (field_is(word, "--") && ++at)
                        break;
                if (field_is(word, "--rcfile") || field_is(word, "--init-file")) {
                        if (++at < words->n)
                                run_script(sh, run, &words->list[at]);
                        continue;
                }
                if (field_is(word, "--command"))
                        code = true;
                if (word->text[1] == '-')
                        continue;
                code = code || (memchr(word->text, 'c', word->len) && word->text[0] == '-');
                input = input || (memchr(word->text, 's', word->len) && word->text[0] == '-');
                at += word->text[word->len - 1] == 'o' || word->text[word->len - 1] == 'O';
        }
        if (code && at < words->n) {
                run_code(sh, run, at, true);
                return;
        }
        if (at < words->n && !input && !is_input(&words->list[at]))
                run_script(sh, run, &words->list[at]);
        else
                fed_say(sh, run);
}

/* ---- wrappers of other commands ---- */

struct wrapper {
        const char *name;
        const char *with, *longs;      /* options with a value in the next word */
        unsigned operands;             /* words in front of the command */
        bool binary;                   /* calls no functions */
};

static const struct wrapper wrappers[] = {
        { "command", "", "", 0, true },
        { "builtin", "", "", 0, true },
        { "exec", "a", "", 0, true },
        { "env", "uCS", "--unset --chdir --split-string", 0, true },
        { "nohup", "", "", 0, true },
        { "timeout", "sk", "--signal --kill-after", 1, true },
        { "nice", "n", "--adjustment", 0, true },
        { "setsid", "", "", 0, true },
        { "stdbuf", "ioe", "--input --output --error", 0, true },
        { "time", "fo", "--format --output", 0, true },
        { "ionice", "cnpPu", "--class --classdata", 0, true },
        { "chrt", "TPD", "", 1, true },
        { "taskset", "", "", 1, true },
        { "busybox", "", "", 0, true },
        { "toybox", "", "", 0, true },
        { "strace", "eopsuabEIOPSX", "", 0, true },
        { "ltrace", "eopsuaADFlnx", "", 0, true },
        { "watch", "nq", "--interval", 0, true },
        { "setarch", "", "", 1, true },
        { "linux32", "", "", 0, true },
        { "linux64", "", "", 0, true },
        { "prlimit", "", "", 0, true },
        { "choom", "n", "", 0, true },
        { "chronic", "", "", 0, true },
        { "unbuffer", "", "", 0, true },
        { "fakeroot", "", "", 0, true },
        { "faketime", "", "", 1, true },
        { "flock", "wE", "--timeout", 1, true },
        { "catchsegv", "", "", 0, true },
        { "xvfb-run", "nsef", "", 0, true },
        { "numactl", "", "", 0, true },
        { "coproc", "", "", 0, false },
        { "torsocks", "", "", 0, true },
        { "proxychains", "", "", 0, true },
        { "rlwrap", "", "", 0, true },
        { "parallel", "jNnIaSL", "--jobs", 0, false },
        { "sem", "j", "", 0, true },
        { "start-stop-daemon", "pnuxagcdNPIkr", "", 0, true },
        { "systemd-run", "pu", "", 0, true },
        { "xargs", "IdaEnLPs",
                "--max-args --max-procs --delimiter --arg-file --max-lines --max-chars --process-slot-var", 0, true },
        { "dbus-run-session", "", "", 0, true },
        { "cgexec", "g", "", 0, true },
};

static const struct wrapper *wrapper_of(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(wrappers); i++)
                if (strcmp(wrappers[i].name, name) == 0)
                        return &wrappers[i];
        return NULL;
}

static bool is_assignment(const struct field *word)
{
        size_t n = 0;
        while (n < word->len && bash_is_name((unsigned char)word->text[n], n == 0))
                n++;
        return n && n < word->len && word->text[n] == '=';
}

static void say_assignment(struct shell *sh, const struct run *run, const struct field *word)
{
        bash_report(sh, FACT_ASSIGN, word->text,
                (size_t)((const char *)memchr(word->text, '=', word->len) - word->text), run->start, run->end);
}

/* Input as a word is no constant of the program, even if known. */
static void add_input(struct shell *sh, struct fields *words, struct field field)
{
        field.substituted = true;
        bash_field_add(sh, words, field);
}

/* The words added by xargs: known if echo gave the input, else unknown. */
static void xargs(struct shell *sh, const struct run *run, size_t at)
{
        struct run inner = *run;
        const char *replace = NULL;
        size_t replace_len = 0;
        for (size_t i = 1; i < at; i++) {
                const struct field *word = &run->words.list[i];
                if (field_begins(word, "-I") || field_is(word, "-i") || field_begins(word, "--replace")) {
                        replace = field_is(word, "-I") && i + 1 < at ? run->words.list[i + 1].text
                                  : field_begins(word, "-I") && word->len > 2 ? word->text + 2
                                  : field_begins(word, "--replace=") ? word->text + 10 : "{}";
                        replace_len = strlen(replace);
                }
        }
        inner.words = (struct fields){ 0 };
        inner.no_function = true;
        inner.depth++;
        struct field code = { .text = sh->fed_text, .len = sh->fed_len },
                     hole = { .text = "", .len = 1, .hole = true, .many = true };
        const struct field *given = sh->fed == FED_PIPE && sh->fed_text ? &code : &hole;
        for (size_t i = at; i < run->words.n; i++) {
                struct field word = run->words.list[i];
                const char *found = replace_len ? memmem(word.text, word.len, replace, replace_len) : NULL;
                if (found) {
                        size_t before = (size_t)(found - word.text),
                               len = before + given->len + word.len - before - replace_len;
                        char *text = arena_alloc(sh->arena, len + 1);
                        memcpy(text, word.text, before);
                        memcpy(text + before, given->text, given->len);
                        memcpy(text + before + given->len, found + replace_len, word.len - before - replace_len);
                        word = (struct field){ .text = text,
                                .len = len,
                                .hole = memchr(text, 0, len) != NULL,
                                .quoted_hole = true,
                                .substituted = word.len == replace_len };
                }
                bash_field_add(sh, &inner.words, word);
        }
        if (!replace && given == &code)
                for (size_t i = 0, from = 0; i <= code.len; i++)
                        if (i == code.len || strchr(" \t\n", code.text[i])) {
                                if (i > from)
                                        add_input(sh, &inner.words, bash_field(sh, code.text + from, i - from));
                                from = i + 1;
                        }
        if (!replace && given == &hole)
                add_input(sh, &inner.words, hole);
        enum fed fed = sh->fed;
        sh->fed = FED_NOT;
        if (at < run->words.n)
                bash_run(sh, &inner);
        sh->fed = fed;
}

static void find(struct shell *sh, const struct run *run)
{
        const struct fields *words = &run->words;
        size_t from = 1;
        while (from < words->n &&
                (field_is(&words->list[from], "-H") || field_is(&words->list[from], "-L") ||
                        field_is(&words->list[from], "-P")))
                from++;
        for (size_t i = from; i < words->n; i++) {
                const struct field *word = &words->list[i];
                if (!field_is(word, "-exec") && !field_is(word, "-execdir") && !field_is(word, "-ok") &&
                        !field_is(word, "-okdir"))
                        continue;
                struct run inner = {
                        .start = run->start, .end = run->end, .no_function = true, .depth = run->depth + 1
                };
                for (i++; i < words->n && !field_is(&words->list[i], ";") &&
                          !(field_is(&words->list[i], "+") && field_is(&words->list[i - 1], "{}")); i++) {
                        struct field one = words->list[i];
                        if (field_is(&one, "{}"))
                                one = from < words->n && words->list[from].text[0] == '/'
                                        ? words->list[from]
                                        : (struct field){ .text = "", .len = 1, .hole = true, .many = true };
                        bash_field_add(sh, &inner.words, one);
                }
                if (inner.words.n && inner.depth < WRAPPED_MAX)
                        bash_run(sh, &inner);
        }
}

static void env_split(struct shell *sh, const struct run *run)
{
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                struct field code = { 0 };
                if (field_is(word, "-S") || field_is(word, "--split-string") || field_is(word, "-vS"))
                        code = i + 1 < run->words.n ? run->words.list[i + 1] : code;
                else if (field_begins(word, "-S"))
                        code = bash_field(sh, word->text + 2, word->len - 2);
                else if (field_begins(word, "--split-string="))
                        code = bash_field(sh, word->text + 15, word->len - 15);
                if (code.len)
                        bash_embedded(sh, &code, NULL, run->start, run->end);
        }
}

/* script -c CODE FILE */
static void script(struct shell *sh, const struct run *run)
{
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                bool row = word->len > 1 && word->text[0] == '-' && word->text[1] != '-';
                if (field_begins(word, "--command=")) {
                        struct run inner = *run;
                        struct field code = bash_field(sh, word->text + 10, word->len - 10);
                        inner.words = (struct fields){ &code, 1, 1 };
                        run_code(sh, &inner, 0, true);
                } else if (i + 1 < run->words.n &&
                        (field_is(word, "--command") || (row && word->text[word->len - 1] == 'c'))) {
                        run_code(sh, run, i + 1, true);
                }
        }
}

static void wrapped(struct shell *sh, const struct run *run, const struct wrapper *wrapper)
{
        const struct fields *words = &run->words;
        const char *name = wrapper->name;
        size_t at = skip_options(words, 1, wrapper->with, wrapper->longs);
        if (strcmp(name, "command") == 0 && at > 1)
                for (size_t i = 1; i < at; i++)
                        if (words->list[i].text[0] == '-' &&
                                (strchr(words->list[i].text, 'v') || strchr(words->list[i].text, 'V')))
                                return;
        if (strcmp(name, "env") == 0)
                env_split(sh, run);
        if (strcmp(name, "flock") == 0 || strcmp(name, "watch") == 0)
                for (size_t i = 1; i + 1 < words->n; i++)
                        if (field_is(&words->list[i], "-c")) {
                                run_code(sh, run, i + 1, true);
                                return;
                        }
        for (; (strcmp(name, "env") == 0 || strcmp(name, "fakeroot") == 0) && at < words->n &&
                is_assignment(&words->list[at]);
                at++)
                say_assignment(sh, run, &words->list[at]);
        at = at + wrapper->operands < words->n ? at + wrapper->operands : words->n;
        if (strcmp(name, "xargs") == 0) {
                xargs(sh, run, at);
                return;
        }
        if (strcmp(name, "watch") == 0 && at + 1 == words->n) {
                run_code(sh, run, at, false);
                return;
        }
        struct run inner = *run;
        inner.no_function = wrapper->binary;
        run_rest(sh, &inner, at);
}

/* ---- builtins with an effect on the shell ---- */

/* declare, export, local: NAME=value as words. */
static void declared(struct shell *sh, const struct run *run, const char *name)
{
        const struct fields *words = &run->words;
        const bool exports = strcmp(name, "export") == 0;
        bool local = sh->function && !exports && strcmp(name, "readonly") != 0, reference = false, functions = false;
        for (size_t i = 1; i < words->n; i++) {
                const struct field *word = &words->list[i];
                if (word->len && word->text[0] == '-') {
                        reference = reference || (strchr(word->text, 'n') && !exports);
                        functions = functions || strchr(word->text, 'f');
                        local = local && !strchr(word->text, 'g');
                        continue;
                }
                size_t n = 0;
                while (n < word->len && bash_is_name((unsigned char)word->text[n], n == 0))
                        n++;
                struct function *f = functions && exports ? bash_function(sh, word->text, word->len) : NULL;
                if (f)
                        f->exported = true;
                bool append = n + 1 < word->len && word->text[n] == '+' && word->text[n + 1] == '=';
                if (n && n + append < word->len && word->text[n + append] == '=') {
                        struct field value = bash_field(sh, word->text + n + append + 1, word->len - n - append - 1);
                        bash_report(sh, FACT_ASSIGN, word->text, n, run->start, run->end);
                        if (reference && !value.hole)
                                bash_report(sh, FACT_ASSIGN, value.text, value.len, run->start, run->end);
                        if (reference)
                                value = (struct field){ .text = "", .len = 1, .hole = true };
                        value.substituted = word->substituted;
                        bash_set(sh, bash_variable(sh, word->text, n, local), value, append);
                } else if (n == word->len && n && local) {
                        bash_variable(sh, word->text, n, true);
                }
        }
}

/* The n-th piece of the input line, or with `rest` the line from the n-th piece on. */
static struct field piece(struct shell *sh, size_t n, bool rest)
{
        const char *text = sh->fed_text, *end = text + sh->fed_len,
                   *between = sh->separators ? sh->separators : " \t\n";
        size_t len = 0;
        for (; n; n--) {
                while (text < end && *text != '\n' && !(*text && strchr(between, *text)))
                        text++;
                bool blank = text < end && (*text == ' ' || *text == '\t');
                text += text < end && *text != '\n';
                while (blank && text < end && (*text == ' ' || *text == '\t') && strchr(between, *text))
                        text++;
        }
        while (text + len < end && text[len] != '\n' && (rest || !text[len] || !strchr(between, text[len])))
                len++;
        return bash_field(sh, text, len);
}

static void read_array(struct shell *sh, const struct run *run, const struct field *name)
{
        struct field hole = { .text = "", .len = 1, .hole = true, .many = true };
        if (name->hole || !name->len || !bash_is_name((unsigned char)name->text[0], true))
                return;
        struct variable *v = bash_variable(sh, name->text, name->len, false);
        bash_report(sh, FACT_ASSIGN, name->text, name->len, run->start, run->end);
        bash_set_item(sh, v, NULL, 0, (struct field){ 0 }, true);
        bash_set_item(sh, v, NULL, 0, hole, false);
}

static void read_into(struct shell *sh, const struct run *run, size_t from)
{
        const struct fields *words = &run->words;
        for (size_t i = 1; i < from; i++)
                if (words->list[i].text[0] == '-' && words->list[i].text[words->list[i].len - 1] == 'a' &&
                        i + 1 < words->n)
                        read_array(sh, run, &words->list[i + 1]);
        for (size_t i = from; i < words->n; i++) {
                const struct field *word = &words->list[i];
                struct field value = { .text = "", .len = 1, .hole = true };
                if (word->hole || !word->len || !bash_is_name((unsigned char)word->text[0], true))
                        continue;
                bash_report(sh, FACT_ASSIGN, word->text, word->len, run->start, run->end);
                if (sh->fed != FED_NOT && sh->fed_text)
                        value = piece(sh, i - from, i + 1 == words->n);
                bash_set(sh, bash_variable(sh, word->text, word->len, false), value, false);
        }
}

static void printf_into(struct shell *sh, const struct run *run)
{
        const struct fields *words = &run->words;
        const char *text;
        size_t len;
        if (words->n < 4 || !field_is(&words->list[1], "-v") || words->list[2].hole)
                return;
        struct part parts[16] = { { .kind = PART_TEXT, .text = "printf", .len = 6 } };
        struct word list[16] = { { .parts = &parts[0] } };
        size_t n = 1;
        for (size_t i = 3; i < words->n && n < ARRAY_LEN(parts); i++, n++) {
                parts[n] = (struct part){
                        .kind = PART_TEXT, .quoted = true, .text = words->list[i].text, .len = words->list[i].len
                };
                list[n] = (struct word){ .parts = &parts[n] };
                list[n - 1].next = &list[n];
        }
        struct command command = { .kind = NODE_SIMPLE, .words = list };
        struct field value = { .text = "", .len = 1, .hole = true };
        if (bash_output(sh, &command, &text, &len))
                value = bash_field(sh, text, len);
        bash_report(sh, FACT_ASSIGN, words->list[2].text, words->list[2].len, run->start, run->end);
        bash_set(sh, bash_variable(sh, words->list[2].text, words->list[2].len, false), value, false);
}

static void add_call(struct shell *sh, struct frame *frame, const struct fields *words, size_t from)
{
        struct fields call = { 0 };
        for (size_t i = from; i < words->n; i++)
                bash_field_add(sh, &call, words->list[i]);
        for (size_t i = 0; i < frame->n; i++) {
                size_t k = 0;
                while (k < call.n && frame->calls[i].n == call.n && frame->calls[i].list[k].len == call.list[k].len &&
                       memcmp(frame->calls[i].list[k].text, call.list[k].text, call.list[k].len) == 0)
                        k++;
                if (k == call.n && frame->calls[i].n == call.n)
                        return;
        }
        if (frame->n == VALUES_MAX) {
                frame->calls[0] = (struct fields){ 0 };
                bash_field_add(sh, &frame->calls[0],
                        (struct field){ .text = "", .len = 1, .hole = true, .many = true });
        } else {
                frame->calls[frame->n++] = call;
        }
}

static void set_args(struct shell *sh, const struct run *run)
{
        const struct fields *words = &run->words;
        for (size_t at = 1; at < words->n; at++) {
                const struct field *word = &words->list[at];
                bool dashes = field_is(word, "--");
                if (!dashes && word->len && (word->text[0] == '-' || word->text[0] == '+')) {
                        at += word->text[word->len - 1] == 'o';
                        continue;
                }
                if (!sh->conditional && !sh->loops && !sh->function)
                        sh->frame->n = 0;
                /* The shell may keep the arguments of its start. */
                else if (sh->frame == &sh->top && !sh->top.n)
                        bash_field_add(sh, &sh->top.calls[sh->top.n++],
                                (struct field){ .text = "", .len = 1, .hole = true, .many = true });
                sh->frame->shift = 0;
                add_call(sh, sh->frame, words, at + dashes);
                return;
        }
}

static void shift(struct shell *sh, const struct run *run)
{
        const struct field *by = run->words.n > 1 ? &run->words.list[1] : NULL;
        if (sh->loops && !sh->frame->loop_shifts)
                sh->frame->loop_shifts = sh->learned = true;
        if (sh->loops || sh->conditional || (by && (by->hole || strspn(by->text, "0123456789") != by->len)))
                sh->frame->shifted = true;
        else
                sh->frame->shift += by ? strtoul(by->text, NULL, 10) % 1000 : 1;
}

static void change_folder(struct shell *sh, const struct run *run)
{
        size_t at = skip_options(&run->words, 1, "", "");
        const struct field *to = at < run->words.n ? &run->words.list[at] : NULL;
        if (!to)
                sh->cwd = "/home/user";
        else if (to->hole || to->glob || !to->len || (to->text[0] != '/' && !sh->cwd))
                sh->cwd = NULL;
        else
                sh->cwd = to->text[0] == '/'     ? to->text
                        : strlen(sh->cwd) < 4096 ? arena_text(sh->arena, "%s/%s", sh->cwd, to->text)
                                                 : NULL;
}

static void alias(struct shell *sh, const struct run *run)
{
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                const char *sign = memchr(word->text, '=', word->len);
                if (!sign)
                        continue;
                struct field code = bash_field(sh, sign + 1, word->len - (size_t)(sign + 1 - word->text));
                struct fields none = { 0 };
                bash_embedded(sh, &code, &none, run->start, run->end);
        }
}

static void hash(struct shell *sh, const struct run *run)
{
        struct run inner = *run;
        inner.no_function = true;
        for (size_t i = 1; i + 1 < run->words.n; i++)
                if (field_is(&run->words.list[i], "-p")) {
                        inner.words = (struct fields){ &run->words.list[i + 1], 1, 1 };
                        run_rest(sh, &inner, 0);
                }
}

static void eval(struct shell *sh, const struct run *run)
{
        struct buf code;
        buf_init(&code, TEXT_MAX);
        code_say(sh, run, "eval");
        for (size_t i = 1; i < run->words.n; i++) {
                buf_add(&code, " ", i > 1);
                buf_add(&code, run->words.list[i].text, run->words.list[i].len);
        }
        struct field all = bash_field(sh, code.bytes ? code.bytes : "", code.len);
        bash_embedded(sh, &all, NULL, run->start, run->end);
        buf_done(&code);
}

/* trap 'code' SIGNAL */
static void trap(struct shell *sh, const struct run *run)
{
        size_t at = 1;
        if (at < run->words.n && (field_is(&run->words.list[at], "-p") || field_is(&run->words.list[at], "-l")))
                return;
        at += at < run->words.n && field_is(&run->words.list[at], "--");
        if (at < run->words.n && !field_is(&run->words.list[at], "-") && run->words.list[at].len)
                bash_embedded(sh, &run->words.list[at], NULL, run->start, run->end);
}

static void map_file(struct shell *sh, const struct run *run)
{
        const struct field *last = &run->words.list[run->words.n - 1];
        for (size_t i = 1; i + 1 < run->words.n; i++)
                if (field_is(&run->words.list[i], "-C"))
                        bash_embedded(sh, &run->words.list[i + 1], NULL, run->start, run->end);
        if (run->words.n > 1)
                read_array(sh, run, last);
}

/* getopts OPTIONS NAME */
static void get_options(struct shell *sh, const struct run *run)
{
        const struct field *name = run->words.n > 2 ? &run->words.list[2] : NULL;
        if (!name || name->hole || !name->len)
                return;
        bash_report(sh, FACT_ASSIGN, name->text, name->len, run->start, run->end);
        bash_set(sh, bash_variable(sh, name->text, name->len, false),
                (struct field){ .text = "", .len = 1, .hole = true }, false);
}

static void let(struct shell *sh, const struct run *run)
{
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                bash_arithmetic(sh, arena_copy(sh->arena, word->text, word->len), word->len, run->start, run->end);
        }
}

static void unset(struct shell *sh, const struct run *run)
{
        bool variables = true, functions = true;
        for (size_t i = 1; i < run->words.n; i++) {
                const struct field *word = &run->words.list[i];
                if (word->len > 1 && word->text[0] == '-') {
                        functions = functions && !strchr(word->text, 'v');
                        variables = variables && !strchr(word->text, 'f');
                        continue;
                }
                size_t n = 0;
                while (n < word->len && bash_is_name((unsigned char)word->text[n], n == 0))
                        n++;
                if (variables && n && n == word->len)
                        bash_unset(sh, bash_variable(sh, word->text, n, false));
                for (struct function *f = functions ? sh->functions : NULL; f; f = f->next)
                        if (f->len == word->len && memcmp(f->name, word->text, f->len) == 0) {
                                sh->learned = sh->learned || !f->unset;
                                f->unset = true;
                        }
        }
}

static void source(struct shell *sh, const struct run *run)
{
        if (run->words.n > 1)
                run_script(sh, run, &run->words.list[1]);
}

static bool builtin(struct shell *sh, const struct run *run, const char *name)
{
        static const struct { const char *name; void (*run)(struct shell *, const struct run *);
        } builtins[] = {
                { "eval", eval },
                { ".", source },
                { "source", source },
                { "trap", trap },
                { "alias", alias },
                { "hash", hash },
                { "cd", change_folder },
                { "pushd", change_folder },
                { "set", set_args },
                { "shift", shift },
                { "mapfile", map_file },
                { "readarray", map_file },
                { "printf", printf_into },
                { "find", find },
                { "getopts", get_options },
                { "let", let },
                { "unset", unset },
                { "script", script },
        };
        static const char *const declarations[] = { "declare", "typeset", "local", "export", "readonly" };
        for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
                if (strcmp(builtins[i].name, name) == 0) {
                        builtins[i].run(sh, run);
                        return true;
                }
        for (size_t i = 0; i < ARRAY_LEN(declarations); i++)
                if (strcmp(declarations[i], name) == 0) {
                        declared(sh, run, name);
                        return true;
                }
        if (strcmp(name, "read") == 0)
                read_into(sh, run, skip_options(&run->words, 1, "adinNptu", ""));
        return strcmp(name, "read") == 0;
}

static bool is_shell(const char *name)
{
        static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "hush",
                "rbash", "lksh", "yash", "fish", "csh", "tcsh" };
        for (size_t i = 0; i < ARRAY_LEN(shells); i++)
                if (strcmp(shells[i], name) == 0)
                        return true;
        return false;
}

/* ---- functions of the program ---- */

/* The input of a function is the input of its commands. */
static void feed(struct shell *sh, struct function *f)
{
        const bool same = f->fed_text && sh->fed_text && f->fed_len == sh->fed_len &&
                memcmp(f->fed_text, sh->fed_text, f->fed_len) == 0;
        if (sh->fed == FED_NOT || (f->fed != FED_NOT && (same || !f->fed_text)))
                return;
        sh->learned = true;
        f->fed_text = f->fed == FED_NOT ? sh->fed_text : NULL;
        f->fed_len = sh->fed_len;
        f->fed = sh->fed;
}

static void call_function(struct shell *sh, struct function *f, const struct run *run)
{
        feed(sh, f);
        add_call(sh, &f->frame, &run->words, 1);
        if (!sh->function && run->start < f->called)
                f->called = run->start;
        if (!sh->report || !sh->function)
                return;
        struct edge *edge = arena_alloc(sh->arena, sizeof *edge);
        *edge = (struct edge){ f, sh->element, run->start, run->end, sh->function->edges };
        sh->function->edges = edge;
}

/* Whether the name is a function wherever this command runs. */
static struct function *shadow(const struct shell *sh, const char *name, size_t len, const struct run *run)
{
        struct function *f = sh->functions;
        uint32_t here = sh->fixed ? sh->start : run->start;
        for (; f; f = f->next) {
                if (f->len != len || memcmp(f->name, name, len) != 0 || (f->process != sh->process && !f->exported))
                        continue;
                if (sh->function ? sh->function == f || f->end <= here || f->end <= sh->function->called
                                 : f->end <= here)
                        return f;
        }
        return NULL;
}

/* ---- a single command ---- */

/* The last part of a path; NULL: unknown. */
static const char *name_of(struct shell *sh, const struct field *word, size_t *ret_len)
{
        const char *slash = memrchr(word->text, '/', word->len), *name = slash ? slash + 1 : word->text;
        *ret_len = word->len - (size_t)(name - word->text);
        if (memchr(name, 0, *ret_len) || (word->hole && (word->many || !word->quoted_hole)) || word->glob)
                return NULL;
        return arena_copy(sh->arena, name, *ret_len);
}

void bash_run(struct shell *sh, const struct run *run)
{
        size_t len;
        const struct field *first = &run->words.list[0];
        const char *name = name_of(sh, first, &len);
        if (sh->too_complex || !first->len)
                return;
        if (!name || !len) {
                bash_report(sh, FACT_CODE, "word", 4, run->start, run->end);
                return;
        }
        bool path = memchr(first->text, '/', first->len) != NULL;
        struct function *f = path || run->no_function ? NULL : shadow(sh, name, len, run);
        if (f)
                call_function(sh, f, run);
        if (f && (f->certain || sh->function == f) && !f->unset)
                return;
        bash_report(sh, FACT_COMMAND, name, len, run->start, run->end);
        const struct wrapper *wrapper = wrapper_of(name);
        if (wrapper)
                wrapped(sh, run, wrapper);
        else if (is_shell(name))
                shell(sh, run);
        else if (!builtin(sh, run, name) && !bash_embedded_interpreter(sh, run, name) && strncmp(name, "ld-", 3) == 0 &&
                strstr(name, ".so"))
                run_rest(sh, run, skip_options(&run->words, 1, "", "--library-path --preload --argv0"));
        bash_effects(sh, run, name);
}
