/* The daemon's socket; see endpoint.h. */
#include "front/endpoint.h"

#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define SYSTEM_PATH "/run/caisson/caissond.sock"
#define BACKLOG 1024
#define CONNECT_S 2                /* seconds */
#define LISTEN_FDS_START 3         /* sd_listen_fds(3) */

/* ---- where ---- */

bool endpoint_path(const struct settings *settings, bool system, char path[static ENDPOINT_PATH_MAX])
{
        const char *set = settings->engine.socket, *runtime = getenv("XDG_RUNTIME_DIR");
        int n = 0;
        if (set && set[0])
                n = snprintf(path, ENDPOINT_PATH_MAX, "%s", set);
        else if (system || geteuid() == 0)
                n = snprintf(path, ENDPOINT_PATH_MAX, "%s", SYSTEM_PATH);
        else if (runtime && runtime[0])
                n = snprintf(path, ENDPOINT_PATH_MAX, "%s/caisson/caissond.sock", runtime);
        return n > 0 && n < ENDPOINT_PATH_MAX;
}

static struct sockaddr_un address_of(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        memcpy(address.sun_path, path, strlen(path));
        return address;
}

int endpoint_connect(const char *path, int *ret_fd, struct csn_error *err)
{
        const struct sockaddr_un address = address_of(path);
        /* A local connection is made at once, unless the daemon is behind with accepting: for that there is a time. */
        const struct timeval patience = { .tv_sec = CONNECT_S };
        auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
            connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "connect to the daemon at %s", path);
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
                        return wrong(err, "engine.socket_uids", "\"%.60s\" is no user's number; give numbers between commas", part);
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
                return errno == EWOULDBLOCK ? err_set(err, CSN_E_BUSY, 0, "another caissond serves %s", endpoint->path)
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
static int bind_closed(struct endpoint *endpoint, mode_t mode, const gid_t *group, struct csn_error *err)
{
        const char *path = endpoint->path;
        const struct sockaddr_un address = address_of(path);
        mode_t before = umask(0777);
        endpoint->ours = bind(endpoint->fd, (const struct sockaddr *)&address, sizeof address) == 0;
        int sys = errno;
        umask(before);
        if (!endpoint->ours)
                return err_set(err, CSN_E_SYSTEM, sys, "bind %s", path);
        if (group && chown(path, (uid_t)-1, *group) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "give %s to group %u", path, *group);
        if (chmod(path, mode) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the permissions of %s", path);
        return 0;
}

static int make_socket(const struct settings *settings, struct endpoint *endpoint, struct csn_error *err)
{
        const struct engine_settings *engine = &settings->engine;
        unsigned long mode;
        gid_t group = 0;
        bool has_group = engine->socket_group && engine->socket_group[0];
        if (!endpoint_path(settings, false, endpoint->path))
                return wrong(err, "engine.socket", "it is empty or too long, and there is no XDG_RUNTIME_DIR; say where the socket shall be");
        if (!whole_number(engine->socket_mode, 8, 0777, &mode))
                return wrong(err, "engine.socket_mode", "\"%.10s\" are no permissions; give them in octal, such as 0660", engine->socket_mode);
        if (has_group && find_group(engine->socket_group, &group, err) < 0)
                return -err->code;
        if (make_folder(endpoint->path, err) < 0 || take_lock(endpoint, err) < 0 || remove_stale(endpoint->path, err) < 0)
                return -err->code;
        endpoint->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (endpoint->fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socket");
        if (bind_closed(endpoint, (mode_t)mode, has_group ? &group : NULL, err) < 0)
                return -err->code;
        return listen(endpoint->fd, BACKLOG) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "listen on %s", endpoint->path) : 0;
}

/* ---- the service manager ---- */

static bool is_listening_socket(int fd)
{
        int domain = 0, type = 0, listening = 0;
        socklen_t len = sizeof domain;
        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
               getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) == 0 && domain == AF_UNIX && type == SOCK_STREAM && listening;
}

/* How many sockets we were handed.  The variable may be our parent's own: LISTEN_PID says for whom it is. */
static const char *activation(void)
{
        const char *pid = getenv("LISTEN_PID");
        unsigned long number;
        return pid && whole_number(pid, 10, INT32_MAX, &number) && (pid_t)number == getpid() ? getenv("LISTEN_FDS") : NULL;
}

static int take_socket(const char *fds, struct endpoint *endpoint, struct csn_error *err)
{
        struct sockaddr_un address = { 0 };
        socklen_t len = sizeof address;
        int fd = LISTEN_FDS_START;
        if (strcmp(fds, "1") != 0 || !is_listening_socket(fd))
                return err_set(err, CSN_E_CONFIG, 0, "the service manager has to hand over one listening Unix stream socket");
        endpoint->fd = fd;
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set up the socket of the service manager");
        if (getsockname(fd, (struct sockaddr *)&address, &len) == 0)
                snprintf(endpoint->path, sizeof endpoint->path, "%.107s", address.sun_path);
        return 0;
}

int endpoint_open(const struct settings *settings, struct endpoint *ret, struct csn_error *err)
{
        *ret = (struct endpoint){ .fd = -1, .lock_fd = -1 };
        const char *fds = activation();
        int rc = fds ? take_socket(fds, ret, err) : make_socket(settings, ret, err);
        if (rc < 0)
                endpoint_close(ret);
        return rc;
}

void endpoint_close(struct endpoint *endpoint)
{
        if (endpoint->ours)
                unlink(endpoint->path);
        fd_close(&endpoint->fd);
        /* The lock's file stays: removed, two daemons could hold locks on two files of one name. */
        fd_close(&endpoint->lock_fd);
        endpoint->ours = false;
}

void endpoint_notify(const char *state)
{
        const char *path = getenv("NOTIFY_SOCKET");
        if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= ENDPOINT_PATH_MAX)
                return;
        struct sockaddr_un address = address_of(path);
        if (path[0] == '@')
                address.sun_path[0] = 0;   /* the abstract namespace, unix(7) */
        auto_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
        if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, len) < 0)
                log_text(LOG_WARN, "the service manager does not hear %s: %s", state, strerrordesc_np(errno));
}
