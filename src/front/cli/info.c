/* Informational commands: doctor, profiles, config, schema, version; and gc. */
#include "front/cli/cli.h"

#include "sandbox/sandbox.h"

#include "config.h"

#include <unistd.h>

int cli_version(int argc, char **argv)
{
        (void)argc, (void)argv;
        puts("caisson " VERSION);
        return 0;
}

/* ---- doctor ---- */

static int print_checks(const struct doctor_check *checks, size_t n)
{
        static const struct { const char *word, *colour;
        } states[] = {
                [CHECK_OK] = { "ok", "\033[32m" },
                [CHECK_NOTE] = { "note", "" },
                [CHECK_WEAKER] = { "weaker", "\033[33m" },
                [CHECK_MISSING] = { "missing", "\033[31m" },
        };
        bool colours = cli_colours(stdout);
        int worst = CHECK_OK;
        for (size_t i = 0; i < n; i++) {
                printf("%s%-8s%s %-26s %s\n", colours ? states[checks[i].state].colour : "",
                        states[checks[i].state].word, colours ? "\033[0m" : "", checks[i].name, checks[i].fact);
                if (checks[i].remedy[0])
                        printf("         remedy: %s\n", checks[i].remedy);
                worst = (int)checks[i].state > worst ? (int)checks[i].state : worst;
        }
        puts(worst <= CHECK_NOTE     ? "\nEvery layer can be enforced here."
             : worst == CHECK_WEAKER ? "\nPrograms can be run; what is weaker is named in each record."
                                     : "\nPrograms cannot be run in a sandbox here until what is missing is there.");
        return worst == CHECK_MISSING ? csn_code_exit(CSN_E_UNSUPPORTED) : 0;
}

static void on_tried(void *owner, const struct run_result *result)
{
        struct doctor_check *check = owner;
        bool ran = HAS(result, run_result, boundary);
        const char *why = HAS(result, run_result, error) ? result->error.message : status_name(result->status);
        check->name = "a run";
        check->state = ran && result->status == status_COMPLETED ? CHECK_OK : CHECK_MISSING;
        if (check->state == CHECK_OK)
                snprintf(check->fact, sizeof check->fact, "a program was started in a sandbox, and ended");
        else
                snprintf(check->fact, sizeof check->fact, "%.159s", why);
        if (check->state != CHECK_OK)
                snprintf(check->remedy, sizeof check->remedy,
                        "this is the step of a run that fails here; where a layer above is missing or weaker, begin with that");
}

/* Layers available one by one may still fail together, so a program is run in the normal way. */
static int try_run(const struct settings *settings, struct doctor_check *ret, struct csn_error *err)
{
        static const struct run_events events = { .done = on_tried };
        static char language[] = "bash", code[] = ":", off[] = "off";
        struct engine *engine = NULL;
        int rc = engine_open(settings, &engine, err);
        if (rc == 0) {
                struct run_request *request;
                struct run *run = run_new(engine);
                request = run_request(run);
                run_set_unreviewed(run);
                SET(request, run_request, language, language);
                SET(request, run_request, code, ((struct bytes){ code, strlen(code) }));
                SET(request, run_request, policy, off);
                run_start(run, true, &events, ret);
                while (rc == 0 && !ret->name)
                        rc = engine_step(engine, -1, err);
        }
        engine_close(engine);
        return rc;
}

#define ZYGOTE_US (60 * 1000000ULL)
#define ZYGOTE_LOOK_MS 100

/*
 * Python programs are forked from a started interpreter; without a zygote each program starts its own, which takes
 * longer.
 */
static void try_zygote(const struct settings *settings, struct doctor_check *ret)
{
        struct engine *engine = NULL;
        struct csn_error err;
        uint64_t until = clock_us() + ZYGOTE_US;
        int rc = engine_open(settings, &engine, &err), serves = 0;
        if (rc == 0)
                engine_warm(engine, true);
        while (rc == 0 && serves == 0 && clock_us() < until) {
                rc = engine_step(engine, ZYGOTE_LOOK_MS, &err);
                serves = rc == 0 ? engine_zygote(engine, &err) : 0;
        }
        *ret = (struct doctor_check){ .name = "a Python zygote", .state = serves > 0 ? CHECK_OK : CHECK_WEAKER };
        if (serves > 0)
                snprintf(ret->fact, sizeof ret->fact, "an interpreter waits, from which Python programs are forked");
        else
                snprintf(ret->fact, sizeof ret->fact, "no zygote serves: %.140s",
                        rc < 0 || serves < 0 ? err.text : "it was not ready within a minute");
        if (serves <= 0)
                snprintf(ret->remedy, sizeof ret->remedy,
                        "Python programs run, but each starts an interpreter of its own; the log of caissond has what the zygote said");
        engine_close(engine);
}

/* For the installation of packages the installer has to be in /usr, which sandboxes share. */
static size_t look_at_installers(const struct settings *settings, struct doctor_check *checks, size_t room)
{
        const struct {
                const char *name, *url, *file, *package;
        } rows[] = {
                { "packages of Python", settings->python_packages.index_url, "/usr/lib/python3/dist-packages/pip",
                        "python3-pip" },
                { "packages of Node", settings->node_packages.registry_url, "/usr/bin/npm", "npm" },
        };
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_LEN(rows) && n < room; i++) {
                struct doctor_check *check = &checks[n];
                bool is_there = access(rows[i].file, F_OK) == 0;
                if (!rows[i].url[0])
                        continue;
                *check = (struct doctor_check){ .name = rows[i].name, .state = is_there ? CHECK_OK : CHECK_WEAKER };
                snprintf(check->fact, sizeof check->fact, "%s %s", rows[i].file,
                        is_there ? "installs them in closed sandboxes" : "is not there, so they cannot be installed");
                if (!is_there)
                        snprintf(check->remedy, sizeof check->remedy, "install the package %s", rows[i].package);
                n++;
        }
        return n;
}

static size_t look_at_host(const struct settings *settings, struct doctor_check checks[static CHECKS_MAX])
{
        struct csn_error err;
        size_t n = probe_doctor(checks);
        struct doctor_check *check = &checks[n < CHECKS_MAX ? n : CHECKS_MAX - 1];
        *check = (struct doctor_check){ 0 };
        if (try_run(settings, check, &err) < 0) {
                *check = (struct doctor_check){ .name = "a run", .state = CHECK_MISSING };
                snprintf(check->fact, sizeof check->fact, "%.159s", err.text);
        }
        /* Where no program runs at all there is nothing to say of Python. */
        if (check->state == CHECK_OK && check + 1 < checks + CHECKS_MAX)
                try_zygote(settings, ++check);
        if (check->state != CHECK_MISSING && check + 1 < checks + CHECKS_MAX)
                cli_look_at_libraries(settings, ++check);
        bool runs = check->state != CHECK_MISSING;
        n = (size_t)(check - checks) + 1;
        n += look_at_installers(settings, checks + n, CHECKS_MAX - n);
        return runs ? n + cli_look_at_grants(settings, checks + n, CHECKS_MAX - n) : n;
}

static int doctor(int argc, char **argv, const struct settings *settings)
{
        static const char *const words[] = { "ok", "note", "weaker", "missing" };
        struct doctor_check checks[CHECKS_MAX];
        bool json = cli_has_flag(&argc, argv, "--json");
        if (argc > 1)
                return cli_unknown_argument("doctor", cli_json_options, argv[1]);
        size_t n = look_at_host(settings, checks);
        if (!json)
                return print_checks(checks, n);
        json_t *list = json_array();
        bool missing = false;
        for (size_t i = 0; i < n; i++) {
                missing = missing || checks[i].state == CHECK_MISSING;
                json_array_append_new(list,
                        json_pack("{s:s, s:s, s:s, s:s}", "name", checks[i].name, "state", words[checks[i].state],
                                "fact", checks[i].fact, "remedy", checks[i].remedy));
        }
        cli_print_json(json_pack("{s:b, s:o}", "usable", !missing, "checks", list));
        return missing ? csn_code_exit(CSN_E_UNSUPPORTED) : 0;
}

int cli_doctor(int argc, char **argv)
{
        return cli_with_settings(argc, argv, doctor);
}

/* ---- profiles ---- */

static int list_profiles(const struct settings *settings, bool json)
{
        struct csn_error err;
        json_t *list = front_profiles(settings, &err), *profile;
        size_t i;
        if (!list)
                return cli_fail(&err);
        json_array_foreach(list, i, profile) {
                if (!json)
                        printf("%-18s %s\n", json_string_value(json_object_get(profile, "name")),
                               json_string_value(json_object_get(profile, "description")));
        }
        if (json)
                cli_print_json(json_incref(list));
        json_decref(list);
        return 0;
}

/* The fields set by the profile itself, but for limits, each as JSON. */
static void print_sets(const struct profile *profile)
{
        json_t *sets = model_encode(&object_run_request, &profile->request);
        for (const char *const *name = profile_field_names(); *name; name++) {
                json_t *value = strcmp(*name, "limits") == 0 ? NULL : json_object_get(sets, *name);
                char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
                if (text)
                        printf("  %-22s %s (profile)\n", *name,
                                json_is_string(value) ? json_string_value(value) : text);
                free(text);
        }
        if (profile->has_session)
                printf("  %-22s %s (profile)\n", "session", choices_session_mode.values[profile->session].text);
        json_decref(sets);
}

static void print_limits(const struct profile *profile, const struct run_request *whole)
{
        for (size_t i = 0; i < object_limits.n; i++) {
                const struct field *field = &object_limits.fields[i];
                const void *at = (const char *)&whole->limits + field->at;
                char text[60];
                if (field->kind == KIND_NUM)
                        model_print(field, *(const uint64_t *)at, text, sizeof text);
                else
                        snprintf(text, sizeof text, "%s", field->choices->values[*(const int *)at].text);
                printf("  limits.%-15s %-10s %s%s\n", field->name, text,
                        profile->request.limits.present >> i & 1 ? "(profile) " : "", field->help);
        }
}

/* Fields with a value in each run, set by the profile or not. */
static void print_rest(const struct profile *profile, const struct run_request *whole)
{
        const struct { size_t field; const char *name, *text; } rows[] = {
                { FIELD_run_request_policy, "policy", whole->policy },
                { FIELD_run_request_network, "network", choices_network.values[whole->network].text },
                { FIELD_run_request_landlock, "landlock", choices_need.values[whole->landlock].text },
                { FIELD_run_request_cgroup, "cgroup", choices_cgroup_need.values[whole->cgroup].text },
                { FIELD_run_request_strict_proc, "strict_proc", whole->strict_proc ? "true" : "false" },
                { FIELD_run_request_backend, "backend", whole->backend },
                { FIELD_run_request_format, "format", choices_text_form.values[whole->format].text },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (!(profile->request.present >> rows[i].field & 1))
                        printf("  %-22s %s\n", rows[i].name, rows[i].text ? rows[i].text : "native");
}

static int show_profile(const struct settings *settings, const char *name, bool json)
{
        struct arena arena = { 0 };
        struct profile profile;
        struct csn_error err;
        struct run_request whole;
        int status = front_profile(settings, name, &arena, &profile, &whole, &err) < 0 ? cli_fail(&err) : 0;
        if (status == 0 && json) {
                cli_print_json(model_encode(&object_run_request, &whole));
        } else if (status == 0) {
                printf("%s: %s\n", profile.name, profile.text);
                print_limits(&profile, &whole);
                print_sets(&profile);
                print_rest(&profile, &whole);
        }
        arena_done(&arena);
        return status;
}

static int explain_profile(const struct settings *settings, const char *name)
{
        struct buf buf;
        struct csn_error err;
        buf_init(&buf, 1 * MIB);
        int rc = front_explain(settings, name, &buf, &err);
        if (rc == 0)
                fputs(buf.bytes, stdout);
        buf_done(&buf);
        return rc < 0 ? cli_fail(&err) : 0;
}

static int profiles(int argc, char **argv, const struct settings *settings)
{
        bool json = cli_has_flag(&argc, argv, "--json");
        if (argc == 1 || (argc == 2 && strcmp(argv[1], "list") == 0))
                return list_profiles(settings, json);
        if (argc == 3 && (strcmp(argv[1], "show") == 0 || (strcmp(argv[1], "explain") == 0 && json)))
                return show_profile(settings, argv[2], json);
        if (argc == 3 && strcmp(argv[1], "explain") == 0)
                return explain_profile(settings, argv[2]);
        return cli_usage_of("profiles", "give a subcommand: list, show NAME or explain NAME");
}

int cli_profiles(int argc, char **argv)
{
        return cli_with_settings(argc, argv, profiles);
}

/* ---- config ---- */

const struct cli_option cli_config_options[] = {
        { "json", 0, NULL, "Print JSON.", NULL },
        { "effective", 0, NULL, "What is in force; that is shown in any case.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static int config(int argc, char **argv, const struct settings *settings)
{
        bool json = cli_has_flag(&argc, argv, "--json");
        json_t *list = json_array();
        cli_has_flag(&argc, argv, "--effective");   /* the values in force are always shown */
        if (argc > 2 || (argc == 2 && strcmp(argv[1], "show") != 0 && strcmp(argv[1], "check") != 0)) {
                json_decref(list);
                return cli_usage_of("config", "%s",
                        argc > 2 && strcmp(argv[1], "show") == 0 ? "show takes no name; it prints all settings"
                                                                 : "give a subcommand: show");
        }
        for (size_t i = 0; i < settings->n; i++) {
                const struct setting *setting = &settings->list[i];
                char value[4200];
                settings_value(setting, value, sizeof value);
                if (value[0] && settings_is_secret(setting))
                        snprintf(value, sizeof value, "(not shown)");
                if (json)
                        json_array_append_new(list,
                                json_pack("{s:s, s:s, s:s, s:s}", "key", setting->key, "value", value, "source",
                                        setting->source, "variable", setting->variable));
                else
                        printf("%-26s %-14s %s\n", setting->key, value[0] ? value : "\"\"", setting->source);
        }
        if (json)
                cli_print_json(json_incref(list));
        json_decref(list);
        return 0;
}

int cli_config(int argc, char **argv)
{
        return cli_with_settings(argc, argv, config);
}

/* ---- schema ---- */

int cli_schema(int argc, char **argv)
{
        static const struct object *const objects[] = { &object_run_request, &object_run_result, &object_check_request,
                &object_check_result, &object_grade_request, &object_grade_result, &object_limits, &object_boundary };
        const char *name = argc > 1 ? argv[1] : "result";
        if (strcmp(name, "request") == 0)
                name = "run_request";
        if (strcmp(name, "result") == 0)
                name = "run_result";
        for (size_t i = 0; i < ARRAY_LEN(objects); i++)
                if (strcmp(objects[i]->name, name) == 0) {
                        cli_print_json(model_schema(objects[i]));
                        return 0;
                }
        return cli_usage_of("schema",
                "there is no \"%.40s\"; give request, result, check_request, check_result, grade_request, grade_result, limits or boundary",
                name);
}

/* ---- gc ---- */

static int collect(int argc, char **argv, const struct settings *settings)
{
        if (argc > 1)
                return cli_unknown_argument("gc", NULL, argv[1]);
        size_t n = launch_collect_garbage(settings);
        printf("%zu folder%s removed\n", n, n == 1 ? "" : "s");
        return 0;
}

int cli_gc(int argc, char **argv)
{
        return cli_with_settings(argc, argv, collect);
}
