/*
 * caissond: one engine, whose clients are connections to a socket.
 *
 * The life of the daemon is the order of its states: it serves; told to end it takes no more requests and
 * lets runs go on for engine.shutdown_ms; then it kills them; then clients may read their last frames; then it
 * is over.  Each state has a deadline, so it always ends.
 */
#include "front/daemon.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define CANCEL_US (15 * 1000000ULL)    /* collecting files of a killed run has this long as well */
#define FLUSH_US (2 * 1000000ULL)      /* for a client to read what is left */
#define ACCEPTS_AT_ONCE 64
#define CLEAN_US (60 * 1000000ULL)
#define AGAIN_US 100000ULL             /* until the next try, when there was no descriptor */

/* 0, or the errno. */
static int accept_one(struct daemon *daemon)
{
        /* cppcheck-suppress nullPointer ; accept(2): no address is filled in then */
        int fd = accept4(daemon->endpoint.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return errno;
        peer_new(daemon, fd);
        return 0;
}

/* ---- the end ---- */

static void enter(struct daemon *daemon, enum daemon_state state);

static bool is_working(const struct daemon *daemon)
{
        return daemon->jobs || (daemon->api && !api_is_idle(daemon->api));
}

/* A state that has nothing left to wait for gives way to the next; so it is with one that is late. */
static void next_state(struct daemon *daemon, bool late)
{
        bool working = is_working(daemon);
        if (daemon->state == DRAINING && (late || !working))
                enter(daemon, working ? CANCELLING : FLUSHING);
        else if (daemon->state == CANCELLING && (late || !working))
                enter(daemon, FLUSHING);
        else if (daemon->state == FLUSHING && (late || !daemon->peers))
                enter(daemon, OVER);
}

static void on_deadline(struct timer *timer)
{
        next_state(timer->owner, true);
}

/* From the loop and not from here: whoever calls is in the middle of a list of ours. */
void daemon_look(struct daemon *daemon)
{
        bool waits = (daemon->state == FLUSHING && !daemon->peers) ||
                     ((daemon->state == DRAINING || daemon->state == CANCELLING) && !is_working(daemon));
        if (waits)
                loop_timer(daemon->loop, &daemon->deadline, 0);
}

/*
 * Whoever has connected and was not accepted yet is told so, and can run its program itself; of a socket of the
 * service manager it is the next daemon that accepts them.
 */
static void stop_accepting(struct daemon *daemon)
{
        loop_unwatch(daemon->loop, &daemon->listener);
        loop_untimer(daemon->loop, &daemon->again);
        while (daemon->endpoint.ours && accept_one(daemon) == 0)
                ;
        fd_close(&daemon->endpoint.fd);
}

static void enter(struct daemon *daemon, enum daemon_state state)
{
        daemon->state = state;
        if (state == DRAINING) {
                endpoint_notify("STOPPING=1");
                stop_accepting(daemon);
                if (daemon->api)
                        api_drain(daemon->api);
                loop_timer(daemon->loop, &daemon->deadline, daemon->settings->engine.shutdown_ms * 1000);
        } else if (state == CANCELLING) {
                loop_timer(daemon->loop, &daemon->deadline, CANCEL_US);
                for (struct job *job = daemon->jobs; job; job = job->next)
                        job_cancel(job);
                if (daemon->api)
                        api_cancel(daemon->api);
        } else if (state == FLUSHING) {
                loop_timer(daemon->loop, &daemon->deadline, FLUSH_US);
                for (struct peer *peer = daemon->peers; peer; peer = peer->next)
                        peer_end(peer);
        }
        daemon_look(daemon);
}

/* ---- signals ---- */

/* The first lets runs end, the second does not. */
static void on_signal(struct watch *watch, uint32_t what)
{
        struct daemon *daemon = watch->owner;
        struct signalfd_siginfo info;
        (void)what;
        if (read(watch->fd, &info, sizeof info) != (ssize_t)sizeof info)
                return;
        log_text(LOG_INFO, "signal %u: the daemon ends", info.ssi_signo);
        if (daemon->state == SERVING)
                enter(daemon, DRAINING);
        else if (daemon->state == DRAINING)
                enter(daemon, CANCELLING);
}

static int watch_signals(struct daemon *daemon, struct csn_error *err)
{
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "sigprocmask");
        int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "signalfd");
        daemon->signals = (struct watch){ .fd = fd, .ready = on_signal, .owner = daemon };
        return loop_watch(daemon->loop, &daemon->signals, fd, EPOLLIN, err);
}

/* ---- connections ---- */

static void listen_on(struct daemon *daemon)
{
        struct csn_error err;
        if (loop_watch(daemon->loop, &daemon->listener, daemon->endpoint.fd, EPOLLIN, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}

static void accept_again(struct timer *timer)
{
        listen_on(timer->owner);
}

static void on_connection(struct watch *watch, uint32_t what)
{
        struct daemon *daemon = watch->owner;
        int sys = 0;
        (void)what;
        for (int i = 0; i < ACCEPTS_AT_ONCE && sys == 0; i++)
                sys = accept_one(daemon);
        if (sys == EMFILE || sys == ENFILE || sys == ENOMEM || sys == ENOBUFS) {
                /* The connection stays in the queue, and would wake us for ever. */
                log_text(LOG_ERROR, "accept: %s", strerrordesc_np(sys));
                loop_unwatch(daemon->loop, &daemon->listener);
                loop_timer(daemon->loop, &daemon->again, AGAIN_US);
        }
}

static void on_api_idle(void *owner)
{
        daemon_look(owner);
}

static void on_clean(struct timer *timer)
{
        struct daemon *daemon = timer->owner;
        struct csn_error err;
        bool more = false;
        if (store_clean(daemon->store, 0, &more, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        loop_timer(daemon->loop, &daemon->clean, more ? 0 : CLEAN_US);
}

static int open_api(struct daemon *daemon, struct csn_error *err)
{
        if (store_open_default(daemon->settings, &daemon->store, err) < 0 ||
            api_open(daemon->engine, daemon->settings, daemon->store, on_api_idle, daemon, &daemon->api, err) < 0)
                return -err->code;
        loop_timer(daemon->loop, &daemon->clean, CLEAN_US);
        return 0;
}

/* ---- in order ---- */

/* Each run has several descriptors, and the usual soft limit of 1024 is for programs that use select(2). */
static void raise_descriptors(void)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                limit.rlim_cur = limit.rlim_max;
                setrlimit(RLIMIT_NOFILE, &limit);
        }
}

static int serve(struct daemon *daemon, struct csn_error *err)
{
        const struct settings *settings = daemon->settings;
        if (endpoint_uids(settings->engine.socket_uids, &daemon->arena, &daemon->uids, &daemon->uids_n, err) < 0 ||
            engine_open(settings, &daemon->engine, err) < 0)
                return -err->code;
        daemon->loop = engine_loop(daemon->engine);
        if (watch_signals(daemon, err) < 0 || endpoint_open(settings, &daemon->endpoint, err) < 0)
                return -err->code;
        if (settings->engine.http[0] && open_api(daemon, err) < 0)
                return -err->code;
        listen_on(daemon);
        engine_warm(daemon->engine);
        log_text(LOG_INFO, "serving %s", daemon->endpoint.path);
        if (daemon->api)
                log_text(LOG_INFO, "serving http://%s", api_address(daemon->api));
        endpoint_notify("READY=1");
        int rc = 0;
        while (rc == 0 && daemon->state != OVER)
                rc = engine_step(daemon->engine, -1, err);
        return rc;
}

/* A file that is wrong is told now, and not to the first who needs it. */
static int test_policies(const struct settings *settings, struct csn_error *err)
{
        struct policies *policies = NULL;
        int rc = front_load_policies(settings, &policies, err);
        policies_free(policies);
        return rc;
}

int daemon_serve(const struct settings *given, struct csn_error *err)
{
        struct settings settings = *given;
        struct daemon daemon = { .settings = &settings, .endpoint = { .fd = -1, .lock_fd = -1 }, .signals = { .fd = -1 },
                                 .started_us = clock_us() };
        daemon.listener = (struct watch){ .fd = -1, .ready = on_connection, .owner = &daemon };
        daemon.deadline = (struct timer){ .fired = on_deadline, .owner = &daemon };
        daemon.clean = (struct timer){ .fired = on_clean, .owner = &daemon };
        daemon.again = (struct timer){ .fired = accept_again, .owner = &daemon };
        settings.engine.allow_host = false;   /* it would give our rights to whoever may connect */
        raise_descriptors();
        int rc = test_policies(&settings, err);
        if (rc == 0)
                rc = serve(&daemon, err);
        daemon.state = OVER;
        if (daemon.loop) {
                while (daemon.peers)
                        peer_close(daemon.peers);
                loop_unwatch(daemon.loop, &daemon.listener);
                loop_untimer(daemon.loop, &daemon.again);
                loop_untimer(daemon.loop, &daemon.deadline);
                loop_unwatch(daemon.loop, &daemon.signals);
        }
        api_close(daemon.api);
        if (daemon.loop)
                loop_untimer(daemon.loop, &daemon.clean);
        endpoint_close(&daemon.endpoint);
        fd_close(&daemon.signals.fd);
        while (daemon.jobs) {   /* of an engine that failed; its runs are its own to free */
                struct job *next = daemon.jobs->next;
                free(daemon.jobs);
                daemon.jobs = next;
        }
        engine_close(daemon.engine);
        store_close(daemon.store);
        arena_done(&daemon.arena);
        return rc;
}
