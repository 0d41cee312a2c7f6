/* Contexts: live interpreters in sandboxes. */
#include "front/remote/remote.h"

#include "front/socket/client.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#define CODE_MAX MIB

int remote_create_context(struct remote *remote)
{
        const char *id = remote_sandbox(remote, remote->args[0]);
        if (!id)
                return remote->failed;
        return remote_make(remote, arena_text(&remote->arena, "/v1/sandboxes/%s/contexts", id),
                model_encode(&object_context_request, &remote->context));
}

/* ---- list ---- */

static int add_contexts(struct remote *remote, const char *sandbox, json_t *all)
{
        json_t *answer = NULL;
        int status = remote_ask_list(remote, arena_text(&remote->arena, "/v1/sandboxes/%s/contexts", sandbox),
                "contexts", &answer);
        json_array_extend(all, answer);
        json_decref(answer);
        return status;
}

static int add_all(struct remote *remote, json_t *all)
{
        json_t *answer = NULL, *one;
        size_t i;
        int status = remote_ask_list(remote, "/v1/sandboxes", "sandboxes", &answer);
        json_array_foreach(answer, i, one) {
                if (status == 0)
                        status = add_contexts(remote, remote_text(one, "id"), all);
        }
        json_decref(answer);
        return status;
}

int remote_list_contexts(struct remote *remote)
{
        const char *id = remote->args_n ? remote_sandbox(remote, remote->args[0]) : NULL;
        json_t *all, *one;
        struct buf buf;
        size_t i;
        if (remote->args_n && !id)
                return remote->failed;
        all = json_array();
        buf_init(&buf, 16 * MIB);
        int status = id ? add_contexts(remote, id, all) : add_all(remote, all);
        if (status == 0 && remote_option(remote, "json")) {
                cli_print_json(json_incref(all));
        } else if (status == 0) {
                buf_printf(&buf, "%-36s %-12s %-11s %-8s %10s %s\n", "ID", "SANDBOX", "LANGUAGE", "STATE", "EXECUTIONS",
                        "FOLDER");
                json_array_foreach(all, i, one) {
                        char sandbox[13];
                        snprintf(sandbox, sizeof sandbox, "%s", remote_text(one, "sandbox"));
                        cli_add_cell(&buf, 36, remote_text(one, "id"));
                        cli_add_cell(&buf, 12, sandbox);
                        cli_add_cell(&buf, 11, remote_text(one, "language"));
                        cli_add_cell(&buf, 8, remote_text(one, "state"));
                        buf_printf(&buf, "%10" JSON_INTEGER_FORMAT " ",
                                json_integer_value(json_object_get(one, "executions")));
                        cli_add_cell(&buf, 0, remote_text(one, "cwd"));
                        cli_end_line(&buf);
                }
                fputs(buf.bytes, stdout);
                if (!json_array_size(all))
                        cli_note("there is no context; caisson context create SANDBOX starts one");
        }
        buf_done(&buf);
        json_decref(all);
        return status;
}

int remote_change_context(struct remote *remote)
{
        return remote_change_each(remote, remote_context, "/v1/contexts/", "close");
}

/* ---- run ---- */

struct execution {
        struct remote *remote;
        const char *context;
        struct stream stream;
        CURLM *multi;
        struct cli_show show;
        char run[80];              /* its id */
        json_t *record;
        int signals_fd;
        int interrupts;
        bool over;
};

/* A notebook's display, as text. */
static void print_bundle(const struct execution *execution, json_t *data)
{
        const char *text = json_string_value(json_object_get(data, "text/plain")), *type;
        json_t *value;
        if (!execution->show.streaming)
                return;
        if (!text && json_object_size(data)) {
                json_object_foreach(data, type, value) {
                        char line[200];
                        int len = snprintf(line, sizeof line, "[%.80s, %zu bytes]\n", type, json_string_length(value));
                        remote_print(STDOUT_FILENO, execution->show.raw, line, (size_t)len);
                }
        } else if (text) {
                remote_print(STDOUT_FILENO, execution->show.raw, text, strlen(text));
                remote_print(STDOUT_FILENO, true, "\n", 1);
        }
}

static void on_event(void *owner, const char *type, json_t *event)
{
        struct execution *execution = owner;
        bool error = strcmp(type, "stderr") == 0;
        if (strcmp(type, "start") == 0)
                snprintf(execution->run, sizeof execution->run, "%s", remote_text(event, "id"));
        else if ((error || strcmp(type, "stdout") == 0) && execution->show.streaming)
                remote_print_event(error ? STDERR_FILENO : STDOUT_FILENO, execution->show.raw, event);
        else if (strcmp(type, "display") == 0)
                print_bundle(execution,
                        json_object_get(json_object_get(event, "data"), "data")
                                ? json_object_get(json_object_get(event, "data"), "data")
                                : json_object_get(event, "data"));
        else if (strcmp(type, "end") == 0)
                execution->record = json_incref(json_object_get(event, "record"));
}

/* The text of the value, as printed by an interpreter at a terminal. */
static void print_value(const struct execution *execution)
{
        json_t *result = json_object_get(execution->record, "result"), *data = json_object_get(result, "data"),
               *value = json_object_get(result, "value");
        if (!json_is_object(result))
                return;
        json_t *repr = json_object_get(result, "repr");
        json_t *shown = json_object_get(data, "text/plain") ? json_incref(data)
                        : json_is_string(repr)              ? json_pack("{s:O}", "text/plain", repr)
                                                            : NULL;
        if (!shown && value) {
                char *text = model_write(value, JSON_ENCODE_ANY | JSON_COMPACT);
                shown = json_pack("{s:s}", "text/plain", text ? text : "");
                free(text);
        }
        print_bundle(execution, shown);
        json_decref(shown);
}

static int take_code(struct remote *remote, struct run_request *request, struct csn_error *err)
{
        const char *code = remote_option(remote, "code"), *path = remote->args_n > 1 ? remote->args[1] : "-",
                   *timeout = remote_option(remote, "timeout");
        if (code && remote->args_n > 1)
                return err_field(err, "/code", "context run: give a file or -c CODE, and not both");
        if (code)
                SET(request, run_request, code,
                        ((struct bytes){ arena_text(&remote->arena, "%s", code), strlen(code) }));
        else if (remote->args_n < 2 && isatty(STDIN_FILENO))
                return err_field(err, "/code",
                        "context run: there is no program; give a file, -c CODE, or - for standard input");
        else if (cli_read_whole(path, CODE_MAX, "/code", &remote->arena, &request->code, err) < 0)
                return -err->code;
        MARK(request, run_request, code);
        if (!timeout)
                return 0;
        MARK(request, run_request, limits);
        return model_set_text(&object_limits, model_field(&object_limits, "wall_ms"), &request->limits, timeout,
                "--timeout", &remote->arena, err);
}

/* The first signal interrupts the execution, and the context lives on; the second is for us. */
static void on_signals(struct execution *execution)
{
        struct remote *remote = execution->remote;
        struct signalfd_siginfo info;
        struct csn_error err;
        while (read(execution->signals_fd, &info, sizeof info) == (ssize_t)sizeof info) {
                if (execution->interrupts++ > 0)
                        exit(128 + (int)info.ssi_signo);
                if (link_ask(&remote->link, "POST",
                            arena_text(&remote->arena, "/v1/contexts/%s/interrupt", execution->context), NULL, NULL,
                            &err) < 0)
                        fprintf(stderr, "caisson: %s\n", err.text);
        }
}

static int watch_signals(struct execution *execution, struct csn_error *err)
{
        signal(SIGPIPE, SIG_IGN);
        execution->signals_fd = io_signals(io_ends, IO_ENDS, err);
        return execution->signals_fd < 0 ? -err->code : 0;
}

static int wait_for_it(struct execution *execution)
{
        int rc = 0, running, left;
        while (!execution->over) {
                struct curl_waitfd more = { .fd = execution->signals_fd, .events = CURL_WAIT_POLLIN };
                curl_multi_perform(execution->multi, &running);
                for (CURLMsg *message; (message = curl_multi_info_read(execution->multi, &left));)
                        if (message->msg == CURLMSG_DONE) {
                                execution->over = true;
                                rc = stream_end(&execution->stream, message->data.result);
                        }
                if (!execution->over) {
                        curl_multi_poll(execution->multi, &more, 1, 1000, NULL);
                        on_signals(execution);
                }
        }
        return rc;
}

static int show_record(struct execution *execution, struct csn_error *err)
{
        struct remote *remote = execution->remote;
        struct run_result result;
        /* A long record is not in the stream. */
        if (json_is_null(execution->record)) {
                const char *path =
                        arena_text(&remote->arena, "/v1/runs/%s", link_escape(execution->run, &remote->arena));
                if (link_ask(&remote->link, "GET", path, NULL, &execution->record, err) < 0)
                        return -err->code;
        }
        if (front_read_record(execution->record, &remote->arena, &result, err) < 0)
                return -err->code;
        print_value(execution);
        show_result(&execution->show, &result, execution->record);
        return 0;
}

static int execute(struct execution *execution, struct csn_error *err)
{
        struct remote *remote = execution->remote;
        struct run_request request = { 0 };
        if (take_code(remote, &request, err) < 0 || watch_signals(execution, err) < 0)
                return -err->code;
        execution->multi = curl_multi_init();
        struct buf text;
        buf_init(&text, 4 * CODE_MAX);
        front_write_request(&request, &text);
        stream_begin(&execution->stream, &remote->link, "POST",
                arena_text(&remote->arena, "/v1/contexts/%s/runs", execution->context),
                model_read(text.bytes, text.len, JSON_ALLOW_NUL, NULL));
        buf_done(&text);
        curl_multi_add_handle(execution->multi, execution->stream.easy);
        int rc = wait_for_it(execution);
        *err = execution->stream.error;
        if (rc == 0 && !execution->record)
                rc = err_set(err, CSN_E_SYSTEM, 0, "the daemon broke off");
        if (rc == 0)
                rc = show_record(execution, err);
        curl_multi_remove_handle(execution->multi, execution->stream.easy);
        stream_close(&execution->stream);
        curl_multi_cleanup(execution->multi);
        return rc;
}

int remote_run_context(struct remote *remote)
{
        struct execution execution = {
                .remote = remote, .signals_fd = -1, .stream = { .event = on_event, .owner = &execution }
        };
        struct csn_error err;
        execution.context = remote_context(remote, remote->args[0]);
        if (!execution.context)
                return remote->failed;
        execution.show.json = remote_option(remote, "json");
        execution.show.raw = remote_option(remote, "raw");
        execution.show.quiet = remote_option(remote, "quiet");
        show_prepare(&execution.show);
        int status = execute(&execution, &err) < 0 ? remote_fail(&err) : execution.show.exit_status;
        json_decref(execution.record);
        fd_close(&execution.signals_fd);
        return status;
}
