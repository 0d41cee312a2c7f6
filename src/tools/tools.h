/*
 * tools: the functions outside a sandbox that code inside may call.
 *
 *   registry      all sources of tools, by the name of their server
 *   grant         the tools that a request may use, and their names in code
 *   json_schema   check of arguments against a JSON Schema                       (pure)
 *   result        a source's answer as the one JSON value that code receives     (pure)
 *   client_tools  tools that the client of a run serves
 *   replay        recorded calls of an earlier run instead of real calls
 *   broker        one for each run or persistent sandbox: checks, counts, forwards, answers
 *   sources/      the kinds of sources that the configuration names
 *
 * Inside runs a stub with a socket.  The stub's requests reach the broker through the tool socket
 * (engine/tool_io/tool_socket.h), and the broker calls a source: an MCP server, an HTTP endpoint, a command, or the
 * run's own client.  A source's answers are as untrusted as the program.  All of this runs in the engine's loop;
 * nothing blocks.
 */
#ifndef TOOLS_TOOLS_H
#define TOOLS_TOOLS_H

#include "engine/engine.h"

#include <jansson.h>

struct tools;
struct tool_source;

#define TOOLS_CLIENT "client"              /* the server name of tools that the client of a run serves */
#define TOOL_NAME_MAX 128                  /* bytes of a tool's name and of a server's name */
#define TOOL_TEXT_MAX 8192                 /* bytes of a description; longer ones are cut */
#define TOOL_SCHEMA_MAX (256 * KIB)        /* bytes of a schema as text; a tool with a larger schema is left out */
#define TOOLS_MAX 10000                    /* per source */
/* values and names in arguments or in a result: each takes far more memory than its bytes */
#define TOOL_PARTS_MAX 200000
#define TOOL_EVENT_MAX (1 * MIB) /* bytes of arguments of an approval or of a client's tool; a larger call fails */
#define TOOL_RESULT_MAX (16 * MIB)         /* bytes of a result as text, whatever limit a request sets */

/*
 * One tool, as its source describes it.  The source owns all of it and keeps it unchanged until tools_changed()
 * returns.  Texts are untrusted UTF-8.
 */
struct tool {
        const char *name;                  /* the tool's name at its server */
        const char *title;                 /* or NULL */
        const char *description;           /* or NULL */
        json_t *input_schema;              /* an object; NULL: any arguments */
        json_t *output_schema;             /* or NULL */
        json_t *annotations;               /* or NULL */
        bool ask;                          /* each call needs an approval */
        uint64_t timeout_ms;               /* limit of one call in ms; 0: the request's */
};

/*
 * Result of a call.  A failure inside the tool (is_error) has content; a call that could not be made or answered has an
 * error text instead.
 */
struct tool_result {
        json_t *content;        /* MCP content blocks, {"type":"text","text":…}, {"type":"image",…}; or NULL */
        json_t *structured;     /* or NULL */
        bool is_error;
        const char *error; /* English text for people and models ("the server has ended"); NULL: there is a result */
};

/* A pending call.  The broker owns it, embedded in a struct of its own. */
struct tool_call {
        struct tool_source *source;        /* NULL: the call is over */
        const char *name;                  /* the tool's name at its server */
        json_t *arguments;                 /* an object; the broker's reference */
        uint64_t deadline_us;              /* by clock_us(), in us: the broker then ends the call */
        const char *run, *owner;           /* ids for the log */
        /*
         * Called once, from the loop and never from call().  The result stays the source's; the broker takes references
         * to the parts it keeps.  The source must have dropped the call before.
         */
        void (*done)(struct tool_call *call, const struct tool_result *result);
        /*
         * Progress as the server reports it, from the loop and before done(); total 0: unknown, message NULL: none.
         * May be NULL.
         */
        void (*progress)(struct tool_call *call, double progress, double total, const char *message);
        void *handle;                      /* for the source's use */
};

/* The functions of a kind of source. */
struct tool_source_kind {
        /* The current tools, in any order, without duplicate names.  They stay the source's. */
        const struct tool *(*list)(struct tool_source *source, size_t *ret_n);
        /*
         * Begin a call; done() follows unless the call is cancelled.  Errors: CSN_E_BUSY, CSN_E_SYSTEM (the server
         * cannot be reached); then done() does not follow, and the program receives the error text.
         */
        int (*call)(struct tool_source *source, struct tool_call *call, struct csn_error *err);
        /* Drop a call without done(), and notify the server if its protocol can. */
        void (*cancel)(struct tool_source *source, struct tool_call *call);
        /* Free the source.  All its calls have ended before. */
        void (*close)(struct tool_source *source);
};

enum tool_state {
        TOOLS_STARTING, /* the list of tools has not arrived; requests for it wait for a limited time */
        TOOLS_READY,
        TOOLS_DOWN,                        /* unusable now; `problem` is the reason */
};

/* A source.  The first member of a kind's own struct. */
struct tool_source {
        const struct tool_source_kind *kind;
        const char *server;                /* the name in requests; the source's memory */
        enum tool_state state;
        const char *problem;               /* for TOOLS_DOWN, or NULL; the source's memory */
        struct tools *tools;               /* NULL: not added */
        struct tool_source *next;
};

/* ---- the registry (registry.c) ---- */

/*
 * Create the registry of an engine, which then uses it for its runs.  The registry is the engine's and ends with the
 * engine.
 */
struct tools *tools_open(struct engine *engine);
/*
 * End all calls with an error and close all sources.  Needed only where sources must close before the engine.  NULL is
 * fine.
 */
void tools_close(struct tools *tools);
/* The engine of a registry. */
struct engine *tools_engine(const struct tools *tools);

/*
 * Add a source, which becomes the registry's.  Errors: CSN_E_CONFIG (another source has the server's name); the source
 * then stays the caller's.
 */
int tools_add(struct tools *tools, struct tool_source *source, struct csn_error *err);
/* The source of a server, or NULL. */
struct tool_source *tools_find(const struct tools *tools, const char *server);
/* Iterate over the sources; NULL begins and ends. */
struct tool_source *tools_next(const struct tools *tools, const struct tool_source *source);
/* Called by a source when its state or list has changed.  The previous list is not used after the return. */
void tools_changed(struct tool_source *source);

/*
 * Whether a text is a valid name of a server: letters, digits, _ and -, neither _ nor - first; or of a tool: also . and
 * /, and only _ is not allowed first (reserved names).  At most TOOL_NAME_MAX bytes.
 */
bool tools_is_server(const char *name);
bool tools_is_name(const char *name);

/* ---- limits of a request (grant.c) ---- */

/*
 * Check that a request only narrows its profile's grant: no other tools, no removal of a denial or of an approval, and
 * no larger number.  Errors: CSN_E_DENIED, with the field.
 */
int tools_check_narrow(const struct tools_request *given, const struct tools_request *granted, const char *profile,
        struct csn_error *err);

/*
 * The callable tools of a run with this request, sorted by name: [{name, server, tool, description, parameters,
 * ...}].  Without `allow` in the request: with `all` every tool, else none.  Texts are
 * third-party text.  The caller's reference.
 */
json_t *tools_describe(struct tools *tools, const struct tools_request *request, bool all);

/* ---- answers of a run's client (broker.c) ---- */

/*
 * Apply a client's answer to a pending call.  Errors: CSN_E_INPUT (no such call is pending, or the call waits for
 * another kind of answer); err->field is the place in the answer.
 */
int broker_answer(struct run *run, const struct tool_answer *answer, struct csn_error *err);

/* ---- arguments (json_schema.c) ---- */

/*
 * Check a value against a JSON Schema (2020-12: the validation vocabulary, the applicators and local $ref).  Work,
 * depth and regular expression steps are bounded; exceeding a bound is an error of the schema.  Errors: CSN_E_INPUT;
 * err->field is the place in the value ("/city"), and the text names the expected value.
 */
int schema_check(json_t *schema, json_t *value, struct csn_error *err);

/* ---- answers (result.c) ---- */

/*
 * The value that code receives: the structured content; or for a single text block its JSON, else the text; or the
 * content blocks unchanged.  A text above `max` bytes or TOOL_PARTS_MAX values remains a text.  A new reference.
 */
json_t *result_value(const struct tool_result *result, size_t max);
/*
 * The text of a tool's own error: its text blocks, one a line, cut at a character to at most `max` bytes.  The caller
 * frees the text.
 */
char *result_error(const struct tool_result *result, size_t max);

#endif
