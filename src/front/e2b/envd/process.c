/*
 * process.Process: programs.  A program belongs to the sandbox and not to the request that started the program:
 * listeners may come and go.  A program ends by itself, by a signal or by its time-out.  Output without a listener is
 * lost.
 */
#include "front/e2b/envd/process.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define KEPT_US (30 * 1000000ULL)          /* time for late listeners to fetch the end of a program */
#define KEPT_MAX 200                       /* ended programs kept */
#define TAG_MAX 256                        /* bytes */
#define KILL_PATIENCE_US 20000000          /* wait for the end of a killed program before the kill is answered */

/* ---- end ---- */

static void process_free(struct envd_process *process)
{
        for (struct envd_process **at = &process->envd->processes; *at; at = &(*at)->next)
                if (*at == process) {
                        *at = process->next;
                        break;
                }
        while (process->listeners)
                envd_listener_free(process->listeners);
        while (process->inputs)
                envd_waiting_take(&process->inputs);
        while (process->killers)
                envd_waiting_take(&process->killers);
        loop_untimer(process->loop, &process->deadline);
        loop_untimer(process->loop, &process->expiry);
        guest_call_close(&process->call);
        json_decref(process->config);
        free(process->tag);
        free(process);
}

uint64_t e2b_envd_started_us(const struct e2b_envd *envd)
{
        uint64_t last_us = 0;
        for (const struct envd_process *process = envd ? envd->processes : NULL; process; process = process->next)
                if (!process->over)
                        last_us = max_u64(last_us, process->started_us);
        return last_us;
}

void envd_free_processes(struct e2b_envd *envd)
{
        while (envd->processes)
                process_free(envd->processes);
}

/* Applies to programs without a listener, too. */
static void on_program_deadline(struct timer *timer)
{
        struct envd_process *process = timer->owner;
        process->timed_out = true;
        guest_call_signal(&process->call, SIGKILL, 0);
}

static void on_expiry(struct timer *timer)
{
        process_free(timer->owner);
}

static void fail_gone(struct http_request *request)
{
        rpc_fail(request, false, RPC_NOT_FOUND, "the process has ended");
}

/* Free the oldest ended program beyond KEPT_MAX. */
static void keep_bound(const struct e2b_envd *envd)
{
        struct envd_process *oldest = NULL;
        size_t n = 0;
        for (struct envd_process *process = envd->processes; process; process = process->next)
                if (process->over) {
                        oldest = process;
                        n++;
                }
        if (n > KEPT_MAX)
                process_free(oldest);
}

/* The sandbox is ending or has ended: streams are cut without an end event, as a sign to their clients. */
static void cut(struct envd_process *process)
{
        while (process->listeners) {
                struct http_request *request = process->listeners->request;
                bool begun = process->pid;
                envd_listener_free(process->listeners);
                begun ? http_cut(request) : e2b_not_found(request);
        }
        envd_waiting_answer(&process->inputs, e2b_not_found);
        envd_waiting_answer(&process->killers, envd_answer_empty);
        process_free(process);
}

/* The program never started. */
static void start_failed(struct envd_process *process, const struct csn_error *error)
{
        const char *cwd = rpc_string(process->config, "cwd");
        struct http_request *request = process->listeners ? process->listeners->request : NULL;
        if (request) {
                envd_listener_free(process->listeners);
                if (strcmp(error->field, "/cwd") == 0)
                        rpc_fail(request, true, RPC_INVALID_ARGUMENT, "cwd '%.300s' %s", cwd,
                                error->sys == ENOTDIR          ? "is not a directory"
                                        : error->sys == ENOENT ? "does not exist"
                                                               : "cannot be entered");
                else
                        rpc_fail(request, true,
                                error->code == CSN_E_BUSY ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT,
                                "error starting process: %s", error->text);
        }
        process_free(process);
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct envd_process *process = call->owner;
        if (error && !call->refused) {
                cut(process);
                return;
        }
        if (error && !process->pid) {
                start_failed(process, error);
                return;
        }
        process->over = true;
        loop_untimer(process->loop, &process->deadline);
        for (struct envd_listener *listener = process->listeners, *next; listener; listener = next) {
                next = listener->next;
                envd_listener_end(listener);
        }
        envd_waiting_answer(&process->inputs, fail_gone);
        envd_waiting_answer(&process->killers, envd_answer_empty);
        loop_timer(process->loop, &process->expiry, KEPT_US);
        keep_bound(process->envd);
}

/* ---- packets of the guest ---- */

static void log_start(const struct envd_process *process)
{
        const json_t *args = json_object_get(process->config, "args");
        const char *last = json_string_value(json_array_get(args, json_array_size(args) - 1)),
                   *command = json_string_value(json_object_get(process->config, "cmd"));
        e2b_log(process->envd->sandbox, "info", "process %llu started: %s%s%s", (unsigned long long)process->pid,
                command ? command : "", last ? " ... " : "", last ? last : "");
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct envd_process *process = call->owner;
        struct csn_error err;
        uint64_t number;
        (void)fds;
        switch (kind) {
        case GUEST_STARTED:
                if (process->pid || guest_get_number(bytes, len, &number, &err) < 0 || number == 0 ||
                        number > INT32_MAX)
                        break;             /* a hostile guest may send GUEST_STARTED twice */
                process->pid = number;
                process->started_us = clock_us();
                log_start(process);
                if (process->listeners)
                        envd_listener_greet(process->listeners);
                break;
        case GUEST_OUT:
        case GUEST_ERROR:
                if (process->pid && len > 1)
                        envd_tell_output(process, kind, bytes + 1, len - 1);
                break;
        case GUEST_ROOM:
                if (guest_get_number(bytes, len, &number, &err) < 0)
                        break;
                process->in_flight -= min_u64(number, process->in_flight);
                envd_send_input(call);
                break;
        case GUEST_EXITED:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        process->status = (int)(number & 0xffff);
                e2b_log(process->envd->sandbox, process->status ? "warn" : "info", "process %llu ended with %s %d",
                        (unsigned long long)process->pid, WIFEXITED(process->status) ? "status" : "signal",
                        WIFEXITED(process->status) ? WEXITSTATUS(process->status) : WTERMSIG(process->status));
                break;
        default:
                break;
        }
}

/* ---- starting ---- */

#define TERMINAL_MEMBERS \
        { .name = "pty", .kind = E2B_OBJECT }, \
        { .name = "pty.size", .kind = E2B_OBJECT }, \
        { .name = "pty.size.rows", .kind = E2B_NUMBER, .most = UINT16_MAX }, \
        { .name = "pty.size.cols", .kind = E2B_NUMBER, .most = UINT16_MAX }

static json_t *object_of(const json_t *json, const char *name)
{
        json_t *member = json_object_get(json, name);
        return json_is_object(member) ? member : NULL;
}

/* argv of a ProcessConfig; NULL: malformed. */
static char **read_args(const json_t *config, struct arena *arena, size_t *ret_n)
{
        const json_t *args = json_object_get(config, "args");
        const char *command = rpc_string(config, "cmd");
        size_t n = json_array_size(args);
        char **argv = arena_alloc(arena, (n + 2) * sizeof *argv);
        if (!command || !command[0] || n + 1 > WIRE_ARGS_MAX)
                return NULL;
        argv[0] = arena_text(arena, "%s", command);
        for (size_t i = 0; i < n; i++) {
                const char *arg = json_string_value(json_array_get(args, i));
                if (!arg)
                        return NULL;
                argv[i + 1] = arena_text(arena, "%s", arg);
        }
        *ret_n = n + 1;
        return argv;
}

static struct pair *read_envs(json_t *config, struct arena *arena, size_t *ret_n)
{
        json_t *envs = object_of(config, "envs"), *value;
        struct pair *pairs = arena_alloc(arena, (json_object_size(envs) + 1) * sizeof *pairs);
        const char *name;
        size_t n = 0;
        json_object_foreach(envs, name, value) {
                pairs[n++] = (struct pair){ arena_text(arena, "%s", name),
                        arena_text(arena, "%s", json_string_value(value)) };
        }
        *ret_n = n;
        return pairs;
}

/* The check of guest_call_program(), made before the copies. */
static int check_length(json_t *config, struct csn_error *err)
{
        json_t *args = json_object_get(config, "args"), *envs = object_of(config, "envs"), *value;
        size_t bytes = json_string_length(json_object_get(config, "cmd")), i;
        const char *name;
        json_array_foreach(args, i, value) {
                bytes += json_string_length(value);
        }
        json_object_foreach(envs, name, value) {
                bytes += strlen(name) + json_string_length(value);
        }
        if (bytes <= WIRE_MAX && json_object_size(envs) <= WIRE_ARGS_MAX)
                return 0;
        return err_field(err, "process",
                "command, environment and names are together longer than %d KiB, or more than %d variables",
                WIRE_MAX / 1024, WIRE_ARGS_MAX);
}

static uint64_t read_flags(const struct envd_process *process, int account)
{
        return (process->terminal ? GUEST_TERMINAL : 0) | (process->input && !process->terminal ? GUEST_INPUT : 0) |
               (account == account_ROOT ? GUEST_AS_ROOT : 0);
}

/*
 * The configuration for later lists: the program as started, without unknown members of the request.  The caller's
 * reference.
 */
static json_t *config_of(const struct guest_process *program, const struct pair *envs, size_t envs_n)
{
        json_t *args = json_array(), *names = json_object();
        for (size_t i = 1; i < program->argv_n; i++)
                json_array_append_new(args, json_string(program->argv[i]));
        for (size_t i = 0; i < envs_n; i++)
                json_object_set_new(names, envs[i].name, json_string(envs[i].value));
        return json_pack("{s:s, s:o, s:o, s:s}", "cmd", program->argv[0], "args", args, "envs", names, "cwd",
                program->folder);
}

static int start(struct envd_process *process, const json_t *message, const struct envd_target *target,
        struct csn_error *err)
{
        static const struct guest_call_events events = { on_packet, envd_send_input, on_ended };
        const json_t *size = object_of(object_of(message, "pty"), "size");
        json_t *given = object_of(message, "process");
        const char *cwd = rpc_string(given, "cwd");
        char folder[GUEST_PATH_MAX];
        struct arena arena = { 0 };
        if (check_length(given, err) < 0)
                return -err->code;
        struct guest_process program = { .flags = read_flags(process, target->account),
                .rows = min_u64(rpc_number(size, "rows", 24), UINT16_MAX),
                .columns = min_u64(rpc_number(size, "cols", 80), UINT16_MAX),
                .folder = folder };
        size_t envs_n = 0;
        const struct pair *envs = read_envs(given, &arena, &envs_n);
        int rc = spell_path(cwd ? cwd : "", target->account, target->folder, folder, err);
        program.argv = read_args(given, &arena, &program.argv_n);
        if (rc == 0 && !program.argv)
                rc = err_field(err, "process",
                        "process needs cmd, the name of a program, and args, a list of at most %d texts",
                        WIRE_ARGS_MAX - 1);
        if (rc == 0 && process->tag && strlen(process->tag) > TAG_MAX)
                rc = err_field(err, "tag", "tag has %zu bytes, %d are possible", strlen(process->tag), TAG_MAX);
        if (rc == 0) {
                program.env =
                        psandbox_env(target->sandbox->psandbox, target->account, envs, envs_n, &arena, &program.env_n);
                process->config = config_of(&program, envs, envs_n);
                process->call = (struct guest_call){ .events = &events, .owner = process };
                rc = guest_call_program(target->sandbox->psandbox, &process->call, &program, err);
        }
        arena_done(&arena);
        return rc;
}

void envd_start(struct http_request *request)
{
        static const struct e2b_member members[] = { { .name = "process", .kind = E2B_OBJECT },
                { .name = "process.cmd", .kind = E2B_TEXT }, { .name = "process.args", .kind = E2B_TEXTS },
                { .name = "process.envs", .kind = E2B_VARIABLES }, { .name = "process.cwd", .kind = E2B_TEXT },
                TERMINAL_MEMBERS, { .name = "tag", .kind = E2B_TEXT }, { .name = "stdin", .kind = E2B_BOOL }, { 0 } };
        struct envd_target target;
        struct http_limit limit;
        struct csn_error err;
        json_t *message = envd_target(request, true, &target) ? rpc_body(request, true, members) : NULL;
        if (!message)
                return;
        if (e2b_may_begin_program(target.sandbox, &limit, &err) < 0) {
                json_decref(message);
                rpc_fail(request, true, err.code == CSN_E_BUSY ? RPC_RESOURCE_EXHAUSTED : RPC_INTERNAL, "%s", err.text);
                return;
        }
        struct e2b_envd *envd = envd_of(target.sandbox);
        struct envd_process *process = mem_alloc(sizeof *process);
        const char *tag = rpc_string(message, "tag");
        *process = (struct envd_process){ .next = envd->processes,
                .envd = envd,
                .loop = target.sandbox->service->loop,
                .tag = tag ? mem_copy(tag, strlen(tag)) : NULL,
                .terminal = object_of(message, "pty"),
                .input = rpc_bool(message, "stdin", true),
                .deadline = { .fired = on_program_deadline, .owner = process },
                .expiry = { .fired = on_expiry, .owner = process } };
        envd->processes = process;
        envd_listener_new(process, request, true);
        if (start(process, message, &target, &err) < 0) {
                process_free(process);
                envd_refuse(request, true, &err);
        }
        json_decref(message);
}

/* ---- lookup ---- */

#define WHICH_MEMBERS \
        { .name = "process", .kind = E2B_OBJECT }, \
        { .name = "process.pid", .kind = E2B_NUMBER, .most = UINT32_MAX }, \
        { .name = "process.tag", .kind = E2B_TEXT }

static const struct e2b_member which_members[] = { WHICH_MEMBERS, { 0 } };

static bool is_meant(const struct envd_process *process, uint64_t pid, const char *tag)
{
        return process->pid && (pid ? process->pid == pid : tag && process->tag && strcmp(process->tag, tag) == 0);
}

/* Find a program by pid or tag.  NULL: none; the request is answered. */
static struct envd_process *find(struct http_request *request, bool stream, const json_t *message, bool ended)
{
        const json_t *selector = object_of(message, "process");
        uint64_t pid = rpc_number(selector, "pid", 0);
        const char *tag = rpc_string(selector, "tag");
        struct e2b_sandbox *sandbox = e2b_target(request);
        struct envd_process *late = NULL;
        if (!sandbox) {
                e2b_not_found(request);
                return NULL;
        }
        for (struct envd_process *process = envd_of(sandbox)->processes; process; process = process->next) {
                if (is_meant(process, pid, tag) && !process->over)
                        return process;
                if (is_meant(process, pid, tag) && !late)
                        late = process;
        }
        if (ended && late)
                return late;
        if (pid)
                rpc_fail(request, stream, RPC_NOT_FOUND, "process with pid %" PRIu64 " not found", pid);
        else
                rpc_fail(request, stream, RPC_NOT_FOUND, "process with tag %.100s not found", tag ? tag : "''");
        return NULL;
}

void envd_connect(struct http_request *request)
{
        struct envd_target target;
        json_t *message = envd_target(request, true, &target) ? rpc_body(request, true, which_members) : NULL;
        struct envd_process *process = message ? find(request, true, message, true) : NULL;
        json_decref(message);
        if (!process)
                return;
        struct envd_listener *listener = envd_listener_new(process, request, false);
        if (envd_listener_greet(listener) && process->over)
                envd_listener_end(listener);
}

void envd_list_processes(struct http_request *request)
{
        static const struct e2b_member members[] = { { 0 } };
        struct envd_target target;
        json_t *message = envd_target(request, false, &target) ? rpc_body(request, false, members) : NULL;
        if (!message)
                return;
        json_t *list = json_array();
        for (const struct envd_process *process = envd_of(target.sandbox)->processes; process;
                process = process->next) {
                if (!process->pid || process->over)
                        continue;
                json_t *json = json_pack("{s:O, s:I}", "config", process->config, "pid", (json_int_t)process->pid);
                if (process->tag)
                        json_object_set_new(json, "tag", json_string(process->tag));
                json_array_insert_new(list, 0, json);   /* `processes` has the newest first; the list the oldest */
        }
        json_decref(message);
        rpc_answer(request, json_pack("{s:o}", "processes", list));
}

/* ---- input, signals and size ---- */

/* The running program of a unary call; the message is the caller's reference.  NULL: the request is answered. */
static struct envd_process *begin(struct http_request *request, const struct e2b_member *members, json_t **ret_message)
{
        struct envd_target target;
        *ret_message = envd_target(request, false, &target) ? rpc_body(request, false, members) : NULL;
        return *ret_message ? find(request, false, *ret_message, false) : NULL;
}

static void on_impatience(struct timer *timer)
{
        struct envd_waiting *waiting = timer->owner;
        struct http_request *request = waiting->request;
        envd_waiting_free(waiting);
        envd_answer_empty(request);
}

static int signal_of(const char *name)
{
        return !name                                  ? 0
                : strcmp(name, "SIGNAL_SIGKILL") == 0 ? SIGKILL
                : strcmp(name, "SIGNAL_SIGTERM") == 0 ? SIGTERM
                                                      : 0;
}

/* A kill is answered after the end of the program: a client that lists programs next expects no such program. */
void envd_signal(struct http_request *request)
{
        static const struct e2b_member members[] = { WHICH_MEMBERS,
                { .name = "signal", .kind = E2B_WORD, .words = "SIGNAL_SIGKILL SIGNAL_SIGTERM" }, { 0 } };
        json_t *message;
        struct envd_process *process = begin(request, members, &message);
        const char *name = rpc_string(message, "signal");
        int sig = signal_of(name);
        if (process && !sig) {
                rpc_fail(request, false, RPC_UNIMPLEMENTED,
                        "signal is missing; it has to be SIGNAL_SIGKILL or SIGNAL_SIGTERM");
        } else if (process && !guest_call_signal(&process->call, sig, 0)) {
                rpc_fail(request, false, RPC_RESOURCE_EXHAUSTED, "the sandbox does not take it; try again");
        } else if (process && sig == SIGKILL) {
                struct envd_waiting *waiting = envd_waiting_new(&process->killers, process, request);
                waiting->patience = (struct timer){ .fired = on_impatience, .owner = waiting };
                loop_timer(process->loop, &waiting->patience, KILL_PATIENCE_US);
        } else if (process) {
                envd_answer_empty(request);
        }
        json_decref(message);
}

void envd_input(struct http_request *request)
{
        static const struct e2b_member members[] = { WHICH_MEMBERS, { .name = "input", .kind = E2B_OBJECT },
                { .name = "input.stdin", .kind = E2B_TEXT }, { .name = "input.pty", .kind = E2B_TEXT }, { 0 } };
        json_t *message;
        struct envd_process *process = begin(request, members, &message);
        const json_t *input = object_of(message, "input");
        const char *text = process ? rpc_string(input, process->terminal ? "pty" : "stdin") : NULL;
        struct bytes bytes;
        if (!process)
                ;
        else if (!text)
                rpc_fail(request, false, RPC_INVALID_ARGUMENT,
                        process->terminal ? "the process has a terminal: input has to have pty"
                                          : "the process has no terminal: input has to have stdin");
        else if (!model_unbase64(&request->arena, text, strlen(text), &bytes))
                rpc_fail(request, false, RPC_INVALID_ARGUMENT, "the input is no base64");
        else if (!process->input && !process->terminal)
                rpc_fail(request, false, RPC_FAILED_PRECONDITION, "stdin not enabled or closed");
        else {
                envd_waiting_new(&process->inputs, process, request)->bytes = bytes;
                envd_send_input(&process->call);
        }
        json_decref(message);
}

void envd_close_input(struct http_request *request)
{
        json_t *message;
        struct envd_process *process = begin(request, which_members, &message);
        json_decref(message);
        if (!process)
                return;
        if (process->terminal) {
                rpc_fail(request, false, RPC_FAILED_PRECONDITION,
                        "cannot close the input of a terminal; send Ctrl+D (0x04) instead");
        } else if (!process->input) {
                rpc_fail(request, false, RPC_FAILED_PRECONDITION, "stdin not enabled or closed");
        } else {
                envd_waiting_new(&process->inputs, process, request)->ends = true;
                envd_send_input(&process->call);
        }
}

void envd_update(struct http_request *request)
{
        static const struct e2b_member members[] = { WHICH_MEMBERS, TERMINAL_MEMBERS, { 0 } };
        json_t *message;
        struct envd_process *process = begin(request, members, &message);
        const json_t *size = object_of(object_of(message, "pty"), "size");
        uint64_t rows = rpc_number(size, "rows", 0), columns = rpc_number(size, "cols", 0);
        if (!process)
                ;
        else if (size && !process->terminal)
                rpc_fail(request, false, RPC_FAILED_PRECONDITION, "tty not assigned to process");
        else if (size &&
                (rows > UINT16_MAX || columns > UINT16_MAX ||
                        !guest_call_resize(&process->call, (unsigned)rows, (unsigned)columns)))
                rpc_fail(request, false, RPC_INVALID_ARGUMENT, "rows and cols have to be numbers up to %d", UINT16_MAX);
        else
                envd_answer_empty(request);
        json_decref(message);
}
