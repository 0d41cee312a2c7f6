/*
 * Shared by the files of src/supervisor: the state of the process, and the operations on jobs and zygotes that
 * supervisor.c dispatches.
 */
#ifndef SUPERVISOR_SUPERVISOR_PRIVATE_H
#define SUPERVISOR_SUPERVISOR_PRIVATE_H

#include "supervisor/supervisor.h"

/* Jobs and zygotes are numbered separately.  In messages to the outer init this bit marks the number of a zygote. */
#define SUPERVISOR_ZYGOTE 0x80000000U

struct domain;

/* The state of the process.  Owns its descriptors, jobs and zygotes; the loop is created by supervisor_serve(). */
struct supervisor {
        int sock;
        struct watch peer;
        struct send_queue answers;
        struct loop *loop;
        const struct supervisor_options *options;
        struct abilities abilities;
        struct cgroup_base *cgroups;
        struct shared_trees dirs;          /* opened before the engine can touch them; -1: none */
        struct domain *common;             /* of all sandboxes with domain 0 */
        struct domain *domains;
        struct job *jobs;
        struct zygote *zygotes;
        struct volume *volumes;            /* attached volumes (volumes.c) */
        struct janitor janitor;
        bool hello_received;
        bool over;
        struct csn_error failure;
};

/* End the service with this error, which supervisor_serve() returns.  The first error counts. */
void sup_give_up(struct supervisor *sup, const struct csn_error *err);
/*
 * Send a message to the engine, or queue the message until the socket has room.  `fits` is the encoder's return value;
 * false ends the service.  The message is freed; the descriptors are duplicated and stay the caller's.
 */
void sup_answer(struct supervisor *sup, struct buf *message, bool fits, const int *fds, size_t fds_n);
/* Send `op` with an error: REFUSED, FREEZE_FAILED, or GONE for a zygote. */
void sup_answer_error(struct supervisor *sup, enum wire_op op, uint32_t id, const struct csn_error *error);

/* ---- job_table.c: sandboxes, by their numbers ---- */

/*
 * Create the job and its sandbox.  CSN_E_PROTOCOL: the number is in use.  All other failures are sent as REFUSED and
 * return 0.
 */
int job_prepare(struct supervisor *sup, uint32_t id, const struct wire_shape *shape, struct csn_error *err);
/*
 * Requests of the engine for one job.  CSN_E_PROTOCOL: the request is not allowed in this state, and the connection
 * ends.  All other failures are sent as REFUSED and return 0.  A job that is over, or unknown, ignores requests: the
 * engine may not know of its end.
 */
int job_join(struct supervisor *sup, uint32_t id, uint32_t zygote, struct csn_error *err);
int job_worker(struct supervisor *sup, uint32_t id, struct csn_error *err);
int job_start(struct supervisor *sup, uint32_t id, const struct wire_limits *limits, struct csn_error *err);
/* The same: process 1 becomes the guest (WIRE_PERSISTENT only).  Errors: CSN_E_PROTOCOL. */
int job_guest(struct supervisor *sup, uint32_t id, const struct wire_limits *limits, struct csn_error *err);
/*
 * The same: a zygote's child joins the sandbox of a guest, with job number `sandbox`.  Errors: CSN_E_PROTOCOL.  fds:
 * WIRE_ENTRIES; each one kept is set to -1.
 */
int job_join_guest(struct supervisor *sup, uint32_t id, uint32_t sandbox, uint32_t zygote, int *fds,
        struct csn_error *err);
/* Requests without an error of their own: failures are sent to the engine. */
void job_freeze(struct supervisor *sup, uint32_t id, bool on);
void job_exiting(struct supervisor *sup, uint32_t id, unsigned status);
void job_stop(struct supervisor *sup, uint32_t id);
void job_report_stats(struct supervisor *sup, uint32_t id);

/*
 * Reports of the outer init of a domain, and of a zygote of the domain.  The descriptor becomes the callee's in every
 * case.  false: the report concerns no job of the domain.
 */
bool job_made(struct domain *domain, uint32_t id, pid_t pid, int pid_fd, const struct csn_error *error);
bool job_forked(struct domain *domain, uint32_t id, pid_t pid, int pid_fd, const struct csn_error *error);
bool job_lost(struct domain *domain, const struct outer_init_message *died);
/* The outer init of a domain is dead, and with it all processes of the domain. */
void jobs_of_domain(struct domain *domain, const struct csn_error *error);
/*
 * The zygote serves (gone is NULL) or has ended: jobs that wait for the zygote go on, or are refused with this error.
 */
void jobs_of_zygote(struct supervisor *sup, uint32_t zygote, const struct csn_error *gone);

/* Kill all jobs without further reports; free all jobs. */
void jobs_kill(struct supervisor *sup);
void jobs_free(struct supervisor *sup);

/* ---- zygote_table.c ---- */

/*
 * Queue for one fork request to this zygote.  A zygote without an answer after HELPER_ANSWER_MS is ended.  NULL: the
 * zygote does not serve (yet).  *ret_known: the domain has the zygote.
 */
struct send_queue *zygote_send_queue(struct domain *domain, uint32_t id, bool *ret_known);

/* ---- zygotes.c ---- */

/*
 * Start a zygote for this command line, which is copied; with shape->domain in a domain of its own.  CSN_E_PROTOCOL:
 * the number is in use, the domain has another number, or there are too many zygotes.  All other failures are sent to
 * the engine as GONE, and return 0.
 */
int zygote_start(struct supervisor *sup, uint32_t id, const struct wire_shape *shape,
        const struct wire_program *program, struct csn_error *err);
/* End a zygote.  Jobs that wait for the zygote are refused with CSN_E_CANCELLED. */
void zygote_retire(struct supervisor *sup, uint32_t id);
/*
 * Reports of the outer init, as for jobs: the descriptor becomes the callee's.  false: the domain has no zygote of this
 * number or pid.
 */
bool zygote_made(struct domain *domain, uint32_t id, pid_t pid, int pid_fd, const struct csn_error *error);
bool zygote_lost(struct domain *domain, const struct outer_init_message *died);
/* The outer init of the domain is dead, and with it the zygote. */
void zygote_domain_lost(struct domain *domain, const struct csn_error *why);
void zygotes_free(struct supervisor *sup);

#endif
