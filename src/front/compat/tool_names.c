/* Names of the five systems as fields of a run_request; see tool_call.h. */
#include "front/compat/compat.h"
#include "front/compat/tool_call.h"

#include <stdio.h>

#define WALL_MS_MAX 86400000               /* as in limits.wall_ms */
#define LABELS_MAX 100                     /* as in `labels` of a run_request */

struct conversion {
        json_t *ours;
        const char *name;                  /* of the member being converted */
        json_t *notes;
        struct csn_error *err;
};

/* ---- conversions of values ---- */

/* The reference becomes the callee's.  Two names for a field would hide one of the values. */
static int put(struct conversion *one, json_t *into, const char *field, json_t *value)
{
        if (!into) {
                json_decref(value);
                return err_field(one->err, one->name, "%s goes into an object of the request that is no object here", one->name);
        }
        if (json_object_get(into, field)) {
                json_decref(value);
                return err_field(one->err, one->name, "%s and another name both give the field %s; give one of them",
                        one->name, field);
        }
        json_object_set_new(into, field, value);
        return 0;
}

/* An object in the request, made if missing.  NULL: the member is no object. */
static json_t *below(struct conversion *one, const char *field)
{
        json_t *object = json_object_get(one->ours, field);
        if (!object) {
                object = json_object();
                json_object_set_new(one->ours, field, object);
        }
        return json_is_object(object) ? object : NULL;
}

static int wrong(struct conversion *one, const char *kind)
{
        return err_field(one->err, one->name, "%s has to be %s", one->name, kind);
}

/* A number of `unit`s as a limit of ours.  Beyond 2^53 no number of JSON is exact, and no limit is so high. */
static int put_limit(struct conversion *one, const char *field, const json_t *value, double unit, const char *kind)
{
        double number;
        if (!compat_number(value, &number) || number <= 0 || number * unit > 9007199254740992.0)
                return wrong(one, kind);
        return put(one, below(one, "limits"), field, compat_scaled(number, unit, 1, UINT64_C(1) << 53));
}

static int to_seconds(struct conversion *one, const char *field, json_t *value)
{
        double number;
        if (compat_number(value, &number) && number * 1000 > WALL_MS_MAX)
                return wrong(one, "a number of seconds, above 0 and at most 86400");
        return put_limit(one, field, value, 1000, "a number of seconds, above 0 and at most 86400");
}

static int to_mebibytes(struct conversion *one, const char *field, json_t *value)
{
        return put_limit(one, field, value, (double)MIB, "a number of MiB above 0");
}

static int to_bytes(struct conversion *one, const char *field, json_t *value)
{
        return put_limit(one, field, value, 1, "a number of bytes above 0");
}

static int as_it_is(struct conversion *one, const char *field, json_t *value)
{
        return put(one, one->ours, field, json_incref(value));
}

/* A list of texts, or one text with commas or blanks between. */
static int to_list(struct conversion *one, const char *field, json_t *value)
{
        const char *at = json_string_value(value);
        if (!at)
                return json_is_array(value) ? as_it_is(one, field, value) : wrong(one, "a list of texts");
        json_t *list = json_array();
        for (at += strspn(at, ", \t\r\n"); *at; at += strspn(at, ", \t\r\n")) {
                size_t len = strcspn(at, ", \t\r\n");
                json_array_append_new(list, json_stringn(at, len));
                at += len;
        }
        return put(one, one->ours, field, list);
}

/* agentos: true allows imports, which its list of forbidden modules then restricts; false allows none. */
static int to_imports(struct conversion *one, const char *field, json_t *value)
{
        if (json_is_true(value))
                return 0;
        if (json_is_false(value))
                return put(one, one->ours, "forbidden_modules", json_pack("[s]", "*"));
        return to_list(one, field, value);
}

static int to_tools(struct conversion *one, const char *field, json_t *value)
{
        if (!json_is_array(value))
                return wrong(one, "a list of names of tools");
        return put(one, below(one, "tools"), field, json_incref(value));
}

/* In kodeagent's CodeRunner `env` names the environment; in other tools `env` has variables. */
static int to_env(struct conversion *one, const char *field, json_t *value)
{
        if (json_is_string(value))
                return as_it_is(one, "profile", value);
        return json_is_object(value) ? as_it_is(one, field, value)
                                     : wrong(one, "an object of variables, or the name of a profile");
}

static int put_label(struct conversion *one, const char *name, const json_t *value)
{
        json_t *labels = below(one, "labels"), *text;
        if (json_object_size(labels) == LABELS_MAX)
                return err_field(one->err, one->name, "there are more than %d labels", LABELS_MAX);
        if (json_is_string(value))
                text = json_string(json_string_value(value));
        else if (json_is_integer(value))
                text = json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else if (json_is_boolean(value))
                text = json_string(json_is_true(value) ? "true" : "false");
        else if (json_is_real(value))
                text = json_sprintf("%.17g", json_real_value(value));
        else
                return err_field(one->err, one->name,
                        "%s.%.60s is neither a text nor a number; a value for the program goes into input", one->name,
                        name);
        return text ? put(one, labels, name, text) : wrong(one, "a text without NUL");
}

static int to_label(struct conversion *one, const char *field, json_t *value)
{
        return put_label(one, field, value);
}

/*
 * LinX: the context of a call, such as user and task.  The program does not see the context, because a context may have
 * secrets of the user; a text is our own field, the id of a context.
 */
static int to_context(struct conversion *one, const char *field, json_t *value)
{
        static const char *const known[][2] = { { "user_id", "user" }, { "task_id", "task_id" } };
        const char *name;
        json_t *member;
        int rc = 0;
        if (json_is_string(value))
                return as_it_is(one, field, value);
        if (!json_is_object(value))
                return wrong(one, "an object with user_id, or the id of a context");
        json_object_foreach(value, name, member) {
                size_t i = 0;
                while (i < ARRAY_LEN(known) && strcmp(known[i][0], name) != 0)
                        i++;
                if (rc == 0 && !json_is_null(member))
                        rc = i < ARRAY_LEN(known) ? as_it_is(one, known[i][1], member) : put_label(one, name, member);
        }
        return rc;
}

/* CodeMie's FileObject: name, content or content_base64, and two members without meaning here. */
static int to_files(struct conversion *one, const char *field, json_t *value)
{
        static const char *const dropped[] = { "mime_type", "owner" };
        json_t *files = json_array(), *file;
        size_t at;
        json_array_foreach(value, at, file) {
                json_t *ours = json_is_object(file) ? json_copy(file) : json_null();
                for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
                        json_object_del(ours, dropped[i]);
                json_array_append_new(files, ours);
        }
        if (json_is_array(value))
                return put(one, one->ours, field, files);
        json_decref(files);
        return wrong(one, "a list of files, {\"name\": ..., \"content\": ...} each");
}

static int to_exports(struct conversion *one, const char *field, json_t *value)
{
        json_t *exports = json_array(), *name;
        size_t at;
        json_array_foreach(value, at, name) {
                json_array_append_new(exports, json_pack("{s:O}", "pattern", name));
        }
        if (json_is_array(value))
                return put(one, one->ours, field, exports);
        json_decref(exports);
        return wrong(one, "a list of names of files");
}

static int to_tool(struct conversion *one, const char *field, json_t *value)
{
        const char *name = json_string_value(value);
        (void)field;
        if (name && (strcmp(name, "code_execution") == 0 || strcmp(name, "run_code") == 0))
                return 0;
        return wrong(one, "code_execution, the one tool of this route");
}

/* `field` is the sentence. */
static int to_note(struct conversion *one, const char *field, json_t *value)
{
        (void)value;
        json_array_append_new(one->notes, json_sprintf("%s has no meaning here: %s", one->name, field));
        return 0;
}

/* Cases belong to another route, named in `field`. */
static int to_refusal(struct conversion *one, const char *field, json_t *value)
{
        (void)value;
        return err_field(one->err, one->name, "%s: %s", one->name, field);
}

/* ---- the table ---- */

static const struct {
        const char *name;
        int (*convert)(struct conversion *one, const char *field, json_t *value);
        const char *field;                 /* ours */
} names[] = {
        { "tool", to_tool, NULL },
        { "timeout", to_seconds, "wall_ms" },                          /* kodeagent, agentos, LinX, light */
        { "allowed_imports", to_list, "allow_imports" },               /* kodeagent */
        { "pip_packages", to_list, "packages" },                       /* kodeagent */
        { "env_vars_to_set", as_it_is, "env" },                        /* kodeagent */
        { "env", to_env, "env" },                                      /* kodeagent: the environment's name */
        { "tool_names", to_tools, "allow" },                           /* kodeagent */
        { "tools_code", as_it_is, "prelude" },                         /* kodeagent */
        { "allow_imports", to_imports, "allow_imports" },              /* agentos: true or false */
        { "max_memory_mb", to_mebibytes, "memory_bytes" },             /* agentos */
        { "setup_code", as_it_is, "prelude" },                         /* agentos */
        { "explicit_dependencies", to_list, "packages" },              /* LinX */
        { "context", to_context, "context" },                          /* LinX: {"user_id": ...} */
        { "user_id", as_it_is, "user" },                               /* LinX, CodeMie */
        { "agent_id", to_label, "agent_id" },                          /* LinX */
        { "input_files", to_files, "files" },                          /* CodeMie */
        { "export_files", to_exports, "exports" },                     /* CodeMie */
        { "max_output_size", to_bytes, "output_bytes" },               /* light */
        { "model_name", to_note, "the model of reviews is the setting review.model" },
        { "litellm_params", to_note, "the settings review.* are the parameters of the model" },
        { "usage_tracker", to_note, "the daemon counts what reviews use" },
        { "file_repository", to_note, "files are kept by the daemon, as POST /v1/files does" },
        { "tools_api", to_note, "the daemon has the servers of tools, and tools of the request names those that code may call" },
        { "verbose", to_note, "the log of the daemon is the setting engine.log_level" },
        { "func_name", to_refusal, "functions are tested by POST /v1/grade, where the field is named function" },
        { "test_cases", to_refusal, "cases are graded by POST /v1/grade, where the field is named cases" },
};

/* A field of a run_request; fields of bytes also as base64. */
static bool is_ours(const char *name)
{
        char stem[64];
        size_t len = strlen(name), end = strlen("_base64");
        if (model_field(&object_run_request, name))
                return true;
        if (len <= end || len >= sizeof stem || strcmp(name + len - end, "_base64") != 0)
                return false;
        snprintf(stem, sizeof stem, "%.*s", (int)(len - end), name);
        const struct field *field = model_field(&object_run_request, stem);
        return field && field->kind == KIND_BYTES;
}

static int unknown(const char *name, struct csn_error *err)
{
        char known[400] = "";
        size_t len = 0;
        for (size_t i = 0; i < ARRAY_LEN(names) && len < sizeof known; i++)
                if (names[i].convert != to_note && names[i].convert != to_refusal)
                        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "",
                                names[i].name);
        return err_field(err, name, "there is no field %.40s; known are %s, and the fields of a run_request", name,
                known);
}

static int convert_member(struct conversion *one, json_t *value)
{
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strcmp(names[i].name, one->name) == 0)
                        return names[i].convert(one, names[i].field, value);
        return is_ours(one->name) ? 0 : unknown(one->name, one->err);
}

static bool is_renamed(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strcmp(names[i].name, name) == 0)
                        return true;
        return false;
}

json_t *tool_call_convert(json_t *body, json_t *notes, struct csn_error *err)
{
        struct conversion one = { .ours = json_object(), .notes = notes, .err = err };
        const char *name;
        json_t *value;
        int rc = 0;
        /* First our own names, so a limit by another name goes into the limits of the request. */
        json_object_foreach(body, name, value) {
                if (!is_renamed(name) && is_ours(name) && !json_is_null(value))
                        json_object_set_new(one.ours, name, json_deep_copy(value));
        }
        json_object_foreach(body, name, value) {
                one.name = name;
                if (rc == 0 && (!json_is_null(value) || !is_renamed(name)))
                        rc = convert_member(&one, value);
        }
        if (rc == 0)
                return one.ours;
        json_decref(one.ours);
        return NULL;
}
