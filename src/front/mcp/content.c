/*
 * The answer of a route as the result of a tool, or as the content of a resource: the record as structured content, its
 * text for the model, images shown or kept, and links to kept files.
 *
 * A result has memory of its own, because a helper thread makes the message of a long answer:
 *
 *   mcp_give   loop      take the answer from the call
 *   work       thread    read the answer, add blocks up to an image to fetch, or write the message
 *   on_worked  loop      send the message; or fetch an image, which the next work() adds as a block
 */
#include "front/mcp/mcp.h"

#include "base/worker.h"
#include "engine/engine.h"
#include "front/views/views.h"

#define AT_ONCE_MAX (16 * KIB)             /* bytes of answers up to which the loop makes the message */

struct mcp_result {
        struct job job;
        struct mcp_call *call;             /* NULL: the call has ended */
        struct workers *workers;
        struct arena arena;
        enum mcp_gives gives;
        bool modern, may_fail;             /* may_fail: a member "error" of JSON is the failure of the tool */
        json_t *id;
        const char *uri, *mime;            /* as in the call */
        const char *problem;               /* the route refused the request; NULL: no */

        struct buf answer;                 /* of the route, or an image */
        bool is_event;                     /* the answer is the last event of a run, with the record as a member */
        unsigned status;                   /* of an image */
        size_t bytes;                      /* of all answers */

        json_t *content, *record;          /* blocks so far */
        size_t at, images;                 /* number of the record's files done; number of images in content */
        const char *fetch;                 /* path of the next image to fetch, or NULL */
        char *text;                        /* the message */
        size_t len;
};

/* ---- blocks ---- */

static void add_block(struct mcp_result *result, json_t *block)
{
        json_array_append_new(result->content, block);
}

static void add_text(struct mcp_result *result, const char *bytes, size_t len)
{
        struct arena arena = { 0 };
        size_t n;
        const char *text = model_utf8(&arena, bytes ? bytes : "", len, &n);
        add_block(result, json_pack("{s:s, s:s%}", "type", "text", "text", text, n));
        arena_done(&arena);
}

static const char *image_type(const char *bytes, size_t len)
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

static void add_image(struct mcp_result *result, const char *base64, const char *type)
{
        result->images++;
        add_block(result, json_pack("{s:s, s:s, s:s}", "type", "image", "data", base64, "mimeType", type));
}

/* {uri, mimeType} with text or blob. */
static json_t *resource(const char *uri, const char *mime, const char *bytes, size_t len)
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

/* The last work on a result. */
static void write_message(struct mcp_result *result, json_t *json, bool listed)
{
        result->text = rpc_line(mcp_result_message(result->modern, result->id, json, listed), &result->len);
        json_decref(result->content);
        json_decref(result->record);
        result->content = result->record = NULL;
}

static void give(struct mcp_result *result, json_t *structured, bool error)
{
        json_t *json = json_pack("{s:O, s:b}", "content", result->content, "isError", (int)error);
        if (structured)
                json_object_set(json, "structuredContent", structured);
        write_message(result, json, false);
}

static void give_text(struct mcp_result *result, const char *text, bool error)
{
        add_text(result, text, strlen(text));
        give(result, NULL, error);
}

static void give_json(struct mcp_result *result, json_t *json)
{
        const char *status = json_string_value(json_object_get(json, "status"));
        add_text(result, result->answer.bytes, result->answer.len);
        give(result, json,
                status && result->may_fail && json_object_get(json, "error") &&
                        !json_is_null(json_object_get(json, "error")));
}

static void give_bytes(struct mcp_result *result)
{
        const char *bytes = result->answer.bytes ? result->answer.bytes : "";
        size_t len = result->answer.len;
        const char *image = image_type(bytes, len);
        if (image && len <= MCP_IMAGE_MAX)
                add_image(result, model_base64(&result->arena, bytes, len), image);
        else if (utf8_valid(bytes, len))
                add_text(result, bytes, len);
        else
                add_block(result,
                        json_pack("{s:s, s:o}", "type", "resource", "resource",
                                resource(result->uri, image, bytes, len)));
        give(result, NULL, false);
}

static void give_resource(struct mcp_result *result)
{
        const char *bytes = result->answer.bytes ? result->answer.bytes : "";
        const char *mime = result->mime ? result->mime : image_type(bytes, result->answer.len);
        write_message(result,
                json_pack("{s:[o]}", "contents", resource(result->uri, mime, bytes, result->answer.len)), true);
}

/* ---- a record ---- */

/* The value of the last expression, which is not part of the output. */
static void add_value(struct mcp_result *result, json_t *record)
{
        json_t *value = json_object_get(record, "result"), *json = json_object_get(value, "value");
        json_t *text = json_object_get(json_object_get(value, "data"), "text/plain"),
               *repr = json_object_get(value, "repr");
        char *dumped = text || !json ? NULL : model_write(json, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!text)
                text = repr;
        if (dumped)
                add_text(result, dumped, strlen(dumped));
        else if (text)
                add_text(result, json_string_value(text), json_string_length(text));
        free(dumped);
        if (json_is_true(json_object_get(value, "truncated")))
                add_text(result, "... (value truncated)", strlen("... (value truncated)"));
}

/* In the form named by the request or its profile; this form is complete for a model. */
static void add_form(struct mcp_result *result, const struct run_result *run)
{
        struct buf buf;
        buf_init(&buf, MCP_ANSWER_MAX);
        render_text(run->format, run, &buf);
        add_text(result, buf.bytes, buf.len);
        buf_done(&buf);
}

/* The form plain, with the value and the feedback as contents of their own. */
static void add_plain(struct mcp_result *result, json_t *record, struct run_result *run)
{
        struct buf buf;
        buf_init(&buf, MCP_ANSWER_MAX);
        UNMARK(run, run_result, result);   /* added by add_value() */
        render_text(text_form_PLAIN, run, &buf);
        /* Where nothing was printed, a value says enough. */
        if (buf.len > 1 || !json_is_object(json_object_get(record, "result")))
                add_text(result, buf.bytes, buf.len);
        add_value(result, record);
        for (size_t i = 0; i < run->feedback_n; i++)
                add_text(result, run->feedback[i], strlen(run->feedback[i]));
        buf_done(&buf);
}

/* The record as text for a model; of an unreadable record the error. */
static void add_rendered(struct mcp_result *result, json_t *record)
{
        struct arena arena = { 0 };
        struct run_result run = { 0 };
        struct csn_error err;
        if (front_read_record(record, &arena, &run, &err) < 0)
                add_text(result, err.text, strlen(err.text));
        else if (run.format != text_form_PLAIN)
                add_form(result, &run);
        else
                add_plain(result, record, &run);
        arena_done(&arena);
}

/* Displays have their images in base64 already. */
static void add_displays(struct mcp_result *result, json_t *record)
{
        static const char *const types[] = { "image/png", "image/jpeg" };
        size_t at;
        json_t *display;
        json_array_foreach(json_object_get(record, "displays"), at, display) {
                for (size_t i = 0; i < ARRAY_LEN(types) && result->images < MCP_IMAGES_MAX; i++) {
                        json_t *data = json_object_get(json_object_get(display, "data"), types[i]);
                        struct arena arena = { 0 };
                        struct bytes bytes;
                        /* The program only claims an image type, and clients pass the type on: check the bytes. */
                        if (json_string_length(data) <= MCP_IMAGE_MAX * 4 / 3 && json_is_string(data) &&
                                model_unbase64(&arena, json_string_value(data), json_string_length(data), &bytes) &&
                                image_type(bytes.bytes, bytes.len))
                                add_image(result, json_string_value(data), image_type(bytes.bytes, bytes.len));
                        arena_done(&arena);
                }
        }
}

static void give_record(struct mcp_result *result)
{
        const char *status = json_string_value(json_object_get(result->record, "status"));
        give(result, result->record, !status || strcmp(status, status_name(status_COMPLETED)) != 0);
}

/* Kept files in order, up to an image to fetch. */
static void add_files(struct mcp_result *result)
{
        json_t *files = json_object_get(result->record, "files");
        while (result->at < json_array_size(files)) {
                json_t *file = json_array_get(files, result->at++);
                const char *url = json_string_value(json_object_get(file, "url")),
                           *mime = json_string_value(json_object_get(file, "mime"));
                json_int_t size = json_integer_value(json_object_get(file, "size_bytes"));
                if (!url)
                        continue;
                add_block(result,
                        json_pack("{s:s, s:s, s:O, s:s, s:I}", "type", "resource_link", "uri", url, "name",
                                json_object_get(file, "name"), "mimeType", mime ? mime : "application/octet-stream",
                                "size", size));
                if (strncmp(url, "sandbox:", 8) == 0 && mime && strncmp(mime, "image/", 6) == 0 &&
                        size <= (json_int_t)MCP_IMAGE_MAX && result->images < MCP_IMAGES_MAX) {
                        result->fetch = arena_text(&result->arena, "%s", url + 8);
                        return;
                }
        }
        give_record(result);
}

static void add_fetched(struct mcp_result *result)
{
        struct arena arena = { 0 };
        const char *bytes = result->answer.bytes ? result->answer.bytes : "",
                   *type = image_type(bytes, result->answer.len);
        result->fetch = NULL;
        if (result->status == MHD_HTTP_OK && type)
                add_image(result, model_base64(&arena, bytes, result->answer.len), type);
        arena_done(&arena);
        add_files(result);
}

/* ---- work ---- */

/* The caller's reference; NULL: the answer is no JSON. */
static json_t *read_answer(const struct mcp_result *result)
{
        const char *text = result->answer.bytes ? result->answer.bytes : "";
        size_t len = result->answer.len, before = result->is_event ? strlen(MCP_END_BEGIN) : 0;
        return len > before ? model_read(text + before, len - before - (before ? 1 : 0), JSON_ALLOW_NUL, NULL) : NULL;
}

static void begin_record(struct mcp_result *result, json_t *record)
{
        result->record = json_incref(record);
        add_rendered(result, record);
        add_displays(result, record);
        add_files(result);
}

static void begin(struct mcp_result *result)
{
        bool reads = !result->problem && (result->gives == GIVES_RECORD || result->gives == GIVES_JSON);
        json_t *json = reads ? read_answer(result) : NULL;
        result->content = json_array();
        if (result->problem)
                give_text(result, result->problem, true);
        else if (result->gives == GIVES_NOTHING)
                give_text(result, "done", false);
        else if (result->gives == GIVES_BYTES)
                give_bytes(result);
        else if (result->gives == GIVES_RESOURCE)
                give_resource(result);
        else if (!json_is_object(json))
                give_text(result, "the answer could not be read", true);
        else if (result->gives == GIVES_JSON)
                give_json(result, json);
        else
                begin_record(result, json);
        json_decref(json);
}

static void work(struct job *job)
{
        struct mcp_result *result = job->owner;
        if (result->content)
                add_fetched(result);
        else
                begin(result);
        buf_done(&result->answer);
}

/* ---- the end ---- */

static void release(struct job *job)
{
        struct mcp_result *result = job->owner;
        json_decref(result->content);
        json_decref(result->record);
        json_decref(result->id);
        buf_done(&result->answer);
        arena_done(&result->arena);
        free(result->text);
}

static void on_released(struct job *job)
{
        if (job->dropped)
                release(job);
        free(job->owner);
}

static void submit(struct mcp_result *result, void (*work_on)(struct job *job), void (*done)(struct job *job))
{
        const struct http_request *http = result->call ? result->call->http : NULL;
        const char *share = !http ? "" : http->tenant[0] ? http->tenant : holder_name(http->holder);
        result->job = (struct job){ .work = work_on, .done = done, .owner = result };
        worker_submit(result->workers, share, &result->job);
}

/* A record has many parts, so a helper thread frees it. */
static void result_free(struct mcp_result *result)
{
        if (result->record) {
                submit(result, release, on_released);
                return;
        }
        result->job.owner = result;
        release(&result->job);
        free(result);
}

static void drop(struct mcp_result *result)
{
        result->call = NULL;
        if (!result->job.active || worker_cancel(result->workers, &result->job))
                result_free(result);
}

static void go_on(struct mcp_result *result);

static void on_fetched(struct mcp_call *call)
{
        struct mcp_result *result = call->result;
        result->status = call->status;
        result->answer = call->answer;
        buf_init(&call->answer, MCP_ANSWER_MAX);
        go_on(result);
}

static void next(struct mcp_result *result)
{
        struct mcp_call *call = result->call;
        if (result->fetch) {
                mcp_ask(call, "GET", result->fetch, NULL, 0, NULL, 0, false, on_fetched);
                return;
        }
        char *text = result->text;
        size_t len = result->len;
        result->text = NULL;
        mcp_answer_text(call, text, len);      /* which drops the result */
}

static void on_worked(struct job *job)
{
        struct mcp_result *result = job->owner;
        if (!result->call)
                result_free(result);
        else
                next(result);
}

static void go_on(struct mcp_result *result)
{
        result->bytes += result->answer.len;
        if (result->bytes > AT_ONCE_MAX) {
                submit(result, work, on_worked);
                return;
        }
        result->job = (struct job){ .owner = result };
        work(&result->job);
        next(result);
}

void mcp_give(struct mcp_call *call, enum mcp_gives gives)
{
        struct mcp_result *result = mem_alloc(sizeof *result);
        bool good = call->status >= 200 && call->status < 300;
        *result = (struct mcp_result){ .call = call,
                .workers = engine_workers(call->service->engine),
                .gives = gives,
                .modern = mcp_is_modern(call),
                .may_fail = call->tool != NULL,
                .id = json_deep_copy(call->id),
                .is_event = call->has_record };
        result->uri = arena_text(&result->arena, "%s", call->uri ? call->uri : "");
        if (call->mime)
                result->mime = arena_text(&result->arena, "%s", call->mime);
        if (!good)
                result->problem = arena_text(&result->arena, "%s", mcp_problem(call));
        result->answer = call->answer;
        buf_init(&call->answer, MCP_ANSWER_MAX);
        call->result = result;
        call->result_drop = drop;
        go_on(result);
}
