/*
 * Receives the engine's packets over the handoff socket, in the future program's process, with the sandbox's own
 * rights and before any foreign code runs there.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

/* ---- input files ---- */

/* The folder of a name below the home, made if need be; *ret_base is the last part of the name. */
static int open_parent(int home, char *name, const char **ret_base, struct csn_error *err)
{
        auto_fd dir = fcntl(home, F_DUPFD_CLOEXEC, 10);
        char *part = name;
        for (char *slash = strchr(part, '/'); slash && dir >= 0; slash = strchr(part, '/')) {
                *slash = 0;
                if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
                        return err_set(err, CSN_E_SYSTEM, errno, "make the folder %s", part);
                int next = openat(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                fd_close(&dir);
                dir = next;
                part = slash + 1;
        }
        if (dir < 0 && (errno == ENOTDIR || errno == ELOOP))
                return err_field(err, "/files", "the name of one input file is a folder in the name of another (%s)",
                        part);
        if (dir < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the folder of %s", part);
        *ret_base = part;
        return take_fd(&dir);
}

static int no_room(struct csn_error *err)
{
        return err_set(err, CSN_E_INPUT, 0, "the input files do not fit in the home directory; raise disk_bytes");
}

static int copy_content(int from, int to, struct csn_error *err)
{
        off_t offset = 0;
        for (;;) {
                ssize_t n = sendfile(to, from, &offset, 16 * MIB);
                if (n == 0)
                        return 0;
                if (n < 0 && errno == ENOSPC)
                        return no_room(err);
                if (n < 0 && errno != EINTR)
                        return err_set(err, CSN_E_SYSTEM, errno, "copy an input file");
        }
}

static int write_content(int to, const struct wire_file *file, struct csn_error *err)
{
        if (io_write_all(to, file->content, file->content_len) == 0)
                return 0;
        return errno == ENOSPC ? no_room(err) : err_set(err, CSN_E_SYSTEM, errno, "write an input file");
}

/* Opened anew for reading: a file open for writing cannot be executed.  The descriptor sent back is optional. */
static void give_back(int handoff, int dir, const char *base)
{
        auto_fd fd = openat(dir, base, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                wire_send(handoff, "", 1, &fd, 1);
}

/* handoff: socket for returning the file, or -1. */
static int put_file(int home, struct wire_file *file, int source, int handoff, struct csn_error *err)
{
        const char *base = file->name;
        struct stat st;
        if (!file->content == (source < 0))
                return err_set(err, CSN_E_PROTOCOL, 0, "an input file without its content, or with two");
        auto_fd dir = open_parent(home, file->name, &base, err);
        if (dir < 0)
                return dir;
        auto_fd fd = openat(dir, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST)
                return err_field(err, "files", "two input files have the name %s", base);
        if (fd < 0 && errno == ENOSPC)
                return err_field(err, "files", "more input files than disk_files allows");
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the input file %s", base);
        if ((file->content ? write_content(fd, file, err) : copy_content(source, fd, err)) < 0)
                return -err->code;
        if (fchmod(fd, (mode_t)file->mode) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "finish the input file %s", base);
        if (handoff >= 0)
                give_back(handoff, dir, base);
        if (file->content)
                return 0;
        if (fstat(source, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "look at the input file %s", base);
        struct timespec times[2] = { st.st_mtim, st.st_mtim };
        if (futimens(fd, times) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the time of the input file %s", base);
        return 0;
}

/* ---- packets ---- */

/* Copies the content of a packet before the next packet overwrites the buffer. */
static void keep_file(const struct wire_file *file, struct arena *arena, struct wire_file *ret)
{
        if (!file->content || strchr(file->name, '/'))
                return;
        *ret = *file;
        ret->name = arena_copy(arena, file->name, strlen(file->name));
        ret->content = arena_copy(arena, file->content, file->content_len);
}

/* ret_only: where to keep the file, or NULL. */
static int take_file(const struct handoff_folders *folders, const uint8_t *bytes, size_t len, int source, int handoff,
        struct arena *keep, struct wire_file *ret_only, struct csn_error *err)
{
        struct wire_file file;
        struct arena arena = { 0 };
        int rc = wire_get_file(bytes, len, &arena, &file, err);
        if (rc == 0 && ret_only)
                keep_file(&file, keep, ret_only);
        if (rc == 0 && file.module && folders->modules < 0)
                rc = err_set(err, CSN_E_PROTOCOL, 0, "a module, and the sandbox has no folder for modules");
        if (rc == 0)
                rc = put_file(file.module ? folders->modules : folders->home, &file, source, handoff, err);
        arena_done(&arena);
        return rc;
}

int handoff_take(int handoff, const struct handoff_folders *folders, struct arena *arena, struct handoff_taken *ret,
        struct csn_error *err)
{
        static uint8_t bytes[WIRE_MAX];
        *ret = (struct handoff_taken){ .in = -1 };
        for (bool first = true;; first = false) {
                int fds[WIRE_FDS_MAX];
                size_t fds_n;
                ssize_t len = wire_receive(handoff, bytes, fds, &fds_n);
                if (len <= 0)
                        _exit(1);   /* the engine is gone */
                auto_fd beside = fds[0];
                for (size_t i = 1; i < fds_n; i++)
                        fd_close(&fds[i]);
                if (fds_n > 1)
                        return err_set(err, CSN_E_PROTOCOL, 0, "a packet with %zu descriptors", fds_n);
                if (bytes[0] == WIRE_HANDOFF_FILE || bytes[0] == WIRE_HANDOFF_MODULE) {
                        ret->only.name = NULL;
                        if (take_file(folders, bytes, (size_t)len, beside, first ? handoff : -1, arena,
                                    first ? &ret->only : NULL, err) < 0)
                                return -err->code;
                        continue;
                }
                if (wire_get_program(bytes, (size_t)len, arena, &ret->program, err) < 0)
                        return -err->code;
                ret->in = take_fd(&beside);
                return 0;
        }
}
