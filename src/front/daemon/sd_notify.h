/*
 * notify: what the service manager hears of us, by sd_notify(3)'s protocol, which is a datagram of lines.
 *
 * The socket is connected once and kept: later, Landlock would refuse one of the abstract namespace.
 */
#ifndef FRONT_NOTIFY_H
#define FRONT_NOTIFY_H

#include "base/base.h"

/* Where NOTIFY_SOCKET says; without it nobody listens, and all below does nothing. */
void notify_open(void);
void notify_close(void);

/* "READY=1\nSTATUS=…"; what is too long is cut. */
void notify_send(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* "RELOADING=1"; until the next READY=1. */
void notify_reloading(void);

/* How often to send "WATCHDOG=1" at the least, in microseconds; 0: nobody waits for it (sd_watchdog_enabled(3)). */
uint64_t notify_watchdog_us(void);

#endif
