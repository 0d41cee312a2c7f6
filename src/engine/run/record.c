/* Everything that is known of a run, into its one record. */
#include "engine/run/run_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define COLLECT_MS 15000       /* for reading the files of a run that is over */
#define FEEDBACK_MAX 16

/* ---- what the program says of itself ---- */

/* At most max bytes, cut between characters. */
static char *cut(struct arena *arena, const char *text, size_t max)
{
        size_t len = strlen(text), at = 0;
        if (len > max) {
                for (size_t step; at < max && (step = utf8_step(text + at, len - at)) && at + step <= max; at += step)
                        ;
                len = at;
        }
        return arena_copy(arena, text, len);
}

static json_t *frame_json(const struct run *run, enum channel_type type)
{
        const struct buf *part = &run->channel.part[type];
        if (run->channel.state == CHANNEL_BROKEN || !part->len)
                return NULL;
        return model_read(part->bytes, part->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

static const char *text_of(json_t *json, const char *name)
{
        json_t *value = json_object_get(json, name);
        return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value) ? json_string_value(value) : NULL;
}

static bool is_blank(const char *text)
{
        return !text || !text[strspn(text, " \t\r\n")];
}

/* SYNTAX and ERROR frames have the same members (docs/protocols/runner-channel.md). */
static void take_error(struct run *run, json_t *json, struct failure *ret)
{
        struct arena *arena = &run->arena;
        const char *type = text_of(json, "type"), *message = text_of(json, "message"), *text = text_of(json, "text");
        json_int_t line = json_integer_value(json_object_get(json, "line"));
        json_int_t column = json_integer_value(json_object_get(json, "column"));
        json_t *traceback = json_object_get(json, "traceback");
        if (type)
                SET(ret, failure, type, cut(arena, type, 200));
        SET(ret, failure, message, cut(arena, is_blank(message) ? "raised without a message" : message, 10000));
        if (line > 0)
                SET(ret, failure, line, (uint64_t)line);
        if (column > 0)
                SET(ret, failure, column, (uint64_t)column);
        if (text)
                SET(ret, failure, text, cut(arena, text, 2000));
        size_t n = json_array_size(traceback);
        n = n > 100 ? 100 : n;
        char **lines = arena_alloc(arena, n * sizeof *lines + 1);
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
                if (json_is_string(json_array_get(traceback, i)))
                        lines[kept++] = cut(arena, json_string_value(json_array_get(traceback, i)), 1000);
        if (kept) {
                ret->traceback = lines;
                ret->traceback_n = kept;
                MARK(ret, failure, traceback);
        }
}

#define VALUE_DEPTH_MAX 64     /* readers of the record have stacks too */

/* MIME types to text, or to base64; what is JSON becomes its text. */
static struct pair *bundle(struct run *run, json_t *data, size_t *ret_n)
{
        const char *type;
        json_t *content;
        struct pair *pairs = arena_alloc(&run->arena, json_object_size(data) * sizeof *pairs + 1);
        size_t n = 0;
        json_object_foreach(data, type, content) {
                char *text = json_is_string(content) && !model_digits(content) ? NULL : model_write(content, JSON_ENCODE_ANY | JSON_COMPACT);
                const char *from = text ? text : json_string_value(content);
                if (n < 100 && from)
                        pairs[n++] = (struct pair){ .name = cut(&run->arena, type, 200), .value = arena_text(&run->arena, "%s", from) };
                free(text);
        }
        *ret_n = n;
        return pairs;
}

static void take_value(struct run *run)
{
        struct value *value = &run->result.result;
        json_t *json = frame_json(run, CHANNEL_VALUE);
        const char *type = text_of(json, "type"), *repr = text_of(json, "repr");
        json_t *content = json_object_get(json, "value");
        size_t max = (size_t)run->request.limits.value_bytes;
        if (!json_is_object(json) || run->channel.pending == CHANNEL_VALUE) {
                json_decref(json);
                return;
        }
        SET(value, value, type, cut(&run->arena, type ? type : "", 200));
        if (content) {
                char *text = model_write(content, JSON_ENCODE_ANY | JSON_COMPACT);
                if (text && strlen(text) <= max && !model_value_is_deeper(content, VALUE_DEPTH_MAX)) {
                        SET(value, value, value, arena_copy(&run->arena, text, strlen(text)));
                } else {
                        SET(value, value, repr, cut(&run->arena, text ? text : "", max));
                        SET(value, value, truncated, true);
                }
                free(text);
        } else {
                SET(value, value, repr, cut(&run->arena, repr ? repr : "", max));
                if (json_is_true(json_object_get(json, "truncated")) || (repr && strlen(repr) > max))
                        SET(value, value, truncated, true);
        }
        if (HAS(value, value, truncated))
                run_warn(run, "return_value_truncated", "the value is longer than value_bytes=%zu; its beginning is in "
                                                        "result.repr", max);
        json_t *data = json_object_get(json, "data");
        if (json_object_size(data)) {
                value->data = bundle(run, data, &value->data_n);
                MARK(value, value, data);
        }
        MARK(&run->result, run_result, result);
        json_decref(json);
}

static void take_displays(struct run *run)
{
        struct run_result *result = &run->result;
        json_t *data;
        size_t i;
        result->displays = arena_alloc(&run->arena, json_array_size(run->displays) * sizeof *result->displays + 1);
        json_array_foreach(run->displays, i, data) {
                struct display *display = &result->displays[result->displays_n++];
                display->data = bundle(run, data, &display->data_n);
                MARK(display, display, data);
        }
        MARK(result, run_result, displays);
}

/* ---- evidence ---- */

static void look_at_disk(const struct run *run, struct evidence *evidence)
{
        struct statfs fs;
        if (run->home_fd < 0 || run->backend != &backend_native || fstatfs(run->home_fd, &fs) < 0)
                return;
        evidence->home_full = fs.f_blocks > 0 && fs.f_bfree == 0;
        evidence->inodes_full = fs.f_files > 0 && fs.f_ffree == 0;
}

/* Our own runs are known at once, others from the load of the last minute; see struct evidence. */
static unsigned fair_milli(const struct run *run)
{
        double load = 0, cores = (double)run->engine->cores, others = (double)run->engine->running;
        if (!(run->how.reasons & WIRE_WALL))
                return 0;
        if (getloadavg(&load, 1) == 1 && load > others)
                others = load;
        return others + 1 <= cores ? 1000 : (unsigned)(1000 * cores / (others + 1)) + 1;
}

/* Of a program that failed by itself. */
static const char *advise(const struct run *run, int error_errno)
{
        const struct run_result *result = &run->result;
        const struct failure *error = &result->error;
        const struct complaint complaint = {
                .language = run->language->name,
                .type = HAS(error, failure, type) ? error->type : NULL,
                .message = error->message,
                .traceback = error->traceback,
                .traceback_n = error->traceback_n,
                .error_errno = error_errno,
                .no_network = run->backend == &backend_native && run->request.network == network_NONE,
                .code = run->request.code,
                .printed = result->stderr,
                .exit_status = HAS(result, run_result, exit_code) ? (int)result->exit_code : -1,
        };
        return feedback_for(&complaint);
}

/* Python's types that say more than that the text does not parse. */
static bool is_kind_of_syntax_error(const char *type)
{
        return type && (strcmp(type, "IndentationError") == 0 || strcmp(type, "TabError") == 0);
}

static void decide(struct run *run)
{
        struct run_result *result = &run->result;
        struct arena *arena = &run->arena;
        json_t *syntax = frame_json(run, CHANNEL_SYNTAX), *error = frame_json(run, CHANNEL_ERROR);
        struct evidence evidence = {
                .how = &run->how,
                .limits = &run->request.limits,
                .boundary = &run->boundary,
                .language = run->language->title,
                .cancelled = run->cancelled,
                .output_killed = run->output_killed,
                .parsed = run->language->command || run->channel.state == CHANNEL_RUNNING ||
                          ((run->channel.state == CHANNEL_ENDED || run->channel.state == CHANNEL_GONE) && !syntax),
                .syntax = syntax != NULL,
                .fair_milli = fair_milli(run),
                .channel_broken = run->channel.state == CHANNEL_BROKEN,
                .error_errno = (int)json_integer_value(json_object_get(error, "errno")),
                .error_type = text_of(error, "type"),
        };
        look_at_disk(run, &evidence);
        int status = verdict_status(&evidence);
        SET(result, run_result, status, status);

        const char *message = verdict_message(status, &evidence, arena), *hint = verdict_hint(status, &evidence, arena);
        if (status == status_SYNTAX_ERROR && syntax)
                take_error(run, syntax, &result->error);
        else if (status == status_FAILED && error)
                take_error(run, error, &result->error);
        else if (message)
                SET(&result->error, failure, message, arena_copy(arena, message, strlen(message)));
        if (status == status_SYNTAX_ERROR && is_kind_of_syntax_error(text_of(syntax, "type")))
                hint = feedback_for_type(run->language->name, text_of(syntax, "type"));
        if (!hint && status == status_FAILED)
                hint = advise(run, evidence.error_errno);
        if (hint)
                SET(&result->error, failure, hint, arena_copy(arena, hint, strlen(hint)));
        if (status != status_COMPLETED)
                MARK(result, run_result, error);

        if (status == status_COMPLETED && run->how.pids_hits)
                run_warn(run, "process_limit_reached", "a fork or a thread was refused %" PRIu64 " times at pids=%" PRIu64,
                         run->how.pids_hits, run->request.limits.pids);
        if (status == status_COMPLETED && (evidence.home_full || evidence.inodes_full))
                run_warn(run, "disk_limit_reached", "the home directory was full at the end: disk_bytes or disk_files");
        if (run->how.reasons & WIRE_LEFTOVERS)
                run_warn(run, "background_killed", "processes that the program left behind were ended %" PRIu64
                         " ms after it, by background_ms", run->request.limits.background_ms);
        json_decref(syntax);
        json_decref(error);
}

/* ---- the parts of the record ---- */

static void record_exit(struct run *run)
{
        struct run_result *result = &run->result;
        int status = (int)run->how.status;
        if (run->how.has_status && WIFEXITED(status))
                SET(result, run_result, exit_code, WEXITSTATUS(status));
        else if (run->how.has_status)
                SET(result, run_result, signal, WTERMSIG(status));
        else
                SET(result, run_result, signal, SIGKILL);   /* what ends everything inside, whoever decided it */
}

static struct bytes stream_text(struct run *run, int i, uint64_t *ret_cut, uint64_t *ret_total)
{
        struct capture *capture = &run->streams[i].capture;
        struct bytes text;
        size_t cut_at;
        text.bytes = capture_text(capture, &run->arena, &text.len, &cut_at);
        *ret_cut = capture->total - text.len;
        *ret_total = capture->total;
        if (*ret_cut == 0)
                return text;
        /* The gap may be inside a character; half a character at its edges says nothing and is left out. */
        size_t from = cut_at, to = cut_at;
        while (from > 0 && cut_at - from < 3 && ((unsigned char)text.bytes[from - 1] & 0xc0) == 0x80)
                from--;
        if (from > 0 && (unsigned char)text.bytes[from - 1] >= 0xc0 && !utf8_step(text.bytes + from - 1, cut_at - from + 1))
                from--;
        else
                from = cut_at;
        while (to < text.len && to - cut_at < 3 && ((unsigned char)text.bytes[to] & 0xc0) == 0x80)
                to++;
        memmove(text.bytes + from, text.bytes + to, text.len - to);
        text.len -= to - from;
        *ret_cut += to - from;
        return text;
}

static void record_output(struct run *run)
{
        struct run_result *result = &run->result;
        struct truncated *truncated = &result->truncated;
        SET(result, run_result, stdout, stream_text(run, 0, &truncated->stdout_bytes, &truncated->stdout_total_bytes));
        SET(result, run_result, stderr, stream_text(run, 1, &truncated->stderr_bytes, &truncated->stderr_total_bytes));
        if (truncated->stdout_bytes || truncated->stderr_bytes)
                run_warn(run, "output_truncated", "%s was longer than output_bytes=%" PRIu64 "; head and tail are kept",
                         truncated->stdout_bytes ? "standard output" : "standard error", run->request.limits.output_bytes);
}

static void record_usage(struct run *run)
{
        const struct wire_exit *how = &run->how;
        struct usage *usage = &run->result.usage;
        SET(usage, usage, wall_ms, (double)how->wall_us / 1000);
        SET(usage, usage, cpu_ms, (double)how->cpu_us / 1000);
        if (how->throttled_us)
                SET(usage, usage, throttled_ms, (double)how->throttled_us / 1000);
        if (how->waited_us)
                SET(usage, usage, waited_ms, (double)how->waited_us / 1000);
        if (how->memory_peak)
                SET(usage, usage, memory_peak_bytes, how->memory_peak);
        if (how->pids_peak)
                SET(usage, usage, processes_peak, how->pids_peak);
}

/* A text of ours, which is there as long as this program is. */
static char *fixed(const char *text)
{
        return (char *)(uintptr_t)text;
}

static char **name_bits(struct run *run, uint64_t set, const char *const *names, const uint64_t *bits, size_t n, size_t *ret_n)
{
        char **texts = arena_alloc(&run->arena, n * sizeof *texts + 1);
        *ret_n = 0;
        for (size_t i = 0; i < n; i++)
                if (set & bits[i])
                        texts[(*ret_n)++] = fixed(names[i]);
        return texts;
}

static void degrade(struct run *run, const char *text)
{
        struct boundary *boundary = &run->result.boundary;
        if (!boundary->degraded)
                boundary->degraded = arena_alloc(&run->arena, 8 * sizeof *boundary->degraded);
        boundary->degraded[boundary->degraded_n++] = fixed(text);
        boundary->isolation = isolation_DEGRADED;
}

/* Of a backend that makes no network namespace we know only what was asked for. */
static const char *network_of(const struct run *run)
{
        if (run->backend != &backend_native)
                return run->backend == &backend_host ? "host" : run->request.network == network_NONE ? "none" : "remote";
        if (run->boundary.network == WIRE_NET_PROXY && !run->no_proxy)
                return "proxy";
        return run->boundary.network == WIRE_NET_HOST ? "host" : "none";
}

void run_record_boundary(struct run *run)
{
        static const char *const kinds[] = { "user", "mount", "pid", "network", "ipc", "uts", "cgroup" };
        static const uint64_t kind_bits[] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS,
                                              CLONE_NEWCGROUP };
        static const char *const controllers[] = { "memory", "cpu", "pids" };
        static const uint64_t controller_bits[] = { WIRE_CTL_MEMORY, WIRE_CTL_CPU, WIRE_CTL_PIDS };
        static const char *const modes[] = { "none", "v1", "v2" };
        const struct wire_boundary *fact = &run->boundary;
        struct boundary *boundary = &run->result.boundary;
        bool host = run->backend == &backend_host, here = run->backend == &backend_native;
        boundary->backend = fixed(run->backend->name);
        boundary->isolation = host ? isolation_ABSENT : here ? isolation_FULL : isolation_REMOTE;
        boundary->namespaces = name_bits(run, fact->namespaces, kinds, kind_bits, ARRAY_LEN(kinds), &boundary->namespaces_n);
        boundary->controllers = name_bits(run, fact->controllers, controllers, controller_bits, ARRAY_LEN(controllers),
                                          &boundary->controllers_n);
        boundary->seccomp = fact->seccomp == 1;
        boundary->landlock_abi = fact->landlock_abi;
        boundary->no_new_privileges = fact->no_new_privs == 1;
        if (here)
                SET(boundary, boundary, capabilities, fact->capabilities);
        boundary->cgroup = fixed(modes[fact->cgroup < ARRAY_LEN(modes) ? fact->cgroup : 0]);
        boundary->network = fixed(network_of(run));
        boundary->host_uid = fact->host_uid;
        boundary->host_uids = fact->ids;
        boundary->overlay = fact->overlay == 1;
        boundary->own_uid = fact->own_uid == 1;
        boundary->rootless = fact->rootless == 1;
        boundary->strict_proc = fact->proc_strict == 1;
        if (here && fact->controllers != WIRE_CTL_ALL)
                degrade(run, "limits: without the controllers for memory, cpu and pids, rlimits and a poll stand in; run as root, or in a "
                             "delegated cgroup (systemd-run --user --scope -p Delegate=yes)");
        if (here && !fact->landlock_abi)
                degrade(run, "Landlock is not in force; boot with lsm=landlock,... on Linux 5.13 or later");
        if (here && fact->rootless)
                degrade(run, "one uid for all sandboxes of this user; run as root for a uid each");
        MARK(&run->result, run_result, boundary);
}

/* ---- files ---- */

#define WRITTEN_BACK_MAX 1000000   /* no home directory that is read in time has more */

static void note_error(struct run *run, struct output_file *file, const char *text)
{
        if (!HAS(file, output_file, error))
                SET(file, output_file, error, arena_text(&run->arena, "%s", text));
}

static void export_file(struct run *run, const struct file_found *found, const char *to, struct output_file *file)
{
        struct csn_error err;
        if (mkdir(to, 0755) < 0 && errno != EEXIST) {
                SET(file, output_file, error, arena_text(&run->arena, "make %s: %s", to, strerrordesc_np(errno)));
                return;
        }
        auto_fd dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                SET(file, output_file, error, arena_text(&run->arena, "open %s: %s", to, strerrordesc_np(errno)));
        else if (files_export(run->home_fd, found, dir, -1, &err) < 0)
                SET(file, output_file, error, arena_text(&run->arena, "%s", err.text));
        else
                SET(file, output_file, path, arena_text(&run->arena, "%s/%s", to, found->name));
}

/* Once, however many rules it fits. */
static void keep_file(struct run *run, const struct file_found *found, struct output_file *file)
{
        const struct run_request *request = &run->request;
        const char *slash = strrchr(found->name, '/');
        struct csn_error err;
        char *url = NULL;
        if (found->error || HAS(file, output_file, url) || HAS(file, output_file, error))
                return;
        auto_fd fd = files_open(run->home_fd, found->name, &err);
        if (fd < 0 || run->storage->keep(run->run_storage_owner, run->id, request->user ? request->user : "", slash ? slash + 1 : found->name, found->mime, fd,
                                       &run->arena, &url, &err) < 0)
                note_error(run, file, err.text);
        else
                SET(file, output_file, url, url);
}

static void export_all(struct run *run, const struct file_found *found, struct output_file *file)
{
        for (size_t i = 0; i < run->request.exports_n; i++) {
                const struct export_rule *rule = &run->request.exports[i];
                if (!files_match(rule->pattern, found->name))
                        continue;
                if (HAS(rule, export_rule, path))
                        export_file(run, found, rule->path, file);
                else
                        keep_file(run, found, file);
        }
}

/* By how much a workspace may grow. */
struct work_room {
        uint64_t left, each;
};

/* Changed work files take the place of what was there, so only what they have more needs room. */
static void write_back(struct run *run, const struct file_found *found, struct work_room *room, struct output_file *file)
{
        struct csn_error err;
        struct stat old = { 0 };
        if (!run->entered) {
                export_file(run, found, run->work_dir, file);
                return;
        }
        bool there = files_stat(run->work_fd, found->name, &old) == 0;
        uint64_t had = there ? (uint64_t)old.st_size + room->each : 0, has = found->size + room->each, more = has > had ? has - had : 0;
        if (found->error)
                return;
        if (more > room->left)
                note_error(run, file, "there is no room for it in the workspace (stored_bytes of the key, or engine.files_bytes_max)");
        else if (files_export(run->home_fd, found, run->work_fd, run->work_temp_fd, &err) < 0)
                note_error(run, file, err.text);
        else
                room->left -= more;
}

/* What a program removed, or what is no regular file any more.  Who cannot tell leaves it as it is. */
static void remove_gone(struct run *run, struct work_room *room)
{
        for (size_t i = 0; i < run->inputs_n; i++) {
                const char *name = run->inputs[i].name;
                if (!run->inputs[i].work)
                        continue;
                int sys = files_look(run->home_fd, name);
                if ((sys == ENOENT || sys == ENOTDIR || sys == ELOOP || sys == EINVAL) && files_remove(run->work_fd, name) == 0)
                        room->left += min_u64(run->digests[i].size + room->each, UINT64_MAX - room->left);
        }
}

static void record_file(struct run *run, const struct file_found *found, struct work_room *room, struct output_file *file)
{
        struct arena *arena = &run->arena;
        size_t len = strlen(found->name), safe_len;
        SET(file, output_file, name, model_utf8(arena, found->name, len, &safe_len));
        if (!utf8_valid(found->name, len))
                SET(file, output_file, name_base64, model_base64(arena, found->name, len));
        SET(file, output_file, size_bytes, found->size);
        SET(file, output_file, mime, fixed(found->mime));
        SET(file, output_file, changed, found->changed);
        if (found->sha256[0])
                SET(file, output_file, sha256, arena_text(arena, "%s", found->sha256));
        if (found->error)
                SET(file, output_file, error, arena_text(arena, "%s", found->error));
        export_all(run, found, file);
        if (run->work_fd >= 0)
                write_back(run, found, room, file);
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

static const char *why_missing(struct run *run, const char *name)
{
        struct csn_error err;
        if (wire_name_check(name, strlen(name), &err) < 0)
                return arena_text(&run->arena, "%s", err.text);
        int sys = files_look(run->home_fd, name);
        if (sys == ENOENT || sys == ENOTDIR)
                return "there is no file of this name";
        return sys == 0 ? RUN_FILE_UNCHANGED : sys == EINVAL ? "it is a link, or not a regular file" : "it is behind a link, or cannot be read";
}

/* A file that is asked for by its very name has an entry that says why there is none; of a pattern warn_lost() tells. */
static void record_missing(struct run *run, const struct file_list *list)
{
        struct run_result *result = &run->result;
        for (size_t i = 0; i < run->request.exports_n; i++) {
                const struct export_rule *rule = &run->request.exports[i];
                if (is_pattern(rule) || fits_any(rule->pattern, list))
                        continue;
                struct output_file *file = &result->files[result->files_n++];
                SET(file, output_file, name, rule->pattern);
                SET(file, output_file, size_bytes, 0);
                SET(file, output_file, mime, fixed(files_mime(rule->pattern, "", 0)));
                SET(file, output_file, changed, false);
                SET(file, output_file, error, arena_text(&run->arena, "%s", why_missing(run, rule->pattern)));
        }
}

/* Whether the file was to be in a folder of this host after the run. */
static bool is_wanted_here(const struct run *run, const char *name)
{
        bool wanted = run->work_fd >= 0 && !run->entered;
        for (size_t i = 0; i < run->request.exports_n && !wanted; i++) {
                const struct export_rule *rule = &run->request.exports[i];
                wanted = HAS(rule, export_rule, path) && (strcmp(rule->pattern, name) == 0 || files_match(rule->pattern, name));
        }
        return wanted;
}

#define LOST_SHOWN 4           /* a warning has 600 bytes */

static void add_lost(struct buf *text, size_t *n, const char *name, const char *why)
{
        if ((*n)++ < LOST_SHOWN)
                buf_printf(text, "%s%.50s: %.60s", text->len ? "; " : "", name, why);
}

/* One warning for all that was to be exported and is not. */
static void warn_lost(struct run *run, const struct file_list *list)
{
        const struct run_result *result = &run->result;
        struct buf text;
        size_t n = 0;
        bool exports = false;
        buf_init(&text, 2 * KIB);
        for (size_t i = 0; i < result->files_n; i++)
                if (HAS(&result->files[i], output_file, error) && is_wanted_here(run, result->files[i].name))
                        add_lost(&text, &n, result->files[i].name, result->files[i].error);
        for (size_t i = 0; i < run->request.exports_n; i++) {
                const struct export_rule *rule = &run->request.exports[i];
                exports = exports || HAS(rule, export_rule, path);
                bool all = !rule->pattern[strspn(rule->pattern, "*")];   /* whatever there is, and so nothing is missing */
                if (HAS(rule, export_rule, path) && is_pattern(rule) && !all && !fits_any(rule->pattern, list))
                        add_lost(&text, &n, rule->pattern, "no new or changed regular file has such a name");
        }
        if (result->files_truncated && (exports || (run->work_fd >= 0 && !run->entered)))
                add_lost(&text, &n, "all other files", "there are more than output_files allows, or they lie too deep");
        if (n > LOST_SHOWN)
                buf_printf(&text, "; and %zu more", n - LOST_SHOWN);
        if (run->warnings_n == WARNINGS_MAX && n)
                run->warnings_n--;   /* this one is never the one too many */
        size_t len;
        if (n)
                run_warn(run, RUN_EXPORT_FAILED, "not exported: %s", model_utf8(&run->arena, text.bytes, text.len, &len));
        buf_done(&text);
}

/* As whoever put it in sent it back, or -1. */
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

/* In a workspace all that changed is written back, whatever the record lists. */
static void record_files(struct run *run)
{
        struct run_result *result = &run->result;
        struct csn_error err;
        struct file_list list;
        uint64_t listed = run->request.limits.output_files;
        struct work_room room = { 0 };
        auto_fd first = first_input(run);
        const struct file_rules rules = { .files_max = run->entered ? max_u64(listed, WRITTEN_BACK_MAX) : listed,
                                          .bytes_max = run->request.limits.disk_bytes + FILES_SPARSE_MIN,
                                          .time_ms = COLLECT_MS,
                                          .inputs = run->digests,
                                          .inputs_n = run->inputs_n,
                                          .first_fd = first };
        if (run->home_fd < 0)
                return;
        if (files_collect(run->home_fd, &rules, &run->arena, &list, &err) < 0) {
                run_warn(run, "files_unreadable", "%s", err.text);
                if (is_wanted_here(run, run->request.exports_n ? run->request.exports[0].pattern : ""))
                        run_warn(run, RUN_EXPORT_FAILED, "not exported: %s", err.text);
                return;
        }
        if (run->entered) {
                room.left = run->storage->room(run->run_storage_owner, &room.each);
                remove_gone(run, &room);
        }
        result->files = arena_alloc(&run->arena, (min_u64(list.n, listed) + run->request.exports_n + 1) * sizeof *result->files);
        for (size_t i = 0; i < list.n; i++) {
                struct output_file more = { 0 };
                record_file(run, &list.files[i], &room, i < listed ? &result->files[i] : &more);
        }
        result->files_n = min_u64(list.n, listed);
        record_missing(run, &list);
        result->files_truncated = list.truncated || list.n > listed;
        if (result->files_truncated)
                run_warn(run, "files_truncated", "there are more files than output_files=%" PRIu64 ", or deeper than %d "
                         "folders", run->request.limits.output_files, FILES_DEPTH_MAX);
        warn_lost(run, &list);
}

static void record_inputs(struct run *run)
{
        struct run_result *result = &run->result;
        result->inputs = arena_alloc(&run->arena, run->inputs_n * sizeof *result->inputs + 1);
        for (size_t i = 0; run->digests && i < run->inputs_n; i++) {
                struct taken_file *file = &result->inputs[result->inputs_n];
                if (run->inputs[i].hidden)
                        continue;
                SET(file, taken_file, name, arena_text(&run->arena, "%s", run->inputs[i].name));
                SET(file, taken_file, size_bytes, run->digests[i].size);
                SET(file, taken_file, sha256, arena_text(&run->arena, "%s", run->digests[i].sha256));
                result->inputs_n++;
        }
}

/* ---- what a model should read ---- */

static void say(struct run *run, const char *text)
{
        struct run_result *result = &run->result;
        if (!result->feedback)
                result->feedback = arena_alloc(&run->arena, FEEDBACK_MAX * sizeof *result->feedback);
        for (size_t i = 0; i < result->feedback_n; i++)
                if (strcmp(result->feedback[i], text) == 0)
                        return;
        if (text[0] && result->feedback_n < FEEDBACK_MAX)
                result->feedback[result->feedback_n++] = arena_text(&run->arena, "%s", text);
}

static void record_feedback(struct run *run)
{
        const struct run_result *result = &run->result;
        const struct failure *error = &result->error;
        if (!HAS(result, run_result, error))
                return;
        if (error->type && HAS(error, failure, line))
                say(run, arena_text(&run->arena, "Line %" PRIu64 ": %s: %s", error->line, error->type, error->message));
        else if (error->type)
                say(run, arena_text(&run->arena, "%s: %s", error->type, error->message));
        else
                say(run, error->message);
        if (error->hint)
                say(run, error->hint);
        if (!error->hint && !error->type && result->status == status_FAILED) {
                say(run, "Code failed to execute. Check logic and edge cases.");
                const struct bytes *text = &result->stderr;
                size_t from = text->len > 200 ? text->len - 200 : 0, len;
                if (text->len)
                        say(run, arena_text(&run->arena, "Error: %s", model_utf8(&run->arena, text->bytes + from, text->len - from, &len)));
        }
}

/* ---- whole ---- */

static void record_refusal(struct run *run)
{
        static const struct { int code, status; } rows[] = {
                { CSN_E_INPUT, status_BAD_REQUEST },
                { CSN_E_LANGUAGE, status_UNSUPPORTED_LANGUAGE },
                { CSN_E_UNSUPPORTED, status_ISOLATION_UNAVAILABLE },
                { CSN_E_BUSY, status_CAPACITY },
                { CSN_E_CANCELLED, status_CANCELLED },
        };
        struct run_result *result = &run->result;
        struct failure *error = &result->error;
        int status = status_ENGINE_ERROR;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].code == run->refusal.code)
                        status = rows[i].status;
        if (run->refusal.code == CSN_E_SYSTEM && strcmp(run->refusal.field, "/packages") == 0)
                status = status_DEPENDENCY_FAILED;
        SET(result, run_result, status, run->cancelled ? status_CANCELLED : status);
        SET(error, failure, code, arena_text(&run->arena, "%s", csn_code_name(run->refusal.code)));
        if (run->refusal.field[0])
                SET(error, failure, field, arena_text(&run->arena, "%s", run->refusal.field));
        SET(error, failure, message, arena_text(&run->arena, "%s", run->refusal.text));
        MARK(result, run_result, error);
        if (run->has_boundary)
                record_output(run);   /* it did run; nothing that it printed is lost */
        say(run, error->message);
}

static void record_findings(struct run *run)
{
        struct run_result *result = &run->result;
        result->findings = run->check.result.findings;
        result->findings_n = run->check.result.findings_n;
}

/* The policy's own sentence is for the model that wrote the program; what to do instead follows. */
static void record_blocked(struct run *run)
{
        struct run_result *result = &run->result;
        const struct check_result *check = &run->check.result;
        SET(result, run_result, status, status_BLOCKED);
        SET(&result->error, failure, message, check->reason);
        MARK(result, run_result, error);
        say(run, check->reason);
        for (size_t i = 0; i < check->findings_n; i++) {
                const struct finding *finding = &check->findings[i];
                say(run, arena_text(&run->arena, "Line %" PRIu64 ": %s", finding->line, finding->message));
                if (HAS(finding, finding, advice))
                        say(run, finding->advice);
        }
}

static void record_request(struct run *run)
{
        struct run_result *result = &run->result;
        const struct run_request *request = &run->request;
        SET(result, run_result, schema, MODEL_SCHEMA_VERSION);
        SET(result, run_result, id, run->id);
        result->limits = request->limits;
        if (run->language)
                SET(result, run_result, language, arena_text(&run->arena, "%s", run->language->name));
        else if (HAS(request, run_request, language))
                SET(result, run_result, language, request->language);
#define KEEP(member) \
        if (HAS(request, run_request, member)) \
                SET(result, run_result, member, request->member)
        KEEP(profile);
        KEEP(task_id);
        KEEP(user);
        KEEP(workspace);
#undef KEEP
        if (request->labels_n) {
                result->labels = request->labels;
                result->labels_n = request->labels_n;
                MARK(result, run_result, labels);
        }
        if (request->packages_n) {
                result->packages = request->packages;
                result->packages_n = request->packages_n;
                MARK(result, run_result, packages);
        }
        if (run->work_dir)
                SET(result, run_result, work_dir, arena_text(&run->arena, "%s", run->work_dir));
}

static void record_times(struct run *run)
{
        struct timings *timings = &run->result.timings;
        uint64_t now = clock_us();
        char text[40];
        timings->queue_ms = run->begun_us ? (double)(run->begun_us - run->queued_us) / 1000 : 0;
        timings->prepare_ms = run->started_us ? (double)(run->started_us - run->created_us) / 1000 - timings->queue_ms : 0;
        timings->run_ms = (double)run->how.wall_us / 1000;
        timings->collect_ms = run->ended_us ? (double)(now - run->started_us) / 1000 - timings->run_ms : 0;
        timings->collect_ms = timings->collect_ms < 0 ? 0 : timings->collect_ms;
        timings->total_ms = (double)(now - run->created_us) / 1000;
        time_print(time_now_ms(), text, sizeof text);
        if (run->started_at[0])
                SET(&run->result, run_result, started_at, run->started_at);
        SET(&run->result, run_result, finished_at, arena_text(&run->arena, "%s", text));
}

void run_record(struct run *run)
{
        struct run_result *result = &run->result;
        record_request(run);
        record_inputs(run);
        record_findings(run);
        if (run->refusal.code) {
                record_refusal(run);
        } else if (run->blocked) {
                record_blocked(run);
        } else {
                record_exit(run);
                record_output(run);
                record_usage(run);
                if (run->has_boundary)
                        run_record_boundary(run);
                take_value(run);
                if (run->displays)
                        take_displays(run);
                decide(run);
                if (run->compile_only && result->status == status_COMPLETED && HAS(&run->check.result, check_result, reason)) {
                        check_unreadable(&run->check);
                        record_blocked(run);
                }
                record_files(run);
                record_feedback(run);
        }
        if (run->tool_session.broker) {
                run->tool_session.tools->report(run->tool_session.broker, &run->arena, &result->tools);
                MARK(result, run_result, tools);
        }
        record_times(run);
        result->warnings = run->warnings;
        result->warnings_n = run->warnings_n;
}
