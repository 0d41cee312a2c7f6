/*
 * The subcommands of sandbox, context, tools, layers, image and volume, with their options: for the help of caisson,
 * and for caisson-remote.
 */
#include "front/cli/toolkit/toolkit.h"

static const struct cli_option json[] = {
        { "json", 0, NULL, "Print what the daemon says, as JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option exec_options[] = {
        { "interactive", 'i', NULL, "Its standard input is ours; otherwise it is empty.", NULL },
        { "tty", 't', NULL, "It has a terminal: standard input, output and error are one.", NULL },
        { "raw", 0, NULL, "Do not make control characters of the output visible on a terminal.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option logs_options[] = {
        { "follow", 'f', NULL, "Go on with NUMBER, or with the last program, until it ends.", NULL },
        { "raw", 0, NULL, "Do not make control characters of the output visible on a terminal.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option run_options[] = {
        { "code", 'c', "CODE", "The program itself, instead of a file.", NULL },
        { "timeout", 0, "TIME", "Wall-clock time of this execution.", NULL },
        { "json", 'j', NULL, "Print the record as JSON instead of the output.", NULL },
        { "raw", 0, NULL, "Do not make control characters of the output visible on a terminal.", NULL },
        { "quiet", 'q', NULL, "No summary on standard error.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option json_of_tools[] = {
        { "json", 0, NULL, "Print them as JSON, with their schemas.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option tools_for_models[] = {
        { "profile", 0, "NAME", "The profile whose tools are described; otherwise that of the settings.", NULL },
        { "json", 0, NULL, "Print them as JSON, with their schemas.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option call_options[] = {
        { "timeout", 0, "TIME", "How long it may take, whatever its entry says (1min where that says nothing).", NULL },
        { "json", 'j', NULL, "Print a text as JSON too.", NULL },
        { "raw", 0, NULL, "Do not make control characters of the output visible on a terminal.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option json_of_folders[] = {
        { "json", 0, NULL, "Print JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option build_options[] = {
        { "requirements", 'r', "FILE", "Read packages from a requirements file; with hashes a lock.", NULL },
        { "lock", 0, "FILE", "Read packages of Node from a package-lock.json.", NULL },
        { "image", 0, "NAME", "Image of the programs that will have the layer; otherwise the host's own file system.", NULL },
        { "json", 0, NULL, "Print the description of the layer as JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option prune_options[] = {
        { "bytes", 0, "SIZE", "Size of all layers together, instead of packages.cache_bytes; 0: no ceiling.", NULL },
        { "age", 0, "TIME", "Time since the last use of an unpinned layer, instead of packages.cache_ttl.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_option import_options[] = {
        { "name", 'n', "NAME", "Name of the image; otherwise the name of the file up to its first dot.", NULL },
        { "replace", 0, NULL, "Take the name from an image that has it.", NULL },
        { "json", 0, NULL, "Print the description of the image as JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct object *const of_sandbox[] = { &object_sandbox_request, &object_limits, &object_tools_request,
        NULL };
static const struct object *const of_process[] = { &object_process_request, NULL };
static const struct object *const of_context[] = { &object_context_request, NULL };
static const struct object *const of_volume[] = { &object_volume_request, NULL };

const struct cli_part cli_parts[] = {
        { "sandbox", "create", "[OPTIONS]", "Make one, and print its id.", json, of_sandbox, false },
        { "sandbox", "list", "[--json]", "List them.", json, NULL, false },
        { "sandbox", "exec", "[OPTIONS] ID COMMAND ...", "Run a program in one; its exit status is ours.", exec_options,
                of_process, true },
        { "sandbox", "shell", "[OPTIONS] ID [COMMAND ...]", "Run Bash, or another program, at this terminal.", NULL,
                of_process, true },
        { "sandbox", "cp", "FROM TO",
                "Copy a file or a folder; ID:PATH is in a sandbox, - is standard input or output.", NULL, NULL, false },
        { "sandbox", "logs", "[-f] ID [NUMBER]", "Show what its programs printed.", logs_options, NULL, false },
        { "sandbox", "pause", "ID ...", "Everything in it stands still.", NULL, NULL, false },
        { "sandbox", "resume", "ID ...", "It goes on.", NULL, NULL, false },
        { "sandbox", "kill", "ID ...", "End it, with everything in it.", NULL, NULL, false },
        { "context", "create", "[OPTIONS] ID", "Start an interpreter in a sandbox, and print its id.", json, of_context,
                false },
        { "context", "list", "[--json] [ID]", "List the contexts of a sandbox, or of all.", json, NULL, false },
        { "context", "run", "[OPTIONS] ID [FILE | -c CODE | -]", "Execute there; variables last.", run_options, NULL,
                false },
        { "context", "interrupt", "ID ...", "Interrupt what it executes; it lives on.", NULL, NULL, false },
        { "context", "restart", "ID ...", "A new interpreter in its place.", NULL, NULL, false },
        { "context", "close", "ID ...", "End it.", NULL, NULL, false },
        { "tools", "list", "[--json] [SERVER]", "List what the servers of tools in the configuration offer.",
                json_of_tools, NULL, false },
        { "tools", "describe", "[OPTIONS]", "Describe those that code may call with a profile, for a model.",
                tools_for_models, NULL, false },
        { "tools", "call", "[OPTIONS] SERVER.TOOL ['{...}']", "Call one, with arguments as JSON.", call_options, NULL,
                false },
        { "tools", "check", "", "Start every server; the exit status is 1 where one cannot be used.", NULL, NULL,
                false },
        { "layers", "build", "[OPTIONS] [PACKAGE ...]",
                "Let the daemon install packages in a layer, and print its id.", build_options, NULL, false },
        { "layers", "list", "[--json]", "List the layers of packages, oldest use first.", json_of_folders, NULL, false },
        { "layers", "show", "[--json] ID", "Show a layer: what it was made for, and its packages.", json_of_folders, NULL,
                false },
        { "layers", "verify", "[ID ...]",
                "Compare layers, or all, with their hashes; a damaged layer is removed, and the exit status is 1.", NULL,
                NULL, false },
        { "layers", "remove", "ID ...", "Remove layers.", NULL, NULL, false },
        { "layers", "prune", "[OPTIONS]", "Remove expired layers, and the least recently used above the ceiling.",
                prune_options, NULL, false },
        { "layers", "export", "ID FILE", "Write a layer to a tar file with zstd; - is standard output.", NULL, NULL,
                false },
        { "layers", "import", "FILE", "Check a layer of a file, take it, and print its id; - is standard input.", NULL,
                NULL, false },
        { "image", "import", "[OPTIONS] FILE",
                "Make an image of a root file system, docker save output or an OCI layout; - is standard input.",
                import_options, NULL, false },
        { "image", "list", "[--json]", "List the images.", json_of_folders, NULL, false },
        { "image", "show", "[--json] NAME", "Show an image: interpreters, libraries, size.", json_of_folders, NULL, false },
        { "image", "test", "[--json] NAME [LIBRARY ...]",
                "Use the interpreters and libraries of an image; the exit status is 1 where one is missing or fails.",
                json_of_folders, NULL, false },
        { "image", "remove", "NAME ...", "Remove images.", NULL, NULL, false },
        { "volume", "create", "[--size SIZE] NAME", "Make a volume, and print where programs have it.", json, of_volume,
                false },
        { "volume", "list", "[--json]", "List your volumes.", json, NULL, false },
        { "volume", "show", "[--json] NAME", "Show a volume: size and time.", json, NULL, false },
        { "volume", "remove", "NAME ...", "Remove volumes, with all in them.", NULL, NULL, false },
        { NULL, NULL, NULL, NULL, NULL, NULL, false },
};

bool cli_has_parts(const char *command)
{
        const struct cli_part *part = cli_parts;
        while (part->name && strcmp(part->command, command) != 0)
                part++;
        return part->name;
}

const struct cli_option cli_mcp_options[] = {
        { "daemon", 0, "WORD",
                "auto: where none listens one is started; never: one is; always: it has to be there. [auto]",
                &choices_transports },
        { NULL, 0, NULL, NULL, NULL },
};
