/* Tools that the configuration defines, and their calls; shared by defined.c, command.c and http_endpoint.c. */
#ifndef TOOLS_SOURCES_DEFINED_H
#define TOOLS_SOURCES_DEFINED_H

#include "tools/sources/server_config.h"

struct definitions;

/* A pending call of such a tool. */
struct act {
        struct act *next;
        struct definitions *definitions;
        struct sources *sources;
        const struct defined *tool;
        struct tool_call *call;            /* NULL: the call was cancelled */
        const struct act_kind *kind;
        struct timer over;                 /* reports the result from the loop */
        json_t *content, *structured;
        bool is_error;
        char error[300];
};

/* The functions of a kind of defined tool.  Errors of begin(): CSN_E_INPUT (an argument), CSN_E_SYSTEM. */
struct act_kind {
        size_t size;                       /* of the kind's own struct, which begins with a struct act */
        int (*begin)(struct act *act, struct csn_error *err);
        void (*end)(struct act *act);      /* release everything; harmless after a failed begin() */
};
extern const struct act_kind act_endpoint, act_command;

/* Report the result from the loop, once; error is NULL if there is content. */
void act_finish(struct act *act, const char *error);
/* Add untrusted bytes as a text block, or as an image block by MIME type; false: neither is possible. */
bool act_add(struct act *act, const char *bytes, size_t len, const char *mime);

/*
 * An argument in the form for a program or a URL: a text unchanged, other values as JSON.  *ret is from the arena;
 * NULL: no such argument.  Errors: CSN_E_INPUT (a NUL character, which would cut the text).
 */
int act_argument(const struct act *act, const char *name, struct arena *arena, const char **ret, struct csn_error *err);
/* The texts of an argument: one for each item of a list, else one.  Errors: those of act_argument(). */
int act_arguments(const struct act *act, const char *name, struct arena *arena, struct launch_texts *ret,
        struct csn_error *err);

#endif
