/*
 * Memory as a fork has least to do with it.  A fork goes through all mappings, and through the page tables of those of which the
 * process has a page of its own (vma_needs_copy() in mm/memory.c); the end of a process goes through all that once more.  A process of
 * a zygote writes to less than a hundred pages, and has thousands.
 *
 * So a zygote, when it has loaded all and before it serves, lays its memory out anew:
 *
 *   - Of a file of program text up to three mappings, of which one may be executed, become one.
 *   - Program text that is much used is a copy, in huge pages.  The entry of a huge page of a file is not copied: the first look brings it back.
 *   - Python's arenas, the heap of malloc(3) and all that libraries may write to are in files, mapped privately.  Nobody has a page of his own in it, so a
 *     fork has nothing to copy, and who writes to a page gets his own as before.
 *   - All else is in huge pages where it is large enough.
 *
 * The files have no name, belong to the zygote, and are sealed: nobody writes to them any more (memfd_create(2), fcntl(2)).  Memory of such a mapping that
 * is given back by MADV_DONTNEED comes again as it is in the file, and not as zeros, so only that is there which is never given back so:
 * Python unmaps its arenas, malloc(3) counts on nothing of what it has given back, and a library's data nobody gives back.
 */
#ifndef PYTHON_SHARED_H
#define PYTHON_SHARED_H

#include "lang/python/zygote/memory_maps.h"

/*
 * What modules needed of program text to be loaded looks like text that is much used, though hardly a run needs it.  It is dropped here; what is
 * needed comes back at the next look.  Errors: CSN_E_SYSTEM.
 */
int shared_forget_text(struct csn_error *err);

/*
 * All of the above.  arenas: where Python's are.  The process has one thread, and neither Python nor malloc(3) is in use until this
 * returns.  Where the kernel has no huge pages to give, pages stay as small as they were.  Errors: CSN_E_SYSTEM.
 */
int shared_settle(const struct range *arenas, size_t arenas_n, struct csn_error *err);

#endif
