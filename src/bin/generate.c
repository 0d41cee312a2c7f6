/*
 * generate SOURCE_ROOT: write the files that follow from the tables into the sources (schema/, docs/use/).  To be
 * run after a change to a table; the unit tests notice when it was not.
 */
#include "model/settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static int write_file(const char *root, const char *path, const struct buf *buf)
{
        char whole[4096];
        snprintf(whole, sizeof whole, "%s/%s", root, path);
        auto_fd fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || io_write_all(fd, buf->bytes, buf->len) < 0) {
                fprintf(stderr, "generate: %s: %s\n", whole, strerror(errno));
                return 1;
        }
        return 0;
}

int main(int argc, char **argv)
{
        if (argc != 2) {
                fprintf(stderr, "usage: generate SOURCE_ROOT\n");
                return 64;
        }
        for (size_t i = 0;; i++) {
                struct buf buf;
                buf_init(&buf, MIB);
                const char *path = generated_file(i, &buf);
                int rc = path ? write_file(argv[1], path, &buf) : 0;
                buf_done(&buf);
                if (!path || rc != 0)
                        return rc;
        }
}
