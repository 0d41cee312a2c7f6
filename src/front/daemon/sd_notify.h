/*
 * notify: messages to the service manager, by sd_notify(3)'s protocol: a datagram of lines.
 *
 * The socket is connected once and stays open: later, Landlock would refuse to connect to an abstract socket.
 */
#ifndef FRONT_DAEMON_SD_NOTIFY_H
#define FRONT_DAEMON_SD_NOTIFY_H

#include "base/base.h"

/* Connect to NOTIFY_SOCKET.  Without that variable all functions here do nothing.  notify_close() closes the socket. */
void notify_open(void);
void notify_close(void);

/* Send lines such as "READY=1\nSTATUS=…"; longer messages are cut. */
void notify_send(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Send "RELOADING=1", valid until the next READY=1. */
void notify_reloading(void);

/* Longest allowed interval of "WATCHDOG=1", in us; 0: no watchdog (sd_watchdog_enabled(3)). */
uint64_t notify_watchdog_us(void);

#endif
