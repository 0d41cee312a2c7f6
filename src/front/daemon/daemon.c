/*
 * caissond: an engine with clients connected to a socket.
 *
 * The states in order: SERVING; DRAINING, when told to end: no new requests, and runs go on for engine.shutdown_ms;
 * CANCELLING: runs are killed; FLUSHING: clients read their last frames; OVER.  Each state has a deadline, so the
 * daemon always ends.
 */
#include "front/daemon/daemon.h"
#include "front/views/log_reader.h"

#include "front/daemon/sd_notify.h"
#include "front/service/parse.h"
#include "hop/worker.h"

#include "backend/backend.h"
#include "packages/packages.h"
#include "review/review.h"
#include "sandbox/sandbox.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define CANCEL_US (15 * 1000000ULL)    /* collecting files of a killed run has this long as well */
#define FLUSH_US (2 * 1000000ULL)      /* for a client to read its last frames */
#define ACCEPTS_AT_ONCE 4              /* a refused client keeps its descriptor until the next round of the loop */
#define CLEAN_US (60 * 1000000ULL)
/*
 * Bytes from which an allocation is a mapping of its own.  free(3) gives a mapping back to the kernel, and realloc(3)
 * moves a mapping without copying.  The threshold of glibc grows to 32 MiB with freed blocks (mallopt(3)).
 */
#define MAPPED_MIN ((int)(256 * KIB))
#define AGAIN_US 100000ULL             /* until the next try, when there was no descriptor */

/* 0, or the errno. */
static int accept_one(struct daemon *daemon)
{
        /* cppcheck-suppress nullPointer ; accept(2): no address is filled in then */
        int fd = accept4(daemon->endpoint.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return errno;
        connection_new(daemon, fd);
        return 0;
}

/* ---- the end ---- */

static void enter(struct daemon *daemon, enum daemon_state state);

/* A state with nothing left to wait for gives way to the next, and so does a state past its deadline. */
static void next_state(struct daemon *daemon, bool late)
{
        bool working = daemon_is_working(daemon);
        if (daemon->state == DRAINING && (late || !working))
                enter(daemon, working ? CANCELLING : FLUSHING);
        else if (daemon->state == CANCELLING && (late || !working))
                enter(daemon, FLUSHING);
        else if (daemon->state == FLUSHING && (late || !daemon->connections))
                enter(daemon, OVER);
}

static void on_deadline(struct timer *timer)
{
        next_state(timer->owner, true);
}

/*
 * Clients not accepted yet are refused, and can run their programs themselves; on a socket of the service manager the
 * next daemon accepts such clients.
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
                uint64_t wait_us = daemon->settings->engine.shutdown_ms * 1000,
                         most_us = wait_us + CANCEL_US + 2 * FLUSH_US;
                notify_send("STOPPING=1\nSTATUS=Draining: nothing new is begun\nEXTEND_TIMEOUT_USEC=%" PRIu64, most_us);
                stop_accepting(daemon);
                if (daemon->service)
                        service_drain(daemon->service);
                loop_timer(daemon->loop, &daemon->deadline, wait_us);
        } else if (state == CANCELLING) {
                loop_timer(daemon->loop, &daemon->deadline, CANCEL_US);
                for (struct request *request = daemon->requests; request; request = request->next)
                        job_cancel(request);
                if (daemon->service)
                        service_cancel(daemon->service);
        } else if (state == FLUSHING) {
                loop_timer(daemon->loop, &daemon->deadline, FLUSH_US);
                for (struct connection *connection = daemon->connections; connection; connection = connection->next)
                        connection_end(connection);
        }
        daemon_look(daemon);
}

/* ---- signals ---- */

/* The first signal lets runs end, the second kills runs and lets clients read the results, the third ends at once. */
static void on_signal(struct watch *watch, uint32_t what)
{
        struct daemon *daemon = watch->owner;
        struct signalfd_siginfo info;
        (void)what;
        if (read(watch->fd, &info, sizeof info) != (ssize_t)sizeof info)
                return;
        if (info.ssi_signo == SIGHUP) {
                if (daemon->state == SERVING)
                        daemon_reload(daemon);
                return;
        }
        size_t psandboxes = 0;
        for (struct psandbox *psandbox = psandbox_next(daemon->engine, NULL, NULL); psandbox;
                psandbox = psandbox_next(daemon->engine, psandbox, NULL))
                psandboxes++;
        log_text(LOG_INFO, "signal %u: the daemon ends", info.ssi_signo);
        if (psandboxes && daemon->state == SERVING)
                log_text(LOG_WARN, "persistent sandboxes that end with the daemon: %zu; what is in them cannot be kept",
                        psandboxes);
        if (daemon->state == SERVING)
                enter(daemon, DRAINING);
        else
                enter(daemon, daemon->state == DRAINING ? CANCELLING : OVER);
}

/* Only root can start a helper, and the daemon is not root any more: the next daemon starts a new helper. */
static void on_helper_lost(struct daemon *daemon, const char *helper, const char *why)
{
        err_set(&daemon->failure, CSN_E_SYSTEM, 0,
                "%s %s; the daemon ends, so that its service manager starts it again", helper, why);
        log_text(LOG_ERROR, "%s", daemon->failure.text);
        if (daemon->state == SERVING)
                enter(daemon, DRAINING);
}

static void on_starter_lost(void *owner, const char *why)
{
        on_helper_lost(owner, "the process that starts others for the daemon", why);
}

static void on_launcher_lost(void *owner)
{
        on_helper_lost(owner, "the process that starts programs of tools", "was killed, or does not answer");
}

static int watch_signals(struct daemon *daemon, struct csn_error *err)
{
        signal(SIGPIPE, SIG_IGN);
        int fd = io_signals(io_ends, IO_ENDS, err);
        if (fd < 0)
                return fd;
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
                /* The connection stays in the queue, and would wake the loop for ever. */
                log_text(LOG_ERROR, "accept: %s", strerrordesc_np(sys));
                loop_unwatch(daemon->loop, &daemon->listener);
                loop_timer(daemon->loop, &daemon->again, AGAIN_US);
        }
}

static void on_api_idle(void *owner)
{
        daemon_look(owner);
}

/* In a helper thread.  The store is closed after the engine, and so after the engine's helper threads. */
static void checkpoint(struct job *job)
{
        struct daemon *daemon = job->owner;
        store_checkpoint(store_path(daemon->store), &daemon->checkpoint_error);
}

static void on_checkpoint(struct job *job)
{
        struct daemon *daemon = job->owner;
        if (daemon->checkpoint_error.code)
                log_text(LOG_ERROR, "%s", daemon->checkpoint_error.text);
        daemon->checkpoint_error = (struct csn_error){ 0 };
}

/* The folder belongs to the store, closed after the end of the helper threads. */
static void on_discard(void *owner, const char *share, int dir_fd, const char *name)
{
        const struct daemon *daemon = owner;
        discard_file(engine_workers(daemon->engine), share, dir_fd, name);
}

static void start_checkpoint(void *owner)
{
        struct daemon *daemon = owner;
        if (!daemon->checkpoint.active)
                worker_submit(engine_workers(daemon->engine), "", &daemon->checkpoint);
}

static bool clean_rows(struct daemon *daemon)
{
        struct csn_error err;
        bool more = false;
        if (store_clean(daemon->store, daemon->settings->engine.audit_retention_ms, &more, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        return more;
}

static bool clean_files(struct daemon *daemon)
{
        return run_storage_clean_files(daemon->store);
}

static bool clean_workspaces(struct daemon *daemon)
{
        return run_storage_clean_workspaces(daemon->store, engine_workers(daemon->engine), daemon->settings);
}

/* Each step of the loop removes some expired objects of one kind. */
static void on_clean(struct timer *timer)
{
        static bool (*const kinds[])(struct daemon *daemon) = { clean_rows, clean_files, clean_workspaces };
        struct daemon *daemon = timer->owner;
        bool more = kinds[daemon->clean_kind](daemon), over = false;
        if (!more) {
                daemon->clean_kind = (daemon->clean_kind + 1) % ARRAY_LEN(kinds);
                over = daemon->clean_kind == 0;
        }
        if (over)
                start_checkpoint(daemon);
        loop_timer(daemon->loop, &daemon->clean, over ? CLEAN_US : 0);
}

/* On a disk too full for the reserve the daemon serves all the same, with a warning. */
static int open_store(struct daemon *daemon, struct csn_error *err)
{
        struct csn_error full;
        if (store_open_default(daemon->settings, &daemon->store, err) < 0)
                return -err->code;
        if (store_set_reserve(daemon->store, daemon->settings->engine.reserve_bytes, &full) < 0)
                log_text(LOG_WARN, "engine.reserve_bytes: %s", full.text);
        return 0;
}

/* A daemon that serves no HTTP has no store, but for the usage of a reviewer. */
static void open_usage(struct daemon *daemon)
{
        struct csn_error err;
        struct store *store = daemon->store;
        if (!store && reviewer_is_configured(daemon->settings)) {
                if (store_open_default(daemon->settings, &daemon->usage, &err) < 0)
                        log_text(LOG_WARN, "the usage of reviews is not recorded: %s", err.text);
                store = daemon->usage;
        }
        if (store)
                service_open_usage(daemon->engine, store);
}

static int open_api(struct daemon *daemon, struct csn_error *err)
{
        struct endpoint *endpoint = &daemon->endpoint;
        bool stored = daemon->http_fd >= 0;
        if (daemon->worker)
                hop_worker_start(daemon->worker, daemon->settings->engine.state_dir);
        if ((stored && open_store(daemon, err) < 0) ||
            service_open(daemon->engine, daemon->settings, daemon->store, daemon_fronts, take_fd(&daemon->http_fd),
                         daemon->http_ours, on_api_idle, daemon, &daemon->service,
                     err) < 0)
                return -err->code;
        daemon->service->worker = daemon->worker;
        daemon->service->host = &daemon->host;
        if (daemon->worker)
                engine_set_host(daemon->engine, daemon->host.tier, daemon->host.missing);
        open_usage(daemon);
        if (stored) {
                store_set_log_listener(daemon->store, start_checkpoint, daemon);
                store_set_discard(daemon->store, on_discard, daemon);
                audit_recover(daemon->store);
                loop_timer(daemon->loop, &daemon->clean, 0);
        }
        if (endpoint->local_fd < 0)
                return 0;
        return service_serve_local(daemon->service, take_fd(&endpoint->local_fd), endpoint->local_ours, daemon->uids,
                                   daemon->uids_n, err);
}

/* ---- start and end ---- */

/* Each run has several descriptors, and the usual soft limit of 1024 is for programs with select(2). */
static int raise_descriptors(const struct settings *settings, struct csn_error *err)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 0;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_max < ENGINE_DESCRIPTORS_MIN)
                return err_set(err, CSN_E_CONFIG, 0,
                        "caissond may have %llu open files at once, and needs at least %d; raise the hard limit (ulimit -Hn, "
                        "LimitNOFILE=)",
                        (unsigned long long)limit.rlim_max, ENGINE_DESCRIPTORS_MIN);
        if (engine_places(limit.rlim_max) < settings->engine.running_max)
                log_text(LOG_WARN,
                        "with %llu open files at once (ulimit -Hn) no more than %zu sandboxes can be there at once, and engine.running_max is %llu: "
                        "runs beyond wait",
                        (unsigned long long)limit.rlim_max, engine_places(limit.rlim_max),
                        (unsigned long long)settings->engine.running_max);
        return 0;
}

/* The daemon works without a log, so an error is only a warning. */
static void keep_log(const struct settings *settings)
{
        struct csn_error err;
        struct arena arena = { 0 };
        const char *path = logs_path(settings, &arena), *folder = settings_state_dir(settings, &arena);
        int rc = 0;
        if (settings->engine.log_bytes)
                rc = io_make_folders(folder) < 0 ? err_set(&err, CSN_E_SYSTEM, errno, "make the folder %.300s", folder)
                                                 : log_open(path, settings->engine.log_bytes, &err);
        if (rc < 0)
                log_text(LOG_WARN, "no log is kept: %s", err.text);
        arena_done(&arena);
}

/* The name in the file system and a port below 1024 may need rights given up later. */
static int bind_sockets(struct daemon *daemon, struct csn_error *err)
{
        const char *http = daemon->settings->engine.http;
        if (endpoint_open(daemon->settings, &daemon->endpoint, err) < 0)
                return -err->code;
        daemon->http_fd = take_fd(&daemon->endpoint.http_fd);
        daemon->http_ours = daemon->http_fd < 0 && http[0];
        return daemon->http_ours ? http_bind(http, &daemon->http_fd, err) : 0;
}

/* Runs at half the watchdog interval of the service manager. */
static void on_watchdog(struct timer *timer)
{
        struct daemon *daemon = timer->owner;
        notify_send("WATCHDOG=1");
        loop_timer(daemon->loop, timer, notify_watchdog_us());
}

static void tell_ready(struct daemon *daemon)
{
        const char *http = service_address(daemon->service);
        log_text(LOG_INFO, "serving %s", daemon->endpoint.path);
        if (http)
                log_text(LOG_INFO, "serving http://%s", http);
        notify_send("READY=1\nSTATUS=Serving %s%s%s", daemon->endpoint.path, http ? " and http://" : "",
                http ? http : "");
        if (notify_watchdog_us())
                on_watchdog(&daemon->watchdog);
}

/* From here on the daemon parses input of strangers. */
static int give_up_rights(struct daemon *daemon, struct csn_error *err)
{
        struct settings *settings = daemon->settings;
        struct confine *confined = &daemon->confine;
        const char *http = settings->engine.http;
        /* The default state folder depends on the user, so the path is fixed before the user changes. */
        settings->engine.state_dir = settings_state_dir(settings, &settings->arena);
        if (daemon->http_fd >= 0 || (settings->engine.log_bytes && io_make_folders(settings->engine.state_dir) == 0))
                snprintf(confined->state_dir, sizeof confined->state_dir, "%s", settings->engine.state_dir);
        if (daemon->endpoint.ours)
                snprintf(confined->sockets[0], sizeof confined->sockets[0], "%s", daemon->endpoint.path);
        if (daemon->http_ours && strncmp(http, "unix:", 5) == 0)
                snprintf(confined->sockets[1], sizeof confined->sockets[1], "%s", http + 5);
        if (daemon->endpoint.local_ours)
                snprintf(confined->sockets[2], sizeof confined->sockets[2], "%s", daemon->endpoint.local_path);
        confined->config = daemon->sources->file;
        return confine(settings, confined, err);
}

static struct packages *take_packages(struct daemon *daemon)
{
        struct packages *packages = daemon->packages;
        daemon->packages = NULL;
        return packages;
}

/* A daemon without state has no folder of layers, and needs none unless its settings name packages. */
static int open_packages(struct daemon *daemon, struct csn_error *err)
{
        const struct settings *settings = daemon->settings;
        bool needed = settings->packages.cache_dir[0] || settings->python_packages.index_url[0] ||
                settings->node_packages.registry_url[0];
        if (packages_open(take_packages(daemon), daemon->engine, err) == 0)
                return 0;
        if (needed)
                return -err->code;
        log_text(err->code == CSN_E_CONFIG ? LOG_WARN : LOG_INFO, "there are no layers of packages: %s", err->text);
        return 0;
}

/* The key is read before the daemon gives up its rights. */
static int prepare_reviewer(struct daemon *daemon, struct csn_error *err)
{
        const struct settings *settings = daemon->settings;
        if (reviewer_is_configured(settings))
                return reviewer_prepare(settings, &daemon->reviewer, err);
        if (settings->review.mode != review_mode_OFF)
                log_text(LOG_WARN, "review.mode is \"%s\", and there is no reviewer: each review is without a verdict",
                        choices_review_mode.values[settings->review.mode].text);
        return 0;
}

/* The keys are read, and this host is tested, before the daemon gives up its rights. */
static int prepare_gateway(struct daemon *daemon, struct csn_error *err)
{
        struct host_tier found;
        probe_tier(&found);
        snprintf(daemon->host.tier, sizeof daemon->host.tier, "%s", found.tier);
        snprintf(daemon->host.missing, sizeof daemon->host.missing, "%s", found.missing);
        return hop_worker_open(daemon->settings->gateway.key_file, &daemon->worker, err);
}

/* From here on the reviewer is the engine's. */
static int open_reviewer(struct daemon *daemon, struct csn_error *err)
{
        struct reviewer *reviewer = daemon->reviewer;
        struct engine *engine = daemon->engine;
        if (!reviewer)
                return 0;
        if (reviewer_open(reviewer, engine_loop(engine), engine_workers(engine), err) < 0)
                return -err->code;
        daemon->reviewer = NULL;
        engine_set_review(engine, &reviewer_source, reviewer);
        return 0;
}

static int serve(struct daemon *daemon, struct csn_error *err)
{
        const struct settings *settings = daemon->settings;
        if (endpoint_uids(settings->engine.socket_uids, &daemon->arena, &daemon->uids, &daemon->uids_n, err) < 0 ||
                bind_sockets(daemon, err) < 0 || engine_open(settings, &daemon->engine, err) < 0 ||
                sources_prepare(settings, &daemon->sources_of_tools, err) < 0 ||
                packages_prepare(settings, &daemon->packages, err) < 0 || prepare_reviewer(daemon, err) < 0 ||
                prepare_gateway(daemon, err) < 0 ||
                give_up_rights(daemon, err) < 0)
                return -err->code;
        if (open_packages(daemon, err) < 0 || open_reviewer(daemon, err) < 0)
                return -err->code;
        daemon->loop = engine_loop(daemon->engine);
        daemon->tools = tools_open(daemon->engine);
        if (watch_signals(daemon, err) < 0 || helpers_watch(daemon->loop, on_starter_lost, daemon, err) < 0)
                return -err->code;
        keep_log(settings);
        if (sources_open(daemon->sources_of_tools, daemon->tools, err) < 0 ||
                sources_watch(daemon->sources_of_tools, on_launcher_lost, daemon, err) < 0)
                return -err->code;
        if (open_api(daemon, err) < 0)
                return -err->code;
        daemon->service->tools = daemon->tools;
        if (endpoint_listen(&daemon->endpoint, err) < 0)
                return -err->code;
        listen_on(daemon);
        engine_warm(daemon->engine, false);
        tell_ready(daemon);
        int rc = 0;
        while (rc == 0 && daemon->state != OVER)
                rc = engine_step(daemon->engine, -1, err);
        if (rc == 0 && daemon->failure.code) {
                *err = daemon->failure;
                rc = -err->code;
        }
        return rc;
}

int daemon_serve(const struct settings_sources *sources, struct settings *settings, struct csn_error *err)
{
        struct daemon daemon = { .sources = sources,
                .settings = settings,
                .endpoint = { .fd = -1, .http_fd = -1, .local_fd = -1, .lock_fd = -1 },
                .http_fd = -1,
                .signals = { .fd = -1 },
                .started_us = clock_us() };
        daemon.listener = (struct watch){ .fd = -1, .ready = on_connection, .owner = &daemon };
        daemon.deadline = (struct timer){ .fired = on_deadline, .owner = &daemon };
        daemon.clean = (struct timer){ .fired = on_clean, .owner = &daemon };
        daemon.checkpoint = (struct job){ .work = checkpoint, .done = on_checkpoint, .owner = &daemon };
        daemon.again = (struct timer){ .fired = accept_again, .owner = &daemon };
        daemon.watchdog = (struct timer){ .fired = on_watchdog, .owner = &daemon };
        notify_open();
        mallopt(M_MMAP_THRESHOLD, MAPPED_MIN);
        settings->engine.allow_host = false;   /* the host backend would give our rights to all clients */
        loop_set_batch_scheduling();
        log_set_format((enum log_format)settings->engine.log_format);
        for (size_t i = 0; i < settings->notes_n; i++)
                log_text(LOG_WARN, "%s", settings->notes[i]);
        int rc = raise_descriptors(settings, err);
        if (rc == 0)
                rc = daemon_test_policies(settings, err);
        if (rc == 0)
                rc = serve(&daemon, err);
        daemon.state = OVER;
        if (daemon.loop) {
                while (daemon.connections)
                        connection_close(daemon.connections);
                loop_unwatch(daemon.loop, &daemon.listener);
                loop_untimer(daemon.loop, &daemon.again);
                loop_untimer(daemon.loop, &daemon.deadline);
                loop_untimer(daemon.loop, &daemon.watchdog);
                loop_unwatch(daemon.loop, &daemon.signals);
                helpers_unwatch();
        }
        service_close(daemon.service);
        fd_close(&daemon.http_fd);
        if (daemon.loop)
                loop_untimer(daemon.loop, &daemon.clean);
        if (daemon.endpoint.ours || daemon.endpoint.local_ours)
                helpers_remove_sockets();
        endpoint_close(&daemon.endpoint);
        fd_close(&daemon.signals.fd);
        while (daemon.requests)   /* after a failure of the engine */
                request_free(daemon.requests);
        tools_close(daemon.tools);
        packages_free(daemon.packages);
        reviewer_free(daemon.reviewer);
        sources_close(daemon.sources_of_tools);
        engine_close(daemon.engine);
        helpers_stop();
        store_close(daemon.usage);
        store_close(daemon.store);
        hop_worker_free(daemon.worker);
        notify_close();
        arena_done(&daemon.arena);
        log_text(LOG_INFO, "the daemon has ended%s%s", rc < 0 ? ": " : "", rc < 0 ? err->text : "");
        log_close();
        return rc;
}
