/* Removed workers, kept for gateway.lost_ttl. */
#include "gateway/fleet/fleet_private.h"

#include <stdio.h>

static void drop(struct fleet *fleet, struct lost_worker **at)
{
        struct lost_worker *lost = *at;
        *at = lost->next;
        free(lost);
        fleet->lost_n--;
}

static void drop_old(struct fleet *fleet)
{
        int64_t oldest = time_now_ms() - (int64_t)fleet->settings->gateway.lost_ttl;
        size_t n = 0;
        for (struct lost_worker **at = &fleet->lost; *at;)
                if ((*at)->at_ms < oldest || ++n > FLEET_LOST_MAX)
                        drop(fleet, at);
                else
                        at = &(*at)->next;
}

static void add(struct fleet *fleet, const struct gateway_worker *worker, const char *reason)
{
        if (!worker->tag[0])
                return;
        struct lost_worker *lost = mem_alloc(sizeof *lost);
        *lost = (struct lost_worker){ .next = fleet->lost, .at_ms = time_now_ms() };
        snprintf(lost->name, sizeof lost->name, "%s", worker->name);
        snprintf(lost->tag, sizeof lost->tag, "%s", worker->tag);
        snprintf(lost->boot, sizeof lost->boot, "%s", worker->boot);
        snprintf(lost->reason, sizeof lost->reason, "%s", reason);
        fleet->lost = lost;
        fleet->lost_n++;
        drop_old(fleet);
}

void worker_lose(struct gateway_worker *worker, const char *reason)
{
        const struct fleet *fleet = worker->fleet;
        log_text(LOG_WARN, "worker %s is lost: %s", worker->name, reason);
        add(worker->fleet, worker, reason);
        for (size_t i = 0; i < fleet->listeners_n; i++)
                fleet->listeners[i].events->lost(fleet->listeners[i].owner, worker, reason);
        links_close(worker);
        worker->boot[0] = 0;
}

const struct lost_worker *fleet_lost_tag(const struct fleet *fleet, const char *tag)
{
        int64_t oldest = time_now_ms() - (int64_t)fleet->settings->gateway.lost_ttl;
        for (const struct lost_worker *lost = fleet->lost; lost; lost = lost->next)
                if (lost->at_ms >= oldest && strcmp(lost->tag, tag) == 0)
                        return lost;
        return NULL;
}

void lost_free(struct fleet *fleet)
{
        while (fleet->lost)
                drop(fleet, &fleet->lost);
}
