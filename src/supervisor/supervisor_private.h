/* The parts of the supervisor; for the files of this folder. */
#ifndef SUPERVISOR_PARTS_H
#define SUPERVISOR_PARTS_H

#include "supervisor/supervisor.h"

/* Jobs and zygotes have numbers of their own; this bit tells them apart where both are asked for. */
#define SUPERVISOR_ZYGOTE 0x80000000U

struct supervisor {
        int sock;
        struct watch peer;
        struct send_queue answers;
        struct loop *loop;
        const struct supervisor_options *options;
        struct abilities abilities;
        struct cgroup_base *cgroups;
        struct outer_init outer_init;
        struct watch outer_init_watch;
        struct send_queue outer_init_queue;
        struct csn_error outer_init_error;    /* why sandboxes cannot be made here; code 0: they can */
        struct job *jobs;
        struct zygote *zygotes;
        struct janitor janitor;
        bool hello_received;
        bool over;
        struct csn_error failure;
};

/* The connection is of no use any more; everything ends. */
void sup_give_up(struct supervisor *sup, const struct csn_error *err);
/* Send a message to the engine.  `fits` is what the encoder said. */
void sup_answer(struct supervisor *sup, struct buf *message, bool fits, const int *fds, size_t fds_n);
void sup_answer_error(struct supervisor *sup, enum wire_op op, uint32_t id, const struct csn_error *error);

/* ---- job_table.c: sandboxes, by their numbers ---- */

/* Errors of these are the peer's: it asked what is not allowed, and the connection ends. */
int job_prepare(struct supervisor *sup, uint32_t id, const struct wire_shape *shape, struct csn_error *err);
int job_join(struct supervisor *sup, uint32_t id, uint32_t zygote, struct csn_error *err);
int job_worker(struct supervisor *sup, uint32_t id, struct csn_error *err);
int job_start(struct supervisor *sup, uint32_t id, const struct wire_limits *limits, struct csn_error *err);
/* Process 1 becomes the guest. */
int job_guest(struct supervisor *sup, uint32_t id, const struct wire_limits *limits, struct csn_error *err);
/* An interpreter of a zygote into the sandbox of a guest.  fds: WIRE_ENTRIES, taken from what is there. */
int job_join_guest(struct supervisor *sup, uint32_t id, uint32_t sandbox, uint32_t zygote, int *fds, struct csn_error *err);
void job_freeze(struct supervisor *sup, uint32_t id, bool on);
void job_exiting(struct supervisor *sup, uint32_t id, unsigned status);
void job_stop(struct supervisor *sup, uint32_t id);
void job_report_stats(struct supervisor *sup, uint32_t id);

/* What outer init and zygotes tell of them; the descriptor is the callee's.  false: no job of ours. */
bool job_made(struct supervisor *sup, uint32_t id, pid_t pid, int pid_fd, const struct csn_error *error);
bool job_forked(struct supervisor *sup, uint32_t id, pid_t pid, int pid_fd, const struct csn_error *error);
bool job_lost(struct supervisor *sup, const struct outer_init_message *died);
/* The zygote with this number serves, or is gone: those who wait for it go on or are refused. */
void jobs_of_zygote(struct supervisor *sup, uint32_t zygote, const struct csn_error *gone);

void jobs_kill(struct supervisor *sup);
void jobs_free(struct supervisor *sup);

/* ---- zygotes.c ---- */

int zygote_start(struct supervisor *sup, uint32_t id, const struct wire_program *program, struct csn_error *err);
void zygote_retire(struct supervisor *sup, uint32_t id);
/* Where to ask it for an interpreter; NULL: it does not serve (yet).  *ret_known: there is one of that number. */
struct send_queue *zygote_send_queue(struct supervisor *sup, uint32_t id, bool *ret_known);
bool zygote_made(struct supervisor *sup, uint32_t id, pid_t pid, int pid_fd, const struct csn_error *error);
bool zygote_lost(struct supervisor *sup, const struct outer_init_message *died);
void zygotes_free(struct supervisor *sup);

#endif
