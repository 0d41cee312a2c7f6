/*
 * Prices and cost.  A price is an integer of nano-dollars for a million tokens, so 2.5e-07 dollars for a token are
 * 250,000,000, and a cost is exact up to its last rounding.
 */
#include "review/review_private.h"

#include <jansson.h>
#include <stdio.h>

#define PLACES 9          /* of a dollar */
#define PRICE_MAX 1000000000000000ULL /* a million dollars for a million tokens */
#define TOKENS 1000000ULL /* tokens per price */

static int wrong(struct csn_error *err, const char *key, const char *value)
{
        err_field(err, key, "%s: \"%.60s\" is no price; give dollars for a million tokens, such as 0.25", key, value);
        return -(err->code = CSN_E_CONFIG);
}

static int take(const char *key, const char *text, uint64_t *ret, bool *ret_set, struct csn_error *err)
{
        *ret_set = text[0] != 0;
        if (!text[0])
                return 0;
        return decimal_parse(text, PLACES, ret) && *ret <= PRICE_MAX ? 0 : wrong(err, key, text);
}

/*
 * Read a member of litellm's table, dollars per token: a number, or a decimal text.  15 digits reproduce the decimal
 * number of a JSON text.  True: *ret is set.
 */
static bool take_member(json_t *model, const char *name, uint64_t *ret)
{
        json_t *value = json_object_get(model, name);
        char text[40] = "";
        if (json_is_integer(value))
                snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else if (json_is_real(value))
                snprintf(text, sizeof text, "%.15g", json_real_value(value));
        else if (json_is_string(value) && json_string_length(value) < sizeof text)
                snprintf(text, sizeof text, "%s", json_string_value(value));
        uint64_t price;
        if (!text[0] || !decimal_parse(text, PLACES + 6, &price) || price > PRICE_MAX)
                return false;
        *ret = price;
        return true;
}

static int read_file(const struct settings *settings, const char *text, size_t len, struct review_price *ret,
        bool *ret_cached, struct csn_error *err)
{
        json_error_t where;
        json_t *json = json_loadb(text, len, 0, &where);
        json_t *model = json_object_get(json, settings->review.model);
        if (!json_is_object(json)) {
                json_decref(json);
                err_field(err, "review.price.file", "review.price.file: %.200s: no JSON object: line %d: %.100s",
                        settings->review_price.file, where.line, where.text);
                return -(err->code = CSN_E_CONFIG);
        }
        if (!json_is_object(model))
                log_text(LOG_WARN, "review.price.file has no price of the model %.100s", settings->review.model);
        take_member(model, "input_cost_per_token", &ret->input);
        take_member(model, "output_cost_per_token", &ret->output);
        *ret_cached = take_member(model, "cache_read_input_token_cost", &ret->cached);
        json_decref(json);
        return 0;
}

int review_price_read(const struct settings *settings, const char *file, size_t len, struct review_price *ret,
        struct csn_error *err)
{
        const struct review_price_settings *prices = &settings->review_price;
        struct review_price own = { 0 }, found = { 0 };
        bool has_input, has_output, has_cached, file_cached = false;
        if (take("review.price.input", prices->input, &own.input, &has_input, err) < 0 ||
                take("review.price.output", prices->output, &own.output, &has_output, err) < 0 ||
                take("review.price.cached", prices->cached, &own.cached, &has_cached, err) < 0 ||
                (file && read_file(settings, file, len, &found, &file_cached, err) < 0))
                return -err->code;
        ret->input = has_input ? own.input : found.input;
        ret->output = has_output ? own.output : found.output;
        ret->cached = has_cached ? own.cached : file_cached && !has_input ? found.cached : ret->input;
        return 0;
}

uint64_t review_price_of(const struct review_price *price, const struct review_usage *usage)
{
        /* Up to ten answers of 10^9 tokens, at 10^15: 64 bits are too few. */
        typedef unsigned __int128 wide;
        uint64_t cached = min_u64(usage->cached_tokens, usage->prompt_tokens);
        wide sum = (wide)(usage->prompt_tokens - cached) * price->input + (wide)cached * price->cached +
                (wide)usage->completion_tokens * price->output;
        sum = (sum + TOKENS / 2) / TOKENS;
        return sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
}
