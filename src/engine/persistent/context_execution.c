/* The current execution of a context: its text, its clocks, its limits. */
#include "engine/persistent/psandbox_private.h"

#include <signal.h>

#define GRACE_MS 2000                /* after an interrupt; then the interpreter is killed */
#define USAGE_REPORT_MIN_US 20000    /* CPU time is measured no more often than this, */
/* and no less: where the kernel does not keep cpu_milli more may be used at once */
#define USAGE_REPORT_MAX_US 1000000

/* ---- clocks ---- */

static struct loop *loop_of(const struct context *context)
{
        return context->psandbox->engine->loop;
}

void context_stop_clock(struct context *context)
{
        loop_untimer(loop_of(context), &context->clock);
        loop_untimer(loop_of(context), &context->usage_report);
        context->clock_left_us = 0;
}

void context_set_clock(struct context *context, int meaning, uint64_t ms)
{
        context_stop_clock(context);
        context->meaning = meaning;
        if (context->psandbox->state == PSANDBOX_PAUSED)
                context->clock_left_us = ms * 1000;
        else
                loop_timer(loop_of(context), &context->clock, ms * 1000);
}

/* ---- the text ---- */

static bool send_frame(struct context *context, unsigned flags, const char *bytes, size_t len)
{
        uint8_t frame[CHANNEL_FRAME_MAX] = { 'C', 'S', 'N', '1', CHANNEL_EXECUTE, (uint8_t)flags };
        for (int i = 0; i < 4; i++)
                frame[8 + i] = (uint8_t)(len >> 8 * i);
        memcpy(frame + CHANNEL_HEADER, bytes, len);
        return guest_call_send(&context->call, GUEST_CHANNEL, frame, CHANNEL_HEADER + len);
}

void context_drop_text(struct context *context)
{
        free(context->text);
        context->text = NULL;
}

/* As much as there is room for; the rest follows when there is more. */
void context_send_text(struct context *context)
{
        if (context->before_due)
                return;
        while (context->text && context->text_at < context->text_len) {
                size_t left = context->text_len - context->text_at,
                       piece = min_u64(left, CHANNEL_FRAME_MAX - CHANNEL_HEADER);
                if (!send_frame(context, piece < left ? CHANNEL_MORE : 0, context->text + context->text_at, piece))
                        return;
                context->text_at += piece;
        }
        context_drop_text(context);
}

bool context_make_text(struct context *context, const struct run *run, bool first)
{
        json_t *json = launch_as_execution(&run->launch);
        /* A fork of a zygote starts in the home directory. */
        if (first && context->instance && !HAS(&run->launch.request, run_request, cwd) && context_is_elsewhere(context))
                json_object_set_new(json, "cwd", json_string(context->request.cwd));
        const struct bytes *code = &run->launch.request.code, *prelude = &run->launch.request.prelude;
        char *rest = model_write(json, JSON_COMPACT);
        struct buf text;
        /* Without a tree, which would copy a long program once more. */
        buf_init(&text, (rest ? strlen(rest) : 0) + 6 * (code->len + prelude->len) + KIB);
        bool fits = rest && buf_printf(&text, "{\"code\":") &&
                model_put_text(&text, code->bytes ? code->bytes : "", code->len) &&
                (!HAS(&run->launch.request, run_request, prelude) ||
                        (buf_printf(&text, ",\"prelude\":") &&
                                model_put_text(&text, prelude->bytes ? prelude->bytes : "", prelude->len))) &&
                buf_add(&text, ",", 1) &&
                buf_add(&text, rest + 1, strlen(rest + 1));
        if (!fits)
                buf_done(&text);
        context->text = text.bytes;
        context->text_len = text.len;
        context->text_at = 0;
        json_decref(json);
        free(rest);
        return context->text;
}

void context_give_pending(struct context *context, struct run *run)
{
        struct arena arena = { 0 };
        for (int i = 0; i < 2; i++) {
                size_t len, cut;
                char *text = capture_text(&context->pending[i], &arena, &len, &cut);
                if (len)
                        run_printed(run, i + 1, text, len);
                capture_done(&context->pending[i]);
                capture_init(&context->pending[i], PENDING_MAX);
        }
        arena_done(&arena);
}

/* ---- limits ---- */

void context_signal(struct context *context, int sig)
{
        guest_call_signal(&context->call, sig, context->instance ? context->pid : 0);
}

void context_end_execution(struct context *context, unsigned reason)
{
        context->timed_out |= reason;
        context_signal(context, SIGINT);
        context_set_clock(context, CLOCK_GRACE, GRACE_MS);
}

/* As in the record: the CPU time of the whole sandbox since the execution began. */
void context_measure(struct context *context, const struct wire_stats *seen)
{
        const struct limits *limits = &context->current->launch.request.limits;
        uint64_t most = run_quota_cpu_max_ms(context->current) * 1000;
        uint64_t used = seen->cpu_us - min_u64(context->before.cpu_us, seen->cpu_us);
        if (!most || context->meaning != CLOCK_WALL)
                return;
        if (used >= most)
                context_end_execution(context, WIRE_CPU);
        else                           /* the earliest time at which the limit can be reached */
                loop_timer(loop_of(context), &context->usage_report,
                        max_u64(USAGE_REPORT_MIN_US,
                                min_u64((most - used) * 1000 / limits->cpu_milli, USAGE_REPORT_MAX_US)));
}

void context_measure_soon(struct context *context)
{
        loop_timer(loop_of(context), &context->usage_report, USAGE_REPORT_MIN_US);
}
