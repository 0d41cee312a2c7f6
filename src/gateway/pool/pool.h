/*
 * pool: worker pods that the gateway owns (kubernetes.mode = owned).
 *
 *   template.c  the pod of a worker, from the settings or a file; its hash            (template.h)
 *   pool.c      what is to be done with the pods, each second and after each change
 *   acts.c      create, cordon, delete: requests to the API server                    (acts.h)
 *   scale.c     the wanted number, from the load                                      (pure, unit-tested; scale.h)
 *   lease.c     one gateway removes pods; all create                                  (lease.h)
 *
 * Pods are named PREFIX-0 to PREFIX-(max - 1).  The API server is the lock: a POST of an existing name is a 409, so any
 * number of gateways never make more than pool_max pods, counted in every phase.  Each deletion has the precondition of
 * the pod's uid.
 *
 * A pod is drained before its deletion: the annotation caisson.dev/cordoned ("scale TIME", "roll TIME") tells all
 * gateways to send no new work, and outlives a gateway.  Any other value is a person's: no new work, and no deletion.
 */
#ifndef GATEWAY_POOL_POOL_H
#define GATEWAY_POOL_POOL_H

#include "gateway/kube/kube.h"

struct pool;

/* Times, changed by tests alone.  Milliseconds. */
struct pool_times {
        uint64_t step;                     /* between two looks at the pods */
        uint64_t stuck;                    /* a pod that cannot start for so long is replaced; doubles with failures */
        uint64_t ready;                    /* a pod that was never ready for so long is replaced */
        uint64_t lost;                     /* a pod that neither its node nor its worker answers for is replaced */
        uint64_t hold;                     /* no pod is made for so long after a refusal by quota or rights */
        uint64_t invalid;                  /* the same after a refusal of the pod itself */
        uint64_t backoff_min, backoff_max; /* between a failed pod and the next one */
        uint64_t expected;                 /* how long a pod that was made may be missing in the watch */
        uint64_t lease;                    /* duration of the lease */
        uint64_t up_after, down_every;     /* as in scale.h */
};

/* The pool is the kube's one listener, and one of the fleet's.  Errors: CSN_E_CONFIG, which names the setting. */
int pool_new(struct loop *loop, const struct settings *settings, struct fleet *fleet, struct kube *kube,
        struct pool **ret, struct csn_error *err);
void pool_set_times(struct pool *pool, const struct pool_times *times);   /* before the first step of the loop */
/* Before kube_close() and fleet_close().  Pods stay.  NULL is allowed. */
void pool_free(struct pool *pool);

/* A request found no ready worker: make one, if the maximum allows it. */
void pool_wake(struct pool *pool);
/* How many requests wait in this gateway, and how long (p95, or the oldest one).  Holds until the next call. */
void pool_set_waiting(struct pool *pool, uint64_t requests, uint64_t wait_ms);
/* Why no worker can be made, in words: quota, rights, image; "": nothing is known.  Valid until the next call. */
const char *pool_trouble(struct pool *pool);

struct pool_facts {
        uint64_t pods;                     /* in every phase */
        uint64_t ready, wanted, maximum;
        double utilization;                /* slots in use and queued, over slots */
        bool leads;                        /* this gateway holds the lease */
};
void pool_facts(const struct pool *pool, struct pool_facts *ret);

#endif
