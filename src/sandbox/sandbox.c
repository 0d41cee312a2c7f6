/* A sandbox as the supervisor sees it: made by the keeper, killed by one signal, given back in order. */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { INNER_OUT, INNER_ERROR, INNER_CHANNEL, INNER_DOOR };

void sandbox_init(struct sandbox *box)
{
        *box = (struct sandbox){ .pid_fd = -1, .control = -1, .talk = -1, .program_fd = -1, .uid_lock = -1 };
        for (size_t i = 0; i < ARRAY_LEN(box->inner); i++)
                box->inner[i] = -1;
        for (size_t i = 0; i < WIRE_ENDS; i++)
                box->outer[i] = -1;
        cgroup_leaf_init(&box->leaf);
}

/* Too many descriptors is a question of load and not of the request. */
static int no_descriptor(struct csn_error *err, const char *what)
{
        return err_set(err, errno == EMFILE || errno == ENFILE ? CSN_E_BUSY : CSN_E_SYSTEM, errno, "%s", what);
}

static int take_uid(struct sandbox *box, const struct uid_range *uids, struct csn_error *err)
{
        if (box->plan.abilities.rootless) {
                box->plan.host_uid = geteuid();
                box->plan.keeper_uid = SANDBOX_UID;
                return 0;
        }
        bool rooted = box->plan.shape.flags & WIRE_ROOT;
        if ((rooted ? uid_take_block : uid_take)(uids, &box->plan.host_uid, &box->uid_lock, err) < 0)
                return -err->code;
        box->plan.keeper_uid = box->plan.host_uid - uids->first;
        return 0;
}

/*
 * The program opens /dev/stdout and /dev/stderr by name, which asks for the rights on the pipe's inode; so
 * its pipes belong to the sandbox's uid.
 */
static int make_pipe(struct sandbox *box, int inner, int outer, struct csn_error *err)
{
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return no_descriptor(err, "make a pipe");
        box->outer[outer] = ends[0];
        box->inner[inner] = ends[1];
        /* O_NONBLOCK belongs to our end alone: each has a file description of its own. */
        if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ||
            (!box->plan.abilities.rootless && fchown(ends[1], box->plan.host_uid, box->plan.host_uid) < 0))
                return err_set(err, CSN_E_SYSTEM, errno, "give the sandbox its pipe");
        return 0;
}

static int make_pair(int *ret_inner, int *ret_outer, bool nonblock, struct csn_error *err)
{
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return no_descriptor(err, "make a pair of sockets");
        *ret_outer = ends[0];
        *ret_inner = ends[1];
        if (nonblock && fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a socket non-blocking");
        return 0;
}

static int make_ends(struct sandbox *box, struct csn_error *err)
{
        if (make_pipe(box, INNER_OUT, WIRE_END_STDOUT, err) < 0 || make_pipe(box, INNER_ERROR, WIRE_END_STDERR, err) < 0 ||
            make_pair(&box->inner[INNER_CHANNEL], &box->outer[WIRE_END_CHANNEL], true, err) < 0 ||
            make_pair(&box->inner[INNER_DOOR], &box->outer[WIRE_END_DOOR], true, err) < 0)
                return -err->code;
        return 0;
}

int sandbox_open(struct sandbox *box, uint32_t id, const struct wire_shape *shape, const struct abilities *abilities,
                 struct cgroup_base *base, const struct uid_range *uids, struct outbox *keeper, struct csn_error *err)
{
        sandbox_init(box);
        if (plan_make(shape, abilities, &box->plan, err) < 0)
                return -err->code;
        auto_fd theirs = -1;
        auto_fd usr = -1;
        if (take_uid(box, uids, err) < 0 || make_ends(box, err) < 0 || make_pair(&theirs, &box->control, true, err) < 0 ||
            cgroup_leaf_open(base, shape->label, &box->plan.cgroup, shape->flags & WIRE_LASTING, &box->leaf, err) < 0)
                return -err->code;
        if (shape->flags & WIRE_ROOT && idmap_tree("/usr", box->plan.host_uid, &usr, err) < 0)
                return -err->code;
        struct keeper_message request = { .op = KEEPER_SHELL, .id = id, .plan = box->plan };
        const int fds[INIT_FDS_MAX] = { theirs, box->inner[INNER_OUT], box->inner[INNER_ERROR], box->inner[INNER_CHANNEL], box->inner[INNER_DOOR], usr };
        if (outbox_put(keeper, &request, sizeof request, fds, usr >= 0 ? INIT_FDS_MAX : INIT_FDS_MAX - 1) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "ask the keeper for a sandbox");
        return 0;
}

/* A pid of another pid namespace, in ours: the kernel tells it for the pidfd (proc(5), fdinfo). */
static pid_t pid_of(int pid_fd)
{
        char path[48], text[512];
        snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pid_fd);
        if (io_read_file(AT_FDCWD, path, text, sizeof text - 1) < 0)
                return -1;
        const char *line = strstr(text, "\nPid:");
        return line ? (pid_t)strtol(line + strlen("\nPid:"), NULL, 10) : -1;
}

int sandbox_enter_leaf(const struct cgroup_leaf *leaf, int pid_fd, struct csn_error *err)
{
        pid_t pid = pid_of(pid_fd);
        if (pid <= 0)
                return err_set(err, CSN_E_SYSTEM, 0, "a process ended while it was set up");
        return cgroup_leaf_enter(leaf, pid, err);
}

void sandbox_tree(const struct sandbox *box, struct tree_usage *ret)
{
        pid_t pid = box->pid_fd >= 0 ? pid_of(box->pid_fd) : -1;
        pid_t program = box->program && box->program_fd >= 0 ? pid_of(box->program_fd) : -1;
        struct tree_usage more = { 0 };
        *ret = more;
        if (pid > 0)
                tree_usage(pid, ret);
        if (program > 0)
                tree_usage(program, &more);
        ret->memory_bytes += more.memory_bytes;
        ret->cpu_us += more.cpu_us;
        ret->processes += more.processes;
        ret->waited_us = max_u64(ret->waited_us, more.waited_us);
}

void sandbox_seen(const struct sandbox *box, struct wire_seen *ret)
{
        struct cgroup_usage usage;
        struct tree_usage tree = { 0 };
        unsigned controllers = box->plan.abilities.controllers;
        cgroup_leaf_usage(&box->leaf, &usage);
        if (controllers != WIRE_CTL_ALL)
                sandbox_tree(box, &tree);
        uint64_t processes = controllers & WIRE_CTL_PIDS ? cgroup_leaf_processes(&box->leaf) : tree.processes;
        *ret = (struct wire_seen){ .cpu_us = controllers & WIRE_CTL_CPU ? usage.cpu_us : tree.cpu_us,
                                   .memory_bytes = controllers & WIRE_CTL_MEMORY ? cgroup_leaf_memory(&box->leaf) : tree.memory_bytes,
                                   .processes = processes ? processes - 1 : 0,
                                   .memory_peak = usage.memory_peak, .oom_kills = usage.oom_kills, .pids_hits = usage.pids_hits };
}

static int settle(const struct cgroup_leaf *leaf, int sock, struct csn_error *err)
{
        struct init_message go = { .op = INIT_GO };
        int doors[CGROUP_DOORS_MAX];
        int n = cgroup_leaf_doors(leaf, doors, err);
        if (n < 0)
                return n;
        int rc = wire_send(sock, &go, sizeof go, doors, (size_t)n);
        int sys = errno;
        cgroup_leaf_doors_done(leaf, doors, n);
        return rc < 0 ? err_set(err, CSN_E_SYSTEM, sys, "let a process of the sandbox go on") : 0;
}

int sandbox_made(struct sandbox *box, pid_t pid, int pid_fd, struct csn_error *err)
{
        box->pid = pid;
        box->pid_fd = pid_fd;
        return settle(&box->leaf, box->control, err);
}

int sandbox_join(struct sandbox *box, uint32_t id, struct outbox *zygote, struct csn_error *err)
{
        auto_fd theirs = -1;
        if (make_pair(&theirs, &box->talk, true, err) < 0)
                return -err->code;
        struct zygote_message request = { .op = ZYGOTE_FORK, .id = id, .plan = box->plan };
        const int fds[] = { box->pid_fd, theirs, box->inner[INNER_OUT], box->inner[INNER_ERROR], box->inner[INNER_CHANNEL],
                            box->inner[INNER_DOOR] };
        if (outbox_put(zygote, &request, sizeof request, fds, ARRAY_LEN(fds)) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "ask the zygote for an interpreter");
        return 0;
}

static void close_inner(struct sandbox *box)
{
        for (size_t i = 0; i < ARRAY_LEN(box->inner); i++)
                fd_close(&box->inner[i]);
}

int sandbox_visit(struct sandbox *box, const struct sandbox *host, int fds[WIRE_ENTRIES], struct csn_error *err)
{
        sandbox_init(box);
        box->visits = true;
        box->plan = host->plan;
        box->inner[INNER_OUT] = take_fd(&fds[WIRE_ENTRY_STDOUT]);
        box->inner[INNER_ERROR] = take_fd(&fds[WIRE_ENTRY_STDERR]);
        box->inner[INNER_CHANNEL] = take_fd(&fds[WIRE_ENTRY_CHANNEL]);
        box->inner[INNER_DOOR] = take_fd(&fds[WIRE_ENTRY_DOOR]);
        box->pid_fd = fcntl(host->pid_fd, F_DUPFD_CLOEXEC, 0);
        return box->pid_fd < 0 ? no_descriptor(err, "keep the guest's process") : 0;
}

int sandbox_joined(struct sandbox *box, const struct cgroup_leaf *leaf, pid_t pid, int pid_fd, struct csn_error *err)
{
        box->program = pid;
        box->program_fd = pid_fd;
        close_inner(box);
        return settle(leaf, box->talk, err);
}

int sandbox_tell(struct sandbox *box, uint32_t op, struct csn_error *err)
{
        struct init_message message = { .op = op };
        bool to_program = op == INIT_RUN && box->program;
        if (op == INIT_RUN || op == INIT_GUEST)
                message.limits = box->plan.limits;
        if (wire_send(to_program ? box->talk : box->control, &message, sizeof message, NULL, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "talk to a process of the sandbox");
        if (op == INIT_RUN || op == INIT_WORKER || op == INIT_GUEST)
                close_inner(box);
        return 0;
}

int sandbox_limit(struct sandbox *box, struct csn_error *err)
{
        const struct wire_shape *shape = &box->plan.shape;
        const struct wire_limits *limits = &box->plan.limits;
        if (box->visits || (shape->memory_bytes == limits->memory_bytes && shape->cpu_milli == limits->cpu_milli && shape->pids == limits->pids))
                return 0;
        return cgroup_leaf_limit(&box->leaf, &box->plan.cgroup, err);
}

void sandbox_kill_program(const struct sandbox *box)
{
        if (box->program_fd >= 0)
                syscall(SYS_pidfd_send_signal, box->program_fd, SIGKILL, NULL, 0);
}

bool sandbox_has_program(const struct sandbox *box)
{
        return syscall(SYS_pidfd_send_signal, box->program_fd, 0, NULL, 0) == 0 || errno != ESRCH;
}

void sandbox_kill(struct sandbox *box)
{
        /*
         * Process 1 alone is enough and leaves no gap: the kernel stops forks in its pid namespace and kills
         * every process there, whatever it does meanwhile.  A loop over cgroup.procs could not do better.
         */
        if (box->visits)
                sandbox_kill_program(box);
        else if (box->pid_fd >= 0)
                syscall(SYS_pidfd_send_signal, box->pid_fd, SIGKILL, NULL, 0);
}

bool sandbox_close(struct sandbox *box)
{
        fd_close(&box->pid_fd);
        fd_close(&box->control);
        fd_close(&box->talk);
        fd_close(&box->program_fd);
        close_inner(box);
        for (size_t i = 0; i < WIRE_ENDS; i++)
                fd_close(&box->outer[i]);
        if (!cgroup_leaf_remove(&box->leaf))
                return false;
        fd_close(&box->uid_lock);
        return true;
}
