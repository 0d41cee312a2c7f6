#include "lang/python/maps.h"

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

/* Of a line that is to be told: true. */
static bool read_line(const char *line, struct mapping *ret)
{
        char rights[5];
        unsigned long long start, end, offset, inode;
        int name = 0;
        if (sscanf(line, "%llx-%llx %4s %llx %*s %llu %n", &start, &end, rights, &offset, &inode, &name) != 5)
                return false;
        *ret = (struct mapping){ .range = { start, end - start }, .inode = inode, .offset = offset,
                                 .rights = PROT_READ | (rights[1] == 'w' ? PROT_WRITE : 0) | (rights[2] == 'x' ? PROT_EXEC : 0),
                                 .of_file = line[name] == '/' && strncmp(line + name, "/memfd:", 7) != 0,
                                 .is_heap = strncmp(line + name, "[heap]", 6) == 0 };
        return rights[0] == 'r' && rights[3] == 'p' && strncmp(line + name, "[v", 2) != 0;
}

int maps_read(struct maps *maps, struct csn_error *err)
{
        FILE *file = fopen("/proc/self/maps", "re");
        char *line = NULL;
        size_t size = 0;
        if (!file)
                return err_set(err, CSN_E_SYSTEM, errno, "open /proc/self/maps");
        maps->n = 0;
        maps->rows = maps->rows ? maps->rows : maps_memory(MAPS_MAX * sizeof *maps->rows);
        while (maps->rows && maps->n < MAPS_MAX && getline(&line, &size, file) > 0)
                maps->n += read_line(line, &maps->rows[maps->n]);
        free(line);
        fclose(file);
        return maps->rows ? 0 : err_set(err, CSN_E_SYSTEM, errno, "memory for the mappings");
}

int maps_table(struct csn_error *err)
{
        int table = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        return table < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open /proc/self/pagemap") : table;
}

ssize_t maps_entries(int table, const struct range *range, uint64_t first, uint64_t entries[PAGE_ENTRIES_MAX], struct csn_error *err)
{
        uint64_t wanted = min_u64(range->len / maps_page() - first, PAGE_ENTRIES_MAX);
        ssize_t got = pread(table, entries, wanted * sizeof entries[0], (off_t)((range->start / maps_page() + first) * sizeof entries[0]));
        if (got < (ssize_t)sizeof entries[0])
                return err_set(err, CSN_E_SYSTEM, errno, "read /proc/self/pagemap");
        return got / (ssize_t)sizeof entries[0];
}
