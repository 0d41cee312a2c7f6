/* Loading the settings from flags, environment, file and table; see settings.h. */
#include "model/settings.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- the table (another reading of settings.def) ---- */

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are whole initialisers. */
#define CHOICES(set) static const struct choice values_##set[] = {
#define VALUE(set, name, text, number, meaning) { text, number, meaning },
#define END_CHOICES(set)                                                                                     \
        };                                                                                                   \
        static const struct choices choices_##set = { #set, values_##set, ARRAY_LEN(values_##set) };
#define PLACE(name_, member_) .name = #member_, .at = offsetof(struct name_, member_), .presence = OPTIONAL
#define OBJECT(name_, title_, text_) static const struct field fields_##name_[] = {
#define NUM(name_, member_, presence_, min_, max_, def_, unit_, option_, help_)                              \
        { PLACE(name_, member_), .kind = KIND_NUM, .min = min_, .max = max_, .def = def_, .unit = unit_,     \
          .help = help_ },
#define BOOL(name_, member_, presence_, def_, option_, help_)                                                \
        { PLACE(name_, member_), .kind = KIND_BOOL, .def = def_, .help = help_ },
#define TEXT(name_, member_, presence_, max_, def_, option_, help_)                                          \
        { PLACE(name_, member_), .kind = KIND_TEXT, .max = max_, .def_text = def_, .help = help_ },
#define ENUM(name_, member_, presence_, set_, def_, option_, help_)                                          \
        { PLACE(name_, member_), .kind = KIND_ENUM, .choices = &choices_##set_, .def = set_##_##def_,        \
          .help = help_ },
#define END(name_)                                                                                           \
        };                                                                                                   \
        const struct object object_##name_ = { #name_, "", "", sizeof(struct name_), fields_##name_,         \
                                               ARRAY_LEN(fields_##name_) };                          \
        _Static_assert(ARRAY_LEN(fields_##name_) <= 64, "one bit of `present` for each field");
#include "model/settings.def"
#include "model/undef.h"
/* NOLINTEND(bugprone-macro-parentheses) */

static const struct alias {
        const char *variable, *key;   /* key NULL: the variable sets nothing */
        const char *unit, *yes;
        const char *note;             /* the sentence's part after "has no meaning here: "; NULL: none */
        bool is_image, is_pod;
} aliases[] = {
#define ALIAS(variable, key, unit, yes) { variable, key, unit, yes, NULL, false, false },
#define IMAGE(variable, key, note) { variable, key, "", NULL, note, true, false },
#define POD(variable, key, note) { variable, key, "", NULL, note, false, true },
#define NOTE(variable, note) { variable, NULL, NULL, NULL, note, false, false },
#include "model/variables.def"
#undef ALIAS
#undef IMAGE
#undef POD
#undef NOTE
};

static bool is_ceiling(const struct setting *setting)
{
        return strncmp(setting->key, "ceilings.", 9) == 0;
}

static void add(struct settings *settings, const char *section, const struct object *object, void *into)
{
        for (size_t i = 0; i < object->n; i++) {
                /* Only of a number can there be too much. */
                if (into == &settings->ceilings && object->fields[i].kind != KIND_NUM)
                        continue;
                struct setting *setting = &settings->list[settings->n++];
                setting->object = object;
                setting->field = &object->fields[i];
                setting->into = into;
                snprintf(setting->key, sizeof setting->key, "%s.%s", section, setting->field->name);
                snprintf(setting->variable, sizeof setting->variable, "CAISSON_%s_%s", section,
                         setting->field->name);
                for (char *c = setting->variable; *c; c++)
                        *c = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
                snprintf(setting->source, sizeof setting->source, "default");
                size_t n = 0;
                for (size_t k = 0; k < ARRAY_LEN(aliases) && n + 1 < ARRAY_LEN(setting->aliases); k++)
                        if (aliases[k].key && strcmp(aliases[k].key, setting->key) == 0)
                                setting->aliases[n++] = aliases[k].variable;
        }
}

/* A section within a section has the outer section's name in front: "packages.python". */
static const struct section {
        const char *name;
        const struct object *object;
        size_t at;   /* in struct settings */
} sections[] = {
        { "limits", &object_limits, offsetof(struct settings, limits) },
        { "ceilings", &object_limits, offsetof(struct settings, ceilings) },
        { "engine", &object_engine_settings, offsetof(struct settings, engine) },
        { "volumes", &object_volumes_settings, offsetof(struct settings, volumes) },
        { "http", &object_http_settings, offsetof(struct settings, http) },
        { "problems", &object_problems_settings, offsetof(struct settings, problems) },
        { "images", &object_images_settings, offsetof(struct settings, images) },
        { "docker", &object_docker_settings, offsetof(struct settings, docker) },
        { "gateway", &object_gateway_settings, offsetof(struct settings, gateway) },
        { "kubernetes", &object_kubernetes_settings, offsetof(struct settings, kubernetes) },
        { "sessions", &object_sessions_settings, offsetof(struct settings, sessions) },
        { "grading", &object_grading_settings, offsetof(struct settings, grading) },
        { "packages", &object_packages_settings, offsetof(struct settings, packages) },
        { "packages.python", &object_python_packages_settings, offsetof(struct settings, python_packages) },
        { "packages.node", &object_node_packages_settings, offsetof(struct settings, node_packages) },
        { "review", &object_review_settings, offsetof(struct settings, review) },
        { "review.price", &object_review_price_settings, offsetof(struct settings, review_price) },
};

static bool is_section(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(sections); i++)
                if (strcmp(sections[i].name, name) == 0)
                        return true;
        return false;
}

static const char *section_names(struct arena *arena)
{
        const char *text = "";
        for (size_t i = 0; i < ARRAY_LEN(sections); i++)
                if (!strchr(sections[i].name, '.'))
                        text = arena_text(arena, "%s%s%s", text, text[0] ? ", " : "", sections[i].name);
        return text;
}

static void build_list(struct settings *settings)
{
        size_t n = 0;
        *settings = (struct settings){ 0 };
        for (size_t i = 0; i < ARRAY_LEN(sections); i++)
                n += sections[i].object->n;
        settings->list = arena_alloc(&settings->arena, n * sizeof *settings->list);
        for (size_t i = 0; i < ARRAY_LEN(sections); i++)
                add(settings, sections[i].name, sections[i].object, (char *)settings + sections[i].at);
}

static uint64_t *number_of(const struct setting *setting)
{
        return (uint64_t *)(void *)((char *)setting->into + setting->field->at);
}

static void fill_defaults(struct settings *settings)
{
        for (size_t i = 0; i < settings->n; i++) {
                const struct setting *setting = &settings->list[i];
                if (is_ceiling(setting) &&
                    !(settings->ceilings.present >> (setting->field - object_limits.fields) & 1))
                        *number_of(setting) = setting->field->max;
        }
        /* As a limit: 0 leaves CPU time to the wall clock. */
        if (settings->ceilings.cpu_ms == 0)
                settings->ceilings.cpu_ms = model_field(&object_limits, "cpu_ms")->max;
        for (size_t i = 0; i < ARRAY_LEN(sections); i++)
                if (sections[i].at != offsetof(struct settings, ceilings))
                        model_defaults(sections[i].object, (char *)settings + sections[i].at);
}

static struct setting *find(struct settings *settings, const char *key, size_t len)
{
        for (size_t i = 0; i < settings->n; i++)
                if (strlen(settings->list[i].key) == len && strncmp(settings->list[i].key, key, len) == 0)
                        return &settings->list[i];
        return NULL;
}

/* Dotted names between commas or blanks. */
static bool are_modules(const char *text)
{
        return !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_., ")];
}

static int set(struct settings *settings, struct setting *setting, const char *text, const char *source,
               struct csn_error *err)
{
        struct csn_error why = { 0 };
        const struct field *field = setting->field;
        size_t len = strlen(field->name);
        /* A name without a unit, such as packages.min_age: a bare number is in seconds, as in options. */
        bool in_seconds = field->kind == KIND_NUM && strcmp(field->unit, "ms") == 0 &&
                          (len < 3 || strcmp(field->name + len - 3, "_ms") != 0);
        if ((in_seconds ? model_set_text : model_set_value)(setting->object, field, setting->into, text, setting->key,
                                                            &settings->arena, &why) < 0)
                return err_setting(err, setting->key, "%s: %s", source, why.text);
        if (strcmp(setting->key, "packages.preload") == 0 && !are_modules(text))
                return err_setting(err, setting->key, "%s: %s is \"%.80s\"; it has to be names of modules between commas, such "
                             "as pandas,matplotlib.pyplot", source, setting->key, text);
        snprintf(setting->source, sizeof setting->source, "%s", source);
        return 0;
}

/* A ceiling lowers a greater default; two contradicting values from configuration are an error. */
static int fit_limits(struct settings *settings, struct csn_error *err)
{
        for (size_t i = 0; i < settings->n; i++) {
                struct setting *limit = &settings->list[i];
                if (limit->into != &settings->limits || limit->field->kind != KIND_NUM)
                        continue;
                char key[64], value[40], most[40];
                snprintf(key, sizeof key, "ceilings.%s", limit->field->name);
                const struct setting *ceiling = find(settings, key, strlen(key));
                if (*number_of(limit) <= *number_of(ceiling))
                        continue;
                if (strcmp(limit->source, "default") != 0) {
                        settings_value(limit, value, sizeof value);
                        settings_value(ceiling, most, sizeof most);
                        return err_setting(err, limit->key, "%s: %s is %s, above %s, which is %s (%s)",
                                     limit->source, limit->key, value, ceiling->key, most, ceiling->source);
                }
                *number_of(limit) = *number_of(ceiling);
                snprintf(limit->source, sizeof limit->source, "default, lowered to %s", ceiling->key);
        }
        return 0;
}

/* ---- sources, weakest first ---- */

static int unknown(const struct settings *settings, const char *source, const char *key,
                   struct csn_error *err)
{
        for (size_t i = 0; i < settings->n; i++)
                if (model_alike(settings->list[i].key, key))
                        return err_setting(err, key, "%s: there is no setting %.80s; did you mean %s?", source, key,
                                     settings->list[i].key);
        return err_setting(err, key, "%s: there is no setting %.80s; caisson config show lists them", source, key);
}

static int set_nodes(struct settings *settings, const char *file, const char *section, const struct yaml_node *parent,
                     struct csn_error *err);

/* Settings with a list of names: in the file a list, elsewhere names with commas between. */
static bool is_name_list(const struct setting *setting)
{
        static const char *const keys[] = { "packages.allow", "packages.deny", "packages.preload", "review.languages",
                "engine.devices", "images.layers", "http.allowed_hosts", "gateway.workers" };
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
                if (strcmp(setting->key, keys[i]) == 0)
                        return true;
        return false;
}

/* The items with commas between; NULL: an item is not a text, or has a comma. */
static const char *join_list(const struct yaml_node *list, struct arena *arena)
{
        const char *text = "";
        for (const struct yaml_node *item = list->children; item; item = item->next) {
                if (!item->value || strchr(item->value, ','))
                        return NULL;
                text = arena_text(arena, "%s%s%s", text, text[0] ? "," : "", item->value);
        }
        return text;
}

static int set_node(struct settings *settings, const char *file, const char *section,
                    const struct yaml_node *node, struct csn_error *err)
{
        char key[128], source[200];
        snprintf(key, sizeof key, "%s.%s", section, node->key ? node->key : "");
        snprintf(source, sizeof source, "file %s:%u", file, node->line);
        struct setting *setting = find(settings, key, strlen(key));
        if (!setting && is_section(key) && !node->value && !node->is_list)
                return set_nodes(settings, file, key, node, err);
        if (!setting)
                return unknown(settings, source, key, err);
        const char *value = node->is_list && is_name_list(setting) ? join_list(node, &settings->arena) : node->value;
        if (!value)
                return err_setting(err, key, "%s: %s has to be one value", source, key);
        return set(settings, setting, value, source, err);
}

static int set_nodes(struct settings *settings, const char *file, const char *section, const struct yaml_node *parent,
                     struct csn_error *err)
{
        for (const struct yaml_node *node = parent->children; node; node = node->next)
                if (set_node(settings, file, section, node, err) < 0)
                        return -err->code;
        return 0;
}

static json_t *tree_of(const struct yaml_node *node)
{
        json_t *tree = node->is_list ? json_array() : node->value ? json_string(node->value) : json_object();
        for (const struct yaml_node *child = node->children; child; child = child->next) {
                if (node->is_list)
                        json_array_append_new(tree, tree_of(child));
                else
                        json_object_set_new(tree, child->key, tree_of(child));
        }
        return tree;
}

/* Keeps the section as JSON: the code for servers of tools reads the members. */
static bool keep_tools(struct settings *settings, const struct yaml_node *section)
{
        static const char *const names[] = { "mcpServers", "tools" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                if (strcmp(names[i], section->key) != 0)
                        continue;
                if (!settings->tools)
                        settings->tools = json_object();
                json_object_set_new(settings->tools, section->key, tree_of(section));
                return true;
        }
        return false;
}

static int set_section(struct settings *settings, const char *file, const struct yaml_node *section,
                       struct csn_error *err)
{
        if (keep_tools(settings, section))
                return 0;
        if (!is_section(section->key) || section->is_list || section->value)
                return err_setting(err, section->key,
                             "file %s:%u: \"%.60s\" is no section; there are %s with a setting on each line below "
                             "them, and mcpServers and tools",
                             file, section->line, section->key, section_names(&settings->arena));
        return set_nodes(settings, file, section->key, section, err);
}

static int load_text(struct settings *settings, const char *path, const char *text, size_t len, struct csn_error *err)
{
        struct yaml_node root;
        if (yaml_parse(text, len, path, &settings->arena, &root, err) < 0)
                return -err->code;
        for (const struct yaml_node *section = root.children; section; section = section->next)
                if (set_section(settings, path, section, err) < 0)
                        return -err->code;
        return 0;
}

static int load_file(struct settings *settings, const char *path, bool required, struct csn_error *err)
{
        static char text[MIB + 1];
        ssize_t len = io_read_file(AT_FDCWD, path, text, MIB);
        if (len < 0 && errno == ENOENT && !required)
                return 0;
        if (len < 0)
                return err_set(err, CSN_E_CONFIG, errno, "read the configuration file %s", path);
        return load_text(settings, path, text, (size_t)len, err);
}

static const char *variable(char *const *env, const char *name)
{
        size_t len = strlen(name);
        for (; env && *env; env++)
                if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
                        return *env + len + 1;
        return NULL;
}

/* These variables have units of their own: "1.0" is a core here, as in the variable's system of origin. */
static int set_alias(struct settings *settings, const struct alias *alias, const char *value,
                     struct csn_error *err)
{
        struct csn_error why;
        struct setting *setting = find(settings, alias->key, strlen(alias->key));
        bool on, bare = value[0] && value[strspn(value, "0123456789.")] == 0;
        if (alias->yes && !model_parse_bool(value, &on))
                return err_setting(err, setting->key, "environment %s: it is \"%.60s\"; it has to be true or false",
                             alias->variable, value);
        if (alias->yes && !on)
                return 0;
        const char *text =
                arena_text(&settings->arena, "%s%s", alias->yes ? alias->yes : value, bare ? alias->unit : "");
        if (model_set_text(setting->object, setting->field, setting->into, text, setting->key,
                           &settings->arena, &why) < 0)
                return err_setting(err, setting->key, "environment %s: %s", alias->variable, why.text);
        snprintf(setting->source, sizeof setting->source, "environment %s", alias->variable);
        return 0;
}

/*
 * A misspelt variable would change nothing, without notice.  Other names with our prefix are left alone: such variables
 * may be the caller's own.
 */
static int check_variable(const struct settings *settings, const char *entry, struct csn_error *err)
{
        static const char *const others[] = { "CAISSON_CONFIG", "CAISSON_DAEMON" };
        char name[100];
        const char *near = NULL;
        if (strncmp(entry, "CAISSON_", 8) != 0)
                return 0;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(entry, "="), entry);
        for (size_t i = 0; i < ARRAY_LEN(others); i++) {
                if (strcmp(name, others[i]) == 0)
                        return 0;
                if (model_alike(others[i], name))
                        near = others[i];
        }
        for (size_t i = 0; i < settings->n; i++) {
                if (strcmp(settings->list[i].variable, name) == 0)
                        return 0;
                if (!near && model_alike(settings->list[i].variable, name))
                        near = settings->list[i].variable;
        }
        if (near)
                return err_setting(err, name, "environment %s: there is no such setting; did you mean %s?", name,
                             near);
        for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
                size_t len = strlen(sections[i].name), at = strlen("CAISSON_");
                if (strncasecmp(name + at, sections[i].name, len) == 0 && name[at + len] == '_')
                        return err_setting(err, name, "environment %s: no such setting; caisson config show lists "
                                                "them", name);
        }
        return 0;
}

/* ---- variables of other systems ---- */

static void add_note(struct settings *settings, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add_note(struct settings *settings, const char *fmt, ...)
{
        char text[400];
        va_list args;
        if (settings->notes_n == SETTINGS_NOTES_MAX)
                return;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        /* A name of the environment may have any bytes, and a note is printed on terminals. */
        for (char *at = text; *at; at++)
                if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
                        *at = '?';
        settings->notes[settings->notes_n++] = arena_text(&settings->arena, "%s", text);
}

static void note_unknown(struct settings *settings, const char *entry)
{
        static const char *const prefixes[] = { "CODE_EXECUTOR_", "CODE_EXECUTION_", "DEPENDENCY_CACHE_" };
        char name[100];
        const char *near = NULL;
        bool theirs = false;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(entry, "="), entry);
        for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
                theirs = theirs || strncmp(name, prefixes[i], strlen(prefixes[i])) == 0;
        for (size_t i = 0; theirs && i < ARRAY_LEN(aliases); i++) {
                if (strcmp(aliases[i].variable, name) == 0)
                        return;
                if (!near && model_alike(aliases[i].variable, name))
                        near = aliases[i].variable;
        }
        if (theirs)
                add_note(settings, "environment %s: no such variable is known, and it changes nothing%s%s; "
                         "caisson config show lists the settings", name, near ? "; did you mean " : "",
                         near ? near : "");
}

/* As names of images and of their presets are. */
static bool is_image(const char *text)
{
        size_t len = strlen(text);
        return len && len <= 64 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == len && text[0] != '.';
}

static int load_alias(struct settings *settings, const struct alias *alias, const char *value, struct csn_error *err)
{
        if (!alias->key || (alias->is_image && !is_image(value)) || (alias->is_pod && !value[0]))
                return 0;
        /* An empty variable of OpenTelemetry counts as missing. */
        if (!value[0] && strncmp(alias->variable, "OTEL_", 5) == 0)
                return 0;
        return set_alias(settings, alias, value, err);
}

/* When all sources are read: a variable of pods has a meaning where there are pods. */
static void note_aliases(struct settings *settings, char *const *env)
{
        bool has_pods = settings->kubernetes.mode != kubernetes_mode_OFF;
        for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
                const struct alias *alias = &aliases[i];
                const char *value = variable(env, alias->variable);
                if (!value || !alias->note || (alias->is_image && is_image(value)) ||
                    ((alias->is_image || alias->is_pod) && has_pods))
                        continue;
                add_note(settings, "environment %s has no meaning here: %s", alias->variable, alias->note);
        }
}

static int load_env(struct settings *settings, char *const *env, struct csn_error *err)
{
        char source[200];
        for (char *const *entry = env; entry && *entry; entry++) {
                if (check_variable(settings, *entry, err) < 0)
                        return -err->code;
                note_unknown(settings, *entry);
        }
        for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
                const char *value = variable(env, aliases[i].variable);
                if (value && load_alias(settings, &aliases[i], value, err) < 0)
                        return -err->code;
        }
        for (size_t i = 0; i < settings->n; i++) {
                const char *value = variable(env, settings->list[i].variable);
                if (!value)
                        continue;
                snprintf(source, sizeof source, "environment %s", settings->list[i].variable);
                if (set(settings, &settings->list[i], value, source, err) < 0)
                        return -err->code;
        }
        return 0;
}

static int load_flags(struct settings *settings, const char *const *flags, struct csn_error *err)
{
        for (; flags && *flags; flags++) {
                const char *equals = strchr(*flags, '=');
                struct setting *setting = equals ? find(settings, *flags, (size_t)(equals - *flags)) : NULL;
                if (!equals)
                        return err_setting(err, *flags, "flag --set: \"%.80s\" is not of the form KEY=VALUE",
                                     *flags);
                if (!setting)
                        return unknown(settings, "flag --set",
                                       arena_copy(&settings->arena, *flags, (size_t)(equals - *flags)), err);
                if (set(settings, setting, equals + 1, "flag --set", err) < 0)
                        return -err->code;
        }
        return 0;
}

/*
 * The secret of a service manager (systemd.exec(5), CREDENTIALS_DIRECTORY), laid over the file.  Read once: the content
 * stays the same while the process lives, and a daemon without its rights could not read the secret again.
 */
static int load_credential(struct settings *settings, char *const *env, struct csn_error *err)
{
        static char text[64 * KIB + 1];
        static ssize_t len;
        const char *folder = variable(env, "CREDENTIALS_DIRECTORY");
        if (!folder || !folder[0])
                return 0;
        const char *path = arena_text(&settings->arena, "%s/caisson.yaml", folder);
        if (!len)
                len = io_read_file(AT_FDCWD, path, text, sizeof text - 1);
        if (len < 0) {
                len = 0;
                return errno == ENOENT ? 0 : err_set(err, CSN_E_CONFIG, errno, "read the credential %s", path);
        }
        return load_text(settings, path, text, (size_t)len, err);
}

static int load_usual_file(struct settings *settings, char *const *env, struct csn_error *err)
{
        const char *xdg = variable(env, "XDG_CONFIG_HOME"), *home = variable(env, "HOME");
        char *own = xdg && xdg[0] ? arena_text(&settings->arena, "%s/caisson/caisson.yaml", xdg)
                                  : arena_text(&settings->arena, "%s/.config/caisson/caisson.yaml",
                                               home ? home : "");
        if (access(own, F_OK) == 0)
                return load_file(settings, own, true, err);
        return load_file(settings, "/etc/caisson/caisson.yaml", false, err);
}

/* Checks across several values. */
static int check_engine(struct settings *settings, struct csn_error *err)
{
        const struct engine_settings *engine = &settings->engine;
        const struct setting *profile = find(settings, "engine.profile", strlen("engine.profile"));
        struct profile found;
        struct csn_error why;
        if (engine->uid_first + engine->uid_count > UINT32_MAX)
                return err_setting(err, "engine.uid_count",
                             "engine.uid_first=%" PRIu64 " and engine.uid_count=%" PRIu64
                             " lead past the last uid",
                             engine->uid_first, engine->uid_count);
        if (profile && strcmp(profile->source, "default") != 0 &&
            profile_find(settings, engine->profile, &settings->arena, &found, &why) < 0)
                return err_setting(err, profile->key, "%s: %s", profile->source, why.text);
        if (profile_is_internal(engine->profile))
                return err_setting(err, profile->key, "%s: the profile %s is the engine's own; name another profile",
                             profile->source, engine->profile);
        return 0;
}

/* The host's name, behind an optional user; NULL: no address with http:// or https://. */
static const char *host_of(const char *url)
{
        size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
        return scheme && url[scheme] && url[scheme] != '/' ? url + scheme : NULL;
}

/* An index is an address without credentials, which caisson config show would print. */
static int check_packages(struct settings *settings, struct csn_error *err)
{
        static const char *const keys[][2] = { { "packages.python.index_url", "packages.python.index_token_file" },
                { "packages.node.registry_url", "packages.node.registry_token_file" } };
        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
                const struct setting *setting = find(settings, keys[i][0], strlen(keys[i][0]));
                char value[SETTING_VALUE_MAX];
                settings_value(setting, value, sizeof value);
                const char *host = host_of(value);
                if (value[0] && !host)
                        return err_setting(err, setting->key, "%s: %s is \"%.100s\"; it has to begin with http:// or https:// "
                                     "and name a host", setting->source, setting->key, value);
                if (host && memchr(host, '@', strcspn(host, "/?#")))
                        return err_setting(err, setting->key, "%s: %s has a user or a password in it; write the token into a "
                                     "file and name the file in %s", setting->source, setting->key, keys[i][1]);
        }
        return 0;
}

int settings_load(const struct settings_sources *sources, struct settings *ret, struct csn_error *err)
{
        build_list(ret);
        const char *named = sources->file ? sources->file : variable(sources->env, "CAISSON_CONFIG");
        int rc = named ? load_file(ret, named, true, err) : load_usual_file(ret, sources->env, err);
        if (rc == 0)
                rc = load_credential(ret, sources->env, err);
        if (rc == 0)
                rc = load_env(ret, sources->env, err);
        if (rc == 0)
                rc = load_flags(ret, sources->flags, err);
        if (rc == 0)
                note_aliases(ret, sources->env);
        fill_defaults(ret);
        if (rc < 0 || (rc = fit_limits(ret, err)) < 0 || (rc = check_packages(ret, err)) < 0 ||
                (rc = settings_check_review(ret, err)) < 0)
                return rc;
        return check_engine(ret, err);
}

void settings_done(struct settings *settings)
{
        json_decref(settings->tools);
        arena_done(&settings->arena);
        *settings = (struct settings){ 0 };
}

/* ---- showing ---- */

void settings_value(const struct setting *setting, char *text, size_t size)
{
        const struct field *field = setting->field;
        const void *at = (const char *)setting->into + field->at;
        if (field->kind == KIND_NUM)
                model_print_exact(field, *(const uint64_t *)at, text, size);
        else if (field->kind == KIND_BOOL)
                snprintf(text, size, "%s", *(const bool *)at ? "true" : "false");
        else if (field->kind == KIND_ENUM)
                snprintf(text, size, "%s", field->choices->values[*(const int *)at].text);
        else
                snprintf(text, size, "%s", *(char *const *)at ? *(char *const *)at : "");
}

bool settings_is_secret(const struct setting *setting)
{
        return strcmp(setting->key, "engine.otlp_headers") == 0 || strcmp(setting->key, "engine.e2b_api_key") == 0;
}

void settings_default(const struct setting *setting, char *text, size_t size)
{
        const struct field *field = setting->field;
        if (field->kind == KIND_NUM)
                model_print_exact(field, is_ceiling(setting) ? field->max : field->def, text, size);
        else if (field->kind == KIND_BOOL)
                snprintf(text, size, "%s", field->def ? "true" : "false");
        else if (field->kind == KIND_ENUM)
                snprintf(text, size, "%s", field->choices->values[field->def].text);
        else
                snprintf(text, size, "%s", field->def_text ? field->def_text : "");
}

bool settings_private_dir(char *ret, size_t size)
{
        struct stat st;
        int n = snprintf(ret, size, "/tmp/caisson-%u", geteuid());
        if (n < 0 || (size_t)n >= size || (mkdir(ret, 0700) < 0 && errno != EEXIST))
                return false;
        /* The sticky bit of its parent keeps other users from replacing the folder. */
        return lstat(ret, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077);
}

/* HOME, or the folder of the user in passwd(5); NULL: neither folder can be entered. */
static const char *home_dir(struct arena *arena)
{
        enum { ENTRY_MAX = 16384 };
        const char *home = getenv("HOME");
        struct passwd entry, *user = NULL;
        if ((!home || !home[0]) && getpwuid_r(geteuid(), &entry, arena_alloc(arena, ENTRY_MAX), ENTRY_MAX, &user) == 0)
                home = user ? user->pw_dir : NULL;
        return home && home[0] && access(home, X_OK) == 0 ? home : NULL;
}

char *settings_state_dir(const struct settings *settings, struct arena *arena)
{
        const char *xdg = getenv("XDG_STATE_HOME"), *home = home_dir(arena);
        char private[64];
        if (settings->engine.state_dir && settings->engine.state_dir[0])
                return arena_text(arena, "%s", settings->engine.state_dir);
        if (geteuid() == 0)
                return arena_text(arena, "/var/lib/caisson");
        if (xdg && xdg[0])
                return arena_text(arena, "%s/caisson", xdg);
        if (home)
                return arena_text(arena, "%s/.local/state/caisson", home);
        return settings_private_dir(private, sizeof private) ? arena_text(arena, "%s/state", private)
                                                             : arena_text(arena, "/nonexistent/caisson");
}

char *settings_layers_dir(const struct settings *settings, struct arena *arena)
{
        if (settings->packages.cache_dir && settings->packages.cache_dir[0])
                return arena_text(arena, "%s", settings->packages.cache_dir);
        return arena_text(arena, "%s/layers", settings_state_dir(settings, arena));
}

char *settings_images_dir(const struct settings *settings, struct arena *arena)
{
        if (settings->images.dir && settings->images.dir[0])
                return arena_text(arena, "%s", settings->images.dir);
        return arena_text(arena, "%s/images", settings_state_dir(settings, arena));
}

char *settings_volumes_dir(const struct settings *settings, struct arena *arena)
{
        if (settings->volumes.dir && settings->volumes.dir[0])
                return arena_text(arena, "%s", settings->volumes.dir);
        return arena_text(arena, "%s/volumes", settings_state_dir(settings, arena));
}
