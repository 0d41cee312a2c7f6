/*
 * One sandbox, from PREPARE until its cgroup and uid are free again.  job.c moves a job through its states; job_table.c
 * finds jobs by number.
 */
#ifndef SUPERVISOR_JOB_H
#define SUPERVISOR_JOB_H

#include "supervisor/domain.h"

enum job_state {
        JOB_MAKING,            /* the outer init was asked to create process 1 */
        JOB_SETUP,             /* process 1 applies the isolation */
        JOB_READY,             /* process 1 waits for a command; READY was sent */
        JOB_CONFINING,         /* an interpreter is on its way into the sandbox */
        JOB_CONFINED,          /* the interpreter waits for a program; CONFINED was sent */
        JOB_STARTING,          /* the program arrives over the handoff socket */
        JOB_RUNNING,           /* the program runs */
        JOB_BACKGROUND,        /* the program ended; processes left behind may go on for limits.background_ms */
        /*
         * EXITING was accepted, the interpreter killed and EXITED sent; process 1 is killed once the interpreter is
         * dead
         */
        JOB_EXITING,
        JOB_DYING,             /* everything was killed; process 1 is not reaped yet */
        JOB_CLOSING,           /* dead, and EXITED or REFUSED sent; cgroup and uid are being released */
};

/* Step that the engine asked for in addition to the sandbox; taken as soon as the state allows. */
enum pending_step { PENDING_NONE, PENDING_WORKER, PENDING_ZYGOTE, PENDING_GUEST };

/* One sandbox.  Allocated by job_new(), a member of supervisor.jobs until job_free(). */
struct job {
        struct job *next;
        struct supervisor *sup;
        struct domain *domain;     /* of which the job is a user */
        uint32_t id;
        enum job_state state;
        struct sandbox sandbox;
        enum pending_step interpreter;
        uint32_t zygote;
        /* number of the guest's job that this interpreter joins; such a job has no process 1 of its own.  0: none */
        uint32_t host;
        bool wants_start;
        bool forking;              /* the zygote was asked to fork and has not answered */
        bool confinement_reported; /* process 1 has reported its confinement */
        bool interpreter_ready;    /* the interpreter reported CONFINED; the CONFINED of process 1 is still missing */
        struct watch control, talk, oom;
        struct timer deadline, poll, closing, freezing;
        bool frozen;                   /* the sandbox is frozen, or is being frozen */
        bool freeze_due, freeze_to;    /* a FREEZE that arrived before the program runs, and its value */
        /* EXITING arrived before the start report; act on EXITING when the job reaches JOB_RUNNING */
        bool early_exit_pending;
        unsigned left_status;
        uint64_t freezing_us;
        uint64_t asked_us, running_us, ended_us, closing_us;
        struct wire_exit how;
        /* CPU time (us) and peak memory (bytes) of dead processes, for hosts without the cgroup controllers */
        uint64_t cpu_us, memory_peak;
        /* time (us) that runnable processes waited for a CPU, read when the job is ended: see struct tree_usage */
        uint64_t waited_us;
        struct wire_boundary boundary;
        bool told;                     /* EXITED or REFUSED was sent */
        bool has_volumes;              /* volumes_release() is due */
        bool quarantined;
};

/* Allocate a job in state JOB_MAKING and add the job to supervisor.jobs, as a user of the domain.  Never NULL. */
struct job *job_new(struct domain *domain, uint32_t id);
/* Stop the job's watches and timers, remove the job from the list and free the memory. */
void job_free(struct job *job);
/* Watch the control socket of process 1 and the OOM eventfd, once the sandbox is open.  Errors: CSN_E_SYSTEM. */
int job_watch(struct job *job, struct csn_error *err);
/* Start the deadline (60 s) for the next step before the program begins. */
void job_await_setup(struct job *job);

/* Take the pending step if the state allows one.  A failure refuses the job. */
void job_advance(struct job *job);
/*
 * Freeze or thaw the sandbox of a running program.  Sends FROZEN when the cgroup has reached the state, FREEZE_FAILED
 * after 2 s.
 */
void job_hold(struct job *job, bool on);
/* Send FREEZE_FAILED with this error to the engine. */
void job_freeze_failed(struct job *job, const struct csn_error *error);

/*
 * EXITING: the interpreter has reported to the engine that the program ends with this exit status (0 to 255).  Reports
 * the end at once if the sandbox has no other program and uses at most 64 MiB; otherwise the job waits for the kernel's
 * report.
 */
void job_exit_early(struct job *job, unsigned status);
/* Kill all processes now.  `reason` is a set of WIRE_ reasons, added to the reasons of the exit. */
void job_kill(struct job *job, unsigned reason);
/* Kill a job before its program has begun, and send REFUSED with this error. */
void job_refuse(struct job *job, const struct csn_error *error);
/* The outer init reports the death of a process.  false: the process belongs to another job. */
bool job_process_died(struct job *job, const struct outer_init_message *died);
/* Release cgroup, uid and descriptors.  The job frees itself once the kernel has released the cgroup. */
void job_close(struct job *job);
/*
 * End of an interpreter in a guest's sandbox.  No process 1 ends together with the interpreter, so the job ends when no
 * process is left.  While its zygote is being asked to fork, the job stays: a child that is forked late is then known
 * and killed.
 */
void job_end_join_guest(struct job *job);

#endif
