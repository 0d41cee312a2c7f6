/* The audit: who ran what, as a hash, and what became of it.  Neither code nor output is in it. */
#include "front/api.h"

#include "engine/files.h"

static char *given(char *text)
{
        static char none[] = "";
        return text ? text : none;
}

static void log_run(const struct log_context *about, const struct run_request *request, const struct run_result *result)
{
        struct log_context whole = *about;
        whole.run = result->id;
        log_about(LOG_INFO, &whole, "%s: %.20s, %.0f ms, CPU %.0f ms, %llu KiB", status_name(result->status), given(request->language),
                  result->timings.total_ms, result->usage.cpu_ms, (unsigned long long)(result->usage.memory_peak_bytes / KIB));
}

void audit_run(struct store *store, const struct log_context *about, const char *key, struct run *run, const struct run_result *result)
{
        const struct run_request *request = run_request(run);
        struct arena *arena = run_arena(run);
        struct csn_error err;
        struct buf boundary;
        log_run(about, request, result);
        if (!store)
                return;
        buf_init(&boundary, 64 * KIB);
        if (HAS(result, run_result, boundary))
                model_encode_text(&object_boundary, &result->boundary, &boundary);
        int64_t now = time_now_ms();
        struct store_run row = {
                .id = result->id, .tenant = arena_text(arena, "%s", about->owner), .key = arena_text(arena, "%s", key), .task_id = given(request->task_id),
                .user = given(request->user), .language = given(request->language), .profile = given(request->profile), .policy = given(request->policy),
                .status = result->status, .exit_code = HAS(result, run_result, exit_code) ? result->exit_code : -1,
                .verdict = arena_text(arena, "%s", result->status == status_BLOCKED ? "deny" : strcmp(given(request->policy), "off") == 0 ? "" : "allow"),
                .boundary = given(boundary.bytes), .started_ms = now - (int64_t)result->timings.total_ms, .finished_ms = now,
                .cpu_ms = (uint64_t)result->usage.cpu_ms, .wall_ms = (uint64_t)result->usage.wall_ms,
                .memory_peak_bytes = result->usage.memory_peak_bytes, .trace_id = arena_text(arena, "%s", about->trace ? about->trace : ""),
        };
        files_sha256_bytes(request->code.bytes ? request->code.bytes : "", request->code.len, row.code_sha256);
        if (runs_add(store, &row, &err) < 0)
                log_text(LOG_ERROR, "the audit misses %s: %s", result->id, err.text);
        buf_done(&boundary);
}
