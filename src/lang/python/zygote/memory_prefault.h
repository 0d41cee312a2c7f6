/*
 * Memory after a fork.  It is all shared, and the first write to each page costs a fault and a copy; an interpreter
 * writes to hundreds, for its objects count their references in themselves.  Which ones hardly depends on the program.
 * And a fork takes nothing along of what is mapped of a file (memory_layout.h), so the first look at it costs a fault as well.
 *
 * So when a zygote has laid out its memory, a process of it goes the whole way with a sample program and looks at its own page table at the
 * end (proc_pid_pagemap(5), Linux 4.2).  The children then make the pages that it wrote to their own before their program comes, and look at what it
 * looked at.
 */
#ifndef PYTHON_PAGES_H
#define PYTHON_PAGES_H

#include "base/base.h"

/* What is mapped privately now.  Errors: CSN_E_SYSTEM. */
int pages_remember(struct csn_error *err);

/*
 * Write to fd three lists of ranges of what was remembered: what this process alone has of what may be written to, where it has looked at that beside, and where
 * text is mapped.  The parent must not run from the fork to here: what it writes to becomes the child's alone as well.
 */
int pages_tell(int fd, struct csn_error *err);

/*
 * At one look the kernel maps more than one page: 64 KiB around it, a huge page, or from Linux 6.18 on all that belongs together in memory.  So this, in a
 * process in which nothing of the last two lists is mapped yet, looks at one after the other, and writes all to fd again without what an earlier look has mapped.
 */
int pages_thin(int fd, struct csn_error *err);

/* What the last two wrote, up to the end of the file.  Bytes that cannot be that are an error, CSN_E_INPUT, and what was known before stays. */
int pages_take(int fd, struct csn_error *err);

/*
 * All that, in this process, which may not have the program's filter yet: text at once after the fork, for the process itself runs in it, and memory when
 * it is counted for the right cgroup.  A range may be there no more.  From Linux 5.14 on it may
 * also be one that cannot be written to any more; before, that would be the end of the process.
 */
void pages_text(void);
void pages_memory(void);

#endif
