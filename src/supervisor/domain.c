/* Domains: starting outer inits, their messages, their ends. */
#include "supervisor/domain.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>

/* All processes of the domain are dead, or die by this call. */
static void domain_lost(struct domain *domain, const struct csn_error *why)
{
        loop_unwatch(domain->sup->loop, &domain->watch);
        if (!domain->id) {
                sup_give_up(domain->sup, why);
                return;
        }
        domain->error = *why;
        outer_init_stop(&domain->outer_init);
        domain->events->lost(domain, why);
}

/* One message.  False: there is none now, or never again. */
static bool listen_to(struct domain *domain)
{
        uint8_t bytes[sizeof(struct outer_init_message)];
        struct outer_init_message message;
        struct csn_error err;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        ssize_t len = wire_receive_small(domain->watch.fd, bytes, sizeof bytes, fds, &fds_n);
        if (len < 0 && errno == EAGAIN)
                return false;
        if (len != (ssize_t)sizeof message) {
                err_set(&err, CSN_E_SYSTEM, 0, "the outer init of the sandboxes ended");
                domain_lost(domain, &err);
                return false;
        }
        memcpy(&message, bytes, sizeof message);
        if (message.op == OUTER_INIT_FAILED && !message.id)
                domain_lost(domain, &message.error);
        else if (message.op != OUTER_INIT_READY)
                domain->events->heard(domain, &message, fds[0]);
        return domain->watch.active;
}

static void on_ready(struct watch *watch, uint32_t events)
{
        struct domain *domain = watch->owner;
        struct csn_error err;
        if (events & EPOLLOUT && send_queue_flush(&domain->requests) < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "talk to the outer init");
                domain_lost(domain, &err);
                return;
        }
        while (listen_to(domain))
                ;
}

static int start(struct domain *domain, struct csn_error *err)
{
        struct supervisor *sup = domain->sup;
        if (outer_init_start(&domain->outer_init, &sup->options->uids, sup->abilities.rootless, &sup->options->folders,
                    &sup->dirs, err) < 0 ||
                (!domain->id && outer_init_await(&domain->outer_init, err) < 0))
                return -err->code;
        if (fcntl(domain->outer_init.sock, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the outer init's socket non-blocking");
        return loop_watch(sup->loop, &domain->watch, domain->outer_init.sock, EPOLLIN, err);
}

struct domain *domain_open(struct supervisor *sup, const struct domain_events *events, uint32_t id)
{
        struct domain *domain = mem_alloc(sizeof *domain);
        *domain = (struct domain){ .next = sup->domains,
                .sup = sup,
                .events = events,
                .id = id,
                .outer_init = { .sock = -1 },
                .watch = { .fd = -1, .ready = on_ready, .owner = domain },
                .users = 1 };
        domain->requests = (struct send_queue){ .loop = sup->loop, .watch = &domain->watch };
        sup->domains = domain;
        if (start(domain, &domain->error) == 0)
                domain->error.code = 0;
        return domain;
}

struct domain *domain_find(const struct supervisor *sup, uint32_t id)
{
        for (struct domain *domain = sup->domains; domain; domain = domain->next)
                if (domain->id == id)
                        return domain;
        return NULL;
}

static void domain_free(struct domain *domain)
{
        for (struct domain **at = &domain->sup->domains; *at; at = &(*at)->next)
                if (*at == domain) {
                        *at = domain->next;
                        break;
                }
        loop_unwatch(domain->sup->loop, &domain->watch);
        outer_init_stop(&domain->outer_init);
        send_queue_done(&domain->requests);
        free(domain);
}

void domain_leave(struct domain *domain)
{
        if (--domain->users == 0)
                domain_free(domain);
}

static bool is_stopped(const struct domain *domain)
{
        siginfo_t info = { 0 };
        id_t pid = (id_t)domain->outer_init.pid;
        return pid && waitid(P_PID, pid, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid;
}

void domains_check(struct supervisor *sup)
{
        struct csn_error err;
        err_set(&err, CSN_E_SYSTEM, 0, "the outer init of the sandboxes was stopped");
        for (struct domain *domain = sup->domains; domain; domain = domain->next)
                if (is_stopped(domain))
                        domain_lost(domain, &err);
}

void domains_close(struct supervisor *sup)
{
        for (struct domain *domain = sup->domains, *next; domain; domain = next) {
                next = domain->next;
                domain_free(domain);
        }
}
