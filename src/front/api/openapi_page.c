/*
 * Pages for people: /docs shows the description of the interface, and /problems explains the codes of problems.
 *
 * The pages have no scripts and load nothing.  Their texts on operations come from the description itself, so both
 * agree.
 */
#include "front/api/openapi.h"

#include "front/api/api.h"

#include <ctype.h>
#include <stdio.h>

#include "config.h"

#define OBJECTS_MAX 200

static const char page_head[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>Caisson</title>"
        "<style>:root{color-scheme:light dark}*{box-sizing:border-box}"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff;overflow-wrap:anywhere}"
        "h1{margin-bottom:0}h2{margin-top:3rem;border-bottom:1px solid #ccc}h3{margin:2.5rem 0 .2rem;font-family:ui-monospace,monospace;font-size:1.05rem}"
        "h4{margin:1rem 0 .2rem;font-size:.9rem;color:#555}p{margin:.3rem 0}"
        "code,pre,td:first-child{font-family:ui-monospace,monospace;font-size:.92em}table{border-collapse:collapse;width:100%}"
        "pre{margin:.3rem 0;padding:.6rem .8rem;background:#f4f5f7;border-radius:4px;white-space:pre-wrap}"
        "td,th{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #e5e5e5}th{color:#555;font-weight:normal}"
        "td:first-child{min-width:7.5rem}td:nth-child(2){min-width:5rem}"
        "nav ul{list-style:none;margin:.2rem 0 .8rem;padding:0;columns:20rem;font-size:.92rem}nav b{display:block;margin-top:.6rem}"
        "nav li a{display:flex;text-decoration:none}"
        ".m{display:inline-block;flex:none;width:4.2rem;color:#0a58ca;text-transform:uppercase;font-size:.85em}a{color:#0a58ca}"
        "@media(max-width:30rem){table,tbody,tr,td{display:block}tr{padding:.3rem 0;border-bottom:1px solid #e5e5e5}td{border:0;padding:0}th{display:none}}"
        "@media(prefers-color-scheme:dark){body{background:#16181b;color:#ddd}h2,td,th,tr{border-color:#333}.m,a{color:#7ab0ff}h4,th{color:#a0a0a0}"
        "pre{background:#22262b}}"
        "</style>";

/* ---- text ---- */

static void add_html(struct buf *buf, const char *text)
{
        for (; *text; text++) {
                const char *entity = *text == '<' ? "&lt;"
                        : *text == '>'            ? "&gt;"
                        : *text == '&'            ? "&amp;"
                        : *text == '"'            ? "&quot;"
                                                  : NULL;
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

static const char *text_of(const json_t *json, const char *name)
{
        const char *text = json_string_value(json_object_get(json, name));
        return text ? text : "";
}

static void begin_page(struct buf *buf)
{
        buf_add(buf, page_head, sizeof page_head - 1);
}

/* ---- operations ---- */

struct operation {
        const json_t *json, *responses;    /* of the operation; of the components, for its references */
        const char *method, *path;
};

static void add_bounds(struct buf *buf, const json_t *schema)
{
        const json_t *low = json_object_get(schema, "minimum"), *high = json_object_get(schema, "maximum"), *choice;
        size_t i;
        if (high)
                buf_printf(buf, ": %lld to %lld", (long long)json_integer_value(low),
                        (long long)json_integer_value(high));
        else if (low)
                buf_printf(buf, ": %lld or more", (long long)json_integer_value(low));
        json_array_foreach(json_object_get(schema, "enum"), i, choice) {
                buf_printf(buf, "%s%s", i ? " or " : ": ", json_string_value(choice));
        }
}

static void add_parameters(struct buf *buf, const struct operation *one)
{
        const json_t *parameters = json_object_get(one->json, "parameters"), *parameter;
        size_t i;
        if (!json_array_size(parameters))
                return;
        buf_printf(buf, "<h4>Parameters</h4><table><tr><th>name<th>is<th>meaning");
        json_array_foreach(parameters, i, parameter) {
                const json_t *schema = json_object_get(parameter, "schema");
                buf_printf(buf, "<tr><td>%s<td>%s%s, %s", text_of(parameter, "name"), text_of(parameter, "in"),
                           json_is_true(json_object_get(parameter, "required")) ? "" : ", optional",
                           strcmp(text_of(schema, "type"), "integer") == 0 ? "number" : "text");
                add_bounds(buf, schema);
                buf_printf(buf, "<td>");
                add_sentence(buf, text_of(parameter, "description"));
        }
        buf_printf(buf, "</table>");
}

/* The objects of a schema, with links. */
static void add_links(struct buf *buf, const json_t *schema)
{
        const char *ref = text_of(schema, "$ref"), *name = strrchr(ref, '/');
        const json_t *other;
        size_t i;
        if (name)
                buf_printf(buf, " <a href=\"#%s\">%s</a>", name + 1, name + 1);
        json_array_foreach(json_object_get(schema, "anyOf"), i, other) {
                add_links(buf, other);
        }
}

static void add_contents(struct buf *buf, const json_t *contents)
{
        const char *type;
        json_t *media;
        bool more = false;
        json_object_foreach((json_t *)(uintptr_t)contents, type, media) {
                buf_printf(buf, "%s<code>%s</code>", more ? "<br>" : "", type);
                add_links(buf, json_object_get(media, "schema"));
                more = true;
        }
}

static void add_response(struct buf *buf, const struct operation *one, const char *status, const json_t *response)
{
        const char *ref = strrchr(text_of(response, "$ref"), '/');
        const json_t *all = ref ? json_object_get(one->responses, ref + 1) : response;
        const char *name;
        json_t *header;
        buf_printf(buf, "<tr><td>%s<td>", status);
        add_contents(buf, json_object_get(all, "content"));
        buf_printf(buf, "<td>");
        add_sentence(buf, text_of(all, "description"));
        bool begun = false;
        json_object_foreach(json_object_get(all, "headers"), name, header) {
                if (strcmp(name, "X-Request-Id") == 0 || strcmp(name, "traceparent") == 0 ||
                        strcmp(name, "X-Content-Type-Options") == 0 || strcmp(name, "Cache-Control") == 0)
                        continue;          /* headers of all answers, named once at the top */
                buf_printf(buf, "%s<code>%s</code>", begun ? ", " : " Headers: ", name);
                begun = true;
        }
}

/* ---- examples ---- */

/* "/v1/runs/{id}" -> "/v1/runs/$ID" */
static void add_path(struct buf *buf, const char *path)
{
        bool inside = false;
        for (const char *at = path; *at; at++) {
                inside = *at == '{' || (inside && *at != '}');
                if (*at != '}')
                        buf_printf(buf, "%c", *at == '{' ? '$' : inside ? toupper((unsigned char)*at) : *at);
        }
}

static void add_query(struct buf *buf, const struct operation *one)
{
        const json_t *parameter;
        size_t i;
        const char *before = "?";
        json_array_foreach(json_object_get(one->json, "parameters"), i, parameter) {
                if (strcmp(text_of(parameter, "in"), "query") != 0 || !json_object_get(parameter, "example"))
                        continue;
                buf_printf(buf, "%s%s=%s", before, text_of(parameter, "name"), text_of(parameter, "example"));
                before = "&amp;";
        }
}

/* The request of an operation with a 406 answer needs Accept. */
static void add_accept(struct buf *buf, const struct operation *one)
{
        const json_t *responses = json_object_get(one->json, "responses");
        const char *type, *before = " \\\n  -H 'Accept: ";
        json_t *media;
        if (!json_object_get(responses, "406"))
                return;
        json_object_foreach(json_object_get(json_object_get(responses, "200"), "content"), type, media) {
                buf_printf(buf, "%s%s", before, type);
                before = ", ";
        }
        buf_printf(buf, "'");
}

static void add_headers(struct buf *buf, const struct operation *one)
{
        const json_t *parameter;
        size_t i;
        json_array_foreach(json_object_get(one->json, "parameters"), i, parameter) {
                if (strcmp(text_of(parameter, "in"), "header") == 0 && json_object_get(parameter, "example"))
                        buf_printf(buf, " \\\n  -H \"%s: %s\"", text_of(parameter, "name"),
                                text_of(parameter, "example"));
        }
}

static void add_body(struct buf *buf, const struct operation *one)
{
        json_t *contents = json_object_get(json_object_get(one->json, "requestBody"), "content");
        void *first = json_object_iter(contents);
        const char *type = first ? json_object_iter_key(first) : NULL;
        const json_t *example = json_object_get(json_object_iter_value(first), "example");
        if (!type)
                return;
        if (strncmp(type, "multipart/", 10) == 0) {
                buf_printf(buf, " -F file=@notes.txt");
                return;
        }
        buf_printf(buf, " \\\n  -H 'Content-Type: %s' ", type);
        if (json_is_string(example) || !example) {
                buf_printf(buf, "--data-binary @%s", strstr(type, "ndjson") ? "requests.jsonl" : "notes.txt");
                return;
        }
        char *text = json_dumps(example, 0);
        buf_printf(buf, "-d '");
        add_html(buf, text);
        buf_printf(buf, "'");
        free(text);
}

static void add_example(struct buf *buf, const struct operation *one)
{
        const json_t *security = json_object_get(one->json, "security");
        buf_printf(buf, "<h4>Example</h4><pre>curl -s");
        if (strcmp(one->method, "get") != 0)
                buf_printf(buf, " -X ");
        for (const char *at = one->method; strcmp(one->method, "get") != 0 && *at; at++)
                buf_printf(buf, "%c", toupper((unsigned char)*at));
        if (!security)
                buf_printf(buf, " -H \"Authorization: Bearer $KEY\"");
        buf_printf(buf, " \"$URL");
        add_path(buf, one->path);
        add_query(buf, one);
        buf_printf(buf, "\"");
        add_headers(buf, one);
        add_accept(buf, one);
        add_body(buf, one);
        buf_printf(buf, "</pre>");
}

static void add_operation(struct buf *buf, const struct operation *one)
{
        json_t *responses = json_object_get(one->json, "responses"), *body = json_object_get(one->json, "requestBody"),
               *response;
        const char *status;
        buf_printf(buf, "<h3 id=\"%s\"><span class=m>%s</span> ", text_of(one->json, "operationId"), one->method);
        add_html(buf, one->path);
        buf_printf(buf, "</h3><p>");
        add_sentence(buf, text_of(one->json, "description"));
        add_parameters(buf, one);
        if (body) {
                buf_printf(buf, "<h4>Body</h4><p>");
                add_contents(buf, json_object_get(body, "content"));
        }
        buf_printf(buf, "<h4>Answers</h4><table><tr><th>status<th>body<th>when");
        json_object_foreach(responses, status, response) {
                add_response(buf, one, status, response);
        }
        buf_printf(buf, "</table>");
        add_example(buf, one);
}

/* ---- operations by tag ---- */

static void each_operation(struct buf *buf, const json_t *description, const char *tag,
        void (*add)(struct buf *buf, const struct operation *one))
{
        const char *path, *method;
        json_t *methods, *json;
        json_object_foreach(json_object_get(description, "paths"), path, methods) {
                json_object_foreach(methods, method, json) {
                        const struct operation one = { json,
                                json_object_get(json_object_get(description, "components"), "responses"), method,
                                path };
                        if (strcmp(json_string_value(json_array_get(json_object_get(json, "tags"), 0)), tag) == 0)
                                add(buf, &one);
                }
        }
}

static void add_index_line(struct buf *buf, const struct operation *one)
{
        buf_printf(buf, "<li><a href=\"#%s\"><span class=m>%s</span><span>", text_of(one->json, "operationId"),
                one->method);
        add_html(buf, one->path);
        buf_printf(buf, "</span></a>");
}

static void add_index(struct buf *buf, const json_t *description)
{
        const json_t *tag;
        size_t i;
        buf_printf(buf, "<nav>");
        json_array_foreach(json_object_get(description, "tags"), i, tag) {
                buf_printf(buf, "<b>%s</b><ul>", text_of(tag, "name"));
                each_operation(buf, description, text_of(tag, "name"), add_index_line);
                buf_printf(buf, "</ul>");
        }
        buf_printf(buf, "<b><a href=\"#objects\">Objects</a></b></nav>");
}

static void add_operations(struct buf *buf, const json_t *description)
{
        const json_t *tag;
        size_t i;
        json_array_foreach(json_object_get(description, "tags"), i, tag) {
                buf_printf(buf, "<h2>%s</h2><p>", text_of(tag, "name"));
                add_html(buf, text_of(tag, "description"));
                each_operation(buf, description, text_of(tag, "name"), add_operation);
        }
}

/* ---- objects ---- */

static void add_object(struct buf *buf, const struct object *object)
{
        static const char *const kinds[] = { "number", "number", "number", "true or false", "text",
                "bytes (text, or NAME_base64)", "any JSON", "one of", "list of texts", "object of texts", "object",
                "list of objects" };
        buf_printf(buf, "<h3 id=\"%s\">%s</h3><p>", object->name, object->name);
        add_sentence(buf, object->text[0] ? object->text : object->title);
        buf_printf(buf, "<table><tr><th>field<th>is<th>meaning");
        for (size_t i = 0; i < object->n; i++) {
                const struct field *field = &object->fields[i];
                char allowed[400] = "";
                if (field->kind == KIND_ENUM || (field->kind == KIND_NUM && (field->min || field->max)))
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

/* An object and the objects of its fields, each once. */
static void add_objects(struct buf *buf, const struct object *object, const struct object **seen, size_t *n)
{
        for (size_t i = 0; i < *n; i++)
                if (seen[i] == object)
                        return;
        if (!object || *n == OBJECTS_MAX)
                return;
        seen[(*n)++] = object;
        add_object(buf, object);
        for (size_t i = 0; i < object->n; i++)
                add_objects(buf, object->fields[i].object, seen, n);
}

void openapi_write_docs(const struct service *service, struct buf *buf)
{
        const struct object *seen[OBJECTS_MAX];
        json_t *description = openapi_describe(service);
        size_t n = 0;
        begin_page(buf);
        buf_printf(buf,
                "<h1>Caisson</h1><p>Version %s. <a href=\"/openapi.json\">openapi.json</a> has the same for programs, and "
                "<a href=\"/problems\">problems</a> explains the codes of what was not done. In the examples <code>$URL</code> is the address of the "
                "daemon, and <code>$KEY</code> a key. Every answer has the headers <code>X-Request-Id</code>, <code>traceparent</code>, "
                "<code>X-Content-Type-Options</code> and <code>Cache-Control</code>.",
                VERSION);
        add_index(buf, description);
        add_operations(buf, description);
        buf_printf(buf, "<h2 id=\"objects\">Objects</h2>");
        for (const struct http_route *route = service->routes; route->path; route++) {
                add_objects(buf, route->takes, seen, &n);
                add_objects(buf, route->gives, seen, &n);
        }
        for (const struct front *const *front = service->fronts; *front; front++)
                for (const struct object *const *object = (*front)->objects; object && *object; object++)
                        add_objects(buf, *object, seen, &n);
        json_decref(description);
}

/* ---- problems ---- */

static void add_problem(struct buf *buf, const char *code, unsigned status, const char *meaning)
{
        buf_printf(buf, "<h3 id=\"%s\">%s</h3><p>Status %u: ", code, code, status);
        add_html(buf, meaning);
        buf_printf(buf, ".");
}

void openapi_write_problems(const struct service *service, struct buf *buf)
{
        (void)service;
        begin_page(buf);
        buf_printf(buf,
                "<h1>Problems</h1><p>What was not done is answered with <code>application/problem+json</code> (RFC 9457). Its <code>code</code> is one of "
                "these, and its <code>detail</code> says what is wrong with the request. Where a request can fail in the same way for another reason, "
                "its status is another one: <a href=\"/docs\">docs</a> has those of each request.");
        for (const struct http_code *one = http_codes; one->code; one++)
                add_problem(buf, one->code, one->status, one->meaning);
#define ERROR(name, number, text, http, exit, meaning) add_problem(buf, text, http, meaning);
#include <caisson/errors.def>
#undef ERROR
}
