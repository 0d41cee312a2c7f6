/*
 * The order in which the layers go on (security.md (b)): namespaces, mounts, privileges, Landlock, and the
 * system call filter last.  rlimits belong to the program alone and follow in init.c, before its exec.
 */
#include "sandbox/sandbox.h"

static const struct {
        const char *name;
        int (*apply)(struct plan *plan, struct csn_error *err);
} steps[] = {
        { "namespaces", ns_child },
        { "file system", mount_child },
        { "inner namespace", ns_lock_child },
        { "privileges", privs_child },
        { "Landlock", landlock_child },
        { "seccomp", seccomp_child },
};

int apply_child(struct plan *plan, struct csn_error *err)
{
        for (size_t i = 0; i < ARRAY_LEN(steps); i++)
                if (steps[i].apply(plan, err) < 0)
                        return err_wrap(err, "sandbox step \"%s\"", steps[i].name);
        return 0;
}
