/*
 * Where Python's small objects are: its arenas, of 1 MiB each (256 KiB before 3.10).  They come one by one, between whatever else is
 * mapped meanwhile.  Those of a zygote lie one behind the other from the beginning of a huge page on, so that they are few mappings (memory_layout.h).
 *
 * The first ones come before a program could ask for anything.  So the zygote's Python has _caisson loaded with it (LD_PRELOAD, ld.so(8)),
 * which asks for all of that before Python begins.
 */
#ifndef PYTHON_ARENAS_H
#define PYTHON_ARENAS_H

#include "lang/python/zygote/memory_maps.h"

#define ARENAS_MAX 4096

/*
 * Arenas come from regions of ours from now on (PyObject_SetArenaAllocator(), which may be called before Python is initialized).  Harmless twice.
 * Without effect on a Python that has none, such as one without a global lock.
 */
void arenas_gather(void);

/* How many there were up to now. */
size_t arenas_made(void);

/* Which of all that there were it is in, counted from 1 on; 0: in none that was gathered. */
size_t arenas_number(uintptr_t place);

/* Further arenas come as Python itself would have them.  Those that were gathered and are in use: ranges that do not touch, in no order.  Returns how many. */
size_t arenas_gathered(struct range ret[ARENAS_MAX]);

#endif
