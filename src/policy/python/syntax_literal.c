/* Texts and numbers accepted by the grammar and rejected by the interpreter; for syntax.c. */
#include "policy/python/python.h"

/* ---- texts ---- */

static bool is_hex(char c)
{
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* The letters before the quotes, each at most once; `ret` has a bit for each. */
enum { PREFIX_R = 1, PREFIX_U = 2, PREFIX_B = 4, PREFIX_F = 8 };

static bool prefix_of(const char *text, size_t len, unsigned *ret)
{
        static const char letters[] = "rubf";
        *ret = 0;
        for (size_t i = 0; i < len; i++) {
                const char *letter = strchr(letters, text[i] | 0x20);
                unsigned bit = letter && *letter ? 1U << (letter - letters) : 0;
                if (!bit || *ret & bit)
                        return false;
                *ret |= bit;
        }
        return (*ret & (*ret - 1)) == 0 || *ret == (PREFIX_R | PREFIX_B) || *ret == (PREFIX_R | PREFIX_F);
}

/* \x41, \u0041, \U00000041 with all of their digits, and \N{…} with a name, which is not looked up. */
static const char *check_escapes(const char *text, size_t len, unsigned prefix)
{
        for (const char *at = text, *end = text + len; (at = memchr(at, '\\', (size_t)(end - at)));) {
                char c = ++at < end ? *at : 0;
                bool bytes = prefix & PREFIX_B;
                size_t digits = c == 'x' ? 2 : c == 'u' && !bytes ? 4 : c == 'U' && !bytes ? 8 : 0;
                at += at < end;
                for (size_t i = 0; i < digits; i++)
                        if (at + i >= end || !is_hex(at[i]))
                                return bytes
                                        ? "(value error) invalid \\x escape"
                                        : "(unicode error) 'unicodeescape' codec can't decode bytes: truncated escape";
                if (digits == 8 && (at[0] != '0' || at[1] != '0' || at[2] > '1' || (at[2] == '1' && at[3] != '0')))
                        return "(unicode error) 'unicodeescape' codec can't decode bytes: illegal Unicode character";
                if (c == 'N' && !bytes &&
                        (at >= end || *at != '{' || !memchr(at, '}', (size_t)(end - at)) || at[1] == '}'))
                        return "(unicode error) 'unicodeescape' codec can't decode bytes: malformed \\N character escape";
                if (at == end)
                        return NULL;
        }
        return NULL;
}

static void check_content(struct facts *facts, const struct tree *tree, uint32_t at, uint32_t from, uint32_t to,
        unsigned prefix)
{
        const char *why = prefix & PREFIX_R ? NULL : check_escapes(tree->text + from, to - from, prefix);
        for (uint32_t i = from; i < to && prefix & PREFIX_B && !why; i++)
                if ((unsigned char)tree->text[i] >= 0x80)
                        why = "bytes can only contain ASCII literal characters";
        if (why)
                facts_break(facts, tree->nodes[at].start, why);
}

static void check_parts(struct facts *facts, const struct tree *tree, uint32_t at, unsigned prefix)
{
        for (uint32_t child = tree->nodes[at].child; child; child = tree->nodes[child].next)
                if (tree->nodes[child].kind == PY_STRING_CONTENT)
                        check_content(facts, tree, at, tree->nodes[child].start, tree->nodes[child].end, prefix);
}

/* Unclosed quotes, and line feeds outside of triple quotes. */
void python_check_string(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t start = tree_kind(tree, at, PY_STRING_START), end = tree_kind(tree, at, PY_STRING_END);
        unsigned prefix = 0;
        if (!start || !end)
                return;
        uint32_t quotes = tree->nodes[start].start;
        while (quotes < tree->nodes[start].end && tree->text[quotes] != '"' && tree->text[quotes] != '\'')
                quotes++;
        uint32_t n = tree->nodes[start].end - quotes;
        if (n == 0 || !prefix_of(tree->text + tree->nodes[start].start, quotes - tree->nodes[start].start, &prefix)) {
                facts_break(facts, tree->nodes[at].start, "invalid syntax");
                return;
        }
        /* The grammar counts backslashes at the end of a raw text as part of the closing quotes. */
        uint32_t last = tree->nodes[end].end;
        bool open = last < quotes + 2 * n || memcmp(tree->text + quotes, tree->text + last - n, n) != 0;
        for (uint32_t i = quotes + n; n == 1 && i < last - n && !open; i++)
                if (tree->text[i] == '\\')
                        i++;
                else
                        open = tree->text[i] == '\n';
        if (open)
                facts_break(facts, tree->nodes[at].start,
                        n == 1 ? "unterminated string literal" : "unterminated triple-quoted string literal");
        else if (prefix & PREFIX_F)
                check_parts(facts, tree, at, prefix);
        else
                check_content(facts, tree, at, quotes + n, last - n, prefix);
}

static bool is_bytes(const struct tree *tree, uint32_t string)
{
        char first = tree->text[tree->nodes[string].start], second = tree->text[tree->nodes[string].start + 1];
        return (first | 0x20) == 'b' || ((first | 0x20) == 'r' && (second | 0x20) == 'b');
}

/* 'a' b'b' */
void python_check_concatenated(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t first = tree_kind(tree, at, PY_STRING);
        for (uint32_t child = first; child; child = tree->nodes[child].next)
                if (tree->nodes[child].kind == PY_STRING && is_bytes(tree, child) != is_bytes(tree, first))
                        facts_break(facts, tree->nodes[child].start, "cannot mix bytes and nonbytes literals");
}

/* {x!q}, and {lambda x: 1}, where the colon begins a format. */
void python_check_interpolation(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t expression = tree_field(tree, at, PYF_expression),
                 conversion = tree_field(tree, at, PYF_type_conversion);
        if (expression && tree->nodes[expression].kind == PY_LAMBDA)
                facts_break(facts, tree->nodes[at].start, "f-string: invalid syntax");
        const struct node *how = &tree->nodes[conversion];
        if (conversion && (how->end - how->start != 2 || !strchr("rsa", tree->text[how->end - 1])))
                facts_break(facts, how->start, "f-string: invalid conversion character: expected 's', 'r', or 'a'");
}

/* ---- numbers ---- */

/* Digits and signs not allowed in a number: 1_, 1__0, 10L, 0_7, 0777. */
static const char *check_digits(const char *text, size_t len, bool is_float)
{
        bool whole = !is_float, zeros = text[0] == '0', other = false;
        char last = text[len - 1];
        if (last == '_' || (last | 0x20) == 'l')
                return "invalid decimal literal";
        for (size_t i = 0; i + 1 < len; i++)
                if (text[i] == '_' &&
                        (text[i + 1] == '_' || !is_hex(text[i + 1]) || (is_float && (text[i + 1] | 0x20) == 'e')))
                        return "invalid decimal literal";
        for (size_t i = 0; i < len && whole; i++) {
                whole = (text[i] >= '0' && text[i] <= '9') || text[i] == '_';
                other = other || (text[i] >= '1' && text[i] <= '9');
        }
        if (whole && zeros && other)
                return "leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers";
        return NULL;
}

/* {x:=10d} has a format, but := to the grammar. */
static bool is_format(const struct tree *tree, uint32_t at)
{
        uint32_t parent = tree->nodes[at].parent;
        if (tree->nodes[parent].kind == PY_UNARY)
                parent = tree->nodes[parent].parent;
        return tree->nodes[parent].kind == PY_NAMED && tree->nodes[tree->nodes[parent].parent].kind == PY_INTERPOLATION;
}

/* 2x is no number; 1if is a number before a keyword. */
void python_check_number(struct facts *facts, const struct tree *tree, uint32_t at)
{
        static const char *const keywords[] = { "and", "else", "for", "if", "in", "is", "not", "or" };
        const struct node *node = &tree->nodes[at];
        if (is_format(tree, at))
                return;
        const char *why = check_digits(tree->text + node->start, node->end - node->start, node->kind == PY_FLOAT);
        if (why)
                facts_break(facts, node->start, why);
        uint32_t to = node->end;
        while (to < tree->len && ((tree->text[to] | 0x20) >= 'a' && (tree->text[to] | 0x20) <= 'z'))
                to++;
        for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
                if (strlen(keywords[i]) == to - node->end &&
                        memcmp(keywords[i], tree->text + node->end, to - node->end) == 0)
                        return;
        if (to > node->end)
                facts_break(facts, node->start, "invalid decimal literal");
}
