/*
 * Waiting containers.  Each serves one run, so nothing of a run is left for the next run.  New containers have the key
 * of the newest run; containers with other keys stay until their time is over, or until their places are needed.
 */
#include "backend/docker/container.h"

#define REFILL_US 1000ULL   /* after the answer of the run */

static const struct container_events pool_events;

/* The owner of a container of the pool is the container. */
static bool is_pooled(const struct container *container)
{
        return container->events == &pool_events && container->state != CONTAINER_ENDED;
}

struct container *pool_take(struct backend_link *link, const struct container_key *key)
{
        /* The newest container is first on the list: its files are in the cache. */
        for (struct container *container = link->containers; container; container = container->next)
                if (is_pooled(container) && container->state == CONTAINER_READY &&
                        container_key_equal(&container->key, key)) {
                        loop_untimer(link->loop, &container->deadline);
                        return container;
                }
        return NULL;
}

static void on_ready(void *owner)
{
        struct container *container = owner;
        struct backend_link *link = container->link;
        loop_timer(link->loop, &container->deadline, link->settings->warm_idle * 1000);
        loop_timer(link->loop, &link->refill, 0);
}

/* The container's time is over, or the engine has ended the container. */
static void on_ended(void *owner, const struct csn_error *why, bool for_memory)
{
        struct container *container = owner;
        (void)for_memory;
        if (container->state != CONTAINER_READY && container->state != CONTAINER_DYING)
                log_text(LOG_WARN, "a container for later runs could not be made, and the next run tries again: %s",
                        why->text);
        container_end(container);
}

static const struct container_events pool_events = { .ready = on_ready, .ended = on_ended };

/* The container that has waited longest, of another key than the wanted one; NULL: there is none. */
static struct container *oldest_other(const struct backend_link *link)
{
        struct container *oldest = NULL;
        for (struct container *container = link->containers; container; container = container->next)
                if (is_pooled(container) && !container_key_equal(&container->key, &link->wanted))
                        oldest = container; /* the list has the newest first */
        return oldest;
}

/* Containers are made one at a time: a start uses a processor, and runs need the others. */
static void on_refill(struct timer *timer)
{
        struct backend_link *link = timer->owner;
        size_t all = 0, fitting = 0, coming = 0;
        for (const struct container *container = link->containers; container; container = container->next) {
                bool fits = is_pooled(container) && container_key_equal(&container->key, &link->wanted);
                all += is_pooled(container);
                fitting += fits;
                coming += is_pooled(container) && container->state != CONTAINER_READY;
        }
        if (link->closing || coming || fitting >= link->settings->warm)
                return;
        struct container *other = all >= link->settings->warm ? oldest_other(link) : NULL;
        if (other)
                container_end(other);
        struct container *container = container_new(link, &link->wanted, &pool_events, NULL);
        container->owner = container;
}

void pool_want(struct backend_link *link, const struct container_key *key)
{
        link->wanted = *key;
        if (link->settings->warm && !link->closing)
                loop_timer(link->loop, &link->refill, REFILL_US);
}

void pool_open(struct backend_link *link)
{
        link->refill = (struct timer){ .fired = on_refill, .owner = link };
}

void pool_close(struct backend_link *link)
{
        link->closing = true;
        loop_untimer(link->loop, &link->refill);
}
