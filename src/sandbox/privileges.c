/*
 * Privileges: capabilities(7), securebits, no_new_privs.  By system call instead of libcap, so that the only
 * privileged program links libc alone.
 */
#include "sandbox/sandbox.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define CAPS_END 64   /* the kernel answers EINVAL from its own last capability on */

/*
 * Leaves `kept` in the bounding set; the kernel confirms the removal of each other capability (PR_CAPBSET_DROP in
 * prctl(2)).
 */
static int bound_to(uint64_t kept, struct csn_error *err)
{
        for (unsigned long cap = 0; cap < CAPS_END; cap++)
                if (!(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
                        if (errno == EINVAL && cap > 0)
                                break;
                        return err_set(err, CSN_E_SYSTEM, errno, "drop capability %lu from the bounding set", cap);
                }
        return 0;
}

static int bound_empty(struct csn_error *err)
{
        return bound_to(0, err);
}

/* The inheritable set is empty then, so the kernel empties the ambient set, too (capabilities(7)). */
static int caps_set(uint64_t bits, struct csn_error *err)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
        struct __user_cap_data_struct sets[2] = { { .effective = low, .permitted = low },
                { .effective = high, .permitted = high } };
        if (syscall(SYS_capset, &header, sets) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "capset");
        return 0;
}

static int caps_empty(struct csn_error *err)
{
        return caps_set(0, err);
}

/*
 * Capabilities in any set but the bounding set, from the kernel's own answer.  Only a permitted and inheritable
 * capability can be ambient (capabilities(7)).
 */
static uint64_t caps_left(void)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { 0 };
        uint64_t left = 0;
        if (syscall(SYS_capget, &header, sets) < 0)
                return UINT64_MAX;
        for (size_t i = 0; i < 2; i++)
                left |= (uint64_t)(sets[i].effective | sets[i].permitted | sets[i].inheritable) << 32 * i;
        return left;
}

static int bits_lock(struct csn_error *err)
{
        unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
        if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the securebits");
        return 0;
}

int privs_drop(struct csn_error *err)
{
        if (caps_empty(err) < 0)
                return -err->code;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_NO_NEW_PRIVS");
        return 0;
}

int privs_bound(struct csn_error *err)
{
        /* Even without the right to drop, a later program can gain no capability: no_new_privs. */
        return prctl(PR_CAPBSET_DROP, 0, 0, 0, 0) < 0 && errno == EPERM ? 0 : bound_empty(err);
}

/* Records the privileges reported by the kernel.  bounds: the set left by bound_to(). */
static int note(struct plan *plan, uint64_t bounds, uint64_t meant, struct csn_error *err)
{
        uint64_t left = caps_left() | bounds;
        plan->boundary.capabilities = (uint64_t)__builtin_popcountll(left);
        plan->boundary.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
        if (left != meant)
                return err_set(err, CSN_E_SYSTEM, 0,
                        "other capabilities are left than were meant to be: %llx and not %llx",
                        (unsigned long long)left, (unsigned long long)meant);
        return 0;
}

int privs_confined(struct plan *plan, struct csn_error *err)
{
        if (bits_lock(err) < 0 || bound_empty(err) < 0 || privs_drop(err) < 0)
                return -err->code;
        umask(027);
        return note(plan, 0, 0, err);
}

int privs_reaper(struct plan *plan, struct csn_error *err)
{
        (void)plan;
        return bits_lock(err) < 0 || privs_drop(err) < 0 ? -err->code : 0;
}

/*
 * Capabilities of root inside, over the inner user namespace alone: files of the block's ids (CHOWN, DAC_OVERRIDE,
 * FOWNER, FSETID), becoming any of the ids (SETUID, SETGID), ending processes of the ids (KILL), and giving up even
 * these capabilities (SETPCAP).
 *
 * Root lacks the other capabilities of containers.  MKNOD, AUDIT_WRITE and SETFCAP could do nothing: devices and the
 * audit socket do not exist, and files give no capabilities where no_new_privs is set.  Nor could NET_BIND_SERVICE and
 * NET_RAW: the network namespace belongs to the outer init.  SYS_CHROOT would let root reach another system call.
 */
static int keep_roots(struct plan *plan, struct csn_error *err)
{
        static const unsigned kept[] = { CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID,
                CAP_SETUID, CAP_SETPCAP };
        uint64_t bits = 0;
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                bits |= 1ULL << kept[i];
        if (bound_to(bits, err) < 0 || caps_set(bits, err) < 0)
                return -err->code;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_NO_NEW_PRIVS");
        umask(027);
        return note(plan, bits, bits, err);
}

int privs_child(struct plan *plan, struct csn_error *err)
{
        return plan->shape.flags & WIRE_ROOT ? keep_roots(plan, err) : privs_confined(plan, err);
}

/*
 * A child of a zygote enters a sandbox: setns(2) needs CAP_SYS_ADMIN over its namespaces, CAP_SYS_CHROOT for its
 * mounts, and CAP_SYS_PTRACE for access to its process 1.  All are capabilities in the outer init's user namespace and
 * reach nothing of the host.
 */
int privs_zygote(uint32_t uid, bool owns, struct csn_error *err)
{
        static const unsigned long kept[] = { CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE };
        size_t kept_n = owns ? 1 : ARRAY_LEN(kept);
        uint64_t bits = 0;
        for (size_t i = 0; i < kept_n; i++)
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
        struct __user_cap_data_struct sets[2] = {
                { .effective = (uint32_t)bits, .permitted = (uint32_t)bits, .inheritable = (uint32_t)bits }
        };
        if (syscall(SYS_capset, &header, sets) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "capset");
        for (size_t i = 0; i < kept_n; i++)
                if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "raise an ambient capability");
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_NO_NEW_PRIVS");
        return 0;
}
