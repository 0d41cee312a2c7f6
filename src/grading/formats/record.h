/* record: what the files of src/grading/formats use of a record. */
#ifndef GRADING_FORMATS_RECORD_H
#define GRADING_FORMATS_RECORD_H

#include "model/model.h"

#define RECORD_FIELD_MAX 200

/* Fill `err` with CSN_E_RECORD and a JSON pointer into the record.  Returns -CSN_E_RECORD. */
int record_fail(struct csn_error *err, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Take a member out of the record; NULL: there is none, or null.  The caller owns the reference. */
json_t *record_take(json_t *json, const char *name);
/* Set a member of the request that is not there.  Takes the reference. */
void record_default(json_t *json, const char *name, json_t *value);

/* Begin a record: the values of all its texts of JSON together are bounded. */
void record_begin(void);

/*
 * Parse a text of a record.  `any`: a value other than an object or an array is one, too.  NULL: no JSON, or too many
 * values.  The caller owns the reference.
 */
json_t *record_parse(const char *text, size_t len, bool any);
/*
 * The value of a member that is an object or an array, or the JSON text of one.  The caller owns the reference.
 * Errors: CSN_E_RECORD.
 */
int record_open(const json_t *value, const char *field, json_t **ret, struct csn_error *err);
/*
 * The same, where the text may be compressed: base64 of zlib of JSON, or of a pickle of one text of JSON.
 */
int record_unpack(const json_t *value, const char *field, json_t **ret, struct csn_error *err);

/* Take a text out of the record into the request's member `ours`, if there is none yet. */
int record_move_text(json_t *json, const char *name, const char *ours, struct csn_error *err);

/* ---- pickle.c ---- */

/*
 * Read a pickle of one text; the text points into `bytes`.  Opcodes that make or call anything else are refused.
 * false: *ret_why says why.
 */
bool pickle_read_text(const char *bytes, size_t len, const char **ret_text, size_t *ret_len, const char **ret_why);

/* ---- literal.c ---- */

enum literal_shape {
        LITERAL_PLAIN,
        LITERAL_TUPLE,  /* a list becomes a tuple */
        LITERAL_ITEMS,  /* its items that are lists become tuples */
        LITERAL_BOTH,   /* the list and such items become tuples */
        LITERAL_ALL,    /* lists at every depth become tuples */
        LITERAL_SETS,   /* its items that are lists become sets; an empty one becomes {} */
        LITERAL_VALUES, /* lists that are values of a dict become tuples */
        LITERAL_FLOAT,  /* a text that is a number of Python, without quotes */
};

/*
 * Append a value as a literal of Python.  Keys of a dict that all are digits become integers.  false: the value has
 * another shape, or the buffer is full.
 */
bool literal_put(struct buf *buf, const json_t *value, enum literal_shape shape);
/* Whether a value, or an item of a list, is a dict whose keys all are digits. */
bool literal_has_integer_keys(const json_t *value);

/* ---- entries.c ---- */

struct entry_rule {
        bool wrapped;      /* each output is a list with the value; if one is not, outputs are the values */
        bool integer_keys; /* keys of dicts that all are digits are integers */
        enum { ENTRY_TEXT_IS_JSON, ENTRY_TEXT_MAY_BE_JSON, ENTRY_TEXT_IS_VALUE } output;
};

/*
 * Append cases to the request: of a function, or with standard input if `function` is NULL.  `field` is the pointer to
 * the object with inputs and outputs; `inputs_name` and `outputs_name` are the names of both.  Errors: CSN_E_RECORD.
 */
struct entries {
        json_t *inputs, *outputs;
        const char *function;
        const char *field, *inputs_name, *outputs_name;
};
int entries_add(json_t *json, const struct entries *entries, const struct entry_rule *rule, struct csn_error *err);
/* entries_add() of an object {inputs, outputs, fn_name}.  An unknown member is an error. */
int entries_add_object(json_t *json, json_t *object, const char *field, const struct entry_rule *rule,
        struct csn_error *err);
/*
 * entries_add() of an array of {input, output} with type or testtype, fn_name or metadata.func_name.  `function`: for
 * entries that name none, or NULL.
 */
int entries_add_list(json_t *json, json_t *list, const char *field, const char *function, const struct entry_rule *rule,
        struct csn_error *err);

/* ---- families ---- */

int format_lcb(json_t *json, struct csn_error *err);
int format_apps(json_t *json, struct csn_error *err);
int format_taco(json_t *json, struct csn_error *err);
int format_codecontests(json_t *json, struct csn_error *err);
int format_primeintellect(json_t *json, struct csn_error *err);
int format_verl(json_t *json, struct csn_error *err);
int format_skyrl(json_t *json, struct csn_error *err);
int format_scalebox(json_t *json, struct csn_error *err);
int format_humanevalplus(json_t *json, struct csn_error *err);
int format_mbppplus(json_t *json, struct csn_error *err);
int format_kodcode(json_t *json, struct csn_error *err);
int format_leetcode(json_t *json, struct csn_error *err);
int format_codeforces(json_t *json, struct csn_error *err);

#endif
