/* layers: names, publishing, damage, eviction, locks, and what is left of a killed process. */
#include "layers/layers.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tap.h"

static const struct layer_limits plenty = { .max_bytes = 64 * MIB, .max_files = 1000 };
static struct csn_error err;
static struct arena arena;

/* ---- a folder of layers, and layers to put into it ---- */

static char folder[] = "/tmp/test-layers-XXXXXX";

static char *in_folder(const char *fmt, ...) PRINTF_LIKE(1, 2);
static char *in_folder(const char *fmt, ...)
{
        char text[4096];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        return arena_text(&arena, "%s/layers/%s", folder, text);
}

static struct layers *open_layers(void)
{
        struct layers *layers = NULL;
        CHECK(layers_open(in_folder("."), &layers, &err) == 0);
        CHECK(strcmp(layers_path(layers), in_folder(".")) == 0);
        return layers;
}

/* An empty folder of layers. */
static struct layers *fresh_layers(void)
{
        auto_fd top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        io_remove_tree(top, "layers");
        struct layers *layers = NULL;
        CHECK(layers_open(arena_text(&arena, "%s/layers", folder), &layers, &err) == 0);
        return layers;
}

static const struct layer_package packages[] = {
        { "requests", "2.31.0", "requests-2.31.0-py3-none-any.whl",
                "58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f", "2023-05-22T15:12:42Z" },
        { "idna", "3.4", "idna-3.4-py3-none-any.whl",
                "90b77e79eaa3eba6de819a0c442c0b4ceefc341a7a2ab77d7562bf49f425c5c2", "" },
};

static struct layer_meta meta_of(const char *build)
{
        return (struct layer_meta){ .key = { .domain = "",
                                            .language = "python",
                                            .runtime = "3.11.2",
                                            .arch = "x86_64",
                                            .libc = "glibc 2.36",
                                            .image = "",
                                            .index = "https://pypi.org/simple",
                                            .build = build,
                                            .lock = packages,
                                            .lock_n = ARRAY_LEN(packages) } };
}

static void write_file(int dir_fd, const char *name, const char *text, mode_t mode)
{
        auto_fd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0 && fchmod(fd, mode) == 0);
}

static void fill(int tree_fd, const char *text)
{
        CHECK(mkdirat(tree_fd, "pkg", 0700) == 0 && mkdirat(tree_fd, "bin", 0750) == 0);
        write_file(tree_fd, "pkg/__init__.py", text, 0600);
        write_file(tree_fd, "bin/run", "#!/bin/sh\n", 0700);
        CHECK(symlinkat("../pkg/__init__.py", tree_fd, "bin/link") == 0);
}

/* Publish a layer with this text in a file; its id in ret. */
static int publish(struct layers *layers, const char *build, const char *text, bool pinned,
        char ret[static LAYER_ID_MAX])
{
        struct layer_staging staging;
        struct layer_meta meta = meta_of(build);
        meta.pinned = pinned;
        if (layers_stage(layers, &staging, &err) < 0) {
                printf("# %s\n", err.text);
                return -1;
        }
        fill(staging.tree_fd, text);
        int rc = layers_commit(layers, &staging, &plenty, &meta, &arena, ret, &err);
        if (rc < 0)
                printf("# %s\n", err.text);
        return rc;
}

static size_t count_names(const char *path)
{
        size_t n = 0;
        DIR *dir = opendir(path);
        for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
                n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
        if (dir)
                closedir(dir);
        return n;
}

static bool is_there(struct layers *layers, const char *id)
{
        struct layer layer;
        return layers_find(layers, id, &arena, &layer, NULL, &err) == 1;
}

static void set_used(const char *id, int64_t ms)
{
        struct timespec times[2] = { { .tv_sec = ms / 1000 }, { .tv_sec = ms / 1000 } };
        CHECK(utimensat(AT_FDCWD, in_folder("%s/meta.json", id + 4), times, 0) == 0);
}

/* ---- names ---- */

static void the_id_is_a_hash_of_all_fields_and_the_sorted_lock(void)
{
        char id[LAYER_ID_MAX], other[LAYER_ID_MAX];
        uint8_t bytes[LAYER_ID_BYTES];
        struct layer_meta meta = meta_of("1");
        const struct layer_package reversed[] = { packages[1], packages[0] };
        layer_id(&meta.key, id);
        /* A daemon of another version finds the layers of this one. */
        CHECK(strcmp(id, "lyr_67accac23c61dc1ac204e8e52091390d") == 0);
        if (strcmp(id, "lyr_67accac23c61dc1ac204e8e52091390d") != 0)
                printf("# %s\n", id);
        meta.key.lock = reversed;
        layer_id(&meta.key, other);
        CHECK(strcmp(id, other) == 0);

        const char **const fields[] = { &meta.key.domain, &meta.key.language, &meta.key.runtime, &meta.key.arch,
                &meta.key.libc, &meta.key.image, &meta.key.index, &meta.key.build };
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                const char *was = *fields[i];
                *fields[i] = "another";
                layer_id(&meta.key, other);
                CHECK(strcmp(id, other) != 0);
                *fields[i] = was;
        }
        /* Lengths are part of the hash: no text moves from a field to the next one. */
        meta.key.arch = "ab";
        meta.key.libc = "c";
        layer_id(&meta.key, id);
        meta.key.arch = "a";
        meta.key.libc = "bc";
        layer_id(&meta.key, other);
        CHECK(strcmp(id, other) != 0);

        CHECK(layer_id_parse("lyr_000102030405060708090a0b0c0d0eff", bytes) && bytes[1] == 1 && bytes[15] == 0xff);
        CHECK(!layer_id_parse("lyr_000102030405060708090a0b0c0d0eFF", bytes));
        CHECK(!layer_id_parse("lyr_000102030405060708090a0b0c0d0ef", bytes));
        CHECK(!layer_id_parse("lyr_000102030405060708090a0b0c0d0eff0", bytes));
        CHECK(!layer_id_parse("000102030405060708090a0b0c0d0eff", bytes) && !layer_id_parse("", bytes));
        CHECK(!layer_id_parse("lyr_../..............................", bytes));
}

/* ---- publishing ---- */

static void a_published_layer_is_found_with_all_that_was_said(void)
{
        static const char *const modules[] = { "requests", "idna" };
        struct layers *layers = fresh_layers();
        struct layer_staging staging;
        struct layer layer;
        struct stat st;
        char id[LAYER_ID_MAX];
        struct layer_meta meta = meta_of("1");
        meta.modules = modules;
        meta.modules_n = 2;
        meta.pinned = true;
        umask(077);
        CHECK(layers_stage(layers, &staging, &err) == 0);
        CHECK(strcmp(layers_staging_tree(layers, &staging, &arena), in_folder(".staging/%s/tree", staging.name)) == 0);
        fill(staging.tree_fd, "print(1)\n");
        CHECK(layers_commit(layers, &staging, &plenty, &meta, &arena, id, &err) == 0);
        umask(022);
        CHECK(staging.fd < 0 && staging.tree_fd < 0 && count_names(in_folder(".staging")) == 0);
        CHECK(layers_find(layers, id, &arena, &layer, NULL, &err) == 1);
        CHECK(strcmp(layer.id, id) == 0 && layer.meta.pinned && layer.meta.files == 5 && layer.meta.bytes == 19);
        CHECK(layer.meta.key.lock_n == 2 && strcmp(layer.meta.key.lock[0].upload_time, "2023-05-22T15:12:42Z") == 0);
        CHECK(layer.meta.modules_n == 2 && strcmp(layer.meta.modules[1], "idna") == 0 && layer.meta.warnings_n == 0);
        CHECK(layer.used_ms >= layer.meta.created_ms && layer.meta.created_ms > 0);
        /* Another user id mounts and reads the layer. */
        static const struct {
                const char *name;
                mode_t mode;
        } rows[] = { { "", 0755 }, { "/meta.json", 0644 }, { "/tree", 0755 }, { "/tree/pkg", 0755 },
                { "/tree/pkg/__init__.py", 0644 }, { "/tree/bin/run", 0755 } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                CHECK(stat(in_folder("%s%s", id + 4, rows[i].name), &st) == 0 && (st.st_mode & 07777) == rows[i].mode);
        CHECK(stat(in_folder("."), &st) == 0 && (st.st_mode & 07777) == 0755);
        CHECK(stat(in_folder("%s/tree/bin/run", id + 4), &st) == 0 && st.st_mtime == 315532800);
        char fault[LAYER_FAULT_MAX];
        CHECK(layers_verify(layers, id, fault, &err) == 1);
        CHECK(!is_there(layers, "lyr_00000000000000000000000000000000"));
        CHECK(layers_find(layers, "nonsense", &arena, &layer, NULL, &err) == -CSN_E_INPUT);
        layers_close(layers);
}

static void equal_trees_have_equal_hashes_whatever_their_modes_and_order_were(void)
{
        struct layers *layers = fresh_layers();
        struct layer_staging staging;
        char one[LAYER_ID_MAX], two[LAYER_ID_MAX];
        struct layer_meta first = meta_of("1"), second = meta_of("2");
        CHECK(layers_stage(layers, &staging, &err) == 0);
        write_file(staging.tree_fd, "a", "1", 0600);
        write_file(staging.tree_fd, "b", "2", 0777);
        CHECK(layers_commit(layers, &staging, &plenty, &first, &arena, one, &err) == 0);
        CHECK(layers_stage(layers, &staging, &err) == 0);
        write_file(staging.tree_fd, "b", "2", 04700);
        write_file(staging.tree_fd, "a", "1", 02644);
        CHECK(layers_commit(layers, &staging, &plenty, &second, &arena, two, &err) == 0);
        CHECK(strcmp(one, two) != 0 && strcmp(first.tree_sha256, second.tree_sha256) == 0);
        struct stat st;
        CHECK(stat(in_folder("%s/tree/b", two + 4), &st) == 0 && (st.st_mode & 07777) == 0755);
        CHECK(stat(in_folder("%s/tree/a", two + 4), &st) == 0 && (st.st_mode & 07777) == 0644);
        layers_close(layers);
}

static void a_layer_that_exists_stays_and_the_second_is_discarded(void)
{
        struct layers *layers = fresh_layers();
        char one[LAYER_ID_MAX], two[LAYER_ID_MAX], text[20];
        CHECK(publish(layers, "1", "first\n", false, one) == 0 && publish(layers, "1", "second\n", false, two) == 0);
        CHECK(strcmp(one, two) == 0 && count_names(in_folder(".staging")) == 0);
        CHECK(io_read_file(AT_FDCWD, in_folder("%s/tree/pkg/__init__.py", one + 4), text, 19) == 6);
        layers_close(layers);
}

static void pth_files_are_warned_of(void)
{
        struct layers *layers = fresh_layers();
        struct layer_staging staging;
        struct layer_meta meta = meta_of("1");
        char id[LAYER_ID_MAX];
        CHECK(layers_stage(layers, &staging, &err) == 0);
        write_file(staging.tree_fd, "evil.pth", "import os\n", 0644);
        CHECK(layers_commit(layers, &staging, &plenty, &meta, &arena, id, &err) == 0);
        CHECK(meta.warnings_n == 1 && strstr(meta.warnings[0], "evil.pth has no effect"));
        layers_close(layers);
}

/* ---- trees that are refused ---- */

static void add_outside(int fd)
{
        CHECK(symlinkat("../../../etc", fd, "x") == 0);
}
static void add_absolute(int fd)
{
        CHECK(symlinkat("/etc/passwd", fd, "x") == 0);
}
static void add_up(int fd)
{
        CHECK(symlinkat("..", fd, "x") == 0);
}
static void add_detour(int fd)
{
        /* By its text the second link stays inside: it goes up from a folder. */
        CHECK(symlinkat(".", fd, "s") == 0 && symlinkat("s/..", fd, "x") == 0);
}
static void add_pipe(int fd)
{
        CHECK(mkfifoat(fd, "x", 0600) == 0);
}
static void add_hard_link(int fd)
{
        write_file(fd, "y", "", 0600);
        CHECK(linkat(fd, "y", fd, "x", 0) == 0);
}
static void add_control(int fd)
{
        write_file(fd, "a\nb", "", 0600);
}
static void add_latin(int fd)
{
        write_file(fd, "caf\xe9", "", 0600);
}
static void add_depth(int fd)
{
        char path[2 * LAYER_DEPTH_MAX + 4] = "";
        for (size_t i = 0; i <= LAYER_DEPTH_MAX; i++) {
                memcpy(path + 2 * i, "d/", 3);
                CHECK(mkdirat(fd, path, 0700) == 0);
        }
}
static void add_length(int fd)
{
        char path[LAYER_PATH_MAX + 2] = "";
        for (size_t i = 0; i <= LAYER_PATH_MAX; i++) {
                path[i] = i % 250 == 249 ? '/' : 'n';
                if (path[i] == '/')
                        CHECK(mkdirat(fd, path, 0700) == 0);
        }
        write_file(fd, path, "", 0600);
}
static void add_much(int fd)
{
        write_file(fd, "x", "", 0600);
        auto_fd file = openat(fd, "x", O_WRONLY | O_CLOEXEC);
        CHECK(ftruncate(file, (off_t)plenty.max_bytes + 1) == 0);
}
static void add_many(int fd)
{
        for (unsigned i = 0; i <= plenty.max_files; i++) {
                char name[20];
                snprintf(name, sizeof name, "%u", i);
                CHECK(mkdirat(fd, name, 0700) == 0);
        }
}

static void hostile_trees_are_refused_and_nothing_is_left(void)
{
        static const struct {
                void (*add)(int fd);
                const char *field, *part;
        } rows[] = {
                { add_outside, "tree", "leads out of the layer" },
                { add_absolute, "tree", "leads out of the layer" },
                { add_up, "tree", "leads out of the layer" },
                { add_detour, "tree", "leads out of the layer" },
                { add_pipe, "tree", "is a device, pipe or socket" },
                { add_hard_link, "tree", "is a hard link" },
                { add_control, "tree", "control character" },
                { add_latin, "tree", "not valid UTF-8" },
                { add_depth, "tree", "below more than 64 folders" },
                { add_length, "tree", "than 1024 bytes" },
                { add_much, "max_bytes", "more than 67108864 bytes" },
                { add_many, "max_files", "more than 1000 files" },
        };
        struct layers *layers = fresh_layers();
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct layer_staging staging;
                struct layer_meta meta = meta_of("1");
                char id[LAYER_ID_MAX];
                CHECK(layers_stage(layers, &staging, &err) == 0);
                rows[i].add(staging.tree_fd);
                CHECK(layers_commit(layers, &staging, &plenty, &meta, &arena, id, &err) == -CSN_E_INPUT);
                bool good = strcmp(err.field, rows[i].field) == 0 && strstr(err.text, rows[i].part);
                CHECK(good);
                if (!good)
                        printf("# %zu: %s: %s\n", i, err.field, err.text);
                CHECK(count_names(in_folder(".staging")) == 0 && count_names(in_folder(".")) == 4);
        }
        layers_close(layers);
}

static void links_that_stay_inside_are_taken(void)
{
        struct layers *layers = fresh_layers();
        struct layer_staging staging;
        struct layer_meta meta = meta_of("1");
        char id[LAYER_ID_MAX];
        CHECK(layers_stage(layers, &staging, &err) == 0);
        fill(staging.tree_fd, "");
        CHECK(symlinkat("nothing", staging.tree_fd, "dangling") == 0 &&
                symlinkat("self", staging.tree_fd, "self") == 0);
        CHECK(symlinkat("bin/../pkg", staging.tree_fd, "pkg2") == 0 &&
                symlinkat("pkg2/x/y", staging.tree_fd, "z") == 0);
        CHECK(layers_commit(layers, &staging, &plenty, &meta, &arena, id, &err) == 0 && is_there(layers, id));
        layers_close(layers);
}

static void a_tree_with_another_hash_than_expected_is_refused(void)
{
        struct layers *layers = fresh_layers();
        struct layer_staging staging;
        struct layer_meta meta = meta_of("1");
        char id[LAYER_ID_MAX];
        memset(meta.tree_sha256, 'a', LAYER_HASH_MAX - 1);
        CHECK(layers_stage(layers, &staging, &err) == 0);
        fill(staging.tree_fd, "");
        CHECK(layers_commit(layers, &staging, &plenty, &meta, &arena, id, &err) == -CSN_E_INPUT &&
                strstr(err.text, "have the hash"));
        CHECK(count_names(in_folder(".")) == 4 && count_names(in_folder(".staging")) == 0);
        layers_close(layers);
}

/* ---- damage ---- */

static void a_damaged_description_is_a_miss_and_the_layer_can_be_built_again(void)
{
        static const struct {
                const char *from, *to;
        } rows[] = {
                { "{", "" },
                { "{", "[" },
                { "\"schema\": 1", "\"schema\": 2" },
                { "\"schema\": 1", "\"schema\": \"1\"" },
                { "lyr_", "lyx_" },
                { "3.11.2", "3.11.3" },
                { "\"pinned\": false", "\"pinned\": 0" },
                { "\"bytes\": ", "\"bytes\": -" },
                { "\"files\": 5", "\"files\": \"5\"" },
                { "\"tree_sha256\": \"", "\"tree_sha256\": \"x" },
                { "\"lock\": [", "\"lock\": [5," },
                { "requests", "Requests" },
                { "58cd2187", "58cd2188" },
                { "\"modules\": [", "\"modules\": [{}" },
                { "\"warnings\": [", "\"warnings\": [null" },
                { "\"domain\": \"\"", "\"domain\": \"\\u0000\"" },
                { "\"build\": \"1\"", "\"build\": \"1\", \"build\": \"1\"" },
                { "}\n}", "}" },
        };
        struct layers *layers = fresh_layers();
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                static char text[10000], changed[11000];
                char id[LAYER_ID_MAX];
                CHECK(publish(layers, "1", "x", false, id) == 0);
                const char *path = in_folder("%s/meta.json", id + 4);
                ssize_t len = io_read_file(AT_FDCWD, path, text, sizeof text - 1);
                char *at = len > 0 ? strstr(text, rows[i].from) : NULL;
                if (!at && strcmp(rows[i].from, "}\n}") == 0)
                        at = text + len - 3, text[len - 1] = 0;
                CHECK(at);
                if (!at)
                        continue;
                snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, rows[i].to,
                        at + min_u64(strlen(rows[i].from), strlen(at)));
                auto_fd fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
                CHECK(io_write_all(fd, changed, strlen(changed)) == 0);
                bool missed = !is_there(layers, id);
                CHECK(missed && access(in_folder("%s", id + 4), F_OK) < 0);
                if (!missed)
                        printf("# %zu: %s is taken\n", i, rows[i].to);
        }
        layers_close(layers);
        layers = open_layers();
        CHECK(count_names(in_folder(".staging")) == 0);
        layers_close(layers);
}

static void what_replaces_parts_of_a_layer_is_a_miss(void)
{
        struct layers *layers = fresh_layers();
        char id[LAYER_ID_MAX];
        CHECK(publish(layers, "1", "x", false, id) == 0 && unlink(in_folder("%s/meta.json", id + 4)) == 0);
        CHECK(!is_there(layers, id));
        CHECK(publish(layers, "1", "x", false, id) == 0 && unlink(in_folder("%s/meta.json", id + 4)) == 0);
        CHECK(symlink("/etc/passwd", in_folder("%s/meta.json", id + 4)) == 0 && !is_there(layers, id));
        CHECK(publish(layers, "1", "x", false, id) == 0 && unlink(in_folder("%s/meta.json", id + 4)) == 0);
        CHECK(mkfifo(in_folder("%s/meta.json", id + 4), 0600) == 0 && !is_there(layers, id));
        CHECK(publish(layers, "1", "x", false, id) == 0);
        CHECK(rename(in_folder("%s/tree", id + 4), in_folder("%s/gone", id + 4)) == 0);
        CHECK(symlink("/etc", in_folder("%s/tree", id + 4)) == 0 && !is_there(layers, id));
        CHECK(symlink("/etc", in_folder("%s", id + 4)) == 0 && !is_there(layers, id));
        layers_close(layers);
}

static void verifying_finds_each_change_of_the_tree(void)
{
        struct layers *layers = fresh_layers();
        for (int i = 0; i < 6; i++) {
                char id[LAYER_ID_MAX], fault[LAYER_FAULT_MAX] = "";
                CHECK(publish(layers, "1", "print(1)\n", false, id) == 0);
                const char *file = in_folder("%s/tree/pkg/__init__.py", id + 4);
                auto_fd tree = open(in_folder("%s/tree", id + 4), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (i == 0)
                        write_file(tree, "pkg/__init__.py", "print(2)\n", 0644);
                if (i == 1)
                        write_file(tree, "pkg/more.py", "", 0644);
                if (i == 2)
                        CHECK(unlink(file) == 0);
                if (i == 3)
                        CHECK(chmod(file, 0755) == 0);
                if (i == 4)
                        CHECK(unlinkat(tree, "bin/link", 0) == 0 && symlinkat("run", tree, "bin/link") == 0);
                if (i == 5)
                        CHECK(unlinkat(tree, "bin/link", 0) == 0 && symlinkat("/etc", tree, "bin/link") == 0);
                CHECK(layers_verify(layers, id, fault, &err) == 0 && fault[0]);
                CHECK(!is_there(layers, id) && count_names(in_folder(".staging")) == 0);
        }
        char fault[LAYER_FAULT_MAX];
        CHECK(layers_verify(layers, "lyr_00000000000000000000000000000000", fault, &err) == -CSN_E_INPUT);
        layers_close(layers);
}

/* ---- removal ---- */

static int prune(struct layers *layers, uint64_t max_bytes, uint64_t ttl_ms, int64_t now_ms,
        struct layers_pruned *ret)
{
        const struct layers_prune_rules rules = { .max_bytes = max_bytes, .ttl_ms = ttl_ms, .now_ms = now_ms };
        return layers_prune(layers, &rules, ret, &err);
}

static void layers_go_by_age_and_by_their_last_use_unless_held(void)
{
        struct layers *layers = fresh_layers();
        struct layers_pruned pruned;
        struct layer layer, *list;
        size_t n;
        char id[5][LAYER_ID_MAX];
        int64_t now = time_now_ms();
        auto_fd held = -1;
        for (int i = 0; i < 5; i++) {
                char build[2] = { (char)('0' + i), 0 };
                CHECK(publish(layers, build, "0123456789", i == 0, id[i]) == 0);
        }
        /* 0: pinned and oldest; 1: old; 2: old and held; 3 and 4: young. */
        CHECK(layers_find(layers, id[2], &arena, &layer, &held, &err) == 1 && held >= 0);
        for (int i = 0; i < 5; i++)
                set_used(id[i], i < 3 ? now - 100000 + 1000 * i : now - 10000 + 1000 * i);
        CHECK(layers_list(layers, &arena, &list, &n, &err) == 0 && n == 5);
        for (size_t i = 0; i < n; i++)
                CHECK(strcmp(list[i].id, id[i]) == 0 && !list[i].fault);

        CHECK(prune(layers, 0, 200000, now, &pruned) == 0 && pruned.layers == 0);
        CHECK(prune(layers, 0, 50000, now, &pruned) == 0 && pruned.layers == 1 && pruned.bytes == 20);
        CHECK(access(in_folder("%s", id[0] + 4), F_OK) == 0 && access(in_folder("%s", id[1] + 4), F_OK) < 0 &&
                access(in_folder("%s", id[2] + 4), F_OK) == 0);
        /* Four layers of 20 bytes: the pinned one was used least recently and goes first.  Then the held one stays. */
        CHECK(prune(layers, 79, 200000, now, &pruned) == 0 && pruned.layers == 1);
        CHECK(access(in_folder("%s", id[0] + 4), F_OK) < 0);
        CHECK(prune(layers, 59, 200000, now, &pruned) == 0 && pruned.layers == 1);
        CHECK(access(in_folder("%s", id[2] + 4), F_OK) == 0 && access(in_folder("%s", id[3] + 4), F_OK) < 0);
        /* Without the hold the expired layer goes. */
        fd_close(&held);
        CHECK(prune(layers, 0, 50000, now, &pruned) == 0 && pruned.layers == 1);
        CHECK(is_there(layers, id[4]) && count_names(in_folder(".staging")) == 0);
        layers_close(layers);
}

static void layers_of_the_rules_stay(void)
{
        struct layers *layers = fresh_layers();
        struct layers_pruned pruned;
        char id[3][LAYER_ID_MAX];
        int64_t now = time_now_ms();
        for (int i = 0; i < 3; i++) {
                char build[2] = { (char)('0' + i), 0 };
                CHECK(publish(layers, build, "0123456789", false, id[i]) == 0);
                set_used(id[i], now - 100000 + 1000 * i);
        }
        const char *const kept[] = { "lyr_", id[0] };
        struct layers_prune_rules rules = { .ttl_ms = 50000, .now_ms = now, .kept = kept, .kept_n = ARRAY_LEN(kept) };
        CHECK(layers_prune(layers, &rules, &pruned, &err) == 0 && pruned.layers == 2 && is_there(layers, id[0]));
        rules.ttl_ms = 200000;
        rules.max_bytes = 1;
        CHECK(layers_prune(layers, &rules, &pruned, &err) == 0 && pruned.layers == 0 && is_there(layers, id[0]));
        layers_close(layers);
}

static void a_use_counts_and_damaged_layers_are_listed_and_pruned(void)
{
        struct layers *layers = fresh_layers();
        struct layers_pruned pruned;
        struct layer *list;
        size_t n;
        char one[LAYER_ID_MAX], two[LAYER_ID_MAX];
        CHECK(publish(layers, "1", "", false, one) == 0 && publish(layers, "2", "", false, two) == 0);
        set_used(one, 1000000);
        set_used(two, 2000000);
        CHECK(is_there(layers, one));
        CHECK(layers_list(layers, &arena, &list, &n, &err) == 0 && n == 2 && strcmp(list[1].id, one) == 0);
        CHECK(truncate(in_folder("%s/meta.json", two + 4), 10) == 0);
        CHECK(layers_list(layers, &arena, &list, &n, &err) == 0 && n == 2);
        CHECK((strcmp(list[0].id, two) == 0 ? list[0] : list[1]).fault);
        CHECK(prune(layers, 0, 3600000, time_now_ms(), &pruned) == 0 && pruned.layers == 1 &&
                is_there(layers, one));
        layers_close(layers);
}

static void a_removed_layer_stays_for_its_holders(void)
{
        struct layers *layers = fresh_layers();
        struct layer layer;
        char id[LAYER_ID_MAX];
        auto_fd held = -1;
        CHECK(publish(layers, "1", "", false, id) == 0);
        CHECK(layers_find(layers, id, &arena, &layer, &held, &err) == 1);
        CHECK(layers_remove(layers, id, &err) == 0 && !is_there(layers, id));
        CHECK(faccessat(held, "tree/pkg/__init__.py", F_OK, 0) == 0);
        layers_close(open_layers());
        CHECK(faccessat(held, "tree/pkg/__init__.py", F_OK, 0) == 0);
        fd_close(&held);
        layers_close(open_layers());
        CHECK(count_names(in_folder(".staging")) == 0);
        CHECK(layers_remove(layers, id, &err) == -CSN_E_INPUT && layers_remove(layers, "../x", &err) == -CSN_E_INPUT);
        CHECK(publish(layers, "1", "", false, id) == 0 && layers_remove(layers, id, &err) == 0);
        CHECK(count_names(in_folder(".staging")) == 0);
        layers_close(layers);
}

/* ---- locks ---- */

static void one_builder_has_the_lock_of_a_key(void)
{
        struct layers *layers = fresh_layers(), *other = open_layers();
        int mine = -1, yours = -1, third = -1;
        CHECK(layers_lock(layers, "abc", &mine, &err) == 1 && layers_lock(layers, "abc", &third, &err) == 0);
        CHECK(layers_lock(other, "abc", &yours, &err) == 0 && layers_lock(other, "abcd", &third, &err) == 1);
        layers_close(open_layers()); /* sweeps no lock of a living process */
        CHECK(layers_lock(other, "abc", &yours, &err) == 0);
        layers_unlock(layers, "abc", &mine);
        CHECK(mine == -1 && layers_lock(other, "abc", &yours, &err) == 1);
        layers_unlock(other, "abc", &yours);
        layers_unlock(other, "abcd", &third);
        CHECK(count_names(in_folder(".lock")) == 0);
        CHECK(layers_lock(layers, "", &mine, &err) == -CSN_E_INPUT &&
                layers_lock(layers, "../x", &mine, &err) == -CSN_E_INPUT);
        layers_close(layers);
        layers_close(other);
}

static void what_a_killed_builder_left_goes_and_what_a_living_one_has_stays(void)
{
        struct layers *layers = fresh_layers();
        struct layer_staging mine;
        CHECK(layers_stage(layers, &mine, &err) == 0);
        pid_t pid = fork();
        if (pid == 0) {
                struct layers *own = open_layers();
                struct layer_staging staging;
                int lock;
                bool good = layers_stage(own, &staging, &err) == 0 && layers_lock(own, "abc", &lock, &err) == 1;
                fill(staging.tree_fd, "half");
                raise(good ? SIGKILL : SIGTERM);
        }
        int status, lock;
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK(count_names(in_folder(".staging")) == 2 && count_names(in_folder(".lock")) == 1);
        CHECK(layers_lock(layers, "abc", &lock, &err) == 1);
        layers_unlock(layers, "abc", &lock);
        layers_close(open_layers());
        CHECK(count_names(in_folder(".staging")) == 1 && access(in_folder(".staging/%s/tree", mine.name), F_OK) == 0);
        layers_abort(layers, &mine);
        layers_abort(layers, &mine);
        CHECK(count_names(in_folder(".staging")) == 0);
        layers_close(layers);
}

/* ---- answers and failures ---- */

static void answers_and_failures_are_remembered_for_their_time(void)
{
        struct layers *layers = fresh_layers();
        struct layer_failure failure = { "no_wheel", "" }, found;
        char id[LAYER_ID_MAX];
        memset(failure.text, '\x01', sizeof failure.text - 1); /* six bytes each in JSON */
        CHECK(layers_request(layers, "r1", 60000, id, &err) == 0 &&
                layers_failure(layers, "r1", 60000, &found, &err) == 0);
        CHECK(layers_remember_request(layers, "r1", "lyr_000102030405060708090a0b0c0d0eff", &err) == 0);
        CHECK(layers_remember_request(layers, "r1", "lyr_ff0102030405060708090a0b0c0d0eff", &err) == 0);
        CHECK(layers_request(layers, "r1", 60000, id, &err) == 1 && strncmp(id, "lyr_ff01", 8) == 0);
        CHECK(layers_request(layers, "r1", 0, id, &err) == 0);
        CHECK(layers_remember_failure(layers, "r1", &failure, &err) == 0);
        CHECK(layers_failure(layers, "r1", 60000, &found, &err) == 1 && strcmp(found.code, "no_wheel") == 0 &&
                strcmp(found.text, failure.text) == 0);
        CHECK(layers_failure(layers, "r1", 0, &found, &err) == 0);

        static const char *const bad[] = { "", "{", "[]", "{\"id\":5,\"time_ms\":1}", "{\"time_ms\":1}",
                "{\"id\":\"lyr_000102030405060708090a0b0c0d0eff\",\"time_ms\":9999999999999999}" };
        auto_fd dir = open(in_folder(".requests"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                write_file(dir, "r2", bad[i], 0600);
                CHECK(layers_request(layers, "r2", UINT64_MAX, id, &err) == 0);
        }
        CHECK(layers_request(layers, "../r1", 60000, id, &err) == -CSN_E_INPUT);
        CHECK(layers_remember_failure(layers, "A", &failure, &err) == -CSN_E_INPUT);

        /* Pruned by their age; so is the temporary file of a killed writer. */
        struct layers_pruned pruned;
        struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
        write_file(dir, ".temporary", "", 0600);
        CHECK(utimensat(dir, "r1", old, 0) == 0 && utimensat(dir, ".temporary", old, 0) == 0);
        CHECK(prune(layers, 0, 60000, time_now_ms(), &pruned) == 0);
        CHECK(faccessat(dir, "r1", F_OK, 0) < 0 && faccessat(dir, "r2", F_OK, 0) == 0 &&
                faccessat(dir, ".temporary", F_OK, 0) < 0);
        layers_close(layers);
}

/* ---- several processes ---- */

#define BUILDERS 4
#define LAYERS 8

static void builders_at_once_publish_each_layer_once_and_whole(void)
{
        struct layers *layers = fresh_layers();
        pid_t pids[BUILDERS];
        for (int k = 0; k < BUILDERS; k++) {
                pids[k] = fork();
                if (pids[k] == 0) {
                        struct layers *own = open_layers();
                        bool good = true;
                        for (int i = 0; i < LAYERS; i++) {
                                char id[LAYER_ID_MAX], build[2] = { (char)('a' + (i + k) % LAYERS), 0 };
                                good = good && publish(own, build, "text\n", false, id) == 0 && is_there(own, id);
                        }
                        _exit(!good);
                }
        }
        for (int k = 0; k < BUILDERS; k++) {
                int status;
                CHECK(waitpid(pids[k], &status, 0) == pids[k] && status == 0);
        }
        struct layer *list;
        size_t n;
        char fault[LAYER_FAULT_MAX];
        CHECK(layers_list(layers, &arena, &list, &n, &err) == 0 && n == LAYERS);
        for (size_t i = 0; i < n; i++)
                CHECK(layers_verify(layers, list[i].id, fault, &err) == 1);
        CHECK(count_names(in_folder(".staging")) == 0 && count_names(in_folder(".")) == 4 + LAYERS);
        layers_close(layers);
}

static void a_kill_at_any_moment_leaves_whole_layers_only(void)
{
        struct layers *layers = fresh_layers();
        char fault[LAYER_FAULT_MAX], id[LAYER_ID_MAX];
        uint64_t whole_us = clock_us();
        CHECK(publish(layers, "0", "text\n", false, id) == 0);
        whole_us = clock_us() - whole_us;
        for (unsigned i = 0; i < 50; i++) {
                pid_t pid = fork();
                if (pid == 0) {
                        for (unsigned k = 0;; k++) {
                                struct layers *own = open_layers();
                                char own_id[LAYER_ID_MAX], build[20];
                                snprintf(build, sizeof build, "%u.%u", i, k);
                                publish(own, build, "text\n", false, own_id);
                                layers_close(own);
                        }
                }
                usleep((useconds_t)(i * whole_us / 25));
                CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
                struct layer *list;
                size_t n;
                CHECK(layers_list(layers, &arena, &list, &n, &err) == 0);
                for (size_t k = 0; k < n; k++) {
                        CHECK(!list[k].fault && layers_verify(layers, list[k].id, fault, &err) == 1);
                        if (n > 4)
                                CHECK(layers_remove(layers, list[k].id, &err) == 0);
                }
                layers_close(open_layers());
                CHECK(count_names(in_folder(".staging")) == 0);
        }
        CHECK(publish(layers, "again", "text\n", false, id) == 0 && is_there(layers, id));
        layers_close(layers);
}

/* ---- opening ---- */

static void what_is_no_folder_is_refused(void)
{
        struct layers *layers = NULL;
        CHECK(layers_open("/etc/passwd", &layers, &err) == -CSN_E_CONFIG && strstr(err.text, "/etc/passwd"));
        CHECK(layers_open("/proc/nothing/layers", &layers, &err) == -CSN_E_SYSTEM && !layers);
        layers_close(NULL);
}

int main(void)
{
        if (!mkdtemp(folder))
                return 1;
        RUN(the_id_is_a_hash_of_all_fields_and_the_sorted_lock);
        RUN(a_published_layer_is_found_with_all_that_was_said);
        RUN(equal_trees_have_equal_hashes_whatever_their_modes_and_order_were);
        RUN(a_layer_that_exists_stays_and_the_second_is_discarded);
        RUN(pth_files_are_warned_of);
        RUN(hostile_trees_are_refused_and_nothing_is_left);
        RUN(links_that_stay_inside_are_taken);
        RUN(a_tree_with_another_hash_than_expected_is_refused);
        RUN(a_damaged_description_is_a_miss_and_the_layer_can_be_built_again);
        RUN(what_replaces_parts_of_a_layer_is_a_miss);
        RUN(verifying_finds_each_change_of_the_tree);
        RUN(layers_go_by_age_and_by_their_last_use_unless_held);
        RUN(layers_of_the_rules_stay);
        RUN(a_use_counts_and_damaged_layers_are_listed_and_pruned);
        RUN(a_removed_layer_stays_for_its_holders);
        RUN(one_builder_has_the_lock_of_a_key);
        RUN(what_a_killed_builder_left_goes_and_what_a_living_one_has_stays);
        RUN(answers_and_failures_are_remembered_for_their_time);
        RUN(builders_at_once_publish_each_layer_once_and_whole);
        RUN(a_kill_at_any_moment_leaves_whole_layers_only);
        RUN(what_is_no_folder_is_refused);
        arena_done(&arena);
        auto_fd tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        io_remove_tree(tmp, folder + strlen("/tmp/"));
        return tap_done();
}
