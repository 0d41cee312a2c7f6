/*
 * Interned names, and hash tables by name or by a pair of numbers; for the analyses.
 *
 * A table holds indexes into a list of its owner.  The table knows hashes, not contents: a lookup visits all indexes of
 * a hash and compares.
 */
#ifndef POLICY_ANALYSIS_SYMBOLS_H
#define POLICY_ANALYSIS_SYMBOLS_H

#include "base/base.h"

struct name {
        const char *text;
        size_t len;
};

/* A hash table.  All zeros is empty. */
struct index {
        struct slot {
                uint64_t hash;
                uint32_t place;                /* index + 1; 0: free */
        } *slots;
        size_t size, n;
};

#define NAMES_NONE UINT32_MAX

uint64_t index_hash(uint32_t a, uint32_t b);
void index_add(struct index *index, uint64_t hash, uint32_t place);
/* The next index of a hash; *at is 0 before the first call.  NAMES_NONE: no more. */
uint32_t index_next(const struct index *index, uint64_t hash, size_t *at);

/* Interned names.  Texts live in an arena, the list until names_done(). */
struct names {
        struct name *list;
        size_t n, size;
        struct index index;
};

/* The number of a name; a new name is copied into the arena. */
uint32_t names_intern(struct names *names, struct arena *arena, const char *text, size_t len);
void names_done(struct names *names);

/*
 * Grow a list of n items with room for `size`, so that one more fits.  Returns the list, which may have moved; never
 * NULL.
 */
void *list_room(void *list, size_t n, size_t *size, size_t each);

#endif
