/*
 * instance: one sandbox of a backend.
 *
 * An instance has at most one user: a run, a persistent sandbox, a context or a pool.  The user hears the news of its
 * instance through struct instance_user and may hand the instance on.  All functions return at once; news comes from
 * the event loop.
 */
#ifndef ENGINE_INSTANCE_INSTANCE_H
#define ENGINE_INSTANCE_INSTANCE_H

#include "backend/backend.h"

struct instance;

/* News of an instance, called from the event loop.  Any member may be NULL. */
struct instance_user {
        /* The sandbox exists; its descriptors are in instance->ends, from which the user may take them. */
        void (*ready)(void *owner, struct instance *instance);
        /* The boundary is whole (instance->boundary): an interpreter waits, or the program begins. */
        void (*confined)(void *owner, struct instance *instance);
        /* The answer to instance_request_stats(). */
        void (*stats)(void *owner, const struct wire_stats *stats);
        /* The answer to instance_freeze(); error is NULL on success. */
        void (*frozen)(void *owner, bool on, const struct csn_error *error);
        /* Everything was sent through the handoff socket.  The first input comes back on fd, which is the callee's. */
        void (*handoff_done)(void *owner, int fd);
        /* The last news, one of these two.  The instance is on no list any more and is freed after the call. */
        void (*exited)(void *owner, struct instance *instance, const struct wire_exit *how);
        /*
         * No program ran; with CSN_E_LOST, one may have begun after handoff_done().  `again`: the instance had waited
         * in a pool, so a new one may succeed.
         */
        void (*refused)(void *owner, struct instance *instance, const struct csn_error *error, bool again);
};

enum instance_state {
        INSTANCE_MAKING,                /* the backend makes the sandbox */
        INSTANCE_BARE,                  /* an empty sandbox */
        INSTANCE_CONFINING,             /* an interpreter is on its way into the sandbox */
        INSTANCE_WARM,                  /* an interpreter waits, or the program of its user begins */
};

struct instances;

struct instance {
        struct instance *next;
        struct instances *instances;
        const struct backend *backend;
        uint32_t id;                    /* unique among the live ones */
        enum instance_state state;
        struct wire_shape shape;        /* without its label */
        const struct instance_user *user;   /* or NULL; set by instance_set_user() */
        void *owner;                    /* of the user */
        bool starting;                  /* counted in instances->starting */
        bool kept;                      /* the sandbox waited in a pool, or has got an interpreter */
        struct wire_boundary boundary;
        struct backend_ends ends;       /* the instance's until a user takes them */
        uint64_t ready_us;              /* clock_us() of the last ready or confined */
        struct wire_stats seen;         /* the last answer to instance_request_stats() */
        struct instance *next_waiting;  /* in its pool */
};

/* News that concerns no single instance, called from the event loop. */
struct instances_events {
        /* An instance became ready, was confined or ended: runs that wait may begin. */
        void (*changed)(void *owner);
        /* A zygote serves (error is NULL; info is a JSON object), or is gone. */
        void (*zygote)(void *owner, uint32_t id, const char *info, const struct csn_error *error);
        /* The answer to instances_order_volume(); error is NULL on success. */
        void (*volume)(void *owner, uint32_t ticket, const struct csn_error *error);
        /* The native backend is gone, with all instances and zygotes; instances->links[0] is NULL already. */
        void (*lost)(void *owner);
};

/* All instances of an engine, and its connections to backends.  The engine fills in the first five members. */
struct instances {
        struct loop *loop;
        const struct settings *settings;
        const struct instances_events *events;
        void *owner;                    /* of the events */
        size_t places;                  /* for how many instances the descriptors suffice */
        struct backend_link *links[BACKENDS_MAX];   /* by backend_index() */
        struct instance *all;
        size_t n, starting;
        uint32_t made;
        uint32_t losses;                /* of the native backend */
        char uid_range[48];             /* "FIRST:COUNT" */
        char *layers_dir;               /* folder of the layers of packages; the engine's */
        char *images_dir;               /* folder of the images; the engine's */
        char *volumes_dir;              /* folder of the volumes; the engine's */
        char *devices;                  /* granted devices, between commas; the engine's */
};

/*
 * Make an instance of this shape.  *ret is set when the backend has accepted the request; user->ready() may come before
 * the return.  Errors: those of the backend; on an error there is no instance and no news.
 */
int instance_new(struct instances *instances, const struct backend *backend, const struct wire_shape *shape,
        const struct instance_user *user, void *owner, struct instance **ret, struct csn_error *err);
/*
 * Fork the interpreter of a zygote into the sandbox of `host`, whose process 1 is a guest.  The descriptors are those
 * that the guest made and stay the caller's.  Errors: CSN_E_BUSY (the backend is gone), those of the backend.
 */
int instance_join_guest(const struct instance *host, uint32_t zygote, const int fds[WIRE_ENTRY_HANDOFF],
        const struct instance_user *user, void *owner, struct instance **ret, struct csn_error *err);

/* Hand an instance over to another user; NULL: its end is ignored. */
void instance_set_user(struct instance *instance, const struct instance_user *user, void *owner);

/*
 * Put an interpreter into a bare instance: a fork of a zygote, or one that is started.  Errors: those of the backend.
 */
int instance_join(struct instance *instance, uint32_t zygote, struct csn_error *err);
int instance_worker(struct instance *instance, const struct wire_program *program, struct csn_error *err);
/* Run a program, once; the program has to live until the last news.  Errors: those of the backend. */
int instance_start(struct instance *instance, const struct backend_program *program, struct csn_error *err);
/* Make process 1 of a ready instance its guest.  *ret_sock is the caller's.  Errors: those of the backend. */
int instance_guest(struct instance *instance, const struct wire_limits *limits, int *ret_sock, struct csn_error *err);

/* The program reported over its channel that it ended with this exit status; exited() follows. */
void instance_exiting(struct instance *instance, unsigned status);
/* Stop or resume all processes; frozen() follows. */
void instance_freeze(struct instance *instance, bool on);
/* Ask what the instance uses; stats() follows, and instance->seen has the answer. */
void instance_request_stats(struct instance *instance);
/* End all processes; exited() or refused() follows. */
void instance_kill(struct instance *instance);

/* Connect to a backend; nothing happens if a connection exists.  Errors: those of the backend. */
int instances_open_link(struct instances *instances, const struct backend *backend, struct csn_error *err);
/* Make or remove a volume by the native backend; volume() follows.  Errors: those of the backend. */
int instances_order_volume(struct instances *instances, uint32_t ticket, const struct wire_volume_order *order,
        struct csn_error *err);
/* Whether the process of a backend does not answer, so that no program can begin now. */
bool instances_are_silent(const struct instances *instances);
/* Tell the owner that runs that wait may begin. */
void instances_changed(const struct instances *instances);
/* Close all connections; instances stay, without news. */
void instances_close_links(struct instances *instances);
void instances_free(struct instances *instances);

#endif
