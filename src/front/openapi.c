/*
 * What the HTTP interface is, for programs (OpenAPI 3.1) and for people (a page without scripts, which needs nothing from
 * elsewhere).  Both follow from the table of routes and from fields.def.
 */
#include "front/api.h"

#include <ctype.h>

#include "config.h"

/* ---- OpenAPI ---- */

/* "#/$defs/x" of a schema that stood alone becomes a component. */
static void move_refs(json_t *json)
{
        const char *key, *ref = json_string_value(json_object_get(json, "$ref"));
        json_t *value;
        size_t i;
        if (ref && strncmp(ref, "#/$defs/", 8) == 0) {
                json_t *moved = json_sprintf("#/components/schemas/%s", ref + 8);
                json_object_set_new(json, "$ref", moved);
        }
        json_object_foreach(json, key, value) {
                move_refs(value);
        }
        json_array_foreach(json, i, value) {
                move_refs(value);
        }
}

static void add_schema(json_t *schemas, const struct object *object)
{
        const char *name;
        json_t *schema, *defs, *def;
        if (!object || json_object_get(schemas, object->name))
                return;
        schema = model_schema(object);
        defs = json_incref(json_object_get(schema, "$defs"));
        json_object_del(schema, "$defs");
        json_object_del(schema, "$schema");
        json_object_del(schema, "$id");
        json_object_foreach(defs, name, def) {
                json_object_set(schemas, name, def);
        }
        json_object_set_new(schemas, object->name, schema);
        json_decref(defs);
}

static json_t *content_of(const struct object *object)
{
        return json_pack("{s:{s:{s:{s:s+}}}}", "content", "application/json", "schema", "$ref", "#/components/schemas/", object->name);
}

/* "true|false" */
static json_t *choices_of(const char *at)
{
        json_t *list = json_array();
        for (bool more = true; more; at++) {
                size_t len = strcspn(at, "| ");
                json_array_append_new(list, json_stringn(at, len));
                at += len;
                more = *at == '|';
        }
        return list;
}

static void add_parameters(json_t *list, const struct http_route *route)
{
        for (const char *at = route->path; (at = strchr(at, '{')); at++)
                json_array_append_new(list, json_pack("{s:s%, s:s, s:b, s:{s:s}}", "name", at + 1, strcspn(at + 1, "}"), "in", "path", "required", 1,
                                                      "schema", "type", "string"));
        for (const char *at = route->query; at && *at && *at != '*'; at += strcspn(at, " "), at += *at == ' ') {
                json_t *schema = json_pack("{s:s}", "type", "string");
                const char *choice = at + strcspn(at, " =");
                if (*choice == '=')
                        json_object_set_new(schema, "enum", choices_of(choice + 1));
                json_array_append_new(list, json_pack("{s:s%, s:s, s:o}", "name", at, (size_t)(choice - at), "in", "query", "schema", schema));
        }
}

/* "POST /v1/runs/{id}" -> "post_v1_runs_id" */
static json_t *operation_id(const struct http_route *route)
{
        struct buf text;
        bool gap = false;
        buf_init(&text, 200);
        for (const char *at = route->method; *at; at++)
                buf_printf(&text, "%c", tolower((unsigned char)*at));
        for (const char *at = route->path; *at; at++)
                if (isalnum((unsigned char)*at)) {
                        buf_printf(&text, "%s%c", gap ? "_" : "", *at);
                        gap = false;
                } else {
                        gap = true;
                }
        json_t *json = json_string(text.bytes);
        buf_done(&text);
        return json;
}

static json_t *operation(const struct http_route *route)
{
        json_t *answer = route->gives ? content_of(route->gives) : json_object(), *parameters = json_array();
        json_object_set_new(answer, "description", json_string("What was asked for."));
        add_parameters(parameters, route);
        json_t *json = json_pack("{s:o, s:s, s:o, s:{s:o, s:{s:s}}}", "operationId", operation_id(route), "summary", route->summary, "parameters",
                                 parameters, "responses", "200", answer, "default", "$ref", "#/components/responses/problem");
        if (route->takes) {
                json_t *body = content_of(route->takes);
                json_object_set_new(body, "required", json_true());
                json_object_set_new(json, "requestBody", body);
        }
        if (!route->scope)
                json_object_set_new(json, "security", json_array());
        return json;
}

static json_t *problem_schema(void)
{
        static const char *const texts[] = { "type", "title", "detail", "instance", "code", "message", "field", "request_id" };
        json_t *properties = json_pack("{s:{s:s}, s:{s:s}}", "status", "type", "integer", "retryable", "type", "boolean");
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                json_object_set_new(properties, texts[i], json_pack("{s:s}", "type", "string"));
        return json_pack("{s:s, s:s, s:o, s:[s, s, s, s]}", "type", "object", "description", "Why it was not done (RFC 9457).", "properties",
                         properties, "required", "status", "title", "detail", "code");
}

static json_t *openapi(void)
{
        json_t *paths = json_object(), *schemas = json_object();
        for (const struct http_route *route = api_routes; route->path; route++) {
                json_t *path = json_object_get(paths, route->path);
                char method[16] = "";
                if (!path)
                        json_object_set_new(paths, route->path, path = json_object());
                for (size_t i = 0; i < sizeof method - 1 && route->method[i]; i++)
                        method[i] = (char)tolower((unsigned char)route->method[i]);
                json_object_set_new(path, method, operation(route));
                add_schema(schemas, route->takes);
                add_schema(schemas, route->gives);
        }
        move_refs(schemas);
        json_object_set_new(schemas, "problem", problem_schema());
        return json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:o, s:{s:{s:s, s:{s:{s:{s:s}}}}}, s:{s:{s:s, s:s}}}, s:[{s:[]}]}", "openapi", "3.1.0",
                         "info", "title", "Caisson", "version", VERSION, "description",
                         "Run programs that you did not write in closed sandboxes.", "paths", paths, "components", "schemas", schemas, "responses",
                         "problem", "description", "Why it was not done.", "content", "application/problem+json", "schema", "$ref",
                         "#/components/schemas/problem", "securitySchemes", "key", "type", "http", "scheme", "bearer", "security", "key");
}

void api_openapi(struct http_request *request)
{
        http_json(request, MHD_HTTP_OK, openapi());
}

/* ---- the page ---- */

static const char page_head[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Caisson</title>"
        "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}"
        "h1{margin-bottom:0}h2{margin-top:3rem;border-bottom:1px solid #ccc}h3{margin:2rem 0 .2rem;font-family:ui-monospace,monospace;font-size:1.05rem}"
        "code,td:first-child{font-family:ui-monospace,monospace;font-size:.92em}table{border-collapse:collapse;width:100%}"
        "td,th{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #e5e5e5}th{color:#666;font-weight:normal}"
        ".m{display:inline-block;min-width:4.5rem;color:#0a58ca}.k{color:#666}"
        "@media(prefers-color-scheme:dark){body{background:#16181b;color:#ddd}h2,td,th{border-color:#333}.m{color:#7ab0ff}a{color:#7ab0ff}.k,th{color:#999}}"
        "</style><h1>Caisson</h1>";

static void add_html(struct buf *buf, const char *text)
{
        for (; *text; text++) {
                const char *entity = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : *text == '"' ? "&quot;" : NULL;
                buf_add(buf, entity ? entity : text, entity ? strlen(entity) : 1);
        }
}

/* `word` in a sentence is code. */
static void add_sentence(struct buf *buf, const char *text)
{
        bool inside = false;
        for (; *text; text++) {
                char one[2] = { *text, 0 };
                if (*text == '`')
                        buf_printf(buf, "%s", (inside = !inside) ? "<code>" : "</code>");
                else
                        add_html(buf, one);
        }
}

static void add_link(struct buf *buf, const char *word, const struct object *object)
{
        if (object)
                buf_printf(buf, "<div><span class=k>%s</span> <a href=\"#%s\"><code>%s</code></a></div>", word, object->name, object->name);
}

static void add_route(struct buf *buf, const struct http_route *route)
{
        buf_printf(buf, "<h3><span class=m>%s</span> ", route->method);
        add_html(buf, route->path);
        buf_printf(buf, "</h3><div>");
        add_sentence(buf, route->summary);
        buf_printf(buf, "</div>");
        add_link(buf, "takes", route->takes);
        add_link(buf, "gives", route->gives);
}

static void add_object(struct buf *buf, const struct object *object)
{
        static const char *const kinds[] = { "number", "number", "number", "true or false", "text", "bytes (text, or NAME_base64)", "any JSON", "one of",
                                             "list of texts", "object of texts", "object", "list of objects" };
        buf_printf(buf, "<h3 id=\"%s\">%s</h3><div>", object->name, object->name);
        add_sentence(buf, object->text[0] ? object->text : object->title);
        buf_printf(buf, "</div><table><tr><th>field<th>is<th>meaning");
        for (size_t i = 0; i < object->n; i++) {
                const struct field *field = &object->fields[i];
                char allowed[400] = "";
                if (field->kind == KIND_NUM || field->kind == KIND_ENUM)
                        model_allowed(field, allowed, sizeof allowed);
                buf_printf(buf, "<tr><td>%s<td>", field->name);
                if (field->object)
                        buf_printf(buf, "<a href=\"#%s\">", field->object->name);
                buf_printf(buf, "%s%s", kinds[field->kind], field->object ? "</a>" : "");
                if (allowed[0]) {
                        buf_printf(buf, ": ");
                        add_html(buf, allowed);
                }
                buf_printf(buf, "<td>");
                add_sentence(buf, field->help);
        }
        buf_printf(buf, "</table>");
}

/* An object, and those that it is made of, each once. */
static void add_objects(struct buf *buf, const struct object *object, const struct object **seen, size_t *n, size_t most)
{
        for (size_t i = 0; i < *n; i++)
                if (seen[i] == object)
                        return;
        if (!object || *n == most)
                return;
        seen[(*n)++] = object;
        add_object(buf, object);
        for (size_t i = 0; i < object->n; i++)
                add_objects(buf, object->fields[i].object, seen, n, most);
}

void api_docs(struct http_request *request)
{
        const struct object *seen[64];
        size_t n = 0;
        struct buf buf;
        buf_init(&buf, MIB);
        buf_add(&buf, page_head, sizeof page_head - 1);
        buf_printf(&buf, "<p>Version %s. <a href=\"/openapi.json\">openapi.json</a> has the same for programs.</p><h2>Requests</h2>", VERSION);
        for (const struct http_route *route = api_routes; route->path; route++)
                add_route(&buf, route);
        buf_printf(&buf, "<h2>Objects</h2>");
        for (const struct http_route *route = api_routes; route->path; route++) {
                add_objects(&buf, route->takes, seen, &n, ARRAY_LEN(seen));
                add_objects(&buf, route->gives, seen, &n, ARRAY_LEN(seen));
        }
        http_set_header(request, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
        http_answer(request, MHD_HTTP_OK, "text/html; charset=utf-8", buf.bytes, buf.len);
}
