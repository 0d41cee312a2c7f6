/*
 * The order in which the layers go on (security.md (b)): namespaces, mounts, privileges, Landlock, and the
 * system call filter last.  rlimits belong to the program alone and follow in init.c, before its exec.
 */
#include "sandbox/sandbox.h"

struct step {
        const char *name;
        int (*apply)(struct plan *plan, struct csn_error *err);
};

static const struct step steps[] = {
        { "namespaces", ns_child },
        { "file system", mount_child },
        { "inner namespace", ns_lock_child },
        { "privileges", privs_child },
        { "Landlock", landlock_child },
        { "seccomp", seccomp_child },
};

/* Namespaces and mounts are the sandbox' own; these three are a process' own. */
static const struct step joined[] = {
        { "privileges", privs_joined },
        { "Landlock", landlock_child },
        { "seccomp", seccomp_joined },
};

static int apply(const struct step *rows, size_t n, struct plan *plan, struct csn_error *err)
{
        for (size_t i = 0; i < n; i++)
                if (rows[i].apply(plan, err) < 0)
                        return err_wrap(err, "sandbox step \"%s\"", rows[i].name);
        return 0;
}

int apply_child(struct plan *plan, struct csn_error *err)
{
        return apply(steps, ARRAY_LEN(steps), plan, err);
}

int apply_joined(struct plan *plan, struct csn_error *err)
{
        return apply(joined, ARRAY_LEN(joined), plan, err);
}
