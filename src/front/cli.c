/* The command line: the table of commands, and what they share. */
#include "front/cli.h"

#include <stdarg.h>

#define OPTIONS_MAX 127        /* of a command */

const struct cli_command cli_commands[] = {
        { "run", "[OPTIONS] [FILE | -c CODE | -] [-- ARGS]", "Run a program in a fresh sandbox.", cli_run, cli_run_options, cli_run_objects },
        { "grade", "[OPTIONS] FILE | - ...", "Grade submissions, one JSON object a line, by cases and test code.", cli_grade, cli_grade_options, cli_grade_objects },
        { "check", "[OPTIONS] FILE | - ...", "Compare programs with a policy; nothing is run.", cli_check, cli_check_options, NULL },
        { "policy", "list | show NAME | test NAME [-l LANGUAGE] FILE...", "List source policies, show one, or test it.", cli_policy, cli_policy_options, NULL },
        { "serve", "[--listen ADDRESS] [--keys]", "Start the daemon in the foreground, with its HTTP interface.", cli_serve, cli_serve_options, NULL },
        { "ps", "[--json]", "List the runs of the daemon.", cli_ps, NULL, NULL },
        { "top", "[--once] [--json]", "Show runs, queue and pools of the daemon, again each second.", cli_top, NULL, NULL },
        { "pool", "[--json]", "Show the daemon's pools of warm sandboxes.", cli_pool, NULL, NULL },
        { "keys", "create | list | revoke ID [--json]", "Make API keys, list them, revoke one.", cli_keys, cli_keys_options, NULL },
        { "e2b", "env [OPTIONS]", "Print the environment by which clients of E2B find the daemon.", cli_e2b, cli_e2b_options, NULL },
        { "runs", "[OPTIONS] | show ID", "List the runs that there were, newest first, or print the record of one.", cli_runs, cli_runs_options, NULL },
        { "logs", "[OPTIONS]", "Show what the daemon has logged.", cli_logs, cli_logs_options, NULL },
        { "sandbox", "create | list | exec | shell | cp | logs | ...", "Make persistent sandboxes, and work in them.", cli_sandbox, NULL, NULL },
        { "context", "create | list | run | interrupt | ...", "Run code in interpreters whose variables last.", cli_context, NULL, NULL },
        { "tools", "list | call | check", "See and try the tools that code may be given.", cli_tools, NULL, NULL },
        { "doctor", "[--json]", "Say what this host can enforce, and the remedy for what it cannot.", cli_doctor, NULL, NULL },
        { "profiles", "list | show NAME [--json]", "List profiles, or show what one sets.", cli_profiles, NULL, NULL },
        { "mcp", "[--daemon WORD]", "Speak the Model Context Protocol on standard input and output.", cli_mcp, cli_mcp_options, NULL },
        { "describe", "[OPTIONS]", "Print what a model is told of run_code: what is true of a profile here and now.", cli_describe, cli_describe_options, NULL },
        { "config", "show [--json] [--effective]", "Show every setting, its value, and where it came from.", cli_config, NULL, NULL },
        { "schema", "[request | result | NAME]", "Print a JSON Schema.", cli_schema, NULL, NULL },
        { "gc", "", "Remove folders of old runs that were kept for fetching.", cli_gc, NULL, NULL },
        { "completion", "bash | zsh | fish", "Print a script that completes this command line.", cli_completion, NULL, NULL },
        { "version", "", "Print the version.", cli_version, NULL, NULL },
        { "help", "[COMMAND]", "Print this, or what belongs to one command.", cli_help, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL },
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

int cli_usage(const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        fprintf(stderr, "caisson: ");
        vfprintf(stderr, fmt, args);
        fprintf(stderr, "; see caisson help\n");
        va_end(args);
        return 64;
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
        char shorts[2 * OPTIONS_MAX] = "";
        for (int i = 0; i < OPTIONS_MAX && options[i].name; i++) {
                longs[i] = (struct option){ options[i].name, options[i].argument ? required_argument : no_argument, NULL, 256 + i };
                if (options[i].letter)
                        snprintf(shorts + strlen(shorts), sizeof shorts - strlen(shorts), "%c%s", options[i].letter, options[i].argument ? ":" : "");
        }
        optind = 0;
        opterr = 0;
        for (int opt; (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
                int i = opt - 256;
                for (int k = 0; i < 0 && opt != '?' && options[k].name; k++)
                        if (options[k].letter == opt)
                                i = k;
                if (i < 0)
                        return err_field(err, "", "%s: there is no option %s, or it needs a value; see caisson help", argv[0],
                                         optind > 0 && argv[optind - 1] ? argv[optind - 1] : "");
                int rc = take(owner, options[i].name, optarg, err);
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

/* ---- help ---- */

static void print_option(const char *name, char letter, const char *argument, const char *text)
{
        char left[80];
        snprintf(left, sizeof left, "  %c%c%s --%s%s%s", letter ? '-' : ' ', letter ? letter : ' ', letter ? "," : " ", name,
                 argument ? " " : "", argument ? argument : "");
        printf("%-34s %s\n", left, text);
}

static const char *argument_of(const struct field *field)
{
        switch (field->kind) {
        case KIND_NUM:
                return strcmp(field->unit, "ms") == 0      ? "TIME"
                       : strcmp(field->unit, "bytes") == 0 ? "SIZE"
                       : strcmp(field->unit, "milli") == 0 ? "CORES"
                                                           : "N";
        case KIND_BOOL:
                return NULL;
        case KIND_PAIRS:
                return "NAME=VALUE";
        case KIND_ENUM:
                return "WORD";
        default:
                return strcmp(field->name, "exports") == 0 ? "GLOB:DIR" : strcmp(field->name, "files") == 0 ? "PATH[:NAME]" : "TEXT";
        }
}

void cli_print_fields(const struct cli_field *fields, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char def[40] = "", text[300];
                if (fields[i].field->kind == KIND_NUM)
                        model_print(fields[i].field, fields[i].field->def, def, sizeof def);
                snprintf(text, sizeof text, "%s%s%s%s", fields[i].field->help, def[0] ? " [" : "", def, def[0] ? "]" : "");
                print_option(fields[i].field->option, cli_field_letter(&fields[i]), argument_of(fields[i].field), text);
        }
}

void cli_print_options(const struct cli_option *options)
{
        for (; options && options->name; options++)
                print_option(options->name, options->letter, options->argument, options->text);
}

static void print_options(const struct cli_command *command)
{
        struct cli_field fields[64];
        if (!command->options)
                return;
        printf("\nOptions of %s:\n", command->name);
        cli_print_options(command->options);
        if (command->objects)
                cli_print_fields(fields, cli_fields_of(command->objects, fields, ARRAY_LEN(fields)));
}

static const struct cli_command *find_command(const char *name)
{
        const struct cli_command *command = cli_commands;
        while (command->name && strcmp(command->name, name) != 0)
                command++;
        return command->name ? command : NULL;
}

int cli_help(int argc, char **argv)
{
        const struct cli_command *one = argc > 1 ? find_command(argv[1]) : NULL;
        if (argc > 1 && !one)
                return cli_usage("there is no command \"%.40s\"", argv[1]);
        if (one) {
                printf("Usage: caisson %s %s\n\n%s\n", one->name, one->arguments, one->text);
        } else {
                printf("caisson - run code that you did not write in a closed sandbox\n\nUsage: caisson COMMAND ...\n\n");
                for (const struct cli_command *command = cli_commands; command->name; command++)
                        printf("  %-11s %-42s %s\n", command->name, command->arguments, command->text);
        }
        for (const struct cli_command *command = cli_commands; command->name; command++)
                if (!one || one == command)
                        print_options(command);
        if (one)
                cli_help_parts(one->name);
        printf("\nOptions of every command:\n");
        print_option("config", 0, "FILE", "The configuration file; see caisson.conf(5).");
        print_option("set", 0, "KEY=VALUE", "One setting; see caisson config show.");
        return 0;
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
        const struct cli_command *command = find_command(name);
        if (!command)
                return cli_usage("there is no command \"%.40s\"", argv[1]);
        if (argc == 3 && asks_for_help(argv[2]))
                return cli_help(2, (char *[]){ argv[2], argv[1], NULL });
        return command->run(argc - 1, argv + 1);
}
