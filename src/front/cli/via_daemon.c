/*
 * caisson run and caisson check by way of caissond.
 *
 * The daemon serves requests without need of this side: no folder of this host, no settings of this command.  Files
 * named by their path are read here and sent.  Everything else, and everything without a daemon, is run by an engine of
 * our own, with the same results.
 */
#include "front/cli/cli.h"

#include "front/socket/client.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILES_MAX (32 * MIB)       /* of all files sent, together */

struct cli_transport {
        struct client *client;
        const struct cli_transport_events *events;
        void *owner;
        bool always;               /* no fallback to an engine here */
        bool over, cancelled;
};

/* ---- obstacles ---- */

/* Settings on the way to a daemon, without effect on an engine. */
static bool is_harmless(const struct setting *setting)
{
        static const char *const keys[] = { "engine.socket", "engine.socket_mode", "engine.socket_group",
                "engine.socket_uids", "engine.shutdown_ms", "engine.log_level" };
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
                if (strcmp(setting->key, keys[i]) == 0)
                        return true;
        return false;
}

/* The daemon has read the usual files itself; settings of this command do not reach the daemon. */
static const struct setting *own_setting(const struct settings *settings, const struct cli_settings *from)
{
        for (size_t i = 0; i < settings->n; i++) {
                const char *source = settings->list[i].source;
                bool own = strncmp(source, "flag ", 5) == 0 || strncmp(source, "environment ", 12) == 0 ||
                           (from->file && strncmp(source, "file ", 5) == 0);
                if (own && !is_harmless(&settings->list[i]))
                        return &settings->list[i];
        }
        return NULL;
}

static bool wants_host(const struct settings *settings, const struct run_request *request)
{
        struct arena arena = { 0 };
        struct profile profile;
        struct csn_error err;
        const char *backend = HAS(request, run_request, backend) ? request->backend : "";
        const char *name = HAS(request, run_request, profile) ? request->profile : settings->engine.profile;
        bool host = strcmp(backend, "host") == 0;
        if (!host && !backend[0] && profile_find(settings, name, &arena, &profile, &err) == 0)
                host = profile.request.backend && strcmp(profile.request.backend, "host") == 0;
        arena_done(&arena);
        return host;
}

static bool is_text(const char *text)
{
        return utf8_valid(text, strlen(text));
}

/* JSON has no place for other bytes in arguments, variables and names. */
static bool is_all_text(const struct run_request *request)
{
        bool good = true;
        for (size_t i = 0; i < request->args_n; i++)
                good = good && is_text(request->args[i]);
        for (size_t i = 0; i < request->env_n; i++)
                good = good && is_text(request->env[i].name) && is_text(request->env[i].value);
        for (size_t i = 0; i < request->files_n; i++) {
                const struct input_file *file = &request->files[i];
                good = good && is_text(file->name ? file->name : file->path ? file->path : "");
        }
        return good;
}

/* Why the daemon cannot have the request, or NULL. */
static const char *obstacle(const struct settings *settings, const struct cli_settings *from,
        const struct run_request *request, struct arena *arena)
{
        const struct setting *own = own_setting(settings, from);
        if (own)
                return arena_text(arena, "%s is set for this command (%s)", own->key, own->source);
        if (HAS(request, run_request, work_dir))
                return "work_dir is a folder of this side";
        if (request->exports_n)
                return "exports go to folders of this side";
        if (wants_host(settings, request))
                return "the host backend is this side";
        return is_all_text(request) ? NULL : "an argument, a variable or a file's name is not valid UTF-8";
}

/* ---- files ---- */

static int read_input(const char *path, uint64_t *left, struct arena *arena, struct bytes *ret, struct csn_error *err)
{
        struct stat st;
        auto_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return err_field(err, "/files", "%s cannot be read or is not a regular file", path);
        if ((uint64_t)st.st_size > *left)
                return err_field(err, "/files", "the files are together larger than %llu MiB", FILES_MAX / MIB);
        ret->bytes = arena_alloc(arena, (size_t)st.st_size + 1);
        for (ret->len = 0; ret->len < (size_t)st.st_size;) {
                ssize_t n = read(fd, ret->bytes + ret->len, (size_t)st.st_size - ret->len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return err_field(err, "/files", "%s changed while it was read", path);
                ret->len += (size_t)n;
        }
        *left -= ret->len;
        return 0;
}

/* Paths into contents, in a copy: the request may yet be run here. */
static int take_files(struct run_request *copy, struct arena *arena, struct csn_error *err)
{
        uint64_t left = FILES_MAX;
        struct input_file *files = arena_alloc(arena, copy->files_n * sizeof *files + 1);
        for (size_t i = 0; i < copy->files_n; i++) {
                const struct input_file *file = &copy->files[i];
                files[i] = *file;
                if (!HAS(file, input_file, path) || HAS(file, input_file, content))
                        continue;   /* without either, or with both, the engine reports the error */
                const char *slash = strrchr(file->path, '/');
                files[i] = (struct input_file){ 0 };
                SET(&files[i], input_file, name,
                    arena_text(arena, "%s", HAS(file, input_file, name) ? file->name : slash ? slash + 1 : file->path));
                if (read_input(file->path, &left, arena, &files[i].content, err) < 0)
                        return -err->code;
                MARK(&files[i], input_file, content);
        }
        copy->files = files;
        return 0;
}

/* Options are not held to the schema's lengths and numbers, but requests to the daemon are. */
static int check_schema(const struct run_request *request, struct csn_error *err)
{
        struct run_request bare = *request, decoded = { 0 };
        struct arena arena = { 0 };
        struct buf text;
        buf_init(&text, FRAME_REQUEST_MAX);
        bare.files = arena_alloc(&arena, bare.files_n * sizeof *bare.files + 1);
        for (size_t i = 0; i < bare.files_n; i++) {
                bare.files[i] = request->files[i];
                bare.files[i].content.len = 0;   /* the only long part, with a ceiling already */
        }
        int rc = front_write_request(&bare, &text) ? model_decode_text(&object_run_request, text.bytes, text.len,
                                                                       &arena, &decoded, err)
                                                    : err_field(err, "/", "the request is too long");
        buf_done(&text);
        arena_done(&arena);
        return rc;
}

static int send_request(struct cli_transport *transport, const struct run_request *request, struct csn_error *err)
{
        struct run_request copy = *request;
        struct arena arena = { 0 };
        struct buf text;
        buf_init(&text, FRAME_REQUEST_MAX);
        int rc = take_files(&copy, &arena, err);
        if (rc == 0)
                rc = check_schema(&copy, err);
        if (rc == 0 && !front_write_request(&copy, &text))
                rc = err_field(err, "/", "the request is longer than %llu MiB", FRAME_REQUEST_MAX / MIB);
        if (rc == 0)
                client_send(transport->client, FRAME_REQUEST, text.bytes, text.len);
        buf_done(&text);
        arena_done(&arena);
        return rc;
}

/* ---- answers ---- */

static void on_output(void *owner, int stream, const void *bytes, size_t len)
{
        struct cli_transport *transport = owner;
        transport->events->output(transport->owner, stream, bytes, len);
}

static void on_failed(void *owner, const struct csn_error *error, bool refused)
{
        struct cli_transport *transport = owner;
        if (!transport->over)
                transport->events->failed(transport->owner, error,
                        refused && !transport->always && !transport->cancelled);
        transport->over = true;
}

static void on_answer(void *owner, enum frame_type type, const char *text, size_t len)
{
        struct cli_transport *transport = owner;
        struct arena arena = { 0 };
        struct run_result result;
        struct csn_error err;
        json_t *record = type == FRAME_RECORD ? model_read(text, len, JSON_ALLOW_NUL, NULL) : NULL;
        if (front_read_record(record, &arena, &result, &err) < 0) {
                on_failed(transport, &err, false);
        } else {
                transport->over = true;
                transport->events->done(transport->owner, &result, record);
        }
        json_decref(record);
        arena_done(&arena);
}

static const struct client_events events_of_client = { on_output, on_answer, on_failed };

/* ---- in order ---- */

enum transport_use { TRANSPORT_AUTO, TRANSPORT_NEVER, TRANSPORT_ALWAYS };

static int parse_word(const char *word, enum transport_use *ret, struct csn_error *err)
{
        static const char *const words[] = {
                [TRANSPORT_AUTO] = "auto", [TRANSPORT_NEVER] = "never", [TRANSPORT_ALWAYS] = "always"
        };
        const char *variable = getenv("CAISSON_DAEMON");
        const char *from = word ? "--daemon" : "CAISSON_DAEMON";
        word = word ? word : variable && variable[0] ? variable : "auto";
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                if (strcmp(words[i], word) == 0) {
                        *ret = (enum transport_use)i;
                        return 0;
                }
        return err_field(err, from, "%s is \"%.40s\"; it has to be auto, never or always", from, word);
}

static int connect_and_send(struct loop *loop, const struct settings *settings, const struct run_request *request,
        struct cli_transport *transport, struct csn_error *err)
{
        if (client_open(loop, settings, &events_of_client, transport, &transport->client, err) < 0)
                return -err->code;
        return send_request(transport, request, err);
}

int transport_open(struct loop *loop, const char *word, const struct settings *settings,
        const struct cli_settings *from, struct run *run, const struct cli_transport_events *events, void *owner,
        struct cli_transport **ret, struct csn_error *err)
{
        enum transport_use use = TRANSPORT_AUTO;
        if (parse_word(word, &use, err) < 0)
                return -err->code;
        if (use == TRANSPORT_NEVER)
                return err_set(err, CSN_OK, 0, "--daemon never");
        const char *why = obstacle(settings, from, run_request(run), run_arena(run));
        if (why) {
                err_field(err, "--daemon", "%s%s", use == TRANSPORT_ALWAYS ? "the daemon cannot run this: " : "", why);
                return use == TRANSPORT_ALWAYS ? -err->code : 0;
        }
        struct cli_transport *transport = mem_alloc(sizeof *transport);
        *transport = (struct cli_transport){ .events = events, .owner = owner, .always = use == TRANSPORT_ALWAYS };
        int rc = connect_and_send(loop, settings, run_request(run), transport, err);
        if (rc == 0) {
                *ret = transport;
                return 0;
        }
        transport_close(transport);
        return use == TRANSPORT_ALWAYS ? rc : 0;
}

const char *transport_path(const struct cli_transport *transport)
{
        return client_path(transport->client);
}

int transport_for_checks(const char *word, const struct settings *settings, const struct cli_settings *from,
        struct daemon_query *ret, bool *ret_there, bool *ret_always, struct csn_error *err)
{
        enum transport_use use = TRANSPORT_AUTO;
        *ret_there = false;
        if (parse_word(word, &use, err) < 0)
                return -err->code;
        *ret_always = use == TRANSPORT_ALWAYS;
        const struct setting *own = own_setting(settings, from);
        if (own && use == TRANSPORT_ALWAYS)
                return err_field(err, "--daemon", "the daemon cannot check this: %s is set for this command (%s)",
                        own->key, own->source);
        if (own || use == TRANSPORT_NEVER)
                return 0;
        *ret_there = daemon_query_open(ret, settings) == 0;
        if (*ret_there)
                return 0;
        *err = ret->err;
        daemon_query_close(ret);
        return use == TRANSPORT_ALWAYS ? -err->code : 0;
}

void transport_cancel(struct cli_transport *transport)
{
        if (!transport || transport->over || transport->cancelled)
                return;
        transport->cancelled = true;
        client_send(transport->client, FRAME_CANCEL, NULL, 0);
}

void transport_close(struct cli_transport *transport)
{
        if (!transport)
                return;
        client_close(transport->client);
        free(transport);
}
