/*
 * The broker of one run or persistent sandbox.
 *
 * Input from the tool socket is hostile: the program may know this source.  A message is JSON within bounds or is
 * refused; a tool without a grant does not exist for the program; and each result is a value within bounds.
 *
 * A call goes through the states of struct ask in order.  Each state has a time limit, except ASK_QUEUED: the calls
 * before have time limits.  All calls end in end(): answer, count, record, log, free.
 */
#include "tools/tools_private.h"

#include <inttypes.h>
#include <stdio.h>

#define SETTLE_MS 10000                    /* limit of the wait for sources to be ready */
#define PROGRESS_US 100000                /* between two progress events of a call */
#define PROGRESS_TEXT_MAX 1000             /* bytes of the server's message in an event */
#define ERROR_MAX 4000                     /* bytes of an error for the program */

static void go_on(struct ask *ask);
static void fail(struct ask *ask, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- endings ---- */

static void on_again(struct timer *timer)
{
        struct broker *broker = timer->owner;
        broker->passes++;
        for (struct ask *ask; (ask = broker_next_due(broker));) {
                ask->pass = broker->passes;
                go_on(ask);
        }
        broker->changed = false;
}

static void tell_log(const struct ask *ask, const char *what, size_t bytes, double ms)
{
        const struct broker *broker = ask->broker;
        const struct log_context about = { .run = broker->whom.id, .owner = broker->whom.owner };
        log_about(LOG_INFO, &about, "tool %s.%s: %s, %zu bytes in, %zu out, %.1f ms",
                ask->server[0] ? ask->server : "-", ask->tool[0] ? ask->tool : "-", what, ask->bytes, bytes, ms);
}

/* The source does not run this call any more. */
static void release(struct ask *ask)
{
        if (ask->state == ASK_CALLING)
                ask->broker->running--;
        ask->call.source = NULL;
}

/* A result, as JSON text; or an error. */
static void end(struct ask *ask, const char *result, const char *error)
{
        struct broker *broker = ask->broker;
        double ms = (double)(clock_us() - ask->begun_us) / 1000;
        size_t len = result ? strlen(result) : 0;
        if (result && ask->from && !tool_socket_has_room(ask->from, len)) {
                fail(ask,
                        "Tool '%s' has answered, but answers to other calls wait to be read and take all the room; read them first",
                        ask->tool);
                return;
        }
        release(ask);
        if (ask->counted && error)
                broker->failed++;
        else if (error)
                broker->refused++;
        if (ask->counted && broker->request->record)
                broker_keep_call(broker, ask, result, error, ms);
        tell_log(ask, !error ? "done" : ask->counted ? "failed" : "refused", len, ms);
        struct buf text;
        buf_init(&text, TOOL_SOCKET_MESSAGE_MAX);
        if (error) {
                json_t *json = json_pack("{s:b, s:s, s:s, s:b, s:b}", "ok", 0, "error", error, "tool", ask->tool,
                        "decode", broker->request->decode, "raise", broker->request->raise);
                char *dumped = json ? json_dumps(json, JSON_COMPACT) : NULL;
                json_decref(json);
                buf_printf(&text, "%s",
                        dumped ? dumped : "{\"ok\":false,\"error\":\"the error is no text\",\"tool\":\"\"}");
                free(dumped);
        } else {
                buf_printf(&text, "{\"ok\":true,\"decode\":%s,\"result\":", broker->request->decode ? "true" : "false");
                buf_add(&text, result, len);
                buf_add(&text, "}", 1);
        }
        struct tool_socket_call *from = ask->from;
        ask_free(ask);
        if (from)
                tool_socket_answer(from, text.bytes, text.len);
        buf_done(&text);
        broker_wake_queued(broker);
}

static void fail(struct ask *ask, const char *fmt, ...)
{
        struct arena arena = { 0 };
        char text[ERROR_MAX];
        size_t len;
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        /* vsnprintf() may have cut the text within a character. */
        end(ask, NULL, model_utf8(&arena, text, strlen(text), &len));
        arena_done(&arena);
}

/* ---- values ---- */

static void end_text(struct ask *ask, const char *text)
{
        size_t len = strlen(text);
        if (len > ask->broker->request->payload_bytes)
                fail(ask, "Tool '%s' answered with %zu bytes; at most %" PRIu64 " are allowed (payload_bytes)",
                        ask->tool, len, ask->broker->request->payload_bytes);
        else
                end(ask, text, NULL);
}

static void end_value(struct ask *ask, json_t *value)
{
        char *text =
                model_value_is_deeper(value, TOOL_DEPTH_MAX) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!text)
                fail(ask, "Tool '%s' answered with a value that is nested deeper than %d levels", ask->tool,
                        TOOL_DEPTH_MAX);
        else
                end_text(ask, text);
        free(text);
}

static void on_done(struct tool_call *call, const struct tool_result *result)
{
        struct ask *ask = (struct ask *)call;
        if (result->error || result->is_error) {
                char *text = result_error(result, ERROR_MAX - 1);
                fail(ask, "%s", text);
                free(text);
                return;
        }
        json_t *value = result_value(result, ask->broker->request->payload_bytes);
        end_value(ask, value);
        json_decref(value);
}

/* At most one event in PROGRESS_US: new events push older events out of the history. */
static void on_progress(struct tool_call *call, double progress, double total, const char *message)
{
        struct ask *ask = (struct ask *)call;
        struct run *run = ask->broker->whom.run;
        if (!run || !run_has_listener(run) || clock_us() - ask->progress_us < PROGRESS_US)
                return;
        ask->progress_us = clock_us();
        json_t *event = json_pack("{s:s, s:s, s:s, s:s, s:f}", "type", "tool_progress", "call", ask->id, "server",
                ask->server, "tool", ask->tool, "progress", progress);
        if (total > 0)
                json_object_set_new(event, "total", json_real(total));
        if (message)
                json_object_set_new(event, "message",
                        json_stringn(message, utf8_whole(message, min_u64(strlen(message), PROGRESS_TEXT_MAX))));
        run_tell(run, event);
}

/* ---- the way of a call ---- */

static void cancel(struct ask *ask)
{
        struct tool_source *source = ask->call.source;
        ask->call.source = NULL;
        if (source)
                source->kind->cancel(source, &ask->call);
}

static void on_clock(struct timer *timer)
{
        struct ask *ask = timer->owner;
        const struct broker *broker = ask->broker;
        if (ask->state == ASK_SETTLING) {
                ask->waited = true;
                go_on(ask);
        } else if (ask->state == ASK_APPROVAL) {
                fail(ask, "Tool '%s' needs a yes, and nobody said it within %" PRIu64 " ms", ask->tool,
                        broker->request->ask_ms);
        } else {
                cancel(ask);
                fail(ask, "Tool '%s' did not answer in time (%g s)", ask->tool,
                        (double)(ask->call.deadline_us - ask->begun_us) / 1e6);
        }
}

/* May a tool of the request still appear, as a source is starting? */
static bool is_settling(const struct broker *broker)
{
        for (const struct tool_source *source = broker->tools->sources; source && !broker->replay;
                source = source->next)
                if (source->state == TOOLS_STARTING &&
                        grant_concerns(broker->request->allow, broker->request->allow_n, source->server))
                        return true;
        return false;
}

static void replay(struct ask *ask)
{
        const struct tool_record *record =
                replay_take(ask->broker->replay, ask->server, ask->tool, ask->call.arguments);
        if (!record)
                fail(ask, "The recording has no call of '%s' with these arguments that is not used yet", ask->tool);
        else if (HAS(record, tool_record, error))
                fail(ask, "%s", record->error);
        else
                end_text(ask, HAS(record, tool_record, result) ? record->result : "null");
}

static void begin(struct ask *ask, const struct granted *one)
{
        struct broker *broker = ask->broker;
        struct csn_error err;
        if (broker->replay) {
                replay(ask);
                return;
        }
        if (broker->running >= broker->request->concurrent) {
                ask->state = ASK_QUEUED;
                return;
        }
        uint64_t ms = one->tool->timeout_ms ? min_u64(one->tool->timeout_ms, broker->request->call_ms)
                                            : broker->request->call_ms;
        ask->begun_us = clock_us();
        ask->state = ASK_CALLING;
        broker->running++;
        ask->call.source = one->source;
        ask->call.name = ask->tool;
        ask->call.deadline_us = ask->begun_us + ms * 1000;
        ask->call.run = broker->whom.id;
        ask->call.owner = broker->whom.owner;
        ask->call.done = on_done;
        ask->call.progress = on_progress;
        if (one->source->kind->call(one->source, &ask->call, &err) < 0) {
                ask->call.source = NULL;
                fail(ask, "%s", err.text);
                return;
        }
        loop_timer(broker_loop(broker), &ask->timer, ms * 1000);
}

static bool needs_yes(const struct broker *broker, const struct granted *one)
{
        bool ask = one->tool->ask;
        for (size_t i = 0; i < broker->request->ask_n && !ask; i++)
                ask = grant_matches(broker->request->ask[i], one->source->server, one->tool->name);
        return ask && !broker->replay;
}

static void ask_for_yes(struct ask *ask)
{
        struct broker *broker = ask->broker;
        struct run *run = broker->whom.run;
        if (!run || !run_has_listener(run)) {
                fail(ask, "Tool '%s' needs a yes for each call, and nobody is there to say it", ask->tool);
                return;
        }
        if (ask->bytes > TOOL_EVENT_MAX) {
                fail(ask, "The arguments have %zu bytes; at most %llu are allowed for a tool that needs a yes",
                        ask->bytes, TOOL_EVENT_MAX);
                return;
        }
        ask->state = ASK_APPROVAL;
        loop_timer(broker_loop(broker), &ask->timer, broker->request->ask_ms * 1000);
        run_tell(run,
                json_pack("{s:s, s:s, s:s, s:s, s:O}", "type", "approval", "call", ask->id, "server", ask->server,
                        "tool", ask->tool, "arguments", ask->call.arguments));
}

/* Check limit and arguments once for each call.  False: the call is refused, and freed. */
static bool check(struct ask *ask, const struct granted *one)
{
        struct broker *broker = ask->broker;
        struct csn_error err;
        if (ask->counted)
                return true;
        if (broker->calls >= broker->request->calls) {
                fail(ask, "Tool call limit exceeded: %" PRIu64 " calls are allowed (calls)", broker->request->calls);
                return false;
        }
        if (one->tool->input_schema && schema_check(one->tool->input_schema, ask->call.arguments, &err) < 0) {
                fail(ask, "Invalid arguments for tool '%s': %s%s%s", ask->tool, err.field, err.field[0] ? ": " : "",
                        err.text);
                return false;
        }
        ask->counted = true;
        broker->calls++;
        return true;
}

static void end_list(struct ask *ask)
{
        struct broker *broker = ask->broker;
        struct tool_socket_call *from = ask->from;
        ask_free(ask);
        if (from)
                broker_list(broker, from);
}

/* Move a request on, up to its next wait or its answer. */
static void go_on(struct ask *ask)
{
        struct broker *broker = ask->broker;
        struct arena arena = { 0 };
        struct granted one;
        char *error = NULL;
        const char *server = json_string_value(json_object_get(ask->request, "server")),
                   *name = json_string_value(json_object_get(ask->request, "tool"));
        bool settling = is_settling(broker) && !ask->waited;
        if (ask->lists) {
                if (!settling)
                        end_list(ask);
                return;
        }
        if (ask->state != ASK_SETTLING)
                loop_untimer(broker_loop(broker), &ask->timer);
        if (!grant_find(broker, server, name, &arena, &one, &error)) {
                ask->state = ASK_SETTLING;
                if (!settling)
                        fail(ask, "%s", error);
                else if (!ask->timer.active)
                        loop_timer(broker_loop(broker), &ask->timer, SETTLE_MS * 1000ULL);
        } else {
                snprintf(ask->server, sizeof ask->server, "%s", one.source->server);
                snprintf(ask->tool, sizeof ask->tool, "%s", one.tool->name);
                loop_untimer(broker_loop(broker), &ask->timer);
                if (!check(ask, &one))
                        ;
                else if (needs_yes(broker, &one) && !ask->approved)
                        ask_for_yes(ask);
                else
                        begin(ask, &one);
        }
        arena_done(&arena);
}

int broker_answer(struct run *run, const struct tool_answer *answer, struct csn_error *err)
{
        struct broker *broker = run_broker(run);
        struct ask *ask = broker ? broker->asks : NULL;
        while (ask && strcmp(ask->id, answer->call) != 0)
                ask = ask->next;
        bool approval = ask && ask->state == ASK_APPROVAL,
             calling = ask && ask->state == ASK_CALLING && ask->call.source == broker->client;
        if (!approval && !calling)
                return err_field(err, "/call",
                        "there is no call %.40s that waits for an answer; it may have been answered, or its time is over",
                        answer->call);
        if (approval != HAS(answer, tool_answer, approve) ||
                (!approval && !HAS(answer, tool_answer, result) && !HAS(answer, tool_answer, error)))
                return err_field(err, "", "%.40s waits for %s", answer->call,
                        approval ? "approve: true or false" : "result or error");
        if (HAS(answer, tool_answer, result) && HAS(answer, tool_answer, error))
                return err_field(err, "/error", "the answer to %.40s has a result and an error; give one of them",
                        answer->call);
        if (approval && answer->approve) {
                ask->approved = true;
                go_on(ask);
        } else if (approval) {
                fail(ask, "The call of '%s' was refused%s%.1000s", ask->tool,
                        HAS(answer, tool_answer, error) ? ": " : "",
                        HAS(answer, tool_answer, error) ? answer->error : "");
        } else if (HAS(answer, tool_answer, error)) {
                fail(ask, "%.3900s", answer->error);
        } else {
                json_t *value = HAS(answer, tool_answer, result)
                        ? json_loads(answer->result, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                        : json_null();
                if (value)
                        end_value(ask, value);
                else
                        fail(ask, "the result is no JSON");
                json_decref(value);
        }
        return 0;
}

/* ---- requests of the program ---- */

static void op_call(struct broker *broker, struct tool_socket_call *from, json_t *request)
{
        json_t *arguments = json_object_get(request, "arguments");
        struct ask *ask = ask_new(broker, from, json_incref(request), on_clock);
        snprintf(ask->tool, sizeof ask->tool, "%s", json_string_value(json_object_get(request, "tool")));
        from->owner = ask;
        ask->call.arguments = arguments ? json_incref(arguments) : json_object();
        char *text = json_dumps(ask->call.arguments, JSON_COMPACT | JSON_ENCODE_ANY);
        ask->bytes = text ? strlen(text) : 0;
        if (!json_is_object(ask->call.arguments))
                fail(ask, "The arguments of a tool are an object of names and values");
        else if (!text || model_value_is_deeper(ask->call.arguments, TOOL_DEPTH_MAX))
                fail(ask, "The arguments are nested deeper than %d levels", TOOL_DEPTH_MAX);
        else if (ask->bytes > broker->request->payload_bytes)
                fail(ask, "The arguments have %zu bytes; at most %" PRIu64 " are allowed (payload_bytes)", ask->bytes,
                        broker->request->payload_bytes);
        else if (!ask_hold(ask))
                fail(ask,
                        "The arguments of calls that wait take too much memory; call again when others have their answers");
        else
                go_on(ask);
        free(text);
}

/* A list also waits for sources that are starting: a program asks for the list only once. */
static void list_or_wait(struct broker *broker, struct tool_socket_call *from, json_t *request)
{
        if (!is_settling(broker)) {
                broker_list(broker, from);
                return;
        }
        struct ask *ask = ask_new(broker, from, json_incref(request), on_clock);
        from->owner = ask;
        ask->lists = true;
        loop_timer(broker_loop(broker), &ask->timer, SETTLE_MS * 1000ULL);
}

static bool is_name(const json_t *json)
{
        return json_is_string(json) && json_string_length(json) <= 2 * TOOL_NAME_MAX &&
                strlen(json_string_value(json)) == json_string_length(json);
}

void broker_asked(void *owner, struct tool_socket_call *from, const char *message, size_t len)
{
        struct broker *broker = owner;
        char text[200];
        from->owner = NULL;
        if (!message) {
                broker->refused++;
                snprintf(text, sizeof text,
                        "The arguments have %zu bytes; at most %" PRIu64 " are allowed (payload_bytes)", len,
                        broker->request->payload_bytes);
                broker_answer_error(broker, from, text);
                return;
        }
        json_error_t why;
        bool many = model_has_many_parts(message, len, TOOL_PARTS_MAX);
        json_t *request = many ? NULL : json_loadb(message, len, JSON_ALLOW_NUL, &why);
        json_t *server = json_object_get(request, "server");
        const char *op = json_string_value(json_object_get(request, "op"));
        bool named = is_name(json_object_get(request, "tool")) && (!server || is_name(server));
        if (op && strcmp(op, "list") == 0) {
                list_or_wait(broker, from, request);
        } else if (op && named && strcmp(op, "info") == 0) {
                broker_info(broker, from, request);
        } else if (op && named && strcmp(op, "call") == 0) {
                op_call(broker, from, request);
        } else {
                broker->refused++;
                if (request)
                        broker_answer_error(broker, from, "what was asked is no call of a tool");
                else
                        broker_answer_unread(broker, from, message, len, many ? NULL : &why);
        }
        json_decref(request);
}

void broker_gone(void *owner, struct tool_socket_call *from)
{
        struct ask *ask = from->owner;
        (void)owner;
        from->owner = NULL;
        if (!ask)
                return;
        ask->from = NULL;
        cancel(ask);
        if (ask->lists)
                end_list(ask);
        else
                fail(ask, "who called has gone");
}

/* ---- news of sources ---- */

void broker_changed(struct broker *broker)
{
        grant_forget(broker);
        broker->changed = true;
        loop_timer(broker_loop(broker), &broker->again, 0);
}

void broker_lost(struct broker *broker, const struct tool_source *source)
{
        struct ask *ask = broker->asks;
        grant_forget(broker);
        while (ask) {
                if (ask->call.source == source) {
                        cancel(ask);
                        fail(ask, "The server of tool '%s' has gone", ask->tool);
                        ask = broker->asks;
                } else {
                        ask = ask->next;
                }
        }
}

/* ---- open and close ---- */

static int check_patterns(char *const *patterns, size_t n, const char *field, struct csn_error *err)
{
        for (size_t i = 0; i < n; i++)
                if (!grant_check_pattern(patterns[i]))
                        return err_field(err, field,
                                "\"%.100s\" names no tool; give a name (weather), one with its server (home.weather), or a pattern with * "
                                "(home.*, get_*)",
                                patterns[i]);
        return 0;
}

int broker_open(void *owner, const struct tools_for *whom, void **ret, struct csn_error *err)
{
        struct tools *tools = owner;
        const struct tools_request *request = whom->request;
        if (check_patterns(request->allow, request->allow_n, "/tools/allow", err) < 0 ||
                check_patterns(request->deny, request->deny_n, "/tools/deny", err) < 0 ||
                check_patterns(request->ask, request->ask_n, "/tools/ask", err) < 0)
                return -err->code;
        struct broker *broker = mem_alloc(sizeof *broker);
        *broker = (struct broker){ .next = tools->brokers,
                .tools = tools,
                .whom = *whom,
                .request = request,
                .again = { .fired = on_again, .owner = broker } };
        tools->brokers = broker;
        if (own_tools_open(broker, &broker->client, err) < 0 || replay_open(request, &broker->replay, err) < 0) {
                broker_close(broker);
                return -err->code;
        }
        *ret = broker;
        return 0;
}

void broker_stop(void *owner)
{
        struct broker *broker = owner;
        for (struct ask *ask = broker->asks, *next; ask; ask = next) {
                next = ask->next;
                cancel(ask);
                release(ask);
                broker->failed += ask->counted;
                tell_log(ask, "given up", 0, (double)(clock_us() - ask->begun_us) / 1000);
                ask_free(ask);
        }
        loop_untimer(broker_loop(broker), &broker->again);
}

void broker_report(void *owner, struct arena *arena, struct tools_used *ret)
{
        const struct broker *broker = owner;
        SET(ret, tools_used, calls, broker->calls);
        SET(ret, tools_used, failed, broker->failed);
        SET(ret, tools_used, refused, broker->refused);
        if (broker->whom.run)
                grant_warn(broker, broker->whom.run);
        broker_report_calls(broker, arena, ret);
}

void broker_close(void *owner)
{
        struct broker *broker = owner;
        broker_stop(broker);
        for (struct broker **at = &broker->tools->brokers; *at; at = &(*at)->next)
                if (*at == broker) {
                        *at = broker->next;
                        break;
                }
        if (broker->client)
                broker->client->kind->close(broker->client);
        replay_close(broker->replay);
        grant_forget(broker);
        arena_done(&broker->kept);
        free(broker);
}
