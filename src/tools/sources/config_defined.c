/* The section tools of the configuration: HTTP endpoints and commands as tools, with their arguments. */
#include "tools/sources/config_read.h"

#include <stdio.h>

#include "sandbox/sandbox.h"

#define COMMAND_MEMORY (1 * GIB)           /* default of a command */
#define COMMAND_PROCESSES 256

static const char *const defined_keys[] = { "title", "description", "args", "input_schema", "ask", "timeout",
        "output_bytes", "http", "slashes", "headers", "command", "stdin", "env", "cwd", "user", "read", "write",
        "network", "memory", NULL };

/* Convert a text to its declared type: YAML values are texts here. */
static json_t *value_of(json_t *json, const char *type)
{
        bool on;
        json_t *number = NULL;
        if (!json_is_string(json))
                return json_incref(json);
        if (strcmp(type, "boolean") == 0 && model_parse_bool(json_string_value(json), &on))
                return json_boolean(on);
        if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
                number = json_loads(json_string_value(json), JSON_DECODE_ANY, NULL);
        if (json_is_number(number))
                return number;
        json_decref(number);
        return json_incref(json);
}

/* Read "city: string" or "city: {type: string, description: …, optional: true}" into the JSON Schema. */
static int add_argument(struct config_reader *r, const char *name, json_t *said, json_t *properties, json_t *required)
{
        static const char *const types[] = { "string", "integer", "number", "boolean", "array", "object" };
        json_t *property = json_object(), *value, *one;
        const char *type = json_string_value(said), *key;
        bool optional = false, known = false;
        size_t i;
        if (json_is_object(said)) {
                type = json_string_value(json_object_get(said, "type"));
                if (config_bool(r, said, "optional", &optional) < 0) {
                        json_decref(property);
                        return -CSN_E_CONFIG;
                }
        }
        type = type ? type : "string";
        for (i = 0; i < ARRAY_LEN(types); i++)
                known |= strcmp(types[i], type) == 0;
        if (!known || !name[0]) {
                json_decref(property);
                return config_wrong(r, "args",
                        "%.60s has the type \"%.40s\"; string, integer, number, boolean, array and object are known",
                        name, type);
        }
        json_object_set_new(property, "type", json_string(type));
        json_object_foreach(said, key, value) {
                bool text = strcmp(key, "description") == 0 || strcmp(key, "title") == 0 ||
                        strcmp(key, "pattern") == 0 || strcmp(key, "format") == 0;
                bool count = strncmp(key, "min", 3) == 0 || strncmp(key, "max", 3) == 0;
                if (strcmp(key, "type") == 0 || strcmp(key, "optional") == 0)
                        continue;
                if (strcmp(key, "enum") == 0 && json_is_array(value)) {
                        json_t *list = json_array();
                        json_array_foreach(value, i, one) {
                                json_array_append_new(list, value_of(one, type));
                        }
                        json_object_set_new(property, key, list);
                } else {
                        json_object_set_new(property, key,
                                text ? json_incref(value) : value_of(value, count ? "number" : type));
                }
        }
        json_object_set_new(properties, name, property);
        if (!optional)
                json_array_append_new(required, json_string(name));
        return 0;
}

static int read_schema(struct config_reader *r, json_t *json, struct defined *tool)
{
        json_t *args = json_object_get(json, "args"), *given = json_object_get(json, "input_schema"), *said;
        const char *name;
        if (given) {
                tool->schema = json_is_string(given)
                        ? json_loads(json_string_value(given), JSON_REJECT_DUPLICATES, NULL)
                        : json_incref(given);
                return json_is_object(tool->schema)
                        ? 0
                        : config_wrong(r, "input_schema",
                                  "it has to be a JSON Schema, an object (in YAML as JSON text)");
        }
        if (args && !json_is_object(args))
                return config_wrong(r, "args", "it has to be names with a type each");
        json_t *properties = json_object(), *required = json_array();
        tool->schema = json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required",
                required, "additionalProperties", 0);
        json_object_foreach(args, name, said) {
                if (add_argument(r, name, said, properties, required) < 0)
                        return -CSN_E_CONFIG;
        }
        return 0;
}

static bool is_argument(const struct defined *tool, const char *name)
{
        return json_object_get(json_object_get(tool->schema, "properties"), name) != NULL;
}

static bool is_required(const struct defined *tool, const char *name)
{
        size_t i;
        json_t *one;
        json_array_foreach(json_object_get(tool->schema, "required"), i, one) {
                if (json_is_string(one) && strcmp(json_string_value(one), name) == 0)
                        return true;
        }
        return false;
}

/* The name in a text "{city}", or NULL. */
static char *place_name(struct config_reader *r, const char *text)
{
        size_t len = strlen(text);
        return len > 2 && text[0] == '{' && text[len - 1] == '}' ? arena_copy(r->arena, text + 1, len - 2) : NULL;
}

/*
 * An argument added to the query must not have the name of a fixed parameter: the server would choose between the two
 * values.
 */
static int check_query(struct config_reader *r, const char *url, const struct defined *tool)
{
        int rc = 0;
        for (const char *at = strchr(url, '?'); rc == 0 && at; at = strpbrk(at + 1, "&;")) {
                size_t len = strcspn(at + 1, "=&;");
                char *name = curl_easy_unescape(NULL, at + 1, (int)len, NULL),
                     *place = arena_text(r->arena, "{%s}", name ? name : "");
                if (name && is_argument(tool, name) && !strstr(url, place))
                        rc = config_wrong(r, "http",
                                "the query has %.60s already, so it cannot be an argument as well, unless as {%.60s}",
                                name, name);
                curl_free(name);
        }
        return rc;
}

/* Arguments are allowed only after the host of the URL. */
static int read_endpoint(struct config_reader *r, json_t *json, const char *line, struct defined *tool)
{
        static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
        struct csn_error why;
        size_t word = strcspn(line, " ");
        for (size_t i = 0; i < ARRAY_LEN(methods); i++)
                if (strlen(methods[i]) == word && strncmp(line, methods[i], word) == 0)
                        tool->method = methods[i];
        const char *url = line + word + strspn(line + word, " ");
        const char *authority = strstr(url, "://"),
                   *path = authority ? authority + 3 + strcspn(authority + 3, "/?#") : NULL;
        if (!tool->method || !path)
                return config_wrong(r, "http",
                        "it has to be METHOD URL, as \"GET https://api.example.com/weather/{city}\"; methods are GET, POST, PUT, PATCH, DELETE");
        const char *first = strchr(url, '{');
        if (first && first < path)
                return config_wrong(r, "http", "arguments can be in the path and in the query, and not in the host");
        if (strchr(path, '#'))
                return config_wrong(r, "http", "a fragment (#) is never sent; leave it out");
        for (const char *at = first; at; at = strchr(at + 1, '{')) {
                const char *end = strchr(at, '}'), *query = strchr(path, '?');
                char *name = end ? arena_copy(r->arena, at + 1, (size_t)(end - at - 1)) : NULL;
                if (!name || !is_argument(tool, name))
                        return config_wrong(r, "http", "{%.60s} is none of its arguments", name ? name : at + 1);
                if ((!query || at < query) && !is_required(tool, name))
                        return config_wrong(r, "http", "{%.60s} is in the path, so it cannot be optional", name);
        }
        if ((strcmp(tool->method, "GET") == 0 || strcmp(tool->method, "DELETE") == 0) && check_query(r, url, tool) < 0)
                return -CSN_E_CONFIG;
        tool->url = arena_text(r->arena, "%s", url);
        /* Check the URL with placeholders replaced. */
        char *plain = arena_text(r->arena, "%s", url);
        for (char *c = plain; *c; c++)
                if (*c == '{' || *c == '}')
                        *c = '_';
        if (fetch_check(plain, "it", "headers", &why) < 0)
                return config_wrong(r, "http", "%s", why.text);
        return config_pairs(r, json, "headers", ": ", &tool->headers);
}

/* Index of a new place for the argument; negative: an error is set. */
static int find_place(struct config_reader *r, struct defined *tool, const char *name, enum dash dash)
{
        if (!is_argument(tool, name))
                return config_wrong(r, "command", "{%.60s} is none of its arguments", name);
        if (tool->places_n == LAUNCH_PLACES_MAX)
                return config_wrong(r, "command", "it has more than %d places for arguments", LAUNCH_PLACES_MAX);
        tool->places[tool->places_n].argument = name;
        tool->places[tool->places_n].dash = dash;
        return (int)tool->places_n++;
}

/*
 * Is this an option without a value?  The next entry is its value and may begin with "-"; "--days=" already has a
 * value.
 */
static bool is_option(const char *text)
{
        return text && text[0] == '-' && !strchr(text, '=') && strcmp(text, "--") != 0;
}

/* Read a group such as [--days, "{days}"], left out if the argument is missing. */
static int read_group(struct config_reader *r, json_t *group, enum dash dash, struct defined *tool, struct texts *argv)
{
        size_t i;
        json_t *one;
        int place = -1;
        json_array_foreach(group, i, one) {
                char *name = json_is_string(one) ? place_name(r, json_string_value(one)) : NULL;
                if (name && place >= 0)
                        return config_wrong(r, "command", "a list within it has one {argument}");
                if (dash == DASH_NONE && !name && json_is_string(one) && strcmp(json_string_value(one), "--") == 0)
                        dash = DASH_ALL;
                enum dash here = dash == DASH_NONE && i && is_option(json_string_value(json_array_get(group, i - 1)))
                        ? DASH_FIRST
                        : dash;
                if (name && (place = find_place(r, tool, name, here)) < 0)
                        return -CSN_E_CONFIG;
        }
        if (place < 0)
                return config_wrong(r, "command",
                        "a list within it has an {argument}, which may be missing; others do not need one");
        json_array_foreach(group, i, one) {
                const char *text = json_string_value(one);
                if (!text)
                        return config_wrong(r, "command", "a list within it has texts");
                config_add_text(r, argv,
                        place_name(r, text) ? arena_text(r->arena, "%c%d", LAUNCH_PLACE, place)
                                            : arena_text(r->arena, "%c%d:%s", LAUNCH_WITH, place, text));
        }
        return 0;
}

static int read_command(struct config_reader *r, json_t *json, json_t *command, struct defined *tool)
{
        struct launch_program program = { .memory_bytes = COMMAND_MEMORY, .processes = COMMAND_PROCESSES };
        struct texts argv = { 0 };
        enum dash dash = DASH_NONE;
        size_t i;
        json_t *one;
        if (!json_array_size(command) ||
                place_name(r,
                        json_string_value(json_array_get(command, 0)) ? json_string_value(json_array_get(command, 0))
                                                                      : "{}"))
                return config_wrong(r, "command", "it has to be a list: a program, and its arguments");
        json_array_foreach(command, i, one) {
                const char *text = json_string_value(one);
                char *name = text ? place_name(r, text) : NULL;
                int place = -1;
                if (json_is_array(one) && read_group(r, one, dash, tool, &argv) < 0)
                        return -CSN_E_CONFIG;
                if (json_is_array(one))
                        continue;
                if (!text)
                        return config_wrong(r, "command", "entry %zu has to be a text or a list", i + 1);
                if (name && (place = find_place(r, tool, name, dash)) < 0)
                        return -CSN_E_CONFIG;
                if (!name && strchr(text, '{') &&
                        is_argument(tool,
                                arena_copy(r->arena, strchr(text, '{') + 1, strcspn(strchr(text, '{') + 1, "}"))))
                        return config_wrong(r, "command",
                                "entry %zu has an argument within a text; an {argument} is a whole entry, or a list [--option, \"{argument}\"]",
                                i + 1);
                if (strcmp(text, "--") == 0)
                        dash = DASH_ALL;
                config_add_text(r, &argv,
                        name ? arena_text(r->arena, "%c%d", LAUNCH_PLACE, place)
                             : arena_text(r->arena, "%c%s", LAUNCH_FIXED, text));
        }
        if (config_text(r, json, "stdin", &tool->input) < 0 || config_program(r, json, &program) < 0)
                return -CSN_E_CONFIG;
        if (tool->input && !is_argument(tool, tool->input))
                return config_wrong(r, "stdin", "\"%.60s\" is none of its arguments", tool->input);
        program.argv = (struct launch_texts){ argv.texts, argv.n };
        /* Isolate commands also without `read` and `write`, if the kernel has Landlock. */
        if (probe_landlock_abi())
                program.flags |= LAUNCH_ISOLATION;
        return config_add_program(r, &program, &tool->program);
}

static int read_defined(struct config_reader *r, json_t *json, struct defined *tool)
{
        const char *line = NULL;
        json_t *command = json_object_get(json, "command");
        tool->output_bytes = DEFINED_OUTPUT;
        if (!json_is_object(json))
                return config_wrong(r, NULL, "it has to be a tool: keys with values");
        if (config_check_keys(r, json, defined_keys) < 0 || config_text(r, json, "title", &tool->title) < 0 ||
                config_text(r, json, "description", &tool->description) < 0 ||
                config_text(r, json, "http", &line) < 0 || config_bool(r, json, "slashes", &tool->slashes) < 0 ||
                config_bool(r, json, "ask", &tool->ask) < 0 || config_ms(r, json, "timeout", &tool->timeout_ms) < 0 ||
                config_size(r, json, "output_bytes", TOOL_RESULT_MAX, &tool->output_bytes) < 0 ||
                read_schema(r, json, tool) < 0)
                return -CSN_E_CONFIG;
        if (!line == !command)
                return config_wrong(r, NULL, "it has to have either http or command");
        return line ? read_endpoint(r, json, line, tool) : read_command(r, json, command, tool);
}

int config_defined_tools(struct config_reader *r, json_t *json, struct server *server)
{
        const char *name;
        json_t *tool;
        char where[sizeof r->where];
        server->kind = SERVER_DEFINED;
        if (!json_object_size(json) || json_object_size(json) > DEFINED_MAX)
                return config_wrong(r, NULL, "it has to have 1 to %d tools", DEFINED_MAX);
        server->defined = arena_alloc(r->arena, json_object_size(json) * sizeof *server->defined);
        snprintf(where, sizeof where, "%s", r->where);
        json_object_foreach(json, name, tool) {
                struct defined *defined = &server->defined[server->defined_n++];
                snprintf(r->where, sizeof r->where, "%.150s.%.140s", where, name);
                if (!tools_is_name(name))
                        return config_wrong(r, NULL,
                                "that is no name for a tool: letters, digits, _, -, . and /, at most %d, and no _ first",
                                TOOL_NAME_MAX);
                defined->name = arena_text(r->arena, "%s", name);
                if (read_defined(r, tool, defined) < 0)
                        return -CSN_E_CONFIG;
        }
        return 0;
}
