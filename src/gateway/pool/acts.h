/*
 * acts: requests of a pool to the API server, one of a kind at a time.
 *
 * The answer to a creation changes the pool's slots and times; the answers to the others are seen by the watch.
 */
#ifndef GATEWAY_POOL_ACTS_H
#define GATEWAY_POOL_ACTS_H

#include "gateway/pool/lease.h"
#include "gateway/pool/pool.h"
#include "gateway/pool/scale.h"

enum act_kind { ACT_CREATE, ACT_CORDON, ACT_DELETE, ACT_KINDS };

/* A name of the pool.  Times are clock_us(). */
struct pool_slot {
        bool taken;                        /* a pod had the name at the last look */
        uint64_t expected_us;              /* a pod was made, and has to be in the watch until then; 0: none */
        uint64_t foreign_us;               /* a pod without the label has the name: not tried again until then */
        unsigned existing;                 /* answers 409 in a row */
};

/* What the pool knows of a pod; kube_pod.owner. */
struct pool_pod {
        uint64_t seen_us;                  /* when this gateway saw the pod first */
        uint64_t idle_us;                  /* since when there are no sandboxes and runs; 0: there are */
        uint64_t requests;                 /* gateway_worker.requests at the last look */
        uint64_t waiting_us;               /* since when the pod cannot start; 0: it can */
        uint64_t down_us;                  /* since when neither the node nor the worker answers; 0: one does */
        uint64_t cordon_asked_us, cordon_seen_us, delete_asked_us;   /* 0: not */
        bool was_ready, has_failed;        /* has_failed: counted in pool.failures */
};

struct pool_act {
        struct pool *pool;                 /* NULL: none in flight */
        enum act_kind kind;
        size_t index;                      /* of ACT_CREATE */
        char name[254];
};

struct pool {
        struct loop *loop;
        const struct settings *settings;
        const struct kubernetes_settings *set;
        struct fleet *fleet;
        struct kube *kube;
        struct pool_times times;
        json_t *template;
        const char *hash;                  /* the template's */
        struct pool_lease lease;
        struct scale_state scale;
        double utilization;
        bool begun;                        /* the first list was seen */
        bool woken;
        uint64_t waiting, wait_ms;
        struct pool_slot *slots;           /* pool_max */
        struct pool_act acts[ACT_KINDS];
        uint64_t create_after_us;
        uint64_t act_after_us[ACT_KINDS];  /* of ACT_CORDON and ACT_DELETE, after a refusal */
        unsigned failures;                 /* pods in a row that did not become ready */
        char refused[512];      /* why the last creation was refused, or "" */
        char trouble[512];      /* pool_trouble() */
        struct timer timer;
};

/* Look at the pods with the next turn of the loop. */
void pool_step_soon(struct pool *pool);

bool act_is_free(const struct pool *pool, enum act_kind kind);
void act_create(struct pool *pool, size_t index);
/* Mark the pod by "WORD TIME", if it has not changed since the pool saw it. */
void act_cordon(struct pool *pool, struct kube_pod *pod, const char *word);
void act_delete(struct pool *pool, struct kube_pod *pod, const char *why);
/* End the requests in flight. */
void acts_stop(struct pool *pool);

#endif
