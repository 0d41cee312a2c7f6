/*
 * The input files of a launch: kept files are found in the loop, and launch_examine() does the rest in the loop or in a
 * helper thread (docs/design/loop-steps.md).
 */
#include "engine/launch/launch_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

/* Largest inputs examined in the loop. */
#define SHORT_CONTENTS (128 * KIB)     /* bytes of the program and of contents in the request, which are hashed */
#define SHORT_FILES 64                 /* files of the request: names are checked and sorted */

#define LISTING_MS 30000               /* of the work folder */

/* ---- for the backend ---- */

static int open_input(void *owner, size_t i, struct wire_file *ret_file, int *ret_fd, struct csn_error *err)
{
        struct launch *launch = owner;
        *ret_fd = -1;
        if (i >= launch->inputs_n) {
                const struct module_file *module = &launch->request.modules[i - launch->inputs_n];
                *ret_file = (struct wire_file){ .module = true,
                        .mode = 0444,
                        .name = module->name,
                        .content = module->content.bytes ? module->content.bytes : "",
                        .content_len = module->content.len };
                return 0;
        }
        const struct launch_input *input = &launch->inputs[i];
        *ret_file = (struct wire_file){ .mode = input->mode, .name = (char *)(uintptr_t)input->name };
        if (input->id)
                return launch->storage->open(launch->storage_owner, input->id, ret_fd, err);
        if (!input->path) {
                ret_file->content = input->content.bytes ? input->content.bytes : "";
                ret_file->content_len = input->content.len;
                return 0;
        }
        /* Opened again here, one at a time: the inputs may outnumber the descriptors. */
        *ret_fd = input->work ? files_open_input(launch->work_fd, input->name)
                              : open(input->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return *ret_fd >= 0 ? 0
                            : err_set(err, CSN_E_INPUT, errno, "open the input file %s",
                                      launch->entered ? input->name : input->path);
}

/* ---- kept files ---- */

int launch_find_kept(struct launch *launch, uint64_t until_us, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        for (; launch->sought < request->files_n; launch->sought++) {
                const char *id = request->files[launch->sought].id;
                if (!id)
                        continue;
                if (!launch->kept)
                        launch->kept = arena_alloc(&launch->arena, request->files_n * sizeof *launch->kept);
                else if (clock_us() >= until_us)
                        return 1;
                if (launch->storage->find(launch->storage_owner, id, &launch->arena, &launch->kept[launch->sought],
                            err) < 0)
                        return -err->code;
        }
        return 0;
}

/* ---- the list of inputs ---- */

static const char *last_part(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

static int add_request_files(struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        for (size_t i = 0; i < request->files_n; i++) {
                const struct input_file *file = &request->files[i];
                struct launch_input *input = &launch->inputs[launch->inputs_n++];
                struct csn_error why;
                const char *name = file->name;
                if (!HAS(file, input_file, name))
                        name = file->id ? launch->kept[i].name : last_part(file->path);
                *input = (struct launch_input){ .name = name,
                        .path = file->path,
                        .id = file->id,
                        .kept = file->id ? &launch->kept[i] : NULL,
                        .content = file->content,
                        .mode = 0644 };
                if (wire_name_check(input->name, strlen(input->name), &why) < 0)
                        return err_field(err, "/files", "\"%.80s\" cannot be the name of an input file: %s",
                                input->name, why.text);
        }
        return 0;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The program's own file is the first input.  A request may have 10,000 files, so the names are sorted. */
static int check_names(struct launch *launch, const char ***ret_sorted, struct csn_error *err)
{
        size_t n = launch->inputs_n;
        const char **names = arena_alloc(&launch->arena, n * sizeof *names + 1);
        for (size_t i = 0; i < n; i++)
                names[i] = launch->inputs[i].name;
        qsort(names, n, sizeof *names, by_name);
        *ret_sorted = names;
        for (size_t i = 1; i < n; i++) {
                if (strcmp(names[i], names[i - 1]) != 0)
                        continue;
                bool program = strcmp(names[i], launch->inputs[0].name) == 0;
                for (size_t k = 1; k < n && launch->inputs[k].hidden; k++)
                        if (strcmp(names[i], launch->inputs[k].name) == 0)
                                return err_field(err, "/files", "%s is the name of the %s; give the file another one",
                                        names[i], k == 1 && HAS(&launch->request, run_request, prelude) ? "prelude"
                                                                                                       : "input");
                return err_field(err, program ? "/name" : "/files", "two input files have the name %s%s", names[i],
                        program ? ", which is the program's; give the program another" : "");
        }
        return 0;
}

/*
 * The files of a work folder come last, so the request's own files win.  `names` are the names of the request's files,
 * sorted.
 */
static int add_work_files(struct launch *launch, const char **names, struct csn_error *err)
{
        struct file_rules rules = {
                .files_max = launch->request.limits.disk_files, .time_ms = LISTING_MS, .given_up = &launch->given_up
        };
        struct file_list list;
        size_t own = launch->inputs_n;
        if (launch->work_fd < 0)
                return 0;
        if (files_list(launch->work_fd, &rules, &launch->arena, &list, err) < 0)
                return -err->code;
        if (list.truncated)
                return err_field(err, launch->entered ? "/workspace" : "/work_dir",
                        "the folder has more files than disk_files=%" PRIu64 " allows",
                        launch->request.limits.disk_files);
        struct launch_input *all = arena_alloc(&launch->arena, (own + list.n + 1) * sizeof *all);
        memcpy(all, launch->inputs, own * sizeof *all);
        launch->inputs = all;
        for (size_t i = 0; i < list.n; i++) {
                const char *name = list.files[i].name;
                if (wire_name_check(name, strlen(name), NULL) < 0 ||
                        bsearch(&name, names, own, sizeof *names, by_name))
                        continue;
                all[launch->inputs_n++] = (struct launch_input){ .name = name,
                        .mode = 0644,
                        .work = true,
                        .path = launch->entered ? name
                                                : arena_text(&launch->arena, "%s/%s", launch->work_dir, name) };
        }
        return 0;
}

/* ---- their contents ---- */

/* Size and hash of an input; also checks that the input is a readable file. */
static int examine_input(struct launch *launch, size_t i, uint64_t *left, struct csn_error *err)
{
        const struct launch_input *input = &launch->inputs[i];
        struct file_input *digest = &launch->digests[i];
        struct wire_file file;
        struct stat st;
        int opened = -1;
        bool fits = true;
        digest->name = input->name;
        digest->size = input->kept ? input->kept->size : input->content.len;
        if (input->path) {
                if (open_input(launch, i, &file, &opened, err) < 0)
                        return -err->code;
                auto_fd fd = opened;
                if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                        return err_field(err, "/files", "%s is not a regular file", input->name);
                fits = (uint64_t)st.st_size <= *left && files_sha256(fd, *left, digest->sha256, &digest->size) == 0;
        } else if (digest->size > *left) {
                fits = false;
        } else if (input->kept) {
                memcpy(digest->sha256, input->kept->sha256, sizeof digest->sha256);
        } else {
                files_sha256_bytes(input->content.bytes, input->content.len, digest->sha256);
        }
        if (!fits)
                return err_field(err, "/files",
                        "the input files are together larger than input_bytes=%" PRIu64 " or disk_bytes=%" PRIu64
                        " allow; %s does not fit",
                        launch->request.limits.input_bytes, launch->request.limits.disk_bytes, input->name);
        *left -= digest->size;
        return 0;
}

bool launch_is_long(const struct launch *launch)
{
        const struct run_request *request = &launch->request;
        size_t bytes = request->code.len + request->prelude.len + (request->input ? strlen(request->input) : 0);
        if (launch->work_fd >= 0 || request->files_n > SHORT_FILES)
                return true;
        for (size_t i = 0; i < request->files_n; i++) {
                if (request->files[i].path)
                        return true;
                bytes += request->files[i].content.len;
        }
        return bytes > SHORT_CONTENTS;
}

int launch_examine(struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        const char **names;
        uint64_t left = min_u64(request->limits.input_bytes, request->limits.disk_bytes);
        launch->inputs = arena_alloc(&launch->arena,
                (1 + LAUNCH_EXTRAS_MAX + request->files_n) * sizeof *launch->inputs);
        launch->inputs[launch->inputs_n++] = (struct launch_input){
                .name = launch->main_file, .content = request->code, .mode = 0444, .hidden = true
        };
        launch->inputs_n += extras_inputs(launch, launch->inputs + launch->inputs_n);
        if (add_request_files(launch, err) < 0 || check_names(launch, &names, err) < 0 ||
                add_work_files(launch, names, err) < 0)
                return -err->code;
        if (launch->inputs_n > WIRE_FILES_MAX)
                return err_field(err, "/files", "%zu input files; at most %d are possible", launch->inputs_n,
                        WIRE_FILES_MAX);
        launch->digests = arena_alloc(&launch->arena, launch->inputs_n * sizeof *launch->digests);
        for (size_t i = 0; i < launch->inputs_n; i++) {
                if (atomic_load_explicit(&launch->given_up, memory_order_relaxed))
                        return err_set(err, CSN_E_CANCELLED, 0, "the inputs are not used");
                uint64_t begun_us = clock_us();
                if (examine_input(launch, i, &left, err) < 0)
                        return -err->code;
                launch->digests[i].ms = (double)(clock_us() - begun_us) / 1000;
        }
        launch->program.files_n = launch->inputs_n + request->modules_n;
        launch->program.file = open_input;
        launch->program.owner = launch;
        return 0;
}
