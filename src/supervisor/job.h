/* One sandbox and its life; for job.c, which moves it on, and job_table.c, which has all of them. */
#ifndef SUPERVISOR_JOB_H
#define SUPERVISOR_JOB_H

#include "supervisor/supervisor_private.h"

enum job_state {
        JOB_MAKING,            /* the outer init was asked for process 1 */
        JOB_SETUP,             /* process 1 puts up the isolation */
        JOB_READY,             /* it waits */
        JOB_CONFINING,           /* an interpreter is on its way */
        JOB_CONFINED,            /* and waits */
        JOB_STARTING,          /* the program comes through the handoff socket */
        JOB_RUNNING,           /* it runs */
        JOB_BACKGROUND,        /* it ended, what it left behind may go on for a little */
        JOB_EXITING,              /* its interpreter said so, was killed, and the end is told; process 1 goes when that is dead */
        JOB_DYING,             /* everything was killed, process 1 is not reaped yet */
        JOB_CLOSING,           /* dead and told; cgroup and uid are being given back */
};

/* What the engine wants besides a sandbox; done as soon as the state allows it. */
enum pending_step { PENDING_NONE, PENDING_WORKER, PENDING_ZYGOTE, PENDING_GUEST };

struct job {
        struct job *next;
        struct supervisor *sup;
        uint32_t id;
        enum job_state state;
        struct sandbox sandbox;
        enum pending_step interpreter;
        uint32_t zygote;
        uint32_t host;                 /* the guest in whose sandbox it is an interpreter; it has none of its own then */
        bool wants_start;
        bool forking;                  /* its zygote was asked, and has not answered */
        bool confinement_reported;                   /* process 1 said what it has given up */
        bool interpreter_ready;                   /* the interpreter said that it waits; process 1 has to say that it left */
        struct watch control, talk, oom;
        struct timer deadline, poll, closing, freezing;
        bool frozen;                   /* or is to be */
        bool freeze_due, freeze_to;    /* what is to be done as soon as it runs */
        bool early_exit_pending;                 /* likewise: the engine has heard its end before we heard its beginning */
        unsigned left_status;
        uint64_t freezing_us;
        uint64_t asked_us, running_us, ended_us, closing_us;
        struct wire_exit how;
        uint64_t cpu_us, memory_peak;  /* of its dead processes, where no controller counts */
        uint64_t waited_us;            /* when it was ended: see struct tree_usage */
        struct wire_boundary boundary;
        bool told;                     /* EXITED or REFUSED went out */
        bool quarantined;
};

/* In the list of all, and nothing else yet. */
struct job *job_new(struct supervisor *sup, uint32_t id);
void job_free(struct job *job);
/* Its sandbox is open: listen to process 1. */
int job_watch(struct job *job, struct csn_error *err);
/* Its next step before the program has to come in time. */
void job_await_setup(struct job *job);

/* One step on, if the engine wants one and the state allows it. */
void job_advance(struct job *job);
/* Stand still, or go on; the engine is told when it does.  The program runs. */
void job_hold(struct job *job, bool on);
void job_freeze_failed(struct job *job, const struct csn_error *error);

/* Its interpreter told the engine so, and with which status. */
void job_exit_early(struct job *job, unsigned status);
/* End everything inside now.  The cause is kept as a reason of the exit, unless an earlier one is there. */
void job_kill(struct job *job, unsigned reason);
/* Likewise, of one whose program has not begun; the engine is told why. */
void job_refuse(struct job *job, const struct csn_error *error);
/* The outer init tells of a death.  false: that process is not one of this job. */
bool job_process_died(struct job *job, const struct outer_init_message *died);
/* Give back what it had.  The job is freed when the kernel has let go of it, later. */
void job_close(struct job *job);
/*
 * An interpreter that visits a guest has no process 1 whose end would end it.  Without a process it is over; but while its
 * zygote is asked it stays, so that what is forked after all is known and killed.
 */
void job_end_join_guest(struct job *job);

#endif
