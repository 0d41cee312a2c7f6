/*
 * The arenas of Python's small objects, 1 MiB each (256 KiB before 3.10).  By default Python maps them one by one,
 * between other mappings.  A zygote's arenas are adjacent and begin at a huge page, so they form few mappings
 * (memory_layout.h).
 *
 * The first arenas are mapped before a program could intervene.  So the zygote's Python is started with _caisson
 * preloaded (LD_PRELOAD, ld.so(8)), which installs its allocator before Python begins.
 */
#ifndef LANG_PYTHON_ZYGOTE_MEMORY_ARENAS_H
#define LANG_PYTHON_ZYGOTE_MEMORY_ARENAS_H

#include "lang/python/zygote/memory_maps.h"

#define ARENAS_MAX 4096

/*
 * Take arenas from our regions from now on (PyObject_SetArenaAllocator(), allowed before Python is initialized).
 * Harmless twice.  No effect on a Python without arenas, such as one without a global lock.
 */
void arenas_gather(void);

/* Number of arenas so far. */
size_t arenas_made(void);

/* The number of the arena at an address, counted from 1; 0: none of the gathered arenas. */
size_t arenas_number(uintptr_t place);

/*
 * End the gathering: further arenas come from Python's default allocator.  Fills ret with the gathered arenas in use:
 * disjoint ranges in any order.  Returns their number.
 */
size_t arenas_gathered(struct range ret[ARENAS_MAX]);

#endif
