/*
 * endpoint: the listening sockets of caissond in the file system, and their owners.
 *
 * One daemon serves a path: it holds a lock on PATH.lock while it lives, so every kind of death releases the lock.  A
 * socket without a lock is therefore stale and is replaced.  A socket from the service manager (sd_listen_fds(3)) stays
 * the manager's: no lock, and the daemon does not remove it.  A manager's socket with the name "http" is for HTTP.
 *
 * Beside the path is a second socket, PATH.http, with the same permissions, for the HTTP interface (api.h).  Its users
 * are the same; they need no key, because the kernel reports their uid.
 */
#ifndef FRONT_SOCKET_ENDPOINT_H
#define FRONT_SOCKET_ENDPOINT_H

#include "model/settings.h"

#define ENDPOINT_PATH_MAX 108      /* sun_path, unix(7) */
#define ENDPOINT_HTTP ".http"

/* The sockets of one daemon. */
struct endpoint {
        int fd;                    /* non-blocking */
        int http_fd;               /* HTTP socket of the service manager, or -1 */
        int lock_fd;
        char path[ENDPOINT_PATH_MAX];
        bool ours;                 /* created here, so removed at the end */
        int local_fd;              /* PATH.http; -1: could not be created beside a socket of the manager */
        char local_path[ENDPOINT_PATH_MAX];
        bool local_ours;
};

/*
 * The path of this user's daemon, or with `system` of root's.  false: no path, because engine.socket and
 * XDG_RUNTIME_DIR are empty and settings_private_dir() has none.
 */
bool endpoint_path(const struct settings *settings, bool system, char path[static ENDPOINT_PATH_MAX]);

/* PATH.http.  false: too long. */
bool endpoint_http_path(const char *path, char ret[static ENDPOINT_PATH_MAX]);

/*
 * Take the service manager's sockets, or create new ones, which do not listen yet.  *ret is the caller's until
 * endpoint_close().  Errors: CSN_E_CONFIG (a setting is wrong), CSN_E_BUSY (another daemon serves this path),
 * CSN_E_SYSTEM.
 */
int endpoint_open(const struct settings *settings, struct endpoint *ret, struct csn_error *err);
/* Listen on the sockets; close and remove them.  Errors: CSN_E_SYSTEM. */
int endpoint_listen(const struct endpoint *endpoint, struct csn_error *err);
void endpoint_close(struct endpoint *endpoint);

/* Connect to a path; the descriptor is non-blocking and the caller's.  Errors: CSN_E_SYSTEM; err->sys is the errno. */
int endpoint_connect(const char *path, int *ret_fd, struct csn_error *err);

/* Parse "0,1000" into numbers from the arena.  Errors: CSN_E_CONFIG. */
int endpoint_uids(const char *text, struct arena *arena, uid_t **ret, size_t *ret_n, struct csn_error *err);

#endif
