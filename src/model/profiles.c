/* Profiles: partial requests, built in or from a folder, and the completed request. */
#include "model/settings.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define EXTENDS_MAX 8

static const struct {
        const char *name, *text, *yaml;
        bool internal;
} built_in[] = {
#define PROFILE(name, text, yaml) { name, text, yaml, false },
#define INTERNAL_PROFILE(name, text, yaml) { name, text, yaml, true },
#include "model/profiles.def"
#undef PROFILE
#undef INTERNAL_PROFILE
};

/* The fields of a run_request for profiles.  All other fields are about a single run. */
static const char *const profile_fields[] = {
        "language",
        "extract",
        "args",
        "env",
        "limits",
        "image",
        "policy",
        "allow_imports",
        "forbidden_modules",
        "advise",
        "review",
        "network",
        "allow",
        "preload",
        "packages",
        "volumes",
        "strict_proc",
        "landlock",
        "cgroup",
        "backend",
        "labels",
        "format",
        "aliases",
        "tools",
        NULL
};

const char *const *profile_field_names(void)
{
        return profile_fields;
}

static bool is_profile_field(const char *name)
{
        for (const char *const *field = profile_fields; *field; field++)
                if (strcmp(*field, name) == 0)
                        return true;
        return false;
}

static const char *profile_fields_text(struct arena *arena)
{
        const char *text = "";
        for (const char *const *field = profile_fields; *field; field++)
                text = arena_text(arena, "%s%s%s", text, text[0] ? ", " : "", *field);
        return text;
}

static int wrong(const char *file, const struct yaml_node *node, const char *what, struct csn_error *err)
{
        return err_set(err, CSN_E_CONFIG, 0, "%s:%u: %s: %s", file, node->line,
                       node->key ? node->key : "item", what);
}

static int apply_node(const struct object *object, const struct yaml_node *node, const char *file,
                      struct arena *arena, void *ret, struct csn_error *err);

static int apply_nodes(const struct object *object, const struct yaml_node *nodes, const char *file,
                       struct arena *arena, void *ret, struct csn_error *err)
{
        for (const struct yaml_node *node = nodes; node; node = node->next)
                if (apply_node(object, node, file, arena, ret, err) < 0)
                        return -err->code;
        return 0;
}

static size_t children_of(const struct yaml_node *node)
{
        size_t n = 0;
        for (const struct yaml_node *child = node->children; child; child = child->next)
                n++;
        return n;
}

static int apply_node(const struct object *object, const struct yaml_node *node, const char *file,
                      struct arena *arena, void *ret, struct csn_error *err)
{
        const struct field *field = model_field(object, node->key);
        struct csn_error why;
        size_t n = children_of(node), i = 0;
        if (object == &object_run_request && !is_profile_field(node->key))
                return wrong(file, node,
                        arena_text(arena, "a profile cannot set this field; a profile sets description, extends, session, %s",
                                profile_fields_text(arena)),
                        err);
        if (!field)
                return wrong(file, node, "there is no such field", err);
        if (n > field->max && (field->kind == KIND_PAIRS || field->kind == KIND_TEXTS))
                return wrong(file, node, "has too many entries", err);
        switch (field->kind) {
        case KIND_SUB:
                if (node->value || node->is_list)
                        return wrong(file, node, "has to be a mapping", err);
                *(uint64_t *)ret |= (uint64_t)1 << (field - object->fields);
                return apply_nodes(field->object, node->children, file, arena, (char *)ret + field->at, err);
        case KIND_PAIRS: {
                struct pair *pairs = arena_alloc(arena, n * sizeof *pairs + 1);
                if (node->value || node->is_list)
                        return wrong(file, node, "has to be a mapping of names to texts", err);
                for (const struct yaml_node *child = node->children; child; child = child->next) {
                        if (!child->value)
                                return wrong(file, node, "has to be a mapping of names to texts", err);
                        pairs[i++] = (struct pair){ arena_text(arena, "%s", child->key),
                                                    arena_text(arena, "%s", child->value) };
                }
                *(struct pair **)(void *)((char *)ret + field->at) = pairs;
                break;
        }
        case KIND_TEXTS: {
                char **texts = arena_alloc(arena, n * sizeof *texts + 1);
                if (node->value && model_parse_list(field, node->value, arena, &texts, &n, &why) < 0)
                        return wrong(file, node, why.text, err);
                if (!node->value && !node->is_list)
                        return wrong(file, node, "has to be a list of texts", err);
                for (const struct yaml_node *child = node->children; child; child = child->next) {
                        if (!child->value || strlen(child->value) > field->max_length)
                                return wrong(file, child, "has to be a text of the allowed length", err);
                        texts[i++] = arena_text(arena, "%s", child->value);
                }
                *(char ***)(void *)((char *)ret + field->at) = texts;
                break;
        }
        default:
                if (!node->value)
                        return wrong(file, node, "has to be one value", err);
                if (model_set_value(object, field, ret, node->value, field->name, arena, &why) < 0)
                        return wrong(file, node, why.text, err);
                return 0;
        }
        *(size_t *)(void *)((char *)ret + field->count_at) = n;
        *(uint64_t *)ret |= (uint64_t)1 << (field - object->fields);
        return 0;
}

/* ---- finding ---- */

static bool is_good_name(const char *name)
{
        return name[0] && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") ==
                                  strlen(name);
}

static int unknown(const struct settings *settings, const char *name, struct arena *arena,
                   struct csn_error *err)
{
        char known[360];
        size_t len = 0;
        char **names = profile_names(settings, arena);
        for (size_t i = 0; names[i] && len < sizeof known; i++)
                if (!profile_is_internal(names[i]))
                        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", i ? ", " : "", names[i]);
        err_field(err, "/profile", "Unsupported code execution env: %.60s; known profiles are %s", name, known);
        if (err)
                err->code = CSN_E_PROFILE;
        return -CSN_E_PROFILE;
}

static int read_profile(const struct settings *settings, const char *name, struct arena *arena,
                        char **ret_text, size_t *ret_len, const char **ret_file, const char **ret_about,
                        struct csn_error *err)
{
        static char text[MIB + 1];
        for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
                if (strcmp(built_in[i].name, name) == 0) {
                        *ret_text = (char *)(uintptr_t)built_in[i].yaml;
                        *ret_len = strlen(built_in[i].yaml);
                        *ret_file = built_in[i].name;
                        *ret_about = built_in[i].text;
                        return 0;
                }
        const char *dir = settings->engine.profiles_dir;
        if (!dir[0] || !is_good_name(name))
                return unknown(settings, name, arena, err);
        char *path = arena_text(arena, "%s/%s.yaml", dir, name);
        ssize_t len = io_read_file(AT_FDCWD, path, text, MIB);
        if (len < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG))
                return unknown(settings, name, arena, err);
        if (len < 0)
                return err_set(err, CSN_E_CONFIG, errno, "read the profile %s", path);
        *ret_text = arena_copy(arena, text, (size_t)len);
        *ret_len = (size_t)len;
        *ret_file = path;
        *ret_about = "A profile of this installation.";
        return 0;
}

static bool is_built_in(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
                if (strcmp(built_in[i].name, name) == 0)
                        return true;
        return false;
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

char **profile_names(const struct settings *settings, struct arena *arena)
{
        size_t n = 0, max = ARRAY_LEN(built_in) + 1000;
        char **names = arena_alloc(arena, (max + 1) * sizeof *names);
        for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
                names[n++] = arena_text(arena, "%s", built_in[i].name);
        const char *folder = settings->engine.profiles_dir;
        DIR *dir = folder[0] ? opendir(folder) : NULL;
        for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && n < max; entry = readdir(dir)) {
                size_t len = strlen(entry->d_name);
                if (len <= 5 || strcmp(entry->d_name + len - 5, ".yaml") != 0)
                        continue;
                char *name = arena_copy(arena, entry->d_name, len - 5);
                /* A file with the name of a built-in profile is never read. */
                if (is_good_name(name) && !is_built_in(name))
                        names[n++] = name;
        }
        if (dir)
                closedir(dir);
        qsort(names + ARRAY_LEN(built_in), n - ARRAY_LEN(built_in), sizeof *names, by_text);
        return names;
}

bool profile_is_internal(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
                if (strcmp(built_in[i].name, name) == 0)
                        return built_in[i].internal;
        return false;
}

static int take_session(const struct yaml_node *node, const char *file, struct profile *ret, struct csn_error *err)
{
        for (size_t i = 0; i < choices_session_mode.n; i++)
                if (strcmp(choices_session_mode.values[i].text, node->value) == 0) {
                        ret->session = (enum session_mode)i;
                        ret->has_session = true;
                        return 0;
                }
        return wrong(file, node, "has to be none, files or interpreter", err);
}

static int find_below(const struct settings *settings, const char *name, unsigned depth, struct arena *arena,
                      struct profile *ret, struct csn_error *err)
{
        char *text = NULL;
        size_t len = 0;
        const char *file = NULL, *about = NULL;
        struct yaml_node root;
        if (read_profile(settings, name, arena, &text, &len, &file, &about, err) < 0)
                return -err->code;
        if (yaml_parse(text, len, file, arena, &root, err) < 0)
                return -err->code;
        struct run_request own = { 0 };
        struct profile session = { 0 };
        struct csn_error why;
        for (const struct yaml_node *node = root.children; node; node = node->next) {
                if (strcmp(node->key, "extends") == 0 && node->value) {
                        if (depth == EXTENDS_MAX)
                                return wrong(file, node, "profiles extend each other in a circle", err);
                        if (find_below(settings, node->value, depth + 1, arena, ret, &why) < 0)
                                return err_set(err, CSN_E_CONFIG, 0, "%s:%u: %s", file, node->line, why.text);
                } else if (strcmp(node->key, "description") == 0 && node->value) {
                        about = node->value;
                } else if (strcmp(node->key, "session") == 0 && node->value) {
                        if (take_session(node, file, &session, err) < 0)
                                return -err->code;
                } else if (apply_node(&object_run_request, node, file, arena, &own, err) < 0) {
                        return -err->code;
                }
        }
        if (model_check_request(&own, true, &why) < 0)
                return err_set(err, CSN_E_CONFIG, 0, "%s: %s", file, why.text);
        model_overlay(&object_run_request, &ret->request, &own, arena);
        if (session.has_session) {
                ret->session = session.session;
                ret->has_session = true;
        }
        ret->name = arena_text(arena, "%s", name);
        ret->text = about;
        return 0;
}

/* Built-in profiles never change, and are read once: each request names a profile. */
static const struct profile *find_built_in(const struct settings *settings, const char *name)
{
        static struct profile known[ARRAY_LEN(built_in)];
        static struct arena arena;
        struct csn_error err;
        for (size_t i = 0; i < ARRAY_LEN(built_in); i++) {
                if (strcmp(built_in[i].name, name) != 0)
                        continue;
                if (!known[i].name && find_below(settings, name, 0, &arena, &known[i], &err) < 0)
                        return NULL;
                return &known[i];
        }
        return NULL;
}

/*
 * Limits of a build: the profile's, and numbers implied by settings of packages.  None exceeds a ceiling of the
 * administrator's.
 */
static void set_build_limits(const struct settings *settings, struct limits *limits)
{
        const struct packages_settings *packages = &settings->packages;
        SET(limits, limits, wall_ms, packages->build_wall);
        SET(limits, limits, cpu_ms, packages->build_wall);
        SET(limits, limits, disk_bytes, 3 * packages->max_bytes);
        SET(limits, limits, tmp_bytes, 2 * packages->max_bytes);
        SET(limits, limits, disk_files, 2 * packages->max_files);
        SET(limits, limits, output_files, packages->max_files);
        for (size_t i = 0; i < object_limits.n; i++) {
                const struct field *field = &object_limits.fields[i];
                uint64_t *value = (uint64_t *)(void *)((char *)limits + field->at);
                if (field->kind == KIND_NUM && (limits->present >> i & 1))
                        *value = min_u64(*value,
                                *(const uint64_t *)(const void *)((const char *)&settings->ceilings + field->at));
        }
}

int profile_find(const struct settings *settings, const char *name, struct arena *arena, struct profile *ret,
                 struct csn_error *err)
{
        const struct profile *known = find_built_in(settings, name);
        *ret = known ? *known : (struct profile){ 0 };
        if (!known)
                return find_below(settings, name, 0, arena, ret, err);
        if (profile_is_internal(name))
                set_build_limits(settings, &ret->request.limits);
        return 0;
}

/* ---- the whole request ---- */

int profile_overlay(const struct profile *profile, const struct run_request *request, struct arena *arena,
                    struct run_request *whole, struct csn_error *err)
{
        const struct run_request *own = &profile->request;
        const uint64_t most = model_field(&object_run_request, "allow_imports")->max;
        const size_t n = own->allow_imports_n + request->allow_imports_n;
        model_overlay(&object_run_request, whole, own, arena);
        model_overlay(&object_run_request, whole, request, arena);
        if (!own->allow_imports_n || !request->allow_imports_n)
                return 0;
        if (n > most)
                return err_field(err, "/allow_imports",
                                 "allow_imports has %zu modules together with those of the profile; at most %" PRIu64
                                 " are possible", n, most);
        whole->allow_imports = arena_alloc(arena, n * sizeof *whole->allow_imports);
        whole->allow_imports_n = n;
        memcpy(whole->allow_imports, own->allow_imports, own->allow_imports_n * sizeof *own->allow_imports);
        memcpy(whole->allow_imports + own->allow_imports_n, request->allow_imports,
               request->allow_imports_n * sizeof *own->allow_imports);
        return 0;
}

static int check_ceilings(const struct settings *settings, const struct limits *limits, struct csn_error *err)
{
        for (size_t i = 0; i < object_limits.n; i++) {
                const struct field *field = &object_limits.fields[i];
                char asked[40], ceiling[40], where[80];
                if (field->kind != KIND_NUM)
                        continue;
                uint64_t value = *(const uint64_t *)(const void *)((const char *)limits + field->at);
                uint64_t most =
                        *(const uint64_t *)(const void *)((const char *)&settings->ceilings + field->at);
                if (value <= most)
                        continue;
                model_print_exact(field, value, asked, sizeof asked);
                model_print_exact(field, most, ceiling, sizeof ceiling);
                snprintf(where, sizeof where, "/limits/%s", field->name);
                return err_field(err, where,
                                 "limits.%s is %s; the administrator allows at most %s (setting ceilings.%s)",
                                 field->name, asked, ceiling, field->name);
        }
        return 0;
}

/* A request cannot give up the administrator's requirements. */
static int check_needs(const struct settings *settings, const struct run_request *whole,
                       struct csn_error *err)
{
        if (settings->engine.landlock == need_REQUIRE && whole->landlock != need_REQUIRE)
                return err_field(err, "/landlock",
                                 "landlock is \"%s\"; the administrator requires it (engine.landlock)",
                                 choices_need.values[whole->landlock].text);
        if (settings->engine.cgroup == cgroup_need_REQUIRE && whole->cgroup != cgroup_need_REQUIRE)
                return err_field(err, "/cgroup",
                                 "cgroup is \"%s\"; the administrator requires it (engine.cgroup)",
                                 choices_cgroup_need.values[whole->cgroup].text);
        /* none < allow < public, in the order of fields.def */
        if (whole->network > settings->engine.network)
                return err_field(err, "/network",
                                 "network is \"%s\"; the administrator allows at most \"%s\" (engine.network)",
                                 choices_network.values[whole->network].text,
                                 choices_network.values[settings->engine.network].text);
        return 0;
}

int settings_apply(const struct settings *settings, struct run_request *request, struct arena *arena,
                   struct csn_error *err)
{
        struct profile profile;
        struct run_request whole = { 0 };
        const char *name = HAS(request, run_request, profile) ? request->profile : settings->engine.profile;
        if (profile_find(settings, name, arena, &profile, err) < 0)
                return -err->code;
        SET(&whole, run_request, landlock, settings->engine.landlock);
        SET(&whole, run_request, cgroup, settings->engine.cgroup);
        whole.limits = settings->limits;
        MARK(&whole, run_request, limits);
        if (profile_overlay(&profile, request, arena, &whole, err) < 0)
                return -err->code;
        /* off < advisory < required, in the order of fields.def: a request can only raise the mode of its profile. */
        if (whole.review < profile.request.review)
                whole.review = profile.request.review;
        SET(&whole, run_request, profile, arena_text(arena, "%s", name));
        model_defaults(&object_run_request, &whole);
        /* Unlimited CPU time still has the administrator's ceiling. */
        if (whole.limits.cpu_ms == 0 &&
            settings->ceilings.cpu_ms < model_field(&object_limits, "cpu_ms")->max)
                whole.limits.cpu_ms = settings->ceilings.cpu_ms;
        if (check_ceilings(settings, &whole.limits, err) < 0 || check_needs(settings, &whole, err) < 0)
                return -err->code;
        if (strcmp(whole.backend, "host") == 0 &&
            !(settings->engine.allow_host && HAS(request, run_request, backend) &&
              strcmp(request->backend, "host") == 0))
                return err_field(err, "/backend",
                                 "the host backend has no sandbox; it needs the setting engine.allow_host "
                                 "and the backend \"host\" in this very request");
        *request = whole;
        return 0;
}
