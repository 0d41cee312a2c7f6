/*
 * settings: the configuration of the engine, from one table, with one parser for all its sources.
 *
 * A value comes from, in this order: a flag (--set KEY=VALUE), the environment (CAISSON_SECTION_NAME, then
 * the names that other systems gave it), the configuration file, the default.  A wrong value stops the
 * start and names the place, the value and what is allowed.
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

extern const struct object object_engine_settings;

struct setting {
        char key[64];              /* "limits.wall_ms" */
        char variable[72];         /* "CAISSON_LIMITS_WALL_MS" */
        const char *aliases[4];    /* variables of other systems; NULL ends */
        const struct object *object;
        const struct field *field;
        void *into;                /* the struct below that holds it */
        char source[200];          /* "default", "flag --set", "environment X", "file PATH:LINE" */
};

struct settings {
        struct limits limits;      /* defaults for requests */
        struct limits ceilings;    /* what a request may ask for at the most */
        struct engine_settings engine;
        json_t *tools;             /* the sections mcpServers and tools, for tools/sources/sources.h: all values texts; NULL: none */
        struct setting *list;      /* every setting, in the order of the table */
        size_t n;
        struct arena arena;
};

struct settings_sources {
        const char *file;          /* NULL: the usual places; a named file has to exist */
        const char *const *flags;  /* "KEY=VALUE", NULL-terminated, or NULL */
        char *const *env;          /* as environ(7) */
};

/* Errors: CSN_E_CONFIG.  *ret is to be released with settings_done() in any case. */
int settings_load(const struct settings_sources *sources, struct settings *ret, struct csn_error *err);
void settings_done(struct settings *settings);

/* A setting's value as text that the parser reads back. */
void settings_value(const struct setting *setting, char *text, size_t size);
/* Its value is for nobody to see. */
bool settings_is_secret(const struct setting *setting);
/* Its default, likewise. */
void settings_default(const struct setting *setting, char *text, size_t size);

/* ---- new settings for a program that runs (settings_reload.c) ---- */

#define SETTING_VALUE_MAX 4200     /* the longest text, and its end */

/* Whether it can change without a restart. */
bool settings_is_live(const struct setting *setting);

typedef void settings_change_fn(void *owner, const struct setting *setting, const char *was, const char *is);

/*
 * Take over from `fresh`, which stays the caller's, what can change without a restart.  changed() is told of every
 * setting that differs; the others keep their value, and are told again the next time.
 */
void settings_reload(struct settings *settings, const struct settings *fresh, settings_change_fn *changed, void *owner);

/* ---- what is made from the tables (generate.c) ---- */

/* The reference of all settings and profiles, in Markdown: docs/use/settings.md. */
bool settings_markdown(struct buf *buf);

/*
 * The n-th file that the repository has although it follows from the tables: JSON Schemas and
 * docs/use/settings.md.  Its text goes to the end of buf; returns its path from the root of the sources, NULL
 * after the last.  generate.c writes them, and a test compares.
 */
const char *generated_file(size_t n, struct buf *buf);

/*
 * A folder of this user alone, for one without a home and without XDG_RUNTIME_DIR: /tmp/caisson-UID, which is made.  False: another
 * user has taken the name, or others may write there.
 */
bool settings_private_dir(char *ret, size_t size);

/* Where files live that outlive a run.  From the arena. */
char *settings_state_dir(const struct settings *settings, struct arena *arena);

/* ---- profiles ---- */

struct profile {
        const char *name;
        const char *text;          /* one sentence */
        struct run_request request;   /* what it sets */
};

/*
 * A profile by name: built in, or NAME.yaml in engine.profiles_dir, which has fields of a request, and
 * `description` and `extends: NAME`.  Errors: CSN_E_INPUT (no such profile; the text lists the known ones),
 * CSN_E_CONFIG (the file is wrong; the text names file and line).
 */
int profile_find(const struct settings *settings, const char *name, struct arena *arena, struct profile *ret,
                 struct csn_error *err);
/* All names, NULL-terminated, built-in ones first. */
char **profile_names(const struct settings *settings, struct arena *arena);

/*
 * The whole request: defaults, then limits and needs of the settings, then the profile, then what was
 * asked; and then the ceilings.  Errors: CSN_E_INPUT naming limit, value, ceiling and setting; those of
 * profile_find().  Where it fails *request is as it was.
 */
int settings_apply(const struct settings *settings, struct run_request *request, struct arena *arena,
                   struct csn_error *err);

/* ---- YAML (yaml.c) ---- */

/* A mapping entry or a list item.  Scalars are texts; the table that reads them knows their type. */
struct yaml_node {
        const char *key;           /* NULL for items of a list and for the document itself */
        const char *value;         /* NULL for mappings, lists and where nothing is written */
        struct yaml_node *children;
        struct yaml_node *next;
        bool is_list;
        unsigned line;             /* from 1 */
};

/*
 * A small part of YAML 1.1: mappings, lists and scalars, at most 1 MiB and 8 levels; no anchors, aliases or
 * tags, no null, no key twice.  Errors: CSN_E_CONFIG naming `name` and the line.
 */
int yaml_parse(const char *text, size_t len, const char *name, struct arena *arena, struct yaml_node *ret,
               struct csn_error *err);

#endif
