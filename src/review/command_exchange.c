/*
 * A review by review.command: a program of the administrator, started by the tool launcher for each review.  The
 * program reads JSON from standard input and writes JSON to standard output; the end of the exchange ends the program
 * and its descendants.
 */
#include "review/review_private.h"

#include "tools/sources/launcher_client.h"

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#define CHUNK (64 * 1024)
#define ARGUMENTS_MAX 64

struct command_exchange {
        struct review_exchange *exchange;
        struct launched launched;
        struct watch input, output, error, control;
        struct timer late;
        struct buf answer;
        char *body;
        size_t len, sent;
        bool ended;
        int status;
        char how[100];
};

/* ---- the answer ---- */

static void finish(struct command_exchange *command, const char *why)
{
        struct review_exchange *exchange = command->exchange;
        struct review_reply reply = { .why = why, .status = 200, .len = command->answer.len };
        reply.body = command->answer.len ? command->answer.bytes : "";
        exchange->done(exchange, &reply);
}

/* Finish once the program has ended and its output is read.  Standard error is read and dropped. */
static void look(struct command_exchange *command)
{
        char text[200];
        bool good = command->status >= 0 && WIFEXITED(command->status) && WEXITSTATUS(command->status) == 0;
        if (!command->ended || command->output.active)
                return;
        snprintf(text, sizeof text, "review.command failed: %s", command->how);
        finish(command, good ? NULL : text);
}

static void on_output(struct watch *watch, uint32_t events)
{
        struct command_exchange *command = watch->owner;
        static char bytes[CHUNK];
        (void)events;
        ssize_t n = read(command->launched.output, bytes, sizeof bytes);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0 && buf_add(&command->answer, bytes, (size_t)n))
                return;
        loop_unwatch(command->exchange->reviewer->loop, watch);
        if (n > 0)
                finish(command, "review.command printed more than 1 MiB");
        else
                look(command);
}

static void on_error(struct watch *watch, uint32_t events)
{
        struct command_exchange *command = watch->owner;
        char bytes[4096];
        (void)events;
        ssize_t n = read(command->launched.error, bytes, sizeof bytes);
        if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
                return;
        loop_unwatch(command->exchange->reviewer->loop, watch);
}

static void on_input(struct watch *watch, uint32_t events)
{
        struct command_exchange *command = watch->owner;
        (void)events;
        ssize_t n = write(command->launched.input, command->body + command->sent, command->len - command->sent);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        command->sent += n > 0 ? (size_t)n : 0;
        if (n > 0 && command->sent < command->len)
                return;
        loop_unwatch(command->exchange->reviewer->loop, watch);
        fd_close(&command->launched.input);
}

static void on_control(struct watch *watch, uint32_t events)
{
        struct command_exchange *command = watch->owner;
        (void)events;
        if (!launch_over(&command->launched, command->how, sizeof command->how, &command->status))
                return;
        loop_unwatch(command->exchange->reviewer->loop, watch);
        command->ended = true;
        look(command);
}

static void on_late(struct timer *timer)
{
        finish(timer->owner, "review.command gave no answer within review.timeout");
}

static void stop(struct review_exchange *exchange)
{
        struct command_exchange *command = exchange->state;
        struct loop *loop = exchange->reviewer->loop;
        loop_unwatch(loop, &command->input);
        loop_unwatch(loop, &command->output);
        loop_unwatch(loop, &command->error);
        loop_unwatch(loop, &command->control);
        loop_untimer(loop, &command->late);
        launch_end(&command->launched);
        buf_done(&command->answer);
        free(command->body);
        free(command);
}

/* ---- the question ---- */

static int watch_all(struct command_exchange *command, struct csn_error *err)
{
        struct loop *loop = command->exchange->reviewer->loop;
        struct launched *launched = &command->launched;
        command->output = (struct watch){ .fd = -1, .ready = on_output, .owner = command };
        command->error = (struct watch){ .fd = -1, .ready = on_error, .owner = command };
        command->control = (struct watch){ .fd = -1, .ready = on_control, .owner = command };
        command->input = (struct watch){ .fd = -1, .ready = on_input, .owner = command };
        if (loop_watch(loop, &command->output, launched->output, EPOLLIN, err) < 0 ||
                loop_watch(loop, &command->error, launched->error, EPOLLIN, err) < 0 ||
                loop_watch(loop, &command->control, launched->control, EPOLLIN, err) < 0 ||
                loop_watch(loop, &command->input, launched->input, EPOLLOUT, err) < 0)
                return -err->code;
        return 0;
}

int command_exchange_start(struct review_exchange *exchange, char *body, uint64_t timeout_ms, struct csn_error *err)
{
        struct reviewer *reviewer = exchange->reviewer;
        struct command_exchange *command = mem_alloc(sizeof *command);
        *command = (struct command_exchange){ .exchange = exchange,
                .launched = LAUNCHED_NONE,
                .input = { .fd = -1 },
                .output = { .fd = -1 },
                .error = { .fd = -1 },
                .control = { .fd = -1 },
                .late = { .fired = on_late, .owner = command },
                .body = body,
                .len = strlen(body) };
        buf_init(&command->answer, REVIEW_ANSWER_MAX);
        exchange->state = command;
        exchange->stop = stop;
        if (launch_start(reviewer->launcher, 0, NULL, &command->launched, err) < 0 || watch_all(command, err) < 0) {
                review_exchange_stop(exchange);
                return -err->code;
        }
        loop_timer(reviewer->loop, &command->late, timeout_ms * 1000);
        return 0;
}

/* ---- the launcher ---- */

/* Words between blanks; there is no shell. */
static int split(const char *text, struct arena *arena, struct launch_texts *ret, struct csn_error *err)
{
        ret->texts = arena_alloc(arena, ARGUMENTS_MAX * sizeof *ret->texts);
        for (const char *at = text + strspn(text, " \t"); *at; at += strspn(at, " \t")) {
                size_t len = strcspn(at, " \t");
                char *word = arena_text(arena, "%c%.*s", LAUNCH_FIXED, (int)len, at);
                if (ret->n == ARGUMENTS_MAX) {
                        err_field(err, "review.command", "review.command has more than %d words", ARGUMENTS_MAX);
                        return -(err->code = CSN_E_CONFIG);
                }
                ret->texts[ret->n++] = word;
                at += len;
        }
        return 0;
}

int command_prepare(struct reviewer *reviewer, struct csn_error *err)
{
        static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", lang[] = "LANG=C.UTF-8",
                    home[] = "HOME=/";
        char *env[] = { path, lang, home };
        const struct settings *settings = reviewer->settings;
        struct launch_program program = { .folder = "/", .flags = LAUNCH_NETWORK, .env = { env, ARRAY_LEN(env) } };
        struct arena arena = { 0 };
        int rc = split(settings->review.command, &arena, &program.argv, err);
        if (rc == 0)
                rc = launcher_user(&settings->engine, settings->engine.tools_user, LAUNCH_PROGRAMS_MAX, &program, err);
        if (rc == 0) {
                reviewer->launcher = mem_alloc(sizeof *reviewer->launcher);
                reviewer->launcher->sock = -1;
                rc = launcher_start(reviewer->launcher, &program, 1, err);
        }
        arena_done(&arena);
        return rc < 0 ? err_wrap(err, "review.command") : 0;
}
