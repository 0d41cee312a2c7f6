/*
 * link: connections to workers, kept open between requests.
 *
 * A link belongs to its user from link_take() until link_release() or link_end().  A released link waits for the next
 * user for at most LINK_IDLE_US; the newest waiting link is taken first.
 */
#ifndef GATEWAY_FLEET_LINK_H
#define GATEWAY_FLEET_LINK_H

#include "gateway/fleet/fleet.h"

#define LINK_OUT_MAX (256 * KIB)           /* unsent bytes from which on link_has_room() is false */
#define LINK_IDLE_US (30 * 1000000ULL)     /* less than HTTP_IDLE_S of a worker, or the worker closes first */
#define LINK_IDLE_MAX 64                   /* waiting links of a worker */

struct link;

struct link_events {
        /* The connection is made.  Called at most once, from the loop, and not for a link that is open at once. */
        void (*open)(void *owner);
        void (*bytes)(void *owner, const char *bytes, size_t len);
        void (*room)(void *owner);         /* link_has_room() is true again */
        /* The end of the connection, from the loop; why NULL: the worker closed it.  link_end() is still needed. */
        void (*closed)(void *owner, const char *why);
};

/* A waiting link or a new one.  Failures are told by closed(). */
struct link *link_take(struct gateway_worker *worker, const struct link_events *events, void *owner);
bool link_is_open(const struct link *link);
bool link_is_reused(const struct link *link);   /* the link had an earlier user */
/* Send bytes; they are copied as far as the kernel does not take them. */
void link_send(struct link *link, const void *bytes, size_t len);
bool link_has_room(const struct link *link);
void link_hold(struct link *link, bool hold);   /* do not read from the connection; read again */
void link_release(struct link *link);           /* an answer was read to its end, and the connection goes on */
void link_end(struct link *link);             /* NULL is allowed */
void links_close(struct gateway_worker *worker);   /* all that wait */

#endif
