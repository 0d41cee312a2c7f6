#include "lang/python/pages.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* As iovec(3type). */
struct range {
        uint64_t start, len;   /* bytes */
};

struct mapping {
        struct range range;
        int rights;            /* PROT_* */
        bool of_file;
};

#define RANGES_MAX 16384
#define ENTRIES_AT_ONCE 4096

/* Documentation/admin-guide/mm/pagemap.rst */
#define PRESENT (1ULL << 63)
#define SWAPPED (1ULL << 62)
#define OF_FILE (1ULL << 61)
#define ALONE (1ULL << 56)

static struct mapping *mapped;
static struct range *taken;
static size_t mapped_n, taken_n;

/* Memory of its own, so that looking changes nothing of what is looked at. */
static void *fresh_memory(size_t size)
{
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                return NULL;
        return memory;
}

int pages_remember(struct csn_error *err)
{
        FILE *maps = fopen("/proc/self/maps", "re");
        char *line = NULL, rights[5];
        size_t size = 0;
        unsigned long long start, end;
        int name = 0;
        if (!maps)
                return err_set(err, CSN_E_SYSTEM, errno, "open /proc/self/maps");
        mapped_n = 0;
        mapped = mapped ? mapped : fresh_memory(RANGES_MAX * sizeof *mapped);
        while (mapped && mapped_n < RANGES_MAX && getline(&line, &size, maps) > 0)
                if (sscanf(line, "%llx-%llx %4s %*s %*s %*s %n", &start, &end, rights, &name) == 3 && rights[0] == 'r' &&
                    rights[3] == 'p' && strncmp(line + name, "[v", 2) != 0)
                        mapped[mapped_n++] = (struct mapping){ .range = { start, end - start }, .of_file = line[name] == '/',
                                                               .rights = PROT_READ | (rights[1] == 'w' ? PROT_WRITE : 0) |
                                                                         (rights[2] == 'x' ? PROT_EXEC : 0) };
        free(line);
        fclose(maps);
        return mapped ? 0 : err_set(err, CSN_E_SYSTEM, errno, "memory for the mappings");
}

static void add_page(struct range *found, size_t *n, uint64_t start, uint64_t page)
{
        struct range *last = *n ? &found[*n - 1] : NULL;
        if (last && start == last->start + last->len)
                last->len += page;
        else if (*n < RANGES_MAX)
                found[(*n)++] = (struct range){ start, page };
}

static uint64_t page_size(void)
{
        return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What the page table has of a range from its page `first` on.  Returns how many entries. */
static ssize_t read_entries(int table, const struct range *range, uint64_t first, uint64_t entries[ENTRIES_AT_ONCE], struct csn_error *err)
{
        uint64_t wanted = min_u64(range->len / page_size() - first, ENTRIES_AT_ONCE);
        ssize_t got = pread(table, entries, wanted * sizeof entries[0], (off_t)((range->start / page_size() + first) * sizeof entries[0]));
        if (got < (ssize_t)sizeof entries[0])
                return err_set(err, CSN_E_SYSTEM, errno, "read /proc/self/pagemap");
        return got / (ssize_t)sizeof entries[0];
}

static int look(int table, const struct range *range, struct range *found, size_t *n, struct csn_error *err)
{
        static uint64_t entries[ENTRIES_AT_ONCE];
        for (uint64_t done = 0; done < range->len / page_size();) {
                ssize_t got = read_entries(table, range, done, entries, err);
                if (got < 0)
                        return (int)got;
                for (size_t i = 0; i < (size_t)got; i++)
                        if (entries[i] & PRESENT && entries[i] & ALONE && !(entries[i] & OF_FILE))
                                add_page(found, n, range->start + (done + i) * page_size(), page_size());
                done += (uint64_t)got;
        }
        return 0;
}

/* What a mapping of a file has: pages of the file that are mapped now, and pages that are this process' own. */
static int look_at_text(int table, const struct mapping *one, bool *ret_file, bool *ret_own, struct csn_error *err)
{
        static uint64_t entries[ENTRIES_AT_ONCE];
        *ret_file = *ret_own = false;
        for (uint64_t done = 0; done < one->range.len / page_size();) {
                ssize_t got = read_entries(table, &one->range, done, entries, err);
                if (got < 0)
                        return (int)got;
                for (ssize_t i = 0; i < got; i++) {
                        *ret_file = *ret_file || (entries[i] & PRESENT && entries[i] & OF_FILE);
                        *ret_own = *ret_own || entries[i] & SWAPPED || (entries[i] & PRESENT && !(entries[i] & OF_FILE));
                }
                done += (uint64_t)got;
        }
        return 0;
}

int pages_tell(int fd, struct csn_error *err)
{
        struct range *found = fresh_memory(RANGES_MAX * sizeof *found);
        size_t n = 0;
        auto_fd table = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        if (!found || table < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open /proc/self/pagemap");
        for (size_t i = 0; i < mapped_n; i++)
                if (mapped[i].rights & PROT_WRITE && look(table, &mapped[i].range, found, &n, err) < 0)
                        return -err->code;
        return io_write_all(fd, found, n * sizeof *found) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "tell the pages") : 0;
}

int pages_take(const void *bytes, size_t len, struct csn_error *err)
{
        if (len % sizeof *taken != 0 || len > RANGES_MAX * sizeof *taken)
                return err_set(err, CSN_E_INPUT, 0, "pages: %zu bytes are no list of ranges", len);
        taken = mem_alloc(len + 1);
        memcpy(taken, bytes, len);
        taken_n = len / sizeof *taken;
        return 0;
}

static void touch(const struct range *range)
{
        volatile char *bytes = (volatile char *)(uintptr_t)range->start;
        for (size_t at = 0; at < range->len; at += page_size()) {
                char byte = bytes[at];
                bytes[at] = byte;
        }
}

/* Each mapping of a file that may not be written to; `each` gets what it has. */
static int for_text(void (*each)(const struct mapping *one, bool file, bool own), struct csn_error *err)
{
        auto_fd table = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        if (table < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open /proc/self/pagemap");
        for (size_t i = 0; i < mapped_n; i++) {
                bool file, own;
                if (!mapped[i].of_file || mapped[i].rights & PROT_WRITE)
                        continue;
                if (look_at_text(table, &mapped[i], &file, &own, err) < 0)
                        return -err->code;
                each(&mapped[i], file, own);
        }
        return 0;
}

static void forget(const struct mapping *one, bool file, bool own)
{
        /* A page of its own is what the dynamic linker relocated, before it made the mapping read-only. */
        if (file && !own)
                madvise((void *)(uintptr_t)one->range.start, one->range.len, MADV_DONTNEED);
}

static void keep(const struct mapping *one, bool file, bool own)
{
        void *start = (void *)(uintptr_t)one->range.start;
        if (!file || own || mprotect(start, one->range.len, one->rights | PROT_WRITE) < 0)
                return;
        touch(&(struct range){ one->range.start, 1 });
        mprotect(start, one->range.len, one->rights);
}

int pages_forget_text(struct csn_error *err)
{
        int r = pages_remember(err);
        return r < 0 ? r : for_text(forget, err);
}

int pages_keep_text(struct csn_error *err)
{
        int r = pages_remember(err);
        return r < 0 ? r : for_text(keep, err);
}

/* Linux 6.1 */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define HUGE_PAGE (2 * MIB)

int pages_collapse(struct csn_error *err)
{
        int r = pages_remember(err);
        for (size_t i = 0; r == 0 && i < mapped_n; i++) {
                uint64_t start = (mapped[i].range.start + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
                uint64_t end = (mapped[i].range.start + mapped[i].range.len) / HUGE_PAGE * HUGE_PAGE;
                if (!mapped[i].of_file && mapped[i].rights & PROT_WRITE && start < end)
                        madvise((void *)(uintptr_t)start, end - start, MADV_COLLAPSE);
        }
        return r;
}

/*
 * All ranges by one call, and not by one for each: process_madvise(2), which takes this advice for one's own memory (Linux 6.13).
 * Returns how many it did; the last of them maybe not to its end.
 */
static size_t populate_at_once(void)
{
        auto_fd self = (int)syscall(SYS_pidfd_open, getpid(), 0);
        size_t done = 0;
        while (self >= 0 && done < taken_n) {
                size_t n = min_u64(taken_n - done, IOV_MAX);
                ssize_t bytes = syscall(SYS_process_madvise, self, &taken[done], n, MADV_POPULATE_WRITE, 0);
                if (bytes <= 0)
                        break;
                for (; n > 0 && bytes > 0; n--)
                        bytes -= (ssize_t)taken[done++].len;
        }
        return done;
}

void pages_populate(void)
{
        _Static_assert(sizeof(struct range) == sizeof(struct iovec), "a range is an iovec");
        /* One call instead of a fault for each; before Linux 5.14 there is only the fault. */
        bool is_known = madvise(NULL, 0, MADV_POPULATE_WRITE) == 0;
        for (size_t i = populate_at_once(); i < taken_n; i++)
                if (!is_known)
                        touch(&taken[i]);
                else
                        madvise((void *)(uintptr_t)taken[i].start, taken[i].len, MADV_POPULATE_WRITE);
}
