/* Shared by the files of src/review. */
#ifndef REVIEW_REVIEW_PRIVATE_H
#define REVIEW_REVIEW_PRIVATE_H

#include "base/worker.h"
#include "model/settings.h"
#include "review/review.h"

#include <sys/stat.h>

/* ---- prompt.c ---- */

/* The system prompt of Caisson.  {whitelisted_tools} stands for the list of tools. */
extern const char review_prompt[];

/*
 * The sorted list of tools as lines "- name", or "- [None provided]".  Names with other characters than those of a name
 * are left out.
 */
char *review_tools_list(char *const *tools, size_t n, struct arena *arena);
/* The system prompt with the list of tools. */
char *review_system_message(const char *prompt, const char *tools, struct arena *arena);
/*
 * Whether a value of the environment has the form of a secret: letters, digits and the marks of keys and addresses,
 * with a digit.  A request names its values, and must not be able to hide a piece of code from the reviewer.
 */
bool review_is_secret(const char *value);
/* The code with [SECRET] in place of secrets of the environment. */
struct bytes review_without_secrets(struct bytes code, const struct pair *env, size_t env_n, struct arena *arena);
/* Append text with control characters, bidirectional marks and invisible characters as \u{..}; bytes as \x{..}. */
bool review_add_visible(struct buf *buf, const char *bytes, size_t len);
/* The user message: the code between two lines of a boundary, which is nowhere in the code.  NULL: too long. */
char *review_user_message(const char *language, struct bytes code, struct arena *arena);

/* ---- answer.c ---- */

/*
 * Read a verdict from the text of an answer into verdict, reason, risk, findings and extra of *ret.  An object that
 * `code` has is none; a remembered answer is read without code.  *ret_text is the object as text, for the cache.
 * NULL, or why there is no verdict.
 */
const char *review_answer_read(const char *text, size_t len, struct bytes code, struct arena *arena, struct review *ret,
        char **ret_text);

/* ---- completion.c ---- */

/* Members of a request which the server has refused. */
struct review_ladder {
        int format;            /* review_formats_JSON_SCHEMA and the next ones */
        bool no_temperature;
        bool completion_tokens; /* the server takes max_completion_tokens and not max_tokens */
};

/* The body of POST chat/completions, from malloc(3). */
char *review_chat_body(const struct review_settings *settings, const struct review_ladder *ladder, const char *system,
        const char *user);
/* The JSON of review.command and review.url, from malloc(3). */
char *review_hook_body(const struct review_query *query, struct bytes code);
/*
 * Take a step of the ladder after an answer with an error.  false: the error is about another matter.  `fixed`: the
 * settings name the format.
 */
bool review_ladder_step(struct review_ladder *ladder, bool fixed, long status, const char *body, size_t len);

/* A complete answer.  Texts are from the arena. */
struct review_completion {
        const char *problem;   /* why there is no verdict; NULL: content is set */
        const char *content;
        size_t content_len;
        bool has_usage;        /* the server has reported valid numbers */
        struct review_usage usage; /* of this answer alone; calls and cost are not set */
};

void review_chat_read(const char *body, size_t len, struct arena *arena, struct review_completion *ret);
void review_hook_read(const char *body, size_t len, struct arena *arena, struct review_completion *ret);

/* ---- price.c ---- */

/* Nano-dollars for a million tokens. */
struct review_price {
        uint64_t input, output, cached;
};

/*
 * The prices of a model by the settings, and by the text of review.price.file (NULL: none).  Errors: CSN_E_CONFIG.
 */
int review_price_read(const struct settings *settings, const char *file, size_t len, struct review_price *ret,
        struct csn_error *err);
/* Nano-dollars, rounded to the nearest; UINT64_MAX if more. */
uint64_t review_price_of(const struct review_price *price, const struct review_usage *usage);

/* ---- cache.c ---- */

#define REVIEW_KEY_SIZE 32             /* SHA-256 */
#define REVIEW_CACHED_MAX (8 * KIB)    /* bytes of a remembered object */

struct review_cache;
struct review_cache *review_cache_new(void);
void review_cache_free(struct review_cache *cache);
/* The object of a verdict, valid until review_cache_put(); NULL: none. */
const char *review_cache_find(struct review_cache *cache, const uint8_t key[REVIEW_KEY_SIZE]);
/* Remember a verdict; the least recently used verdicts beyond `max` are dropped. */
void review_cache_put(struct review_cache *cache, const uint8_t key[REVIEW_KEY_SIZE], const char *text, size_t max);
/* SHA-256 of everything on which a verdict depends.  false: libcrypto failed. */
bool review_cache_key(const struct review_query *query, const char *prompt, const char *tools, const char *who,
        uint8_t ret[REVIEW_KEY_SIZE]);

/* ---- config_file.c ---- */

/* A file of the administrator, by a setting.  All zeros with fd -1: none. */
struct config_file {
        const char *path, *setting;
        bool is_secret;        /* others must not have the right to read the file */
        int fd;                /* open: a daemon without rights reads a changed file through the descriptor */
        struct stat st;        /* of the text */
        char *text;            /* or NULL: none, or the file is refused */
        size_t len, max;
        char why[300];         /* the reason of a refusal; "": none */
};

/* Open and read the file; path "": none.  Errors: CSN_E_CONFIG. */
int config_file_open(struct config_file *file, const char *path, const char *setting, bool is_secret, size_t max,
        struct csn_error *err);
/* Read a changed file again.  false: the file is refused now (file->why). */
bool config_file_refresh(struct config_file *file);
void config_file_close(struct config_file *file);

/* ---- exchanges ---- */

struct review_exchange;

struct review_reply {
        const char *why;       /* the reason, in English, for the lack of an answer; or NULL */
        bool may_retry;        /* with `why` */
        long status;           /* of HTTP; 200 for a program */
        bool has_retry_after;
        uint64_t retry_after_ms;
        const char *body;      /* valid during the call; never shown: servers quote keys */
        size_t len;
};

/* Sends one question and takes one answer; done() is called from the loop, once. */
struct review_exchange {
        struct reviewer *reviewer;
        void (*done)(struct review_exchange *exchange, const struct review_reply *reply);
        void *owner;
        void *state;           /* of the kind; NULL: nothing is sent */
        void (*stop)(struct review_exchange *exchange);   /* of the kind; frees the state */
};

/* Post a body, which becomes the callee's.  Errors: CSN_E_CONFIG (a file is refused), CSN_E_SYSTEM. */
int http_exchange_start(struct review_exchange *exchange, char *body, const char *run_id, uint64_t timeout_ms,
        struct csn_error *err);
/* Start review.command with the body as standard input. */
int command_exchange_start(struct review_exchange *exchange, char *body, uint64_t timeout_ms, struct csn_error *err);
/* End without done().  Harmless twice. */
void review_exchange_stop(struct review_exchange *exchange);

/* ---- command_exchange.c: the launcher ---- */

/* Start the launcher for review.command.  Errors: CSN_E_CONFIG, CSN_E_SYSTEM. */
int command_prepare(struct reviewer *reviewer, struct csn_error *err);

/* ---- reviewer.c ---- */

struct review_work;
struct launcher;
struct fetcher;

struct reviewer {
        const struct settings *settings;
        struct loop *loop;
        struct workers *workers;       /* NULL: none */
        struct fetcher *fetcher;       /* NULL: review.command */
        struct launcher *launcher;     /* NULL: no review.command */
        char *url;                     /* where questions are posted, or NULL */
        char *ca;                      /* certificate authorities as PEM, or NULL: the host's */
        struct config_file key, headers, prompt;
        struct review_price price;
        struct review_cache *cache;
        struct review_ladder ladder;   /* of base_url and model, which are constant */
        struct review_work *works;     /* in the order of their questions */
        size_t running;                /* works with a place (review.concurrency) */
        unsigned failures;             /* of the server, in a row */
        uint64_t open_until_us;        /* the circuit breaker is open; 0: closed */
        bool probing;                  /* one review tries whether the server works again */
        struct timer serve;            /* gives free places to waiting works */
};

void reviewer_serve(struct timer *timer);
bool reviewer_ask(void *owner, struct review_query *query);
void reviewer_forget(void *owner, struct review_query *query);
/* Drop all works. */
void reviewer_stop(struct reviewer *reviewer);

#endif
