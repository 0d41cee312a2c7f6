/* One entry of the configuration, and what its source is made of; for the files of this folder. */
#ifndef TOOLS_SERVER_H
#define TOOLS_SERVER_H

#include "net/http_client.h"
#include "tools/sources/launcher_client.h"
#include "tools/sources/sources.h"

#define SERVER_TIMEOUT_MS_MAX 3600000ULL
#define SERVER_HEADERS_MAX 64
#define DEFINED_MAX 256                    /* tools of one entry of the section tools */
#define DEFINED_OUTPUT (1 * MIB)           /* default of output_bytes */

enum server_kind { SERVER_STDIO, SERVER_HTTP, SERVER_DEFINED };
enum mcp_era { MCP_ANY, MCP_LEGACY, MCP_MODERN };   /* by initialize; by _meta of each request */

struct texts {
        char **texts;
        size_t n;
};

/* Which values of a place may begin with "-": behind an option the first, which is its value; behind "--" all. */
enum dash { DASH_NONE, DASH_FIRST, DASH_ALL };

/* A tool that the configuration defines. */
struct defined {
        const char *name, *title, *description;
        json_t *schema;
        bool ask;
        bool slashes;                      /* arguments in the path of the URL may have them */
        uint64_t timeout_ms, output_bytes;
        /* An endpoint: */
        const char *method, *url;          /* url NULL: it is a command */
        struct texts headers;
        /* A command: */
        size_t program;
        struct { const char *argument; enum dash dash; } places[LAUNCH_PLACES_MAX];
        size_t places_n;
        const char *input;                 /* the argument that is its standard input, or NULL */
};

struct server {
        struct server *next;
        const char *name, *where;          /* "mcpServers.NAME" */
        enum server_kind kind;
        json_t *said;                      /* the entry with its secrets in place */
        struct texts allow, deny, ask;     /* patterns as fnmatch(3) has them; no allow is all */
        uint64_t timeout_ms;               /* of one call; 0: as the request has it */
        size_t program;                    /* SERVER_STDIO: in the launcher's table */
        const char *url;                   /* SERVER_HTTP */
        struct texts headers;              /* "Name: value" */
        enum mcp_era era;
        struct defined *defined;           /* SERVER_DEFINED */
        size_t defined_n;
};

/* What was read of one configuration. */
struct registry {
        struct arena arena;
        struct server *servers;
        size_t servers_n;
        struct launch_program programs[LAUNCH_PROGRAMS_MAX];
        size_t programs_n;
};

/* Errors: CSN_E_CONFIG naming the entry and its key, never a secret.  registry_done() in any case. */
int registry_read(const struct settings *settings, struct registry *ret, struct csn_error *err);
void registry_done(struct registry *registry);

/* Whether a name is in one of these patterns. */
bool texts_match(const struct texts *patterns, const char *name);
/* The tool is for no one. */
bool server_hides(const struct server *server, const char *tool);

/* ---- what kinds of source have in common (sources.c) ---- */

struct sources {
        struct registry registry;
        const struct settings *settings;
        struct tools *tools;
        struct loop *loop;
        struct launcher launcher;
        struct fetcher *fetcher;           /* opened with the first that needs it */
};

/* Errors: CSN_E_SYSTEM. */
int mcp_new(struct sources *sources, const struct server *server, struct tool_source **ret, struct csn_error *err);
int defined_new(struct sources *sources, const struct server *server, struct tool_source **ret, struct csn_error *err);

#endif
