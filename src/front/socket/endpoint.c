/* The daemon's socket; see endpoint.h. */
#include "front/socket/endpoint.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define SYSTEM_PATH "/run/caisson/caissond.sock"
#define BACKLOG 1024
#define CONNECT_S 2                /* seconds */
#define LISTEN_FDS_START 3         /* sd_listen_fds(3) */
#define LISTEN_FDS_MAX 2

/* ---- where ---- */

bool endpoint_path(const struct settings *settings, bool system, char path[static ENDPOINT_PATH_MAX])
{
        const char *set = settings->engine.socket, *runtime = getenv("XDG_RUNTIME_DIR");
        char private[64];
        int n = 0;
        if (set && set[0])
                n = snprintf(path, ENDPOINT_PATH_MAX, "%s", set);
        else if (system || geteuid() == 0)
                n = snprintf(path, ENDPOINT_PATH_MAX, "%s", SYSTEM_PATH);
        else if (runtime && runtime[0])
                n = snprintf(path, ENDPOINT_PATH_MAX, "%s/caisson/caissond.sock", runtime);
        else if (settings_private_dir(private, sizeof private))
                n = snprintf(path, ENDPOINT_PATH_MAX, "%s/caissond.sock", private);
        return n > 0 && n < ENDPOINT_PATH_MAX;
}

bool endpoint_http_path(const char *path, char ret[static ENDPOINT_PATH_MAX])
{
        return snprintf(ret, ENDPOINT_PATH_MAX, "%s" ENDPOINT_HTTP, path) < ENDPOINT_PATH_MAX;
}

static struct sockaddr_un address_of(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        memcpy(address.sun_path, path, strlen(path));
        return address;
}

static int no_daemon(struct csn_error *err, const char *path, int sys)
{
        if (sys == EACCES) {
                err_set(err, CSN_E_DENIED, 0,
                        "the daemon's socket %s is not open to user %u; join its group (engine.socket_group), or start a daemon of your "
                        "own with caisson serve",
                        path, geteuid());
                err->sys = sys;
                return -err->code;
        }
        if (sys != ENOENT && sys != ECONNREFUSED)
                return err_set(err, CSN_E_SYSTEM, sys, "connect to the daemon at %s", path);
        err_set(err, CSN_E_SYSTEM, 0, "connect to the daemon at %s: %s; caisson serve starts one", path,
                strerrordesc_np(sys));
        err->sys = sys;
        return -err->code;
}

int endpoint_connect(const char *path, int *ret_fd, struct csn_error *err)
{
        const struct sockaddr_un address = address_of(path);
        /* A local connection is made at once, unless the daemon is behind with accepting: for that there is a time. */
        const struct timeval patience = { .tv_sec = CONNECT_S };
        auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
            connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return no_daemon(err, path, errno);
        *ret_fd = take_fd(&fd);
        return 0;
}

/* ---- settings ---- */

static int wrong(struct csn_error *err, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int wrong(struct csn_error *err, const char *key, const char *fmt, ...)
{
        char text[300];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        err_field(err, key, "%s: %s", key, text);
        err->code = CSN_E_CONFIG;
        return -CSN_E_CONFIG;
}

static bool whole_number(const char *text, int base, unsigned long max, unsigned long *ret)
{
        char *end;
        errno = 0;
        *ret = strtoul(text, &end, base);
        return text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 && *ret <= max;
}

static int find_group(const char *text, gid_t *ret, struct csn_error *err)
{
        char room[16 * KIB];
        struct group group, *found = NULL;
        unsigned long number;
        if (whole_number(text, 10, UINT32_MAX - 1, &number)) {
                *ret = (gid_t)number;
                return 0;
        }
        if (getgrnam_r(text, &group, room, sizeof room, &found) != 0 || !found)
                return wrong(err, "engine.socket_group", "there is no group \"%.60s\" here", text);
        *ret = found->gr_gid;
        return 0;
}

int endpoint_uids(const char *text, struct arena *arena, uid_t **ret, size_t *ret_n, struct csn_error *err)
{
        size_t n = 0;
        uid_t *uids = arena_alloc(arena, (strlen(text) / 2 + 1) * sizeof *uids);
        char *rest = arena_text(arena, "%s", text);
        for (char *part; (part = strsep(&rest, ",")) && text[0];) {
                unsigned long number;
                part += strspn(part, " ");
                for (size_t len = strlen(part); len && part[len - 1] == ' ';)
                        part[--len] = 0;
                if (!whole_number(part, 10, UINT32_MAX - 1, &number))
                        return wrong(err, "engine.socket_uids",
                                "\"%.60s\" is no user's number; give numbers between commas", part);
                uids[n++] = (uid_t)number;
        }
        *ret = uids;
        *ret_n = n;
        return 0;
}

/* ---- making it ---- */

static int make_folder(const char *path, struct csn_error *err)
{
        char folder[ENDPOINT_PATH_MAX];
        mode_t mode = geteuid() == 0 ? 0755 : 0700;
        const char *slash = strrchr(path, '/');
        if (!slash || slash == path)
                return 0;
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        if (mkdir(folder, mode) < 0)
                return errno == EEXIST ? 0 : err_set(err, CSN_E_SYSTEM, errno, "make the folder %s", folder);
        /* Without what the umask took away. */
        return chmod(folder, mode) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "set the permissions of %s", folder) : 0;
}

static int take_lock(struct endpoint *endpoint, struct csn_error *err)
{
        char path[ENDPOINT_PATH_MAX + 8];
        snprintf(path, sizeof path, "%s.lock", endpoint->path);
        auto_fd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK
                        ? err_set(err, CSN_E_BUSY, 0,
                                  "another caissond serves %s; end it, or give another socket: --set engine.socket=PATH",
                                  endpoint->path)
                        : err_set(err, CSN_E_SYSTEM, errno, "lock %s", path);
        endpoint->lock_fd = take_fd(&fd);
        return 0;
}

/* We have the lock, so a socket that is there was left by a dead daemon; anything else is somebody's file. */
static int remove_stale(const char *path, struct csn_error *err)
{
        struct stat st;
        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0 : err_set(err, CSN_E_SYSTEM, errno, "look at %s", path);
        if (!S_ISSOCK(st.st_mode))
                return wrong(err, "engine.socket", "%s is there and is no socket", path);
        return unlink(path) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "remove the old socket %s", path) : 0;
}

/* Nobody gets in before group and permissions are what they are to be. */
static int bind_closed(const char *path, mode_t mode, const gid_t *group, int *ret_fd, bool *ret_ours,
        struct csn_error *err)
{
        const struct sockaddr_un address = address_of(path);
        if (remove_stale(path, err) < 0)
                return -err->code;
        *ret_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (*ret_fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socket");
        mode_t before = umask(0777);
        *ret_ours = bind(*ret_fd, (const struct sockaddr *)&address, sizeof address) == 0;
        int sys = errno;
        umask(before);
        if (!*ret_ours)
                return err_set(err, CSN_E_SYSTEM, sys, "bind %s", path);
        if (group && chown(path, (uid_t)-1, *group) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "give %s to group %u", path, *group);
        if (chmod(path, mode) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the permissions of %s", path);
        return 0;
}

/* Who may use the one may use the other, whoever made it. */
static int make_local(struct endpoint *endpoint, struct csn_error *err)
{
        struct stat st;
        if (!endpoint_http_path(endpoint->path, endpoint->local_path))
                return wrong(err, "engine.socket",
                        "%s leaves no room for " ENDPOINT_HTTP " behind it; give one of at most %zu bytes",
                        endpoint->path, ENDPOINT_PATH_MAX - sizeof ENDPOINT_HTTP);
        if (stat(endpoint->path, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "look at %s", endpoint->path);
        return bind_closed(endpoint->local_path, st.st_mode & 0777, &st.st_gid, &endpoint->local_fd,
                &endpoint->local_ours, err);
}

/* The lock keeps out daemons that the manager did not start; it has one itself. */
static void make_local_beside(struct endpoint *endpoint)
{
        struct csn_error why;
        if (take_lock(endpoint, &why) == 0 && make_local(endpoint, &why) == 0)
                return;
        fd_close(&endpoint->local_fd);
        log_text(LOG_WARN, "no HTTP beside the socket of the service manager: %s", why.text);
}

static int make_socket(const struct settings *settings, struct endpoint *endpoint, struct csn_error *err)
{
        const struct engine_settings *engine = &settings->engine;
        unsigned long mode;
        gid_t group = 0;
        bool has_group = engine->socket_group && engine->socket_group[0];
        if (!endpoint_path(settings, false, endpoint->path))
                return wrong(err, "engine.socket",
                        "it is too long; or it is empty, there is no XDG_RUNTIME_DIR, and /tmp/caisson-%u is no folder of this user alone",
                        geteuid());
        if (!whole_number(engine->socket_mode, 8, 0777, &mode))
                return wrong(err, "engine.socket_mode",
                        "\"%.10s\" are no permissions; give them in octal, such as 0660", engine->socket_mode);
        if (has_group && find_group(engine->socket_group, &group, err) < 0)
                return -err->code;
        if (make_folder(endpoint->path, err) < 0 || take_lock(endpoint, err) < 0 ||
                bind_closed(endpoint->path, (mode_t)mode, has_group ? &group : NULL, &endpoint->fd, &endpoint->ours,
                        err) < 0)
                return -err->code;
        return endpoint->local_fd < 0 ? make_local(endpoint, err) : 0;
}

/* ---- the service manager ---- */

static int option(int fd, int name)
{
        int value = -1;
        socklen_t len = sizeof value;
        return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

/* What we were handed, or NULL.  The variables may be our parent's own: LISTEN_PID says for whom they are. */
static const char *activation(const char *name)
{
        const char *pid = getenv("LISTEN_PID");
        unsigned long number;
        return pid && whole_number(pid, 10, INT32_MAX, &number) && (pid_t)number == getpid() ? getenv(name) : NULL;
}

static bool ends_with_http(const char *path)
{
        size_t len = strnlen(path, ENDPOINT_PATH_MAX), end = strlen(ENDPOINT_HTTP);
        return len > end && memcmp(path + len - end, ENDPOINT_HTTP, end) == 0;
}

static int take_socket(int fd, bool http, struct endpoint *endpoint, struct csn_error *err)
{
        struct sockaddr_un address = { 0 };
        socklen_t len = sizeof address;
        bool is_unix = getsockname(fd, (struct sockaddr *)&address, &len) == 0 && address.sun_family == AF_UNIX;
        bool local = is_unix && !http && ends_with_http(address.sun_path);
        int *place = http ? &endpoint->http_fd : local ? &endpoint->local_fd : &endpoint->fd;
        if (*place >= 0 || option(fd, SO_TYPE) != SOCK_STREAM || option(fd, SO_ACCEPTCONN) != 1 ||
                (!http && option(fd, SO_DOMAIN) != AF_UNIX))
                return err_set(err, CSN_E_CONFIG, 0,
                        "the service manager has to hand over one listening Unix stream socket and, called \"http\" "
                        "(FileDescriptorName=), one listening stream socket; descriptor %d is none, or one more",
                        fd);
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set up the socket of the service manager");
        *place = fd;
        if (!http)
                snprintf(local ? endpoint->local_path : endpoint->path, ENDPOINT_PATH_MAX, "%.107s", address.sun_path);
        return 0;
}

/* LISTEN_FDNAMES has their names with colons between; without it none has one. */
static int take_sockets(const char *fds, const char *names, struct endpoint *endpoint, struct csn_error *err)
{
        unsigned long n;
        if (!whole_number(fds, 10, LISTEN_FDS_MAX, &n))
                return err_set(err, CSN_E_CONFIG, 0,
                        "LISTEN_FDS=%.20s: the service manager hands over more sockets than can be used", fds);
        for (unsigned long i = 0; i < n; i++) {
                size_t len = names ? strcspn(names, ":") : 0;
                bool http = len == strlen("http") && strncmp(names, "http", len) == 0;
                if (take_socket(LISTEN_FDS_START + (int)i, http, endpoint, err) < 0)
                        return -err->code;
                names = names && names[len] ? names + len + 1 : NULL;
        }
        return 0;
}

int endpoint_open(const struct settings *settings, struct endpoint *ret, struct csn_error *err)
{
        *ret = (struct endpoint){ .fd = -1, .http_fd = -1, .local_fd = -1, .lock_fd = -1 };
        const char *fds = activation("LISTEN_FDS");
        int rc = fds ? take_sockets(fds, activation("LISTEN_FDNAMES"), ret, err) : 0;
        if (rc == 0 && ret->fd < 0)
                rc = make_socket(settings, ret, err);
        else if (rc == 0 && ret->local_fd < 0)
                make_local_beside(ret);
        if (rc < 0)
                endpoint_close(ret);
        return rc;
}

int endpoint_listen(const struct endpoint *endpoint, struct csn_error *err)
{
        if (endpoint->ours && listen(endpoint->fd, BACKLOG) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "listen on %s", endpoint->path);
        return 0;   /* HTTP's is for http_open() */
}

void endpoint_close(struct endpoint *endpoint)
{
        if (endpoint->ours)
                unlink(endpoint->path);
        if (endpoint->local_ours)
                unlink(endpoint->local_path);
        fd_close(&endpoint->fd);
        fd_close(&endpoint->local_fd);
        fd_close(&endpoint->http_fd);
        /* The lock's file stays: removed, two daemons could hold locks on two files of one name. */
        fd_close(&endpoint->lock_fd);
        endpoint->ours = endpoint->local_ours = false;
}
