/* nemo: sessions of NeMo-Skills, for the files of that front. */
#ifndef FRONT_TRAINERS_NEMO_H
#define FRONT_TRAINERS_NEMO_H

#include "front/service/service.h"

#define NEMO_SESSION_MAX 200               /* bytes of the id of a session, which the client chooses */

struct nemo_session;

/* The state of the front. */
struct nemo_state {
        struct nemo_session *sessions;
};

/* A pending wait for the context of a session; embedded in the caller's object.  Zero: not waiting. */
struct nemo_waiter {
        struct nemo_waiter *next;
        struct nemo_session *session;
        /* Called once, at once or later: the id of the context, or an error. */
        void (*done)(struct nemo_waiter *waiter, const char *context, const struct csn_error *error);
        void *owner;
};

/*
 * Find or make the session of the tenant of a request, and wait for its context.  After a negative result done() is not
 * called.  Errors: those of psandbox_open(), with *ret_limit those of service_has_cpu_time().
 */
int nemo_session_open(struct http_request *request, const char *id, struct nemo_waiter *waiter,
        struct http_limit *ret_limit, struct csn_error *err);
void nemo_session_unwait(struct nemo_waiter *waiter);   /* harmless twice */
/* Whether no execution has ended in the session of this id. */
bool nemo_session_is_new(const struct service *service, const char *tenant, const char *id);
/* An execution has ended in it. */
void nemo_session_used(const struct service *service, const char *tenant, const char *id);
/* End a session.  False: the tenant has none of this id. */
bool nemo_session_delete(const struct http_request *request, const char *id);
bool nemo_session_exists(const struct service *service, const char *tenant, const char *id);
/* The sessions of the tenant: {id: {backend, created, last_used, alive}}.  The caller's reference. */
json_t *nemo_sessions_list(const struct http_request *request);
void nemo_sessions_close(struct service *service);

#endif
