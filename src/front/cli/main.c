/* The command line: the table of commands, and what they share. */
#include "front/cli/cli.h"

#include <stdarg.h>

#define OPTIONS_MAX 127        /* of a command */

/* Of the commands that look for their flags themselves (cli_has_flag). */
static const struct cli_option json_options[] = {
        { "json", 0, NULL, "Print JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option top_options[] = {
        { "once", 0, NULL, "Show it once, and not again each second.", NULL },
        { "json", 0, NULL, "Print it once, as JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option config_options[] = {
        { "json", 0, NULL, "Print JSON.", NULL },
        { "effective", 0, NULL, "What is in force; that is shown in any case.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

const struct cli_command cli_commands[] = {
        { "run", GROUP_FIRST, "[OPTIONS] [FILE | -c CODE | -] [-- ARGS]", "Run a program in a fresh sandbox.", "caisson run -l python -c 'print(6 * 7)'",
          cli_run, cli_run_options, cli_run_objects },
        { "grade", GROUP_PROGRAMS, "[OPTIONS] FILE | - ...", "Grade submissions, one JSON object a line, by cases and test code.",
          "echo '{\"code\": \"f = abs\", \"function\": \"f\", \"cases\": [{\"args\": [-1], \"expected\": 1}]}' | caisson grade -",
          cli_grade, cli_grade_options, cli_grade_objects },
        { "check", GROUP_PROGRAMS, "[OPTIONS] FILE | - ...", "Compare programs with a policy; nothing is run.", "caisson check --policy linx -l python -c 'eval(input())'",
          cli_check, cli_check_options, NULL },
        { "policy", GROUP_PROGRAMS, "list | show NAME | test NAME [-l LANGUAGE] FILE...", "List source policies, show one, or test it.", "caisson policy show linx",
          cli_policy, cli_policy_options, NULL },
        { "serve", GROUP_FIRST, "[--listen ADDRESS] [--keys]", "Start the daemon in the foreground, with its HTTP interface.", "caisson serve --listen 127.0.0.1:8080",
          cli_serve, cli_serve_options, NULL },
        { "ps", GROUP_DAEMON, "[--json]", "List the runs of the daemon.", "caisson ps",
          cli_ps, json_options, NULL },
        { "top", GROUP_DAEMON, "[--once] [--json]", "Show runs, queue and pools of the daemon, again each second.", "caisson top",
          cli_top, top_options, NULL },
        { "pool", GROUP_DAEMON, "[--json]", "Show the daemon's pools of warm sandboxes.", "caisson pool",
          cli_pool, json_options, NULL },
        { "keys", GROUP_DAEMON, "create | list | revoke ID [--json]", "Make API keys, list them, revoke one.", "caisson keys create --name laptop --scopes run,check,read",
          cli_keys, cli_keys_options, NULL },
        { "e2b", GROUP_DAEMON, "env [OPTIONS]", "Print the environment by which clients of E2B find the daemon.", "eval \"$(caisson e2b env)\"",
          cli_e2b, cli_e2b_options, NULL },
        { "runs", GROUP_DAEMON, "[OPTIONS] | show ID", "List the runs that there were, newest first, or print the record of one.", "caisson runs --limit 10 --status failed",
          cli_runs, cli_runs_options, NULL },
        { "logs", GROUP_DAEMON, "[OPTIONS]", "Show what the daemon has logged.", "caisson logs --level warn",
          cli_logs, cli_logs_options, NULL },
        { "sandbox", GROUP_FIRST, "create | list | exec | shell | cp | logs | ...", "Make persistent sandboxes, and work in them.", "ID=$(caisson sandbox create) && caisson sandbox exec $ID python3 -c 'print(6 * 7)'",
          cli_sandbox, NULL, NULL },
        { "context", GROUP_PROGRAMS, "create | list | run | interrupt | ...", "Run code in interpreters whose variables last.", "ID=$(caisson context create $(caisson sandbox create)) && caisson context run $ID -c 'x = 6'",
          cli_context, NULL, NULL },
        { "tools", GROUP_PROGRAMS, "list | call | check", "See and try the tools that code may be given.", "caisson tools list",
          cli_tools, NULL, NULL },
        { "doctor", GROUP_FIRST, "[--json]", "Say what this host can enforce, and the remedy for what it cannot.", "caisson doctor",
          cli_doctor, json_options, NULL },
        { "profiles", GROUP_SETTINGS, "list | show NAME [--json]", "List profiles, or show what one sets.", "caisson profiles show strict",
          cli_profiles, json_options, NULL },
        { "mcp", GROUP_FIRST, "[--daemon WORD]", "Speak the Model Context Protocol on standard input and output.", "caisson mcp --daemon auto",
          cli_mcp, cli_mcp_options, NULL },
        { "describe", GROUP_PROGRAMS, "[OPTIONS]", "Print what a model is told of run_code: what is true of a profile here and now.", "caisson describe --format mcp",
          cli_describe, cli_describe_options, NULL },
        { "config", GROUP_SETTINGS, "show [--json] [--effective]", "Show every setting, its value, and where it came from.", "caisson config show --set limits.wall_ms=5s",
          cli_config, config_options, NULL },
        { "schema", GROUP_SETTINGS, "[request | result | NAME]", "Print a JSON Schema.", "caisson schema request",
          cli_schema, NULL, NULL },
        { "gc", GROUP_DAEMON, "", "Remove folders of old runs that were kept for fetching.", "caisson gc",
          cli_gc, NULL, NULL },
        { "completion", GROUP_ABOUT, "bash | zsh | fish", "Print a script that completes this command line.", "source <(caisson completion bash)",
          cli_completion, NULL, NULL },
        { "version", GROUP_ABOUT, "", "Print the version.", "caisson version",
          cli_version, NULL, NULL },
        { "help", GROUP_ABOUT, "[COMMAND]", "Print this, or what belongs to one command.", "caisson help run",
          cli_help, NULL, NULL },
        { NULL, GROUP_ABOUT, NULL, NULL, NULL, NULL, NULL, NULL },
};

bool cli_colours(FILE *stream)
{
        const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
        return isatty(fileno(stream)) && !(no && no[0]) && !(term && strcmp(term, "dumb") == 0);
}

int cli_fail(const struct csn_error *err)
{
        struct arena arena = { 0 };
        fprintf(stderr, "caisson: %s\n", cli_in_options(err->text, err->field, &arena));
        arena_done(&arena);
        return csn_code_exit(err->code);
}

static void complain(const char *fmt, va_list args, const char *end)
{
        fprintf(stderr, "caisson: ");
        vfprintf(stderr, fmt, args);
        fprintf(stderr, "%s\n", end);
}

int cli_usage(const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        complain(fmt, args, "; see caisson help");
        va_end(args);
        return 64;
}

void cli_note(const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        complain(fmt, args, "");
        va_end(args);
}

/* The value of "--name VALUE" or "--name=VALUE" at argv[i]; *ret_used arguments belong to it. */
static const char *take_value(int argc, char **argv, int i, const char *name, int *ret_used)
{
        size_t len = strlen(name);
        if (strncmp(argv[i], name, len) != 0)
                return NULL;
        if (argv[i][len] == '=') {
                *ret_used = 1;
                return argv[i] + len + 1;
        }
        if (argv[i][len] == 0 && i + 1 < argc) {
                *ret_used = 2;
                return argv[i + 1];
        }
        return NULL;
}

int cli_take_settings(int argc, char **argv, struct cli_settings *ret)
{
        int n = 0;
        *ret = (struct cli_settings){ 0 };
        for (int i = 0; i < argc && argv[i];) {
                int used = 1;
                const char *value;
                if (i + 1 == argc && (strcmp(argv[i], "--config") == 0 || strcmp(argv[i], "--set") == 0))
                        return cli_usage("the option %s needs a value", argv[i]), -1;
                if (strcmp(argv[i], "--") == 0) {
                        while (i < argc)
                                argv[n++] = argv[i++];
                        break;
                }
                if ((value = take_value(argc, argv, i, "--config", &used))) {
                        ret->file = value;
                } else if ((value = take_value(argc, argv, i, "--set", &used))) {
                        if (ret->flags_n + 1 == ARRAY_LEN(ret->flags))
                                return cli_usage("too many --set"), -1;
                        ret->flags[ret->flags_n++] = value;
                } else {
                        argv[n++] = argv[i];
                }
                i += used;
        }
        argv[n] = NULL;
        return n;
}

int cli_load_settings(const struct cli_settings *from, struct settings *ret)
{
        struct csn_error err;
        const struct settings_sources sources = { .file = from->file, .flags = from->flags, .env = environ };
        if (settings_load(&sources, ret, &err) < 0)
                return cli_fail(&err);
        log_set_level((enum log_level)ret->engine.log_level);
        return 0;
}

int cli_parse(const struct cli_option *options, int argc, char **argv,
              int (*take)(void *owner, const char *name, const char *value, struct csn_error *err), void *owner, struct csn_error *err)
{
        struct option longs[OPTIONS_MAX + 1] = { { 0 } };
        char shorts[2 * OPTIONS_MAX + 1] = ":";   /* getopt(3): a missing value is told from an unknown option */
        for (int i = 0; i < OPTIONS_MAX && options[i].name; i++) {
                longs[i] = (struct option){ options[i].name, options[i].argument ? required_argument : no_argument, NULL, 256 + i };
                if (options[i].letter)
                        snprintf(shorts + strlen(shorts), sizeof shorts - strlen(shorts), "%c%s", options[i].letter, options[i].argument ? ":" : "");
        }
        char who[40];
        snprintf(who, sizeof who, "%s", argv[0]);
        optind = 0;
        opterr = 0;
        for (int opt; (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
                int i = opt - 256;
                if (opt == '?' || opt == ':')
                        return cli_bad_option(who, opt, argv, longs, err);
                for (int k = 0; i < 0 && options[k].name; k++)
                        if (options[k].letter == opt)
                                i = k;
                int rc = cli_check_word(&options[i], optarg, err);
                rc = rc < 0 ? rc : take(owner, options[i].name, optarg, err);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* ---- tables ---- */

#define CELL_MAX 64

void cli_add_cell(struct buf *buf, int width, const char *text)
{
        char visible[4 * CELL_MAX + 1];
        size_t len = strlen(text);
        visible[cli_visible(text, len < CELL_MAX ? len : CELL_MAX, visible)] = 0;
        for (char *c = visible; *c; c++)
                *c = strchr("\n\t\r", *c) ? ' ' : *c;
        buf_printf(buf, "%-*s ", width, visible);
}

void cli_end_line(struct buf *buf)
{
        while (buf->len && buf->bytes[buf->len - 1] == ' ')
                buf->bytes[--buf->len] = 0;
        buf_add(buf, "\n", 1);
}

static bool asks_for_help(const char *word)
{
        return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int cli_main(int argc, char **argv)
{
        if (argc < 2)
                return cli_help(argc, argv), 64;
        const char *name = asks_for_help(argv[1]) ? "help" : argv[1];
        if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
                name = "version";
        const struct cli_command *command = cli_find_command(name);
        if (!command)
                return cli_unknown_command(argv[1]);
        if (argc == 3 && asks_for_help(argv[2]))
                return cli_help(2, (char *[]){ argv[2], argv[1], NULL });
        return command->run(argc - 1, argv + 1);
}
