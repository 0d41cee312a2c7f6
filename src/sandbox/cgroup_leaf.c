/*
 * Memory, CPU and process limits of a whole sandbox: one cgroup, the leaf, below the supervisor's folder
 * (cgroup_hierarchy.c).  A leaf of v1 whose counters are zero is used again.
 */
#include "sandbox/cgroup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#define SPARE_MEMORY MIB       /* allowed charged memory of a reused leaf; the kernel frees the memory later */

enum file { MEMORY_NOW, MEMORY_PEAK, MEMORY_EVENTS, TASKS_NOW, TASKS_PEAK, TASKS_EVENTS, CPU_USED, CPU_STAT, FILES };

/* The counters of a leaf.  The kernel returns each file by one read(2) (fs/seq_file.c). */
static const struct {
        int hierarchy, v1_flags;
        const char *v1, *v2;
} files[FILES] = {
        [MEMORY_NOW] = { MEMORY, O_RDONLY, "memory.usage_in_bytes", "memory.current" },
        [MEMORY_PEAK] = { MEMORY, O_RDWR, "memory.max_usage_in_bytes", "memory.peak" },   /* v2: Linux 5.19 */
        [MEMORY_EVENTS] = { MEMORY, O_RDONLY, "memory.oom_control", "memory.events" },
        [TASKS_NOW] = { PIDS, O_RDONLY, "pids.current", "pids.current" },
        [TASKS_PEAK] = { PIDS, O_RDONLY, NULL, "pids.peak" },                             /* Linux 6.6 */
        [TASKS_EVENTS] = { PIDS, O_RDONLY, "pids.events", "pids.events" },
        [CPU_USED] = { CPUACCT, O_RDWR, "cpuacct.usage", NULL },
        [CPU_STAT] = { CPU, O_RDONLY, "cpu.stat", "cpu.stat" },
};

void cgroup_leaf_init(struct cgroup_leaf *leaf)
{
        _Static_assert(ARRAY_LEN(leaf->files) == FILES, "a place for each");
        *leaf = (struct cgroup_leaf){ .oom_event = -1 };
        for (int i = 0; i < HIERARCHIES; i++)
                leaf->dir[i] = leaf->procs_fds[i] = -1;
        for (int i = 0; i < FILES; i++)
                leaf->files[i] = -1;
}

/* The folder of a counter; -1: this host has no such counter. */
static int folder_of(const struct cgroup_leaf *leaf, enum file file)
{
        if (leaf->base->mode == WIRE_CGROUP_V2)
                return files[file].v2 ? leaf->dir[MEMORY] : -1;
        int hierarchy = files[file].hierarchy;
        if (hierarchy == CPUACCT && leaf->dir[CPUACCT] < 0)
                hierarchy = CPU;
        return files[file].v1 ? leaf->dir[hierarchy] : -1;
}

/* Read the whole counter into `text`.  Returns its length, or -1. */
static ssize_t read_counter(const struct cgroup_leaf *leaf, enum file file, char *text, size_t size)
{
        int dir = folder_of(leaf, file);
        const char *name = leaf->base->mode == WIRE_CGROUP_V2 ? files[file].v2 : files[file].v1;
        auto_fd opened = dir >= 0 && leaf->files[file] < 0 ? openat(dir, name, O_RDONLY | O_CLOEXEC) : -1;
        int fd = leaf->files[file] >= 0 ? leaf->files[file] : opened;
        ssize_t n = fd < 0 ? -1 : pread(fd, text, size, 0);
        if (n < 0 || (size_t)n == size)
                return -1;
        text[n] = 0;
        return n;
}

static bool clear_counter(const struct cgroup_leaf *leaf, enum file file)
{
        if (leaf->files[file] >= 0)
                return pwrite(leaf->files[file], "0", 1, 0) == 1;
        return io_write_file(folder_of(leaf, file), files[file].v1, "0") == 0;
}

static void keep_open(struct cgroup_base *base, int dir, const char *name, int flags, int *fd)
{
        if (dir < 0 || *fd >= 0 || base->kept_n >= base->kept_max)
                return;
        *fd = openat(dir, name, flags | O_CLOEXEC);
        base->kept_n += *fd >= 0;
}

static void close_kept(struct cgroup_base *base, int *fd)
{
        if (*fd < 0)
                return;
        fd_close(fd);
        base->kept_n--;
}

/*
 * The file to which a process with one thread writes 0 to enter.  A write to cgroup.procs blocks all forks and exits
 * of the machine until the kernel has found all threads; `tasks` of v1 moves one thread (cgroup_procs_write_start()
 * in kernel/cgroup/cgroup.c, Linux 5.5).
 */
static const char *procs_file_of(const struct cgroup_leaf *leaf)
{
        return leaf->base->mode == WIRE_CGROUP_V1 ? "tasks" : "cgroup.procs";
}

/* Keep the files of a reused leaf open: opening a file takes longer than reading. */
static void keep_files(struct cgroup_leaf *leaf)
{
        for (int i = 0; i < FILES; i++)
                keep_open(leaf->base, folder_of(leaf, i), files[i].v1, files[i].v1_flags, &leaf->files[i]);
        for (int i = 0; i < HIERARCHIES; i++)
                keep_open(leaf->base, leaf->dir[i], procs_file_of(leaf), O_WRONLY, &leaf->procs_fds[i]);
}

static void close_files(struct cgroup_leaf *leaf)
{
        for (int i = 0; i < FILES; i++)
                close_kept(leaf->base, &leaf->files[i]);
        for (int i = 0; i < HIERARCHIES; i++)
                close_kept(leaf->base, &leaf->procs_fds[i]);
}

static int set(int dir_fd, const char *file, const char *text, struct csn_error *err)
{
        if (io_write_file(dir_fd, file, text) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "write %s to %s", text, file);
        return 0;
}

static int set_number(int dir_fd, const char *file, uint64_t value, struct csn_error *err)
{
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, value);
        return set(dir_fd, file, text, err);
}

/* For files of swap accounting: without swap accounting there is no limit to set. */
static int set_if_there(int dir_fd, const char *file, uint64_t value, struct csn_error *err)
{
        if (faccessat(dir_fd, file, F_OK, 0) < 0)
                return 0;
        return set_number(dir_fd, file, value, err);
}

#define CPU_PERIOD_US ((uint64_t)100000)
#define CPU_SHARES_USUAL 1024     /* of a new cgroup: sched(7), cgroup-v2.rst */
#define CPU_WEIGHT_USUAL 100

/* A reused leaf may have another weight.  Most leaves have the usual weight, and need no write. */
static int set_times(const struct cgroup_leaf *leaf, const struct cgroup_limits *limits, int dir, const char *file,
        uint64_t usual, struct csn_error *err)
{
        if (limits->cpu_times == leaf->limits.cpu_times)
                return 0;
        return set_number(dir, file, usual * max_u64(limits->cpu_times, 1), err);
}

static int limit_v2(const struct cgroup_leaf *leaf, const struct cgroup_limits *limits, struct csn_error *err)
{
        int dir = leaf->dir[MEMORY];
        unsigned on = leaf->base->controllers;
        if (on & WIRE_CTL_MEMORY &&
                (set_number(dir, "memory.max", limits->memory_bytes, err) < 0 ||
                        set_if_there(dir, "memory.swap.max", 0, err) < 0 ||
                        set_number(dir, "memory.oom.group", !leaf->persistent, err) < 0))
                return -err->code;
        if (on & WIRE_CTL_PIDS && set_number(dir, "pids.max", limits->pids, err) < 0)
                return -err->code;
        if (on & WIRE_CTL_CPU) {
                char text[64];
                snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, limits->cpu_milli * CPU_PERIOD_US / 1000,
                        CPU_PERIOD_US);
                if (set_times(leaf, limits, dir, "cpu.weight", CPU_WEIGHT_USUAL, err) < 0 ||
                        set(dir, "cpu.max", text, err) < 0)
                        return -err->code;
        }
        return 0;
}

/* v1 has no memory.oom.group; on the event the supervisor ends the whole tree. */
static int watch_oom(struct cgroup_leaf *leaf, struct csn_error *err)
{
        int dir = leaf->dir[MEMORY];
        auto_fd control = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
        auto_fd event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        char text[40];
        if (control < 0 || event < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open memory.oom_control");
        snprintf(text, sizeof text, "%d %d", event, control);
        if (set(dir, "cgroup.event_control", text, err) < 0)
                return -err->code;
        leaf->oom_event = take_fd(&event);
        return 0;
}

/* The kernel keeps memory <= memory + swap at every moment, so the order depends on the direction. */
static int limit_memory_v1(int dir, uint64_t bytes, struct csn_error *err)
{
        if (set_number(dir, "memory.limit_in_bytes", bytes, err) == 0)
                return set_if_there(dir, "memory.memsw.limit_in_bytes", bytes, err);
        if (set_if_there(dir, "memory.memsw.limit_in_bytes", bytes, err) < 0)
                return -err->code;
        return set_number(dir, "memory.limit_in_bytes", bytes, err);
}

static int limit_v1(const struct cgroup_leaf *leaf, const struct cgroup_limits *limits, struct csn_error *err)
{
        if (leaf->dir[MEMORY] >= 0 &&
            (limit_memory_v1(leaf->dir[MEMORY], limits->memory_bytes, err) < 0 ||
             /* v1 does not charge the buffers of TCP and UDP to the limit above; v2 does */
             set_if_there(leaf->dir[MEMORY], "memory.kmem.tcp.limit_in_bytes", limits->memory_bytes / 8, err) < 0))
                return -err->code;
        if (leaf->dir[PIDS] >= 0 && set_number(leaf->dir[PIDS], "pids.max", limits->pids, err) < 0)
                return -err->code;
        if (leaf->dir[CPU] >= 0 &&
            (set_times(leaf, limits, leaf->dir[CPU], "cpu.shares", CPU_SHARES_USUAL, err) < 0 ||
             set_number(leaf->dir[CPU], "cpu.cfs_period_us", CPU_PERIOD_US, err) < 0 ||
             set_number(leaf->dir[CPU], "cpu.cfs_quota_us", limits->cpu_milli * CPU_PERIOD_US / 1000, err) < 0))
                return -err->code;
        return 0;
}

static bool has_label(const struct cgroup_leaf *leaf, const char *label)
{
        size_t len = strlen(label);
        return strncmp(leaf->name, label, len) == 0 && leaf->name[len] == '-' && !strchr(leaf->name + len + 1, '-');
}

/* Rename a leaf in all hierarchies or in none.  Only v1 supports rename(2). */
static bool rename_leaf(struct cgroup_leaf *leaf, const char *name)
{
        for (int i = 0; i < HIERARCHIES; i++) {
                if (leaf->dir[i] < 0 || renameat(leaf->base->dir[i], leaf->name, leaf->base->dir[i], name) == 0)
                        continue;
                while (i-- > 0)
                        if (leaf->dir[i] >= 0)
                                renameat(leaf->base->dir[i], name, leaf->base->dir[i], leaf->name);
                return false;
        }
        snprintf(leaf->name, sizeof leaf->name, "%s", name);
        return true;
}

/*
 * The OOM event of v1 also comes without a kill: if the process in need of memory is being killed already, and for
 * all leaves if a cgroup above is full.  An unread event would end the next run at its start.
 */
static void forget_oom(const struct cgroup_leaf *leaf)
{
        uint64_t events;
        while (read(leaf->oom_event, &events, sizeof events) < 0 && errno == EINTR)
                ;
}

/* Take a spare leaf, preferably with this label: no rename(2) is needed then.  Any other leaf gets the name. */
static bool take_spare(struct cgroup_base *base, const char *label, const char *name, struct cgroup_leaf *ret)
{
        size_t at = base->spare_n;
        while (at > 0 && !has_label(&base->spare[at - 1], label))
                at--;
        if (at == 0 && (base->spare_n == 0 || !rename_leaf(&base->spare[base->spare_n - 1], name)))
                return false;
        struct cgroup_leaf *spare = &base->spare[(at > 0 ? at : base->spare_n) - 1];
        *ret = *spare;
        *spare = base->spare[--base->spare_n];
        keep_files(ret);
        forget_oom(ret);
        /* The kernel has freed more memory since the last run ended. */
        clear_counter(ret, MEMORY_PEAK);
        return true;
}

int cgroup_leaf_open(struct cgroup_base *base, const char *label, const struct cgroup_limits *limits, bool persistent,
                     struct cgroup_leaf *ret, struct csn_error *err)
{
        static unsigned counter;
        char name[sizeof ret->name];
        snprintf(name, sizeof name, "%s-%u", label, ++counter);
        if (!persistent && take_spare(base, label, name, ret))
                return cgroup_leaf_limit(ret, limits, err);
        cgroup_leaf_init(ret);
        ret->base = base;
        ret->persistent = persistent;
        memcpy(ret->name, name, sizeof name);
        for (int i = 0; i < HIERARCHIES; i++) {
                if (base->dir[i] < 0 || (i == FREEZER && !persistent))
                        continue;
                if (mkdirat(base->dir[i], ret->name, 0755) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make the cgroup %s", ret->name);
                ret->dir[i] = openat(base->dir[i], ret->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (ret->dir[i] < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "open the cgroup %s", ret->name);
        }
        if (ret->dir[MEMORY] >= 0 && base->mode == WIRE_CGROUP_V1 && !persistent && watch_oom(ret, err) < 0)
                return err_wrap(err, "watch the memory of the cgroup %s", ret->name);
        return cgroup_leaf_limit(ret, limits, err);
}

int cgroup_leaf_limit(struct cgroup_leaf *leaf, const struct cgroup_limits *limits, struct csn_error *err)
{
        if (memcmp(&leaf->limits, limits, sizeof *limits) == 0)
                return 0;
        int rc = leaf->base->mode == WIRE_CGROUP_V2   ? limit_v2(leaf, limits, err)
                 : leaf->base->mode == WIRE_CGROUP_V1 ? limit_v1(leaf, limits, err)
                                                      : 0;
        if (rc < 0)
                return err_wrap(err, "limit the cgroup %s", leaf->name);
        leaf->limits = *limits;
        leaf->limited = leaf->base->controllers;
        return 0;
}

unsigned cgroup_leaf_limited(const struct cgroup_leaf *leaf, int procs_fds)
{
        int n = 0;
        for (int i = 0; i < HIERARCHIES; i++)
                n += leaf->dir[i] >= 0;
        return n > 0 && procs_fds == n ? leaf->limited : 0;
}

int cgroup_leaf_enter(const struct cgroup_leaf *leaf, pid_t pid, struct csn_error *err)
{
        for (int i = 0; i < HIERARCHIES; i++)
                if (leaf->dir[i] >= 0 && set_number(leaf->dir[i], "cgroup.procs", (uint64_t)pid, err) < 0)
                        return err_wrap(err, "put process %d into its cgroup", pid);
        return 0;
}

int cgroup_leaf_procs_fds(const struct cgroup_leaf *leaf, int procs_fds[CGROUP_PROCS_FDS_MAX], struct csn_error *err)
{
        _Static_assert(CGROUP_PROCS_FDS_MAX >= HIERARCHIES, "a descriptor for each hierarchy");
        int n = 0;
        for (int i = 0; i < HIERARCHIES; i++) {
                if (leaf->dir[i] < 0)
                        continue;
                procs_fds[n] = leaf->procs_fds[i] >= 0
                        ? leaf->procs_fds[i]
                        : openat(leaf->dir[i], procs_file_of(leaf), O_WRONLY | O_CLOEXEC);
                if (procs_fds[n] < 0) {
                        err_set(err, CSN_E_SYSTEM, errno, "open %s of the cgroup %s", procs_file_of(leaf), leaf->name);
                        cgroup_leaf_procs_fds_done(leaf, procs_fds, n);
                        return -err->code;
                }
                n++;
        }
        return n;
}

void cgroup_leaf_procs_fds_done(const struct cgroup_leaf *leaf, int procs_fds[], int n)
{
        for (int i = 0; i < n; i++) {
                bool kept = false;
                for (int j = 0; j < HIERARCHIES; j++)
                        kept |= procs_fds[i] == leaf->procs_fds[j];
                if (!kept)
                        fd_close(&procs_fds[i]);
        }
}

int cgroup_join_self(const int procs_fds[], size_t n, struct csn_error *err)
{
        for (size_t i = 0; i < n; i++)
                if (write(procs_fds[i], "0", 1) != 1)
                        return err_set(err, CSN_E_SYSTEM, errno, "go into the cgroup of the sandbox");
        return 0;
}

/* ---- counters ---- */

static uint64_t number_of(const struct cgroup_leaf *leaf, enum file file)
{
        char text[64];
        return read_counter(leaf, file, text, sizeof text) < 0 ? 0 : strtoull(text, NULL, 10);
}

/* "key value" lines, as in memory.events. */
static uint64_t find_key(const char *text, const char *key)
{
        size_t len = strlen(key);
        for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
                if (strncmp(line, key, len) == 0 && line[len] == ' ')
                        return strtoull(line + len + 1, NULL, 10);
        return 0;
}

static uint64_t key_of(const struct cgroup_leaf *leaf, enum file file, const char *key)
{
        char text[8192];
        return read_counter(leaf, file, text, sizeof text) < 0 ? 0 : find_key(text, key);
}

void cgroup_leaf_usage(const struct cgroup_leaf *leaf, struct cgroup_usage *ret)
{
        char cpu[8192];
        *ret = (struct cgroup_usage){ 0 };
        if (!leaf->base || leaf->base->mode == WIRE_CGROUP_NONE)
                return;
        bool v2 = leaf->base->mode == WIRE_CGROUP_V2;
        const char *stat = read_counter(leaf, CPU_STAT, cpu, sizeof cpu) < 0 ? "" : cpu;
        ret->cpu_us = v2 ? find_key(stat, "usage_usec") : number_of(leaf, CPU_USED) / 1000;
        ret->throttled_us = v2 ? find_key(stat, "throttled_usec") : find_key(stat, "throttled_time") / 1000;
        ret->memory_peak = number_of(leaf, MEMORY_PEAK);
        ret->oom_kills = key_of(leaf, MEMORY_EVENTS, "oom_kill");
        ret->oom_hits = v2 ? key_of(leaf, MEMORY_EVENTS, "oom") : 0;
        ret->pids_hits = key_of(leaf, TASKS_EVENTS, "max");
        ret->pids_peak = number_of(leaf, TASKS_PEAK);
}

uint64_t cgroup_leaf_memory(const struct cgroup_leaf *leaf)
{
        return leaf->base && leaf->base->controllers & WIRE_CTL_MEMORY ? number_of(leaf, MEMORY_NOW) : 0;
}

uint64_t cgroup_leaf_processes(const struct cgroup_leaf *leaf)
{
        return leaf->base && leaf->base->controllers & WIRE_CTL_PIDS ? number_of(leaf, TASKS_NOW) : 0;
}

bool cgroup_leaf_has_one_program(const struct cgroup_leaf *leaf)
{
        char list[256];
        uint64_t tasks = cgroup_leaf_processes(leaf);
        size_t lines = 0;
        if (tasks <= 2)
                return tasks > 0;
        int dir = leaf->dir[leaf->base->mode == WIRE_CGROUP_V2 ? MEMORY : PIDS];
        ssize_t n = io_read_file(dir, "cgroup.procs", list, sizeof list - 1);
        for (ssize_t i = 0; i < n; i++)
                lines += list[i] == '\n';
        return n > 0 && n < (ssize_t)sizeof list - 1 && lines <= 2;
}

void cgroup_leaf_kill(const struct cgroup_leaf *leaf)
{
        for (int i = 0; i < HIERARCHIES; i++)
                if (leaf->dir[i] >= 0) {
                        cgroup_kill_members(leaf->dir[i]);
                        return;   /* all hierarchies have the same processes */
                }
}

/* ---- freezing ---- */

static int freezer_of(const struct cgroup_leaf *leaf)
{
        if (!leaf->base || leaf->base->mode == WIRE_CGROUP_NONE)
                return -1;
        return leaf->dir[leaf->base->mode == WIRE_CGROUP_V2 ? MEMORY : FREEZER];
}

int cgroup_leaf_freeze(const struct cgroup_leaf *leaf, bool on, struct csn_error *err)
{
        int dir = freezer_of(leaf);
        if (dir < 0)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "this host gives us no freezer, so nothing can be paused: on cgroup v2 run as root or in "
                        "a delegated cgroup, on version 1 mount the freezer hierarchy");
        return leaf->base->mode == WIRE_CGROUP_V2 ? set(dir, "cgroup.freeze", on ? "1" : "0", err)
                                                  : set(dir, "freezer.state", on ? "FROZEN" : "THAWED", err);
}

bool cgroup_leaf_is_frozen(const struct cgroup_leaf *leaf)
{
        int dir = freezer_of(leaf);
        bool v2 = dir >= 0 && leaf->base->mode == WIRE_CGROUP_V2;
        char state[128];
        if (dir < 0 || io_read_file(dir, v2 ? "cgroup.events" : "freezer.state", state, sizeof state - 1) <= 0)
                return false;
        return v2 ? find_key(state, "frozen") == 1 : strncmp(state, "FROZEN", 6) == 0;
}

/* Counters without a reset have to be zero: usage of a run must not count for the next run. */
static bool could_be_new(const struct cgroup_leaf *leaf)
{
        const struct cgroup_base *base = leaf->base;
        struct cgroup_usage usage;
        if (!base || leaf->persistent || base->mode != WIRE_CGROUP_V1 || base->controllers != WIRE_CTL_ALL ||
                base->spare_n >= base->spare_max)
                return false;
        if (cgroup_leaf_processes(leaf) != 0 || !clear_counter(leaf, CPU_USED) || !clear_counter(leaf, MEMORY_PEAK))
                return false;
        cgroup_leaf_usage(leaf, &usage);
        return usage.cpu_us == 0 && usage.memory_peak <= SPARE_MEMORY && !usage.oom_kills && !usage.pids_hits &&
                !usage.throttled_us;
}

bool cgroup_leaf_remove(struct cgroup_leaf *leaf)
{
        bool gone = true;
        if (could_be_new(leaf)) {
                leaf->base->spare[leaf->base->spare_n++] = *leaf;
                cgroup_leaf_init(leaf);
                return true;
        }
        for (int i = 0; i < HIERARCHIES; i++) {
                if (leaf->dir[i] < 0)
                        continue;
                if (unlinkat(leaf->base->dir[i], leaf->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
                        fd_close(&leaf->dir[i]);
                else
                        gone = false;
        }
        if (gone) {
                fd_close(&leaf->oom_event);
                close_files(leaf);
        }
        return gone;
}
