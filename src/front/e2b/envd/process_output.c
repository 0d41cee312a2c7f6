/*
 * The listeners of a program: streams of its output and its end.  The slowest reader sets the pace, as the reader of a
 * pipe does.
 */
#include "front/e2b/envd/process.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/wait.h>

void envd_listener_free(struct envd_listener *listener)
{
        struct envd_process *process = listener->process;
        for (struct envd_listener **at = &process->listeners; *at; at = &(*at)->next)
                if (*at == listener) {
                        *at = listener->next;
                        break;
                }
        loop_untimer(process->loop, &listener->keepalive);
        loop_untimer(process->loop, &listener->deadline);
        listener->request->gone = NULL;
        listener->request->room = NULL;
        free(listener);
}

static void keep_pace(struct envd_process *process)
{
        bool full = false;
        for (const struct envd_listener *listener = process->listeners; listener; listener = listener->next)
                full = !http_has_room(listener->request) || full;
        guest_call_hold(&process->call, full);
}

static void on_listener_gone(struct http_request *request)
{
        struct envd_listener *listener = request->owner;
        struct envd_process *process = listener->process;
        envd_listener_free(listener);
        if (process->pid && !process->over)
                keep_pace(process);
}

static void on_listener_room(struct http_request *request)
{
        struct envd_process *process = ((struct envd_listener *)request->owner)->process;
        keep_pace(process);
        envd_send_input(&process->call);           /* a held call gets no event of room in its socket */
}

static void keepalive(struct envd_listener *listener)
{
        if (listener->keepalive_us)
                loop_timer(listener->process->loop, &listener->keepalive, listener->keepalive_us);
}

/* False: the listener has gone, and is freed. */
static bool tell(struct envd_listener *listener, const char *name, json_t *event)
{
        if (rpc_send(listener->request, json_pack("{s:{s:o}}", "event", name, event))) {
                keepalive(listener);
                return true;
        }
        envd_listener_free(listener);
        return false;
}

static void on_keepalive(struct timer *timer)
{
        tell(timer->owner, "keepalive", json_object());
}

static void on_deadline(struct timer *timer)
{
        struct envd_listener *listener = timer->owner;
        struct http_request *request = listener->request;
        envd_listener_free(listener);
        rpc_end(request, RPC_DEADLINE_EXCEEDED, "the time-out of the request is over");
}

struct envd_listener *envd_listener_new(struct envd_process *process, struct http_request *request, bool begins)
{
        struct envd_listener *listener = mem_alloc(sizeof *listener);
        uint64_t timeout_ms = rpc_header_number(http_header(request, "Connect-Timeout-Ms"));
        *listener = (struct envd_listener){ .next = process->listeners,
                .process = process,
                .request = request,
                .began = begins,
                .keepalive = { .fired = on_keepalive, .owner = listener },
                .deadline = { .fired = on_deadline, .owner = listener },
                .keepalive_us = min_u64(rpc_header_number(http_header(request, "Keepalive-Ping-Interval")),
                                        RPC_KEEPALIVE_MAX_S) *
                        1000000 };
        process->listeners = listener;
        request->owner = listener;
        request->gone = on_listener_gone;
        request->room = on_listener_room;
        if (timeout_ms)
                loop_timer(process->loop, begins ? &process->deadline : &listener->deadline, timeout_ms * 1000);
        return listener;
}

bool envd_listener_greet(struct envd_listener *listener)
{
        rpc_begin(listener->request);
        return tell(listener, "start", json_pack("{s:I}", "pid", (json_int_t)listener->process->pid));
}

void envd_tell_output(struct envd_process *process, enum guest_kind kind, const uint8_t *bytes, size_t len)
{
        const char *name = process->terminal ? "pty" : kind == GUEST_OUT ? "stdout" : "stderr";
        struct arena arena = { 0 };
        const char *text = process->listeners ? model_base64(&arena, (const char *)bytes, len) : NULL;
        for (struct envd_listener *listener = process->listeners, *next; listener; listener = next) {
                next = listener->next;
                tell(listener, "data", json_pack("{s:s}", name, text));
        }
        arena_done(&arena);
        keep_pace(process);
}

/* "exit status 3", "signal: killed"; and the quota if the program was killed for its CPU time. */
static json_t *end_event(const struct envd_process *process)
{
        char status[80];
        bool exited = WIFEXITED(process->status);
        int code = exited ? WEXITSTATUS(process->status) : -1, sig = exited ? 0 : WTERMSIG(process->status);
        if (exited)
                snprintf(status, sizeof status, "exit status %d", code);
        else
                snprintf(status, sizeof status, "signal: %s%s", sigdescr_np(sig) ? sigdescr_np(sig) : "unknown",
                        WCOREDUMP(process->status) ? " (core dumped)" : "");
        if (!exited)
                status[8] = (char)tolower((unsigned char)status[8]);
        json_t *json = json_pack("{s:i, s:b, s:s}", "exitCode", code, "exited", exited, "status", status);
        if (process->call.spent)
                json_object_set_new(json, "error",
                        json_sprintf("%s: the CPU time of the key is used up for the day (" QUOTA_CPU ")", status));
        else if (code)
                json_object_set_new(json, "error", json_string(status));
        return json;
}

void envd_listener_end(struct envd_listener *listener)
{
        const struct envd_process *process = listener->process;
        struct http_request *request = listener->request;
        bool timed_out = process->timed_out && listener->began;
        if (!timed_out && !tell(listener, "end", end_event(process)))
                return;
        envd_listener_free(listener);
        rpc_end(request, timed_out ? RPC_DEADLINE_EXCEEDED : 0,
                "the time-out of the program is over, and it was killed");
}
