/* The life of a run: start, cancel, end; see run.h. */
#include "engine/run/run_private.h"

#include <errno.h>
#include <stdio.h>

/* ---- the end ---- */

static void close_later(struct timer *timer)
{
        struct run *run = timer->owner;
        fd_close(&run->home_fd);
        run_close_io(run);
}

static void leave(struct run *run)
{
        run->instance = NULL;
        queue_left(run);
        queue_started(run);
}

/* After the answer, for which a client waits. */
static void look_around(struct engine *engine)
{
        queue_changed(engine);
        pools_refill(engine->pools);
}

static void finish_later(struct timer *timer)
{
        run_end(timer->owner);
}

void run_finish_refused(struct run *run, const struct csn_error *error)
{
        run->refusal = *error;
        run->state = RUN_OVER;
        loop_timer(run->engine->loop, &run->finish, 0);
}

/* The program did not run, and the record has the reason. */
static void finish_blocked(struct run *run)
{
        run->blocked = true;
        run->state = RUN_OVER;
        loop_timer(run->engine->loop, &run->finish, 0);
}

void run_context_over(struct run *run, const struct wire_exit *how)
{
        run->how = *how;
        run->started_us = run->ended_us - min_u64(how->wall_us, run->ended_us - run->created_us);
        run_phase_begin(run, PHASE_RUN);
        run_end(run);
}

/* ---- news of the instance ---- */

static void enqueue(struct run *run, bool front)
{
        run->queued_us = run->queued_us ? run->queued_us : clock_us();
        run_phase_begin(run, PHASE_QUEUE);
        if (run->skips_queue) {
                queue_pass(run);
                run_begin(run);
        } else {
                run->state = RUN_QUEUED;
                queue_add(run, front);
        }
}

static void on_ready(void *owner, struct instance *instance)
{
        struct run *run = owner;
        run->instance = instance;
        run->boundary = instance->boundary;
        run->has_boundary = run->launch.backend != &backend_native ||
                instance->state == INSTANCE_WARM; /* else on_confined() completes the boundary */
        run_attach(run, instance);
}

/* The complete boundary; the processes' own part was not known in on_ready(). */
static void on_confined(void *owner, struct instance *instance)
{
        struct run *run = owner;
        run->boundary = instance->boundary;
        run->has_boundary = true;
}

static void on_handoff_done(void *owner, int fd)
{
        struct run *run = owner;
        run->handoff_fd = fd;
        run->handed_over = true;
}

static void on_stats(void *owner, const struct wire_stats *seen)
{
        struct run *run = owner;
        if (!run_quota_note(run, seen->cpu_us))
                run_quota_end(run);
}

static void keep_traffic(struct run *run)
{
        if (!run->egress)
                return;
        run->has_traffic = true;
        egress_usage(run->egress, &run->traffic.connections, &run->traffic.refused, &run->traffic.in_bytes,
                &run->traffic.out_bytes);
}

static void on_exited(void *owner, struct instance *instance, const struct wire_exit *how)
{
        struct run *run = owner;
        (void)instance;
        run->how = *how;
        run_quota_note(run, how->cpu_us);
        run->ended_us = clock_us();
        run->started_us = run->ended_us - min_u64(how->wall_us, run->ended_us - run->created_us);
        run->instance = NULL; /* the instance is gone already */
        run_phase_begin(run, PHASE_RUN);
        queue_started(run);
        run_drain(run);
        keep_traffic(run);
        egress_close(run->egress);
        run->egress = NULL;
        struct engine *engine = run->engine;
        run_end(run);
        look_around(engine);
}

/*
 * Whether the program had an effect outside before the supervisor reported its start: the supervisor may be killed
 * between the two.  Other effects were in the sandbox, and are gone with the sandbox.
 */
static bool was_heard(const struct run *run)
{
        uint64_t connections = 0, refused, in, out;
        if (run->egress)
                egress_usage(run->egress, &connections, &refused, &in, &out);
        return run->streams[0].capture.total || run->streams[1].capture.total || connections ||
                tool_socket_was_asked(run->tool_session.tool_socket);
}

/* The program begins once more, from nothing. */
static void begin_anew(struct run *run, bool begun)
{
        if (begun) {
                run_warn(run, "retried",
                        "the sandbox of the program was lost while it ran; the program was begun again (retry=safe)");
                for (int i = 0; i < 2; i++) {
                        capture_done(&run->streams[i].capture);
                        capture_init(&run->streams[i].capture, (size_t)run->launch.request.limits.output_bytes);
                }
                channel_done(&run->channel);
                channel_init(&run->channel, (size_t)run->launch.request.limits.value_bytes);
                run->channel.has_messages = run->launch.has_messages;
        }
        run->cold = true;
        run->launch.shape.domain = 0;
        run->has_boundary = run->handed_over = false;
        enqueue(run, true);
}

/*
 * A process had no free descriptor for the sandbox: the kernel releases cgroups of ended sandboxes late on a busy
 * machine, and the descriptors stay open until then.  The run goes back to the head of the queue, and the queue rests
 * for CROWDED_WAIT_US.
 */
#define CROWDED_WAIT_US 20000ULL
#define CROWDED_MAX 250U

static bool waits_for_descriptors(struct run *run, const struct csn_error *error, bool begun)
{
        bool crowded = error->code == CSN_E_BUSY && (error->sys == EMFILE || error->sys == ENFILE);
        if (!crowded || begun || run->cancelled || run->skips_queue || run->crowded >= CROWDED_MAX)
                return false;
        run->crowded++;
        run->engine->crowded_until_us = clock_us() + CROWDED_WAIT_US;
        return true;
}

/*
 * A program that may have begun starts again only if its request allows a retry: effects outside, by tools or
 * connections, would happen twice.  Only the supervisor knows whether a program began after the handover.
 */
static void on_refused(void *owner, struct instance *instance, const struct csn_error *error, bool again)
{
        struct run *run = owner;
        (void)instance;
        struct engine *engine = run->engine;
        /* A program with output had begun, even if its sandbox died before the supervisor could report the start. */
        bool heard = was_heard(run), lost = error->code == CSN_E_LOST || (heard && !error->field[0]);
        bool begun = heard || (lost && run->handed_over);
        bool may_begin = begun ? lost && run->launch.request.retry == retry_SAFE : lost || again;
        may_begin = may_begin && !(lost ? run->lost || run->skips_queue : run->cold) && !run->cancelled;
        run->lost = run->lost || lost;
        leave(run);
        egress_close(run->egress);
        run->egress = NULL;
        tool_session_unserve(&run->tool_session);
        run_close_io(run);
        fd_close(&run->home_fd);
        if (waits_for_descriptors(run, error, begun)) {
                run->has_boundary = run->handed_over = false;
                enqueue(run, true);
        } else if (may_begin) {
                begin_anew(run, begun);
        } else {
                run->refusal = *error;
                if (lost && begun)
                        err_set(&run->refusal, CSN_E_LOST, 0,
                                "%s; the program may have run in part, and was not begun again (retry=%s)",
                                error->code == CSN_E_LOST && run->launch.backend == &backend_native
                                        ? "the supervisor ended while the program ran"
                                        : error->text,
                                run->launch.request.retry == retry_SAFE ? "safe" : "never");
                else if (lost)
                        run->refusal.code = CSN_E_SYSTEM;
                run->has_boundary = run->has_boundary && begun;
                run_end(run);
        }
        look_around(engine);
}

static const struct instance_user instance_user = {
        .ready = on_ready,
        .confined = on_confined,
        .stats = on_stats,
        .handoff_done = on_handoff_done,
        .exited = on_exited,
        .refused = on_refused,
};

/* ---- the start ---- */

/* Takes the best ready instance or zygote; the record names modules that the program has to import by itself. */
static void take_ready(struct run *run, struct instance **ret_instance, uint32_t *ret_zygote)
{
        struct pools *pools = run->engine->pools;
        pools_take(pools, &run->launch, ret_instance, ret_zygote);
        const char *left_out = pools_not_preloaded(pools, &run->launch);
        if (left_out[0])
                run_warn(run, "packages_not_preloaded", "imported in the run, and not ahead: %s", left_out);
}

/* Starts the next run: in the best instance of the pools, or in a new sandbox. */
static int begin(struct run *run, struct csn_error *err)
{
        struct engine *engine = run->engine;
        struct instance *instance = NULL;
        uint32_t zygote = 0;
        if (run_quota_begin(run, err) < 0)
                return -err->code;
        run->launch.program.limits.cpu_ms = run_quota_cpu_max_ms(run);
        /* Only process 1 of a new sandbox can write modules: it has their folder before the program's isolation. */
        if (engine->pools && !run->cold && run->launch.backend == &backend_native && !run->launch.request.modules_n)
                take_ready(run, &instance, &zygote);
        if (!instance &&
                instance_new(&engine->instances, run->launch.backend, &run->launch.shape, &instance_user, run,
                        &instance, err) < 0)
                return -err->code;
        run->instance = instance;
        instance_set_user(instance, &instance_user, run);
        if (instance->state != INSTANCE_WARM && !zygote && launch_starts_slowly(&run->launch))
                queue_starts_cold(run);
        if (zygote && instance_join(instance, zygote, err) < 0)
                return -err->code;
        if (instance->ends.home >= 0)
                on_ready(run, instance);
        return instance_start(instance, &run->launch.program, err);
}

void run_begin(struct run *run)
{
        struct csn_error err = { 0 };
        run->state = RUN_RUNNING;
        run->begun_us = clock_us();
        run_phase_begin(run, PHASE_PREPARE);
        if (begin(run, &err) == 0)
                return;
        struct instance *instance = run->instance;
        leave(run);
        if (instance) {
                instance_set_user(instance, NULL, NULL);
                instance_kill(instance);
        }
        run->has_boundary = false;
        if (waits_for_descriptors(run, &err, false)) {
                run->instance = NULL;
                enqueue(run, true);
                return;
        }
        run_finish_refused(run, &err);
}

static int open_tool_session(struct run *run, struct csn_error *err)
{
        const struct tools_for whom = {
                .request = &run->launch.request.tools, .id = run->id, .owner = run->owner_key, .run = run
        };
        /* An execution in a context has the tools of its sandbox. */
        if (!launch_wants_tools(whom.request) || run->executor)
                return 0;
        return tool_session_open(run->engine->tools, run->engine->tools_owner, &whom, &run->tool_session, err);
}

void run_refuse(struct run *run, const struct csn_error *error, const struct run_events *events, void *owner)
{
        run->events = events;
        run->owner = owner;
        run_finish_refused(run, error);
}

static void stop_check(struct run *run)
{
        if (!run->check.active)
                return;
        checker_cancel(engine_checker(run->engine, &run->check), &run->check);
        run->engine->checking--;
}

static void on_layers(struct run *run)
{
        if (run->refusal.code) {
                run_finish_refused(run, &run->refusal);
        } else if (run->executor) {
                struct csn_error err = { 0 };
                run_phase_begin(run, PHASE_QUEUE);
                if (run->executor->submit(run, &err) < 0)
                        run_finish_refused(run, &err);
        } else {
                enqueue(run, false);
                run->engine->hooks->serve_queue(run->engine);
        }
}

static void on_allowed(struct run *run)
{
        if (!run_needs_layers(run)) {
                on_layers(run);
                return;
        }
        run_phase_begin(run, PHASE_PACKAGES);
        run_find_layers(run, on_layers);
}

static void on_review(struct run *run)
{
        if (run->blocked)
                finish_blocked(run);
        else
                on_allowed(run);
}

static void on_policy(struct run *run)
{
        if (!run->refusal.code && !run->blocked)
                run_phase_begin(run, PHASE_REVIEW);
        if (run->refusal.code)
                run_finish_refused(run, &run->refusal);
        else if (!run->blocked && run_needs_review(run))
                run_review(run, on_review);
        else
                on_review(run);
}

static void finish_cancelled(struct run *run)
{
        struct csn_error err;
        err_set(&err, CSN_E_CANCELLED, 0, "The run was cancelled");
        run_finish_refused(run, &err);
}

/* The inputs are examined, or run->refusal has the reason. */
static void on_examined(struct run *run)
{
        const struct run_request *request = &run->launch.request;
        if (run->cancelled) {
                finish_cancelled(run);
                return;
        }
        for (int i = 0; i < 2; i++)
                capture_init(&run->streams[i].capture, (size_t)request->limits.output_bytes);
        channel_init(&run->channel, (size_t)request->limits.value_bytes);
        run->channel.has_messages = run->launch.has_messages;
        if (run->refusal.code ||
                (strcmp(request->policy, "off") == 0 && request->deps != deps_AUTO && !request->forbidden_modules_n)) {
                on_policy(run);
        } else {
                run->state = RUN_CHECKING;
                run_phase_begin(run, PHASE_POLICY);
                run_check(run, on_policy);
        }
}

static int prepare(struct run *run, struct csn_error *err)
{
        if (HAS(&run->launch.request, run_request, context) && run->engine->hooks->bind_context(run, err) < 0)
                return -err->code;
        run->launch.volumes = run->engine->volume_source;
        run->launch.volumes_owner = run->engine->volume_source_owner;
        run->launch.owner_key = run->owner_key;
        return launch_prepare(&run->launch, err);
}

/* Checks the room in the queue, and opens the tool session. */
static int admit(struct run *run, struct csn_error *err)
{
        struct run_room room;
        return !run->executor && run_has_room(run, &room, err) < 0 ? -err->code : open_tool_session(run, err);
}

void run_start(struct run *run, bool local, const struct run_events *events, void *owner)
{
        struct csn_error err = { 0 };
        int rest = 0;
        run->launch.local = local;
        run->events = events;
        run->owner = owner;
        time_print(time_now_ms(), run->started_at, sizeof run->started_at);
        run->keeps_profile = HAS(&run->launch.request, run_request, profile);
        bool is_refused = prepare(run, &err) < 0 || (rest = run_examine(run, &err)) < 0 || admit(run, &err) < 0;
        run_tell_started(run);
        if (is_refused) {
                run_refuse(run, &err, events, owner);
                return;
        }
        if (run->executor)
                run->executor->prepared(run);
        if (rest)
                run_examine_rest(run, on_examined);
        else
                on_examined(run);
}

void run_cancel(struct run *run)
{
        if (run->state >= RUN_RECORDING || run->state == RUN_NEW || run->cancelled)
                return;
        run->cancelled = true;
        if (run->state == RUN_EXAMINING) {
                run_examine_cancel(run);
                return;
        }
        stop_check(run);
        run_forget_review(run);
        run_forget_layers(run);
        if (run->context) {
                run->executor->cancel(run);
                return;
        }
        if (run->state == RUN_QUEUED || run->state == RUN_CHECKING) {
                queue_remove(run);
                finish_cancelled(run);
        }
        run_kill(run);
}

/* ---- making and freeing ---- */

struct run *run_new(struct engine *engine)
{
        struct run *run = mem_alloc(sizeof *run);
        *run = (struct run){ .engine = engine,
                .next = engine->runs,
                .home_fd = -1,
                .handoff_fd = -1,
                .layers = { .holds = { -1, -1 } },
                .created_us = clock_us(),
                .streams = { { .watch = { .fd = -1 } }, { .watch = { .fd = -1 } } },
                .channel_watch = { .fd = -1 },
                .finish = { .fired = finish_later, .owner = run },
                .closing = { .fired = close_later, .owner = run } };
        engine->runs = run;
        snprintf(run->id, sizeof run->id, "run_");
        id_new(run->id + 4);
        launch_init(&run->launch, engine->settings, engine->languages);
        run->launch.id = run->id;
        return run;
}

void run_make_compact_id(struct run *run)
{
        id_new_compact(run->id + 4);
}

void run_set_awaits(struct run *run)
{
        run->launch.awaits = true;
}

void run_free(struct run *run)
{
        if (!run)
                return;
        for (struct run **at = &run->engine->runs; *at; at = &(*at)->next)
                if (*at == run) {
                        *at = run->next;
                        break;
                }
        run_detach(run);
        run_drop_display(run);
        loop_untimer(run->engine->loop, &run->finish);
        loop_untimer(run->engine->loop, &run->closing);
        run_tell_finished(run, NULL);
        if (run->context)
                run->executor->forget(run);
        queue_remove(run);
        stop_check(run);
        run_forget_review(run);
        run_forget_layers(run);
        layer_query_release(&run->layers);
        json_decref(run->displays);
        check_done(&run->check);
        if (run->instance) {
                instance_set_user(run->instance, NULL, NULL);
                instance_kill(run->instance);
                leave(run);
        }
        run_quota_drop(run);
        run_close_io(run);
        egress_close(run->egress);
        tool_session_close(&run->tool_session);
        fd_close(&run->home_fd);
        for (int i = 0; i < 2; i++)
                capture_done(&run->streams[i].capture);
        channel_done(&run->channel);
        /* In place of launch_done(): the arena has the data of the run's storage. */
        launch_close_work(&run->launch);
        worker_free(run->engine->workers, run->owner_key, &run->launch.arena);
        free(run);
}
