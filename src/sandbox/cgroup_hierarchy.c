/*
 * The hierarchies of cgroups of this host: v2 (Documentation/admin-guide/cgroup-v2.rst), v1 (admin-guide/cgroup-v1), or
 * both, and the folder of this supervisor in them.  The supervisor holds a flock(2) on the folder.  A folder without a
 * lock belongs to a dead supervisor; the next supervisor removes it.
 */
#include "sandbox/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define FOLDER_PREFIX "caisson-"
#define KEPT_SHARE 32          /* one descriptor in so many may be a file of a reused leaf */

static const char *const names[HIERARCHIES] = { "memory", "cpu", "pids", "cpuacct", "freezer" };
static const unsigned bits[HIERARCHIES] = { WIRE_CTL_MEMORY, WIRE_CTL_CPU, WIRE_CTL_PIDS, 0, 0 };

/* ---- finding the hierarchies ---- */

struct place {
        char path[PATH_MAX];       /* of the cgroup of this process, or "" */
        size_t mount_len;          /* length of the mount point in path */
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
 * A line of /proc/self/cgroup, "5:memory:/path": the path of this process below the mount.  The mount may
 * show only a part of the hierarchy (a container without a cgroup namespace); then its root is a prefix of the path.
 */
static void own_path(const char *cgroups, const char *controller, const char *mount_point, const char *mount_root,
                     struct place *ret)
{
        for (const char *line = cgroups; *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "") {
                char list[128] = "", path[PATH_MAX] = "";
                if (sscanf(line, "%*d::%4095[^\n]", path) != 1 &&
                        sscanf(line, "%*d:%127[^:]:%4095[^\n]", list, path) != 2)
                        continue;
                if (controller ? !has_word(list, controller) : list[0] != 0)
                        continue;
                const char *below = path;
                size_t root = strlen(mount_root);
                if (strcmp(mount_root, "/") != 0)
                        below = strncmp(path, mount_root, root) == 0 ? path + root : "/";
                int len = snprintf(ret->path, sizeof ret->path, "%s%s", mount_point,
                        strcmp(below, "/") == 0 ? "" : below);
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

/* cgroup.kill (Linux 5.14) also reaches processes forked meanwhile. */
void cgroup_kill_members(int dir_fd)
{
        char list[64 * KIB];
        if (io_write_file(dir_fd, "cgroup.kill", "1") == 0)
                return;
        io_write_file(dir_fd, "freezer.state", "THAWED");   /* v1: a frozen process does not die */
        if (io_read_file(dir_fd, "cgroup.procs", list, sizeof list - 1) < 0)
                return;
        char *save = NULL;
        for (char *line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                pid_t pid = (pid_t)strtol(line, NULL, 10);
                if (pid > 1)
                        kill(pid, SIGKILL);
        }
}

/* Kill and remove the leaves of a folder, then the folder. */
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
                                cgroup_kill_members(leaf);
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

/* Remove folders of dead supervisors: no process holds the lock of such a folder. */
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

/* Make and lock the folder of this supervisor below parent.  -1 with errno. */
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
        /*
         * Between mkdir and flock another supervisor may have removed the folder: then the path is another folder, or
         * missing.
         */
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

/* The known controllers in a list of words ("cpu memory pids"), as bits. */
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

/* Enable the controllers for the children of a cgroup; EBUSY if the cgroup has processes (no internal processes). */
static unsigned enable_controllers(int fd)
{
        unsigned there = controllers_in(fd, "cgroup.controllers");
        for (int i = 0; i < CPUACCT; i++) {
                char word[16];
                snprintf(word, sizeof word, "+%s", names[i]);
                if (there & bits[i] && io_write_file(fd, "cgroup.subtree_control", word) < 0)
                        continue;   /* the enabled controllers are read below */
        }
        return controllers_in(fd, "cgroup.subtree_control");
}

/* The first cgroup to try: the cgroup of this process, or `parent` below the same mount. */
static void start_path(char path[static PATH_MAX], const struct place *place, const char *parent)
{
        snprintf(path, PATH_MAX, "%s", place->path);
        if (parent[0])
                snprintf(path + place->mount_len, PATH_MAX - place->mount_len, "/%s", parent);
}

/* Walk up from the cgroup of this process to the first cgroup able to give controllers to a folder below. */
static void open_v2(struct cgroup_base *base, const struct place *place, const char *parent)
{
        char path[PATH_MAX];
        start_path(path, place, parent);
        for (;;) {
                auto_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                unsigned on = dir >= 0 && access(path, W_OK) == 0 ? enable_controllers(dir) : 0;
                if (on & WIRE_CTL_MEMORY && open_folder(base, MEMORY, path) == 0) {
                        /* The new folder enables the controllers for the leaves. */
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
        /* The freezer first, so sweeps begin there: a frozen process dies only after being thawed. */
        for (int i = HIERARCHIES - 1; i >= 0; i--) {
                const struct place *place = &places->v1[i];
                char path[PATH_MAX];
                if (!place->path[0])
                        continue;
                start_path(path, place, parent);
                /* cpu and cpuacct usually share a mount; the second name then finds the same folder. */
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
        base->spare_max = (size_t)min_u64(base->kept_max / 2, SPARE_MAX);   /* a leaf has five other descriptors */
        if (!parent_is_good(parent)) {
                free(places);
                free(base);
                return err_set(err, CSN_E_CONFIG, 0,
                        "engine.cgroup_parent is \"%s\"; give a path below the root of the "
                        "hierarchy, without a leading / and without ..",
                        parent);
        }
        find_places(places);
        if (places->v2.path[0])
                open_v2(base, &places->v2, parent);
        if (base->mode == WIRE_CGROUP_NONE)
                open_v1(base, places, parent);
        free(places);
        if (parent[0] && base->mode == WIRE_CGROUP_NONE) {
                cgroup_close(base);
                return err_set(err, CSN_E_CONFIG, 0,
                        "engine.cgroup_parent is \"%s\", and no controller can be used there: make "
                        "the cgroup, delegate it to this user and enable memory, cpu and pids",
                        parent);
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
