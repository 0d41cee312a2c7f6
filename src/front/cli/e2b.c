/* caisson e2b: the way to the daemon for a client of E2B. */
#include "front/cli/cli.h"
#include "store/store.h"

#include "front/socket/client.h"

#include <ctype.h>

#define KEYLESS "e2b_0000000000000000000000000000000000000000"

const struct cli_option cli_e2b_options[] = {
        { "key", 0, "KEY",
                "A key that there is; without, where keys are needed, one is made, with the scopes sandboxes and read.",
                NULL },
        { "tenant", 0, "NAME", "For whom a key is made. [default]", NULL },
        { "url", 0, "URL", "Where the daemon is reached. [engine.http]", NULL },
        { "domain", 0, "NAME",
                "The domain below which PORT-ID.NAME leads here, for programs in sandboxes that listen: one line more.",
                NULL },
        { NULL, 0, NULL, NULL, NULL },
};

struct e2b_cli {
        const char *key, *tenant, *url, *domain;
        const char *address;       /* where the daemon of the settings listens */
        bool keyless;
        bool has_daemon, has_http;   /* the daemon of the settings answers; its HTTP interface is on */
};

/* The answer of a running daemon counts, else the settings: caisson serve has options of its own. */
static void find_daemon(struct e2b_cli *cli, const struct settings *settings, struct arena *arena)
{
        struct daemon_query daemon_query;
        const char *address = settings->engine.http;
        cli->address = address[0] ? address : CLI_SERVE_ADDRESS;
        cli->keyless = settings->engine.http_keyless || !address[0];
        if (daemon_query_open(&daemon_query, settings) == 0) {
                daemon_query_ask(&daemon_query, FRAME_ASK, NULL, 0);
                if (daemon_query_wait(&daemon_query) == 0) {
                        cli->has_daemon = true;
                        const json_t *http = json_object_get(json_object_get(daemon_query.answer, "daemon"), "http");
                        const char *told = json_string_value(json_object_get(http, "address"));
                        cli->has_http = told;
                        cli->keyless = told ? json_is_true(json_object_get(http, "keyless")) : cli->keyless;
                        cli->address = told ? arena_text(arena, "%s", told) : cli->address;
                }
        }
        daemon_query_close(&daemon_query);
}

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct e2b_cli *cli = owner;
        const struct {
                const char *name, **text;
        } texts[] = { { "key", &cli->key }, { "tenant", &cli->tenant }, { "url", &cli->url },
                { "domain", &cli->domain } };
        (void)err;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                if (strcmp(name, texts[i].name) == 0)
                        *texts[i].text = value;
        return 0;
}

static int url_of(const struct e2b_cli *cli, char *url, size_t size, struct csn_error *err)
{
        const char *address = cli->address;
        size_t len = strlen(address);
        if (!cli->url && (strncmp(address, "unix:", 5) == 0 || (len > 2 && strcmp(address + len - 2, ":0") == 0)))
                return err_field(err, "url",
                        "engine.http is \"%.100s\", which does not say where clients of E2B can reach the daemon; give --url",
                        address);
        snprintf(url, size, "%s%s", cli->url ? "" : "http://", cli->url ? cli->url : address);
        return 0;
}

static int make_key(const struct e2b_cli *cli, const struct settings *settings, char ret_text[static KEY_TEXT_MAX],
        struct csn_error *err)
{
        static char name[] = "e2b";
        struct store *store = NULL;
        struct store_key key = { .name = name,
                .tenant = (char *)(uintptr_t)(cli->tenant ? cli->tenant : "default"),
                .scopes = SCOPE_SANDBOXES | SCOPE_READ };
        int rc = store_open_default(settings, &store, err);
        rc = rc < 0 ? rc : keys_add(store, &key, ret_text, err);
        store_close(store);
        return rc;
}

/* The output is for a shell's eval: a value may be no more than a word. */
static int check_word(const char *option, const char *value, const char *others, struct csn_error *err)
{
        size_t at = strspn(value, others);
        while (isalnum((unsigned char)value[at]))
                at += 1 + strspn(value + at + 1, others);
        return value[at] || !value[0]
                ? err_field(err, option, "--%s is \"%.100s\"; it has letters, digits and %s", option, value, others)
                : 0;
}

/* Clients of a year ago insist on e2b_ and letters of hex, so a key is spelled in this form. */
static int print_env(const struct e2b_cli *cli, const struct settings *settings, struct csn_error *err)
{
        char url[300], made[KEY_TEXT_MAX] = "", hex[2 * KEY_TEXT_MAX + 1] = "";
        bool spelled = cli->key && strncmp(cli->key, "e2b_", 4) == 0, keyless = !cli->key && cli->keyless;
        if (cli->key && !spelled && (strncmp(cli->key, "csn_", 4) != 0 || strlen(cli->key) >= KEY_TEXT_MAX))
                return err_field(err, "key", "--key has to be a key of caisson keys create: csn_...");
        if ((cli->url && check_word("url", cli->url, "-._~:/[]", err) < 0) ||
                (cli->domain && check_word("domain", cli->domain, "-.:", err) < 0) ||
                (spelled && check_word("key", cli->key, "_", err) < 0))
                return -err->code;
        if (cli->url && strncmp(cli->url, "http://", 7) != 0 && strncmp(cli->url, "https://", 8) != 0)
                return err_field(err, "url", "--url is \"%.100s\"; it begins with http:// or https://", cli->url);
        if (url_of(cli, url, sizeof url, err) < 0 || (!cli->key && !keyless && make_key(cli, settings, made, err) < 0))
                return -err->code;
        const char *key = cli->key ? cli->key : made;
        hex_print(key, min_u64(strlen(key), KEY_TEXT_MAX), hex);
        printf("export E2B_API_KEY=%s%s\nexport E2B_API_URL=%s\nexport E2B_SANDBOX_URL=%s\n",
                keyless           ? KEYLESS
                        : spelled ? key
                                  : "e2b_",
                keyless || spelled ? "" : hex, url, url);
        if (cli->domain)
                printf("export E2B_DOMAIN=%s\n", cli->domain);
        explicit_bzero(made, sizeof made);
        explicit_bzero(hex, sizeof hex);
        return 0;
}

/* The lines are printed in any case: a service may begin later. */
static void note_absence(const struct e2b_cli *cli)
{
        if (cli->url || cli->has_http)
                return;
        if (cli->has_daemon)
                cli_note(
                        "the daemon has no HTTP interface, which clients of E2B need; set engine.http, or start caisson serve");
        else if (!cli_is_answered(cli->address))
                cli_note("no daemon answers at %s; caisson serve starts one", cli->address);
}

static int e2b(int argc, char **argv, const struct settings *settings)
{
        static char name[] = "e2b env";
        struct e2b_cli cli = { 0 };
        struct arena arena = { 0 };
        struct csn_error err;
        if (argc < 2 || strcmp(argv[1], "env") != 0)
                return cli_usage_of("e2b", "give a subcommand: env");
        argv[1] = name;
        argv[1] = (char *)(uintptr_t) "e2b env";
        if (cli_parse(cli_e2b_options, argc - 1, argv + 1, take_option, &cli, &err) < 0)
                return cli_fail(&err);
        if (optind < argc - 1)
                return cli_usage_of("e2b", "env: unknown argument %.40s", argv[1 + optind]);
        find_daemon(&cli, settings, &arena);
        int rc = print_env(&cli, settings, &err);
        if (rc == 0)
                note_absence(&cli);
        arena_done(&arena);
        return rc < 0 ? cli_fail(&err) : 0;
}

int cli_e2b(int argc, char **argv)
{
        return cli_with_settings(argc, argv, e2b);
}
