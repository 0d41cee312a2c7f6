/*
 * backend: the place in which sandboxes exist.
 *
 * `native` creates sandboxes on this host, through caisson-supervisor.  `host` is for development alone: the program
 * runs as a plain child process in a folder of its own, without any boundary, and every record says so.  `e2b` (e2b.h)
 * and `docker` (docker/docker.h) are added by programs with libcurl.  A new backend is a struct backend and a line in
 * the list.
 */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "wire/wire.h"

/*
 * The engine's descriptors of a sandbox.  The receiver of ready() owns them.  proxy is -1 without WIRE_PROXY,
 * tool_socket -1 without WIRE_TOOL_SOCKET.
 */
struct backend_ends {
        int home, out, error, channel, proxy, tool_socket;
};

struct run_request;
struct settings;

/*
 * The program that a sandbox is to run.  All of its memory stays the caller's and must live until exited() or
 * refused().
 */
struct backend_program {
        struct wire_limits limits;
        struct wire_program program;
        const struct run_request *request;   /* with the language's name: for a backend with interpreters of its own */
        const char *language;
        const void *stdin_bytes;
        size_t stdin_len;                /* 0: no standard input */
        size_t files_n;
        /*
         * Describe input file i.  On success *ret_fd is its open content, which becomes the backend's, or -1 if the
         * content is in memory, however long the content is.  Called when the handoff socket has room for the file,
         * and perhaps again before the file is sent.  Errors: any, which refuse the sandbox.
         */
        int (*file)(void *owner, size_t i, struct wire_file *ret_file, int *ret_fd, struct csn_error *err);
        void *owner;
};

/*
 * Events of a sandbox, in this order: ready(); confined(), once the boundary is complete (at the latest when the
 * program starts); exited().  refused() replaces all later events at any time before a program ran.
 */
struct backend_events {
        void (*ready)(void *owner, const struct wire_boundary *boundary, const struct backend_ends *ends);
        void (*confined)(void *owner, const struct wire_boundary *boundary);
        void (*seen)(void *owner, const struct wire_stats *seen);   /* answer to look() */
        /* answer to freeze(); error is NULL on success */
        void (*frozen)(void *owner, bool on, const struct csn_error *error);
        /*
         * All files of a program went through the handoff socket.  Its descriptor becomes the callee's; the descriptor
         * of the first input file comes back on it.  Optional: only `native` sends the event.
         */
        void (*sent)(void *owner, int handoff);
        void (*exited)(void *owner, const struct wire_exit *how);
        /* CSN_E_LOST: the backend itself ended, and the program may have begun if sent() came. */
        void (*refused)(void *owner, const struct csn_error *error);
        /* A zygote serves (error is NULL; info is a JSON object), or has ended (error says why). */
        void (*zygote)(void *engine, uint32_t id, const char *info, const struct csn_error *error);
        /* The answer to volume(); error is NULL on success. */
        void (*volume)(void *engine, uint32_t ticket, const struct csn_error *error);
        /* The backend itself has ended, and every sandbox with it; orders of volumes have no answer. */
        void (*lost)(void *engine, const struct csn_error *error);
};

struct backend_options {
        const char *uid_range;           /* "FIRST:COUNT" */
        const char *cgroup_parent;
        const char *layers_dir;          /* folder of the layers of packages; "": none */
        const char *images_dir;          /* folder of the images; "": none */
        const char *volumes_dir;         /* folder of the volumes; "": none */
        const char *devices;             /* granted devices, paths between commas; the order gives their bits */
        const struct settings *settings; /* must outlive the link */
        void *engine;                    /* passed to zygote() and lost() */
};

struct backend_link;

/*
 * The functions of a backend.  Those that can fail return 0 or a negative code.  Errors of all: CSN_E_SYSTEM; in
 * addition CSN_E_INPUT (request too large for the backend), CSN_E_BUSY (no descriptors or no capacity now),
 * CSN_E_UNSUPPORTED or CSN_E_CONFIG (open: the host or the settings do not allow the backend), CSN_E_PROTOCOL (the
 * supervisor broke the protocol).  Failures after the return arrive as refused().
 */
struct backend {
        const char *name;
        int isolation;                   /* isolation_… of the record, where no layer is weaker than usual */
        /* The runners of src/lang start programs, with arguments and standard input. */
        bool has_runners;
        /* Sandboxes have no network but the proxy, and a tool socket, both by flags of the shape. */
        bool has_sockets;
        int (*open)(struct loop *loop, const struct backend_options *options, const struct backend_events *events,
                    struct backend_link **ret, struct csn_error *err);
        /*
         * Create a sandbox.  The caller chooses the number, unique among the live sandboxes; owner is passed to the
         * events.
         */
        int (*prepare)(struct backend_link *link, uint32_t id, void *owner, const struct wire_shape *shape,
                struct csn_error *err);
        /*
         * Start an interpreter in the sandbox, which then waits for a program: join() forks a zygote, worker() starts a
         * process.  NULL: unsupported.
         */
        int (*join)(struct backend_link *link, uint32_t id, uint32_t zygote, struct csn_error *err);
        int (*worker)(struct backend_link *link, uint32_t id, const struct wire_program *program,
                struct csn_error *err);
        /* Run a program in the sandbox, once.  Allowed as soon as prepare() has returned. */
        int (*start)(struct backend_link *link, uint32_t id, const struct backend_program *program,
                struct csn_error *err);
        /*
         * Make process 1 the guest of a sandbox that is ready and was prepared with WIRE_PERSISTENT.  *ret_sock becomes
         * the caller's: the engine's end of the guest protocol (wire/guest_protocol.h).  NULL: unsupported.
         */
        int (*guest)(struct backend_link *link, uint32_t id, const struct wire_limits *limits, int *ret_sock,
                struct csn_error *err);
        /*
         * Let a child of a zygote join the sandbox of a guest.  For the engine the child is a sandbox of its own, with
         * events from confined() on; start() runs its program.  The descriptors, created by the guest, stay the
         * caller's.
         */
        int (*enter)(struct backend_link *link, uint32_t id, void *owner, uint32_t sandbox, uint32_t zygote,
                const int fds[WIRE_ENTRY_HANDOFF], struct csn_error *err);
        void (*freeze)(struct backend_link *link, uint32_t id, bool on);
        /*
         * The program has reported that it exits with this status (0 to 255), before its process is reaped; exited()
         * follows.  NULL: the engine waits for exited().
         */
        void (*left)(struct backend_link *link, uint32_t id, unsigned status);
        void (*kill)(struct backend_link *link, uint32_t id);
        /* request resource use, answered by seen(); NULL: unsupported */
        void (*look)(struct backend_link *link, uint32_t id);
        /* whether the supervisor is silent for HELPER_SILENT periods; NULL: no supervisor */
        bool (*is_silent)(const struct backend_link *link);
        /*
         * Start a zygote.  Of the shape count memory_bytes, the layers and the image that it has, and domain: `id` for
         * a domain of its own (docs/design/python-zygote.md), or 0.
         */
        int (*zygote)(struct backend_link *link, uint32_t id, const struct wire_shape *shape,
                const struct wire_program *program, struct csn_error *err);
        void (*retire)(struct backend_link *link, uint32_t id);
        /* Make or remove a volume; the answer names the ticket.  NULL: unsupported. */
        int (*volume)(struct backend_link *link, uint32_t ticket, const struct wire_volume_order *order,
                struct csn_error *err);
        void (*close)(struct backend_link *link);
};

extern const struct backend backend_native, backend_host;

#define BACKENDS_MAX 4

/* The backend with this name, or NULL. */
const struct backend *backend_find(const char *name);
/* The position of a backend in the list, and the backend at a position. */
size_t backend_index(const struct backend *backend);
const struct backend *backend_at(size_t i);
/*
 * Append a backend to the list before an engine is opened: for a backend that only some programs link.  At most
 * BACKENDS_MAX in all.
 */
void backend_add(const struct backend *backend);
/*
 * Create an input file below the home folder `home` of a run on this host, with its folders.  The content is
 * file->content, or all bytes of the descriptor `source`; both descriptors stay the caller's.  Errors: CSN_E_SYSTEM.
 */
int backend_put_file(int home, const struct wire_file *file, int source, struct csn_error *err);

/* ---- helper processes of an engine that has given up its rights (helpers.c) ---- */

#define HELPER_SILENT 2                  /* periods (HELPER_PING_MS) without an answer, after which nothing is ready */

struct helper_options {
        uid_t uid;                       /* of the engine */
        gid_t gid;
        const char *uid_range, *cgroup_parent, *policies_dir;
        const char *layers_dir, *images_dir, *volumes_dir, *devices;   /* as of backend_options */
        const char *sockets[3];          /* paths of listening sockets that helpers_remove_sockets() unlinks, or NULL */
};

/*
 * Start the helpers while the process still has its rights.  Later supervisors, too, are started by the helpers.
 * Errors: CSN_E_SYSTEM.
 */
int helpers_start(const struct helper_options *options, struct csn_error *err);
bool helpers_are_there(void);
/*
 * Watch the helpers, with a PING of the starter each second.  lost() is called once when the starter has ended or does
 * not answer; then no process can be started.  Valid until helpers_unwatch().  Errors: those of
 * loop_watch().
 */
int helpers_watch(struct loop *loop, void (*lost)(void *owner, const char *why), void *owner, struct csn_error *err);
void helpers_unwatch(void);
/* Whether the starter has not answered for HELPER_SILENT periods. */
bool helpers_are_silent(void);
/* Kill a process that helpers_spawn() or this process started.  Errors: CSN_E_SYSTEM. */
int helpers_kill(pid_t pid, struct csn_error *err);
/* Wait for the end of a child for at most `ms`.  false: the child goes on.  pid 0: true. */
bool helpers_reap(pid_t pid, uint64_t ms);
/* Start a helper process that serves `sock`, which stays the caller's.  Errors: CSN_E_SYSTEM. */
int helpers_spawn(enum wire_start what, int sock, pid_t *ret_pid, struct csn_error *err);
/*
 * Open a regular file or folder below a folder of a sandbox, for reading, through the file opener.  Returns the
 * descriptor, which is the caller's, or -1 with errno.
 */
int helpers_open(int dir_fd, const char *name, enum wire_open what);
/* In the loop, before a job of a helper thread that may call helpers_open(): start the opener of the threads. */
void helpers_serve_threads(void);
void helpers_remove_sockets(void);
/* Stop the helpers and wait for them.  The processes that they started must have been ended before. */
void helpers_stop(void);

/* Paths of this build's runners, programs and policies (paths.c).  Static memory. */
const char *backend_runner_dir(void);
const char *backend_supervisor(void);
const char *backend_policy_worker(void);
const char *backend_daemon(void);
const char *backend_remote(void);
const char *backend_gateway(void);
const char *backend_policies_dir(void);

#endif
