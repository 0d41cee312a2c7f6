/* The table of workers; see fleet.h. */
#include "gateway/fleet/fleet_private.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

#define RESOLVE_MS 5000

void worker_failed(struct gateway_worker *worker, const char *why)
{
        worker->failures++;
        if (worker->removed)
                return;
        worker_set_state(worker, WORKER_DOWN, why);
        links_close(worker);
        heartbeat_now(worker);
}

/* ---- addresses ---- */

static void set_address(struct gateway_worker *worker, const struct net_address *address)
{
        struct sockaddr_in *v4 = (struct sockaddr_in *)&worker->address;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&worker->address;
        if (address->len == sizeof v4->sin_addr) {
                *v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)worker->port) };
                memcpy(&v4->sin_addr, address->bytes, sizeof v4->sin_addr);
        } else {
                *v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)worker->port) };
                memcpy(&v6->sin6_addr, address->bytes, sizeof v6->sin6_addr);
        }
}

static void on_address(void *owner, const struct net_address *addresses, size_t n, const char *problem, bool timed_out)
{
        struct gateway_worker *worker = owner;
        (void)timed_out;
        if (n)
                set_address(worker, &addresses[0]);
        else
                worker_set_state(worker, WORKER_DOWN, problem);
        heartbeat_start(worker);
}

/* Find the address of the host; the heartbeat begins then. */
static void resolve(struct gateway_worker *worker)
{
        struct fleet *fleet = worker->fleet;
        struct net_address address = { 0 };
        struct csn_error err;
        if (inet_pton(AF_INET, worker->host, address.bytes) == 1)
                address.len = sizeof(struct in_addr);
        else if (inet_pton(AF_INET6, worker->host, address.bytes) == 1)
                address.len = sizeof(struct in6_addr);
        if (address.len) {
                on_address(worker, &address, 1, NULL, false);
                return;
        }
        if (!fleet->resolver && resolver_open(fleet->loop, NULL, RESOLVE_MS, &fleet->resolver, &err) < 0) {
                worker_set_state(worker, WORKER_DOWN, err.text);
                return;
        }
        resolver_ask(fleet->resolver, worker->host, on_address, worker, &worker->lookup);
}

/* "http://HOST:PORT", "https://[::1]:8080/" into the members of the worker. */
static bool read_url(struct gateway_worker *worker, const char *url)
{
        const char *at = strncasecmp(url, "https://", 8) == 0 ? url + 8 : strncasecmp(url, "http://", 7) == 0 ? url + 7
                                                                                                            : NULL;
        if (!at || strlen(url) >= sizeof worker->url)
                return false;
        worker->tls = at == url + 8;
        bool bracket = *at == '[';
        at += bracket;
        size_t len = strcspn(at, bracket ? "]" : ":/");
        if (!len || len >= sizeof worker->host || strcspn(at, "@?#") < strlen(at))
                return false;
        memcpy(worker->host, at, len);
        worker->host[len] = 0;
        at += len;
        if (bracket && *at++ != ']')
                return false;
        char *end = (char *)(uintptr_t)at;
        worker->port = *at == ':' ? (unsigned)strtoul(at + 1, &end, 10) : worker->tls ? 443 : 80;
        if (!worker->port || worker->port > UINT16_MAX || (*end && strcmp(end, "/") != 0))
                return false;
        snprintf(worker->url, sizeof worker->url, "%s", url);
        if (*end)
                worker->url[strlen(worker->url) - 1] = 0;
        return true;
}

/* ---- the table ---- */

struct gateway_worker *fleet_first(const struct fleet *fleet)
{
        return fleet->first;
}

struct gateway_worker *fleet_by_name(const struct fleet *fleet, const char *name)
{
        struct gateway_worker *worker = fleet->first;
        while (worker && strcmp(worker->name, name) != 0)
                worker = worker->next;
        return worker;
}

struct gateway_worker *fleet_by_uid(const struct fleet *fleet, const char *uid)
{
        struct gateway_worker *worker = uid[0] ? fleet->first : NULL;
        while (worker && strcmp(worker->uid, uid) != 0)
                worker = worker->next;
        return worker;
}

struct gateway_worker *fleet_by_tag(const struct fleet *fleet, const char *tag)
{
        struct gateway_worker *worker = fleet->first;
        while (worker && strcmp(worker->tag, tag) != 0)
                worker = worker->next;
        return worker;
}

struct gateway_worker *fleet_add(struct fleet *fleet, const char *name, const char *uid, const char *url)
{
        struct gateway_worker *worker = fleet_by_name(fleet, name);
        if (worker && strcmp(worker->uid, uid) == 0 && strcmp(worker->url, url) == 0)
                return worker;
        if (worker)
                fleet_remove(worker, "Deleted");
        worker = mem_alloc(sizeof *worker);
        *worker = (struct gateway_worker){ .fleet = fleet,
                .refs = 1,
                .added_us = clock_us(),
                .heartbeat = mem_alloc(sizeof *worker->heartbeat),
                                           .heartbeat_timer = { .owner = worker } };
        snprintf(worker->name, sizeof worker->name, "%s", name);
        snprintf(worker->uid, sizeof worker->uid, "%s", uid);
        if (!read_url(worker, url)) {
                worker_unref(worker);
                return NULL;
        }
        struct gateway_worker **at = &fleet->first;
        while (*at)
                at = &(*at)->next;
        *at = worker;
        if (worker->uid[0])
                fleet->changed_us = clock_us();
        resolve(worker);
        return worker;
}

void fleet_cordon(struct gateway_worker *worker, bool cordoned)
{
        bool took = worker_takes_work(worker);
        worker->cordoned = cordoned;
        if (took != worker_takes_work(worker))
                worker_tell_changed(worker);
}

void fleet_restarted(struct gateway_worker *worker, const char *reason)
{
        snprintf(worker->restart_reason, sizeof worker->restart_reason, "%s", reason);
        heartbeat_now(worker);
}

void fleet_remove(struct gateway_worker *worker, const char *reason)
{
        struct fleet *fleet = worker->fleet;
        for (struct gateway_worker **at = &fleet->first; *at; at = &(*at)->next)
                if (*at == worker) {
                        *at = worker->next;
                        break;
                }
        if (worker->uid[0])
                fleet->changed_us = clock_us();
        heartbeat_stop(worker);
        lookup_forget(&worker->lookup);
        bool took = worker_takes_work(worker);
        worker->removed = true;
        if (reason)
                worker_lose(worker, reason);
        links_close(worker);
        worker->state = WORKER_DOWN;
        if (took)
                worker_tell_changed(worker);
        worker_unref(worker);
}

/* ---- life ---- */

static int add_listed(struct fleet *fleet, struct csn_error *err)
{
        const char *list = fleet->settings->gateway.workers;
        for (size_t len; *list; list += len + strspn(list + len, ", \n")) {
                char url[sizeof fleet->first->url];
                len = strcspn(list, ", \n");
                if (!len)
                        continue;
                snprintf(url, sizeof url, "%.*s", (int)len, list);
                const char *name = strstr(url, "://");
                char host[sizeof url];
                snprintf(host, sizeof host, "%s", name ? name + 3 : "");
                host[strcspn(host, "/")] = 0;
                if (fleet_by_name(fleet, host))
                        return err_setting(err, "gateway.workers", "gateway.workers has %s twice", url);
                if (len >= sizeof url || !fleet_add(fleet, host, "", url))
                        return err_setting(err, "gateway.workers",
                                "gateway.workers has \"%.200s\", which is no URL of a worker; it has to be http://HOST:PORT or "
                                "https://HOST:PORT",
                                url);
        }
        return 0;
}

int fleet_open(struct loop *loop, const struct settings *settings, const struct hop_keys *keys, struct fleet **ret,
        struct csn_error *err)
{
        struct fleet *fleet = mem_alloc(sizeof *fleet);
        *fleet = (struct fleet){ .loop = loop, .settings = settings, .keys = keys };
        if (add_listed(fleet, err) < 0) {
                fleet_close(fleet);
                return -err->code;
        }
        *ret = fleet;
        return 0;
}

void fleet_listen(struct fleet *fleet, const struct fleet_events *events, void *owner)
{
        fleet->listeners[fleet->listeners_n].events = events;
        fleet->listeners[fleet->listeners_n++].owner = owner;
}

void fleet_close(struct fleet *fleet)
{
        if (!fleet)
                return;
        fleet->listeners_n = 0;
        while (fleet->first)
                fleet_remove(fleet->first, NULL);
        resolver_close(fleet->resolver);
        lost_free(fleet);
        free(fleet);
}
