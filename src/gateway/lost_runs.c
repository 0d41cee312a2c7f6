/*
 * The ends of runs of lost workers.  An accepted run has one end: the record of the worker, or a record of this file,
 * kept for gateway.lost_ttl.
 */
#include "gateway/gateway_private.h"

#include <stdio.h>

#define LOST_RUNS_MAX 10000                /* the oldest are forgotten first */

struct lost_run {
        struct lost_run *next;
        char id[64];
        char *identity;                    /* gateway_identity() of the client */
        char *key;                         /* the Idempotency-Key, or NULL */
        char *record;                      /* JSON */
        int64_t at_ms;
};

static void free_one(struct lost_run *one)
{
        free(one->identity);
        free(one->key);
        free(one->record);
        free(one);
}

static void drop_old(struct gateway *gateway)
{
        int64_t oldest = time_now_ms() - (int64_t)gateway->settings->gateway.lost_ttl;
        size_t n = 0;
        for (struct lost_run **at = &gateway->lost_runs; *at;) {
                struct lost_run *one = *at;
                if (one->at_ms >= oldest && ++n <= LOST_RUNS_MAX) {
                        at = &one->next;
                        continue;
                }
                *at = one->next;
                gateway->lost_runs_n--;
                free_one(one);
        }
}

void lost_runs_close(struct gateway *gateway)
{
        while (gateway->lost_runs) {
                struct lost_run *next = gateway->lost_runs->next;
                free_one(gateway->lost_runs);
                gateway->lost_runs = next;
        }
}

/* ---- records ---- */

/* Make an id with the tag of the lost worker, so that each gateway recognises the run as lost. */
static void make_id(const struct gateway *gateway, const char *tag, char *id, size_t size)
{
        char digits[ID_DIGITS + 1];
        if (gateway->keys && tag[0])
                hop_name_ids(gateway->keys, tag);
        id_new(digits);
        id_set_form(NULL);
        snprintf(id, size, "run_%s", digits);
}

static char *record_of(const char *id, const char *message)
{
        struct run_result result = { 0 };
        struct buf text;
        char now[40];
        time_print(time_now_ms(), now, sizeof now);
        SET(&result, run_result, schema, MODEL_SCHEMA_VERSION);
        SET(&result, run_result, id, (char *)(uintptr_t)id);
        SET(&result, run_result, status, status_ENGINE_ERROR);
        SET(&result.error, failure, code, (char *)(uintptr_t)csn_code_name(CSN_E_LOST));
        SET(&result.error, failure, retryable, false);
        SET(&result.error, failure, message, (char *)(uintptr_t)message);
        MARK(&result, run_result, error);
        SET(&result, run_result, finished_at, now);
        buf_init(&text, MIB);
        if (!model_encode_text(&object_run_result, &result, &text))
                buf_done(&text);
        return text.bytes;
}

static void write_audit(const struct gateway *gateway, const struct http_request *request, const char *id)
{
        struct csn_error err;
        char none[] = "", boundary[] = "";
        const struct store_key *key = request->key;
        if (!gateway->store || !key)
                return;
        const struct store_run run = { .id = (char *)(uintptr_t)id,
                .tenant = key->tenant,
                .key = (char *)(uintptr_t)key->id,
                .task_id = none,
                .user = none,
                .language = none,
                .profile = none,
                .policy = none,
                .status = status_ENGINE_ERROR,
                .exit_code = -1,
                .verdict = none,
                .boundary = boundary,
                .started_ms = time_now_ms(),
                .finished_ms = time_now_ms(),
                .trace_id = none };
        if (runs_add_again(gateway->store, &run, &err) < 0)
                log_text(LOG_ERROR, "the end of %s is not in the audit: %s", id, err.text);
}

/* `run`: the id, or "" for a new id with the tag. */
static const struct lost_run *keep(struct http_request *request, const char *key, const char *run, const char *tag,
        const char *message)
{
        struct gateway *gateway = gateway_of(request);
        struct lost_run *one = mem_alloc(sizeof *one);
        const char *identity = gateway_identity(request);
        *one = (struct lost_run){ .next = gateway->lost_runs, .identity = mem_copy(identity, strlen(identity)),
                                  .key = key ? mem_copy(key, strlen(key)) : NULL, .at_ms = time_now_ms() };
        if (run[0])
                snprintf(one->id, sizeof one->id, "%s", run);
        else
                make_id(gateway, tag, one->id, sizeof one->id);
        one->record = record_of(one->id, message);
        gateway->lost_runs = one;
        gateway->lost_runs_n++;
        write_audit(gateway, request, one->id);
        drop_old(gateway);
        return one;
}

const struct lost_run *lost_keep_noted(struct http_request *request, const char *key, const struct key_note *note)
{
        const struct lost_worker *lost = fleet_lost_tag(gateway_of(request)->fleet, note->tag);
        const char *text = arena_text(&request->arena,
                "worker %s was lost (%s) after it had been sent the request of this Idempotency-Key; the program may have "
                "run, and is not begun again",
                lost ? lost->name : note->pod[0] ? note->pod : note->tag, lost ? lost->reason : "Deleted");
        const struct lost_run *one = keep(request, key, "", note->tag, text);
        log_about(LOG_WARN, &(struct log_context){ .request = request->id, .run = one->id }, "%s", text);
        return one;
}

/* ---- answers ---- */

/* Whether the answer of the route is the record of a run. */
static bool is_run(const struct http_request *request)
{
        const char *path = request->path, *end = strrchr(path, '/');
        return strcmp(request->method, "POST") == 0 && strncmp(path, "/v1/", 4) == 0 && end &&
                strcmp(end, "/runs") == 0;
}

static const char *sentence(const struct forward *forward)
{
        return arena_text(&forward->request->arena,
                "worker %s was lost (%s) after it had accepted the request; the program may have run in part, and is not "
                "begun again",
                forward->worker->name, forward->reason);
}

void lost_keep(struct forward *forward, struct lost_end *ret)
{
        struct http_request *request = forward->request;
        *ret = (struct lost_end){ .text = sentence(forward),
                                  .worker = arena_text(&request->arena, "%s", forward->worker->name) };
        ret->run = is_run(request) ? keep(request, http_header(request, "Idempotency-Key"), forward->run,
                                             forward->worker->tag, ret->text) : NULL;
        log_about(LOG_WARN, &(struct log_context){ .request = request->id, .run = ret->run ? ret->run->id : NULL },
                "%s", ret->text);
}

void lost_answer(struct http_request *request, const struct lost_end *end)
{
        struct csn_error err;
        http_set_header(request, "Caisson-Worker", end->worker);
        if (end->run) {
                const char *record = end->run->record;
                http_answer(request, MHD_HTTP_BAD_GATEWAY, "application/json", mem_copy(record, strlen(record)),
                        strlen(record));
                return;
        }
        err_set(&err, CSN_E_LOST, 0, "%s", end->text);
        http_problem(request, MHD_HTTP_BAD_GATEWAY, &err);
}

void lost_end_stream(struct http_request *request, const struct lost_end *end, enum forward_frames frames)
{
        json_t *event = json_pack("{s:s, s:s, s:s, s:s}", "type", "error", "error", csn_code_name(CSN_E_LOST), "message",
                end->text, "worker", end->worker);
        if (end->run)
                json_object_set_new(event, "run", json_string(end->run->id));
        char *line = json_dumps(event, JSON_COMPACT);
        json_decref(event);
        if (frames == FRAMES_NONE || !line) {
                http_cut(request);
        } else {
                const char *head = frames == FRAMES_SSE ? "\n\nevent: error\ndata: " : "\n";
                http_add(request, head, strlen(head));
                http_add(request, line, strlen(line));
                http_add(request, "\n\n", frames == FRAMES_SSE ? 2 : 1);
                http_end(request);
        }
        free(line);
}

static void answer_record(struct http_request *request, const char *record)
{
        http_answer(request, MHD_HTTP_OK, "application/json", mem_copy(record, strlen(record)), strlen(record));
}

const struct lost_run *lost_find(struct http_request *request)
{
        struct gateway *gateway = gateway_of(request);
        /* A GET names the run or its key in the path; a repeated run has its key in a header. */
        bool asks = strcmp(request->method, "GET") == 0;
        const char *named = asks ? http_part(request, 0) : NULL,
                   *key = asks ? named : http_header(request, "Idempotency-Key");
        drop_old(gateway);
        for (const struct lost_run *one = gateway->lost_runs; one; one = one->next) {
                bool same = (named && strcmp(one->id, named) == 0) || (key && one->key && strcmp(one->key, key) == 0);
                if (same && strcmp(one->identity, gateway_identity(request)) == 0)
                        return one;
        }
        return NULL;
}

void lost_answer_run(struct http_request *request, const struct lost_run *run)
{
        answer_record(request, run->record);
}

void lost_answer_tag(struct http_request *request, const char *tag)
{
        const struct gateway *gateway = gateway_of(request);
        const struct lost_worker *lost = fleet_lost_tag(gateway->fleet, tag);
        struct csn_error err;
        const struct lost_run *run = lost_find(request);
        if (run) {
                lost_answer_run(request, run);
                return;
        }
        err_set(&err, CSN_E_SESSION_LOST, 0, "the worker of this id is gone%s%s%s%s: what it had is lost", lost ? ": " : "",
                lost ? lost->name : "", lost ? ", " : "", lost ? lost->reason : "");
        const char *id = http_part(request, 0);
        if (strncmp(request->path, "/v1/runs/", 9) == 0 && strcmp(request->method, "GET") == 0 && id) {
                char *record = record_of(id, err.text);
                answer_record(request, record ? record : "{}");
                free(record);
                return;
        }
        http_problem(request, MHD_HTTP_GONE, &err);
}
