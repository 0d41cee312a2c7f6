/*
 * A host uid for each live sandbox, so that sandboxes do not share the kernel's per-uid quotas (inotify, pipe
 * buffers, pending signals, keys).  A sandbox with root has a block of ids.
 *
 * The lock is a socket bound to an abstract name (unix(7)): atomic, released by the kernel at any death of its
 * holder, and without a file.  Abstract names belong to a network namespace: two supervisors in two network
 * namespaces of one host may choose the same uid and then share these quotas, without any other effect.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define TRIES 256

/* ---- rights over ids on this host ---- */

/* user_namespaces(7): lines of first id inside, first id in the namespace above, count. */
static bool maps(const char *path, uint32_t id, uint32_t *ret_outer)
{
        char text[4096];
        unsigned inside, outside, count;
        int used;
        if (io_read_file(AT_FDCWD, path, text, sizeof text - 1) < 0)
                return false;
        for (const char *at = text; sscanf(at, "%u %u %u%n", &inside, &outside, &count, &used) == 3; at += used)
                if (id >= inside && id - inside < count) {
                        *ret_outer = outside + (id - inside);
                        return true;
                }
        return false;
}

static bool has_capability(unsigned number)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { 0 };
        return syscall(SYS_capget, &head, sets) == 0 && sets[number / 32].effective >> number % 32 & 1;
}

enum uid_way uid_way(const struct uid_range *range)
{
        uint32_t outer, outer_group;
        bool mapped = maps("/proc/self/uid_map", range->first, &outer) &&
                maps("/proc/self/gid_map", range->first, &outer_group);
        if (!mapped && maps("/proc/self/uid_map", geteuid(), &outer) && outer != 0)
                return UIDS_OWN;
        if (mapped && !has_capability(CAP_SYS_ADMIN) && has_capability(CAP_SETUID) && has_capability(CAP_SETGID))
                return UIDS_FIRST;
        return UIDS_RANGE;
}

/* ---- taking an id ---- */

static int lock_name(const char *kind, uint32_t uid, int *ret_lock)
{
        auto_fd sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (sock < 0)
                return -1;
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        int len = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "caisson-%s-%u", kind, uid);
        if (bind(sock, (struct sockaddr *)&name,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) < 0)
                return -1;
        *ret_lock = take_fd(&sock);
        return 0;
}

/*
 * Takes a free block out of `n` blocks of `step` ids each, from `first` on.  errno is EADDRINUSE when no block is free.
 * A lock name contains the first id of its block, so two supervisors with the same range share the locks.
 */
static int take(const char *kind, uint32_t first, uint32_t n, uint32_t step, uint32_t *ret, int *ret_lock)
{
        for (int i = 0; i < TRIES; i++) {
                uint32_t random;
                if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
                        return -1;
                uint32_t id = first + random % n * step;
                if (lock_name(kind, id, ret_lock) == 0) {
                        *ret = id;
                        return 0;
                }
                if (errno != EADDRINUSE)
                        return -1;
        }
        return -1;
}

uint32_t uid_blocks(const struct uid_range *range)
{
        return range->count / 2 / UID_BLOCK;
}

static uint32_t first_block(const struct uid_range *range)
{
        return range->first + range->count - uid_blocks(range) * UID_BLOCK;
}

int uid_take_block(const struct uid_range *range, uint32_t *ret_first, int *ret_lock, struct csn_error *err)
{
        uint32_t blocks = uid_blocks(range);
        if (blocks == 0)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "root inside needs %d ids, and %u are all that sandboxes have here: set engine.uid_count to %d or more",
                        UID_BLOCK, range->count, 2 * UID_BLOCK);
        if (take("ids", first_block(range), blocks, UID_BLOCK, ret_first, ret_lock) == 0)
                return 0;
        if (errno != EADDRINUSE)
                return err_set(err, CSN_E_SYSTEM, errno, "lock a block of uids");
        return err_set(err, CSN_E_BUSY, 0,
                "no block of ids for root inside is free, of %u: end a sandbox with root, or widen engine.uid_count",
                blocks);
}

int uid_take(const struct uid_range *range, uint32_t *ret_uid, int *ret_lock, struct csn_error *err)
{
        uint32_t first = range->first + UIDS_RESERVED;
        if (take("uid", first, first_block(range) - first, 1, ret_uid, ret_lock) == 0)
                return 0;
        if (errno != EADDRINUSE)
                return err_set(err, CSN_E_SYSTEM, errno, "lock a uid");
        return err_set(err, CSN_E_BUSY, 0, "no free uid among %u in %d tries: widen engine.uid_count",
                first_block(range) - first, TRIES);
}
