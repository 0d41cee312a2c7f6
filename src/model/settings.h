/*
 * settings: the engine's configuration, from one table, with one parser for all sources.
 *
 * Sources, by precedence: a flag (--set KEY=VALUE), the environment (CAISSON_SECTION_NAME, then names of other
 * systems), the configuration file, the default.  A wrong value prevents the start; the error has the place, the
 * value and the allowed values.
 */
#ifndef MODEL_SETTINGS_H
#define MODEL_SETTINGS_H

#include "model/model.h"

#define CHOICES(choices) enum choices {
#define VALUE(choices, name, text, number, meaning) choices##_##name,
#define END_CHOICES(choices) };
#define OBJECT(object, title, text) struct object { uint64_t present;
#define NUM(object, member, presence, min, max, def, unit, option, help) uint64_t member;
#define BOOL(object, member, presence, def, option, help) bool member;
#define TEXT(object, member, presence, max, def, option, help) char *member;
#define ENUM(object, member, presence, choices, def, option, help) int member;
#define END(object) };
#include "model/settings.def"
#include "model/undef.h"

extern const struct object object_engine_settings, object_volumes_settings, object_http_settings,
        object_problems_settings, object_images_settings,
        object_docker_settings, object_gateway_settings, object_kubernetes_settings,
        object_sessions_settings, object_grading_settings, object_packages_settings,
        object_python_packages_settings, object_node_packages_settings, object_review_settings,
        object_review_price_settings;

#define SETTINGS_NOTES_MAX 64      /* sentences; further ones are dropped */

struct setting {
        char key[64];              /* "limits.wall_ms" */
        char variable[72];         /* "CAISSON_LIMITS_WALL_MS" */
        const char *aliases[4];    /* variables of other systems; NULL-terminated */
        const struct object *object;
        const struct field *field;
        void *into;                /* the struct below with the value */
        char source[200];          /* "default", "flag --set", "environment X", "file PATH:LINE" */
};

struct settings {
        struct limits limits;      /* defaults for requests */
        struct limits ceilings;    /* upper bounds for requests */
        struct engine_settings engine;
        struct volumes_settings volumes;                 /* volumes.* */
        struct http_settings http;                       /* http.* */
        struct problems_settings problems;               /* problems.* */
        struct images_settings images;                   /* images.* */
        struct docker_settings docker;                   /* docker.* */
        struct gateway_settings gateway;                 /* gateway.* */
        struct kubernetes_settings kubernetes;           /* kubernetes.* */
        struct sessions_settings sessions;               /* sessions.* */
        struct grading_settings grading;                 /* grading.* */
        struct packages_settings packages;               /* packages.* */
        struct python_packages_settings python_packages; /* packages.python.* */
        struct node_packages_settings node_packages;     /* packages.node.* */
        struct review_settings review;                   /* review.* */
        struct review_price_settings review_price;       /* review.price.* */
        /* The sections mcpServers and tools, for tools/sources/sources.h, with all values as texts; NULL: none. */
        json_t *tools;
        struct setting *list;      /* all settings, in the order of the table */
        size_t n;
        /* Sentences about variables of other systems without an effect here; for standard error or the log. */
        const char *notes[SETTINGS_NOTES_MAX];
        size_t notes_n;
        struct arena arena;
};

struct settings_sources {
        const char *file;          /* NULL: the default places; a named file must exist */
        const char *const *flags;  /* "KEY=VALUE", NULL-terminated, or NULL */
        char *const *env;          /* a list as environ(7) */
};

/* Load the settings.  The caller calls settings_done() in each case, after an error too.  Errors: CSN_E_CONFIG. */
int settings_load(const struct settings_sources *sources, struct settings *ret, struct csn_error *err);
void settings_done(struct settings *settings);

/* A setting's value as text, readable by the parser. */
void settings_value(const struct setting *setting, char *text, size_t size);
/* Whether the value must not be shown. */
bool settings_is_secret(const struct setting *setting);
/* A setting's default as text. */
void settings_default(const struct setting *setting, char *text, size_t size);

/* ---- reload in a running program (settings_reload.c) ---- */

#define SETTING_VALUE_MAX 4200     /* longest text with its NUL */

/* Whether the setting can change without a restart. */
bool settings_is_live(const struct setting *setting);

typedef void settings_change_fn(void *owner, const struct setting *setting, const char *was, const char *is);

/*
 * Copy from `fresh` (which stays the caller's) all settings that can change without a restart.  changed() is
 * called for each different setting; a setting that needs a restart keeps its value and is reported again by the
 * next call.
 */
void settings_reload(struct settings *settings, const struct settings *fresh, settings_change_fn *changed, void *owner);

/* Check review.* as a whole (settings_review.c).  Errors: CSN_E_CONFIG. */
int settings_check_review(const struct settings *settings, struct csn_error *err);

/* ---- files generated from the tables (generate.c) ---- */

/*
 * The n-th generated file of the repository: JSON Schemas and docs/use/settings.md.  Appends the text to `buf`
 * and returns the path from the root of the sources; NULL after the last.  generate.c writes the files, and a
 * test compares.
 */
const char *generated_file(size_t n, struct buf *buf);

/*
 * Private folder of a user without home and without XDG_RUNTIME_DIR: /tmp/caisson-UID, made if missing.  False:
 * the name is owned by another user, or writable for others.
 */
bool settings_private_dir(char *ret, size_t size);

/* Folder of persistent state; the text lives in `arena`. */
char *settings_state_dir(const struct settings *settings, struct arena *arena);
/* Folder of layers, packages.cache_dir or below the state folder; the text lives in `arena`. */
char *settings_layers_dir(const struct settings *settings, struct arena *arena);
/* Folder of images, images.dir or below the state folder; the text lives in `arena`. */
char *settings_images_dir(const struct settings *settings, struct arena *arena);
/* Folder of volumes. */
char *settings_volumes_dir(const struct settings *settings, struct arena *arena);

/* ---- profiles ---- */

struct profile {
        const char *name;
        const char *text;          /* a sentence */
        struct run_request request;   /* fields set by the profile */
        enum session_mode session;    /* state between runs of a session */
        bool has_session;             /* the profile sets `session` */
};

/*
 * Find a profile by name: built in, or NAME.yaml in engine.profiles_dir with fields of a request, `description`,
 * `session: MODE` and `extends: NAME`.  Errors: CSN_E_PROFILE (unknown profile; the text lists the known names),
 * CSN_E_CONFIG (malformed file; the text has file and line).
 */
int profile_find(const struct settings *settings, const char *name, struct arena *arena, struct profile *ret,
                 struct csn_error *err);
/*
 * Lay a request over a profile's fields in *whole: each field of the request replaces the profile's, and modules of
 * allow_imports are added to the profile's.  Errors: CSN_E_INPUT (more modules than a request may have).
 */
int profile_overlay(const struct profile *profile, const struct run_request *request, struct arena *arena,
                    struct run_request *whole, struct csn_error *err);
/* All names, NULL-terminated, built-in profiles first; in `arena`. */
char **profile_names(const struct settings *settings, struct arena *arena);
/* Whether the profile is the engine's own, for no request. */
bool profile_is_internal(const char *name);
/* The fields of a run_request for profiles; NULL-terminated. */
const char *const *profile_field_names(void);

/*
 * Complete a request: defaults, then limits and needs of the settings, then the profile, then the request's own
 * fields; then check the ceilings.  After an error *request is unchanged.  Errors: CSN_E_INPUT with limit, value,
 * ceiling and setting; those of profile_find().
 */
int settings_apply(const struct settings *settings, struct run_request *request, struct arena *arena,
                   struct csn_error *err);

/* ---- YAML (yaml.c) ---- */

/* A mapping entry or a list item.  Scalars are texts; the reading table determines their type. */
struct yaml_node {
        const char *key;           /* NULL for list items and the document */
        const char *value;         /* NULL for mappings, lists and empty values */
        struct yaml_node *children;
        struct yaml_node *next;
        bool is_list;
        bool quoted;               /* the scalar is in quotes or a block: a text, whatever it looks like */
        unsigned line;             /* first line: 1 */
};

/*
 * Parse a small part of YAML 1.1: mappings, lists and scalars, at most 1 MiB and 16 levels; no anchors, aliases or
 * tags, no null, no duplicate keys.  Nodes live in `arena`.  Errors: CSN_E_CONFIG with `name` and the line.
 */
int yaml_parse(const char *text, size_t len, const char *name, struct arena *arena, struct yaml_node *ret,
               struct csn_error *err);

#endif
