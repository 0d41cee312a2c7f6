/*
 * A domain: an outer init with its sandboxes and zygotes.
 *
 * The common domain, number 0, has all sandboxes but those that a zygote with foreign code reaches.  Such a zygote has
 * imported packages of a tenant or modules of an image, so it gets a domain of its own: user, pid, mount and network
 * namespaces apart from all others.  The domain has the zygote's number, and ends with its last sandbox.
 */
#ifndef SUPERVISOR_DOMAIN_H
#define SUPERVISOR_DOMAIN_H

#include "supervisor/supervisor_private.h"

/* News of all domains.  `domain` is alive during the call. */
struct domain_events {
        /* A message of the outer init; the descriptor becomes the callee's. */
        void (*heard)(struct domain *domain, const struct outer_init_message *message, int fd);
        /* The outer init of a domain that is not the common one is dead, and with it all processes of the domain. */
        void (*lost)(struct domain *domain, const struct csn_error *why);
};

/* A member of supervisor.domains until its last user leaves. */
struct domain {
        struct domain *next;
        struct supervisor *sup;
        const struct domain_events *events;
        uint32_t id;               /* number of its zygote; 0: the common domain */
        struct outer_init outer_init;
        struct watch watch;
        struct send_queue requests;
        struct csn_error error;    /* why no sandbox can be created; code 0: the outer init runs */
        size_t users;              /* jobs, and the zygote */
};

/*
 * Start the outer init of a domain, which the caller uses.  Never NULL: domain->error says why no sandbox can be
 * created.  The common domain is opened first, and its outer init is waited for.
 */
struct domain *domain_open(struct supervisor *sup, const struct domain_events *events, uint32_t id);
/* The domain with this number, or NULL.  The caller becomes no user. */
struct domain *domain_find(const struct supervisor *sup, uint32_t id);
/* A user of the domain ends; the last one ends the domain, except the common one. */
void domain_leave(struct domain *domain);
/* End outer inits that were stopped: nothing else shows that.  The common one ends the service. */
void domains_check(struct supervisor *sup);
/* Kill all outer inits and free the domains.  Jobs and zygotes are freed before. */
void domains_close(struct supervisor *sup);

#endif
