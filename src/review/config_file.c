/*
 * Files of the administrator, read again after changes.
 *
 * The daemon opens a file before dropping its privileges, and keeps the descriptor.  A file changed in place is read
 * through the descriptor; a replacement is opened by name, if the daemon's user may read the file (docs/use/review.md).
 */
#include "review/review_private.h"

#include <fcntl.h>
#include <stdio.h>

static void forget_text(struct config_file *file)
{
        if (file->text)
                explicit_bzero(file->text, file->len);
        free(file->text);
        file->text = NULL;
        file->len = 0;
}

static bool refuse(struct config_file *file, const char *why)
{
        forget_text(file);
        snprintf(file->why, sizeof file->why, "%s: %.180s %s", file->setting, file->path, why);
        return false;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
        return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_size == other->st_size &&
                one->st_mtim.tv_sec == other->st_mtim.tv_sec && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec &&
                one->st_ctim.tv_sec == other->st_ctim.tv_sec && one->st_ctim.tv_nsec == other->st_ctim.tv_nsec;
}

static bool read_text(struct config_file *file)
{
        char *text;
        size_t len = 0;
        if (fstat(file->fd, &file->st) < 0)
                return refuse(file, strerrordesc_np(errno));
        if (!S_ISREG(file->st.st_mode))
                return refuse(file, "is no regular file");
        if (file->is_secret && file->st.st_mode & S_IROTH)
                return refuse(file, "can be read by others; chmod o-r it");
        if ((uint64_t)file->st.st_size > file->max)
                return refuse(file, "is too long");
        text = mem_alloc(file->max + 1);
        for (ssize_t n; len < file->max; len += (size_t)n)
                if ((n = pread(file->fd, text + len, file->max - len, (off_t)len)) <= 0)
                        break;
        forget_text(file);
        file->text = mem_copy(text, len);
        file->len = len;
        explicit_bzero(text, len);
        free(text);
        if (strlen(file->text) != len)
                return refuse(file, "has a NUL byte");
        file->why[0] = 0;
        return true;
}

int config_file_open(struct config_file *file, const char *path, const char *setting, bool is_secret, size_t max,
        struct csn_error *err)
{
        *file = (struct config_file){ .path = path, .setting = setting, .is_secret = is_secret, .fd = -1, .max = max };
        if (!path[0])
                return 0;
        file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file->fd < 0)
                refuse(file, strerrordesc_np(errno));
        if (file->fd >= 0 && read_text(file))
                return 0;
        err_field(err, setting, "%s", file->why);
        return -(err->code = CSN_E_CONFIG);
}

bool config_file_refresh(struct config_file *file)
{
        struct stat named, held;
        if (file->fd < 0)
                return true;
        bool is_named = stat(file->path, &named) == 0;
        if (is_named && is_same(&named, &file->st))
                return !file->why[0];
        if (is_named && (named.st_dev != file->st.st_dev || named.st_ino != file->st.st_ino)) {
                int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
                if (fd < 0)
                        return refuse(file, "was replaced, and the daemon cannot read the new file; restart the daemon");
                fd_close(&file->fd);
                file->fd = fd;
                return read_text(file);
        }
        if (fstat(file->fd, &held) < 0 || is_same(&held, &file->st))
                return !file->why[0];
        return read_text(file);
}

void config_file_close(struct config_file *file)
{
        forget_text(file);
        if (file->path)
                fd_close(&file->fd);
        *file = (struct config_file){ .fd = -1 };
}
