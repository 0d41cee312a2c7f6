/* The fleet from the inside; for the files of this folder. */
#ifndef GATEWAY_FLEET_FLEET_PRIVATE_H
#define GATEWAY_FLEET_FLEET_PRIVATE_H

#include "gateway/fleet/call.h"

#define FLEET_LISTENERS_MAX 4
#define FLEET_LOST_MAX 10000               /* workers that are remembered; the oldest are forgotten first */

struct fleet {
        struct loop *loop;
        const struct settings *settings;
        const struct hop_keys *keys;
        struct resolver *resolver;         /* opened for the first name */
        struct gateway_worker *first;
        struct { const struct fleet_events *events; void *owner; } listeners[FLEET_LISTENERS_MAX];
        size_t listeners_n;
        struct lost_worker *lost;          /* newest first */
        size_t lost_n;
        uint64_t changed_us;               /* when a pod came, became ready for the first time, or left; 0: never */
};

/* worker.c: set the state, and tell the listeners. */
void worker_set_state(struct gateway_worker *worker, enum worker_state state, const char *why);
/* worker.c: tell the listeners that the worker takes work, or takes none any more. */
void worker_tell_changed(struct gateway_worker *worker);

/* heartbeat.c */
void heartbeat_start(struct gateway_worker *worker);
void heartbeat_stop(struct gateway_worker *worker);
void heartbeat_now(struct gateway_worker *worker);

/* lost.c: the worker's process has ended: remember the worker, tell the listeners, forget the boot id. */
void worker_lose(struct gateway_worker *worker, const char *reason);
void lost_free(struct fleet *fleet);

#endif
