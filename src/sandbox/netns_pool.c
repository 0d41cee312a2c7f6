/*
 * Pool of network namespaces: a sandbox is cloned into a network namespace of the outer init, with loopback up
 * and no other interface.
 *
 * Making and removing a network namespace is a large part of the kernel's work for a sandbox, and most programs
 * never use the network.  So the namespace of a dead sandbox is reused, if its state in the kernel's files equals
 * a new namespace's: no socket of any family, no packet and no attempt in any counter.  Processes inside cannot
 * change any other state: the namespace belongs to the outer init's user namespace, in which they have no
 * capability, and /proc/sys is read-only.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define OWN "/proc/self/ns/net"

/*
 * "used" in sockstat counts the sockets of all families, so sockstat6 adds nothing.  Leaving out netstat would need an
 * argument for each of its counters and each kernel, so netstat is read.  A flow label outlives its socket by up to a
 * minute, with bytes chosen by its owner.
 */
static const char *const shown[NET_FILES] = { "sockstat", "dev", "snmp", "snmp6", "netstat", "ip6_flowlabel" };

#define READY_MAX 32

/*
 * Opening the files takes half of the time of a check; but each sandbox' process 1 begins with a copy of all
 * descriptors.
 */
#define OPEN_MAX 16

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

/* Removes machine-wide numbers, which depend on foreign connections (sockstat_seq_show() in net/ipv4/proc.c). */
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

/* Opens the files of the current namespace.  A file missing without IPv6 may appear later. */
static int open_files(struct net *net)
{
        auto_fd dir = open("/proc/self/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                return -1;
        for (size_t i = 0; i < NET_FILES; i++) {
                net->files[i] = openat(dir, shown[i], O_RDONLY | O_CLOEXEC);
                if (net->files[i] < 0 && errno != ENOENT)
                        return -1;
        }
        return 0;
}

static void close_files(struct net *net)
{
        for (size_t i = 0; i < NET_FILES; i++)
                fd_close(&net->files[i]);
}

static bool has_all(const struct net *net)
{
        for (size_t i = 0; i < NET_FILES; i++)
                if (net->files[i] < 0)
                        return false;
        return true;
}

/* Reads the whole file.  -1: unreadable, or longer than the buffer. */
static ssize_t read_again(int fd, char *text, size_t size)
{
        size_t len = 0;
        for (;;) {
                ssize_t n = pread(fd, text + len, size - len, (off_t)len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 || len + (size_t)n == size)
                        return -1;
                if (n == 0)
                        return (ssize_t)len;
                len += (size_t)n;
        }
}

/* Reads the state of the namespace.  Returns the length; 0: unreadable, or longer than the buffer. */
static size_t look(const struct net *net, char *text, size_t size)
{
        size_t len = 0;
        for (size_t i = 0; i < NET_FILES; i++) {
                ssize_t n = net->files[i] < 0 ? 0 : read_again(net->files[i], text + len, size - len - 1);
                if (n < 0)
                        return 0;
                len += (size_t)n;
        }
        text[len] = 0;
        return len ? without_machine(text, len) : 0;
}

void nets_drop(struct nets *nets, struct net *net)
{
        nets->open_n -= net->is_open;
        close_files(net);
        fd_close(&net->fd);
        free(net);
}

static int make(struct nets *nets, struct net *net, struct csn_error *err)
{
        if (unshare(CLONE_NEWNET) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a network namespace");
        if (loopback_up(err) < 0)
                return -err->code;
        if (!nets->fresh_len) {
                nets->fresh_len = open_files(net) == 0 ? look(net, nets->fresh, sizeof nets->fresh) : 0;
                close_files(net);
        }
        net->fd = open(OWN, O_RDONLY | O_CLOEXEC);
        return net->fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open a network namespace") : 0;
}

struct net *nets_enter(struct nets *nets, struct csn_error *err)
{
        struct net *net = nets->ready;
        if (nets->own < 0 && (nets->own = open(OWN, O_RDONLY | O_CLOEXEC)) < 0) {
                err_set(err, CSN_E_SYSTEM, errno, "open the outer init's network namespace");
                return NULL;
        }
        if (net) {
                nets->ready = net->next;
                nets->ready_n--;
                if (setns(net->fd, CLONE_NEWNET) == 0)
                        return net;
                nets_drop(nets, net);
        }
        net = mem_alloc(sizeof *net);
        *net = (struct net){ .fd = -1 };
        memset(net->files, 0xff, sizeof net->files);   /* every descriptor -1 */
        if (make(nets, net, err) == 0)
                return net;
        nets_drop(nets, net);
        return NULL;
}

int nets_leave(const struct nets *nets)
{
        return setns(nets->own, CLONE_NEWNET);
}

void nets_give(struct nets *nets, struct net *net, pid_t pid)
{
        net->pid = pid;
        net->next = nets->used;
        nets->used = net;
}

/* Whether the files are open now. */
static bool enter_and_open(struct nets *nets, struct net *net)
{
        if (setns(net->fd, CLONE_NEWNET) < 0)
                return false;
        bool is_open = open_files(net) == 0;
        if (nets_leave(nets) < 0)
                _exit(1);   /* the outer init must not stay in there */
        return is_open;
}

/* Keeps the files open for the next check, for at most OPEN_MAX namespaces. */
static void keep_files(struct nets *nets, struct net *net)
{
        if (net->is_open)
                return;
        net->is_open = has_all(net) && nets->open_n < OPEN_MAX;
        nets->open_n += net->is_open;
        if (!net->is_open)
                close_files(net);
}

static bool is_as_new(struct nets *nets, struct net *net)
{
        static char text[sizeof nets->fresh];
        if (!nets->fresh_len || (!net->is_open && !enter_and_open(nets, net)))
                return false;
        size_t len = look(net, text, sizeof text);
        keep_files(nets, net);
        return len == nets->fresh_len && memcmp(text, nets->fresh, len) == 0;
}

void nets_take_back(struct nets *nets, pid_t pid)
{
        for (struct net **at = &nets->used; *at; at = &(*at)->next) {
                struct net *net = *at;
                if (net->pid != pid)
                        continue;
                *at = net->next;
                if (nets->ready_n == READY_MAX || !is_as_new(nets, net)) {
                        nets_drop(nets, net);
                        return;
                }
                net->next = nets->ready;
                nets->ready = net;
                nets->ready_n++;
                return;
        }
}
