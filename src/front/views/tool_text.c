/*
 * Tools in a form for models: for each a Python signature, a description and a call with example values.
 *
 * Names, descriptions and schemas are text of third parties.  So a description is a JSON string of bounded length, and
 * cannot look like a sentence of ours; a name other than an identifier is a JSON string, too.
 */
#include "front/views/views.h"

#include <ctype.h>
#include <stdio.h>

#define TOOLS_TOLD 100                     /* tools with a signature; others are only counted */
#define PARAMETERS_TOLD 30                 /* of a tool */
#define DESCRIPTION_MAX 400                /* bytes of a description */
#define EXAMPLE_MAX 120                    /* bytes of an example value */
#define TEXT_MAX (48 * KIB)                /* bytes of the whole text, approximately */

static bool is_identifier(const char *name)
{
        if (!isalpha((unsigned char)name[0]) && name[0] != '_')
                return false;
        for (const char *at = name; *at; at++)
                if (!isalnum((unsigned char)*at) && *at != '_')
                        return false;
        return strlen(name) <= 64;
}

/* Whether NAME, or each part of SERVER.NAME, is an identifier: then tools.NAME is valid. */
static bool is_attribute(const char *name)
{
        const char *dot = strchr(name, '.');
        char server[80];
        if (!dot)
                return is_identifier(name);
        snprintf(server, sizeof server, "%.*s", (int)(dot - name), name);
        return is_identifier(server) && is_identifier(dot + 1);
}

/* A JSON string of at most `max` bytes of the text, with blanks in place of line ends. */
static void add_quoted(struct buf *buf, const char *text, size_t max)
{
        struct arena arena = { 0 };
        size_t len = strlen(text), good;
        char *flat = arena_copy(&arena, text, len < max ? len : max);
        for (char *at = flat; *at; at++)
                if (isspace((unsigned char)*at))
                        *at = ' ';
        json_t *json = json_string(model_utf8(&arena, flat, strlen(flat), &good));
        char *quoted = json_dumps(json, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
        buf_printf(buf, "%.*s%s\"", quoted ? (int)strlen(quoted) - 1 : 1, quoted ? quoted : "\"",
                len > max ? "..." : "");
        free(quoted);
        json_decref(json);
        arena_done(&arena);
}

/* ---- types and examples ---- */

static const struct { const char *type, *python, *example; } types[] = {
        { "string", "str", "\"text\"" }, { "integer", "int", "1" },  { "number", "float", "1.5" },
        { "boolean", "bool", "True" },   { "array", "list", "[]" },  { "object", "dict", "{}" },
        { "null", "None", "None" },
};

/* The row of a schema's type; of several types the first.  NULL: any value. */
static const char *type_name(const json_t *schema)
{
        const json_t *type = json_object_get(schema, "type");
        return json_string_value(json_is_array(type) ? json_array_get(type, 0) : type);
}

static size_t row_of(const json_t *schema)
{
        const char *name = type_name(schema);
        size_t i = 0;
        while (i < ARRAY_LEN(types) && (!name || strcmp(types[i].type, name) != 0))
                i++;
        return i;
}

static void add_type(struct buf *buf, const json_t *schema)
{
        size_t row = row_of(schema);
        buf_printf(buf, "%s", row < ARRAY_LEN(types) ? types[row].python : "object");
}

/* An example value of the schema; NULL: none. */
static json_t *example_of(const json_t *schema)
{
        json_t *first = json_array_get(json_object_get(schema, "examples"), 0);
        first = first ? first : json_object_get(schema, "default");
        first = first ? first : json_object_get(schema, "const");
        return first ? first : json_array_get(json_object_get(schema, "enum"), 0);
}

static void add_literal(struct buf *buf, const json_t *value)
{
        char *text = json_is_null(value) || json_is_boolean(value)
                ? NULL
                : json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
        if (json_is_boolean(value))
                buf_printf(buf, "%s", json_is_true(value) ? "True" : "False");
        else if (!text || strlen(text) > EXAMPLE_MAX || json_is_object(value) || json_is_array(value))
                buf_printf(buf, "%s", json_is_object(value) ? "{}" : json_is_array(value) ? "[]" : "None");
        else
                buf_printf(buf, "%s", text);
        free(text);
}

static void add_example(struct buf *buf, const json_t *schema)
{
        const json_t *value = example_of(schema);
        size_t row = row_of(schema);
        if (value)
                add_literal(buf, value);
        else
                buf_printf(buf, "%s", row < ARRAY_LEN(types) ? types[row].example : "None");
}

/* ---- a tool ---- */

static bool is_required(const json_t *schema, const char *name)
{
        const json_t *required = json_object_get(schema, "required"), *one;
        size_t at;
        json_array_foreach(required, at, one) {
                if (json_is_string(one) && strcmp(json_string_value(one), name) == 0)
                        return true;
        }
        return false;
}

static void add_parameter(struct buf *buf, const char *name, const json_t *schema, bool required, bool call)
{
        if (is_identifier(name))
                buf_printf(buf, call ? "%s=" : "%s: ", name);
        else
                add_quoted(buf, name, 64), buf_printf(buf, ": ");
        if (call) {
                add_example(buf, schema);
                return;
        }
        add_type(buf, schema);
        if (!required && json_object_get(schema, "default"))
                buf_printf(buf, " = "), add_literal(buf, json_object_get(schema, "default"));
        else if (!required)
                buf_printf(buf, " = ...");
}

/* The parameters, required first.  Names other than identifiers are in **{...} of a call. */
static void add_parameters(struct buf *buf, json_t *schema, bool call)
{
        json_t *properties = json_object_get(schema, "properties"), *property;
        size_t told = 0;
        const char *name;
        for (int pass = 0; pass < 4; pass++) {
                bool required = pass % 2 == 0, odd = pass / 2, open = false;
                json_object_foreach(properties, name, property) {
                        if (is_required(schema, name) != required || is_identifier(name) == odd ||
                                (call && !required) || told == PARAMETERS_TOLD)
                                continue;
                        buf_printf(buf, "%s%s", told++ ? ", " : "", odd && !open ? "**{" : "");
                        open = odd;
                        add_parameter(buf, name, property, required, call);
                }
                if (open)
                        buf_printf(buf, "}");
        }
        if (!call && json_object_size(properties) > told)
                buf_printf(buf, "%s...", told ? ", " : "");
}

static void add_callee(struct buf *buf, const char *name, bool comma)
{
        if (is_attribute(name)) {
                buf_printf(buf, "tools.%s(", name);
                return;
        }
        buf_printf(buf, "tools.call(");
        add_quoted(buf, name, 2 * 128 + 1);
        buf_printf(buf, "%s", comma ? ", " : "");
}

static void add_tool(struct buf *buf, const json_t *tool)
{
        const char *name = json_string_value(json_object_get(tool, "name")),
                   *text = json_string_value(json_object_get(tool, "description"));
        json_t *schema = json_object_get(tool, "parameters"), *returns = json_object_get(tool, "returns");
        bool some = json_object_size(json_object_get(schema, "properties")) > 0,
             needs = json_array_size(json_object_get(schema, "required")) > 0;
        add_callee(buf, name, some);
        add_parameters(buf, schema, false);
        buf_printf(buf, ")");
        if (returns)
                buf_printf(buf, " -> "), add_type(buf, returns);
        if (text && text[0])
                buf_printf(buf, "  # "), add_quoted(buf, text, DESCRIPTION_MAX);
        buf_printf(buf, "\n    e.g. ");
        add_callee(buf, name, needs);
        add_parameters(buf, schema, true);
        buf_printf(buf, ")\n");
}

void describe_tools(struct buf *buf, const json_t *tools, const struct tools_request *request)
{
        size_t n = json_array_size(tools), told = 0, begun = buf->len;
        if (!n) {
                buf_printf(buf, "Tools outside: none can be called now.\n");
                return;
        }
        buf_printf(buf, "Tools outside, for calls with named arguments from Python (await tools.NAME({name: value}) in JavaScript, tool NAME --name value in Bash). ");
        buf_printf(buf, request->decode ? "A call returns a value" : "A call returns JSON text, which json.loads() reads");
        buf_printf(buf, request->raise ? "; an error is an exception, tools.ToolError" : "; an error is a value with \"status\": \"error\"");
        buf_printf(buf, ". Call several in one program, in loops where it helps, and print what you need to see. At most %llu calls.",
                (unsigned long long)request->calls);
        if (!request->allow_n)
                buf_printf(buf, " The request has to name those that it calls, in tools.allow.");
        buf_printf(buf, " Signatures; texts in quotes are those of the tools' servers:\n");
        for (; told < n && told < TOOLS_TOLD && buf->len - begun < TEXT_MAX; told++)
                add_tool(buf, json_array_get(tools, told));
        if (told < n)
                buf_printf(buf, "and %zu more, which tools.list_tools() names.\n", n - told);
}
