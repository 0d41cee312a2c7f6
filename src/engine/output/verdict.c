/* How a run ended, decided from counters and wait status in one place; see verdict.h. */
#include "engine/output/verdict.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static bool ended_by(const struct evidence *evidence, int signal)
{
        int status = (int)evidence->how->status;
        return evidence->how->has_status && WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

static bool ended_well(const struct evidence *evidence)
{
        int status = (int)evidence->how->status;
        return evidence->how->has_status && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool ended_by_signal(const struct evidence *evidence)
{
        return evidence->how->has_status && WIFSIGNALED((int)evidence->how->status);
}

/* A program may clean up after ENOSPC and leave free space; its exception still shows the error. */
static bool disk_was_full(const struct evidence *evidence)
{
        int number = evidence->error_errno;
        return evidence->home_full || evidence->inodes_full || number == ENOSPC || number == EDQUOT || number == EFBIG;
}

static bool memory_refused(const struct evidence *evidence)
{
        /* Without a memory controller the limit is an rlimit, which refuses memory: the program sees MemoryError. */
        return evidence->error_type && strcmp(evidence->error_type, "MemoryError") == 0 &&
               !(evidence->boundary->controllers & WIRE_CTL_MEMORY);
}

/* Without a pids controller the limit is an rlimit, which does not count refusals; the program sees EAGAIN. */
static bool fork_refused(const struct evidence *evidence)
{
        return evidence->error_errno == EAGAIN && !(evidence->boundary->controllers & WIRE_CTL_PIDS);
}

/*
 * A controller kills for the limit only at the limit; the kernel charges at most 8 pages beyond the limit at once.  A
 * program that stayed below died of a limit above its own cgroup, or of a host without memory.
 */
#define MEMORY_SLACK MIB
static bool host_lacked_memory(const struct evidence *evidence)
{
        const struct wire_exit *how = evidence->how;
        return how->reasons & WIRE_MEMORY && evidence->boundary->controllers & WIRE_CTL_MEMORY && how->memory_peak &&
               how->memory_peak + MEMORY_SLACK < evidence->limits->memory_bytes;
}

/* In this order: our own acts, then the kernel's, then the program's. */
int verdict_status(const struct evidence *evidence)
{
        const struct wire_exit *how = evidence->how;
        bool well = ended_well(evidence);
        if (host_lacked_memory(evidence))
                return status_CAPACITY;
        if (how->reasons & WIRE_MEMORY || (!well && memory_refused(evidence)))
                return status_MEMORY_EXCEEDED;
        if (evidence->output_killed)
                return status_OUTPUT_LIMIT;
        if (evidence->cancelled)
                return status_CANCELLED;
        if ((how->pids_hits && (!well || how->reasons & (WIRE_LEFTOVERS | WIRE_WALL | WIRE_CPU))) ||
            (!well && fork_refused(evidence)))
                return status_PROCESS_LIMIT;
        if (how->reasons & (WIRE_WALL | WIRE_CPU) || ended_by(evidence, SIGXCPU) || evidence->quota_ms)
                return status_TIMEOUT;
        if (evidence->syntax)
                return status_SYNTAX_ERROR;
        if (ended_by(evidence, SIGXFSZ) || (!well && disk_was_full(evidence)))
                return status_DISK_EXCEEDED;
        /* The parser died of the text: 100,000 brackets crash some versions of Python. */
        if (!evidence->parsed && !evidence->channel_broken && ended_by_signal(evidence))
                return status_SYNTAX_ERROR;
        if (ended_by_signal(evidence) || !how->has_status)
                return status_CRASHED;
        return well ? status_COMPLETED : status_FAILED;
}

/* "30 seconds", "1.5 seconds", as in the message of every earlier system. */
static const char *seconds(uint64_t ms, struct arena *arena)
{
        if (ms % 1000 == 0)
                return arena_text(arena, "%" PRIu64 " second%s", ms / 1000, ms == 1000 ? "" : "s");
        char text[32];
        snprintf(text, sizeof text, "%" PRIu64 ".%03u", ms / 1000, (unsigned)(ms % 1000));
        text[strspn(text, "0123456789.")] = 0;
        for (size_t len = strlen(text); len && text[len - 1] == '0'; len--)
                text[len - 1] = 0;
        return arena_text(arena, "%s seconds", text);
}

static const char *size_text(uint64_t bytes, struct arena *arena)
{
        char text[32];
        size_print(bytes, text, sizeof text);
        return arena_text(arena, "%s", text);
}

const char *verdict_message(int status, const struct evidence *evidence, struct arena *arena)
{
        const struct limits *limits = evidence->limits;
        const struct wire_exit *how = evidence->how;
        switch (status) {
        case status_TIMEOUT:
                if (how->reasons & WIRE_WALL)
                        return arena_text(arena, "Execution timeout after %s", seconds(limits->wall_ms, arena));
                if (evidence->quota_ms)
                        return arena_text(arena, "CPU time of the key is used up: it allows %s in 24 hours",
                                          seconds(evidence->quota_ms, arena));
                return arena_text(arena, "CPU time limit of %s reached",
                                  seconds(limits->cpu_ms ? limits->cpu_ms : how->cpu_us / 1000, arena));
        case status_CAPACITY:
                return arena_text(arena,
                        "The host had no memory left, and the kernel ended the run at %s of the %s that it may use",
                        size_text(how->memory_peak, arena), size_text(limits->memory_bytes, arena));
        case status_MEMORY_EXCEEDED:
                return arena_text(arena, "Memory limit of %s exceeded", size_text(limits->memory_bytes, arena));
        case status_DISK_EXCEEDED:
                if (evidence->inodes_full && !evidence->home_full)
                        return arena_text(arena, "File limit of %" PRIu64 " files reached", limits->disk_files);
                if (!evidence->home_full && evidence->error_errno == ENOSPC)
                        return evidence->has_volumes
                                ? "No space left in a volume, the home directory, /tmp or /dev/shm"
                                : "No space left in the home directory, /tmp or /dev/shm";
                return arena_text(arena, "Disk limit of %s reached", size_text(limits->disk_bytes, arena));
        case status_PROCESS_LIMIT:
                return arena_text(arena, "Process limit of %" PRIu64 " processes and threads reached", limits->pids);
        case status_OUTPUT_LIMIT:
                return arena_text(arena, "Output limit of %" PRIu64 " bytes per stream exceeded", limits->output_bytes);
        case status_CANCELLED:
                return "The run was cancelled";
        case status_CRASHED:
                if (!how->has_status)
                        return "The sandbox ended before the program did";
                return arena_text(arena, "The program was ended by signal %d (%s)", WTERMSIG((int)how->status),
                        sigabbrev_np(WTERMSIG((int)how->status)) ? sigabbrev_np(WTERMSIG((int)how->status)) : "?");
        case status_SYNTAX_ERROR:
                return evidence->syntax ? NULL : "The program text is too much for the parser, which crashed";
        case status_FAILED:
                return arena_text(arena, "Process exited with code %d", WEXITSTATUS((int)how->status));
        default:
                return NULL;
        }
}

const char *verdict_time_limit(const struct evidence *evidence)
{
        return evidence->how->reasons & WIRE_WALL ? "wall_ms" : evidence->quota_ms ? "cpu_ms_per_day" : "cpu_ms";
}

/*
 * Whether a program at its time-out was computing or waiting.  Its maximum is its share of the wall time on one thread,
 * less the throttled time: a loop uses nearly all of the maximum, and a sleep nothing.  Time on a run queue is no
 * sleep.  If that time is unknown and the host was busy, a loop got only its part (fair_milli); a program with about
 * this use, or with a use between the two, has both causes named.
 */
static const char *timeout_cause(const struct evidence *evidence, struct arena *arena)
{
        const struct limits *limits = evidence->limits;
        const struct wire_exit *how = evidence->how;
        uint64_t share = limits->cpu_milli && limits->cpu_milli < 1000 ? limits->cpu_milli : 1000;
        uint64_t allowed_us = how->wall_us / 1000 * share;
        bool throttled = how->throttled_us * 10 > how->wall_us;
        /* CPU time and time on a run queue; the rest of the wall time is sleep.  0: no /proc/PID/schedstat. */
        uint64_t runnable_us = how->waited_us ? how->cpu_us + how->waited_us : 0;
        bool computed = how->cpu_us * 2 > allowed_us || runnable_us * 4 > how->wall_us * 3;
        if (computed && (share < 1000 || throttled))
                return arena_text(arena,
                        "It was computing all the time (CPU, not sleep), as much as its share of the processors, cpu_milli=%" PRIu64
                        ", let it: check for infinite loops, optimize, or raise the share.",
                        limits->cpu_milli);
        if (computed && how->cpu_us * 2 <= allowed_us)
                return "It was computing all the time (CPU, not sleep), with less than half of a CPU, because this host was busy with other programs: check for infinite loops or optimize.";
        if (computed)
                return "It was computing all the time (CPU, not sleep): check for infinite loops or optimize.";
        uint64_t fair_us =
                evidence->fair_milli ? min_u64(allowed_us, how->wall_us / 1000 * evidence->fair_milli) : allowed_us;
        if (runnable_us && runnable_us * 2 < how->wall_us)
                return "It used little CPU time: it was waiting (sleep, input, a lock, a child).";
        if (throttled || how->cpu_us * 10 > allowed_us || how->cpu_us * 4 > fair_us)
                return arena_text(arena,
                        "It used less CPU time than it might: it was waiting (sleep, input, a lock, a child), or it was computing and %s.",
                        throttled ? "was held back by its share of the processors"
                                  : "this host was busy with other programs");
        return "It used little CPU time: it was waiting (sleep, input, a lock, a child).";
}

/* Easily forgotten parts of a language's syntax. */
static const char *syntax_of(const char *language)
{
        static const struct { const char *title, *parts; } rows[] = {
                { "Python", "indentation, brackets, colons" },
                { "Bash", "quotes, brackets, and the fi, done, esac or } of each block" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (strcmp(rows[i].title, language) == 0)
                        return rows[i].parts;
        return "brackets, quotes, commas";
}

const char *verdict_hint(int status, const struct evidence *evidence, struct arena *arena)
{
        const struct limits *limits = evidence->limits;
        const struct wire_exit *how = evidence->how;
        switch (status) {
        case status_TIMEOUT: {
                const char *cause = timeout_cause(evidence, arena);
                if (how->reasons & WIRE_WALL)
                        return arena_text(arena, "%s CPU time used: %.1f s. The limit is wall_ms=%" PRIu64 ".",
                                          cause, (double)how->cpu_us / 1e6, limits->wall_ms);
                if (evidence->quota_ms)
                        return arena_text(arena,
                                "It used %.1f s of CPU. The quota is cpu_ms_per_day=%" PRIu64
                                ", for all work of the key's tenant: try again when older work no longer counts.",
                                (double)how->cpu_us / 1e6, evidence->quota_ms);
                return arena_text(arena,
                        "It used %.1f s of CPU, not sleep: check for infinite loops or optimize. The limit is "
                        "cpu_ms=%" PRIu64 ".",
                        (double)how->cpu_us / 1e6, limits->cpu_ms);
        }
        case status_CAPACITY:
                return "The limit of the run was not reached: the memory of the cgroup in which the engine runs, or of the whole host, was. "
                       "The same run may succeed later, or with engine.running_max set lower.";
        case status_MEMORY_EXCEEDED:
                if (!(how->reasons & WIRE_MEMORY))
                        return arena_text(arena,
                                "A request for memory was refused, because it went beyond memory_bytes=%" PRIu64
                                "; the peak before it was %s. "
                                "Process the data in parts, or raise the limit.",
                                limits->memory_bytes, size_text(how->memory_peak, arena));
                return arena_text(arena,
                        "The peak was %s of memory_bytes=%" PRIu64 ", "
                        "counting all processes and the files in /tmp, /dev/shm and the home directory. Process the data "
                        "in parts, or raise the limit.",
                        size_text(how->memory_peak, arena), limits->memory_bytes);
        case status_DISK_EXCEEDED:
                return arena_text(arena, "The home directory holds disk_bytes=%" PRIu64 " in at most "
                                         "disk_files=%" PRIu64 " files, /tmp and /dev/shm hold tmp_bytes=%" PRIu64
                                         " each%s. Write less, or delete what is no longer needed.",
                                  limits->disk_bytes, limits->disk_files, limits->tmp_bytes,
                                  evidence->has_volumes ? ", and a volume what it was made with (df /mnt/*)" : "");
        case status_PROCESS_LIMIT:
                return arena_text(arena, "A fork or a thread was refused %" PRIu64 " times at pids=%" PRIu64
                                         ". Use fewer workers, and wait for children.",
                                  how->pids_hits, limits->pids);
        case status_OUTPUT_LIMIT:
                return arena_text(arena, "Print less, or write to a file. The limit is output_bytes=%" PRIu64 ".",
                                  limits->output_bytes);
        case status_CRASHED:
                return ended_by(evidence, SIGSEGV)
                        ? "A segmentation fault comes from native code: an extension module, ctypes, or "
                          "recursion deeper than the stack."
                        : NULL;
        case status_SYNTAX_ERROR:
                return arena_text(arena, "%s syntax error. Check %s.", evidence->language,
                        syntax_of(evidence->language));
        default:
                return NULL;
        }
}
