/*
 * Commands of other programs, since caisson run starts without the libraries for HTTP and archives: caisson-remote
 * carries out sandbox, context, mcp, tools, layers, image and volume; caisson-gateway is gateway.
 */
#include "front/cli/cli.h"

#include "backend/backend.h"

static int become_remote(int argc, char **argv)
{
        const char **arguments = mem_alloc(((size_t)argc + 2) * sizeof *arguments);
        arguments[0] = "caisson-remote";
        for (int i = 0; i < argc; i++)
                arguments[i + 1] = argv[i];
        execv(backend_remote(), (char *const *)(uintptr_t)arguments);
        fprintf(stderr, "caisson: %s: %s\n", backend_remote(), strerrordesc_np(errno));
        free(arguments);
        return 125;
}

static int unknown_part(const char *command, const char *typed)
{
        struct cli_guess guess = { .typed = typed };
        char text[80], known[200] = "";
        size_t len = 0;
        for (const struct cli_part *part = cli_parts; part->name; part++)
                if (strcmp(part->command, command) == 0 && len < sizeof known) {
                        cli_guess(&guess, part->name);
                        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "", part->name);
                }
        fprintf(stderr, "caisson: %s: there is no command \"%.40s\"%s; there are %s; see caisson help %s\n", command,
                typed, cli_guess_text(&guess, "", text, sizeof text), known, command);
        return 64;
}

static int of_parts(int argc, char **argv)
{
        for (const struct cli_part *part = cli_parts; part->name; part++)
                if (strcmp(part->command, argv[0]) == 0 && strcmp(part->name, argv[1]) == 0)
                        return become_remote(argc, argv);
        return unknown_part(argv[0], argv[1]);
}

int cli_mcp(int argc, char **argv)
{
        return become_remote(argc, argv);
}

int cli_sandbox(int argc, char **argv)
{
        return of_parts(argc, argv);
}

int cli_context(int argc, char **argv)
{
        return of_parts(argc, argv);
}

int cli_tools(int argc, char **argv)
{
        return of_parts(argc, argv);
}

int cli_layers(int argc, char **argv)
{
        return of_parts(argc, argv);
}

int cli_image(int argc, char **argv)
{
        return of_parts(argc, argv);
}

int cli_volume(int argc, char **argv)
{
        return of_parts(argc, argv);
}

/* ---- gateway ---- */

const struct cli_option cli_gateway_options[] = {
        { "listen", 0, "ADDRESS", "Where: HOST:PORT, [::1]:PORT or unix:/path. [127.0.0.1:8180]", NULL },
        { "workers", 0, "URL,...", "URLs of workers, such as http://10.0.0.5:8080.", NULL },
        { "key-file", 0, "FILE", "The file with the secret that gateway and workers share.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

struct gateway_cli {
        struct arena arena;
        const char *sets[3];
        size_t sets_n;
};

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct gateway_cli *cli = owner;
        const char *key = strcmp(name, "key-file") == 0 ? "key_file" : name;
        if (cli->sets_n == ARRAY_LEN(cli->sets))
                return err_field(err, "", "--%s is there more than once", name);
        cli->sets[cli->sets_n++] = arena_text(&cli->arena, "gateway.%s=%s", key, value);
        return 0;
}

static int become_gateway(const struct cli_settings *from, const struct gateway_cli *cli)
{
        const char *argv[2 * (ARRAY_LEN(from->flags) + ARRAY_LEN(cli->sets)) + 4] = { "caisson-gateway" };
        size_t n = 1;
        if (from->file) {
                argv[n++] = "--config";
                argv[n++] = from->file;
        }
        for (size_t i = 0; i < from->flags_n + cli->sets_n; i++) {
                argv[n++] = "--set";
                argv[n++] = i < from->flags_n ? from->flags[i] : cli->sets[i - from->flags_n];
        }
        execv(backend_gateway(), (char *const *)(uintptr_t)argv);
        fprintf(stderr, "caisson: %s: %s\n", backend_gateway(), strerrordesc_np(errno));
        return 125;
}

int cli_gateway(int argc, char **argv)
{
        struct csn_error err;
        struct cli_settings from;
        struct gateway_cli cli = { 0 };
        argc = cli_take_settings(argc, argv, &from);
        if (argc < 0)
                return 64;
        if (cli_parse(cli_gateway_options, argc, argv, take_option, &cli, &err) < 0)
                return cli_fail(&err);
        if (optind < argc)
                return cli_unknown_argument("gateway", cli_gateway_options, argv[optind]);
        int status = become_gateway(&from, &cli);
        arena_done(&cli.arena);
        return status;
}
