/*
 * Privileges: capabilities(7), securebits, no_new_privs.  By system call and not through libcap, so that
 * the one privileged program links libc alone.
 */
#include "sandbox/sandbox.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define CAPS_END 64   /* the kernel answers EINVAL from its own last capability on */

static int caps_empty(struct csn_error *err)
{
        for (unsigned long cap = 0; cap < CAPS_END; cap++)
                if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
                        if (errno == EINVAL && cap > 0)
                                break;
                        return err_set(err, CSN_E_SYSTEM, errno, "drop capability %lu from the bounding set", cap);
                }
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "clear the ambient capabilities");
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 };
        if (syscall(SYS_capset, &header, none) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "capset");
        return 0;
}

/* From the kernel's own answer.  What is not permitted and inheritable cannot be ambient (capabilities(7)). */
static uint64_t caps_count(void)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { 0 };
        uint64_t n = 0;
        if (syscall(SYS_capget, &header, sets) < 0)
                return UINT64_MAX;
        for (size_t i = 0; i < 2; i++)
                n += (uint64_t)(__builtin_popcount(sets[i].effective) + __builtin_popcount(sets[i].permitted) +
                                __builtin_popcount(sets[i].inheritable));
        for (unsigned long cap = 0; cap < CAPS_END; cap++) {
                int in_bounds = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
                if (in_bounds < 0)
                        break;
                n += (uint64_t)in_bounds;
        }
        return n;
}

int privs_child(struct plan *plan, struct csn_error *err)
{
        unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                             SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
        if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the securebits");
        if (caps_empty(err) < 0)
                return -err->code;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_NO_NEW_PRIVS");
        umask(027);

        plan->boundary.capabilities = caps_count();
        plan->boundary.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
        if (plan->boundary.capabilities != 0)
                return err_set(err, CSN_E_SYSTEM, 0, "capabilities are left after they were dropped");
        return 0;
}

/*
 * A child of a zygote enters a sandbox: setns(2) wants CAP_SYS_ADMIN over its namespaces, CAP_SYS_CHROOT for its
 * mounts, and CAP_SYS_PTRACE to look at its process 1.  All are those of the keeper's user namespace and reach
 * nothing of the host.
 */
int privs_zygote(uint32_t uid, struct csn_error *err)
{
        static const unsigned long kept[] = { CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE };
        uint64_t bits = 0;
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                bits |= 1ULL << kept[i];
        for (unsigned long cap = 0; cap < CAPS_END; cap++)
                if (!(bits >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
                        if (errno == EINVAL && cap > 0)
                                break;
                        return err_set(err, CSN_E_SYSTEM, errno, "drop capability %lu from the bounding set", cap);
                }
        if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the securebits");
        if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "take the zygote's uid");
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { { .effective = (uint32_t)bits, .permitted = (uint32_t)bits, .inheritable = (uint32_t)bits } };
        if (syscall(SYS_capset, &header, sets) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "capset");
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "raise an ambient capability");
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_NO_NEW_PRIVS");
        return 0;
}
