/* The mappings of this process and their pages (proc_pid_maps(5), proc_pid_pagemap(5)). */
#ifndef LANG_PYTHON_ZYGOTE_MEMORY_MAPS_H
#define LANG_PYTHON_ZYGOTE_MEMORY_MAPS_H

#include "base/base.h"

#define HUGE_PAGE (2 * MIB)      /* on the supported processors */
#define MAPS_MAX 16384
#define MAPPING_MAX (64 * GIB)      /* larger mappings are reservations; reading their page tables would take seconds */

/* Bits of an entry; Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_PRESENT (1ULL << 63)
#define PAGE_SWAPPED (1ULL << 62)
#define PAGE_OF_FILE (1ULL << 61)
#define PAGE_ALONE (1ULL << 56)
#define PAGE_ENTRIES_MAX 4096

/* Like iovec(3type). */
struct range {
        uint64_t start, len;   /* bytes */
};

struct mapping {
        struct range range;
        int rights;            /* PROT_* */
        bool of_file;          /* of a named file; not of memfd_create(2) */
        bool is_heap;          /* from brk(2) */
        uint64_t inode, offset;
};

struct maps {
        /* MAPS_MAX rows, in a mapping of their own, so that reading does not change the memory being read */
        struct mapping *rows;
        size_t n;
};

/*
 * Read the private, readable mappings of at most MAPPING_MAX bytes, without those that the kernel gives to each
 * process.  Errors: CSN_E_SYSTEM.
 */
int maps_read(struct maps *maps, struct csn_error *err);

/* A new mapping, or NULL. */
void *maps_memory(size_t size);

/* Open /proc/self/pagemap.  Returns the descriptor, the caller's.  Errors: CSN_E_SYSTEM. */
int maps_table(struct csn_error *err);

/*
 * Read the page table entries of a range from its page `first` on.  Returns their number, at least one.  Errors:
 * CSN_E_SYSTEM.
 */
ssize_t maps_entries(int table, const struct range *range, uint64_t first, uint64_t entries[PAGE_ENTRIES_MAX],
        struct csn_error *err);

uint64_t maps_page(void);      /* page size in bytes */

#endif
