/*
 * verdict: from what the kernel says of a run to its status, and the sentences that a person or a model
 * reads about it.  Pure functions over one struct of evidence.
 */
#ifndef ENGINE_VERDICT_H
#define ENGINE_VERDICT_H

#include "model/model.h"
#include "wire/wire.h"

/* Everything that is known when a run is over. */
struct evidence {
        const struct wire_exit *how;
        const struct limits *limits;
        const struct wire_boundary *boundary;
        const char *language;          /* as people write it */
        bool cancelled;                /* the caller took it back */
        bool output_killed;            /* it printed more than allowed, and that was to end it */
        bool parsed;                   /* the runner said that the program's own code began */
        bool syntax;                   /* the runner said that the text does not parse */
        bool channel_broken;           /* what came over the private channel was not the runner's */
        bool home_full;                /* no byte left in the home directory at the end */
        bool inodes_full;              /* no inode left there */
        unsigned fair_milli;           /* thousandths of a processor that a loop got beside all that wanted to run on this host; 0: all of it */
        int error_errno;               /* errno of the program's own last exception, or 0 */
        const char *error_type;        /* its type, or NULL */
};

int verdict_status(const struct evidence *evidence);

/*
 * What happened and what to do about it: one sentence that names the limit and its value by the field of the
 * request; the command line adds its options (front/cli/vocabulary.c).  NULL where there is nothing to say.  From the arena.
 */
const char *verdict_message(int status, const struct evidence *evidence, struct arena *arena);
const char *verdict_hint(int status, const struct evidence *evidence, struct arena *arena);

/* What a program that failed left behind. */
struct complaint {
        const char *language;          /* its name, "python" */
        const char *type, *message;    /* as the runner reported the error; a type of NULL: it reported none */
        char *const *traceback;
        size_t traceback_n;
        int error_errno;               /* or 0 */
        bool no_network;               /* its sandbox has none */
        struct bytes code, printed;    /* its text; its standard error */
        int exit_status;               /* or -1 */
};

/* The advice for it, or NULL; and that for an exception of this type alone (CHECKLIST S1-46 to S1-55). */
const char *feedback_for(const struct complaint *complaint);
const char *feedback_for_type(const char *language, const char *type);

#endif
