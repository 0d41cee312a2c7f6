/* caisson-remote: the table of commands, their arguments, and main. */
#include "front/remote/remote.h"

static const struct {
        const char *command, *name;
        int (*run)(struct remote *remote);
        size_t least, most;
        bool alone;
} commands[] = {
        { "sandbox", "create", remote_create, 0, 0, false },
        { "sandbox", "list", remote_list, 0, 0, false },
        { "sandbox", "exec", remote_exec, 1, 1, false },
        { "sandbox", "shell", remote_exec, 1, 1, false },
        { "sandbox", "cp", remote_copy, 2, 2, false },
        { "sandbox", "logs", remote_logs, 1, 2, false },
        { "sandbox", "pause", remote_change, 1, SIZE_MAX, false },
        { "sandbox", "resume", remote_change, 1, SIZE_MAX, false },
        { "sandbox", "kill", remote_change, 1, SIZE_MAX, false },
        { "context", "create", remote_create_context, 1, 1, false },
        { "context", "list", remote_list_contexts, 0, 1, false },
        { "context", "run", remote_run_context, 1, 2, false },
        { "context", "interrupt", remote_change_context, 1, SIZE_MAX, false },
        { "context", "restart", remote_change_context, 1, SIZE_MAX, false },
        { "context", "close", remote_change_context, 1, SIZE_MAX, false },
        { "tools", "list", remote_list_tools, 0, 1, true },
        { "tools", "describe", remote_describe_tools, 0, 0, true },
        { "tools", "call", remote_call_tool, 1, 2, true },
        { "tools", "check", remote_check_tools, 0, 0, true },
        { "layers", "build", remote_build_layer, 0, SIZE_MAX, false },
        { "layers", "list", remote_list_layers, 0, 0, true },
        { "layers", "show", remote_show_layer, 1, 1, true },
        { "layers", "verify", remote_verify_layers, 0, SIZE_MAX, true },
        { "layers", "remove", remote_remove_layers, 1, SIZE_MAX, true },
        { "layers", "prune", remote_prune_layers, 0, 0, true },
        { "layers", "export", remote_export_layer, 2, 2, true },
        { "layers", "import", remote_import_layer, 1, 1, true },
        { "image", "import", remote_import_image, 1, 1, true },
        { "image", "list", remote_list_images, 0, 0, true },
        { "image", "show", remote_show_image, 1, 1, true },
        { "image", "test", remote_test_image, 1, SIZE_MAX, true },
        { "image", "remove", remote_remove_images, 1, SIZE_MAX, true },
        { "volume", "create", remote_create_volume, 1, 1, false },
        { "volume", "list", remote_list_volumes, 0, 0, false },
        { "volume", "show", remote_show_volume, 1, 1, false },
        { "volume", "remove", remote_remove_volumes, 1, SIZE_MAX, false },
};

static int take_field(struct remote *remote, const struct cli_field *option, const char *text, struct csn_error *err)
{
        const struct { const struct object *object; void *into;
        } rows[] = {
                { &object_sandbox_request, &remote->sandbox },
                { &object_limits, &remote->sandbox.limits },
                { &object_tools_request, &remote->sandbox.tools },
                { &object_process_request, &remote->process },
                { &object_context_request, &remote->context },
                { &object_volume_request, &remote->volume },
        };
        if (text && !utf8_valid(text, strlen(text)))
                return err_field(err, option->field->option, "--%s is not valid UTF-8", option->field->option);
        if (option->object == &object_limits)
                MARK(&remote->sandbox, sandbox_request, limits);
        if (option->object == &object_tools_request)
                MARK(&remote->sandbox, sandbox_request, tools);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].object == option->object)
                        return cli_set_field(option, rows[i].into, text, &remote->arena, err);
        return 0;
}

static void take_setting(struct cli_settings *from, bool is_file, const char *text)
{
        if (is_file)
                from->file = text;
        else if (from->flags_n + 1 < ARRAY_LEN(from->flags))
                from->flags[from->flags_n++] = text;
}

#define TABLE 1000
#define PLAIN (1 * TABLE)
#define FIELDS (2 * TABLE)
#define CONFIG (3 * TABLE)
#define ARGUMENT 1                 /* getopt_long(3) with "-": not an option */

struct options {
        struct option longs[80];
        char shorts[32];
        struct cli_field fields[64];
        size_t fields_n;
};

static void list_options(const struct cli_part *part, struct options *ret)
{
        size_t n = 2;
        *ret = (struct options){ .longs = { { "config", required_argument, NULL, CONFIG },
                                         { "set", required_argument, NULL, CONFIG + 1 } },
                .shorts = "-:" };
        ret->fields_n = part->objects ? cli_fields_of(part->objects, ret->fields, ARRAY_LEN(ret->fields)) : 0;
        for (size_t i = 0; part->options && part->options[i].name; i++) {
                const struct cli_option *option = &part->options[i];
                ret->longs[n++] = (struct option){ option->name, option->argument ? required_argument : no_argument,
                        NULL, PLAIN + (int)i };
                if (option->letter)
                        snprintf(ret->shorts + strlen(ret->shorts), 4, "%c%s", option->letter,
                                option->argument ? ":" : "");
        }
        for (size_t i = 0; i < ret->fields_n; i++) {
                char letter = cli_field_letter(&ret->fields[i]);
                ret->longs[n++] = (struct option){ ret->fields[i].field->option,
                        ret->fields[i].field->kind == KIND_BOOL ? no_argument : required_argument, NULL,
                        FIELDS + (int)i };
                if (letter)
                        snprintf(ret->shorts + strlen(ret->shorts), 4, "%c:", letter);
        }
}

static void take_plain(struct remote *remote, const struct cli_option *option, const char *text)
{
        if (remote->given_n == ARRAY_LEN(remote->given))
                return;
        remote->given[remote->given_n].name = option->name;
        remote->given[remote->given_n++].value = text ? text : "";
}

static int take_option(struct remote *remote, const struct options *options, int opt, struct csn_error *err)
{
        const struct cli_option *plain = remote->part->options;
        size_t at = (size_t)opt % TABLE;
        if (opt >= CONFIG) {
                take_setting(&remote->from, opt == CONFIG, optarg);
                return 0;
        }
        if (opt >= PLAIN && opt < FIELDS)
                take_plain(remote, &plain[at], optarg);
        for (size_t i = 0; opt < PLAIN && plain && plain[i].name; i++)
                if (plain[i].letter == opt)
                        take_plain(remote, &plain[i], optarg);
        for (size_t i = 0; i < options->fields_n && options->fields[i].field; i++)
                if (opt == FIELDS + (int)i || cli_field_letter(&options->fields[i]) == opt)
                        return take_field(remote, &options->fields[i], optarg, err);
        return 0;
}

/*
 * Options may stand on both sides of the first argument; everything from a second argument on, or after --, is the
 * program's own.
 */
static int parse(struct remote *remote, int argc, char **argv, struct csn_error *err)
{
        struct options options;
        list_options(remote->part, &options);
        optind = 0;
        opterr = 0;
        remote->args = arena_alloc(&remote->arena, ((size_t)argc + 1) * sizeof *remote->args);
        for (int opt; (opt = getopt_long(argc, argv, options.shorts, options.longs, NULL)) != -1;) {
                if (opt == '?' || opt == ':') {
                        const char *who =
                                arena_text(&remote->arena, "%s %s", remote->part->command, remote->part->name);
                        return cli_bad_option(who, opt, argv, options.longs, err);
                }
                if (opt != ARGUMENT && take_option(remote, &options, opt, err) < 0)
                        return -err->code;
                if (opt == ARGUMENT && remote->part->program && remote->args_n == 1) {
                        optind--;
                        break;
                }
                if (opt == ARGUMENT)
                        remote->args[remote->args_n++] = optarg;
        }
        for (; optind < argc && !(remote->part->program && remote->args_n); optind++)
                remote->args[remote->args_n++] = argv[optind];
        remote->program = argv + optind;
        remote->program_n = (size_t)(argc - optind);
        return 0;
}

static int run(struct remote *remote, int argc, char **argv)
{
        struct csn_error err;
        size_t i = 0;
        while (strcmp(commands[i].command, remote->part->command) != 0 ||
                strcmp(commands[i].name, remote->part->name) != 0)
                i++;
        if (parse(remote, argc, argv, &err) < 0)
                return cli_fail(&err);
        if (remote->args_n < commands[i].least || remote->args_n > commands[i].most)
                return remote_usage(remote,
                        remote->args_n < commands[i].least ? "arguments are missing: %s" : "too many arguments: %s",
                        remote->part->arguments);
        int status = cli_load_settings(&remote->from, &remote->settings);
        if (status)
                return status;
        status = !commands[i].alone && link_open(&remote->link, &remote->settings, &err) < 0 ? cli_fail(&err)
                                                                                             : commands[i].run(remote);
        link_close(&remote->link);
        settings_done(&remote->settings);
        return status;
}

int remote_main(int argc, char **argv)
{
        struct remote remote = { 0 };
        if (argc > 1 && strcmp(argv[1], "mcp") == 0)
                return remote_mcp(argc - 1, argv + 1);
        if (argc > 1 && strcmp(argv[1], "review") == 0)
                return remote_review(argc - 1, argv + 1);
        for (const struct cli_part *part = cli_parts; argc > 2 && part->name; part++)
                if (strcmp(part->command, argv[1]) == 0 && strcmp(part->name, argv[2]) == 0)
                        remote.part = part;
        if (!remote.part)
                return cli_usage("caisson-remote is started by caisson sandbox, context, mcp, tools, layers, image and volume");
        int status = run(&remote, argc - 2, argv + 2);
        arena_done(&remote.arena);
        return status;
}
