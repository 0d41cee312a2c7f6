/*
 * verdict: from the kernel's report of a run to its status, and to sentences about it for a person or a model.  Pure
 * functions of one struct of evidence.
 */
#ifndef ENGINE_OUTPUT_VERDICT_H
#define ENGINE_OUTPUT_VERDICT_H

#include "model/model.h"
#include "wire/wire.h"

/* All facts about a run after its end. */
struct evidence {
        const struct wire_exit *how;
        const struct limits *limits;
        const struct wire_boundary *boundary;
        const char *language;          /* title of the language */
        bool cancelled;                /* the caller cancelled the run */
        uint64_t quota_ms;             /* cpu_ms_per_day of the key, if this quota ended the run; 0: it did not */
        bool output_killed;            /* the output limit was exceeded and ends the run */
        bool parsed;                   /* the runner reported the start of the program's own code */
        bool syntax;                   /* the runner reported a syntax error */
        bool channel_broken;           /* data on the private channel violated the protocol */
        bool home_full;                /* no byte left in the home directory at the end */
        bool inodes_full;              /* no inode left in the home directory at the end */
        /* share of a CPU, in thousandths, that a busy loop gets at this host's load; 0: all of it */
        unsigned fair_milli;
        int error_errno;               /* errno of the program's last exception, or 0 */
        const char *error_type;        /* type of this exception, or NULL */
        bool has_volumes;              /* the program had volumes, which may be full as well */
};

/* The status of the run, of enum status in fields.def. */
int verdict_status(const struct evidence *evidence);

/*
 * A sentence about the end and one with advice.  They name the limit and its value by the field of the request; the
 * command line adds its options (front/cli/toolkit/vocabulary.c).  NULL: nothing to say.  From the arena.
 */
const char *verdict_message(int status, const struct evidence *evidence, struct arena *arena);
/* The name of the limit of time that ended a run with the status timeout. */
const char *verdict_time_limit(const struct evidence *evidence);
const char *verdict_hint(int status, const struct evidence *evidence, struct arena *arena);

/* The output of a program that failed. */
struct complaint {
        const char *language;          /* name of the language, "python" */
        const char *type, *message;    /* as reported by the runner; type NULL: no report */
        char *const *traceback;
        size_t traceback_n;
        int error_errno;               /* or 0 */
        bool no_network;               /* its sandbox has no network */
        struct bytes code, printed;    /* the program's text; its standard error */
        int exit_status;               /* or -1 */
        const char *image;             /* name of the imported image, or NULL */
        const char *const *modules;    /* of the image, in the program's language */
        size_t modules_n;
        const char *const *installed;  /* of the image: "numpy 1.24.2", or packages of Node */
        size_t installed_n;
        const struct layer_use *layers; /* of the run */
        size_t layers_n;
};

/*
 * The advice for a failed program, or NULL; and the advice for an exception type alone (CHECKLIST S1-46 to S1-55).
 * Static text.
 */
const char *feedback_for(const struct complaint *complaint);
const char *feedback_for_type(const char *language, const char *type);
/* The advice for a program that does not parse and has lines that begin with a fence, or NULL.  Static text. */
const char *feedback_for_fences(const struct bytes *code);
/*
 * The advice for a program of Python or Node that imports a missing module (modules.c): names the module, the installed
 * module with the nearest name, the packages of the run and of an imported image, and how to ask for a package.  NULL:
 * another failure.  The text lives in the arena.
 */
char *modules_advice(const struct complaint *complaint, struct arena *arena);

#endif
