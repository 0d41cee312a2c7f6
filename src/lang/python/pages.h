/*
 * Memory after a fork.  It is all shared, and the first write to each page costs a fault and a copy; an interpreter
 * writes to hundreds, for its objects count their references in themselves.  Which ones hardly depends on the program.
 *
 * So a process of the zygote goes the whole way with a sample program and looks at its own page table at the end
 * (proc_pid_pagemap(5), Linux 4.2).  The children then make these pages their own before their program comes.  And program text that it has looked at they
 * look at before, too: a fork does not take along what is mapped of it (shared.h).
 */
#ifndef PYTHON_PAGES_H
#define PYTHON_PAGES_H

#include "base/base.h"

/* What is mapped privately now.  Errors: CSN_E_SYSTEM. */
int pages_remember(struct csn_error *err);

/*
 * Write to fd two lists of ranges of what was remembered: what may be written to and this process alone has, and where text is mapped.  The parent must
 * not run from the fork to here: what it writes to becomes the child's alone as well.
 */
int pages_tell(int fd, struct csn_error *err);

/* What pages_tell() wrote.  Bytes that cannot be that are an error: CSN_E_INPUT. */
int pages_take(const void *bytes, size_t len, struct csn_error *err);

/*
 * Copies of all that, and text mapped, in this process, which may not have the program's filter yet.  A range may be there no more.  From Linux 5.14 on it may
 * also be one that cannot be written to any more; before, that would be the end of the process.
 */
void pages_populate(void);

#endif
