/*
 * store.secret: 32 random bytes beside the database.  A copy of the database alone, from a backup or a disk,
 * cannot be used to test keys.  The same file shows live openers of the store: each holds a lock (fcntl(2),
 * F_OFD_SETLK) on its own byte, released by the kernel at any death of the opener.  Process numbers would be
 * ambiguous between containers and after reuse.
 */
#include "store/sql.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#define NAME "store.secret"

int store_make_file(const struct store *store, const char *name)
{
        struct stat folder;
        auto_fd fd = openat(store->folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return -1;
        if (geteuid() == 0 && (fstat(store->folder_fd, &folder) < 0 || fchown(fd, folder.st_uid, folder.st_gid) < 0))
                return -1;
        return take_fd(&fd);
}

static int random_bytes(void *bytes, size_t len, struct csn_error *err)
{
        return getrandom(bytes, len, 0) == (ssize_t)len ? 0 : err_set(err, CSN_E_SYSTEM, errno, "getrandom");
}

/* Complete or absent, and on the disk before a key depends on the secret.  Another process may be first. */
static int make(struct store *store, struct csn_error *err)
{
        uint64_t number;
        char name[60];
        if (random_bytes(store->secret, sizeof store->secret, err) < 0 || random_bytes(&number, sizeof number, err) < 0)
                return -CSN_E_SYSTEM;
        snprintf(name, sizeof name, NAME ".%016llx", (unsigned long long)number);
        auto_fd fd = store_make_file(store, name);
        if (fd < 0 || io_write_all(fd, store->secret, sizeof store->secret) < 0 || fsync(fd) < 0 ||
            (renameat2(store->folder_fd, name, store->folder_fd, NAME, RENAME_NOREPLACE) < 0 && errno != EEXIST) ||
            fsync(store->folder_fd) < 0) {
                int sys = errno;
                unlinkat(store->folder_fd, name, 0);
                return err_set(err, CSN_E_SYSTEM, sys, "make " NAME " beside %.300s", store->path);
        }
        unlinkat(store->folder_fd, name, 0);   /* still there if another process was first */
        return 0;
}

static int read_secret(struct store *store, struct csn_error *err)
{
        char more[sizeof store->secret + 1];
        ssize_t len = pread(store->secret_fd, more, sizeof more, 0);
        if (len < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "read " NAME " beside %.300s", store->path);
        if (len != sizeof store->secret)
                return err_set(err, CSN_E_CONFIG, 0,
                        NAME " beside %.300s is not what was made there, %zu bytes; put it back from a copy",
                        store->path, sizeof store->secret);
        memcpy(store->secret, more, sizeof store->secret);
        explicit_bzero(more, sizeof more);
        return 0;
}

static int lock_own_byte(struct store *store, struct csn_error *err)
{
        if (random_bytes(&store->owner, sizeof store->owner, err) < 0)
                return -CSN_E_SYSTEM;
        store->owner &= INT64_MAX >> 1;
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = store->owner, .l_len = 1 };
        if (fcntl(store->secret_fd, F_OFD_SETLK, &lock) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "lock " NAME " beside %.300s", store->path);
        return 0;
}

int secret_open(struct store *store, struct csn_error *err)
{
        store->secret_fd = openat(store->folder_fd, NAME, O_RDONLY | O_CLOEXEC);
        if (store->secret_fd < 0 && errno == ENOENT && store->version == 0) {
                int rc = make(store, err);
                if (rc < 0)
                        return rc;
                store->secret_fd = openat(store->folder_fd, NAME, O_RDONLY | O_CLOEXEC);
        }
        if (store->secret_fd < 0 && errno == ENOENT)
                return err_set(err, CSN_E_CONFIG, 0,
                        NAME
                        " is missing beside %.300s, and without it no key is valid; put it back from a copy, or write 32 "
                        "random bytes there and make new keys",
                        store->path);
        if (store->secret_fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open " NAME " beside %.300s", store->path);
        int rc = read_secret(store, err);
        return rc < 0 ? rc : lock_own_byte(store, err);
}

bool secret_owner_lives(const struct store *store, int64_t owner)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = owner, .l_len = 1 };
        /* F_OFD_GETLK does not report a lock of our own. */
        return owner == store->owner || fcntl(store->secret_fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}
