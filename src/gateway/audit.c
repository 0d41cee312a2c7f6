/*
 * The audit of the workers in the store of the gateway (gateway.keys = gateway): `caisson runs` beside the gateway also
 * lists the runs of removed workers.
 *
 * The status of a worker has the number of its newest row.  If the position in this store differs, the next rows are
 * fetched, AUDIT_ROWS at a time, and added with the new position in one transaction.  Existing rows stay unchanged.
 * The audit of the gateway is cleaned as a worker's audit (engine.audit_retention_ms), and has at most
 * gateway.audit_max rows.
 */
#include "gateway/gateway_private.h"

#include "base/worker.h"

#include <inttypes.h>
#include <stdio.h>

#define AUDIT_ROWS 50                      /* rows in one answer, and in one step of the loop */
#define AUDIT_ASK_MS 5000
#define CLEAN_US (60 * 1000000ULL)

/* The audit of one worker. */
struct audit_pull {
        struct audit_pull *next;
        struct audit *audit;
        struct gateway_worker *worker;     /* a reference */
        char tag[HOP_TAG_LEN + 1];         /* tag of the worker at `position`; "": not read yet */
        int64_t position;
        struct worker_call call;
        struct timer again;                /* there are more rows */
};

struct audit {
        struct gateway *gateway;
        struct audit_pull *pulls;
        struct timer step, clean;
        struct job checkpoint;
        struct csn_error checkpoint_error;
};

/* ---- rows ---- */

static void pull(struct audit_pull *pull);

static void on_again(struct timer *timer)
{
        pull(timer->owner);
}

/* false: the answer is no list of rows. */
static bool read_rows(const json_t *list, struct arena *arena, struct store_run **ret)
{
        const json_t *row;
        size_t i;
        if (!json_is_array(list) || json_array_size(list) > AUDIT_ROWS)
                return false;
        *ret = arena_alloc(arena, (json_array_size(list) + 1) * sizeof **ret);
        json_array_foreach(list, i, row)
                if (!runs_read_row(row, arena, &(*ret)[i]))
                        return false;
        return true;
}

/* Add the rows of an answer.  True: there may be more rows. */
static bool add_rows(struct audit_pull *pull, const json_t *answer)
{
        struct arena arena = { 0 };
        struct csn_error err;
        struct store_run *runs;
        const json_t *list = json_object_get(answer, "rows");
        size_t n = json_array_size(list);
        if (!read_rows(list, &arena, &runs)) {
                log_text(LOG_ERROR, "worker %s sends an audit that cannot be read", pull->worker->name);
                arena_done(&arena);
                return false;
        }
        int64_t position = n ? runs[n - 1].number : json_integer_value(json_object_get(answer, "newest"));
        int rc = pulled_add(pull->audit->gateway->store, pull->tag, runs, n, position, &err);
        arena_done(&arena);
        if (rc < 0) {
                log_text(LOG_ERROR, "%s", err.text);
                return false;
        }
        pull->position = position;
        pull->worker->audit_taken = (uint64_t)position;
        return n == AUDIT_ROWS;
}

static void on_rows(struct worker_call *call, enum call_end end, const char *why)
{
        struct audit_pull *pull = call->owner;
        json_t *answer = end == CALL_ANSWERED && call->answer->status == MHD_HTTP_OK
                ? json_loadb(call->body.bytes ? call->body.bytes : "", call->body.len, JSON_ALLOW_NUL, NULL) : NULL;
        (void)why;
        if (answer && strcmp(pull->tag, pull->worker->tag) == 0 && add_rows(pull, answer))
                loop_timer(pull->audit->gateway->loop, &pull->again, 0);
        json_decref(answer);
}

static bool find_position(struct audit_pull *pull)
{
        struct csn_error err;
        if (strcmp(pull->tag, pull->worker->tag) == 0)
                return true;
        if (pulled_position(pull->audit->gateway->store, pull->worker->tag, &pull->position, &err) < 0) {
                log_text(LOG_ERROR, "%s", err.text);
                return false;
        }
        memcpy(pull->tag, pull->worker->tag, sizeof pull->tag);
        pull->worker->audit_taken = (uint64_t)pull->position;
        return true;
}

/* A worker whose rows have all expired counts from the beginning again. */
static void pull(struct audit_pull *pull)
{
        char target[100];
        struct gateway_worker *worker = pull->worker;
        bool answers = worker->state != WORKER_DOWN && worker->state != WORKER_UNKNOWN && worker->tag[0];
        if (pull->call.worker || worker->removed || !answers || !find_position(pull) ||
                worker->audit_newest == (uint64_t)pull->position)
                return;
        int64_t after = worker->audit_newest < (uint64_t)pull->position ? 0 : pull->position;
        snprintf(target, sizeof target, "/v1/gateway/audit?after=%" PRId64 "&limit=%d", after, AUDIT_ROWS);
        pull->call.owner = pull;
        pull->call.done = on_rows;
        worker_call_start(&pull->call, worker, "GET", target, NULL, NULL, NULL, 0, AUDIT_ASK_MS);
}

/* ---- workers ---- */

static void pull_free(struct audit_pull *pull)
{
        loop_untimer(pull->audit->gateway->loop, &pull->again);
        worker_call_stop(&pull->call);
        worker_unref(pull->worker);
        free(pull);
}

static void add_pull(struct audit *audit, struct gateway_worker *worker)
{
        struct audit_pull *one = mem_alloc(sizeof *one);
        *one = (struct audit_pull){ .next = audit->pulls, .audit = audit, .worker = worker_ref(worker),
                                    .again = { .fired = on_again, .owner = one } };
        audit->pulls = one;
        worker->audited = true;
}

static void on_step(struct timer *timer)
{
        struct audit *audit = timer->owner;
        struct gateway *gateway = audit->gateway;
        for (struct gateway_worker *worker = fleet_first(gateway->fleet); worker; worker = worker->next)
                if (!worker->audited)
                        add_pull(audit, worker);
        for (struct audit_pull **at = &audit->pulls; *at;) {
                struct audit_pull *one = *at;
                if (!one->worker->removed) {
                        pull(one);
                        at = &one->next;
                        continue;
                }
                *at = one->next;
                pull_free(one);
        }
        loop_timer(gateway->loop, &audit->step, gateway->settings->gateway.heartbeat * 1000);
}

/* ---- the store ---- */

static void checkpoint(struct job *job)
{
        struct audit *audit = job->owner;
        store_checkpoint(store_path(audit->gateway->store), &audit->checkpoint_error);
}

static void on_checkpoint(struct job *job)
{
        struct audit *audit = job->owner;
        if (audit->checkpoint_error.code)
                log_text(LOG_ERROR, "%s", audit->checkpoint_error.text);
        audit->checkpoint_error = (struct csn_error){ 0 };
}

static void start_checkpoint(void *owner)
{
        struct audit *audit = owner;
        if (!audit->checkpoint.active)
                worker_submit(audit->gateway->threads, "", &audit->checkpoint);
}

static void on_clean(struct timer *timer)
{
        struct audit *audit = timer->owner;
        struct gateway *gateway = audit->gateway;
        struct csn_error err;
        bool more = false, above = false;
        if (store_clean(gateway->store, gateway->settings->engine.audit_retention_ms, &more, &err) < 0 ||
                runs_trim(gateway->store, gateway->settings->gateway.audit_max, &above, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        loop_timer(gateway->loop, &audit->clean, more || above ? 0 : CLEAN_US);
}

void audit_open(struct gateway *gateway)
{
        struct audit *audit = mem_alloc(sizeof *audit);
        *audit = (struct audit){ .gateway = gateway,
                .step = { .fired = on_step, .owner = audit },
                .clean = { .fired = on_clean, .owner = audit },
                .checkpoint = { .work = checkpoint, .done = on_checkpoint, .owner = audit } };
        gateway->audit = audit;
        store_set_log_listener(gateway->store, start_checkpoint, audit);
        loop_timer(gateway->loop, &audit->step, 0);
        loop_timer(gateway->loop, &audit->clean, 0);
}

void audit_close(struct audit *audit)
{
        if (!audit)
                return;
        store_set_log_listener(audit->gateway->store, NULL, NULL);
        worker_wait(audit->gateway->threads, &audit->checkpoint);
        loop_untimer(audit->gateway->loop, &audit->step);
        loop_untimer(audit->gateway->loop, &audit->clean);
        while (audit->pulls) {
                struct audit_pull *next = audit->pulls->next;
                pull_free(audit->pulls);
                audit->pulls = next;
        }
        free(audit);
}

/* ---- GET /v1/runs ---- */

#define GONE_ROWS 100                      /* newest rows of the tenant searched */

/* Add runs of removed workers, missing in all workers' lists. */
void audit_add_gone(struct http_request *request, json_t *runs)
{
        const struct gateway *gateway = gateway_of(request);
        const char *limit = http_query(request, "limit");
        size_t most = limit ? strtoul(limit, NULL, 10) : GONE_ROWS, n = 0;
        const struct runs_filter filter = { .tenant = request->tenant, .status = -1, .n = GONE_ROWS };
        struct store_run *rows;
        struct csn_error err;
        char tag[HOP_TAG_LEN + 1];
        int64_t now = time_now_ms(), oldest = now - (int64_t)gateway->settings->gateway.lost_ttl;
        static const char *const filters[] = { "history", "status", "language", "profile", "key", "tenant" };
        for (size_t i = 0; i < ARRAY_LEN(filters); i++)
                if (http_query(request, filters[i]))
                        return;            /* the rows here would need the same conditions */
        if (runs_list(gateway->store, &filter, &request->arena, &rows, &n, &err) < 0) {
                log_text(LOG_ERROR, "%s", err.text);
                return;
        }
        for (size_t i = 0; i < n && json_array_size(runs) < most; i++)
                if (rows[i].finished_ms >= oldest &&
                        hop_tag_of(gateway->keys, rows[i].id, strlen(rows[i].id), tag) &&
                        !fleet_by_tag(gateway->fleet, tag))
                        json_array_append_new(runs,
                                json_pack("{s:s, s:s, s:s, s:I}", "id", rows[i].id, "state", "over", "url",
                                        arena_text(&request->arena, "/v1/runs/%s", rows[i].id), "age_ms",
                                        (json_int_t)(now > rows[i].started_ms ? now - rows[i].started_ms : 0)));
}
