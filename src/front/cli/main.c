/* The table of commands, and main(). */
#include "front/cli/cli.h"

#include <ctype.h>

/* Both print the table. */
static int completion(int argc, char **argv);
static int help(int argc, char **argv);

static const struct cli_command commands[] = {
        { "run", GROUP_FIRST, "[OPTIONS] [FILE | -c CODE | -] [-- ARGS]", "Run a program in a fresh sandbox.",
                "caisson run -l python -c 'print(6 * 7)'", cli_run, cli_run_options, cli_run_objects },
        { "grade", GROUP_PROGRAMS, "[OPTIONS] FILE | - ...",
                "Grade submissions, one JSON object a line, by cases and test code.",
                "echo '{\"code\": \"f = abs\", \"function\": \"f\", \"cases\": [{\"args\": [-1], \"expected\": 1}]}' | caisson grade -",
                cli_grade, cli_grade_options, cli_grade_objects },
        { "check", GROUP_PROGRAMS, "[OPTIONS] FILE | - ...", "Compare programs with a policy; nothing is run.",
                "caisson check --policy linx -l python -c 'eval(input())'", cli_check, cli_check_options, NULL },
        { "policy", GROUP_PROGRAMS, "list | show NAME | import FILE [NAME] | test NAME [-l LANGUAGE] FILE...",
                "List source policies, show, convert or test one.", "caisson policy show linx", cli_policy,
                cli_policy_options, NULL },
        { "serve", GROUP_FIRST, "[--listen ADDRESS] [--keys]",
                "Start the daemon in the foreground, with its HTTP interface.", "caisson serve --listen 127.0.0.1:8080",
                cli_serve, cli_serve_options, NULL },
        { "gateway", GROUP_DAEMON, "[--listen ADDRESS] [--workers URL,...] [--key-file FILE]",
                "Serve many daemons at one address, from a list or in Kubernetes.",
                "caisson gateway --workers http://10.0.0.5:8080,http://10.0.0.6:8080 --key-file /etc/caisson/gateway.key",
                cli_gateway, cli_gateway_options, NULL },
        { "ps", GROUP_DAEMON, "[--json]", "List the runs of the daemon.", "caisson ps", cli_ps, cli_json_options,
                NULL },
        { "top", GROUP_DAEMON, "[--once] [--json]", "Show runs, queue and pools of the daemon, again each second.",
                "caisson top", cli_top, cli_top_options, NULL },
        { "pool", GROUP_DAEMON, "[--json]", "Show the daemon's pools of warm sandboxes.", "caisson pool", cli_pool,
                cli_json_options, NULL },
        { "keys", GROUP_DAEMON, "create | list | revoke ID [--json]", "Make API keys, list them, revoke one.",
                "caisson keys create --name laptop --scopes run,check,read", cli_keys, cli_keys_options, NULL },
        { "e2b", GROUP_DAEMON, "env [OPTIONS]", "Print the environment by which clients of E2B find the daemon.",
                "eval \"$(caisson e2b env)\"", cli_e2b, cli_e2b_options, NULL },
        { "runs", GROUP_DAEMON, "[OPTIONS] | show ID",
                "List the runs that there were, newest first, or print the record of one.",
                "caisson runs --limit 10 --status failed", cli_runs, cli_runs_options, NULL },
        { "stats", GROUP_DAEMON, "[OPTIONS]", "Show what reviews by models used and cost.", "caisson stats --since 30d",
                cli_stats, cli_stats_options, NULL },
        { "logs", GROUP_DAEMON, "[OPTIONS]", "Show what the daemon has logged.", "caisson logs --level warn", cli_logs,
                cli_logs_options, NULL },
        { "sandbox", GROUP_FIRST, "create | list | exec | shell | cp | logs | ...",
                "Make persistent sandboxes, and work in them.",
                "ID=$(caisson sandbox create) && caisson sandbox exec $ID python3 -c 'print(6 * 7)'", cli_sandbox, NULL,
                NULL },
        { "context", GROUP_PROGRAMS, "create | list | run | interrupt | ...",
                "Run code in interpreters whose variables last.",
                "ID=$(caisson context create $(caisson sandbox create)) && caisson context run $ID -c 'x = 6'",
                cli_context, NULL, NULL },
        { "tools", GROUP_PROGRAMS, "list | call | check", "See and try the tools that code may be given.",
                "caisson tools list", cli_tools, NULL, NULL },
        { "layers", GROUP_PROGRAMS, "build | list | show | verify | remove | ...",
                "Make, see, check, remove and carry layers of packages.", "caisson layers list", cli_layers, NULL, NULL },
        { "image", GROUP_PROGRAMS, "import | list | show | test | remove",
                "Make, see, try and remove images, in which programs can run.", "caisson image list", cli_image, NULL, NULL },
        { "volume", GROUP_DAEMON, "create | list | show | remove",
                "Make, see and remove volumes, which are file systems that outlive programs.",
                "caisson volume list", cli_volume, NULL, NULL },
        { "doctor", GROUP_FIRST, "[--json]", "Say what this host can enforce, and the remedy for what it cannot.",
                "caisson doctor", cli_doctor, cli_json_options, NULL },
        { "selftest", GROUP_ABOUT, "[OPTIONS]", "Run small programs, and compare what comes of them with what should.",
                "caisson selftest", cli_selftest, cli_selftest_options, NULL },
        { "bench", GROUP_ABOUT, "[OPTIONS]", "Measure how long small programs take here.", "caisson bench -n 20",
                cli_bench, cli_bench_options, NULL },
        { "profiles", GROUP_SETTINGS, "list | show NAME | explain NAME [--json]", "List profiles, show what one sets, or say what it means.",
                "caisson profiles show strict", cli_profiles, cli_json_options, NULL },
        { "mcp", GROUP_FIRST, "[--daemon WORD]", "Speak the Model Context Protocol on standard input and output.",
                "caisson mcp --daemon auto", cli_mcp, cli_mcp_options, NULL },
        { "describe", GROUP_PROGRAMS, "[OPTIONS]",
                "Print what a model is told of run_code: what is true of a profile here and now.",
                "caisson describe --format mcp", cli_describe, cli_describe_options, NULL },
        { "config", GROUP_SETTINGS, "show [--json] [--effective]",
                "Show every setting, its value, and where it came from.", "caisson config show --set limits.wall_ms=5s",
                cli_config, cli_config_options, NULL },
        { "schema", GROUP_SETTINGS, "[request | result | NAME]", "Print a JSON Schema.", "caisson schema request",
                cli_schema, NULL, NULL },
        { "gc", GROUP_DAEMON, "", "Remove folders of old runs that were kept for fetching.", "caisson gc", cli_gc, NULL,
                NULL },
        { "completion", GROUP_ABOUT, "bash | zsh | fish", "Print a script that completes this command line.",
                "source <(caisson completion bash)", completion, NULL, NULL },
        { "version", GROUP_ABOUT, "", "Print the version.", "caisson version", cli_version, NULL, NULL },
        { "help", GROUP_ABOUT, "[COMMAND]", "Print this, or what belongs to one command.", "caisson help run", help,
                NULL, NULL },
        { NULL, GROUP_ABOUT, NULL, NULL, NULL, NULL, NULL, NULL },
};

static int completion(int argc, char **argv)
{
        return cli_completion(commands, argc, argv);
}

static int help(int argc, char **argv)
{
        return cli_help(commands, argc, argv);
}

static bool is_help(const char *word)
{
        return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Whether the word may be the first argument of a command, such as `create` of keys. */
static bool takes_word(const char *name, const char *word)
{
        return islower((unsigned char)word[0]) && strlen(word) > 2 &&
                strstr(cli_find_command(commands, name)->arguments, word);
}

/* `caisson COMMAND --help`, and `caisson COMMAND PART --help` for a command with parts. */
static bool asks_for_help(int argc, char **argv)
{
        if (!cli_has_parts(argv[0]))
                return (argc == 2 && is_help(argv[1])) ||
                        (argc == 3 && takes_word(argv[0], argv[1]) && is_help(argv[2]));
        return (argc > 1 && is_help(argv[1])) || (argc > 2 && is_help(argv[2]));
}

int cli_main(int argc, char **argv)
{
        if (argc < 2)
                return cli_help(commands, argc, argv), 64;
        const char *name = is_help(argv[1]) ? "help" : argv[1];
        if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
                name = "version";
        const struct cli_command *command = cli_find_command(commands, name);
        if (!command)
                return cli_unknown_command(commands, argv[1]);
        bool lacks_part = argc == 2 && cli_has_parts(name);
        if (!lacks_part && !asks_for_help(argc - 1, argv + 1))
                return command->run(argc - 1, argv + 1);
        int status = cli_help(commands, 2, (char *[]){ NULL, argv[1], NULL });
        return lacks_part ? 64 : status;
}
