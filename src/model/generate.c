/* Files generated from the tables and kept in the repository for readers; see generated_file(). */
#include "model/settings.h"

#include <stdio.h>

static bool add_json(json_t *json, size_t flags, struct buf *buf)
{
        char *text = json_dumps(json, flags);
        bool fits = text && buf_add(buf, text, strlen(text));
        free(text);
        json_decref(json);
        return fits;
}

static bool schema_text(const struct object *object, struct buf *buf)
{
        return add_json(model_schema(object), JSON_INDENT(2), buf) && buf_add(buf, "\n", 1);
}

static bool request_schema(struct buf *buf) { return schema_text(&object_run_request, buf); }
static bool result_schema(struct buf *buf) { return schema_text(&object_run_result, buf); }
static bool grade_request_schema(struct buf *buf) { return schema_text(&object_grade_request, buf); }
static bool grade_result_schema(struct buf *buf) { return schema_text(&object_grade_result, buf); }

static const char intro[] =
        "# Settings\n"
        "\n"
        "Made from `src/model/settings.def` and `src/model/fields.def` by `src/bin/generate.c`; a test\n"
        "compares.\n"
        "\n"
        "A value comes from the first of these that has one:\n"
        "\n"
        "1. a flag: `--set KEY=VALUE`\n"
        "2. the environment: the variable beside the key\n"
        "3. the environment: the variable of another system, in brackets. Its numbers have the units\n"
        "   that they had there: seconds, cores, MiB where the name ends in `_MB`\n"
        "4. the configuration file: `--config FILE`, else `$CAISSON_CONFIG`, else\n"
        "   `$XDG_CONFIG_HOME/caisson/caisson.yaml` (`~/.config` when that is not set), else\n"
        "   `/etc/caisson/caisson.yaml`\n"
        "5. the default\n"
        "\n"
        "`caisson config show` prints every value and where it came from. A wrong value, an unknown key\n"
        "or a key that is there twice stops the start, with the file and line or the variable.\n"
        "\n"
        "The file is YAML: a section, and below it a setting on each line. A number without a unit is in\n"
        "the unit of its name, as in JSON: `wall_ms: 30000` and `wall_ms: 30s` are the same, and so are\n"
        "`cpu_milli: 1500` and `cpu_milli: 1500m`. Sizes are `512MiB`, `512Mi`, `512M` (millions) or\n"
        "bytes. A duration without a unit, of a setting without a unit in its name such as\n"
        "`packages.min_age`, is in seconds. Switches are `true`, `yes`, `on`, `1` or `false`, `no`, `off`, `0`.\n"
        "\n"
        "```yaml\n"
        "limits:\n"
        "  wall_ms: 60s\n"
        "  memory_bytes: 1GiB\n"
        "ceilings:\n"
        "  wall_ms: 5min\n"
        "engine:\n"
        "  cgroup: require\n"
        "```\n";

static const struct {
        const char *section, *text;
} sections[] = {
        { "limits", "What a request gets that does not say otherwise, and whose profile does not. A default\n"
                    "that is above its ceiling is lowered to it." },
        { "ceilings", "What a request may ask for at the most. More is refused with `bad_request`, which\n"
                      "names the limit, the value and the setting." },
        { "engine", "The engine itself. The *live* ones, all limits and all ceilings are read again when caissond gets\n"
                    "SIGHUP (`caisson serve` passes it on); it says which of the others need a restart." },
        { "http", "The HTTP interface as browsers see it; all of these are live." },
        { "sessions", "A persistent sandbox with one context in it; see [sandboxes](sandboxes.md)." },
        { "volumes", "File systems of tenants that outlive programs; see [volumes](volumes.md)." },
        { "problems", "Sets of problems that requests to grade name; see [trainers](trainers.md)." },
        { "images", "Images that programs can run in; see [images](images.md)." },
        { "docker", "The backend docker; see [programs in containers](docker.md)." },
        { "gateway", "The gateway before several daemons, and its workers; see [many machines](gateway.md)." },
        { "kubernetes", "Pods as workers of the gateway; see [many machines](gateway.md)." },
        { "grading", "Gradings; see [formats of data sets](grading-formats.md)." },
        { "review", "The reviewer of programs; see [reviews by a model](review.md)." },
        { "packages", "Layers of packages and the indexes that packages come from; see [packages](packages.md)." },
};

static void settings_table(const struct settings *settings, const char *section, struct buf *buf)
{
        buf_printf(buf, "| key | variable | default | allowed | meaning |\n|---|---|---|---|---|\n");
        for (size_t i = 0; i < settings->n; i++) {
                const struct setting *setting = &settings->list[i];
                char def[100], allowed[300];
                if (strncmp(setting->key, section, strlen(section)) != 0)
                        continue;
                settings_default(setting, def, sizeof def);
                model_allowed(setting->field, allowed, sizeof allowed);
                buf_printf(buf, "| `%s` | `%s`", setting->key, setting->variable);
                for (size_t k = 0; setting->aliases[k]; k++)
                        buf_printf(buf, "%s`%s`%s", k ? ", " : " (", setting->aliases[k],
                                   setting->aliases[k + 1] ? "" : ")");
                bool marked = settings_is_live(setting) && strncmp(setting->key, "engine.", strlen("engine.")) == 0;
                buf_printf(buf, " | %s%s%s | %s | %s%s |\n", def[0] ? "`" : "", def, def[0] ? "`" : "", allowed,
                           setting->field->help, marked ? " *Live.*" : "");
        }
}

static void profiles_table(const struct settings *settings, struct buf *buf)
{
        struct arena arena = { 0 };
        char **names = profile_names(settings, &arena);
        buf_printf(buf, "\n## Profiles\n\n"
                        "A profile is a part of a request under a name: `--profile NAME`, or `profile` in a\n"
                        "request. It is laid over the defaults, and the request over it; then come the\n"
                        "ceilings. Built in are:\n\n"
                        "| profile | sets | meaning |\n|---|---|---|\n");
        for (size_t i = 0; names[i]; i++) {
                struct profile profile;
                struct csn_error why;
                if (profile_find(settings, names[i], &arena, &profile, &why) < 0)
                        continue;
                buf_printf(buf, "| `%s` | `", names[i]);
                add_json(model_encode(&object_run_request, &profile.request), JSON_COMPACT, buf);
                buf_printf(buf, "` | %s |\n", profile.text);
        }
        buf_printf(buf, "\nFurther ones are files `NAME.yaml` in `engine.profiles_dir`, with fields of a\n"
                        "request and `description` and `extends`:\n\n"
                        "```yaml\n"
                        "description: Short jobs of the reporting team.\n"
                        "extends: strict\n"
                        "limits:\n"
                        "  wall_ms: 10s\n"
                        "env:\n"
                        "  TZ: Europe/Oslo\n"
                        "```\n");
        arena_done(&arena);
}

/* The reference of all settings and profiles, in Markdown. */
static bool settings_markdown(struct buf *buf)
{
        /* No file and no environment: the defaults remain, the same on every machine. */
        struct settings_sources nothing = { .file = "/dev/null" };
        struct settings settings;
        struct csn_error why;
        if (settings_load(&nothing, &settings, &why) < 0) {
                settings_done(&settings);
                return false;
        }
        settings.engine.profiles_dir = arena_text(&settings.arena, "%s", "");
        buf_printf(buf, "%s", intro);
        for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
                buf_printf(buf, "\n## %s\n\n%s\n\n", sections[i].section, sections[i].text);
                settings_table(&settings, sections[i].section, buf);
        }
        profiles_table(&settings, buf);
        settings_done(&settings);
        return true;
}

/* Every setting with its default, as a comment: a line without its first # is in force. */
static void add_sample_section(const struct settings *settings, const char *section, struct buf *buf)
{
        size_t len = strlen(section);
        buf_printf(buf, "\n#%s:\n", section);
        for (size_t i = 0; i < settings->n; i++) {
                const struct setting *setting = &settings->list[i];
                char def[100];
                if (strncmp(setting->key, section, len) != 0 || setting->key[len] != '.')
                        continue;
                settings_default(setting, def, sizeof def);
                bool text = setting->field->kind == KIND_TEXT;
                buf_printf(buf, "#  # %s\n#  %s: %s%s%s\n", setting->field->help, setting->key + len + 1,
                        text ? "\"" : "", def, text ? "\"" : "");
        }
}

static bool sample_configuration(struct buf *buf)
{
        struct settings_sources nothing = { .file = "/dev/null" };
        struct settings settings;
        struct csn_error why;
        int rc = settings_load(&nothing, &settings, &why);
        buf_printf(buf,
                "# The configuration of caisson and caissond, to be copied to /etc/caisson/caisson.yaml.\n"
                "# Every setting stands here with its default; without the # in front of it and of its section it holds.\n"
                "# caisson.conf(5) has the meaning of all, caisson config show what is in force and why.\n");
        for (size_t i = 0; rc == 0 && i < ARRAY_LEN(sections); i++)
                add_sample_section(&settings, sections[i].section, buf);
        settings_done(&settings);
        return rc == 0;
}

static const struct {
        const char *path;
        bool (*make)(struct buf *buf);
} files[] = {
        { "schema/run_request.json", request_schema },
        { "schema/run_result.json", result_schema },
        { "schema/grade_request.json", grade_request_schema },
        { "schema/grade_result.json", grade_result_schema },
        { "docs/use/settings.md", settings_markdown },
        { "deploy/caisson.yaml", sample_configuration },
};

const char *generated_file(size_t n, struct buf *buf)
{
        return n < ARRAY_LEN(files) && files[n].make(buf) ? files[n].path : NULL;
}
