/* For the files of this folder. */
#ifndef TOOLS_PARTS_H
#define TOOLS_PARTS_H

#include "tools/tools.h"

#define TOOL_DEPTH_MAX 100                 /* of arguments and results: what reads them inside has a bound, too */

#define PART_BYTES 200                     /* that a value in arguments takes here, beside its text */
#define HELD_MAX (64 * MIB)                /* of the arguments of a broker's calls at once, */
#define TOOLS_HELD_MAX (256 * MIB)         /* and of all brokers' */

struct broker;

struct tools {
        struct engine *engine;
        struct tool_source *sources;       /* in the order in which they were added */
        struct broker *brokers;
        size_t held;                       /* bytes of arguments, as weighed */
};

/* ---- grant.c ---- */

/* A tool that a broker may call. */
struct granted {
        struct tool_source *source;
        const struct tool *tool;
        bool shared;                       /* another server has one of that name, too: it needs its server's */
};

/* `*` stands for anything; a pattern with a dot is compared with SERVER.TOOL, one without with TOOL. */
bool grant_matches(const char *pattern, const char *server, const char *tool);
bool grant_check_pattern(const char *pattern);
/* All of them, by their names.  The broker's until grant_forget(), which is called whenever sources change. */
const struct granted *grant_all(struct broker *broker, size_t *ret_n);
void grant_forget(struct broker *broker);
/* The record of a run says which of its patterns allow nothing; a recording need not have all tools that there are. */
void grant_warn(const struct broker *broker, struct run *run);
/*
 * By name, with or without its server's.  False: it is none, or it is several, and the error is for the program.
 */
bool grant_find(struct broker *broker, const char *server, const char *name, struct arena *arena, struct granted *ret, char **ret_error);
/* Whether one of these patterns may be about a tool of this server. */
bool grant_concerns(char *const *patterns, size_t n, const char *server);
/* What code calls it. */
char *grant_name(const struct granted *one, struct arena *arena);

/* ---- client_tools.c ---- */

/* The tools that a request brings; NULL: it brings none.  Errors: CSN_E_INPUT. */
int own_tools_open(struct broker *broker, struct tool_source **ret, struct csn_error *err);

/* ---- replay.c ---- */

struct replay;

/* Errors: CSN_E_INPUT. */
int replay_open(const struct tools_request *request, struct replay **ret, struct csn_error *err);
void replay_close(struct replay *replay);
/* Its tools, as sources of their own that are never called. */
struct tool_source *replay_sources(const struct replay *replay);
/* The next call of this kind that was not replayed; NULL: there is none. */
const struct tool_record *replay_take(struct replay *replay, const char *server, const char *tool, json_t *arguments);

/* ---- broker.c ---- */

/* A request of the program's that has no answer yet. */
struct ask {
        struct tool_call call;             /* the first member */
        struct broker *broker;
        struct ask *next;
        enum {
                ASK_SETTLING,              /* a source is not ready */
                ASK_APPROVAL,              /* it waits for a yes */
                ASK_QUEUED,                /* for others to be done */
                ASK_CALLING,
        } state;
        struct tool_socket_call *from;
        json_t *request;                   /* what it asks for */
        char id[24];                       /* for whoever answers from outside */
        char server[TOOL_NAME_MAX + 1], tool[TOOL_NAME_MAX + 1];
        struct timer timer;
        uint64_t begun_us, progress_us;    /* when it was called, and when its progress was told last */
        size_t bytes;                      /* of its arguments, as text */
        size_t held;                       /* and as they are here; counted in the broker's and in all brokers' */
        bool counted;                      /* it is one of the calls */
        bool approved;
        bool waited;                       /* long enough for sources */
        bool lists;                        /* it asks what tools there are */
        uint64_t pass;                     /* of the broker's, in which it was looked at last */
};

struct kept_call {
        struct tool_record record;
        struct kept_call *next;
};

struct broker {
        struct broker *next;
        struct tools *tools;
        struct tools_for whom;
        const struct tools_request *request;
        struct tool_source *client;        /* or NULL */
        struct replay *replay;             /* or NULL */
        struct granted *granted;           /* NULL: they are looked for again */
        size_t granted_n;
        struct ask *asks;                  /* in the order in which they came */
        size_t running, held;
        struct timer again;                /* to look at those that wait */
        bool changed;                      /* sources are others now */
        uint64_t passes;
        uint64_t ids;
        uint64_t calls, failed, refused;
        struct arena kept;                 /* of a record */
        struct kept_call *first, *last;
        size_t kept_n, kept_bytes;
        bool kept_truncated;
};

/* News of a source: its tools are others now.  Or it leaves, and what it was asked is not answered. */
void broker_changed(struct broker *broker);
void broker_lost(struct broker *broker, const struct tool_source *source);

/* As struct engine_tools has them; the owner is struct tools, or the broker. */
int broker_open(void *owner, const struct tools_for *whom, void **ret, struct csn_error *err);
void broker_asked(void *owner, struct tool_socket_call *from, const char *message, size_t len);
void broker_gone(void *owner, struct tool_socket_call *from);
void broker_stop(void *owner);
void broker_report(void *owner, struct arena *arena, struct tools_used *ret);
void broker_close(void *owner);

#endif
