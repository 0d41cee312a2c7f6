/* container: one container of the engine, from its creation to its removal. */
#ifndef BACKEND_DOCKER_CONTAINER_H
#define BACKEND_DOCKER_CONTAINER_H

#include "backend/docker/docker.h"
#include "backend/docker/guest_link.h"

#define CONTAINER_NAME_MAX 40

struct docker_run;

/* Properties of a container.  A waiting container serves runs with the same key alone. */
struct container_key {
        char image[256];
        uint64_t memory_bytes, cpu_milli, pids, disk_bytes, disk_files, tmp_bytes;
};

/* The engine's report on a container (GET /containers/ID/json). */
struct container_report {
        uint64_t namespaces;  /* CLONE_NEW* bits */
        uint64_t controllers; /* enum wire_controller bits */
};

struct container_events {
        void (*ready)(void *owner); /* process 1 serves; facts and report are complete */
        void (*sent)(void *owner);  /* all waiting bytes for process 1 are sent */
        /*
         * Once: the creation failed, or process 1 has ended.  for_memory: the kernel killed process 1 at the memory
         * limit of the container.  The callee calls container_end().
         */
        void (*ended)(void *owner, const struct csn_error *why, bool for_memory);
};

enum container_state {
        CONTAINER_WAITING, /* for the version of the engine */
        CONTAINER_CREATING,
        CONTAINER_PULLING,
        CONTAINER_ATTACHING,
        CONTAINER_STARTING, /* until the greeting of process 1 and the reports */
        CONTAINER_READY,
        CONTAINER_DYING, /* the stream has ended; the reason is asked of the engine */
        CONTAINER_ENDED,
};

struct container {
        struct container *next;
        struct backend_link *link;
        struct container_key key;
        enum container_state state;
        char name[CONTAINER_NAME_MAX];
        const struct container_events *events;
        void *owner;
        struct docker_wait wait;
        struct docker_call call;
        struct attach attach;
        struct guest_link guest;
        struct guest_op facts_op;
        struct guest_facts facts; /* before any program ran, but oom_kills of the newest look */
        struct container_report report;
        bool created;     /* may exist at the engine */
        bool other_tmpfs; /* the request had the other options of tmpfs */
        bool pulled;      /* the image was asked for */
        bool started, greeted, has_facts, has_report;
        struct timer deadline, removal;
        struct csn_error why; /* of CONTAINER_DYING */
};

/* The connection of an engine to this backend. */
struct backend_link {
        struct loop *loop;
        const struct backend_events *events;
        const struct docker_settings *settings;
        struct docker_engine *engine;
        struct container *containers; /* all of them, the newest first */
        struct docker_run *runs;
        struct timer refill;
        struct container_key wanted; /* of the newest run: the pool holds such containers */
        bool closing;
        bool other_tmpfs; /* the engine refused Docker's options (describe.c) */
};

/* Begin to make a container.  ready() or ended() follows, from the loop. */
struct container *container_new(struct backend_link *link, const struct container_key *key,
        const struct container_events *events, void *owner);
/* Hand a container over to another owner. */
void container_set_owner(struct container *container, const struct container_events *events, void *owner);
/* Remove the container without ended().  The object is freed from the loop.  Harmless twice. */
void container_end(struct container *container);
/*
 * Remove and free all containers at the end of the link, while the loop waits, for CONTAINERS_REMOVE_MS at most.  The
 * rest ends with the streams, and is removed at the next start.
 */
#define CONTAINERS_REMOVE_MS 5000
void containers_remove(struct backend_link *link);
bool container_key_equal(const struct container_key *a, const struct container_key *b);

/* ---- describe.c ---- */

/* The body of POST /containers/create.  The caller's reference. */
json_t *container_body(const struct container *container);
/* The image of a language by the settings.  Errors: CSN_E_CONFIG. */
int container_image(const struct docker_settings *settings, const char *language, char *ret, size_t size,
        struct csn_error *err);
/* Check the settings of containers.  Errors: CSN_E_CONFIG. */
int container_check_settings(const struct docker_settings *settings, struct csn_error *err);
void container_read_report(const json_t *inspected, struct container_report *ret);
/* The boundary by facts and report.  serves: connections of the program go to the proxy of this engine. */
void container_boundary(const struct container *container, bool serves, struct wire_boundary *ret);

/* ---- pool.c ---- */

/* A waiting container with this key, which becomes the caller's; NULL: none. */
struct container *pool_take(struct backend_link *link, const struct container_key *key);
/* Keep docker.warm containers of this key from now on. */
void pool_want(struct backend_link *link, const struct container_key *key);
void pool_open(struct backend_link *link);
void pool_close(struct backend_link *link);

#endif
