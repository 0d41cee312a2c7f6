/* A sandbox, seen from the supervisor: made by the outer init, killed by a single signal, released in order. */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { INNER_OUT, INNER_ERROR, INNER_CHANNEL, INNER_HANDOFF };

void sandbox_init(struct sandbox *sandbox)
{
        *sandbox = (struct sandbox){ .pid_fd = -1, .control = -1, .talk = -1, .program_fd = -1, .uid_lock = -1 };
        for (size_t i = 0; i < ARRAY_LEN(sandbox->inner); i++)
                sandbox->inner[i] = -1;
        for (size_t i = 0; i < WIRE_ENDS; i++)
                sandbox->outer[i] = -1;
        cgroup_leaf_init(&sandbox->leaf);
}

/* Too many descriptors are a matter of load, not of the request. */
static int no_descriptor(struct csn_error *err, const char *what)
{
        return err_set(err, errno == EMFILE || errno == ENFILE ? CSN_E_BUSY : CSN_E_SYSTEM, errno, "%s", what);
}

static int take_uid(struct sandbox *sandbox, const struct uid_range *uids, struct csn_error *err)
{
        if (sandbox->plan.abilities.rootless) {
                sandbox->plan.host_uid = geteuid();
                sandbox->plan.outer_init_uid = SANDBOX_UID;
                return 0;
        }
        bool rooted = sandbox->plan.shape.flags & WIRE_ROOT;
        if ((rooted ? uid_take_block : uid_take)(uids, &sandbox->plan.host_uid, &sandbox->uid_lock, err) < 0)
                return -err->code;
        sandbox->plan.outer_init_uid = sandbox->plan.host_uid - uids->first;
        return 0;
}

/*
 * The program opens /dev/stdout and /dev/stderr by name, which asks for the rights on the pipe's inode; so
 * its pipes belong to the sandbox's uid.
 */
static int make_pipe(struct sandbox *sandbox, int inner, int outer, struct csn_error *err)
{
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return no_descriptor(err, "make a pipe");
        sandbox->outer[outer] = ends[0];
        sandbox->inner[inner] = ends[1];
        /* O_NONBLOCK belongs to our end alone: each end has a file description of its own. */
        if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ||
            (!sandbox->plan.abilities.rootless && fchown(ends[1], sandbox->plan.host_uid, sandbox->plan.host_uid) < 0))
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

static int make_ends(struct sandbox *sandbox, struct csn_error *err)
{
        if (make_pipe(sandbox, INNER_OUT, WIRE_END_STDOUT, err) < 0 ||
                make_pipe(sandbox, INNER_ERROR, WIRE_END_STDERR, err) < 0 ||
                make_pair(&sandbox->inner[INNER_CHANNEL], &sandbox->outer[WIRE_END_CHANNEL], true, err) < 0 ||
                make_pair(&sandbox->inner[INNER_HANDOFF], &sandbox->outer[WIRE_END_HANDOFF], true, err) < 0)
                return -err->code;
        return 0;
}

static void close_mounts(struct plan *plan)
{
        fd_close(&plan->lower);
        for (size_t i = 0; i < WIRE_VOLUMES_MAX; i++)
                fd_close(&plan->volumes[i]);
        for (size_t i = 0; i < WIRE_DEVICES_MAX; i++)
                fd_close(&plan->devices[i]);
}

/* The lower layer for root inside: the image, or /usr. */
static int open_lower(struct plan *plan, int images_dir, struct csn_error *err)
{
        const struct wire_shape *shape = &plan->shape;
        return shape->image_high || shape->image_low
                ? idmap_image(images_dir, shape, plan->host_uid, &plan->lower, err)
                : idmap_tree("/usr", plan->host_uid, &plan->lower, err);
}

static int open_mounts(struct plan *plan, const struct sandbox_host *host, struct csn_error *err)
{
        const struct wire_shape *shape = &plan->shape;
        if (shape->flags & WIRE_ROOT && open_lower(plan, host->images_dir, err) < 0)
                return -err->code;
        return shape->volumes_n || shape->devices ? host->open_mounts(host->owner, plan, err) : 0;
}

static int request_process(struct sandbox *sandbox, uint32_t id, int control, struct send_queue *outer_init,
        struct csn_error *err)
{
        const struct plan *plan = &sandbox->plan;
        struct outer_init_message request = { .op = OUTER_INIT_BARE, .id = id, .plan = *plan };
        int fds[INNER_INIT_FDS_MAX] = { control, sandbox->inner[INNER_OUT], sandbox->inner[INNER_ERROR],
                sandbox->inner[INNER_CHANNEL], sandbox->inner[INNER_HANDOFF] };
        size_t n = INNER_INIT_FDS;
        if (plan->lower >= 0)
                fds[n++] = plan->lower;
        for (size_t i = 0; i < plan->shape.volumes_n; i++)
                fds[n++] = plan->volumes[i];
        for (size_t i = 0; i < plan->devices_n; i++)
                fds[n++] = plan->devices[i];
        if (send_queue_put(outer_init, &request, sizeof request, fds, n) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "ask the outer init for a sandbox");
        return 0;
}

int sandbox_open(struct sandbox *sandbox, uint32_t id, const struct wire_shape *shape,
        const struct sandbox_host *host, struct csn_error *err)
{
        sandbox_init(sandbox);
        if (plan_make(shape, host->abilities, &sandbox->plan, err) < 0)
                return -err->code;
        auto_fd theirs = -1;
        if (take_uid(sandbox, host->uids, err) < 0 || make_ends(sandbox, err) < 0 ||
                make_pair(&theirs, &sandbox->control, true, err) < 0 ||
                cgroup_leaf_open(host->cgroups, shape->label, &sandbox->plan.cgroup, shape->flags & WIRE_PERSISTENT,
                        &sandbox->leaf, err) < 0)
                return -err->code;
        int rc = open_mounts(&sandbox->plan, host, err);
        if (rc == 0)
                rc = request_process(sandbox, id, theirs, host->outer_init, err);
        close_mounts(&sandbox->plan);
        return rc;
}

/* The pid in our pid namespace, for a pidfd of another pid namespace, from its fdinfo (proc(5)). */
pid_t sandbox_pid_of(int pid_fd)
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
        pid_t pid = sandbox_pid_of(pid_fd);
        if (pid <= 0)
                return err_set(err, CSN_E_SYSTEM, 0, "a process ended while it was set up");
        return cgroup_leaf_enter(leaf, pid, err);
}

void sandbox_tree(const struct sandbox *sandbox, struct tree_usage *ret)
{
        pid_t pid = sandbox->pid_fd >= 0 ? sandbox_pid_of(sandbox->pid_fd) : -1;
        pid_t program = sandbox->program && sandbox->program_fd >= 0 ? sandbox_pid_of(sandbox->program_fd) : -1;
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

void sandbox_read_stats(const struct sandbox *sandbox, struct wire_stats *ret)
{
        struct cgroup_usage usage;
        struct tree_usage tree = { 0 };
        unsigned controllers = sandbox->plan.abilities.controllers;
        cgroup_leaf_usage(&sandbox->leaf, &usage);
        if (controllers != WIRE_CTL_ALL)
                sandbox_tree(sandbox, &tree);
        uint64_t processes = controllers & WIRE_CTL_PIDS ? cgroup_leaf_processes(&sandbox->leaf) : tree.processes;
        *ret = (struct wire_stats){ .cpu_us = controllers & WIRE_CTL_CPU ? usage.cpu_us : tree.cpu_us,
                .memory_bytes = controllers & WIRE_CTL_MEMORY ? cgroup_leaf_memory(&sandbox->leaf) : tree.memory_bytes,
                .processes = processes ? processes - 1 : 0,
                .memory_peak = usage.memory_peak,
                .oom_kills = usage.oom_kills,
                .pids_hits = usage.pids_hits };
}

static int settle(const struct cgroup_leaf *leaf, int sock, struct csn_error *err)
{
        struct inner_init_message go = { .op = INNER_INIT_GO };
        int procs_fds[CGROUP_PROCS_FDS_MAX];
        int n = cgroup_leaf_procs_fds(leaf, procs_fds, err);
        if (n < 0)
                return n;
        int rc = wire_send(sock, &go, sizeof go, procs_fds, (size_t)n);
        int sys = errno;
        cgroup_leaf_procs_fds_done(leaf, procs_fds, n);
        return rc < 0 ? err_set(err, CSN_E_SYSTEM, sys, "let a process of the sandbox go on") : 0;
}

int sandbox_made(struct sandbox *sandbox, pid_t pid, int pid_fd, struct csn_error *err)
{
        sandbox->pid = pid;
        sandbox->pid_fd = pid_fd;
        return settle(&sandbox->leaf, sandbox->control, err);
}

int sandbox_join(struct sandbox *sandbox, uint32_t id, struct send_queue *zygote, struct csn_error *err)
{
        auto_fd theirs = -1;
        if (make_pair(&theirs, &sandbox->talk, true, err) < 0)
                return -err->code;
        struct zygote_message request = { .op = ZYGOTE_FORK, .id = id, .plan = sandbox->plan };
        const int fds[] = { sandbox->pid_fd, theirs, sandbox->inner[INNER_OUT], sandbox->inner[INNER_ERROR],
                sandbox->inner[INNER_CHANNEL], sandbox->inner[INNER_HANDOFF] };
        if (send_queue_put(zygote, &request, sizeof request, fds, ARRAY_LEN(fds)) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "ask the zygote for an interpreter");
        return 0;
}

static void close_inner(struct sandbox *sandbox)
{
        for (size_t i = 0; i < ARRAY_LEN(sandbox->inner); i++)
                fd_close(&sandbox->inner[i]);
}

int sandbox_join_guest(struct sandbox *sandbox, const struct sandbox *host, int fds[WIRE_ENTRIES],
        struct csn_error *err)
{
        sandbox_init(sandbox);
        sandbox->visits = true;
        sandbox->plan = host->plan;
        sandbox->inner[INNER_OUT] = take_fd(&fds[WIRE_ENTRY_STDOUT]);
        sandbox->inner[INNER_ERROR] = take_fd(&fds[WIRE_ENTRY_STDERR]);
        sandbox->inner[INNER_CHANNEL] = take_fd(&fds[WIRE_ENTRY_CHANNEL]);
        sandbox->inner[INNER_HANDOFF] = take_fd(&fds[WIRE_ENTRY_HANDOFF]);
        sandbox->pid_fd = fcntl(host->pid_fd, F_DUPFD_CLOEXEC, 0);
        return sandbox->pid_fd < 0 ? no_descriptor(err, "keep the guest's process") : 0;
}

int sandbox_confined(struct sandbox *sandbox, const struct cgroup_leaf *leaf, pid_t pid, int pid_fd,
        struct csn_error *err)
{
        sandbox->program = pid;
        sandbox->program_fd = pid_fd;
        close_inner(sandbox);
        return settle(leaf, sandbox->talk, err);
}

int sandbox_tell(struct sandbox *sandbox, uint32_t op, struct csn_error *err)
{
        struct inner_init_message message = { .op = op };
        bool to_program = op == INNER_INIT_RUN && sandbox->program;
        if (op == INNER_INIT_RUN || op == INNER_INIT_GUEST)
                message.limits = sandbox->plan.limits;
        if (wire_send(to_program ? sandbox->talk : sandbox->control, &message, sizeof message, NULL, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "talk to a process of the sandbox");
        if (op == INNER_INIT_RUN || op == INNER_INIT_WORKER || op == INNER_INIT_GUEST)
                close_inner(sandbox);
        return 0;
}

int sandbox_limit(struct sandbox *sandbox, struct csn_error *err)
{
        const struct wire_shape *shape = &sandbox->plan.shape;
        const struct wire_limits *limits = &sandbox->plan.limits;
        if (sandbox->visits ||
                (shape->memory_bytes == limits->memory_bytes && shape->cpu_milli == limits->cpu_milli &&
                        shape->pids == limits->pids))
                return 0;
        return cgroup_leaf_limit(&sandbox->leaf, &sandbox->plan.cgroup, err);
}

void sandbox_kill_program(const struct sandbox *sandbox)
{
        if (sandbox->program_fd >= 0)
                syscall(SYS_pidfd_send_signal, sandbox->program_fd, SIGKILL, NULL, 0);
}

bool sandbox_has_program(const struct sandbox *sandbox)
{
        return syscall(SYS_pidfd_send_signal, sandbox->program_fd, 0, NULL, 0) == 0 || errno != ESRCH;
}

void sandbox_kill(struct sandbox *sandbox)
{
        /*
         * Process 1 alone is enough and leaves no gap: the kernel stops forks in its pid namespace and kills
         * every process there, in any state.  A loop over cgroup.procs could not do better.
         */
        if (sandbox->visits)
                sandbox_kill_program(sandbox);
        else if (sandbox->pid_fd >= 0)
                syscall(SYS_pidfd_send_signal, sandbox->pid_fd, SIGKILL, NULL, 0);
}

bool sandbox_close(struct sandbox *sandbox)
{
        fd_close(&sandbox->pid_fd);
        fd_close(&sandbox->control);
        fd_close(&sandbox->talk);
        fd_close(&sandbox->program_fd);
        close_inner(sandbox);
        for (size_t i = 0; i < WIRE_ENDS; i++)
                fd_close(&sandbox->outer[i]);
        if (!cgroup_leaf_remove(&sandbox->leaf))
                return false;
        fd_close(&sandbox->uid_lock);
        return true;
}
