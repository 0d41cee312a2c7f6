/*
 * caisson sandbox exec and shell.
 *
 * Three requests, each on a connection of its own: the program's events, for its whole life; our standard input, a
 * request for each piece; and its signals and the size of its terminal.  A piece is read after the last was taken, so a
 * program not reading holds up the writer of our input, as a pipe would.
 */
#include "front/remote/remote.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#define STEP_MS 1000
#define LEAVE_STEP_MS 50
#define LEAVE_MS 3000                  /* for the program to get the signal which ends us */
#define HANGUP_MS 1000                 /* for a program at a terminal to end after SIGHUP */
#define PIECE (128 * KIB)
#define TERMINAL_MAX 1000          /* rows, columns: process_size of fields.def */

/* One request at a time, over a connection. */
struct sender {
        CURL *easy;
        char *path, *body;
        bool busy;
};

struct exec {
        struct remote *remote;
        CURLM *multi;
        struct stream events;
        struct sender input, control;
        const char *sandbox;
        char process[120];         /* its path; "": not started yet */
        bool terminal, interactive, raw, our_terminal;
        bool input_over, output_over, over, broken;
        bool resized, kill;        /* to be told */
        bool killed;               /* the kill after a hang-up was requested */
        int signal;                /* the same; 0: none */
        int leaves;                /* the signal to end us, after the program's own signal */
        int interrupts;
        int status;
        int signals_fd;
        char piece[PIECE];
};

/* ---- events ---- */

static void take_end(struct exec *exec, json_t *record)
{
        json_t *error = json_object_get(record, "error"), *number = json_object_get(record, "signal");
        bool timed_out = json_is_true(json_object_get(record, "timed_out"));
        exec->over = true;
        if (error) {
                terminal_restore();
                fprintf(stderr, "caisson: %s\n", remote_text(error, "message"));
                exec->status = !exec->process[0] && strcmp(remote_text(error, "code"), csn_code_name(CSN_E_INPUT)) == 0
                        ? 127
                        : 125;
        } else if (timed_out) {
                exec->status = 124;
        } else {
                exec->status = number ? 128 + (int)json_integer_value(number)
                                      : (int)json_integer_value(json_object_get(record, "exit_code"));
        }
}

static void on_event(void *owner, const char *type, json_t *event)
{
        struct exec *exec = owner;
        bool error = strcmp(type, "stderr") == 0;
        if (strcmp(type, "start") == 0) {
                snprintf(exec->process, sizeof exec->process, "/v1/sandboxes/%s/processes/%" JSON_INTEGER_FORMAT,
                        exec->sandbox, json_integer_value(json_object_get(event, "id")));
        } else if (error || strcmp(type, "stdout") == 0) {
                if (exec->output_over || remote_print_event(error ? STDERR_FILENO : STDOUT_FILENO, exec->raw, event))
                        return;
                exec->output_over = exec->kill = true;   /* the reader has gone */
        } else if (strcmp(type, "end") == 0) {
                take_end(exec, json_object_get(event, "record"));
        }
}

/* ---- requests ---- */

static size_t throw_away(char *bytes, size_t size, size_t n, void *owner)
{
        (void)bytes, (void)owner;
        return size * n;
}

/* The body stays the caller's, and has to last until the request is done. */
static void send_request(struct exec *exec, struct sender *sender, const char *method, const char *what,
        const char *body, size_t len)
{
        char path[200];
        snprintf(path, sizeof path, "%s%s", exec->process, what);
        if (sender->easy)
                curl_easy_cleanup(sender->easy);   /* the connection is the multi handle's, and stays */
        sender->easy = link_request(&exec->remote->link, method, path);
        curl_easy_setopt(sender->easy, CURLOPT_WRITEFUNCTION, throw_away);
        if (strcmp(method, "POST") == 0) {
                curl_easy_setopt(sender->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
                curl_easy_setopt(sender->easy, CURLOPT_POSTFIELDS, body);
        }
        sender->busy = curl_multi_add_handle(exec->multi, sender->easy) == CURLM_OK;
}

static void send_json(struct exec *exec, const char *what, json_t *json)
{
        free(exec->control.body);
        exec->control.body = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        send_request(exec, &exec->control, "POST", what, exec->control.body, strlen(exec->control.body));
}

/* Send a due kill, signal or size to the program, in this order. */
static void tell(struct exec *exec)
{
        unsigned rows, columns;
        if (!exec->process[0] || exec->control.busy || exec->over)
                return;
        if (exec->kill) {
                exec->kill = false;
                send_request(exec, &exec->control, "DELETE", "", NULL, 0);
        } else if (exec->signal) {
                const char *name = sigabbrev_np(exec->signal);
                exec->signal = 0;
                send_json(exec, "/signal", json_pack("{s:s}", "signal", name));
        } else if (exec->resized && terminal_size(&rows, &columns)) {
                exec->resized = false;
                send_json(exec, "/size",
                        json_pack("{s:i, s:i}", "rows", (int)min_u64(rows, TERMINAL_MAX), "columns",
                                (int)min_u64(columns, TERMINAL_MAX)));
        }
}

static void read_input(struct exec *exec)
{
        ssize_t n = read(STDIN_FILENO, exec->piece, sizeof exec->piece);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return;
        exec->input_over = n <= 0;
        send_request(exec, &exec->input, "POST", n > 0 ? "/stdin" : "/stdin?end=true", exec->piece,
                n > 0 ? (size_t)n : 0);
}

/* ---- signals ---- */

/* Stop as a program at a terminal does: with the terminal restored, until we are continued. */
static void stop_here(struct exec *exec)
{
        bool was_raw = exec->our_terminal;
        terminal_restore();
        raise(SIGSTOP);
        if (was_raw)
                terminal_raw();
        exec->resized = exec->terminal;
}

/* The program gets our signals.  A second signal ends the program; at a terminal already the first does. */
static void on_signal(struct exec *exec, int number)
{
        if (number == SIGWINCH) {
                exec->resized = exec->terminal;
        } else if (number == SIGTSTP) {
                stop_here(exec);
        } else if (exec->terminal || exec->interrupts++ > 0) {
                exec->signal = exec->terminal ? SIGHUP : 0;
                exec->kill = !exec->terminal;
                exec->leaves = number;
        } else {
                exec->signal = number;
        }
}

static void read_signals(struct exec *exec)
{
        struct signalfd_siginfo info;
        while (read(exec->signals_fd, &info, sizeof info) == (ssize_t)sizeof info)
                on_signal(exec, (int)info.ssi_signo);
}

static int watch_signals(struct exec *exec, struct csn_error *err)
{
        /* The last signal is only for a terminal. */
        static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGUSR1, SIGUSR2, SIGTSTP };
        signal(SIGPIPE, SIG_IGN);
        exec->signals_fd = io_signals(numbers, ARRAY_LEN(numbers) - !exec->terminal, err);
        return exec->signals_fd < 0 ? -err->code : 0;
}

/* ---- the loop ---- */

static void take_done(struct exec *exec, CURL *easy, CURLcode code)
{
        struct sender *const senders[] = { &exec->input, &exec->control };
        long status = 0;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_multi_remove_handle(exec->multi, easy);
        for (size_t i = 0; i < ARRAY_LEN(senders); i++)
                if (senders[i]->easy == easy)
                        senders[i]->busy = false;
        /* The program reads no more, and has ended or is about to.  Its events have the reason. */
        if (easy == exec->input.easy && (code != CURLE_OK || status >= 300))
                exec->input_over = true;
        if (easy != exec->events.easy)
                return;
        exec->broken = !exec->over;
        if (stream_end(&exec->events, code) == 0 && exec->broken)
                err_set(&exec->events.error, CSN_E_SYSTEM, 0, "the daemon broke off");
        exec->over = true;
}

static void step(struct exec *exec)
{
        struct curl_waitfd more[2] = { { .fd = exec->signals_fd, .events = CURL_WAIT_POLLIN },
                { .fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN } };
        int running, left;
        curl_multi_perform(exec->multi, &running);
        for (CURLMsg *message; (message = curl_multi_info_read(exec->multi, &left));)
                if (message->msg == CURLMSG_DONE)
                        take_done(exec, message->easy_handle, message->data.result);
        tell(exec);
        if (exec->over)
                return;
        bool reads = exec->interactive && exec->process[0] && !exec->input_over && !exec->input.busy;
        curl_multi_poll(exec->multi, more, reads ? 2 : 1, exec->leaves ? LEAVE_STEP_MS : STEP_MS, NULL);
        if (more[0].revents)
                read_signals(exec);
        /* poll(2) itself: libcurl does not tell of POLLHUP alone, which is the end of a pipe. */
        struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
        if (reads && poll(&input, 1, 0) > 0)
                read_input(exec);
}

/*
 * Before our end a signal reaches the program, if started.  A program at a terminal has HANGUP_MS to end and is killed
 * then: Bash loses a SIGHUP during the appearance of its prompt.
 */
static bool is_leaving(struct exec *exec, uint64_t *deadline_ms)
{
        if (!exec->leaves || !exec->process[0])
                return exec->leaves;
        if (!*deadline_ms)
                *deadline_ms = clock_ms() + LEAVE_MS;
        bool told = !exec->kill && !exec->signal && !exec->control.busy;
        if (exec->terminal && told && !exec->killed) {
                exec->kill = exec->killed = clock_ms() + LEAVE_MS >= *deadline_ms + HANGUP_MS;
                return false;
        }
        return told || clock_ms() > *deadline_ms;
}

static void done(struct exec *exec)
{
        struct sender *const senders[] = { &exec->input, &exec->control };
        for (size_t i = 0; i < ARRAY_LEN(senders); i++) {
                if (senders[i]->busy)
                        curl_multi_remove_handle(exec->multi, senders[i]->easy);
                curl_easy_cleanup(senders[i]->easy);
                free(senders[i]->body);
        }
        if (exec->events.easy)
                curl_multi_remove_handle(exec->multi, exec->events.easy);
        stream_close(&exec->events);
        curl_multi_cleanup(exec->multi);
        fd_close(&exec->signals_fd);
}

/* ---- the request ---- */

static void add_environment(struct process_request *request, const char *name, const char *value, struct arena *arena)
{
        for (size_t i = 0; i < request->env_n; i++)
                if (strcmp(request->env[i].name, name) == 0)
                        return;
        struct pair *more = arena_alloc(arena, (request->env_n + 1) * sizeof *more);
        if (request->env_n)
                memcpy(more, request->env, request->env_n * sizeof *more);
        more[request->env_n++] = (struct pair){ arena_text(arena, "%s", name), arena_text(arena, "%s", value) };
        request->env = more;
        MARK(request, process_request, env);
}

static int make_request(struct exec *exec, struct csn_error *err)
{
        struct remote *remote = exec->remote;
        struct process_request *request = &remote->process;
        const char *term = getenv("TERM");
        unsigned rows, columns;
        for (size_t i = 0; i < remote->program_n; i++) {
                if (!utf8_valid(remote->program[i], strlen(remote->program[i])))
                        return err_field(err, "/args", "argument %zu of the program is not valid UTF-8", i);
                cli_add_text(&request->args, &request->args_n, remote->program[i], &remote->arena);
        }
        MARK(request, process_request, args);
        SET(request, process_request, stdin, exec->interactive);
        SET(request, process_request, terminal, exec->terminal);
        if (exec->terminal && terminal_size(&rows, &columns)) {
                SET(request, process_request, rows, min_u64(rows, TERMINAL_MAX));
                SET(request, process_request, columns, min_u64(columns, TERMINAL_MAX));
        }
        if (exec->terminal && term && term[0] && utf8_valid(term, strlen(term)))
                add_environment(request, "TERM", term, &remote->arena);
        return 0;
}

static int serve(struct exec *exec, struct csn_error *err)
{
        struct remote *remote = exec->remote;
        uint64_t deadline_ms = 0;
        exec->multi = curl_multi_init();
        stream_begin(&exec->events, &remote->link, "POST",
                arena_text(&remote->arena, "/v1/sandboxes/%s/processes", exec->sandbox),
                model_encode(&object_process_request, &remote->process));
        curl_multi_add_handle(exec->multi, exec->events.easy);
        if (exec->terminal && exec->interactive)
                exec->our_terminal = terminal_raw();
        while (!exec->over && !is_leaving(exec, &deadline_ms))
                step(exec);
        terminal_restore();
        if (exec->leaves) {
                exec->status = 128 + exec->leaves;
                return 0;
        }
        *err = exec->events.error;
        return exec->broken ? -err->code : 0;
}

int remote_exec(struct remote *remote)
{
        static char bash[] = "/bin/bash", *shell[] = { bash };
        bool is_shell = strcmp(remote->part->name, "shell") == 0;
        struct exec *exec = mem_alloc(sizeof *exec);
        struct csn_error err = { 0 };
        *exec = (struct exec){ .remote = remote, .signals_fd = -1, .events = { .event = on_event, .owner = exec } };
        exec->terminal = is_shell || remote_option(remote, "tty");
        exec->interactive = is_shell || remote_option(remote, "interactive");
        exec->raw = exec->terminal || remote_option(remote, "raw");
        if (is_shell && !remote->program_n) {
                remote->program = shell;
                remote->program_n = 1;
        }
        int status = remote->program_n ? 0 : remote_usage(remote, "there is no command to run");
        if (status == 0 && !(exec->sandbox = remote_sandbox(remote, remote->args[0])))
                status = remote->failed;
        if (status == 0) {
                int rc = make_request(exec, &err);
                if (rc == 0)
                        rc = watch_signals(exec, &err);
                if (rc == 0)
                        rc = serve(exec, &err);
                status = rc < 0 ? remote_fail(&err) : exec->status;
        }
        done(exec);
        free(exec);
        return status;
}
