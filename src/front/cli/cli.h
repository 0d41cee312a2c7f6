/*
 * cli: the commands of caisson.
 *
 *   main              the table of commands, and main()
 *   help, completion  texts and scripts that are made of the table
 *   run               run; via_daemon: a run, or checks, by the daemon
 *   check, policy     check, policy; findings, sarif: their output; policy_test: policy test
 *   grade             grade; grade_report: its output
 *   info              doctor, profiles, config, schema, gc, version
 *   top               ps, top, pool
 *   remote_commands   sandbox, context, tools, layers, mcp: they start caisson-remote (front/remote)
 *   trial             selftest, bench
 *   describe, e2b, keys, logs, runs, serve   the commands of these names
 *
 * A command uses the toolkit (front/cli/toolkit) and no other command.
 */
#ifndef FRONT_CLI_CLI_H
#define FRONT_CLI_CLI_H

#include "front/cli/toolkit/toolkit.h"

#define CLI_SERVE_ADDRESS "127.0.0.1:8080"   /* default address of caisson serve */

/* main() of caisson.  Returns the exit status. */
int cli_main(int argc, char **argv);

/* ---- the table of commands ---- */

enum cli_group { GROUP_FIRST, GROUP_PROGRAMS, GROUP_DAEMON, GROUP_SETTINGS, GROUP_ABOUT, GROUPS };

/* A command: one row of the table.  The table ends with name NULL. */
struct cli_command {
        const char *name;
        enum cli_group group;      /* group in the overview */
        const char *arguments;     /* arguments in the usage line */
        const char *text;          /* one sentence */
        const char *example;       /* a shell command line */
        int (*run)(int argc, char **argv);
        const struct cli_option *options;       /* NULL: the few options in `arguments` */
        const struct object *const *objects;    /* objects with fields that are options, too; NULL: none */
};

/* Objects with options: of runs, and of gradings. */
extern const struct object *const cli_run_objects[], *const cli_grade_objects[];

extern const struct cli_option cli_run_options[];   /* options that are no fields of fields.def */
extern const struct cli_option cli_bench_options[], cli_check_options[], cli_config_options[], cli_describe_options[],
        cli_e2b_options[], cli_grade_options[], cli_keys_options[], cli_logs_options[], cli_policy_options[],
        cli_runs_options[], cli_selftest_options[], cli_serve_options[], cli_stats_options[], cli_top_options[],
        cli_gateway_options[];

/* Whether something listens at an address of `caisson serve`: HOST:PORT or unix:/path (serve.c). */
bool cli_is_answered(const char *address);

/* The commands.  Each returns the exit status. */
int cli_run(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_grade(int argc, char **argv);
int cli_describe(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_selftest(int argc, char **argv);
int cli_policy(int argc, char **argv);
int cli_doctor(int argc, char **argv);
/* One line of doctor, by a run of Python (libraries.c). */
struct doctor_check;
void cli_look_at_libraries(const struct settings *settings, struct doctor_check *ret);
/* Lines on volumes and granted devices; returns their number, at most `room`. */
size_t cli_look_at_grants(const struct settings *settings, struct doctor_check *checks, size_t room);
int cli_profiles(int argc, char **argv);
int cli_config(int argc, char **argv);
int cli_schema(int argc, char **argv);
int cli_gc(int argc, char **argv);
int cli_ps(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_pool(int argc, char **argv);
int cli_e2b(int argc, char **argv);
int cli_keys(int argc, char **argv);
int cli_logs(int argc, char **argv);
int cli_stats(int argc, char **argv);
int cli_runs(int argc, char **argv);
int cli_sandbox(int argc, char **argv);
int cli_context(int argc, char **argv);
int cli_tools(int argc, char **argv);
int cli_layers(int argc, char **argv);
int cli_image(int argc, char **argv);
int cli_volume(int argc, char **argv);
int cli_mcp(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_gateway(int argc, char **argv);
int cli_version(int argc, char **argv);

/* ---- texts of the table (help.c, completion.c) ---- */

/* The command with this name, or NULL. */
const struct cli_command *cli_find_command(const struct cli_command *commands, const char *name);
/* Print that there is no such command, with the nearest name.  Returns the exit status. */
int cli_unknown_command(const struct cli_command *commands, const char *typed);

int cli_help(const struct cli_command *commands, int argc, char **argv);
int cli_completion(const struct cli_command *commands, int argc, char **argv);

/* ---- a run by the daemon (via_daemon.c) ---- */

struct cli_transport;

/* Events of such a run, from the loop. */
struct cli_transport_events {
        void (*output)(void *owner, int stream, const void *bytes, size_t len);
        void (*done)(void *owner, const struct run_result *result, json_t *record);
        /* `alone`: nothing has run, so the run may start without the daemon */
        void (*failed)(void *owner, const struct csn_error *error, bool alone);
};

/*
 * Send the request of an unstarted run to the daemon.  `word` is the value of --daemon; NULL: CAISSON_DAEMON's value,
 * or auto.  *ret is NULL if the run should start in this process; then err has the reason.  The request is not changed.
 * Errors: CSN_E_INPUT (unknown word; or the daemon is required and cannot run this request), CSN_E_SYSTEM (the daemon
 * is required and there is none).
 */
int transport_open(struct loop *loop, const char *word, const struct settings *settings,
        const struct cli_settings *from, struct run *run, const struct cli_transport_events *events, void *owner,
        struct cli_transport **ret, struct csn_error *err);
/* The same for checks, sent one after the other.  *ret_there: *ret is open.  Errors: as above. */
struct daemon_query;
int transport_for_checks(const char *word, const struct settings *settings, const struct cli_settings *from,
        struct daemon_query *ret, bool *ret_there, bool *ret_always, struct csn_error *err);
const char *transport_path(const struct cli_transport *transport);
void transport_cancel(struct cli_transport *transport);   /* harmless twice, for NULL, and after the end */
void transport_close(struct cli_transport *transport);    /* not from within its events */

#endif
