/* connections: the share of the daemon's file descriptors that each listener may use for its clients. */
#ifndef FRONT_SERVICE_CONNECTIONS_H
#define FRONT_SERVICE_CONNECTIONS_H

#include <stdbool.h>

/*
 * Connections at once of one listener, at least 4 and at most HTTP_CONNECTIONS_MAX.  local: of the listener for users
 * of this host, or of the socket of frames, each a quarter of the descriptors for clients and at most HTTP_LOCAL_MAX;
 * else of the listener for the network, which gets the rest.
 */
unsigned service_connections_max(bool local);

#endif
