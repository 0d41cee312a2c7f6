/*
 * The text of an answer as a verdict.
 *
 * The reviewed program can address the model, and the model may repeat the program.  So a text counts only with exactly
 * one object of the schema, outside of a thinking part at its beginning: an answer smuggled in by the program would be
 * the second object.  A model may also quote such an answer in prose, or as malformed JSON.  So a verdict in the text
 * around the object invalidates the answer, and so does an object contained in the program.
 */
#include "review/review_private.h"

#include <jansson.h>

#define CONTENT_MAX (256 * KIB) /* bytes of a text; with TRIES_MAX the bound of the work */
#define TRIES_MAX 100           /* opening braces tried as the start of an object */
#define DEPTH_MAX 16
#define REASON_MAX 2000
#define RULE_MAX 100
#define WHY_MAX 500
#define FINDINGS_MAX 100
#define EXTRA_MAX (4 * KIB)
#define THINK "<think>"
#define THINK_END "</think>"
#define VERDICT "is_secure"
#define AROUND_NAME " \t\r\n\"'`*\\" /* blanks, quotes, escapes and emphasis */

static char *cut(struct arena *arena, const char *text, size_t max)
{
        size_t len = strlen(text);
        return arena_copy(arena, text, len > max ? utf8_whole(text, max) : len);
}

/* ---- one object ---- */

/* True: *ret is the text, or NULL if absent or null.  False: another type. */
static bool text_of(json_t *object, const char *name, const char **ret)
{
        json_t *value = json_object_get(object, name);
        *ret = json_string_value(value);
        return !value || json_is_null(value) || json_is_string(value);
}

static bool read_findings(json_t *list, struct arena *arena, struct review *ret)
{
        size_t n = json_array_size(list);
        if (!list || json_is_null(list))
                return true;
        if (!json_is_array(list))
                return false;
        ret->findings = arena_alloc(arena, (n + 1) * sizeof *ret->findings);
        for (size_t i = 0; i < n && i < FINDINGS_MAX; i++) {
                json_t *one = json_array_get(list, i), *line = json_object_get(one, "line");
                struct review_finding *finding = &ret->findings[ret->findings_n++];
                const char *rule, *why;
                if (!json_is_object(one) || !text_of(one, "rule", &rule) || !text_of(one, "why", &why) ||
                        (line && !json_is_null(line) && !json_is_integer(line)))
                        return false;
                if (json_integer_value(line) > 0)
                        SET(finding, review_finding, line, (uint64_t)json_integer_value(line));
                if (rule)
                        SET(finding, review_finding, rule, cut(arena, rule, RULE_MAX));
                if (why)
                        SET(finding, review_finding, why, cut(arena, why, WHY_MAX));
        }
        if (ret->findings_n)
                MARK(ret, review, findings);
        return true;
}

static bool read_risk(json_t *object, struct review *ret)
{
        const char *risk;
        if (!text_of(object, "risk", &risk))
                return false;
        if (!risk)
                return true;
        for (size_t i = 0; i < choices_review_risk.n; i++)
                if (strcmp(choices_review_risk.values[i].text, risk) == 0) {
                        SET(ret, review, risk, (int)i);
                        return true;
                }
        return false;
}

/* Members beyond the schema; usage is read elsewhere (completion.c). */
static void read_extra(json_t *object, struct arena *arena, struct review *ret)
{
        static const char *const known[] = { VERDICT, "reason", "risk", "findings", "usage" };
        json_t *extra = json_copy(object);
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                json_object_del(extra, known[i]);
        char *text = json_object_size(extra) ? json_dumps(extra, JSON_COMPACT) : NULL;
        if (text && strlen(text) <= EXTRA_MAX)
                SET(ret, review, extra, arena_text(arena, "%s", text));
        free(text);
        json_decref(extra);
}

static const char *read_object(json_t *object, struct arena *arena, struct review *ret)
{
        json_t *secure = json_object_get(object, VERDICT);
        const char *reason;
        if (!json_is_boolean(secure) || !text_of(object, "reason", &reason) || !reason)
                return "the answer is not of the schema {is_secure: bool, reason: string}";
        if (!read_risk(object, ret) || !read_findings(json_object_get(object, "findings"), arena, ret))
                return "risk or findings of the answer are not of the schema";
        SET(ret, review, verdict, json_is_true(secure) ? review_verdict_SECURE : review_verdict_INSECURE);
        SET(ret, review, reason, cut(arena, reason, REASON_MAX));
        read_extra(object, arena, ret);
        return NULL;
}

/* ---- the text around the object ---- */

/* Skip the thinking part at the beginning.  false: the part has no end. */
static bool skip_thinking(const char **at, const char *end)
{
        while (*at < end && strchr(" \t\r\n", **at))
                ++*at;
        if ((size_t)(end - *at) < strlen(THINK) || memcmp(*at, THINK, strlen(THINK)) != 0)
                return true;
        const char *close = memmem(*at, (size_t)(end - *at), THINK_END, strlen(THINK_END));
        *at = close ? close + strlen(THINK_END) : *at;
        return close != NULL;
}

/* A mark of thinking in prose: the thinking part of the text is then uncertain. */
static bool has_mark(const char *from, const char *to)
{
        return memmem(from, (size_t)(to - from), THINK, strlen(THINK)) ||
                memmem(from, (size_t)(to - from), THINK_END, strlen(THINK_END));
}

/*
 * Does the text have a verdict, such as `"is_secure": false` or `**is_secure**: no`?  Also found in an object with
 * unescaped quotes.
 */
static bool has_verdict(const char *from, const char *to)
{
        while ((from = memmem(from, (size_t)(to - from), VERDICT, strlen(VERDICT)))) {
                from += strlen(VERDICT);
                while (from < to && strchr(AROUND_NAME, *from))
                        from++;
                if (from < to && (*from == ':' || *from == '='))
                        return true;
        }
        return false;
}

/* The text without the characters changed by quoting. */
static struct bytes bare(struct bytes text, struct arena *arena)
{
        struct bytes ret = { arena_alloc(arena, text.len + 1), 0 };
        for (size_t i = 0; i < text.len; i++)
                if (!text.bytes[i] || !strchr(AROUND_NAME, text.bytes[i]))
                        ret.bytes[ret.len++] = text.bytes[i];
        return ret;
}

static bool is_part(struct bytes object, struct bytes code, struct arena *arena)
{
        struct bytes small = bare(object, arena), large = bare(code, arena);
        return memmem(large.bytes, large.len, small.bytes, small.len) != NULL;
}

/* Find the last complete object of the text and its bytes.  Returns why the text is no single verdict, or NULL. */
static const char *find_object(const char *at, const char *end, json_t **ret, struct bytes *ret_bytes)
{
        size_t tries = 0, of_schema = 0;
        const char *prose = at, *open;
        bool marked = false, told = false;
        while ((open = memchr(at, '{', (size_t)(end - at)))) {
                json_error_t where;
                if (++tries > TRIES_MAX)
                        return "the answer has too many braces";
                json_t *object = json_loadb(open, (size_t)(end - open), JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK,
                        &where);
                at = object ? open + where.position : open + 1;
                if (!object)
                        continue;
                marked = marked || has_mark(prose, open);
                told = told || has_verdict(prose, open);
                prose = at;
                of_schema += json_object_get(object, VERDICT) != NULL;
                json_decref(*ret);
                *ret = object;
                *ret_bytes = (struct bytes){ (char *)(uintptr_t)open, (size_t)(at - open) };
        }
        if (marked || has_mark(prose, end))
                return "the answer has a mark of thinking in the wrong place";
        if (!*ret)
                return "the answer has no JSON object";
        return of_schema > 1 || told || has_verdict(prose, end) ? "the answer has more than one verdict" : NULL;
}

const char *review_answer_read(const char *text, size_t len, struct bytes code, struct arena *arena, struct review *ret,
        char **ret_text)
{
        const char *at = text, *end = text + len;
        json_t *object = NULL;
        struct bytes bytes = { 0 };
        struct review found = { 0 };
        if (len > CONTENT_MAX)
                return "the answer is too long";
        if (!utf8_valid(text, len))
                return "the answer is no UTF-8";
        if (!skip_thinking(&at, end))
                return "the answer has " THINK " without an end";
        const char *why = find_object(at, end, &object, &bytes);
        if (!why && model_value_is_deeper(object, DEPTH_MAX))
                why = "the answer is nested too deeply";
        if (!why)
                why = read_object(object, arena, &found);
        if (!why && is_part(bytes, code, arena))
                why = "the answer repeats an answer that is in the program";
        if (!why) {
                char *dumped = json_dumps(object, JSON_COMPACT);
                *ret_text = arena_text(arena, "%s", dumped);
                free(dumped);
                ret->verdict = found.verdict;
                ret->reason = found.reason;
                ret->risk = found.risk;
                ret->findings = found.findings;
                ret->findings_n = found.findings_n;
                ret->extra = found.extra;
                ret->present |= found.present;
        }
        json_decref(object);
        return why;
}
