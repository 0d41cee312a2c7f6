/*
 * discard: the end of files in helper threads.
 *
 * The kernel frees a file's blocks and pages in the call that removes the last name or closes the last descriptor:
 * unlink(2), rename(2) over the file, close(2), and for a tmpfs without mounts close(2) of the last descriptor.  The
 * time of this call grows with the size of the file.
 */
#ifndef BASE_DISCARD_H
#define BASE_DISCARD_H

#include "base/worker.h"

#define DISCARD_AT_ONCE_MAX (1 * MIB) /* bytes on the disk of a regular file that is freed in the loop */

/*
 * Close *fd and set *fd to -1.  At once if *fd is negative or a short regular file, without workers (NULL), or in a
 * helper thread.  share: as for worker_submit().
 */
void discard_fd(struct workers *workers, const char *share, int *fd);
/*
 * Remove a file that nothing adds again under this name; dir_fd has to stay open until workers_free().  At once: as
 * above.
 */
void discard_file(struct workers *workers, const char *share, int dir_fd, const char *name);

#endif
