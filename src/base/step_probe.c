/*
 * Measures every callback of every event loop of this process, and logs each one that took longer than STEP_MAX_US
 * microseconds of the thread's time, as "loop: a step of ADDRESS took N us"; ADDRESS is the callback's offset in the
 * program.  A slow machine has a longer bound: after a long step the probe does a fixed piece of work several times,
 * and the bound grows by the ratio of the longest time to REFERENCE_US.  Only test programs (caissond-probed,
 * package-index-serve-probed) are linked with this file; docs/design/loop-steps.md has the bound.
 *
 * The time is CPU time, and time in blocking calls.  A callback that has not blocked (getrusage(2): no voluntary
 * context switch) takes its CPU time.  For another callback the time is wall-clock time without the time in which the
 * thread was ready and had no processor (/proc/thread-self/schedstat, Linux 2.6.9 with CONFIG_SCHED_INFO).
 */
#include "base/base.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

/* The CPU time of a piece of reference work on two quiet cores (2026-11-28), in microseconds. */
#define REFERENCE_US 650
#define REFERENCE_BYTES ((size_t)1 << 20)
#define REFERENCE_TIMES 5

static struct {
        int schedstat;
        int64_t began_ns, began_cpu_ns;
        long began_switches;
} probe;

static int64_t nanoseconds(clockid_t clock)
{
        struct timespec now;
        clock_gettime(clock, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static long voluntary_switches(void)
{
        struct rusage usage = { 0 };
        getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_nvcsw;
}

/* Nanoseconds for which the thread was ready and had no processor: the second number of schedstat. */
static uint64_t waited_ns(void)
{
        char text[100];
        uint64_t waited = 0;
        ssize_t n = pread(probe.schedstat, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = 0;
        if (sscanf(text, "%*u %" SCNu64, &waited) != 1)
                return 0;
        return waited;
}

/* CLOCK_MONOTONIC without the time in which the thread waited for a processor. */
static int64_t now_ns(void)
{
        return nanoseconds(CLOCK_MONOTONIC) - (int64_t)waited_ns();
}

/* The CPU time of a fixed piece of work: fresh pages, a write to each byte, and their return.  0: mmap(2) failed. */
static int64_t reference_ns(void)
{
        int64_t begin_ns = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
        uint32_t state = 1;
        unsigned char *bytes = mmap(NULL, REFERENCE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes == MAP_FAILED)
                return 0;
        for (volatile unsigned char *byte = bytes; byte < bytes + REFERENCE_BYTES; byte += 4)
                *byte = (unsigned char)(state = state * 1103515245 + 12345);
        munmap(bytes, REFERENCE_BYTES);
        return nanoseconds(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

/* The bound for the last step, in nanoseconds. */
static int64_t bound_ns(void)
{
        int64_t longest_ns = REFERENCE_US * 1000;
        for (int i = 0; i < REFERENCE_TIMES; i++) {
                int64_t took_ns = reference_ns();
                if (took_ns > longest_ns)
                        longest_ns = took_ns;
        }
        return STEP_MAX_US * longest_ns / REFERENCE_US;
}

static void on_begin(void)
{
        probe.began_switches = voluntary_switches();
        probe.began_cpu_ns = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
        probe.began_ns = now_ns();
}

static void on_end(const void *callback)
{
        extern const char __executable_start[];   /* ld(1) defines the symbol */
        bool blocked = voluntary_switches() != probe.began_switches;
        int64_t took_ns = blocked ? now_ns() - probe.began_ns
                                  : nanoseconds(CLOCK_THREAD_CPUTIME_ID) - probe.began_cpu_ns;
        if (took_ns > STEP_MAX_US * 1000 && took_ns > bound_ns())
                log_text(LOG_WARN, "loop: a step of 0x%tx took %" PRId64 " us",
                        (const char *)callback - __executable_start, took_ns / 1000);
}

static const struct loop_observer observer = { on_begin, on_end };

/* Before the daemon gives up its rights: the descriptor stays open. */
__attribute__((constructor)) static void start(void)
{
        probe.schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
        loop_set_observer(&observer);
}
