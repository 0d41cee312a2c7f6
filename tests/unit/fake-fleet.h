/* A fleet that sends no heartbeats: it records what a source says of workers; for tests of kube and pool. */
#ifndef TESTS_UNIT_FAKE_FLEET_H
#define TESTS_UNIT_FAKE_FLEET_H

#include "gateway/fleet/fleet.h"

#include <stdio.h>

struct fleet {
        struct gateway_worker *workers;
        const struct fleet_events *events;
        void *owner;
        struct buf log;                    /* a line for each call: "add NAME UID", "remove NAME REASON", … */
};

struct gateway_worker *fleet_add(struct fleet *fleet, const char *name, const char *uid, const char *url)
{
        struct gateway_worker **at = &fleet->workers;
        while (*at && strcmp((*at)->name, name) != 0)
                at = &(*at)->next;
        if (*at && strcmp((*at)->uid, uid) == 0 && strcmp((*at)->url, url) == 0)
                return *at;
        if (*at) {
                struct gateway_worker *old = *at;
                *at = old->next;
                buf_printf(&fleet->log, "replace %s\n", old->name);
                free(old);
        }
        struct gateway_worker *worker = mem_alloc(sizeof *worker);
        *worker = (struct gateway_worker){ .next = fleet->workers, .fleet = fleet, .state = WORKER_READY, .slots = 4 };
        snprintf(worker->name, sizeof worker->name, "%s", name);
        snprintf(worker->uid, sizeof worker->uid, "%s", uid);
        snprintf(worker->url, sizeof worker->url, "%s", url);
        worker->answered_us = clock_us();
        fleet->workers = worker;
        buf_printf(&fleet->log, "add %s %s\n", name, uid);
        return worker;
}

void fleet_cordon(struct gateway_worker *worker, bool cordoned)
{
        if (worker->cordoned != cordoned)
                buf_printf(&worker->fleet->log, "%s %s\n", cordoned ? "cordon" : "uncordon", worker->name);
        worker->cordoned = cordoned;
}

void fleet_remove(struct gateway_worker *worker, const char *reason)
{
        struct fleet *fleet = worker->fleet;
        struct gateway_worker **at = &fleet->workers;
        while (*at != worker)
                at = &(*at)->next;
        *at = worker->next;
        buf_printf(&fleet->log, "remove %s %s\n", worker->name, reason);
        free(worker);
}

void fleet_restarted(struct gateway_worker *worker, const char *reason)
{
        buf_printf(&worker->fleet->log, "restarted %s %s\n", worker->name, reason);
}

void fleet_listen(struct fleet *fleet, const struct fleet_events *events, void *owner)
{
        fleet->events = events;
        fleet->owner = owner;
}

static void fake_fleet_done(struct fleet *fleet)
{
        while (fleet->workers) {
                struct gateway_worker *next = fleet->workers->next;
                free(fleet->workers);
                fleet->workers = next;
        }
        buf_done(&fleet->log);
}

#endif
