/*
 * The gateway from the inside; for the files of this folder.
 *
 *   serve.c      open, serve, drain, close
 *   routes.c     the table of routes, and the kind of each
 *   admit.c      the key and tenant of a request
 *   target.c     the worker of an id or a name
 *   forward.c    a request to one worker after another, until a worker accepts the request
 *   attempt.c    an attempt: send the request, pass on the answer
 *   find.c       the worker with a name
 *   key.c        the fate of an Idempotency-Key
 *   witness.c    notes at other workers: where an Idempotency-Key is sent
 *   note_cache.c the notes of this gateway, for workers that replace witnesses
 *   witness_message.c   bodies and messages of notes
 *   join.c       an answer from the answers of all workers
 *   lost_runs.c  the ends of runs of lost workers
 *   audit.c      the audit of the workers, in the gateway's store
 *   own.c        health, metrics, scale
 */
#ifndef GATEWAY_GATEWAY_PRIVATE_H
#define GATEWAY_GATEWAY_PRIVATE_H

#include "front/http/http.h"
#include "gateway/fleet/call.h"
#include "gateway/gateway.h"
#include "gateway/pool/pool.h"
#include "store/store.h"

#define TRIES_MAX 16                       /* the ceiling of gateway.tries */
#define ASK_MS 2000                        /* a question to a worker, in milliseconds */
#define REASON_MS 3000                     /* how long the end of a run waits for the reason of its worker's end */
#define LINGER_MS 5000                     /* how long an answer may go on after its worker's process has ended */
#define FIND_AGAIN_MS 200                  /* until all workers are asked again, because one gave no answer */
#define WITNESSES 2                        /* workers that note an Idempotency-Key */
#define KEY_NOTES_MAX 8                    /* notes of witnesses about one Idempotency-Key */
#define RETRY_AFTER_S "1"

struct audit;
struct find;
struct forward;
struct note_cache;
struct key_check;
struct key_noting;
struct lost_run;
struct witness_message;

struct gateway {
        struct loop *loop;
        const struct settings *settings;
        struct hop_keys *keys;             /* NULL: no gateway.key_file */
        struct store *store;               /* NULL: gateway.keys = workers */
        struct audit *audit;               /* NULL: the same */
        struct fetcher *fetcher;           /* NULL: no Kubernetes */
        struct fleet *fleet;
        struct kube *kube;                 /* NULL: no Kubernetes */
        struct pool *pool;                 /* NULL: not owned */
        struct workers *threads;           /* helper threads of the HTTP server */
        struct shares *shares;
        struct http *http;
        struct watch signals;
        struct timer deadline, refresh;    /* refresh: of the keys */
        struct forward *forwards;          /* in progress */
        size_t forwards_n, waiting_n;
        struct witness_message *messages;  /* to witnesses, without answers so far */
        struct note_cache *note_cache;
        struct lost_run *lost_runs;        /* newest first */
        size_t lost_runs_n;
        bool draining, over;
        struct { uint64_t requests, retried, lost, refused, waited; } count;
};

/* ---- routes.c ---- */

/* How the worker of a request is found. */
enum forward_kind {
        FORWARD_NEW,                       /* any worker with room for new work */
        FORWARD_ID,                        /* the worker of an id in the request */
        FORWARD_NAMED,                     /* the worker with a name, or the home of the name */
        FORWARD_SEARCH,                    /* each worker, until the key in the request is good for one */
};
/* The application of a request: a sandbox's by Host or E2b-Sandbox-Id, else the table of routes. */
const struct http_app *gateway_choose_app(void *owner, struct http_request *request);

/* ---- admit.c ---- */

int gateway_admit(struct http_request *request, struct csn_error *err);
static inline struct gateway *gateway_of(const struct http_request *request)
{
        return http_owner(request);
}
/* A text, equal for all requests of a tenant as far as the gateway knows: for names and lost runs. */
const char *gateway_identity(struct http_request *request);
/* The headers of the request with its key, each with a line end, for calls to workers with keys of their own. */
const char *gateway_credentials(struct http_request *request);
/*
 * The claims for a request at `workers_n` workers, which share the quota of the key; NULL: the workers have the keys.
 * Lives in the request's arena.
 */
const struct hop_claims *gateway_claims(struct http_request *request, size_t workers_n);
/* How many of `ready` workers share the quota of the request's key, so that no share is 0; SIZE_MAX: no quota. */
size_t gateway_spread(const struct http_request *request, size_t ready);

/* ---- target.c ---- */

/* The tag of the id in path, Host, headers or query of a request.  false: the request has no valid id. */
bool target_tag(struct http_request *request, char ret_tag[HOP_TAG_LEN + 1]);
/* The same for an id with the seal of an older secret; valid for a worker of the fleet only. */
bool target_old_tag(struct http_request *request, char ret_tag[HOP_TAG_LEN + 1]);
/* Whether the first label of Host, or E2b-Sandbox-Id, is an id of a sandbox. */
bool target_is_sandbox(struct http_request *request);
/* Whether the request is for a port of a sandbox. */
bool target_has_sandbox_app(const struct http_request *request);
/* A name in the request: kind as in POST /v1/gateway/find ("workspace"), and the name.  false: none. */
struct target_name {
        const char *kind;
        const char *name;
        const char *user;                  /* of a workspace; or NULL */
};
bool target_name(struct http_request *request, struct target_name *ret);
/* The Idempotency-Key of a run, in a header, or of a question for its answer, in the path; NULL: none. */
const char *target_key(struct http_request *request);

/* ---- notes about keys (find.c) ---- */

/* A witness's note: an Idempotency-Key was sent to a worker. */
struct key_note {
        char tag[HOP_TAG_LEN + 1];         /* of the worker that the key was sent to */
        char attempt[HOP_ATTEMPT_LEN + 1];
        char pod[254], uid[40];            /* of that worker's pod; "": a worker of the list */
        char hash[65];                     /* of the request's body */
        uint64_t age_ms;
        struct gateway_worker *holder;     /* the witness; a reference */
};

/* At most KEY_NOTES_MAX; all zeros: none. */
struct key_notes {
        struct key_note *list;
        size_t n;
};

/* Copy a note of a holder.  false: there are KEY_NOTES_MAX notes. */
bool key_note_keep(struct key_notes *notes, const struct key_note *note, struct gateway_worker *holder);
void key_notes_free(struct key_notes *notes);

/* ---- forward.c, attempt.c ---- */

enum forward_frames { FRAMES_NONE, FRAMES_SSE, FRAMES_LINES };

/* A request of a client on its way to a worker. */
struct forward {
        struct forward *next;
        struct gateway *gateway;
        struct http_request *request;      /* NULL: answered, or the client has gone */
        enum forward_kind kind;
        struct target_name name;           /* of FORWARD_NAMED; kind NULL: none */
        bool streams;                      /* the body is not in memory, and can be sent once */
        bool safe;                         /* the request may be run twice (retry: safe) */
        bool key_is_free;                  /* no worker has the key */
        enum { FORWARD_WAITING, FORWARD_FINDING, FORWARD_TRYING, FORWARD_ASKING, FORWARD_GRIEVING, FORWARD_OVER } state;
        struct gateway_worker *worker;     /* of the attempt; a reference */
        char boot[33];                     /* of the worker at the attempt's begin */
        char attempt[HOP_ATTEMPT_LEN + 1];
        char spent[TRIES_MAX][HOP_ATTEMPT_LEN + 1];   /* attempts of this request that were not accepted */
        struct gateway_worker *tried[TRIES_MAX];   /* for comparison only */
        size_t tried_n;
        const char *key;                   /* the Idempotency-Key, of the header or the path; or NULL */
        struct key_notes notes;            /* of attempts that were not accepted, to be replaced */
        struct key_notes known;            /* of all searches for the key: a witness may go while the request waits */
        size_t spent_n;                    /* of spent */
        struct gateway_worker *holders[2 * KEY_NOTES_MAX];   /* of the notes of this request; references */
        size_t holders_n;
        uint64_t witness_end_us;           /* until when the request waits for a witness; 0: not yet waited */
        struct key_check *check;
        struct key_noting *noting;
        const struct attempt_events *events;
        struct link *link;
        struct http_answer *answer;        /* NULL: no attempt */
        struct buf head;
        size_t body_at;                    /* sent bytes of a body in memory */
        bool chunked, whole, end_sent;     /* of a streamed body: coding; complete; the last chunk was sent */
        bool took;                         /* a byte of a streamed body was taken */
        bool passed;                       /* the head of the answer was passed on */
        enum forward_frames frames;        /* framing of the answer's body */
        struct worker_call question;
        struct find *find;
        struct timer timer;
        uint64_t wait_end_us;              /* when the request has waited for gateway.wait in all; 0: not yet waited */
        char run[40];                      /* the run's id in the answer so far; "" */
        struct buf begin;                  /* the first bytes of the answer's body, until the id was found */
        size_t line_at;                    /* matched bytes of the line of the answer; SIZE_MAX: another line */
        bool ended;                        /* the last event of a run was passed on */
        uint64_t waits_us;                 /* clock_us() at the begin of the wait */
        char reason[64];                   /* of the worker's loss */
        char why[200];                     /* of the last failure */
};

/* Forward the request; handlers of routes. */
void forward_new(struct http_request *request);
void forward_by_id(struct http_request *request);
void forward_named(struct http_request *request);
void forward_search(struct http_request *request);
/* A worker takes work: waiting requests go on. */
void forwards_wake(struct gateway *gateway);
/* Tell the pool the number of waiting requests, and the wait of the oldest. */
void forwards_tell_pool(struct gateway *gateway);
/* A worker's process has ended. */
void forwards_lose(struct gateway *gateway, struct gateway_worker *worker, const char *reason);
void forwards_close(struct gateway *gateway);

/* The end of an attempt: exactly one call of done() to forgotten(). */
struct attempt_events {
        /* The answer is passed on to its end, or the client was told of an error: forget the request. */
        void (*done)(struct forward *forward);
        /* The worker has not begun the request. */
        void (*not_accepted)(struct forward *forward, const char *why);
        /* The connection ended without an answer, and the worker may have begun the request. */
        void (*uncertain)(struct forward *forward, const char *why);
        /* The worker refuses the request, and the refusal is passed on. */
        void (*refused)(struct forward *forward);
        /* The worker was restarted, and does not have the run of the id. */
        void (*forgotten)(struct forward *forward);
        /* Whether another worker could be tried after a refusal (429 or 503). */
        bool (*has_other)(const struct forward *forward);
};
/* Try forward->worker.  `events` must be constant. */
void attempt_send(struct forward *forward, const struct attempt_events *events);
void attempt_stop(struct forward *forward);

/* ---- find.c ---- */

struct find_result {
        struct gateway_worker *worker;     /* NULL: no worker has the name */
        bool everywhere;                   /* each worker has it */
        bool unsure;                       /* a worker gave no answer */
        struct key_notes notes;            /* of an Idempotency-Key; the callee may take them */
};
typedef void find_done_fn(void *owner, struct find_result *result);
/* Ask all workers for the name; done() is called once, from the loop. */
struct find *find_start(struct gateway *gateway, struct http_request *request, const struct target_name *name,
        find_done_fn *done, void *owner);
void find_stop(struct find *find);       /* NULL is allowed; without done() */

/* ---- key.c ---- */

enum key_fate {
        KEY_FREE,                          /* no worker has the key, and no earlier attempt can arrive any more */
        KEY_FOUND,                         /* a worker has it */
        KEY_LOST,                          /* a worker was sent it, and is gone */
        KEY_UNSURE,                        /* a worker may have it, and does not answer: ask again */
};
struct key_answer {
        enum key_fate fate;
        struct gateway_worker *worker;     /* of KEY_FOUND */
        const struct key_note *note;       /* of KEY_LOST */
        struct key_notes *notes;           /* of KEY_FREE; the callee may take them */
        const char *why;                   /* of KEY_UNSURE */
};
typedef void key_done_fn(struct forward *forward, const struct key_answer *answer);
/* Find out about forward->key; done() is called once, from the loop, after forward->check was set to NULL. */
struct key_check *key_check_start(struct forward *forward, key_done_fn *done);
void key_check_stop(struct key_check *check);   /* NULL is allowed; without done() */

/* ---- witness_message.c ---- */

/* The tenant of messages. */
struct witness_sender {
        struct gateway *gateway;
        const struct hop_claims *claims;   /* NULL: the workers have the keys */
        const char *head;                  /* the headers with the key, each with a line end */
};
/* The body of a note; takes the reference to `replaces`, attempts that the note replaces. */
json_t *witness_body(const struct hop_claims *claims, const char *key, const struct key_note *note, json_t *replaces);
/* The body that takes back the note of an attempt. */
json_t *witness_withdrawal(const struct hop_claims *claims, const char *key, const char *attempt);
/* Send a body to workers; nothing waits for the answers.  Takes the reference. */
void witness_tell(const struct witness_sender *sender, struct gateway_worker *const *workers, size_t n, json_t *body);
void witness_messages_close(struct gateway *gateway);

/* ---- witness.c ---- */

enum key_noted {
        KEY_NOTED,                         /* a witness has the note, or there is no other worker */
        KEY_TAKEN,                         /* a witness knows of another attempt */
        KEY_UNNOTED,                       /* no witness answers */
};
typedef void key_noted_fn(struct forward *forward, enum key_noted noted);
/*
 * Note forward->attempt at the witnesses, in place of forward->notes; done() is called once, from the loop, after
 * forward->noting was set to NULL.
 */
struct key_noting *key_noting_start(struct forward *forward, struct gateway_worker *worker, key_noted_fn *done);
void key_noting_stop(struct key_noting *noting);   /* NULL is allowed; without done() */
/* Give notes that fewer than two workers have to other workers; nothing waits for the answers. */
void key_renew(struct forward *forward, const struct key_notes *notes);
/* The attempt was not sent or not accepted: take the notes back.  Nothing if there are none. */
void key_withdraw(struct forward *forward);
void key_forget_holders(struct forward *forward);
/* The tenant and the key of the request, for the choice of witnesses.  Lives in the request's arena. */
const char *key_name(const struct forward *forward);
/* Whether the note is of the same request.  A question for the key has no body, and is. */
bool key_is_of_request(struct http_request *request, const struct key_note *note);

/* ---- note_cache.c ---- */

/* Keep the notes of gateway.notes_max keys for gateway.lost_ttl. */
void note_cache_open(struct gateway *gateway);
void note_cache_close(struct note_cache *cache);   /* before the fleet; NULL is allowed */
/* The worker that a key is sent to, and the witnesses that have the note. */
struct note_holders {
        struct gateway_worker *worker;
        struct gateway_worker *const *witnesses;
        size_t n;
};
/* Keep a note in place of an older one with this name. */
void note_cache_add(struct note_cache *cache, const struct witness_sender *sender, const char *name, const char *key,
        const struct key_note *note, const struct note_holders *holders);
/* The attempt was not accepted. */
void note_cache_drop(struct note_cache *cache, const char *name, const char *attempt);
/* Add the note with this name to the notes of witnesses, if the worker of the note has gone. */
void note_cache_tell(struct note_cache *cache, const char *name, struct key_notes *notes);
/* The fleet has changed: other workers get the notes of witnesses that have gone. */
void note_cache_wake(struct note_cache *cache);

/* ---- join.c ---- */

/* Ask all workers, and answer with the sum of their answers: numbers are added, lists joined. */
void join_all(struct http_request *request);
void join_alike(struct http_request *request);      /* each worker has the object */

/* ---- lost_runs.c ---- */

/* The end of a request of a lost worker. */
struct lost_end {
        const char *text;                  /* a sentence; lives in the request's arena */
        const char *worker;
        const struct lost_run *run;        /* kept for later questions; NULL: the request was no run */
};
/* Keep the end of the run, and write the audit. */
void lost_keep(struct forward *forward, struct lost_end *ret);
/* Answer the request with the end: before anything was passed on, or as the last event of a stream. */
void lost_answer(struct http_request *request, const struct lost_end *end);
void lost_end_stream(struct http_request *request, const struct lost_end *end, enum forward_frames frames);
/* Keep the end of a run of a lost worker, by the note of a witness. */
const struct lost_run *lost_keep_noted(struct http_request *request, const char *key, const struct key_note *note);
/* The end of a lost run of the client, by the id in the path or the Idempotency-Key; NULL: none. */
const struct lost_run *lost_find(struct http_request *request);
void lost_answer_run(struct http_request *request, const struct lost_run *run);
/* Answer for an id without a worker in the fleet. */
void lost_answer_tag(struct http_request *request, const char *tag);
void lost_runs_close(struct gateway *gateway);

/* ---- audit.c ---- */

/* Begin to take the audit of all workers into gateway->store. */
void audit_open(struct gateway *gateway);
void audit_close(struct audit *audit);   /* before the fleet and the store; NULL is allowed */
/* Add the newest runs of lost workers of the tenant to a list of GET /v1/runs, up to the request's limit. */
void audit_add_gone(struct http_request *request, json_t *runs);

/* ---- own.c ---- */

void own_health(struct http_request *request);
void own_ready(struct http_request *request);
void own_metrics(struct http_request *request);
void own_scale(struct http_request *request);
void own_workers(struct http_request *request);

#endif
