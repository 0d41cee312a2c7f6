/* caisson describe: the description of run_code for a model. */
#include "front/cli/cli.h"

#include "backend/backend.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#define FILES_MAX 200
#define TOOLS_BYTES_MAX (64 * MIB)         /* of the description of all tools */

const struct cli_option cli_describe_options[] = {
        { "profile", 0, "NAME", "The profile whose limits, network and policy are told. [engine.profile]", NULL },
        { "format", 'f', "FORMAT", "Text, or the definition of a tool. [text]", &choices_definitions },
        { "file", 0, "NAME", "A file that the program will find. May be given many times.", NULL },
        { "session", 0, "MODE", "What lasts from one run to the next. [the profile's]", &choices_session_mode },
        { NULL, 0, NULL, NULL, NULL },
};

struct describe_cli {
        struct describe about;
        const char *files[FILES_MAX];
        const char *format;
        bool has_session;
        struct cli_settings from;
        json_t *tools;                     /* live, or NULL */
};

static int take_session(struct describe_cli *cli, const char *value, struct csn_error *err)
{
        for (size_t i = 0; i < choices_session_mode.n; i++)
                if (strcmp(choices_session_mode.values[i].text, value) == 0) {
                        cli->about.session = (enum session_mode)i;
                        cli->has_session = true;
                        return 0;
                }
        return err_field(err, "--session", "--session is \"%.40s\"; it has to be none, files or interpreter", value);
}

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct describe_cli *cli = owner;
        if (strcmp(name, "profile") == 0)
                cli->about.profile = value;
        else if (strcmp(name, "format") == 0)
                cli->format = value;
        else if (strcmp(name, "session") == 0)
                return take_session(cli, value, err);
        else if (cli->about.files_n == FILES_MAX)
                return err_field(err, "--file", "more than %d files cannot be told", FILES_MAX);
        else
                cli->files[cli->about.files_n++] = value;
        return 0;
}

/* ---- live tools ---- */

/* The words of caisson-remote tools describe, with the settings of this command. */
static char **words_of(const struct describe_cli *cli, struct arena *arena)
{
        char **words = arena_alloc(arena, (2 * ARRAY_LEN(cli->from.flags) + 10) * sizeof *words);
        size_t n = 0;
        const char *const first[] = { "caisson-remote", "tools", "describe", "--json", "--profile",
                cli->about.profile };
        for (size_t i = 0; i < ARRAY_LEN(first); i++)
                words[n++] = arena_text(arena, "%s", first[i]);
        if (cli->from.file) {
                words[n++] = arena_text(arena, "--config");
                words[n++] = arena_text(arena, "%s", cli->from.file);
        }
        for (size_t i = 0; i < cli->from.flags_n; i++) {
                words[n++] = arena_text(arena, "--set");
                words[n++] = arena_text(arena, "%s", cli->from.flags[i]);
        }
        return words;
}

/* The output of caisson-remote; caisson tools check has the errors discarded here. */
static bool read_output(char **words, struct buf *buf)
{
        posix_spawn_file_actions_t actions;
        int ends[2], status = -1;
        pid_t pid;
        char part[4096];
        ssize_t n;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return false;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        bool begun = posix_spawn(&pid, backend_remote(), &actions, NULL, words, environ) == 0;
        posix_spawn_file_actions_destroy(&actions);
        fd_close(&ends[1]);
        while (begun && (n = read(ends[0], part, sizeof part)) != 0)
                if (n > 0)
                        buf_add(buf, part, (size_t)n);
                else if (errno != EINTR)
                        break;
        fd_close(&ends[0]);
        while (begun && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return begun && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The servers of the configuration are asked if the profile has tools; caisson-remote has the library for servers. */
static void find_tools(const struct settings *settings, struct describe_cli *cli, const struct profile *profile,
        struct arena *arena)
{
        const struct tools_request *tools = &profile->request.tools;
        struct buf buf;
        if ((!tools->enabled && !tools->allow_n) || (!settings->tools && !settings->engine.mcp_file[0]))
                return;
        buf_init(&buf, TOOLS_BYTES_MAX);
        if (read_output(words_of(cli, arena), &buf))
                cli->tools = model_read(buf.bytes, buf.len, 0, NULL);
        cli->about.tools = json_is_array(cli->tools) ? cli->tools : NULL;
        buf_done(&buf);
}

/* ---- the command ---- */

static int take_profile(const struct settings *settings, struct describe_cli *cli, struct arena *arena,
        struct csn_error *err)
{
        struct profile profile;
        if (!cli->about.profile)
                cli->about.profile = settings->engine.profile;
        if (profile_find(settings, cli->about.profile, arena, &profile, err) < 0)
                return -err->code;
        if (!cli->has_session)
                cli->about.session = profile.session;
        find_tools(settings, cli, &profile, arena);
        return 0;
}

static int describe(int argc, char **argv, const struct cli_settings *from, const struct settings *settings)
{
        struct describe_cli cli = { .format = "text", .from = *from };
        struct csn_error err;
        struct arena arena = { 0 };
        struct buf text, out;
        const struct language *added = NULL;
        cli.about.files = cli.files;
        buf_init(&text, 1 * MIB);
        buf_init(&out, 4 * MIB);
        int rc = cli_parse(cli_describe_options, argc, argv, take_option, &cli, &err);
        if (rc == 0 && optind < argc)
                rc = err_field(&err, "", "describe takes options only, and not \"%.60s\"", argv[optind]);
        if (rc == 0)
                rc = take_profile(settings, &cli, &arena, &err);
        if (rc == 0)
                rc = lang_load(settings->engine.languages_dir, &arena, &added, &err);
        if (rc == 0)
                rc = front_describe(settings, added, &cli.about, &text, &err);
        if (rc == 0)
                rc = front_describe_as(settings, &cli.about, cli.format, text.bytes, &out, &err);
        if (rc == 0)
                fputs(out.bytes, stdout);
        buf_done(&text);
        buf_done(&out);
        json_decref(cli.tools);
        arena_done(&arena);
        return rc < 0 ? cli_fail(&err) : 0;
}

int cli_describe(int argc, char **argv)
{
        struct cli_settings from;
        struct settings settings;
        argc = cli_take_settings(argc, argv, &from);
        int status = argc < 0 ? 64 : cli_load_settings(&from, &settings);
        if (status == 0)
                status = describe(argc, argv, &from, &settings);
        if (argc >= 0)
                settings_done(&settings);
        return status;
}
