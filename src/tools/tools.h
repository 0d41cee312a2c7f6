/*
 * tools: what code in a sandbox may call outside.
 *
 *   tools    the sources that there are, by the name of their server
 *   grant    which tools a request may use, and what code calls them
 *   schema   arguments against a JSON Schema                               (pure)
 *   result   what a source answers, as the one JSON value that code gets   (pure)
 *   client   tools that whoever started the run serves himself
 *   replay   calls of an earlier run in the place of calls outside
 *   broker   one for each run or persistent sandbox: checks, counts, passes on, answers
 *
 * Inside there is a stub with a socket.  It asks the broker (engine/tool_io/tool_socket.h), and the broker asks a source.
 * A source is an MCP server, an HTTP endpoint, a command, or the run's own client.  What it says is as hostile to us as it is to
 * the sandbox.  Everything is in the engine's loop; nothing here blocks.
 */
#ifndef TOOLS_TOOLS_H
#define TOOLS_TOOLS_H

#include "engine/engine.h"

#include <jansson.h>

struct tools;
struct tool_source;

#define TOOLS_CLIENT "client"              /* the server of those that whoever started the run serves himself */
#define TOOL_NAME_MAX 128                  /* bytes of a tool's name, and of a server's */
#define TOOL_TEXT_MAX 8192                 /* of a description; more is cut */
#define TOOL_SCHEMA_MAX (256 * KIB)        /* of a schema as text; a tool with a larger one is left out */
#define TOOLS_MAX 10000                    /* of one source */
#define TOOL_PARTS_MAX 200000              /* values and names in arguments or in a result: each costs far more than its bytes */
#define TOOL_EVENT_MAX (1 * MIB)           /* of arguments that go to a run's listener, who loses events where they do not fit */
#define TOOL_RESULT_MAX (16 * MIB)         /* of a result as text, whatever a request allows */

/*
 * One tool, as its source describes it.  Everything belongs to the source and stays as it is until tools_changed() returns;
 * texts are UTF-8 of third parties.
 */
struct tool {
        const char *name;                  /* as its server calls it */
        const char *title;                 /* or NULL */
        const char *description;           /* or NULL */
        json_t *input_schema;              /* an object; NULL: whatever is given */
        json_t *output_schema;             /* or NULL */
        json_t *annotations;               /* or NULL */
        bool ask;                          /* each call waits for somebody's yes */
        uint64_t timeout_ms;               /* of one call; 0: as the request has it */
};

/*
 * What came of a call.  An error of the tool's own (is_error) has content; one that kept it from being called or answered has
 * an error text instead.
 */
struct tool_result {
        json_t *content;                   /* blocks as MCP has them: {"type":"text","text":…}, {"type":"image",…}; or NULL */
        json_t *structured;                /* or NULL */
        bool is_error;
        const char *error;                 /* "the server has ended", for people and models; NULL: there is a result */
};

/* A call that goes on.  The broker's, and embedded in what is its own. */
struct tool_call {
        struct tool_source *source;        /* NULL: it is over */
        const char *name;                  /* of the tool, as its server calls it */
        json_t *arguments;                 /* an object; the broker's reference */
        uint64_t deadline_us;              /* by clock_us(): the broker ends it then */
        const char *run, *owner;           /* for whom, as the log has it; ids */
        /*
         * Once, from the loop and never from call() itself.  The result and what it points to stay the source's; the broker
         * takes what references it wants.  The source forgets the call before it calls this.
         */
        void (*done)(struct tool_call *call, const struct tool_result *result);
        /* How far it is, as its server says, from the loop and before done(); total 0: unknown, message NULL: none.  May be NULL. */
        void (*progress)(struct tool_call *call, double progress, double total, const char *message);
        void *handle;                      /* the source's */
};

struct tool_source_kind {
        /* The tools that there are now, in any order; names are not twice among them. */
        const struct tool *(*list)(struct tool_source *source, size_t *ret_n);
        /*
         * Begin a call; done() follows unless it is cancelled.  Errors: CSN_E_BUSY, CSN_E_SYSTEM (the server cannot be
         * reached); then done() does not follow, and the text is what the program reads.
         */
        int (*call)(struct tool_source *source, struct tool_call *call, struct csn_error *err);
        /* Nobody waits for it any more: tell the server if that can be told.  done() is not called. */
        void (*cancel)(struct tool_source *source, struct tool_call *call);
        /* It leaves: free everything.  All its calls have been ended before. */
        void (*close)(struct tool_source *source);
};

enum tool_state {
        TOOLS_STARTING,                    /* its list is not there yet; who asks for it waits, for a while */
        TOOLS_READY,
        TOOLS_DOWN,                        /* it cannot be used now; `problem` says why */
};

/* The first member of what a kind has. */
struct tool_source {
        const struct tool_source_kind *kind;
        const char *server;                /* the name by which requests grant it; the source's */
        enum tool_state state;
        const char *problem;               /* of TOOLS_DOWN, or NULL; the source's */
        struct tools *tools;               /* NULL: it was not added */
        struct tool_source *next;
};

/* ---- the registry (registry.c) ---- */

/* What an engine's runs can be given; from then on the engine asks us.  It is the engine's, and goes with it. */
struct tools *tools_open(struct engine *engine);
/* Calls that go on end with an error; all sources are closed.  For whoever needs that before the engine ends; NULL is fine. */
void tools_close(struct tools *tools);
struct engine *tools_engine(const struct tools *tools);

/* Its server's name is its alone.  Errors: CSN_E_CONFIG; then it is still the caller's. */
int tools_add(struct tools *tools, struct tool_source *source, struct csn_error *err);
/* Its calls end with an error, and it is closed. */
void tools_remove(struct tools *tools, struct tool_source *source);
struct tool_source *tools_find(const struct tools *tools, const char *server);
/* One after another; NULL begins. */
struct tool_source *tools_next(const struct tools *tools, const struct tool_source *source);
/* By its source: its state or its list is another now, and what list() gave before is not used any more. */
void tools_changed(struct tool_source *source);

/*
 * A server's name: letters, digits, _ and -, and neither a _ nor a - first.  A tool's: the same and . and /, of at most
 * TOOL_NAME_MAX bytes; one that begins with _ is no tool for anybody.
 */
bool tools_is_server(const char *name);
bool tools_is_name(const char *name);

/* ---- what a request may say of them (grant.c) ---- */

/*
 * Whether a request only narrows what its profile grants: no other tools, none that is not denied or waits for no yes any more,
 * and no larger number.  Errors: CSN_E_DENIED, with the field.
 */
int tools_check_narrow(const struct tools_request *given, const struct tools_request *granted, const char *profile, struct csn_error *err);

/* ---- answers of a run's own client (broker.c) ---- */

/* Errors: CSN_E_INPUT, no such call waits, or it waits for something else; err->field is where in the answer. */
int broker_answer(struct run *run, const struct tool_answer *answer, struct csn_error *err);

/* ---- arguments (json_schema.c) ---- */

/*
 * Whether a value satisfies a JSON Schema (2020-12; ARCHITECTURE.md says which of its words).  Work, depth and the steps of
 * regular expressions are bounded; what exceeds them is an error of the schema's.  Errors: CSN_E_INPUT, err->field is where in
 * the value ("/city"), and the text says what was expected.
 */
int schema_check(json_t *schema, json_t *value, struct csn_error *err);

/* ---- answers (result.c) ---- */

/*
 * The one value that code gets: what is structured; or of a single text the JSON in it, or else the text; or the blocks of
 * content as they are.  A text of more than `max` bytes or TOOL_PARTS_MAX parts stays one.  A new reference.
 */
json_t *result_value(const struct tool_result *result, size_t max);
/* The text of an error of the tool's own: its texts, a line each; at most `max` bytes and cut at a character.  To be freed. */
char *result_error(const struct tool_result *result, size_t max);

#endif
