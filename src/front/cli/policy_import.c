/*
 * caisson policy import: a policy file of CodeMie's executor (version "1.0": patterns and restricted_modules with
 * severities) as a policy of Caisson.
 *
 * Its patterns are regular expressions over the text of a program, and ours are names resolved by an analysis.  A
 * pattern becomes names only where the names find everything meant by the pattern: os\.(remove|unlink)\s*\( is
 * os.remove and os.unlink, under any alias.  Any other pattern is refused with its line, because without the rule the
 * policy would be weaker.
 */
#include "front/cli/check.h"

#include <ctype.h>
#include <regex.h>

#include "model/settings.h"

#define FILE_MAX (256 * KIB)
#define NAMES_MAX 64                   /* names of a pattern */

struct import {
        const char *file;
        struct arena arena;
        struct buf rules;
        size_t rules_n;
        int block_at;
        const char *description;
        struct csn_error *err;
};

static int wrong(const struct import *import, unsigned line, const char *text)
{
        return err_set(import->err, CSN_E_INPUT, 0, "%s:%u: %s", import->file, line, text);
}

static const struct yaml_node *entry(const struct yaml_node *node, const char *key)
{
        for (const struct yaml_node *child = node->children; child; child = child->next)
                if (child->key && strcmp(child->key, key) == 0)
                        return child;
        return NULL;
}

/* ---- severities ---- */

/* By name or by number, as in the executor's library: SAFE 0 to HIGH 3. */
static int read_severity(const struct import *import, const struct yaml_node *node, int *ret)
{
        static const struct { const char *name, *number; int severity; } rows[] = {
                { "SAFE", "0", threshold_SAFE },
                { "LOW", "1", severity_LOW },
                { "MEDIUM", "2", severity_MEDIUM },
                { "HIGH", "3", severity_HIGH },
        };
        for (size_t i = 0; node->value && i < ARRAY_LEN(rows); i++)
                if (strcasecmp(node->value, rows[i].name) == 0 || strcmp(node->value, rows[i].number) == 0) {
                        *ret = rows[i].severity;
                        return 0;
                }
        return wrong(import, node->line,
                arena_text((struct arena *)(uintptr_t)&import->arena, "%s is SAFE, LOW, MEDIUM or HIGH", node->key));
}

/* ---- patterns ---- */

struct names {
        char *list[NAMES_MAX];
        size_t n;
        const char *kind;              /* "reference", "name" or "import" */
};

static bool skip(const char **at, const char *text)
{
        size_t len = strlen(text);
        if (strncmp(*at, text, len) != 0)
                return false;
        *at += len;
        return true;
}

static size_t word_length(const char *text)
{
        size_t len = 0;
        while (isalnum((unsigned char)text[len]) || text[len] == '_')
                len++;
        return len;
}

/* Functions known to policies as builtins.NAME. */
static bool is_builtin(const char *name)
{
        static const char *const builtins[] = { "eval", "exec", "compile", "open", "__import__", "input", "getattr",
                "setattr", "delattr", "globals", "locals", "vars", "breakpoint" };
        for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
                if (strcmp(builtins[i], name) == 0)
                        return true;
        return false;
}

/* (a|b|c), or a word.  false: neither. */
static bool take_alternatives(struct arena *arena, const char **at, const char *base, struct names *ret)
{
        bool group = skip(at, "(?:") || skip(at, "(");
        for (;;) {
                size_t len = word_length(*at);
                if (!len || ret->n == NAMES_MAX)
                        return false;
                ret->list[ret->n++] = arena_text(arena, "%s%s%.*s", base, base[0] ? "." : "", (int)len, *at);
                *at += len;
                if (group && skip(at, "|"))
                        continue;
                return !group || skip(at, ")");
        }
}

/* The possible text after a name: a call or an item, found by the name alone. */
static bool is_end(const char *at)
{
        static const char *const blanks[] = { "\\s*", "\\s+", " *", "" };
        static const char *const ends[] = { "\\(", "\\[", "\\b", "\\.", "[(]", "" };
        for (size_t i = 0; i < ARRAY_LEN(blanks); i++) {
                size_t len = strlen(blanks[i]);
                if (strncmp(at, blanks[i], len) != 0)
                        continue;
                for (size_t k = 0; k < ARRAY_LEN(ends); k++)
                        if (strcmp(at + len, ends[k]) == 0)
                                return true;
        }
        return false;
}

static bool take_import(struct arena *arena, const char *at, struct names *ret)
{
        ret->kind = "import";
        if (!skip(&at, "import\\s+") && !skip(&at, "import ") && !skip(&at, "from\\s+") && !skip(&at, "from "))
                return false;
        return take_alternatives(arena, &at, "", ret) && (is_end(at) || strcmp(at, "\\s+import") == 0);
}

static bool take_names(struct arena *arena, const char *at, struct names *ret)
{
        const char *base = "";
        *ret = (struct names){ .kind = "reference" };
        while (skip(&at, "\\b"))
                ;
        if (take_import(arena, at, ret))
                return true;
        *ret = (struct names){ .kind = "reference" };
        for (;;) {
                size_t len = word_length(at);
                if (!len || strncmp(at + len, "\\.", 2) != 0 || !(word_length(at + len + 2) || at[len + 2] == '('))
                        break;
                base = arena_text(arena, "%s%s%.*s", base, base[0] ? "." : "", (int)len, at);
                at += len + 2;
        }
        if (!take_alternatives(arena, &at, base, ret) || !is_end(at))
                return false;
        if (base[0])
                return true;
        bool all = true;
        for (size_t i = 0; i < ret->n; i++)
                all = all && is_builtin(ret->list[i]);
        for (size_t i = 0; all && i < ret->n; i++)
                ret->list[i] = arena_text(arena, "builtins.%s", ret->list[i]);
        if (!all)
                ret->kind = "name";
        return true;
}

/* glibc's syntax differs only where no names are found; a pattern rejected by regcomp(3) is a slip in the file. */
static int check_regex(const struct import *import, const struct yaml_node *node)
{
        regex_t regex;
        char why[100];
        char *text = arena_text((struct arena *)(uintptr_t)&import->arena, "%s", node->value);
        for (char *group; (group = strstr(text, "(?:"));)
                memmove(group + 1, group + 3, strlen(group + 3) + 1);
        int rc = regcomp(&regex, text, REG_EXTENDED | REG_NOSUB);
        if (rc == 0) {
                regfree(&regex);
                return 0;
        }
        regerror(rc, &regex, why, sizeof why);
        return wrong(import, node->line,
                arena_text((struct arena *)(uintptr_t)&import->arena, "\"%.100s\" is no regular expression: %s",
                        node->value, why));
}

/* ---- rules ---- */

/* A text in single quotes of YAML. */
static void add_quoted(struct buf *buf, const char *text)
{
        buf_add(buf, "'", 1);
        for (; *text; text++)
                buf_printf(buf, *text == '\'' ? "''" : "%c", *text);
        buf_add(buf, "'", 1);
}

static void add_rule(struct import *import, int severity, const struct names *names, const char *message)
{
        static const unsigned scores[] = { [severity_LOW] = 1, [severity_MEDIUM] = 3, [severity_HIGH] = 5 };
        struct buf *buf = &import->rules;
        bool safe = severity == threshold_SAFE;
        buf_printf(buf, "\n  - id: imported_%zu\n    severity: %s\n    score: %u\n    %s: [", ++import->rules_n,
                safe ? "\"OFF\"" : choices_severity.values[severity].text, safe ? 0 : scores[severity], names->kind);
        for (size_t i = 0; i < names->n; i++) {
                buf_printf(buf, "%s", i ? ", " : "");
                add_quoted(buf, names->list[i]);
        }
        buf_printf(buf, "]\n    message: ");
        add_quoted(buf, message);
        buf_printf(buf, "\n");
}

static int take_item(struct import *import, const struct yaml_node *item, const char *what)
{
        const struct yaml_node *text = entry(item, what), *severity = entry(item, "severity"),
                               *description = entry(item, "description");
        struct names names;
        int level = severity_LOW;
        if (!text || !text->value || !severity)
                return wrong(import, item->line,
                        arena_text(&import->arena, "an entry needs %s and severity, and may have description", what));
        if (read_severity(import, severity, &level) < 0)
                return -CSN_E_INPUT;
        const char *message = description && description->value ? description->value : text->value;
        if (strcmp(what, "name") == 0) {
                /* CodeMie's files list eval, exec and compile among the modules. */
                bool builtin = is_builtin(text->value);
                names = (struct names){ .kind = builtin ? "reference" : "import", .n = 1 };
                names.list[0] = builtin ? arena_text(&import->arena, "builtins.%s", text->value)
                                        : arena_text(&import->arena, "%s", text->value);
                if (!text->value[0] || strspn(text->value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                           "0123456789_.") != strlen(text->value))
                        return wrong(import, text->line, "name has to be the name of a module");
        } else if (check_regex(import, text) < 0) {
                return -CSN_E_INPUT;
        } else if (!take_names(&import->arena, text->value, &names)) {
                return wrong(import, text->line,
                        arena_text(&import->arena,
                                "the regular expression \"%.100s\" has no equal in names; take it out, and write a rule with reference, import or string (docs/use/policies.md)",
                                text->value));
        }
        add_rule(import, level, &names, message);
        return 0;
}

static int take_list(struct import *import, const struct yaml_node *list, const char *what)
{
        if (!list->is_list)
                return wrong(import, list->line, arena_text(&import->arena, "%s has to be a list", list->key));
        for (const struct yaml_node *item = list->children; item; item = item->next)
                if (take_item(import, item, what) < 0)
                        return -CSN_E_INPUT;
        return 0;
}

static int take_key(struct import *import, const struct yaml_node *node)
{
        const char *key = node->key;
        if (strcmp(key, "version") == 0 && node->value && strcmp(node->value, "1.0") == 0)
                return 0;
        if (strcmp(key, "version") == 0)
                return wrong(import, node->line, "version has to be \"1.0\"");
        if (strcmp(key, "severity_threshold") == 0)
                return read_severity(import, node, &import->block_at);
        if (strcmp(key, "patterns") == 0)
                return take_list(import, node, "pattern");
        if (strcmp(key, "restricted_modules") == 0 || strcmp(key, "modules") == 0)
                return take_list(import, node, "name");
        if ((strcmp(key, "name") == 0 || strcmp(key, "description") == 0) && node->value) {
                import->description = node->value;
                return 0;
        }
        return wrong(import, node->line,
                arena_text(&import->arena,
                        "there is no \"%.40s\" in such a file; it has version, severity_threshold, patterns and restricted_modules",
                        key));
}

static int convert(struct import *import, const struct yaml_node *root, const char *name)
{
        if (!entry(root, "version"))
                return wrong(import, 1, "version is missing; it has to be \"1.0\"");
        for (const struct yaml_node *node = root->children; node; node = node->next)
                if (take_key(import, node) < 0)
                        return -CSN_E_INPUT;
        if (!import->rules_n)
                return wrong(import, 1, "there is neither a pattern nor a module");
        printf("policy: %s\ndescription: ", name);
        struct buf text;
        buf_init(&text, 8 * KIB);
        add_quoted(&text, import->description ? import->description : "Imported from a policy of version 1.0.");
        printf("%.*s\nextends: _common\nlanguages: [python]\nblock_at: %s\n\nsentences:\n"
               "  - { when: refused, text: 'Code violates the security policy: {messages}' }\n\nrules:%.*s",
                (int)text.len, text.bytes, choices_threshold.values[import->block_at].text, (int)import->rules.len,
                import->rules.bytes);
        buf_done(&text);
        return 0;
}

/* The name of a file without folder and ending, where no name is given. */
static char *name_of_file(struct arena *arena, const char *file)
{
        const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
        return arena_text(arena, "%.*s", (int)strcspn(base, "."), base);
}

int cli_import_policy(const char *file, const char *name, struct csn_error *err)
{
        struct import import = { .file = file, .block_at = severity_LOW, .err = err };
        struct bytes text;
        struct yaml_node root;
        buf_init(&import.rules, 4 * MIB);
        int rc = cli_read_whole(file, FILE_MAX, "", &import.arena, &text, err);
        if (rc == 0)
                rc = yaml_parse(text.bytes, text.len, file, &import.arena, &root, err);
        if (rc == 0)
                rc = convert(&import, &root, name ? name : name_of_file(&import.arena, file));
        buf_done(&import.rules);
        arena_done(&import.arena);
        return rc;
}
