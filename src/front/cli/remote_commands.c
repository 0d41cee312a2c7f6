/*
 * caisson sandbox, context, mcp, tools, layers, image and volume.  A program of its own, caisson-remote, carries them
 * out: it has the libraries for HTTP and archives, and caisson run starts without these.
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
