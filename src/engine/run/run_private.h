/* A run from the inside; for the files of this folder. */
#ifndef ENGINE_RUN_RUN_PRIVATE_H
#define ENGINE_RUN_RUN_PRIVATE_H

#include "egress/egress.h"
#include "engine/engine.h"
#include "engine/instance/instance.h"
#include "engine/output/files.h"
#include "engine/output/verdict.h"
#include "policy/policy.h"

#define OWNER_KEY_MAX 80
#define WARNINGS_MAX 32
#define JUDGED_WAITING 9       /* see run_set_judged() */
#define JUDGED_WAITING_MAX_MS 86400000   /* as the supervisor has it */
#define JUDGED_PER_CORE 4

enum run_state { RUN_NEW, RUN_CHECKING, RUN_QUEUED, RUN_RUNNING, RUN_OVER };

/* An input file as it will be sent: bytes in memory, or a file of this host. */
struct run_input {
        const char *name;
        const char *path;              /* or NULL */
        const char *id;                /* of a kept file, or NULL */
        struct bytes content;
        unsigned mode;
        bool hidden;                   /* the program itself: not listed among the inputs */
        bool work;                     /* path is below the work folder, in which others may be at work */
};

struct stream {
        struct watch watch;
        struct run *run;
        int number;                    /* 1 or 2 */
        struct capture capture;
};

struct context;

/* All zeros is none. */
struct tool_session {
        const struct engine_tools *tools;
        void *broker;
        size_t message_max;
        uint64_t requests_max;
        struct tool_socket *tool_socket;           /* there while its sandbox is */
};

struct run {
        struct engine *engine;
        struct run *next;
        struct arena arena;
        enum run_state state;
        bool local;
        bool cold;                     /* a sandbox that waited was lost: not again */
        bool starts_cold;              /* counted in engine->cold: its interpreter is starting */
        bool handed_on;                /* an interpreter was dead before it began there */
        const struct run_events *events;
        void *owner;
        char id[40];
        struct run *next_queued;
        struct owner *whose;           /* while it waits or goes on (queue.c) */
        struct instance *instance;               /* the sandbox that it has, or NULL */
        uint64_t number;               /* of an execution in a context; 0: it has not begun */
        struct context *context;       /* in which it waits or goes on; it has no sandbox of its own then */
        json_t *displays;              /* of an execution in a context: MIME bundles, an array; or NULL */
        size_t display_bytes;
        char owner_key[OWNER_KEY_MAX]; /* for whom it runs, or "" */
        size_t running_max, queued_max;   /* that its owner may have; 0: no limit of its own */
        unsigned refusals;             /* connections that the proxy refused */

        struct run_request request;
        const struct language *language;
        const struct backend *backend;
        struct wire_shape shape;
        struct backend_program what;
        const char *main_file;
        struct run_input *inputs;
        size_t inputs_n;
        struct file_input *digests;    /* as the inputs, for telling what changed */
        int work_fd;                   /* the work folder, locked, or -1 */
        const char *work_dir;          /* its path; NULL: it is a workspace */
        int work_temp_fd;              /* of a workspace: for files that are not whole */
        bool entered;                  /* the folder is the storage's */
        const struct run_storage *storage; /* NULL: nobody keeps files of this run */
        void *run_storage_owner;

        struct stream streams[2];
        struct watch channel_watch;
        struct channel channel;
        const struct run_message_handler *message_handler;
        void *message_handler_owner;
        struct send_queue said;            /* that its runner has not read yet */
        bool has_messages;                    /* its runner is told what to do, and answers */
        bool skips_queue;                /* it waits for no turn */
        bool judged;                   /* see run_set_judged() */
        int home_fd;
        int handoff_fd;                   /* on which its first input comes back, or -1 */
        struct egress *egress;         /* the proxy of this run, or NULL */
        struct tool_session tool_session;
        const struct run_listener *listener;
        void *listener_owner;
        struct wire_boundary boundary;
        bool has_boundary;
        bool no_proxy;                 /* nobody accepts at the socket that was made for it */
        struct wire_exit how;
        bool cancelled, output_killed;
        bool blocked;                  /* the policy refuses it */
        bool compile_only;             /* it does not parse, and the interpreter is asked for the right words */

        struct check check;            /* by its policy; all zeros where it has none */
        struct csn_error refusal;      /* code 0: none */
        struct timer finish, closing;
        uint64_t created_us, queued_us, begun_us, started_us, ended_us;
        char started_at[40];

        struct warning *warnings;
        size_t warnings_n;
        struct run_result result;
};

/* ---- run.c, for instance.c and pool.c ---- */

struct engine {
        const struct settings *settings;
        struct arena arena;
        const struct language *languages;
        struct loop *loop;
        struct run *runs;
        struct owner *owners;                    /* a ring, NULL: nobody has a run (queue.c) */
        size_t checking, queued, running;
        size_t judged;                           /* runs of run_set_judged() that go on */
        size_t cold, cores;                      /* runs whose interpreter is starting; processors that we may use */
        struct instances instances;
        uint64_t psandboxes_made, contexts_made;
        struct pools *pools;                     /* NULL: nothing is kept ready */
        struct checker *checker;                 /* NULL: no run has had a policy yet */
        struct psandbox *psandboxes;                      /* persistent sandboxes (psandbox.h) */
        struct metrics *metrics;                 /* NULL: no run is over yet */
        const struct engine_tools *tools;        /* NULL: nobody knows any */
        void *tools_owner;
        void (*usage_listener)(void *owner, const char *whose, uint64_t cpu_ms);   /* NULL: nobody counts */
        void *usage_listener_owner;
        struct timer dispatch;
};

/* Runs that wait are looked at again, soon. */
void engine_dispatch(struct engine *engine);

/* A run that waits has an interpreter ready, or there are processors to start one. */
bool run_may_begin(const struct run *run);

/* The interpreter can read a program, and our parser cannot: nobody has looked at it, and the result says that (source_check.c). */
void check_unreadable(struct check *check);

/* That of runs and of source checks; opened when it is needed first (policy_check.c). */
struct checker *engine_checker(struct engine *engine);

/* Of one in a context: what it prints, and its end. */
void run_printed(struct run *run, int stream, const void *bytes, size_t len);
void run_context_over(struct run *run, const struct wire_exit *how);
/* A frame DISPLAY has come whole (display.c). */
void run_display(struct run *run);
/* It is refused after all; for engine/persistent/context.c. */
void run_context_refused(struct run *run, const struct csn_error *error);

/* ---- messages.c ---- */

/* A frame of this type has come. */
void run_take_message(struct run *run, enum channel_type type);

/* ---- queue.c: runs that wait, each owner's in order and the owners in turn ---- */

void queue_add(struct run *run, bool front);
/* The next one, which counts as running from now on until queue_left(); NULL: none may start. */
struct run *queue_take(struct engine *engine);
bool queue_is_ready(const struct engine *engine);
void queue_pass(struct run *run);          /* as if it had been taken, though it never waited */
void queue_left(struct run *run);
void queue_remove(struct run *run);        /* harmless for one that does not wait */
/* How many wait for the end of another run, where so many more may be running: the rest waits for nothing but its own beginning. */
size_t queue_waiting(const struct engine *engine, size_t slots);
void queue_count(const struct engine *engine, const char *key, size_t *ret_queued, size_t *ret_running);

/* ---- engine/metrics.c ---- */

/* A run is over, and has its record. */
void metrics_note(struct run *run);

/* ---- pool.c: what waits ---- */

#define POOL_LABEL "run"   /* struct wire_shape */

void pools_open(struct engine *engine, bool grades);
void pools_close(struct engine *engine);
/*
 * The best that there is for a run: an interpreter that waits (*ret_instance is warm), a sandbox without one, or
 * none; and the zygote to join then, or 0.
 */
void pools_take(struct engine *engine, struct run *run, struct instance **ret_instance, uint32_t *ret_zygote);
/*
 * An interpreter waits for this run, or is forked for it: it need not start one.  Asks for the zygote that the run would use; while one is
 * being started, pools_zygote_comes() is true.
 */
bool pools_are_warm(struct engine *engine, const struct run *run);
bool pools_zygote_comes(const struct engine *engine);
/* A sandbox without an interpreter, of the shape of a run that is never started; NULL: none waits. */
struct instance *pools_take_bare(struct engine *engine, const struct run *run);
void pools_zygote(struct engine *engine, uint32_t id, const char *info, const struct csn_error *error);
/* The backend is gone, and with it all zygotes. */
void pools_lost(struct engine *engine);
/* A run ended: there may be time to make what will be needed next. */
void pools_refill(struct engine *engine);
/* One that can be asked for an interpreter with this image, or 0; from then on there is one soon. */
uint32_t pools_find_zygote(struct engine *engine, int image);
/* One that waits is given up where there is no place for a run that needs another. */
void pools_make_place(struct engine *engine);
json_t *pools_status(const struct engine *engine);   /* an array */
json_t *pools_zygotes(const struct engine *engine);  /* likewise, of the images that were asked for: {image, serves, failures} */

/* prepare.c: the request, made whole, into what a backend needs.  Errors: as records have them. */
int run_prepare(struct run *run, struct csn_error *err);
/* Prepared once more, so that the program is compiled and not run. */
void run_prepare_compile(struct run *run);
/* What the interpreter of a context is told of it.  The caller's reference. */
json_t *run_as_execution(const struct run *run);
/* policy_check.c: its program is compared with its policy; run_checked() follows, from the loop. */
void run_check(struct run *run);
void run_checked(struct run *run);

/* What every program finds in its environment, "NAME=value"; NULL-terminated. */
const char *const *run_usual_env(void);
/* Opens input i for the backend. */
int run_open_input(void *run, size_t i, struct wire_file *ret_file, int *ret_fd, struct csn_error *err);

/* ---- tool_session.c ---- */

#define TOOLS_PATH ":/opt/caisson/tools/bin"   /* behind the usual PATH, where the command `tool` is */

bool tool_session_wanted(const struct tools_request *request);
/* Errors: CSN_E_INPUT. */
int tool_session_open(struct engine *engine, const struct tools_for *whom, struct tool_session *ret, struct csn_error *err);
/* Its sandbox is there.  Takes the descriptor. */
int tool_session_serve(struct tool_session *instance, struct loop *loop, int listen_fd, struct csn_error *err);
/* Its sandbox is not there any more. */
void tool_session_unserve(struct tool_session *instance);
void tool_session_close(struct tool_session *instance);

/* work_dir.c: the folder of this host that a run works in. */
int work_open(struct run *run, struct csn_error *err);
void work_close(struct run *run);

/* record.c: everything into run->result. */
void run_record(struct run *run);
void run_record_boundary(struct run *run);

#endif
