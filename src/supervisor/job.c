/* One sandbox: made by the outer init, perhaps joined by an interpreter, started, ended, released. */
#include "supervisor/job.h"
#include "supervisor/volumes.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>

#define SETUP_MS 60000         /* for each step before the program's first instruction; large input files take time */
#define POLL_MS 25             /* period of reading counters without an event */
#define CLOSE_RETRY_MS 2
#define LEFT_MS 20             /* from EXITING to the death of the interpreter; then process 1 is killed */
#define LEFT_MEMORY (64 * MIB)  /* freeing more takes long enough for other programs to notice */
#define WAITED_MS 5            /* the least extension of the wall time limit */
#define QUARANTINE_MS 2000     /* a cgroup that does not empty in this time is reported, its uid kept */

/* ---- reports to the engine ---- */

static void tell_boundary(struct job *job, enum wire_op op)
{
        struct buf message;
        int ends[WIRE_ENDS];
        size_t n = 0;
        buf_init(&message, WIRE_MAX);
        job->boundary.memory_bytes = cgroup_leaf_memory(&job->sandbox.leaf);
        for (int i = 0; i < WIRE_ENDS && op == WIRE_READY; i++)
                if (job->sandbox.outer[i] >= 0)
                        ends[n++] = job->sandbox.outer[i];
        sup_answer(job->sup, &message, wire_put_boundary(&message, op, job->id, &job->boundary), ends, n);
        for (int i = 0; i < WIRE_ENDS && op == WIRE_READY; i++)
                fd_close(&job->sandbox.outer[i]);
}

static void tell_exited(struct job *job)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        sup_answer(job->sup, &message, wire_put_exit(&message, job->id, &job->how), NULL, 0);
        job->told = true;
}

/* ---- end of a job ---- */

void job_free(struct job *job)
{
        struct loop *loop = job->sup->loop;
        loop_unwatch(loop, &job->control);
        loop_unwatch(loop, &job->talk);
        loop_unwatch(loop, &job->oom);
        loop_untimer(loop, &job->deadline);
        loop_untimer(loop, &job->poll);
        loop_untimer(loop, &job->closing);
        loop_untimer(loop, &job->freezing);
        if (job->has_volumes)
                volumes_release(job->sup, &job->sandbox.plan.shape);
        for (struct job **at = &job->sup->jobs; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        break;
                }
        domain_leave(job->domain);
        free(job);
}

static void job_try_close(struct timer *timer)
{
        struct job *job = timer->owner;
        if (sandbox_close(&job->sandbox)) {
                job_free(job);
                return;
        }
        if (!job->quarantined && clock_us() - job->closing_us > QUARANTINE_MS * 1000ULL) {
                log_text(LOG_ERROR, "the cgroup %s does not empty; its uid %u stays out of use", job->sandbox.leaf.name,
                         job->sandbox.plan.host_uid);
                job->quarantined = true;
        }
        cgroup_leaf_kill(&job->sandbox.leaf);
        loop_timer(job->sup->loop, timer, (job->quarantined ? QUARANTINE_MS : CLOSE_RETRY_MS) * 1000ULL);
}

void job_close(struct job *job)
{
        struct loop *loop = job->sup->loop;
        job->state = JOB_CLOSING;
        job->closing_us = clock_us();
        loop_untimer(loop, &job->deadline);
        loop_untimer(loop, &job->poll);
        loop_untimer(loop, &job->freezing);
        loop_unwatch(loop, &job->oom);
        loop_unwatch(loop, &job->control);
        loop_unwatch(loop, &job->talk);
        loop_timer(loop, &job->closing, 0);
}

static void count_usage(struct job *job)
{
        struct cgroup_usage usage;
        cgroup_leaf_usage(&job->sandbox.leaf, &usage);
        struct wire_exit *how = &job->how;
        how->cpu_us = usage.cpu_us ? usage.cpu_us : job->cpu_us;
        /* Before Linux 5.19 cgroup v2 has no memory.peak, but counts how often the limit was reached. */
        uint64_t peak = usage.oom_hits ? job->sandbox.plan.limits.memory_bytes : job->memory_peak;
        how->memory_peak = usage.memory_peak ? usage.memory_peak : peak;
        how->pids_peak = usage.pids_peak ? usage.pids_peak - 1 : 0;   /* process 1 is ours */
        how->oom_kills = usage.oom_kills;
        how->pids_hits = usage.pids_hits;
        how->throttled_us = usage.throttled_us;
        how->waited_us = job->waited_us;
        if (usage.oom_kills)
                how->reasons |= WIRE_MEMORY;
        how->wall_us = job->ended_us > job->running_us ? job->ended_us - job->running_us : 0;
        how->prepare_us = job->running_us > job->asked_us ? job->running_us - job->asked_us : 0;
}

/* Everything inside is dead, or nothing is left but process 1: the counters do not change any more. */
static void job_report(struct job *job)
{
        if (job->told)
                return;
        count_usage(job);
        tell_exited(job);
}

/* On cgroup v1 a frozen process does not even die. */
static void let_die(struct job *job)
{
        struct csn_error err;
        loop_untimer(job->sup->loop, &job->freezing);
        if (job->frozen && cgroup_leaf_freeze(&job->sandbox.leaf, false, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}

void job_end_join_guest(struct job *job)
{
        if (!job->host || job->sandbox.program || job->state == JOB_CLOSING)
                return;
        job_report(job);
        if (!job->forking)
                job_close(job);
}

/* Before the processes die: reads whether the run was slow, or other programs had the CPU. */
static void count_waiting(struct job *job)
{
        struct tree_usage tree;
        sandbox_tree(&job->sandbox, &tree);
        job->waited_us = tree.waited_us;
}

void job_kill(struct job *job, unsigned reason)
{
        if (job->state >= JOB_DYING)
                return;
        if (job->state == JOB_RUNNING && reason & (WIRE_WALL | WIRE_KILLED))
                count_waiting(job);
        job->how.reasons |= reason;
        if (job->state == JOB_RUNNING)
                job->ended_us = clock_us();
        job->state = JOB_DYING;
        loop_untimer(job->sup->loop, &job->deadline);
        loop_untimer(job->sup->loop, &job->poll);
        if (job->told)
                loop_unwatch(job->sup->loop, &job->control);   /* messages of process 1 change nothing any more */
        sandbox_kill(&job->sandbox);   /* without a process 1 yet: job_made() kills later */
        let_die(job);
        job_end_join_guest(job);
}

void job_refuse(struct job *job, const struct csn_error *error)
{
        if (!job->told)
                sup_answer_error(job->sup, WIRE_REFUSED, job->id, error);
        job->told = true;
        job_kill(job, 0);
}

/* ---- clocks ---- */

static void expect_within(struct job *job, uint64_t ms)
{
        loop_timer(job->sup->loop, &job->deadline, ms * 1000);
}

/* Whether a program has time left when its limit does not count the time waited for a CPU. */
static bool has_waited(struct job *job)
{
        const struct wire_limits *limits = &job->sandbox.plan.limits;
        uint64_t used_us = clock_us() - job->running_us;
        struct cgroup_usage usage;
        struct tree_usage tree;
        if (!limits->waiting_ms)
                return false;
        sandbox_tree(&job->sandbox, &tree);
        cgroup_leaf_usage(&job->sandbox.leaf, &usage);
        /* Time throttled by the sandbox' own CPU share was not taken by other programs. */
        uint64_t waited_us = tree.waited_us > usage.throttled_us ? tree.waited_us - usage.throttled_us : 0;
        uint64_t end_us = limits->wall_ms * 1000 + min_u64(waited_us, limits->waiting_ms * 1000);
        if (end_us < used_us + WAITED_MS * 1000)
                return false;
        expect_within(job, (end_us - used_us) / 1000);
        return true;
}

static void job_deadline(struct timer *timer)
{
        struct job *job = timer->owner;
        struct csn_error err;
        if (job->state == JOB_RUNNING && has_waited(job)) {
                return;
        } else if (job->state == JOB_RUNNING) {
                job_kill(job, WIRE_WALL);
        } else if (job->state == JOB_BACKGROUND) {
                job_kill(job, WIRE_LEFTOVERS);
        } else if (job->state == JOB_EXITING) {
                job_kill(job, 0);
        } else if (job->state < JOB_RUNNING) {
                err_set(&err, CSN_E_SYSTEM, 0, "the sandbox was not ready after %d seconds", SETUP_MS / 1000);
                job_refuse(job, &err);
        }
}

static void job_oom(struct watch *watch, uint32_t events)
{
        struct job *job = watch->owner;
        (void)events;
        job_kill(job, WIRE_MEMORY);
        loop_unwatch(job->sup->loop, watch);
}

/* Limits without an event: CPU time, and memory without a controller. */
static void job_poll(struct timer *timer)
{
        struct job *job = timer->owner;
        const struct wire_limits *limits = &job->sandbox.plan.limits;
        struct cgroup_usage usage;
        struct tree_usage tree = { 0 };
        cgroup_leaf_usage(&job->sandbox.leaf, &usage);
        bool counted = job->sandbox.plan.abilities.controllers & WIRE_CTL_CPU;
        bool bounded = job->sandbox.plan.abilities.controllers & WIRE_CTL_MEMORY;
        if (!counted || !bounded)
                sandbox_tree(&job->sandbox, &tree);
        if (!bounded && tree.memory_bytes > limits->memory_bytes) {
                job_kill(job, WIRE_MEMORY);
                return;
        }
        uint64_t used_ms = (counted ? usage.cpu_us : tree.cpu_us) / 1000;
        if (limits->cpu_ms && used_ms >= limits->cpu_ms) {
                job_kill(job, WIRE_CPU);
                return;
        }
        /* CPU time cannot grow faster than the share allows, so the next read can wait until then. */
        uint64_t next_ms = POLL_MS;
        if (bounded && limits->cpu_ms)
                next_ms = max_u64((limits->cpu_ms - used_ms) * 1000 / max_u64(limits->cpu_milli, 1), 2);
        loop_timer(job->sup->loop, timer, next_ms * 1000);
}

/* ---- steps of a job ---- */

static void job_runs(struct job *job)
{
        const struct wire_limits *limits = &job->sandbox.plan.limits;
        job->state = JOB_RUNNING;
        job->running_us = clock_us();
        expect_within(job, limits->wall_ms);
        if (!job->host && (limits->cpu_ms || job->sandbox.plan.degraded))
                loop_timer(job->sup->loop, &job->poll, POLL_MS * 1000);
        if (job->freeze_due)
                job_hold(job, job->freeze_to);
        if (job->early_exit_pending)
                job_exit_early(job, job->left_status);
}

static void job_ended(struct job *job, int status, bool left)
{
        struct csn_error err;
        job->ended_us = clock_us();
        job->how.status = (uint64_t)(unsigned)status;
        job->how.has_status = 1;
        if (job->host) {
                job_report(job);
                job->sandbox.program = 0;
                job_close(job);
                return;
        }
        if (cgroup_leaf_processes(&job->sandbox.leaf) == 1) {
                /* The kernel counts process 1 alone: the rest is our own process, so the report need not wait. */
                job_report(job);
                job_kill(job, 0);
                return;
        }
        job->state = JOB_BACKGROUND;
        if (job->sandbox.program && sandbox_tell(&job->sandbox, INNER_INIT_END, &err) < 0)
                log_text(LOG_DEBUG, "%s", err.text);   /* process 1 is dead; the report of its death comes next */
        /* Process 1 exits when no other process is left; processes still running get a little time. */
        expect_within(job, left || job->sandbox.program ? job->sandbox.plan.limits.background_ms : SETUP_MS);
}

void job_advance(struct job *job)
{
        struct csn_error err = { 0 };
        bool known;
        int rc = 0;
        if (job->state == JOB_READY && job->interpreter == PENDING_WORKER) {
                job->state = JOB_CONFINING;
                rc = sandbox_tell(&job->sandbox, INNER_INIT_WORKER, &err);
        } else if (job->state == JOB_READY && job->interpreter == PENDING_GUEST) {
                job->state = JOB_STARTING;
                if ((rc = sandbox_limit(&job->sandbox, &err)) == 0)
                        rc = sandbox_tell(&job->sandbox, INNER_INIT_GUEST, &err);
        } else if (job->state == JOB_READY && job->interpreter == PENDING_ZYGOTE) {
                struct send_queue *zygote = zygote_send_queue(job->domain, job->zygote, &known);
                if (!known)
                        rc = err_set(&err, CSN_E_BUSY, 0, "the zygote of this sandbox is gone");
                if (!zygote && known)
                        return;
                job->state = JOB_CONFINING;
                if (rc == 0 && (rc = sandbox_join(&job->sandbox, job->id, zygote, &err)) == 0) {
                        job->forking = true;
                        rc = loop_watch(job->sup->loop, &job->talk, job->sandbox.talk, EPOLLIN, &err);
                }
        } else if (job->wants_start &&
                (job->state == JOB_CONFINED || (job->state == JOB_READY && job->interpreter == PENDING_NONE))) {
                job->state = JOB_STARTING;
                if ((rc = sandbox_limit(&job->sandbox, &err)) == 0)
                        rc = sandbox_tell(&job->sandbox, INNER_INIT_RUN, &err);
        } else {
                return;
        }
        if (rc < 0)
                job_refuse(job, &err);
        else
                expect_within(job, SETUP_MS);
}

static void wait_for_engine(struct job *job, enum job_state state)
{
        job->state = state;
        loop_untimer(job->sup->loop, &job->deadline);
        job_advance(job);
}

/* Takes the home directory, and a socket for each flag with a socket.  False: other descriptors came. */
static bool take_ends(struct job *job, int fds[WIRE_FDS_MAX])
{
        uint64_t flags = job->sandbox.plan.shape.flags;
        int proxy = flags & WIRE_PROXY ? 1 : 0, tool_socket = flags & WIRE_TOOL_SOCKET ? proxy + 1 : 0,
            last = tool_socket ? tool_socket : proxy;
        if (fds[last] < 0 || fds[last + 1] >= 0)
                return false;
        job->sandbox.outer[WIRE_END_HOME] = take_fd(&fds[0]);
        if (proxy)
                job->sandbox.outer[WIRE_END_PROXY] = take_fd(&fds[proxy]);
        if (tool_socket)
                job->sandbox.outer[WIRE_END_TOOL_SOCKET] = take_fd(&fds[tool_socket]);
        return true;
}

/* ---- messages of the processes inside ---- */

/* Whether process 1 may report CLOSED now; in JOB_DYING, too, for the engine has no report of the confinement yet. */
static bool is_closing(const struct job *job)
{
        bool worker = job->interpreter == PENDING_WORKER;
        return job->interpreter != PENDING_ZYGOTE &&
                (job->state == (worker ? JOB_CONFINING : JOB_STARTING) || job->state == JOB_DYING);
}

/* Isolation steps of process 1, and of the supervisor for process 1; each is recorded after the step. */
static void take_isolation(struct job *job, const struct inner_init_message *ready)
{
        const struct sandbox *sandbox = &job->sandbox;
        job->boundary = ready->boundary;
        job->boundary.controllers = cgroup_leaf_limited(&sandbox->leaf, ready->procs_fds);
        job->boundary.cgroup = job->boundary.controllers ? cgroup_mode(job->sup->cgroups) : WIRE_CGROUP_NONE;
        job->boundary.own_uid = sandbox->uid_lock >= 0;
        job->boundary.rootless = job->domain->outer_init.rootless;
}

/* Isolation steps of a process on itself, reported before the process reads foreign data. */
static void take_facts(struct job *job, const struct wire_boundary *facts)
{
        job->boundary.seccomp = facts->seccomp;
        job->boundary.landlock_abi = facts->landlock_abi;
        job->boundary.no_new_privs = facts->no_new_privs;
        job->boundary.capabilities = facts->capabilities;
}

/*
 * The sender runs our own code, but its memory was next to foreign code: no message is trusted.  A step out of turn
 * ends the sandbox.
 */
static void job_said(struct job *job, const struct inner_init_message *message, int fds[WIRE_FDS_MAX], bool by_program)
{
        bool forked = job->interpreter == PENDING_ZYGOTE;
        struct csn_error err;
        if (message->op == INNER_INIT_FAILED && job->state <= JOB_RUNNING && message->error.code > 0) {
                job_refuse(job, &message->error);
        } else if (message->op == INNER_INIT_READY && job->state == JOB_SETUP && !by_program && take_ends(job, fds)) {
                take_isolation(job, message);
                tell_boundary(job, WIRE_READY);
                wait_for_engine(job, JOB_READY);
        } else if (message->op == INNER_INIT_CONFINED && job->state == JOB_CONFINING && forked && by_program &&
                job->sandbox.program && !job->interpreter_ready) {
                job->interpreter_ready = true;
                take_facts(job, &message->boundary);
                int rc = job->domain->id ? sandbox_verify(&job->sandbox, &err) : 0;
                if (rc == 0 && job->host) {
                        tell_boundary(job, WIRE_CONFINED);
                        wait_for_engine(job, JOB_CONFINED);
                } else if (rc < 0 || sandbox_tell(&job->sandbox, INNER_INIT_RELEASE, &err) < 0) {
                        job_refuse(job, &err);
                }
        } else if (message->op == INNER_INIT_CLOSED && !by_program && !job->told && !job->confinement_reported &&
                is_closing(job)) {
                job->confinement_reported = true;
                take_facts(job, &message->boundary);
                if (job->interpreter != PENDING_WORKER)   /* CONFINED of a worker follows */
                        tell_boundary(job, WIRE_CONFINED);
        } else if (message->op == INNER_INIT_CONFINED && job->state == JOB_CONFINING && !by_program &&
                forked == job->interpreter_ready) {
                tell_boundary(job, WIRE_CONFINED);
                wait_for_engine(job, JOB_CONFINED);
        } else if (message->op == INNER_INIT_RUNNING && job->state == JOB_STARTING &&
                by_program == (job->sandbox.program != 0)) {
                job_runs(job);
        } else if (message->op == INNER_INIT_EXITED && job->state == JOB_RUNNING && !job->sandbox.program &&
                job->interpreter != PENDING_GUEST) {
                job_ended(job, message->status, message->left != 0);
        } else {
                job_kill(job, 0);
        }
}

static void listen_to(struct watch *watch, bool by_program)
{
        struct job *job = watch->owner;
        while (watch->active) {
                static uint8_t bytes[WIRE_MAX];
                int fds[WIRE_FDS_MAX];
                size_t fds_n;
                struct inner_init_message message;
                ssize_t len = wire_receive(watch->fd, bytes, fds, &fds_n);
                if (len < 0 && errno == EAGAIN)
                        return;
                if (len != (ssize_t)sizeof message) {
                        /* The outer init reports the death of the sender next. */
                        loop_unwatch(job->sup->loop, watch);
                } else {
                        memcpy(&message, bytes, sizeof message);
                        message.error.text[sizeof message.error.text - 1] = 0;
                        message.error.field[sizeof message.error.field - 1] = 0;
                        job_said(job, &message, fds, by_program);
                        if (by_program && message.op == INNER_INIT_RUNNING)
                                loop_unwatch(job->sup->loop, watch);   /* the last message of a program */
                }
                for (size_t i = 0; i < WIRE_FDS_MAX; i++)
                        fd_close(&fds[i]);
        }
}

static void job_control(struct watch *watch, uint32_t events)
{
        (void)events;
        listen_to(watch, false);
}

static void job_talk(struct watch *watch, uint32_t events)
{
        (void)events;
        listen_to(watch, true);
}

/* ---- messages of the outer init ---- */

/* The last message of a dead process, sent before its death, may still be in the socket. */
static void hear_the_last(struct watch *watch)
{
        if (watch->active)
                watch->ready(watch, EPOLLIN);
}

/* Process 1 is dead, and all processes inside with it. */
static void job_died(struct job *job)
{
        struct csn_error err;
        hear_the_last(&job->control);
        job->sandbox.pid = 0;
        if (job->state < JOB_RUNNING && !job->told) {
                err_set(&err, CSN_E_SYSTEM, 0, "process 1 of the sandbox ended before the program began");
                job_refuse(job, &err);
        }
        if (job->state == JOB_RUNNING)
                job->ended_us = clock_us();
        job_report(job);
        job_close(job);
}

static void program_died(struct job *job, int status)
{
        struct csn_error err;
        hear_the_last(&job->talk);
        if (job->state == JOB_RUNNING) {
                job_ended(job, status, true);
        } else if (job->state == JOB_EXITING) {
                job_kill(job, 0);
        } else if (job->state < JOB_RUNNING) {
                err_set(&err, CSN_E_SYSTEM, 0, "the interpreter ended before the program began");
                job_refuse(job, &err);
        }
        if (job->host && job->state != JOB_CLOSING) {
                job->sandbox.program = 0;
                job_report(job);
                job_close(job);
        }
}

bool job_process_died(struct job *job, const struct outer_init_message *died)
{
        bool first = job->sandbox.pid == died->pid;
        if (!first && job->sandbox.program != died->pid)
                return false;
        job->cpu_us += died->cpu_us;
        job->memory_peak = max_u64(job->memory_peak, died->memory_peak);
        if (first)
                job_died(job);
        else
                program_died(job, died->status);
        return true;
}

/* ---- freezing ---- */

#define FREEZE_MS 2000         /* a sandbox not frozen by then is thawed */
#define FREEZE_LOOK_MS 2

void job_freeze_failed(struct job *job, const struct csn_error *error)
{
        sup_answer_error(job->sup, WIRE_FREEZE_FAILED, job->id, error);
}

static void tell_frozen(struct job *job)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        sup_answer(job->sup, &message, wire_put_number(&message, WIRE_FROZEN, job->id, job->frozen), NULL, 0);
}

static void job_look_frozen(struct timer *timer)
{
        struct job *job = timer->owner;
        struct csn_error err, again;
        if (cgroup_leaf_is_frozen(&job->sandbox.leaf) == job->frozen) {
                tell_frozen(job);
        } else if (clock_us() - job->freezing_us < FREEZE_MS * 1000ULL) {
                loop_timer(job->sup->loop, timer, FREEZE_LOOK_MS * 1000);
        } else {
                err_set(&err, CSN_E_BUSY, 0, "the sandbox did not %s within %d seconds",
                        job->frozen ? "stand still" : "go on", FREEZE_MS / 1000);
                if (job->frozen && cgroup_leaf_freeze(&job->sandbox.leaf, false, &again) < 0)
                        log_text(LOG_ERROR, "%s", again.text);
                job->frozen = false;
                job_freeze_failed(job, &err);
        }
}

void job_hold(struct job *job, bool on)
{
        struct csn_error err;
        job->freeze_due = false;
        if (cgroup_leaf_freeze(&job->sandbox.leaf, on, &err) < 0) {
                job_freeze_failed(job, &err);
        } else {
                job->frozen = on;
                job->freezing_us = clock_us();
                loop_timer(job->sup->loop, &job->freezing, 0);
        }
}

/* ---- early exit ---- */

/*
 * A program chooses its own exit status, so the reported status is trusted, and the report need not wait until the
 * kernel has freed the memory of a finished process.  The interpreter is killed now, like every process that outlives
 * a program.  A sandbox with other programs, or with much memory, ends the normal way: the memory of sandboxes reported
 * as ended must not add up to more than the host has.
 */
void job_exit_early(struct job *job, unsigned status)
{
        if (!cgroup_leaf_has_one_program(&job->sandbox.leaf) || cgroup_leaf_memory(&job->sandbox.leaf) > LEFT_MEMORY)
                return;
        job->ended_us = clock_us();
        job->how.status = status << 8;   /* wait(2) */
        job->how.has_status = 1;
        sandbox_kill_program(&job->sandbox);
        job_report(job);
        if (!job->sandbox.program || !cgroup_leaf_has_one_program(&job->sandbox.leaf)) {
                job_kill(job, 0);
                return;
        }
        /*
         * A killed process does not fork, so process 1 is alone with the interpreter.  The engine's work comes before
         * the end of the interpreter.
         */
        job->state = JOB_EXITING;
        loop_untimer(job->sup->loop, &job->poll);
        expect_within(job, LEFT_MS);
}

/* ---- start of a job ---- */

int job_watch(struct job *job, struct csn_error *err)
{
        struct loop *loop = job->sup->loop;
        if (loop_watch(loop, &job->control, job->sandbox.control, EPOLLIN, err) < 0)
                return -err->code;
        if (job->sandbox.leaf.oom_event >= 0 &&
                loop_watch(loop, &job->oom, job->sandbox.leaf.oom_event, EPOLLIN, err) < 0)
                return -err->code;
        return 0;
}

struct job *job_new(struct domain *domain, uint32_t id)
{
        struct supervisor *sup = domain->sup;
        struct job *job = mem_alloc(sizeof *job);
        domain->users++;
        *job = (struct job){ .next = sup->jobs,
                .sup = sup,
                .domain = domain,
                .id = id,
                .asked_us = clock_us(),
                .control = { .ready = job_control, .owner = job },
                .talk = { .ready = job_talk, .owner = job },
                .oom = { .ready = job_oom, .owner = job },
                .deadline = { .fired = job_deadline, .owner = job },
                .poll = { .fired = job_poll, .owner = job },
                .closing = { .fired = job_try_close, .owner = job },
                .freezing = { .fired = job_look_frozen, .owner = job } };
        sup->jobs = job;
        sandbox_init(&job->sandbox);
        return job;
}

void job_await_setup(struct job *job)
{
        expect_within(job, SETUP_MS);
}
