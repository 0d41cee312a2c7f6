/* rlimits (prlimit(2)).  Never above the inherited limit: raising needs CAP_SYS_RESOURCE. */
#include "sandbox/sandbox.h"

#include <sys/resource.h>

/*
 * A single call, unless the new limit is above the old.  Without the right to raise limits the first call fails with
 * EPERM; with this right the old hard limit is restored.
 */
static int set(pid_t pid, const struct plan_rlimit *row)
{
        __rlimit_resource_t resource = (__rlimit_resource_t)row->resource;
        struct rlimit old, new = { .rlim_cur = row->soft, .rlim_max = row->hard };
        int r = prlimit(pid, resource, &new, &old);
        if (r < 0 && (errno != EPERM || prlimit(pid, resource, NULL, &old) < 0))
                return -1;
        if (new.rlim_max <= old.rlim_max)
                return r;
        new.rlim_max = old.rlim_max;
        if (new.rlim_cur > new.rlim_max)
                new.rlim_cur = new.rlim_max;
        return prlimit(pid, resource, &new, NULL);
}

int limits_set(const struct plan *plan, pid_t pid, enum limits_when when, struct csn_error *err)
{
        struct plan_rlimit rows[PLAN_RLIMITS_MAX];
        size_t n = plan_rlimits(plan, rows);
        for (size_t i = 0; i < n; i++)
                if ((when == LIMITS_ALL || rows[i].early == (when == LIMITS_EARLY)) && set(pid, &rows[i]) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "set rlimit %d", rows[i].resource);
        return 0;
}
