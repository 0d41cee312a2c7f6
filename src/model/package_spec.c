#include "model/package_spec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_python(const struct package_set *set)
{
        return strcmp(set->language, "python") == 0;
}

static bool is_alnum(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_name_char(char c)
{
        return is_alnum(c) || c == '-' || c == '_' || c == '.';
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t';
}

static char *canonical(const char *language, const char *name, size_t len, struct arena *arena)
{
        char *copy = arena_copy(arena, name, len);
        size_t n = 0;
        if (strcmp(language, "python") != 0)
                return copy;
        for (size_t i = 0; i < len; i++) {
                bool joins = !is_alnum(copy[i]);
                if (joins && n && copy[n - 1] == '-')
                        continue;
                copy[n++] = joins ? '-' : (char)tolower((unsigned char)copy[i]);
        }
        copy[n] = 0;
        return copy;
}

const char *package_entry_language(const char **text)
{
        static const struct {
                const char *begin, *language;
        } rows[] = { { "python:", "python" }, { "node:", "javascript" } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (strncmp(*text, rows[i].begin, strlen(rows[i].begin)) == 0) {
                        *text += strlen(rows[i].begin);
                        return rows[i].language;
                }
        return NULL;
}

/* ---- a specification ---- */

static int bad(const char *field, const char *text, size_t len, const char *why, struct csn_error *err)
{
        return err_field(err, field, "\"%.*s\" is no package: %s", (int)min_u64(len, 80), text, why);
}

/* The length of a name of Python at the start of a text; 0: there is none (PEP 508). */
static size_t python_name(const char *text, size_t len)
{
        size_t n = 0;
        while (n < len && is_name_char(text[n]))
                n++;
        return n && is_alnum(text[0]) && is_alnum(text[n - 1]) ? n : 0;
}

/* Of npm: lower case, and perhaps a scope: @scope/name. */
static size_t node_name(const char *text, size_t len)
{
        size_t n = 0;
        bool scoped = len && text[0] == '@', slash = false;
        for (n = scoped; n < len; n++) {
                char c = text[n];
                if (scoped && c == '/' && !slash && n > 1) {
                        slash = true;
                        continue;
                }
                if (!is_name_char(c) || (c >= 'A' && c <= 'Z'))
                        break;
                if ((c == '.' || c == '_') && (n == 0 || text[n - 1] == '/' || (scoped && n == 1)))
                        return 0;
        }
        return n > scoped && (!scoped || (slash && text[n - 1] != '/')) ? n : 0;
}

static int compare_texts(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "[b, A]" to "a,b".  Returns the bytes read, 0: malformed. */
static size_t read_extras(struct package_set *set, const char *text, size_t len, struct package_spec *spec)
{
        char *names[16] = { 0 }, joined[SPEC_MAX];
        size_t n = 0, at = 1;
        for (;;) {
                while (at < len && (is_blank(text[at]) || text[at] == ','))
                        at++;
                if (at >= len || text[at] == ']')
                        break;
                size_t one = python_name(text + at, len - at);
                if (!one || n == ARRAY_LEN(names))
                        return 0;
                names[n++] = canonical("python", text + at, one, set->arena);
                at += one;
        }
        if (at >= len)
                return 0;
        qsort(names, n, sizeof *names, compare_texts);
        size_t used = 0;
        for (size_t i = 0; i < n; i++)
                if (!i || strcmp(names[i], names[i - 1]) != 0)
                        used += (size_t)snprintf(joined + used, sizeof joined - used, "%s%s", used ? "," : "",
                                names[i]);
        spec->extras = arena_text(set->arena, "%s", used ? joined : "");
        return at + 1;
}

static bool is_version_char(char c)
{
        return is_alnum(c) || (c && strchr(".*+!-_<>=~,", c));
}

/* A comparison of PEP 440: an operator and a version. */
static bool is_comparison(const char *text, size_t len)
{
        static const char *const operators[] = { "===", "==", "~=", "!=", "<=", ">=", "<", ">" };
        size_t op = 0;
        for (size_t i = 0; i < ARRAY_LEN(operators) && !op; i++)
                if (len > strlen(operators[i]) && strncmp(text, operators[i], strlen(operators[i])) == 0)
                        op = strlen(operators[i]);
        if (!op || !(is_alnum(text[op])))
                return false;
        for (size_t i = op; i < len; i++)
                if (!is_alnum(text[i]) && !strchr(".*+!-_", text[i]))
                        return false;
        return true;
}

/* ">= 1.0, < 2" to ">=1.0,<2". */
static bool read_python_version(struct package_set *set, const char *text, size_t len, struct package_spec *spec)
{
        char plain[SPEC_MAX] = "";
        size_t n = 0;
        if (len >= 2 && text[0] == '(' && text[len - 1] == ')') {
                text++;
                len -= 2;
        }
        for (size_t i = 0; i < len; i++) {
                if (is_blank(text[i]))
                        continue;
                /* Blanks stand beside a comma or an operator, not within a version. */
                bool parted = i && is_blank(text[i - 1]) && n && !strchr("<>=!~,", plain[n - 1]);
                if (!is_version_char(text[i]) || n + 1 >= sizeof plain || (parted && text[i] != ','))
                        return false;
                plain[n++] = text[i];
        }
        plain[n] = 0;
        for (size_t at = 0; at < n;) {
                size_t one = strcspn(plain + at, ",");
                if (!is_comparison(plain + at, one))
                        return false;
                at += one + 1;
        }
        spec->version = arena_text(set->arena, "%s", plain);
        return n == 0 || plain[n - 1] != ',';
}

/* After "@", or after "==" as in Python: a range of semver.  "latest" is no range. */
static bool read_node_version(struct package_set *set, const char *text, size_t len, struct package_spec *spec)
{
        if (len > 1 && text[0] == '@') {
                text++;
                len--;
        } else if (len > 2 && text[0] == '=' && text[1] == '=') {
                text += 2;
                len -= 2;
        } else if (len) {
                return false;
        }
        for (size_t i = 0; i < len; i++)
                if (!is_alnum(text[i]) && !strchr(".*+-<>=~^| ", text[i]))
                        return false;
        /* A tag would mean another version each day, and "file:…" has a character foreign to ranges. */
        if (len && is_alnum(text[0]) && !isdigit((unsigned char)text[0]) && text[0] != 'v' && text[0] != 'x')
                return false;
        spec->version = arena_copy(set->arena, text, len);
        return true;
}

static bool is_marker(const char *text, size_t len)
{
        static const char *const names[] = { "python_version", "python_full_version", "sys_platform", "platform_",
                "os_name", "implementation_", "extra", "(" };
        bool named = false;
        for (size_t i = 0; i < ARRAY_LEN(names) && !named; i++)
                named = len > strlen(names[i]) && strncmp(text, names[i], strlen(names[i])) == 0;
        for (size_t i = 0; i < len && named; i++)
                named = is_alnum(text[i]) || strchr("_.-+<>=!~'\"() ", text[i]);
        return named;
}

static void trim(const char **text, size_t *len)
{
        while (*len && is_blank(**text)) {
                (*text)++;
                (*len)--;
        }
        while (*len && is_blank((*text)[*len - 1]))
                (*len)--;
}

static int read_spec(struct package_set *set, const char *text, size_t len, const char *field, struct package_spec *ret,
        struct csn_error *err)
{
        const char *all = text;
        size_t all_len = len, n;
        *ret = (struct package_spec){ .extras = "", .version = "", .marker = "" };
        if (len > SPEC_MAX)
                return bad(field, text, len, "it is longer than 512 bytes", err);
        if (len && (text[0] == '-' || memmem(text, len, "--", 2) || memmem(text, len, " -", 2)))
                return bad(field, text, len, "options are not taken; give names and versions, such as requests==2.31.0",
                        err);
        if (memchr(text, ':', len) || (is_python(set) && (memchr(text, '/', len) || memchr(text, '@', len))))
                return bad(field, text, len,
                        "addresses and paths are not taken; give a name and a version of the index", err);
        n = is_python(set) ? python_name(text, len) : node_name(text, len);
        if (!n || n > SPEC_NAME_MAX)
                return bad(field, text, len, "it has to begin with a name, such as requests", err);
        ret->name = canonical(set->language, text, n, set->arena);
        text += n;
        len -= n;
        trim(&text, &len);
        if (is_python(set) && len && text[0] == '[') {
                n = read_extras(set, text, len, ret);
                if (!n)
                        return bad(field, all, all_len, "its extras are written as name[a,b]", err);
                text += n;
                len -= n;
                trim(&text, &len);
        }
        const char *marker = is_python(set) ? memchr(text, ';', len) : NULL;
        if (marker) {
                size_t marker_len = len - (size_t)(marker - text) - 1;
                len = (size_t)(marker - text);
                marker++;
                trim(&marker, &marker_len);
                if (!is_marker(marker, marker_len))
                        return bad(field, all, all_len, "what follows \";\" is no environment marker of PEP 508", err);
                ret->marker = arena_copy(set->arena, marker, marker_len);
        }
        trim(&text, &len);
        if (!(is_python(set) ? read_python_version(set, text, len, ret) : read_node_version(set, text, len, ret)))
                return bad(field, all, all_len,
                        is_python(set) ? "its version is written as ==1.2, >=1.2,<2 or ~=1.2"
                                       : "its version is written as name@1.2.3, name@^1.2 or name@>=1 <2",
                        err);
        return 0;
}

/* ---- the set ---- */

static struct package_spec *find(struct package_set *set, const char *name)
{
        for (size_t i = 0; i < set->n; i++)
                if (strcmp(set->specs[i].name, name) == 0)
                        return &set->specs[i];
        return NULL;
}

static void put(struct package_set *set, const struct package_spec *spec)
{
        if (find(set, spec->name))
                return;
        struct package_spec *specs = arena_alloc(set->arena, (set->n + 1) * sizeof *specs);
        for (size_t i = 0; i < set->n; i++)
                specs[i] = set->specs[i];
        specs[set->n++] = *spec;
        set->specs = specs;
}

/* Whether a separator at this place begins another package: in ">=1,<2" and "[a,b]" a comma does not. */
static bool separates(const struct package_set *set, const char *text, size_t at, bool in_extras)
{
        char c = text[at];
        if (c == '\n' || c == '\r')
                return true;
        if (in_extras || (c != ',' && c != ';'))
                return false;
        size_t next = at + 1 + strspn(text + at + 1, " \t");
        if (c == ',')
                return !text[next] || is_alnum(text[next]) || text[next] == '@' || strchr(",;\r\n", text[next]);
        return !(is_python(set) && is_marker(text + next, strcspn(text + next, ";\n")));
}

int package_set_add(struct package_set *set, const char *text, const char *field, struct csn_error *err)
{
        size_t from = 0, len = strlen(text);
        bool in_extras = false;
        for (size_t i = 0; i <= len; i++) {
                struct package_spec spec;
                in_extras = text[i] == '[' || (in_extras && text[i] != ']');
                if (i < len && !separates(set, text, i, in_extras))
                        continue;
                const char *one = text + from;
                size_t one_len = i - from;
                from = i + 1;
                trim(&one, &one_len);
                if (!one_len)
                        continue;
                if (read_spec(set, one, one_len, field, &spec, err) < 0)
                        return -err->code;
                put(set, &spec);
        }
        return 0;
}

/* ---- requirements files ---- */

/* Cut " --hash=sha256:…" options from a line, from the right. */
static int cut_hashes(struct package_set *set, char *line, const char *field, char **hashes, size_t *ret_n,
        struct csn_error *err)
{
        static const char option[] = "--hash=sha256:";
        char *at;
        *ret_n = 0;
        while ((at = strstr(line, "--"))) {
                char *end = at + strcspn(at, " \t");
                if (strncmp(at, option, sizeof option - 1) != 0 || (size_t)(end - at) != sizeof option - 1 + 64)
                        return err_field(err, field,
                                "the option \"%.40s\" is not taken; --hash=sha256:… is the only option", at);
                char *hex = arena_copy(set->arena, at + sizeof option - 1, 64);
                if (strspn(hex, "0123456789abcdef") != 64)
                        return err_field(err, field, "\"%.80s\" is no hash: 64 hexadecimal digits in lower case", at);
                if (*ret_n == SPEC_HASHES_MAX)
                        return err_field(err, field, "a package has more than %d hashes", SPEC_HASHES_MAX);
                hashes[(*ret_n)++] = hex;
                memset(at, ' ', (size_t)(end - at));
        }
        return 0;
}

static int add_line(struct package_set *set, char *line, const char *field, struct csn_error *err)
{
        char *hashes[SPEC_HASHES_MAX];
        size_t n;
        struct package_spec spec;
        /* A comment begins the line, or follows a blank (pip, "Requirements File Format"). */
        for (char *at = line; *at; at++)
                if (*at == '#' && (at == line || is_blank(at[-1]))) {
                        *at = 0;
                        break;
                }
        size_t blanks = strspn(line, " \t");
        if (line[blanks] == '-' && line[blanks + 1] != '-')
                return err_field(err, field, "the option \"%.40s\" is not taken; give names and versions",
                        line + blanks);
        if (cut_hashes(set, line, field, hashes, &n, err) < 0)
                return -err->code;
        const char *text = line;
        size_t len = strlen(line);
        trim(&text, &len);
        if (!len)
                return n ? err_field(err, field, "a line has hashes and no package") : 0;
        if (read_spec(set, text, len, field, &spec, err) < 0)
                return -err->code;
        spec.hashes = arena_alloc(set->arena, (n + 1) * sizeof *spec.hashes);
        memcpy(spec.hashes, hashes, n * sizeof *hashes);
        spec.hashes_n = n;
        put(set, &spec);
        return 0;
}

int package_set_add_requirements(struct package_set *set, const char *text, const char *field, struct csn_error *err)
{
        char *copy = arena_text(set->arena, "%s", text), *line = copy;
        unsigned number = 1;
        while (line) {
                unsigned first = number;
                char *end = strchr(line, '\n');
                while (end && end > line &&
                        (end[-1] == '\\' || (end[-1] == '\r' && end - 1 > line && end[-2] == '\\'))) {
                        end[-1] = ' ';
                        if (end - 1 > line && end[-2] == '\\')
                                end[-2] = ' ';
                        *end = ' ';
                        number++;
                        end = strchr(end, '\n');
                }
                if (end)
                        *end = 0;
                line[strcspn(line, "\r")] = 0;
                if (add_line(set, line, field, err) < 0) {
                        char why[sizeof err->text];
                        snprintf(why, sizeof why, "%s", err->text);
                        return err_field(err, field, "line %u: %.300s", first, why);
                }
                line = end ? end + 1 : NULL;
                number++;
        }
        return 0;
}

/* ---- PEP 723 ---- */

/*
 * The strings of `dependencies = [...]` in the lines of a block, which are TOML. The reader takes an array of basic
 * literal strings on one or several lines, and comments.  Escapes are refused: no name and no version needs an escape.
 */
static int add_array(struct package_set *set, const char *text, struct csn_error *err)
{
        const char *at = text;
        for (;;) {
                at += strspn(at, " \t\r\n,");
                if (*at == '#') {
                        at += strcspn(at, "\n");
                        continue;
                }
                if (*at == ']')
                        return 0;
                if (*at != '"' && *at != '\'')
                        return err_field(err, "/code",
                                "the script block has dependencies that are no array of strings");
                char quote[] = { *at, '\n', '\\', 0 };
                size_t len = strcspn(at + 1, quote);
                if (at[1 + len] != quote[0])
                        return err_field(err, "/code", "the script block has a dependency that is no plain string");
                struct package_spec spec;
                if (read_spec(set, at + 1, len, "/code", &spec, err) < 0)
                        return -err->code;
                put(set, &spec);
                at += len + 2;
        }
}

int package_set_add_script(struct package_set *set, const char *code, size_t len, struct csn_error *err)
{
        static const char begin[] = "# /// script", end_mark[] = "# ///";
        struct arena *arena = set->arena;
        char *copy = arena_copy(arena, code, len), *block = arena_alloc(arena, len + 2);
        size_t n = 0, size = len + 2;
        bool inside = false, closed = false;
        for (char *line = copy, *next; line && !closed; line = next) {
                next = strchr(line, '\n');
                if (next)
                        *next++ = 0;
                line[strcspn(line, "\r")] = 0;
                if (!inside) {
                        inside = strcmp(line, begin) == 0;
                } else if (strcmp(line, end_mark) == 0) {
                        closed = true;
                } else if (line[0] == '#' && (line[1] == ' ' || !line[1])) {
                        n += (size_t)snprintf(block + n, size - n, "%s\n", line[1] ? line + 2 : "");
                } else {
                        return 0; /* PEP 723: a block without its last line is no block */
                }
        }
        if (!closed)
                return 0;
        for (char *at = block; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
                size_t blanks = strspn(at, " \t"), equals;
                if (at[0] == '[') /* a table: the top level is over */
                        return 0;
                if (strncmp(at + blanks, "dependencies", 12) != 0)
                        continue;
                equals = blanks + 12 + strspn(at + blanks + 12, " \t");
                if (at[equals] != '=')
                        continue;
                equals += 1 + strspn(at + equals + 1, " \t");
                if (at[equals] != '[')
                        return err_field(err, "/code",
                                "the script block has dependencies that are no array of strings");
                return add_array(set, at + equals + 1, err);
        }
        return 0;
}

/* ---- the text ---- */

static bool is_pinned(const struct package_spec *spec)
{
        return spec->hashes_n && strncmp(spec->version, "==", 2) == 0 && !strpbrk(spec->version, "*,");
}

bool package_set_is_pinned(const struct package_set *set)
{
        if (set->lock)
                return true;
        for (size_t i = 0; i < set->n; i++)
                if (!is_pinned(&set->specs[i]))
                        return false;
        return set->n > 0;
}

static int compare_specs(const void *a, const void *b)
{
        return strcmp(((const struct package_spec *)a)->name, ((const struct package_spec *)b)->name);
}

char *package_set_text(const struct package_set *set)
{
        struct package_spec *sorted = arena_alloc(set->arena, (set->n + 1) * sizeof *sorted);
        bool python = is_python(set);
        struct buf text = { .max = 16 * MIB };
        if (set->n)
                memcpy(sorted, set->specs, set->n * sizeof *sorted);
        if (set->n)
                qsort(sorted, set->n, sizeof *sorted, compare_specs);
        for (size_t i = 0; i < set->n; i++) {
                const struct package_spec *spec = &sorted[i];
                buf_printf(&text, "%s%s%s%s", spec->name, spec->extras[0] ? "[" : "", spec->extras,
                        spec->extras[0] ? "]" : "");
                buf_printf(&text, "%s%s%s%s", python || !spec->version[0] ? "" : "@", spec->version,
                        spec->marker[0] ? " ; " : "", spec->marker);
                if (spec->hashes_n)
                        qsort(spec->hashes, spec->hashes_n, sizeof *spec->hashes, compare_texts);
                for (size_t k = 0; k < spec->hashes_n; k++)
                        buf_printf(&text, " --hash=sha256:%s", spec->hashes[k]);
                buf_printf(&text, "\n");
        }
        char *copy = arena_copy(set->arena, text.bytes ? (char *)text.bytes : "", text.len);
        buf_done(&text);
        return copy;
}
