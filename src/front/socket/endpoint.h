/*
 * endpoint: the socket of caissond in the file system, who made it, and who is at its other end.
 *
 * One daemon serves a path: it holds a lock on PATH.lock for as long as it lives, whatever it dies of.  So a
 * socket without a lock belongs to nobody and is replaced.  A socket that the service manager made
 * (sd_listen_fds(3)) is the manager's: no lock, and it stays when we end.  One that it calls "http" is for HTTP.
 *
 * Beside it is a second one, PATH.http, with the same permissions, for the HTTP interface (api.h): of the same users, who
 * need no key there because the kernel says who they are.
 */
#ifndef FRONT_ENDPOINT_H
#define FRONT_ENDPOINT_H

#include "model/settings.h"

#define ENDPOINT_PATH_MAX 108      /* sun_path, unix(7) */
#define ENDPOINT_HTTP ".http"

struct endpoint {
        int fd;                    /* non-blocking */
        int http_fd;               /* of the service manager, or -1 */
        int lock_fd;
        char path[ENDPOINT_PATH_MAX];
        bool ours;                 /* we made it, so we remove it */
        int local_fd;              /* the second one; -1: it could not be made beside a socket of the manager's */
        char local_path[ENDPOINT_PATH_MAX];
        bool local_ours;
};

/*
 * Where this user's own daemon listens, or with `system` the one of root.  False: nowhere, because
 * engine.socket and XDG_RUNTIME_DIR are both empty and settings_private_dir() has none.
 */
bool endpoint_path(const struct settings *settings, bool system, char path[static ENDPOINT_PATH_MAX]);

/* The path of the second one.  False: it would be too long. */
bool endpoint_http_path(const char *path, char ret[static ENDPOINT_PATH_MAX]);

/*
 * The sockets that were handed to us, or new ones, which do not listen yet.  Errors: CSN_E_CONFIG (a setting is wrong), CSN_E_BUSY
 * (another daemon serves this path), CSN_E_SYSTEM.
 */
int endpoint_open(const struct settings *settings, struct endpoint *ret, struct csn_error *err);
int endpoint_listen(const struct endpoint *endpoint, struct csn_error *err);
void endpoint_close(struct endpoint *endpoint);

/* Connect; the descriptor is non-blocking.  Errors: CSN_E_SYSTEM; err->sys is the errno. */
int endpoint_connect(const char *path, int *ret_fd, struct csn_error *err);

/* "0,1000" into numbers from the arena.  Errors: CSN_E_CONFIG. */
int endpoint_uids(const char *text, struct arena *arena, uid_t **ret, size_t *ret_n, struct csn_error *err);

#endif
