/*
 * The order of the isolation steps (docs/design/isolation.md, Order of steps): namespaces, mounts, privileges,
 * Landlock, and the system call filter last.  rlimits apply to the program only and follow in inner_init.c, before its
 * exec.
 *
 * Isolation shared by the sandbox comes first.  Per-process steps wait for the decision about process 1: an
 * ancestor of programs gives up the same rights as a program; a process 1 with no other duty than reaping gives
 * up more, in fewer steps.
 */
#include "sandbox/sandbox.h"

struct step {
        const char *name;
        int (*apply)(struct plan *plan, struct csn_error *err);
};

static const struct step isolation[] = {
        { "namespaces", ns_child },
        { "file system", mount_child },
        { "inner namespace", ns_lock_child },
};

static const struct step ancestor[] = {
        { "privileges", privs_child },
        { "Landlock", landlock_child },
        { "seccomp", seccomp_child },
};

static const struct step confined[] = {
        { "privileges", privs_confined },
        { "Landlock", landlock_child },
        { "seccomp", seccomp_confined },
};

/* A reaper opens and executes no file, so Landlock has no access to refuse, and the bounding set is not needed. */
static const struct step reaper[] = {
        { "privileges", privs_reaper },
        { "seccomp", seccomp_reaper },
};

static int apply(const struct step *rows, size_t n, struct plan *plan, struct csn_error *err)
{
        for (size_t i = 0; i < n; i++)
                if (rows[i].apply(plan, err) < 0) {
                        err_refused(err);
                        return err_wrap(err, "sandbox step \"%s\"", rows[i].name);
                }
        return 0;
}

int apply_isolation(struct plan *plan, struct csn_error *err)
{
        return apply(isolation, ARRAY_LEN(isolation), plan, err);
}

int apply_child(struct plan *plan, struct csn_error *err)
{
        return apply(ancestor, ARRAY_LEN(ancestor), plan, err);
}

int apply_reaper(struct plan *plan, struct csn_error *err)
{
        return apply(reaper, ARRAY_LEN(reaper), plan, err);
}

int apply_confined(struct plan *plan, struct csn_error *err)
{
        return apply(confined, ARRAY_LEN(confined), plan, err);
}
