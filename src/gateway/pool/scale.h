/*
 * pool_scale: how many worker pods are wanted, from the load.  A pure function of its arguments; times are clock_us().
 *
 * Demand is what runs and waits, in slots.  Utilization is demand over the slots of ready workers.
 */
#ifndef GATEWAY_POOL_SCALE_H
#define GATEWAY_POOL_SCALE_H

#include "base/base.h"

#define SCALE_UP_AFTER_MS 3000             /* usual times of struct scale_limits */
#define SCALE_DOWN_EVERY_MS 30000
#define SCALE_WAIT_MS 100                  /* a request that waits longer is a reason for a pod */

struct scale_limits {
        uint64_t pool_min, pool_max;       /* pods */
        unsigned up_at, down_at;           /* utilization in percent */
        uint64_t up_after_us;              /* how long utilization or waiting has to be high */
        uint64_t down_after_us;            /* how long utilization has to be low */
        uint64_t down_every_us;            /* between two removals */
};

struct scale_load {
        uint64_t now_us;
        uint64_t ready;                    /* workers that are ready, and not cordoned */
        uint64_t pods;                     /* pods that are to stay, ready or not yet */
        uint64_t slots;                    /* of the ready workers */
        uint64_t running, queued;          /* of the ready workers */
        uint64_t waiting;                  /* requests that wait in this gateway */
        uint64_t wait_ms;                  /* how long: p95, or the oldest */
        uint64_t idle; /* pods without sandboxes and runs for kubernetes.idle: they may be removed */
        bool woken;                        /* a request found no ready worker */
        bool may_remove;                   /* this gateway holds the lease */
};

struct scale_state {
        uint64_t wanted;                   /* pods; between pool_min and pool_max */
        uint64_t high_us, low_us;          /* since when demand is high, or low; 0: it is not */
        uint64_t removed_us;               /* of the last removal; 0: none */
};

struct scale_step {
        bool remove;                       /* remove one idle pod; `wanted` falls when its removal begins */
        double utilization;                /* 0 without slots and without demand; 1 without slots and with demand */
};

/* Begin with the pods that are there. */
void scale_begin(struct scale_state *state, const struct scale_limits *limits, uint64_t pods);
/* Change state->wanted. */
struct scale_step scale_step(struct scale_state *state, const struct scale_limits *limits,
        const struct scale_load *load);

#endif
