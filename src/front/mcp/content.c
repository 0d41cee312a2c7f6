/*
 * What a route answered, as the result of a tool: the record as structured content, its text for the model, images that
 * were shown or kept, and links to files that are kept.
 */
#include "front/mcp/mcp.h"

#include "front/views/views.h"

/* ---- blocks ---- */

static void add_block(struct mcp_call *call, json_t *block)
{
        json_array_append_new(call->content, block);
}

static void add_text(struct mcp_call *call, const char *bytes, size_t len)
{
        struct arena arena = { 0 };
        size_t n;
        const char *text = model_utf8(&arena, bytes ? bytes : "", len, &n);
        add_block(call, json_pack("{s:s, s:s%}", "type", "text", "text", text, n));
        arena_done(&arena);
}

const char *mcp_image_type(const char *bytes, size_t len)
{
        static const struct { const char *begin; size_t len; const char *type;
        } rows[] = {
                { "\x89PNG\r\n\x1a\n", 8, "image/png" },
                { "\xff\xd8\xff", 3, "image/jpeg" },
                { "GIF8", 4, "image/gif" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (len >= rows[i].len && memcmp(bytes, rows[i].begin, rows[i].len) == 0)
                        return rows[i].type;
        return len >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0 ? "image/webp" : NULL;
}

static void add_image(struct mcp_call *call, const char *base64, const char *type)
{
        call->images++;
        add_block(call, json_pack("{s:s, s:s, s:s}", "type", "image", "data", base64, "mimeType", type));
}

json_t *mcp_resource(const char *uri, const char *mime, const char *bytes, size_t len)
{
        struct arena arena = { 0 };
        bool text = utf8_valid(bytes, len) && !memchr(bytes, 0, len);
        json_t *json = json_pack("{s:s, s:s}", "uri", uri, "mimeType",
                mime && mime[0] ? mime
                        : text  ? "text/plain"
                                : "application/octet-stream");
        if (text)
                json_object_set_new(json, "text", json_stringn(bytes, len));
        else
                json_object_set_new(json, "blob", json_string(model_base64(&arena, bytes, len)));
        arena_done(&arena);
        return json;
}

/* ---- results ---- */

static void give(struct mcp_call *call, json_t *structured, bool error)
{
        json_t *result = json_pack("{s:O, s:b}", "content", call->content, "isError", (int)error);
        if (structured)
                json_object_set(result, "structuredContent", structured);
        mcp_answer(call, result);
}

static void give_problem(struct mcp_call *call)
{
        const char *text = mcp_problem(call);
        add_text(call, text, strlen(text));
        give(call, NULL, true);
}

static void give_json(struct mcp_call *call, json_t *json)
{
        char *text = model_write(json, JSON_COMPACT | MODEL_MEASURED);
        const char *status = json_string_value(json_object_get(json, "status"));
        add_text(call, text, text ? strlen(text) : 0);
        free(text);
        give(call, json,
                status && call->tool && json_object_get(json, "error") &&
                        !json_is_null(json_object_get(json, "error")));
}

static void give_bytes(struct mcp_call *call)
{
        struct arena arena = { 0 };
        const char *bytes = call->answer.bytes ? call->answer.bytes : "",
                   *image = mcp_image_type(bytes, call->answer.len);
        const char *path = json_string_value(json_object_get(json_object_get(call->params, "arguments"), "path"));
        const char *sandbox = json_string_value(json_object_get(json_object_get(call->params, "arguments"), "sandbox"));
        if (image && call->answer.len <= MCP_IMAGE_MAX) {
                add_image(call, model_base64(&arena, bytes, call->answer.len), image);
        } else if (utf8_valid(bytes, call->answer.len)) {
                add_text(call, bytes, call->answer.len);
        } else {
                const char *uri = arena_text(&arena, "sandbox:/v1/sandboxes/%s/files/%s", sandbox ? sandbox : "",
                        path ? path : "");
                add_block(call,
                        json_pack("{s:s, s:o}", "type", "resource", "resource",
                                mcp_resource(uri, image, bytes, call->answer.len)));
        }
        arena_done(&arena);
        give(call, NULL, false);
}

/* ---- a record ---- */

/* The value of the last expression, which is nowhere in what was printed. */
static void add_value(struct mcp_call *call, json_t *record)
{
        json_t *value = json_object_get(record, "result"), *json = json_object_get(value, "value");
        json_t *text = json_object_get(json_object_get(value, "data"), "text/plain"),
               *repr = json_object_get(value, "repr");
        char *dumped = text || !json ? NULL : model_write(json, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!text)
                text = repr;
        if (dumped)
                add_text(call, dumped, strlen(dumped));
        else if (text)
                add_text(call, json_string_value(text), json_string_length(text));
        free(dumped);
        if (json_is_true(json_object_get(value, "truncated")))
                add_text(call, "... (value truncated)", strlen("... (value truncated)"));
}

/* As a model reads it.  A record of ours that cannot be read is told as JSON. */
static void add_rendered(struct mcp_call *call, json_t *record)
{
        struct arena arena = { 0 };
        struct run_result result = { 0 };
        struct csn_error err;
        struct buf buf;
        json_t *copy = json_deep_copy(record);
        json_object_set_new(copy, "result", json_null());   /* add_value() gives it as content of its own */
        buf_init(&buf, MCP_ANSWER_MAX);
        if (front_read_record(copy, &arena, &result, &err) < 0 || render_text("plain", &result, &buf, &err) < 0)
                buf_printf(&buf, "%s", err.text);
        /* Where nothing was printed, a value says enough. */
        if (buf.len > 1 || !json_is_object(json_object_get(record, "result")))
                add_text(call, buf.bytes, buf.len);
        add_value(call, record);
        for (size_t i = 0; i < result.feedback_n; i++)
                add_text(call, result.feedback[i], strlen(result.feedback[i]));
        json_decref(copy);
        buf_done(&buf);
        arena_done(&arena);
}

/* What was shown has its images in base64 already. */
static void add_displays(struct mcp_call *call, json_t *record)
{
        static const char *const types[] = { "image/png", "image/jpeg" };
        size_t at;
        json_t *display;
        json_array_foreach(json_object_get(record, "displays"), at, display) {
                for (size_t i = 0; i < ARRAY_LEN(types) && call->images < MCP_IMAGES_MAX; i++) {
                        json_t *data = json_object_get(json_object_get(display, "data"), types[i]);
                        struct arena arena = { 0 };
                        struct bytes bytes;
                        /* The program says that it is an image; clients hand it on to who believes that. */
                        if (json_string_length(data) <= MCP_IMAGE_MAX * 4 / 3 && json_is_string(data) &&
                                model_unbase64(&arena, json_string_value(data), json_string_length(data), &bytes) &&
                                mcp_image_type(bytes.bytes, bytes.len))
                                add_image(call, json_string_value(data), mcp_image_type(bytes.bytes, bytes.len));
                        arena_done(&arena);
                }
        }
}

static void next_file(struct mcp_call *call);

static void give_record(struct mcp_call *call)
{
        const char *status = json_string_value(json_object_get(call->record, "status"));
        give(call, call->record, !status || strcmp(status, status_name(status_COMPLETED)) != 0);
}

static void on_image(struct mcp_call *call)
{
        struct arena arena = { 0 };
        const char *bytes = call->answer.bytes ? call->answer.bytes : "",
                   *type = mcp_image_type(bytes, call->answer.len);
        if (call->status == MHD_HTTP_OK && type)
                add_image(call, model_base64(&arena, bytes, call->answer.len), type);
        arena_done(&arena);
        next_file(call);
}

/* Files that are kept, one after the other; images among them are fetched. */
static void next_file(struct mcp_call *call)
{
        json_t *files = json_object_get(call->record, "files");
        while (call->at < json_array_size(files)) {
                json_t *file = json_array_get(files, call->at++);
                const char *url = json_string_value(json_object_get(file, "url")),
                           *mime = json_string_value(json_object_get(file, "mime"));
                json_int_t size = json_integer_value(json_object_get(file, "size_bytes"));
                if (!url)
                        continue;
                add_block(call,
                        json_pack("{s:s, s:s, s:O, s:s, s:I}", "type", "resource_link", "uri", url, "name",
                                json_object_get(file, "name"), "mimeType", mime ? mime : "application/octet-stream",
                                "size", size));
                if (strncmp(url, "sandbox:", 8) == 0 && mime && strncmp(mime, "image/", 6) == 0 &&
                        size <= (json_int_t)MCP_IMAGE_MAX && call->images < MCP_IMAGES_MAX) {
                        mcp_ask(call, "GET", url + 8, NULL, 0, NULL, 0, false, on_image);
                        return;
                }
        }
        give_record(call);
}

void mcp_give(struct mcp_call *call, enum mcp_gives gives)
{
        call->content = json_array();
        if (call->status < 200 || call->status >= 300) {
                give_problem(call);
                return;
        }
        json_t *json = gives == GIVES_RECORD || gives == GIVES_JSON ? mcp_json(call) : NULL;
        if (gives == GIVES_NOTHING) {
                add_text(call, "done", 4);
                give(call, NULL, false);
        } else if (gives == GIVES_BYTES) {
                give_bytes(call);
        } else if (!json_is_object(json)) {
                add_text(call, "the answer could not be read", 28);
                give(call, NULL, true);
        } else if (gives == GIVES_JSON) {
                give_json(call, json);
        } else {
                json_decref(call->record);
                call->record = json_incref(json);
                call->lines = false;
                add_rendered(call, json);
                add_displays(call, json);
                next_file(call);
        }
        json_decref(json);
}
