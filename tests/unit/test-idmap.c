/* idmap: what overlayfs is to copy up has an owner inside, and what cannot be mapped is refused in words. */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

#define IMAGE "00000000000000ab00000000000000cd"

static void make_file(int dir_fd, const char *path, uid_t owner, mode_t mode)
{
        int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL, mode);
        CHECK(fd >= 0 && fchown(fd, owner, owner) == 0);
        fd_close(&fd);
}

/* A folder of images that belongs to 65533, with one image. */
static int make_images(char path[static 32])
{
        snprintf(path, 32, "/tmp/caisson-images-XXXXXX");
        CHECK(mkdtemp(path) != NULL);
        int images = open(path, O_RDONLY | O_DIRECTORY);
        CHECK(mkdirat(images, IMAGE, 0755) == 0 && mkdirat(images, IMAGE "/tree", 0755) == 0);
        CHECK(fchown(images, 65533, 65533) == 0);
        make_file(images, IMAGE "/tree/own", 65533, 0600);
        make_file(images, IMAGE "/tree/foreign", 0, 0600);
        return images;
}

static void remove_images(int *images, const char *path)
{
        static const char *const names[] = { IMAGE "/tree/own", IMAGE "/tree/foreign" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                unlinkat(*images, names[i], 0);
        unlinkat(*images, IMAGE "/tree", 0);
        unlinkat(*images, IMAGE "/tree", AT_REMOVEDIR);
        unlinkat(*images, IMAGE, 0);
        unlinkat(*images, IMAGE, AT_REMOVEDIR);
        fd_close(images);
        CHECK(rmdir(path) == 0);
}

static void files_of_an_image_belong_to_the_first_id_if_they_are_of_the_folders_owner(void)
{
        const struct wire_shape shape = { .image_high = 0xab, .image_low = 0xcd };
        struct csn_error err = { 0 };
        struct stat st;
        struct statvfs mount;
        char path[32];
        int tree = -1;
        if (geteuid() != 0)
                SKIP("needs root: mounts are mapped");
        int images = make_images(path);
        if (idmap_image(images, &shape, FIRST, &tree, &err) < 0) {
                CHECK(err.code == CSN_E_UNSUPPORTED && strstr(err.text, "folder of images"));
                remove_images(&images, path);
                SKIP("needs mapped mounts: %s", err.text);
        }
        CHECK(fstatat(tree, "own", &st, 0) == 0 && st.st_uid == FIRST && st.st_gid == FIRST);
        CHECK(fstatat(tree, "foreign", &st, 0) == 0 && st.st_uid == 65534 && st.st_gid == 65534);
        CHECK(fstatvfs(tree, &mount) == 0 && mount.f_flag & ST_RDONLY && mount.f_flag & ST_NOSUID &&
                mount.f_flag & ST_NODEV);
        fd_close(&tree);
        remove_images(&images, path);
}

static void no_link_leads_out_of_the_folder_of_images(void)
{
        const struct wire_shape shape = { .image_high = 0xab, .image_low = 0xcd }, other = { .image_low = 1 };
        struct csn_error err = { 0 };
        char path[32];
        int tree = -1;
        if (geteuid() != 0)
                SKIP("needs root: files of other accounts are made");
        int images = make_images(path);
        CHECK(idmap_image(images, &other, FIRST, &tree, &err) == -CSN_E_SYSTEM && err.sys == ENOENT);
        CHECK(idmap_image(-1, &shape, FIRST, &tree, &err) == -CSN_E_SYSTEM);
        CHECK(renameat(images, IMAGE "/tree", images, "real") == 0);
        CHECK(symlinkat("/root", images, IMAGE "/tree") == 0);
        CHECK(idmap_image(images, &shape, FIRST, &tree, &err) == -CSN_E_SYSTEM && err.sys == ELOOP && tree == -1);
        CHECK(unlinkat(images, IMAGE "/tree", 0) == 0 && unlinkat(images, IMAGE, AT_REMOVEDIR) == 0);
        CHECK(symlinkat("/", images, IMAGE) == 0);
        CHECK(idmap_image(images, &shape, FIRST, &tree, &err) == -CSN_E_SYSTEM && err.sys == ELOOP && tree == -1);
        CHECK(unlinkat(images, IMAGE, 0) == 0 && mkdirat(images, IMAGE, 0755) == 0);
        CHECK(renameat(images, "real", images, IMAGE "/tree") == 0);
        remove_images(&images, path);
}

int main(void)
{
        RUN(files_of_root_belong_to_the_first_id);
        RUN(a_file_system_without_maps_is_refused_with_a_remedy);
        RUN(nothing_is_left_of_the_process_that_lent_the_map);
        RUN(files_of_an_image_belong_to_the_first_id_if_they_are_of_the_folders_owner);
        RUN(no_link_leads_out_of_the_folder_of_images);
        return tap_done();
}
