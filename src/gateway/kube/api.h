/*
 * kube_api: requests to the API server of Kubernetes: its address, its authority, the token, and refusals in words.
 *
 * The address is kubernetes.api_url, or KUBERNETES_SERVICE_HOST and _PORT of the gateway's own pod.
 */
#ifndef GATEWAY_KUBE_API_H
#define GATEWAY_KUBE_API_H

#include "gateway/kube/kube.h"

struct kube_request;

struct kube_api {
        struct loop *loop;
        struct fetcher *fetcher;
        const struct kubernetes_settings *settings;
        const struct kube_times *times;    /* the owner's */
        char url[2100];                    /* without a slash at the end */
        char namespace[64];
        char *token;                       /* NULL: none */
        uint64_t token_us;                 /* clock_us() of its last reading */
        struct kube_request *requests;
};

/* Errors: CSN_E_CONFIG, which names the setting. */
int kube_api_open(struct kube_api *api, struct loop *loop, struct fetcher *fetcher, const struct settings *settings,
        const struct kube_times *times, struct csn_error *err);
void kube_api_close(struct kube_api *api);

/* Read the token's file again; a file that cannot be read leaves the old token. */
void kube_api_renew_token(struct kube_api *api);
/*
 * Prepare a request; fetch_start() is the caller's.  *headers belongs to the caller, and must outlive the request.
 * content_type: NULL without a body.  Errors: CSN_E_SYSTEM.
 */
int kube_api_prepare(struct kube_api *api, struct fetch *fetch, const char *path, const char *content_type,
        struct curl_slist **headers, struct csn_error *err);
/* kube_ask(). */
void kube_api_ask(struct kube_api *api, const char *method, const char *path, json_t *body, kube_answered_fn *answered,
        void *owner);
/* kube_forget(). */
void kube_api_forget(struct kube_api *api, const void *owner);
/* The Retry-After of an answer in milliseconds, at most ten minutes; 0: none. */
uint64_t kube_api_retry_after(CURL *easy);

/* ---- refusals in words (refusal.c) ---- */

struct kube_question {
        const char *url, *namespace, *token_file;
        const char *method;                /* GET, POST, PUT, PATCH, DELETE; GET with the path "pods": list and watch */
        const char *path;                  /* as of kube_ask() */
};

/* What an answer means.  err has words for all but KUBE_DONE; message: Status.message, or why none came. */
enum kube_refusal kube_explain(const struct kube_question *question, long status, const char *reason,
        const char *message, struct csn_error *err);

#endif
