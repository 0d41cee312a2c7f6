#include "lang/python/zygote/memory_maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

uint64_t maps_page(void)
{
        return (uint64_t)sysconf(_SC_PAGESIZE);
}

void *maps_memory(size_t size)
{
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                return NULL;
        return memory;
}

/* True for a line to report. */
static bool read_line(const char *line, struct mapping *ret)
{
        char rights[5];
        unsigned long long start, end, offset, inode;
        int name = 0;
        if (sscanf(line, "%llx-%llx %4s %llx %*s %llu %n", &start, &end, rights, &offset, &inode, &name) != 5)
                return false;
        *ret = (struct mapping){ .range = { start, end - start },
                .inode = inode,
                .offset = offset,
                .rights = PROT_READ | (rights[1] == 'w' ? PROT_WRITE : 0) | (rights[2] == 'x' ? PROT_EXEC : 0),
                .of_file = line[name] == '/' && strncmp(line + name, "/memfd:", 7) != 0,
                .is_heap = strncmp(line + name, "[heap]", 6) == 0 };
        return end - start <= MAPPING_MAX && rights[0] == 'r' && rights[3] == 'p' && strncmp(line + name, "[v", 2) != 0;
}

/* Not with stdio(3): its buffer would be written to while the process looks for its written pages. */
#define TEXT_MAX (MAPS_MAX * 128)

static void read_lines(char *text, struct maps *maps)
{
        maps->n = 0;
        for (char *end; maps->n < MAPS_MAX && (end = strchr(text, '\n')); text = end + 1) {
                *end = 0;
                maps->n += read_line(text, &maps->rows[maps->n]);
        }
}

int maps_read(struct maps *maps, struct csn_error *err)
{
        maps->rows = maps->rows ? maps->rows : maps_memory(MAPS_MAX * sizeof *maps->rows);
        /* Shared memory is not listed here, and stays apart from its neighbours. */
        char *text = mmap(NULL, TEXT_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (!maps->rows || text == MAP_FAILED)
                return err_set(err, CSN_E_SYSTEM, errno, "memory for the mappings");
        bool is_read = io_read_file(AT_FDCWD, "/proc/self/maps", text, TEXT_MAX - 1) >= 0;
        int sys = errno;
        if (is_read)
                read_lines(text, maps);
        munmap(text, TEXT_MAX);
        return is_read ? 0 : err_set(err, CSN_E_SYSTEM, sys, "read /proc/self/maps");
}

int maps_table(struct csn_error *err)
{
        int table = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        return table < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open /proc/self/pagemap") : table;
}

ssize_t maps_entries(int table, const struct range *range, uint64_t first, uint64_t entries[PAGE_ENTRIES_MAX],
        struct csn_error *err)
{
        uint64_t wanted = min_u64(range->len / maps_page() - first, PAGE_ENTRIES_MAX);
        ssize_t got = pread(table, entries, wanted * sizeof entries[0],
                (off_t)((range->start / maps_page() + first) * sizeof entries[0]));
        if (got < (ssize_t)sizeof entries[0])
                return err_set(err, CSN_E_SYSTEM, errno, "read /proc/self/pagemap");
        return got / (ssize_t)sizeof entries[0];
}
