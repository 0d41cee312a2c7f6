/*
 * One zygote, from its start until its cgroup is free again.  zygotes.c starts, serves and ends zygotes; zygote_table.c
 * finds zygotes by number.
 */
#ifndef SUPERVISOR_ZYGOTE_H
#define SUPERVISOR_ZYGOTE_H

#include "supervisor/domain.h"

/* A member of supervisor.zygotes until the zygote is freed. */
struct zygote {
        struct zygote *next;
        struct supervisor *sup;
        struct domain *domain;     /* of which the zygote is a user */
        uint32_t id;
        pid_t pid;                 /* in the outer init's pid namespace; 0: asked for, not there yet */
        int pid_fd;
        bool serves;
        bool told;                 /* GONE went out */
        unsigned asked;            /* fork requests without an answer; `deadline` is that of the oldest */
        struct watch watch;
        struct send_queue requests;
        struct cgroup_leaf leaf;
        struct timer deadline, closing;
        /* Of a zygote with foreign code: its forks so far, and from when on and from which use its CPU time counts. */
        struct timer audit;
        uint64_t forks, serving_us, cpu_us;
};

/* The zygote with this number, or NULL. */
struct zygote *zygote_find(struct supervisor *sup, uint32_t id);

#endif
