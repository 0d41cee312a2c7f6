/* Pipes, channel and backend of a run, and its end; see engine.h. */
#include "engine/persistent/psandbox_private.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define READ_SIZE (64 * KIB)
#define REFUSALS_TOLD 20

void run_warn(struct run *run, const char *code, const char *fmt, ...)
{
        char text[600];
        if (!run->warnings)
                run->warnings = arena_alloc(&run->arena, WARNINGS_MAX * sizeof *run->warnings);
        if (run->warnings_n == WARNINGS_MAX)
                return;
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        struct warning *warning = &run->warnings[run->warnings_n++];
        SET(warning, warning, code, arena_text(&run->arena, "%s", code));
        SET(warning, warning, text, arena_text(&run->arena, "%s", text));
}

/* ---- what comes out ---- */

static void kill_run(struct run *run)
{
        if (run->context)
                context_cancel(run);
        else if (run->instance)
                instance_kill(run->instance);
}

void run_printed(struct run *run, int number, const void *bytes, size_t len)
{
        struct stream *stream = &run->streams[number - 1];
        capture_add(&stream->capture, bytes, len);
        if (run->events->output)
                run->events->output(run->owner, number, bytes, len);
        const struct limits *limits = &run->request.limits;
        if (limits->output_action == output_action_KILL && stream->capture.total > limits->output_bytes && !run->output_killed) {
                run->output_killed = true;
                kill_run(run);
        }
}

/* Its interpreter has started, or is gone: another may. */
static void is_started(struct run *run)
{
        if (!run->starts_cold)
                return;
        run->starts_cold = false;
        run->engine->cold--;
        engine_dispatch(run->engine);
}

/* One read.  False: nothing there now, or never again. */
static bool read_stream(struct stream *stream)
{
        struct run *run = stream->run;
        static char bytes[READ_SIZE];
        ssize_t n = read(stream->watch.fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
                return true;
        if (n == 0)
                loop_unwatch(run->engine->loop, &stream->watch);
        if (n <= 0)
                return false;
        run_printed(run, stream->number, bytes, (size_t)n);
        return true;
}

static void stream_ready(struct watch *watch, uint32_t events)
{
        struct stream *stream = watch->owner;
        (void)events;
        if (stream->run->state != RUN_OVER)
                read_stream(stream);   /* as much as a pipe holds; for more the loop comes again */
}

static bool read_channel(struct run *run)
{
        static uint8_t frame[CHANNEL_FRAME_MAX + 1];
        struct csn_error err;
        ssize_t n = recv(run->channel_watch.fd, frame, sizeof frame, 0);
        if (n < 0 && errno == EINTR)
                return true;
        if (n < 0 && errno == EAGAIN)
                return false;
        if (n <= 0 || channel_take(&run->channel, frame, (size_t)n, &err) < 0) {
                /*
                 * Ended, or misused: then nothing that it says is heard any more, and the run goes on.  Closed,
                 * because a program that fills a socket that nobody reads would wait for its time-out.
                 */
                loop_unwatch(run->engine->loop, &run->channel_watch);
                fd_close(&run->channel_watch.fd);
                is_started(run);
                if (n > 0 && run->message_handler) {
                        if (run->message_handler->protocol_error)
                                run->message_handler->protocol_error(run->message_handler_owner);
                        kill_run(run);   /* somebody waits for what it would say */
                }
                return false;
        }
        is_started(run);
        run_take_message(run, frame[4]);
        int status = channel_left(&run->channel);
        if (status >= 0 && run->instance)
                instance_exiting(run->instance, (unsigned)status);
        return true;
}

static void channel_ready(struct watch *watch, uint32_t events)
{
        struct run *run = watch->owner;
        if (run->state == RUN_OVER)
                return;
        if (events & EPOLLOUT && send_queue_flush(&run->said) < 0)
                send_queue_done(&run->said);   /* its end is read next */
        read_channel(run);
}

/* Everything inside is dead, so what is in the pipes is all there will ever be. */
static void drain(struct run *run)
{
        for (int i = 0; i < 2; i++)
                while (run->streams[i].watch.active && read_stream(&run->streams[i]))
                        ;
        while (run->channel_watch.active && read_channel(run))
                ;
}

/* ---- what the backend tells ---- */

static void on_connection(void *owner, const char *host, unsigned port, const char *refusal)
{
        struct run *run = owner;
        /* Refusals are the program's to cause; they must not push other warnings out. */
        if (refusal && run->refusals++ < REFUSALS_TOLD)
                run_warn(run, "connection_refused", "the proxy refused %.100s:%u: %s", host, port, refusal);
}

/* Without its proxy a program that was promised a network could not know why it has none. */
static void open_proxy(struct run *run, int proxy_fd)
{
        static const struct egress_events events = { on_connection };
        const struct run_request *request = &run->request;
        const struct egress_rules rules = { .public_ = request->network == network_PUBLIC, .hosts = request->allow,
                                            .hosts_n = request->allow_n };
        struct csn_error err;
        if (egress_open(run->engine->loop, proxy_fd, &rules, &events, run, &run->egress, &err) < 0) {
                run->no_proxy = true;
                run_warn(run, "proxy_failed", "the program has no network: %s", err.text);
        }
}

/* Without its tools a program could only fail, and nobody would know why. */
static void open_tool_socket(struct run *run, int tool_socket_fd)
{
        struct csn_error err;
        if (tool_session_serve(&run->tool_session, run->engine->loop, tool_socket_fd, &err) < 0)
                run_warn(run, "tools_failed", "the program has no tools: %s", err.text);
}

static int open_tool_session(struct run *run, struct csn_error *err)
{
        const struct tools_for whom = { .request = &run->request.tools, .id = run->id, .owner = run->owner_key, .run = run };
        /* In a context it has those of its sandbox. */
        return tool_session_wanted(whom.request) && !HAS(&run->request, run_request, context) ? tool_session_open(run->engine, &whom, &run->tool_session, err) : 0;
}

static void close_ends(struct run *run)
{
        struct loop *loop = run->engine->loop;
        for (int i = 0; i < 2; i++) {
                loop_unwatch(loop, &run->streams[i].watch);
                fd_close(&run->streams[i].watch.fd);
        }
        loop_unwatch(loop, &run->channel_watch);
        fd_close(&run->channel_watch.fd);
        send_queue_done(&run->said);
        fd_close(&run->handoff_fd);
}

static void close_later(struct timer *timer)
{
        struct run *run = timer->owner;
        fd_close(&run->home_fd);
        close_ends(run);
}

static void finish(struct run *run)
{
        run->state = RUN_OVER;
        tool_session_unserve(&run->tool_session);
        run_record(run);
        metrics_note(run);
        work_close(run);
        loop_timer(run->engine->loop, &run->closing, 0);   /* somebody waits for the answer, and for a dozen calls to close what it came from nobody */
        run->events->done(run->owner, &run->result);
}

static void leave(struct run *run)
{
        run->instance = NULL;
        queue_left(run);
        is_started(run);
}

/* After the answer: somebody waits for that, and for this nobody yet. */
static void look_around(struct engine *engine)
{
        engine_dispatch(engine);
        if (engine->pools)
                pools_refill(engine);
}

static void on_exited(void *owner, struct instance *instance, const struct wire_exit *how)
{
        struct run *run = owner;
        (void)instance;
        run->how = *how;
        run->ended_us = clock_us();
        run->started_us = run->ended_us - min_u64(how->wall_us, run->ended_us - run->created_us);
        leave(run);   /* its instance is gone already */
        drain(run);
        egress_close(run->egress);
        run->egress = NULL;
        struct engine *engine = run->engine;
        finish(run);
        look_around(engine);
}

static void begin_now(struct run *run);

static void enqueue(struct run *run, bool front)
{
        run->queued_us = run->queued_us ? run->queued_us : clock_us();
        if (run->skips_queue) {
                queue_pass(run);
                begin_now(run);
        } else {
                run->state = RUN_QUEUED;
                queue_add(run, front);
        }
}

/*
 * Whether something of the program came out, before the supervisor could say that it runs: the supervisor may be killed between.  What else it
 * did was in its sandbox, which is gone.
 */
static bool was_heard(const struct run *run)
{
        uint64_t connections = 0, refused, in, out;
        if (run->egress)
                egress_usage(run->egress, &connections, &refused, &in, &out);
        return run->streams[0].capture.total || run->streams[1].capture.total || connections || tool_socket_was_asked(run->tool_session.tool_socket);
}

/* What was ready for it is of no use after all, and nothing of it ran: then it gets one that is made for it. */
static void on_refused(void *owner, struct instance *instance, const struct csn_error *error, bool again)
{
        struct run *run = owner;
        (void)instance;
        struct engine *engine = run->engine;
        bool heard = was_heard(run);
        leave(run);
        egress_close(run->egress);
        run->egress = NULL;
        tool_session_unserve(&run->tool_session);
        close_ends(run);
        fd_close(&run->home_fd);
        if (again && !run->cold && !run->cancelled && !heard) {
                run->cold = true;
                run->has_boundary = false;
                enqueue(run, true);
        } else {
                run->refusal = *error;
                finish(run);
        }
        look_around(engine);
}

void run_context_over(struct run *run, const struct wire_exit *how)
{
        run->how = *how;
        run->started_us = run->ended_us - min_u64(how->wall_us, run->ended_us - run->created_us);
        finish(run);
}

/* ---- starting ---- */

static int attach_stream(struct stream *stream, struct run *run, int number, int fd, struct csn_error *err)
{
        stream->watch = (struct watch){ .fd = fd, .ready = stream_ready, .owner = stream };
        stream->run = run;
        stream->number = number;
        return loop_watch(run->engine->loop, &stream->watch, fd, EPOLLIN, err);
}

/* The sandbox' ends are the run's from here on. */
static void on_ready(void *owner, struct instance *instance)
{
        struct run *run = owner;
        struct csn_error err;
        run->instance = instance;
        run->boundary = instance->boundary;
        run->has_boundary = run->backend != &backend_native || instance->state == INSTANCE_WARM;   /* else the rest comes to on_confined() */
        run->home_fd = take_fd(&instance->ends.home);
        run->channel_watch = (struct watch){ .fd = take_fd(&instance->ends.channel), .ready = channel_ready, .owner = run };
        if (attach_stream(&run->streams[0], run, 1, take_fd(&instance->ends.out), &err) < 0 ||
            attach_stream(&run->streams[1], run, 2, take_fd(&instance->ends.error), &err) < 0 ||
            loop_watch(run->engine->loop, &run->channel_watch, run->channel_watch.fd, EPOLLIN, &err) < 0) {
                run_warn(run, "output_lost", "%s", err.text);
                kill_run(run);
        }
        if (instance->ends.proxy >= 0)
                open_proxy(run, take_fd(&instance->ends.proxy));
        if (instance->ends.tool_socket >= 0)
                open_tool_socket(run, take_fd(&instance->ends.tool_socket));
}

/* What its processes gave up, which on_ready() could not tell yet. */
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
}

static const struct instance_user instance_user = {
        .ready = on_ready,
        .confined = on_confined,
        .handoff_done = on_handoff_done,
        .exited = on_exited,
        .refused = on_refused,
};

static int make_stdin(struct run *run, struct csn_error *err)
{
        const struct bytes *bytes = &run->request.stdin;
        if (!bytes->len || run->what.stdin_fd >= 0)
                return 0;
        run->what.stdin_fd = io_memfd("stdin", bytes->bytes, bytes->len);
        return run->what.stdin_fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "make standard input") : 0;
}

/* It is worth while to count those that start.  Our runner tells when that is over; a language of an administrator has none. */
static bool starts_slowly(const struct run *run)
{
        return run->backend == &backend_native && !run->language->command && !run->language->starts_fast;
}

/* What a judge measures is a program's own time, of which there is more the fewer share a processor. */
static size_t judged_max(const struct engine *engine)
{
        uint64_t max = engine->settings->engine.judged_max;
        return max ? max : JUDGED_PER_CORE * engine->cores;
}

bool run_may_begin(const struct run *run)
{
        struct engine *engine = run->engine;
        if (run->judged && engine->judged >= judged_max(engine))
                return false;
        if (!starts_slowly(run) || (engine->pools && !run->cold && pools_are_warm(engine, run)))
                return true;
        /* One processor is left to a zygote that is coming: it helps all that wait. */
        bool shares = engine->pools && pools_zygote_comes(engine) && engine->cores > 1;
        return engine->cold < engine->cores - shares;
}

/* A run that is next: with the best sandbox that is there, or one of its own. */
static int begin(struct run *run, struct csn_error *err)
{
        struct engine *engine = run->engine;
        struct instance *instance = NULL;
        uint32_t zygote = 0;
        if (make_stdin(run, err) < 0)
                return -err->code;
        if (engine->pools && !run->cold && run->backend == &backend_native)
                pools_take(engine, run, &instance, &zygote);
        if (!instance && instance_new(&engine->instances, run->backend, &run->shape, &instance_user, run, &instance, err) < 0)
                return -err->code;
        run->instance = instance;
        instance_set_user(instance, &instance_user, run);
        if (instance->state != INSTANCE_WARM && !zygote && starts_slowly(run)) {
                run->starts_cold = true;
                engine->cold++;
        }
        if (zygote && instance_join(instance, zygote, err) < 0)
                return -err->code;
        if (instance->ends.home >= 0)
                on_ready(run, instance);
        return instance_start(instance, &run->what, err);
}

static void finish_refused(struct run *run, const struct csn_error *error)
{
        run->refusal = *error;
        run->state = RUN_OVER;
        loop_timer(run->engine->loop, &run->finish, 0);
}

static void begin_now(struct run *run)
{
        struct csn_error err = { 0 };
        run->state = RUN_RUNNING;
        run->begun_us = clock_us();
        if (begin(run, &err) == 0)
                return;
        struct instance *instance = run->instance;
        leave(run);
        if (instance) {
                instance_set_user(instance, NULL, NULL);
                instance_kill(instance);
        }
        finish_refused(run, &err);
}

/* By the settings, and by the descriptors that we may have. */
static size_t running_max(const struct engine *engine)
{
        return (size_t)min_u64(engine->settings->engine.running_max, engine->instances.places);
}

static bool has_place(struct engine *engine)
{
        if (engine->instances.n < engine->instances.places)
                return true;
        if (queue_is_ready(engine))
                pools_make_place(engine);   /* its end calls engine_dispatch() */
        return false;
}

/* As many at once as the settings allow; and of those that have to be made first, no more than there are cores for it. */
static void serve_queue(struct engine *engine)
{
        const struct engine_settings *settings = &engine->settings->engine;
        while (engine->running < running_max(engine) && engine->instances.starting < settings->starting_max && has_place(engine)) {
                struct run *run = queue_take(engine);
                if (!run)
                        return;
                begin_now(run);
        }
}

static void dispatch_now(struct timer *timer)
{
        serve_queue(timer->owner);
}

void engine_dispatch(struct engine *engine)
{
        if (queue_is_ready(engine))
                loop_timer(engine->loop, &engine->dispatch, 0);
}

/* A run that need not wait for the end of another is no matter of queue_max: it only waits for its own beginning. */
int run_has_room(const struct run *run, struct run_room *ret_room, struct csn_error *err)
{
        const struct engine *engine = run->engine;
        size_t max = running_max(engine), slots = engine->running < max ? max - engine->running : 0;
        size_t waiting = queue_waiting(engine, slots), begin_soon = engine->queued + engine->checking - waiting, queued, running;
        queue_count(engine, run->owner_key, &queued, &running);
        bool waits = !run->skips_queue && (begin_soon >= slots || (run->running_max && queued + running >= run->running_max) ||
                                         (run->judged && engine->judged >= judged_max(engine)));
        *ret_room = (struct run_room){ "queue_max", (size_t)engine->settings->engine.queue_max, waiting, engine->running };
        if (waits && waiting >= engine->settings->engine.queue_max)
                return err_set(err, CSN_E_BUSY, 0, "%zu runs wait already, as many as queue_max allows; %zu are running", waiting, engine->running);
        *ret_room = (struct run_room){ "queued_max", run->queued_max, queued, running };
        if (run->queued_max && queued >= run->queued_max && run->running_max && running >= run->running_max)
                return err_set(err, CSN_E_BUSY, 0, "%zu runs of yours wait and %zu are running, as many as this key allows", queued, running);
        return 0;
}

static void finish_later(struct timer *timer)
{
        finish(timer->owner);
}

void run_refuse(struct run *run, const struct csn_error *error, const struct run_events *events, void *owner)
{
        run->events = events;
        run->owner = owner;
        finish_refused(run, error);
}

void run_start(struct run *run, bool local, const struct run_events *events, void *owner)
{
        struct csn_error err = { 0 };
        struct run_room room;
        run->local = local;
        run->events = events;
        run->owner = owner;
        time_print(time_now_ms(), run->started_at, sizeof run->started_at);
        bool bound = HAS(&run->request, run_request, context), named = HAS(&run->request, run_request, profile);
        if ((bound && context_bind(run, &err) < 0) || run_prepare(run, &err) < 0 || (!bound && run_has_room(run, &room, &err) < 0) ||
            open_tool_session(run, &err) < 0) {
                run_refuse(run, &err, events, owner);
                return;
        }
        if (bound)
                context_adopt(run, !named);
        for (int i = 0; i < 2; i++)
                capture_init(&run->streams[i].capture, (size_t)run->request.limits.output_bytes);
        channel_init(&run->channel, (size_t)run->request.limits.value_bytes);
        run->channel.has_messages = run->has_messages;
        if (strcmp(run->request.policy, "off") == 0) {
                run_checked(run);
        } else {
                run->state = RUN_CHECKING;
                run_check(run);
        }
}

/* Nothing of it ran, and its record says why. */
static void finish_blocked(struct run *run)
{
        run->blocked = true;
        run->state = RUN_OVER;
        loop_timer(run->engine->loop, &run->finish, 0);
}

void run_checked(struct run *run)
{
        if (run->refusal.code) {
                finish_refused(run, &run->refusal);
        } else if (run->blocked) {
                finish_blocked(run);
        } else if (HAS(&run->request, run_request, context)) {
                struct csn_error err = { 0 };
                if (context_submit(run, &err) < 0)
                        finish_refused(run, &err);
        } else {
                enqueue(run, false);
                serve_queue(run->engine);
        }
}

void run_context_refused(struct run *run, const struct csn_error *error)
{
        finish_refused(run, error);
}

static void stop_check(struct run *run)
{
        if (!run->check.active)
                return;
        checker_cancel(run->engine->checker, &run->check);
        run->engine->checking--;
}

void run_cancel(struct run *run)
{
        struct csn_error err;
        if (run->state == RUN_OVER || run->state == RUN_NEW || run->cancelled)
                return;
        run->cancelled = true;
        stop_check(run);
        if (run->context) {
                context_cancel(run);
                return;
        }
        if (run->state == RUN_QUEUED || run->state == RUN_CHECKING) {
                queue_remove(run);
                err_set(&err, CSN_E_CANCELLED, 0, "The run was cancelled");
                finish_refused(run, &err);
        }
        kill_run(run);
}

/* ---- runs and engines ---- */

struct run *run_new(struct engine *engine)
{
        struct run *run = mem_alloc(sizeof *run);
        *run = (struct run){ .engine = engine, .next = engine->runs, .home_fd = -1, .handoff_fd = -1, .work_fd = -1, .work_temp_fd = -1, .what = { .stdin_fd = -1 }, .created_us = clock_us(),
                             .streams = { { .watch = { .fd = -1 } }, { .watch = { .fd = -1 } } }, .channel_watch = { .fd = -1 },
                             .finish = { .fired = finish_later, .owner = run }, .closing = { .fired = close_later, .owner = run } };
        engine->runs = run;
        snprintf(run->id, sizeof run->id, "run_");
        hex_random(16, run->id + 4);
        return run;
}

const char *run_id(const struct run *run)
{
        return run->id;
}

uint64_t run_number(const struct run *run)
{
        return run->number;
}

struct arena *run_arena(struct run *run)
{
        return &run->arena;
}

struct run_request *run_request(struct run *run)
{
        return &run->request;
}

void run_set_owner(struct run *run, const char *key)
{
        snprintf(run->owner_key, sizeof run->owner_key, "%s", key);
}

void run_set_quota(struct run *run, size_t running_max, size_t queued_max)
{
        run->running_max = running_max;
        run->queued_max = queued_max;
}

void run_set_storage(struct run *run, const struct run_storage *storage, void *owner)
{
        run->storage = storage;
        run->run_storage_owner = owner;
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
        loop_untimer(run->engine->loop, &run->finish);
        loop_untimer(run->engine->loop, &run->closing);
        if (run->context)
                context_forget(run);
        queue_remove(run);
        stop_check(run);
        json_decref(run->displays);
        check_done(&run->check);
        if (run->instance) {
                instance_set_user(run->instance, NULL, NULL);
                instance_kill(run->instance);
                leave(run);
        }
        close_ends(run);
        fd_close(&run->what.stdin_fd);
        egress_close(run->egress);
        tool_session_close(&run->tool_session);
        work_close(run);
        fd_close(&run->home_fd);
        for (int i = 0; i < 2; i++)
                capture_done(&run->streams[i].capture);
        channel_done(&run->channel);
        arena_done(&run->arena);
        free(run);
}

static size_t cores(void)
{
        cpu_set_t set;
        int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        return n > 0 ? (size_t)n : 1;
}

/*
 * A supervisor and an engine have up to 64 descriptors of their own (zygotes, sockets, cgroups that are being removed), the kept files of cgroups take at most one in eight, and a sandbox takes
 * ten in the supervisor and five in the engine, whose clients have one or two each.
 */
#define OWN_DESCRIPTORS 64
#define KEPT_SHARE 8
#define INSTANCE_DESCRIPTORS 12

size_t engine_places(uint64_t descriptors)
{
        uint64_t free_ = descriptors - descriptors / KEPT_SHARE;
        return free_ < OWN_DESCRIPTORS + INSTANCE_DESCRIPTORS ? 1 : (size_t)min_u64((free_ - OWN_DESCRIPTORS) / INSTANCE_DESCRIPTORS, 1000000);
}

#define INSTANCE_DESCRIPTORS_HERE 5             /* of a sandbox' twelve: those of the engine */

size_t engine_client_descriptors(uint64_t descriptors)
{
        uint64_t own = OWN_DESCRIPTORS + engine_places(descriptors) * INSTANCE_DESCRIPTORS_HERE;
        return descriptors > own ? (size_t)min_u64(descriptors - own, 1000000) : 0;
}

size_t engine_running(const struct engine *engine)
{
        return engine->running;
}

/* The supervisor raises the soft limit for itself. */
static size_t places(void)
{
        struct rlimit limit;
        return engine_places(getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : RLIM_INFINITY);
}

static void on_instances_changed(void *owner)
{
        engine_dispatch(owner);
}

static void on_zygote(void *owner, uint32_t id, const char *info, const struct csn_error *error)
{
        pools_zygote(owner, id, info, error);
}

static void on_lost(void *owner)
{
        pools_lost(owner);
}

static const struct instances_events instances_events = { on_instances_changed, on_zygote, on_lost };

int engine_open(const struct settings *settings, struct engine **ret, struct csn_error *err)
{
        struct engine *engine = mem_alloc(sizeof *engine);
        *engine = (struct engine){ .settings = settings, .cores = cores(),
                                    .instances = { .settings = settings, .events = &instances_events, .owner = engine, .places = places() },
                                    .dispatch = { .fired = dispatch_now, .owner = engine } };
        snprintf(engine->instances.uid_range, sizeof engine->instances.uid_range, "%llu:%llu", (unsigned long long)settings->engine.uid_first,
                 (unsigned long long)settings->engine.uid_count);
        if (lang_load(settings->engine.languages_dir, &engine->arena, &engine->languages, err) < 0 || loop_new(&engine->loop, err) < 0) {
                arena_done(&engine->arena);
                free(engine);
                return -err->code;
        }
        engine->instances.loop = engine->loop;
        *ret = engine;
        return 0;
}

void engine_close(struct engine *engine)
{
        if (!engine)
                return;
        instances_close_links(&engine->instances);
        psandboxes_close(engine);
        pools_close(engine);
        for (struct run *run = engine->runs, *next; run; run = next) {
                next = run->next;
                run_free(run);
        }
        instances_free(&engine->instances);
        if (engine->tools)
                engine->tools->end(engine->tools_owner);
        checker_close(engine->checker);
        loop_free(engine->loop);
        arena_done(&engine->arena);
        free(engine);
}

void engine_set_usage_listener(struct engine *engine, void (*used)(void *owner, const char *whose, uint64_t cpu_ms), void *owner)
{
        engine->usage_listener = used;
        engine->usage_listener_owner = owner;
}

void engine_warm(struct engine *engine, bool grades)
{
        pools_open(engine, grades);
}

const struct language *engine_languages(struct engine *engine)
{
        return engine->languages;
}

struct loop *engine_loop(struct engine *engine)
{
        return engine->loop;
}

int engine_step(struct engine *engine, int max_ms, struct csn_error *err)
{
        return loop_step(engine->loop, max_ms, err);
}
