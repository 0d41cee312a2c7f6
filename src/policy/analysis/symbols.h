/*
 * Numbers for names, and tables that find by a name or by a pair of numbers; for analyses.
 *
 * A table holds places in a list of its owner's.  It knows their hashes and not what is there: whoever looks something
 * up goes through the places of a hash and compares.
 */
#ifndef POLICY_NAMES_H
#define POLICY_NAMES_H

#include "base/base.h"

struct name {
        const char *text;
        size_t len;
};

struct index {
        struct slot {
                uint64_t hash;
                uint32_t place;                /* + 1; 0: free */
        } *slots;
        size_t size, n;
};

#define NAMES_NONE UINT32_MAX

uint64_t index_hash(uint32_t a, uint32_t b);
void index_add(struct index *index, uint64_t hash, uint32_t place);
/* The next place of a hash; *at is 0 before the first.  NAMES_NONE: there is no more. */
uint32_t index_next(const struct index *index, uint64_t hash, size_t *at);

struct names {
        struct name *list;
        size_t n, size;
        struct index index;
};

/* The number of a name, which is copied into the arena if it is new. */
uint32_t names_intern(struct names *names, struct arena *arena, const char *text, size_t len);
void names_done(struct names *names);

/* Room for one more in a list of n, of which `size` fit: the list, which may have moved. */
void *list_room(void *list, size_t n, size_t *size, size_t each);

#endif
