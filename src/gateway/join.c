/*
 * One answer from the answers of all workers: numbers are added, lists joined, newest first.  For objects present at
 * each worker, such as problem sets, the answer is a single worker's, or the refusal of any.
 *
 * A page of a list has a part from each worker.  Its cursor names the cursor of each worker with further rows:
 * "TAG:CURSOR~TAG:CURSOR".
 */
#include "gateway/gateway_private.h"

#include <stdio.h>
#include <strings.h>

#define CURSOR_MAX (16 * KIB)
#define ALIKE_MS 60000                     /* for an object of up to 64 MiB, checked and written by each worker */

struct part {
        struct join *join;
        struct worker_call call;
        struct gateway_worker *worker;     /* a reference */
        json_t *answer;
        const char *next;                  /* the worker's cursor; lives in the request's arena */
        bool answered;
};

struct join {
        struct gateway *gateway;
        struct http_request *request;      /* NULL: the client has gone */
        struct part *parts;
        size_t n, left;
        unsigned status;                   /* the highest of the answers */
        char *refusal;                     /* the body of a refusal */
        size_t refusal_len;
        const char *refusal_type;
        bool is_alike;                     /* each worker has the object */
        unsigned success;                  /* of the first success, if is_alike; 0: none */
        char *text;                        /* its body */
        size_t text_len;
        bool has_page_headers;             /* the headers for web pages were copied from an answer */
        struct timer end;
};

static void join_free(struct join *join)
{
        loop_untimer(join->gateway->loop, &join->end);
        for (size_t i = 0; i < join->n; i++) {
                worker_call_stop(&join->parts[i].call);
                worker_unref(join->parts[i].worker);
                json_decref(join->parts[i].answer);
        }
        free(join->refusal);
        free(join->text);
        free(join->parts);
        free(join);
}

/* ---- the sum ---- */

static void add_up(json_t *sum, json_t *more);

/* Whether two rows are of the same thing: all their texts are equal, but the text of a sum. */
static bool is_same_row(json_t *one, json_t *other)
{
        const char *name;
        json_t *value;
        if (!json_object_get(one, "cost_nanousd"))
                return false;
        json_object_foreach(one, name, value) if (json_is_string(value) && strcmp(name, "cost_usd") != 0 &&
                !json_equal(value, json_object_get(other, name))) return false;
        return true;
}

/* Rows of usage are added to the row of the same thing; members of other lists are different things. */
static void add_rows(json_t *rows, json_t *more)
{
        json_t *row, *own;
        size_t i, k;
        json_array_foreach(more, i, row) {
                json_t *same = NULL;
                json_array_foreach(rows, k, own)
                        if (!same && is_same_row(own, row))
                                same = own;
                if (same)
                        add_up(same, row);
                else
                        json_array_append(rows, row);
        }
}

/* cost_usd is cost_nanousd in another unit. */
static void write_cost(json_t *sum)
{
        char text[40];
        json_int_t nano = json_integer_value(json_object_get(sum, "cost_nanousd"));
        if (!json_object_get(sum, "cost_usd"))
                return;
        snprintf(text, sizeof text, "%lld.%09lld", (long long)(nano / 1000000000), (long long)(nano % 1000000000));
        json_object_set_new(sum, "cost_usd", json_string(text));
}

static void add_up(json_t *sum, json_t *more)
{
        const char *name;
        json_t *value;
        json_object_foreach(more, name, value) {
                json_t *own = json_object_get(sum, name);
                if (!own)
                        json_object_set(sum, name, value);
                else if (json_is_integer(own) && json_is_integer(value))
                        json_integer_set(own, json_integer_value(own) + json_integer_value(value));
                else if (json_is_number(own) && json_is_number(value))
                        json_object_set_new(sum, name, json_real(json_number_value(own) + json_number_value(value)));
                else if (json_is_array(own) && json_is_array(value))
                        add_rows(own, value);
                else if (json_is_object(own) && json_is_object(value))
                        add_up(own, value);
        }
        write_cost(sum);
}

static const char *time_of(json_t *member)
{
        static const char *const names[] = { "created_at", "createdAt", "started_at", "startedAt" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (json_is_string(json_object_get(member, names[i])))
                        return json_string_value(json_object_get(member, names[i]));
        return "";
}

struct member {
        json_t *json;
};

static int compare_members(const void *one, const void *other)
{
        const struct member *first = one, *second = other;
        return strcmp(time_of(second->json), time_of(first->json));
}

static void sort(json_t *list)
{
        size_t n = json_array_size(list), i;
        struct member *members = mem_alloc((n + 1) * sizeof *members);
        json_t *json;
        json_array_foreach(list, i, json)
                members[i].json = json_incref(json);
        qsort(members, n, sizeof *members, compare_members);
        json_array_clear(list);
        for (i = 0; i < n; i++)
                json_array_append_new(list, members[i].json);
        free(members);
}

/* E2B's built-in templates are the same at each worker; a template of a user has builds of its own. */
static bool is_same_template(json_t *one, json_t *other)
{
        json_t *id = json_object_get(one, "templateID"), *build = json_object_get(one, "buildID");
        return id && build && json_equal(id, json_object_get(other, "templateID")) &&
                json_equal(build, json_object_get(other, "buildID"));
}

static void add_members(json_t *list, json_t *more)
{
        json_t *member, *own;
        size_t i, k, n = json_array_size(list);
        json_array_foreach(more, i, member) {
                bool known = false;
                for (k = 0; k < n && !known && (own = json_array_get(list, k)); k++)
                        known = is_same_template(member, own);
                if (!known)
                        json_array_append(list, member);
        }
}

static json_t *sum_of(const struct join *join)
{
        json_t *sum = NULL, *value;
        const char *name;
        for (size_t i = 0; i < join->n; i++) {
                json_t *answer = join->parts[i].answer;
                if (!answer)
                        continue;
                if (!sum)
                        sum = json_deep_copy(answer);
                else if (json_is_array(sum) && json_is_array(answer))
                        add_members(sum, answer);
                else if (json_is_object(sum) && json_is_object(answer))
                        add_up(sum, answer);
        }
        if (json_is_array(sum))
                sort(sum);
        json_object_foreach(sum, name, value)
                if (json_is_array(value))
                        sort(value);
        return sum;
}

/* ---- the answer ---- */

static void add_cursors(struct join *join, json_t *sum)
{
        struct buf cursor;
        buf_init(&cursor, CURSOR_MAX);
        for (size_t i = 0; i < join->n; i++)
                if (join->parts[i].next)
                        buf_printf(&cursor, "%s%s:%s", cursor.len ? "~" : "", join->parts[i].worker->tag,
                                join->parts[i].next);
        if (json_is_object(sum))
                json_object_del(sum, "next");
        if (cursor.len && json_is_object(sum))
                json_object_set_new(sum, "next", json_string(cursor.bytes));
        else if (cursor.len)
                http_set_header(join->request, "x-next-token", cursor.bytes);
        buf_done(&cursor);
}

/* The list may be incomplete: a header names the workers without an answer. */
static void add_missing(struct join *join)
{
        struct buf missing;
        buf_init(&missing, 8 * KIB);
        for (size_t i = 0; i < join->n; i++)
                if (!join->parts[i].answered)
                        buf_printf(&missing, "%s%s", missing.len ? "," : "", join->parts[i].worker->name);
        if (missing.len)
                http_set_header(join->request, "Caisson-Missing", missing.bytes);
        buf_done(&missing);
}

static bool all_answered(const struct join *join)
{
        for (size_t i = 0; i < join->n; i++)
                if (!join->parts[i].answered)
                        return false;
        return true;
}

/* The text becomes the answer's. */
static void answer_alike(struct join *join)
{
        http_answer(join->request, join->success, "application/json", join->text ? join->text : mem_copy("", 0),
                join->text_len);
        join->text = NULL;
}

static void answer(struct join *join)
{
        struct http_request *request = join->request;
        struct csn_error err;
        json_t *sum = join->is_alike ? NULL : sum_of(join);
        request->gone = NULL;
        add_missing(join);
        if (join->is_alike && !join->refusal && join->success && all_answered(join)) {
                answer_alike(join);
        } else if (join->is_alike && !join->refusal) {
                err_set(&err, CSN_E_BUSY, 0, "not all workers answer, and each has to; send the request again");
                http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
        } else if (sum) {
                if (join->gateway->store && strcmp(request->path, "/v1/runs") == 0 && !http_query(request, "cursor"))
                        audit_add_gone(request, json_object_get(sum, "runs"));
                add_cursors(join, sum);
                http_json(request, MHD_HTTP_OK, sum);
        } else if (join->refusal) {
                http_answer(request, join->status, join->refusal_type, join->refusal, join->refusal_len);
                join->refusal = NULL;
        } else if (join->status) {
                http_answer(request, join->status, NULL, mem_copy("", 0), 0);
        } else {
                err_set(&err, CSN_E_BUSY, 0, "no worker answers");
                http_set_header(request, "Retry-After", RETRY_AFTER_S);
                http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
        }
}

static void on_end(struct timer *timer)
{
        struct join *join = timer->owner;
        if (join->request)
                answer(join);
        join_free(join);
}

/* The CORS headers of the answer (Fetch standard) are the same at all workers. */
static void copy_page_headers(struct join *join, const struct http_answer *answer)
{
        static const char prefix[] = "Access-Control-";
        for (size_t i = 0; i < answer->headers_n && !join->has_page_headers; i++)
                if (strncasecmp(answer->headers[i].name, prefix, strlen(prefix)) == 0)
                        http_set_header(join->request, answer->headers[i].name, answer->headers[i].value);
        join->has_page_headers = true;
}

static void read_part(struct part *part)
{
        struct join *join = part->join;
        struct worker_call *call = &part->call;
        const char *token = http_answer_header(call->answer, "x-next-token"), *next,
                   *type = http_answer_header(call->answer, "Content-Type");
        part->answered = true;
        copy_page_headers(join, call->answer);
        if (call->answer->status > join->status)
                join->status = call->answer->status;
        if (call->answer->status == MHD_HTTP_OK)
                part->answer =
                        json_loadb(call->body.bytes ? call->body.bytes : "", call->body.len, JSON_ALLOW_NUL, NULL);
        next = token ? token : json_string_value(json_object_get(part->answer, "next"));
        if (next)
                part->next = arena_copy(&join->request->arena, next, strlen(next));
        if (join->is_alike && call->answer->status < 300 && !join->success) {
                join->success = (unsigned)call->answer->status;
                join->text = call->body.len ? mem_copy(call->body.bytes, call->body.len) : NULL;
                join->text_len = call->body.len;
        }
        if (call->answer->status >= 400 && !join->refusal && call->body.len) {
                join->refusal = mem_copy(call->body.bytes, call->body.len);
                join->refusal_len = call->body.len;
                join->refusal_type = arena_text(&join->request->arena, "%s", type ? type : "application/json");
        }
}

static void on_part(struct worker_call *call, enum call_end end, const char *why)
{
        struct part *part = call->owner;
        struct join *join = part->join;
        (void)why;
        if (end == CALL_ANSWERED && join->request)
                read_part(part);
        if (--join->left == 0)
                loop_timer(join->gateway->loop, &join->end, 0);
}

/* ---- the questions ---- */

/* The cursor of a worker in the client's cursor; NULL: none. */
static const char *cursor_of(struct http_request *request, const char *cursor, const char *tag)
{
        for (size_t len; *cursor; cursor += len + (cursor[len] == '~')) {
                len = strcspn(cursor, "~");
                if (strncmp(cursor, tag, HOP_TAG_LEN) == 0 && cursor[HOP_TAG_LEN] == ':')
                        return arena_copy(&request->arena, cursor + HOP_TAG_LEN + 1, len - HOP_TAG_LEN - 1);
        }
        return NULL;
}

static bool is_paging(const char *pair)
{
        static const char *const names[] = { "limit=", "cursor=", "nextToken=" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strncmp(pair, names[i], strlen(names[i])) == 0)
                        return true;
        return false;
}

/* The target for a worker: the client's, with a part of its limit and the worker's own cursor. */
static const char *target_of(struct http_request *request, size_t parts_n, const char *cursor_name, const char *cursor)
{
        struct arena *arena = &request->arena;
        const char *limit = http_query(request, "limit"), *query = strchr(request->uri, '?');
        size_t all = limit ? strtoul(limit, NULL, 10) : 0, each = (all + parts_n - 1) / parts_n;
        char *target = arena_copy(arena, request->uri, strcspn(request->uri, "?")), mark = '?';
        for (size_t len; query && query[0] && query[1]; query += len) {
                len = 1 + strcspn(query + 1, "&");
                if (is_paging(query + 1))
                        continue;
                target = arena_text(arena, "%s%c%.*s", target, mark, (int)len - 1, query + 1);
                mark = '&';
        }
        if (all) {
                target = arena_text(arena, "%s%climit=%zu", target, mark, each);
                mark = '&';
        } else if (limit) {
                target = arena_text(arena, "%s%climit=%s", target, mark, limit);
                mark = '&';
        }
        return cursor ? arena_text(arena, "%s%c%s=%s", target, mark, cursor_name, cursor) : target;
}

static bool is_asked(const struct gateway_worker *worker)
{
        return worker->state != WORKER_DOWN && worker->state != WORKER_UNKNOWN;
}

static void on_gone(struct http_request *request)
{
        struct join *join = request->owner;
        join->request = NULL;
        join_free(join);
}

static void start_parts(struct join *join)
{
        struct http_request *request = join->request;
        const char *native = http_query(request, "cursor"), *token = http_query(request, "nextToken"),
                   *cursor = native ? native : token;
        const struct hop_claims *claims = gateway_claims(request, 1);
        const char *origin = http_header(request, "Origin");
        const char *head = arena_text(&request->arena, "%s%s%s%s", gateway_credentials(request),
                origin ? "Origin: " : "", origin ? origin : "", origin ? "\r\n" : "");
        for (struct gateway_worker *worker = fleet_first(join->gateway->fleet); worker; worker = worker->next) {
                const char *own = cursor ? cursor_of(request, cursor, worker->tag) : NULL;
                if (!is_asked(worker) || (cursor && !own))
                        continue;
                struct part *part = &join->parts[join->n++];
                *part = (struct part){ .join = join, .worker = worker_ref(worker) };
                part->call.owner = part;
                part->call.done = on_part;
                worker_call_start(&part->call, worker, request->method,
                        target_of(request, max_u64(fleet_ready(join->gateway->fleet), 1),
                                native ? "cursor" : "nextToken", own),
                        claims, head, request->body.bytes, request->body.len,
                        join->is_alike ? ALIKE_MS : ASK_MS * 5);
        }
        join->left = join->n;
}

static void begin(struct http_request *request, bool is_alike)
{
        struct gateway *gateway = gateway_of(request);
        struct join *join = mem_alloc(sizeof *join);
        size_t n = 0;
        for (const struct gateway_worker *worker = fleet_first(gateway->fleet); worker; worker = worker->next)
                n++;
        *join = (struct join){ .gateway = gateway, .request = request, .is_alike = is_alike,
                .end = { .fired = on_end } };
        join->end.owner = join;
        join->parts = mem_alloc((n + 1) * sizeof *join->parts);
        request->owner = join;
        request->gone = on_gone;
        start_parts(join);
        if (!join->n)
                loop_timer(gateway->loop, &join->end, 0);
}

void join_all(struct http_request *request)
{
        begin(request, false);
}

void join_alike(struct http_request *request)
{
        begin(request, true);
}
