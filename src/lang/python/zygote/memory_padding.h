/*
 * What a process allocates after the fork goes where something was freed before, a little in each page, and each such page is one to copy; in a huge page
 * (memory_layout.h) it is more, for all the rest of it must be mapped page by page then, and unmapped at the end.  So a zygote takes all such room and never gives it back.
 * What a run has to do with is made after it, to be in the same pages, and what that has freed meanwhile is taken once more.
 */
#ifndef PYTHON_ROOM_H
#define PYTHON_ROOM_H

#include "base/base.h"

/* What is allocated from now on is in an arena, and of malloc(3) in a huge page, in which nothing was before.  Then as room_fill(). */
void room_begin(void);

/* Takes what was freed since, and what the interpreter keeps for its next list or tuple. */
void room_fill(void);

#endif
