/* files: a folder in which a hostile program did what it liked, read without harm. */
#include "engine/output/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tap.h"

static char top[64];
static int home, first_fd = -1;

static void open_home(void)
{
        snprintf(top, sizeof top, "/tmp/caisson-files-XXXXXX");
        if (!mkdtemp(top))
                abort();
        home = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void close_home(void)
{
        close(home);
        io_remove_tree(AT_FDCWD, top);
        CHECK(access(top, F_OK) < 0);
}

static void put(const char *name, const char *text)
{
        auto_fd fd = openat(home, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
}

static struct file_list collect(struct arena *arena, const struct file_input *inputs, size_t n)
{
        const struct file_rules rules = { .files_max = 100,
                .bytes_max = 100 * MIB,
                .time_ms = 10000,
                .inputs = inputs,
                .inputs_n = n,
                .first_fd = first_fd };
        struct file_list list;
        struct csn_error err;
        CHECK(files_collect(home, &rules, arena, &list, &err) == 0);
        return list;
}

static void regular_files_are_found_with_size_hash_and_type(void)
{
        struct arena arena = { 0 };
        open_home();
        mkdirat(home, "a", 0755);
        put("a/b.txt", "abc");
        put("z.bin", "\x89PNG\r\n\x1a\n");
        struct file_list list = collect(&arena, NULL, 0);
        CHECK(list.n == 2 && !list.truncated);
        CHECK(strcmp(list.files[0].name, "a/b.txt") == 0 && list.files[0].size == 3);
        CHECK(strcmp(list.files[0].sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") == 0);
        CHECK(strcmp(list.files[0].mime, "text/plain") == 0 && strcmp(list.files[1].mime, "image/png") == 0);
        close_home();
        arena_done(&arena);
}

static void only_inputs_with_new_content_are_changed(void)
{
        struct arena arena = { 0 };
        struct file_input inputs[] = { { "same", 3,
                                               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 0 },
                { "other", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 0 } };
        open_home();
        put("same", "abc");
        put("other", "abd");
        put("new", "abc");
        struct file_list list = collect(&arena, inputs, 2);
        CHECK(list.n == 2);
        CHECK(strcmp(list.files[0].name, "new") == 0 && !list.files[0].changed);
        CHECK(strcmp(list.files[1].name, "other") == 0 && list.files[1].changed);
        close_home();
        arena_done(&arena);
}

/* What came from inside for the first input: the folder decides what it is. */
static bool is_taken_for(const char *change, const char *how)
{
        struct arena arena = { 0 };
        struct file_input input = { "in", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 0 };
        open_home();
        put("in", "abc");
        first_fd = openat(home, "in", O_RDONLY | O_CLOEXEC);
        if (strstr(change, "renamed"))
                CHECK(renameat(home, "in", home, "other") == 0);
        if (strstr(change, "removed"))
                CHECK(unlinkat(home, "in", 0) == 0);
        if (strstr(change, "written"))
                put("in", "abd");
        if (strstr(change, "linked"))
                CHECK(linkat(home, "in", home, "other", 0) == 0);
        struct file_list list = collect(&arena, &input, 1);
        const struct file_found *in = list.n ? &list.files[0] : NULL;
        const char *is = !in || strcmp(in->name, "in") != 0 ? "same"
                : in->error                                 ? "error"
                : in->changed                               ? "changed"
                                                            : "new";
        CHECK(first_fd >= 0);
        fd_close(&first_fd);
        close_home();
        arena_done(&arena);
        return strcmp(is, how) == 0;
}

static void a_descriptor_is_no_word_on_what_a_name_means(void)
{
        CHECK(is_taken_for("", "same"));
        CHECK(is_taken_for("written", "changed"));
        CHECK(is_taken_for("renamed", "same"));
        CHECK(is_taken_for("renamed, written", "changed"));
        CHECK(is_taken_for("removed, written", "changed"));
        CHECK(is_taken_for("linked", "error"));
}

static void links_fifos_and_sockets_are_left_out(void)
{
        struct arena arena = { 0 };
        open_home();
        CHECK(symlinkat("/etc/passwd", home, "passwd.txt") == 0 && symlinkat("/etc", home, "etc") == 0);
        CHECK(mkfifoat(home, "fifo", 0666) == 0);
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", top);
        auto_fd sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(bind(sock, (struct sockaddr *)&name, sizeof name) == 0);
        put("real", "x");
        struct file_list list = collect(&arena, NULL, 0);
        CHECK(list.n == 1 && strcmp(list.files[0].name, "real") == 0);
        close_home();
        arena_done(&arena);
}

static void a_name_that_became_a_link_is_not_followed(void)
{
        struct csn_error err;
        open_home();
        CHECK(symlinkat("/etc/passwd", home, "x") == 0);
        mkdirat(home, "d", 0755);
        CHECK(symlinkat("/etc", home, "d/e") == 0);
        CHECK(files_open(home, "x", &err) < 0);
        CHECK(files_open(home, "d/e/passwd", &err) < 0);
        CHECK(files_open(home, "../../etc/passwd", &err) < 0);
        CHECK(files_open(home, "/etc/passwd", &err) < 0);
        CHECK(files_open(home, "d", &err) < 0);
        close_home();
}

static void hard_links_and_sparse_files_are_named_and_not_read(void)
{
        struct arena arena = { 0 };
        open_home();
        put("one", "x");
        CHECK(linkat(home, "one", home, "two", 0) == 0);
        auto_fd fd = openat(home, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        CHECK(ftruncate(fd, 1LL << 40) == 0);
        struct file_list list = collect(&arena, NULL, 0);
        CHECK(list.n == 3);
        for (size_t i = 0; i < list.n; i++)
                CHECK(list.files[i].error && !list.files[i].sha256[0]);
        close_home();
        arena_done(&arena);
}

static void too_many_files_are_cut_and_said(void)
{
        struct arena arena = { 0 };
        open_home();
        for (int i = 0; i < 130; i++) {
                char name[16];
                snprintf(name, sizeof name, "%03d", i);
                put(name, "x");
        }
        struct file_list list = collect(&arena, NULL, 0);
        CHECK(list.n == 100 && list.truncated && strcmp(list.files[99].name, "099") == 0);
        close_home();
        arena_done(&arena);
}

static void a_tree_of_1500_levels_hurts_nobody(void)
{
        struct arena arena = { 0 };
        open_home();
        auto_fd at = fcntl(home, F_DUPFD_CLOEXEC, 0);
        for (int i = 0; i < 1500; i++) {
                CHECK(mkdirat(at, "d", 0755) == 0);
                int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                fd_close(&at);
                at = next;
        }
        struct file_list list = collect(&arena, NULL, 0);
        CHECK(list.n == 0 && list.truncated);
        close_home();
        arena_done(&arena);
}

static void rights_taken_away_are_given_back(void)
{
        struct arena arena = { 0 };
        open_home();
        mkdirat(home, "d", 0755);
        put("d/f", "x");
        CHECK(fchmodat(home, "d/f", 0, 0) == 0 && fchmodat(home, "d", 0, 0) == 0);
        struct file_list list = collect(&arena, NULL, 0);
        CHECK(list.n == 1 && !list.files[0].error);
        close_home();
        arena_done(&arena);
}

static void any_bytes_can_be_a_name(void)
{
        struct arena arena = { 0 };
        open_home();
        put("new\nline", "1");
        put("\xff\xfe", "2");
        put("\x1b[31m", "3");
        struct file_list list = collect(&arena, NULL, 0);
        CHECK(list.n == 3);
        close_home();
        arena_done(&arena);
}

static void an_export_replaces_a_planted_link(void)
{
        struct arena arena = { 0 };
        struct csn_error err;
        char to[] = "/tmp/caisson-export-XXXXXX", victim[] = "/tmp/caisson-victim-XXXXXX", text[16];
        CHECK(mkdtemp(to) != NULL);
        auto_fd target = mkstemp(victim);
        CHECK(target >= 0);
        auto_fd dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        open_home();
        put("out.csv", "new");
        CHECK(symlinkat(victim, dir, "out.csv") == 0);
        struct file_list list = collect(&arena, NULL, 0);
        CHECK(files_export(home, &list.files[0], dir, -1, &err) == 0);
        CHECK(io_read_file(AT_FDCWD, victim, text, 15) == 0);
        CHECK(io_read_file(dir, "out.csv", text, 15) == 3 && strcmp(text, "new") == 0);
        struct stat st;
        CHECK(fstatat(dir, "out.csv", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
                (st.st_mode & 07777) == 0644);
        close_home();
        unlink(victim);
        io_remove_tree(AT_FDCWD, to);
        arena_done(&arena);
}

static void an_export_does_not_leave_its_folder(void)
{
        struct csn_error err;
        char to[] = "/tmp/caisson-export-XXXXXX";
        CHECK(mkdtemp(to) != NULL);
        auto_fd dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        open_home();
        mkdirat(home, "d", 0755);
        put("d/x", "1");
        CHECK(symlinkat("/tmp", dir, "d") == 0);   /* a link where a folder of the same name has to be made */
        struct file_found file = { .name = "d/x", .size = 1 };
        CHECK(files_export(home, &file, dir, -1, &err) < 0);
        static const char *const bad[] = { "../x", "/etc/x", "a\nb", "\xff" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                file.name = (char *)(uintptr_t)bad[i];
                CHECK(files_export(home, &file, dir, -1, &err) == -CSN_E_INPUT);
        }
        close_home();
        io_remove_tree(AT_FDCWD, to);
}

static void patterns_without_a_slash_mean_the_last_part(void)
{
        CHECK(files_match("*.csv", "a/b/x.csv") && files_match("*.csv", "x.csv") && !files_match("*.csv", "x.txt"));
        CHECK(files_match("a/*.csv", "a/x.csv") && !files_match("a/*.csv", "a/b/x.csv"));
        CHECK(files_match("*", "x") && !files_match("*", ".hidden") && files_match(".*", ".hidden"));
}

static void a_folder_of_ours_is_weighed_and_emptied(void)
{
        struct stat st;
        open_home();
        mkdirat(home, "a", 0755);
        mkdirat(home, "a/b", 0755);
        put("a/b/c", "12345");
        put("a/d", "123");
        CHECK(symlinkat("/etc", home, "link") == 0 && mkfifoat(home, "fifo", 0600) == 0);
        CHECK(files_weigh(home, 0) == 8 && files_weigh(home, 100) == 208);
        CHECK(files_stat(home, "a/b/c", &st) == 0 && st.st_size == 5 && files_stat(home, "link", &st) == 0 &&
                S_ISLNK(st.st_mode));
        CHECK(files_stat(home, "link/passwd", &st) < 0 && errno == ELOOP && files_stat(home, "../x", &st) < 0 &&
                files_stat(home, "/etc/passwd", &st) < 0);
        CHECK(files_stat(home, "a/none", &st) < 0 && errno == ENOENT && files_stat(home, "a/d/x", &st) < 0 &&
                errno == ENOTDIR);
        CHECK(files_remove(home, "link/passwd") < 0 && files_remove(home, "../x") < 0 && files_remove(home, "a") < 0 &&
                files_remove(home, "none") < 0);
        CHECK(files_remove(home, "a/b/c") == 0 && files_stat(home, "a/b", &st) < 0 &&
                files_stat(home, "a/d", &st) == 0);
        CHECK(files_remove(home, "a/d") == 0 && files_stat(home, "a", &st) < 0 && files_remove(home, "link") == 0 &&
                access("/etc/passwd", F_OK) == 0);
        close_home();
}

static void a_copy_is_made_elsewhere_and_renamed(void)
{
        struct arena arena = { 0 };
        struct csn_error err;
        struct stat st;
        open_home();
        put("x", "abc");
        struct file_list list = collect(&arena, NULL, 0);
        mkdirat(home, "to", 0755);
        mkdirat(home, "temp", 0700);
        auto_fd to = openat(home, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                temp = openat(home, "temp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(files_export(home, &list.files[0], to, temp, &err) == 0 && files_stat(to, "x", &st) == 0 &&
                st.st_size == 3);
        CHECK(files_weigh(temp, 1) == 0);
        CHECK(unlinkat(home, "temp", AT_REMOVEDIR) == 0 &&
                files_export(home, &list.files[0], to, temp, &err) == -CSN_E_SYSTEM); /* not beside its place */
        close_home();
        arena_done(&arena);
}

int main(void)
{
        RUN(a_folder_of_ours_is_weighed_and_emptied);
        RUN(a_copy_is_made_elsewhere_and_renamed);
        RUN(regular_files_are_found_with_size_hash_and_type);
        RUN(only_inputs_with_new_content_are_changed);
        RUN(a_descriptor_is_no_word_on_what_a_name_means);
        RUN(links_fifos_and_sockets_are_left_out);
        RUN(a_name_that_became_a_link_is_not_followed);
        RUN(hard_links_and_sparse_files_are_named_and_not_read);
        RUN(too_many_files_are_cut_and_said);
        RUN(a_tree_of_1500_levels_hurts_nobody);
        RUN(rights_taken_away_are_given_back);
        RUN(any_bytes_can_be_a_name);
        RUN(an_export_replaces_a_planted_link);
        RUN(an_export_does_not_leave_its_folder);
        RUN(patterns_without_a_slash_mean_the_last_part);
        return tap_done();
}
