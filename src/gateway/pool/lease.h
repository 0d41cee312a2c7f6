/*
 * pool_lease: one of several gateways removes pods, by a Lease of coordination.k8s.io/v1.
 *
 * The holder renews the lease three times in its duration.  Another gateway takes the lease when it has seen the same
 * renewal for the whole duration by its own clock, so clocks need not agree.
 */
#ifndef GATEWAY_POOL_LEASE_H
#define GATEWAY_POOL_LEASE_H

#include "gateway/kube/kube.h"

struct pool_lease {
        struct loop *loop;
        struct kube *kube;
        char name[64], identity[160];
        uint64_t duration_ms;
        struct timer timer;
        uint64_t asked_us;                 /* of the request in flight */
        uint64_t held_until_us;            /* of this gateway's own lease; 0: another one's */
        char seen[64];                     /* resourceVersion of another one's renewal */
        uint64_t seen_us;
        char trouble[400];                 /* why there is no lease, in words; or "" */
        void (*changed)(void *owner);      /* holds, or not any more */
        void *owner;
        bool held;                         /* as changed() was told */
};

/* The name of the lease follows from kubernetes.pod_prefix.  changed() is called from the loop. */
void pool_lease_start(struct pool_lease *lease, struct loop *loop, struct kube *kube, const char *prefix,
        uint64_t duration_ms, void (*changed)(void *owner), void *owner);
/* The lease ends with its duration.  Harmless twice. */
void pool_lease_stop(struct pool_lease *lease);
bool pool_lease_is_held(const struct pool_lease *lease);

#endif
