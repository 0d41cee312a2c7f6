/* Shared by the fronts of other services; see compat.h. */
#include "front/compat/compat.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>

bool compat_number(const json_t *json, double *ret)
{
        const char *text = json_string_value(json);
        char *end;
        double number = text ? strtod(text, &end) : json_number_value(json);
        if (text ? end == text || *end || strpbrk(text, "xX") : !json_is_number(json))
                return false;
        *ret = number;
        return isfinite(number);
}

json_t *compat_scaled(double number, double unit, uint64_t least, uint64_t most)
{
        double scaled = ceil(number * unit);
        if (!(scaled > (double)least))
                return json_integer((json_int_t)least);
        return json_integer(scaled < (double)most ? (json_int_t)scaled : (json_int_t)most);
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

json_t *compat_base64(const json_t *text)
{
        const char *from = json_string_value(text);
        size_t len = json_string_length(text), n = 0;
        char *plain = mem_alloc(len + 1);
        for (size_t i = 0; i < len; i++) {
                plain[n] = from[i];
                n += !is_blank(from[i]);
        }
        json_t *json = json_stringn(plain, n);
        free(plain);
        return json;
}

/* ---- bodies ---- */

void compat_refuse(struct compat_given *given, unsigned status, json_t *answer)
{
        given->status = status;
        given->answer = http_json_text(answer);
}

bool compat_answer(struct http_request *request, struct compat_given *given)
{
        char *answer = given->answer;
        if (!given->status)
                return false;
        given->answer = NULL;
        http_answer_json(request, given->status, answer);
        return true;
}

void compat_drop(void *given)
{
        struct compat_given *own = given;
        free(own->answer);
        own->answer = NULL;
}

int compat_decode(json_t *ours, struct arena *arena, struct run_request *ret, struct csn_error *err)
{
        int rc = model_decode(&object_run_request, ours, arena, ret, err);
        json_decref(ours);
        return rc;
}

struct run *compat_run(struct http_request *request, const struct run_request *given)
{
        struct run *run = run_new(service_of(request)->engine);
        *run_request(run) = *given;
        run_set_judged(run);
        return run;
}

bool compat_may_run(struct http_request *request, struct run *run)
{
        struct http_limit limit;
        struct csn_error err = { 0 };
        if (service_may_run(request, run, &limit, &err) == 0)
                return true;
        run_free(run);
        service_answer_busy(request, &limit, &err);
        return false;
}

/* ---- endings ---- */

static void ended_by(struct compat_ending *ending, int signal, struct arena *arena)
{
        ending->status = "SG";
        ending->signal = signal;
        ending->message = arena_text(arena, "Caught fatal signal %d", signal);
}

void compat_ending(const struct run_result *result, struct arena *arena, struct compat_ending *ret)
{
        *ret = (struct compat_ending){ .code = -1 };
        if (result->status == status_CANCELLED) {
                ret->status = "XX";
                ret->message = "the run was cancelled";
        } else if (result->status == status_TIMEOUT) {
                bool wall = result->usage.wall_ms >= (double)result->limits.wall_ms;
                ret->status = "TO";
                ret->message = wall ? "Time limit exceeded (wall clock)" : "Time limit exceeded";
        } else if (result->status == status_OUTPUT_LIMIT) {
                bool errors = !result->truncated.stdout_bytes;
                ret->status = errors ? "EL" : "OL";
                ret->message = errors ? "stderr length exceeded" : "stdout length exceeded";
        } else if (HAS(result, run_result, exit_code)) {
                ret->code = result->exit_code;
                ret->status = ret->code ? "RE" : NULL;
                ret->message = ret->code ? arena_text(arena, "Exited with error status %" PRId64, ret->code) : NULL;
        } else if (HAS(result, run_result, signal)) {
                ended_by(ret, (int)result->signal, arena);
        } else if (result->status == status_MEMORY_EXCEEDED) {
                ended_by(ret, SIGKILL, arena);
        } else {
                ret->status = "XX";
                ret->message = HAS(result, run_result, error) ? result->error.message : "the program did not run";
        }
}
