/*
 * run: a run that a request started, from its start until its record can no longer be asked for; see service.h for what
 * fronts of other services use of it.
 *
 * A run goes on (run is not NULL), is over and kept (watched), or is freed.  It is freed when its record was answered,
 * or when SERVICE_KEEP_US have passed, or when kept results need more than engine.kept_bytes.
 */
#ifndef FRONT_SERVICE_RUN_H
#define FRONT_SERVICE_RUN_H

#include "front/service/long_record.h"
#include "front/service/service.h"

struct service_run {
        struct service_run *next;
        struct service *service;
        struct run *run;                   /* NULL: it is over */
        char id[40];
        char tenant[80], key[20], request_id[65];
        struct trace trace;                /* its span, below the request's */
        bool aliases;
        bool as_text;                      /* the waiting request is answered with text in `form` */
        int form;                          /* enum text_form, or SERVICE_OWN_FORM */
        struct idempotency
                *name; /* Idempotency-Key of its request, in the run's arena; NULL: none, or it has its answer */
        const struct run_responder *responder;   /* NULL: the answer is the record */
        void *own;                         /* the responder's */
        struct share_charge body;          /* of the request's body, of which the run keeps what is needed */
        struct http_request *waiting;      /* gets the record at the end, or NULL */
        bool watched;                      /* events and the record are kept after the end */
        struct events events;
        /* Of a run that goes on, the next four are for on_encode() alone. */
        struct buf record, text;
        struct long_record file;           /* of a long record that is asked for later; `record` is freed at the end */
        bool recorded;                     /* the record is whole */
        bool filed;                        /* after the end: the record is in a file, of the store or `file` */
        uint64_t number;                   /* order in lists; later runs have a higher one */
        uint64_t created_us;
        int64_t created_ms;
        /* Of the request, and after the end of the record. */
        char language[33], profile[65];
        int status;                        /* enum status; -1: the run goes on */
        double total_ms;
        struct timer expiry;
};

#define SERVICE_OWN_FORM (-1)          /* the form of text that the record has, from the request or its profile */
#define SERVICE_TEXT_TYPE "text/plain; charset=utf-8"

/* A new one for a run that was not started; takes the run. */
struct service_run *service_run_new(struct http_request *request, struct run *run, bool watched);
/* Write its begin into the audit.  Errors: those of audit_begin(). */
int service_run_begin(struct service_run *one, struct csn_error *err);
/* Start it, after service_run_begin(). */
void service_run_start(struct service_run *one);
/* Answer the request at the end of the run.  A client that goes ends the run, unless the run has an Idempotency-Key. */
void service_run_wait(struct service_run *one, struct http_request *request);
void service_run_free(struct service_run *one);

/* A kept run of the request's tenant; NULL: there is none. */
struct service_run *service_run_find(const struct http_request *request, const char *id);
/* A run of the tenant that goes on, also one whose record is only for the waiting client; NULL: there is none. */
struct service_run *service_run_find_running(const struct http_request *request, const char *id);

/*
 * In place of the status of an answer above SERVICE_STORED_MAX: the answer is the record of a run, and the kept text is
 * the id of this run.
 */
#define SERVICE_ANSWER_IS_RECORD 0
/* Keep the answer under the Idempotency-Key of the run, if it has one. */
void service_run_answer_name(struct service_run *one, int http, const char *text, size_t len);
/* Forget the Idempotency-Key of a request that came to nothing. */
void service_run_drop_name(struct service_run *one);

void service_runs_cancel(struct service *service);
void service_runs_close(struct service *service);

#endif
