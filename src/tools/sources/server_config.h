/* The entries of the configuration that define servers and tools; shared by the files of this folder. */
#ifndef TOOLS_SOURCES_SERVER_CONFIG_H
#define TOOLS_SOURCES_SERVER_CONFIG_H

#include "net/http_client.h"
#include "tools/sources/launcher_client.h"
#include "tools/sources/sources.h"

#define SERVER_TIMEOUT_MS_MAX 3600000ULL
#define SERVER_HEADERS_MAX 64
#define DEFINED_MAX 256                    /* tools per entry of the section tools */
#define DEFINED_OUTPUT (1 * MIB)           /* default of output_bytes */

enum server_kind { SERVER_STDIO, SERVER_HTTP, SERVER_DEFINED };
enum mcp_era { MCP_ANY, MCP_LEGACY, MCP_MODERN }; /* legacy begins with initialize; modern has _meta in each request */

struct texts {
        char **texts;
        size_t n;
};

/*
 * Which values of a place may begin with "-": after an option the first, which is the option's value; after "--" all.
 */
enum dash { DASH_NONE, DASH_FIRST, DASH_ALL };

/* A tool that the configuration defines. */
struct defined {
        const char *name, *title, *description;
        json_t *schema;
        bool ask;
        bool slashes;                      /* arguments in the URL's path may contain slashes */
        uint64_t timeout_ms, output_bytes;
        /* An endpoint: */
        const char *method, *url;          /* url NULL: a command */
        struct texts headers;
        /* A command: */
        size_t program;
        struct { const char *argument; enum dash dash; } places[LAUNCH_PLACES_MAX];
        size_t places_n;
        const char *input;                 /* name of the argument passed as standard input, or NULL */
};

/* An entry of the configuration. */
struct server {
        struct server *next;
        const char *name, *where;          /* "mcpServers.NAME" */
        enum server_kind kind;
        json_t *said;                      /* the entry, with its secrets inserted */
        struct texts allow, deny, ask;     /* fnmatch(3) patterns; an empty `allow` allows all */
        uint64_t timeout_ms;               /* limit of a call in ms; 0: the request's */
        size_t program;                    /* SERVER_STDIO: index in the launcher's table */
        const char *url;                   /* SERVER_HTTP */
        struct texts headers;              /* "Name: value" */
        enum mcp_era era;
        struct defined *defined;           /* SERVER_DEFINED */
        size_t defined_n;
};

/* The contents of a configuration. */
struct registry {
        struct arena arena;
        struct server *servers;
        size_t servers_n;
        struct launch_program programs[LAUNCH_PROGRAMS_MAX];
        size_t programs_n;
};

/*
 * Read and check all entries.  Errors: CSN_E_CONFIG naming the entry and its key, never a secret.  The caller ends with
 * registry_done() in any case.
 */
int registry_read(const struct settings *settings, struct registry *ret, struct csn_error *err);
void registry_done(struct registry *registry);

/* Whether a name matches one of these patterns. */
bool texts_match(const struct texts *patterns, const char *name);
/* Whether `deny` or `allow` hides a tool from all requests. */
bool server_hides(const struct server *server, const char *tool);

/* ---- shared by the kinds of sources (sources.c) ---- */

/* All sources of a configuration. */
struct sources {
        struct registry registry;
        const struct settings *settings;
        struct tools *tools;
        struct loop *loop;
        struct launcher launcher;
        struct watch launcher_watch;
        void (*launcher_lost)(void *owner);
        void *launcher_owner;
        struct fetcher *fetcher;           /* opened by the first user */
};

/* Create the source of an entry.  *ret is the caller's until tools_add().  Errors: CSN_E_SYSTEM. */
int defined_new(struct sources *sources, const struct server *server, struct tool_source **ret, struct csn_error *err);

#endif
