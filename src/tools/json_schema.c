/*
 * Arguments against a JSON Schema (2020-12, the validation vocabulary and the applicators).
 *
 * Schema and value are untrusted, and together could cause any amount of work.  So a check has a budget of steps, a
 * limit of depth, and a limit of CPU time.  A step is about a microsecond: one keyword of a schema, or 64 bytes read.
 * Regular expressions draw on the same budget: PCRE2's own limits start anew at each position of a text, so a callout
 * counts each item of an expression (pcre2callout(3)).  A check beyond its limits fails with an error of the schema.
 *
 * A `$ref` may refer to a place in the same schema.  Other references, `$dynamicRef`, the unevaluated* keywords,
 * formats and unknown keywords are ignored, so they accept every value.
 */
#include "tools/tools.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define STEPS_MAX 100000
#define STEP_BYTES 64              /* bytes of text in a step */
#define WORK_MS_MAX 200            /* CPU time of a check, should steps take longer than a microsecond */
#define CLOCK_STEPS 1000           /* steps between two reads of the clock */
#define MATCH_STEPS 20             /* steps to compile a regular expression */
#define DEPTH_MAX 100
#define PATTERN_MAX 4096
#define MATCH_LIMIT 20000
#define MATCH_HEAP_KIB 1024

/* The path from the root value to a member or an item. */
struct where {
        const struct where *above;
        const char *name;          /* NULL: an item */
        size_t item;
};

struct trial {
        json_t *root;
        size_t steps, clock_steps; /* steps done; steps done at the last read of the clock */
        uint64_t until_us;
        unsigned depth, quiet;     /* quiet: within alternatives, where a failure is no error */
        struct csn_error *err;
        bool broken;               /* the budget is used up; err says so */
};

static bool satisfies(struct trial *check, json_t *schema, json_t *value, const struct where *where);

/* ---- errors ---- */

static size_t print_where(const struct where *where, char *text, size_t size)
{
        size_t len = where->above ? print_where(where->above, text, size) : 0;
        if (!where->above || len >= size)
                return len;
        int n = where->name ? snprintf(text + len, size - len, "/%.60s", where->name)
                            : snprintf(text + len, size - len, "/%zu", where->item);
        return n < 0 ? len : min_u64(len + (size_t)n, size - 1);
}

static bool no(struct trial *check, const struct where *where, const char *fmt, ...) PRINTF_LIKE(3, 4);

static bool no(struct trial *check, const struct where *where, const char *fmt, ...)
{
        char text[400], field[sizeof check->err->field] = "";
        if (check->broken || check->quiet || !check->err)
                return false;
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        print_where(where, field, sizeof field);
        err_field(check->err, field, "%s", text);
        return false;
}

static bool broken(struct trial *check, const char *why)
{
        if (!check->broken)
                err_field(check->err, "", "the schema %s", why);
        check->broken = true;
        return false;
}

static bool spend(struct trial *check, size_t steps)
{
        check->steps += steps;
        bool late = false;
        if (check->steps - check->clock_steps >= CLOCK_STEPS) {
                check->clock_steps = check->steps;
                late = clock_work_us() > check->until_us;
        }
        return (!late && check->steps <= STEPS_MAX) || broken(check, "takes too much work for this value");
}

static bool spend_text(struct trial *check, size_t len)
{
        return spend(check, 1 + len / STEP_BYTES);
}

/* ---- values ---- */

static bool is_whole(json_t *value)
{
        return json_is_integer(value) ||
                (json_is_real(value) && floor(json_real_value(value)) == json_real_value(value));
}

/* Numbers are compared by value: 1 equals 1.0. */
static bool is_same(struct trial *check, json_t *a, json_t *b, unsigned depth)
{
        const char *name;
        json_t *item;
        size_t i;
        if (!spend(check, 1) || depth > DEPTH_MAX)
                return false;
        if (json_is_number(a) && json_is_number(b) && json_typeof(a) != json_typeof(b))
                return json_number_value(a) == json_number_value(b);
        if (json_typeof(a) != json_typeof(b))
                return false;
        if (json_is_array(a)) {
                if (json_array_size(a) != json_array_size(b))
                        return false;
                json_array_foreach(a, i, item)
                        if (!is_same(check, item, json_array_get(b, i), depth + 1))
                                return false;
                return true;
        }
        if (json_is_object(a)) {
                if (json_object_size(a) != json_object_size(b))
                        return false;
                json_object_foreach(a, name, item) {
                        json_t *other = spend_text(check, strlen(name)) ? json_object_get(b, name) : NULL;
                        if (!other || !is_same(check, item, other, depth + 1))
                                return false;
                }
                return true;
        }
        return spend_text(check, min_u64(json_string_length(a), json_string_length(b))) && json_equal(a, b);
}

static size_t characters(const json_t *text)
{
        const char *bytes = json_string_value(text);
        size_t n = 0;
        for (size_t i = 0; i < json_string_length(text); i++)
                n += ((unsigned char)bytes[i] & 0xc0) != 0x80;
        return n;
}

struct match {
        struct trial *check;
        size_t len;                /* bytes of the text, which the next item of the expression may scan */
};

static int on_item(pcre2_callout_block *block, void *owner)
{
        const struct match *match = owner;
        (void)block;
        return spend_text(match->check, match->len) ? 0 : PCRE2_ERROR_CALLOUT;
}

/* Does the expression match the text?  An unusable expression breaks the check. */
static bool is_found(struct trial *check, const char *pattern, size_t pattern_len, const char *text, size_t len)
{
        const struct match match = { check, len };
        int code = 0;
        size_t at = 0;
        if (!spend(check, MATCH_STEPS + pattern_len) || !spend_text(check, len))
                return false;
        pcre2_code *compiled = pattern_len > PATTERN_MAX
                ? NULL
                : pcre2_compile((PCRE2_SPTR)pattern, pattern_len,
                          PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_ALT_BSUX |
                                  PCRE2_AUTO_CALLOUT,
                          &code, &at, NULL);
        if (!compiled)
                return broken(check, "has a regular expression that cannot be used");
        pcre2_match_data *data = pcre2_match_data_create_from_pattern(compiled, NULL);
        pcre2_match_context *context = pcre2_match_context_create(NULL);
        int rc = PCRE2_ERROR_NOMEMORY;
        if (data && context) {
                pcre2_set_match_limit(context, MATCH_LIMIT);
                pcre2_set_heap_limit(context, MATCH_HEAP_KIB);
                pcre2_set_callout(context, on_item, (void *)&match);
                rc = pcre2_match(compiled, (PCRE2_SPTR)text, len, 0, 0, data, context);
        }
        pcre2_match_context_free(context);
        pcre2_match_data_free(data);
        pcre2_code_free(compiled);
        if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
                return broken(check, "has a regular expression that takes too much work for this value");
        return rc >= 0;
}

static bool satisfies_quietly(struct trial *check, json_t *schema, json_t *value, const struct where *where)
{
        check->quiet++;
        bool good = satisfies(check, schema, value, where);
        check->quiet--;
        return good;
}

/* ---- keywords ---- */

static bool is_type(json_t *value, const char *type)
{
        static const struct { const char *name; int type;
        } types[] = {
                { "object", JSON_OBJECT },
                { "array", JSON_ARRAY },
                { "string", JSON_STRING },
                { "null", JSON_NULL },
                { "integer", JSON_INTEGER },
                { "number", JSON_INTEGER },
                { "number", JSON_REAL },
                { "boolean", JSON_TRUE },
                { "boolean", JSON_FALSE },
        };
        if (strcmp(type, "integer") == 0 && is_whole(value))
                return true;
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                if (strcmp(types[i].name, type) == 0 && types[i].type == (int)json_typeof(value))
                        return true;
        return false;
}

static bool on_type(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *type;
        size_t i;
        (void)schema;
        if (json_is_string(word))
                return is_type(value, json_string_value(word)) ||
                        no(check, where, "has to be of type %.40s", json_string_value(word));
        if (!spend(check, json_array_size(word)))
                return false;
        json_array_foreach(word, i, type)
                if (json_is_string(type) && is_type(value, json_string_value(type)))
                        return true;
        return !json_is_array(word) || no(check, where, "has another type than those allowed");
}

static bool on_enum(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *one;
        size_t i;
        (void)schema;
        json_array_foreach(word, i, one)
                if (is_same(check, one, value, 0))
                        return true;
        if (!json_is_array(word) || check->broken || check->quiet)
                return !json_is_array(word);
        char *choices = json_dumps(word, JSON_COMPACT);
        no(check, where, "has to be one of %.300s", choices ? choices : "a list");
        free(choices);
        return false;
}

static bool on_const(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        (void)schema;
        return is_same(check, word, value, 0) || no(check, where, "has to be the one value that is allowed");
}

static bool on_number(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        static const char *const names[] = { "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum" };
        static const char *const texts[] = { "at least", "at most", "more than", "less than" };
        double number = json_number_value(value);
        (void)word;
        for (size_t i = 0; i < ARRAY_LEN(names) && json_is_number(value); i++) {
                json_t *bound = json_object_get(schema, names[i]);
                double limit = json_number_value(bound);
                if (!json_is_number(bound))
                        continue;
                if (i == 0 ? number < limit : i == 1 ? number > limit : i == 2 ? number <= limit : number >= limit)
                        return no(check, where, "has to be %s %.15g", texts[i], limit);
        }
        json_t *step = json_object_get(schema, "multipleOf");
        double part = json_is_number(step) && json_is_number(value) ? json_number_value(step) : 0;
        if (part > 0) {
                double times = number / part;
                if (!isfinite(times) ? fmod(number, part) != 0
                                     : fabs(times - round(times)) > 1e-9 * fmax(1, fabs(times)))
                        return no(check, where, "has to be a multiple of %.15g", part);
        }
        return true;
}

/* minX and maxX; 2.0 is a valid bound. */
static bool is_within(struct trial *check, json_t *schema, const char *least, const char *most, size_t n,
        const char *what, const struct where *where)
{
        json_t *min = json_object_get(schema, least), *max = json_object_get(schema, most);
        if (json_is_number(min) && (double)n < json_number_value(min))
                return no(check, where, "has to have at least %.0f %s", json_number_value(min), what);
        if (json_is_number(max) && (double)n > json_number_value(max))
                return no(check, where, "has to have at most %.0f %s", json_number_value(max), what);
        return true;
}

static bool on_string(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *pattern = json_object_get(schema, "pattern");
        (void)word;
        if (!json_is_string(value))
                return true;
        if (!spend_text(check, json_string_length(value)) ||
                !is_within(check, schema, "minLength", "maxLength", characters(value), "characters", where))
                return false;
        if (!json_is_string(pattern) ||
                is_found(check, json_string_value(pattern), json_string_length(pattern), json_string_value(value),
                        json_string_length(value)))
                return true;
        return no(check, where, "has to match %.200s", json_string_value(pattern));
}

static bool are_unique(struct trial *check, json_t *array)
{
        size_t n = json_array_size(array);
        for (size_t i = 0; i < n; i++)
                for (size_t k = i + 1; k < n; k++)
                        if (is_same(check, json_array_get(array, i), json_array_get(array, k), 0) || check->broken)
                                return false;
        return true;
}

static bool has_enough(struct trial *check, json_t *schema, json_t *array, const struct where *where)
{
        json_t *contains = json_object_get(schema, "contains"), *min = json_object_get(schema, "minContains"),
               *max = json_object_get(schema, "maxContains"), *item;
        size_t i, n = 0;
        if (!contains)
                return true;
        json_array_foreach(array, i, item)
                n += satisfies_quietly(check, contains, item, &(struct where){ where, NULL, i });
        double least = json_is_number(min) ? json_number_value(min) : 1;
        if ((double)n < least || (json_is_number(max) && (double)n > json_number_value(max)))
                return no(check, where, "has %zu items of the kind that it has to contain, which are too %s", n,
                        (double)n < least ? "few" : "many");
        return true;
}

static bool on_array(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *first = json_object_get(schema, "prefixItems"), *rest = json_object_get(schema, "items"), *item;
        size_t i;
        (void)word;
        if (!json_is_array(value))
                return true;
        if (!is_within(check, schema, "minItems", "maxItems", json_array_size(value), "items", where))
                return false;
        /* Drafts before 2020-12: `items` may be a list. */
        if (json_is_array(rest)) {
                first = rest;
                rest = json_object_get(schema, "additionalItems");
        }
        json_array_foreach(value, i, item) {
                json_t *its = i < json_array_size(first) ? json_array_get(first, i) : rest;
                if (its && !satisfies(check, its, item, &(struct where){ where, NULL, i }))
                        return false;
        }
        if (json_is_true(json_object_get(schema, "uniqueItems")) && !are_unique(check, value))
                return no(check, where, "has an item twice");
        return has_enough(check, schema, value, where);
}

static bool on_required(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *name;
        size_t i;
        (void)schema;
        if (!json_is_object(value) || !spend(check, json_array_size(word)))
                return !check->broken;
        json_array_foreach(word, i, name)
                if (json_is_string(name) && !json_object_getn(value, json_string_value(name), json_string_length(name)))
                        return no(check, where, "needs \"%.100s\"", json_string_value(name));
        return true;
}

static bool on_dependent(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *schemas = json_object_get(schema, "dependentSchemas"),
               *needs = json_object_get(schema, "dependentRequired"), *its;
        json_t *both = json_object_get(schema, "dependencies");   /* drafts before 2019-09 */
        const char *name;
        (void)word;
        if (!json_is_object(value))
                return true;
        if (!spend(check, json_object_size(needs) + json_object_size(schemas) + json_object_size(both)))
                return false;
        json_object_foreach(needs, name, its)
                if (json_object_get(value, name) && !on_required(check, schema, its, value, where))
                        return false;
        json_object_foreach(schemas, name, its)
                if (json_object_get(value, name) && !satisfies(check, its, value, where))
                        return false;
        json_object_foreach(both, name, its) if (json_object_get(value, name) &&
                !(json_is_array(its) ? on_required(check, schema, its, value, where)
                                     : satisfies(check, its, value, where))) return false;
        return true;
}

static bool has_known_property(struct trial *check, json_t *schema, const char *name, size_t len, json_t *value,
        const struct where *below, bool *ret_known)
{
        json_t *its = json_object_getn(json_object_get(schema, "properties"), name, len),
               *patterns = json_object_get(schema, "patternProperties");
        const char *pattern;
        *ret_known = its != NULL;
        if (its && !satisfies(check, its, value, below))
                return false;
        json_object_foreach(patterns, pattern, its) {
                if (!is_found(check, pattern, strlen(pattern), name, len))
                        continue;
                *ret_known = true;
                if (!satisfies(check, its, value, below))
                        return false;
        }
        return !check->broken;
}

static bool on_object(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *others = json_object_get(schema, "additionalProperties"),
               *names = json_object_get(schema, "propertyNames"), *one;
        const char *name;
        size_t len;
        (void)word;
        if (!json_is_object(value))
                return true;
        if (!is_within(check, schema, "minProperties", "maxProperties", json_object_size(value), "properties", where))
                return false;
        json_object_keylen_foreach(value, name, len, one) {
                const struct where below = { where, name, 0 };
                bool known;
                if (!spend_text(check, len) || !has_known_property(check, schema, name, len, one, &below, &known))
                        return false;
                if (!known && json_is_false(others))
                        return no(check, where, "has no property \"%.100s\"", name);
                if (!known && others && !satisfies(check, others, one, &below))
                        return false;
                if (!names)
                        continue;
                json_t *text = json_stringn(name, len);
                bool good = satisfies(check, names, text, &below);
                json_decref(text);
                if (!good)
                        return false;
        }
        return true;
}

static bool on_all(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *one;
        size_t i;
        (void)schema;
        json_array_foreach(word, i, one)
                if (!satisfies(check, one, value, where))
                        return false;
        return true;
}

static bool on_any(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *one;
        size_t i;
        (void)schema;
        json_array_foreach(word, i, one)
                if (satisfies_quietly(check, one, value, where))
                        return true;
        return !json_is_array(word) || no(check, where, "fits none of what it may be (anyOf)");
}

static bool on_one(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        size_t n = 0, i;
        json_t *one;
        (void)schema;
        json_array_foreach(word, i, one)
                n += satisfies_quietly(check, one, value, where);
        return !json_is_array(word) || n == 1 ||
                no(check, where, "fits %zu of what it may be, and has to fit one (oneOf)", n);
}

static bool on_not(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        (void)schema;
        return !satisfies_quietly(check, word, value, where) || no(check, where, "is what it may not be (not)");
}

static bool on_if(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *next = json_object_get(schema, satisfies_quietly(check, word, value, where) ? "then" : "else");
        return !check->broken && (!next || satisfies(check, next, value, where));
}

/* One part of a JSON pointer (RFC 6901) in a URI. */
static size_t pointer_part(const char *from, char *part, size_t size)
{
        size_t n = 0, at = 0;
        while (from[at] && from[at] != '/' && n + 1 < size) {
                unsigned byte;
                char c = from[at++];
                if (c == '%' && isxdigit((unsigned char)from[at]) && isxdigit((unsigned char)from[at + 1]) &&
                        sscanf(from + at, "%2x", &byte) == 1 && byte) {
                        c = (char)byte;
                        at += 2;
                }
                if (c == '~' && (from[at] == '0' || from[at] == '1'))
                        c = from[at++] == '0' ? '~' : '/';
                part[n++] = c;
        }
        part[n] = 0;
        return at;
}

static json_t *place_of(json_t *root, const char *reference)
{
        char part[256];
        if (reference[0] != '#' || (reference[1] && reference[1] != '/'))
                return NULL;
        for (reference++; root && *reference == '/';) {
                reference++;
                reference += pointer_part(reference, part, sizeof part);
                root = json_is_array(root) ? json_array_get(root, (size_t)strtoul(part, NULL, 10))
                                           : json_object_get(root, part);
        }
        return *reference ? NULL : root;
}

static bool on_ref(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where)
{
        json_t *place = json_is_string(word) && spend_text(check, json_string_length(word))
                ? place_of(check->root, json_string_value(word))
                : NULL;
        (void)schema;
        return !check->broken && (!place || satisfies(check, place, value, where));
}

/* The rules, each with the keywords to which it applies. */
static const struct {
        const char *word;          /* the rule applies if `word` or one of `more` is present; NULL: always */
        const char *more[6];
        bool (*rule)(struct trial *check, json_t *schema, json_t *word, json_t *value, const struct where *where);
} rules[] = {
        { "$ref", { NULL }, on_ref },
        { "type", { NULL }, on_type },
        { "enum", { NULL }, on_enum },
        { "const", { NULL }, on_const },
        { "minimum", { "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf" }, on_number },
        { "pattern", { "minLength", "maxLength" }, on_string },
        { "items", { "prefixItems", "minItems", "maxItems", "uniqueItems", "contains" }, on_array },
        { "required", { NULL }, on_required },
        { "properties",
                { "patternProperties", "additionalProperties", "propertyNames", "minProperties", "maxProperties" },
                on_object },
        { "dependentRequired", { "dependentSchemas", "dependencies" }, on_dependent },
        { "allOf", { NULL }, on_all },
        { "anyOf", { NULL }, on_any },
        { "oneOf", { NULL }, on_one },
        { "not", { NULL }, on_not },
        { "if", { NULL }, on_if },
};

static json_t *word_of(json_t *schema, size_t rule)
{
        json_t *word = json_object_get(schema, rules[rule].word);
        for (size_t i = 0; !word && i < ARRAY_LEN(rules[rule].more) && rules[rule].more[i]; i++)
                word = json_object_get(schema, rules[rule].more[i]);
        return word;
}

static bool satisfies(struct trial *check, json_t *schema, json_t *value, const struct where *where)
{
        bool good = true;
        if (check->broken || !spend(check, 1))
                return false;
        if (json_is_false(schema))
                return no(check, where, "is not allowed at all");
        if (!json_is_object(schema))
                return true;
        if (++check->depth > DEPTH_MAX)
                return broken(check, "is nested too deeply, or refers to itself without an end");
        for (size_t i = 0; i < ARRAY_LEN(rules) && good; i++) {
                json_t *word = word_of(schema, i);
                good = !word || rules[i].rule(check, schema, word, value, where);
        }
        check->depth--;
        return good && !check->broken;
}

int schema_check(json_t *schema, json_t *value, struct csn_error *err)
{
        struct csn_error own = { 0 };
        struct trial check = {
                .root = schema, .err = err ? err : &own, .until_us = clock_work_us() + WORK_MS_MAX * 1000
        };
        *check.err = (struct csn_error){ 0 };
        if (satisfies(&check, schema, value, &(struct where){ NULL, NULL, 0 }))
                return 0;
        return check.err->code ? -check.err->code : err_field(check.err, "", "does not satisfy the schema");
}
