/* caisson keys: access to the daemon, and its quotas. */
#include "front/cli/cli.h"
#include "store/store.h"

#define CENTURY_MS (36500ULL * 24 * 3600 * 1000)
#define LIST_MAX (64 * MIB)

const struct cli_option cli_keys_options[] = {
        { "name", 0, "TEXT", "create: for whom or for what the key is.", NULL },
        { "tenant", 0, "NAME", "create: whose runs it sees; keys of one tenant share everything. [default]", NULL },
        { "scopes", 0, "WORDS",
                "create: what it may do, of run, check, read, files, sandboxes, tools, metrics, admin. [run,check,read]",
                NULL },
        { "expires", 0, "TIME", "create: how long it is valid, such as 30d; for ever without.", NULL },
        { "running", 0, "N", "create: its runs that may go on at once.", NULL },
        { "queued", 0, "N", "create: its runs that may wait.", NULL },
        { "cpu-per-day", 0, "TIME", "create: CPU time of its tenant within 24 hours, of runs and in sandboxes.", NULL },
        { "stored", 0, "SIZE", "create: bytes of records, files and workspaces of its tenant that are kept.", NULL },
        { "review-budget", 0, "USD", "create: what reviews by models may cost for it, in US dollars, such as 2.50.", NULL },
        { "json", 'j', NULL, "Print JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

struct keys_cli {
        const struct settings *settings;
        struct store *store;
        struct arena arena;
        struct store_key key;
        uint64_t valid_ms;         /* 0: for ever */
        bool json;
};

/* ---- options of create ---- */

static int take_duration(const char *name, const char *value, uint64_t *ret, struct csn_error *err)
{
        uint64_t ms;
        if (!duration_parse(value, &ms) || ms == 0 || ms > CENTURY_MS)
                return err_field(err, name,
                        "--%s is \"%.60s\"; it has to be a time such as 90min, 12h or 30d, up to 36500d", name, value);
        *ret = ms;
        return 0;
}

static int take_size(const char *name, const char *value, uint64_t *ret, struct csn_error *err)
{
        uint64_t bytes;
        if (!size_parse(value, &bytes) || bytes == 0 || bytes > INT64_MAX)
                return err_field(err, name, "--%s is \"%.60s\"; it has to be a size such as 64MiB or 1GiB", name,
                        value);
        *ret = bytes;
        return 0;
}

static int take_budget(const char *value, uint64_t *ret_nanousd, struct csn_error *err)
{
        uint64_t nanousd;
        if (!usd_parse(value, &nanousd) || nanousd == 0)
                return err_field(err, "review-budget",
                        "--review-budget is \"%.60s\"; it has to be a number of US dollars above 0, such as 2.50, up to "
                        "1000000",
                        value);
        *ret_nanousd = nanousd;
        return 0;
}

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct keys_cli *cli = owner;
        struct store_key *key = &cli->key;
        if (strcmp(name, "json") == 0)
                cli->json = true;
        else if (strcmp(name, "name") == 0)
                key->name = arena_text(&cli->arena, "%s", value);
        else if (strcmp(name, "tenant") == 0)
                key->tenant = arena_text(&cli->arena, "%s", value);
        else if (strcmp(name, "scopes") == 0)
                return scopes_parse(value, &key->scopes, err) < 0 ? err_wrap(err, "--scopes is \"%.60s\"", value) : 0;
        else if (strcmp(name, "expires") == 0)
                return take_duration(name, value, &cli->valid_ms, err);
        else if (strcmp(name, "running") == 0)
                return cli_parse_number(name, value, 1, 1000000, &key->running_max, err);
        else if (strcmp(name, "queued") == 0)
                return cli_parse_number(name, value, 1, 1000000, &key->queued_max, err);
        else if (strcmp(name, "review-budget") == 0)
                return take_budget(value, &key->review_budget_nanousd, err);
        else if (strcmp(name, "cpu-per-day") == 0)
                return take_duration(name, value, &key->cpu_ms_per_day, err);
        else
                return take_size(name, value, &key->stored_bytes, err);
        return 0;
}

/* ---- keys as JSON and as a table ---- */

static json_t *scopes_json(unsigned scopes)
{
        json_t *list = json_array();
        for (size_t i = 0; scope_name(i); i++)
                if (scopes & 1U << i)
                        json_array_append_new(list, json_string(scope_name(i)));
        return list;
}

static json_t *budget_json(uint64_t nanousd)
{
        char text[40];
        usd_print(nanousd, 9, text, sizeof text);
        return nanousd ? json_string(text) : json_null();
}

static json_t *key_json(const struct store_key *key)
{
        return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o}", "id", key->id, "name",
                key->name, "tenant", key->tenant, "scopes", scopes_json(key->scopes), "created_at",
                cli_json_time(key->created_ms), "expires_at", cli_json_time(key->expires_ms), "used_at",
                cli_json_time(key->used_ms), "revoked_at", cli_json_time(key->revoked_ms), "running_max",
                (json_int_t)key->running_max, "queued_max", (json_int_t)key->queued_max, "cpu_ms_per_day",
                (json_int_t)key->cpu_ms_per_day, "stored_bytes", (json_int_t)key->stored_bytes, "review_budget_usd",
                budget_json(key->review_budget_nanousd));
}

static void add_key(struct buf *buf, const struct store_key *key)
{
        char scopes[KEY_SCOPES_MAX];
        scopes_print(key->scopes, scopes, sizeof scopes);
        cli_add_cell(buf, 16, key->id);
        cli_add_cell(buf, 20, key->name);
        cli_add_cell(buf, 12, key->tenant);
        cli_add_cell(buf, 14, scopes);
        cli_add_time(buf, key->created_ms);
        cli_add_time(buf, key->expires_ms);
        cli_add_time(buf, key->used_ms);
        cli_add_time(buf, key->revoked_ms);
        cli_end_line(buf);
}

/* ---- commands ---- */

static int create_key(struct keys_cli *cli, int argc, char **argv, struct csn_error *err)
{
        static char create_name[] = "keys create", default_tenant[] = "default";
        char text[KEY_TEXT_MAX];
        cli->key = (struct store_key){ .tenant = default_tenant, .scopes = SCOPE_RUN | SCOPE_CHECK | SCOPE_READ };
        argv[0] = create_name;
        int rc = cli_parse(cli_keys_options, argc, argv, take_option, cli, err);
        if (rc == 0 && optind < argc)
                return err_field(err, "", "keys create: unknown argument %.40s; see caisson help keys", argv[optind]);
        if (rc == 0 && !cli->key.name)
                return err_field(err, "name", "keys create: say with --name for whom or for what the key is");
        if (rc < 0)
                return rc;
        cli->key.expires_ms = cli->valid_ms ? time_now_ms() + (int64_t)cli->valid_ms : 0;
        rc = store_open_default(cli->settings, &cli->store, err);
        rc = rc < 0 ? rc : keys_add(cli->store, &cli->key, text, err);
        if (rc < 0)
                return err->field[0] ? err_wrap(err, "--%s", err->field) : rc;
        if (cli->json) {
                json_t *json = key_json(&cli->key);
                json_object_set_new(json, "key", json_string(text));
                cli_print_json(json);
        } else {
                puts(text);
        }
        explicit_bzero(text, sizeof text);
        if (fflush(stdout) != 0)
                return err_set(err, CSN_E_SYSTEM, errno,
                        "the key cannot be written, and is of no use: caisson keys revoke %s", cli->key.id);
        fprintf(stderr, "caisson: store this key now: it is not shown again, and it is in no file\n");
        return 0;
}

static int list_keys(struct keys_cli *cli, int argc, char **argv, struct csn_error *err)
{
        struct store_key *keys;
        struct buf buf;
        size_t n;
        if (argc > 1)
                return err_field(err, "", "keys list: unknown argument %.40s; see caisson help keys", argv[1]);
        int rc = store_open_default(cli->settings, &cli->store, err);
        rc = rc < 0 ? rc : keys_list(cli->store, &cli->arena, &keys, &n, err);
        if (rc < 0)
                return rc;
        json_t *json = json_array();
        buf_init(&buf, LIST_MAX);
        buf_printf(&buf, "%-16s %-20s %-12s %-14s %-16s %-16s %-16s %s\n", "ID", "NAME", "TENANT", "SCOPES", "CREATED",
                "EXPIRES", "USED", "REVOKED");
        for (size_t i = 0; i < n; i++)
                if (cli->json)
                        json_array_append_new(json, key_json(&keys[i]));
                else
                        add_key(&buf, &keys[i]);
        if (cli->json)
                cli_print_json(json_incref(json));
        else
                fputs(buf.bytes, stdout);
        if (!cli->json && !n)
                cli_note("there are no keys; caisson keys create --name NAME makes one");
        json_decref(json);
        buf_done(&buf);
        return 0;
}

static int revoke_key(struct keys_cli *cli, int argc, char **argv, struct csn_error *err)
{
        if (argc != 2)
                return err_field(err, "", "keys revoke: say which key, by its id; see caisson keys list");
        int rc = store_open_default(cli->settings, &cli->store, err);
        return rc < 0 ? rc : keys_revoke(cli->store, argv[1], err);
}

static int keys(int argc, char **argv, const struct settings *settings)
{
        static const struct {
                const char *name;
                int (*run)(struct keys_cli *cli, int argc, char **argv, struct csn_error *err);
        } commands[] = {
                { "create", create_key },
                { "list", list_keys },
                { "revoke", revoke_key },
        };
        struct keys_cli cli = { .settings = settings };
        struct csn_error err = { 0 };
        size_t i = 0;
        while (argc > 1 && i < ARRAY_LEN(commands) && strcmp(commands[i].name, argv[1]) != 0)
                i++;
        if (argc < 2 || i == ARRAY_LEN(commands))
                return cli_usage_of("keys", "give a subcommand: create, list or revoke ID");
        if (i > 0)
                cli.json = cli_has_flag(&argc, argv, "--json") || cli_has_flag(&argc, argv, "-j");
        commands[i].run(&cli, argc - 1, argv + 1, &err);
        store_close(cli.store);
        arena_done(&cli.arena);
        return err.code ? cli_fail(&err) : 0;
}

int cli_keys(int argc, char **argv)
{
        return cli_with_settings(argc, argv, keys);
}
