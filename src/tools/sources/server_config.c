/* Entries of mcpServers and tools, read and checked; see server_config.h. */
#include "tools/sources/server_config.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>

#include "sandbox/sandbox.h"

#define SECRET_MAX (64 * KIB)              /* of a file with one */
#define FILE_MAX_BYTES (4 * MIB)
#define COMMAND_MEMORY (1 * GIB)           /* what a command has that says nothing else */
#define COMMAND_PROCESSES 256

struct reader {
        const struct settings *settings;
        struct registry *registry;
        struct arena *arena;
        struct csn_error *err;
        bool strict;                       /* it is our own file: an unknown key is an error */
        char where[300];                   /* "mcpServers.github" */
};

static int wrong(struct reader *r, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int wrong(struct reader *r, const char *key, const char *fmt, ...)
{
        char text[400];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        err_field(r->err, r->where, "%s%s%s: %s", r->where, key ? "." : "", key ? key : "", text);
        return -(r->err->code = CSN_E_CONFIG);
}

/* ---- secrets ---- */

static int read_secret_file(struct reader *r, const char *key, const char *path, const char **ret)
{
        char *text = arena_alloc(r->arena, SECRET_MAX + 1);
        ssize_t len = path[0] == '/' ? io_read_file(AT_FDCWD, path, text, SECRET_MAX) : 0;
        if (path[0] != '/')
                return wrong(r, key, "${file:%.100s} has to name a file from the root on", path);
        if (len < 0)
                return wrong(r, key, "${file:%.100s}: %s", path, strerrordesc_np(errno));
        while (len && strchr("\r\n", text[len - 1]))
                text[--len] = 0;
        if (memchr(text, 0, (size_t)len))
                return wrong(r, key, "${file:%.100s} has a NUL byte in it", path);
        *ret = text;
        return 0;
}

/* ${env:NAME} and ${file:/path} in a text; anything else stays as it is. */
static int put_secrets(struct reader *r, const char *key, const char *text, char **ret)
{
        struct buf buf;
        int rc = 0;
        bool fits = true;
        buf_init(&buf, 2 * SECRET_MAX);
        for (const char *at = text; rc == 0 && fits && *at;) {
                bool env = strncmp(at, "${env:", 6) == 0, file = strncmp(at, "${file:", 7) == 0;
                const char *end = env || file ? strchr(at, '}') : NULL;
                if (!end) {
                        fits = buf_add(&buf, at++, 1);
                        continue;
                }
                const char *from = at + (env ? 6 : 7), *value = "";
                const char *name = arena_copy(r->arena, from, (size_t)(end - from)), *set = env ? getenv(name) : NULL;
                if (env && !set)
                        rc = wrong(r, key, "the environment has no %.100s, which ${env:%.100s} asks for", name, name);
                else if (file)
                        rc = read_secret_file(r, key, name, &value);
                else
                        value = set;
                fits = rc < 0 || buf_add(&buf, value, strlen(value));
                at = end + 1;
        }
        if (!fits)
                rc = wrong(r, key, "with what ${env:} and ${file:} stand for it is longer than %llu bytes", 2 * SECRET_MAX);
        *ret = arena_copy(r->arena, buf.len ? buf.bytes : "", buf.len);
        buf_done(&buf);
        return rc;
}

/* All texts of an entry; what is left is the entry as it is meant. */
static int put_all_secrets(struct reader *r, const char *key, json_t *json, json_t **ret)
{
        char *text;
        int rc = 0;
        if (json_is_string(json)) {
                rc = put_secrets(r, key, json_string_value(json), &text);
                *ret = rc == 0 ? json_string(text) : NULL;
                return rc == 0 && !*ret ? wrong(r, key, "it is not UTF-8") : rc;
        }
        json_t *copy = json_is_array(json) ? json_array() : json_is_object(json) ? json_object() : json_incref(json), *value, *one;
        const char *name;
        size_t i;
        if (json_is_array(json)) {
                json_array_foreach(json, i, value) {
                        if (rc == 0 && (rc = put_all_secrets(r, key, value, &one)) == 0)
                                json_array_append_new(copy, one);
                }
        } else if (json_is_object(json)) {
                json_object_foreach(json, name, value) {
                        if (rc == 0 && (rc = put_all_secrets(r, key ? key : name, value, &one)) == 0)
                                json_object_set_new(copy, name, one);
                }
        }
        *ret = copy;
        if (rc < 0) {
                json_decref(copy);
                *ret = NULL;
        }
        return rc;
}

/* ---- values ---- */

static int get_text(struct reader *r, json_t *json, const char *key, const char **ret)
{
        json_t *value = json_object_get(json, key);
        if (!value)
                return 0;
        const char *text = json_string_value(value);
        if (!text || strlen(text) != json_string_length(value))
                return wrong(r, key, "it has to be a text");
        *ret = arena_text(r->arena, "%s", text);
        return 0;
}

static int get_bool(struct reader *r, json_t *json, const char *key, bool *ret)
{
        json_t *value = json_object_get(json, key);
        if (!value)
                return 0;
        if (json_is_boolean(value))
                *ret = json_is_true(value);
        else if (!json_is_string(value) || !model_parse_bool(json_string_value(value), ret))
                return wrong(r, key, "it has to be true or false");
        return 0;
}

static int get_ms(struct reader *r, json_t *json, const char *key, uint64_t *ret)
{
        json_t *value = json_object_get(json, key);
        uint64_t ms = 0;
        if (!value)
                return 0;
        bool good = json_is_integer(value) ? json_integer_value(value) > 0 && json_integer_value(value) <= (json_int_t)(SERVER_TIMEOUT_MS_MAX / 1000)
                                           : json_is_string(value) && duration_parse(json_string_value(value), &ms);
        if (json_is_integer(value))
                ms = (uint64_t)json_integer_value(value) * 1000;
        if (!good || !ms || ms > SERVER_TIMEOUT_MS_MAX)
                return wrong(r, key, "it has to be a time of 1 ms to 1 h, as 30s; a number alone is seconds");
        *ret = ms;
        return 0;
}

static int get_size(struct reader *r, json_t *json, const char *key, uint64_t max, uint64_t *ret)
{
        json_t *value = json_object_get(json, key);
        uint64_t bytes = 0;
        char most[40];
        if (!value)
                return 0;
        bool good = json_is_integer(value) ? json_integer_value(value) > 0 : json_is_string(value) && size_parse(json_string_value(value), &bytes);
        if (json_is_integer(value))
                bytes = (uint64_t)json_integer_value(value);
        size_print(max, most, sizeof most);
        if (!good || !bytes || bytes > max)
                return wrong(r, key, "it has to be a size up to %s, as 64KiB", most);
        *ret = bytes;
        return 0;
}

static void add_text(struct reader *r, struct texts *list, const char *text)
{
        char **more = arena_alloc(r->arena, (list->n + 2) * sizeof *more);
        if (list->n)
                memcpy(more, list->texts, list->n * sizeof *more);
        more[list->n++] = arena_text(r->arena, "%s", text);
        list->texts = more;
}

/* A key without a value, in YAML. */
static bool is_nothing(const json_t *value)
{
        return json_is_object(value) && !json_object_size(value);
}

/* A list of texts, or one. */
static int get_texts(struct reader *r, json_t *json, const char *key, struct texts *ret)
{
        json_t *value = json_object_get(json, key), *one;
        size_t i, n = json_array_size(value);
        if (n > LAUNCH_TEXTS_MAX)
                return wrong(r, key, "it has more than %d entries", LAUNCH_TEXTS_MAX);
        if (json_is_string(value))
                add_text(r, ret, json_string_value(value));
        else if (value && !json_is_array(value) && !is_nothing(value))
                return wrong(r, key, "it has to be a list of texts");
        json_array_foreach(value, i, one) {
                if (!json_is_string(one))
                        return wrong(r, key, "entry %zu has to be a text", i + 1);
                add_text(r, ret, json_string_value(one));
        }
        return 0;
}

/* NAME: VALUE pairs, put together with what is between them. */
static int get_pairs(struct reader *r, json_t *json, const char *key, const char *between, struct texts *ret)
{
        static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        json_t *object = json_object_get(json, key), *value;
        const char *name;
        char number[32];
        if (object && !json_is_object(object))
                return wrong(r, key, "it has to be names with a value each");
        if (json_object_size(object) > SERVER_HEADERS_MAX * 4)
                return wrong(r, key, "it has more than %d entries", SERVER_HEADERS_MAX * 4);
        json_object_foreach(object, name, value) {
                const char *text = json_string_value(value);
                if (json_is_integer(value)) {
                        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                        text = number;
                }
                if (!text || !name[0] || name[strspn(name, token)])
                        return wrong(r, key, "\"%.60s\" is no name, or its value is no text", name);
                for (const char *c = text; *c; c++)
                        if ((unsigned char)*c < ' ' && *c != '\t')
                                return wrong(r, key, "the value of %.60s has a control character in it", name);
                add_text(r, ret, arena_text(r->arena, "%s%s%s", name, between, text));
        }
        return 0;
}

static char *words_of(struct arena *arena, const char *const *words)
{
        char *text = arena_text(arena, "%s", words[0]);
        for (size_t i = 1; words[i]; i++)
                text = arena_text(arena, "%s, %s", text, words[i]);
        return text;
}

/* Nobody notices a misspelt key otherwise. */
static int check_keys(struct reader *r, json_t *json, const char *const *known)
{
        const char *name;
        json_t *value;
        json_object_foreach(json, name, value) {
                bool found = false;
                const char *near = NULL;
                for (const char *const *at = known; *at; at++) {
                        found |= strcmp(*at, name) == 0;
                        if (model_alike(*at, name))
                                near = *at;
                }
                if (!found && r->strict && near)
                        return wrong(r, name, "there is no such key; did you mean %s?", near);
                if (!found && r->strict)
                        return wrong(r, name, "there is no such key; known are %s", words_of(r->arena, known));
                if (!found)
                        log_text(LOG_INFO, "%s.%.100s is not known here, and left alone", r->where, name);
        }
        return 0;
}

/* ---- programs ---- */

/* As whom a program runs: never as the daemon, whose files are secret. */
static int get_user(struct reader *r, json_t *json, struct launch_program *program)
{
        const struct engine_settings *engine = &r->settings->engine;
        const char *name = engine->tools_user;
        char *end, room[16 * KIB];
        struct passwd user, *found = NULL;
        if (get_text(r, json, "user", &name) < 0)
                return -CSN_E_CONFIG;
        program->uid = geteuid();
        program->gid = getegid();
        if (!name[0]) {
                /* A user for each, so that none can look into another's environment. */
                uint64_t own = engine->uid_first + engine->uid_count + 1 + r->registry->programs_n;
                if (geteuid() == 0 && own >= UINT32_MAX)
                        return wrong(r, "user", "no number is left for it after the last of sandboxes; name a user, or lower engine.uid_first");
                if (geteuid() == 0)
                        program->uid = program->gid = (uint32_t)own;
                return 0;
        }
        unsigned long number = strtoul(name, &end, 10);
        bool is_number = name[0] >= '0' && name[0] <= '9' && !*end && number < UINT32_MAX;
        if (is_number) {
                program->uid = program->gid = (uint32_t)number;
                if (getpwuid_r(program->uid, &user, room, sizeof room, &found) == 0 && found)
                        program->gid = found->pw_gid;
        } else if (getpwnam_r(name, &user, room, sizeof room, &found) == 0 && found) {
                program->uid = found->pw_uid;
                program->gid = found->pw_gid;
        } else {
                return wrong(r, "user", "there is no user \"%.60s\" here", name);
        }
        if (geteuid() != 0 && program->uid != geteuid())
                return wrong(r, "user", "only root can start a program as another user");
        return 0;
}

static int get_folders(struct reader *r, json_t *json, const char *key, struct launch_texts *ret)
{
        struct texts list = { 0 };
        if (get_texts(r, json, key, &list) < 0)
                return -CSN_E_CONFIG;
        for (size_t i = 0; i < list.n; i++)
                if (list.texts[i][0] != '/' || access(list.texts[i], F_OK) < 0)
                        return wrong(r, key, "%.200s has to be a file or a folder that is there, from the root on", list.texts[i]);
        *ret = (struct launch_texts){ list.texts, list.n };
        return 0;
}

/* Nothing of ours, but what every program expects. */
static int get_environment(struct reader *r, json_t *json, struct launch_program *program)
{
        struct texts given = { 0 }, env = { 0 };
        const char *const usual[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
                                      arena_text(r->arena, "HOME=%s", program->folder) };
        if (get_pairs(r, json, "env", "=", &given) < 0)
                return -CSN_E_CONFIG;
        for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
                bool set = false;
                for (size_t k = 0; k < given.n; k++)
                        set |= strncmp(usual[i], given.texts[k], strcspn(usual[i], "=") + 1) == 0;
                if (!set)
                        add_text(r, &env, usual[i]);
        }
        for (size_t k = 0; k < given.n; k++)
                add_text(r, &env, given.texts[k]);
        program->env = (struct launch_texts){ env.texts, env.n };
        return 0;
}

static int get_program(struct reader *r, json_t *json, struct launch_program *program)
{
        const char *folder = "/";
        bool network = program->flags & LAUNCH_NETWORK;
        if (get_text(r, json, "cwd", &folder) < 0 || get_user(r, json, program) < 0 || get_folders(r, json, "read", &program->read) < 0 ||
            get_folders(r, json, "write", &program->write) < 0 || get_bool(r, json, "network", &network) < 0 ||
            get_size(r, json, "memory", 1024 * GIB, &program->memory_bytes) < 0)
                return -CSN_E_CONFIG;
        if (folder[0] != '/')
                return wrong(r, "cwd", "it has to be a folder from the root on");
        program->folder = folder;
        program->flags = network ? LAUNCH_NETWORK : 0;
        if (json_object_get(json, "read") || json_object_get(json, "write"))
                program->flags |= LAUNCH_ISOLATION;
        return get_environment(r, json, program);
}

static int add_program(struct reader *r, const struct launch_program *program, size_t *ret)
{
        struct registry *registry = r->registry;
        if (registry->programs_n == LAUNCH_PROGRAMS_MAX)
                return wrong(r, NULL, "there are more than %d programs", LAUNCH_PROGRAMS_MAX);
        *ret = registry->programs_n;
        registry->programs[registry->programs_n++] = *program;
        return 0;
}

/* ---- MCP servers ---- */

static const char *const server_keys[] = { "type", "transport", "command", "args", "env", "cwd", "url", "headers", "tools", "ask", "timeout", "disabled",
                                           "protocol", "user", "read", "write", "network", "memory", "description", NULL };

static int read_stdio(struct reader *r, json_t *json, struct server *server)
{
        struct launch_program program = { .flags = LAUNCH_NETWORK };
        struct texts args = { 0 }, argv = { 0 };
        const char *command = "";
        if (get_text(r, json, "command", &command) < 0 || get_texts(r, json, "args", &args) < 0 || get_program(r, json, &program) < 0)
                return -CSN_E_CONFIG;
        if (!command[0])
                return wrong(r, "command", "it is missing");
        add_text(r, &argv, arena_text(r->arena, "%c%s", LAUNCH_FIXED, command));
        for (size_t i = 0; i < args.n; i++)
                add_text(r, &argv, arena_text(r->arena, "%c%s", LAUNCH_FIXED, args.texts[i]));
        program.argv = (struct launch_texts){ argv.texts, argv.n };
        return add_program(r, &program, &server->program);
}

static int read_http(struct reader *r, json_t *json, struct server *server)
{
        struct csn_error why;
        if (get_text(r, json, "url", &server->url) < 0 || get_pairs(r, json, "headers", ": ", &server->headers) < 0)
                return -CSN_E_CONFIG;
        if (!server->url)
                return wrong(r, "url", "it is missing");
        return fetch_check(server->url, "it", "headers", &why) < 0 ? wrong(r, "url", "%s", why.text) : 0;
}

/* A list is what is allowed; an object may say what is not. */
static int read_filter(struct reader *r, json_t *json, struct server *server)
{
        static const char *const keys[] = { "allow", "deny", NULL };
        json_t *tools = json_object_get(json, "tools"), *ask = json_object_get(json, "ask");
        bool all = false;
        if (json_is_object(tools) && (check_keys(r, tools, keys) < 0 || get_texts(r, tools, "allow", &server->allow) < 0 ||
                                      get_texts(r, tools, "deny", &server->deny) < 0))
                return -CSN_E_CONFIG;
        if (!json_is_object(tools) && get_texts(r, json, "tools", &server->allow) < 0)
                return -CSN_E_CONFIG;
        if (json_is_boolean(ask) || (json_is_string(ask) && model_parse_bool(json_string_value(ask), &all))) {
                all |= json_is_true(ask);
                if (all)
                        add_text(r, &server->ask, "*");
                return 0;
        }
        return get_texts(r, json, "ask", &server->ask);
}

static int read_protocol(struct reader *r, json_t *json, struct server *server)
{
        const char *protocol = "auto";
        if (get_text(r, json, "protocol", &protocol) < 0)
                return -CSN_E_CONFIG;
        if (strcmp(protocol, "2026-07-28") == 0)
                server->era = MCP_MODERN;
        else if (strcmp(protocol, "2025-11-25") == 0)
                server->era = MCP_LEGACY;
        else if (strcmp(protocol, "auto") != 0)
                return wrong(r, "protocol", "it is \"%.40s\"; it has to be auto, 2026-07-28 or 2025-11-25", protocol);
        return 0;
}

static int read_server(struct reader *r, json_t *json, struct server *server)
{
        const char *type = NULL;
        if (get_text(r, json, "transport", &type) < 0 || get_text(r, json, "type", &type) < 0 || check_keys(r, json, server_keys) < 0 ||
            read_filter(r, json, server) < 0 || get_ms(r, json, "timeout", &server->timeout_ms) < 0 || read_protocol(r, json, server) < 0)
                return -CSN_E_CONFIG;
        if (!type)
                type = json_object_get(json, "url") ? "http" : "stdio";
        server->kind = strcmp(type, "stdio") == 0 ? SERVER_STDIO : SERVER_HTTP;
        if (server->kind == SERVER_STDIO)
                return read_stdio(r, json, server);
        if (strcmp(type, "http") != 0 && strcmp(type, "streamable-http") != 0 && strcmp(type, "streamableHttp") != 0)
                return wrong(r, "type", "it is \"%.40s\"; stdio and http are known (the sse of 2024-11-05 is not)", type);
        return read_http(r, json, server);
}

/* ---- tools that are defined here ---- */

static const char *const defined_keys[] = { "title", "description", "args", "input_schema", "ask", "timeout", "output_bytes", "http", "slashes", "headers", "command", "stdin",
                                            "env", "cwd", "user", "read", "write", "network", "memory", NULL };

/* "3" is 3 where the type says so: YAML's values are texts here. */
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

/* "city: string", or "city: {type: string, description: …, optional: true}"; of that a JSON Schema. */
static int add_argument(struct reader *r, const char *name, json_t *said, json_t *properties, json_t *required)
{
        static const char *const types[] = { "string", "integer", "number", "boolean", "array", "object" };
        json_t *property = json_object(), *value, *one;
        const char *type = json_string_value(said), *key;
        bool optional = false, known = false;
        size_t i;
        if (json_is_object(said)) {
                type = json_string_value(json_object_get(said, "type"));
                if (get_bool(r, said, "optional", &optional) < 0) {
                        json_decref(property);
                        return -CSN_E_CONFIG;
                }
        }
        type = type ? type : "string";
        for (i = 0; i < ARRAY_LEN(types); i++)
                known |= strcmp(types[i], type) == 0;
        if (!known || !name[0]) {
                json_decref(property);
                return wrong(r, "args", "%.60s has the type \"%.40s\"; string, integer, number, boolean, array and object are known", name, type);
        }
        json_object_set_new(property, "type", json_string(type));
        json_object_foreach(said, key, value) {
                bool text = strcmp(key, "description") == 0 || strcmp(key, "title") == 0 || strcmp(key, "pattern") == 0 || strcmp(key, "format") == 0;
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
                        json_object_set_new(property, key, text ? json_incref(value) : value_of(value, count ? "number" : type));
                }
        }
        json_object_set_new(properties, name, property);
        if (!optional)
                json_array_append_new(required, json_string(name));
        return 0;
}

static int read_schema(struct reader *r, json_t *json, struct defined *tool)
{
        json_t *args = json_object_get(json, "args"), *given = json_object_get(json, "input_schema"), *said;
        const char *name;
        if (given) {
                tool->schema = json_is_string(given) ? json_loads(json_string_value(given), JSON_REJECT_DUPLICATES, NULL) : json_incref(given);
                return json_is_object(tool->schema) ? 0 : wrong(r, "input_schema", "it has to be a JSON Schema, an object (in YAML as JSON text)");
        }
        if (args && !json_is_object(args))
                return wrong(r, "args", "it has to be names with a type each");
        json_t *properties = json_object(), *required = json_array();
        tool->schema = json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required, "additionalProperties", 0);
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

/* "{city}" as the whole text: its name; else NULL. */
static char *place_name(struct reader *r, const char *text)
{
        size_t len = strlen(text);
        return len > 2 && text[0] == '{' && text[len - 1] == '}' ? arena_copy(r->arena, text + 1, len - 2) : NULL;
}

/*
 * An argument that goes into the query by its name must not have that of a parameter which stands there: which of the two counts is up to the
 * server.
 */
static int check_query(struct reader *r, const char *url, const struct defined *tool)
{
        int rc = 0;
        for (const char *at = strchr(url, '?'); rc == 0 && at; at = strpbrk(at + 1, "&;")) {
                size_t len = strcspn(at + 1, "=&;");
                char *name = curl_easy_unescape(NULL, at + 1, (int)len, NULL), *place = arena_text(r->arena, "{%s}", name ? name : "");
                if (name && is_argument(tool, name) && !strstr(url, place))
                        rc = wrong(r, "http", "the query has %.60s already, so it cannot be an argument as well, unless as {%.60s}", name, name);
                curl_free(name);
        }
        return rc;
}

/* Where in the URL its host ends, and with it what arguments must not touch. */
static int read_endpoint(struct reader *r, json_t *json, const char *line, struct defined *tool)
{
        static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
        struct csn_error why;
        size_t word = strcspn(line, " ");
        for (size_t i = 0; i < ARRAY_LEN(methods); i++)
                if (strlen(methods[i]) == word && strncmp(line, methods[i], word) == 0)
                        tool->method = methods[i];
        const char *url = line + word + strspn(line + word, " ");
        const char *authority = strstr(url, "://"), *path = authority ? authority + 3 + strcspn(authority + 3, "/?#") : NULL;
        if (!tool->method || !path)
                return wrong(r, "http", "it has to be METHOD URL, as \"GET https://api.example.com/weather/{city}\"; methods are GET, POST, PUT, PATCH, DELETE");
        const char *first = strchr(url, '{');
        if (first && first < path)
                return wrong(r, "http", "arguments can be in the path and in the query, and not in the host");
        if (strchr(path, '#'))
                return wrong(r, "http", "a fragment (#) is never sent; leave it out");
        for (const char *at = first; at; at = strchr(at + 1, '{')) {
                const char *end = strchr(at, '}'), *query = strchr(path, '?');
                char *name = end ? arena_copy(r->arena, at + 1, (size_t)(end - at - 1)) : NULL;
                if (!name || !is_argument(tool, name))
                        return wrong(r, "http", "{%.60s} is none of its arguments", name ? name : at + 1);
                if ((!query || at < query) && !is_required(tool, name))
                        return wrong(r, "http", "{%.60s} is in the path, so it cannot be optional", name);
        }
        if ((strcmp(tool->method, "GET") == 0 || strcmp(tool->method, "DELETE") == 0) && check_query(r, url, tool) < 0)
                return -CSN_E_CONFIG;
        tool->url = arena_text(r->arena, "%s", url);
        /* As if the arguments were there. */
        char *plain = arena_text(r->arena, "%s", url);
        for (char *c = plain; *c; c++)
                if (*c == '{' || *c == '}')
                        *c = '_';
        if (fetch_check(plain, "it", "headers", &why) < 0)
                return wrong(r, "http", "%s", why.text);
        return get_pairs(r, json, "headers", ": ", &tool->headers);
}

/* The place of an argument; -1: it is none. */
static int find_place(struct reader *r, struct defined *tool, const char *name, enum dash dash)
{
        if (!is_argument(tool, name))
                return wrong(r, "command", "{%.60s} is none of its arguments", name);
        if (tool->places_n == LAUNCH_PLACES_MAX)
                return wrong(r, "command", "it has more than %d places for arguments", LAUNCH_PLACES_MAX);
        tool->places[tool->places_n].argument = name;
        tool->places[tool->places_n].dash = dash;
        return (int)tool->places_n++;
}

/* What stands before it is an option that waits for its value, which may begin with anything; "--days=" has one already. */
static bool is_option(const char *text)
{
        return text && text[0] == '-' && !strchr(text, '=') && strcmp(text, "--") != 0;
}

/* [--days, "{days}"]: left out where there is no such argument. */
static int read_group(struct reader *r, json_t *group, enum dash dash, struct defined *tool, struct texts *argv)
{
        size_t i;
        json_t *one;
        int place = -1;
        json_array_foreach(group, i, one) {
                char *name = json_is_string(one) ? place_name(r, json_string_value(one)) : NULL;
                if (name && place >= 0)
                        return wrong(r, "command", "a list within it has one {argument}");
                if (dash == DASH_NONE && !name && json_is_string(one) && strcmp(json_string_value(one), "--") == 0)
                        dash = DASH_ALL;
                enum dash here = dash == DASH_NONE && i && is_option(json_string_value(json_array_get(group, i - 1))) ? DASH_FIRST : dash;
                if (name && (place = find_place(r, tool, name, here)) < 0)
                        return -CSN_E_CONFIG;
        }
        if (place < 0)
                return wrong(r, "command", "a list within it has an {argument}, which may be missing; others do not need one");
        json_array_foreach(group, i, one) {
                const char *text = json_string_value(one);
                if (!text)
                        return wrong(r, "command", "a list within it has texts");
                add_text(r, argv, place_name(r, text) ? arena_text(r->arena, "%c%d", LAUNCH_PLACE, place) : arena_text(r->arena, "%c%d:%s", LAUNCH_WITH, place, text));
        }
        return 0;
}

static int read_command(struct reader *r, json_t *json, json_t *command, struct defined *tool)
{
        struct launch_program program = { .memory_bytes = COMMAND_MEMORY, .processes = COMMAND_PROCESSES };
        struct texts argv = { 0 };
        enum dash dash = DASH_NONE;
        size_t i;
        json_t *one;
        if (!json_array_size(command) || place_name(r, json_string_value(json_array_get(command, 0)) ? json_string_value(json_array_get(command, 0)) : "{}"))
                return wrong(r, "command", "it has to be a list: a program, and its arguments");
        json_array_foreach(command, i, one) {
                const char *text = json_string_value(one);
                char *name = text ? place_name(r, text) : NULL;
                int place = -1;
                if (json_is_array(one) && read_group(r, one, dash, tool, &argv) < 0)
                        return -CSN_E_CONFIG;
                if (json_is_array(one))
                        continue;
                if (!text)
                        return wrong(r, "command", "entry %zu has to be a text or a list", i + 1);
                if (name && (place = find_place(r, tool, name, dash)) < 0)
                        return -CSN_E_CONFIG;
                if (!name && strchr(text, '{') && is_argument(tool, arena_copy(r->arena, strchr(text, '{') + 1, strcspn(strchr(text, '{') + 1, "}"))))
                        return wrong(r, "command", "entry %zu has an argument within a text; an {argument} is a whole entry, or a list [--option, \"{argument}\"]", i + 1);
                if (strcmp(text, "--") == 0)
                        dash = DASH_ALL;
                add_text(r, &argv, name ? arena_text(r->arena, "%c%d", LAUNCH_PLACE, place) : arena_text(r->arena, "%c%s", LAUNCH_FIXED, text));
        }
        if (get_text(r, json, "stdin", &tool->input) < 0 || get_program(r, json, &program) < 0)
                return -CSN_E_CONFIG;
        if (tool->input && !is_argument(tool, tool->input))
                return wrong(r, "stdin", "\"%.60s\" is none of its arguments", tool->input);
        program.argv = (struct launch_texts){ argv.texts, argv.n };
        /* A second wall around what is not asked for either, where the kernel has it. */
        if (probe_landlock_abi())
                program.flags |= LAUNCH_ISOLATION;
        return add_program(r, &program, &tool->program);
}

static int read_defined(struct reader *r, json_t *json, struct defined *tool)
{
        const char *line = NULL;
        json_t *command = json_object_get(json, "command");
        tool->output_bytes = DEFINED_OUTPUT;
        if (!json_is_object(json))
                return wrong(r, NULL, "it has to be a tool: keys with values");
        if (check_keys(r, json, defined_keys) < 0 || get_text(r, json, "title", &tool->title) < 0 || get_text(r, json, "description", &tool->description) < 0 ||
            get_text(r, json, "http", &line) < 0 || get_bool(r, json, "slashes", &tool->slashes) < 0 || get_bool(r, json, "ask", &tool->ask) < 0 || get_ms(r, json, "timeout", &tool->timeout_ms) < 0 ||
            get_size(r, json, "output_bytes", TOOL_RESULT_MAX, &tool->output_bytes) < 0 || read_schema(r, json, tool) < 0)
                return -CSN_E_CONFIG;
        if (!line == !command)
                return wrong(r, NULL, "it has to have either http or command");
        return line ? read_endpoint(r, json, line, tool) : read_command(r, json, command, tool);
}

static int read_group_of_tools(struct reader *r, json_t *json, struct server *server)
{
        const char *name;
        json_t *tool;
        char where[sizeof r->where];
        server->kind = SERVER_DEFINED;
        if (!json_object_size(json) || json_object_size(json) > DEFINED_MAX)
                return wrong(r, NULL, "it has to have 1 to %d tools", DEFINED_MAX);
        server->defined = arena_alloc(r->arena, json_object_size(json) * sizeof *server->defined);
        snprintf(where, sizeof where, "%s", r->where);
        json_object_foreach(json, name, tool) {
                struct defined *defined = &server->defined[server->defined_n++];
                snprintf(r->where, sizeof r->where, "%.150s.%.140s", where, name);
                if (!tools_is_name(name))
                        return wrong(r, NULL, "that is no name for a tool: letters, digits, _, -, . and /, at most %d, and no _ first", TOOL_NAME_MAX);
                defined->name = arena_text(r->arena, "%s", name);
                if (read_defined(r, tool, defined) < 0)
                        return -CSN_E_CONFIG;
        }
        return 0;
}

/* ---- all of them ---- */

static int read_entries(struct reader *r, json_t *entries, const char *section, int (*read)(struct reader *, json_t *, struct server *))
{
        const char *name;
        json_t *json;
        json_object_foreach(entries, name, json) {
                bool disabled = false;
                snprintf(r->where, sizeof r->where, "%s.%.200s", section, name);
                if (!json_is_object(json))
                        return wrong(r, NULL, "it has to be keys with values");
                if (!tools_is_server(name))
                        return wrong(r, NULL, "that is no name for a server of tools: letters, digits, _ and -, at most %d, and a letter or digit first", TOOL_NAME_MAX);
                for (const struct server *other = r->registry->servers; other; other = other->next)
                        if (strcmp(other->name, name) == 0)
                                return wrong(r, NULL, "the name is there twice; %s has it as well", other->where);
                if (read != read_group_of_tools && (get_bool(r, json, "disabled", &disabled) < 0 || disabled)) {
                        if (!disabled)
                                return -CSN_E_CONFIG;
                        continue;
                }
                struct server *server = arena_alloc(r->arena, sizeof *server), **at = &r->registry->servers;
                server->name = arena_text(r->arena, "%s", name);
                server->where = arena_text(r->arena, "%s", r->where);
                while (*at)
                        at = &(*at)->next;
                *at = server;              /* even one that is wrong: it is released with the others */
                if (put_all_secrets(r, NULL, json, &server->said) < 0 || read(r, server->said, server) < 0)
                        return -CSN_E_CONFIG;
        }
        return 0;
}

static int read_file(struct reader *r, const char *path)
{
        json_error_t where;
        char *text = mem_alloc(FILE_MAX_BYTES + 1);
        ssize_t len = io_read_file(AT_FDCWD, path, text, FILE_MAX_BYTES);
        int sys = errno;
        json_t *json = len < 0 ? NULL : json_loadb(text, (size_t)len, JSON_REJECT_DUPLICATES, &where);
        free(text);
        if (len < 0)
                return err_set(r->err, CSN_E_CONFIG, sys, "engine.mcp_file: read %.300s", path);
        if (!json)
                return err_set(r->err, CSN_E_CONFIG, 0, "engine.mcp_file: %.300s:%d: %s", path, where.line, where.text);
        json_t *servers = json_object_get(json, "mcpServers");
        if (!servers)
                servers = json_object_get(json, "servers");
        int rc = json_is_object(servers) ? read_entries(r, servers, "mcpServers", read_server)
                                         : err_set(r->err, CSN_E_CONFIG, 0, "engine.mcp_file: %.300s has no object mcpServers", path);
        json_decref(json);
        return rc;
}

int registry_read(const struct settings *settings, struct registry *ret, struct csn_error *err)
{
        struct reader r = { .settings = settings, .registry = ret, .arena = &ret->arena, .err = err, .strict = true };
        static const char *const sections[] = { "mcpServers", "tools" };
        for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
                json_t *section = json_object_get(settings->tools, sections[i]);
                snprintf(r.where, sizeof r.where, "%s", sections[i]);
                if (section && !json_is_object(section))
                        return wrong(&r, NULL, "it has to be names of servers, with what each is below it");
                if (read_entries(&r, section, sections[i], i ? read_group_of_tools : read_server) < 0)
                        return -err->code;
        }
        r.strict = false;
        return settings->engine.mcp_file[0] ? read_file(&r, settings->engine.mcp_file) : 0;
}

void registry_done(struct registry *registry)
{
        for (struct server *server = registry->servers; server; server = server->next) {
                json_decref(server->said);
                for (size_t i = 0; i < server->defined_n; i++)
                        json_decref(server->defined[i].schema);
        }
        arena_done(&registry->arena);
        *registry = (struct registry){ 0 };
}

bool texts_match(const struct texts *patterns, const char *name)
{
        for (size_t i = 0; i < patterns->n; i++)
                if (fnmatch(patterns->texts[i], name, 0) == 0)
                        return true;
        return false;
}

bool server_hides(const struct server *server, const char *tool)
{
        return (server->allow.n && !texts_match(&server->allow, tool)) || texts_match(&server->deny, tool);
}
