/* Shared by the commands on folders of the daemon: layers and images. */
#include "front/remote/remote.h"

#include <fcntl.h>
#include <grp.h>
#include <locale.h>
#include <sys/stat.h>

/* The owner of the folder, or of the nearest existing folder above. */
static bool find_owner(const char *path, struct stat *ret)
{
        struct arena arena = { 0 };
        char *text = arena_text(&arena, "%s", path);
        bool found = stat(text, ret) == 0;
        while (!found && errno == ENOENT && strrchr(text, '/') > text) {
                *strrchr(text, '/') = 0;
                found = stat(text, ret) == 0;
        }
        arena_done(&arena);
        return found;
}

int remote_become_owner(const char *path, struct csn_error *err)
{
        struct stat st;
        if (geteuid() != 0 || !find_owner(path, &st) || st.st_uid == 0)
                return 0;
        if (setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
                setresuid(st.st_uid, st.st_uid, st.st_uid) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "become user %u, who owns %s", st.st_uid, path);
        return 0;
}

int remote_open_file(const char *path, int flags, int standard, int *ret_fd, struct csn_error *err)
{
        *ret_fd = strcmp(path, "-") == 0 ? fcntl(standard, F_DUPFD_CLOEXEC, 3) : open(path, flags | O_CLOEXEC, 0666);
        return *ret_fd < 0 ? err_set(err, CSN_E_INPUT, errno, "%s", path) : 0;
}

void remote_use_utf8(void)
{
        setlocale(LC_CTYPE, "C.UTF-8");
}
