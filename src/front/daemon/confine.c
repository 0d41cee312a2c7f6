/* Giving up rights; see confine.h. */
#include "front/daemon/confine.h"

#include "backend/backend.h"
#include "engine/launch/launch.h"
#include "sandbox/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define USUAL_USER "caisson"

static unsigned landlock_abi;

/* ---- the user ---- */

static bool find_user(const char *name, struct confine *ret)
{
        char room[16 * KIB], *end;
        struct passwd user, *found = NULL;
        unsigned long number = strtoul(name, &end, 10);
        if (name[0] >= '0' && name[0] <= '9' && !*end && number < UINT32_MAX) {
                ret->uid = (uid_t)number;
                ret->gid = getpwuid_r(ret->uid, &user, room, sizeof room, &found) == 0 && found ? found->pw_gid
                                                                                                : (gid_t)number;
                return true;
        }
        if (getpwnam_r(name, &user, room, sizeof room, &found) != 0 || !found)
                return false;
        ret->uid = found->pw_uid;
        ret->gid = found->pw_gid;
        return true;
}

/* The first folder for requests or SIGHUP out of the user's reach, or NULL; missing folders do not count. */
static const char *unreachable(const struct settings *settings, const struct confine *confine)
{
        const struct {
                const char *path;
                int how;
        } wanted[] = { { confine->state_dir, R_OK | W_OK | X_OK }, { settings->engine.policies_dir, R_OK | X_OK },
                { settings->engine.profiles_dir, R_OK | X_OK }, { backend_policies_dir(), R_OK | X_OK } };
        for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
                const char *path = wanted[i].path;
                if (!path[0] || faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) < 0)
                        continue;
                /* Checks as the user, then returns; capabilities follow the effective uid (capabilities(7)). */
                if (setegid(confine->gid) < 0 || seteuid(confine->uid) < 0)
                        return path;
                int rc = faccessat(AT_FDCWD, path, wanted[i].how, AT_EACCESS);
                if (seteuid(0) < 0 || setegid(0) < 0 || rc < 0)
                        return path;
        }
        return NULL;
}

#define JOURNALS "running"

/*
 * The next daemon reads the journals of a daemon killed before.  A file with another hard link is not ours, and stays
 * unchanged.
 */
static int give_journals(int folder, const struct confine *confine)
{
        auto_fd dir = openat(folder, JOURNALS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
                return errno == ENOENT ? 0 : -1;
        int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
        DIR *list = copy < 0 ? NULL : fdopendir(copy);
        if (!list) {
                fd_close(&copy);
                return -1;
        }
        int rc = fchown(dir, confine->uid, confine->gid);
        for (struct dirent *entry = readdir(list); entry && rc == 0; entry = readdir(list)) {
                struct stat st;
                auto_fd fd = openat(dir, entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
                        rc = fchownat(fd, "", confine->uid, confine->gid, AT_EMPTY_PATH);
        }
        closedir(list);
        return rc;
}

/* The folder and its files: the database, its log, its secret.  Links are not followed. */
static int give(const struct confine *confine, struct csn_error *err)
{
        static const char *const names[] = { "caisson.db", "caisson.db-wal", "caisson.db-shm", "store.secret",
                "store.reserve", "caissond.log", "caissond.log.1" };
        auto_fd folder = open(confine->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0 || fchown(folder, confine->uid, confine->gid) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "give %.300s to user %u", confine->state_dir, confine->uid);
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (fchownat(folder, names[i], confine->uid, confine->gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
                        return err_set(err, CSN_E_SYSTEM, errno, "give %.300s/%s to user %u", confine->state_dir,
                                names[i], confine->uid);
        if (give_journals(folder, confine) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "give %.300s/" JOURNALS " to user %u", confine->state_dir,
                        confine->uid);
        return 0;
}

/* A folder of layers outside of the state folder; several daemons may share the folder, each as the same user. */
static int give_layers(const struct settings *settings, const struct confine *confine, struct csn_error *err)
{
        const char *path = settings->packages.cache_dir;
        struct stat st;
        if (!path[0] || stat(path, &st) == 0)
                return 0;
        if (io_make_folders(path) < 0 || chmod(path, 0755) < 0 || chown(path, confine->uid, confine->gid) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the folder packages.cache_dir=%.300s", path);
        return 0;
}

/* The supervisor mounts the folder when it starts, so the folder is there before the first import. */
static int make_images(const struct settings *settings, const struct confine *confine, struct csn_error *err)
{
        struct arena texts = { 0 };
        struct stat st;
        const char *path = settings_images_dir(settings, &texts);
        bool wanted = (confine->state_dir[0] || settings->images.dir[0]) && stat(path, &st) < 0;
        bool made = wanted && io_make_folders(path) == 0 && chmod(path, 0755) == 0 &&
                chown(path, confine->uid, confine->gid) == 0;
        int rc = wanted && !made ? err_set(err, CSN_E_SYSTEM, errno, "make the folder of images %.300s", path) : 0;
        arena_done(&texts);
        return rc;
}

static int choose_user(const struct settings *settings, struct confine *confine, struct csn_error *err)
{
        const char *set = settings->engine.user;
        char number[24];
        bool known = find_user(set[0] ? set : USUAL_USER, confine);
        if (set[0] && !known) {
                err_field(err, "engine.user", "engine.user: there is no user \"%.60s\" here", set);
                return -(err->code = CSN_E_CONFIG);
        }
        snprintf(number, sizeof number, "%" PRIu64, settings->engine.uid_first + settings->engine.uid_count);
        if (!known && !find_user(number, confine))
                confine->uid = confine->gid = 0;
        /* Given first: the user may reach the folder only as its owner. */
        if (confine->state_dir[0] && give(confine, err) < 0)
                return -err->code;
        const char *path = confine->uid ? unreachable(settings, confine) : NULL;
        if (path && set[0]) {
                err_field(err, "engine.user",
                        "engine.user: user %u cannot get to %.300s; open it and the folders above it to that user",
                        confine->uid, path);
                return -(err->code = CSN_E_CONFIG);
        }
        if (path) {
                log_text(LOG_WARN, "the daemon stays root, without its rights, because user %u cannot get to %s",
                        confine->uid, path);
                confine->uid = confine->gid = 0;
                return confine->state_dir[0] ? give(confine, err) : 0;
        }
        return 0;
}

/* ---- rights of the daemon ---- */

/* Restores the parent-death signal wanted by our parent: a change of user clears the signal (prctl(2)). */
static void end_with(pid_t parent, int signal)
{
        prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0);
        if (signal && getppid() != parent)
                kill(getpid(), signal);
}

static int become(const struct confine *confine, struct csn_error *err)
{
        if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(confine->gid, confine->gid, confine->gid) < 0))
                return err_set(err, CSN_E_SYSTEM, errno, "become group %u", confine->gid);
        /* The bounding set is emptied while the capability to do so is left. */
        if (privs_bound(err) < 0)
                return -err->code;
        if (geteuid() == 0 && setresuid(confine->uid, confine->uid, confine->uid) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "become user %u", confine->uid);
        if (privs_drop(err) < 0)
                return -err->code;
        return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_DUMPABLE") : 0;
}

static void dirname_of(char *path)
{
        char *slash = strrchr(path, '/');
        if (slash)
                slash[slash == path] = 0;  /* the folder of "/key" is "/" */
        else if (path[0])
                snprintf(path, PATH_MAX, ".");
}

/*
 * The folders of gateway.key_file and of its link target: a new content is a new file, and a rule for the old file does
 * not apply (landlock(7)).  "" without the setting.
 */
static void find_keys(const char *path, char ret_folder[static PATH_MAX], char ret_target[static PATH_MAX])
{
        char real[PATH_MAX];
        snprintf(ret_folder, PATH_MAX, "%s", path);
        snprintf(ret_target, PATH_MAX, "%s", path[0] && realpath(path, real) ? real : "");
        dirname_of(ret_folder);
        dirname_of(ret_target);
}

static int make_rules(const struct settings *settings, const struct confine *confine, int *ret_fd,
        struct csn_error *err)
{
        const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME"), *config = getenv("CAISSON_CONFIG");
        struct arena texts = { 0 };
        char own[4096], named[4096], images[4200];
        snprintf(images, sizeof images, "%s", settings_images_dir(settings, &texts));
        arena_done(&texts);
        snprintf(own, sizeof own, "%s%s",
                xdg && xdg[0]  ? xdg
                        : home ? home
                               : "",
                xdg && xdg[0]  ? "/caisson"
                        : home ? "/.config/caisson"
                               : "");
        snprintf(named, sizeof named, "%s", confine->config ? confine->config : config ? config : "");
        char keys[PATH_MAX], target[PATH_MAX];
        find_keys(settings->gateway.key_file, keys, target);
        const struct landlock_place places[] = {
                { confine->state_dir, LANDLOCK_WRITE },
                { settings->packages.cache_dir, LANDLOCK_WRITE },
                { images, LANDLOCK_READ },
                { "/usr", LANDLOCK_READ },
                { "/lib", LANDLOCK_READ },
                { "/lib64", LANDLOCK_READ },
                { "/etc", LANDLOCK_READ }, /* resolv.conf, hosts, our own configuration */
                { "/run/systemd/resolve", LANDLOCK_READ },
                { "/run/resolvconf", LANDLOCK_READ },
                { "/run/NetworkManager", LANDLOCK_READ },
                { "/proc", LANDLOCK_READ },
                { "/dev/null", LANDLOCK_WRITE },
                { "/dev/urandom", LANDLOCK_READ },
                { "/dev/random", LANDLOCK_READ },
                { "/var/tmp", LANDLOCK_WRITE }, /* answers waiting in files without a name */
                { own, LANDLOCK_READ },
                { named, LANDLOCK_READ },
                { settings->engine.policies_dir, LANDLOCK_READ },
                { settings->engine.profiles_dir, LANDLOCK_READ },
                { settings->engine.languages_dir, LANDLOCK_READ },
                { backend_policies_dir(), LANDLOCK_READ },
                /* Read again after a change, if the file permissions allow the user. */
                { keys, LANDLOCK_READ },
                { target, LANDLOCK_READ },
                { settings->review.api_key_file, LANDLOCK_READ },
                { settings->review.headers_file, LANDLOCK_READ },
                { settings->review.prompt_file, LANDLOCK_READ },
        };
        *ret_fd = -1;
        if (settings->engine.landlock == need_OFF)
                return 0;
        if (landlock_make(places, ARRAY_LEN(places), ret_fd, &landlock_abi, err) < 0)
                return -err->code;
        if (landlock_abi || settings->engine.landlock != need_REQUIRE)
                return 0;
        return err_set(err, CSN_E_UNSUPPORTED, 0,
                "engine.landlock is require, and this kernel has no Landlock; see caisson doctor");
}

int confine(const struct settings *settings, struct confine *confine, struct csn_error *err)
{
        char range[50];
        const char *sockets[ARRAY_LEN(confine->sockets)] = { NULL };
        size_t sockets_n = 0;
        pid_t parent = getppid();
        int death = 0;
        if (confine->state_dir[0] && io_make_folders(confine->state_dir) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the folder %.300s", confine->state_dir);
        confine->uid = geteuid();
        confine->gid = getegid();
        if (!settings->engine.confine) {
                log_text(LOG_WARN, "engine.confine is off: the daemon keeps all rights of user %u", geteuid());
                return make_images(settings, confine, err);
        }
        prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0);
        if (geteuid() == 0 && choose_user(settings, confine, err) < 0)
                return -err->code;
        if (give_layers(settings, confine, err) < 0 || make_images(settings, confine, err) < 0)
                return -err->code;
        for (size_t i = 0; i < ARRAY_LEN(sockets); i++)
                if (confine->sockets[i][0])
                        sockets[sockets_n++] = confine->sockets[i];
        snprintf(range, sizeof range, "%" PRIu64 ":%" PRIu64, settings->engine.uid_first, settings->engine.uid_count);
        struct arena texts = { 0 };
        const struct helper_options helpers = { .uid = confine->uid,
                .gid = confine->gid,
                .uid_range = range,
                .cgroup_parent = settings->engine.cgroup_parent,
                .policies_dir = settings->engine.policies_dir,
                .layers_dir = settings_layers_dir(settings, &texts),
                .images_dir = settings_images_dir(settings, &texts),
                .volumes_dir = settings_volumes_dir(settings, &texts),
                .devices = device_grants_list(settings, &texts),
                .sockets = { sockets[0], sockets[1], sockets[2] } };
        int rules = -1;
        int rc = make_rules(settings, confine, &rules, err);
        auto_fd rules_fd = rules;
        if (rc == 0 && (rc = helpers_start(&helpers, err)) == 0)
                rc = become(confine, err);
        arena_done(&texts);
        end_with(parent, death);
        if (rc < 0 || landlock_enter(rules_fd, err) < 0 || seccomp_self(SECCOMP_ENGINE, err) < 0)
                return err_wrap(err, "give up the daemon's rights");
        log_text(LOG_INFO, "confined: user %u, no capabilities, system calls filtered, Landlock ABI %u", confine->uid,
                landlock_abi);
        return 0;
}

json_t *confine_facts(void)
{
        char status[8192], *line;
        ssize_t len = io_read_file(AT_FDCWD, "/proc/self/status", status, sizeof status - 1);
        unsigned long long caps =
                len > 0 && (line = strstr(status, "\nCapEff:")) ? strtoull(line + 8, NULL, 16) : ~0ULL;
        long filter = len > 0 && (line = strstr(status, "\nSeccomp:")) ? strtol(line + 9, NULL, 10) : 0;
        return json_pack("{s:i, s:b, s:b, s:b, s:i}", "uid", (int)geteuid(), "capabilities", caps != 0, "no_new_privs",
                prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "seccomp", filter == 2, "landlock_abi", (int)landlock_abi);
}
