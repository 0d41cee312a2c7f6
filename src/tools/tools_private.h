/* Shared by the files of src/tools: the registry, the broker and its pending requests. */
#ifndef TOOLS_TOOLS_PRIVATE_H
#define TOOLS_TOOLS_PRIVATE_H

#include "tools/tools.h"

#define TOOL_DEPTH_MAX 100 /* nesting of arguments and results; readers inside sandboxes have a limit, too */

#define PART_BYTES 200                     /* memory of one value in arguments, beside its text */
#define HELD_MAX (64 * MIB)                /* bytes of the arguments of a broker's pending calls */
#define TOOLS_HELD_MAX (256 * MIB)         /* and of all brokers together */

struct broker;

/* The registry. */
struct tools {
        struct engine *engine;
        struct tool_source *sources;       /* in the order of tools_add() */
        struct broker *brokers;
        size_t held;                       /* bytes of pending arguments, estimated with PART_BYTES */
};

/* ---- grant.c ---- */

/* A tool that a broker may call. */
struct granted {
        struct tool_source *source;
        const struct tool *tool;
        bool shared;                       /* the name is ambiguous: another server has the same tool name */
};

/*
 * Whether a pattern matches a tool; `*` stands for any text.  A pattern with a dot is compared with SERVER.TOOL,
 * without a dot with TOOL.  grant_check_pattern(): whether a pattern is valid.
 */
bool grant_matches(const char *pattern, const char *server, const char *tool);
bool grant_check_pattern(const char *pattern);
/*
 * All tools that a broker may call, sorted by name.  The list is the broker's until grant_forget(), after each change
 * of a source.
 */
const struct granted *grant_all(struct broker *broker, size_t *ret_n);
void grant_forget(struct broker *broker);
/*
 * Add a warning to the run's record with all patterns that match no tool; not for a replay, which need not have all
 * tools.
 */
void grant_warn(const struct broker *broker, struct run *run);
/*
 * Find a tool by name, with or without its server.  false: no tool or several; *ret_error is then the text for the
 * program, from the arena.
 */
bool grant_find(struct broker *broker, const char *server, const char *name, struct arena *arena, struct granted *ret,
        char **ret_error);
/* Whether one of these patterns can match a tool of this server. */
bool grant_concerns(char *const *patterns, size_t n, const char *server);
/* The tool's name in code, from the arena. */
char *grant_name(const struct granted *one, struct arena *arena);

/* ---- client_tools.c ---- */

/* Create the source of the tools that a request defines; *ret is NULL without such tools.  Errors: CSN_E_INPUT. */
int own_tools_open(struct broker *broker, struct tool_source **ret, struct csn_error *err);

/* ---- replay.c ---- */

struct replay;

/* Read a recording.  *ret is the caller's until replay_close().  Errors: CSN_E_INPUT. */
int replay_open(const struct tools_request *request, struct replay **ret, struct csn_error *err);
void replay_close(struct replay *replay);
/* The tools of a recording, as sources that are never called.  They stay the replay's. */
struct tool_source *replay_sources(const struct replay *replay);
/* The next recorded call with this server, tool and arguments that was not replayed; NULL: none. */
const struct tool_record *replay_take(struct replay *replay, const char *server, const char *tool, json_t *arguments);

/* ---- the broker ---- */

/* A request of the program without an answer yet. */
struct ask {
        struct tool_call call;             /* the first member */
        struct broker *broker;
        struct ask *next;
        enum {
                ASK_SETTLING,              /* waits for a source to be ready */
                ASK_APPROVAL,              /* waits for an approval */
                ASK_QUEUED,                /* waits for other calls to end */
                ASK_CALLING,
        } state;
        struct tool_socket_call *from;
        json_t *request;                   /* the request's JSON */
        char id[24];                       /* for a client's answer */
        char server[TOOL_NAME_MAX + 1], tool[TOOL_NAME_MAX + 1];
        struct timer timer;
        uint64_t begun_us, progress_us; /* when the call began, and when progress was last reported, in us */
        size_t bytes;                   /* bytes of the arguments as text */
        size_t held; /* estimated memory of the arguments; counted in the broker's and the registry's `held` */
        bool counted;                   /* included in `calls` */
        bool approved;
        bool waited;                       /* the time for sources to become ready has passed */
        bool lists;                        /* a request for the list of tools */
        uint64_t pass;                     /* number of the broker's last pass that examined the request */
};

/* A call kept for the run's record. */
struct kept_call {
        struct tool_record record;
        struct kept_call *next;
};

/* The tools of one run or sandbox. */
struct broker {
        struct broker *next;
        struct tools *tools;
        struct tools_for whom;
        const struct tools_request *request;
        struct tool_source *client;        /* or NULL */
        struct replay *replay;             /* or NULL */
        struct granted *granted;           /* NULL: to be computed again */
        size_t granted_n;
        struct ask *asks;                  /* in the order of arrival */
        size_t running, held;
        struct timer again;                /* examines waiting requests */
        bool changed;                      /* a source has changed */
        uint64_t passes;
        uint64_t ids;
        uint64_t calls, failed, refused;
        struct arena kept;                 /* memory of kept calls */
        struct kept_call *first, *last;
        size_t kept_n, kept_bytes;
        bool kept_truncated;
};

/* ---- broker_queue.c ---- */

struct loop *broker_loop(const struct broker *broker);
/*
 * Append a request of the program with a number of its own.  request becomes the callee's; fired is the function of the
 * timer.  ask_free() removes and frees the request.  Never NULL.
 */
struct ask *ask_new(struct broker *broker, struct tool_socket_call *from, json_t *request,
        void (*fired)(struct timer *timer));
void ask_free(struct ask *ask);
/* Count the memory of the arguments until ask_free().  false: other pending requests take the room. */
bool ask_hold(struct ask *ask);
/* The first request that can go on and that this pass has not examined, or NULL. */
struct ask *broker_next_due(const struct broker *broker);
/* Examine the requests from the loop, if one waits for other calls to end. */
void broker_wake_queued(struct broker *broker);

/* ---- broker_record.c ---- */

/* Keep a call for the record; beyond 100000 calls or 16 MiB the record says that calls are missing. */
void broker_keep_call(struct broker *broker, const struct ask *ask, const char *result, const char *error, double ms);
/* Report the kept calls.  Texts stay the broker's, which lives as long as its run. */
void broker_report_calls(const struct broker *broker, struct arena *arena, struct tools_used *ret);

/* ---- broker_describe.c ---- */

/* Answer with the names of all tools, or with the whole description of one. */
void broker_list(struct broker *broker, struct tool_socket_call *from);
void broker_info(struct broker *broker, struct tool_socket_call *from, json_t *request);
void broker_answer_error(const struct broker *broker, struct tool_socket_call *from, const char *error);
/* Answer a message that is no JSON within bounds; why NULL: the message has too many parts. */
void broker_answer_unread(const struct broker *broker, struct tool_socket_call *from, const char *message, size_t len,
        const json_error_t *why);

/* ---- broker.c: calls ---- */

/* A source's tools have changed; or a source ends, and its pending calls get an error. */
void broker_changed(struct broker *broker);
void broker_lost(struct broker *broker, const struct tool_source *source);

/*
 * The functions of struct engine_tools; owner is struct tools for broker_open(), else the broker.  Errors: CSN_E_INPUT.
 */
int broker_open(void *owner, const struct tools_for *whom, void **ret, struct csn_error *err);
void broker_asked(void *owner, struct tool_socket_call *from, const char *message, size_t len);
void broker_gone(void *owner, struct tool_socket_call *from);
void broker_stop(void *owner);
void broker_report(void *owner, struct arena *arena, struct tools_used *ret);
void broker_close(void *owner);

#endif
