/* caisson describe: what a model is told of run_code. */
#include "front/cli/cli.h"

#define FILES_MAX 200

const struct cli_option cli_describe_options[] = {
        { "profile", 0, "NAME", "The profile whose limits, network and policy are told. [standard]", NULL },
        { "format", 'f', "FORMAT", "Text, or the definition of a tool. [text]", &choices_definitions },
        { "file", 0, "NAME", "A file that the program will find. May be given many times.", NULL },
        { "session", 0, "MODE", "What lasts from one run to the next. [none]", &choices_session_mode },
        { NULL, 0, NULL, NULL, NULL },
};

struct describe_cli {
        struct describe about;
        const char *files[FILES_MAX];
        const char *format;
};

static int take_session(struct describe_cli *cli, const char *value, struct csn_error *err)
{
        for (size_t i = 0; i < choices_session_mode.n; i++)
                if (strcmp(choices_session_mode.values[i].text, value) == 0) {
                        cli->about.session = (enum session_mode)i;
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

static int describe(int argc, char **argv, const struct settings *settings)
{
        struct describe_cli cli = { .about = { .profile = "standard" }, .format = "text" };
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
                rc = lang_load(settings->engine.languages_dir, &arena, &added, &err);
        if (rc == 0)
                rc = front_describe(settings, added, &cli.about, &text, &err);
        if (rc == 0)
                rc = front_describe_as(cli.format, text.bytes, &out, &err);
        if (rc == 0)
                fputs(out.bytes, stdout);
        buf_done(&text);
        buf_done(&out);
        arena_done(&arena);
        return rc < 0 ? cli_fail(&err) : 0;
}

int cli_describe(int argc, char **argv)
{
        return cli_with_settings(argc, argv, describe);
}
