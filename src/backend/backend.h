/*
 * backend: where sandboxes live.
 *
 * `native` makes them here, through caisson-supervisor.  `host` is for development alone: the program runs
 * as a plain child in a folder of its own, without any boundary, and every record says so.  Adding a
 * backend is a file and a line.
 */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "wire/wire.h"

/* What a run needs of a backend.  Descriptors and texts stay the caller's; they are used during start only. */
struct backend_job {
        uint32_t id;                     /* chosen by the caller, unique among the live ones */
        struct wire_start start;         /* files_n counts files[] */
        int stdio[WIRE_STDIO];           /* stdin, stdout, stderr, channel */
        /* Opens the content of input file i and tells its name; called as there is room for it. */
        int (*file)(void *owner, size_t i, struct wire_file *ret_file, int *ret_fd, struct csn_error *err);
        void *owner;
};

/* News of a job, in this order: running, exited; or refused alone. */
struct backend_events {
        /* home_fd, the home directory, and proxy_fd, the socket that listens inside or -1, are the callee's. */
        void (*running)(void *owner, const struct wire_boundary *boundary, int home_fd, int proxy_fd);
        void (*exited)(void *owner, const struct wire_exit *how);
        void (*refused)(void *owner, const struct csn_error *error);
        /* The backend itself is gone, and with it every job. */
        void (*lost)(void *engine, const struct csn_error *error);
};

struct backend_options {
        const char *uid_range;           /* "FIRST:COUNT" */
        const char *cgroup_parent;
        void *engine;                    /* for lost() */
};

struct backend_link;

struct backend {
        const char *name;
        int (*open)(struct loop *loop, const struct backend_options *options, const struct backend_events *events,
                    struct backend_link **ret, struct csn_error *err);
        int (*start)(struct backend_link *link, const struct backend_job *job, struct csn_error *err);
        void (*kill)(struct backend_link *link, uint32_t id);
        void (*close)(struct backend_link *link);
};

extern const struct backend backend_native, backend_host;

/* By name, or NULL. */
const struct backend *backend_find(const char *name);

/* Where the runners and the supervisor of this build are; see paths.c. */
const char *backend_runner_dir(void);
const char *backend_supervisor(void);

#endif
