/*
 * Rights of a program in a sandbox with root (capabilities(7), credentials(7)).  A program is root only on
 * request: with no_new_privs and nosuid mounts there is no way from `user` to root, so su does not work, and sudo works
 * only by a request to us (sudo_socket.c).
 */
#include "guest/guest.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define USER 1000

/* Ids for files; with the id of root the kernel takes away, and gives back, the capabilities over files. */
void account_files(const struct guest *guest, bool root)
{
        if (!guest->has_root)
                return;
        setfsgid(root ? 0 : USER);
        setfsuid(root ? 0 : USER);
        /* setfsgid(2) and setfsuid(2) return the previous id, so a second call returns the current id. */
        if (setfsgid(root ? 0 : USER) != (root ? 0 : USER) || setfsuid(root ? 0 : USER) != (root ? 0 : USER))
                _exit(1);
}

int account_has(const struct guest *guest, const struct guest_file *what, struct csn_error *err)
{
        if (!(what->flags & GUEST_FILE_AS_ROOT) || guest->has_root)
                return 0;
        return err_set(err, CSN_E_INPUT, 0, "this sandbox has no root");
}

void account_enter(const struct guest *guest, uint64_t flags)
{
        account_files(guest, flags & GUEST_FILE_AS_ROOT);
}

int account_own(const struct guest *guest, uint64_t flags, int fd, const char *path)
{
        unsigned id = flags & GUEST_FILE_FOR_USER ? USER : 0;
        if (!guest->has_root || !(flags & GUEST_FILE_AS_ROOT))
                return 0;
        return fd >= 0 ? fchown(fd, id, id) : lchown(path, id, id);
}

int account_begin(struct csn_error *err)
{
        if (setgroups(0, NULL) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "drop the supplementary groups");
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_DUMPABLE");
        return 0;
}

static int drop_bounds(struct csn_error *err)
{
        static const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
        for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
                if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "drop capability %lu from the bounding set", cap);
        return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "set the securebits")
                                                           : 0;
}

/* Checks our credentials as reported by the kernel: a program is started as `user` or not at all. */
static int is_user(struct csn_error *err)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2];
        uid_t uid[3];
        gid_t gid[3];
        if (syscall(SYS_capget, &header, sets) < 0 || getresuid(&uid[0], &uid[1], &uid[2]) < 0 ||
                getresgid(&gid[0], &gid[1], &gid[2]) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "look at what is left of root");
        bool is = getgroups(0, NULL) == 0;
        for (int i = 0; i < 3; i++)
                is = is && uid[i] == USER && gid[i] == USER;
        for (int i = 0; i < 2; i++)
                is = is && !sets[i].effective && !sets[i].permitted && !sets[i].inheritable;
        for (int cap = 0; is && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
                is = prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 0;
        return is ? 0 : err_set(err, CSN_E_SYSTEM, 0, "something of root is left");
}

int account_become(const struct guest *guest, bool root, struct csn_error *err)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 };
        account_files(guest, root);
        if (!guest->has_root || root)
                return 0;
        if (drop_bounds(err) < 0)
                return -err->code;
        if (setgroups(0, NULL) < 0 || setresgid(USER, USER, USER) < 0 || setresuid(USER, USER, USER) < 0 ||
                syscall(SYS_capset, &header, none) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "become user");
        return is_user(err);
}
