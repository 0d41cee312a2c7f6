/*
 * Memory and CPU time of a process and all its descendants, read from /proc: the replacement for a missing
 * controller.  All processes of a sandbox are descendants of its process 1, because orphans are reparented to
 * process 1.
 *
 * The values are weaker than a controller's: a tree can grow between two polls, and file-backed and shared memory
 * counts once for each process with a mapping.  The record then says "degraded".
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <stdio.h>

#define DEPTH_MAX 64
#define PROCESSES_MAX 4096

static void add_process(pid_t pid, struct tree_usage *usage)
{
        char path[64], text[1024];
        unsigned long long pages = 0, shared = 0, utime = 0, stime = 0, cutime = 0, cstime = 0;
        snprintf(path, sizeof path, "/proc/%d/statm", pid);
        if (io_read_file(AT_FDCWD, path, text, sizeof text - 1) > 0 &&
                sscanf(text, "%*u %llu %llu", &pages, &shared) == 2)
                usage->memory_bytes += (pages > shared ? pages - shared : 0) * (uint64_t)sysconf(_SC_PAGESIZE);

        /* proc(5): fields 14 to 17, counted after the name, which may itself have blanks and brackets. */
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        if (io_read_file(AT_FDCWD, path, text, sizeof text - 1) <= 0)
                return;
        const char *after = strrchr(text, ')');
        if (after &&
                sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &utime, &stime,
                        &cutime, &cstime) == 4)
                usage->cpu_us += (utime + stime + cutime + cstime) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* The second number of /proc/PID/schedstat: nanoseconds in which the process was ready to run and had no CPU. */
static void add_delay(pid_t pid, struct tree_usage *usage)
{
        char path[64], text[128];
        unsigned long long delay_ns = 0;
        snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
        if (io_read_file(AT_FDCWD, path, text, sizeof text - 1) > 0 && sscanf(text, "%*u %llu", &delay_ns) == 1)
                usage->waited_us = max_u64(usage->waited_us, delay_ns / 1000);
}

static void walk(pid_t pid, unsigned depth, unsigned *left, struct tree_usage *usage)
{
        char path[64], list[16 * KIB];
        if (depth == DEPTH_MAX || *left == 0)
                return;
        (*left)--;
        usage->processes++;
        add_process(pid, usage);
        add_delay(pid, usage);
        /* Children of threads other than the first are rare, and come to process 1 at the death of their parent. */
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
        if (io_read_file(AT_FDCWD, path, list, sizeof list - 1) <= 0)
                return;
        char *save = NULL;
        for (char *word = strtok_r(list, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
                pid_t child = (pid_t)strtol(word, NULL, 10);
                if (child > 0)
                        walk(child, depth + 1, left, usage);
        }
}

void tree_usage(pid_t root, struct tree_usage *ret)
{
        unsigned left = PROCESSES_MAX;
        *ret = (struct tree_usage){ 0 };
        walk(root, 0, &left, ret);
}
