/* rlimits (prlimit(2)).  Never above what we inherited: raising needs CAP_SYS_RESOURCE. */
#include "sandbox/sandbox.h"

#include <sys/resource.h>

int limits_set(const struct plan *plan, pid_t pid, enum limits_when when, struct csn_error *err)
{
        struct plan_rlimit rows[PLAN_RLIMITS_MAX];
        size_t n = plan_rlimits(plan, rows);
        for (size_t i = 0; i < n; i++) {
                struct rlimit old, new = { .rlim_cur = rows[i].soft, .rlim_max = rows[i].hard };
                if ((when == LIMITS_EARLY && !rows[i].early) || (when == LIMITS_LATE && rows[i].early))
                        continue;
                if (prlimit(pid, (__rlimit_resource_t)rows[i].resource, NULL, &old) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "read rlimit %d", rows[i].resource);
                if (new.rlim_max > old.rlim_max)
                        new.rlim_max = old.rlim_max;
                if (new.rlim_cur > new.rlim_max)
                        new.rlim_cur = new.rlim_max;
                if (prlimit(pid, (__rlimit_resource_t)rows[i].resource, &new, NULL) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "set rlimit %d", rows[i].resource);
        }
        return 0;
}
