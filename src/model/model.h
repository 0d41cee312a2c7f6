/*
 * model: the data that the world sees.
 *
 * fields.def has every public field once.  From it come the structs below and the descriptions of their
 * fields, over which one decoder, one encoder and one schema generator walk.  Each struct begins with the
 * bits of the fields that were set, so a profile or a request is a partial object that is laid over its
 * defaults.  All memory belongs to the arena that a function is given; an all-zero struct is an empty one.
 *
 * settings.def is the same for the configuration, see settings.h.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/base.h"

#include <jansson.h>

#define MODEL_SCHEMA_VERSION "1"

/* ---- the structs of fields.def ---- */

struct bytes {
        char *bytes;
        size_t len;
};

struct pair {
        char *name;
        char *value;
};

#define CHOICES(choices) enum choices {
#define VALUE(choices, name, text, number, meaning) choices##_##name,
#define END_CHOICES(choices) };
#define OBJECT(object, title, text)
#define NUM(object, member, presence, min, max, def, unit, option, help)
#define INT(object, member, presence, help)
#define REAL(object, member, presence, help)
#define BOOL(object, member, presence, def, option, help)
#define TEXT(object, member, presence, max, def, option, help)
#define BYTES(object, member, presence, max, option, help)
#define JSON(object, member, presence, help)
#define ENUM(object, member, presence, choices, def, option, help)
#define TEXTS(object, member, presence, items, max, option, help)
#define PAIRS(object, member, presence, items, option, help)
#define SUB(object, member, presence, other, help)
#define LIST(object, member, presence, other, items, option, help)
#define END(object)
#include "model/fields.def"
#include "model/undef.h"

#define CHOICES(choices)
#define VALUE(choices, name, text, number, meaning)
#define END_CHOICES(choices)
#define OBJECT(object, title, text) struct object { uint64_t present;
#define NUM(object, member, presence, min, max, def, unit, option, help) uint64_t member;
#define INT(object, member, presence, help) int64_t member;
#define REAL(object, member, presence, help) double member;
#define BOOL(object, member, presence, def, option, help) bool member;
#define TEXT(object, member, presence, max, def, option, help) char *member;
#define BYTES(object, member, presence, max, option, help) struct bytes member;
#define JSON(object, member, presence, help) char *member;
#define ENUM(object, member, presence, choices, def, option, help) int member;
#define TEXTS(object, member, presence, items, max, option, help) char **member; size_t member##_n;
#define PAIRS(object, member, presence, items, option, help) struct pair *member; size_t member##_n;
#define SUB(object, member, presence, other, help) struct other member;
#define LIST(object, member, presence, other, items, option, help) struct other *member; size_t member##_n;
#define END(object) };
#include "model/fields.def"
#include "model/undef.h"

/* The place of each field in its object's `present` bits. */
#define CHOICES(choices)
#define VALUE(choices, name, text, number, meaning)
#define END_CHOICES(choices)
#define OBJECT(object, title, text) enum object##_field {
#define NUM(object, member, ...) FIELD_##object##_##member,
#define INT(object, member, ...) FIELD_##object##_##member,
#define REAL(object, member, ...) FIELD_##object##_##member,
#define BOOL(object, member, ...) FIELD_##object##_##member,
#define TEXT(object, member, ...) FIELD_##object##_##member,
#define BYTES(object, member, ...) FIELD_##object##_##member,
#define JSON(object, member, ...) FIELD_##object##_##member,
#define ENUM(object, member, ...) FIELD_##object##_##member,
#define TEXTS(object, member, ...) FIELD_##object##_##member,
#define PAIRS(object, member, ...) FIELD_##object##_##member,
#define SUB(object, member, ...) FIELD_##object##_##member,
#define LIST(object, member, ...) FIELD_##object##_##member,
#define END(object) FIELDS_OF_##object };
#include "model/fields.def"
#include "model/undef.h"

/* Is it set; set it.  SET for scalars and texts, MARK after filling a list or an object in place. */
#define HAS(pointer, object, member) (((pointer)->present >> FIELD_##object##_##member) & 1)
#define MARK(pointer, object, member) ((pointer)->present |= (uint64_t)1 << FIELD_##object##_##member)
#define SET(pointer, object, member, value_) ((pointer)->member = (value_), MARK(pointer, object, member))

/* ---- descriptions ---- */

enum field_kind {
        KIND_NUM, KIND_INT, KIND_REAL, KIND_BOOL, KIND_TEXT, KIND_BYTES, KIND_JSON, KIND_ENUM, KIND_TEXTS,
        KIND_PAIRS, KIND_SUB, KIND_LIST,
};
enum field_presence { REQUIRED, OPTIONAL, NULLABLE };

struct choice {
        const char *text;
        int number;
        const char *meaning;
};

struct choices {
        const char *name;
        const struct choice *values;
        size_t n;
};

struct field {
        const char *name;
        enum field_kind kind;
        enum field_presence presence;
        size_t at;                       /* offset of the member */
        size_t count_at;                 /* offset of member_n, for lists */
        uint64_t min, max;               /* NUM: bounds; TEXT, BYTES: length; lists: items.  max 0: none */
        uint64_t max_length;             /* TEXTS: of one */
        uint64_t def;                    /* NUM, BOOL, ENUM */
        const char *def_text;            /* TEXT */
        const char *unit;                /* NUM */
        const char *option;              /* the command line's, or NULL */
        const struct choices *choices;   /* ENUM */
        const struct object *object;     /* SUB, LIST */
        const char *help;
};

struct object {
        const char *name, *title, *text;
        size_t size;
        const struct field *fields;
        size_t n;
};

extern const struct choices choices_status, choices_session_mode, choices_output_action, choices_need, choices_cgroup_need,
        choices_network, choices_isolation, choices_severity, choices_verdict, choices_case_status, choices_checkers;
extern const struct object object_client_tool, object_tool_record, object_tool_answer, object_tool_answers, object_tools_request, object_tools_used, object_limits, object_input_file, object_export_rule, object_run_request,
        object_truncated, object_value, object_display, object_failure, object_finding, object_output_file,
        object_taken_file, object_usage, object_timings, object_boundary, object_warning, object_run_result, object_check_request, object_check_result,
        object_sandbox_request, object_sandbox_change, object_context_request, object_process_request, object_process_signal, object_process_size,
        object_file_change, object_session_request, object_grade_case, object_grade_check, object_grade_request, object_grade_sign, object_case_result,
        object_grade_result,
        object_sandbox_info, object_sandbox_list, object_sandbox_usage, object_context_info, object_context_list, object_session_info, object_session_list,
        object_process_info, object_process_list, object_entry_info, object_entry_list, object_kept_run, object_kept_runs, object_tool_refusal,
        object_tools_taken, object_upload_error, object_upload_result, object_stored_file, object_stored_list, object_workspace_info,
        object_workspace_list, object_workspace_file, object_workspace_files, object_profile_info, object_profile_list, object_policy_info,
        object_policy_list, object_policy_detail, object_language_info, object_language_list, object_health, object_problem;

const char *status_name(int status);
/* The command line's exit status for it; -1: the program's own. */
int status_exit(int status);

/* ---- functions over descriptions ---- */

/* Fill in every default that is not set yet, SUB objects included. */
void model_defaults(const struct object *object, void *ret);

/* Lay what is set in `over` upon `under`; SUB objects field by field, PAIRS by name, lists as a whole. */
void model_overlay(const struct object *object, void *under, const void *over, struct arena *arena);

/*
 * JSON into a struct.  Unknown fields, wrong types and values out of bounds are refused with a JSON pointer
 * in err->field and what is allowed in the text.  Errors: CSN_E_INPUT.
 */
int model_decode(const struct object *object, json_t *json, struct arena *arena, void *ret,
                 struct csn_error *err);

/* JSON text into a struct; also refuses duplicate keys, depth above 32, and text after the end. */
int model_decode_text(const struct object *object, const char *text, size_t len, struct arena *arena,
                      void *ret, struct csn_error *err);

/* A struct into JSON, fields in the order of fields.def.  The caller's reference. */
json_t *model_encode(const struct object *object, const void *from);
/* The same as text in one line at the end of buf, byte for byte what model_dump() makes of that.  False: there is no room for it. */
bool model_encode_text(const struct object *object, const void *from, struct buf *buf);
/* JSON of ours as text at the end of buf, in one line or indented.  False: there is no room for it. */
bool model_dump(const json_t *json, bool indented, struct buf *buf);

/*
 * Whether a JSON text has more values and names than that: each costs fifty times the two bytes that it has, so who reads
 * a stranger's asks first.
 */
bool model_has_many_parts(const char *text, size_t len, size_t max);

/*
 * JSON with integers of any size, without members of one name (integers.c).  One of more than 64 bits is a string with a mark:
 * model_digits() has what is behind the mark, or NULL, and model_unmark() makes integers again of all in a text of JSON.
 */
json_t *model_load(const char *text, size_t len, json_error_t *ret_where);
/* As json_loadb(3) and json_dumps(3), with integers of any size on the way in and out. */
json_t *model_read(const char *text, size_t len, size_t flags, json_error_t *ret_where);
char *model_write(const json_t *json, size_t flags);
bool model_has_marks(void);            /* whether this program has read any such integer */
const char *model_digits(const json_t *json);
void model_unmark(char *text);
/* Whether lists and objects in a JSON text are nested deeper than that. */
bool model_is_deeper(const char *text, size_t len, unsigned max);
/* The same of what has been read; it stops at `max`, so it may be asked of anything. */
bool model_value_is_deeper(json_t *value, unsigned max);

/* One field from text, as options, environment and files have it.  Errors: CSN_E_INPUT naming `where`. */
int model_set_text(const struct object *object, const struct field *field, void *into, const char *text,
                   const char *where, struct arena *arena, struct csn_error *err);

/*
 * As model_set_text, but a number without a unit is in the unit of the field's name, as it is in JSON:
 * "30000" of wall_ms is 30 seconds here, and to model_set_text it is 30,000 seconds ("--timeout 30").
 * Configuration and profiles are read with this one.
 */
int model_set_value(const struct object *object, const struct field *field, void *into, const char *text,
                    const char *where, struct arena *arena, struct csn_error *err);

/* "true", "yes", "on", "1" and their opposites, in any case; false if it is none of them. */
bool model_parse_bool(const char *text, bool *ret);

const struct field *model_field(const struct object *object, const char *name);

/* Whether someone who wrote `name` probably meant `known`: at most two letters differ. */
bool model_alike(const char *known, const char *name);

/* A field's allowed values for people: "1ms to 86400s", "prefer, require or off". */
void model_allowed(const struct field *field, char *text, size_t size);

/* A number of a field as people write it: "30s", "512MiB". */
void model_print(const struct field *field, uint64_t number, char *text, size_t size);

/* The same for model_set_value: cores are "1500m", which no reader takes for 1500 cores. */
void model_print_exact(const struct field *field, uint64_t number, char *text, size_t size);

/* JSON Schema 2020-12 of an object.  The caller's reference. */
json_t *model_schema(const struct object *object);
/*
 * The same for what a tool takes or gives: without a name of its own, so that many can stand in one list.  `fields` and
 * `required` are names with blanks between: all that there are, or NULL for those of the object.
 */
json_t *model_tool_schema(const struct object *object, const char *fields, const char *required);

/* ---- checks that no single field can make (validate.c) ---- */

/*
 * Names of environment variables and files, packages, what only a local caller may use (paths of this
 * host).  Errors: CSN_E_INPUT.
 */
int model_check_request(const struct run_request *request, bool local, struct csn_error *err);

/*
 * "numpy, pandas;requests==2.28.0;" into its parts, which are then checked: a PEP 508 name with extras and a
 * version, or an npm name with one; no options, addresses or paths.  Errors: CSN_E_INPUT.
 */
int model_parse_packages(const char *text, struct arena *arena, char ***ret, size_t *ret_n,
                         struct csn_error *err);

/*
 * The text form of a list: packages as above, names of modules between commas.  Errors: CSN_E_INPUT.
 */
int model_parse_list(const struct field *field, const char *text, struct arena *arena, char ***ret,
                     size_t *ret_n, struct csn_error *err);

/* The field names of older systems, added to an encoded record (aliases.c). */
void model_add_aliases(json_t *record, const struct run_result *result);

/* Bytes as JSON strings need them: valid UTF-8 stays, anything else becomes U+FFFD.  From the arena. */
char *model_utf8(struct arena *arena, const char *bytes, size_t len, size_t *ret_len);
char *model_base64(struct arena *arena, const char *bytes, size_t len);
/* A text with a NUL behind it: RFC 4648, section 4, with padding.  False: it is anything else. */
bool model_unbase64(struct arena *arena, const char *text, size_t len, struct bytes *ret);

#endif
