/* Whole files, and standard input. */
#include "front/cli/toolkit/toolkit.h"

#include <fcntl.h>

int cli_read_whole(const char *path, size_t max, const char *field, struct arena *arena, struct bytes *ret,
        struct csn_error *err)
{
        auto_fd file =
                strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);
        struct buf buf;
        char bytes[16 * KIB];
        if (file < 0)
                return err_field(err, field, "%s: %s", path, strerrordesc_np(errno));
        buf_init(&buf, max);
        for (;;) {
                ssize_t n = read(file, bytes, sizeof bytes);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 || !buf_add(&buf, bytes, (size_t)n)) {
                        int sys = errno;
                        buf_done(&buf);
                        return n < 0 ? err_field(err, field, "%s: %s", path, strerrordesc_np(sys))
                                     : err_field(err, field, "%s is longer than %zu bytes", path, max);
                }
                if (n == 0)
                        break;
        }
        ret->bytes = arena_copy(arena, buf.bytes ? buf.bytes : "", buf.len);
        ret->len = buf.len;
        buf_done(&buf);
        return 0;
}
