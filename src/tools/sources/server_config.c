/* The sections mcpServers and tools of the configuration, and MCP servers; see server_config.h. */
#include "tools/sources/config_read.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>

#define FILE_MAX_BYTES (4 * MIB)

/* ---- MCP servers ---- */

static const char *const server_keys[] = { "type", "transport", "command", "args", "env", "cwd", "url", "headers",
        "tools", "ask", "timeout", "disabled", "protocol", "user", "read", "write", "network", "memory", "description",
        NULL };

static int read_stdio(struct config_reader *r, json_t *json, struct server *server)
{
        struct launch_program program = { .flags = LAUNCH_NETWORK };
        struct texts args = { 0 }, argv = { 0 };
        const char *command = "";
        if (config_text(r, json, "command", &command) < 0 || config_texts(r, json, "args", &args) < 0 ||
                config_program(r, json, &program) < 0)
                return -CSN_E_CONFIG;
        if (!command[0])
                return config_wrong(r, "command", "it is missing");
        config_add_text(r, &argv, arena_text(r->arena, "%c%s", LAUNCH_FIXED, command));
        for (size_t i = 0; i < args.n; i++)
                config_add_text(r, &argv, arena_text(r->arena, "%c%s", LAUNCH_FIXED, args.texts[i]));
        program.argv = (struct launch_texts){ argv.texts, argv.n };
        return config_add_program(r, &program, &server->program);
}

static int read_http(struct config_reader *r, json_t *json, struct server *server)
{
        struct csn_error why;
        if (config_text(r, json, "url", &server->url) < 0 ||
                config_pairs(r, json, "headers", ": ", &server->headers) < 0)
                return -CSN_E_CONFIG;
        if (!server->url)
                return config_wrong(r, "url", "it is missing");
        return fetch_check(server->url, "it", "headers", &why) < 0 ? config_wrong(r, "url", "%s", why.text) : 0;
}

/* `tools` is a list of allowed tools, or an object with `allow` and `deny`. */
static int read_filter(struct config_reader *r, json_t *json, struct server *server)
{
        static const char *const keys[] = { "allow", "deny", NULL };
        json_t *tools = json_object_get(json, "tools"), *ask = json_object_get(json, "ask");
        bool all = false;
        if (json_is_object(tools) &&
                (config_check_keys(r, tools, keys) < 0 || config_texts(r, tools, "allow", &server->allow) < 0 ||
                        config_texts(r, tools, "deny", &server->deny) < 0))
                return -CSN_E_CONFIG;
        if (!json_is_object(tools) && config_texts(r, json, "tools", &server->allow) < 0)
                return -CSN_E_CONFIG;
        if (json_is_boolean(ask) || (json_is_string(ask) && model_parse_bool(json_string_value(ask), &all))) {
                all |= json_is_true(ask);
                if (all)
                        config_add_text(r, &server->ask, "*");
                return 0;
        }
        return config_texts(r, json, "ask", &server->ask);
}

static int read_protocol(struct config_reader *r, json_t *json, struct server *server)
{
        const char *protocol = "auto";
        if (config_text(r, json, "protocol", &protocol) < 0)
                return -CSN_E_CONFIG;
        if (strcmp(protocol, "2026-07-28") == 0)
                server->era = MCP_MODERN;
        else if (strcmp(protocol, "2025-11-25") == 0)
                server->era = MCP_LEGACY;
        else if (strcmp(protocol, "auto") != 0)
                return config_wrong(r, "protocol", "it is \"%.40s\"; it has to be auto, 2026-07-28 or 2025-11-25",
                        protocol);
        return 0;
}

static int read_server(struct config_reader *r, json_t *json, struct server *server)
{
        const char *type = NULL;
        if (config_text(r, json, "transport", &type) < 0 || config_text(r, json, "type", &type) < 0 ||
                config_check_keys(r, json, server_keys) < 0 || read_filter(r, json, server) < 0 ||
                config_ms(r, json, "timeout", &server->timeout_ms) < 0 || read_protocol(r, json, server) < 0)
                return -CSN_E_CONFIG;
        if (!type)
                type = json_object_get(json, "url") ? "http" : "stdio";
        server->kind = strcmp(type, "stdio") == 0 ? SERVER_STDIO : SERVER_HTTP;
        if (server->kind == SERVER_STDIO)
                return read_stdio(r, json, server);
        if (strcmp(type, "http") != 0 && strcmp(type, "streamable-http") != 0 && strcmp(type, "streamableHttp") != 0)
                return config_wrong(r, "type",
                        "it is \"%.40s\"; stdio and http are known (the sse of 2024-11-05 is not)", type);
        return read_http(r, json, server);
}

/* ---- sections ---- */

static int read_entries(struct config_reader *r, json_t *entries, const char *section,
        int (*read)(struct config_reader *, json_t *, struct server *))
{
        const char *name;
        json_t *json;
        json_object_foreach(entries, name, json) {
                bool disabled = false;
                snprintf(r->where, sizeof r->where, "%s.%.200s", section, name);
                if (!json_is_object(json))
                        return config_wrong(r, NULL, "it has to be keys with values");
                if (!tools_is_server(name))
                        return config_wrong(r, NULL,
                                "that is no name for a server of tools: letters, digits, _ and -, at most %d, and a letter or digit first",
                                TOOL_NAME_MAX);
                for (const struct server *other = r->registry->servers; other; other = other->next)
                        if (strcmp(other->name, name) == 0)
                                return config_wrong(r, NULL, "the name is there twice; %s has it as well",
                                        other->where);
                if (read != config_defined_tools && (config_bool(r, json, "disabled", &disabled) < 0 || disabled)) {
                        if (!disabled)
                                return -CSN_E_CONFIG;
                        continue;
                }
                struct server *server = arena_alloc(r->arena, sizeof *server), **at = &r->registry->servers;
                server->name = arena_text(r->arena, "%s", name);
                server->where = arena_text(r->arena, "%s", r->where);
                while (*at)
                        at = &(*at)->next;
                *at = server;              /* linked also if invalid: registry_done() frees `said` */
                if (config_put_secrets(r, NULL, json, &server->said) < 0 || read(r, server->said, server) < 0)
                        return -CSN_E_CONFIG;
        }
        return 0;
}

static int read_file(struct config_reader *r, const char *path)
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
        int rc = json_is_object(servers)
                ? read_entries(r, servers, "mcpServers", read_server)
                : err_set(r->err, CSN_E_CONFIG, 0, "engine.mcp_file: %.300s has no object mcpServers", path);
        json_decref(json);
        return rc;
}

int registry_read(const struct settings *settings, struct registry *ret, struct csn_error *err)
{
        struct config_reader r = {
                .settings = settings, .registry = ret, .arena = &ret->arena, .err = err, .strict = true
        };
        static const char *const sections[] = { "mcpServers", "tools" };
        for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
                json_t *section = json_object_get(settings->tools, sections[i]);
                snprintf(r.where, sizeof r.where, "%s", sections[i]);
                if (section && !json_is_object(section))
                        return config_wrong(&r, NULL, "it has to be names of servers, with what each is below it");
                if (read_entries(&r, section, sections[i], i ? config_defined_tools : read_server) < 0)
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
