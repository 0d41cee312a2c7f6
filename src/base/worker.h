/*
 * worker: helper threads for work whose length a client or a program decides: parsing, hashing, copying, encoding,
 * listing.
 *
 * A job belongs to its owner until worker_submit().  From then on until done(), only work() may touch the memory of the
 * job.  work() runs in a helper thread, and uses nothing of the engine, of the store and of the loop.  done() runs in
 * the loop's thread.  docs/design/loop-steps.md lists which work is done by jobs.
 *
 * Jobs are served fairly: each share (a tenant) gets a thread in turn, and one share never holds the last free thread.
 * Helper threads have a lower priority than the loop's (WORKER_NICE).
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include "base/base.h"

#define WORKER_THREADS_MIN 2           /* also with one processor: one share leaves one thread free */
#define WORKER_THREADS_MAX 4           /* each job may hold the memory of a large body or record */
#define WORKER_NICE 10                 /* setpriority(2), of each helper thread */
#define WORKER_SHARE_MAX 80            /* bytes of a share's name, with its NUL */
#define WORKER_FREE_MIN (2 * MIB)      /* bytes of an arena; the kernel takes 10 ms to free 60 MiB */

struct workers;

/* Embedded in its owner.  Set work and done; the other members are worker.c's. */
struct job {
        void (*work)(struct job *job);
        void (*done)(struct job *job); /* the job is its owner's again, and may be freed or submitted */
        void *owner;
        bool dropped;                  /* set for done(): the workers end, and work() was not called */
        struct job *next;
        struct worker_share *share;
        bool active;                   /* from worker_submit() until done() */
};

/* No thread is started before the first job.  Errors: CSN_E_SYSTEM. */
int workers_new(struct loop *loop, struct workers **ret, struct csn_error *err);
/* Wait for the jobs that run, and drop the others; done() is called for all of them.  NULL is allowed. */
void workers_free(struct workers *workers);

/*
 * Queue a job for its share (at most WORKER_SHARE_MAX - 1 bytes of the name count).  Without a helper thread
 * (pthread_create(3) failed, or workers_free() was called) work() runs at once.  done() follows from the loop in any
 * case.
 */
void worker_submit(struct workers *workers, const char *share, struct job *job);
/* true: the job had not begun, and done() is not called.  false: done() follows, or the job is not active. */
bool worker_cancel(struct workers *workers, struct job *job);
/*
 * Take a job back: a job that has not begun is not done, and work() of a job that runs is waited for.  done() is not
 * called.  For the end of a program, and for owners that cannot wait for done().
 */
void worker_wait(struct workers *workers, struct job *job);
/* Free all memory of an arena, which is empty after the call: from WORKER_FREE_MIN on in a helper thread. */
void worker_free(struct workers *workers, const char *share, struct arena *arena);
/* Whether the caller is in a helper thread. */
bool worker_is_here(void);
/* Jobs that wait and jobs that run. */
void workers_count(struct workers *workers, size_t *ret_waiting, size_t *ret_running);

#endif
