/*
 * Files into and out of a container.  The folder on this host mirrors the home directory: input files are in both, and
 * after the program new and changed files are fetched, and files that are gone are removed.
 */
#include "backend/docker/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define HOME "/home/user"
#define LIST_DEPTH 32
#define LIST_MORE 1024                   /* entries beyond twice disk_files, after which the rest is left out */
#define SENT_AHEAD (256 * KIB) /* unsent bytes, above which a file is not read further */

static bool is_failure(struct docker_run *run, const char *what, const uint8_t *bytes, size_t len)
{
        struct csn_error error, err;
        if (bytes && guest_kind_of(bytes, len) != GUEST_FAILED)
                return false;
        if (!bytes)
                err_set(&error, CSN_E_PROTOCOL, 0, "%s: process 1 of the container ended the operation", what);
        else if (guest_get_error(bytes, len, &error, &err) < 0)
                error = err;
        else
                err_set(&error, CSN_E_SYSTEM, 0, "%s: %.300s", what, error.text);
        run->fail(run, &error);
        return true;
}

static void begin_file(struct docker_run *run, const struct guest_file *what,
        void (*heard)(struct guest_op *op, const uint8_t *bytes, size_t len))
{
        struct buf request;
        buf_init(&request, WIRE_MAX);
        run->file.heard = heard;
        run->file.owner = run;
        if (guest_put_file(&request, what))
                guest_op_begin(&run->container->guest, &run->file, &request);
        buf_done(&request);
}

/* A guest_file with this verb and path; the other members stay unset. */
static struct guest_file file_of(enum guest_verb verb, const char *path)
{
        return (struct guest_file){ .verb = verb,
                .length = UINT64_MAX,
                .path = (char *)(uintptr_t)path,
                .to = (char *)(uintptr_t) "",
                .space = (char *)(uintptr_t) "" };
}

/* ---- in ---- */

static void on_put(struct guest_op *op, const uint8_t *bytes, size_t len)
{
        struct docker_run *run = op->owner;
        struct guest_entry entry;
        struct csn_error err;
        if (is_failure(run, "write an input file into the container", bytes, len))
                return;
        if (guest_kind_of(bytes, len) == GUEST_ENTRY && run->before_n == run->at) {
                struct arena arena = { 0 };
                int rc = guest_get_entry(bytes, len, &arena, &entry, &err);
                arena_done(&arena);
                if (rc < 0)
                        run->fail(run, &err);
                else
                        run->before[run->before_n++] =
                                (struct run_file){ run->input.name, entry.size, entry.mtime_ms, entry.mode, false };
                return;
        }
        if (guest_kind_of(bytes, len) != GUEST_DONE || run->before_n != run->at + 1) {
                err_set(&err, CSN_E_PROTOCOL, 0, "process 1 of the container sent a packet that is not possible for a file");
                run->fail(run, &err);
                return;
        }
        guest_op_end(op);
        fd_close(&run->source);
        run->at++;
        run_put_next(run);
}

void run_put_more(struct docker_run *run)
{
        static uint8_t packet[GUEST_PACKET_MAX];
        static const uint8_t end = GUEST_DATA_END;
        struct csn_error err;
        if (run->step != STEP_PUT || !guest_op_is_on(&run->file) || run->input_at == SIZE_MAX)
                return;
        packet[0] = GUEST_DATA;
        while (attach_waiting(&run->container->attach) < SENT_AHEAD) {
                ssize_t n;
                if (run->input.content) {
                        n = (ssize_t)min_u64(GUEST_DATA_MAX, run->input.content_len - run->input_at);
                        memcpy(packet + 1, (const char *)run->input.content + run->input_at, (size_t)n);
                } else {
                        n = run->source < 0 ? 0 : pread(run->source, packet + 1, GUEST_DATA_MAX, (off_t)run->input_at);
                }
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        err_set(&err, CSN_E_SYSTEM, errno, "read the input file %s", run->input.name);
                        run->fail(run, &err);
                        return;
                }
                if (n == 0) {
                        run->input_at = SIZE_MAX; /* all is sent */
                        guest_op_send(&run->file, &end, 1);
                        return;
                }
                guest_op_send(&run->file, packet, (size_t)n + 1);
                run->input_at += (size_t)n;
        }
}

void run_put_next(struct docker_run *run)
{
        const struct backend_program *what = run->what;
        struct csn_error err;
        if (run->at == what->files_n) {
                run->go(run, STEP_LISTEN);
                return;
        }
        if (!run->before)
                run->before = arena_alloc(&run->arena, what->files_n * sizeof *run->before);
        if (what->file(what->owner, run->at, &run->input, &run->source, &err) < 0 ||
                backend_put_file(run->ends.home, &run->input, run->source, &err) < 0) {
                run->fail(run, &err);
                return;
        }
        struct guest_file file = file_of(GUEST_WRITE, run->input.name);
        file.mode = run->input.mode;
        run->input_at = 0;
        begin_file(run, &file, on_put);
        run_put_more(run);
}

/* ---- out ---- */

static int compare_files(const void *a, const void *b)
{
        return strcmp(((const struct run_file *)a)->name, ((const struct run_file *)b)->name);
}

static void begin_get(struct docker_run *run)
{
        for (size_t i = 0; i < run->before_n && !run->list_cut; i++)
                if (!run->before[i].is_there)
                        unlinkat(run->ends.home, run->before[i].name, 0);
        run->at = 0;
        run->room = run->key.disk_bytes;
        run->go(run, STEP_GET);
}

/* A file after the program.  A new or changed file goes to run->after. */
static void take_entry(struct docker_run *run, const struct guest_entry *entry)
{
        struct csn_error why;
        struct run_file file = { entry->path, entry->size, entry->mtime_ms, entry->mode, true };
        if (!S_ISREG(entry->mode) || wire_name_check(entry->path, strlen(entry->path), &why) < 0)
                return;
        struct run_file *before =
                run->before_n ? bsearch(&file, run->before, run->before_n, sizeof *run->before, compare_files) : NULL;
        if (before)
                before->is_there = true;
        if ((before && before->size == file.size && before->mtime_ms == file.mtime_ms && before->mode == file.mode) ||
                run->after_n >= run->key.disk_files)
                return;
        if (run->after_n == run->after_max) {
                run->after_max = run->after_max ? 2 * run->after_max : 64;
                run->after = mem_resize(run->after, run->after_max * sizeof *run->after);
        }
        file.name = arena_text(&run->arena, "%s", entry->path);
        run->after[run->after_n++] = file;
}

static void on_listed(struct guest_op *op, const uint8_t *bytes, size_t len)
{
        struct docker_run *run = op->owner;
        struct guest_entry entry;
        struct csn_error err;
        if (is_failure(run, "list the files of the container", bytes, len))
                return;
        run->list_cut = run->entries_n++ > 2 * run->key.disk_files + LIST_MORE;
        if (guest_kind_of(bytes, len) != GUEST_ENTRY || run->list_cut) {
                guest_op_end(op);
                begin_get(run);
                return;
        }
        struct arena arena = { 0 };
        int rc = guest_get_entry(bytes, len, &arena, &entry, &err);
        if (rc == 0)
                take_entry(run, &entry);
        arena_done(&arena);
        if (rc < 0)
                run->fail(run, &err);
}

void run_list(struct docker_run *run)
{
        struct guest_file file = file_of(GUEST_LIST, HOME);
        if (run->before_n)
                qsort(run->before, run->before_n, sizeof *run->before, compare_files);
        file.depth = LIST_DEPTH;
        begin_file(run, &file, on_listed);
}

static void on_got(struct guest_op *op, const uint8_t *bytes, size_t len)
{
        struct docker_run *run = op->owner;
        struct csn_error err;
        enum guest_kind kind = bytes ? guest_kind_of(bytes, len) : GUEST_FAILED;
        if (kind == GUEST_ENTRY)
                return;
        if (kind == GUEST_DATA && len - 1 <= run->room) {
                run->room -= len - 1;
                if (io_write_all(run->target, bytes + 1, len - 1) == 0)
                        return;
                err_set(&err, CSN_E_SYSTEM, errno, "write a file of the container to %s", run->ends.folder);
                run->fail(run, &err);
                return;
        }
        /* Leave out unreadable files and files beyond the disk limit of the run. */
        if (kind != GUEST_DONE)
                unlinkat(run->ends.home, run->after[run->at].name, 0);
        guest_op_end(op);
        fd_close(&run->target);
        run->at++;
        run_get_next(run);
}

/* False: the file cannot be here, for a folder or file of the mirror is in its place; or run->fail() was called. */
static bool make_target(struct docker_run *run, const struct run_file *file)
{
        const struct wire_file empty = {
                .mode = (file->mode & 0777) | 0600, .name = file->name, .content = "", .content_len = 0
        };
        struct csn_error err;
        if (unlinkat(run->ends.home, file->name, 0) < 0 && errno == EISDIR)
                io_remove_tree(run->ends.home, file->name);
        int rc = backend_put_file(run->ends.home, &empty, -1, &err);
        if (rc == 0)
                run->target = openat(run->ends.home, file->name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
        if (rc == 0 && run->target >= 0)
                return true;
        int sys = rc < 0 ? err.sys : errno;
        if (sys != EEXIST && sys != ENOTDIR && sys != EISDIR) {
                err_set(&err, CSN_E_SYSTEM, sys, "make the output file %s", file->name);
                run->fail(run, &err);
        }
        return false;
}

void run_get_next(struct docker_run *run)
{
        while (run->step == STEP_GET && run->at < run->after_n) {
                const struct guest_file file = file_of(GUEST_READ, run->after[run->at].name);
                if (make_target(run, &run->after[run->at])) {
                        begin_file(run, &file, on_got);
                        return;
                }
                run->at++;
        }
        run->go(run, STEP_OVER);
}

void run_files_stop(struct docker_run *run)
{
        if (run->target >= 0)
                unlinkat(run->ends.home, run->after[run->at].name, 0);
        fd_close(&run->target);
}

void run_files_done(struct docker_run *run)
{
        fd_close(&run->source);
        fd_close(&run->target);
        free(run->after);
        arena_done(&run->arena);
}
