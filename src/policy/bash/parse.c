/* Commands: the grammar of the Bash manual's "Shell Grammar", by recursive descent of bounded depth. */
#include "policy/bash/bash.h"

static struct command *read_and_or(struct bash_reader *r);

static struct command *new_node(struct bash_reader *r, enum node_kind kind)
{
        struct command *node = bash_object(r, sizeof *node);
        node->kind = kind;
        node->name = "";
        node->start = bash_start(r, r->at);
        return node;
}

static struct command *finish(const struct bash_reader *r, struct command *node)
{
        node->end = bash_end(r, r->at);
        return node;
}

static void add_child(struct command *node, struct command *child)
{
        if (!child)
                return;
        if (node->last)
                node->last->next = child;
        else
                node->child = child;
        node->last = child;
}

static void add_word(struct command *node, struct word *word)
{
        if (!word)
                return;
        if (node->last_word)
                node->last_word->next = word;
        else
                node->words = word;
        node->last_word = word;
}

/* ---- keywords at the beginning of a command ---- */

enum keyword {
        WORD_NONE,
        WORD_IF,
        WORD_THEN,
        WORD_ELIF,
        WORD_ELSE,
        WORD_FI,
        WORD_WHILE,
        WORD_UNTIL,
        WORD_FOR,
        WORD_SELECT,
        WORD_DO,
        WORD_DONE,
        WORD_CASE,
        WORD_ESAC,
        WORD_FUNCTION,
        WORD_COPROC,
        WORD_TIME,
        WORD_OPEN,
        WORD_CLOSE,
        WORD_NOT,
        WORD_TEST,
        WORD_END_TEST,
        WORD_IN,
};

static const struct { const char *text; enum keyword word; bool closes;
} keywords[] = {
        { "if", WORD_IF, false },
        { "then", WORD_THEN, true },
        { "elif", WORD_ELIF, true },
        { "else", WORD_ELSE, true },
        { "fi", WORD_FI, true },
        { "while", WORD_WHILE, false },
        { "until", WORD_UNTIL, false },
        { "for", WORD_FOR, false },
        { "select", WORD_SELECT, false },
        { "do", WORD_DO, true },
        { "done", WORD_DONE, true },
        { "case", WORD_CASE, false },
        { "esac", WORD_ESAC, true },
        { "function", WORD_FUNCTION, false },
        { "coproc", WORD_COPROC, false },
        { "time", WORD_TIME, false },
        { "{", WORD_OPEN, false },
        { "}", WORD_CLOSE, true },
        { "!", WORD_NOT, false },
        { "[[", WORD_TEST, false },
        { "in", WORD_IN, true },
        { "]]", WORD_END_TEST, true },
};

static enum keyword keyword_at(const struct bash_reader *r, bool *ret_closes, size_t *ret_len)
{
        size_t len = 0;
        while (len < 10 && !bash_is_meta(bash_peek(r, len)))
                len++;
        for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
                if (strlen(keywords[i].text) == len && memcmp(r->text + r->at, keywords[i].text, len) == 0) {
                        *ret_closes = keywords[i].closes;
                        *ret_len = len;
                        return keywords[i].word;
                }
        *ret_closes = false;
        *ret_len = 0;
        return WORD_NONE;
}

static bool take_keyword(struct bash_reader *r, enum keyword wanted)
{
        bool closes;
        size_t len;
        if (keyword_at(r, &closes, &len) != wanted)
                return false;
        r->at += len;
        return true;
}

static void expect_keyword(struct bash_reader *r, enum keyword wanted)
{
        bash_blanks(r);
        if (!take_keyword(r, wanted))
                bash_unexpected(r);
}

static void skip_lines(struct bash_reader *r)
{
        do
                bash_blanks(r);
        while (bash_newline(r));
}

/* ---- redirections ---- */

static const char *const redirect_signs[] = { "&>>", "<<<", "<<-", "&>", "<<", "<&", "<>", ">>", ">&", ">|", "<", ">" };

/* Digits or {name} in front of a redirection belong to the redirection. */
static size_t redirect_ahead(const struct bash_reader *r, size_t *ret_prefix)
{
        size_t at = 0;
        int c = bash_peek(r, 0);
        if (c == '{' && bash_is_name(bash_peek(r, 1), true)) {
                for (at = 1; bash_is_name(bash_peek(r, at), false);)
                        at++;
                if (bash_peek(r, at++) != '}')
                        return 0;
        } else {
                while (bash_peek(r, at) >= '0' && bash_peek(r, at) <= '9')
                        at++;
        }
        c = bash_peek(r, at);
        if ((c != '<' && c != '>' && !(c == '&' && !at)) || ((c == '<' || c == '>') && bash_peek(r, at + 1) == '('))
                return 0;
        for (size_t i = 0; i < ARRAY_LEN(redirect_signs); i++) {
                size_t len = strlen(redirect_signs[i]);
                if (r->len - r->at - at >= len && memcmp(r->text + r->at + at, redirect_signs[i], len) == 0) {
                        *ret_prefix = at;
                        return len;
                }
        }
        return 0;
}

static bool read_redirect(struct bash_reader *r, struct command *node)
{
        size_t prefix, len = redirect_ahead(r, &prefix);
        if (!len)
                return false;
        struct redirect *redirect = bash_object(r, sizeof *redirect);
        redirect->start = bash_start(r, r->at);
        redirect->other_fd = prefix && !(prefix == 1 && r->text[r->at] == '0');
        memcpy(redirect->operator, r->text + r->at + prefix, len);
        r->at += prefix + len;
        bash_blanks(r);
        redirect->target = bash_word(r, END_WORD);
        if (!redirect->target) {
                bash_unexpected(r);
                return true;
        }
        redirect->end = bash_end(r, r->at);
        if (node->last_redirect)
                node->last_redirect->next = redirect;
        else
                node->redirects = redirect;
        node->last_redirect = redirect;
        redirect->document = strcmp(redirect->operator, "<<") == 0 || strcmp(redirect->operator, "<<-") == 0;
        if (!redirect->document)
                return true;
        if (r->last_document)
                r->last_document->next_document = redirect;
        else
                r->documents = redirect;
        r->last_document = redirect;
        return true;
}

static void read_redirects(struct bash_reader *r, struct command *node)
{
        for (bash_blanks(r); read_redirect(r, node);)
                bash_blanks(r);
}

/* ---- compound commands ---- */

/* Commands, at least 1, up to a closing word. */
static void body(struct bash_reader *r, struct command *node)
{
        struct command *list = bash_list_in(r);
        if (!list->child)
                bash_unexpected(r);
        add_child(node, list);
}

static void read_if(struct bash_reader *r, struct command *node)
{
        node->kind = NODE_BRANCHES;
        do {
                body(r, node);
                expect_keyword(r, WORD_THEN);
                body(r, node);
                bash_blanks(r);
        } while (!r->failed && take_keyword(r, WORD_ELIF));
        if (take_keyword(r, WORD_ELSE))
                body(r, node);
        expect_keyword(r, WORD_FI);
}

static void read_while(struct bash_reader *r, struct command *node)
{
        node->kind = NODE_LOOP;
        body(r, node);
        expect_keyword(r, WORD_DO);
        body(r, node);
        expect_keyword(r, WORD_DONE);
}

static void read_do(struct bash_reader *r, struct command *node)
{
        skip_lines(r);
        bool braces = take_keyword(r, WORD_OPEN);
        if (!braces)
                expect_keyword(r, WORD_DO);
        body(r, node);
        expect_keyword(r, braces ? WORD_CLOSE : WORD_DONE);
}

static void read_arithmetic_words(struct bash_reader *r, struct command *node)
{
        size_t from = r->at;
        r->at += 2;
        add_word(node, bash_inside(r, END_PAREN, true));
        if (bash_peek(r, 0) == ')')
                r->at++;
        else
                bash_fail(r, from, "syntax error: arithmetic expression required");
}

/* (( a; b; c )) */
static void read_for_arithmetic(struct bash_reader *r, struct command *node)
{
        size_t from = r->at, signs = 0;
        read_arithmetic_words(r, node);
        for (const struct part *part = node->words ? node->words->parts : NULL; part; part = part->next)
                for (size_t i = 0; part->kind == PART_TEXT && i < part->len; i++)
                        signs += part->text[i] == ';';
        if (signs != 2 && !r->failed)
                bash_fail(r, from, "syntax error: arithmetic expression required");
}

static void read_for(struct bash_reader *r, struct command *node)
{
        node->kind = NODE_FOR;
        bash_blanks(r);
        if (bash_peek(r, 0) == '(' && bash_peek(r, 1) == '(') {
                node->kind = NODE_LOOP;
                read_for_arithmetic(r, node);
                bash_blanks(r);
                r->at += bash_peek(r, 0) == ';';
                read_do(r, node);
                return;
        }
        const struct word *name = bash_word(r, END_WORD);
        if (!name) {
                bash_unexpected(r);
                return;
        }
        node->name = name->parts && name->parts->kind == PART_TEXT ? name->parts->text : "";
        node->name_len = name->parts && name->parts->kind == PART_TEXT ? name->parts->len : 0;
        bash_blanks(r);
        node->no_words = true;
        if (bash_peek(r, 0) == ';') {
                r->at++;
                read_do(r, node);
                return;
        }
        skip_lines(r);
        if (take_keyword(r, WORD_IN)) {
                node->no_words = false;
                for (bash_blanks(r); !bash_is_meta(bash_peek(r, 0)) || bash_peek(r, 1) == '('; bash_blanks(r)) {
                        struct word *word = bash_word(r, END_WORD);
                        if (!word)
                                break;
                        add_word(node, word);
                }
                if (bash_peek(r, 0) == ';')
                        r->at++;
                else if (bash_peek(r, 0) != '\n')
                        bash_unexpected(r);
        }
        read_do(r, node);
}

static void read_case(struct bash_reader *r, struct command *node)
{
        node->kind = NODE_CASE;
        bash_blanks(r);
        struct word *subject = bash_word(r, END_WORD);
        if (!subject)
                bash_unexpected(r);
        add_word(node, subject);
        skip_lines(r);
        expect_keyword(r, WORD_IN);
        for (skip_lines(r); !r->failed && !take_keyword(r, WORD_ESAC); skip_lines(r)) {
                if (bash_peek(r, 0) == '(')
                        r->at++;
                for (bool more = true; more && !r->failed;) {
                        bash_blanks(r);
                        struct word *pattern = bash_word(r, END_WORD);
                        if (!pattern)
                                bash_unexpected(r);
                        add_word(node, pattern);
                        bash_blanks(r);
                        more = bash_peek(r, 0) == '|';
                        r->at += more;
                }
                if (bash_peek(r, 0) != ')')
                        bash_unexpected(r);
                else
                        r->at++;
                add_child(node, bash_list_in(r));
                bash_blanks(r);
                if (bash_peek(r, 0) == ';' && (bash_peek(r, 1) == ';' || bash_peek(r, 1) == '&')) {
                        r->at += 2;
                        r->at += r->text[r->at - 1] == ';' && bash_peek(r, 0) == '&';
                } else if (!r->failed) {
                        bool closes;
                        size_t len;
                        if (keyword_at(r, &closes, &len) != WORD_ESAC)
                                bash_unexpected(r);
                }
        }
}

/* ---- [[ … ]] ---- */

static bool test_sign(const struct bash_reader *r, const char *sign)
{
        size_t len = strlen(sign);
        return r->len - r->at >= len && memcmp(r->text + r->at, sign, len) == 0;
}

static bool is_unary(const struct word *word)
{
        const struct part *part = word->parts;
        return part && !part->next && part->kind == PART_TEXT && !part->quoted && part->len == 2 &&
                part->text[0] == '-' && strchr("abcdefghknoprstuvwxzGLNORS", part->text[1]);
}

static bool is_binary(const struct word *word)
{
        static const char *const signs[] = { "=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt",
                "-ot", "-ef" };
        for (size_t i = 0; i < ARRAY_LEN(signs); i++)
                if (bash_word_is(word, signs[i]))
                        return true;
        return false;
}

static void test_operand(struct bash_reader *r, struct command *node, enum ending ending)
{
        bash_blanks(r);
        struct word *word = bash_word(r, ending);
        if (!word || bash_word_is(word, "]]"))
                bash_unexpected(r);
        add_word(node, word);
}

static void test_term(struct bash_reader *r, struct command *node)
{
        struct word *word = bash_word(r, END_WORD);
        if (!word || bash_word_is(word, "]]")) {
                bash_unexpected(r);
                return;
        }
        add_word(node, word);
        bash_blanks(r);
        size_t at = r->at;
        if (bash_peek(r, 0) == '<' || bash_peek(r, 0) == '>') {
                r->at++;
                test_operand(r, node, END_WORD);
                return;
        }
        struct word *sign = bash_word(r, END_WORD);
        if (sign && is_binary(sign)) {
                test_operand(r, node, bash_word_is(sign, "=~") ? END_REGEX : END_WORD);
                return;
        }
        r->at = r->failed ? r->len : at;
        if (is_unary(word))
                test_operand(r, node, END_WORD);
}

/* Brackets are counted: only the words between matter. */
static void read_test(struct bash_reader *r, struct command *node)
{
        bool extglob = r->extglob, done = false;
        size_t open = 0;
        node->kind = NODE_TEST;
        r->extglob = true;
        while (!done && !r->failed) {
                for (skip_lines(r);; skip_lines(r)) {
                        bool opens = bash_peek(r, 0) == '(';
                        if (!opens && (bash_peek(r, 0) != '!' || !bash_is_meta(bash_peek(r, 1))))
                                break;
                        open += opens;
                        r->at++;
                }
                test_term(r, node);
                for (skip_lines(r); bash_peek(r, 0) == ')' && open; skip_lines(r))
                        r->at++, open--;
                if (test_sign(r, "&&") || test_sign(r, "||"))
                        r->at += 2;
                else if (!open && test_sign(r, "]]") && bash_is_meta(bash_peek(r, 2)))
                        r->at += 2, done = true;
                else
                        bash_unexpected(r);
        }
        r->extglob = extglob;
}

/* ---- functions and the rest ---- */

static bool read_compound(struct bash_reader *r, struct command *node);

static void read_function_body(struct bash_reader *r, struct command *node)
{
        skip_lines(r);
        struct command *inner = new_node(r, NODE_GROUP);
        node->kind = NODE_FUNCTION;
        const size_t at = r->at;
        if (!read_compound(r, inner))
                bash_unexpected(r);
        if (!r->failed && (inner->kind == NODE_FUNCTION || inner->kind == NODE_COPROC))
                bash_fail(r, at, "syntax error: a function is no function's body");
        add_child(node, finish(r, inner));
}

static const char *plain_name(struct bash_reader *r, const struct word *word, size_t *ret_len)
{
        size_t len = 0;
        for (const struct part *part = word->parts; part; part = part->next)
                len += part->kind == PART_TEXT ? part->len : 0;
        char *name = arena_alloc(r->arena, len + 1);
        *ret_len = 0;
        for (const struct part *part = word->parts; part; part = part->next)
                if (part->kind == PART_TEXT) {
                        memcpy(name + *ret_len, part->text, part->len);
                        *ret_len += part->len;
                }
        return name;
}

static void read_function(struct bash_reader *r, struct command *node)
{
        bash_blanks(r);
        const struct word *name = bash_word(r, END_WORD);
        if (!name) {
                bash_unexpected(r);
                return;
        }
        node->name = plain_name(r, name, &node->name_len);
        bash_blanks(r);
        if (bash_peek(r, 0) == '(') {
                size_t at = r->at++;
                bash_blanks(r);
                if (bash_peek(r, 0) == ')')
                        r->at++;
                else
                        r->at = at;        /* function name ( list ) */
        }
        read_function_body(r, node);
}

static void read_coproc(struct bash_reader *r, struct command *node)
{
        node->kind = NODE_COPROC;
        bash_blanks(r);
        struct command *inner = new_node(r, NODE_GROUP);
        if (!read_compound(r, inner)) {
                size_t at = r->at;
                const struct word *name = bash_word(r, END_WORD);
                bash_blanks(r);
                inner->start = bash_start(r, r->at);
                if (!name || !read_compound(r, inner)) {
                        r->at = r->failed ? r->len : at;
                        inner = read_and_or(r);
                }
        }
        add_child(node, inner ? finish(r, inner) : NULL);
}

static void read_parentheses(struct bash_reader *r, struct command *node)
{
        if (bash_peek(r, 1) == '(' && bash_arithmetic_ahead(r, r->at + 2)) {
                node->kind = NODE_ARITHMETIC;
                read_arithmetic_words(r, node);
                return;
        }
        node->kind = NODE_SUBSHELL;
        r->at++;
        body(r, node);
        if (bash_peek(r, 0) == ')')
                r->at++;
        else
                bash_unexpected(r);
}

/* Read a compound command into `node`.  False: none begins here. */
static bool read_compound(struct bash_reader *r, struct command *node)
{
        bool closes;
        size_t len, at = r->at;
        enum keyword word = keyword_at(r, &closes, &len);
        if (!bash_enter(r))
                return true;
        r->at += len;
        switch (word) {
        case WORD_IF: read_if(r, node); break;
        case WORD_WHILE: case WORD_UNTIL: read_while(r, node); break;
        case WORD_FOR: case WORD_SELECT: read_for(r, node); break;
        case WORD_CASE: read_case(r, node); break;
        case WORD_TEST: read_test(r, node); break;
        case WORD_FUNCTION: read_function(r, node); break;
        case WORD_COPROC: read_coproc(r, node); break;
        case WORD_OPEN:
                node->kind = NODE_GROUP;
                body(r, node);
                expect_keyword(r, WORD_CLOSE);
                break;
        default:
                r->at = at;
                if (bash_peek(r, 0) == '(') {
                        read_parentheses(r, node);
                        break;
                }
                r->depth--;
                return false;
        }
        r->depth--;
        read_redirects(r, node);
        return true;
}

/* ---- simple commands ---- */

static bool is_declaration(const struct word *word)
{
        return bash_word_is(word, "declare") || bash_word_is(word, "local") || bash_word_is(word, "typeset") ||
                bash_word_is(word, "export") || bash_word_is(word, "readonly") || bash_word_is(word, "eval");
}

static void read_assignment(struct bash_reader *r, struct command *node, struct assign ***tail)
{
        struct assign *assign = bash_object(r, sizeof *assign);
        if (!bash_assignment(r, false, assign))
                return;
        **tail = assign;
        *tail = &assign->next;
        (void)node;
}

static bool read_argument(struct bash_reader *r, struct command *node, bool declares)
{
        struct assign array = { 0 };
        if (declares && bash_assignment(r, true, &array)) {
                struct word *word = bash_object(r, sizeof *word);
                word->array = bash_object(r, sizeof array);
                *word->array = array;
                word->start = array.start;
                word->end = array.end;
                add_word(node, word);
                return true;
        }
        struct word *word = bash_word(r, END_WORD);
        add_word(node, word);
        return word;
}

static void read_simple(struct bash_reader *r, struct command *node)
{
        struct assign **tail = &node->assigns;
        bool declares = false;
        for (bash_blanks(r); !r->failed; bash_blanks(r)) {
                size_t at = r->at;
                if (read_redirect(r, node))
                        continue;
                if (!node->words)
                        read_assignment(r, node, &tail);
                if (r->at != at)
                        continue;
                if (!read_argument(r, node, declares))
                        break;
                if (node->words == node->last_word)
                        declares = is_declaration(node->words) || bash_word_is(node->words, "command") ||
                                bash_word_is(node->words, "builtin");
                else if (declares && (bash_word_is(node->words, "command") || bash_word_is(node->words, "builtin")))
                        declares = true;
                bash_blanks(r);
                if (node->words == node->last_word && !node->assigns && !node->redirects && bash_peek(r, 0) == '(') {
                        r->at++;
                        bash_blanks(r);
                        if (bash_peek(r, 0) != ')') {
                                bash_unexpected(r);
                                return;
                        }
                        r->at++;
                        node->name = plain_name(r, node->words, &node->name_len);
                        node->words = node->last_word = NULL;
                        read_function_body(r, node);
                        return;
                }
        }
        if ((!node->words && !node->assigns && !node->redirects) || bash_peek(r, 0) == '(')
                bash_unexpected(r);
}

/* ---- lists ---- */

/* Behind a compound command: a sign; or a closing word, but not behind its redirections. */
static bool compound_ends(const struct bash_reader *r, const struct command *node)
{
        bool closes;
        size_t len;
        const struct command *body = node;
        while (body->kind == NODE_FUNCTION || body->kind == NODE_COPROC)
                body = body->child;
        keyword_at(r, &closes, &len);
        return bash_is_meta(bash_peek(r, 0)) ? bash_peek(r, 0) != '(' : closes && !body->redirects;
}

static struct command *read_command(struct bash_reader *r)
{
        struct command *node = new_node(r, NODE_SIMPLE);
        bool closes;
        size_t len;
        keyword_at(r, &closes, &len);
        if (closes) {
                bash_unexpected(r);
                return node;
        }
        if (!read_compound(r, node))
                read_simple(r, node);
        if (node->kind != NODE_SIMPLE && !r->failed && !compound_ends(r, node))
                bash_unexpected(r);
        return finish(r, node);
}

static bool read_negation(struct bash_reader *r)
{
        bool any = false;
        for (bash_blanks(r);; bash_blanks(r)) {
                if (take_keyword(r, WORD_NOT)) {
                        any = true;
                } else if (take_keyword(r, WORD_TIME)) {
                        any = true;
                        bash_blanks(r);
                        if (test_sign(r, "-p") && bash_is_meta(bash_peek(r, 2)))
                                r->at += 2;
                        bash_blanks(r);
                        if (test_sign(r, "--") && bash_is_meta(bash_peek(r, 2)))
                                r->at += 2;
                } else {
                        return any;
                }
        }
}

static struct command *read_pipeline(struct bash_reader *r)
{
        struct command *node = new_node(r, NODE_PIPELINE);
        bool prefixed = read_negation(r);
        int c = bash_peek(r, 0);
        /* "!" and "time" alone are commands. */
        if (prefixed && (c < 0 || c == ';' || c == '\n' || c == ')'))
                return finish(r, node);
        add_child(node, read_command(r));
        for (bash_blanks(r); !r->failed && bash_peek(r, 0) == '|' && bash_peek(r, 1) != '|'; bash_blanks(r)) {
                r->at += bash_peek(r, 1) == '&' ? 2 : 1;
                skip_lines(r);
                /* "time" is a program here. */
                size_t at = r->at;
                if (take_keyword(r, WORD_NOT)) {
                        r->at = at;
                        bash_unexpected(r);
                }
                add_child(node, read_command(r));
        }
        return finish(r, node);
}

static struct command *read_and_or(struct bash_reader *r)
{
        struct command *node = new_node(r, NODE_AND_OR);
        add_child(node, read_pipeline(r));
        for (bash_blanks(r); !r->failed && (test_sign(r, "&&") || test_sign(r, "||")); bash_blanks(r)) {
                r->at += 2;
                skip_lines(r);
                add_child(node, read_pipeline(r));
        }
        return finish(r, node);
}

struct command *bash_list_in(struct bash_reader *r)
{
        struct command *list = new_node(r, NODE_LIST);
        for (skip_lines(r); r->at < r->len; skip_lines(r)) {
                bool closes;
                size_t len;
                keyword_at(r, &closes, &len);
                if (closes || bash_peek(r, 0) == ')' || bash_peek(r, 0) == ';')
                        break;
                struct command *node = read_and_or(r);
                add_child(list, node);
                if (r->failed)
                        break;
                int c = bash_peek(r, 0);
                if (c == ';' && bash_peek(r, 1) != ';' && bash_peek(r, 1) != '&')
                        r->at++;
                else if (c == '&')
                        r->at++, node->background = true;
                else if (c != '\n')
                        break;
        }
        return finish(r, list);
}

struct command *bash_parse(struct bash_reader *r)
{
        struct command *list = bash_list_in(r);
        if (!r->failed && r->at < r->len)
                bash_unexpected(r);
        return finish(r, list);
}
