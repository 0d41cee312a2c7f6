/* caisson stats: use and cost of reviews by models. */
#include "front/cli/cli.h"
#include "front/views/usage_report.h"
#include "store/store.h"

#define REPORT_MAX (16 * MIB)

const struct cli_option cli_stats_options[] = {
        { "by", 0, "WORD", "Sums by component, model or key. [component]", NULL },
        { "since", 0, "TIME", "From a day on, such as 2026-11-01 (UTC), or a time before now, such as 30d.", NULL },
        { "tenant", 0, "NAME", "Those of a tenant.", NULL },
        { "text", 0, NULL, "Print the report as text, which is the default.", NULL },
        { "json", 'j', NULL, "Print JSON.", NULL },
        { "reset", 0, NULL, "Delete the usage, or that of --tenant, after the report.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

struct stats_cli {
        struct usage_question question;
        bool json, reset;
};

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct stats_cli *cli = owner;
        (void)err;
        if (strcmp(name, "by") == 0)
                cli->question.by = value;
        else if (strcmp(name, "since") == 0)
                cli->question.since = value;
        else if (strcmp(name, "tenant") == 0)
                cli->question.tenant = value;
        else if (strcmp(name, "json") == 0)
                cli->json = true;
        else if (strcmp(name, "reset") == 0)
                cli->reset = true;
        else
                cli->json = false;
        return 0;
}

static int print_report(const struct stats_cli *cli, struct store *store, struct csn_error *err)
{
        struct buf buf;
        if (cli->json) {
                json_t *json = front_usage(store, &cli->question, err);
                if (!json)
                        return -err->code;
                cli_print_json(json);
                return 0;
        }
        buf_init(&buf, REPORT_MAX);
        int rc = front_usage_text(store, &cli->question, &buf, err);
        if (rc == 0)
                fwrite(buf.bytes, 1, buf.len, stdout);
        buf_done(&buf);
        return rc;
}

static int stats(int argc, char **argv, const struct settings *settings)
{
        struct stats_cli cli = { .question = { .by = "component", .tenant = "" } };
        struct store *store = NULL;
        struct csn_error err = { 0 };
        int rc = cli_parse(cli_stats_options, argc, argv, take_option, &cli, &err);
        if (rc == 0 && optind < argc)
                return cli_unknown_argument("stats", cli_stats_options, argv[optind]);
        rc = rc < 0 ? rc : store_open_default(settings, &store, &err);
        rc = rc < 0 ? rc : print_report(&cli, store, &err);
        if (rc == 0 && cli.reset)
                rc = usage_reset(store, cli.question.tenant, &err);
        store_close(store);
        return rc < 0 ? cli_fail(&err) : 0;
}

int cli_stats(int argc, char **argv)
{
        return cli_with_settings(argc, argv, stats);
}
