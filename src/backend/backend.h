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

/* Our ends of what a sandbox has, the callee's from ready() on; proxy is -1 without WIRE_PROXY, and tool_socket without WIRE_TOOL_SOCKET. */
struct backend_ends {
        int home, out, error, channel, proxy, tool_socket;
};

struct run_request;
struct settings;

/* What a sandbox is to run.  Everything stays the caller's and has to live until exited() or refused(). */
struct backend_program {
        struct wire_limits limits;
        struct wire_program program;
        const struct run_request *request;   /* for one that has interpreters of its own, with the language's name */
        const char *language;
        int stdin_fd;                    /* or -1: nothing */
        size_t files_n;
        /* Tells input file i and opens its content, or has it in memory (*ret_fd is -1 then); called as there is room for it. */
        int (*file)(void *owner, size_t i, struct wire_file *ret_file, int *ret_fd, struct csn_error *err);
        void *owner;
};

/* News of a sandbox, in this order: ready, joined when its boundary is whole (at the latest with the program), exited; or refused at any time before a program ran. */
struct backend_events {
        void (*ready)(void *owner, const struct wire_boundary *boundary, const struct backend_ends *ends);
        void (*confined)(void *owner, const struct wire_boundary *boundary);
        void (*seen)(void *owner, const struct wire_stats *seen);   /* the answer to look() */
        void (*frozen)(void *owner, bool on, const struct csn_error *error);   /* to freeze(); error is NULL where it was done */
        /* All of a program went through the handoff socket, whose end is the callee's from now on: its first file comes back on it.  Not everywhere. */
        void (*sent)(void *owner, int handoff);
        void (*exited)(void *owner, const struct wire_exit *how);
        void (*refused)(void *owner, const struct csn_error *error);
        /* A zygote serves (error is NULL; info is a JSON object), or is gone. */
        void (*zygote)(void *engine, uint32_t id, const char *info, const struct csn_error *error);
        /* The backend itself is gone, and with it every sandbox. */
        void (*lost)(void *engine, const struct csn_error *error);
};

struct backend_options {
        const char *uid_range;           /* "FIRST:COUNT" */
        const char *cgroup_parent;
        const struct settings *settings; /* they live as long as the link */
        void *engine;                    /* for zygote() and lost() */
};

struct backend_link;

struct backend {
        const char *name;
        int (*open)(struct loop *loop, const struct backend_options *options, const struct backend_events *events,
                    struct backend_link **ret, struct csn_error *err);
        /* Make a sandbox.  Its number is the caller's choice and unique among the live ones; owner is for the events. */
        int (*prepare)(struct backend_link *link, uint32_t id, void *owner, const struct wire_shape *shape, struct csn_error *err);
        /* Put an interpreter into it that waits: a zygote's fork, or one that is started.  NULL: this backend cannot. */
        int (*join)(struct backend_link *link, uint32_t id, uint32_t zygote, struct csn_error *err);
        int (*worker)(struct backend_link *link, uint32_t id, const struct wire_program *program, struct csn_error *err);
        /* Run a program in it, once; may be called as soon as prepare() returned. */
        int (*start)(struct backend_link *link, uint32_t id, const struct backend_program *program, struct csn_error *err);
        /*
         * Make process 1 the guest of a sandbox that is ready and was asked for with WIRE_PERSISTENT.  *ret_sock is the caller's, its end of
         * guest.h.  NULL: this backend cannot.
         */
        int (*guest)(struct backend_link *link, uint32_t id, const struct wire_limits *limits, int *ret_sock, struct csn_error *err);
        /*
         * An interpreter of a zygote into the sandbox of a guest.  It is a sandbox to us, with events from confined() on, and starts its
         * program by start().  The descriptors are those that the guest made, and stay the caller's.
         */
        int (*enter)(struct backend_link *link, uint32_t id, void *owner, uint32_t sandbox, uint32_t zygote, const int fds[WIRE_ENTRY_HANDOFF], struct csn_error *err);
        void (*freeze)(struct backend_link *link, uint32_t id, bool on);
        /* The program says that it has ended with this exit status and only has to die; exited() follows.  NULL: wait for that. */
        void (*left)(struct backend_link *link, uint32_t id, unsigned status);
        void (*kill)(struct backend_link *link, uint32_t id);
        void (*look)(struct backend_link *link, uint32_t id);   /* what it uses now; NULL: this backend cannot tell */
        int (*zygote)(struct backend_link *link, uint32_t id, const struct wire_program *program, struct csn_error *err);
        void (*retire)(struct backend_link *link, uint32_t id);
        void (*close)(struct backend_link *link);
};

extern const struct backend backend_native, backend_host;

#define BACKENDS_MAX 3

/* By name, or NULL. */
const struct backend *backend_find(const char *name);
/* Its place among all of them, and who has it. */
size_t backend_index(const struct backend *backend);
const struct backend *backend_at(size_t i);
/* One more that a program brings along, before it opens an engine: for what not all of them should be linked with. */
void backend_add(const struct backend *backend);
/* An input file below a home folder of this host; its content, or all that source has. */
int backend_put_file(int home, const struct wire_file *file, int source, struct csn_error *err);

/* ---- processes beside an engine that has given up its rights (helpers.c) ---- */

struct helper_options {
        uid_t uid;                       /* of the engine */
        gid_t gid;
        const char *uid_range, *cgroup_parent, *policies_dir;
        const char *sockets[3];          /* in the file system, for helpers_remove_sockets(), or NULL */
};

/* While there are rights.  From then on supervisors, too, are started by them. */
int helpers_start(const struct helper_options *options, struct csn_error *err);
bool helpers_are_there(void);
/* Tell when the starter has ended; nothing can be started any more then.  Until helpers_unwatch(). */
int helpers_watch(struct loop *loop, void (*lost)(void *owner), void *owner, struct csn_error *err);
void helpers_unwatch(void);
/* A process of ours that serves this socket.  Errors: CSN_E_SYSTEM. */
int helpers_spawn(enum wire_start what, int sock, pid_t *ret_pid, struct csn_error *err);
/* A regular file or a folder beneath that of a sandbox, for reading; -1 with errno. */
int helpers_open(int dir_fd, const char *name, enum wire_open what);
void helpers_remove_sockets(void);
/* Waits for their end, and what they started has to be closed before. */
void helpers_stop(void);

/* Where the runners, the programs and the policies of this build are; see paths.c. */
const char *backend_runner_dir(void);
const char *backend_supervisor(void);
const char *backend_policy_worker(void);
const char *backend_daemon(void);
const char *backend_remote(void);
const char *backend_policies_dir(void);

#endif
