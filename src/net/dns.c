/*
 * Name resolution by c-ares (ares_getaddrinfo(3)), with its sockets and timers in our event loop.
 *
 * /etc/hosts first, then the name servers of /etc/resolv.conf.  No search domains: a program's name is complete,
 * and names such as "intranet" must not be resolved for a program.  Callers judge the addresses.
 */
#include "net/dns.h"

#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/time.h>

struct dns_socket {
        struct watch watch;
        struct dns_socket *next;
};

struct resolver {
        struct loop *loop;
        ares_channel channel;
        struct dns_socket *sockets;
        struct timer timer;
        size_t pending;
        bool closing;
};

struct lookup {
        struct resolver *resolver;
        resolver_answer answer;    /* NULL: no caller waits any more */
        void *owner;
        struct lookup **slot;
};

static void set_timer(struct resolver *resolver)
{
        struct timeval left;
        if (!resolver->closing && ares_timeout(resolver->channel, NULL, &left))
                loop_timer(resolver->loop, &resolver->timer, (uint64_t)left.tv_sec * 1000000 + (uint64_t)left.tv_usec);
        else
                loop_untimer(resolver->loop, &resolver->timer);
}

static void on_timer(struct timer *timer)
{
        struct resolver *resolver = timer->owner;
        ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        set_timer(resolver);
}

/* The watch may be gone when ares_process_fd() returns. */
static void on_ready(struct watch *watch, uint32_t events)
{
        struct resolver *resolver = watch->owner;
        int fd = watch->fd;
        ares_process_fd(resolver->channel, events & ~(uint32_t)EPOLLOUT ? fd : ARES_SOCKET_BAD,
                        events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
        set_timer(resolver);
}

/* The interest of c-ares in a socket; neither: c-ares closes the socket next. */
static void on_socket(void *data, ares_socket_t fd, int readable, int writable)
{
        struct resolver *resolver = data;
        struct dns_socket **at = &resolver->sockets;
        while (*at && (*at)->watch.fd != fd)
                at = &(*at)->next;
        struct dns_socket *found = *at;
        if (!readable && !writable) {
                if (!found)
                        return;
                *at = found->next;
                loop_unwatch(resolver->loop, &found->watch);
                free(found);
                return;
        }
        if (!found) {
                found = mem_alloc(sizeof *found);
                found->watch = (struct watch){ .fd = fd, .ready = on_ready, .owner = resolver };
                found->next = resolver->sockets;
                resolver->sockets = found;
        }
        /* A socket without a watch never answers: the time-out of c-ares ends the query. */
        loop_watch(resolver->loop, &found->watch, fd, (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0), NULL);
}

int resolver_open(struct loop *loop, const char *servers, uint64_t timeout_ms, struct resolver **ret,
        struct csn_error *err)
{
        char lookups[] = "fb";     /* files, then "bind": name servers */
        struct resolver *resolver = mem_alloc(sizeof *resolver);
        *resolver = (struct resolver){ .loop = loop, .timer = { .fired = on_timer, .owner = resolver } };
        struct ares_options options = {
                .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
                .timeout = (int)max_u64(min_u64(timeout_ms, 60000) / 4, 1),
                .tries = 2,
                .lookups = lookups,
                .sock_state_cb = on_socket,
                .sock_state_cb_data = resolver,
        };
        int rc = ares_library_init(ARES_LIB_INIT_ALL);
        if (rc != ARES_SUCCESS) {
                free(resolver);
                return err_set(err, CSN_E_SYSTEM, 0, "c-ares: %s", ares_strerror(rc));
        }
        rc = ares_init_options(&resolver->channel, &options, ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                                             ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
        if (rc != ARES_SUCCESS) {
                ares_library_cleanup();
                free(resolver);
                return err_set(err, CSN_E_SYSTEM, 0, "c-ares: %s", ares_strerror(rc));
        }
        if (servers && (rc = ares_set_servers_ports_csv(resolver->channel, servers)) != ARES_SUCCESS) {
                resolver_close(resolver);
                return err_set(err, CSN_E_INPUT, 0, "name servers \"%.100s\": %s", servers, ares_strerror(rc));
        }
        *ret = resolver;
        return 0;
}

void resolver_close(struct resolver *resolver)
{
        if (!resolver)
                return;
        resolver->closing = true;
        ares_destroy(resolver->channel);   /* answers every open question, with ARES_EDESTRUCTION */
        loop_untimer(resolver->loop, &resolver->timer);
        ares_library_cleanup();
        free(resolver);
}

size_t resolver_pending(const struct resolver *resolver)
{
        return resolver->pending;
}

static size_t copy_addresses(const struct ares_addrinfo *info, struct net_address *addresses)
{
        size_t n = 0;
        for (const struct ares_addrinfo_node *node = info->nodes; node && n < DNS_ADDRESSES_MAX; node = node->ai_next) {
                struct net_address address = { 0 };
                if (node->ai_family == AF_INET) {
                        struct sockaddr_in v4;
                        memcpy(&v4, node->ai_addr, sizeof v4);
                        address.len = 4;
                        memcpy(address.bytes, &v4.sin_addr, 4);
                } else if (node->ai_family == AF_INET6) {
                        struct sockaddr_in6 v6;
                        memcpy(&v6, node->ai_addr, sizeof v6);
                        address.len = 16;
                        memcpy(address.bytes, &v6.sin6_addr, 16);
                } else {
                        continue;
                }
                addresses[n++] = address;
        }
        return n;
}

static const char *problem_of(int status)
{
        switch (status) {
        case ARES_SUCCESS:
                return NULL;
        case ARES_ENOTFOUND:
        case ARES_ENODATA:
        case ARES_ENONAME:
                return "there is no such name";
        case ARES_ETIMEOUT:
                return "the name servers do not answer in time";
        case ARES_ECONNREFUSED:
                return "the name servers cannot be reached";
        default:
                return ares_strerror(status);
        }
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
        struct lookup *lookup = arg;
        struct net_address addresses[DNS_ADDRESSES_MAX];
        size_t n = info && status == ARES_SUCCESS ? copy_addresses(info, addresses) : 0;
        const char *problem = n ? NULL : problem_of(status == ARES_SUCCESS ? ARES_ENODATA : status);
        (void)timeouts;
        if (info)
                ares_freeaddrinfo(info);
        lookup->resolver->pending--;
        if (lookup->answer) {
                *lookup->slot = NULL;
                if (!lookup->resolver->closing)
                        lookup->answer(lookup->owner, addresses, n, problem, status == ARES_ETIMEOUT);
        }
        free(lookup);
}

void resolver_ask(struct resolver *resolver, const char *name, resolver_answer answer, void *owner,
        struct lookup **slot)
{
        const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
        struct lookup *lookup = mem_alloc(sizeof *lookup);
        *lookup = (struct lookup){ .resolver = resolver, .answer = answer, .owner = owner, .slot = slot };
        *slot = lookup;
        resolver->pending++;
        ares_getaddrinfo(resolver->channel, name, NULL, &hints, on_answer, lookup);
        set_timer(resolver);
}

void lookup_forget(struct lookup **slot)
{
        if (*slot)
                (*slot)->answer = NULL;
        *slot = NULL;
}
