/*
 * Padding of the allocators' free lists before the fork.  Objects allocated after a fork go to slots freed before, a
 * few per page, and each such page must be copied; in a huge page (memory_layout.h) a write costs more, because its
 * other pages must then be mapped one by one, and unmapped at the end.  So a zygote allocates all free slots and never
 * frees them.  The objects that a run uses are created after the padding, to be in the same pages, and slots freed
 * meanwhile are filled once more.
 */
#ifndef LANG_PYTHON_ZYGOTE_MEMORY_PADDING_H
#define LANG_PYTHON_ZYGOTE_MEMORY_PADDING_H

#include "base/base.h"

/* Place later allocations in a new arena, and those of malloc(3) in an unused huge page; then do room_fill(). */
void room_begin(void);

/* Fill the slots freed since, and the interpreter's free lists for the next list or tuple. */
void room_fill(void);

#endif
