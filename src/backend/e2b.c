/*
 * The backend `e2b` carries out runs in sandboxes of another server with the interface of E2B.
 *
 * A run is a list of requests, one after the other: create a sandbox, write files, install packages, list files,
 * execute the program, fetch new and changed files, kill the sandbox.  The events of the execution are translated into
 * frames of the runner channel.  The kill is sent after a failure, too; in addition the server ends the sandbox shortly
 * after the time limit of the run.
 *
 * Answers of the server are as hostile as a program: sizes have ceilings, names are checked, and each request has a
 * time limit.
 */
#include "backend/e2b.h"

#include "backend/far_ends.h"
#include "model/package_spec.h"
#include "net/http_client.h"

#include <fcntl.h>

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#define ENVD_PORT 49983
#define INTERPRETER_PORT 49999
#define HOME "/home/user"
#define LIFE_MORE_MS 15000                 /* lifetime of a sandbox beyond the run's time limit */
#define ASK_MS 60000L                      /* one request */
#define KILL_MS 5000L
#define PACKAGES_MS 300000L
#define ANSWER_MAX (64 * MIB)
#define LIST_DEPTH 16

struct remote_run;

/* A kind of request.  begin() sends a request, and is called again for the next item; answered() takes the answer. */
struct step {
        const char *what;
        int (*begin)(struct remote_run *remote_run, struct csn_error *err);      /* 1: no request needed */
        int (*answered)(struct remote_run *remote_run, struct csn_error *err);   /* 1: once more */
        long ms;
        bool last;                         /* also done after a failure */
};

struct remote_run {
        struct remote_run *next;
        struct backend_link *link;
        uint32_t id;
        void *owner;
        const struct backend_program *what;
        struct fetch fetch;
        struct curl_slist *headers;
        struct buf body, answer;
        struct arena arena;
        size_t step, at;                   /* index of the step; index of the item in the step */
        bool over;
        char sandbox[80], *token, *domain;
        struct far_ends ends;
        json_t *before, *wanted;           /* files by path; files to fetch */
        uint64_t room;                     /* bytes of files */
        struct timer deadline, next_step;
        uint64_t began_us, ended_us;
        bool started, failed;
        uint64_t reasons;
        struct csn_error error;            /* code 0: none */
};

struct backend_link {
        struct loop *loop;
        const struct backend_events *events;
        const struct engine_settings *settings;
        struct fetcher *fetcher;
        struct remote_run *remote_runs;
};

/* ---- frames for the engine ---- */

static void say(struct remote_run *remote_run, enum channel_type type, const char *text, size_t len)
{
        far_ends_say(&remote_run->ends, type, text, len);
}

static void say_json(struct remote_run *remote_run, enum channel_type type, json_t *json)
{
        char *text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        if (text)
                say(remote_run, type, text, strlen(text));
        free(text);
}

static void say_started(struct remote_run *remote_run)
{
        if (!remote_run->started)
                say(remote_run, CHANNEL_STARTED, "", 0);
        remote_run->started = true;
}

/* ---- its end ---- */

static void remote_run_free(struct remote_run *remote_run)
{
        struct loop *loop = remote_run->link->loop;
        for (struct remote_run **at = &remote_run->link->remote_runs; *at; at = &(*at)->next)
                if (*at == remote_run) {
                        *at = remote_run->next;
                        break;
                }
        fetch_close(&remote_run->fetch);
        curl_slist_free_all(remote_run->headers);
        buf_done(&remote_run->body);
        buf_done(&remote_run->answer);
        far_ends_close(&remote_run->ends);
        loop_untimer(loop, &remote_run->deadline);
        loop_untimer(loop, &remote_run->next_step);
        json_decref(remote_run->before);
        json_decref(remote_run->wanted);
        arena_done(&remote_run->arena);
        free(remote_run);
}

/* Frames and output must be in the pipes first: at exited() the engine reads the rest. */
static void finish_when_read(struct remote_run *remote_run)
{
        if (!remote_run->over || far_ends_waiting(&remote_run->ends))
                return;
        const struct backend_events *news = remote_run->link->events;
        void *owner = remote_run->owner;
        bool well = !remote_run->error.code || remote_run->reasons;
        struct csn_error error = remote_run->error;
        struct wire_exit how = { .reasons = remote_run->reasons,
                .has_status = remote_run->ended_us && !remote_run->reasons,
                .status = remote_run->failed ? 1U << 8 : 0 };
        char folder[sizeof remote_run->ends.folder];
        memcpy(folder, remote_run->ends.folder, sizeof folder);
        if (remote_run->began_us)
                how.wall_us = (remote_run->ended_us ? remote_run->ended_us : clock_us()) - remote_run->began_us;
        remote_run_free(remote_run);
        if (well)
                news->exited(owner, &how);
        else
                news->refused(owner, &error);
        io_remove_tree(AT_FDCWD, folder);
}

/* ---- a request ---- */

static size_t on_answer(char *bytes, size_t size, size_t n, void *owner)
{
        struct remote_run *remote_run = owner;
        return buf_add(&remote_run->answer, bytes, size * n) ? size * n : 0;
}

static void add_header(struct remote_run *remote_run, const char *name, const char *value)
{
        remote_run->headers =
                curl_slist_append(remote_run->headers, arena_text(&remote_run->arena, "%s: %s", name, value));
}

static const char *domain_of(const struct remote_run *remote_run)
{
        return remote_run->domain ? remote_run->domain : remote_run->link->settings->e2b_domain;
}

/* Prepare a request.  Takes the reference of `body`, which may be NULL. */
static int ask(struct remote_run *remote_run, const char *method, const char *url, json_t *body, struct csn_error *err)
{
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
        json_decref(body);
        buf_done(&remote_run->body);
        buf_init(&remote_run->body, 256 * MIB);
        if (text)
                buf_add(&remote_run->body, text, strlen(text));
        free(text);
        fetch_close(&remote_run->fetch);
        curl_slist_free_all(remote_run->headers);
        remote_run->headers = NULL;
        if (fetch_open(&remote_run->fetch, remote_run->link->fetcher, url,
                    "engine.e2b_api_url or engine.e2b_sandbox_url", "engine.e2b_api_key", err) < 0)
                return -err->code;
        curl_easy_setopt(remote_run->fetch.easy, CURLOPT_CUSTOMREQUEST, method);
        curl_easy_setopt(remote_run->fetch.easy, CURLOPT_WRITEFUNCTION, on_answer);
        curl_easy_setopt(remote_run->fetch.easy, CURLOPT_WRITEDATA, remote_run);
        add_header(remote_run, "Expect", "");
        return 0;
}

static int ask_api(struct remote_run *remote_run, const char *method, const char *path, json_t *body,
        struct csn_error *err)
{
        const struct engine_settings *settings = remote_run->link->settings;
        size_t len = strlen(settings->e2b_api_url);
        while (len && settings->e2b_api_url[len - 1] == '/')
                len--;
        const char *base = len ? arena_text(&remote_run->arena, "%.*s", (int)len, settings->e2b_api_url)
                               : arena_text(&remote_run->arena, "https://api.%s", settings->e2b_domain);
        if (ask(remote_run, method, arena_text(&remote_run->arena, "%s%s", base, path), body, err) < 0)
                return -err->code;
        add_header(remote_run, "X-API-KEY", settings->e2b_api_key);
        add_header(remote_run, "Content-Type", "application/json");
        return 0;
}

static int ask_sandbox(struct remote_run *remote_run, unsigned port, const char *method, const char *path, json_t *body,
        const char *type, struct csn_error *err)
{
        const struct engine_settings *settings = remote_run->link->settings;
        const char *base = settings->e2b_sandbox_url[0]
                ? settings->e2b_sandbox_url
                : arena_text(&remote_run->arena, "https://%u-%s.%s", port, remote_run->sandbox, domain_of(remote_run));
        if (ask(remote_run, method, arena_text(&remote_run->arena, "%s%s", base, path), body, err) < 0)
                return -err->code;
        add_header(remote_run, "E2b-Sandbox-Id", remote_run->sandbox);
        add_header(remote_run, "E2b-Sandbox-Port", arena_text(&remote_run->arena, "%u", port));
        add_header(remote_run, "Content-Type", type);
        add_header(remote_run, "Authorization", "Basic dXNlcjo=");   /* "user:" */
        if (remote_run->token)
                add_header(remote_run, "X-Access-Token", remote_run->token);
        return 0;
}

static char *escaped(struct remote_run *remote_run, const char *text)
{
        char *with = curl_easy_escape(NULL, text, (int)strlen(text));
        char *copy = arena_text(&remote_run->arena, "%s", with ? with : "");
        curl_free(with);
        return copy;
}

/* ---- the steps ---- */

static int begin_create(struct remote_run *remote_run, struct csn_error *err)
{
        const struct run_request *request = remote_run->what->request;
        json_t *env = json_object(), *labels = json_object();
        for (size_t i = 0; i < request->env_n; i++)
                json_object_set_new(env, request->env[i].name, json_string(request->env[i].value));
        for (size_t i = 0; i < request->labels_n; i++)
                json_object_set_new(labels, request->labels[i].name, json_string(request->labels[i].value));
        uint64_t life_s = (request->limits.wall_ms + LIFE_MORE_MS + 999) / 1000;
        return ask_api(remote_run, "POST", "/sandboxes",
                json_pack("{s:s, s:I, s:b, s:o, s:o, s:b}", "templateID", remote_run->link->settings->e2b_template,
                        "timeout", (json_int_t)life_s, "secure", 1, "envVars", env, "metadata", labels,
                        "allow_internet_access", request->network != network_NONE),
                err);
}

/* Is this text of the server safe as a part of a URL? */
static bool is_plain(const char *text, const char *more)
{
        for (; text && *text; text++)
                if (!(*text >= 'a' && *text <= 'z') && !(*text >= 'A' && *text <= 'Z') &&
                        !(*text >= '0' && *text <= '9') && !strchr(more, *text))
                        return false;
        return text != NULL;
}

static int answered_create(struct remote_run *remote_run, struct csn_error *err)
{
        json_t *json =
                json_loadb(remote_run->answer.bytes ? remote_run->answer.bytes : "", remote_run->answer.len, 0, NULL);
        const char *id = json_string_value(json_object_get(json, "sandboxID")),
                   *token = json_string_value(json_object_get(json, "envdAccessToken")),
                   *domain = json_string_value(json_object_get(json, "domain"));
        int rc = is_plain(id, "-_") && *id && strlen(id) < sizeof remote_run->sandbox &&
                        (!token || is_plain(token, "-_.")) && (!domain || is_plain(domain, "-.:"))
                ? 0
                : err_set(err, CSN_E_PROTOCOL, 0, "the answer is no sandbox");
        if (rc == 0) {
                snprintf(remote_run->sandbox, sizeof remote_run->sandbox, "%s", id);
                remote_run->token = token ? arena_text(&remote_run->arena, "%s", token) : NULL;
                remote_run->domain = domain ? arena_text(&remote_run->arena, "%s", domain) : NULL;
        }
        json_decref(json);
        return rc;
}

/* The first of the files is the program, which is executed and not written. */
static int begin_upload(struct remote_run *remote_run, struct csn_error *err)
{
        struct wire_file file;
        int source = -1;
        size_t i = remote_run->at + 1;
        if (i >= remote_run->what->files_n)
                return 1;
        if (remote_run->what->file(remote_run->what->owner, i, &file, &source, err) < 0)
                return -err->code;
        auto_fd fd = source;
        if (backend_put_file(remote_run->ends.home, &file, fd, err) < 0)
                return -err->code;
        const char *path = arena_text(&remote_run->arena, "/files?path=%s&username=user",
                escaped(remote_run, arena_text(&remote_run->arena, HOME "/%s", file.name)));
        if (ask_sandbox(remote_run, ENVD_PORT, "POST", path, NULL, "application/octet-stream", err) < 0)
                return -err->code;
        if (file.content)
                buf_add(&remote_run->body, file.content, file.content_len);
        for (ssize_t n = 1; !file.content && n > 0;) {
                char bytes[64 * KIB];
                n = read(fd, bytes, sizeof bytes);
                if (n > 0 && !buf_add(&remote_run->body, bytes, (size_t)n))
                        return err_set(err, CSN_E_INPUT, 0, "the input file %s is too large to be sent", file.name);
        }
        return 0;
}

static int answered_upload(struct remote_run *remote_run, struct csn_error *err)
{
        (void)err;
        remote_run->at++;
        return 1;
}

static int begin_packages(struct remote_run *remote_run, struct csn_error *err)
{
        const struct run_request *request = remote_run->what->request;
        struct buf code;
        if (!request->packages_n)
                return 1;
        buf_init(&code, MIB);
        buf_printf(&code, "python3 -m pip install --quiet --disable-pip-version-check --");
        for (size_t i = 0; i < request->packages_n; i++) {
                const char *text = request->packages[i], *language = package_entry_language(&text);
                if (strchr(text, '\'') || text[0] == '-' || (language && strcmp(language, "python") != 0)) {
                        buf_done(&code);
                        return err_field(err, "/packages", "\"%.60s\" cannot be the name of a package of Python, and the "
                                "backend e2b installs no other packages", request->packages[i]);
                }
                buf_printf(&code, " '%s'", text);
        }
        buf_printf(&code, " 2>&1 || exit 1");
        int rc = ask_sandbox(remote_run, INTERPRETER_PORT, "POST", "/execute",
                json_pack("{s:s, s:s}", "language", "bash", "code", code.bytes), "application/json", err);
        buf_done(&code);
        return rc;
}

/* For each line of an answer: 0, or a negative code. */
static int each_line(const struct buf *answer, size_t *at,
        int (*take)(struct remote_run *remote_run, const json_t *line, struct csn_error *err),
        struct remote_run *remote_run, struct csn_error *err)
{
        for (const char *end; *at < answer->len && (end = memchr(answer->bytes + *at, '\n', answer->len - *at));) {
                json_t *line = json_loadb(answer->bytes + *at, (size_t)(end - answer->bytes) - *at, 0, NULL);
                *at = (size_t)(end - answer->bytes) + 1;
                int rc = take(remote_run, line, err);
                json_decref(line);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int take_packages(struct remote_run *remote_run, const json_t *line, struct csn_error *err)
{
        const char *type = json_string_value(json_object_get(line, "type")),
                   *text = json_string_value(json_object_get(line, "text"));
        if (text && type && strcmp(type, "stdout") == 0)
                far_ends_print(&remote_run->ends, 1, text, strlen(text));
        remote_run->failed = remote_run->failed || (type && strcmp(type, "error") == 0);
        (void)err;
        return 0;
}

static int answered_packages(struct remote_run *remote_run, struct csn_error *err)
{
        size_t at = 0;
        int rc = each_line(&remote_run->answer, &at, take_packages, remote_run, err);
        if (rc == 0 && remote_run->failed) {
                err_field(err, "/packages", "the packages could not be installed; what pip wrote is on standard error");
                err->code = CSN_E_SYSTEM;  /* not an error of the request itself */
                return -err->code;
        }
        return rc;
}

static int begin_list(struct remote_run *remote_run, struct csn_error *err)
{
        return ask_sandbox(remote_run, ENVD_PORT, "POST", "/filesystem.Filesystem/ListDir",
                json_pack("{s:s, s:i}", "path", HOME, "depth", LIST_DEPTH), "application/json", err);
}

/*
 * Files by their name below the home directory, each with its size and time of change.  The caller owns the reference.
 */
static json_t *files_of(const struct remote_run *remote_run)
{
        json_t *json = json_loadb(remote_run->answer.bytes ? remote_run->answer.bytes : "", remote_run->answer.len, 0,
                       NULL),
               *files = json_object(), *entry;
        size_t i;
        json_array_foreach(json_object_get(json, "entries"), i, entry) {
                const char *path = json_string_value(json_object_get(entry, "path")),
                           *type = json_string_value(json_object_get(entry, "type"));
                const json_t *size = json_object_get(entry, "size"), *moment = json_object_get(entry, "modifiedTime");
                const char *name =
                        path && strncmp(path, HOME "/", strlen(HOME "/")) == 0 ? path + strlen(HOME "/") : NULL;
                if (!name || !type || strcmp(type, "FILE_TYPE_FILE") != 0 ||
                        wire_name_check(name, strlen(name), NULL) < 0 || json_object_get(entry, "symlinkTarget"))
                        continue;
                json_object_set_new(files, name, json_pack("[O?, O?]", size, moment));
        }
        json_decref(json);
        return files;
}

static int answered_before(struct remote_run *remote_run, struct csn_error *err)
{
        (void)err;
        remote_run->before = files_of(remote_run);
        return 0;
}

static size_t on_lines(char *bytes, size_t size, size_t n, void *owner);

static void on_deadline(struct timer *timer);

static int begin_execute(struct remote_run *remote_run, struct csn_error *err)
{
        const struct run_request *request = remote_run->what->request;
        size_t len;
        const char *code = model_utf8(&remote_run->arena, request->code.bytes, request->code.len, &len);
        json_t *body = json_pack("{s:s%, s:s}", "code", code, len, "language", remote_run->what->language);
        if (ask_sandbox(remote_run, INTERPRETER_PORT, "POST", "/execute", body, "application/json", err) < 0)
                return -err->code;
        curl_easy_setopt(remote_run->fetch.easy, CURLOPT_WRITEFUNCTION, on_lines);
        say(remote_run, CHANNEL_HELLO, "{\"runner\":\"e2b\"}", strlen("{\"runner\":\"e2b\"}"));
        remote_run->began_us = clock_us();
        loop_timer(remote_run->link->loop, &remote_run->deadline, request->limits.wall_ms * 1000);
        return 0;
}

static void take_error(struct remote_run *remote_run, const json_t *line)
{
        const char *name = json_string_value(json_object_get(line, "name")),
                   *traceback = json_string_value(json_object_get(line, "traceback"));
        json_t *error = json_pack("{s:s, s:O?, s:[]}", "type", name ? name : "Error", "message",
                json_object_get(line, "value"), "traceback");
        while (traceback && *traceback) {
                size_t len = strcspn(traceback, "\n");
                json_array_append_new(json_object_get(error, "traceback"), json_stringn(traceback, len));
                traceback += len + (traceback[len] == '\n');
        }
        bool is_syntax = !remote_run->started && name &&
                (strcmp(name, "SyntaxError") == 0 || strcmp(name, "IndentationError") == 0);
        if (!is_syntax)
                say_started(remote_run);
        say_json(remote_run, is_syntax ? CHANNEL_SYNTAX : CHANNEL_ERROR, error);
        remote_run->failed = true;
        if (is_syntax)
                remote_run->started = true;       /* suppresses the later STARTED */
}

static void take_printed(struct remote_run *remote_run, int stream, const json_t *text)
{
        say_started(remote_run);
        if (json_is_string(text))
                far_ends_print(&remote_run->ends, stream, json_string_value(text), json_string_length(text));
}

static int take_line(struct remote_run *remote_run, const json_t *line, struct csn_error *err)
{
        const char *type = json_string_value(json_object_get(line, "type"));
        const json_t *text = json_object_get(line, "text");
        (void)err;
        if (!type || remote_run->ended_us) {
                return 0;
        } else if (strcmp(type, "stdout") == 0 || strcmp(type, "stderr") == 0) {
                take_printed(remote_run, strcmp(type, "stderr") == 0, text);
        } else if (strcmp(type, "error") == 0 && !remote_run->failed) {
                take_error(remote_run, line);
        } else if (strcmp(type, "result") == 0 && json_is_true(json_object_get(line, "is_main_result")) &&
                json_is_string(text) && !remote_run->failed) {
                say_started(remote_run);
                size_t len = min_u64(json_string_length(text), remote_run->what->request->limits.value_bytes);
                struct arena arena = { 0 };
                const char *clean = model_utf8(&arena, json_string_value(text), len, &len);
                say_json(remote_run, CHANNEL_VALUE, json_pack("{s:s, s:s%}", "type", "", "repr", clean, len));
                arena_done(&arena);
        } else if (strcmp(type, "end_of_execution") == 0) {
                if (!remote_run->failed)
                        say_started(remote_run);
                remote_run->ended_us = clock_us();
        }
        return 0;
}

/* Take whole lines of the stream; `answer` keeps an incomplete line. */
static size_t on_lines(char *bytes, size_t size, size_t n, void *owner)
{
        struct remote_run *remote_run = owner;
        struct csn_error err;
        long status = 0;
        size_t at = 0;
        curl_easy_getinfo(remote_run->fetch.easy, CURLINFO_RESPONSE_CODE, &status);
        if (!buf_add(&remote_run->answer, bytes, size * n))
                return 0;
        if (status != 200)
                return size * n;
        each_line(&remote_run->answer, &at, take_line, remote_run, &err);
        memmove(remote_run->answer.bytes, remote_run->answer.bytes + at, remote_run->answer.len - at);
        remote_run->answer.len -= at;
        return size * n;
}

static int answered_execute(struct remote_run *remote_run, struct csn_error *err)
{
        loop_untimer(remote_run->link->loop, &remote_run->deadline);
        if (!remote_run->ended_us)
                return err_set(err, CSN_E_SYSTEM, 0, "the execution broke off");
        if (!remote_run->failed)
                say(remote_run, CHANNEL_DONE, "", 0);
        return 0;
}

/* Fetch new and changed files; remove deleted files from the mirror. */
static int answered_after(struct remote_run *remote_run, struct csn_error *err)
{
        json_t *after = files_of(remote_run), *value;
        const char *name;
        (void)err;
        remote_run->wanted = json_array();
        json_object_foreach(after, name, value) {
                if (!json_equal(value, json_object_get(remote_run->before, name)))
                        json_array_append_new(remote_run->wanted, json_string(name));
        }
        json_object_foreach(remote_run->before, name, value) {
                if (!json_object_get(after, name))
                        unlinkat(remote_run->ends.home, name, 0);
        }
        json_decref(after);
        remote_run->room = remote_run->what->request->limits.disk_bytes;
        return 0;
}

static int begin_download(struct remote_run *remote_run, struct csn_error *err)
{
        const char *name = json_string_value(json_array_get(remote_run->wanted, remote_run->at));
        if (!name || remote_run->at >= remote_run->what->request->limits.disk_files)
                return 1;
        if (ask_sandbox(remote_run, ENVD_PORT, "GET",
                    arena_text(&remote_run->arena, "/files?path=%s&username=user",
                            escaped(remote_run, arena_text(&remote_run->arena, HOME "/%s", name))),
                    NULL, "application/octet-stream", err) < 0)
                return -err->code;
        buf_done(&remote_run->answer);
        buf_init(&remote_run->answer, min_u64(remote_run->room, SIZE_MAX));
        return 0;
}

static int answered_download(struct remote_run *remote_run, struct csn_error *err)
{
        const char *name = json_string_value(json_array_get(remote_run->wanted, remote_run->at++));
        const struct wire_file file = { .mode = 0644,
                .name = (char *)(uintptr_t)name,
                .content = remote_run->answer.bytes ? remote_run->answer.bytes : "",
                .content_len = remote_run->answer.len };
        remote_run->room -= remote_run->answer.len;
        unlinkat(remote_run->ends.home, name, 0);
        return backend_put_file(remote_run->ends.home, &file, -1, err) < 0 ? -err->code : 1;
}

static int begin_kill(struct remote_run *remote_run, struct csn_error *err)
{
        return remote_run->sandbox[0]
                ? ask_api(remote_run, "DELETE", arena_text(&remote_run->arena, "/sandboxes/%s", remote_run->sandbox),
                          NULL, err)
                : 1;
}

static int answered_kill(struct remote_run *remote_run, struct csn_error *err)
{
        (void)remote_run, (void)err;
        return 0;
}

static const struct step steps[] = {
        { "make a sandbox", begin_create, answered_create, ASK_MS, false },
        { "write a file", begin_upload, answered_upload, ASK_MS, false },
        { "install packages", begin_packages, answered_packages, PACKAGES_MS, false },
        { "list files", begin_list, answered_before, ASK_MS, false },
        { "execute", begin_execute, answered_execute, 0, false },
        { "list files", begin_list, answered_after, ASK_MS, false },
        { "fetch a file", begin_download, answered_download, ASK_MS, false },
        { "end the sandbox", begin_kill, answered_kill, KILL_MS, true },
};

#define STEP_CREATE 0
#define STEP_KILL (ARRAY_LEN(steps) - 1)

static void step_now(struct remote_run *remote_run)
{
        loop_timer(remote_run->link->loop, &remote_run->next_step, 0);
}

/* Skip to the kill of the sandbox. */
static void give_up(struct remote_run *remote_run, const struct csn_error *error)
{
        if (error && !remote_run->error.code)
                remote_run->error = *error;
        loop_untimer(remote_run->link->loop, &remote_run->deadline);
        remote_run->at = 0;
        remote_run->step = remote_run->step >= STEP_KILL ? STEP_KILL + 1 : STEP_KILL;
        step_now(remote_run);
}

static void fail(struct remote_run *remote_run, struct csn_error *err)
{
        err_wrap(err, "%s with the backend e2b", steps[remote_run->step].what);
        give_up(remote_run, err);
}

static int status_error(struct remote_run *remote_run, long status, struct csn_error *err)
{
        json_t *json =
                json_loadb(remote_run->answer.bytes ? remote_run->answer.bytes : "", remote_run->answer.len, 0, NULL);
        const char *text = json_string_value(json_object_get(json, "message"));
        int code = status == 429 || status == 503 ? CSN_E_BUSY
                : status == 401 || status == 403  ? CSN_E_CONFIG
                                                  : CSN_E_SYSTEM;
        err_set(err, code, 0, "the server answers %ld%s%.300s", status, text ? ": " : "", text ? text : "");
        json_decref(json);
        return -err->code;
}

static void on_fetched(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct remote_run *remote_run = fetch->owner;
        const struct step *step = &steps[remote_run->step];
        struct csn_error err;
        int rc = why                ? err_set(&err, CSN_E_SYSTEM, 0, "%s", why)
                : status / 100 == 2 ? step->answered(remote_run, &err)
                                    : status_error(remote_run, status, &err);
        (void)code;
        if (rc < 0 && !step->last) {
                fail(remote_run, &err);
                return;
        }
        if (rc <= 0) {
                remote_run->step++;
                remote_run->at = 0;
        }
        if (remote_run->reasons && remote_run->step < STEP_KILL)
                remote_run->step = STEP_KILL;
        step_now(remote_run);
}

static void on_step(struct timer *timer)
{
        struct remote_run *remote_run = timer->owner;
        struct csn_error err;
        if (remote_run->step >= ARRAY_LEN(steps)) {
                remote_run->over = true;
                finish_when_read(remote_run);
                return;
        }
        buf_done(&remote_run->answer);
        buf_init(&remote_run->answer, ANSWER_MAX);
        int rc = steps[remote_run->step].begin(remote_run, &err);
        if (rc < 0) {
                fail(remote_run, &err);
        } else if (rc > 0) {
                remote_run->step++;
                remote_run->at = 0;
                step_now(remote_run);
        } else {
                curl_easy_setopt(remote_run->fetch.easy, CURLOPT_HTTPHEADER, remote_run->headers);
                if (remote_run->body.len || (steps[remote_run->step].begin == begin_upload)) {
                        curl_easy_setopt(remote_run->fetch.easy, CURLOPT_POSTFIELDS,
                                remote_run->body.bytes ? remote_run->body.bytes : "");
                        curl_easy_setopt(remote_run->fetch.easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                (curl_off_t)remote_run->body.len);
                }
                remote_run->fetch.done = on_fetched;
                remote_run->fetch.owner = remote_run;
                fetch_start(&remote_run->fetch, steps[remote_run->step].ms);
        }
}

/* During the creation the id of the sandbox is unknown, so the kill comes after the answer. */
static void stop(struct remote_run *remote_run, uint64_t reason)
{
        remote_run->reasons |= reason;
        if (remote_run->step >= STEP_KILL || (remote_run->step == STEP_CREATE && remote_run->fetch.easy))
                return;
        fetch_close(&remote_run->fetch);
        give_up(remote_run, NULL);
}

static void on_deadline(struct timer *timer)
{
        stop(timer->owner, WIRE_WALL);
}

/* ---- functions of the backend ---- */

static int client_open(struct loop *loop, const struct backend_options *options, const struct backend_events *events,
        struct backend_link **ret, struct csn_error *err)
{
        const struct engine_settings *settings = &options->settings->engine;
        struct fetcher *fetcher;
        if (!settings->e2b_api_key[0])
                return err_set(err, CSN_E_CONFIG, 0, "the backend e2b needs engine.e2b_api_key");
        if (fetcher_open(loop, &fetcher, err) < 0)
                return -err->code;
        struct backend_link *link = mem_alloc(sizeof *link);
        *link = (struct backend_link){ .loop = loop, .events = events, .settings = settings, .fetcher = fetcher };
        *ret = link;
        return 0;
}

static void on_taken(void *owner)
{
        finish_when_read(owner);
}

static const struct far_ends_events far_ends_events = { .taken = on_taken };

static int client_prepare(struct backend_link *link, uint32_t id, void *owner, const struct wire_shape *shape,
        struct csn_error *err)
{
        struct backend_ends ends;
        const struct wire_boundary unknown = { 0 };
        struct remote_run *remote_run = mem_alloc(sizeof *remote_run);
        (void)shape;
        *remote_run = (struct remote_run){ .link = link,
                .id = id,
                .owner = owner,
                .deadline = { .fired = on_deadline, .owner = remote_run },
                .next_step = { .fired = on_step, .owner = remote_run } };
        if (far_ends_open(&remote_run->ends, link->loop, "e2b", &far_ends_events, remote_run, &ends, err) < 0) {
                free(remote_run);
                return -err->code;
        }
        remote_run->next = link->remote_runs;
        link->remote_runs = remote_run;
        link->events->ready(owner, &unknown, &ends);
        return 0;
}

static struct remote_run *find_job(struct backend_link *link, uint32_t id)
{
        struct remote_run *remote_run = link->remote_runs;
        while (remote_run && remote_run->id != id)
                remote_run = remote_run->next;
        return remote_run;
}

static int client_start(struct backend_link *link, uint32_t id, const struct backend_program *what,
        struct csn_error *err)
{
        struct remote_run *remote_run = find_job(link, id);
        if (!remote_run)
                return err_set(err, CSN_E_SYSTEM, 0, "a program for a run that is gone");
        remote_run->what = what;
        step_now(remote_run);
        return 0;
}

static void client_kill(struct backend_link *link, uint32_t id)
{
        struct remote_run *remote_run = find_job(link, id);
        if (remote_run)
                stop(remote_run, WIRE_KILLED);
}

/* Sandboxes at the server end at their time limit. */
static void client_close(struct backend_link *link)
{
        if (!link)
                return;
        for (struct remote_run *remote_run = link->remote_runs, *next; remote_run; remote_run = next) {
                next = remote_run->next;
                io_remove_tree(AT_FDCWD, remote_run->ends.folder);
                remote_run_free(remote_run);
        }
        fetcher_close(link->fetcher);
        free(link);
}

const struct backend backend_e2b = {
        .name = "e2b",
        .isolation = isolation_REMOTE,
        .open = client_open,
        .prepare = client_prepare,
        .start = client_start,
        .kill = client_kill,
        .close = client_close,
};
