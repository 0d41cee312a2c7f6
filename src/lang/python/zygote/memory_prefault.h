/*
 * Prefaulting after a fork.  After a fork all memory is shared, and the first write to each page costs a fault and a
 * copy; an interpreter writes to hundreds of pages, because its objects contain their reference counts.  The set of
 * pages hardly depends on the program.  A fork also copies no page table entries of file mappings (memory_layout.h), so
 * the first access costs a fault, too.
 *
 * After the layout of its memory, a zygote starts a training run: a child runs a sample program to its end and then
 * reads its own page table (proc_pid_pagemap(5), Linux 4.2).  Later children copy the pages that the training run wrote
 * before their program arrives, and map the pages only read.
 */
#ifndef LANG_PYTHON_ZYGOTE_MEMORY_PREFAULT_H
#define LANG_PYTHON_ZYGOTE_MEMORY_PREFAULT_H

#include "base/base.h"

/* Record the current private mappings.  Errors: CSN_E_SYSTEM. */
int pages_remember(struct csn_error *err);

/*
 * Write to fd three lists of ranges in the recorded mappings: writable pages private to this process, other writable
 * pages accessed, and mapped text.  The parent must not run between the fork and this call: pages that the
 * parent writes also become private to the child.  Errors: CSN_E_SYSTEM.
 */
int pages_tell(int fd, struct csn_error *err);

/*
 * Reduce the last two lists.  An access maps more than one page: the 64 KiB around, a huge page, or from Linux 6.18 on
 * all contiguous memory.  In a process without mapped pages of these lists, this function accesses the
 * ranges one after the other, and writes to fd all lists without the ranges mapped by an earlier access.  Errors:
 * CSN_E_SYSTEM.
 */
int pages_thin(int fd, struct csn_error *err);

/*
 * Read the lists written by the last two, up to the end of the file.  Errors: CSN_E_INPUT (malformed; the old lists
 * stay), CSN_E_SYSTEM.
 */
int pages_take(int fd, struct csn_error *err);

/*
 * Prefault in this process, before the program's filter is installed: text at once after the fork, because this process
 * itself runs in it, and memory once it is charged to the right cgroup.  A range may be unmapped meanwhile.  From Linux
 * 5.14 on a range may also be read-only meanwhile; before, this would end the process.
 */
void pages_text(void);
void pages_memory(void);

#endif
