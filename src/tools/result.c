/*
 * Results of tools as values for code.
 *
 * Most tools answer with a single text, usually JSON.  The text is parsed here once for all languages, so programs need
 * not parse.
 */
#include "tools/tools.h"

static const char *text_of(const json_t *block, size_t *ret_len)
{
        const char *type = json_string_value(json_object_get(block, "type"));
        const json_t *text = json_object_get(block, "text");
        *ret_len = json_string_length(text);
        return type && strcmp(type, "text") == 0 ? json_string_value(text) : NULL;
}

json_t *result_value(const struct tool_result *result, size_t max)
{
        size_t len = 0, n = json_array_size(result->content);
        if (result->structured)
                return json_incref(result->structured);
        if (n == 0)
                return json_null();
        const char *text = n == 1 ? text_of(json_array_get(result->content, 0), &len) : NULL;
        if (!text)
                return json_incref(result->content);
        json_t *value = len > max || model_has_many_parts(text, len, TOOL_PARTS_MAX)
                ? NULL
                : json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        return value ? value : json_stringn(text, len);
}

char *result_error(const struct tool_result *result, size_t max)
{
        struct buf buf;
        char *text;
        buf_init(&buf, max);
        if (result->error) {
                buf_add(&buf, result->error, strnlen(result->error, max));
        } else {
                for (size_t i = 0; i < json_array_size(result->content); i++) {
                        size_t len;
                        const char *line = text_of(json_array_get(result->content, i), &len);
                        if (!line)
                                continue;
                        if (buf.len)
                                buf_add(&buf, "\n", 1);
                        buf_add(&buf, line, min_u64(len, max - buf.len));
                }
        }
        size_t good = 0;
        for (size_t step; good < buf.len && (step = utf8_step(buf.bytes + good, buf.len - good)) > 0;)
                good += step;
        text = good ? mem_copy(buf.bytes, good) : mem_copy("the tool failed", 15);
        buf_done(&buf);
        return text;
}
