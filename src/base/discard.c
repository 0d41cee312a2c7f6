/* Closing and removing of files by helper threads; see discard.h. */
#include "base/discard.h"

#include <fcntl.h>
#include <sys/stat.h>

struct discard {
        struct job job;
        int fd; /* -1: remove the file `name` of dir_fd */
        int dir_fd;
        char *name;
};

static void work(struct job *job)
{
        struct discard *discard = job->owner;
        if (discard->name)
                unlinkat(discard->dir_fd, discard->name, 0);
        fd_close(&discard->fd);
}

static void on_done(struct job *job)
{
        struct discard *discard = job->owner;
        if (job->dropped)
                work(job);
        free(discard->name);
        free(discard);
}

static void submit(struct workers *workers, const char *share, const struct discard *values)
{
        struct discard *discard = mem_alloc(sizeof *discard);
        *discard = *values;
        discard->job = (struct job){ .work = work, .done = on_done, .owner = discard };
        worker_submit(workers, share, &discard->job);
}

static bool is_short(const struct stat *st)
{
        return S_ISREG(st->st_mode) && (uint64_t)st->st_blocks * 512 <= DISCARD_AT_ONCE_MAX;
}

void discard_fd(struct workers *workers, const char *share, int *fd)
{
        struct stat st;
        if (!workers || worker_is_here() || *fd < 0 || (fstat(*fd, &st) == 0 && is_short(&st)))
                fd_close(fd);
        else
                submit(workers, share, &(struct discard){ .fd = take_fd(fd) });
}

void discard_file(struct workers *workers, const char *share, int dir_fd, const char *name)
{
        struct stat st;
        if (!workers || worker_is_here() || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || is_short(&st))
                unlinkat(dir_fd, name, 0);
        else
                submit(workers, share,
                        &(struct discard){ .fd = -1, .dir_fd = dir_fd, .name = mem_copy(name, strlen(name)) });
}
