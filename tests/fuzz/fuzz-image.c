/*
 * Hostile layers of images: the lowest bit of the first byte says whether whiteouts count, the rest is a tar file,
 * which is unpacked into a folder in memory.
 *
 * Beside the tree lies a file that no member may reach.  The tree gets no other kinds of files, and no more of them,
 * than unpack.c promises.
 */
#include "images/import_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 50
#define BYTES_MAX ((uint64_t)4096)
#define SECRET "beside"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool good)
{
        if (!good)
                abort();
}

static char place[] = "/dev/shm/caisson-fuzz-image-XXXXXX";
static int place_fd = -1;

static void clean_up(void)
{
        io_remove_tree(place_fd, "tree");
        unlinkat(place_fd, SECRET, 0);
        rmdir(place);
}

static void make_place(void)
{
        if (place_fd >= 0)
                return;
        must(mkdtemp(place) != NULL);
        place_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_fd fd = openat(place_fd, SECRET, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        must(place_fd >= 0 && fd >= 0 && write(fd, SECRET, strlen(SECRET)) == (ssize_t)strlen(SECRET));
        must(atexit(clean_up) == 0);
}

/* The file beside the tree, and the folder of both, are as they were. */
static void check_place(void)
{
        char text[sizeof SECRET + 1] = "";
        struct stat st;
        size_t n = 0;
        auto_fd fd = openat(place_fd, SECRET, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        must(fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && (st.st_mode & 07777) == 0600);
        must(read(fd, text, sizeof text) == (ssize_t)strlen(SECRET) && strcmp(text, SECRET) == 0);
        DIR *dir = fdopendir(openat(place_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        while (dir && readdir(dir))
                n++;
        must(dir && n == 4);
        closedir(dir);
}

/* Count the files of a folder of the tree, and compare their kinds and modes with the promise. */
static uint64_t check_folder(int folder)
{
        uint64_t n = 0;
        DIR *dir = fdopendir(folder);
        must(dir != NULL);
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                struct stat st;
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                n++;
                must(fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
                must(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode));
                must(S_ISLNK(st.st_mode) || !(st.st_mode & 07022));
                must(!S_ISREG(st.st_mode) || (uint64_t)st.st_size <= BYTES_MAX);
                if (S_ISDIR(st.st_mode)) {
                        int below = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                        must(below >= 0);
                        n += check_folder(below);
                }
        }
        closedir(dir);
        return n;
}

static int unpack(struct unpacker *unpacker, const uint8_t *bytes, size_t len, enum unpack_pass pass)
{
        struct archive *tar = archive_read_new();
        archive_read_support_format_tar(tar);
        bool opened = archive_read_open_memory(tar, bytes, len) == ARCHIVE_OK;
        int rc = opened ? unpack_tar(unpacker, tar, pass) : archive_unreadable(tar, unpacker->err);
        archive_read_free(tar);
        return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        const struct image_limits limits = { .max_bytes = BYTES_MAX, .max_files = FILES_MAX };
        struct csn_error err = { 0 };
        struct unpacker unpacker = { .limits = &limits, .err = &err };
        if (!len)
                return 0;
        make_place();
        must(mkdirat(place_fd, "tree", 0755) == 0);
        unpacker.tree_fd = openat(place_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(unpacker.tree_fd >= 0);
        bool layer = bytes[0] & 1;
        int rc = layer ? unpack(&unpacker, bytes + 1, len - 1, UNPACK_WHITEOUTS) : 0;
        rc = rc < 0 ? rc : unpack(&unpacker, bytes + 1, len - 1, layer ? UNPACK_FILES : UNPACK_ALL);
        must(rc == 0 || (err.code == -rc && err.text[0] && (err.code == CSN_E_INPUT || err.code == CSN_E_SYSTEM)));
        unpack_done(&unpacker);
        check_place();
        must(check_folder(openat(unpacker.tree_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) <= unpacker.files);
        must(unpacker.files <= FILES_MAX && unpacker.bytes <= BYTES_MAX);
        fd_close(&unpacker.tree_fd);
        io_remove_tree(place_fd, "tree");
        return 0;
}
