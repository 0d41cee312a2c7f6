/* gateway: one HTTP address for many caissonds; see docs/design/gateway.md. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include "model/settings.h"

/*
 * Serve until SIGTERM, SIGINT or SIGHUP, then finish requests in progress for at most gateway.shutdown.  Errors:
 * CSN_E_CONFIG, CSN_E_SYSTEM.
 */
int gateway_serve(const struct settings *settings, struct csn_error *err);

#endif
