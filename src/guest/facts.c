/*
 * The kernel's report on this sandbox: the confinement of the guest's own process (proc(5)), which its programs
 * inherit, and the limits and counters of its cgroup (cgroups(7)), which a container sees read-only in /sys/fs/cgroup.
 */
#include "guest/guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>

#define CGROUP "/sys/fs/cgroup/"
#define FILE_MAX 8192
#define NO_LIMIT (1ULL << 60) /* v1 has no word for "none", only a number of this size */
#define KILL_LOOKS 1000       /* waits of 1 ms for the end of killed processes */

/* ---- files of the kernel ---- */

/* The text of a file; "" if unreadable. */
static const char *text_of(const char *path, char text[static FILE_MAX + 1])
{
        if (io_read_file(AT_FDCWD, path, text, FILE_MAX) < 0)
                text[0] = 0;
        return text;
}

/* The text after "KEY" at the begin of a line, without leading blanks; NULL: no such line. */
static const char *value_of(const char *text, const char *key)
{
        size_t len = strlen(key);
        for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                if (strncmp(line, key, len) == 0)
                        return line + len + strspn(line + len, " \t:");
        return NULL;
}

static uint64_t number_of(const char *text, const char *key)
{
        const char *value = value_of(text, key);
        return value ? strtoull(value, NULL, 10) : 0;
}

static uint64_t number_in(const char *path)
{
        char text[FILE_MAX + 1];
        return strtoull(text_of(path, text), NULL, 10);
}

/* ---- the process ---- */

static void see_process(struct guest_facts *facts)
{
        static const char *const sets[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };
        char text[FILE_MAX + 1];
        uint64_t all = 0;
        text_of("/proc/self/status", text);
        facts->seccomp = number_of(text, "Seccomp:");
        facts->no_new_privs = number_of(text, "NoNewPrivs:");
        facts->uid = geteuid();
        for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
                const char *set = value_of(text, sets[i]);
                all |= set ? strtoull(set, NULL, 16) : UINT64_MAX;
        }
        facts->capabilities = (uint64_t)__builtin_popcountll(all);
        facts->host_uid = facts->uid;
        /* Lines of "first inside, first outside, count"; without a user namespace a single line with all ids. */
        text_of("/proc/self/uid_map", text);
        for (char *line = text; *line;) {
                uint64_t inside = strtoull(line, &line, 10), outside = strtoull(line, &line, 10),
                         count = strtoull(line, &line, 10);
                facts->maps_ids |= inside != outside || count != UINT32_MAX;
                if (facts->uid >= inside && facts->uid - inside < count)
                        facts->host_uid = outside + (facts->uid - inside);
                line += strspn(line, " \t\n");
                if (!count)
                        break;
        }
        text_of("/proc/self/net/dev", text);
        for (const char *line = text; (line = strchr(line, '\n')); line++)
                facts->interfaces += strchr(line, ':') && strncmp(line + 1 + strspn(line + 1, " "), "lo:", 3) != 0 &&
                        memchr(line + 1, ':', strcspn(line + 1, "\n"));
}

/* Living processes beside the guest. */
static uint64_t count_processes(void)
{
        uint64_t n = 0;
        DIR *dir = opendir("/proc");
        for (const struct dirent *found = dir ? readdir(dir) : NULL; found; found = readdir(dir)) {
                char path[32], text[FILE_MAX + 1];
                long pid = strtol(found->d_name, NULL, 10);
                if (pid <= 1)
                        continue;
                snprintf(path, sizeof path, "/proc/%ld/stat", pid);
                const char *name_end = strrchr(text_of(path, text), ')');
                n += name_end && name_end[1] && !strchr("ZX", name_end[2]);
        }
        if (dir)
                closedir(dir);
        return n;
}

/*
 * kill(2) with -1 reaches each process that the guest may signal: all processes inside, for no program has another uid.
 * A fork(2) in progress fails, because its parent has a pending signal.
 */
static void kill_processes(void)
{
        const struct timespec pause = { .tv_nsec = 1000000 };
        kill(-1, SIGKILL);
        for (int i = 0; i < KILL_LOOKS && count_processes() > 0; i++)
                nanosleep(&pause, NULL);
}

/* ---- the cgroup ---- */

static void see_v2(struct guest_facts *facts)
{
        char text[FILE_MAX + 1];
        facts->cgroup = WIRE_CGROUP_V2;
        text_of(CGROUP "memory.max", text);
        facts->controllers |= text[0] && strncmp(text, "max", 3) != 0 ? WIRE_CTL_MEMORY : 0;
        text_of(CGROUP "cpu.max", text);
        facts->controllers |= text[0] && strncmp(text, "max", 3) != 0 ? WIRE_CTL_CPU : 0;
        text_of(CGROUP "pids.max", text);
        facts->controllers |= text[0] && strncmp(text, "max", 3) != 0 ? WIRE_CTL_PIDS : 0;
        text_of(CGROUP "cpu.stat", text);
        facts->cpu_us = number_of(text, "usage_usec");
        facts->throttled_us = number_of(text, "throttled_usec");
        text_of(CGROUP "memory.events", text);
        /* memory.peak exists since Linux 5.19.  On older kernels events show whether the limit was reached. */
        facts->memory_peak = number_in(CGROUP "memory.peak");
        if (!facts->memory_peak && (number_of(text, "oom ") || number_of(text, "max ")))
                facts->memory_peak = number_in(CGROUP "memory.max");
        facts->oom_kills = number_of(text, "oom_kill ");
        facts->pids_peak = number_in(CGROUP "pids.peak"); /* since Linux 6.1 */
        facts->pids_hits = number_of(text_of(CGROUP "pids.events", text), "max");
}

static void see_v1(struct guest_facts *facts)
{
        char text[FILE_MAX + 1];
        uint64_t memory = number_in(CGROUP "memory/memory.limit_in_bytes");
        bool joined = access(CGROUP "cpu,cpuacct", F_OK) == 0;
        if (!memory)
                return;
        facts->cgroup = WIRE_CGROUP_V1;
        facts->controllers |= memory < NO_LIMIT ? WIRE_CTL_MEMORY : 0;
        text_of(joined ? CGROUP "cpu,cpuacct/cpu.cfs_quota_us" : CGROUP "cpu/cpu.cfs_quota_us", text);
        facts->controllers |= text[0] && text[0] != '-' ? WIRE_CTL_CPU : 0;
        text_of(CGROUP "pids/pids.max", text);
        facts->controllers |= text[0] && strncmp(text, "max", 3) != 0 ? WIRE_CTL_PIDS : 0;
        facts->cpu_us = number_in(joined ? CGROUP "cpu,cpuacct/cpuacct.usage" : CGROUP "cpuacct/cpuacct.usage") / 1000;
        text_of(joined ? CGROUP "cpu,cpuacct/cpu.stat" : CGROUP "cpu/cpu.stat", text);
        facts->throttled_us = number_of(text, "throttled_time") / 1000;
        facts->memory_peak = number_in(CGROUP "memory/memory.max_usage_in_bytes");
        facts->oom_kills = number_of(text_of(CGROUP "memory/memory.oom_control", text), "oom_kill ");
        facts->pids_hits = number_of(text_of(CGROUP "pids/pids.events", text), "max");
}

static void see_usage(struct guest_facts *facts)
{
        struct rusage ended;
        struct statvfs home;
        if (access(CGROUP "cgroup.controllers", F_OK) == 0)
                see_v2(facts);
        else
                see_v1(facts);
        if (!facts->cpu_us && getrusage(RUSAGE_CHILDREN, &ended) == 0)
                facts->cpu_us = (uint64_t)(ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * 1000000 +
                        (uint64_t)(ended.ru_utime.tv_usec + ended.ru_stime.tv_usec);
        if (statvfs(".", &home) == 0) {
                facts->home_full = home.f_blocks > 0 && home.f_bfree == 0;
                facts->inodes_full = home.f_files > 0 && home.f_ffree == 0;
        }
}

/* ---- the operation ---- */

static int facts_take(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err)
{
        (void)op, (void)bytes, (void)len;
        return err_set(err, CSN_E_PROTOCOL, 0, "a question for facts was sent a packet");
}

static void facts_room(struct operation *op)
{
        (void)op;
}

static void facts_closed(struct operation *op)
{
        operation_release(op);
        free(op);
}

void facts_begin(struct guest *guest, bool kills, int *sock)
{
        static const struct operation_kind kind = { facts_take, facts_room, facts_closed };
        struct operation *op = mem_alloc(sizeof *op);
        struct guest_facts facts = { 0 };
        struct buf packet;
        if (!operation_open(op, guest, &kind, sock))
                return;
        facts.processes = count_processes();
        if (kills)
                kill_processes();
        see_process(&facts);
        see_usage(&facts);
        buf_init(&packet, WIRE_MAX);
        if (guest_put_facts(&packet, &facts))
                operation_send(op, packet.bytes, packet.len, NULL, 0);
        buf_done(&packet);
        op->over = true;
}
