/*
 * A program of this host as a tool.
 *
 * There is no shell.  The configuration fixes the program and its arguments; a value replaces one whole argument.  A
 * value that begins with "-" would be read as an option, so it is refused where an operand is meant.
 */
#include "tools/sources/defined.h"

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#define INPUT_MAX (16 * MIB)
#define ERRORS_MAX (16 * KIB)              /* bytes kept of standard error: its beginning and its end */
#define CHUNK (64 * 1024)

struct command {
        struct act act;
        struct launched launched;
        struct watch input, output, error, control;
        struct buf given, out;
        struct capture errors;
        size_t sent;
        bool ended;
        int status;
        char how[100];
};

static void unwatch(struct command *command, struct watch *watch)
{
        loop_unwatch(command->act.sources->loop, watch);
}

static void tell(struct command *command)
{
        struct act *act = &command->act;
        struct arena arena = { 0 };
        bool good = command->status >= 0 && WIFEXITED(command->status) && WEXITSTATUS(command->status) == 0;
        size_t len, cut;
        char *errors = capture_text(&command->errors, &arena, &len, &cut);
        len = 0;
        errors = model_utf8(&arena, errors, command->errors.head + command->errors.ring, &len);
        bool text = act_add(act, command->out.len ? command->out.bytes : "", command->out.len, "");
        if (!good) {
                char *whole = arena_text(&arena, "%s%s%.*s", command->how, len ? ": " : "", (int)len, errors);
                act_add(act, whole, strlen(whole), "");
                act->is_error = true;
        }
        act_finish(act, good && !text ? "what the program printed is no text" : NULL);
        arena_done(&arena);
}

/* Why the program cannot start is logged for the administrator and hidden from code in a sandbox. */
static bool has_started(struct command *command)
{
        struct arena arena = { 0 };
        size_t len, cut;
        if (command->status < 0 || !WIFEXITED(command->status) || WEXITSTATUS(command->status) != LAUNCH_NOT_STARTED)
                return true;
        char *text = capture_text(&command->errors, &arena, &len, &cut);
        bool started = len < strlen(LAUNCH_PROBLEM) || memcmp(text, LAUNCH_PROBLEM, strlen(LAUNCH_PROBLEM)) != 0;
        if (!started)
                log_text(LOG_WARN, "tool %s: %.*s", command->act.tool->name, (int)len, text);
        arena_done(&arena);
        return started;
}

/* Finish the call once the program has ended and its output is read. */
static void look(struct command *command)
{
        if (!command->ended || command->output.active || command->error.active)
                return;
        if (has_started(command))
                tell(command);
        else
                act_finish(&command->act, "the program cannot be started; the log says why");
}

static void end(struct command *command)
{
        unwatch(command, &command->input);
        unwatch(command, &command->output);
        unwatch(command, &command->error);
        unwatch(command, &command->control);
        launch_end(&command->launched);
}

static void on_output(struct watch *watch, uint32_t events)
{
        struct command *command = watch->owner;
        static char bytes[CHUNK];
        char text[100];
        (void)events;
        ssize_t n = read(command->launched.output, bytes, sizeof bytes);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                unwatch(command, watch);
                look(command);
        } else if (!buf_add(&command->out, bytes, (size_t)n)) {
                snprintf(text, sizeof text, "the program printed more than %zu bytes", command->out.max);
                end(command);
                act_finish(&command->act, text);
        }
}

static void on_error(struct watch *watch, uint32_t events)
{
        struct command *command = watch->owner;
        char bytes[4096];
        (void)events;
        ssize_t n = read(command->launched.error, bytes, sizeof bytes);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0) {
                capture_add(&command->errors, bytes, (size_t)n);
                return;
        }
        unwatch(command, watch);
        look(command);
}

static void on_input(struct watch *watch, uint32_t events)
{
        struct command *command = watch->owner;
        (void)events;
        ssize_t n = write(command->launched.input, command->given.bytes + command->sent,
                command->given.len - command->sent);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        command->sent += n > 0 ? (size_t)n : 0;
        if (n > 0 && command->sent < command->given.len)
                return;
        unwatch(command, watch);
        fd_close(&command->launched.input);
}

static void on_control(struct watch *watch, uint32_t events)
{
        struct command *command = watch->owner;
        (void)events;
        if (!launch_over(&command->launched, command->how, sizeof command->how, &command->status))
                return;
        unwatch(command, watch);
        command->ended = true;
        look(command);
}

/* ---- start ---- */

static int fill(const struct act *act, struct arena *arena, struct launch_values *values, struct csn_error *err)
{
        const struct defined *tool = act->tool;
        values->n = tool->places_n;
        for (size_t i = 0; i < tool->places_n; i++) {
                const char *name = tool->places[i].argument;
                enum dash dash = tool->places[i].dash;
                struct launch_texts list;
                if (act_arguments(act, name, arena, &list, err) < 0)
                        return -err->code;
                if (list.n > LAUNCH_TEXTS_MAX)
                        return err_set(err, CSN_E_INPUT, 0, "the argument %.60s has more than %d values", name,
                                LAUNCH_TEXTS_MAX);
                for (size_t k = 0; k < list.n; k++)
                        if (list.texts[k][0] == '-' && dash != DASH_ALL && (dash != DASH_FIRST || k > 0))
                                return err_set(err, CSN_E_INPUT, 0,
                                        "the argument %.60s begins with \"-\", and would be an option of the program's",
                                        name);
                values->places[i] = list;
        }
        return 0;
}

static int watch_it(struct command *command, struct csn_error *err)
{
        struct loop *loop = command->act.sources->loop;
        struct launched *launched = &command->launched;
        command->output = (struct watch){ .fd = -1, .ready = on_output, .owner = command };
        command->error = (struct watch){ .fd = -1, .ready = on_error, .owner = command };
        command->control = (struct watch){ .fd = -1, .ready = on_control, .owner = command };
        if (loop_watch(loop, &command->output, launched->output, EPOLLIN, err) < 0 ||
                loop_watch(loop, &command->error, launched->error, EPOLLIN, err) < 0 ||
                loop_watch(loop, &command->control, launched->control, EPOLLIN, err) < 0)
                return -err->code;
        if (!command->given.len)
                fd_close(&launched->input);
        return command->given.len ? loop_watch(loop, &command->input, launched->input, EPOLLOUT, err) : 0;
}

static int command_begin(struct act *act, struct csn_error *err)
{
        struct command *command = (struct command *)act;
        static struct launch_values values;
        struct arena arena = { 0 };
        command->launched = (struct launched)LAUNCHED_NONE;
        command->input = (struct watch){ .fd = -1, .ready = on_input, .owner = command };
        buf_init(&command->out, act->tool->output_bytes);
        buf_init(&command->given, INPUT_MAX);
        capture_init(&command->errors, ERRORS_MAX);
        const char *input = NULL;
        int rc = act->tool->input ? act_argument(act, act->tool->input, &arena, &input, err) : 0;
        if (rc == 0)
                rc = !input || buf_add(&command->given, input, strlen(input))
                        ? 0
                        : err_set(err, CSN_E_INPUT, 0, "the argument %.60s is too long", act->tool->input);
        if (rc == 0 && (rc = fill(act, &arena, &values, err)) == 0 &&
            (rc = launch_start(&act->sources->launcher, act->tool->program, &values, &command->launched, err)) == 0)
                rc = watch_it(command, err);
        arena_done(&arena);
        return rc;
}

static void command_end(struct act *act)
{
        struct command *command = (struct command *)act;
        end(command);
        buf_done(&command->out);
        buf_done(&command->given);
        capture_done(&command->errors);
}

const struct act_kind act_command = { .size = sizeof(struct command), .begin = command_begin, .end = command_end };
