/* fronts: the list of the HTTP fronts of the daemon, for service_open(). */
#ifndef FRONT_DAEMON_FRONTS_H
#define FRONT_DAEMON_FRONTS_H

#include "front/service/front.h"

extern const struct front *const daemon_fronts[];          /* ends with NULL */

#endif
