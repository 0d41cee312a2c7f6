/* settings: every setting from every source, what is refused and how, and what becomes of a request. */
#include "model/settings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tap.h"

/* A folder of the test's own, below the current one's build or /tmp. */
static const char *folder(void)
{
        static char path[] = "/tmp/test-settings-XXXXXX";
        static bool made;
        if (!made && mkdtemp(path))
                made = true;
        return path;
}

static const char *file_of(const char *name, const char *text, size_t len)
{
        static char path[200];
        snprintf(path, sizeof path, "%s/%s", folder(), name);
        auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && io_write_all(fd, text, len) == 0);
        return path;
}

/* Load from a file with this text and from these other sources. */
static int load(const char *yaml, char *const *env, const char *const *flags, struct settings *ret,
                struct csn_error *err)
{
        struct settings_sources sources = { .file = file_of("caisson.yaml", yaml, strlen(yaml)),
                                            .env = env,
                                            .flags = flags };
        *err = (struct csn_error){ 0 };
        return settings_load(&sources, ret, err);
}

static const struct setting *find(const struct settings *settings, const char *key)
{
        for (size_t i = 0; i < settings->n; i++)
                if (strcmp(settings->list[i].key, key) == 0)
                        return &settings->list[i];
        return NULL;
}

static bool shows(const struct settings *settings, const char *key, const char *value, const char *source)
{
        char text[5000] = "";
        const struct setting *setting = find(settings, key);
        if (setting)
                settings_value(setting, text, sizeof text);
        bool good = setting && strcmp(text, value) == 0 && strstr(setting->source, source);
        if (!good)
                printf("# %s is \"%s\" from \"%s\", not \"%s\" from \"%s\"\n", key, text,
                       setting ? setting->source : "", value, source);
        return good;
}

/* A file with this text, or these variables, stop the start; all parts are in the explanation. */
static bool refused(const char *yaml, char *const *env, const char *const *flags, const char *part,
                    const char *other)
{
        struct settings settings;
        struct csn_error err;
        int rc = load(yaml, env, flags, &settings, &err);
        bool good = rc == -CSN_E_CONFIG && err.code == CSN_E_CONFIG && strstr(err.text, part) &&
                    strstr(err.text, other);
        if (!good)
                printf("# %d: \"%s\" has no \"%s\" and \"%s\"\n", rc, err.text, part, other);
        settings_done(&settings);
        return good;
}

#define ENV(...) ((char *[]){ __VA_ARGS__, NULL })
#define FLAGS(...) ((const char *[]){ __VA_ARGS__, NULL })

/* Another value than the default, as text that goes into any source. */
static void other_value(const struct setting *setting, char *text, size_t size)
{
        const struct field *field = setting->field;
        if (field->kind == KIND_NUM) {
                /* Not above its ceiling, and not what is there already. */
                uint64_t number = field->def > field->min ? field->def - 1 : field->def + 1;
                if (strncmp(setting->key, "ceilings.", 9) == 0)
                        number = field->max - 1;
                model_print_exact(field, number, text, size);
        } else if (field->kind == KIND_BOOL) {
                snprintf(text, size, "%s", field->def ? "false" : "true");
        } else if (field->kind == KIND_ENUM) {
                snprintf(text, size, "%s", field->choices->values[(field->def + 1) % field->choices->n].text);
        } else {
                /* Text that nearly all settings take; a profile has to exist, an index is an address. */
                bool is_index = strncmp(setting->key, "packages.", 9) == 0 && strstr(setting->key, "_url");
                bool is_module = strcmp(setting->key, "packages.preload") == 0;
                bool is_price = strncmp(setting->key, "review.price.", 13) == 0 && !strstr(setting->key, "file");
                is_index = is_index || strcmp(setting->key, "review.base_url") == 0 ||
                        strcmp(setting->key, "review.url") == 0;
                if (is_price || strcmp(setting->key, "review.temperature") == 0) {
                        snprintf(text, size, "0.5");
                        return;
                }
                snprintf(text, size, "%s", strcmp(setting->key, "engine.profile") == 0 ? "strict" :
                         is_module ? "other" : is_index ? "https://other" : "/other");
        }
}

/* ---- every setting ---- */

static void every_setting_has_a_default_that_its_parser_reads(void)
{
        struct settings settings, again;
        struct csn_error err;
        CHECK(load("", NULL, NULL, &settings, &err) == 0);
        CHECK(settings.n == 2 * object_limits.n - 1 + object_engine_settings.n + object_images_settings.n +
                                    object_gateway_settings.n + object_kubernetes_settings.n +
                                    object_docker_settings.n +
                                    object_volumes_settings.n + object_http_settings.n + object_problems_settings.n +
                                    object_packages_settings.n + object_python_packages_settings.n +
                                    object_sessions_settings.n + object_grading_settings.n +
                                    object_review_settings.n + object_review_price_settings.n +
                                    object_node_packages_settings.n);
        for (size_t i = 0; i < settings.n; i++) {
                char value[5000], def[5000], flag[5100];
                settings_value(&settings.list[i], value, sizeof value);
                settings_default(&settings.list[i], def, sizeof def);
                CHECK(strcmp(value, def) == 0 && strcmp(settings.list[i].source, "default") == 0);
                snprintf(flag, sizeof flag, "%s=%s", settings.list[i].key, value);
                CHECK(load("", NULL, FLAGS(flag), &again, &err) == 0);
                CHECK(shows(&again, settings.list[i].key, value, "flag --set"));
                settings_done(&again);
        }
        settings_done(&settings);
}

/* ---- new ones for a program that runs ---- */

struct changes {
        const struct setting *of[256];
        size_t n;
};

static void note_change(void *owner, const struct setting *setting, const char *was, const char *is)
{
        struct changes *changes = owner;
        CHECK(strcmp(was, is) != 0 && changes->n < ARRAY_LEN(changes->of));
        changes->of[changes->n++] = setting;
}

static bool says(const struct setting *a, const struct setting *b)
{
        char left[SETTING_VALUE_MAX], right[SETTING_VALUE_MAX];
        settings_value(a, left, sizeof left);
        settings_value(b, right, sizeof right);
        return strcmp(left, right) == 0;
}

/* Every setting gets another value: the live ones take it, the others keep theirs, and all are told. */
static void a_reload_takes_what_is_live_and_tells_the_rest(void)
{
        struct settings before, fresh, settings;
        struct csn_error err;
        load("", NULL, NULL, &before, &err);
        for (size_t i = 0; i < before.n; i++) {
                char value[200], flag[300];
                struct changes changes = { .n = 0 };
                other_value(&before.list[i], value, sizeof value);
                snprintf(flag, sizeof flag, "%s=%s", before.list[i].key, value);
                CHECK(load("", NULL, NULL, &settings, &err) == 0 && load("", NULL, FLAGS(flag), &fresh, &err) == 0);
                settings_reload(&settings, &fresh, note_change, &changes);
                bool live = settings_is_live(&settings.list[i]), told = false;
                for (size_t k = 0; k < changes.n; k++)
                        told = told || changes.of[k] == &settings.list[i];
                CHECK(told && says(&settings.list[i], live ? &fresh.list[i] : &before.list[i]));
                CHECK(strcmp(settings.list[i].source, live ? "flag --set" : "default") == 0);
                settings_done(&fresh);   /* nothing of it may be in use now */
                changes.n = 0;
                CHECK(load("", NULL, FLAGS(flag), &fresh, &err) == 0);
                settings_reload(&settings, &fresh, note_change, &changes);
                CHECK(changes.n == !live);
                settings_done(&fresh);
                settings_done(&settings);
        }
        CHECK(settings_is_live(find(&before, "engine.log_level")) && settings_is_live(find(&before, "limits.wall_ms")));
        CHECK(!settings_is_live(find(&before, "engine.http")) && !settings_is_live(find(&before, "engine.uid_first")));
        settings_done(&before);
}

static void every_setting_comes_from_the_file(void)
{
        struct settings settings, changed;
        struct csn_error err;
        load("", NULL, NULL, &settings, &err);
        for (size_t i = 0; i < settings.n; i++) {
                const struct setting *setting = &settings.list[i];
                char value[200], yaml[400];
                other_value(setting, value, sizeof value);
                /* Below the outer section, also for a section within a section: "packages:", "python.index_url:". */
                size_t section = strcspn(setting->key, ".");
                snprintf(yaml, sizeof yaml, "# a comment\n%.*s:\n  %s: %s\n", (int)section, setting->key,
                         setting->key + section + 1, value);
                CHECK(load(yaml, NULL, NULL, &changed, &err) == 0);
                CHECK(shows(&changed, setting->key, value, "/caisson.yaml:3"));
                settings_done(&changed);
        }
        settings_done(&settings);
}

static void every_setting_comes_from_its_variable_and_then_from_a_flag(void)
{
        struct settings settings, changed;
        struct csn_error err;
        load("", NULL, NULL, &settings, &err);
        for (size_t i = 0; i < settings.n; i++) {
                const struct setting *setting = &settings.list[i];
                char value[200], def[200], entry[400], flag[400], source[200];
                other_value(setting, value, sizeof value);
                settings_default(setting, def, sizeof def);
                snprintf(entry, sizeof entry, "%s=%s", setting->variable, value);
                snprintf(flag, sizeof flag, "%s=%s", setting->key, def);
                snprintf(source, sizeof source, "environment %s", setting->variable);
                CHECK(load("", ENV(entry), NULL, &changed, &err) == 0);
                CHECK(shows(&changed, setting->key, value, source));
                settings_done(&changed);
                CHECK(load("", ENV(entry), FLAGS(flag), &changed, &err) == 0);
                CHECK(shows(&changed, setting->key, def, "flag --set"));
                settings_done(&changed);
        }
        settings_done(&settings);
}

static void variables_of_other_systems_keep_their_meaning(void)
{
        static const struct { const char *variable, *text, *key, *value;
        } rows[] = {
                { "CODE_EXECUTION_TIMEOUT", "45", "limits.wall_ms", "45s" },
                { "CODE_EXECUTION_MEMORY_MB", "256", "limits.memory_bytes", "256MiB" },
                { "CODE_EXECUTION_CPU_CORES", "2.0", "limits.cpu_milli", "2000m" },
                { "CODE_EXECUTOR_EXECUTION_TIMEOUT", "30.5", "limits.wall_ms", "30.500s" },
                { "CODE_EXECUTOR_MEMORY_LIMIT", "128Mi", "limits.memory_bytes", "128MiB" },
                { "CODE_EXECUTOR_MEMORY_LIMIT", "1G", "limits.memory_bytes", "1000000000" },
                { "CODE_EXECUTOR_MEMORY_LIMIT", "268435456", "limits.memory_bytes", "256MiB" },
                { "CODE_EXECUTOR_MEMORY_LIMIT", "262144k", "limits.memory_bytes", "250MiB" },
                { "CODE_EXECUTOR_CPU_LIMIT", "500m", "limits.cpu_milli", "500m" },
                { "CODE_EXECUTOR_CPU_LIMIT", "0.5", "limits.cpu_milli", "500m" },
                { "CODE_EXECUTOR_EPHEMERAL_STORAGE_LIMIT", "1Gi", "limits.disk_bytes", "1GiB" },
                { "CODE_EXECUTOR_VERBOSE", "True", "engine.log_level", "debug" },
                { "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318", "engine.otlp_endpoint",
                        "http://127.0.0.1:4318" },
                { "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "4318", "engine.otlp_traces_endpoint", "4318" },
                { "OTEL_EXPORTER_OTLP_HEADERS", "a=1,b=2", "engine.otlp_headers", "a=1,b=2" },
                { "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=1", "engine.otlp_headers", "a=1" },
                { "OTEL_SERVICE_NAME", "judge", "engine.otlp_service", "judge" },
                { "OTEL_SDK_DISABLED", "TRUE", "engine.otlp_disabled", "true" },
                { "DEPENDENCY_CACHE_DIR", "/srv/layers", "packages.cache_dir", "/srv/layers" },
                { "DEPENDENCY_CACHE_TTL_HOURS", "36", "packages.cache_ttl", "129600s" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct settings settings;
                struct csn_error err;
                char entry[200], source[200];
                snprintf(entry, sizeof entry, "%s=%s", rows[i].variable, rows[i].text);
                snprintf(source, sizeof source, "environment %s", rows[i].variable);
                CHECK(load("limits: { wall_ms: 1s, memory_bytes: 64MiB }", ENV(entry), NULL, &settings,
                           &err) == 0);
                CHECK(shows(&settings, rows[i].key, rows[i].value, source));
                bool listed = false;
                for (size_t k = 0; k < ARRAY_LEN(settings.list[0].aliases) && !listed; k++)
                        listed = find(&settings, rows[i].key)->aliases[k] &&
                                 strcmp(find(&settings, rows[i].key)->aliases[k], rows[i].variable) == 0;
                CHECK(listed);
                settings_done(&settings);
        }
        struct settings settings;
        struct csn_error err;
        CHECK(load("", ENV("CODE_EXECUTOR_VERBOSE=false"), NULL, &settings, &err) == 0);
        CHECK(shows(&settings, "engine.log_level", "warn", "default"));
        settings_done(&settings);
        CHECK(refused("", ENV("CODE_EXECUTOR_VERBOSE=very"), NULL, "CODE_EXECUTOR_VERBOSE", "true or false"));
        CHECK(refused("", ENV("CODE_EXECUTION_TIMEOUT=abc"), NULL, "CODE_EXECUTION_TIMEOUT", "\"abc\""));
        CHECK(refused("", ENV("CODE_EXECUTION_MEMORY_MB=1"), NULL, "CODE_EXECUTION_MEMORY_MB",
                      "4MiB to 1TiB"));
}

static void variables_of_opentelemetry_are_as_its_specification_has_them(void)
{
        struct settings settings;
        struct csn_error err;
        char token[400], entry[440];
        memset(token, 'x', sizeof token - 1);
        token[sizeof token - 1] = 0;
        snprintf(entry, sizeof entry, "OTEL_EXPORTER_OTLP_HEADERS=a=%s", token);
        CHECK(load("", ENV(entry), NULL, &settings, &err) == 0);
        CHECK(shows(&settings, "engine.otlp_headers", strchr(entry, '=') + 1,
                "environment OTEL_EXPORTER_OTLP_HEADERS"));
        CHECK(settings_is_secret(find(&settings, "engine.otlp_headers")) &&
                !settings_is_secret(find(&settings, "engine.otlp_endpoint")));
        settings_done(&settings);
        char *both[] = { "OTEL_EXPORTER_OTLP_TRACES_HEADERS=b=2", "OTEL_EXPORTER_OTLP_HEADERS=a=1", NULL };
        CHECK(load("", both, NULL, &settings, &err) == 0);
        CHECK(shows(&settings, "engine.otlp_headers", "b=2", "environment OTEL_EXPORTER_OTLP_TRACES_HEADERS"));
        settings_done(&settings);
        char *empty[] = { "OTEL_SDK_DISABLED=", "OTEL_SERVICE_NAME=", NULL };
        CHECK(load("", empty, NULL, &settings, &err) == 0);
        CHECK(shows(&settings, "engine.otlp_disabled", "false", "default") &&
                shows(&settings, "engine.otlp_service", "caisson", "default"));
        settings_done(&settings);
}

static void the_stronger_source_wins(void)
{
        struct settings settings;
        struct csn_error err;
        char *both[] = { "CODE_EXECUTION_TIMEOUT=20", "CAISSON_LIMITS_WALL_MS=10s", NULL };
        CHECK(load("limits: { wall_ms: 5s }", both, FLAGS("limits.wall_ms=1s"), &settings, &err) == 0);
        CHECK(shows(&settings, "limits.wall_ms", "1s", "flag --set"));
        settings_done(&settings);
        CHECK(load("limits: { wall_ms: 5s }", both, NULL, &settings, &err) == 0);
        CHECK(shows(&settings, "limits.wall_ms", "10s", "environment CAISSON_LIMITS_WALL_MS"));
        settings_done(&settings);
        both[1] = NULL;
        CHECK(load("limits: { wall_ms: 5s }", both, NULL, &settings, &err) == 0);
        CHECK(shows(&settings, "limits.wall_ms", "20s", "environment CODE_EXECUTION_TIMEOUT"));
        settings_done(&settings);
        CHECK(load("limits: { wall_ms: 5000 }", NULL, NULL, &settings, &err) == 0);
        CHECK(shows(&settings, "limits.wall_ms", "5s", "file "));
        settings_done(&settings);
}

static void the_file_is_looked_for_where_it_belongs(void)
{
        struct settings settings;
        struct csn_error err;
        char dir[200], path[300], named[400], xdg[400];
        snprintf(dir, sizeof dir, "%s/caisson", folder());
        mkdir(dir, 0700);
        file_of("caisson/caisson.yaml", "limits: { pids: 7 }", 19);
        snprintf(path, sizeof path, "%s", file_of("named.yaml", "limits: { pids: 8 }", 19));
        snprintf(xdg, sizeof xdg, "XDG_CONFIG_HOME=%s", folder());
        snprintf(named, sizeof named, "CAISSON_CONFIG=%s", path);
        CHECK(settings_load(&(struct settings_sources){ .env = ENV(xdg) }, &settings, &err) == 0);
        CHECK(settings.limits.pids == 7);
        settings_done(&settings);
        CHECK(settings_load(&(struct settings_sources){ .env = ENV(xdg, named) }, &settings, &err) == 0);
        CHECK(settings.limits.pids == 8);
        settings_done(&settings);
        CHECK(settings_load(&(struct settings_sources){ .file = "/nowhere/x.yaml", .env = ENV(named) },
                            &settings, &err) == -CSN_E_CONFIG);
        CHECK(strstr(err.text, "/nowhere/x.yaml") && err.sys == ENOENT);
        settings_done(&settings);
        CHECK(settings_load(&(struct settings_sources){ .env = ENV("CAISSON_CONFIG=/nowhere/y.yaml") },
                            &settings, &err) == -CSN_E_CONFIG);
        settings_done(&settings);
}

/* ---- what is refused ---- */

static void a_wrong_value_stops_the_start_and_is_named(void)
{
        CHECK(refused("limits:\n  wall_ms: soon\n", NULL, NULL, "/caisson.yaml:2: limits.wall_ms is \"soon\"",
                      "1ms to 86400s"));
        CHECK(refused("limits:\n  pids: 0\n", NULL, NULL, "limits.pids is \"0\"", "1 to 100000"));
        CHECK(refused("limits:\n  wall_ms: 1.5\n", NULL, NULL, "limits.wall_ms is \"1.5\"", "1.5s"));
        CHECK(refused("limits:\n  cpu_milli: 0.5\n", NULL, NULL, "limits.cpu_milli", "thousandths"));
        CHECK(refused("", ENV("CAISSON_LIMITS_PIDS=many"), NULL, "environment CAISSON_LIMITS_PIDS",
                      "\"many\""));
        CHECK(refused("", ENV("CAISSON_ENGINE_LANDLOCK=maybe"), NULL, "engine.landlock",
                      "prefer, require or off"));
        CHECK(refused("", NULL, FLAGS("engine.allow_host=perhaps"), "flag --set", "true or false"));
        CHECK(refused("", NULL, FLAGS("limits.pids"), "limits.pids", "KEY=VALUE"));
        CHECK(refused("", NULL, FLAGS("engine.uid_first=4294901760", "engine.uid_count=1048576"),
                      "engine.uid_count", "last uid"));
        CHECK(refused("", NULL, FLAGS("engine.profile=nonsense"), "flag --set",
                      "Unsupported code execution env: nonsense"));
}

static void an_unknown_key_is_refused_with_the_right_one(void)
{
        CHECK(refused("limits:\n  wal_ms: 5s\n", NULL, NULL, ":2: there is no setting limits.wal_ms",
                      "did you mean limits.wall_ms?"));
        CHECK(refused("limits:\n  colour: 5s\n", NULL, NULL, "limits.colour", "config show"));
        CHECK(refused("limit:\n  wall_ms: 5s\n", NULL, NULL, ":1: \"limit\" is no section",
                      "there are limits, ceilings, engine, "));
        CHECK(refused("limits: 5\n", NULL, NULL, ":1: \"limits\" is no section", ""));
        CHECK(refused("limits: [5]\n", NULL, NULL, ":1: \"limits\" is no section", ""));
        CHECK(refused("ceilings: { output_action: kill }", NULL, NULL, "ceilings.output_action", ""));
        CHECK(refused("limits: { wall_ms: [5] }", NULL, NULL, "limits.wall_ms has to be one value", ""));
        CHECK(refused("limits: { wall_ms: { a: b } }", NULL, NULL, "limits.wall_ms has to be one value", ""));
        CHECK(refused("limits:\n  wall_ms:\n", NULL, NULL, ":2: limits.wall_ms has to be one value", ""));
        CHECK(refused("", NULL, FLAGS("limits.wall=5"), "limits.wall", ""));
}

static void a_misspelt_variable_is_noticed_and_a_stranger_is_not(void)
{
        struct settings settings;
        struct csn_error err;
        CHECK(refused("", ENV("CAISSON_LIMITS_WAL_MS=5s"), NULL, "CAISSON_LIMITS_WAL_MS",
                      "CAISSON_LIMITS_WALL_MS?"));
        CHECK(refused("", ENV("CAISSON_LIMIT_PIDS=5"), NULL, "CAISSON_LIMIT_PIDS", "CAISSON_LIMITS_PIDS?"));
        CHECK(refused("", ENV("CAISSON_CONFG=/x"), NULL, "CAISSON_CONFG", "CAISSON_CONFIG?"));
        CHECK(refused("", ENV("CAISSON_ENGINE_COLOUR=red"), NULL, "CAISSON_ENGINE_COLOUR", "config show"));
        CHECK(load("",
                   ENV("CAISSON_BUILD=build", "CAISSON_FUZZ_SECONDS=5", "CAISSON_=", "CAISSON", "PATH=/bin"),
                   NULL, &settings, &err) == 0);
        settings_done(&settings);
}

static void yaml_is_kept_small(void)
{
        static char large[MIB + 3];
        CHECK(refused("limits:\n  pids: 5\n  pids: 6\n", NULL, NULL, ":3: pids is there twice", "line 2"));
        CHECK(refused("limits: {}\nengine: {}\nlimits: {}\n", NULL, NULL, ":3: limits is there twice", ""));
        CHECK(refused("limits: &a { pids: 5 }\n", NULL, NULL, ":1: anchors", ""));
        CHECK(refused("limits: { pids: &a 5 }\n", NULL, NULL, ":1: anchors", ""));
        CHECK(refused("limits: { &a pids: 5 }\n", NULL, NULL, ":1: anchors", ""));
        CHECK(refused("limits: *a\n", NULL, NULL, ":1", ""));
        CHECK(refused("limits: { pids: !!int 5 }\n", NULL, NULL, "tags", ""));
        CHECK(refused("limits: !x { pids: 5 }\n", NULL, NULL, "tags", ""));
        CHECK(refused("limits: { pids: ~ }\n", NULL, NULL, "null is no value", ""));
        CHECK(refused("engine: { state_dir: null }\n", NULL, NULL, "null is no value", ""));
        CHECK(refused("engine: { state_dir: \"a\\0b\" }\n", NULL, NULL, "NUL", ""));
        CHECK(refused("- limits\n", NULL, NULL, ":1: expected one mapping", ""));
        CHECK(refused("limits\n", NULL, NULL, ":1: expected one mapping", ""));
        CHECK(refused("limits: {}\n---\nlimits: {}\n", NULL, NULL, ":3: expected one mapping", ""));
        CHECK(refused("limits: {\n", NULL, NULL, "/caisson.yaml:", ""));
        CHECK(refused("limits:\n\tpids: 5\n", NULL, NULL, "/caisson.yaml:2", ""));
        CHECK(refused("limits: \"\xff\"\n", NULL, NULL, "/caisson.yaml:", ""));
        CHECK(refused("a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: {m: {n: {o: {p: {q: {r: s}}}}}}}}}}}}}}}}}\n", NULL, NULL, "nested too deeply",
                      ""));
        CHECK(refused("? {a: b}\n: c\n", NULL, NULL, "a key has to be a plain word", ""));
        memset(large, ' ', sizeof large - 1);
        CHECK(refused(large, NULL, NULL, "File too large", "/caisson.yaml"));
        struct buf many;
        buf_init(&many, MIB);
        buf_printf(&many, "limits: [");
        for (int i = 0; i < 6000; i++)
                buf_printf(&many, "1,");
        buf_printf(&many, "]");
        CHECK(refused(many.bytes, NULL, NULL, "too many entries", ""));
        buf_done(&many);
}

static void a_file_of_nothing_is_a_file(void)
{
        static const char *const nothing[] = {
                "", "\n", "# comment\n", "---\n", "{}", "limits:\n", "limits:\n  # pids: 5\nengine: {}\n",
        };
        for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
                struct settings settings;
                struct csn_error err;
                CHECK(load(nothing[i], NULL, NULL, &settings, &err) == 0);
                settings_done(&settings);
        }
}

/* ---- limits and ceilings ---- */

static void a_default_comes_down_with_its_ceiling(void)
{
        struct settings settings;
        struct csn_error err;
        CHECK(load("ceilings: { wall_ms: 10s }", NULL, NULL, &settings, &err) == 0);
        CHECK(shows(&settings, "limits.wall_ms", "10s", "lowered to ceilings.wall_ms"));
        settings_done(&settings);
        CHECK(refused("ceilings: { wall_ms: 10s }\nlimits: { wall_ms: 20s }\n", NULL, NULL,
                      "limits.wall_ms is 20s", "ceilings.wall_ms"));
}

static int apply(const struct settings *settings, const char *json, struct arena *arena,
                 struct run_request *ret, struct csn_error *err)
{
        *ret = (struct run_request){ 0 };
        *err = (struct csn_error){ 0 };
        int rc = model_decode_text(&object_run_request, json, strlen(json), arena, ret, err);
        return rc < 0 ? rc : settings_apply(settings, ret, arena, err);
}

static void a_request_above_a_ceiling_is_refused_by_name(void)
{
        struct settings settings;
        struct csn_error err;
        struct arena arena = { 0 };
        struct run_request request;
        CHECK(load("ceilings: { wall_ms: 60s, cpu_milli: 1000, memory_bytes: 1GiB, cpu_ms: 20s }", NULL, NULL,
                   &settings, &err) == 0);
        CHECK(apply(&settings, "{\"limits\": {\"wall_ms\": 60000}}", &arena, &request, &err) == 0 &&
              request.limits.wall_ms == 60000);
        CHECK(request.limits.cpu_ms == 20000);
        CHECK(apply(&settings, "{\"limits\": {\"wall_ms\": 60001}}", &arena, &request, &err) == -CSN_E_INPUT);
        CHECK(strcmp(err.field, "/limits/wall_ms") == 0 && strstr(err.text, "60.001s") &&
              strstr(err.text, "60s") && strstr(err.text, "ceilings.wall_ms"));
        CHECK(request.limits.wall_ms == 60001 && !request.backend);
        CHECK(apply(&settings, "{\"profile\": \"data\"}", &arena, &request, &err) == -CSN_E_INPUT);
        CHECK(apply(&settings, "{\"limits\": {\"cpu_ms\": 20001}}", &arena, &request, &err) == -CSN_E_INPUT);
        CHECK(apply(&settings, "{\"limits\": {\"cpu_ms\": 5}}", &arena, &request, &err) == 0 &&
              request.limits.cpu_ms == 5);
        settings_done(&settings);
        CHECK(load("ceilings: { cpu_ms: 0 }", NULL, NULL, &settings, &err) == 0);
        CHECK(apply(&settings, "{\"limits\": {\"cpu_ms\": 5000}}", &arena, &request, &err) == 0 &&
              request.limits.cpu_ms == 5000);
        CHECK(apply(&settings, "{}", &arena, &request, &err) == 0 && request.limits.cpu_ms == 0);
        settings_done(&settings);
        arena_done(&arena);
}

static void a_request_is_laid_over_its_profile_and_that_over_the_settings(void)
{
        struct settings settings;
        struct csn_error err;
        struct arena arena = { 0 };
        struct run_request request;
        CHECK(load("limits: { wall_ms: 5s, pids: 9, open_files: 99 }", NULL, NULL, &settings, &err) == 0);
        CHECK(apply(&settings, "{\"profile\": \"data\", \"limits\": {\"pids\": 3}}", &arena, &request,
                    &err) == 0);
        CHECK(request.limits.pids == 3);                        /* the request */
        CHECK(request.limits.wall_ms == 120000 && request.limits.cpu_milli == 2000);   /* the profile */
        CHECK(request.limits.memory_bytes == 2 * GIB && request.limits.disk_bytes == GIB);
        CHECK(request.limits.open_files == 99);                 /* the settings */
        CHECK(request.limits.output_bytes == 1000000);          /* the table */
        CHECK(apply(&settings, "{}", &arena, &request, &err) == 0 &&
              strcmp(request.profile, "standard") == 0);
        CHECK(request.limits.wall_ms == 5000 && strcmp(request.backend, "native") == 0 &&
              request.landlock == need_PREFER);
        CHECK(apply(&settings, "{\"profile\": \"strict\"}", &arena, &request, &err) == 0);
        CHECK(request.strict_proc && request.landlock == need_REQUIRE &&
              request.cgroup == cgroup_need_REQUIRE);
        settings_done(&settings);
        arena_done(&arena);
}

static void what_the_administrator_requires_stays_required(void)
{
        struct settings settings;
        struct csn_error err;
        struct arena arena = { 0 };
        struct run_request request;
        CHECK(load("engine: { landlock: require, cgroup: require, profile: lightweight }", NULL, NULL,
                   &settings, &err) == 0);
        CHECK(apply(&settings, "{}", &arena, &request, &err) == 0 && request.landlock == need_REQUIRE &&
              request.cgroup == cgroup_need_REQUIRE && request.limits.cpu_milli == 250);
        CHECK(apply(&settings, "{\"landlock\": \"off\"}", &arena, &request, &err) == -CSN_E_INPUT &&
              strstr(err.text, "engine.landlock"));
        CHECK(apply(&settings, "{\"cgroup\": \"prefer\"}", &arena, &request, &err) == -CSN_E_INPUT &&
              strstr(err.text, "engine.cgroup"));
        settings_done(&settings);
        arena_done(&arena);
}

static void the_host_backend_needs_setting_and_request(void)
{
        struct settings settings;
        struct csn_error err;
        struct arena arena = { 0 };
        struct run_request request;
        CHECK(load("", NULL, NULL, &settings, &err) == 0);
        CHECK(apply(&settings, "{\"backend\": \"host\"}", &arena, &request, &err) == -CSN_E_INPUT &&
              strstr(err.text, "engine.allow_host"));
        CHECK(apply(&settings, "{\"profile\": \"host\", \"backend\": \"host\"}", &arena, &request, &err) ==
              -CSN_E_INPUT);
        settings_done(&settings);
        CHECK(load("engine: { allow_host: yes, profile: host }", NULL, NULL, &settings, &err) == 0);
        CHECK(apply(&settings, "{}", &arena, &request, &err) == -CSN_E_INPUT &&
              strcmp(err.field, "/backend") == 0);
        CHECK(apply(&settings, "{\"backend\": \"host\"}", &arena, &request, &err) == 0 &&
              strcmp(request.backend, "host") == 0);
        CHECK(apply(&settings, "{\"profile\": \"standard\"}", &arena, &request, &err) == 0 &&
              strcmp(request.backend, "native") == 0);
        settings_done(&settings);
        arena_done(&arena);
}

/* ---- profiles ---- */

static void profiles_of_the_folder_join_the_built_in_ones(void)
{
        struct settings settings;
        struct csn_error err;
        struct arena arena = { 0 };
        struct profile profile;
        struct run_request request;
        char flag[300], path[300];
        snprintf(path, sizeof path, "%s/profiles", folder());
        mkdir(path, 0700);
        snprintf(flag, sizeof flag, "engine.profiles_dir=%s", path);
        CHECK(load("", NULL, FLAGS(flag), &settings, &err) == 0);
        static const struct { const char *name, *text; } files[] = {
                { "profiles/team.yaml",
                  "description: Ours.\nextends: strict\nlimits: { wall_ms: 7s }\nenv: { TZ: UTC, A: '' }\n"
                  "preload: [json, math]\npackages: \"numpy, pandas\"\nlanguage: python\n" },
                { "profiles/child.yaml", "limits:\n  pids: 11\nenv: { TZ: Oslo }\nextends: team\n" },
                { "profiles/circle.yaml", "extends: circle\n" },
                { "profiles/orphan.yaml", "\nextends: nobody\n" },
                { "profiles/strict.yaml", "landlock: off\n" },
                { "profiles/code.yaml", "code: print(1)\n" },
                { "profiles/typo.yaml", "limits:\n  wal_ms: 5s\n" },
                { "profiles/value.yaml", "\n\nlimits: { wall_ms: never }\n" },
                { "profiles/scalar.yaml", "env: x\n" },
                { "profiles/list.yaml", "preload: { a: b }\n" },
                { "profiles/loader.yaml", "env: { LD_PRELOAD: x }\n" },
                { "profiles/ignored.txt", "" },
        };
        for (size_t i = 0; i < ARRAY_LEN(files); i++)
                file_of(files[i].name, files[i].text, strlen(files[i].text));
        CHECK(profile_find(&settings, "team", &arena, &profile, &err) == 0 &&
              strcmp(profile.text, "Ours.") == 0);
        CHECK(profile.request.strict_proc && profile.request.limits.wall_ms == 7000 &&
              profile.request.env_n == 2);
        CHECK(profile.request.preload_n == 2 && profile.request.packages_n == 2 &&
              strcmp(profile.request.packages[1], "pandas") == 0);
        CHECK(profile_find(&settings, "child", &arena, &profile, &err) == 0);
        CHECK(profile.request.strict_proc && profile.request.limits.wall_ms == 7000 &&
              profile.request.limits.pids == 11);
        CHECK(profile.request.env_n == 2 && strcmp(profile.name, "child") == 0);
        CHECK(apply(&settings, "{\"profile\": \"child\", \"env\": {\"A\": \"1\"}}", &arena, &request, &err) ==
              0);
        CHECK(request.env_n == 2 && strcmp(request.language, "python") == 0);
        /* A file cannot take the place of a built-in profile. */
        CHECK(profile_find(&settings, "strict", &arena, &profile, &err) == 0 &&
              profile.request.landlock == need_REQUIRE);

        static const struct { const char *name, *part, *other; } bad[] = {
                { "circle", "circle.yaml:1", "circle" },
                { "orphan", "orphan.yaml:2", "Unsupported code execution env: nobody" },
                { "code", "code.yaml:1", "cannot set this" },
                { "typo", "typo.yaml:2", "no such field" },
                { "value", "value.yaml:3", "\"never\"" },
                { "scalar", "scalar.yaml:1", "mapping" },
                { "list", "list.yaml:1", "list" },
                { "loader", "loader.yaml", "LD_PRELOAD" },
        };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                CHECK(profile_find(&settings, bad[i].name, &arena, &profile, &err) == -CSN_E_CONFIG);
                if (!strstr(err.text, bad[i].part) || !strstr(err.text, bad[i].other))
                        printf("# %s: %s\n", bad[i].name, err.text);
                CHECK(strstr(err.text, bad[i].part) && strstr(err.text, bad[i].other));
        }
        char **names = profile_names(&settings, &arena);
        size_t n = 0, strict = 0;
        for (; names[n]; n++)
                strict += strcmp(names[n], "strict") == 0;
        CHECK(n == 19 + 10 && strict == 1 && strcmp(names[0], "standard") == 0 &&
              strcmp(names[19], "child") == 0);
        settings_done(&settings);
        arena_done(&arena);
}

static void an_unknown_profile_is_refused_with_the_known_ones(void)
{
        static const char *const unknown_names[] = { "docker", "", "../etc/passwd", "a/b", "Standard", "a\nb" };
        struct settings settings;
        struct csn_error err;
        struct arena arena = { 0 };
        struct profile profile;
        CHECK(load("", NULL, NULL, &settings, &err) == 0);
        for (size_t i = 0; i < ARRAY_LEN(unknown_names); i++) {
                char start[100];
                snprintf(start, sizeof start, "Unsupported code execution env: %s", unknown_names[i]);
                CHECK(profile_find(&settings, unknown_names[i], &arena, &profile, &err) == -CSN_E_PROFILE);
                CHECK(strncmp(err.text, start, strlen(start)) == 0 &&
                      strstr(err.text, "standard, strict, data"));
        }
        settings_done(&settings);
        arena_done(&arena);
}

static void every_built_in_profile_applies(void)
{
        static const char *const names[] = {
                "standard", "strict", "data", "lightweight", "code_execution", "data_processing",
                "ml_inference", "e2b", "tools", "allowlist", "denylist", "grade", "kodeagent", "agentos", "linx",
                "codemie", "mcp-light", "build", "host",
        };
        struct settings settings;
        struct csn_error err;
        struct arena arena = { 0 };
        CHECK(load("engine: { allow_host: true }", NULL, NULL, &settings, &err) == 0);
        char **known = profile_names(&settings, &arena);
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                struct run_request request = { 0 };
                SET(&request, run_request, profile, known[i]);
                if (strcmp(known[i], "host") == 0)
                        SET(&request, run_request, backend, known[i]);
                CHECK(strcmp(known[i], names[i]) == 0);
                CHECK(settings_apply(&settings, &request, &arena, &err) == 0 &&
                      strcmp(request.profile, names[i]) == 0);
        }
        settings_done(&settings);
        arena_done(&arena);
}

static void settings_of_packages_have_lists_and_inner_sections(void)
{
        struct settings settings;
        struct csn_error err;
        struct arena arena = { 0 };
        CHECK(load("packages:\n  allow: [requests, PyYAML]\n  python:\n    index_url: http://127.0.0.1:4873/simple\n", NULL, NULL, &settings, &err) == 0);
        CHECK(shows(&settings, "packages.allow", "requests,PyYAML", "/caisson.yaml:2"));
        CHECK(shows(&settings, "packages.python.index_url", "http://127.0.0.1:4873/simple", "/caisson.yaml:4"));
        CHECK(strcmp(settings.python_packages.index_url, "http://127.0.0.1:4873/simple") == 0);
        settings_done(&settings);
        CHECK(load("packages:\n  node:\n    registry_url: https://registry.npmjs.org\n", NULL, NULL, &settings, &err) == 0);
        CHECK(strcmp(settings.node_packages.registry_url, "https://registry.npmjs.org") == 0);
        settings_done(&settings);
        CHECK(refused("", NULL, FLAGS("packages.node.registry_url=registry.npmjs.org"), "flag --set", "https://"));
        CHECK(refused("", NULL, FLAGS("packages.node.registry_url=https://u:secret@example.org"),
                      "packages.node.registry_token_file", "password"));
        CHECK(refused("packages: { python: { index: x } }", NULL, NULL, "packages.python.index", "setting"));
        CHECK(refused("packages: { python: x }", NULL, NULL, "packages.python", "setting"));
        CHECK(refused("packages: { allow: [[a]] }", NULL, NULL, "packages.allow", "one value"));
        CHECK(refused("packages: { allow: [\"a,b\"] }", NULL, NULL, "packages.allow", "one value"));
        CHECK(refused("packages: { min_age: [1h] }", NULL, NULL, "packages.min_age", "one value"));
        CHECK(refused("", ENV("CAISSON_PACKAGES_PYTHON_INDEXURL=x"), NULL, "CAISSON_PACKAGES_PYTHON_INDEXURL", "such"));

        /* A duration without a unit in its name is in seconds. */
        CHECK(load("packages: { min_age: 90, build_wall: 2min }", NULL, NULL, &settings, &err) == 0);
        CHECK(settings.packages.min_age == 90000 && settings.packages.build_wall == 120000);
        settings_done(&settings);

        CHECK(refused("", NULL, FLAGS("packages.python.index_url=pypi.org"), "flag --set", "https://"));
        CHECK(refused("", NULL, FLAGS("packages.python.index_url=https://"), "packages.python.index_url", "host"));
        CHECK(refused("", NULL, FLAGS("packages.python.index_url=https://u:secret@pypi.org/simple"),
                      "packages.python.index_token_file", "password"));
        CHECK(load("", NULL, FLAGS("packages.python.index_url=https://pypi.org/@scope"), &settings, &err) == 0);
        settings_done(&settings);

        CHECK(load("engine: { state_dir: /srv/state }", NULL, NULL, &settings, &err) == 0);
        CHECK(strcmp(settings_layers_dir(&settings, &arena), "/srv/state/layers") == 0);
        settings_done(&settings);
        CHECK(load("", ENV("DEPENDENCY_CACHE_DIR=/srv/cache"), NULL, &settings, &err) == 0);
        CHECK(strcmp(settings_layers_dir(&settings, &arena), "/srv/cache") == 0);
        settings_done(&settings);
        arena_done(&arena);
}

static void clean_up(void)
{
        auto_fd tmp = open("/tmp", O_DIRECTORY | O_CLOEXEC);
        io_remove_tree(tmp, folder() + strlen("/tmp/"));
        CHECK(access(folder(), F_OK) < 0);
}

static void variables_without_a_meaning_draw_one_sentence_each(void)
{
        struct settings settings;
        struct csn_error err;
        CHECK(load("",
                   ENV("CODE_EXECUTOR_KEEP_TEMPLATE=x", "CODE_EXECUTOR_NAMESPACE=", "CODE_EXECUTOR_\033=1", "CODE_EXECUTIVE=1"),
                   NULL, &settings, &err) == 0);
        CHECK(settings.notes_n == 3 && strstr(settings.notes[0], "CODE_EXECUTOR_?: no such variable") &&
              strstr(settings.notes[1], "CODE_EXECUTOR_NAMESPACE has no meaning here: ") &&
              strstr(settings.notes[2], "CODE_EXECUTOR_KEEP_TEMPLATE has no meaning here: "));
        settings_done(&settings);
        CHECK(load("", ENV("CODE_EXECUTION_TIMEOUT=9"), NULL, &settings, &err) == 0 && settings.notes_n == 0);
        settings_done(&settings);
}

int main(void)
{
        RUN(variables_without_a_meaning_draw_one_sentence_each);
        RUN(every_setting_has_a_default_that_its_parser_reads);
        RUN(a_reload_takes_what_is_live_and_tells_the_rest);
        RUN(every_setting_comes_from_the_file);
        RUN(every_setting_comes_from_its_variable_and_then_from_a_flag);
        RUN(variables_of_other_systems_keep_their_meaning);
        RUN(variables_of_opentelemetry_are_as_its_specification_has_them);
        RUN(the_stronger_source_wins);
        RUN(the_file_is_looked_for_where_it_belongs);
        RUN(a_wrong_value_stops_the_start_and_is_named);
        RUN(an_unknown_key_is_refused_with_the_right_one);
        RUN(a_misspelt_variable_is_noticed_and_a_stranger_is_not);
        RUN(yaml_is_kept_small);
        RUN(a_file_of_nothing_is_a_file);
        RUN(a_default_comes_down_with_its_ceiling);
        RUN(a_request_above_a_ceiling_is_refused_by_name);
        RUN(a_request_is_laid_over_its_profile_and_that_over_the_settings);
        RUN(what_the_administrator_requires_stays_required);
        RUN(the_host_backend_needs_setting_and_request);
        RUN(profiles_of_the_folder_join_the_built_in_ones);
        RUN(an_unknown_profile_is_refused_with_the_known_ones);
        RUN(every_built_in_profile_applies);
        RUN(settings_of_packages_have_lists_and_inner_sections);
        RUN(clean_up);
        return tap_done();
}
