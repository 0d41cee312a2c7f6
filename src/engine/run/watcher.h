/*
 * watcher: begins and ends of runs, persistent sandboxes and contexts of an engine, for a listener.
 *
 * Runs of the engine itself, such as builds of layers, are left out.  Each object has a begin and an end, in this
 * order; an object freed in the middle of its work has an end, too.
 */
#ifndef ENGINE_RUN_WATCHER_H
#define ENGINE_RUN_WATCHER_H

#include "model/model.h"

struct engine;

enum watched_kind {
        WATCHED_RUN_STARTED,               /* the engine has taken the request */
        WATCHED_RUN_FINISHED,
        WATCHED_SANDBOX_CREATED,           /* the sandbox can be used */
        WATCHED_SANDBOX_PAUSED,
        WATCHED_SANDBOX_RESUMED,
        WATCHED_SANDBOX_ENDED,
        WATCHED_CONTEXT_CREATED,           /* the interpreter waits for its first program */
        WATCHED_CONTEXT_ENDED,             /* the interpreter has ended; the next one of the context begins anew */
        WATCHED_KINDS
};

/* A begin or an end.  Texts are valid during the call; NULL or "": unknown. */
struct watched_event {
        enum watched_kind kind;
        const char *id, *owner, *key;      /* owner: as run_set_owner(); key: the id of the owner's key */
        const char *language, *profile;
        const char *sandbox;               /* of a context */
        const char *context;               /* of a run in a context */
        const struct run_result *result;   /* of a finished run; NULL: the run was freed before its end */
};

struct engine_watcher {
        void (*happened)(void *owner, const struct watched_event *what);
};

/* Once, before the first run. */
void engine_set_watcher(struct engine *engine, const struct engine_watcher *watcher, void *owner);
/* For the files of the engine; without a watcher nothing happens. */
void watcher_tell(const struct engine *engine, const struct watched_event *what);

#endif
