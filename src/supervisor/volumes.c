/*
 * Volumes: file systems of tenants that outlive sandboxes.
 *
 * A volume is an ext4 file system in a file of its own, HEX.ext4 in the folder of volumes.  The size of the file is the
 * quota: the kernel refuses every write beyond the quota.  Inodes are bounded in the same way.  Folder
 * and files belong to root: otherwise a compromised engine could hand a crafted file system to the kernel.
 *
 * A loop device (loop(4), LOOP_CONFIGURE since Linux 5.8) makes the file a block device.  Two loop devices of one file
 * would be two file systems on the same blocks, so the file is locked (flock(2)) by the open file description of the
 * loop device.  The kernel drops the lock when the device lets go of the file: after the last mount is gone and
 * written back, also after SIGKILL of this process.
 *
 * Each sandbox has a mount of its own, in which the owner of the files is the sandbox' user (idmap_mount()).
 */
#include "supervisor/volumes.h"

#include "sandbox/mount.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define MKFS "/sbin/mke2fs"
#define IDLE_MS 5000               /* an unused loop device is kept for the next sandbox */
#define LOCK_TRIES 40              /* 5 ms each: a dead supervisor's loop device lets go of its file */
#define LOOP_TRIES 16              /* another process may be faster with a free loop device */
#define BYTES_MIN (8 * MIB)
#define BYTES_MAX (16 * 1024 * GIB)
#define NEW_PREFIX ".new-"

struct volume {
        struct volume *next;
        struct supervisor *sup;
        uint64_t high, low;
        int loop_fd;
        char device[24];           /* path of the loop device */
        unsigned users;            /* sandboxes */
        struct timer idle;
};

/* ---- the folder ---- */

/* Refuses a folder in which another user than root could have put files. */
static int open_folder(const struct supervisor *sup, struct csn_error *err)
{
        const char *path = sup->options->volumes_dir;
        struct stat st;
        if (!path[0] || sup->abilities.rootless)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "volumes need file systems that only root of the host can mount: start caissond as root");
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return err_set(err, CSN_E_SYSTEM, errno, "make the folder of volumes");
        auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the folder of volumes");
        if (st.st_uid != 0 || st.st_mode & 077)
                return err_set(err, CSN_E_CONFIG, 0,
                        "the folder of volumes (volumes.dir) has to belong to root, with mode 0700: chown root, chmod 0700");
        return take_fd(&fd);
}

static int lock_file(int fd, unsigned tries, struct csn_error *err)
{
        const struct timespec pause = { .tv_nsec = 5000000 };
        for (unsigned i = 0; i < tries; i++) {
                if (i)
                        nanosleep(&pause, NULL);
                if (flock(fd, LOCK_EX | LOCK_NB) == 0)
                        return 0;
        }
        return err_set(err, CSN_E_BUSY, 0, "the volume is in use by another daemon");
}

static void print_name(uint64_t high, uint64_t low, char name[48])
{
        snprintf(name, 48, "%016llx%016llx.ext4", (unsigned long long)high, (unsigned long long)low);
}

/* Returns the locked file, or a negative code. */
static int open_file(int folder, uint64_t high, uint64_t low, unsigned tries, struct csn_error *err)
{
        char name[48];
        struct stat st;
        print_name(high, low, name);
        auto_fd fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
                return err_field(err, "/volumes", "the volume was removed before the program began");
        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the file of a volume");
        if (!S_ISREG(st.st_mode) || st.st_uid != 0 || st.st_nlink != 1)
                return err_set(err, CSN_E_SYSTEM, 0, "the file of a volume is not what the supervisor made");
        if (lock_file(fd, tries, err) < 0)
                return -err->code;
        return take_fd(&fd);
}

/* ---- loop devices ---- */

static int no_loop(struct csn_error *err)
{
        return err_set(err, CSN_E_UNSUPPORTED, errno,
                "volumes need loop devices (/dev/loop-control, /dev/loop0 and so on), which a container and PrivateDevices= "
                "of systemd hide");
}

static int configure_loop(struct volume *volume, int file, struct csn_error *err)
{
        auto_fd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
        for (unsigned i = 0; control >= 0 && i < LOOP_TRIES; i++) {
                int number = ioctl(control, LOOP_CTL_GET_FREE);
                const struct loop_config config = { .fd = (uint32_t)file, .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
                if (number < 0)
                        break;
                snprintf(volume->device, sizeof volume->device, "/dev/loop%d", number);
                auto_fd loop = open(volume->device, O_RDWR | O_CLOEXEC);
                if (loop < 0)
                        break;
                if (ioctl(loop, LOOP_CONFIGURE, &config) == 0) {
                        volume->loop_fd = take_fd(&loop);
                        return 0;
                }
                if (errno != EBUSY)
                        break;
        }
        return no_loop(err);
}

static void volume_free(struct volume *volume)
{
        loop_untimer(volume->sup->loop, &volume->idle);
        for (struct volume **at = &volume->sup->volumes; *at; at = &(*at)->next)
                if (*at == volume) {
                        *at = volume->next;
                        break;
                }
        fd_close(&volume->loop_fd);
        free(volume);
}

static void on_idle(struct timer *timer)
{
        volume_free(timer->owner);
}

/* An unused volume goes after a while. */
static void settle(struct volume *volume)
{
        if (volume->users == 0)
                loop_timer(volume->sup->loop, &volume->idle, IDLE_MS * 1000ULL);
}

/* `file` is locked; its descriptor stays the caller's. */
static struct volume *attach(struct supervisor *sup, uint64_t high, uint64_t low, int file, struct csn_error *err)
{
        struct volume *volume = mem_alloc(sizeof *volume);
        *volume = (struct volume){ .next = sup->volumes,
                .sup = sup,
                .high = high,
                .low = low,
                .loop_fd = -1,
                .idle = { .fired = on_idle, .owner = volume } };
        sup->volumes = volume;
        if (configure_loop(volume, file, err) == 0)
                return volume;
        volume_free(volume);
        return NULL;
}

static struct volume *find(struct supervisor *sup, uint64_t high, uint64_t low)
{
        for (struct volume *volume = sup->volumes; volume; volume = volume->next)
                if (volume->high == high && volume->low == low)
                        return volume;
        return NULL;
}

static struct volume *find_or_attach(struct supervisor *sup, uint64_t high, uint64_t low, struct csn_error *err)
{
        struct volume *volume = find(sup, high, low);
        if (volume)
                return volume;
        auto_fd folder = open_folder(sup, err);
        auto_fd file = folder < 0 ? -1 : open_file(folder, high, low, LOCK_TRIES, err);
        return file < 0 ? NULL : attach(sup, high, low, file, err);
}

/* A mount of the file system.  All mounts share one superblock, which is writable.  The descriptor is the caller's. */
static int mount_volume(const struct volume *volume, unsigned attrs, struct csn_error *err)
{
        const struct option options[] = { { "source", volume->device }, { NULL, NULL } };
        int fd = mount_new("ext4", options, ATTR_FILES | attrs, err);
        if (fd < 0 && (err->sys == EPERM || err->sys == ENODEV))
                return err_set(err, CSN_E_UNSUPPORTED, err->sys,
                        "volumes need ext4 (CONFIG_EXT4_FS) and root of the host: start caissond as root, and not in a "
                        "container");
        return fd < 0 ? err_wrap(err, "mount a volume") : fd;
}

/* ---- new and removed volumes ---- */

/* By the descriptor: the folders above belong to the engine, which could put a link in the place of a path. */
static int make_file_system(int file, struct csn_error *err)
{
        char path[40];
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        /* Turn off newer features of mke2fs that a supported kernel lacks. */
        char *const argv[] = { "mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-O",
                "^orphan_file,^metadata_csum_seed", "-E",
                "root_owner=1000:1000,lazy_itable_init=1,lazy_journal_init=1,nodiscard", path, NULL };
        char *const env[] = { NULL };
        int status = 0;
        pid_t self = getpid(), pid = fork();
        if (pid == 0) {
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == self && fcntl(file, F_SETFD, 0) == 0)
                        execve(MKFS, argv, env);
                _exit(127);
        }
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return err_set(err, CSN_E_UNSUPPORTED, 0, "volumes need " MKFS ", which %s: install e2fsprogs",
                        pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127 ? "is not there" : "failed");
        return 0;
}

/* The blocks are taken from the disk at once: a volume cannot fail later because others filled the disk. */
static int reserve(int file, uint64_t bytes, struct csn_error *err)
{
        int rc = fallocate(file, 0, 0, (off_t)bytes);
        if (rc < 0 && errno == EOPNOTSUPP)
                rc = ftruncate(file, (off_t)bytes);
        if (rc < 0)
                return err_set(err, errno == ENOSPC || errno == EFBIG ? CSN_E_BUSY : CSN_E_SYSTEM, errno,
                        "take %llu bytes of the disk for a volume", (unsigned long long)bytes);
        return 0;
}

/* mke2fs makes a folder of root for fragments found by e2fsck(8); a tenant could not even list this folder. */
static int remove_lost_found(const struct volume *volume, struct csn_error *err)
{
        auto_fd mount = mount_volume(volume, 0, err);
        if (mount < 0)
                return mount;
        if (unlinkat(mount, "lost+found", AT_REMOVEDIR) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "empty a new volume");
        return 0;
}

static int fill_file(struct supervisor *sup, const struct wire_volume_order *order, int folder, const char *part,
        struct csn_error *err)
{
        char name[48];
        auto_fd file = openat(folder, part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file < 0)
                return err_set(err, errno == ENOSPC ? CSN_E_BUSY : CSN_E_SYSTEM, errno, "make the file of a volume");
        print_name(order->high, order->low, name);
        if (lock_file(file, 1, err) < 0 || reserve(file, order->bytes, err) < 0 || make_file_system(file, err) < 0)
                return -err->code;
        struct volume *volume = attach(sup, order->high, order->low, file, err);
        if (!volume)
                return -err->code;
        int rc = remove_lost_found(volume, err);
        if (rc == 0 && renameat(folder, part, folder, name) < 0)
                rc = err_set(err, CSN_E_SYSTEM, errno, "name the file of a volume");
        if (rc < 0)
                volume_free(volume);
        else
                settle(volume);
        return rc;
}

static int volume_make(struct supervisor *sup, const struct wire_volume_order *order, struct csn_error *err)
{
        char part[64];
        if (order->bytes < BYTES_MIN || order->bytes > BYTES_MAX)
                return err_field(err, "/size_bytes", "size_bytes is %llu; %llu to %llu are possible",
                        (unsigned long long)order->bytes, (unsigned long long)BYTES_MIN, (unsigned long long)BYTES_MAX);
        auto_fd folder = open_folder(sup, err);
        if (folder < 0)
                return folder;
        snprintf(part, sizeof part, NEW_PREFIX "%016llx%016llx", (unsigned long long)order->high,
                (unsigned long long)order->low);
        int rc = fill_file(sup, order, folder, part, err);
        if (rc < 0)
                unlinkat(folder, part, 0);
        return rc;
}

/* Idempotent: the engine repeats the request after a crash. */
static int volume_remove(struct supervisor *sup, const struct wire_volume_order *order, struct csn_error *err)
{
        struct volume *volume = find(sup, order->high, order->low);
        char name[48];
        if (volume && volume->users)
                return err_set(err, CSN_E_BUSY, 0, "the volume is in use by %u running program%s", volume->users,
                        volume->users == 1 ? "" : "s");
        if (volume)
                volume_free(volume);
        auto_fd folder = open_folder(sup, err);
        if (folder < 0)
                return folder;
        print_name(order->high, order->low, name);
        if (faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
                return 0;
        /* A single try: the engine repeats the request later. */
        auto_fd file = open_file(folder, order->high, order->low, 1, err);
        if (file < 0)
                return file;
        return unlinkat(folder, name, 0) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "remove the file of a volume") : 0;
}

int volumes_order(struct supervisor *sup, const struct wire_volume_order *order, struct csn_error *err)
{
        return order->bytes ? volume_make(sup, order, err) : volume_remove(sup, order, err);
}

void volumes_sweep(struct supervisor *sup)
{
        struct csn_error err;
        if (sup->abilities.rootless || !sup->options->volumes_dir[0] || access(sup->options->volumes_dir, F_OK) < 0)
                return;
        int folder = open_folder(sup, &err);
        DIR *dir = folder < 0 ? NULL : fdopendir(folder);
        if (folder < 0)
                log_text(LOG_WARN, "there are no volumes: %s", err.text);
        for (struct dirent *entry; dir && (entry = readdir(dir));) {
                if (strncmp(entry->d_name, NEW_PREFIX, strlen(NEW_PREFIX)) != 0)
                        continue;
                auto_fd file = openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
                        unlinkat(folder, entry->d_name, 0);
        }
        if (dir)
                closedir(dir);
        else
                fd_close(&folder);
}

/* ---- mounts of sandboxes ---- */

static int map_ids(const struct plan *plan, int mount_fd, struct csn_error *err)
{
        /* The same files have the same owner, with root inside or without. */
        if (plan->shape.flags & WIRE_ROOT)
                return idmap_mount(mount_fd, 0, plan->host_uid, UID_BLOCK - 1, err);
        return idmap_mount(mount_fd, SANDBOX_UID, plan->host_uid, 1, err);
}

static int open_volume(struct supervisor *sup, struct plan *plan, size_t i, struct csn_error *err)
{
        const struct wire_volume *wanted = &plan->shape.volumes[i];
        struct volume *volume = find_or_attach(sup, wanted->high, wanted->low, err);
        if (!volume)
                return err_wrap(err, "volume %s", wanted->name);
        plan->volumes[i] = mount_volume(volume, wanted->read_only ? MOUNT_ATTR_RDONLY : 0, err);
        if (plan->volumes[i] < 0 || map_ids(plan, plan->volumes[i], err) < 0) {
                settle(volume);
                return err_wrap(err, "volume %s", wanted->name);
        }
        loop_untimer(sup->loop, &volume->idle);
        volume->users++;
        return 0;
}

static int open_devices(const struct supervisor *sup, struct plan *plan, struct csn_error *err)
{
        for (size_t i = 0; i < WIRE_DEVICES_MAX; i++) {
                if (!(plan->shape.devices >> i & 1))
                        continue;
                const char *path = i < sup->options->devices_n ? sup->options->devices[i] : NULL;
                if (!path)
                        return err_set(err, CSN_E_UNSUPPORTED, 0,
                                "the supervisor does not know the granted device %zu: start the daemon again", i);
                if (device_open(path, &plan->devices[plan->devices_n], err) < 0)
                        return -err->code;
                snprintf(plan->device_names[plan->devices_n++], DEVICE_NAME_MAX + 1, "%s", path + strlen("/dev/"));
        }
        return 0;
}

int volumes_open_mounts(struct supervisor *sup, struct plan *plan, struct csn_error *err)
{
        size_t n = 0;
        int rc = 0;
        while (rc == 0 && n < plan->shape.volumes_n)
                if ((rc = open_volume(sup, plan, n, err)) == 0)
                        n++;
        if (rc == 0)
                rc = open_devices(sup, plan, err);
        if (rc < 0) {
                plan->shape.volumes_n = n;
                volumes_release(sup, &plan->shape);
        }
        return rc;
}

void volumes_release(struct supervisor *sup, const struct wire_shape *shape)
{
        for (size_t i = 0; i < shape->volumes_n; i++) {
                struct volume *volume = find(sup, shape->volumes[i].high, shape->volumes[i].low);
                if (volume && volume->users) {
                        volume->users--;
                        settle(volume);
                }
        }
}

void volumes_free(struct supervisor *sup)
{
        for (struct volume *volume = sup->volumes, *next; volume; volume = next) {
                next = volume->next;
                volume_free(volume);
        }
}
