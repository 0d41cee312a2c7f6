/*
 * Memory, CPU and process limits of a whole sandbox: cgroup v2 (Documentation/admin-guide/cgroup-v2.rst), cgroup
 * v1 (admin-guide/cgroup-v1), and hosts with both.  Each supervisor has its own folder, with a leaf for each
 * sandbox, and holds a flock(2) on the folder.  A folder without a lock belongs to a dead supervisor; the next
 * supervisor removes it.
 */
#include "sandbox/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define FOLDER_PREFIX "caisson-"
#define SPARE_MAX 16
#define SPARE_MEMORY MIB       /* what the kernel has not given back yet, and will, of a leaf that is used again */
#define KEPT_SHARE 32          /* one descriptor in so many may be a file of such a leaf */

enum { MEMORY, CPU, PIDS, CPUACCT, FREEZER, HIERARCHIES };

static const char *const names[HIERARCHIES] = { "memory", "cpu", "pids", "cpuacct", "freezer" };
static const unsigned bits[HIERARCHIES] = { WIRE_CTL_MEMORY, WIRE_CTL_CPU, WIRE_CTL_PIDS, 0, 0 };

enum file { MEMORY_NOW, MEMORY_PEAK, MEMORY_EVENTS, TASKS_NOW, TASKS_PEAK, TASKS_EVENTS, CPU_USED, CPU_STAT, FILES };

/* The counters of a leaf.  Each is one record, which the kernel gives in one read(2) (fs/seq_file.c). */
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

struct cgroup_base {
        enum wire_cgroup mode;
        unsigned controllers;
        int dir[HIERARCHIES];      /* our folder by controller; on v2 only the first */
        char *paths;
        struct cgroup_leaf spare[SPARE_MAX];
        size_t spare_n, spare_max;
        size_t kept_n, kept_max;   /* descriptors of files */
};

/* ---- finding the hierarchies ---- */

struct place {
        char path[PATH_MAX];       /* of the cgroup that we are in, or "" */
        size_t mount_len;          /* the part of it that is the mount point */
};

struct places {
        struct place v1[HIERARCHIES];
        struct place v2;
};

/* True if a comma list (mount options, /proc/self/cgroup) has this word. */
static bool has_word(const char *list, const char *word)
{
        size_t len = strlen(word);
        for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
                if (strncmp(at, word, len) == 0 && (at[len] == 0 || at[len] == ','))
                        return true;
        return false;
}

/*
 * One line of /proc/self/cgroup, "5:memory:/path": our own path below the mount.  The mount may show only
 * a part of the hierarchy (a container without a cgroup namespace); then its root is a prefix of the path.
 */
static void own_path(const char *cgroups, const char *controller, const char *mount_point, const char *mount_root,
                     struct place *ret)
{
        for (const char *line = cgroups; *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "") {
                char list[128] = "", path[PATH_MAX] = "";
                if (sscanf(line, "%*d::%4095[^\n]", path) != 1 && sscanf(line, "%*d:%127[^:]:%4095[^\n]", list, path) != 2)
                        continue;
                if (controller ? !has_word(list, controller) : list[0] != 0)
                        continue;
                const char *below = path;
                size_t root = strlen(mount_root);
                if (strcmp(mount_root, "/") != 0)
                        below = strncmp(path, mount_root, root) == 0 ? path + root : "/";
                int len = snprintf(ret->path, sizeof ret->path, "%s%s", mount_point, strcmp(below, "/") == 0 ? "" : below);
                if (len < 0 || (size_t)len >= sizeof ret->path)
                        ret->path[0] = 0;
                ret->mount_len = strlen(mount_point);
                return;
        }
}

/* mountinfo (proc(5)): 36 35 98:0 /root /mount/point opts - type source superopts */
static void find_places(struct places *ret)
{
        static char mounts[256 * KIB], cgroups[16 * KIB];
        memset(ret, 0, sizeof *ret);
        if (io_read_file(AT_FDCWD, "/proc/self/mountinfo", mounts, sizeof mounts - 1) < 0 ||
            io_read_file(AT_FDCWD, "/proc/self/cgroup", cgroups, sizeof cgroups - 1) < 0)
                return;
        char *save = NULL;
        for (char *line = strtok_r(mounts, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char root[1024], point[1024], type[64], options[256];
                const char *tail = strstr(line, " - ");
                if (!tail || sscanf(line, "%*d %*d %*s %1023s %1023s", root, point) != 2 ||
                    sscanf(tail, " - %63s %*s %255s", type, options) != 2)
                        continue;
                if (strcmp(type, "cgroup2") == 0)
                        own_path(cgroups, NULL, point, root, &ret->v2);
                for (int i = 0; strcmp(type, "cgroup") == 0 && i < HIERARCHIES; i++)
                        if (has_word(options, names[i]))
                                own_path(cgroups, names[i], point, root, &ret->v1[i]);
        }
}

/* ---- folders ---- */

static void pause_ms(long ms)
{
        struct timespec t = { .tv_nsec = ms * 1000000 };
        nanosleep(&t, NULL);
}

/* SIGKILL for every process of one cgroup; cgroup.kill (Linux 5.14) also gets those that fork meanwhile. */
static void kill_members(int dir_fd)
{
        char list[64 * KIB];
        if (io_write_file(dir_fd, "cgroup.kill", "1") == 0)
                return;
        io_write_file(dir_fd, "freezer.state", "THAWED");   /* version 1: what stands still does not die */
        if (io_read_file(dir_fd, "cgroup.procs", list, sizeof list - 1) < 0)
                return;
        char *save = NULL;
        for (char *line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                pid_t pid = (pid_t)strtol(line, NULL, 10);
                if (pid > 1)
                        kill(pid, SIGKILL);
        }
}

/* Kill and remove the leaves of one folder, then the folder. */
static void sweep_folder(const char *path)
{
        auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return;
        for (int tries = 0; tries < 200; tries++) {
                int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                DIR *dir = copy < 0 ? NULL : fdopendir(copy);
                if (!dir)
                        return;
                bool left = false;
                for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                                continue;
                        auto_fd leaf = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                        if (leaf >= 0)
                                kill_members(leaf);
                        if (unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0)
                                left = true;
                }
                closedir(dir);
                if (!left)
                        break;
                pause_ms(10);
        }
        rmdir(path);
}

void cgroup_sweep(const char *paths)
{
        char *copy = mem_copy(paths, strlen(paths)), *save = NULL;
        for (char *path = strtok_r(copy, "\n", &save); path; path = strtok_r(NULL, "\n", &save))
                sweep_folder(path);
        free(copy);
}

/* Folders of supervisors that are dead: nobody holds their lock. */
static void sweep_stale(const char *parent)
{
        DIR *dir = opendir(parent);
        if (!dir)
                return;
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                char path[PATH_MAX];
                if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) != 0)
                        continue;
                int len = snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
                if (len < 0 || (size_t)len >= sizeof path)
                        continue;
                auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
                        sweep_folder(path);
        }
        closedir(dir);
}

/* Make and lock our folder below parent.  -1 with errno. */
static int make_folder(const char *parent, const char *name, char path[static PATH_MAX])
{
        int len = snprintf(path, PATH_MAX, "%s/%s", parent, name);
        if (len < 0 || len >= PATH_MAX) {
                errno = ENAMETOOLONG;
                return -1;
        }
        if (mkdir(path, 0755) < 0)
                return -1;
        auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat here, there;
        /* Between mkdir and flock another supervisor may have swept it: then there is another one, or none. */
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &here) < 0 || stat(path, &there) < 0 ||
            here.st_ino != there.st_ino) {
                errno = EAGAIN;
                return -1;
        }
        return take_fd(&fd);
}

static void note_path(struct cgroup_base *base, const char *path)
{
        size_t old = base->paths ? strlen(base->paths) : 0;
        base->paths = mem_resize(base->paths, old + strlen(path) + 2);
        memcpy(base->paths + old, path, strlen(path));
        memcpy(base->paths + old + strlen(path), "\n", 2);
}

static void folder_name(char name[static 64])
{
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) < 0)
                random = (uint32_t)clock_us();
        snprintf(name, 64, FOLDER_PREFIX "%d-%08x", getpid(), random);
}

static int open_folder(struct cgroup_base *base, int slot, const char *parent)
{
        char path[PATH_MAX], name[64];
        sweep_stale(parent);
        for (int tries = 0; tries < 4; tries++) {
                folder_name(name);
                base->dir[slot] = make_folder(parent, name, path);
                if (base->dir[slot] >= 0) {
                        note_path(base, path);
                        return 0;
                }
                if (errno != EAGAIN && errno != EEXIST && errno != ENOENT)
                        return -1;
        }
        return -1;
}

/* ---- v2 ---- */

/* Which of ours are in a list of words ("cpu memory pids"). */
static unsigned controllers_in(int dir_fd, const char *file)
{
        char text[512];
        unsigned found = 0;
        if (io_read_file(dir_fd, file, text, sizeof text - 1) < 0)
                return 0;
        char *save = NULL;
        for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
                for (int i = 0; i < CPUACCT; i++)
                        found |= strcmp(word, names[i]) == 0 ? bits[i] : 0;
        return found;
}

/* Hand our controllers to the children of a cgroup; EBUSY where processes live in it (no internal processes). */
static unsigned enable_controllers(int fd)
{
        unsigned there = controllers_in(fd, "cgroup.controllers");
        for (int i = 0; i < CPUACCT; i++) {
                char word[16];
                snprintf(word, sizeof word, "+%s", names[i]);
                if (there & bits[i] && io_write_file(fd, "cgroup.subtree_control", word) < 0)
                        continue;   /* what is really on is read below */
        }
        return controllers_in(fd, "cgroup.subtree_control");
}

/* The cgroup to begin with: our own, or the one that was named, below the same mount. */
static void start_path(char path[static PATH_MAX], const struct place *place, const char *parent)
{
        snprintf(path, PATH_MAX, "%s", place->path);
        if (parent[0])
                snprintf(path + place->mount_len, PATH_MAX - place->mount_len, "/%s", parent);
}

/* The nearest cgroup from our own upwards that can give controllers to a folder of ours. */
static void open_v2(struct cgroup_base *base, const struct place *place, const char *parent)
{
        char path[PATH_MAX];
        start_path(path, place, parent);
        for (;;) {
                auto_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                unsigned on = dir >= 0 && access(path, W_OK) == 0 ? enable_controllers(dir) : 0;
                if (on & WIRE_CTL_MEMORY && open_folder(base, MEMORY, path) == 0) {
                        /* Our own folder hands them on to the leaves. */
                        base->mode = WIRE_CGROUP_V2;
                        base->controllers = on & enable_controllers(base->dir[MEMORY]);
                        return;
                }
                char *slash = strrchr(path, '/');
                if (parent[0] || !slash || (size_t)(slash - path) < place->mount_len)
                        return;
                *slash = 0;
        }
}

/* ---- v1 ---- */

static void open_v1(struct cgroup_base *base, const struct places *places, const char *parent)
{
        /* The freezer first, and so it is swept first: in the others nothing dies before it is let go there. */
        for (int i = HIERARCHIES - 1; i >= 0; i--) {
                const struct place *place = &places->v1[i];
                char path[PATH_MAX];
                if (!place->path[0])
                        continue;
                start_path(path, place, parent);
                /* cpu and cpuacct are usually one mount; the second name then finds the same folder. */
                if (i == CPUACCT && strcmp(place->path, places->v1[CPU].path) == 0)
                        continue;
                if (access(path, W_OK) == 0 && open_folder(base, i, path) == 0)
                        base->controllers |= bits[i];
        }
        base->mode = base->controllers ? WIRE_CGROUP_V1 : WIRE_CGROUP_NONE;
}

/* ---- base ---- */

static bool parent_is_good(const char *parent)
{
        return parent[0] != '/' && !strstr(parent, "..");
}

int cgroup_open(const char *parent, struct cgroup_base **ret, struct csn_error *err)
{
        struct cgroup_base *base = mem_alloc(sizeof *base);
        struct places *places = mem_alloc(sizeof *places);
        struct rlimit limit;
        for (int i = 0; i < HIERARCHIES; i++)
                base->dir[i] = -1;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                base->kept_max = limit.rlim_cur / KEPT_SHARE;
        base->spare_max = (size_t)min_u64(base->kept_max / 2, SPARE_MAX);   /* each has five descriptors besides */
        if (!parent_is_good(parent)) {
                free(places);
                free(base);
                return err_set(err, CSN_E_CONFIG, 0, "engine.cgroup_parent is \"%s\"; give a path below the root of the "
                                                     "hierarchy, without a leading / and without ..", parent);
        }
        find_places(places);
        if (places->v2.path[0])
                open_v2(base, &places->v2, parent);
        if (base->mode == WIRE_CGROUP_NONE)
                open_v1(base, places, parent);
        free(places);
        if (parent[0] && base->mode == WIRE_CGROUP_NONE) {
                cgroup_close(base);
                return err_set(err, CSN_E_CONFIG, 0, "engine.cgroup_parent is \"%s\", and no controller can be used there: make "
                                                     "the cgroup, delegate it to this user and enable memory, cpu and pids", parent);
        }
        *ret = base;
        return 0;
}

void cgroup_close(struct cgroup_base *base)
{
        if (!base)
                return;
        if (base->paths)
                cgroup_sweep(base->paths);
        for (int i = 0; i < HIERARCHIES; i++)
                fd_close(&base->dir[i]);
        free(base->paths);
        free(base);
}

enum wire_cgroup cgroup_mode(const struct cgroup_base *base)
{
        return base->mode;
}

unsigned cgroup_controllers(const struct cgroup_base *base)
{
        return base->controllers;
}

const char *cgroup_paths(const struct cgroup_base *base)
{
        return base->paths ? base->paths : "";
}

/* ---- leaves ---- */

void cgroup_leaf_init(struct cgroup_leaf *leaf)
{
        _Static_assert(ARRAY_LEN(leaf->files) == FILES, "a place for each");
        *leaf = (struct cgroup_leaf){ .oom_event = -1 };
        for (int i = 0; i < HIERARCHIES; i++)
                leaf->dir[i] = leaf->procs_fds[i] = -1;
        for (int i = 0; i < FILES; i++)
                leaf->files[i] = -1;
}

/* The folder that a counter is in; -1: it has none here. */
static int folder_of(const struct cgroup_leaf *leaf, enum file file)
{
        if (leaf->base->mode == WIRE_CGROUP_V2)
                return files[file].v2 ? leaf->dir[MEMORY] : -1;
        int hierarchy = files[file].hierarchy;
        if (hierarchy == CPUACCT && leaf->dir[CPUACCT] < 0)
                hierarchy = CPU;
        return files[file].v1 ? leaf->dir[hierarchy] : -1;
}

/* All of it into `text`, or -1. */
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
 * Where a process of one thread writes 0 to go in.  With cgroup.procs the kernel has all other forks and ends of the machine wait until it
 * knows all threads, and version 1's `tasks` moves just the one (cgroup_procs_write_start() in kernel/cgroup/cgroup.c, Linux 5.5).
 */
static const char *procs_file_of(const struct cgroup_leaf *leaf)
{
        return leaf->base->mode == WIRE_CGROUP_V1 ? "tasks" : "cgroup.procs";
}

/* Of a leaf that is used again, for to open a file takes longer than to read it. */
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

/* Files that exist only with swap accounting: without it there is nothing to bound. */
static int set_if_there(int dir_fd, const char *file, uint64_t value, struct csn_error *err)
{
        if (faccessat(dir_fd, file, F_OK, 0) < 0)
                return 0;
        return set_number(dir_fd, file, value, err);
}

#define CPU_PERIOD_US ((uint64_t)100000)
#define CPU_SHARES_USUAL 1024     /* of a new cgroup: sched(7), cgroup-v2.rst */
#define CPU_WEIGHT_USUAL 100

/* A leaf may have served before, with another weight; most have the usual one and are not written to. */
static int set_times(const struct cgroup_leaf *leaf, const struct cgroup_limits *limits, int dir, const char *file, uint64_t usual,
                     struct csn_error *err)
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
             set_if_there(dir, "memory.swap.max", 0, err) < 0 || set_number(dir, "memory.oom.group", !leaf->persistent, err) < 0))
                return -err->code;
        if (on & WIRE_CTL_PIDS && set_number(dir, "pids.max", limits->pids, err) < 0)
                return -err->code;
        if (on & WIRE_CTL_CPU) {
                char text[64];
                snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, limits->cpu_milli * CPU_PERIOD_US / 1000, CPU_PERIOD_US);
                if (set_times(leaf, limits, dir, "cpu.weight", CPU_WEIGHT_USUAL, err) < 0 || set(dir, "cpu.max", text, err) < 0)
                        return -err->code;
        }
        return 0;
}

/* v1 has no memory.oom.group; the event tells us, and the supervisor ends the whole tree then. */
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

/* Give it another name, in all hierarchies or in none.  Version 1 can; version 2 has no rename(2). */
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
 * The event of version 1 comes without a kill, too: where who asks for memory is being killed already, and of all below where
 * a cgroup above has none left.  It stays until it is read, and would end the next run as it begins.
 */
static void forget_oom(const struct cgroup_leaf *leaf)
{
        uint64_t events;
        while (read(leaf->oom_event, &events, sizeof events) < 0 && errno == EINTR)
                ;
}

/* One with this label, for that has its name already; else any, which gets the name. */
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
        /* By now it is less than it was when the last run ended. */
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
                procs_fds[n] = leaf->procs_fds[i] >= 0 ? leaf->procs_fds[i] : openat(leaf->dir[i], procs_file_of(leaf), O_WRONLY | O_CLOEXEC);
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
                        kill_members(leaf->dir[i]);
                        return;   /* the same processes are in all of them */
                }
}

/* ---- standing still ---- */

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
                return err_set(err, CSN_E_UNSUPPORTED, 0, "this host gives us no freezer, so nothing can be paused: on cgroup v2 run as root or in "
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

/* What cannot be set to zero has to be zero: nothing of one run may be counted for the next. */
static bool could_be_new(const struct cgroup_leaf *leaf)
{
        const struct cgroup_base *base = leaf->base;
        struct cgroup_usage usage;
        if (!base || leaf->persistent || base->mode != WIRE_CGROUP_V1 || base->controllers != WIRE_CTL_ALL || base->spare_n >= base->spare_max)
                return false;
        if (cgroup_leaf_processes(leaf) != 0 || !clear_counter(leaf, CPU_USED) || !clear_counter(leaf, MEMORY_PEAK))
                return false;
        cgroup_leaf_usage(leaf, &usage);
        return usage.cpu_us == 0 && usage.memory_peak <= SPARE_MEMORY && !usage.oom_kills && !usage.pids_hits && !usage.throttled_us;
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
