/*
 * The plan: what will be done for one sandbox, decided from the request and from what the host can do.
 * Nothing here touches the system, so that every decision can be tested without rights.
 */
#include "sandbox/sandbox.h"

#include <sched.h>
#include <sys/resource.h>

/* What is seen of the host, read-only.  Entries that are not required are left out when they are missing. */
const struct plan_bind plan_binds[] = {
        { "/usr", "usr", true },
        { "/etc/alternatives", "etc/alternatives", false },
        { "/etc/fonts", "etc/fonts", false },
        { "/etc/ld.so.cache", "etc/ld.so.cache", false },
        { "/etc/localtime", "etc/localtime", false },
        { "/etc/matplotlibrc", "etc/matplotlibrc", false },
        { "/etc/mime.types", "etc/mime.types", false },
        { "/etc/protocols", "etc/protocols", false },
        { "/etc/services", "etc/services", false },
        { "/etc/ssl/certs", "etc/ssl/certs", false },
};
const size_t plan_binds_n = ARRAY_LEN(plan_binds);

const char *const plan_devices[] = { "null", "zero", "full", "random", "urandom", NULL };

/* Files that tell or change something of the whole host.  Missing ones are skipped. */
const char *const plan_masked_files[] = {
        "kcore", "keys", "key-users", "latency_stats", "timer_list", "timer_stats", "sched_debug", "kmsg",
        "kallsyms", "modules", "kpagecount", "kpageflags", "kpagecgroup", "slabinfo", "vmallocinfo",
        "allocinfo", "sysrq-trigger", "interrupts", "softirqs", "iomem", "ioports", "mtrr", "mdstat", "swaps",
        "partitions", "diskstats", "cmdline", "config.gz", "locks", "consoles", "pagetypeinfo", "buddyinfo",
        NULL,
};

const char *const plan_masked_folders[] = {
        "acpi", "asound", "scsi", "bus", "fs", "irq", "driver", "tty/driver", "dynamic_debug", "pressure", NULL,
};

static int check_range(const char *field, uint64_t value, uint64_t min, uint64_t max, struct csn_error *err)
{
        if (value >= min && value <= max)
                return 0;
        return err_field(err, field, "%s is %llu; %llu to %llu are possible", field, (unsigned long long)value,
                         (unsigned long long)min, (unsigned long long)max);
}

#define DAY_MS (24ULL * 3600 * 1000)

static int check_numbers(const struct wire_start *start, struct csn_error *err)
{
        const struct {
                const char *field;
                uint64_t value, min, max;
        } rows[] = {
                { "wall_ms", start->wall_ms, 1, DAY_MS },
                { "cpu_ms", start->cpu_ms, 0, DAY_MS * 64 },
                { "cpu_milli", start->cpu_milli, 10, 1024 * 1000 },
                { "memory_bytes", start->memory_bytes, 4 * MIB, 1024 * GIB },
                { "pids", start->pids, 1, 100000 },
                { "disk_bytes", start->disk_bytes, 4 * KIB, 1024 * GIB },
                { "disk_files", start->disk_files, 4, 100000000 },
                { "tmp_bytes", start->tmp_bytes, 4 * KIB, 1024 * GIB },
                { "open_files", start->open_files, 16, 1000000 },
                { "background_ms", start->background_ms, 0, DAY_MS },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (check_range(rows[i].field, rows[i].value, rows[i].min, rows[i].max, err) < 0)
                        return -CSN_E_INPUT;
        return 0;
}

int plan_make(const struct wire_start *start, const struct abilities *abilities, const char *runner_dir,
              struct plan *ret, struct csn_error *err)
{
        if (check_numbers(start, err) < 0)
                return -CSN_E_INPUT;
        if (start->flags & WIRE_LANDLOCK_REQUIRED && !abilities->landlock_abi)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                               "Landlock is required and this kernel has none: boot with lsm=landlock,... (Linux 5.13 "
                               "or later), or set landlock to \"prefer\"");
        if (start->flags & WIRE_CGROUP_REQUIRED && abilities->controllers != WIRE_CTL_ALL)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                               "cgroup limits are required and%s%s%s cannot be had here: run as root, or inside a delegated "
                               "cgroup (systemd-run --user --scope -p Delegate=yes ...), or set cgroup to \"prefer\"",
                               abilities->controllers & WIRE_CTL_MEMORY ? "" : " memory",
                               abilities->controllers & WIRE_CTL_CPU ? "" : " cpu",
                               abilities->controllers & WIRE_CTL_PIDS ? "" : " pids");

        *ret = (struct plan){
                .start = *start,
                .abilities = *abilities,
                .clone_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                               CLONE_NEWCGROUP,
                .runner_dir = runner_dir,
                .runner_tree = -1,
                .landlock = abilities->landlock_abi > 0 && !(start->flags & WIRE_LANDLOCK_OFF),
                .degraded = abilities->controllers != WIRE_CTL_ALL,
                /* Process 1 is ours and counts too. */
                .cgroup = { .memory_bytes = start->memory_bytes,
                            .cpu_milli = start->cpu_milli,
                            .pids = start->pids + 1 },
                .proxy = -1,
                .sysctl_dir = -1,
        };
        ret->boundary = (struct wire_boundary){
                .cgroup = abilities->cgroup,
                .controllers = abilities->controllers,
                .rootless = abilities->rootless,
                .own_uid = !abilities->rootless,
                .capabilities = UINT64_MAX,   /* until privs_child() has counted them */
        };
        return 0;
}

size_t plan_rlimits(const struct plan *plan, struct plan_rlimit limits[PLAN_RLIMITS_MAX])
{
        const struct wire_start *start = &plan->start;
        uint64_t cpu_s = start->cpu_ms ? (start->cpu_ms + 999) / 1000 + 1
                                       : (start->wall_ms * ((start->cpu_milli + 999) / 1000) + 999) / 1000 + 2;
        /*
         * With a pids controller this is only a second net; without it, it is the limit itself.  The count
         * is kept for each user namespace since Linux 5.14, and process 1 is in it.
         */
        uint64_t nproc = plan->abilities.controllers & WIRE_CTL_PIDS ? start->pids * 4 : start->pids + 1;
        /*
         * Address space stays free (node and WebAssembly reserve tens of GiB without using them).  Without a
         * memory controller, private writable memory of each process is bounded instead (Linux 4.7).
         */
        uint64_t data = plan->abilities.controllers & WIRE_CTL_MEMORY ? RLIM_INFINITY : start->memory_bytes;
        const struct plan_rlimit rows[] = {
                { RLIMIT_CORE, 0, 0 },
                { RLIMIT_NOFILE, start->open_files, start->open_files },
                { RLIMIT_NPROC, nproc, nproc },
                { RLIMIT_FSIZE, start->disk_bytes, start->disk_bytes },
                { RLIMIT_MEMLOCK, 8 * MIB, 8 * MIB },
                { RLIMIT_SIGPENDING, 1024, 1024 },
                { RLIMIT_MSGQUEUE, 64 * KIB, 64 * KIB },
                { RLIMIT_STACK, 8 * MIB, 64 * MIB },
                { RLIMIT_RTPRIO, 0, 0 },
                { RLIMIT_NICE, 0, 0 },
                { RLIMIT_RTTIME, 1000000, 1000000 },
                { RLIMIT_DATA, data, data },
                { RLIMIT_CPU, cpu_s, cpu_s },
        };
        _Static_assert(ARRAY_LEN(rows) <= PLAN_RLIMITS_MAX, "room for every rlimit");
        memcpy(limits, rows, sizeof rows);
        return ARRAY_LEN(rows);
}
