/*
 * The other direction: the backend `e2b`, by which runs of ours go to a sandbox of any server that speaks E2B's words.
 *
 * A run is a list of requests, one after the other: a sandbox is made, files are written, packages installed, files listed; then
 * comes the execution, whose lines become what a runner of ours would say; files that are new or changed are fetched; and
 * whatever happened the sandbox is killed.  It also ends by itself, a little after the run's own time.
 *
 * What comes from there is as hostile as what comes from a sandbox of ours: it has ceilings, names are checked, and nothing waits
 * longer than its time.
 */
#include "backend/e2b.h"

#include "net/http_client.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ENVD_PORT 49983
#define INTERPRETER_PORT 49999
#define HOME "/home/user"
#define LIFE_MORE_MS 15000                 /* that a sandbox lives beyond the run's own time */
#define ASK_MS 60000L                      /* one request */
#define KILL_MS 5000L
#define PACKAGES_MS 300000L
#define ANSWER_MAX (64 * MIB)
#define PRINTED_MAX (64 * MIB)             /* that the engine has not taken */
#define LIST_DEPTH 16

struct job;

/* One of the requests: begin() sends it and is called again with the next thing to do; answered() takes the answer. */
struct step {
        const char *what;
        int (*begin)(struct job *job, struct csn_error *err);      /* 1: there is nothing to do */
        int (*answered)(struct job *job, struct csn_error *err);   /* 1: once more */
        long ms;
        bool last;                         /* it is done whatever happened */
};

struct output {
        struct watch watch;                /* our end of a pipe, while it is full */
        struct buf text;
        size_t at;
};

struct job {
        struct job *next;
        struct backend_link *link;
        uint32_t id;
        void *owner;
        const struct backend_program *what;
        struct fetch fetch;
        struct curl_slist *headers;
        struct buf body, answer;
        struct arena arena;
        size_t step, at;                   /* of the steps, and of what a step does again and again */
        bool over;
        char sandbox[80], *token, *domain;
        char folder[64];
        int home;
        struct watch channel_watch;
        struct outbox said;
        struct output printed[2];
        json_t *before, *wanted;           /* files by path; those to fetch */
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
        struct job *jobs;
};

/* ---- what the engine reads ---- */

static void flush_output(struct job *job, struct output *output)
{
        while (output->at < output->text.len) {
                ssize_t n = write(output->watch.fd, output->text.bytes + output->at, output->text.len - output->at);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN && !output->watch.active)
                        loop_watch(job->link->loop, &output->watch, output->watch.fd, EPOLLOUT, NULL);
                if (n < 0 && errno == EAGAIN)
                        return;
                output->at += n < 0 ? output->text.len - output->at : (size_t)n;
        }
        output->at = output->text.len = 0;
        loop_unwatch(job->link->loop, &output->watch);
}

static void finish_when_read(struct job *job);

static void on_room(struct watch *watch, uint32_t events)
{
        struct job *job = watch->owner;
        (void)events;
        flush_output(job, watch == &job->printed[0].watch ? &job->printed[0] : &job->printed[1]);
        finish_when_read(job);
}

static void on_channel(struct watch *watch, uint32_t events)
{
        struct job *job = watch->owner;
        /* The engine says nothing there: it has closed its end. */
        if (events & ~(uint32_t)EPOLLOUT || outbox_flush(&job->said) < 0) {
                outbox_done(&job->said);
                loop_unwatch(job->link->loop, watch);
        }
        finish_when_read(job);
}

static void say(struct job *job, int type, const char *text, size_t len)
{
        size_t at = 0;
        do {
                uint8_t frame[CHANNEL_FRAME_MAX] = { 'C', 'S', 'N', '1', (uint8_t)type };
                size_t piece = min_u64(len - at, CHANNEL_FRAME_MAX - CHANNEL_HEADER);
                frame[5] = at + piece < len ? CHANNEL_MORE : 0;
                for (int i = 0; i < 4; i++)
                        frame[8 + i] = (uint8_t)(piece >> 8 * i);
                memcpy(frame + CHANNEL_HEADER, text + at, piece);
                if (outbox_put(&job->said, frame, CHANNEL_HEADER + piece, NULL, 0) < 0)
                        return;            /* the engine has closed it */
                at += piece;
        } while (at < len);
}

static void say_json(struct job *job, int type, json_t *json)
{
        char *text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        if (text)
                say(job, type, text, strlen(text));
        free(text);
}

static void say_started(struct job *job)
{
        if (!job->started)
                say(job, CHANNEL_STARTED, "", 0);
        job->started = true;
}

/* ---- its end ---- */

static void job_free(struct job *job)
{
        struct loop *loop = job->link->loop;
        for (struct job **at = &job->link->jobs; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        break;
                }
        fetch_close(&job->fetch);
        curl_slist_free_all(job->headers);
        buf_done(&job->body);
        buf_done(&job->answer);
        outbox_done(&job->said);
        loop_unwatch(loop, &job->channel_watch);
        fd_close(&job->channel_watch.fd);
        for (int i = 0; i < 2; i++) {
                loop_unwatch(loop, &job->printed[i].watch);
                fd_close(&job->printed[i].watch.fd);
                buf_done(&job->printed[i].text);
        }
        loop_untimer(loop, &job->deadline);
        loop_untimer(loop, &job->next_step);
        json_decref(job->before);
        json_decref(job->wanted);
        fd_close(&job->home);
        arena_done(&job->arena);
        free(job);
}

/* What was said and printed has to be in the pipes, for at the end the engine reads what is there. */
static void finish_when_read(struct job *job)
{
        if (!job->over || job->printed[0].text.len || job->printed[1].text.len || job->said.n)
                return;
        const struct backend_events *news = job->link->events;
        void *owner = job->owner;
        bool well = !job->error.code || job->reasons;
        struct csn_error error = job->error;
        struct wire_exit how = { .reasons = job->reasons, .has_status = job->ended_us && !job->reasons, .status = job->failed ? 1U << 8 : 0 };
        char folder[sizeof job->folder];
        snprintf(folder, sizeof folder, "%s", job->folder);
        if (job->began_us)
                how.wall_us = (job->ended_us ? job->ended_us : clock_us()) - job->began_us;
        job_free(job);
        if (well)
                news->exited(owner, &how);
        else
                news->refused(owner, &error);
        io_remove_tree(AT_FDCWD, folder);
}

/* ---- a request ---- */

static size_t on_answer(char *bytes, size_t size, size_t n, void *owner)
{
        struct job *job = owner;
        return buf_add(&job->answer, bytes, size * n) ? size * n : 0;
}

static void add_header(struct job *job, const char *name, const char *value)
{
        job->headers = curl_slist_append(job->headers, arena_text(&job->arena, "%s: %s", name, value));
}

static const char *domain_of(const struct job *job)
{
        return job->domain ? job->domain : job->link->settings->e2b_domain;
}

/* Prepare one: method, where, and a body of JSON, whose reference this takes, or NULL. */
static int ask(struct job *job, const char *method, const char *url, json_t *body, struct csn_error *err)
{
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
        json_decref(body);
        buf_done(&job->body);
        buf_init(&job->body, 256 * MIB);
        if (text)
                buf_add(&job->body, text, strlen(text));
        free(text);
        fetch_close(&job->fetch);
        curl_slist_free_all(job->headers);
        job->headers = NULL;
        if (fetch_open(&job->fetch, job->link->fetcher, url, "engine.e2b_api_url or engine.e2b_sandbox_url", "engine.e2b_api_key", err) < 0)
                return -err->code;
        curl_easy_setopt(job->fetch.easy, CURLOPT_CUSTOMREQUEST, method);
        curl_easy_setopt(job->fetch.easy, CURLOPT_WRITEFUNCTION, on_answer);
        curl_easy_setopt(job->fetch.easy, CURLOPT_WRITEDATA, job);
        add_header(job, "Expect", "");
        return 0;
}

static int ask_api(struct job *job, const char *method, const char *path, json_t *body, struct csn_error *err)
{
        const struct engine_settings *settings = job->link->settings;
        size_t len = strlen(settings->e2b_api_url);
        while (len && settings->e2b_api_url[len - 1] == '/')
                len--;
        const char *base = len ? arena_text(&job->arena, "%.*s", (int)len, settings->e2b_api_url) : arena_text(&job->arena, "https://api.%s", settings->e2b_domain);
        if (ask(job, method, arena_text(&job->arena, "%s%s", base, path), body, err) < 0)
                return -err->code;
        add_header(job, "X-API-KEY", settings->e2b_api_key);
        add_header(job, "Content-Type", "application/json");
        return 0;
}

static int ask_sandbox(struct job *job, unsigned port, const char *method, const char *path, json_t *body, const char *type, struct csn_error *err)
{
        const struct engine_settings *settings = job->link->settings;
        const char *base = settings->e2b_sandbox_url[0] ? settings->e2b_sandbox_url
                                                        : arena_text(&job->arena, "https://%u-%s.%s", port, job->sandbox, domain_of(job));
        if (ask(job, method, arena_text(&job->arena, "%s%s", base, path), body, err) < 0)
                return -err->code;
        add_header(job, "E2b-Sandbox-Id", job->sandbox);
        add_header(job, "E2b-Sandbox-Port", arena_text(&job->arena, "%u", port));
        add_header(job, "Content-Type", type);
        add_header(job, "Authorization", "Basic dXNlcjo=");   /* "user:" */
        if (job->token)
                add_header(job, "X-Access-Token", job->token);
        return 0;
}

static char *escaped(struct job *job, const char *text)
{
        char *with = curl_easy_escape(NULL, text, (int)strlen(text));
        char *copy = arena_text(&job->arena, "%s", with ? with : "");
        curl_free(with);
        return copy;
}

/* ---- the steps ---- */

static int begin_create(struct job *job, struct csn_error *err)
{
        const struct run_request *request = job->what->request;
        json_t *env = json_object(), *labels = json_object();
        for (size_t i = 0; i < request->env_n; i++)
                json_object_set_new(env, request->env[i].name, json_string(request->env[i].value));
        for (size_t i = 0; i < request->labels_n; i++)
                json_object_set_new(labels, request->labels[i].name, json_string(request->labels[i].value));
        uint64_t life_s = (request->limits.wall_ms + LIFE_MORE_MS + 999) / 1000;
        return ask_api(job, "POST", "/sandboxes",
                       json_pack("{s:s, s:I, s:b, s:o, s:o, s:b}", "templateID", job->link->settings->e2b_template, "timeout", (json_int_t)life_s, "secure",
                                 1, "envVars", env, "metadata", labels, "allow_internet_access", request->network != network_NONE), err);
}

/* What is in a text of theirs that becomes part of a URL. */
static bool is_plain(const char *text, const char *more)
{
        for (; text && *text; text++)
                if (!(*text >= 'a' && *text <= 'z') && !(*text >= 'A' && *text <= 'Z') && !(*text >= '0' && *text <= '9') && !strchr(more, *text))
                        return false;
        return text != NULL;
}

static int answered_create(struct job *job, struct csn_error *err)
{
        json_t *json = json_loadb(job->answer.bytes ? job->answer.bytes : "", job->answer.len, 0, NULL);
        const char *id = json_string_value(json_object_get(json, "sandboxID")), *token = json_string_value(json_object_get(json, "envdAccessToken")),
                   *domain = json_string_value(json_object_get(json, "domain"));
        int rc = is_plain(id, "-_") && *id && strlen(id) < sizeof job->sandbox && (!token || is_plain(token, "-_.")) && (!domain || is_plain(domain, "-.:"))
                         ? 0
                         : err_set(err, CSN_E_PROTOCOL, 0, "the answer is no sandbox");
        if (rc == 0) {
                snprintf(job->sandbox, sizeof job->sandbox, "%s", id);
                job->token = token ? arena_text(&job->arena, "%s", token) : NULL;
                job->domain = domain ? arena_text(&job->arena, "%s", domain) : NULL;
        }
        json_decref(json);
        return rc;
}

/* The first of the files is the program, which is executed and not written. */
static int begin_upload(struct job *job, struct csn_error *err)
{
        struct wire_file file;
        int source = -1;
        size_t i = job->at + 1;
        if (i >= job->what->files_n)
                return 1;
        if (job->what->file(job->what->owner, i, &file, &source, err) < 0)
                return -err->code;
        auto_fd fd = source;
        if (backend_put_file(job->home, &file, fd, err) < 0)
                return -err->code;
        const char *path = arena_text(&job->arena, "/files?path=%s&username=user", escaped(job, arena_text(&job->arena, HOME "/%s", file.name)));
        if (ask_sandbox(job, ENVD_PORT, "POST", path, NULL, "application/octet-stream", err) < 0)
                return -err->code;
        if (file.content)
                buf_add(&job->body, file.content, file.content_len);
        for (ssize_t n = 1; !file.content && n > 0;) {
                char bytes[64 * KIB];
                n = read(fd, bytes, sizeof bytes);
                if (n > 0 && !buf_add(&job->body, bytes, (size_t)n))
                        return err_set(err, CSN_E_INPUT, 0, "the input file %s is too large to be sent", file.name);
        }
        return 0;
}

static int answered_upload(struct job *job, struct csn_error *err)
{
        (void)err;
        job->at++;
        return 1;
}

static int begin_packages(struct job *job, struct csn_error *err)
{
        const struct run_request *request = job->what->request;
        struct buf code;
        if (!request->packages_n)
                return 1;
        buf_init(&code, MIB);
        buf_printf(&code, "python3 -m pip install --quiet --disable-pip-version-check --");
        for (size_t i = 0; i < request->packages_n; i++)
                buf_printf(&code, " '%s'", request->packages[i]);
        buf_printf(&code, " 2>&1 || exit 1");
        for (size_t i = 0; i < request->packages_n; i++)
                if (strchr(request->packages[i], '\'') || request->packages[i][0] == '-') {
                        buf_done(&code);
                        return err_field(err, "/packages", "\"%.60s\" cannot be the name of a package", request->packages[i]);
                }
        int rc = ask_sandbox(job, INTERPRETER_PORT, "POST", "/execute", json_pack("{s:s, s:s}", "language", "bash", "code", code.bytes), "application/json", err);
        buf_done(&code);
        return rc;
}

/* For each line of an answer: 0, or a negative code. */
static int each_line(const struct buf *answer, size_t *at, int (*take)(struct job *job, const json_t *line, struct csn_error *err), struct job *job,
                     struct csn_error *err)
{
        for (const char *end; *at < answer->len && (end = memchr(answer->bytes + *at, '\n', answer->len - *at));) {
                json_t *line = json_loadb(answer->bytes + *at, (size_t)(end - answer->bytes) - *at, 0, NULL);
                *at = (size_t)(end - answer->bytes) + 1;
                int rc = take(job, line, err);
                json_decref(line);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int take_packages(struct job *job, const json_t *line, struct csn_error *err)
{
        const char *type = json_string_value(json_object_get(line, "type")), *text = json_string_value(json_object_get(line, "text"));
        struct output *output = &job->printed[1];
        if (text && type && strcmp(type, "stdout") == 0 && output->text.len < PRINTED_MAX / 2) {
                buf_add(&output->text, text, strlen(text));
                flush_output(job, output);
        }
        job->failed = job->failed || (type && strcmp(type, "error") == 0);
        (void)err;
        return 0;
}

static int answered_packages(struct job *job, struct csn_error *err)
{
        size_t at = 0;
        int rc = each_line(&job->answer, &at, take_packages, job, err);
        if (rc == 0 && job->failed) {
                err_field(err, "/packages", "the packages could not be installed; what pip wrote is on standard error");
                err->code = CSN_E_SYSTEM;  /* the request is none that is wrong in itself */
                return -err->code;
        }
        return rc;
}

static int begin_list(struct job *job, struct csn_error *err)
{
        return ask_sandbox(job, ENVD_PORT, "POST", "/filesystem.Filesystem/ListDir", json_pack("{s:s, s:i}", "path", HOME, "depth", LIST_DEPTH), "application/json",
                           err);
}

/* Files below the home by their name there, with what changes when they do.  The caller's reference. */
static json_t *files_of(const struct job *job)
{
        json_t *json = json_loadb(job->answer.bytes ? job->answer.bytes : "", job->answer.len, 0, NULL), *files = json_object(), *entry;
        size_t i;
        json_array_foreach(json_object_get(json, "entries"), i, entry) {
                const char *path = json_string_value(json_object_get(entry, "path")), *type = json_string_value(json_object_get(entry, "type"));
                const json_t *size = json_object_get(entry, "size"), *moment = json_object_get(entry, "modifiedTime");
                const char *name = path && strncmp(path, HOME "/", strlen(HOME "/")) == 0 ? path + strlen(HOME "/") : NULL;
                if (!name || !type || strcmp(type, "FILE_TYPE_FILE") != 0 || wire_name_check(name, strlen(name), NULL) < 0 || json_object_get(entry, "symlinkTarget"))
                        continue;
                json_object_set_new(files, name, json_pack("[O?, O?]", size, moment));
        }
        json_decref(json);
        return files;
}

static int answered_before(struct job *job, struct csn_error *err)
{
        (void)err;
        job->before = files_of(job);
        return 0;
}

static size_t on_lines(char *bytes, size_t size, size_t n, void *owner);

static void on_deadline(struct timer *timer);

static int begin_execute(struct job *job, struct csn_error *err)
{
        const struct run_request *request = job->what->request;
        size_t len;
        const char *code = model_utf8(&job->arena, request->code.bytes, request->code.len, &len);
        json_t *body = json_pack("{s:s%, s:s}", "code", code, len, "language", job->what->language);
        if (ask_sandbox(job, INTERPRETER_PORT, "POST", "/execute", body, "application/json", err) < 0)
                return -err->code;
        curl_easy_setopt(job->fetch.easy, CURLOPT_WRITEFUNCTION, on_lines);
        say(job, CHANNEL_HELLO, "{\"runner\":\"e2b\"}", strlen("{\"runner\":\"e2b\"}"));
        job->began_us = clock_us();
        loop_timer(job->link->loop, &job->deadline, request->limits.wall_ms * 1000);
        return 0;
}

static void take_error(struct job *job, const json_t *line)
{
        const char *name = json_string_value(json_object_get(line, "name")), *traceback = json_string_value(json_object_get(line, "traceback"));
        json_t *error = json_pack("{s:s, s:O?, s:[]}", "type", name ? name : "Error", "message", json_object_get(line, "value"), "traceback");
        while (traceback && *traceback) {
                size_t len = strcspn(traceback, "\n");
                json_array_append_new(json_object_get(error, "traceback"), json_stringn(traceback, len));
                traceback += len + (traceback[len] == '\n');
        }
        bool is_syntax = !job->started && name && (strcmp(name, "SyntaxError") == 0 || strcmp(name, "IndentationError") == 0);
        if (!is_syntax)
                say_started(job);
        say_json(job, is_syntax ? CHANNEL_SYNTAX : CHANNEL_ERROR, error);
        job->failed = true;
        if (is_syntax)
                job->started = true;       /* nothing follows that is told */
}

static void take_printed(struct job *job, int stream, const json_t *text)
{
        struct output *output = &job->printed[stream];
        say_started(job);
        if (json_is_string(text))
                buf_add(&output->text, json_string_value(text), json_string_length(text));
        flush_output(job, output);
}

static int take_line(struct job *job, const json_t *line, struct csn_error *err)
{
        const char *type = json_string_value(json_object_get(line, "type"));
        const json_t *text = json_object_get(line, "text");
        (void)err;
        if (!type || job->ended_us) {
                return 0;
        } else if (strcmp(type, "stdout") == 0 || strcmp(type, "stderr") == 0) {
                take_printed(job, strcmp(type, "stderr") == 0, text);
        } else if (strcmp(type, "error") == 0 && !job->failed) {
                take_error(job, line);
        } else if (strcmp(type, "result") == 0 && json_is_true(json_object_get(line, "is_main_result")) && json_is_string(text) && !job->failed) {
                say_started(job);
                size_t len = min_u64(json_string_length(text), job->what->request->limits.value_bytes);
                struct arena arena = { 0 };
                const char *clean = model_utf8(&arena, json_string_value(text), len, &len);
                say_json(job, CHANNEL_VALUE, json_pack("{s:s, s:s%}", "type", "", "repr", clean, len));
                arena_done(&arena);
        } else if (strcmp(type, "end_of_execution") == 0) {
                if (!job->failed)
                        say_started(job);
                job->ended_us = clock_us();
        }
        return 0;
}

/* Lines as they come; what is no whole line waits. */
static size_t on_lines(char *bytes, size_t size, size_t n, void *owner)
{
        struct job *job = owner;
        struct csn_error err;
        long status = 0;
        size_t at = 0;
        curl_easy_getinfo(job->fetch.easy, CURLINFO_RESPONSE_CODE, &status);
        if (!buf_add(&job->answer, bytes, size * n))
                return 0;
        if (status != 200)
                return size * n;
        each_line(&job->answer, &at, take_line, job, &err);
        memmove(job->answer.bytes, job->answer.bytes + at, job->answer.len - at);
        job->answer.len -= at;
        return size * n;
}

static int answered_execute(struct job *job, struct csn_error *err)
{
        loop_untimer(job->link->loop, &job->deadline);
        if (!job->ended_us)
                return err_set(err, CSN_E_SYSTEM, 0, "the execution broke off");
        if (!job->failed)
                say(job, CHANNEL_DONE, "", 0);
        return 0;
}

/* What is new or has changed is wanted; what is there no more goes here as well. */
static int answered_after(struct job *job, struct csn_error *err)
{
        json_t *after = files_of(job), *value;
        const char *name;
        (void)err;
        job->wanted = json_array();
        json_object_foreach(after, name, value) {
                if (!json_equal(value, json_object_get(job->before, name)))
                        json_array_append_new(job->wanted, json_string(name));
        }
        json_object_foreach(job->before, name, value) {
                if (!json_object_get(after, name))
                        unlinkat(job->home, name, 0);
        }
        json_decref(after);
        job->room = job->what->request->limits.disk_bytes;
        return 0;
}

static int begin_download(struct job *job, struct csn_error *err)
{
        const char *name = json_string_value(json_array_get(job->wanted, job->at));
        if (!name || job->at >= job->what->request->limits.disk_files)
                return 1;
        if (ask_sandbox(job, ENVD_PORT, "GET",
                        arena_text(&job->arena, "/files?path=%s&username=user", escaped(job, arena_text(&job->arena, HOME "/%s", name))), NULL,
                        "application/octet-stream", err) < 0)
                return -err->code;
        buf_done(&job->answer);
        buf_init(&job->answer, min_u64(job->room, SIZE_MAX));
        return 0;
}

static int answered_download(struct job *job, struct csn_error *err)
{
        const char *name = json_string_value(json_array_get(job->wanted, job->at++));
        const struct wire_file file = { .mode = 0644, .name = (char *)(uintptr_t)name, .content = job->answer.bytes ? job->answer.bytes : "",
                                        .content_len = job->answer.len };
        job->room -= job->answer.len;
        unlinkat(job->home, name, 0);
        return backend_put_file(job->home, &file, -1, err) < 0 ? -err->code : 1;
}

static int begin_kill(struct job *job, struct csn_error *err)
{
        return job->sandbox[0] ? ask_api(job, "DELETE", arena_text(&job->arena, "/sandboxes/%s", job->sandbox), NULL, err) : 1;
}

static int answered_kill(struct job *job, struct csn_error *err)
{
        (void)job, (void)err;
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

static void step_now(struct job *job)
{
        loop_timer(job->link->loop, &job->next_step, 0);
}

/* What is left is to end the sandbox. */
static void give_up(struct job *job, const struct csn_error *error)
{
        if (error && !job->error.code)
                job->error = *error;
        loop_untimer(job->link->loop, &job->deadline);
        job->at = 0;
        job->step = job->step >= STEP_KILL ? STEP_KILL + 1 : STEP_KILL;
        step_now(job);
}

static void fail(struct job *job, struct csn_error *err)
{
        err_wrap(err, "%s with the backend e2b", steps[job->step].what);
        give_up(job, err);
}

static int status_error(struct job *job, long status, struct csn_error *err)
{
        json_t *json = json_loadb(job->answer.bytes ? job->answer.bytes : "", job->answer.len, 0, NULL);
        const char *text = json_string_value(json_object_get(json, "message"));
        int code = status == 429 || status == 503 ? CSN_E_BUSY : status == 401 || status == 403 ? CSN_E_CONFIG : CSN_E_SYSTEM;
        err_set(err, code, 0, "the server answers %ld%s%.300s", status, text ? ": " : "", text ? text : "");
        json_decref(json);
        return -err->code;
}

static void on_fetched(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct job *job = fetch->owner;
        const struct step *step = &steps[job->step];
        struct csn_error err;
        int rc = why ? err_set(&err, CSN_E_SYSTEM, 0, "%s", why) : status / 100 == 2 ? step->answered(job, &err) : status_error(job, status, &err);
        (void)code;
        if (rc < 0 && !step->last) {
                fail(job, &err);
                return;
        }
        if (rc <= 0) {
                job->step++;
                job->at = 0;
        }
        if (job->reasons && job->step < STEP_KILL)
                job->step = STEP_KILL;
        step_now(job);
}

static void on_step(struct timer *timer)
{
        struct job *job = timer->owner;
        struct csn_error err;
        if (job->step >= ARRAY_LEN(steps)) {
                job->over = true;
                finish_when_read(job);
                return;
        }
        buf_done(&job->answer);
        buf_init(&job->answer, ANSWER_MAX);
        int rc = steps[job->step].begin(job, &err);
        if (rc < 0) {
                fail(job, &err);
        } else if (rc > 0) {
                job->step++;
                job->at = 0;
                step_now(job);
        } else {
                curl_easy_setopt(job->fetch.easy, CURLOPT_HTTPHEADER, job->headers);
                if (job->body.len || (steps[job->step].begin == begin_upload)) {
                        curl_easy_setopt(job->fetch.easy, CURLOPT_POSTFIELDS, job->body.bytes ? job->body.bytes : "");
                        curl_easy_setopt(job->fetch.easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)job->body.len);
                }
                job->fetch.done = on_fetched;
                job->fetch.owner = job;
                fetch_start(&job->fetch, steps[job->step].ms);
        }
}

/* A sandbox that is being made has to be known before it can be ended. */
static void stop(struct job *job, uint64_t reason)
{
        job->reasons |= reason;
        if (job->step >= STEP_KILL || (job->step == STEP_CREATE && job->fetch.easy))
                return;
        fetch_close(&job->fetch);
        give_up(job, NULL);
}

static void on_deadline(struct timer *timer)
{
        stop(timer->owner, WIRE_WALL);
}

/* ---- what the engine asks ---- */

static int client_open(struct loop *loop, const struct backend_options *options, const struct backend_events *events, struct backend_link **ret,
                       struct csn_error *err)
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

static int make_ends(struct job *job, struct backend_ends *ret, struct csn_error *err)
{
        int pair[2], channel[2];
        for (int i = 0; i < 2; i++) {
                if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "pipe");
                *(i == 0 ? &ret->out : &ret->error) = pair[0];
                job->printed[i].watch.fd = pair[1];
        }
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, channel) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        ret->channel = channel[0];
        job->channel_watch.fd = channel[1];
        snprintf(job->folder, sizeof job->folder, "/var/tmp/caisson-e2b-XXXXXX");
        if (!mkdtemp(job->folder)) {
                job->folder[0] = 0;
                return err_set(err, CSN_E_SYSTEM, errno, "make a folder for the run in /var/tmp");
        }
        job->home = open(job->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ret->home = job->home < 0 ? -1 : fcntl(job->home, F_DUPFD_CLOEXEC, 0);
        if (ret->home < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the run's folder");
        return loop_watch(job->link->loop, &job->channel_watch, job->channel_watch.fd, EPOLLIN, err);
}

static int client_prepare(struct backend_link *link, uint32_t id, void *owner, const struct wire_shape *shape, struct csn_error *err)
{
        struct backend_ends ends = { -1, -1, -1, -1, -1, -1 };
        const struct wire_boundary unknown = { 0 };
        struct job *job = mem_alloc(sizeof *job);
        (void)shape;
        *job = (struct job){ .next = link->jobs, .link = link, .id = id, .owner = owner, .home = -1,
                             .channel_watch = { .fd = -1, .ready = on_channel, .owner = job }, .deadline = { .fired = on_deadline, .owner = job },
                             .next_step = { .fired = on_step, .owner = job }, .said = { .loop = link->loop, .watch = &job->channel_watch } };
        for (int i = 0; i < 2; i++) {
                job->printed[i].watch = (struct watch){ .fd = -1, .ready = on_room, .owner = job };
                buf_init(&job->printed[i].text, PRINTED_MAX);
        }
        link->jobs = job;
        if (make_ends(job, &ends, err) < 0) {
                fd_close(&ends.home);
                fd_close(&ends.out);
                fd_close(&ends.error);
                fd_close(&ends.channel);
                if (job->folder[0])
                        io_remove_tree(AT_FDCWD, job->folder);
                job_free(job);
                return -err->code;
        }
        link->events->ready(owner, &unknown, &ends);
        return 0;
}

static struct job *find_job(struct backend_link *link, uint32_t id)
{
        struct job *job = link->jobs;
        while (job && job->id != id)
                job = job->next;
        return job;
}

static int client_start(struct backend_link *link, uint32_t id, const struct backend_program *what, struct csn_error *err)
{
        struct job *job = find_job(link, id);
        if (!job)
                return err_set(err, CSN_E_SYSTEM, 0, "a program for a run that is gone");
        job->what = what;
        step_now(job);
        return 0;
}

static void client_kill(struct backend_link *link, uint32_t id)
{
        struct job *job = find_job(link, id);
        if (job)
                stop(job, WIRE_KILLED);
}

/* Their sandboxes end by themselves. */
static void client_close(struct backend_link *link)
{
        if (!link)
                return;
        for (struct job *job = link->jobs, *next; job; job = next) {
                next = job->next;
                io_remove_tree(AT_FDCWD, job->folder);
                job_free(job);
        }
        fetcher_close(link->fetcher);
        free(link);
}

const struct backend backend_e2b = {
        .name = "e2b", .open = client_open, .prepare = client_prepare, .start = client_start, .kill = client_kill, .close = client_close,
};
