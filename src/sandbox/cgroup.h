/* The folder of a supervisor in the hierarchies of cgroups; shared by cgroup_hierarchy.c and cgroup_leaf.c. */
#ifndef SANDBOX_CGROUP_H
#define SANDBOX_CGROUP_H

#include "sandbox/sandbox.h"

#define SPARE_MAX 16           /* leaves that are kept for later sandboxes */

/* v1 has a hierarchy for each of these; v2 has one, at MEMORY. */
enum { MEMORY, CPU, PIDS, CPUACCT, FREEZER, HIERARCHIES };

struct cgroup_base {
        enum wire_cgroup mode;
        unsigned controllers;
        int dir[HIERARCHIES];      /* our folder by controller; on v2 only the first */
        char *paths;
        struct cgroup_leaf spare[SPARE_MAX];
        size_t spare_n, spare_max;
        size_t kept_n, kept_max;   /* descriptors of files */
};

/* Send SIGKILL to all processes of one cgroup. */
void cgroup_kill_members(int dir_fd);

#endif
