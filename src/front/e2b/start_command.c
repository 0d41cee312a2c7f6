/* The start command of every sandbox of a template, and its ready check; see command.h. */
#include "front/e2b/command.h"
#include "front/e2b/request.h"

#include <stdio.h>
#include <sys/wait.h>

#define CHECK_EVERY_US 100000
#define READY_MAX_US (120 * 1000000ULL)    /* for the check to succeed, as in E2B's own service by default */

bool start_is_there(const json_t *build_spec)
{
        return e2b_text(build_spec, "start")[0] || e2b_text(build_spec, "ready")[0];
}

/* "sleep 20" is no check of the program. */
static bool only_sleeps(const char *command)
{
        return strncmp(command, "sleep ", 6) == 0 && strspn(command + 6, "0123456789.") == strlen(command + 6);
}

static void tell(struct start *start, const struct csn_error *error)
{
        loop_untimer(start->loop, &start->again);
        loop_untimer(start->loop, &start->deadline);
        if (start->told)
                return;
        start->told = true;
        start->done(start, error);
}

static void on_line(struct build_command *build_command, bool error, const char *text)
{
        struct start *start = build_command->owner;
        start->line(start, error, text);
}

static void hush(struct build_command *build_command, bool error, const char *text)
{
        (void)build_command, (void)error, (void)text;
}

static int run(struct start *start, struct build_command *build_command, const char *command, struct csn_error *err)
{
        int account = account_USER;
        e2b_account(e2b_text(start->build_spec, "user"), &account);
        const struct build_command_what what = { .account = account,
                .folder = e2b_text(start->build_spec, "workdir"),
                .env = json_object_get(start->build_spec, "env"),
                .command = command };
        return build_command_run(start->psandbox, build_command, &what, err);
}

static void check(struct timer *timer)
{
        struct start *start = timer->owner;
        struct csn_error err;
        if (run(start, &start->check, e2b_text(start->build_spec, "ready"), &err) < 0)
                tell(start, &err);
}

static void on_checked(struct build_command *build_command, int status, const struct csn_error *error)
{
        struct start *start = build_command->owner;
        if (error || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
                tell(start, error);
        else
                loop_timer(start->loop, &start->again, CHECK_EVERY_US);
}

/* The program may end with success at any time, but may not fail before it is ready. */
static void on_program_ended(struct build_command *build_command, int status, const struct csn_error *error)
{
        struct start *start = build_command->owner;
        struct csn_error err;
        if (error) {
                tell(start, error);
        } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                err_set(&err, CSN_E_INPUT, 0, "the start command ended with %s %d",
                        WIFEXITED(status) ? "exit status" : "signal",
                        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
                start->line(start, true, err.text);
                tell(start, &err);
        }
}

static void on_late(struct timer *timer)
{
        struct start *start = timer->owner;
        struct csn_error err;
        err_set(&err, CSN_E_INPUT, 0, "the ready command did not succeed within %llu seconds", READY_MAX_US / 1000000);
        tell(start, &err);
}

int start_begin(struct start *start, struct service *service, struct psandbox *psandbox, json_t *build_spec,
                bool whole, struct csn_error *err)
{
        const char *command = e2b_text(build_spec, "start"), *ready = e2b_text(build_spec, "ready");
        bool waits = ready[0] && (whole || !only_sleeps(ready));
        start->psandbox = psandbox;
        start->loop = service->loop;
        start->build_spec = json_incref(build_spec);
        start->told = false;
        start->program = (struct build_command){ .line = on_line, .done = on_program_ended, .owner = start };
        start->check = (struct build_command){ .line = hush, .done = on_checked, .owner = start };
        start->again = (struct timer){ .fired = check, .owner = start };
        start->deadline = (struct timer){ .fired = on_late, .owner = start };
        if (command[0] && run(start, &start->program, command, err) < 0)
                return -err->code;
        if (!waits) {
                tell(start, NULL);
                return 0;
        }
        loop_timer(start->loop, &start->deadline, READY_MAX_US);
        loop_timer(start->loop, &start->again, 0);
        return 0;
}

void start_stop(struct start *start)
{
        if (!start->loop)
                return;
        loop_untimer(start->loop, &start->again);
        loop_untimer(start->loop, &start->deadline);
        build_command_stop(&start->program);
        build_command_stop(&start->check);
        json_decref(start->build_spec);
        start->build_spec = NULL;
        start->loop = NULL;
}
