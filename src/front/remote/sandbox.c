/* Sandboxes: made, listed, paused, ended; and the output of their programs. */
#include "front/remote/remote.h"

#include <inttypes.h>
#include <time.h>

int remote_create(struct remote *remote)
{
        return remote_make(remote, "/v1/sandboxes", model_encode(&object_sandbox_request, &remote->sandbox));
}

/* ---- list ---- */

/* "2026-11-21T10:00:00.000Z" as the time until then. */
static void print_left(const char *moment, char *text, size_t size)
{
        struct tm tm = { 0 };
        snprintf(text, size, "-");
        if (!strptime(moment, "%Y-%m-%dT%H:%M:%S", &tm))
                return;
        int64_t left = (int64_t)timegm(&tm) - time_now_ms() / 1000;
        left = left > 0 ? left : 0;
        if (left >= 3600)
                snprintf(text, size, "%" PRId64 "h%02" PRId64 "min", left / 3600, left / 60 % 60);
        else
                snprintf(text, size, "%" PRId64 "min%02" PRId64 "s", left / 60, left % 60);
}

static void add_sandbox(struct buf *buf, json_t *one)
{
        char left[40], contexts[24];
        const char *name;
        json_t *value;
        print_left(remote_text(one, "expires_at"), left, sizeof left);
        snprintf(contexts, sizeof contexts, "%" JSON_INTEGER_FORMAT,
                json_integer_value(json_object_get(one, "contexts")));
        cli_add_cell(buf, 36, remote_text(one, "id"));
        cli_add_cell(buf, 8, remote_text(one, "state"));
        cli_add_cell(buf, 11, remote_text(one, "profile"));
        cli_add_cell(buf, 9, left);
        cli_add_cell(buf, 8, contexts);
        json_object_foreach(json_object_get(one, "labels"), name, value) {
                struct arena arena = { 0 };
                cli_add_cell(buf, 0, arena_text(&arena, "%s=%s", name, json_string_value(value)));
                arena_done(&arena);
        }
        cli_end_line(buf);
}

int remote_list(struct remote *remote)
{
        json_t *answer = NULL, *one;
        struct buf buf;
        size_t i;
        int status = remote_ask_list(remote, "/v1/sandboxes", "sandboxes", &answer);
        buf_init(&buf, 16 * MIB);
        if (status == 0 && remote_option(remote, "json")) {
                cli_print_json(json_incref(answer));
        } else if (status == 0) {
                buf_printf(&buf, "%-36s %-8s %-11s %-9s %-8s %s\n", "ID", "STATE", "PROFILE", "ENDS IN", "CONTEXTS",
                        "LABELS");
                json_array_foreach(answer, i, one) {
                        add_sandbox(&buf, one);
                }
                fputs(buf.bytes, stdout);
                if (!json_array_size(answer))
                        cli_note("there is no sandbox; caisson sandbox create makes one");
        }
        buf_done(&buf);
        json_decref(answer);
        return status;
}

/* ---- pause, resume, kill ---- */

int remote_change_each(struct remote *remote, remote_finds *find, const char *path, const char *end)
{
        const char *name = remote->part->name;
        bool ends = strcmp(name, end) == 0;
        int status = 0;
        for (size_t i = 0; i < remote->args_n; i++) {
                const char *id = find(remote, remote->args[i]);
                int one = remote->failed;
                if (id)
                        one = remote_ask(remote, ends ? "DELETE" : "POST",
                                arena_text(&remote->arena, "%s%s%s%s", path, id, ends ? "" : "/", ends ? "" : name),
                                NULL, NULL);
                status = status ? status : one;
        }
        return status;
}

int remote_change(struct remote *remote)
{
        return remote_change_each(remote, remote_sandbox, "/v1/sandboxes/", "kill");
}

/* ---- logs ---- */

static void print_log(void *owner, const char *type, json_t *event)
{
        const struct remote *remote = owner;
        bool raw = remote_option(remote, "raw"), error = strcmp(type, "stderr") == 0;
        if (strcmp(type, "lost") == 0)
                fprintf(stderr,
                        "caisson: the first %" JSON_INTEGER_FORMAT " pieces of the output are not kept any more\n",
                        json_integer_value(json_object_get(event, "events")));
        else if ((error || strcmp(type, "stdout") == 0) &&
                !remote_print_event(error ? STDERR_FILENO : STDOUT_FILENO, raw, event))
                exit(0);                   /* "caisson sandbox logs ... | head" */
}

static int show_log(struct remote *remote, const char *id, const char *number, bool follow)
{
        struct stream stream = { .event = print_log, .owner = remote };
        const char *path = arena_text(&remote->arena, "/v1/sandboxes/%s/processes/%s/events%s", id,
                link_escape(number, &remote->arena), follow ? "" : "?follow=false");
        stream_begin(&stream, &remote->link, "GET", path, NULL);
        int rc = stream_end(&stream, curl_easy_perform(stream.easy));
        struct csn_error err = stream.error;
        stream_close(&stream);
        return rc < 0 ? remote_fail(&err) : 0;
}

int remote_logs(struct remote *remote)
{
        const char *id = remote_sandbox(remote, remote->args[0]);
        bool follow = remote_option(remote, "follow");
        json_t *answer = NULL;
        if (!id)
                return remote->failed;
        if (remote->args_n > 1)
                return show_log(remote, id, remote->args[1], follow);
        int status = remote_ask_list(remote, arena_text(&remote->arena, "/v1/sandboxes/%s/processes", id), "processes",
                &answer);
        json_t *list = answer;
        size_t n = json_array_size(list);  /* the newest is the first */
        for (size_t i = follow && n ? 1 : n; status == 0 && i > 0; i--) {
                json_t *one = json_array_get(list, i - 1);
                const char *number = arena_text(&remote->arena, "%" JSON_INTEGER_FORMAT,
                        json_integer_value(json_object_get(one, "id")));
                if (!follow && n > 1) {
                        const char *title = arena_text(&remote->arena, "%s==> %s: %.200s <==\n", i < n ? "\n" : "",
                                number, remote_text(one, "command"));
                        remote_print(STDOUT_FILENO, false, title, strlen(title));
                }
                status = show_log(remote, id, number, follow);
        }
        json_decref(answer);
        return status;
}
