/*
 * store.reserve: a file beside the database with the only purpose to occupy disk space.
 *
 * Deletions need space, too: a DELETE is written to the log before the database shrinks; so does the audit.  On a
 * full disk these two take space from this file, step by step; all other writes are refused (ENOSPC) until the
 * file has its full size again, tried at each write.
 */
#include "store/sql.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define NAME "store.reserve"
#define STEP MIB
#define LEAST_FREE (256 * KIB)

static uint64_t size_of(const struct store *store)
{
        struct stat st;
        return store->reserve_fd >= 0 && fstat(store->reserve_fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

uint64_t reserve_left(const struct store *store)
{
        return size_of(store);
}

void reserve_open(struct store *store)
{
        store->reserve_fd = openat(store->folder_fd, NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
}

bool reserve_release(struct store *store)
{
        uint64_t size = size_of(store), less = size > STEP ? size - STEP : 0;
        if (size == 0 || ftruncate(store->reserve_fd, (off_t)less) < 0)
                return false;
        store->log_pages_max = LOG_PAGES_FULL;
        log_text(LOG_WARN, "the disk of the state folder is full; %llu KiB of " NAME " are left to remove and to audit",
                (unsigned long long)(less / KIB));
        return true;
}

/* 0, or the errno. */
static int restore(struct store *store)
{
        uint64_t size = size_of(store);
        if (size >= store->reserve_bytes)
                return 0;
        int sys = posix_fallocate(store->reserve_fd, 0, (off_t)store->reserve_bytes);
        if (sys == 0) {
                store->log_pages_max = LOG_PAGES;
                log_text(LOG_INFO, NAME " has its %llu KiB", (unsigned long long)(store->reserve_bytes / KIB));
        } else if (ftruncate(store->reserve_fd, (off_t)size) < 0) {   /* the failed allocation may be partial */
                log_text(LOG_ERROR, NAME ": %s", strerrordesc_np(errno));
        }
        return sys;
}

int store_set_reserve(struct store *store, uint64_t bytes, struct csn_error *err)
{
        store->reserve_bytes = bytes;
        if (store->reserve_fd < 0)
                store->reserve_fd = store_make_file(store, NAME);
        if (store->reserve_fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make " NAME);
        if (size_of(store) > bytes && ftruncate(store->reserve_fd, (off_t)bytes) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make " NAME " smaller");
        return store_has_room(store, err);
}

/* Before SQLite meets the end of the disk in the middle of a change. */
static bool is_full(const struct store *store)
{
        struct statvfs disk;
        return fstatvfs(store->folder_fd, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < LEAST_FREE;
}

int store_has_room(struct store *store, struct csn_error *err)
{
        int sys = 0;
        if (store->reserve_bytes && store->reserve_fd >= 0)
                sys = restore(store);
        if (!sys && store->reserve_bytes && is_full(store))
                sys = ENOSPC;
        return sys ? err_set(err, CSN_E_BUSY, sys,
                             "the state folder has no room; remove files or workspaces, or make room on its disk")
                   : 0;
}
