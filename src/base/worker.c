/*
 * Helper threads: a ring of shares with their queues, threads serving the ring, and a list of finished jobs for the
 * loop; see worker.h.
 */
#include "base/worker.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

/*
 * malloc_trim(3) holds the lock of each arena for milliseconds, also the lock of the loop's arena.  So a pause without
 * jobs comes first, or TRIM_EACH_MS pass between two trims.
 */
#define TRIM_PAUSE_MS 200
#define TRIM_EACH_MS 5000
#define DONE_AT_ONCE 8         /* finished jobs served between two looks at the other descriptors */

/* The jobs of a tenant.  A member of the ring while there are jobs. */
struct worker_share {
        struct worker_share *next;     /* in the ring, or the share itself */
        char name[WORKER_SHARE_MAX];
        struct job *first, *last;      /* waiting */
        size_t running;
        size_t jobs;                   /* waiting, running, and finished without done() */
};

struct workers {
        struct loop *loop;
        struct watch watch;            /* eventfd(2): jobs have finished */
        pthread_mutex_t lock;          /* for all members below */
        pthread_cond_t work;           /* jobs wait, or the threads shall end */
        pthread_cond_t finished;       /* work() of a job has ended */
        struct worker_share *ring;     /* the share for the next thread; NULL: no job is active */
        struct job *done, **done_end;
        size_t waiting, running, idle;
        bool ending;
        bool trim_due;                 /* a job has ended since the last malloc_trim(3) */
        uint64_t trimmed_ms;
        pthread_t threads[WORKER_THREADS_MAX];
        size_t threads_n, threads_max;
};

/* ---- shares; the lock is held ---- */

static struct worker_share *share_find(const struct workers *workers, const char *name)
{
        struct worker_share *share = workers->ring;
        do
                if (share && strncmp(share->name, name, WORKER_SHARE_MAX - 1) == 0)
                        return share;
        while (share && (share = share->next) != workers->ring);
        return NULL;
}

/* Add a share at the end of the ring. */
static struct worker_share *share_new(struct workers *workers, const char *name)
{
        struct worker_share *share = mem_alloc(sizeof *share);
        snprintf(share->name, sizeof share->name, "%s", name);
        share->next = share;
        if (workers->ring) {
                struct worker_share *last = workers->ring;
                while (last->next != workers->ring)
                        last = last->next;
                share->next = workers->ring;
                last->next = share;
        } else {
                workers->ring = share;
        }
        return share;
}

/* Counts a job less; frees an empty share. */
static void share_leave(struct workers *workers, struct worker_share *share)
{
        if (--share->jobs)
                return;
        struct worker_share *before = share;
        while (before->next != share)
                before = before->next;
        before->next = share->next;
        if (workers->ring == share)
                workers->ring = share->next == share ? NULL : share->next;
        free(share);
}

/* Take the first job of the next share that may use another thread.  NULL: no such share. */
static struct job *take(struct workers *workers)
{
        struct worker_share *share = workers->ring;
        if (!share)
                return NULL;
        do {
                if (share->first && share->running + 1 < workers->threads_max) {
                        struct job *job = share->first;
                        share->first = job->next;
                        share->running++;
                        workers->ring = share->next;
                        workers->waiting--;
                        workers->running++;
                        job->next = NULL;
                        return job;
                }
                share = share->next;
        } while (share != workers->ring);
        return NULL;
}

static void put_done(struct workers *workers, struct job *job)
{
        static const uint64_t one = 1;
        *workers->done_end = job;
        workers->done_end = &job->next;
        if (write(workers->watch.fd, &one, sizeof one) < 0)
                return;   /* EAGAIN: the counter is full, and the loop is woken already */
}

/* ---- threads ---- */

static _Thread_local bool is_helper;

bool worker_is_here(void)
{
        return is_helper;
}

/* Trees of large texts were in the arenas of the threads.  The lock is held before and after, and not in between. */
static void trim(struct workers *workers)
{
        workers->trim_due = false;
        workers->trimmed_ms = clock_ms();
        pthread_mutex_unlock(&workers->lock);
        malloc_trim(0);
        pthread_mutex_lock(&workers->lock);
}

/* The lock is held. */
static void wait_for_job(struct workers *workers)
{
        struct timespec until;
        int rc = 0;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TRIM_PAUSE_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        workers->idle++;
        if (workers->trim_due)
                rc = pthread_cond_clockwait(&workers->work, &workers->lock, CLOCK_MONOTONIC, &until);
        else
                pthread_cond_wait(&workers->work, &workers->lock);
        workers->idle--;
        if (rc == ETIMEDOUT && workers->trim_due && !workers->running)
                trim(workers);
}

static void *serve(void *owner)
{
        struct workers *workers = owner;
        is_helper = true;
        setpriority(PRIO_PROCESS, 0, WORKER_NICE);   /* 0: this thread (setpriority(2), NOTES) */
        pthread_mutex_lock(&workers->lock);
        while (!workers->ending) {
                struct job *job = take(workers);
                if (!job) {
                        wait_for_job(workers);
                        continue;
                }
                pthread_mutex_unlock(&workers->lock);
                job->work(job);
                pthread_mutex_lock(&workers->lock);
                workers->running--;
                job->share->running--;
                put_done(workers, job);
                pthread_cond_broadcast(&workers->finished);
                if (workers->waiting)
                        pthread_cond_signal(&workers->work);
                workers->trim_due = true;
                if (clock_ms() - workers->trimmed_ms >= TRIM_EACH_MS)
                        trim(workers);
        }
        pthread_mutex_unlock(&workers->lock);
        return NULL;
}

/* The lock is held.  Signals stay with the loop's thread, which reads signals from a descriptor. */
static void start_thread(struct workers *workers)
{
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        int sys = pthread_create(&workers->threads[workers->threads_n], NULL, serve, workers);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (sys == 0)
                workers->threads_n++;
        else
                log_text(LOG_WARN, "no helper thread is started: %s", strerrordesc_np(sys));
}

/* ---- the loop's side ---- */

static void end_job(struct workers *workers, struct job *job)
{
        pthread_mutex_lock(&workers->lock);
        share_leave(workers, job->share);
        pthread_mutex_unlock(&workers->lock);
        job->share = NULL;
        job->next = NULL;
        job->active = false;
        job->done(job);
}

static struct job *take_done(struct workers *workers)
{
        pthread_mutex_lock(&workers->lock);
        struct job *job = workers->done;
        if (job && !(workers->done = job->next))
                workers->done_end = &workers->done;
        pthread_mutex_unlock(&workers->lock);
        return job;
}

static void on_done(struct watch *watch, uint32_t events)
{
        struct workers *workers = watch->owner;
        uint64_t n;
        (void)events;
        if (read(watch->fd, &n, sizeof n) < 0)
                return;
        for (size_t i = 0; i < DONE_AT_ONCE; i++) {
                struct job *job = take_done(workers);
                if (!job)
                        return;
                end_job(workers, job);
        }
        n = 1;
        if (write(watch->fd, &n, sizeof n) < 0)
                log_text(LOG_ERROR, "eventfd: %s", strerrordesc_np(errno));
}

int workers_new(struct loop *loop, struct workers **ret, struct csn_error *err)
{
        auto_fd fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        cpu_set_t set;
        size_t cores = sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "eventfd");
        struct workers *workers = mem_alloc(sizeof *workers);
        *workers = (struct workers){ .loop = loop,
                .lock = PTHREAD_MUTEX_INITIALIZER,
                .work = PTHREAD_COND_INITIALIZER,
                .finished = PTHREAD_COND_INITIALIZER,
                .done_end = &workers->done,
                .threads_max = min_u64(max_u64(cores, WORKER_THREADS_MIN), WORKER_THREADS_MAX),
                .watch = { .fd = -1, .ready = on_done, .owner = workers } };
        if (loop_watch(loop, &workers->watch, fd, EPOLLIN, err) < 0) {
                free(workers);
                return -err->code;
        }
        take_fd(&fd);
        *ret = workers;
        return 0;
}

/* Move all waiting jobs of a share to the finished jobs. */
static void drop_waiting(struct workers *workers, struct worker_share *share)
{
        for (struct job *job = share->first, *next; job; job = next) {
                next = job->next;
                job->next = NULL;
                job->dropped = true;
                put_done(workers, job);
        }
        share->first = NULL;
}

void workers_free(struct workers *workers)
{
        if (!workers)
                return;
        pthread_mutex_lock(&workers->lock);
        workers->ending = true;
        pthread_cond_broadcast(&workers->work);
        pthread_mutex_unlock(&workers->lock);
        for (size_t i = 0; i < workers->threads_n; i++)
                pthread_join(workers->threads[i], NULL);
        struct worker_share *share = workers->ring;
        for (bool more = share; more; more = share != workers->ring) {
                drop_waiting(workers, share);
                share = share->next;
        }
        for (struct job *job; (job = take_done(workers));)
                end_job(workers, job);
        loop_unwatch(workers->loop, &workers->watch);
        fd_close(&workers->watch.fd);
        pthread_mutex_destroy(&workers->lock);
        pthread_cond_destroy(&workers->work);
        pthread_cond_destroy(&workers->finished);
        free(workers);
}

void worker_submit(struct workers *workers, const char *share, struct job *job)
{
        job->active = true;
        job->dropped = false;
        job->next = NULL;
        pthread_mutex_lock(&workers->lock);
        struct worker_share *of = share_find(workers, share);
        job->share = of ? of : share_new(workers, share);
        job->share->jobs++;
        if (!workers->ending && !workers->idle && workers->threads_n < workers->threads_max)
                start_thread(workers);
        bool alone = workers->ending || !workers->threads_n;
        if (!alone) {
                struct job **end = job->share->first ? &job->share->last->next : &job->share->first;
                *end = job;
                job->share->last = job;
                workers->waiting++;
                pthread_cond_signal(&workers->work);
        }
        pthread_mutex_unlock(&workers->lock);
        if (!alone)
                return;
        job->work(job);
        pthread_mutex_lock(&workers->lock);
        put_done(workers, job);
        pthread_mutex_unlock(&workers->lock);
}

bool worker_cancel(struct workers *workers, struct job *job)
{
        bool waited = false;
        if (!job->active)
                return false;
        pthread_mutex_lock(&workers->lock);
        struct job *before = NULL;
        for (struct job *at = job->share->first; at && !waited; before = at, at = at->next)
                if (at == job) {
                        *(before ? &before->next : &job->share->first) = job->next;
                        if (job->share->last == job)
                                job->share->last = before;
                        workers->waiting--;
                        share_leave(workers, job->share);
                        waited = true;
                        break;
                }
        pthread_mutex_unlock(&workers->lock);
        if (waited) {
                job->share = NULL;
                job->next = NULL;
                job->active = false;
        }
        return waited;
}

/* The lock is held.  False: work() of the job has not ended. */
static bool take_back(struct workers *workers, struct job *job)
{
        for (struct job **at = &workers->done; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        if (!job->next)
                                workers->done_end = at;
                        return true;
                }
        return false;
}

void worker_wait(struct workers *workers, struct job *job)
{
        if (!job->active || worker_cancel(workers, job))
                return;
        pthread_mutex_lock(&workers->lock);
        while (!take_back(workers, job))
                pthread_cond_wait(&workers->finished, &workers->lock);
        share_leave(workers, job->share);
        pthread_mutex_unlock(&workers->lock);
        job->share = NULL;
        job->next = NULL;
        job->active = false;
}

void workers_count(struct workers *workers, size_t *ret_waiting, size_t *ret_running)
{
        pthread_mutex_lock(&workers->lock);
        *ret_waiting = workers->waiting;
        *ret_running = workers->running;
        pthread_mutex_unlock(&workers->lock);
}

/* ---- memory ---- */

/* An arena without users. */
struct garbage {
        struct job job;
        struct arena arena;
};

static void work_free(struct job *job)
{
        struct garbage *garbage = job->owner;
        arena_done(&garbage->arena);
}

static void on_freed(struct job *job)
{
        if (job->dropped)
                work_free(job);
        free(job->owner);
}

void worker_free(struct workers *workers, const char *share, struct arena *arena)
{
        if (!workers || !arena_is_large(arena, WORKER_FREE_MIN)) {
                arena_done(arena);
                return;
        }
        struct garbage *garbage = mem_alloc(sizeof *garbage);
        *garbage = (struct garbage){ .job = { .work = work_free, .done = on_freed, .owner = garbage },
                .arena = *arena };
        *arena = (struct arena){ 0 };
        worker_submit(workers, share, &garbage->job);
}
