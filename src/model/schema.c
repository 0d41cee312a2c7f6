/* JSON Schema 2020-12 (json-schema.org) from the descriptions. */
#include "model/model.h"

#include <stdio.h>

static json_t *schema_of(const struct object *object);

static json_t *of_type(const char *type)
{
        return json_pack("{s:s}", "type", type);
}

/* A bound above INT64_MAX is no JSON integer of ours, so the schema has no such bound. */
static void bound(json_t *schema, const char *name, uint64_t value)
{
        if (value <= INT64_MAX)
                json_object_set_new(schema, name, json_integer((json_int_t)value));
}

static json_t *texts_schema(const struct field *field)
{
        json_t *item = of_type("string");
        if (field->max_length)
                bound(item, "maxLength", field->max_length);
        json_t *list = json_pack("{s:s, s:o}", "type", "array", "items", item);
        if (field->max)
                bound(list, "maxItems", field->max);
        /* A string "numpy, pandas" is accepted too, and a list for each language. */
        return strcmp(field->name, "packages") == 0
                       ? json_pack("{s:[o, {s:s}, {s:s, s:{s:O, s:O}, s:b}]}", "anyOf", list, "type", "string",
                                   "type", "object", "properties", "python", list, "node", list,
                                   "additionalProperties", 0)
                       : list;
}

static json_t *choices_schema(const struct choices *choices)
{
        json_t *values = json_array();
        for (size_t i = 0; i < choices->n; i++)
                json_array_append_new(values, json_string(choices->values[i].text));
        return json_pack("{s:s, s:o}", "type", "string", "enum", values);
}

static json_t *field_schema(const struct field *field)
{
        json_t *schema;
        switch (field->kind) {
        case KIND_NUM:
                schema = of_type("integer");
                bound(schema, "minimum", field->min);
                if (field->max)
                        bound(schema, "maximum", field->max);
                return schema;
        case KIND_INT:
                return of_type("integer");
        case KIND_REAL:
                return json_pack("{s:s, s:i}", "type", "number", "minimum", 0);
        case KIND_BOOL:
                return of_type("boolean");
        case KIND_TEXT:
        case KIND_BYTES:
                schema = of_type("string");
                if (field->max && field->kind == KIND_TEXT)
                        bound(schema, "maxLength", field->max);
                return schema;
        case KIND_JSON:
                return json_object();
        case KIND_ENUM:
                return choices_schema(field->choices);
        case KIND_TEXTS:
                return texts_schema(field);
        case KIND_PAIRS:
                schema = json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type",
                                   "string");
                bound(schema, "maxProperties", field->max);
                return schema;
        case KIND_SUB:
                return json_pack("{s:s+}", "$ref", "#/$defs/", field->object->name);
        case KIND_LIST:
                schema = json_pack("{s:s, s:{s:s+}}", "type", "array", "items", "$ref", "#/$defs/",
                                   field->object->name);
                if (field->max)
                        bound(schema, "maxItems", field->max);
                return schema;
        }
        return json_object();
}

static json_t *nullable(json_t *schema)
{
        return json_pack("{s:[o, {s:s}]}", "anyOf", schema, "type", "null");
}

static void add_default(json_t *schema, const struct field *field)
{
        if (field->presence != OPTIONAL || !field->option)
                return;
        if (field->kind == KIND_NUM)
                json_object_set_new(schema, "default", json_integer((json_int_t)field->def));
        else if (field->kind == KIND_BOOL)
                json_object_set_new(schema, "default", json_boolean(field->def != 0));
        else if (field->kind == KIND_ENUM)
                json_object_set_new(schema, "default", json_string(field->choices->values[field->def].text));
        else if (field->kind == KIND_TEXT && field->def_text)
                json_object_set_new(schema, "default", json_string(field->def_text));
}

static json_t *schema_of(const struct object *object)
{
        json_t *properties = json_object(), *required = json_array();
        for (size_t i = 0; i < object->n; i++) {
                const struct field *field = &object->fields[i];
                json_t *schema = field_schema(field);
                if (field->presence == NULLABLE)
                        schema = nullable(schema);
                json_object_set_new(schema, "description", json_string(field->help));
                add_default(schema, field);
                json_object_set_new(properties, field->name, schema);
                if (field->presence != OPTIONAL)
                        json_array_append_new(required, json_string(field->name));
                if (field->kind == KIND_BYTES) {
                        char name[80];
                        snprintf(name, sizeof name, "%s_base64", field->name);
                        json_object_set_new(properties, name,
                                            json_pack("{s:s, s:s, s:s+}", "type", "string", "contentEncoding",
                                                      "base64", "description",
                                                      "The exact bytes, in base64, of ", field->name));
                }
        }
        return json_pack("{s:s, s:s, s:s, s:o, s:o, s:b}", "title", object->title, "description",
                         object->text, "type", "object", "properties", properties, "required", required,
                         "additionalProperties", 0);
}

static bool is_listed(const char *list, const char *name)
{
        size_t len = strlen(name);
        for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ')
                if (strcspn(at, " ") == len && memcmp(at, name, len) == 0)
                        return true;
        return false;
}

/* Adds the schemas of the fields' objects, and of the objects within, each once. */
static void add_used(json_t *defs, const struct object *object, const char *fields)
{
        for (size_t i = 0; i < object->n; i++) {
                const struct object *other = object->fields[i].object;
                if (!other || (fields && !is_listed(fields, object->fields[i].name)) ||
                        json_object_get(defs, other->name))
                        continue;
                json_object_set_new(defs, other->name, schema_of(other));
                add_used(defs, other, NULL);
        }
}

/* Fields of the command line and the library are refused from a model. */
static void drop_host_fields(json_t *defs)
{
        static const struct {
                const char *object, *field;
        } rows[] = { { "input_file", "path" }, { "export_rule", "path" } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                json_object_del(json_object_get(json_object_get(defs, rows[i].object), "properties"), rows[i].field);
}

json_t *model_tool_schema(const struct object *object, const char *fields, const char *required)
{
        json_t *schema = schema_of(object), *properties = json_object_get(schema, "properties"), *defs = json_object();
        void *next;
        const char *name;
        json_t *value;
        json_object_foreach_safe(properties, next, name, value) {
                if (fields && !is_listed(fields, name))
                        json_object_del(properties, name);
        }
        if (required) {
                json_t *list = json_array();
                for (const char *at = required; *at; at += strcspn(at, " "), at += *at == ' ')
                        json_array_append_new(list, json_stringn(at, strcspn(at, " ")));
                json_object_set_new(schema, "required", list);
        }
        add_used(defs, object, fields);
        drop_host_fields(defs);
        if (json_object_size(defs))
                json_object_set(schema, "$defs", defs);
        json_decref(defs);
        json_object_del(schema, "title");
        json_object_del(schema, "description");
        return schema;
}

json_t *model_schema(const struct object *object)
{
        bool of_grading = object == &object_grade_request || object == &object_grade_result;
        json_t *schema = json_pack("{s:s, s:s+++}", "$schema", "https://json-schema.org/draft/2020-12/schema",
                                   "$id", "urn:caisson:", object->name, ":",
                                   of_grading ? MODEL_GRADE_SCHEMA_VERSION : MODEL_SCHEMA_VERSION);
        json_t *body = schema_of(object), *defs = json_object();
        json_object_update(schema, body);
        json_decref(body);
        add_used(defs, object, NULL);
        /* The older systems' names are there only at the request of a client. */
        if (object == &object_run_result || object == &object_grade_result)
                json_object_set_new(
                        json_object_get(schema, "properties"), "aliases",
                        json_pack("{s:s, s:s}", "type", "object", "description",
                                  "The field names of older systems, when the request asked for them."));
        json_object_set_new(schema, "$defs", defs);
        return schema;
}
