/* The files of a run: exports, kept files, the work folder, and their list in the record. */
#include "engine/run/run_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#define COLLECT_MS 60000       /* for reading the files of an ended run, in a helper thread with a low priority */

#define WRITTEN_BACK_MAX 1000000   /* above the number of files readable in COLLECT_MS */

static void note_error(struct run *run, struct output_file *file, const char *text)
{
        if (!HAS(file, output_file, error))
                SET(file, output_file, error, arena_text(&run->launch.arena, "%s", text));
}

static void export_file(struct run *run, const struct file_found *found, const char *to, struct output_file *file)
{
        struct csn_error err;
        if (mkdir(to, 0755) < 0 && errno != EEXIST) {
                SET(file, output_file, error,
                        arena_text(&run->launch.arena, "make %s: %s", to, strerrordesc_np(errno)));
                return;
        }
        auto_fd dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                SET(file, output_file, error,
                        arena_text(&run->launch.arena, "open %s: %s", to, strerrordesc_np(errno)));
        else if (files_export(run->home_fd, found, dir, -1, &err) < 0)
                SET(file, output_file, error, arena_text(&run->launch.arena, "%s", err.text));
        else
                SET(file, output_file, path, arena_text(&run->launch.arena, "%s/%s", to, found->name));
}

/* Stores a file once, even if several rules match. */
static void keep_file(struct run *run, const struct file_found *found, struct output_file *file)
{
        const struct run_request *request = &run->launch.request;
        struct csn_error err;
        char *url = NULL;
        if (found->error || HAS(file, output_file, url) || HAS(file, output_file, error))
                return;
        auto_fd fd = files_open(run->home_fd, found->name, &err);
        if (fd < 0 ||
                run->launch.storage->keep(run->launch.storage_owner, run->id, request->user ? request->user : "",
                        found->name, found->mime, fd, &run->launch.arena, &url, &err) < 0)
                note_error(run, file, err.text);
        else
                SET(file, output_file, url, url);
}

static void export_all(struct run *run, const struct file_found *found, struct output_file *file)
{
        for (size_t i = 0; i < run->launch.request.exports_n; i++) {
                const struct export_rule *rule = &run->launch.request.exports[i];
                if (!files_match(rule->pattern, found->name))
                        continue;
                if (HAS(rule, export_rule, path))
                        export_file(run, found, rule->path, file);
                else
                        keep_file(run, found, file);
        }
}

/* A changed work file replaces the old file, so only the additional bytes need room. */
static void write_back(struct run *run, const struct file_found *found, struct output_file *file)
{
        struct work_room *room = &run->room;
        struct csn_error err;
        struct stat old = { 0 };
        if (!run->launch.entered) {
                export_file(run, found, run->launch.work_dir, file);
                return;
        }
        bool there = files_stat(run->launch.work_fd, found->name, &old) == 0;
        uint64_t had = there ? (uint64_t)old.st_size + room->each : 0, has = found->size + room->each,
                 more = has > had ? has - had : 0;
        if (found->error)
                return;
        if (more > room->left)
                note_error(run, file,
                        "there is no room for it in the workspace (stored_bytes of the key, or engine.files_bytes_max)");
        else if (files_export(run->home_fd, found, run->launch.work_fd, run->launch.work_temp_fd, &err) < 0)
                note_error(run, file, err.text);
        else
                room->left -= more;
}

/*
 * Removes inputs that the program removed, or replaced by something other than a regular file.  Other errors keep the
 * file.
 */
static void remove_gone(struct run *run)
{
        struct work_room *room = &run->room;
        for (size_t i = 0; i < run->launch.inputs_n; i++) {
                const char *name = run->launch.inputs[i].name;
                if (!run->launch.inputs[i].work)
                        continue;
                int sys = files_look(run->home_fd, name);
                if ((sys == ENOENT || sys == ENOTDIR || sys == ELOOP || sys == EINVAL) &&
                        files_remove(run->launch.work_fd, name) == 0)
                        room->left += min_u64(run->launch.digests[i].size + room->each, UINT64_MAX - room->left);
        }
}

static void record_file(struct run *run, const struct file_found *found, struct output_file *file)
{
        struct arena *arena = &run->launch.arena;
        size_t len = strlen(found->name), safe_len;
        SET(file, output_file, name, model_utf8(arena, found->name, len, &safe_len));
        if (!utf8_valid(found->name, len))
                SET(file, output_file, name_base64, model_base64(arena, found->name, len));
        SET(file, output_file, size_bytes, found->size);
        SET(file, output_file, mime, (char *)(uintptr_t)(found->mime));
        SET(file, output_file, changed, found->changed);
        if (found->sha256[0])
                SET(file, output_file, sha256, arena_text(arena, "%s", found->sha256));
        if (found->error)
                SET(file, output_file, error, arena_text(arena, "%s", found->error));
        export_all(run, found, file);
        if (run->launch.work_fd >= 0)
                write_back(run, found, file);
}

static bool fits_any(const char *pattern, const struct file_list *list)
{
        for (size_t i = 0; i < list->n; i++)
                if (files_match(pattern, list->files[i].name))
                        return true;
        return false;
}

static bool is_pattern(const struct export_rule *rule)
{
        return strpbrk(rule->pattern, "*?[\\") != NULL;
}

/* A pattern for all files, from which no file can be missing. */
static bool is_for_all(const struct export_rule *rule)
{
        return !rule->pattern[strspn(rule->pattern, "*")];
}

static const char *why_missing(struct run *run, const char *name)
{
        struct csn_error err;
        if (wire_name_check(name, strlen(name), &err) < 0)
                return arena_text(&run->launch.arena, "%s", err.text);
        int sys = files_look(run->home_fd, name);
        if (sys == ENOENT || sys == ENOTDIR)
                return "there is no file of this name";
        return sys == 0         ? RUN_FILE_UNCHANGED
                : sys == EINVAL ? "it is a link, or not a regular file"
                                : "it is behind a link, or cannot be read";
}

/* An export without a matching file has an entry with the reason. */
static void record_missing(struct run *run, const struct file_list *list)
{
        struct run_result *result = &run->result;
        for (size_t i = 0; i < run->launch.request.exports_n; i++) {
                const struct export_rule *rule = &run->launch.request.exports[i];
                if (is_for_all(rule) || fits_any(rule->pattern, list))
                        continue;
                struct output_file *file = &result->files[result->files_n++];
                SET(file, output_file, name, rule->pattern);
                SET(file, output_file, size_bytes, 0);
                SET(file, output_file, mime, (char *)(uintptr_t)(files_mime(rule->pattern, "", 0)));
                SET(file, output_file, changed, false);
                SET(file, output_file, error,
                        arena_text(&run->launch.arena, "%s",
                                is_pattern(rule) ? "no new or changed regular file has such a name"
                                                 : why_missing(run, rule->pattern)));
        }
}

/* Whether the file was to be in a folder of this host after the run. */
static bool is_wanted_here(const struct run *run, const char *name)
{
        bool wanted = run->launch.work_fd >= 0 && !run->launch.entered;
        for (size_t i = 0; i < run->launch.request.exports_n && !wanted; i++) {
                const struct export_rule *rule = &run->launch.request.exports[i];
                wanted = HAS(rule, export_rule, path) &&
                        (strcmp(rule->pattern, name) == 0 || files_match(rule->pattern, name));
        }
        return wanted;
}

#define LOST_SHOWN 4           /* a warning has 600 bytes */

static void add_lost(struct buf *text, size_t *n, const char *name, const char *why)
{
        if ((*n)++ < LOST_SHOWN)
                buf_printf(text, "%s%.40s: %.90s", text->len ? "; " : "", name, why);
}

/* One warning for all failed exports. */
static void warn_lost(struct run *run)
{
        const struct run_result *result = &run->result;
        struct buf text;
        size_t n = 0;
        bool exports = false;
        buf_init(&text, 2 * KIB);
        for (size_t i = 0; i < result->files_n; i++)
                if (HAS(&result->files[i], output_file, error) && is_wanted_here(run, result->files[i].name))
                        add_lost(&text, &n, result->files[i].name, result->files[i].error);
        for (size_t i = 0; i < run->launch.request.exports_n; i++)
                exports = exports || HAS(&run->launch.request.exports[i], export_rule, path);
        if (result->files_truncated && (exports || (run->launch.work_fd >= 0 && !run->launch.entered)))
                add_lost(&text, &n, "all other files", "there are more than output_files allows, or they lie too deep");
        if (n > LOST_SHOWN)
                buf_printf(&text, "; and %zu more", n - LOST_SHOWN);
        if (run->launch.warnings_n == LAUNCH_WARNINGS_MAX && n)
                run->launch.warnings_n--;   /* replaces the last warning of a full list */
        size_t len;
        if (n)
                run_warn(run, RUN_EXPORT_FAILED, "not exported: %s",
                        model_utf8(&run->launch.arena, text.bytes, text.len, &len));
        buf_done(&text);
}

/* Descriptor of the first input file, returned over the handoff socket; -1 if there is none. */
static int first_input(const struct run *run)
{
        uint8_t byte;
        int fds[WIRE_FDS_MAX];
        size_t n;
        if (run->handoff_fd < 0 || wire_receive_small(run->handoff_fd, &byte, sizeof byte, fds, &n) < 0)
                return -1;
        for (size_t i = 1; i < n; i++)
                fd_close(&fds[i]);
        return fds[0];
}

/* All changes in a workspace are written back, whether or not the record lists the files. */
void run_record_files(struct run *run)
{
        struct run_result *result = &run->result;
        struct csn_error err;
        struct file_list list;
        uint64_t listed = run->launch.request.limits.output_files;
        auto_fd first = first_input(run);
        const struct file_rules rules = { .files_max = run->launch.entered ? max_u64(listed, WRITTEN_BACK_MAX) : listed,
                                          .bytes_max = run->launch.request.limits.disk_bytes + FILES_SPARSE_MIN,
                                          .time_ms = COLLECT_MS,
                                          .inputs = run->launch.digests,
                                          .inputs_n = run->launch.inputs_n,
                                          .first_fd = first,
                                          .given_up = &run->given_up };
        if (run->home_fd < 0)
                return;
        if (files_collect(run->home_fd, &rules, &run->launch.arena, &list, &err) < 0) {
                run_warn(run, "files_unreadable", "%s", err.text);
                if (is_wanted_here(run, run->launch.request.exports_n ? run->launch.request.exports[0].pattern : ""))
                        run_warn(run, RUN_EXPORT_FAILED, "not exported: %s", err.text);
                return;
        }
        if (run->launch.entered)
                remove_gone(run);
        result->files = arena_alloc(&run->launch.arena,
                (min_u64(list.n, listed) + run->launch.request.exports_n + 1) * sizeof *result->files);
        for (size_t i = 0; i < list.n; i++) {
                struct output_file more = { 0 };
                record_file(run, &list.files[i], i < listed ? &result->files[i] : &more);
        }
        result->files_n = min_u64(list.n, listed);
        record_missing(run, &list);
        result->files_truncated = list.truncated || list.n > listed;
        if (result->files_truncated)
                run_warn(run, "files_truncated",
                        "there are more files than output_files=%" PRIu64 ", or deeper than %d "
                        "folders",
                        run->launch.request.limits.output_files, FILES_DEPTH_MAX);
        warn_lost(run);
}
