/* What is mapped in this process, and where its pages are (proc_pid_maps(5), proc_pid_pagemap(5)). */
#ifndef PYTHON_MAPS_H
#define PYTHON_MAPS_H

#include "base/base.h"

#define HUGE_PAGE (2 * MIB)      /* on the processors that we know */
#define MAPS_MAX 16384
#define MAPPING_MAX (64 * GIB)      /* a larger one is a reservation, and its page table would take seconds to read */

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_PRESENT (1ULL << 63)
#define PAGE_SWAPPED (1ULL << 62)
#define PAGE_OF_FILE (1ULL << 61)
#define PAGE_ALONE (1ULL << 56)
#define PAGE_ENTRIES_MAX 4096

/* As iovec(3type). */
struct range {
        uint64_t start, len;   /* bytes */
};

struct mapping {
        struct range range;
        int rights;            /* PROT_* */
        bool of_file;          /* one that has a name; not those of memfd_create(2) */
        bool is_heap;          /* what brk(2) has given */
        uint64_t inode, offset;
};

struct maps {
        struct mapping *rows;  /* MAPS_MAX of them, in memory of their own, so that looking changes nothing of what is looked at */
        size_t n;
};

/* The private mappings of at most MAPPING_MAX bytes that may be read; what the kernel gives to each process is not among them.  Errors: CSN_E_SYSTEM. */
int maps_read(struct maps *maps, struct csn_error *err);

/* Memory of its own, or NULL. */
void *maps_memory(size_t size);

/* /proc/self/pagemap, or an error: CSN_E_SYSTEM. */
int maps_table(struct csn_error *err);

/* The table's entries for a range from its page `first` on.  Returns how many, at least one.  Errors: CSN_E_SYSTEM. */
ssize_t maps_entries(int table, const struct range *range, uint64_t first, uint64_t entries[PAGE_ENTRIES_MAX], struct csn_error *err);

uint64_t maps_page(void);      /* bytes */

#endif
