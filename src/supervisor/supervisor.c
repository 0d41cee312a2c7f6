/* The supervisor: one table of what a peer may ask and when, and the life of each job. */
#include "supervisor/supervisor.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SETUP_MS 60000         /* from START to the program's first instruction; large input files take time */
#define POLL_MS 25             /* how often counters are read where no event tells */
#define CLOSE_RETRY_MS 2
#define QUARANTINE_MS 2000     /* a cgroup that does not empty in this time is reported, its uid kept */

enum job_state {
        JOB_SETUP,             /* process 1 builds the root and takes files */
        JOB_RUNNING,           /* the program runs */
        JOB_BACKGROUND,        /* the program ended, what it left behind may go on for a little */
        JOB_DYING,             /* everything was killed, process 1 is not reaped yet */
        JOB_CLOSING,           /* dead and told; cgroup and uid are being given back */
};

struct job {
        struct job *next;
        struct supervisor *sup;
        uint32_t id;
        enum job_state state;
        struct sandbox box;
        struct arena arena;            /* texts of the START message */
        struct watch control, death, oom;
        struct timer deadline, poll, closing;
        uint64_t started_us, running_us, ended_us, closing_us;
        int home;                      /* the home directory, until RUNNING hands it over */
        int proxy;                     /* likewise the socket that listens inside, or -1 */
        struct wire_exit how;
        struct rusage children;
        bool refused;
        bool quarantined;
};

struct supervisor {
        int sock;
        struct watch peer;
        struct loop *loop;
        const struct supervisor_options *options;
        struct abilities abilities;
        struct cgroup_base *cgroups;
        struct job *jobs;
        struct janitor janitor;
        bool greeted;
        bool over;
        struct csn_error failure;
};

/* ---- talking to the peer ---- */

static void give_up(struct supervisor *sup, const struct csn_error *err)
{
        if (!sup->over)
                sup->failure = *err;
        sup->over = true;
}

static void send_peer(struct supervisor *sup, const struct buf *message, bool fits, const int *fds, size_t fds_n)
{
        struct csn_error err;
        if (!fits) {
                err_set(&err, CSN_E_SYSTEM, 0, "an answer does not fit in a message");
                give_up(sup, &err);
        } else if (wire_send(sup->sock, message->bytes, message->len, fds, fds_n) < 0) {
                /* EPIPE: the peer died, and the end of its socket will say so; all else is our failure. */
                err_set(&err, CSN_E_SYSTEM, errno, "send an answer to the engine");
                give_up(sup, &err);
        }
}

static void send_refused(struct job *job, const struct csn_error *error)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        send_peer(job->sup, &message, wire_put_refused(&message, job->id, error), NULL, 0);
        buf_done(&message);
        job->refused = true;
}

static void send_running(struct job *job, const struct wire_boundary *boundary)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        const int fds[] = { job->home, job->proxy };
        send_peer(job->sup, &message, wire_put_boundary(&message, job->id, boundary), fds, job->proxy >= 0 ? 2 : 1);
        buf_done(&message);
        fd_close(&job->home);
        fd_close(&job->proxy);
}

static void send_exited(struct job *job)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        send_peer(job->sup, &message, wire_put_exit(&message, job->id, &job->how), NULL, 0);
        buf_done(&message);
}

/* ---- the life of a job ---- */

static void job_free(struct job *job)
{
        struct loop *loop = job->sup->loop;
        loop_unwatch(loop, &job->control);
        loop_unwatch(loop, &job->death);
        loop_unwatch(loop, &job->oom);
        loop_untimer(loop, &job->deadline);
        loop_untimer(loop, &job->poll);
        loop_untimer(loop, &job->closing);
        for (struct job **at = &job->sup->jobs; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        break;
                }
        fd_close(&job->home);
        fd_close(&job->proxy);
        arena_done(&job->arena);
        free(job);
}

/* End everything inside now.  The cause is kept as a reason of the exit, unless an earlier one is there. */
static void job_kill(struct job *job, unsigned reason)
{
        if (job->state >= JOB_DYING)
                return;
        job->how.reasons |= reason;
        if (job->state == JOB_RUNNING)
                job->ended_us = clock_us();
        job->state = JOB_DYING;
        loop_untimer(job->sup->loop, &job->deadline);
        loop_untimer(job->sup->loop, &job->poll);
        sandbox_kill(&job->box);
}

static void job_refuse(struct job *job, const struct csn_error *error)
{
        if (!job->refused)
                send_refused(job, error);
        job_kill(job, 0);
}

static void job_try_close(struct timer *timer)
{
        struct job *job = timer->owner;
        if (sandbox_close(&job->box)) {
                job_free(job);
                return;
        }
        if (!job->quarantined && clock_us() - job->closing_us > QUARANTINE_MS * 1000ULL) {
                log_text(LOG_ERROR, "the cgroup %s does not empty; its uid %u stays out of use", job->box.leaf.name,
                         job->box.plan.host_uid);
                job->quarantined = true;
        }
        cgroup_leaf_kill(&job->box.leaf);
        loop_timer(job->sup->loop, timer, (job->quarantined ? QUARANTINE_MS : CLOSE_RETRY_MS) * 1000ULL);
}

static void count_usage(struct job *job)
{
        struct cgroup_usage usage;
        cgroup_leaf_usage(&job->box.leaf, &usage);
        struct wire_exit *how = &job->how;
        how->cpu_us = usage.cpu_us;
        how->memory_peak = usage.memory_peak;
        how->pids_peak = usage.pids_peak ? usage.pids_peak - 1 : 0;   /* process 1 is ours */
        how->oom_kills = usage.oom_kills;
        how->pids_hits = usage.pids_hits;
        how->throttled_us = usage.throttled_us;
        if (usage.oom_kills)
                how->reasons |= WIRE_MEMORY;
        if (!how->cpu_us)
                how->cpu_us = (uint64_t)job->children.ru_utime.tv_sec * 1000000 + (uint64_t)job->children.ru_utime.tv_usec +
                              (uint64_t)job->children.ru_stime.tv_sec * 1000000 + (uint64_t)job->children.ru_stime.tv_usec;
        if (!how->memory_peak)
                how->memory_peak = (uint64_t)job->children.ru_maxrss * KIB;
        how->wall_us = job->ended_us > job->running_us ? job->ended_us - job->running_us : 0;
        how->prepare_us = job->running_us > job->started_us ? job->running_us - job->started_us : 0;
}

/* Process 1 is dead, and with it everything inside. */
static void job_died(struct watch *watch, uint32_t events)
{
        struct job *job = watch->owner;
        (void)events;
        struct csn_error err;
        int status;
        loop_unwatch(job->sup->loop, watch);
        /* What process 1 said last may still be in its socket, and was said before it died. */
        if (job->control.active)
                job->control.ready(&job->control, EPOLLIN);
        loop_unwatch(job->sup->loop, &job->control);
        if (wait4(job->box.pid, &status, 0, &job->children) == job->box.pid)
                job->box.pid = 0;

        if (job->state == JOB_SETUP && !job->refused) {
                err_set(&err, CSN_E_SYSTEM, 0, "process 1 of the sandbox ended while it was set up");
                send_refused(job, &err);
        }
        if (!job->refused) {
                if (job->state == JOB_RUNNING)
                        job->ended_us = clock_us();
                count_usage(job);
                send_exited(job);
        }
        job->state = JOB_CLOSING;
        job->closing_us = clock_us();
        loop_untimer(job->sup->loop, &job->deadline);
        loop_untimer(job->sup->loop, &job->poll);
        loop_unwatch(job->sup->loop, &job->oom);
        job_try_close(&job->closing);
}

static void job_deadline(struct timer *timer)
{
        struct job *job = timer->owner;
        struct csn_error err;
        switch (job->state) {
        case JOB_SETUP:
                err_set(&err, CSN_E_SYSTEM, 0, "the sandbox was not ready after %d seconds", SETUP_MS / 1000);
                job_refuse(job, &err);
                break;
        case JOB_RUNNING:
                job_kill(job, WIRE_WALL);
                break;
        case JOB_BACKGROUND: {
                struct tree_usage tree;
                tree_usage(job->box.pid, &tree);
                job_kill(job, tree.processes > 1 ? WIRE_LEFTOVERS : 0);
                break;
        }
        default:
                break;
        }
}

static void job_oom(struct watch *watch, uint32_t events)
{
        struct job *job = watch->owner;
        (void)events;
        job_kill(job, WIRE_MEMORY);
        loop_unwatch(job->sup->loop, watch);
}

/* Limits that no event tells of: CPU time, and memory where no controller bounds it. */
static void job_poll(struct timer *timer)
{
        struct job *job = timer->owner;
        const struct wire_start *start = &job->box.plan.start;
        struct cgroup_usage usage;
        struct tree_usage tree = { 0 };
        cgroup_leaf_usage(&job->box.leaf, &usage);
        bool counted = job->box.plan.abilities.controllers & WIRE_CTL_CPU;
        bool bounded = job->box.plan.abilities.controllers & WIRE_CTL_MEMORY;
        if (!counted || !bounded)
                tree_usage(job->box.pid, &tree);
        if (!bounded && tree.memory_bytes > start->memory_bytes) {
                job_kill(job, WIRE_MEMORY);
                return;
        }
        uint64_t used_ms = (counted ? usage.cpu_us : tree.cpu_us) / 1000;
        if (start->cpu_ms && used_ms >= start->cpu_ms) {
                job_kill(job, WIRE_CPU);
                return;
        }
        /* CPU time cannot grow faster than the share allows, so there is no need to look before. */
        uint64_t next_ms = POLL_MS;
        if (bounded && start->cpu_ms)
                next_ms = max_u64((start->cpu_ms - used_ms) * 1000 / max_u64(start->cpu_milli, 1), 2);
        loop_timer(job->sup->loop, timer, next_ms * 1000);
}

/* Process 1 has its copy; the next job's process 1 is a copy of us and must find nothing of this tenant. */
static void forget_texts(char **texts, size_t n)
{
        for (size_t i = 0; i < n; i++)
                explicit_bzero(texts[i], strlen(texts[i]));
}

static void job_runs(struct job *job, const struct wire_boundary *boundary)
{
        const struct wire_start *start = &job->box.plan.start;
        forget_texts(start->argv, start->argv_n);
        forget_texts(start->env, start->env_n);
        job->state = JOB_RUNNING;
        job->running_us = clock_us();
        send_running(job, boundary);
        loop_timer(job->sup->loop, &job->deadline, start->wall_ms * 1000);
        if (start->cpu_ms || job->box.plan.degraded)
                loop_timer(job->sup->loop, &job->poll, POLL_MS * 1000);
}

static void job_ended(struct job *job, int status)
{
        job->ended_us = clock_us();
        job->how.status = (uint64_t)(unsigned)status;
        job->how.has_status = 1;
        job->state = JOB_BACKGROUND;
        /* Process 1 ends by itself when nothing is left; what still runs then gets a little time. */
        loop_timer(job->sup->loop, &job->deadline, job->box.plan.start.background_ms * 1000);
}

/* What process 1 says.  It is our own code, but its memory was next to foreign code: nothing is taken on trust. */
static void job_control(struct watch *watch, uint32_t events)
{
        struct job *job = watch->owner;
        (void)events;
        for (;;) {
                static uint8_t bytes[WIRE_MAX];
                int fds[WIRE_FDS_MAX];
                size_t fds_n;
                struct init_message message;
                ssize_t len = wire_receive(job->box.control, bytes, fds, &fds_n);
                if (len < 0 && errno == EAGAIN)
                        return;
                auto_fd fd = fds[0];
                auto_fd second = fds[1];
                for (size_t i = 2; i < fds_n; i++)
                        fd_close(&fds[i]);
                if (len != (ssize_t)sizeof message) {
                        /* Its end is the pidfd's business, which comes next. */
                        loop_unwatch(job->sup->loop, watch);
                        return;
                }
                memcpy(&message, bytes, sizeof message);
                message.error.text[sizeof message.error.text - 1] = 0;
                message.error.field[sizeof message.error.field - 1] = 0;
                bool proxied = job->box.plan.start.flags & WIRE_PROXY;
                if (message.op == INIT_READY && job->state == JOB_SETUP && job->home < 0 && fd >= 0 && proxied == (second >= 0)) {
                        job->home = take_fd(&fd);
                        job->proxy = take_fd(&second);
                } else if (message.op == INIT_RUNNING && job->state == JOB_SETUP && job->home >= 0) {
                        job_runs(job, &message.boundary);
                } else if (message.op == INIT_EXITED && job->state == JOB_RUNNING) {
                        job_ended(job, message.status);
                } else if (message.op == INIT_FAILED && job->state <= JOB_RUNNING && message.error.code > 0) {
                        job_refuse(job, &message.error);
                } else {
                        job_kill(job, 0);
                }
        }
}

/* ---- what the peer may ask ---- */

struct request {
        struct supervisor *sup;
        struct wire_header header;
        const uint8_t *body;
        int *fds;
        size_t fds_n;
};

static struct job *find_job(struct supervisor *sup, uint32_t id)
{
        for (struct job *job = sup->jobs; job; job = job->next)
                if (job->id == id)
                        return job;
        return NULL;
}

static int op_hello(struct request *request, struct csn_error *err)
{
        (void)err;
        const struct abilities *abilities = &request->sup->abilities;
        struct wire_abilities answer = { .rootless = abilities->rootless,
                                         .landlock_abi = abilities->landlock_abi,
                                         .cgroup = abilities->cgroup,
                                         .controllers = abilities->controllers };
        struct buf message;
        buf_init(&message, WIRE_MAX);
        send_peer(request->sup, &message, wire_put_abilities(&message, &answer), NULL, 0);
        buf_done(&message);
        request->sup->greeted = true;
        return 0;
}

static int watch_job(struct job *job, struct csn_error *err)
{
        struct loop *loop = job->sup->loop;
        if (fcntl(job->box.control, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the control socket non-blocking");
        if (loop_watch(loop, &job->control, job->box.control, EPOLLIN, err) < 0 ||
            loop_watch(loop, &job->death, job->box.pid_fd, EPOLLIN, err) < 0)
                return -err->code;
        if (job->box.leaf.oom_event >= 0 && loop_watch(loop, &job->oom, job->box.leaf.oom_event, EPOLLIN, err) < 0)
                return -err->code;
        loop_timer(loop, &job->deadline, SETUP_MS * 1000ULL);
        return 0;
}

static int op_start(struct request *request, struct csn_error *err)
{
        struct supervisor *sup = request->sup;
        struct csn_error refusal;
        struct wire_start start;
        if (request->fds_n < WIRE_STDIO || find_job(sup, request->header.job))
                return err_set(err, CSN_E_PROTOCOL, 0, "START without its descriptors, or for a job that is there");

        struct job *job = mem_alloc(sizeof *job);
        *job = (struct job){ .sup = sup, .id = request->header.job, .home = -1, .proxy = -1, .started_us = clock_us(),
                             .control = { .ready = job_control, .owner = job }, .death = { .ready = job_died, .owner = job },
                             .oom = { .ready = job_oom, .owner = job }, .deadline = { .fired = job_deadline, .owner = job },
                             .poll = { .fired = job_poll, .owner = job }, .closing = { .fired = job_try_close, .owner = job } };
        sandbox_init(&job->box);
        if (wire_get_start(request->body, request->header.len, &job->arena, &start, err) < 0) {
                arena_done(&job->arena);
                free(job);
                return -err->code;
        }
        if (request->fds_n != WIRE_STDIO + (start.files_n > 0)) {
                arena_done(&job->arena);
                free(job);
                return err_set(err, CSN_E_PROTOCOL, 0, "START with a wrong number of descriptors");
        }
        job->next = sup->jobs;
        sup->jobs = job;
        if (sandbox_open(&job->box, &start, &sup->abilities, sup->cgroups, &sup->options->uids, sup->options->runner_dir,
                         request->fds, &refusal) < 0 ||
            watch_job(job, &refusal) < 0) {
                send_refused(job, &refusal);
                sandbox_kill(&job->box);
                job->state = JOB_CLOSING;
                job->closing_us = clock_us();
                loop_timer(sup->loop, &job->closing, 0);
        }
        return 0;
}

static int op_kill(struct request *request, struct csn_error *err)
{
        (void)err;
        struct job *job = find_job(request->sup, request->header.job);
        if (job)
                job_kill(job, WIRE_KILLED);
        return 0;
}

#define NEW 1U       /* before HELLO */
#define READY 2U     /* after it */

static const struct {
        enum wire_op op;
        unsigned states;
        int (*run)(struct request *request, struct csn_error *err);
} ops[] = {
        { WIRE_HELLO, NEW,   op_hello },
        { WIRE_START, READY, op_start },
        { WIRE_KILL,  READY, op_kill  },
};

static int dispatch(struct request *request, struct csn_error *err)
{
        unsigned state = request->sup->greeted ? READY : NEW;
        for (size_t i = 0; i < ARRAY_LEN(ops); i++)
                if (ops[i].op == request->header.op) {
                        if (!(ops[i].states & state))
                                return err_set(err, CSN_E_PROTOCOL, 0, "message %u is not allowed now", request->header.op);
                        return ops[i].run(request, err);
                }
        return err_set(err, CSN_E_PROTOCOL, 0, "message %u does not exist", request->header.op);
}

static void peer_ready(struct watch *watch, uint32_t events)
{
        struct supervisor *sup = watch->owner;
        (void)events;
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX];
        struct csn_error err;
        struct request request = { .sup = sup, .body = bytes + WIRE_HEADER, .fds = fds };
        ssize_t len = wire_receive(sup->sock, bytes, fds, &request.fds_n);
        if (len == 0 || (len < 0 && errno == ECONNRESET)) {
                sup->over = true;
                return;
        }
        if (len < 0) {
                err_set(&err, CSN_E_PROTOCOL, errno, "receive from the engine");
                give_up(sup, &err);
                return;
        }
        if (wire_get_header(bytes, (size_t)len, &request.header, &err) < 0 || dispatch(&request, &err) < 0)
                give_up(sup, &err);
        for (size_t i = 0; i < request.fds_n; i++)
                fd_close(&fds[i]);
        /* The next job's process 1 is a copy of us: what this tenant sent must not be in it. */
        explicit_bzero(bytes, (size_t)len);
}

/* ---- begin and end ---- */

static int begin(struct supervisor *sup, struct csn_error *err)
{
        sup->abilities.rootless = geteuid() != 0;
        sup->abilities.landlock_abi = probe_landlock_abi();
        if (cgroup_open(sup->options->cgroup_parent, &sup->cgroups, err) < 0)
                return -err->code;
        sup->abilities.cgroup = cgroup_mode(sup->cgroups);
        sup->abilities.controllers = cgroup_controllers(sup->cgroups);
        if (cgroup_paths(sup->cgroups)[0] && janitor_start(&sup->janitor, cgroup_paths(sup->cgroups), err) < 0)
                return -err->code;
        if (loop_new(&sup->loop, err) < 0)
                return -err->code;
        sup->peer = (struct watch){ .ready = peer_ready, .owner = sup };
        return loop_watch(sup->loop, &sup->peer, sup->sock, EPOLLIN, err);
}

/* Nothing that was made here may outlive us: kill all, and wait until it is gone. */
static void end(struct supervisor *sup)
{
        struct csn_error err;
        for (struct job *job = sup->jobs; job; job = job->next) {
                job->refused = true;   /* nobody listens any more */
                job_kill(job, WIRE_KILLED);
        }
        uint64_t until = clock_ms() + QUARANTINE_MS;
        while (sup->loop && sup->jobs && clock_ms() < until)
                if (loop_step(sup->loop, 50, &err) < 0)
                        break;
        for (struct job *job = sup->jobs, *next; job; job = next) {
                next = job->next;
                job_free(job);
        }
        cgroup_close(sup->cgroups);
        janitor_stop(&sup->janitor);
        loop_free(sup->loop);
}

int supervisor_serve(int sock, const struct supervisor_options *options, struct csn_error *err)
{
        struct supervisor sup = { .sock = sock, .options = options, .janitor = { .pipe = -1 } };
        int rc = begin(&sup, err);
        while (rc == 0 && !sup.over)
                rc = loop_step(sup.loop, -1, err);
        if (rc == 0 && sup.failure.code) {
                *err = sup.failure;
                rc = -err->code;
        }
        if (sup.loop)
                loop_unwatch(sup.loop, &sup.peer);
        end(&sup);
        return rc;
}
