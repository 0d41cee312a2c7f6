/*
 * The audit: tenant, program and end of each run, the program as a hash, without code and output.  And the use of
 * models by reviews.
 */
#include "front/service/service.h"

#include "engine/output/files.h"

#include <stdio.h>

static char *given(char *text)
{
        static char none[] = "";
        return text ? text : none;
}

static void log_run(const struct log_context *about, const struct run_request *request, const struct run_result *result)
{
        struct log_context whole = *about;
        whole.run = result->id;
        log_about(LOG_INFO, &whole, "%s: %.20s, %.0f ms, CPU %.0f ms, %llu KiB", status_name(result->status),
                given(request->language), result->timings.total_ms, result->usage.cpu_ms,
                (unsigned long long)(result->usage.memory_peak_bytes / KIB));
}

/* The row of a run before its start.  `about` and key as for audit_run(). */
static struct store_run row_of(const struct log_context *about, const char *key, struct run *run)
{
        const struct run_request *request = run_request(run);
        struct arena *arena = run_arena(run);
        return (struct store_run){
                .tenant = arena_text(arena, "%s", about->owner),
                .key = arena_text(arena, "%s", key),
                .task_id = given(request->task_id),
                .user = given(request->user),
                .language = given(request->language),
                .profile = given(request->profile),
                .policy = given(request->policy),
                .trace_id = arena_text(arena, "%s", about->trace ? about->trace : ""),
                .exit_code = -1,
        };
}

int audit_begin(struct store *store, const struct log_context *about, const char *key, struct run *run,
        const struct idempotency *name, bool kept, struct csn_error *err)
{
        const struct run_request *request = run_request(run);
        if (!store)
                return 0;
        struct store_run row = row_of(about, key, run);
        row.id = arena_text(run_arena(run), "%s", run_id(run));
        row.status = status_ENGINE_ERROR;
        row.started_ms = time_now_ms();
        files_sha256_bytes(request->code.bytes ? request->code.bytes : "", request->code.len, row.code_sha256);
        return runs_begin(store, &row, name, kept, err);
}

void audit_run(struct store *store, const struct log_context *about, const char *key, struct run *run,
        const struct run_result *result)
{
        const struct run_request *request = run_request(run);
        struct csn_error err;
        struct buf boundary;
        log_run(about, request, result);
        if (!store)
                return;
        buf_init(&boundary, 64 * KIB);
        if (HAS(result, run_result, boundary))
                model_encode_text(&object_boundary, &result->boundary, &boundary);
        int64_t now = time_now_ms();
        struct store_run row = row_of(about, key, run);
        const char *digest = runs_begun_code(store, result->id);
        row.id = result->id;
        row.status = result->status;
        row.exit_code = HAS(result, run_result, exit_code) ? result->exit_code : -1;
        row.verdict = arena_text(run_arena(run), "%s",
                result->status == status_BLOCKED         ? "deny"
                        : strcmp(row.policy, "off") == 0 ? ""
                                                         : "allow");
        row.boundary = given(boundary.bytes);
        row.started_ms = now - (int64_t)result->timings.total_ms;
        row.finished_ms = now;
        row.cpu_ms = (uint64_t)result->usage.cpu_ms;
        row.wall_ms = (uint64_t)result->usage.wall_ms;
        row.memory_peak_bytes = result->usage.memory_peak_bytes;
        if (digest)
                snprintf(row.code_sha256, sizeof row.code_sha256, "%s", digest);
        else
                files_sha256_bytes(request->code.bytes ? request->code.bytes : "", request->code.len, row.code_sha256);
        if (runs_add(store, &row, &err) < 0)
                log_text(LOG_ERROR, "the audit misses %s: %s", result->id, err.text);
        buf_done(&boundary);
}

/* ---- runs of a dead daemon ---- */

#define DIED "the daemon ended while it ran"

/* The record of a run lost with its daemon: its effects are unknown. */
static bool record_of(const struct run_left *left, struct arena *arena, struct buf *buf)
{
        const struct store_run *run = &left->run;
        static char schema[] = MODEL_SCHEMA_VERSION, died[] = DIED;
        struct run_result result = { 0 };
        char text[40];
        SET(&result, run_result, schema, schema);
        SET(&result, run_result, id, run->id);
        SET(&result, run_result, status, run->status);
        SET(&result.error, failure, code, arena_text(arena, "%s", csn_code_name(CSN_E_LOST)));
        SET(&result.error, failure, retryable, false);
        SET(&result.error, failure, message, died);
        MARK(&result, run_result, error);
        model_defaults(&object_limits, &result.limits);
        if (run->language[0])
                SET(&result, run_result, language, run->language);
        if (run->profile[0])
                SET(&result, run_result, profile, run->profile);
        if (run->task_id[0])
                SET(&result, run_result, task_id, run->task_id);
        if (run->user[0])
                SET(&result, run_result, user, run->user);
        time_print(run->started_ms, text, sizeof text);
        SET(&result, run_result, started_at, arena_text(arena, "%s", text));
        time_print(run->finished_ms, text, sizeof text);
        SET(&result, run_result, finished_at, arena_text(arena, "%s", text));
        return front_record_text(&result, false, buf);
}

/* Each step does nothing if done already by another daemon, which died here, too. */
static int settle(struct store *store, const struct run_left *left, const struct buf *record, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct store_record there = { .fd = -1 };
        int rc = left->kept ? runs_record(store, left->run.id, left->run.tenant, &arena, &there, err) : 0;
        if (rc == 0 && left->kept && !there.text && there.fd < 0)
                rc = runs_keep(store, left->run.id, left->run.tenant, record->bytes, record->len,
                               left->run.finished_ms + (int64_t)(SERVICE_KEEP_US / 1000), err);
        if (rc == 0 && left->name.name[0])   /* an existing answer stays as is */
                idempotency_answer(store, &left->name, MHD_HTTP_OK, record->bytes, record->len, NULL);
        fd_close(&there.fd);
        arena_done(&arena);
        return rc;
}

static int on_left(void *owner, const struct run_left *left, struct csn_error *err)
{
        struct store *store = owner;
        struct run_left one = *left;
        struct arena arena = { 0 };
        struct buf record;
        int rc = 0;
        buf_init(&record, MIB);
        if (!one.ended) {
                one.run.status = status_ENGINE_ERROR;
                one.run.finished_ms = time_now_ms();
                rc = record_of(&one, &arena, &record)
                        ? settle(store, &one, &record, err)
                        : err_set(err, CSN_E_SYSTEM, 0, "the record could not be written");
        }
        if (rc == -CSN_E_BUSY) {   /* a full disk keeps no records, and has room for the audit */
                log_text(LOG_ERROR, "%s", err->text);
                rc = 0;
        }
        rc = rc < 0 ? rc : runs_add_again(store, &one.run, err);
        buf_done(&record);
        arena_done(&arena);
        return rc;
}

void audit_recover(struct store *store)
{
        struct csn_error err;
        size_t n = 0;
        if (runs_recover(store, on_left, store, &n, &err) < 0)
                log_text(LOG_ERROR, "runs that went on when a daemon ended are not all in the audit: %s", err.text);
        if (n)
                log_text(LOG_WARN, "%zu runs went on when a daemon ended; their records say engine_error, " DIED, n);
}

/* ---- usage of models ---- */

static bool on_budget(void *owner, const struct run_quota *quota)
{
        struct store *store = owner;
        struct csn_error err;
        uint64_t cost_nanousd;
        if (!quota->review_budget_nanousd)
                return false;
        if (usage_key_cost(store, quota->key, &cost_nanousd, &err) < 0) {
                log_text(LOG_ERROR, "%s; its budget counts as used up", err.text);
                return true;
        }
        return cost_nanousd >= quota->review_budget_nanousd;
}

/* A failure of the store fails no run. */
static void on_review(void *owner, const char *owner_key, const struct run_quota *quota, const struct review *review)
{
        struct csn_error err;
        if (usage_add_review(owner, owner_key, quota ? quota->key : "", review, &err) < 0)
                log_text(LOG_WARN, "%s; the usage is counted, and written later", err.text);
}

void service_open_usage(struct engine *engine, struct store *store)
{
        static const struct review_accounts accounts = { .spent = on_budget, .used = on_review };
        engine_set_review_accounts(engine, &accounts, store);
}
