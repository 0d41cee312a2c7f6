/* call: a request of the gateway itself to a worker, with the whole answer in memory. */
#ifndef GATEWAY_FLEET_CALL_H
#define GATEWAY_FLEET_CALL_H

#include "gateway/fleet/link.h"
#include "net/http_answer.h"

#define CALL_ANSWER_MAX (4 * MIB)          /* bytes of an answer */

/* How a call ended. */
enum call_end {
        CALL_ANSWERED,
        CALL_REFUSED,                      /* no connection: the worker has not seen the request */
        CALL_BROKEN,                       /* the connection ended, or the answer is no HTTP */
        CALL_LATE                          /* no answer in time */
};

struct worker_call;
typedef void call_done_fn(struct worker_call *call, enum call_end end, const char *why);

/* Embedded in the caller's object; all zeros: no call. */
struct worker_call {
        struct gateway_worker *worker;     /* NULL: no call in progress */
        void *owner;
        call_done_fn *done;                /* called once, from the loop */
        struct http_answer *answer;        /* status and headers; valid in done() */
        struct buf body;                   /* of the answer; valid in done() */

        struct link *link;
        struct buf request;
        bool again;                        /* the request was sent twice, for a waiting link was closed */
        struct timer limit;
        char failure[120];
        enum call_end end;
};

/*
 * Start a call.  `head` are further headers, each with its line end, or NULL; body NULL: none.  ms limits the call.
 * Signed by the fleet's keys with these claims (or NULL).  A request on a link that the worker closed meanwhile is
 * sent once more on a new one; so only calls that may be repeated are made here.
 */
void worker_call_start(struct worker_call *call, struct gateway_worker *worker, const char *method, const char *target,
        const struct hop_claims *claims, const char *head, const char *body, size_t body_len, uint64_t ms);
/* Cancel without done().  Harmless twice, and after done(). */
void worker_call_stop(struct worker_call *call);

#endif
