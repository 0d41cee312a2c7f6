/* idmap: what overlayfs is to copy up has an owner inside, and what cannot be mapped is refused in words. */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "tap.h"

#define FIRST 3900000000U

static void files_of_root_belong_to_the_first_id(void)
{
        struct csn_error err = { 0 };
        struct stat here, there;
        struct statvfs mount;
        int tree;
        if (geteuid() != 0)
                SKIP("needs root: mounts are mapped");
        if (idmap_tree("/usr", FIRST, &tree, &err) < 0) {
                CHECK(err.code == CSN_E_UNSUPPORTED && strstr(err.text, "/usr"));
                SKIP("needs mapped mounts: %s", err.text);
        }
        CHECK(stat("/usr/bin/env", &here) == 0 && fstatat(tree, "bin/env", &there, 0) == 0);
        CHECK(here.st_ino == there.st_ino && here.st_uid == 0 && there.st_uid == FIRST && there.st_gid == FIRST);
        /* Nobody writes through it, and nothing on it gives rights. */
        CHECK(openat(tree, "caisson-test", O_WRONLY | O_CREAT, 0600) < 0 && errno == EROFS);
        CHECK(fstatvfs(tree, &mount) == 0 && mount.f_flag & ST_RDONLY && mount.f_flag & ST_NOSUID &&
                mount.f_flag & ST_NODEV);
        fd_close(&tree);
}

static void a_file_system_without_maps_is_refused_with_a_remedy(void)
{
        struct csn_error err = { 0 };
        int tree = -1;
        if (geteuid() != 0)
                SKIP("needs root: mounts are mapped");
        CHECK(idmap_tree("/proc", FIRST, &tree, &err) == -CSN_E_UNSUPPORTED && tree == -1);
        CHECK(strstr(err.text, "/proc") &&
                (strstr(err.text, "ext4") || strstr(err.text, "as root of the host") ||
                        strstr(err.text, "Linux 5.19")));
}

static void nothing_is_left_of_the_process_that_lent_the_map(void)
{
        struct csn_error err = { 0 };
        char children[64];
        int tree = -1;
        if (geteuid() != 0)
                SKIP("needs root: mounts are mapped");
        idmap_tree("/usr", FIRST, &tree, &err);
        fd_close(&tree);
        CHECK(io_read_file(AT_FDCWD, "/proc/thread-self/children", children, sizeof children - 1) == 0);
}

int main(void)
{
        RUN(files_of_root_belong_to_the_first_id);
        RUN(a_file_system_without_maps_is_refused_with_a_remedy);
        RUN(nothing_is_left_of_the_process_that_lent_the_map);
        return tap_done();
}
