/* plan: every decision about a sandbox, without making one. */
#include "sandbox/sandbox.h"

#include <sched.h>
#include <sys/resource.h>

#include "tap.h"

static struct wire_shape usual(void)
{
        return (struct wire_shape){ .cpu_milli = 1000,
                .memory_bytes = 512 * MIB,
                .pids = 64,
                .disk_bytes = 100 * MIB,
                .disk_files = 4096,
                .tmp_bytes = 64 * MIB,
                .label = "x" };
}

static struct wire_limits fastpath_limits(void)
{
        return (struct wire_limits){ .wall_ms = 30000,
                .cpu_milli = 1000,
                .memory_bytes = 512 * MIB,
                .pids = 64,
                .open_files = 1024,
                .background_ms = 100 };
}

static const struct abilities full = { .landlock_abi = 7, .cgroup = WIRE_CGROUP_V2, .controllers = WIRE_CTL_ALL };
static const struct abilities poor = { .rootless = true };

static uint64_t rlimit_of(const struct plan *plan, int resource)
{
        struct plan_rlimit rows[PLAN_RLIMITS_MAX];
        size_t n = plan_rlimits(plan, rows);
        for (size_t i = 0; i < n; i++)
                if (rows[i].resource == resource)
                        return rows[i].soft;
        return 12345;
}

static void all_namespaces_are_always_made(void)
{
        const struct abilities *hosts[] = { &full, &poor };
        for (size_t i = 0; i < 2; i++) {
                struct plan plan;
                struct csn_error err;
                struct wire_shape start = usual();
                CHECK(plan_make(&start, hosts[i], &plan, &err) == 0);
                CHECK(plan.clone_flags == (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                                           CLONE_NEWUTS | CLONE_NEWCGROUP));
        }
}

static void nothing_is_reported_in_force_before_it_is(void)
{
        struct plan plan;
        struct csn_error err;
        struct wire_shape start = usual();
        CHECK(plan_make(&start, &full, &plan, &err) == 0);
        CHECK(!plan.boundary.seccomp && !plan.boundary.no_new_privs && !plan.boundary.landlock_abi &&
                !plan.boundary.namespaces);
        CHECK(plan.boundary.capabilities != 0);
        CHECK(!plan.boundary.cgroup && !plan.boundary.controllers && !plan.boundary.network && !plan.boundary.own_uid &&
                !plan.boundary.rootless);
        CHECK(!plan.boundary.host_uid && !plan.boundary.ids);
}

static void what_is_required_and_missing_is_refused_with_a_remedy(void)
{
        struct plan plan;
        struct csn_error err;
        struct wire_shape start = usual();
        start.flags = WIRE_LANDLOCK_REQUIRED;
        CHECK(plan_make(&start, &full, &plan, &err) == 0 && plan.landlock);
        CHECK(plan_make(&start, &poor, &plan, &err) == -CSN_E_UNSUPPORTED && strstr(err.text, "lsm=landlock"));
        start.flags = WIRE_CGROUP_REQUIRED;
        CHECK(plan_make(&start, &full, &plan, &err) == 0);
        CHECK(plan_make(&start, &poor, &plan, &err) == -CSN_E_UNSUPPORTED && strstr(err.text, "systemd-run --user"));
        struct abilities part = full;
        part.controllers = WIRE_CTL_MEMORY;
        CHECK(plan_make(&start, &part, &plan, &err) == -CSN_E_UNSUPPORTED && strstr(err.text, "pids"));
        CHECK(strstr(err.text, " memory cannot") == NULL);
}

static void root_is_planned_as_a_whole_or_refused_with_a_remedy(void)
{
        struct plan plan;
        struct csn_error err;
        struct wire_shape start = usual();
        struct abilities host = full;
        start.flags = WIRE_ROOT | WIRE_PERSISTENT;
        CHECK(plan_make(&start, &host, &plan, &err) == -CSN_E_UNSUPPORTED &&
                strstr(err.text, "engine.uid_count to 4000"));
        host.id_blocks = 1;
        CHECK(plan_make(&start, &host, &plan, &err) == 0);
        CHECK(plan.lower == -1 && !plan.boundary.overlay && plan.boundary.ids == 0);   /* nothing was done yet */
        CHECK(plan.clone_flags & CLONE_NEWUSER && plan.landlock);
        start.image_low = 7;
        CHECK(plan_make(&start, &host, &plan, &err) == 0 && plan.lower == -1);
        start.image_low = 0;
        host.controllers = WIRE_CTL_ALL & ~WIRE_CTL_PIDS;
        CHECK(plan_make(&start, &host, &plan, &err) == -CSN_E_UNSUPPORTED && strstr(err.text, "cgroup controllers"));
        host = full;
        host.id_blocks = 1;
        host.rootless = true;
        CHECK(plan_make(&start, &host, &plan, &err) == -CSN_E_UNSUPPORTED &&
                strstr(err.text, "start caissond as root"));
        host.rootless = false;
        start.flags = WIRE_ROOT;
        CHECK(plan_make(&start, &host, &plan, &err) ==
                -CSN_E_INPUT); /* a run has no guest that would keep root and user apart */
}

static void numbers_out_of_bounds_are_refused_by_name(void)
{
        struct plan plan;
        struct csn_error err;
#define BAD(member, value)                                                                                      \
        do {                                                                                                    \
                struct wire_shape shape = usual();                                                              \
                shape.member = (value);                                                                         \
                CHECK(plan_make(&shape, &full, &plan, &err) == -CSN_E_INPUT && strcmp(err.field, #member) == 0); \
        } while (0)
#define BAD_LIMIT(member, value)                                                                                \
        do {                                                                                                    \
                struct wire_limits limits = fastpath_limits();                                                     \
                limits.member = (value);                                                                        \
                CHECK(plan_limit(&plan, &limits, &err) == -CSN_E_INPUT && strcmp(err.field, #member) == 0);     \
        } while (0)
        BAD(cpu_milli, 0);
        BAD(memory_bytes, 1);
        BAD(pids, 0);
        BAD(pids, UINT64_MAX);
        BAD(disk_bytes, 0);
        BAD(disk_files, 0);
        BAD(tmp_bytes, 0);
        BAD_LIMIT(wall_ms, 0);
        BAD_LIMIT(wall_ms, UINT64_MAX);
        BAD_LIMIT(cpu_milli, 0);
        BAD_LIMIT(memory_bytes, 1);
        BAD_LIMIT(pids, 0);
        BAD_LIMIT(open_files, 3);
        BAD_LIMIT(waiting_ms, 24ULL * 3600 * 1000 + 1);
        BAD_LIMIT(background_ms, UINT64_MAX);
}

static void rlimits_stand_in_for_missing_controllers(void)
{
        struct plan plan;
        struct csn_error err;
        struct wire_shape shape = usual();
        struct wire_limits limits = fastpath_limits();
        CHECK(plan_make(&shape, &full, &plan, &err) == 0 && plan_limit(&plan, &limits, &err) == 0);
        CHECK(!plan.degraded && rlimit_of(&plan, RLIMIT_NPROC) == 256 &&
                rlimit_of(&plan, RLIMIT_DATA) == RLIM_INFINITY);
        CHECK(rlimit_of(&plan, RLIMIT_AS) == 12345);   /* never: node reserves more than any limit */
        CHECK(plan_make(&shape, &poor, &plan, &err) == 0 && plan_limit(&plan, &limits, &err) == 0);
        CHECK(plan.degraded && rlimit_of(&plan, RLIMIT_NPROC) == 65 && rlimit_of(&plan, RLIMIT_DATA) == 512 * MIB);
}

static void the_cpu_rlimit_is_behind_the_real_one(void)
{
        static const struct {
                uint64_t cpu_milli, cpu_ms, seconds;
        } rows[] = { { 1000, 0, 32 }, { 2000, 0, 62 }, { 2000, 1500, 3 } };
        struct plan plan;
        struct csn_error err;
        struct wire_shape shape = usual();
        CHECK(plan_make(&shape, &full, &plan, &err) == 0);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct wire_limits limits = fastpath_limits();
                limits.cpu_milli = rows[i].cpu_milli;
                limits.cpu_ms = rows[i].cpu_ms;
                CHECK(plan_limit(&plan, &limits, &err) == 0 && rlimit_of(&plan, RLIMIT_CPU) == rows[i].seconds);
        }
}

static void the_program_gets_the_limits_of_its_own_request(void)
{
        struct plan plan;
        struct csn_error err;
        struct wire_shape shape = usual();
        struct wire_limits limits = fastpath_limits();
        limits.memory_bytes = 64 * MIB;
        limits.cpu_milli = 250;
        limits.pids = 8;
        CHECK(plan_make(&shape, &full, &plan, &err) == 0 && plan.cgroup.memory_bytes == 512 * MIB);
        CHECK(plan_limit(&plan, &limits, &err) == 0);
        CHECK(plan.cgroup.memory_bytes == 64 * MIB && plan.cgroup.cpu_milli == 250 && plan.cgroup.pids == 9);
}

static void process_1_is_not_counted_against_the_program(void)
{
        struct plan plan;
        struct csn_error err;
        struct wire_shape start = usual();
        plan_make(&start, &full, &plan, &err);
        CHECK(plan.cgroup.pids == 65);
}

static void host_folders_are_read_only_system_parts(void)
{
        static const char *const never[] = { "/", "/root", "/home", "/var", "/run", "/proc", "/sys", "/dev", "/etc",
                "/tmp", "/etc/shadow", "/etc/machine-id", "/etc/ssh", "/etc/passwd" };
        for (size_t i = 0; i < plan_binds_n; i++)
                for (size_t k = 0; k < ARRAY_LEN(never); k++)
                        CHECK(strcmp(plan_binds[i].source, never[k]) != 0);
}

static void volumes_and_devices_need_root_of_the_host(void)
{
        struct plan plan;
        struct csn_error err;
        struct wire_shape start = usual();
        struct abilities host = full;
        struct plan_rlimit limits[PLAN_RLIMITS_MAX];
        CHECK(plan_make(&start, &host, &plan, &err) == 0);
        for (size_t i = 0; i < ARRAY_LEN(plan.volumes); i++)
                CHECK(plan.volumes[i] == -1);
        start.volumes_n = 1;
        CHECK(plan_make(&start, &host, &plan, &err) == 0);
        /* The quota of a volume is in its file system, and a file in it may be larger than the home directory. */
        size_t n = plan_rlimits(&plan, limits);
        for (size_t i = 0; i < n; i++)
                CHECK(limits[i].resource != RLIMIT_FSIZE || limits[i].hard > start.disk_bytes);
        host.rootless = true;
        CHECK(plan_make(&start, &host, &plan, &err) == -CSN_E_UNSUPPORTED && strstr(err.text, "volumes") &&
                strstr(err.text, "start caissond as root"));
        start.volumes_n = 0;
        start.devices = 1;
        CHECK(plan_make(&start, &host, &plan, &err) == -CSN_E_UNSUPPORTED && strstr(err.text, "devices") &&
                strstr(err.text, "start caissond as root"));
}

int main(void)
{
        RUN(all_namespaces_are_always_made);
        RUN(nothing_is_reported_in_force_before_it_is);
        RUN(what_is_required_and_missing_is_refused_with_a_remedy);
        RUN(root_is_planned_as_a_whole_or_refused_with_a_remedy);
        RUN(numbers_out_of_bounds_are_refused_by_name);
        RUN(rlimits_stand_in_for_missing_controllers);
        RUN(the_cpu_rlimit_is_behind_the_real_one);
        RUN(the_program_gets_the_limits_of_its_own_request);
        RUN(process_1_is_not_counted_against_the_program);
        RUN(host_folders_are_read_only_system_parts);
        RUN(volumes_and_devices_need_root_of_the_host);
        return tap_done();
}
