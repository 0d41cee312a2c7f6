/* All sandboxes: requests of the engine, and reports of the outer init and of zygotes. */
#include "supervisor/job.h"
#include "supervisor/volumes.h"

#include <signal.h>

static struct job *find_job(struct supervisor *sup, uint32_t id)
{
        for (struct job *job = sup->jobs; job; job = job->next)
                if (job->id == id)
                        return job;
        return NULL;
}

/* ---- messages of the outer init and of zygotes ---- */

/* A zygote with foreign code may name any job, so the job has to be of the same domain. */
static struct job *find_job_of(struct domain *domain, uint32_t id)
{
        struct job *job = find_job(domain->sup, id);
        return job && job->domain == domain ? job : NULL;
}

bool job_made(struct domain *domain, uint32_t id, pid_t pid, int pid_fd, const struct csn_error *error)
{
        struct job *job = find_job_of(domain, id);
        struct csn_error err;
        auto_fd fd = pid_fd;
        if (!job || (job->state != JOB_MAKING && job->state != JOB_DYING) || job->sandbox.pid)
                return false;
        if (error) {
                job_refuse(job, error);
                job_close(job);
                return true;
        }
        bool killing = job->state == JOB_DYING;
        if (!killing)
                job->state = JOB_SETUP;
        if (sandbox_made(&job->sandbox, pid, take_fd(&fd), &err) < 0 && !killing)
                job_refuse(job, &err);
        if (killing)
                sandbox_kill(&job->sandbox);
        return true;
}

bool job_forked(struct domain *domain, uint32_t id, pid_t pid, int pid_fd, const struct csn_error *error)
{
        struct job *job = find_job_of(domain, id);
        struct csn_error err;
        auto_fd fd = pid_fd;
        if (!job || !job->forking)
                return false;
        job->forking = false;
        if (job->state != JOB_CONFINING) {
                /* The job was given up meanwhile.  Its pid namespace is dead or dies now; a guest's goes on. */
                if (job->host) {
                        job->sandbox.program_fd = take_fd(&fd);
                        sandbox_kill(&job->sandbox);
                        job_end_join_guest(job);
                }
                return true;
        }
        const struct job *host = job->host ? find_job(domain->sup, job->host) : job;
        int rc = 0;
        if (error) {
                err = *error;
                rc = -err.code;
        } else if (!host) {
                job->sandbox.program_fd = take_fd(&fd);
                rc = err_set(&err, CSN_E_BUSY, 0, "the sandbox is over");
        } else {
                rc = sandbox_confined(&job->sandbox, &host->sandbox.leaf, pid, take_fd(&fd), &err);
        }
        /*
         * The outer init may report the child's death before the zygote reports the fork; no later report follows
         * then.
         */
        if (job->sandbox.program && !sandbox_has_program(&job->sandbox)) {
                job->sandbox.program = 0;
                rc = err_set(&err, CSN_E_SYSTEM, 0, "the interpreter ended before the program began");
        }
        if (rc < 0)
                job_refuse(job, &err);
        return true;
}

bool job_lost(struct domain *domain, const struct outer_init_message *died)
{
        for (struct job *job = domain->sup->jobs; job; job = job->next)
                if (job->domain == domain && job_process_died(job, died))
                        return true;
        return false;
}

void jobs_of_domain(struct domain *domain, const struct csn_error *error)
{
        for (struct job *job = domain->sup->jobs; job; job = job->next) {
                struct outer_init_message died = { .op = OUTER_INIT_DIED, .pid = job->sandbox.pid, .status = SIGKILL };
                if (job->domain != domain || job->state == JOB_CLOSING)
                        continue;
                /* The program was killed with its domain, so its exit status is meaningless. */
                if (job->state == JOB_RUNNING) {
                        struct csn_error gone;
                        err_set(&gone, CSN_E_LOST, 0, "%s", error->text);
                        job_refuse(job, &gone);
                }
                if (died.pid) {
                        job_process_died(job, &died);
                } else {
                        job_refuse(job, error);
                        job_close(job);
                }
        }
}

void jobs_of_zygote(struct supervisor *sup, uint32_t zygote, const struct csn_error *gone)
{
        for (struct job *job = sup->jobs, *next; job; job = next) {
                next = job->next;
                if (job->interpreter != PENDING_ZYGOTE || job->zygote != zygote)
                        continue;
                if (!gone) {
                        job_advance(job);
                        continue;
                }
                job->forking = false;
                if (job->state == JOB_READY || (job->state == JOB_CONFINING && !job->sandbox.program))
                        job_refuse(job, gone);
                else if (job->state == JOB_DYING)
                        job_end_join_guest(job);
        }
}

/* ---- requests of the engine ---- */

static int unexpected(const char *what, struct csn_error *err)
{
        return err_set(err, CSN_E_PROTOCOL, 0, "%s is not allowed now, or twice", what);
}

static int open_mounts(void *owner, struct plan *plan, struct csn_error *err)
{
        struct job *job = owner;
        job->has_volumes = volumes_open_mounts(job->sup, plan, err) == 0;
        return job->has_volumes ? 0 : -err->code;
}

int job_prepare(struct supervisor *sup, uint32_t id, const struct wire_shape *shape, struct csn_error *err)
{
        struct csn_error refusal;
        if (find_job(sup, id) || id & SUPERVISOR_ZYGOTE)
                return unexpected("PREPARE", err);
        struct domain *domain = domain_find(sup, (uint32_t)shape->domain);
        struct job *job = job_new(domain ? domain : sup->common, id);
        if (!domain || domain->error.code) {
                err_set(&refusal, CSN_E_BUSY, 0, "the zygote of this sandbox is gone");
                job_refuse(job, domain ? &domain->error : &refusal);
                job_close(job);
                return 0;
        }
        const struct sandbox_host host = { .abilities = &sup->abilities,
                .cgroups = sup->cgroups,
                .uids = &sup->options->uids,
                .images_dir = sup->dirs.images,
                .outer_init = &domain->requests,
                .open_mounts = open_mounts,
                .owner = job };
        if (sandbox_open(&job->sandbox, id, shape, &host, &refusal) < 0 ||
                job_watch(job, &refusal) < 0) {
                job_refuse(job, &refusal);
                job_close(job);
                return 0;
        }
        job_await_setup(job);
        return 0;
}

/* The engine may not know yet that a sandbox is dead: a request for a dead sandbox is ignored. */
static bool is_over(const struct job *job)
{
        return !job || job->state >= JOB_EXITING;
}

/* Process 1 of a sandbox with root is root inside and starts no program; the guest does. */
static bool has_root(const struct job *job)
{
        return job->sandbox.plan.shape.flags & WIRE_ROOT;
}

int job_join(struct supervisor *sup, uint32_t id, uint32_t zygote, struct csn_error *err)
{
        struct job *job = find_job(sup, id);
        if (is_over(job))
                return 0;
        if (job->interpreter != PENDING_NONE || job->wants_start || has_root(job))
                return unexpected("JOIN", err);
        job->interpreter = PENDING_ZYGOTE;
        job->zygote = zygote;
        job_advance(job);
        return 0;
}

int job_worker(struct supervisor *sup, uint32_t id, struct csn_error *err)
{
        struct job *job = find_job(sup, id);
        if (is_over(job))
                return 0;
        if (job->interpreter != PENDING_NONE || job->wants_start || has_root(job))
                return unexpected("WORKER", err);
        job->interpreter = PENDING_WORKER;
        job_advance(job);
        return 0;
}

int job_start(struct supervisor *sup, uint32_t id, const struct wire_limits *limits, struct csn_error *err)
{
        struct job *job = find_job(sup, id);
        struct csn_error refusal;
        if (is_over(job))
                return 0;
        if (job->wants_start || (has_root(job) && !job->host))
                return unexpected("START", err);
        job->wants_start = true;
        if (job->state == JOB_READY || job->state == JOB_CONFINED)
                job->asked_us = clock_us();
        if (plan_limit(&job->sandbox.plan, limits, &refusal) < 0)
                job_refuse(job, &refusal);
        else
                job_advance(job);
        return 0;
}

int job_guest(struct supervisor *sup, uint32_t id, const struct wire_limits *limits, struct csn_error *err)
{
        struct job *job = find_job(sup, id);
        struct csn_error refusal;
        if (is_over(job))
                return 0;
        if (job->interpreter != PENDING_NONE || job->wants_start || job->host ||
                !(job->sandbox.plan.shape.flags & WIRE_PERSISTENT))
                return unexpected("GUEST", err);
        job->interpreter = PENDING_GUEST;
        if (plan_limit(&job->sandbox.plan, limits, &refusal) < 0)
                job_refuse(job, &refusal);
        else
                job_advance(job);
        return 0;
}

int job_join_guest(struct supervisor *sup, uint32_t id, uint32_t sandbox, uint32_t zygote, int *fds,
        struct csn_error *err)
{
        const struct job *host = find_job(sup, sandbox);
        struct csn_error refusal;
        if (find_job(sup, id) || id & SUPERVISOR_ZYGOTE || !sandbox || (host && host->interpreter != PENDING_GUEST))
                return unexpected("JOIN_GUEST", err);
        struct job *job = job_new(host ? host->domain : sup->common, id);
        job->host = sandbox;
        job->interpreter = PENDING_ZYGOTE;
        job->zygote = zygote;
        if (is_over(host) || host->state < JOB_STARTING || host->state > JOB_RUNNING) {
                err_set(&refusal, CSN_E_BUSY, 0, "the sandbox is over");
                job_refuse(job, &refusal);
        } else if (sandbox_join_guest(&job->sandbox, &host->sandbox, fds, &refusal) < 0) {
                job_refuse(job, &refusal);
        } else {
                job->boundary = host->boundary;
                job_await_setup(job);
                job->state = JOB_READY;
                job_advance(job);
        }
        return 0;
}

/* A guest says HELLO to the engine on its own socket, so FREEZE may arrive before the report that the guest runs. */
void job_freeze(struct supervisor *sup, uint32_t id, bool on)
{
        struct job *job = find_job(sup, id);
        struct csn_error err;
        if (is_over(job))
                return;
        if (job->interpreter != PENDING_GUEST || job->state > JOB_RUNNING) {
                err_set(&err, CSN_E_BUSY, 0, "there is no guest in this sandbox");
                job_freeze_failed(job, &err);
        } else if (job->state < JOB_RUNNING) {
                job->freeze_due = true;
                job->freeze_to = on;
        } else {
                job_hold(job, on);
        }
}

void job_exiting(struct supervisor *sup, uint32_t id, unsigned status)
{
        struct job *job = find_job(sup, id);
        if (job && job->state == JOB_STARTING) {
                job->early_exit_pending = true;
                job->left_status = status;
        } else if (job && job->state == JOB_RUNNING) {
                job_exit_early(job, status);
        }
}

void job_stop(struct supervisor *sup, uint32_t id)
{
        struct job *job = find_job(sup, id);
        struct csn_error err;
        if (job && job->host && job->state == JOB_READY) {
                err_set(&err, CSN_E_CANCELLED, 0, "the interpreter is not wanted any more");
                job_refuse(job, &err);
        } else if (job) {
                job_kill(job, WIRE_KILLED);
        }
}

void job_report_stats(struct supervisor *sup, uint32_t id)
{
        struct job *job = find_job(sup, id);
        struct wire_stats seen;
        struct buf message;
        if (is_over(job) || job->state < JOB_READY)
                return;
        sandbox_read_stats(&job->sandbox, &seen);
        buf_init(&message, WIRE_MAX);
        sup_answer(sup, &message, wire_put_stats(&message, id, &seen), NULL, 0);
}

/* ---- all jobs ---- */

void jobs_kill(struct supervisor *sup)
{
        for (struct job *job = sup->jobs; job; job = job->next) {
                job->told = true;   /* the engine does not listen any more */
                job_kill(job, WIRE_KILLED);
        }
}

void jobs_free(struct supervisor *sup)
{
        for (struct job *job = sup->jobs, *next; job; job = next) {
                next = job->next;
                job_free(job);
        }
}
