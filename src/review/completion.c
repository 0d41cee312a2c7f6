/*
 * Bodies of chat/completions (OpenAI's API, as many servers offer it) and of review.command and review.url.
 *
 * Servers accept different parameters: the ladder goes from a strict schema to an object to plain text, and leaves out
 * each parameter named in a refusal.  An error body is read for this alone, and never shown.
 */
#include "review/review_private.h"

#include <jansson.h>
#include <strings.h>

#define PARTS_MAX 20000        /* values and names in a body */
#define TOKENS_MAX 1000000000  /* of one answer; a larger number is no number of tokens */
#define ERROR_BODY_MAX (64 * KIB)

/* ---- questions ---- */

/* Strict servers want each property to be required. */
static json_t *answer_schema(void)
{
        json_t *finding = json_pack("{s:s, s:{s:{s:[s,s]}, s:{s:s}, s:{s:s}}, s:[s,s,s], s:b}", "type", "object",
                "properties", "line", "type", "integer", "null", "rule", "type", "string", "why", "type", "string",
                "required", "line", "rule", "why", "additionalProperties", 0);
        return json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s, s:[s,s,s,s]}, s:{s:s, s:o}}, s:[s,s,s,s], s:b}", "type",
                "object", "properties", "is_secure", "type", "boolean", "reason", "type", "string", "risk", "type",
                "string", "enum", "none", "low", "medium", "high", "findings", "type", "array", "items", finding,
                "required", "is_secure", "reason", "risk", "findings", "additionalProperties", 0);
}

static json_t *response_format(int format)
{
        if (format == review_formats_JSON_OBJECT)
                return json_pack("{s:s}", "type", "json_object");
        return json_pack("{s:s, s:{s:s, s:b, s:o}}", "type", "json_schema", "json_schema", "name", "code_review",
                "strict", 1, "schema", answer_schema());
}

char *review_chat_body(const struct review_settings *settings, const struct review_ladder *ladder, const char *system,
        const char *user)
{
        json_t *body = json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}], s:b}", "model", settings->model, "messages", "role",
                "system", "content", system, "role", "user", "content", user, "stream", 0);
        if (!body)
                return NULL;
        json_object_set_new(body, ladder->completion_tokens ? "max_completion_tokens" : "max_tokens",
                json_integer((json_int_t)settings->max_output_tokens));
        if (settings->temperature[0] && !ladder->no_temperature)
                json_object_set_new(body, "temperature",
                        strpbrk(settings->temperature, ".eE")
                                ? json_real(strtod(settings->temperature, NULL))
                                : json_integer(strtol(settings->temperature, NULL, 10)));
        if (ladder->format != review_formats_TEXT)
                json_object_set_new(body, "response_format", response_format(ladder->format));
        char *text = json_dumps(body, JSON_COMPACT | MODEL_MEASURED);
        json_decref(body);
        return text;
}

char *review_hook_body(const struct review_query *query, struct bytes code)
{
        struct arena arena = { 0 };
        size_t len;
        json_t *tools = json_array(), *findings = json_array();
        for (size_t i = 0; i < query->tools_n; i++)
                json_array_append_new(tools, json_string(query->tools[i]));
        for (size_t i = 0; i < query->findings_n; i++)
                json_array_append_new(findings, model_encode(&object_finding, &query->findings[i]));
        const char *shown = model_utf8(&arena, code.bytes ? code.bytes : "", code.len, &len);
        json_t *body = json_pack("{s:o, s:s, s:o, s:o, s:s?}", "code", json_stringn(shown, len), "language",
                query->language, "tools", tools, "static_findings", findings, "profile", query->profile);
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
        json_decref(body);
        arena_done(&arena);
        return text;
}

/* ---- the ladder ---- */

static bool mentions(const char *body, size_t len, const char *word)
{
        return memmem(body, min_u64(len, ERROR_BODY_MAX), word, strlen(word)) != NULL;
}

bool review_ladder_step(struct review_ladder *ladder, bool fixed, long status, const char *body, size_t len)
{
        if (status != 400 && status != 404 && status != 422 && status != 500)
                return false;
        if (!ladder->completion_tokens && mentions(body, len, "max_completion_tokens"))
                return ladder->completion_tokens = true;
        if (!fixed && ladder->format != review_formats_TEXT &&
                (mentions(body, len, "response_format") || mentions(body, len, "json_schema"))) {
                ladder->format = ladder->format == review_formats_JSON_SCHEMA ? review_formats_JSON_OBJECT
                                                                              : review_formats_TEXT;
                return true;
        }
        if (!ladder->no_temperature && mentions(body, len, "temperature"))
                return ladder->no_temperature = true;
        return false;
}

/* ---- answers ---- */

/* A number of tokens; absent and null are 0 where `optional`. */
static bool tokens_of(json_t *object, const char *name, bool optional, uint64_t *ret)
{
        json_t *value = json_object_get(object, name);
        json_int_t number = json_integer_value(value);
        if (optional && (!value || json_is_null(value)))
                return true;
        if (!json_is_integer(value) || number < 0 || number > TOKENS_MAX)
                return false;
        *ret = (uint64_t)number;
        return true;
}

/* False for missing or contradictory numbers: nothing is guessed. */
static bool read_usage(json_t *usage, struct review_usage *ret)
{
        struct review_usage found = { 0 };
        json_t *prompt = json_object_get(usage, "prompt_tokens_details"),
               *completion = json_object_get(usage, "completion_tokens_details");
        if (!json_is_object(usage) || !tokens_of(usage, "prompt_tokens", false, &found.prompt_tokens) ||
                !tokens_of(usage, "completion_tokens", false, &found.completion_tokens))
                return false;
        found.total_tokens = found.prompt_tokens + found.completion_tokens;
        if (!tokens_of(usage, "total_tokens", true, &found.total_tokens) ||
                !tokens_of(prompt, "cached_tokens", true, &found.cached_tokens) ||
                !tokens_of(completion, "reasoning_tokens", true, &found.reasoning_tokens) ||
                found.cached_tokens > found.prompt_tokens)
                return false;
        *ret = found;
        return true;
}

static void take_content(const char *text, size_t len, struct arena *arena, struct review_completion *ret)
{
        ret->content = arena_copy(arena, text, len);
        ret->content_len = len;
}

static const char *read_choice(json_t *choice, struct arena *arena, struct review_completion *ret)
{
        json_t *message = json_object_get(choice, "message"), *content = json_object_get(message, "content"),
               *refusal = json_object_get(message, "refusal");
        const char *finish = json_string_value(json_object_get(choice, "finish_reason"));
        if (!json_is_object(choice))
                return "the answer has no choices";
        if (json_is_string(refusal) && json_string_length(refusal))
                return "the model refuses to review the program";
        if (finish && strcmp(finish, "length") == 0)
                return "the answer was cut off; raise review.max_output_tokens";
        if (finish && (strcmp(finish, "content_filter") == 0 || strcmp(finish, "tool_calls") == 0))
                return "the model ended its answer early (finish_reason)";
        if (!json_is_string(content) || !json_string_length(content))
                return "the answer has no text";
        take_content(json_string_value(content), json_string_length(content), arena, ret);
        return NULL;
}

static json_t *read_body(const char *body, size_t len)
{
        if (!len || model_has_many_parts(body, len, PARTS_MAX))
                return NULL;
        json_t *json = json_loadb(body, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        if (json_is_object(json))
                return json;
        json_decref(json);
        return NULL;
}

void review_chat_read(const char *body, size_t len, struct arena *arena, struct review_completion *ret)
{
        json_t *json = read_body(body, len);
        *ret = (struct review_completion){ 0 };
        if (!json) {
                ret->problem = "the answer is not the JSON of chat/completions";
                return;
        }
        ret->has_usage = read_usage(json_object_get(json, "usage"), &ret->usage);
        ret->problem = read_choice(json_array_get(json_object_get(json, "choices"), 0), arena, ret);
        json_decref(json);
}

/* A program or service answers with the object itself. */
void review_hook_read(const char *body, size_t len, struct arena *arena, struct review_completion *ret)
{
        json_t *json = read_body(body, len);
        *ret = (struct review_completion){ 0 };
        if (!json) {
                ret->problem = "the answer is no JSON object";
                return;
        }
        ret->has_usage = read_usage(json_object_get(json, "usage"), &ret->usage);
        take_content(body, len, arena, ret);
        json_decref(json);
}
