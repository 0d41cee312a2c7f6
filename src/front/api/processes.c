/* Programs in persistent sandboxes: started, watched, written to, ended. */
#include "front/api/api.h"
#include "front/service/page.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define KEPT_MAX 200                       /* stored records of ended programs, per sandbox */

struct api_process {
        struct api_process *next;
        struct service *service;
        struct guest_call call;
        char sandbox[40];
        char tenant[80];
        uint64_t number, pid;
        char *what;                        /* the command line, as text */
        bool terminal, input, over, killed;
        uint64_t in_flight;                /* bytes of standard input that the program has not read */
        int status;                        /* wait(2) */
        struct csn_error error;            /* code 0: the program was started */
        struct capture captures[2];
        struct events events;
        struct http_request *waiting;      /* gets the record at the program's end, or NULL */
        struct http_request *writer;       /* the body of this request is standard input, or NULL */
        bool end_due; /* GUEST_IN_END is not sent yet: the socket was full */
        size_t kept;                       /* after the end: bytes counted in processes_kept */
        struct timer deadline, expiry;
        uint64_t created_us, ended_us;
};

static void is_over(struct http_request *request)
{
        struct csn_error err;
        err_set(&err, CSN_E_BUSY, 0, "the process is over");
        api_conflict(request, &err);
}

static void stop_writer(struct api_process *one)
{
        struct http_request *writer = one->writer;
        one->writer = NULL;
        if (!writer)
                return;
        writer->gone = NULL;
        if (one->end_due) {
                is_over(writer);
        } else {
                writer->owner = NULL;      /* take_input() discards the rest of the body */
                http_more(writer);
        }
}

static void process_free(struct api_process *one)
{
        for (struct api_process **at = &api_state(one->service)->processes; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        retained_drop(&api_state(one->service)->processes_kept, one->tenant, one->kept);
        loop_untimer(one->service->loop, &one->deadline);
        loop_untimer(one->service->loop, &one->expiry);
        guest_call_close(&one->call);
        stop_writer(one);
        events_done(&one->events);
        capture_done(&one->captures[0]);
        capture_done(&one->captures[1]);
        free(one->what);
        free(one);
}

static void on_expiry(struct timer *timer)
{
        process_free(timer->owner);
}

/* A slow reader of the start request's stream holds up the program, as the reader of a pipe does. */
static void on_events_room(struct events *events)
{
        struct api_process *one = (struct api_process *)((char *)events - offsetof(struct api_process, events));
        guest_call_hold(&one->call, false);
}

static void on_deadline(struct timer *timer)
{
        struct api_process *one = timer->owner;
        one->killed = true;
        guest_call_signal(&one->call, SIGKILL, 0);
}

/* ---- records ---- */

static json_t *text_json(const struct capture *capture, uint64_t *ret_missing)
{
        struct arena arena = { 0 };
        size_t len, cut, safe;
        char *text = capture_text(capture, &arena, &len, &cut);
        const char *utf8 = model_utf8(&arena, text, len, &safe);
        json_t *json = json_stringn(utf8, safe);
        *ret_missing = capture->total - len;
        arena_done(&arena);
        return json;
}

static void describe_end(const struct api_process *one, json_t *json)
{
        if (one->error.code)
                json_object_set_new(json, "error", api_error(&one->error));
        else if (WIFSIGNALED(one->status))
                json_object_set_new(json, "signal", json_integer(WTERMSIG(one->status)));
        else
                json_object_set_new(json, "exit_code", json_integer(WEXITSTATUS(one->status)));
        if (one->call.spent)
                json_object_set_new(json, "limit", json_string(QUOTA_CPU));
        json_object_set_new(json, "timed_out", json_boolean(one->killed));
        json_object_set_new(json, "wall_ms", json_real((double)(one->ended_us - one->created_us) / 1000));
}

/* whole: with the output so far. */
static json_t *describe(const struct api_process *one, bool whole)
{
        uint64_t missing[2];
        json_t *json = json_pack("{s:I, s:I, s:s, s:s, s:s, s:b, s:I}", "id", (json_int_t)one->number, "pid",
                (json_int_t)one->pid, "sandbox", one->sandbox, "command", one->what, "state",
                one->over ? "over" : "running", "terminal", one->terminal, "age_ms",
                (json_int_t)((clock_us() - one->created_us) / 1000));
        if (one->over)
                describe_end(one, json);
        if (!whole)
                return json;
        json_object_set_new(json, "stdout", text_json(&one->captures[0], &missing[0]));
        json_object_set_new(json, "stderr", text_json(&one->captures[1], &missing[1]));
        json_object_set_new(json, "truncated",
                json_pack("{s:I, s:I, s:I, s:I}", "stdout_bytes", (json_int_t)missing[0], "stderr_bytes",
                        (json_int_t)missing[1], "stdout_total_bytes", (json_int_t)one->captures[0].total,
                        "stderr_total_bytes", (json_int_t)one->captures[1].total));
        return json;
}

static void keep_bound(const struct api_process *of)
{
        struct api_process *oldest = NULL;
        size_t n = 0;
        for (struct api_process *one = api_state(of->service)->processes; one; one = one->next)
                if (one->over && one != of && strcmp(one->sandbox, of->sandbox) == 0) {
                        n++;
                        oldest = one;
                }
        if (n >= KEPT_MAX)
                process_free(oldest);
}

/* The oldest ended program without readers, of a tenant with at least `least` bytes; else of any tenant. */
static struct api_process *oldest_of(const struct service *service, size_t least)
{
        struct api_process *oldest = NULL;
        for (struct api_process *one = api_state(service)->processes; one; one = one->next)
                if (one->over && !one->events.readers && retained_of(&api_state(service)->processes_kept,
                                                                     one->tenant) >= least)
                        oldest = one;
        return oldest || !least ? oldest : oldest_of(service, 0);
}

static void make_room(struct service *service)
{
        for (struct api_process *oldest;
                api_state(service)->processes_kept.bytes > service->settings->engine.kept_bytes &&
                (oldest = oldest_of(service, retained_most(&api_state(service)->processes_kept)));)
                process_free(oldest);
}

static void set_location(struct http_request *request, const struct api_process *one)
{
        char link[120];
        snprintf(link, sizeof link, "/v1/sandboxes/%s/processes/%llu", one->sandbox, (unsigned long long)one->number);
        http_set_header(request, "Location", link);
}

/* Only for a started program. */
static void answer_with(struct http_request *request, unsigned status, const struct api_process *one, bool output)
{
        set_location(request, one);
        http_json(request, status, describe(one, output));
}

static void finish(struct api_process *one)
{
        one->over = true;
        one->ended_us = clock_us();
        loop_untimer(one->service->loop, &one->deadline);
        stop_writer(one);
        if (one->waiting) {
                struct http_request *request = one->waiting;
                one->waiting = NULL;
                request->gone = NULL;
                if (one->error.code && !one->pid)
                        http_fail(request, &one->error);
                else
                        answer_with(request, MHD_HTTP_OK, one, true);
        }
        events_finish(&one->events, describe(one, false));
        loop_timer(one->service->loop, &one->expiry, SERVICE_KEEP_US);
        one->kept = one->captures[0].size + one->captures[1].size + events_bytes(&one->events);
        retained_add(&api_state(one->service)->processes_kept, one->tenant, one->kept);
        keep_bound(one);
        make_room(one->service);
}

/* ---- packets of the guest ---- */

static void send_end(struct api_process *one)
{
        struct http_request *writer = one->writer;
        one->end_due = !guest_call_send(&one->call, GUEST_IN_END, "", 0);
        if (one->end_due || !writer)
                return;
        one->writer = NULL;
        writer->gone = NULL;
        http_answer(writer, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}

static void on_room(struct guest_call *call)
{
        struct api_process *one = call->owner;
        if (one->end_due)
                send_end(one);
        else if (one->writer)
                http_more(one->writer);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct api_process *one = call->owner;
        struct csn_error err;
        uint64_t number;
        (void)fds;
        switch (kind) {
        case GUEST_STARTED:
                if (guest_get_number(bytes, len, &one->pid, &err) == 0)
                        events_begin(&one->events,
                                json_pack("{s:s, s:I, s:I}", "type", "start", "id", (json_int_t)one->number, "pid",
                                        (json_int_t)one->pid));
                break;
        case GUEST_OUT:
        case GUEST_ERROR:
                capture_add(&one->captures[kind == GUEST_ERROR], bytes + 1, len - 1);
                events_output(&one->events, kind == GUEST_OUT ? 1 : 2, bytes + 1, len - 1);
                if (events_wait(&one->events))
                        guest_call_hold(&one->call, true);
                break;
        case GUEST_ROOM:
                if (guest_get_number(bytes, len, &number, &err) < 0)
                        break;
                one->in_flight -= min_u64(number, one->in_flight);
                on_room(call);             /* a held call reports no room in its socket */
                break;
        case GUEST_EXITED:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        one->status = (int)(number & 0xffff);
                break;
        default:
                break;
        }
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct api_process *one = call->owner;
        if (error)
                one->error = *error;
        finish(one);
}

/* ---- finding ---- */

static struct api_process *find(struct http_request *request)
{
        struct csn_error err;
        char *end;
        unsigned long long number = strtoull(http_part(request, 1), &end, 10);
        for (struct api_process *one = api_state(service_of(request))->processes; one && !*end; one = one->next)
                if (one->number == number && strcmp(one->sandbox, http_part(request, 0)) == 0 &&
                        strcmp(one->tenant, request->tenant) == 0)
                        return one;
        err_field(&err, "", "there is no process %.20s in the sandbox %.60s, or it cannot be asked for any more",
                http_part(request, 1), http_part(request, 0));
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
        return NULL;
}

/* ---- starting ---- */

static char *as_text(const struct process_request *given)
{
        struct buf text;
        buf_init(&text, 4 * KIB);
        if (given->command)
                buf_printf(&text, "%.4000s", given->command);
        for (size_t i = 0; i < given->args_n; i++)
                buf_printf(&text, "%s%.1000s", i ? " " : "", given->args[i]);
        size_t len;
        struct arena arena = { 0 };
        const char *utf8 = model_utf8(&arena, text.bytes ? text.bytes : "", text.len, &len);
        char *copy = mem_copy(utf8, len);
        arena_done(&arena);
        buf_done(&text);
        return copy;
}

static int check(const struct process_request *given, bool waits, struct csn_error *err)
{
        if (!given->command == !given->args_n)
                return err_field(err, "/command",
                        "give command (a line for bash) or args (a program and its arguments), and one of them only");
        if (given->args_n && !given->args[0][0])
                return err_field(err, "/args", "the name of the program is empty");
        if (waits && (given->stdin || given->terminal))
                return err_field(err, given->stdin ? "/stdin" : "/terminal",
                        "who waits for its end cannot write to it: ask with Prefer: respond-async, or with "
                        "Accept: text/event-stream or application/x-ndjson");
        return 0;
}

static int start(struct api_process *one, struct psandbox *psandbox, const struct process_request *given,
        struct arena *arena, struct csn_error *err)
{
        static char *const shell[] = { "/bin/bash", "-c", NULL };
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        struct pair terminal = { (char *)(uintptr_t)"TERM", (char *)(uintptr_t)"xterm-256color" };
        struct pair *more = arena_alloc(arena, (given->env_n + 1) * sizeof *more);
        struct guest_process process = { .rows = given->rows,
                .columns = given->columns,
                .folder = given->cwd,
                .flags = (given->terminal ? GUEST_TERMINAL : 0) | (given->stdin ? GUEST_INPUT : 0) |
                        (given->user == account_ROOT ? GUEST_AS_ROOT : 0) };
        size_t more_n = 0;
        if (given->terminal)
                more[more_n++] = terminal;
        for (size_t i = 0; i < given->env_n; i++)
                more[more_n++] = given->env[i];
        if (given->terminal)                /* TERM of the request comes last, and wins */
                for (size_t i = 1; i < more_n; i++)
                        if (strcmp(more[i].name, "TERM") == 0)
                                more[0] = more[i];
        if (psandbox_has_account(psandbox, given->user, err) < 0)
                return -err->code;
        process.env = psandbox_env(psandbox, given->user, more, more_n, arena, &process.env_n);
        process.argv_n = given->command ? 3 : given->args_n;
        process.argv = arena_alloc(arena, (process.argv_n + 1) * sizeof *process.argv);
        for (size_t i = 0; i < process.argv_n; i++)
                process.argv[i] = given->command ? (i < 2 ? shell[i] : given->command) : given->args[i];
        one->call = (struct guest_call){ .events = &events, .owner = one };
        return guest_call_program(psandbox, &one->call, &process, err);
}

static void on_waiting_gone(struct http_request *request)
{
        struct api_process *one = request->owner;
        one->waiting = NULL;
        guest_call_signal(&one->call, SIGKILL, 0);   /* no other client knows the program */
}

void api_post_process(struct http_request *request)
{
        bool stream = http_accepts(request, "text/event-stream"),
             ndjson = !stream && http_accepts(request, "application/x-ndjson");
        bool async = api_prefers(request, "respond-async");
        struct service *service = service_of(request);
        struct psandbox *psandbox = api_psandbox(request);
        struct process_request given = { 0 };
        struct http_limit limit = { 0 };
        struct csn_error err;
        if (!psandbox || !service_decode(request, &object_process_request, &request->arena, &given))
                return;
        const struct run_quota quota = service_quota(request);
        if (service_may_begin_program(service, request->tenant, &quota, psandbox, &limit, &err) < 0) {
                service_answer_busy(request, &limit, &err);
                return;
        }
        model_defaults(&object_process_request, &given);
        if (check(&given, !stream && !ndjson && !async, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        if ((stream || ndjson) && !events_admit(request))
                return;
        struct api_state *state = api_state(service);
        struct api_process *one = mem_alloc(sizeof *one);
        *one = (struct api_process){ .next = state->processes,
                .service = service,
                .number = psandbox_count_program(psandbox),
                .what = as_text(&given),
                .terminal = given.terminal,
                .input = given.stdin || given.terminal,
                .created_us = clock_us() };
        one->deadline = (struct timer){ .fired = on_deadline, .owner = one };
        one->expiry = (struct timer){ .fired = on_expiry, .owner = one };
        snprintf(one->sandbox, sizeof one->sandbox, "%s", psandbox_id(psandbox));
        snprintf(one->tenant, sizeof one->tenant, "%s", request->tenant);
        for (size_t i = 0; i < ARRAY_LEN(one->captures); i++)
                capture_init(&one->captures[i], (size_t)psandbox_limits(psandbox)->output_bytes);
        events_init(&one->events);
        state->processes = one;
        if (start(one, psandbox, &given, &request->arena, &err) < 0) {
                process_free(one);
                err.code == CSN_E_BUSY ? api_conflict(request, &err) : http_fail(request, &err);
                return;
        }
        if (given.timeout_ms)
                loop_timer(service->loop, &one->deadline, given.timeout_ms * 1000);
        if (stream || ndjson) {
                set_location(request, one);
                events_send(&one->events, request, 0, ndjson);
                events_set_flow_control(&one->events, on_events_room);
        } else if (async) {
                http_set_header(request, "Preference-Applied", "respond-async");
                answer_with(request, MHD_HTTP_ACCEPTED, one, false);
        } else {
                one->waiting = request;
                request->owner = one;
                request->gone = on_waiting_gone;
        }
}

/* ---- asking ---- */

void api_list_processes(struct http_request *request)
{
        const struct psandbox *psandbox = api_psandbox(request);
        struct service_page page;
        if (!psandbox || !service_page_begin(request, SERVICE_PAGE_MAX, "processes", &page))
                return;
        for (const struct api_process *one = api_state(service_of(request))->processes; one &&
             !page.more; one = one->next)
                if (strcmp(one->sandbox, psandbox_id(psandbox)) == 0 && service_page_has(&page, one->number, 0))
                        service_page_add(&page, describe(one, false));
        service_page_answer(request, &page);
}

void api_get_process(struct http_request *request)
{
        const struct api_process *one = find(request);
        if (one)
                http_json(request, MHD_HTTP_OK, describe(one, true));
}

void api_process_events(struct http_request *request)
{
        struct api_process *one = find(request);
        uint64_t after;
        if (one && api_after(request, &after) && events_admit(request))
                events_send(&one->events, request, after, http_accepts(request, "application/x-ndjson"));
}

/* ---- input, signals, removal ---- */

static size_t take_input(struct http_request *request, const char *bytes, size_t len)
{
        struct api_process *one = request->owner;
        if (!one || one->writer != request)
                return len;                /* the program is over: discard the rest */
        size_t room = one->in_flight < GUEST_IN_MAX ? GUEST_IN_MAX - (size_t)one->in_flight : 0;
        size_t n = min_u64(min_u64(room, len), GUEST_DATA_MAX);
        if (!n || !guest_call_send(&one->call, GUEST_IN, bytes, n))
                return 0;
        one->in_flight += n;
        return n;
}

static void input_whole(struct http_request *request)
{
        struct api_process *one = request->owner;
        bool end = http_query(request, "end") && strcmp(http_query(request, "end"), "true") == 0;
        if (!one || one->writer != request) {
                is_over(request);
                return;
        }
        if (end) {
                send_end(one);
                return;
        }
        one->writer = NULL;
        request->gone = NULL;
        http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}

static void input_gone(struct http_request *request)
{
        struct api_process *one = request->owner;
        if (one->writer == request)
                one->writer = NULL;
}

void api_process_stdin(struct http_request *request)
{
        struct api_process *one = find(request);
        struct csn_error err;
        if (!one)
                return;
        if (one->over || one->writer || one->end_due || !one->input) {
                err_set(&err, CSN_E_BUSY, 0,
                        one->over                             ? "the process is over"
                                : one->writer || one->end_due ? "another request is writing to it"
                                                              : "it was started without stdin");
                api_conflict(request, &err);
                return;
        }
        one->writer = request;
        request->owner = one;
        request->take = take_input;
        request->whole = input_whole;
        request->gone = input_gone;
}

static int signal_of(const char *text)
{
        char *end;
        long number = strtol(text, &end, 10);
        if (!*end && number > 0 && number < NSIG)
                return (int)number;
        if (strncasecmp(text, "SIG", 3) == 0)
                text += 3;
        for (int sig = 1; sig < NSIG; sig++)
                if (sigabbrev_np(sig) && strcasecmp(sigabbrev_np(sig), text) == 0)
                        return sig;
        return 0;
}

void api_process_signal(struct http_request *request)
{
        struct api_process *one = find(request);
        struct process_signal given = { 0 };
        struct csn_error err;
        if (!one || !service_decode(request, &object_process_signal, &request->arena, &given))
                return;
        int sig = signal_of(given.signal);
        if (!sig) {
                err_field(&err, "/signal",
                        "there is no signal \"%.20s\"; give TERM, KILL, INT, HUP, another name, or a number",
                        given.signal);
                http_fail(request, &err);
        } else if (one->over || !guest_call_signal(&one->call, sig, 0)) {
                is_over(request);
        } else {
                http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
        }
}

void api_process_size(struct http_request *request)
{
        struct api_process *one = find(request);
        struct process_size given = { 0 };
        if (!one || !service_decode(request, &object_process_size, &request->arena, &given))
                return;
        if (one->over || !guest_call_resize(&one->call, (unsigned)given.rows, (unsigned)given.columns))
                is_over(request);
        else
                http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}

/* A running program is killed and keeps its record; the record of an ended program is removed. */
void api_delete_process(struct http_request *request)
{
        struct api_process *one = find(request);
        if (!one)
                return;
        if (one->over)
                process_free(one);
        else
                guest_call_signal(&one->call, SIGKILL, 0);
        http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}

void api_processes_close(struct service *service)
{
        for (struct api_process *one = api_state(service)->processes, *next; one; one = next) {
                next = one->next;
                if (one->waiting)
                        one->waiting->gone = NULL;
                if (one->writer)
                        one->writer->gone = NULL;
                process_free(one);
        }
}
