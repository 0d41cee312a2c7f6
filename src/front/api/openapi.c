/* The description of the HTTP interface as OpenAPI 3.1 (spec.openapis.org/oas/v3.1.0); see openapi.h. */
#include "front/api/openapi.h"

#include "front/api/api.h"

#include <ctype.h>
#include <stdio.h>

#include "config.h"

/* ---- schemas ---- */

/* "#/$defs/x" of a standalone schema becomes a component. */
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

static json_t *schemas(const struct service *service)
{
        json_t *all = json_object();
        for (const struct http_route *route = service->routes; route->path; route++) {
                add_schema(all, route->takes);
                add_schema(all, route->gives);
        }
        for (const struct front *const *front = service->fronts; *front; front++)
                for (const struct object *const *object = (*front)->objects; object && *object; object++)
                        add_schema(all, *object);
        move_refs(all);
        return all;
}

/* ---- contents ---- */

static json_t *constant(const char *text)
{
        return json_loads(text, JSON_DECODE_ANY, NULL);
}

/* A media type may have two schemas: either fits. */
static void add_type(json_t *contents, const char *type, json_t *schema)
{
        json_t *there = json_object_get(json_object_get(contents, type), "schema");
        json_t *both = there ? json_pack("{s:[O, o]}", "anyOf", there, schema) : schema;
        json_object_set_new(contents, type, json_pack("{s:o}", "schema", both));
}

static json_t *reference(const char *kind, const char *name, size_t len)
{
        return json_pack("{s:o}", "$ref", json_sprintf("#/components/%s/%.*s", kind, (int)len, name));
}

/* "run_result|events" */
static json_t *contents_of(const char *words, size_t len)
{
        json_t *contents = json_object();
        for (const char *at = words, *end = words + len; at < end; at++) {
                size_t n = strcspn(at, "| ");
                const struct openapi_content *one = openapi_contents;
                while (one->word && (strlen(one->word) != n || memcmp(one->word, at, n) != 0))
                        one++;
                if (one->word)
                        add_type(contents, one->type, constant(one->schema));
                else
                        add_type(contents, "application/json", reference("schemas", at, n));
                at += n;
        }
        return contents;
}

static json_t *body_of(const struct http_route *route, const struct front_note *note)
{
        const char *words = note->takes ? note->takes : route->takes ? route->takes->name : "none";
        if (strcmp(words, "none") == 0)
                return NULL;
        json_t *contents = contents_of(words, strlen(words)),
               *first = json_object_iter_value(json_object_iter(contents));
        bool text = strncmp(words, "ndjson", 6) == 0 || strncmp(words, "bytes", 5) == 0;
        if (note->example)
                json_object_set_new(first, "example", text ? json_string(note->example) : constant(note->example));
        return json_pack("{s:o, s:b}", "content", contents, "required", 1);
}

/* ---- parameters ---- */

/* The parameter of the name, from the first front with it; else an empty row. */
static const struct front_value *value_of(const struct service *service, const char *name, size_t len)
{
        static const struct front_value none;
        for (const struct front *const *front = service->fronts; *front; front++)
                for (const struct front_value *value = (*front)->parameters; value && value->name; value++)
                        if (strlen(value->name) == len && memcmp(value->name, name, len) == 0)
                                return value;
        return &none;
}

/* A parameter of a query: the row "PATH?name" is for its path only, and comes before the row of the name alone. */
static const struct front_value *query_value_of(const struct service *service, const struct http_route *route,
                                                const char *name, size_t len)
{
        char whole[200];
        int whole_len = snprintf(whole, sizeof whole, "%s?%.*s", route->path, (int)len, name);
        const struct front_value *value = value_of(service, whole, (size_t)whole_len);
        return value->name ? value : value_of(service, name, len);
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

static void add_parameter(json_t *list, const char *name, size_t len, const char *in, const struct front_value *value,
                          const char *choices)
{
        json_t *schema = value->schema ? constant(value->schema) : json_pack("{s:s}", "type", "string");
        json_t *one = json_pack("{s:s%, s:s, s:b, s:o, s:s}", "name", name, len, "in", in, "required",
                (int)value->required, "schema", schema, "description", value->text ? value->text : "");
        if (choices)
                json_object_set_new(schema, "enum", choices_of(choices));
        if (value->example)
                json_object_set_new(one, "example", json_string(value->example));
        json_array_append_new(list, one);
}

/* "path=." of a note is the example of the last parameter. */
static void take_example(json_t *list, const char *words, const char *name, size_t len)
{
        json_t *last = json_array_get(list, json_array_size(list) - 1);
        for (const char *at = words; at && *at; at += strcspn(at, " "), at += *at == ' ')
                if (strncmp(at, name, len) == 0 && at[len] == '=')
                        json_object_set_new(last, "example", json_stringn(at + len + 1, strcspn(at + len + 1, " ")));
}

static json_t *parameters_of(const struct service *service, const struct http_route *route,
                             const struct front_note *note)
{
        json_t *list = json_array();
        for (const char *at = route->path; (at = strchr(at, '{')); at++) {
                size_t len = strcspn(at, "}");
                add_parameter(list, at + 1, len - 1, "path", value_of(service, at, len + 1), NULL);
        }
        for (const char *at = route->query; at && *at && *at != '*'; at += strcspn(at, " "), at += *at == ' ') {
                size_t len = strcspn(at, " =");
                add_parameter(list, at, len, "query", query_value_of(service, route, at, len),
                        at[len] == '=' ? at + len + 1 : NULL);
                take_example(list, note->headers, at, len);
        }
        for (const char *at = note->headers; at && *at; at += strcspn(at, " "), at += *at == ' ') {
                size_t len = strcspn(at, " !=");
                if (at[len] != '=')
                        add_parameter(list, at, len, "header", value_of(service, at, len + (at[len] == '!')), NULL);
        }
        return list;
}

/* ---- answers ---- */

#define ALWAYS "X-Request-Id traceparent X-Content-Type-Options Cache-Control"
static json_t *headers_of(const char *names, const char *more)
{
        json_t *headers = json_object();
        const char *const lists[] = { names, more };
        char name[64];
        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                for (const char *at = lists[i]; at && *at; at += strcspn(at, " "), at += *at == ' ') {
                        size_t len = strcspn(at, " ");
                        snprintf(name, sizeof name, "%.*s", (int)len, at);
                        json_object_set_new(headers, name, reference("headers", at, len));
                }
        return headers;
}

static bool always(const struct http_route *route)
{
        return route->path;
}

static bool needs_key(const struct http_route *route)
{
        return route->scope != 0;
}

static bool names_something(const struct http_route *route)
{
        return strchr(route->path, '{');
}

static bool has_whole_body(const struct http_route *route)
{
        return http_body_is_whole(route);
}

static bool has_body(const struct http_route *route)
{
        return http_body_of(route) != BODY_NONE;
}

static const struct {
        unsigned status;
        bool (*may)(const struct http_route *route);   /* every route of this kind may have this answer */
        const char *headers, *text;
} problems[] = {
        { 400, always, NULL,
                "The head of the request could be read in two ways, or a front of another service refuses the request." },
        { 401, needs_key, "WWW-Authenticate", "There is no key, or it is not valid any more." },
        { 403, always, NULL,
                "The key lacks the scope; without keys: a web page, or another name of this host; of a file: its permissions." },
        { 404, names_something, NULL, "What the path names is not there, or belongs to another tenant." },
        { 406, NULL, NULL, "`Accept` has none of what is answered." },
        { 409, NULL, NULL,
                "What the path names is not in the state for it, or the request of this `Idempotency-Key` goes on." },
        { 413, has_whole_body, NULL, "The body is too long." },
        { 415, has_body, "Accept-Encoding",
                "The body has a `Content-Encoding`, or a media type that is not read here." },
        { 416, NULL, "Accept-Ranges Content-Range Last-Modified", "The file has none of the bytes of `Range`." },
        { 422, always, NULL, "The body, the query or a header is wrong; `field` names what." },
        { 429, always, "Retry-After RateLimit-Limit RateLimit-Remaining RateLimit-Reset",
                "A limit is met; `quota` names it." },
        { 499, NULL, NULL, "What was asked for was taken back before it was there: its sandbox ended." },
        { 500, always, NULL, "The engine failed." },
        { 501, always, NULL, "The request has a `Transfer-Encoding` that is not `chunked`." },
        { 503, always, "Retry-After",
                "Nothing can be begun now, this host cannot enforce what was asked, or other tenants have all of a resource." },
        { 505, always, NULL, "The version is neither HTTP/1.1 nor HTTP/1.0." },
        { 507, NULL, NULL, "There is no room for what would be kept." },
};

static json_t *problem_response(size_t i, bool in_other_words)
{
        json_t *contents = json_pack("{s:{s:o}}", "application/problem+json", "schema",
                reference("schemas", "problem", strlen("problem")));
        if (in_other_words)
                add_type(contents, "application/json", json_object());
        return json_pack("{s:s, s:o, s:o}", "description", problems[i].text, "headers",
                headers_of(ALWAYS, problems[i].headers), "content", contents);
}

/* Takes the reference. */
static void set_numbered(json_t *object, const char *before, unsigned status, json_t *value)
{
        char name[32];
        snprintf(name, sizeof name, "%s%u", before, status);
        json_object_set_new(object, name, value);
}

/* Of "409 400:json" a status; *ret_words: its body may be in another service's format. */
static bool is_noted(const char *list, unsigned status, bool *ret_words)
{
        for (const char *at = list; at && *at; at += strcspn(at, " "), at += *at == ' ') {
                char *end;
                if (strtoul(at, &end, 10) != status)
                        continue;
                *ret_words = *end == ':';
                return true;
        }
        return false;
}

/* Problems in our own format are the same for all operations, and are components. */
static void add_problems(json_t *responses, json_t *components, const struct http_route *route,
                         const struct front_note *note)
{
        char name[32];
        for (size_t i = 0; i < ARRAY_LEN(problems); i++) {
                bool words = false, noted = is_noted(note->problems, problems[i].status, &words);
                if (!noted && !(problems[i].may && problems[i].may(route)))
                        continue;
                int len = snprintf(name, sizeof name, "problem_%u", problems[i].status);
                set_numbered(responses, "", problems[i].status,
                        words ? problem_response(i, true) : reference("responses", name, (size_t)len));
                if (!words && !json_object_get(components, name))
                        json_object_set_new(components, name, problem_response(i, false));
        }
}

/* "200:run_result|events 204" */
static void add_answers(json_t *responses, const struct http_route *route, const struct front_note *note)
{
        char usual[80];
        snprintf(usual, sizeof usual, "200:%s", route->gives ? route->gives->name : "json");
        for (const char *at = note->answers ? note->answers
                        : note->handle      ? ""
                                            : usual;
                *at; at += strcspn(at, " "), at += *at == ' ') {
                char *end;
                unsigned status = (unsigned)strtoul(at, &end, 10);
                json_t *one = json_pack("{s:s+, s:o}", "description", MHD_get_reason_phrase_for(status), ".", "headers",
                        headers_of(ALWAYS, note->gives));
                if (*end == ':')
                        json_object_set_new(one, "content", contents_of(end + 1, strcspn(end + 1, " ")));
                set_numbered(responses, "", status, one);
        }
}

/* ---- operations ---- */

/* The row with the longest path at the beginning of the route's; "/submissions" and not "/submit". */
static const char *tag_of(const struct service *service, const struct http_route *route)
{
        const struct front_tag *best = NULL;
        for (const struct front *const *front = service->fronts; *front; front++)
                for (const struct front_tag *tag = (*front)->tags; tag && tag->path; tag++)
                        if (strncmp(route->path, tag->path, strlen(tag->path)) == 0 &&
                            (!best || strlen(tag->path) > strlen(best->path)))
                                best = tag;
        return best ? best->tag : "";
}

static json_t *list_of_tags(const struct service *service)
{
        json_t *list = json_array();
        for (const struct front *const *front = service->fronts; *front; front++)
                for (const struct front_tag *tag = (*front)->tags; tag && tag->path; tag++)
                        if (tag->text)
                                json_array_append_new(list, json_pack("{s:s, s:s}", "name", tag->tag, "description",
                                                                      tag->text));
        return list;
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

/* The first sentence of the route's summary. */
static json_t *summary_of(const struct http_route *route)
{
        const char *end = strstr(route->summary, ". ");
        return json_stringn(route->summary, end ? (size_t)(end - route->summary) : strlen(route->summary) - 1);
}

static const struct front_note *openapi_note(const struct service *service, const struct http_route *route)
{
        static const struct front_note none;
        for (const struct front *const *front = service->fronts; *front; front++)
                for (const struct front_note *note = (*front)->notes; note && note->handle; note++)
                        if (note->handle == route->handle)
                                return note;
        return &none;
}

static json_t *operation(const struct service *service, const struct http_route *route, json_t *components)
{
        const struct front_note *note = openapi_note(service, route);
        json_t *responses = json_object(), *body = body_of(route, note);
        add_answers(responses, route, note);
        add_problems(responses, components, route, note);
        json_t *json = json_pack("{s:[s], s:o, s:o, s:s, s:o, s:o}", "tags", tag_of(service, route), "operationId",
                                 operation_id(route), "summary", summary_of(route),
                                 "description", route->summary, "parameters", parameters_of(service, route, note),
                                         "responses", responses);
        if (body)
                json_object_set_new(json, "requestBody", body);
        if (!route->scope)
                json_object_set_new(json, "security", json_array());
        return json;
}

static json_t *paths(const struct service *service, json_t *components)
{
        json_t *all = json_object();
        for (const struct http_route *route = service->routes; route->path; route++) {
                json_t *path = json_object_get(all, route->path);
                char method[16] = "";
                if (!path)
                        json_object_set_new(all, route->path, path = json_object());
                for (size_t i = 0; i < sizeof method - 1 && route->method[i]; i++)
                        method[i] = (char)tolower((unsigned char)route->method[i]);
                json_object_set_new(path, method, operation(service, route, components));
        }
        return all;
}

static json_t *all_headers(const struct service *service)
{
        json_t *all = json_object();
        for (const struct front *const *front = service->fronts; *front; front++)
                for (const struct front_value *one = (*front)->headers; one && one->name; one++)
                        json_object_set_new(all, one->name,
                                            json_pack("{s:s, s:b, s:o}", "description", one->text, "required",
                                                      (int)one->required, "schema", constant(one->schema)));
        return all;
}

json_t *openapi_describe(const struct service *service)
{
        static const char about[] =
                "Run programs that you did not write in closed sandboxes. A key is sent as `Authorization: Bearer KEY` or as `X-API-Key: KEY`; "
                "a daemon with `engine.http_keyless`, and the socket for users of its host, need none.";
        json_t *info = json_pack("{s:s, s:s, s:s, s:{s:s, s:s}}", "title", "Caisson", "version", VERSION, "description",
                about, "license", "name", "Apache License 2.0", "identifier", "Apache-2.0");
        json_t *schemes = json_pack("{s:{s:s, s:s}, s:{s:s, s:s, s:s}}", "key", "type", "http", "scheme", "bearer",
                "api_key", "type", "apiKey", "in", "header", "name", "X-API-Key");
        json_t *responses = json_object(), *operations = paths(service, responses);
        json_t *components = json_pack("{s:o, s:o, s:o, s:o}", "schemas", schemas(service), "responses", responses,
                                       "headers", all_headers(service),
                                       "securitySchemes", schemes);
        return json_pack("{s:s, s:o, s:[{s:s, s:s}], s:o, s:o, s:o, s:[{s:[]}, {s:[]}]}", "openapi", "3.1.0", "info",
                info, "servers", "url", "/", "description", "The daemon that this description comes from.", "tags",
                list_of_tags(service), "paths", operations, "components", components, "security", "key", "api_key");
}

void openapi_write(const struct service *service, struct buf *buf)
{
        json_t *json = openapi_describe(service);
        model_dump(json, false, buf);
        json_decref(json);
}
