/* The text of an error of a system call on a path, for the failures of files.c, file_info.c, watch.c and process.c. */
#include "guest/guest.h"

int files_error(struct csn_error *err, const char *what, const char *path)
{
        int sys = errno;
        const char *why = sys == ENOENT ? "there is no such file or folder"
                : sys == ENOTDIR        ? "a part of the path is no folder"
                : sys == EISDIR         ? "it is a folder"
                : sys == EROFS          ? "this part of the sandbox is read-only; use /home/user or /tmp"
                : sys == EACCES || sys == EPERM
                ? "permission is denied to the user of the sandbox; use a path in /home/user or /tmp"
                : sys == ENOSPC || sys == EDQUOT || sys == EFBIG ? "the disk of the sandbox is full"
                : sys == ENOTEMPTY                               ? "the folder is not empty"
                : sys == ELOOP                                   ? "there are too many symbolic links"
                : sys == ENAMETOOLONG                            ? "the name is too long"
                : sys == EXDEV ? "the two are on different disks of the sandbox; copy it by a program, as mv"
                               : strerrordesc_np(sys);
        err_set(err, CSN_E_INPUT, 0, "cannot %s %.300s: %s", what, path, why ? why : "it failed");
        err->sys = sys;
        return -CSN_E_INPUT;
}
