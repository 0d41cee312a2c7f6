/* A run from the inside; for the files of this folder. */
#ifndef ENGINE_RUN_H
#define ENGINE_RUN_H

#include "engine/egress.h"
#include "engine/engine.h"
#include "engine/files.h"
#include "engine/verdict.h"

enum run_state { RUN_NEW, RUN_STARTING, RUN_RUNNING, RUN_OVER };

/* An input file as it will be sent: bytes in memory, or a file of this host. */
struct run_input {
        const char *name;
        const char *path;              /* or NULL */
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

struct run {
        struct engine *engine;
        struct run *next;
        struct arena arena;
        enum run_state state;
        bool local;
        const struct run_events *events;
        void *owner;
        char id[40];
        char owner_key[32];            /* for whom it runs, or "" */
        uint32_t job;
        unsigned refusals;             /* connections that the proxy refused */

        struct run_request request;
        const struct language *language;
        const struct backend *backend;
        struct backend_job what;
        const char *main_file;
        struct run_input *inputs;
        size_t inputs_n;
        struct file_input *digests;    /* as the inputs, for telling what changed */
        int work_fd;                   /* the work folder, locked, or -1 */
        const char *work_dir;          /* its path */

        struct stream streams[2];
        struct watch channel_watch;
        struct channel channel;
        int home_fd;
        struct egress *egress;         /* the proxy of this run, or NULL */
        struct wire_boundary boundary;
        bool has_boundary;
        struct wire_exit how;
        bool cancelled, output_killed;

        struct csn_error refusal;      /* code 0: none */
        struct timer finish;
        uint64_t created_us, started_us, ended_us;
        char started_at[40];

        struct warning *warnings;
        size_t warnings_n;
        struct run_result result;
};

void run_warn(struct run *run, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* prepare.c: the request, made whole, into what a backend needs.  Errors: as records have them. */
int run_prepare(struct run *run, struct csn_error *err);
/* Opens input i for the backend. */
int run_open_input(void *run, size_t i, struct wire_file *ret_file, int *ret_fd, struct csn_error *err);

/* work.c: the folder of this host that a run works in. */
int work_open(struct run *run, struct csn_error *err);
void work_close(struct run *run);

/* record.c: everything into run->result. */
void run_record(struct run *run);

/* The time now, RFC 3339 in UTC with milliseconds. */
void time_text(char text[static 40]);

const struct settings *engine_settings_of(const struct engine *engine);

/* The newest; the others follow by their `next`. */
const struct run *engine_runs(const struct engine *engine);

#endif
