/* Zygotes in the supervisor: numbered by the engine, started by the outer init, controlled over a socket. */
#include "supervisor/zygote.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define LOADING_MS 120000      /* for the imports of the zygote */

/*
 * Limits for our own code and for libraries of the administrator's choice; shared pages are charged here.  All
 * waiting runs need the zygote, so a zygote gets more CPU time than the interpreter of a single run.
 */
static const struct cgroup_limits zygote_limits = {
        .memory_bytes = 4 * GIB, .cpu_milli = 64000, .pids = 64, .cpu_times = 16
};

/* A zygote with code of a tenant: at most one CPU, and the memory of a program. */
static struct cgroup_limits foreign_limits(const struct wire_shape *shape)
{
        return (struct cgroup_limits){ .memory_bytes = shape->memory_bytes, .cpu_milli = 1000, .pids = 64 };
}

static void zygote_free(struct zygote *zygote)
{
        struct loop *loop = zygote->sup->loop;
        loop_untimer(loop, &zygote->audit);
        loop_untimer(loop, &zygote->deadline);
        loop_untimer(loop, &zygote->closing);
        loop_unwatch(loop, &zygote->watch);
        send_queue_done(&zygote->requests);
        fd_close(&zygote->watch.fd);
        fd_close(&zygote->pid_fd);
        for (struct zygote **at = &zygote->sup->zygotes; *at; at = &(*at)->next)
                if (*at == zygote) {
                        *at = zygote->next;
                        break;
                }
        if (zygote->domain)
                domain_leave(zygote->domain);
        free(zygote);
}

static void try_close(struct timer *timer)
{
        struct zygote *zygote = timer->owner;
        if (cgroup_leaf_remove(&zygote->leaf)) {
                zygote_free(zygote);
                return;
        }
        cgroup_leaf_kill(&zygote->leaf);   /* processes of foreign code that the zygote imported */
        loop_timer(zygote->sup->loop, timer, 10000);
}

/* End the service of a zygote.  The cgroup is removed later: after the death of the process, if there is a process. */
static void end(struct zygote *zygote, const struct csn_error *why)
{
        struct supervisor *sup = zygote->sup;
        if (zygote->told)
                return;
        zygote->told = true;
        zygote->serves = false;
        loop_unwatch(sup->loop, &zygote->watch);
        loop_untimer(sup->loop, &zygote->deadline);
        loop_untimer(sup->loop, &zygote->audit);
        if (zygote->pid_fd >= 0)
                syscall(SYS_pidfd_send_signal, zygote->pid_fd, SIGKILL, NULL, 0);
        sup_answer_error(sup, WIRE_GONE, zygote->id, why);
        jobs_of_zygote(sup, zygote->id, why);
}

static void on_deadline(struct timer *timer)
{
        struct zygote *zygote = timer->owner;
        struct csn_error err;
        err_set(&err, CSN_E_SYSTEM, 0, "the zygote did not %s within %d seconds", zygote->serves ? "fork" : "serve",
                (zygote->serves ? HELPER_ANSWER_MS : LOADING_MS) / 1000);
        end(zygote, &err);
}

/* A fork request has its answer; the next one has its own time. */
static void answered(struct zygote *zygote)
{
        loop_untimer(zygote->sup->loop, &zygote->deadline);
        if (zygote->asked && --zygote->asked)
                loop_timer(zygote->sup->loop, &zygote->deadline, HELPER_ANSWER_MS * 1000ULL);
}

/* ---- CPU time of a zygote with foreign code ---- */

#define AUDIT_MS 2000
/* A fork takes below 5 ms; other CPU time of a zygote is foreign code that still runs. */
#define FORK_CPU_US 10000
#define IDLE_CPU_US 1000000
#define IDLE_SHARE 50          /* allowed share of the serving time: one part in so many */

static void audit(struct timer *timer)
{
        struct zygote *zygote = timer->owner;
        struct cgroup_usage usage;
        struct csn_error err;
        cgroup_leaf_usage(&zygote->leaf, &usage);
        uint64_t used_us = usage.cpu_us > zygote->cpu_us ? usage.cpu_us - zygote->cpu_us : 0;
        uint64_t due_us = zygote->forks * FORK_CPU_US + IDLE_CPU_US + (clock_us() - zygote->serving_us) / IDLE_SHARE;
        if (used_us <= due_us) {
                loop_timer(zygote->sup->loop, timer, AUDIT_MS * 1000ULL);
                return;
        }
        err_set(&err, CSN_E_SYSTEM, 0, "the zygote used %llu ms of CPU time beside its %llu forks",
                (unsigned long long)(used_us / 1000), (unsigned long long)zygote->forks);
        end(zygote, &err);
}

static void begin_audit(struct zygote *zygote)
{
        struct cgroup_usage usage;
        cgroup_leaf_usage(&zygote->leaf, &usage);
        zygote->cpu_us = usage.cpu_us;
        zygote->serving_us = clock_us();
        loop_timer(zygote->sup->loop, &zygote->audit, AUDIT_MS * 1000ULL);
}

/* ---- messages of a zygote ---- */

static void serves(struct zygote *zygote, const char *info)
{
        struct buf message;
        zygote->serves = true;
        loop_untimer(zygote->sup->loop, &zygote->deadline);
        if (zygote->domain->id)
                begin_audit(zygote);
        buf_init(&message, WIRE_MAX);
        sup_answer(zygote->sup, &message, wire_put_text(&message, WIRE_ZYGOTE, zygote->id, info), NULL, 0);
        jobs_of_zygote(zygote->sup, zygote->id, NULL);
}

static void said(struct zygote *zygote, struct zygote_message *message, int fds[WIRE_FDS_MAX])
{
        struct csn_error err;
        /* The texts share memory in the message; terminate the text of this operation. */
        if (message->op == ZYGOTE_SERVES)
                message->info[sizeof message->info - 1] = 0;
        else
                message->error.text[sizeof message->error.text - 1] =
                        message->error.field[sizeof message->error.field - 1] = 0;
        if (message->op == ZYGOTE_SERVES && !zygote->serves) {
                serves(zygote, message->info);
        } else if (message->op == ZYGOTE_FORKED && zygote->serves && message->pid > 0 && fds[0] >= 0) {
                answered(zygote);
                job_forked(zygote->domain, message->id, message->pid, take_fd(&fds[0]), NULL);
        } else if (message->op == ZYGOTE_FAILED && zygote->serves) {
                answered(zygote);
                job_forked(zygote->domain, message->id, 0, -1, &message->error);
        } else {
                err = message->error;
                if (message->op != ZYGOTE_FAILED || err.code <= 0)
                        err_set(&err, CSN_E_PROTOCOL, 0, "the zygote broke its protocol");
                end(zygote, &err);
        }
}

static void ready(struct watch *watch, uint32_t events)
{
        struct zygote *zygote = watch->owner;
        struct csn_error err;
        static uint8_t bytes[WIRE_MAX];
        struct zygote_message message;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        if (events & EPOLLOUT && send_queue_flush(&zygote->requests) < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "talk to the zygote");
                end(zygote, &err);
                return;
        }
        ssize_t len = wire_receive(watch->fd, bytes, fds, &fds_n);
        if (len < 0 && errno == EAGAIN)
                return;
        if (len == (ssize_t)sizeof message) {
                memcpy(&message, bytes, sizeof message);
                said(zygote, &message, fds);
        } else {
                err_set(&err, CSN_E_SYSTEM, 0, "the zygote ended");
                end(zygote, &err);
        }
        for (size_t i = 0; i < WIRE_FDS_MAX; i++)
                fd_close(&fds[i]);
}

/* ---- start and end ---- */

static int ask_outer_init(struct zygote *zygote, const struct wire_shape *shape, const struct wire_program *program,
        struct csn_error *err)
{
        struct supervisor *sup = zygote->sup;
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        auto_fd theirs = pair[1];
        zygote->watch.fd = pair[0];
        struct buf command;
        buf_init(&command, WIRE_MAX);
        bool sent = wire_put_program(&command, program) && wire_send(pair[0], command.bytes, command.len, NULL, 0) == 0;
        buf_done(&command);
        if (!sent)
                return err_set(err, CSN_E_SYSTEM, errno, "hand a zygote its command line");
        const struct cgroup_limits limits = shape->domain ? foreign_limits(shape) : zygote_limits;
        if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0 ||
                cgroup_leaf_open(sup->cgroups, "zygote", &limits, false, &zygote->leaf, err) < 0 ||
                loop_watch(sup->loop, &zygote->watch, pair[0], EPOLLIN, err) < 0)
                return -err->code;
        struct outer_init_message request = { .op = OUTER_INIT_ZYGOTE,
                .id = zygote->id | SUPERVISOR_ZYGOTE,
                .plan = { .shape = *shape, .abilities = sup->abilities } };
        request.plan.shape.label = NULL;
        if (send_queue_put(&zygote->domain->requests, &request, sizeof request, &theirs, 1) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "ask the outer init for a zygote");
        return 0;
}

int zygote_start(struct supervisor *sup, uint32_t id, const struct wire_shape *shape,
        const struct wire_program *program, struct csn_error *err)
{
        struct csn_error why;
        size_t n = 0;
        for (struct zygote *zygote = sup->zygotes; zygote; zygote = zygote->next)
                n++;
        if (zygote_find(sup, id) || id & SUPERVISOR_ZYGOTE || n == WIRE_ZYGOTES_MAX ||
                (shape->domain && (shape->domain != id || domain_find(sup, id))))
                return err_set(err, CSN_E_PROTOCOL, 0, "zygote %u is there already, or there are too many", id);
        struct zygote *zygote = mem_alloc(sizeof *zygote);
        *zygote = (struct zygote){ .next = sup->zygotes, .sup = sup, .id = id, .pid_fd = -1,
                                   .watch = { .fd = -1, .ready = ready, .owner = zygote },
                                   .deadline = { .fired = on_deadline, .owner = zygote },
                                   .closing = { .fired = try_close, .owner = zygote },
                                   .audit = { .fired = audit, .owner = zygote } };
        zygote->requests = (struct send_queue){ .loop = sup->loop, .watch = &zygote->watch };
        cgroup_leaf_init(&zygote->leaf);
        sup->zygotes = zygote;
        zygote->domain = shape->domain ? domain_open(sup, sup->common->events, id) : sup->common;
        if (!shape->domain)
                sup->common->users++;
        why = zygote->domain->error;
        if (why.code || ask_outer_init(zygote, shape, program, &why) < 0) {
                end(zygote, &why);
                loop_timer(sup->loop, &zygote->closing, 0);
                return 0;
        }
        loop_timer(sup->loop, &zygote->deadline, LOADING_MS * 1000ULL);
        return 0;
}

void zygote_retire(struct supervisor *sup, uint32_t id)
{
        struct zygote *zygote = zygote_find(sup, id);
        struct csn_error err;
        err_set(&err, CSN_E_CANCELLED, 0, "the zygote was retired");
        if (zygote)
                end(zygote, &err);
}

bool zygote_made(struct domain *domain, uint32_t id, pid_t pid, int pid_fd, const struct csn_error *error)
{
        struct zygote *zygote = zygote_find(domain->sup, id);
        struct csn_error err;
        auto_fd fd = pid_fd;
        if (!zygote || zygote->pid || zygote->domain != domain)
                return false;
        if (error) {
                end(zygote, error);
                loop_timer(domain->sup->loop, &zygote->closing, 0);
                return true;
        }
        zygote->pid = pid;
        zygote->pid_fd = take_fd(&fd);
        if (zygote->told)
                syscall(SYS_pidfd_send_signal, zygote->pid_fd, SIGKILL, NULL, 0);
        else if (sandbox_enter_leaf(&zygote->leaf, zygote->pid_fd, &err) < 0)
                end(zygote, &err);
        return true;
}

/* The last message of the zygote may have the reason. */
static void gone(struct zygote *zygote, const struct csn_error *why)
{
        if (zygote->watch.active)
                ready(&zygote->watch, EPOLLIN);
        end(zygote, why);
        loop_timer(zygote->sup->loop, &zygote->closing, 0);
}

bool zygote_lost(struct domain *domain, const struct outer_init_message *died)
{
        struct csn_error err;
        err_set(&err, CSN_E_SYSTEM, 0, "the zygote ended");
        for (struct zygote *zygote = domain->sup->zygotes; zygote; zygote = zygote->next)
                if (zygote->domain == domain && zygote->pid == died->pid) {
                        gone(zygote, &err);
                        return true;
                }
        return false;
}

void zygote_domain_lost(struct domain *domain, const struct csn_error *why)
{
        struct zygote *zygote = zygote_find(domain->sup, domain->id);
        if (zygote)
                gone(zygote, why);
}

void zygotes_free(struct supervisor *sup)
{
        for (struct zygote *zygote = sup->zygotes, *next; zygote; zygote = next) {
                next = zygote->next;
                zygote_free(zygote);
        }
}
