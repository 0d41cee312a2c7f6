/*
 * model: the public data.
 *
 * fields.def lists every public field once.  From this list come the structs below and the descriptions of their
 * fields, used by one decoder, one encoder and one schema generator.  Each struct begins with `present`, a bit
 * for each set field, so a profile or a request is a partial object, merged over defaults.  All memory belongs to
 * the arena of the call; an all-zero struct is empty.
 *
 * settings.def is the same for the configuration; see settings.h.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/base.h"

#include <jansson.h>

#define MODEL_SCHEMA_VERSION "1"
#define MODEL_GRADE_SCHEMA_VERSION "2"     /* of grade_request and grade_result */

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
#define ALIAS(object, member, other)
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
#define ALIAS(object, member, other)
#define END(object) };
#include "model/fields.def"
#include "model/undef.h"

/* Number of each field's bit in its object's `present`. */
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
#define ALIAS(object, member, other)
#define END(object) FIELDS_OF_##object };
#include "model/fields.def"
#include "model/undef.h"

/*
 * HAS: whether a field is set.  SET: set a scalar or a text.  MARK: set the bit after filling a list or an object
 * in place.
 */
#define HAS(pointer, object, member) (((pointer)->present >> FIELD_##object##_##member) & 1)
#define MARK(pointer, object, member) ((pointer)->present |= (uint64_t)1 << FIELD_##object##_##member)
#define UNMARK(pointer, object, member) ((pointer)->present &= ~((uint64_t)1 << FIELD_##object##_##member))
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
        /* NUM: bounds; TEXT, BYTES: length in bytes; lists: number of items.  max 0: no bound. */
        uint64_t min, max;
        uint64_t max_length;             /* TEXTS: length of an item */
        uint64_t def;                    /* NUM, BOOL, ENUM */
        const char *def_text;            /* TEXT */
        const char *unit;                /* NUM */
        const char *option;              /* long option of the command line, or NULL */
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

extern const struct choices choices_status, choices_session_mode, choices_output_action, choices_need,
        choices_cgroup_need, choices_network, choices_isolation, choices_severity, choices_threshold,
        choices_verdict, choices_case_status, choices_compare, choices_image, choices_review_mode,
        choices_review_verdict, choices_text_form, choices_stage_verdict, choices_extract, choices_review_risk,
        choices_checker_kind, choices_grade_format, choices_prelude, choices_grade_instance, choices_case_select,
        choices_grade_helpers;
extern const struct object object_client_tool, object_tool_record, object_tool_answer, object_tool_answers,
        object_tools_request, object_tools_used, object_limits, object_input_file, object_export_rule,
        object_run_request, object_truncated, object_value, object_display, object_failure, object_finding,
        object_output_file, object_taken_file, object_usage, object_timings, object_boundary, object_warning,
        object_run_result, object_review, object_review_finding, object_review_usage, object_stage, object_module_file,
        object_check_request, object_check_result, object_sandbox_request, object_sandbox_change,
        object_context_request, object_process_request, object_process_signal, object_process_size, object_file_change,
        object_session_request, object_grade_case, object_grade_checker, object_grade_reward,
        object_grade_request, object_grade_sign,
        object_case_result, object_grade_result, object_sandbox_info, object_sandbox_list, object_sandbox_usage,
        object_context_info, object_context_list, object_session_info, object_session_list, object_process_info,
        object_process_list, object_entry_info, object_entry_list, object_kept_run, object_kept_runs,
        object_named_state, object_tool_refusal, object_tools_taken, object_upload_error, object_upload_result,
        object_stored_file, object_stored_list, object_workspace_info, object_workspace_list, object_workspace_file,
        object_workspace_files, object_profile_info, object_profile_list, object_policy_info, object_policy_list,
        object_policy_detail, object_language_info, object_language_list, object_image_use, object_image_interpreter,
        object_image_info, object_image_list, object_volume_request, object_volume_info, object_volume_list,
        object_problem_set_info, object_problem_set_list,
        object_layer_use, object_layer_request, object_layer_info, object_layer_list, object_model_usage,
        object_model_usage_report, object_health, object_problem,
        object_me_key, object_me_rights, object_me_quotas, object_me_used, object_key_info,
        object_me_info, object_metrics_series, object_daemon_event, object_preview_request, object_preview_info,
        object_key_list;

/* Name of a status, as in JSON. */
const char *status_name(int status);
/* The command line's exit status for a status; -1: the program's own exit status. */
int status_exit(int status);

/* ---- functions over descriptions ---- */

/* Set every unset field that has a default, also in SUB objects. */
void model_defaults(const struct object *object, void *ret);

/* Merge the set fields of `over` into `under`: SUB objects by field, PAIRS by name, lists as a whole. */
void model_overlay(const struct object *object, void *under, const void *over, struct arena *arena);

/*
 * Decode JSON into a struct.  Errors: CSN_E_INPUT (unknown field, wrong type or value out of bounds), with a JSON
 * pointer in err->field and the allowed values in the text.
 */
int model_decode(const struct object *object, json_t *json, struct arena *arena, void *ret,
                 struct csn_error *err);

/* Decode a JSON text.  Errors: as model_decode(); also duplicate keys, depth above 32, and text after the end. */
int model_decode_text(const struct object *object, const char *text, size_t len, struct arena *arena,
                      void *ret, struct csn_error *err);

/* Encode a struct, fields in the order of fields.def.  The caller owns the reference. */
json_t *model_encode(const struct object *object, const void *from);
/*
 * Append the JSON text of a struct in one line to `buf`, byte for byte as model_dump() of model_encode().  False:
 * `buf` is full.
 */
bool model_encode_text(const struct object *object, const void *from, struct buf *buf);
/* Append trusted JSON to `buf`, in one line or indented.  False: `buf` is full. */
bool model_dump(const json_t *json, bool indented, struct buf *buf);
/* Append a JSON string, in quotes, of any bytes.  False: above the ceiling of the buffer. */
bool model_put_text(struct buf *buf, const char *text, size_t len);

/*
 * Whether a JSON text has more than `max` values and names.  A parsed value of two bytes of text takes fifty
 * times as much memory, so untrusted text is checked before parsing.
 */
#define MODEL_DEPTH_MAX 32     /* levels of a text that becomes a struct: more than any object has */
bool model_has_many_parts(const char *text, size_t len, size_t max);

/*
 * Parse JSON with integers of any size; duplicate names are refused (integers.c).  An integer of more than 64 bits
 * becomes a string with a mark.  model_digits() returns the text after the mark, or NULL.  The caller owns the
 * reference; NULL: *ret_where has the error.
 */
json_t *model_load(const char *text, size_t len, json_error_t *ret_where);
/* json_loadb(3) and json_dumps(3) with integers of any size.  The caller owns the reference, and frees the text. */
json_t *model_read(const char *text, size_t len, size_t flags, json_error_t *ret_where);
char *model_write(const json_t *json, size_t flags);
/* The flag for texts with measured numbers: 15 significant digits print 11.639, and 17 print 11.638999999999999. */
#define MODEL_MEASURED JSON_REAL_PRECISION(15)
bool model_has_marks(void);            /* whether this process has parsed any such integer */
const char *model_digits(const json_t *json);
/* Whether lists and objects in a JSON text are nested deeper than `max`. */
bool model_is_deeper(const char *text, size_t len, unsigned max);
/* model_is_deeper() for a parsed value; the check itself descends at most `max` levels, so any depth is safe. */
bool model_value_is_deeper(json_t *value, unsigned max);

/*
 * Set a field from a text of an option, the environment or a file.  Errors: CSN_E_INPUT with `where` as the
 * field.
 */
int model_set_text(const struct object *object, const struct field *field, void *into, const char *text,
                   const char *where, struct arena *arena, struct csn_error *err);

/*
 * model_set_text(), but a number without a unit is in the unit of the field's name, as in JSON: "30000" of
 * wall_ms is 30 s here; model_set_text() reads 30,000 s ("--timeout 30").  Used for the configuration and
 * profiles.
 */
int model_set_value(const struct object *object, const struct field *field, void *into, const char *text,
                    const char *where, struct arena *arena, struct csn_error *err);

/* "true", "yes", "on", "1" and their opposites, case-insensitive; false: another text. */
bool model_parse_bool(const char *text, bool *ret);

/* The field with this name; NULL: none. */
const struct field *model_field(const struct object *object, const char *name);

/*
 * Whether `name` is probably a misspelling of `known`: at most two different letters, one for names below six
 * letters.
 */
bool model_alike(const char *known, const char *name);

/* A field's allowed values, for display: "1ms to 86400s", "prefer, require or off". */
void model_allowed(const struct field *field, char *text, size_t size);

/* A number of a field, for display: "30s", "512MiB". */
void model_print(const struct field *field, uint64_t number, char *text, size_t size);

/* A number as text for model_set_value(): cores are "1500m", unambiguous. */
void model_print_exact(const struct field *field, uint64_t number, char *text, size_t size);

/* JSON Schema 2020-12 of an object.  The caller owns the reference. */
json_t *model_schema(const struct object *object);
/*
 * Schema for the input or output of a tool: without title and description, so that several fit in one list.
 * `fields` and `required` are blank-separated names: the fields to include and the required fields; NULL: as in the
 * object.  The caller owns the reference.
 */
json_t *model_tool_schema(const struct object *object, const char *fields, const char *required);

/* ---- checks across fields (validate.c) ---- */

/*
 * Check names of environment variables and files, packages, and fields reserved for local callers (paths of this
 * host).  Errors: CSN_E_INPUT.
 */
int model_check_request(const struct run_request *request, bool local, struct csn_error *err);

/*
 * Split "numpy, pandas;requests==2.28.0;" and check each part: a PEP 508 name with extras and a version, or an
 * npm name with a version; no options, addresses or paths.  The list lives in `arena`.  Errors: CSN_E_INPUT.
 */
int model_parse_packages(const char *text, struct arena *arena, char ***ret, size_t *ret_n,
                         struct csn_error *err);

/* Split the text form of a list: packages as above, or comma-separated module names.  Errors: CSN_E_INPUT. */
int model_parse_list(const struct field *field, const char *text, struct arena *arena, char ***ret,
                     size_t *ret_n, struct csn_error *err);

/* Add the field names of older systems to an encoded record, or to an encoded result of grading (aliases.c). */
void model_add_aliases(json_t *record, const struct run_result *result);
void model_add_grade_aliases(json_t *record, const struct grade_result *result);

/* Bytes as text for a JSON string: valid UTF-8 is unchanged, each invalid byte becomes U+FFFD.  In `arena`. */
char *model_utf8(struct arena *arena, const char *bytes, size_t len, size_t *ret_len);
char *model_base64(struct arena *arena, const char *bytes, size_t len);
/* Decode RFC 4648, section 4, with padding.  The result has a final NUL and lives in `arena`.  False: malformed. */
bool model_unbase64(struct arena *arena, const char *text, size_t len, struct bytes *ret);

#endif
