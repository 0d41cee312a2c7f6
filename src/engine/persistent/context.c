/*
 * Contexts: live interpreters in a sandbox.  A serving zygote forks Python interpreters, the guest starts all others;
 * in both cases the guest holds the descriptors and one call carries output, errors and the private channel
 * (docs/protocols/runner-channel.md).
 */
#include "engine/persistent/psandbox_private.h"

#include "sandbox/sandbox.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define QUEUE_MAX 100
#define START_MS 60000
#define LEFT_MS 500            /* to read the rest of the pipes of an ended interpreter */
/* longest wait for the exit report after SIGKILL; a compromised process 1 can withhold the report */
#define KILLED_MS 2000
#define HELLO_MAX (4 * KIB)

static void tell_waiter(struct context *context, const struct csn_error *error)
{
        struct context_waiter *waiter = context->waiter;
        if (!waiter)
                return;
        context_unwait(waiter);
        waiter->done(waiter, error);
}

static void wait_for(struct context *context, struct context_waiter *waiter)
{
        context->waiter = waiter;
        if (waiter)
                waiter->context = context;
}

/* ---- executions ---- */

/* "No such program" is a missing interpreter, unless the error has a field: that of a missing working folder. */
static void note_why(struct context *context, const struct csn_error *error)
{
        snprintf(context->why, sizeof context->why, "%.150s", error->text);
        context->no_interpreter = error->code == CSN_E_LANGUAGE || (!error->field[0] && err_is_no_program(error->sys));
}

/* run NULL: no execution is current. */
static void set_current(struct context *context, struct run *run)
{
        struct psandbox *psandbox = context->psandbox;
        if (run)
                owner_begin_other(psandbox->payer);
        else
                owner_end_other(psandbox->payer);
        context->current = run;
        if (!run)
                queue_changed(psandbox->engine);
}

static void count_waiting(struct context *context, bool more)
{
        context->waiting += more ? 1 : -1UL;
        context->psandbox->payer->waiting += more ? 1 : -1UL;
}

/* Whether the owner's limit allows another running program; if not, contexts_serve() tries again. */
static bool has_room(const struct context *context)
{
        struct engine *engine = context->psandbox->engine;
        bool room = owner_has_room(context->psandbox->payer, context->first->quota.running_max);
        engine->executions_wait = engine->executions_wait || !room;
        return room;
}

static int renew(struct context *context, struct csn_error *err);
static void died(struct context *context, const struct wire_exit *how);
static void died_now(struct context *context, const struct wire_exit *how);

static void serve(struct context *context)
{
        struct csn_error err;
        while (context->state == CONTEXT_IDLE && context->first && !context->stopping &&
                context->psandbox->state == PSANDBOX_READY && has_room(context)) {
                if (context->request.fresh && context->used) {
                        if (renew(context, &err) == 0)
                                return;
                        note_why(context, &err);
                        died(context, &(const struct wire_exit){ .has_status = 1, .status = 1U << 8 });
                        return;
                }
                bool first = !context->used;
                context->used = true;
                struct run *run = context->first;
                context->first = run->next_queued;
                if (!context->first)
                        context->last = NULL;
                run->next_queued = NULL;
                count_waiting(context, false);
                set_current(context, run);
                context->state = CONTEXT_BUSY;
                context->timed_out = 0;
                context->done = context->after_due = context->interrupt_pending = false;
                context->before_due = true;
                context->cancel_pending = !context_make_text(context, run, first);
                context->before = context->psandbox->seen;
                context->executions++;
                run->number = ++context->number;
                context->began_us = clock_us();
                run->state = RUN_RUNNING;
                run->begun_us = context->began_us;
                run->boundary = context->psandbox->boundary;
                run->has_boundary = true;
                run->channel.state = CHANNEL_READY;
                psandbox_request_stats(context->psandbox);
                psandbox_touch(context->psandbox);
                context_give_pending(context, run);    /* may exceed the output limit, and cancel the run */
        }
}

/* Makes the record of the current execution; `how` is the outcome as seen from outside. */
static void finish(struct context *context, struct wire_exit how)
{
        struct run *run = context->current;
        const struct wire_stats *after = &context->psandbox->seen;
        set_current(context, NULL);
        context->done = context->after_due = false;
        context_stop_clock(context);
        context_drop_text(context);
        run->context = NULL;
        run->ended_us = clock_us();
        how.wall_us = run->ended_us - context->began_us;
        how.cpu_us = after->cpu_us > context->before.cpu_us ? after->cpu_us - context->before.cpu_us : 0;
        how.memory_peak = after->memory_peak;
        how.oom_kills = after->oom_kills - min_u64(context->before.oom_kills, after->oom_kills);
        how.pids_hits = after->pids_hits - min_u64(context->before.pids_hits, after->pids_hits);
        how.reasons |= context->timed_out;
        run_quota_note(run, how.cpu_us);
        context->psandbox->told_us += how.cpu_us;
        psandbox_count_use(context->psandbox);
        psandbox_touch(context->psandbox);
        run_context_over(run, &how);
}

/* The runner has sent DONE, and the resource use is known. */
static void finish_done(struct context *context)
{
        bool failed =
                context->current->channel.part[CHANNEL_ERROR].len || context->current->channel.part[CHANNEL_SYNTAX].len;
        context->state = CONTEXT_IDLE;
        finish(context, (struct wire_exit){ .status = failed ? 1U << 8 : 0, .has_status = 1 });
        serve(context);
}

static void on_usage(struct timer *timer)
{
        const struct context *context = timer->owner;
        psandbox_request_stats(context->psandbox);
}

/*
 * Sends the program after the baseline statistics: a fast program could run out of memory before the baseline, and its
 * OOM kill would not be recognized.
 */
static void begin(struct context *context, const struct wire_stats *seen)
{
        struct run *run = context->current;
        context->before_due = false;
        context->before = *seen;
        if (run && context->cancel_pending) {
                context->state = CONTEXT_IDLE;
                context->executions--;
                context->number--;
                finish(context, (struct wire_exit){ .reasons = WIRE_KILLED });
                serve(context);
        } else if (run) {
                struct csn_error err;
                if (run_quota_begin(run, &err) < 0)
                        run->quota_left_ms = 1;   /* the next measurement of CPU time ends the execution */
                context->began_us = run->begun_us = clock_us();
                context_set_clock(context, CLOCK_WALL, run->launch.request.limits.wall_ms);
                context_measure(context, seen);
                context_send_text(context);
                if (context->interrupt_pending)
                        context_signal(context, SIGINT);
        }
}

static void on_stats(struct context *context, const struct wire_stats *seen)
{
        if (context->dying) {
                context->dying = false;
                died_now(context, &context->how);
        } else if (context->before_due) {
                begin(context, seen);
        } else if (context->after_due && context->current) {
                finish_done(context);
        } else if (context->current) {
                context_measure(context, seen);
        }
}

/* ---- its end ---- */

static void kill_interpreter(struct context *context)
{
        if (context->instance)
                instance_kill(context->instance);
        else
                context_signal(context, SIGKILL);
        if (!context->clock.active || context->meaning != CLOCK_LEFT)
                context_set_clock(context, CLOCK_LEFT, KILLED_MS);
}

/* Refuses the queued executions. */
static void refuse_all(struct context *context, const struct csn_error *error)
{
        struct csn_error why = *error;
        why.code = why.code == CSN_E_LOST ? CSN_E_BUSY : why.code;
        while (context->first) {
                struct run *run = context->first;
                context->first = run->next_queued;
                run->next_queued = NULL;
                run->context = NULL;
                count_waiting(context, false);
                run_finish_refused(run, &why);
        }
        context->last = NULL;
}

/*
 * A program that its interpreter did not begin before dying goes to the next interpreter.  Once, because the program
 * itself may be the cause of death.
 */
static bool hand_on(struct context *context)
{
        struct run *run = context->current;
        if (run->handed_on || run->cancelled || context->psandbox->why.code == CSN_E_LOST ||
                run->channel.state != CHANNEL_READY || context->timed_out ||
                context->request.fresh)
                return false;
        run->handed_on = true;
        run->state = RUN_QUEUED;
        run->number = 0;
        run->next_queued = context->first;
        context->first = run;
        if (!context->last)
                context->last = run;
        count_waiting(context, true);
        context->executions--;
        set_current(context, NULL);
        return true;
}

static void died(struct context *context, const struct wire_exit *how)
{
        struct run *run = context->current;
        struct csn_error error;
        bool was_starting = context->state == CONTEXT_STARTING;
        guest_call_close(&context->look);
        guest_call_close(&context->call);
        context_stop_clock(context);
        context_drop_text(context);
        context->state = CONTEXT_DEAD;
        context_tell(context, WATCHED_CONTEXT_ENDED);
        context->left = false;
        if (!context->why[0] && !how->has_status)
                snprintf(context->why, sizeof context->why, "it ended");
        else if (!context->why[0])
                snprintf(context->why, sizeof context->why,
                        WIFSIGNALED((int)how->status) ? "signal %d ended it" : "it ended with status %d",
                        WIFSIGNALED((int)how->status) ? WTERMSIG((int)how->status) : WEXITSTATUS((int)how->status));
        if (run && !hand_on(context)) {
                struct wire_exit end = *how;
                bool oom = context->psandbox->seen.oom_kills > context->before.oom_kills;
                if (end.has_status && WIFSIGNALED((int)end.status) && oom)
                        end.reasons |= WIRE_MEMORY;
                if (context->psandbox->why.code == CSN_E_LOST)
                        run->refusal = context->psandbox->why;
                finish(context, end);
        }
        if (!was_starting)
                return;
        err_set(&error, context->no_interpreter ? CSN_E_LANGUAGE : CSN_E_SYSTEM, 0,
                "the interpreter of the context did not start: %s", context->why);
        tell_waiter(context, &error);
        refuse_all(context, &error);
}

static int start(struct context *context, struct csn_error *err);

static void start_again(struct context *context)
{
        struct csn_error err;
        struct run *run = context->first;
        struct wire_exit none = { .has_status = 1, .status = 1U << 8 };
        if (!run || context->stopping)
                return;
        if (!context->request.fresh)
                run_warn(run, "context_restarted",
                        "the interpreter of this context had ended (%s); this is a new one, without its variables",
                        context->why);
        if (start(context, &err) == 0)
                return;
        context->state = CONTEXT_STARTING;
        note_why(context, &err);
        died(context, &none);
}

static void ended(struct context *context)
{
        if (context->dying)
                return;
        if (!context->current || !context->psandbox->instance) {
                died_now(context, &context->how);
                return;
        }
        guest_call_close(&context->call);
        context_stop_clock(context);
        context->dying = true;
        psandbox_request_stats(context->psandbox);
}

static void died_now(struct context *context, const struct wire_exit *how)
{
        context->dying = false;
        died(context, how);
        if (context->state == CONTEXT_DEAD && context->psandbox->state == PSANDBOX_READY && context->psandbox->instance)
                start_again(context);
}

static void on_clock(struct timer *timer)
{
        struct context *context = timer->owner;
        switch (context->meaning) {
        case CLOCK_WALL:
                context_end_execution(context, WIRE_WALL);
                break;
        case CLOCK_START:
                snprintf(context->why, sizeof context->why, "it was not ready after %d seconds", START_MS / 1000);
                kill_interpreter(context);
                break;
        case CLOCK_GRACE:
                snprintf(context->why, sizeof context->why, "an execution did not end when it was interrupted");
                kill_interpreter(context);
                break;
        case CLOCK_LEFT:
                if (context->current && run_has_display(context->current)) {
                        context_set_clock(context, CLOCK_LEFT, LEFT_MS);
                        break;
                }
                if (context->instance) {
                        instance_kill(context->instance);   /* its end follows */
                        break;
                }
                if (!context->left && !context->how.has_status)
                        context->how = (struct wire_exit){ .has_status = 1, .status = SIGKILL };
                ended(context);
                break;
        }
}

/* ---- messages of the interpreter ---- */

static bool take_hello(struct context *context, const uint8_t *bytes, size_t len)
{
        if (len < CHANNEL_HEADER || len > HELLO_MAX || memcmp(bytes, "CSN1", 4) != 0 || bytes[4] != CHANNEL_HELLO)
                return false;
        json_t *json = json_loadb((const char *)bytes + CHANNEL_HEADER, len - CHANNEL_HEADER, 0, NULL);
        json_int_t pid = json_integer_value(json_object_get(json, "pid"));
        json_decref(json);
        if (pid <= 1 || pid > INT32_MAX)
                return false;
        context->pid = (uint64_t)pid;
        return true;
}

/* Requests the resource use; the answer ends the execution. */
static void take_done(struct context *context)
{
        context->done = context->after_due = true;
        psandbox_request_stats(context->psandbox);
}

/* A syntax error is the last frame of a run; a context goes on, and sends DONE. */
static bool is_done_after_syntax(const struct channel *channel, const uint8_t *bytes, size_t len)
{
        return channel->state == CHANNEL_ENDED && len == CHANNEL_HEADER && memcmp(bytes, "CSN1", 4) == 0 &&
                bytes[4] == CHANNEL_DONE;
}

static void take_frame(struct context *context, const uint8_t *bytes, size_t len)
{
        struct run *run = context->current;
        bool after_syntax = run && !context->done && !context->text && is_done_after_syntax(&run->channel, bytes, len);
        struct csn_error err;
        if (context->state == CONTEXT_STARTING && take_hello(context, bytes, len)) {
                context->state = CONTEXT_IDLE;
                context_stop_clock(context);
                context_tell(context, WATCHED_CONTEXT_CREATED);
                tell_waiter(context, NULL);
                serve(context);
        } else if (!after_syntax &&
                (!run || context->done || context->text || channel_take(&run->channel, bytes, len, &err) < 0)) {
                /* The interpreter, or its program, broke the protocol: the interpreter is not trusted any more. */
                snprintf(context->why, sizeof context->why, "its private channel was misused");
                kill_interpreter(context);
        } else if (!after_syntax && bytes[4] == CHANNEL_DISPLAY && !run->channel.pending) {
                run_display(run);
        } else if (after_syntax || (run->channel.state == CHANNEL_ENDED && bytes[4] == CHANNEL_DONE)) {
                take_done(context);
        }
}

static void on_confined(void *owner, struct instance *instance);
static void on_exited(void *owner, struct instance *instance, const struct wire_exit *how);
static void on_refused(void *owner, struct instance *instance, const struct csn_error *error, bool again);
static void interpreter_ended(struct context *context, const struct wire_exit *how, const struct csn_error *error);

static const struct instance_user instance_user = {
        .confined = on_confined, .exited = on_exited, .refused = on_refused
};

static void enter(struct context *context, int fds[WIRE_FDS_MAX])
{
        struct csn_error err;
        uint32_t zygote = pools_zygote_for(context->psandbox->engine->pools, &context->psandbox->launch);
        if (!context->psandbox->instance)
                err_set(&err, CSN_E_BUSY, 0, "the sandbox is over");   /* a packet read after the end of the sandbox */
        else if (!zygote)
                err_set(&err, CSN_E_BUSY, 0, "the zygote is gone");
        else if (instance_join_guest(context->psandbox->instance, zygote, fds, &instance_user, context,
                         &context->instance, &err) == 0)
                return;
        interpreter_ended(context, NULL, &err);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct context *context = call->owner;
        uint64_t status;
        struct csn_error err;
        switch (kind) {
        case GUEST_OUT:
        case GUEST_ERROR:
                if (context->current)
                        run_printed(context->current, kind == GUEST_OUT ? 1 : 2, bytes + 1, len - 1);
                else
                        capture_add(&context->pending[kind == GUEST_ERROR], bytes + 1, len - 1);
                break;
        case GUEST_CHANNEL:
                take_frame(context, bytes + 1, len - 1);
                break;
        case GUEST_ENDS:
                if (fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0 && !context->instance)
                        enter(context, fds);
                break;
        case GUEST_EXITED:
                if (guest_get_number(bytes, len, &status, &err) == 0)
                        context->how = (struct wire_exit){ .status = status & 0xffff, .has_status = 1 };
                break;
        default:
                break;
        }
}

static void on_room(struct guest_call *call)
{
        context_send_text(call->owner);
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct context *context = call->owner;
        if (error && !context->why[0])
                note_why(context, error);
        if (context->instance)
                context_set_clock(context, CLOCK_LEFT, LEFT_MS);   /* the supervisor reports the exit status */
        else
                ended(context);
}

static void on_confined(void *owner, struct instance *instance)
{
        struct context *context = owner;
        struct csn_error err;
        if (instance_start(instance, &context->program, &err) == 0)
                return;
        note_why(context, &err);
        instance_kill(instance);
}

static void interpreter_ended(struct context *context, const struct wire_exit *how, const struct csn_error *error)
{
        bool never = context->state == CONTEXT_STARTING && error;
        struct csn_error err;
        context->instance = NULL;
        if (how)
                context->how = *how;
        if (error && !context->why[0])
                note_why(context, error);
        if (never && !context->cold) {
                /* The zygote did not fork; the guest starts an interpreter instead. */
                context->cold = true;
                guest_call_close(&context->call);
                context->why[0] = 0;
                if (start(context, &err) == 0)
                        return;
                note_why(context, &err);
        }
        context->left = true;
        if (context->call.psandbox)
                context_set_clock(context, CLOCK_LEFT, LEFT_MS);
        else
                ended(context);
}

static void on_exited(void *owner, struct instance *instance, const struct wire_exit *how)
{
        (void)instance;
        interpreter_ended(owner, how, NULL);
}

static void on_refused(void *owner, struct instance *instance, const struct csn_error *error, bool again)
{
        (void)instance, (void)again;
        interpreter_ended(owner, NULL, error);
}

/* ---- its beginning ---- */

static int start_process(struct context *context, const struct wire_program *program, struct csn_error *err)
{
        const struct guest_process process = { .flags = GUEST_CHANNELED |
                        (context->request.user == account_ROOT ? GUEST_AS_ROOT : 0),
                .folder = context->request.cwd,
                .argv = program->argv,
                .argv_n = program->argv_n,
                .env = program->env,
                .env_n = program->env_n };
        return guest_call_process(context->psandbox, &context->call, &process, err);
}

static int start(struct context *context, struct csn_error *err)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        struct wire_program *program = &context->program.program;
        struct psandbox *psandbox = context->psandbox;
        /* Forks of a zygote run as `user` only. */
        bool warm = context->language->zygote && !context->cold && context->request.user == account_USER &&
                pools_zygote_for(psandbox->engine->pools, &psandbox->launch) != 0;
        arena_done(&context->started);
        context->program = (struct backend_program){ .limits = psandbox->launch.program.limits };
        const char *interpreter;
        if (launch_interpreter(&psandbox->launch, context->language, &interpreter, err) < 0)
                return -err->code;
        lang_context_program(context->language, interpreter, &context->started, warm, program);
        program->env = psandbox_env(psandbox, context->request.user, context->request.env, context->request.env_n,
                &context->started, &program->env_n);
        context->state = CONTEXT_STARTING;
        context->call.events = &events;
        context->call.owner = context;
        context->how = (struct wire_exit){ 0 };
        context->why[0] = 0;
        context->no_interpreter = false;
        context->left = context->used = false;
        context->number = 0;
        int rc = warm ? guest_call_stdio(psandbox, &context->call, err) : start_process(context, program, err);
        if (rc < 0)
                return rc;
        context_set_clock(context, CLOCK_START, START_MS);
        return 0;
}

/* Kills the interpreter and detaches from its instance; the exit only frees the instance. */
static void let_go(struct context *context)
{
        if (context->instance)
                instance_set_user(context->instance, NULL, NULL), instance_kill(context->instance);
        context->instance = NULL;
        guest_call_close(&context->look);
        guest_call_close(&context->call);
        context_stop_clock(context);
        context_drop_text(context);
        context->state = CONTEXT_DEAD;
        context_tell(context, WATCHED_CONTEXT_ENDED);
        context->dying = false;
}

/* Ends the current execution now; its record has the reason. */
static void stop(struct context *context, const struct csn_error *error)
{
        struct run *run = context->current;
        context->stopping = true;      /* the callback of an ended run may submit the next run */
        let_go(context);
        if (run && error->code == CSN_E_CANCELLED)
                run->cancelled = true;
        if (run && error->code == CSN_E_LOST)
                run->refusal = *error;
        if (run)
                finish(context, (struct wire_exit){ .reasons = WIRE_KILLED });
        refuse_all(context, error);
        tell_waiter(context, error);
        context->stopping = false;
}

/* A new interpreter for the next execution of a `fresh` context, which keeps no state. */
static int renew(struct context *context, struct csn_error *err)
{
        let_go(context);
        return start(context, err);
}

int context_restart(struct context *context, struct context_waiter *waiter, struct csn_error *err)
{
        struct csn_error error;
        if (context->psandbox->state != PSANDBOX_READY || !context->psandbox->instance)
                return err_set(err, CSN_E_BUSY, 0, "the sandbox of the context is %s",
                        context->psandbox->state == PSANDBOX_PAUSED ? "paused; resume it" : "over");
        err_set(&error, CSN_E_CANCELLED, 0, "the context was restarted");
        stop(context, &error);
        context->cold = false;
        wait_for(context, waiter);
        if (start(context, err) == 0)
                return 0;
        if (waiter)
                context_unwait(waiter);
        let_go(context);
        note_why(context, err);
        return -err->code;
}

static void context_free(struct context *context, const struct csn_error *error)
{
        /* First, so that callbacks of the end do not find the context. */
        for (struct context **at = &context->psandbox->contexts; *at; at = &(*at)->next)
                if (*at == context) {
                        *at = context->next;
                        break;
                }
        stop(context, error);
        for (int i = 0; i < 2; i++)
                capture_done(&context->pending[i]);
        arena_done(&context->started);
        arena_done(&context->arena);
        free(context);
}

static void looked(struct context *context, const struct csn_error *error)
{
        struct csn_error err;
        if (error || start(context, &err) < 0)
                context_free(context, error ? error : &err);
}

void context_close(struct context *context)
{
        struct csn_error error;
        err_set(&error, CSN_E_CANCELLED, 0, "the context was closed");
        context_free(context, &error);
}

static void contexts_ended(struct psandbox *psandbox, const struct csn_error *error)
{
        for (struct context *context = psandbox->contexts; context; context = psandbox->contexts) {
                psandbox->contexts = context->next;
                context_free(context, error);
        }
}

/* Clocks stop while the sandbox is paused; after the resume dead contexts start again, and executions begin. */
static void contexts_frozen(struct psandbox *psandbox, bool on)
{
        uint64_t now = clock_us();
        for (struct context *context = psandbox->contexts; context; context = context->next) {
                if (on && context->clock.active) {
                        uint64_t left = context->clock.at_us > now ? context->clock.at_us - now : 1;
                        context_stop_clock(context);
                        context->clock_left_us = left;
                } else if (!on && context->clock_left_us) {
                        loop_timer(context->psandbox->engine->loop, &context->clock, context->clock_left_us);
                        context->clock_left_us = 0;
                        context_measure_soon(context);
                }
                if (!on && context->current)
                        context->began_us += now - max_u64(context->began_us, psandbox->paused_us);
                if (!on && context->state == CONTEXT_DEAD)
                        start_again(context);
                else if (!on)
                        serve(context);
        }
}

static size_t contexts_idle(const struct psandbox *psandbox)
{
        size_t n = 0;
        for (const struct context *context = psandbox->contexts; context; context = context->next)
                n += context->call.psandbox && context->state == CONTEXT_IDLE;
        return n;
}

static void contexts_saw(struct psandbox *psandbox, const struct wire_stats *seen)
{
        for (struct context *context = psandbox->contexts; context; context = context->next)
                on_stats(context, seen);
}

static bool contexts_execute(const struct psandbox *psandbox)
{
        for (const struct context *context = psandbox->contexts; context; context = context->next)
                if (context->current)
                        return true;
        return false;
}

static void contexts_quota_spent(struct psandbox *psandbox)
{
        for (struct context *context = psandbox->contexts; context; context = context->next)
                if (context->current && !context->before_due && !context->current->quota_spent) {
                        context->current->quota_spent = true;
                        context_end_execution(context, WIRE_CPU);
                }
}

static const struct psandbox_observer observer = { contexts_saw, contexts_frozen, contexts_ended, contexts_execute,
        contexts_idle, contexts_quota_spent };

void contexts_serve(struct engine *engine)
{
        if (!engine->executions_wait)
                return;
        engine->executions_wait = false;
        for (struct psandbox *psandbox = engine->psandboxes; psandbox; psandbox = psandbox->next)
                for (struct context *context = psandbox->contexts; context; context = context->next)
                        serve(context);
}

/* ---- opening ---- */

static void keep_request(struct context *context, const struct context_request *request)
{
        struct context_request *own = &context->request;
        model_overlay(&object_context_request, own, request, &context->arena);
        own->language = arena_text(&context->arena, "%s", context->language->name);
        own->cwd = arena_text(&context->arena, "%s", request->cwd ? request->cwd : SANDBOX_HOME);
        own->env = arena_alloc(&context->arena, (request->env_n + 1) * sizeof *own->env);
        own->env_n = request->env_n;
        for (size_t i = 0; i < request->env_n; i++)
                own->env[i] = (struct pair){ .name = arena_text(&context->arena, "%s", request->env[i].name),
                                             .value = arena_text(&context->arena, "%s", request->env[i].value) };
}

int context_open(struct psandbox *psandbox, const struct context_request *request, struct context_waiter *waiter,
        struct context **ret, struct csn_error *err)
{
        const struct language *language;
        size_t n = 0;
        if (lang_find(NULL, request->language ? request->language : lang_python.name, &language, err) < 0)
                return -err->code;
        if (!language->context)
                return err_field(err, "/language", "there are no contexts of %s", language->title);
        if (psandbox_has_account(psandbox, request->user, err) < 0)
                return -err->code;
        for (struct context *context = psandbox->contexts; context; context = context->next)
                n++;
        if (n >= psandbox->engine->settings->engine.contexts_max)
                return err_set(err, CSN_E_BUSY, 0,
                        "contexts of the sandbox: %zu, as many as engine.contexts_max allows; close one", n);
        struct context *context = mem_alloc(sizeof *context);
        *context = (struct context){ .psandbox = psandbox,
                .language = language,
                .clock = { .fired = on_clock, .owner = context },
                .usage_report = { .fired = on_usage, .owner = context },
                .made = clock_number(&psandbox->engine->newest_context),
                .created_ms = time_now_ms() };
        psandbox->observer = &observer;
        for (int i = 0; i < 2; i++)
                capture_init(&context->pending[i], PENDING_MAX);
        snprintf(context->id, sizeof context->id, "ctx_");
        id_new(context->id + 4);
        keep_request(context, request);
        wait_for(context, waiter);
        context->next = psandbox->contexts;
        psandbox->contexts = context;
        bool elsewhere = context_is_elsewhere(context);
        if ((elsewhere ? context_look(context, looked, err) : start(context, err)) < 0) {
                if (waiter)
                        context_unwait(waiter);
                context_close(context);
                return -err->code;
        }
        if (elsewhere)
                context_set_clock(context, CLOCK_START, START_MS);
        *ret = context;
        return 0;
}

/* ---- runs ---- */

static int submit(struct run *run, struct csn_error *err)
{
        struct context *context = context_find(run->engine, run->launch.request.context, run->owner_key);
        if (!context)
                return err_field(err, "/context", "there is no context %.60s any more", run->launch.request.context);
        if (context->psandbox->state != PSANDBOX_READY)
                return err_set(err, CSN_E_BUSY, 0, "the sandbox of the context is %s",
                        context->psandbox->state == PSANDBOX_PAUSED ? "paused; resume it" : "not ready");
        if (context->waiting >= QUEUE_MAX)
                return err_set(err, CSN_E_BUSY, 0, "the queue of this context is full: %zu waiting; try again later",
                        context->waiting);
        run->context = context;
        run->state = RUN_QUEUED;
        run->queued_us = clock_us();
        run->next_queued = NULL;
        if (context->last)
                context->last->next_queued = run;
        else
                context->first = run;
        context->last = run;
        count_waiting(context, true);
        if (context->state == CONTEXT_DEAD)
                start_again(context);
        else
                serve(context);
        return 0;
}

/* Takes the run out of the queue.  False: the run is not queued. */
static bool unqueue(struct context *context, struct run *run)
{
        struct run *before = NULL;
        for (struct run **at = &context->first; *at; before = *at, at = &(*at)->next_queued)
                if (*at == run) {
                        *at = run->next_queued;
                        if (context->last == run)
                                context->last = before;
                        run->next_queued = NULL;
                        run->context = NULL;
                        count_waiting(context, false);
                        return true;
                }
        return false;
}

static void cancel(struct run *run)
{
        struct context *context = run->context;
        struct csn_error err;
        if (unqueue(context, run)) {
                err_set(&err, CSN_E_CANCELLED, 0, "The run was cancelled");
                run_finish_refused(run, &err);
        } else if (context->current == run && context->before_due) {
                context->cancel_pending = true;
        } else if (context->current == run) {
                context_end_execution(context, 0);
        }
}

static void forget(struct run *run)
{
        struct context *context = run->context;
        if (unqueue(context, run) || context->current != run)
                return;
        /* The run has no listener any more; its program must not go on into the next execution. */
        set_current(context, NULL);
        run->context = NULL;
        context_drop_text(context);
        snprintf(context->why, sizeof context->why, "an execution was given up");
        kill_interpreter(context);
}

static void hold(struct run *run, bool on)
{
        if (run->context->current == run)
                guest_call_hold(&run->context->call, on);
}

int context_bind(struct run *run, struct csn_error *err)
{
        static const struct run_executor executor = { context_adopt, submit, cancel, forget, hold };
        const struct run_request *request = &run->launch.request;
        const struct context *context = context_find(run->engine, request->context, run->owner_key);
        if (!context)
                return err_field(err, "/context", "there is no context %.60s", request->context);
        run->executor = &executor;
        run_set_reviewed_tools(run, &context->psandbox->launch.request.tools);
        return context_take_limits(run, context, err);
}

/* ---- the interrupt ---- */

void context_interrupt(struct context *context)
{
        context->interrupt_pending = context->before_due;
        if (context->current && !context->before_due)
                context_signal(context, SIGINT);
}
