/*
 * A memory layout that a fork copies cheaply.  A fork walks all mappings, and the page tables of each mapping in which
 * the process has private pages (vma_needs_copy() in mm/memory.c); the end of a process walks both again.  A process of
 * a zygote writes to fewer than a hundred pages, and has thousands.
 *
 * So after loading and before serving, a zygote rebuilds its memory:
 *
 *   - Of a file of program text up to three mappings, one executable, become one.
 *   - Much used program text is copied to huge pages.  A fork does not copy the page table entry of a file's huge page:
 *     the first access maps the page again.
 *   - Python's arenas, the heap of malloc(3) and all writable data of libraries are private mappings of files.  No
 *     process has private pages there, so a fork has nothing to copy; a write makes a private page as before.
 *   - All else is in huge pages where large enough.
 *
 * The files are unnamed, belong to the zygote, and are sealed against writes (memfd_create(2), fcntl(2)).  Memory of
 * such a mapping that is released by MADV_DONTNEED has the file's content afterwards, not zeros, so only memory is
 * included that is never released in this way: Python unmaps its arenas, malloc(3) does not rely on the content of
 * released memory, and library data is never released.
 */
#ifndef LANG_PYTHON_ZYGOTE_MEMORY_LAYOUT_H
#define LANG_PYTHON_ZYGOTE_MEMORY_LAYOUT_H

#include "lang/python/zygote/memory_maps.h"

/*
 * Unmap program text.  Text used during loading would count as much used, though hardly any run needs it; needed text
 * is mapped again on the next access.  Errors: CSN_E_SYSTEM.
 */
int shared_forget_text(struct csn_error *err);

/*
 * Rebuild the memory as described above.  arenas: ranges of Python's arenas.  The process must have one thread, and
 * neither Python nor malloc(3) may be used until the return.  If the kernel has no free huge pages, pages stay small.
 * Errors: CSN_E_SYSTEM.
 */
int shared_settle(const struct range *arenas, size_t arenas_n, struct csn_error *err);

#endif
