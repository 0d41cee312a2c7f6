/* Tools that the configuration defines, and their calls; for the files of this folder. */
#ifndef TOOLS_DEFINED_H
#define TOOLS_DEFINED_H

#include "tools/sources/server_config.h"

struct definitions;

/* A call that goes on. */
struct act {
        struct act *next;
        struct definitions *definitions;
        struct sources *sources;
        const struct defined *tool;
        struct tool_call *call;            /* NULL: nobody waits */
        const struct act_kind *kind;
        struct timer over;                 /* the result is told from the loop */
        json_t *content, *structured;
        bool is_error;
        char error[300];
};

struct act_kind {
        size_t size;                       /* of its struct, which begins with an act */
        int (*begin)(struct act *act, struct csn_error *err);
        void (*end)(struct act *act);      /* let go of everything; harmless after a begin() that failed */
};
extern const struct act_kind act_endpoint, act_command;

/* What came of it, from the loop; error is NULL where there is content.  Once. */
void act_finish(struct act *act, const char *error);
/* Bytes of a stranger's as a block of text, or of an image by its type; false: they are neither. */
bool act_add(struct act *act, const char *bytes, size_t len, const char *mime);

/*
 * An argument as a program or a URL gets it: a text as it is, others as JSON.  From the arena; NULL: there is none.  Errors: CSN_E_INPUT, it has
 * a NUL character, at which it would be cut.
 */
int act_argument(const struct act *act, const char *name, struct arena *arena, const char **ret, struct csn_error *err);
/* The texts of one value: each of a list, or the one. */
int act_arguments(const struct act *act, const char *name, struct arena *arena, struct launch_texts *ret, struct csn_error *err);

#endif
