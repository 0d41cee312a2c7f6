#include "lang/python/pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

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

static int look(int table, const struct range *range, struct range *found, size_t *n, struct csn_error *err)
{
        static uint64_t entries[ENTRIES_AT_ONCE];
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        for (uint64_t done = 0; done < range->len / page;) {
                uint64_t wanted = min_u64(range->len / page - done, ENTRIES_AT_ONCE);
                ssize_t got = pread(table, entries, wanted * sizeof entries[0], (off_t)((range->start / page + done) * sizeof entries[0]));
                if (got <= 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "read /proc/self/pagemap");
                for (size_t i = 0; i < (size_t)got / sizeof entries[0]; i++)
                        if (entries[i] & PRESENT && entries[i] & ALONE && !(entries[i] & OF_FILE))
                                add_page(found, n, range->start + (done + i) * page, page);
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
                if (look(table, &mapped[i].range, found, &n, err) < 0)
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
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        for (size_t at = 0; at < range->len; at += page) {
                char byte = bytes[at];
                bytes[at] = byte;
        }
}

int pages_keep_text(struct csn_error *err)
{
        for (size_t i = 0; i < mapped_n; i++) {
                const struct mapping *one = &mapped[i];
                void *start = (void *)(uintptr_t)one->range.start;
                if (!one->of_file || one->rights & PROT_WRITE)
                        continue;
                if (mprotect(start, one->range.len, one->rights | PROT_WRITE) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make a mapping writable");
                touch(&(struct range){ one->range.start, 1 });
                if (mprotect(start, one->range.len, one->rights) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make a mapping read-only again");
        }
        return 0;
}

void pages_populate(void)
{
        /* One call instead of a fault for each; before Linux 5.14 there is only the fault. */
        for (size_t i = 0; i < taken_n; i++)
                if (madvise((void *)(uintptr_t)taken[i].start, taken[i].len, MADV_POPULATE_WRITE) < 0 && errno == EINVAL)
                        touch(&taken[i]);
}
