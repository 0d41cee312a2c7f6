/* Lines for the service manager; see sd_notify.h. */
#include "front/daemon/sd_notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static int notify_fd = -1;

void notify_open(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        const char *path = getenv("NOTIFY_SOCKET");
        if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path)
                return;
        socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
        memcpy(address.sun_path, path, strlen(path));
        if (path[0] == '@')
                address.sun_path[0] = 0;   /* the abstract namespace, unix(7) */
        auto_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *)&address, len) < 0)
                log_text(LOG_WARN, "the service manager does not hear us at NOTIFY_SOCKET=%s: %s", path,
                        strerrordesc_np(errno));
        else
                notify_fd = take_fd(&fd);
}

void notify_close(void)
{
        fd_close(&notify_fd);
}

void notify_send(const char *fmt, ...)
{
        char text[500];
        va_list args;
        if (notify_fd < 0)
                return;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        if (send(notify_fd, text, strlen(text), MSG_NOSIGNAL) < 0)
                log_text(LOG_WARN, "the service manager does not hear %s: %s", text, strerrordesc_np(errno));
}

void notify_reloading(void)
{
        notify_send("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_us());
}

uint64_t notify_watchdog_us(void)
{
        const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
        char *end;
        if (!usec || notify_fd < 0 || (pid && strtoull(pid, NULL, 10) != (unsigned long long)getpid()))
                return 0;
        uint64_t us = strtoull(usec, &end, 10);
        return *end ? 0 : us / 2;
}
