/* docker engine: calls to the REST API of a Docker or Podman engine, by libcurl. */
#ifndef BACKEND_DOCKER_ENGINE_H
#define BACKEND_DOCKER_ENGINE_H

#include "model/settings.h"
#include "net/http_client.h"

#define DOCKER_API_MAX "1.51" /* newest known version of the API */
#define DOCKER_LABEL "io.caisson.instance"

struct docker_engine;

/* The answer of the engine.  Memory lives until done() returns. */
struct docker_reply {
        long status;         /* of HTTP */
        const json_t *json;  /* NULL: the body is no JSON */
        const char *message; /* "message" of an error, or "" */
};

/* One call.  Embedded in the caller's object; all zeros: none. */
struct docker_call {
        struct docker_engine *engine;
        struct fetch fetch;
        struct curl_slist *headers;
        char *body;
        struct buf answer;
        /* error is NULL after any answer of the engine; else the text begins with backend_unreachable. */
        void (*done)(struct docker_call *call, const struct docker_reply *reply, const struct csn_error *error);
        void *owner;
};

/* A wait for a usable engine. */
struct docker_wait {
        struct docker_wait *next;
        void (*ready)(void *owner, const struct csn_error *error); /* error is NULL: the engine is usable */
        void *owner;
        bool active;
};

/*
 * Read the address; no connection is made.  `identity` names this daemon in labels.  Errors: CSN_E_CONFIG,
 * CSN_E_SYSTEM.
 */
int docker_engine_open(struct loop *loop, const struct docker_settings *settings, const char *identity,
        struct docker_engine **ret, struct csn_error *err);
/* All calls and waits must be ended before. */
void docker_engine_close(struct docker_engine *engine);

/*
 * Agree on a version with the engine and remove leftovers, once; ready() is called from the loop.  A failed attempt is
 * repeated by the next wait.  Errors in ready(): CSN_E_SYSTEM (backend_unreachable), CSN_E_UNSUPPORTED
 * (backend_version).
 */
void docker_engine_wait(struct docker_engine *engine, struct docker_wait *wait);
void docker_engine_unwait(struct docker_engine *engine, struct docker_wait *wait);
/* The engine was restarted or does not answer: the next wait asks for the version again. */
void docker_engine_forget(struct docker_engine *engine);

/*
 * Start a call to "/containers/..." within `ms`.  call->done and call->owner are set; the reference to body (NULL:
 * none) is taken.  done() is called once, from the loop, unless docker_call_stop() comes before.
 */
void docker_call_start(struct docker_engine *engine, struct docker_call *call, const char *method, const char *path,
        json_t *body, long ms);
/* Cancel the call without done(), and free.  Harmless twice. */
void docker_call_stop(struct docker_call *call);
/*
 * Remove a container by name or id, later than the return.  A failed call is repeated for some seconds, and then
 * logged.  unsure: the creation may be in progress at the engine, so a missing container is no end.
 */
void docker_engine_remove(struct docker_engine *engine, const char *name, bool unsure);
/* The same while the loop waits, once, at the end of a program. */
void docker_engine_remove_now(struct docker_engine *engine, const char *name, long ms);

/*
 * Prepare a connection to the engine for attach.c; *ret_prefix is "/v1.41" in the engine's memory.  Errors: those of
 * fetch_open().
 */
int docker_engine_connect(struct docker_engine *engine, struct fetch *fetch, const char **ret_prefix,
        struct csn_error *err);
const char *docker_engine_identity(const struct docker_engine *engine);
/* The address, for error texts. */
const char *docker_engine_host(const struct docker_engine *engine);

#endif
