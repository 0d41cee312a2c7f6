/* Pipes, channel and backend of a run, and its end; see engine.h. */
#include "engine/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#define READ_SIZE (64 * KIB)
#define READS_AT_ONCE 16       /* of one stream, before another gets its turn */
#define WARNINGS_MAX 32
#define REFUSALS_TOLD 20

enum { NATIVE, HOST, BACKENDS };

struct engine {
        const struct settings *settings;
        struct arena arena;
        const struct language *languages;
        struct loop *loop;
        struct backend_link *links[BACKENDS];
        struct run *runs;
        uint32_t jobs;
        char uid_range[48];
};

const struct settings *engine_settings_of(const struct engine *engine)
{
        return engine->settings;
}

const struct run *engine_runs(const struct engine *engine)
{
        return engine->runs;
}

void time_text(char text[static 40])
{
        struct timespec now;
        struct tm utc;
        char seconds[32];
        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &utc);
        strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &utc);
        snprintf(text, 40, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
}

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
        if (run->state == RUN_RUNNING || run->state == RUN_STARTING)
                run->backend->kill(run->engine->links[run->backend == &backend_host], run->job);
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
        capture_add(&stream->capture, bytes, (size_t)n);
        if (run->events->output)
                run->events->output(run->owner, stream->number, bytes, (size_t)n);
        const struct limits *limits = &run->request.limits;
        if (limits->output_action == output_action_KILL && stream->capture.total > limits->output_bytes && !run->output_killed) {
                run->output_killed = true;
                kill_run(run);
        }
        return true;
}

static void stream_ready(struct watch *watch, uint32_t events)
{
        (void)events;
        for (int i = 0; i < READS_AT_ONCE && read_stream(watch->owner); i++)
                ;
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
                return false;
        }
        return true;
}

static void channel_ready(struct watch *watch, uint32_t events)
{
        (void)events;
        for (int i = 0; i < READS_AT_ONCE && read_channel(watch->owner); i++)
                ;
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
        if (egress_open(run->engine->loop, proxy_fd, &rules, &events, run, &run->egress, &err) < 0)
                run_warn(run, "proxy_failed", "the program has no network: %s", err.text);
}

static void on_running(void *owner, const struct wire_boundary *boundary, int home_fd, int proxy_fd)
{
        struct run *run = owner;
        run->state = RUN_RUNNING;
        run->boundary = *boundary;
        run->has_boundary = true;
        run->home_fd = home_fd;
        run->started_us = clock_us();
        if (proxy_fd >= 0)
                open_proxy(run, proxy_fd);
        if (run->cancelled)
                kill_run(run);
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
}

static void finish(struct run *run)
{
        run->state = RUN_OVER;
        run_record(run);
        fd_close(&run->home_fd);
        work_close(run);
        close_ends(run);
        run->events->done(run->owner, &run->result);
}

static void on_exited(void *owner, const struct wire_exit *how)
{
        struct run *run = owner;
        run->how = *how;
        run->ended_us = clock_us();
        drain(run);
        egress_close(run->egress);
        run->egress = NULL;
        finish(run);
}

static void on_refused(void *owner, const struct csn_error *error)
{
        struct run *run = owner;
        run->refusal = *error;
        finish(run);
}

static void on_lost(void *owner, const struct csn_error *error)
{
        struct engine *engine = owner;
        log_text(LOG_ERROR, "%s", error->text);
        backend_native.close(engine->links[NATIVE]);
        engine->links[NATIVE] = NULL;
}

static const struct backend_events news = { on_running, on_exited, on_refused, on_lost };

/* ---- starting ---- */

static int make_pipe(struct stream *stream, struct run *run, int number, int *ret_theirs, struct csn_error *err)
{
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "pipe");
        *stream = (struct stream){ .watch = { .fd = ends[0], .ready = stream_ready, .owner = stream }, .run = run, .number = number };
        capture_init(&stream->capture, (size_t)run->request.limits.output_bytes);
        *ret_theirs = ends[1];
        if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a pipe non-blocking");
        return loop_watch(run->engine->loop, &stream->watch, ends[0], EPOLLIN, err);
}

static int make_channel(struct run *run, int *ret_theirs, struct csn_error *err)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        run->channel_watch = (struct watch){ .fd = pair[0], .ready = channel_ready, .owner = run };
        channel_init(&run->channel, (size_t)run->request.limits.value_bytes);
        *ret_theirs = pair[1];
        if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the channel non-blocking");
        return loop_watch(run->engine->loop, &run->channel_watch, pair[0], EPOLLIN, err);
}

static int make_stdin(const struct run *run, int *ret, struct csn_error *err)
{
        const struct bytes *bytes = &run->request.stdin;
        *ret = bytes->len ? io_memfd("stdin", bytes->bytes, bytes->len) : open("/dev/null", O_RDONLY | O_CLOEXEC);
        return *ret < 0 ? err_set(err, CSN_E_SYSTEM, errno, "make standard input") : 0;
}

static int open_link(struct engine *engine, const struct backend *backend, struct csn_error *err)
{
        struct backend_link **link = &engine->links[backend == &backend_host];
        const struct backend_options options = { .uid_range = engine->uid_range,
                                                 .cgroup_parent = engine->settings->engine.cgroup_parent,
                                                 .engine = engine };
        return *link ? 0 : backend->open(engine->loop, &options, &news, link, err);
}

static int start(struct run *run, struct csn_error *err)
{
        struct engine *engine = run->engine;
        if (run_prepare(run, err) < 0)
                return -err->code;
        auto_fd in = -1;
        auto_fd out = -1;
        auto_fd error = -1;
        auto_fd channel = -1;
        if (open_link(engine, run->backend, err) < 0 || make_stdin(run, &in, err) < 0 ||
            make_pipe(&run->streams[0], run, 1, &out, err) < 0 || make_pipe(&run->streams[1], run, 2, &error, err) < 0 ||
            make_channel(run, &channel, err) < 0)
                return -err->code;
        run->job = ++engine->jobs;
        run->what.id = run->job;
        run->what.owner = run;
        run->what.file = run_open_input;
        const int stdio[WIRE_STDIO] = { in, out, error, channel };
        memcpy(run->what.stdio, stdio, sizeof stdio);
        run->state = RUN_STARTING;
        return run->backend->start(engine->links[run->backend == &backend_host], &run->what, err);
}

static void finish_later(struct timer *timer)
{
        finish(timer->owner);
}

void run_refuse(struct run *run, const struct csn_error *error, const struct run_events *events, void *owner)
{
        run->events = events;
        run->owner = owner;
        run->refusal = *error;
        run->state = RUN_OVER;
        loop_timer(run->engine->loop, &run->finish, 0);
}

void run_start(struct run *run, bool local, const struct run_events *events, void *owner)
{
        struct csn_error err = { 0 };
        run->local = local;
        run->events = events;
        run->owner = owner;
        time_text(run->started_at);
        if (start(run, &err) < 0)
                run_refuse(run, &err, events, owner);
}

void run_cancel(struct run *run)
{
        if (run->state == RUN_OVER || run->state == RUN_NEW || run->cancelled)
                return;
        run->cancelled = true;
        kill_run(run);
}

/* ---- runs and engines ---- */

static void make_id(char id[static 40])
{
        uint8_t random[16];
        /* Up to 256 bytes come whole once the generator is seeded, and until then the call waits (getrandom(2)). */
        while (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
                ;
        snprintf(id, 40, "run_");
        for (size_t i = 0; i < sizeof random; i++)
                snprintf(id + 4 + 2 * i, 3, "%02x", random[i]);
}

struct run *run_new(struct engine *engine)
{
        struct run *run = mem_alloc(sizeof *run);
        *run = (struct run){ .engine = engine, .next = engine->runs, .home_fd = -1, .work_fd = -1, .created_us = clock_us(),
                             .streams = { { .watch = { .fd = -1 } }, { .watch = { .fd = -1 } } }, .channel_watch = { .fd = -1 },
                             .finish = { .fired = finish_later, .owner = run } };
        engine->runs = run;
        make_id(run->id);
        return run;
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
        close_ends(run);
        egress_close(run->egress);
        work_close(run);
        fd_close(&run->home_fd);
        for (int i = 0; i < 2; i++)
                capture_done(&run->streams[i].capture);
        channel_done(&run->channel);
        arena_done(&run->arena);
        free(run);
}

int engine_open(const struct settings *settings, struct engine **ret, struct csn_error *err)
{
        struct engine *engine = mem_alloc(sizeof *engine);
        engine->settings = settings;
        snprintf(engine->uid_range, sizeof engine->uid_range, "%llu:%llu", (unsigned long long)settings->engine.uid_first,
                 (unsigned long long)settings->engine.uid_count);
        if (lang_load(settings->engine.languages_dir, &engine->arena, &engine->languages, err) < 0 || loop_new(&engine->loop, err) < 0) {
                arena_done(&engine->arena);
                free(engine);
                return -err->code;
        }
        *ret = engine;
        return 0;
}

void engine_close(struct engine *engine)
{
        if (!engine)
                return;
        backend_native.close(engine->links[NATIVE]);
        backend_host.close(engine->links[HOST]);
        for (struct run *run = engine->runs, *next; run; run = next) {
                next = run->next;
                run_free(run);
        }
        loop_free(engine->loop);
        arena_done(&engine->arena);
        free(engine);
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
