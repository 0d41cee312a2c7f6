/*
 * Network namespaces: a sandbox is cloned into one of the keeper's, with loopback up and nothing else.
 *
 * To make one and take it down is much of what the kernel does for a sandbox.  Most programs never touch theirs;
 * so one whose sandbox is dead is used again, if the kernel shows of it what it shows of a new one:
 * no socket of any family, no packet and no attempt in any counter.  Nothing inside could change anything else:
 * it belongs to the keeper's user namespace, where nobody inside has a capability, and /proc/sys is read-only.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define OWN "/proc/self/ns/net"

/*
 * "used" in sockstat counts the sockets of all families, so sockstat6 says nothing more.  That netstat said nothing more would need
 * an argument for each of its counters and each kernel, so it is read.  A flow label outlives its socket by up to a minute, with bytes that its owner chose.
 */
static const char *const shown[] = { "sockstat", "dev", "snmp", "snmp6", "netstat", "ip6_flowlabel" };

void nets_init(struct nets *nets)
{
        *nets = (struct nets){ .own = -1 };
}

/* Programs talk to themselves over loopback; there is no other interface and no route. */
static int loopback_up(struct csn_error *err)
{
        auto_fd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq lo = { .ifr_name = "lo" };
        if (sock < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socket for the loopback interface");
        lo.ifr_flags = IFF_UP | IFF_RUNNING;
        if (ioctl(sock, SIOCSIFFLAGS, &lo) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "bring up the loopback interface");
        return 0;
}

/* Numbers of the whole machine go, for other people's connections change them (sockstat_seq_show() in net/ipv4/proc.c). */
static size_t without_machine(char *text, size_t len)
{
        static const char *const words[] = { " orphan ", " alloc ", " mem " };
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                for (char *at = strstr(text, words[i]); at; at = strstr(at, words[i])) {
                        at += strlen(words[i]);
                        size_t digits = strspn(at, "0123456789");
                        memmove(at, at + digits, len - (size_t)(at - text) - digits + 1);
                        len -= digits;
                }
        return len;
}

/* Of the namespace that we are in.  Returns the length; 0: it cannot be read, or not all of it. */
static size_t look(char *text, size_t size)
{
        size_t len = 0;
        auto_fd dir = open("/proc/self/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; i < ARRAY_LEN(shown) && dir >= 0; i++) {
                ssize_t n = io_read_file(dir, shown[i], text + len, size - len - 1);
                if (n < 0 && errno == ENOENT)
                        continue;   /* a kernel without IPv6 */
                if (n <= 0 || len + (size_t)n >= size - 1)
                        return 0;
                len += (size_t)n;
        }
        return len ? without_machine(text, len) : 0;
}

static int make(struct nets *nets, struct csn_error *err)
{
        if (unshare(CLONE_NEWNET) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a network namespace");
        if (loopback_up(err) < 0)
                return -err->code;
        if (!nets->fresh_len)
                nets->fresh_len = look(nets->fresh, sizeof nets->fresh);
        int fd = open(OWN, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open a network namespace") : fd;
}

int nets_enter(struct nets *nets, struct csn_error *err)
{
        if (nets->own < 0 && (nets->own = open(OWN, O_RDONLY | O_CLOEXEC)) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the keeper's network namespace");
        if (!nets->ready_n)
                return make(nets, err);
        int fd = nets->ready[--nets->ready_n];
        if (setns(fd, CLONE_NEWNET) == 0)
                return fd;
        fd_close(&fd);
        return make(nets, err);
}

int nets_leave(const struct nets *nets)
{
        return setns(nets->own, CLONE_NEWNET);
}

void nets_give(struct nets *nets, int fd, pid_t pid)
{
        struct net_used *used = mem_alloc(sizeof *used);
        *used = (struct net_used){ .next = nets->used, .pid = pid, .fd = fd };
        nets->used = used;
}

static bool is_as_new(const struct nets *nets, int fd)
{
        static char text[sizeof nets->fresh];
        if (!nets->fresh_len || setns(fd, CLONE_NEWNET) < 0)
                return false;
        size_t len = look(text, sizeof text);
        if (nets_leave(nets) < 0)
                _exit(1);   /* nothing of ours may be in there */
        return len == nets->fresh_len && memcmp(text, nets->fresh, len) == 0;
}

void nets_take_back(struct nets *nets, pid_t pid)
{
        for (struct net_used **at = &nets->used; *at; at = &(*at)->next) {
                struct net_used *used = *at;
                if (used->pid != pid)
                        continue;
                *at = used->next;
                if (nets->ready_n < ARRAY_LEN(nets->ready) && is_as_new(nets, used->fd))
                        nets->ready[nets->ready_n++] = take_fd(&used->fd);
                fd_close(&used->fd);
                free(used);
                return;
        }
}
