/*
 * kube: pods of a Kubernetes namespace as workers of the fleet, by the core API alone (HTTP/1.1, JSON).
 *
 *   api.c      requests: address, authority, token                                    (api.h)
 *   refusal.c  refusals of the API server in words                                    (pure, unit-tested; api.h)
 *   stream.c   the items of a list, the lines of a watch                              (pure, fuzzed; stream.h)
 *   pod.c      a pod of the API as struct kube_pod                                    (pure, unit-tested)
 *   watch.c    list and watch by a label; the fleet follows
 *
 * The token of the service account rotates: the file is read again each minute, and once after a 401.  A watch is a
 * hint that a pod exists; the connections of the fleet say that the pod lives.  Without the API server the last known
 * workers stay.
 */
#ifndef GATEWAY_KUBE_KUBE_H
#define GATEWAY_KUBE_KUBE_H

#include "gateway/fleet/fleet.h"
#include "net/http_client.h"

struct kube;

/* Annotations of a pod: the hash of its template, and the mark that the pod gets no new work. */
#define KUBE_TEMPLATE "caisson.dev/template"
#define KUBE_CORDONED "caisson.dev/cordoned"

/* A pod with the label, as last seen. */
struct kube_pod {
        struct kube_pod *next;
        struct kube_pod *bucket_next;      /* of the pods with the same hash of the name */
        char name[254], uid[40];
        char resource_version[32];
        char phase[16];                    /* Pending, Running, Succeeded, Failed, Unknown */
        char ip[64];                       /* "": none yet */
        char node[254];
        char template_hash[65];            /* the annotation of the pool, or "" */
        char cordon[48];                   /* value of the annotation KUBE_CORDONED, or "" */
        char reason[64];                   /* why it ended: OOMKilled, Error, Evicted, NodeLost; or "" */
        char restart_reason[64];           /* the same of the worker's last restart, or "" */
        char waiting[64], waiting_text[200];   /* why it does not start: ImagePullBackOff, Unschedulable, …; or "" */
        bool ready, deleting, cordoned;    /* deleting: deletionTimestamp; cordoned: the annotation is not "false" */
        uint64_t restarts;                 /* of the worker's container */
        int64_t created_ms;                /* since 1970; 0: unknown */
        uint64_t list;                     /* number of the newest list or watch that had the pod */
        struct gateway_worker *worker;     /* NULL: no address yet, or over */
        void *owner;                       /* the pool's own */
};

struct kube_events {
        void (*pod)(void *owner, struct kube_pod *pod);      /* new or changed */
        void (*gone)(void *owner, struct kube_pod *pod);     /* freed after the call */
        void (*listed)(void *owner);                         /* the first list is complete, or a list after a gap */
};

/* What an answer of the API server means. */
enum kube_refusal {
        KUBE_DONE,                         /* 2xx */
        KUBE_UNREACHABLE,                  /* no answer: the request may have been carried out */
        KUBE_TOKEN_REFUSED,                /* 401 */
        KUBE_RIGHTS_MISSING,               /* 403 of RBAC */
        KUBE_QUOTA_REACHED,                /* 403 of a ResourceQuota */
        KUBE_POD_REFUSED,                  /* 403 of an admission, such as Pod Security */
        KUBE_NOT_FOUND,                    /* 404 of an object */
        KUBE_NAMESPACE_MISSING,            /* 404 of the namespace, or the namespace ends */
        KUBE_EXISTS,                       /* 409 AlreadyExists */
        KUBE_CONFLICT,                     /* 409 of a precondition: the object is another one, or has changed */
        KUBE_EXPIRED,                      /* 410: the revision is too old */
        KUBE_INVALID,                      /* 400, 415, 422: what was sent is wrong */
        KUBE_BUSY,                         /* 429 */
        KUBE_FAILED,                       /* any other status */
        KUBE_REFUSALS
};

/* An answer of the API server.  Valid during the call. */
struct kube_answer {
        enum kube_refusal refusal;
        long status;                       /* 0: no answer came */
        json_t *body;                      /* or NULL; the kube's */
        const char *reason;                /* Status.reason, such as AlreadyExists; "" */
        const struct csn_error *error;     /* of a failure, in words, with the remedy; NULL: KUBE_DONE */
        uint64_t retry_after_ms;           /* of a 429 or 503; 0: not told */
};
typedef void kube_answered_fn(void *owner, const struct kube_answer *answer);

/* Times, changed by tests alone. */
struct kube_times {
        unsigned watch_s;                  /* timeoutSeconds of a watch */
        uint64_t silent_ms;                /* a watch without a byte for so long is replaced */
        uint64_t backoff_min_ms, backoff_max_ms;
        uint64_t token_ms;                 /* between two readings of the token */
        uint64_t request_ms;               /* limit of a request, and of the head of a watch's answer */
};

/* Errors: CSN_E_CONFIG, which names the setting. */
int kube_open(struct loop *loop, struct fetcher *fetcher, const struct settings *settings, struct fleet *fleet,
        struct kube **ret, struct csn_error *err);
/* One listener. */
void kube_listen(struct kube *kube, const struct kube_events *events, void *owner);
void kube_set_times(struct kube *kube, const struct kube_times *times);
void kube_start(struct kube *kube);
/* Requests in flight end without an answer.  Workers stay in the fleet.  NULL is allowed. */
void kube_close(struct kube *kube);

struct kube_pod *kube_first(const struct kube *kube);
bool kube_has_listed(const struct kube *kube);
/* Whether the API server answers; the text says since when not and why.  For /healthz and metrics. */
bool kube_is_connected(const struct kube *kube, char *ret_why, size_t size);

/*
 * Send a request; answered() is called once from the loop, and never after kube_close().  The path is below the
 * namespace: "pods", "pods/NAME", "leases/NAME" (coordination.k8s.io/v1), with a query if needed.  A PATCH is a merge
 * patch.  The body's reference becomes the callee's; NULL: none.  A 429 is retried by Retry-After, a 401 once with the
 * token read again.
 */
void kube_ask(struct kube *kube, const char *method, const char *path, json_t *body, kube_answered_fn *answered,
        void *owner);
/* End the requests of this owner without an answer; each may have been carried out. */
void kube_forget(struct kube *kube, const void *owner);

/*
 * Read a pod of the API; the members that are no part of the object are zero after it.  false: the object has no
 * usable name or uid.
 */
bool kube_pod_read(const json_t *object, struct kube_pod *ret);
/* A time of the API, RFC 3339 in UTC, in milliseconds since 1970.  false: no such time. */
bool kube_time_parse(const char *text, int64_t *ret_ms);

#endif
