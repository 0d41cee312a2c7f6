/*
 * Findings of checks as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), which editors and code hosts
 * show.
 */
#include "front/cli/check.h"

#include <caisson/caisson.h>

static json_t *run_of(json_t *sarif)
{
        return json_array_get(json_object_get(sarif, "runs"), 0);
}

json_t *sarif_new(void)
{
        return json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:[]}}, s:s, s:[{s:b, s:[]}], s:[]}]}",
                         "$schema", "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs",
                         "tool", "driver", "name", "caisson", "version", csn_version(), "rules",
                         "columnKind", "unicodeCodePoints",
                         "invocations", "executionSuccessful", true, "toolExecutionNotifications", "results");
}

/* A path as a URI reference: bytes not allowed in a URI are written as %XX. */
static char *uri_of(const char *file)
{
        struct buf uri;
        buf_init(&uri, 64 * KIB);
        buf_printf(&uri, "%s", file[0] == '/' ? "file://" : "");
        /* A first part with a colon would be a scheme. */
        if (file[0] != '/' && strchr(file, ':'))
                buf_printf(&uri, "./");
        for (const unsigned char *c = (const unsigned char *)file; *c; c++) {
                bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
                buf_printf(&uri, letter || strchr("/-._~:@!$&'()*+,;=", *c) ? "%c" : "%%%02X", *c);
        }
        buf_add(&uri, "", 1);
        return uri.bytes;
}

/* The rule's place in the driver's list, where each is once. */
static json_int_t rule_index(json_t *run, const char *id, const char *text, const char *advice)
{
        json_t *rules = json_object_get(json_object_get(json_object_get(run, "tool"), "driver"), "rules"), *rule;
        size_t i;
        json_array_foreach(rules, i, rule)
                if (strcmp(json_string_value(json_object_get(rule, "id")), id) == 0)
                        return (json_int_t)i;
        json_array_append_new(rules,
                json_pack("{s:s, s:{s:s}, s:{s:s}}", "id", id, "shortDescription", "text", text, "help", "text",
                        advice ? advice : text));
        return (json_int_t)json_array_size(rules) - 1;
}

/* The characters from `column` to `end` of the region; NULL if the line is shorter. */
static char *cut(const char *line, uint64_t column, uint64_t end)
{
        const char *from = NULL;
        uint64_t at = 0;
        for (const char *c = line; column && column < end; c++) {
                at += ((unsigned char)*c & 0xc0) != 0x80;
                from = at == column && !from ? c : from;
                if (at == end && from)
                        return strndup(from, (size_t)(c - from));
                if (!*c)
                        break;
        }
        return NULL;
}

static void add_result(json_t *run, const char *file, const char *rule, json_int_t index, const char *level,
        const char *message, json_t *region, const char *line)
{
        char *uri = uri_of(file && strcmp(file, "-") != 0 ? file : "program");
        json_t *place = json_pack("{s:{s:s}, s:o}", "artifactLocation", "uri", uri, "region", region),
               *first = json_object_get(region, "startLine");
        uint64_t column = (uint64_t)json_integer_value(json_object_get(region, "startColumn"));
        uint64_t end = (uint64_t)json_integer_value(json_object_get(region, "endColumn"));
        char *snippet = line && json_equal(first, json_object_get(region, "endLine")) ? cut(line, column, end) : NULL;
        if (snippet || line)
                json_object_set_new(region, "snippet", json_pack("{s:s}", "text", snippet ? snippet : line));
        if (line)
                json_object_set_new(place, "contextRegion",
                        json_pack("{s:O, s:{s:s}}", "startLine", first, "snippet", "text", line));
        json_array_append_new(json_object_get(run, "results"),
                json_pack("{s:s, s:I, s:s, s:{s:s}, s:[{s:o}]}", "ruleId", rule, "ruleIndex", index, "level", level,
                        "message", "text", message, "locations", "physicalLocation", place));
        free(snippet);
        free(uri);
}

void sarif_add(json_t *sarif, const struct check_result *result)
{
        static const char *const levels[] = { [severity_LOW] = "note",
                [severity_MEDIUM] = "warning",
                [severity_HIGH] = "error",
                [severity_CRITICAL] = "error" };
        json_t *run = run_of(sarif);
        for (size_t i = 0; i < result->findings_n; i++) {
                const struct finding *finding = &result->findings[i];
                json_t *region = json_pack("{s:I, s:I}", "startLine", (json_int_t)finding->line, "startColumn",
                        (json_int_t)finding->column);
                if (HAS(finding, finding, end_line) && HAS(finding, finding, end_column)) {
                        json_object_set_new(region, "endLine", json_integer((json_int_t)finding->end_line));
                        json_object_set_new(region, "endColumn", json_integer((json_int_t)finding->end_column));
                }
                add_result(run, result->file, finding->rule,
                        rule_index(run, finding->rule, finding->message, finding->advice),
                        levels[finding->severity & 3], finding->message, region, finding->text);
        }
        if (HAS(result, check_result, error) && HAS(&result->error, failure, line)) {
                json_t *region = json_pack("{s:I}", "startLine", (json_int_t)result->error.line);
                if (result->error.column)
                        json_object_set_new(region, "startColumn", json_integer((json_int_t)result->error.column));
                add_result(run, result->file, "syntax_error",
                        rule_index(run, "syntax_error", "The program does not parse", NULL), "error",
                        result->error.message, region, result->error.text);
        }
}

void sarif_add_trouble(json_t *sarif, const char *text)
{
        json_t *invocation = json_array_get(json_object_get(run_of(sarif), "invocations"), 0);
        json_object_set_new(invocation, "executionSuccessful", json_false());
        json_array_append_new(json_object_get(invocation, "toolExecutionNotifications"),
                              json_pack("{s:s, s:{s:s}}", "level", "error", "message", "text", text));
}
