/*
 * A host uid for each live sandbox, so that the kernel's per-uid quotas (inotify, pipe buffers, pending
 * signals, keys) of one sandbox are no other's.
 *
 * The lock is a socket bound to an abstract name (unix(7)): taken atomically, freed by the kernel when its
 * holder dies in whatever way, nothing in any file system.  Names belong to the network namespace; two
 * supervisors in two network namespaces of one host could pick the same uid, which costs them the
 * distinct quotas and nothing else.
 */
#include "sandbox/sandbox.h"

#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TRIES 256

static int lock_uid(uint32_t uid, int *ret_lock)
{
        auto_fd sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (sock < 0)
                return -1;
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        int len = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "caisson-uid-%u", uid);
        if (bind(sock, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) < 0)
                return -1;
        *ret_lock = take_fd(&sock);
        return 0;
}

int uid_take(const struct uid_range *range, uint32_t *ret_uid, int *ret_lock, struct csn_error *err)
{
        for (int i = 0; i < TRIES; i++) {
                uint32_t random;
                if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
                        return err_set(err, CSN_E_SYSTEM, errno, "getrandom");
                uint32_t uid = range->first + UIDS_RESERVED + random % (range->count - UIDS_RESERVED);
                if (lock_uid(uid, ret_lock) == 0) {
                        *ret_uid = uid;
                        return 0;
                }
                if (errno != EADDRINUSE)
                        return err_set(err, CSN_E_SYSTEM, errno, "lock uid %u", uid);
        }
        return err_set(err, CSN_E_BUSY, 0, "no free uid among %u in %d tries: widen engine.uid_count", range->count, TRIES);
}
