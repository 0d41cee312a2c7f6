/* Removal of a folder with arbitrary content made by foreign code. */
#include "base/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* A folder, even without access rights, and never through a link. */
static int open_folder(int dir_fd, const char *name)
{
        char path[40];
        struct stat st;
        auto_fd fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -1;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if ((st.st_mode & 0700) != 0700 && chmod(path, 0700) < 0)
                return -1;
        return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Up, with another name.  A moved folder's ".." changes, so the folder itself has to be writable. */
static bool move_up(int from, const char *name, int to, const char *moved)
{
        if (renameat(from, name, to, moved) == 0)
                return true;
        auto_fd folder = errno == EACCES ? open_folder(from, name) : -1;
        return folder >= 0 && renameat(from, name, to, moved) == 0;
}

/*
 * Without recursion: a program can nest folders deeper than any stack and than any descriptor limit.  Each
 * folder found is moved up to the top and emptied there in its turn.
 */
void io_remove_tree(int parent_fd, const char *name)
{
        auto_fd top = open_folder(parent_fd, name);
        unsigned long counter = 0;
        bool again = top >= 0;
        while (again) {
                again = false;
                int copy = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                DIR *dir = copy < 0 ? NULL : fdopendir(copy);
                if (!dir) {
                        fd_close(&copy);
                        break;
                }
                for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                                continue;
                        if (unlinkat(top, entry->d_name, 0) == 0 || unlinkat(top, entry->d_name, AT_REMOVEDIR) == 0)
                                continue;
                        auto_fd below = open_folder(top, entry->d_name);
                        int copy_below = below < 0 ? -1 : openat(below, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                        DIR *dir_below = copy_below < 0 ? NULL : fdopendir(copy_below);
                        if (!dir_below)
                                continue;
                        for (struct dirent *inner = readdir(dir_below); inner; inner = readdir(dir_below)) {
                                char moved[40];
                                if (strcmp(inner->d_name, ".") == 0 || strcmp(inner->d_name, "..") == 0)
                                        continue;
                                snprintf(moved, sizeof moved, ".gone-%lx", counter++);
                                if (unlinkat(below, inner->d_name, 0) == 0 || move_up(below, inner->d_name, top, moved))
                                        again = true;
                        }
                        closedir(dir_below);
                        if (unlinkat(top, entry->d_name, AT_REMOVEDIR) == 0)
                                again = true;
                }
                closedir(dir);
        }
        fd_close(&top);
        unlinkat(parent_fd, name, AT_REMOVEDIR);
}
