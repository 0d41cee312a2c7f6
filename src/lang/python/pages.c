#include "lang/python/pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

struct range {
        uint64_t start, len;   /* bytes */
        uint64_t write;
};

#define RANGES_MAX 16384
#define ENTRIES_AT_ONCE 4096

/* Documentation/admin-guide/mm/pagemap.rst */
#define PRESENT (1ULL << 63)
#define OF_FILE (1ULL << 61)
#define ALONE (1ULL << 56)
#define READ_GAP 16            /* pages of a file between two that are needed: one call for all costs less */

static struct range *mapped, *taken;
static size_t mapped_n, taken_n;

/* Memory of its own, so that looking changes nothing of what is looked at. */
static void *fresh_memory(size_t size)
{
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return memory == MAP_FAILED ? NULL : memory;
}

int pages_remember(struct csn_error *err)
{
        FILE *maps = fopen("/proc/self/maps", "re");
        char *line = NULL, read_right, shared;
        size_t size = 0;
        unsigned long long start, end;
        int name = 0;
        if (!maps)
                return err_set(err, CSN_E_SYSTEM, errno, "open /proc/self/maps");
        mapped_n = 0;
        mapped = fresh_memory(RANGES_MAX * sizeof *mapped);
        while (mapped && mapped_n < RANGES_MAX && getline(&line, &size, maps) > 0)
                if (sscanf(line, "%llx-%llx %c%*c%*c%c %*s %*s %*s %n", &start, &end, &read_right, &shared, &name) == 4 &&
                    read_right == 'r' && shared == 'p' && strncmp(line + name, "[v", 2) != 0)
                        mapped[mapped_n++] = (struct range){ .start = start, .len = end - start };
        free(line);
        fclose(maps);
        return mapped ? 0 : err_set(err, CSN_E_SYSTEM, errno, "memory for the mappings");
}

/* Adds a page, to the last range where that reaches to it. */
static void add_page(struct range *found, size_t *n, size_t first, uint64_t start, uint64_t page, bool write)
{
        struct range *last = *n > first ? &found[*n - 1] : NULL;
        uint64_t gap = write ? 0 : READ_GAP * page;
        if (last && last->write == write && start - (last->start + last->len) <= gap)
                last->len = start + page - last->start;
        else if (*n < RANGES_MAX)
                found[(*n)++] = (struct range){ .start = start, .len = page, .write = write };
}

static int look(int table, const struct range *range, struct range *found, size_t *n, struct csn_error *err)
{
        static uint64_t entries[ENTRIES_AT_ONCE];
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        size_t first = *n;
        for (uint64_t done = 0; done < range->len / page;) {
                uint64_t wanted = min_u64(range->len / page - done, ENTRIES_AT_ONCE);
                ssize_t got = pread(table, entries, wanted * sizeof entries[0], (off_t)((range->start / page + done) * sizeof entries[0]));
                if (got <= 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "read /proc/self/pagemap");
                for (size_t i = 0; i < (size_t)got / sizeof entries[0]; i++)
                        if (entries[i] & PRESENT && entries[i] & (OF_FILE | ALONE))
                                add_page(found, n, first, range->start + (done + i) * page, page, !(entries[i] & OF_FILE));
                done += (uint64_t)got / sizeof entries[0];
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
                if (look(table, &mapped[i], found, &n, err) < 0)
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

static void touch(const struct range *range, size_t page)
{
        volatile char *bytes = (volatile char *)(uintptr_t)range->start;
        for (size_t at = 0; at < range->len; at += page)
                if (range->write)
                        bytes[at] = bytes[at];
                else
                        (void)bytes[at];
}

void pages_populate(void)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        for (size_t i = 0; i < taken_n; i++) {
                int advice = taken[i].write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
                /* One call instead of a fault for each; before Linux 5.14 there is only the fault. */
                if (madvise((void *)(uintptr_t)taken[i].start, taken[i].len, advice) < 0 && errno == EINVAL)
                        touch(&taken[i], page);
        }
}
