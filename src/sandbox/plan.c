/*
 * The plan: all decisions about one sandbox, from the request and the abilities of the host.  This code does not
 * access the system, so every decision can be tested without rights.
 */
#include "sandbox/sandbox.h"

#include <sched.h>
#include <sys/resource.h>

/* Files and folders of the host seen inside, read-only.  A missing entry is left out unless required. */
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

const char *const plan_devices[PLAN_DEVICES + 1] = { "null", "zero", "full", "random", "urandom", NULL };

/* Files with data or controls of the whole host.  Missing files are skipped. */
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

struct range {
        const char *field;
        uint64_t value, min, max;
};

static int check_ranges(const struct range *rows, size_t n, struct csn_error *err)
{
        for (size_t i = 0; i < n; i++)
                if (rows[i].value < rows[i].min || rows[i].value > rows[i].max)
                        return err_field(err, rows[i].field, "%s is %llu; %llu to %llu are possible", rows[i].field,
                                         (unsigned long long)rows[i].value, (unsigned long long)rows[i].min,
                                         (unsigned long long)rows[i].max);
        return 0;
}

#define DAY_MS (24ULL * 3600 * 1000)
#define CPU_RANGE 10, 1024 * 1000
#define MEMORY_RANGE 4 * MIB, 1024 * GIB
#define PIDS_RANGE 1, 100000
#define VOLUME_FILE_MAX (16 * 1024 * GIB)  /* of ext4 */

static int check_shape(const struct wire_shape *shape, struct csn_error *err)
{
        const struct range rows[] = {
                { "disk_bytes", shape->disk_bytes, 4 * KIB, 1024 * GIB },
                { "disk_files", shape->disk_files, 4, 100000000 },
                { "tmp_bytes", shape->tmp_bytes, 4 * KIB, 1024 * GIB },
                { "memory_bytes", shape->memory_bytes, MEMORY_RANGE },
                { "cpu_milli", shape->cpu_milli, CPU_RANGE },
                { "pids", shape->pids, PIDS_RANGE },
        };
        return check_ranges(rows, ARRAY_LEN(rows), err);
}

static int check_limits(const struct wire_limits *limits, struct csn_error *err)
{
        const struct range rows[] = {
                { "wall_ms", limits->wall_ms, 1, DAY_MS },
                { "waiting_ms", limits->waiting_ms, 0, DAY_MS },
                { "cpu_ms", limits->cpu_ms, 0, DAY_MS * 64 },
                { "memory_bytes", limits->memory_bytes, MEMORY_RANGE },
                { "cpu_milli", limits->cpu_milli, CPU_RANGE },
                { "pids", limits->pids, PIDS_RANGE },
                { "open_files", limits->open_files, 16, 1000000 },
                { "background_ms", limits->background_ms, 0, DAY_MS },
        };
        return check_ranges(rows, ARRAY_LEN(rows), err);
}

/* Process 1 is ours and counts too. */
static struct cgroup_limits cgroup_of(uint64_t memory_bytes, uint64_t cpu_milli, uint64_t pids)
{
        return (struct cgroup_limits){ .memory_bytes = memory_bytes, .cpu_milli = cpu_milli, .pids = pids + 1 };
}

int plan_limit(struct plan *plan, const struct wire_limits *limits, struct csn_error *err)
{
        if (check_limits(limits, err) < 0)
                return -CSN_E_INPUT;
        plan->limits = *limits;
        plan->cgroup = cgroup_of(limits->memory_bytes, limits->cpu_milli, limits->pids);
        return 0;
}

/* Without all requirements root inside is refused, instead of held by weaker isolation. */
static int check_root(const struct wire_shape *shape, const struct abilities *abilities, struct csn_error *err)
{
        if (!(shape->flags & WIRE_ROOT))
                return 0;
        if (!(shape->flags & WIRE_PERSISTENT))
                return err_field(err, "flags", "root inside is for persistent sandboxes only");
        if (abilities->rootless)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "root inside needs ids of the host beside one's own, and mounts that map them: start caissond as root");
        if (!abilities->id_blocks)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "root inside needs %d ids of the host: set engine.uid_count to %d or more", UID_BLOCK,
                        2 * UID_BLOCK);
        /* Without a controller rlimits count for each uid, and root can use many uids. */
        if (abilities->controllers != WIRE_CTL_ALL)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "root inside needs the cgroup controllers for memory, cpu and pids, because rlimits do not hold it: "
                        "mount the controllers, and let this process write to its cgroup");
        return 0;
}

/* Mapped owners of files, and mounts of the host, need root of the host. */
static int check_mounts(const struct wire_shape *shape, const struct abilities *abilities, struct csn_error *err)
{
        if (abilities->rootless && shape->volumes_n)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "volumes need file systems that only root of the host can mount: start caissond as root");
        if (abilities->rootless && shape->devices)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "granted devices need mounts that only root of the host can make: start caissond as root");
        return 0;
}

int plan_make(const struct wire_shape *shape, const struct abilities *abilities, struct plan *ret,
        struct csn_error *err)
{
        if (check_shape(shape, err) < 0)
                return -CSN_E_INPUT;
        if (check_mounts(shape, abilities, err) < 0)
                return -CSN_E_UNSUPPORTED;
        if (shape->flags & WIRE_LANDLOCK_REQUIRED && !abilities->landlock_abi)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                               "Landlock is required and this kernel has none: boot with lsm=landlock,... (Linux 5.13 "
                               "or later), or set landlock to \"prefer\"");
        if (shape->flags & WIRE_CGROUP_REQUIRED && abilities->controllers != WIRE_CTL_ALL)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "cgroup limits are required and%s%s%s cannot be had here: run as root, or inside a delegated "
                        "cgroup (systemd-run --user --scope -p Delegate=yes ...), or set cgroup to \"prefer\"",
                        abilities->controllers & WIRE_CTL_MEMORY ? "" : " memory",
                        abilities->controllers & WIRE_CTL_CPU ? "" : " cpu",
                        abilities->controllers & WIRE_CTL_PIDS ? "" : " pids");
        if (check_root(shape, abilities, err) < 0)
                return -err->code;

        *ret = (struct plan){
                .shape = *shape,
                .abilities = *abilities,
                .clone_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                               CLONE_NEWCGROUP,
                .landlock = abilities->landlock_abi > 0 && !(shape->flags & WIRE_LANDLOCK_OFF),
                .degraded = abilities->controllers != WIRE_CTL_ALL,
                .cgroup = cgroup_of(shape->memory_bytes, shape->cpu_milli, shape->pids),
                .proxy = -1,
                .tool_socket = -1,
                .sysctl_dir = -1,
                .modules_dir = -1,
                .lower = -1,
        };
        memset(ret->volumes, 0xff, sizeof ret->volumes);   /* every descriptor -1 */
        memset(ret->devices, 0xff, sizeof ret->devices);
        ret->shape.label = NULL;
        ret->boundary = (struct wire_boundary){ .capabilities = UINT64_MAX }; /* until privs_child() has counted */
        return 0;
}

size_t plan_rlimits(const struct plan *plan, struct plan_rlimit limits[PLAN_RLIMITS_MAX])
{
        const struct wire_limits *of = &plan->limits;
        uint64_t cpu_s = of->cpu_ms ? (of->cpu_ms + 999) / 1000 + 1
                                    : (of->wall_ms * ((of->cpu_milli + 999) / 1000) + 999) / 1000 + 2;
        /*
         * With a pids controller RLIMIT_NPROC is only a second barrier, without a controller the limit itself.
         * Since Linux 5.14 the count is kept for each user namespace, including process 1.
         */
        uint64_t nproc = plan->abilities.controllers & WIRE_CTL_PIDS ? of->pids * 4 : of->pids + 1;
        /*
         * Address space stays free (node and WebAssembly reserve tens of GiB without use).  Without a
         * memory controller, private writable memory of each process is bounded instead (Linux 4.7).
         */
        uint64_t data = plan->abilities.controllers & WIRE_CTL_MEMORY ? RLIM_INFINITY : of->memory_bytes;
        /* A volume has a quota of its own, in its file system, and may be larger than the home directory. */
        uint64_t file = plan->shape.volumes_n ? VOLUME_FILE_MAX : plan->shape.disk_bytes;
        const struct plan_rlimit rows[] = {
                { RLIMIT_CORE, true, 0, 0 },
                { RLIMIT_NOFILE, false, of->open_files, of->open_files },
                { RLIMIT_NPROC, false, nproc, nproc },
                { RLIMIT_FSIZE, false, file, file },
                { RLIMIT_MEMLOCK, true, 8 * MIB, 8 * MIB },
                { RLIMIT_SIGPENDING, true, 1024, 1024 },
                { RLIMIT_MSGQUEUE, true, 64 * KIB, 64 * KIB },
                { RLIMIT_STACK, true, 8 * MIB, 64 * MIB },
                { RLIMIT_RTPRIO, true, 0, 0 },
                { RLIMIT_NICE, true, 0, 0 },
                { RLIMIT_RTTIME, true, 1000000, 1000000 },
                { RLIMIT_DATA, false, data, data },
                { RLIMIT_CPU, false, cpu_s, cpu_s },
        };
        _Static_assert(ARRAY_LEN(rows) <= PLAN_RLIMITS_MAX, "room for every rlimit");
        memcpy(limits, rows, sizeof rows);
        return ARRAY_LEN(rows);
}
