/* caisson runs: the audit, and stored records. */
#include "front/cli/cli.h"
#include "store/store.h"

#define DEFAULT_LIMIT 50
#define LIST_MAX (256 * MIB)

const struct cli_option cli_runs_options[] = {
        { "limit", 'n', "N", "How many. [50]", NULL },
        { "before", 0, "ID", "Those older than this run.", NULL },
        { "status", 0, "WORD", "Those that ended like this.", &choices_status },
        { "tenant", 0, "NAME", "Those of a tenant.", NULL },
        { "task-id", 0, "TEXT", "Those of a task of the caller's.", NULL },
        { "user", 0, "TEXT", "Those for a user.", NULL },
        { "json", 'j', NULL, "Print JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

struct runs_cli {
        const struct settings *settings;
        struct store *store;
        struct arena arena;
        struct runs_filter filter;
        bool json;
};

static int take_status(struct runs_cli *cli, const char *value, struct csn_error *err)
{
        struct run_result result = { 0 };
        int rc = model_set_text(&object_run_result, model_field(&object_run_result, "status"), &result, value,
                "--status", &cli->arena, err);
        cli->filter.status = result.status;
        return rc;
}

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct runs_cli *cli = owner;
        struct runs_filter *filter = &cli->filter;
        uint64_t limit = filter->n;
        int rc = 0;
        if (strcmp(name, "json") == 0)
                cli->json = true;
        else if (strcmp(name, "limit") == 0)
                rc = cli_parse_number(name, value, 1, RUNS_LIST_MAX, &limit, err);
        else if (strcmp(name, "before") == 0)
                filter->before = value;
        else if (strcmp(name, "status") == 0)
                rc = take_status(cli, value, err);
        else if (strcmp(name, "tenant") == 0)
                filter->tenant = value;
        else if (strcmp(name, "task-id") == 0)
                filter->task_id = value;
        else
                filter->user = value;
        filter->n = limit;
        return rc;
}

/* ---- a list ---- */

static json_t *text_json(const char *text)
{
        return text[0] ? json_string(text) : json_null();
}

static json_t *run_json(const struct store_run *run)
{
        json_t *boundary = json_loads(run->boundary, 0, NULL);
        return json_pack(
                "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "id",
                run->id, "status", status_name(run->status), "exit_code",
                run->exit_code < 0 ? json_null() : json_integer(run->exit_code), "tenant", text_json(run->tenant),
                "key", text_json(run->key), "task_id", text_json(run->task_id), "user", text_json(run->user),
                "language", run->language, "profile", text_json(run->profile), "policy", text_json(run->policy),
                "code_sha256", run->code_sha256, "verdict", text_json(run->verdict), "started_at",
                cli_json_time(run->started_ms), "finished_at", cli_json_time(run->finished_ms), "wall_ms",
                (json_int_t)run->wall_ms, "cpu_ms", (json_int_t)run->cpu_ms, "memory_peak_bytes",
                (json_int_t)run->memory_peak_bytes, "boundary", boundary ? boundary : json_null(), "trace_id",
                text_json(run->trace_id));
}

static void add_run(struct buf *buf, const struct store_run *run)
{
        char number[40] = "-";
        if (run->exit_code >= 0)
                snprintf(number, sizeof number, "%lld", (long long)run->exit_code);
        cli_add_cell(buf, 36, run->id);
        cli_add_time(buf, run->started_ms);
        cli_add_cell(buf, 21, status_name(run->status));
        buf_printf(buf, "%4s ", number);
        cli_add_cell(buf, 10, run->language);
        cli_add_cell(buf, 12, run->tenant);
        buf_printf(buf, "%7.1fs %7.1fs %7.1fMiB ", (double)run->wall_ms / 1000, (double)run->cpu_ms / 1000,
                   (double)run->memory_peak_bytes / (double)MIB);
        cli_add_cell(buf, 0, run->task_id);
        cli_end_line(buf);
}

static void print_runs(const struct store_run *runs, size_t n, bool as_json)
{
        json_t *json = json_array();
        struct buf buf;
        buf_init(&buf, LIST_MAX);
        buf_printf(&buf, "%-36s %-16s %-21s %4s %-10s %-12s %8s %8s %10s %s\n", "ID", "STARTED", "STATUS", "EXIT",
                "LANGUAGE", "TENANT", "TIME", "CPU", "MEMORY", "TASK");
        for (size_t i = 0; i < n; i++)
                if (as_json)
                        json_array_append_new(json, run_json(&runs[i]));
                else
                        add_run(&buf, &runs[i]);
        if (as_json)
                cli_print_json(json_incref(json));
        else
                fputs(buf.bytes, stdout);
        json_decref(json);
        buf_done(&buf);
}

static int list_runs(struct runs_cli *cli, int argc, char **argv, struct csn_error *err)
{
        struct store_run *runs;
        size_t n;
        cli->filter = (struct runs_filter){ .status = -1, .n = DEFAULT_LIMIT };
        int rc = cli_parse(cli_runs_options, argc, argv, take_option, cli, err);
        if (rc == 0 && optind < argc)
                return err_field(err, "", "runs: unknown argument %.40s; say nothing, or show ID", argv[optind]);
        rc = rc < 0 ? rc : store_open_default(cli->settings, &cli->store, err);
        rc = rc < 0 ? rc : runs_list(cli->store, &cli->filter, &cli->arena, &runs, &n, err);
        if (rc < 0)
                return strcmp(err->field, "before") == 0 ? err_wrap(err, "--before") : rc;
        print_runs(runs, n, cli->json);
        if (!cli->json && !n)
                cli_note(
                        "no run is recorded that fits; a daemon that serves HTTP (caisson serve) records what it runs");
        return 0;
}

/* ---- a run ---- */

/* Print a file and the end of its line.  -1 with errno. */
static int print_file(int fd)
{
        char bytes[64 * KIB];
        ssize_t n;
        while ((n = read(fd, bytes, sizeof bytes)) > 0)
                fwrite(bytes, 1, (size_t)n, stdout);
        putchar('\n');
        return n < 0 ? -1 : 0;
}

static int show_run(struct runs_cli *cli, int argc, char **argv, struct csn_error *err)
{
        struct store_record record = { .fd = -1 };
        if (argc != 3)
                return err_field(err, "", "runs show: say which run, by its id; see caisson runs");
        int rc = store_open_default(cli->settings, &cli->store, err);
        rc = rc < 0 ? rc : runs_record(cli->store, argv[2], "", &cli->arena, &record, err);
        if (rc < 0)
                return rc;
        auto_fd fd = record.fd;
        if (record.text)
                puts(record.text);
        else if (fd < 0)
                return err_field(err, "id", "there is no record of \"%.60s\": it was not kept, or its time is over",
                        argv[2]);
        else if (print_file(fd) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "read the record of %.60s", argv[2]);
        return 0;
}

static int runs(int argc, char **argv, const struct settings *settings)
{
        struct runs_cli cli = { .settings = settings };
        struct csn_error err = { 0 };
        bool one = argc > 1 && strcmp(argv[1], "show") == 0;
        (one ? show_run : list_runs)(&cli, argc, argv, &err);
        store_close(cli.store);
        arena_done(&cli.arena);
        return err.code ? cli_fail(&err) : 0;
}

int cli_runs(int argc, char **argv)
{
        return cli_with_settings(argc, argv, runs);
}
