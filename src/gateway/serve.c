/* The life of the gateway: open, serve, drain, close. */
#include "gateway/gateway_private.h"

#include "base/worker.h"
#include "net/http_client.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#define REFRESH_US 1000000ULL              /* between two checks of the key file and of waiting requests */
#define CLIENTS_MAX 10000

/* ---- events of the listener ---- */

static int accept_all(void *owner, struct http_request *request, struct csn_error *err)
{
        (void)owner, (void)request, (void)err;
        return 0;
}

static void on_answering(void *owner, struct http_request *request)
{
        (void)owner, (void)request;
}

static bool on_parse(void *owner, struct http_request *request)
{
        (void)owner, (void)request;
        return false;
}

static void on_answered(void *owner, struct http_request *request, unsigned status)
{
        (void)owner, (void)request, (void)status;
}

static void on_over(void *owner, const struct http_request *request)
{
        (void)owner, (void)request;
}

static void on_ended(void *owner)
{
        struct gateway *gateway = owner;
        if (gateway->draining && http_busy(gateway->http) == 0 && !gateway->forwards_n)
                gateway->over = true;
}

static const struct http_events http_events = { .app = gateway_choose_app, .greet = accept_all, .begin = accept_all,
        .parse = on_parse, .answering = on_answering, .answered = on_answered, .over = on_over, .ended = on_ended };

/* ---- events of the fleet ---- */

static void on_changed(void *owner, struct gateway_worker *worker)
{
        const struct gateway *gateway = owner;
        note_cache_wake(gateway->note_cache);
        if (worker_takes_work(worker))
                forwards_wake(owner);
}

static void on_lost(void *owner, struct gateway_worker *worker, const char *reason)
{
        const struct gateway *gateway = owner;
        note_cache_wake(gateway->note_cache);
        forwards_lose(owner, worker, reason);
}

static const struct fleet_events fleet_events = { on_changed, on_lost };

/* ---- the end ---- */

static void on_deadline(struct timer *timer)
{
        struct gateway *gateway = timer->owner;
        gateway->over = true;
}

static void on_signal(struct watch *watch, uint32_t events)
{
        struct gateway *gateway = watch->owner;
        struct signalfd_siginfo info;
        (void)events;
        if (read(watch->fd, &info, sizeof info) != (ssize_t)sizeof info)
                return;
        log_text(LOG_INFO, "signal %u: the gateway ends", info.ssi_signo);
        if (gateway->draining || (http_busy(gateway->http) == 0 && !gateway->forwards_n)) {
                gateway->over = true;
                return;
        }
        gateway->draining = true;
        http_drain(gateway->http);
        loop_timer(gateway->loop, &gateway->deadline, gateway->settings->gateway.shutdown * 1000);
}

static void on_refresh(struct timer *timer)
{
        struct gateway *gateway = timer->owner;
        if (gateway->keys)
                hop_keys_refresh(gateway->keys);
        forwards_tell_pool(gateway);
        loop_timer(gateway->loop, &gateway->refresh, REFRESH_US);
}

/* ---- opening ---- */

/* A client's connection and a worker's connection each take a descriptor. */
static unsigned connections_max(void)
{
        struct rlimit limit = { .rlim_cur = 1024 };
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
        return (unsigned)min_u64(max_u64(limit.rlim_cur / 3, 16), CLIENTS_MAX);
}

static int open_http(struct gateway *gateway, struct csn_error *err)
{
        int fd;
        unsigned most = connections_max();
        gateway->shares = shares_new((const uint64_t[SHARES_N]){ [SHARE_BODIES] = HTTP_BODIES_MAX,
                [SHARE_STREAMS] = HTTP_QUEUES_MAX,
                [SHARE_READERS] = HTTP_READERS_MAX,
                [SHARE_REQUESTS] = most,
                [SHARE_LOCAL_REQUESTS] = most,
                [SHARE_SESSIONS] = most,
                [SHARE_CONNECTIONS] = most });
        const struct http_options options = { .shares = gateway->shares, .workers = gateway->threads,
                                              .requests = SHARE_REQUESTS, .connections_max = most,
                                              .head_us = gateway->settings->engine.http_head_ms * 1000 };
        if (http_bind(gateway->settings->gateway.listen, &fd, err) < 0)
                return err_wrap(err, "gateway.listen");
        return http_open(gateway->loop, fd, true, &options, &http_events, gateway, &gateway->http, err);
}

static int open_kubernetes(struct gateway *gateway, struct csn_error *err)
{
        const struct settings *settings = gateway->settings;
        if (settings->kubernetes.mode == kubernetes_mode_OFF)
                return 0;
        int rc = fetcher_open(gateway->loop, &gateway->fetcher, err);
        if (rc == 0)
                rc = kube_open(gateway->loop, gateway->fetcher, settings, gateway->fleet, &gateway->kube, err);
        if (rc == 0 && settings->kubernetes.mode == kubernetes_mode_OWNED)
                rc = pool_new(gateway->loop, settings, gateway->fleet, gateway->kube, &gateway->pool, err);
        if (rc == 0)
                kube_start(gateway->kube);
        return rc;
}

static int check(const struct settings *settings, struct csn_error *err)
{
        const struct gateway_settings *gateway = &settings->gateway;
        if (settings->kubernetes.mode == kubernetes_mode_OFF && !gateway->workers[0])
                return err_setting(err, "gateway.workers",
                        "gateway.workers is empty and kubernetes.mode is off: the gateway would have no worker");
        if (!gateway->key_file[0])
                return err_setting(err, "gateway.key_file",
                        "gateway.key_file is empty; gateway and workers need the same file with a secret, such as "
                        "head -c 32 /dev/urandom | base64 writes");
        if (gateway->tries > TRIES_MAX)
                return err_setting(err, "gateway.tries", "gateway.tries is %" PRIu64 "; the most is %d", gateway->tries,
                        TRIES_MAX);
        return 0;
}

static int open_all(struct gateway *gateway, struct csn_error *err)
{
        const struct settings *settings = gateway->settings;
        int rc = check(settings, err);
        rc = rc < 0 ? rc : loop_new(&gateway->loop, err);
        rc = rc < 0 ? rc : hop_keys_open(settings->gateway.key_file, &gateway->keys, err);
        if (rc == 0 && settings->gateway.keys == gateway_keys_GATEWAY)
                rc = store_open_default(settings, &gateway->store, err);
        rc = rc < 0 ? rc : workers_new(gateway->loop, &gateway->threads, err);
        rc = rc < 0 ? rc : fleet_open(gateway->loop, settings, gateway->keys, &gateway->fleet, err);
        if (rc == 0) {
                note_cache_open(gateway);
                fleet_listen(gateway->fleet, &fleet_events, gateway);
        }
        if (rc == 0 && gateway->store)
                audit_open(gateway);
        rc = rc < 0 ? rc : open_http(gateway, err);
        rc = rc < 0 ? rc : open_kubernetes(gateway, err);
        int fd = rc < 0 ? -1 : io_signals(io_ends, IO_ENDS, err);
        if (rc == 0 && fd < 0)
                return -err->code;
        gateway->signals = (struct watch){ .fd = fd, .ready = on_signal, .owner = gateway };
        gateway->deadline = (struct timer){ .fired = on_deadline, .owner = gateway };
        gateway->refresh = (struct timer){ .fired = on_refresh, .owner = gateway };
        rc = rc < 0 ? rc : loop_watch(gateway->loop, &gateway->signals, fd, EPOLLIN, err);
        if (rc == 0)
                loop_timer(gateway->loop, &gateway->refresh, REFRESH_US);
        return rc;
}

static void close_all(struct gateway *gateway)
{
        struct csn_error err;
        if (gateway->loop && gateway->fleet)
                forwards_close(gateway), witness_messages_close(gateway);
        http_close(gateway->http);
        pool_free(gateway->pool);
        kube_close(gateway->kube);
        audit_close(gateway->audit);
        note_cache_close(gateway->note_cache);
        fleet_close(gateway->fleet);
        if (gateway->loop) {
                loop_unwatch(gateway->loop, &gateway->signals);
                loop_untimer(gateway->loop, &gateway->deadline);
                loop_untimer(gateway->loop, &gateway->refresh);
                loop_step(gateway->loop, 0, &err);     /* deferred frees */
        }
        fd_close(&gateway->signals.fd);
        fetcher_close(gateway->fetcher);
        lost_runs_close(gateway);
        shares_free(gateway->shares);
        if (gateway->threads)
                workers_free(gateway->threads);
        store_close(gateway->store);
        hop_keys_free(gateway->keys);
        loop_free(gateway->loop);
}

int gateway_serve(const struct settings *settings, struct csn_error *err)
{
        struct gateway gateway = { .settings = settings, .signals = { .fd = -1 } };
        int rc = open_all(&gateway, err);
        if (rc == 0)
                log_text(LOG_INFO, "serving http://%s", http_address(gateway.http));
        while (rc == 0 && !gateway.over)
                rc = loop_step(gateway.loop, -1, err);
        close_all(&gateway);
        return rc;
}
