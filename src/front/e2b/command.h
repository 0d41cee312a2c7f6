/*
 * command: a program in a sandbox of which the lines and the end matter, and the start command of a template.
 *
 * Builds run their steps as such programs, and each sandbox of a template runs its start command.
 */
#ifndef FRONT_E2B_COMMAND_H
#define FRONT_E2B_COMMAND_H

#include "front/e2b/e2b.h"

/* ---- a program in a sandbox (command.c) ---- */

/* Embedded in the caller's object; the caller sets line, done and owner.  All zeros means none. */
struct build_command {
        void (*line)(struct build_command *build_command, bool error, const char *text);
        /*
         * Called once: the status of wait(2), or an error if the program could not start or the sandbox ended.  The
         * struct may then be used again.
         */
        void (*done)(struct build_command *build_command, int status, const struct csn_error *error);
        void *owner;
        struct guest_call call;
        struct buf lines[2];
        int status;
};

/* The program. */
struct build_command_what {
        int account;                       /* account of fields.def */
        const char *folder;
        json_t *env;                       /* names and texts, or NULL */
        const char *command;               /* for bash, as a login shell */
        const char *args[6];               /* $1 and so on; NULL ends the list */
};

/* Start the program; done() follows.  Errors: as guest calls. */
int build_command_run(struct psandbox *psandbox, struct build_command *build_command,
        const struct build_command_what *what, struct csn_error *err);
/* Kill the program without done().  Harmless twice. */
void build_command_stop(struct build_command *build_command);

/* ---- the start command (start_command.c) ---- */

/* Embedded in the caller's object; the caller sets line, done and owner.  All zeros means none. */
struct start {
        void (*line)(struct start *start, bool error, const char *text);
        /* Called once: the program is ready, or failed.  It then runs until it ends or until start_stop(). */
        void (*done)(struct start *start, const struct csn_error *error);
        void *owner;
        struct psandbox *psandbox;
        struct loop *loop;
        json_t *build_spec;
        struct build_command program, check;
        struct timer again, deadline;
        bool told;
};

/* Whether a build spec has a start command. */
bool start_is_there(const json_t *build_spec);
/* Start the command.  `whole`: wait also for a readiness check that only sleeps.  Errors: as guest calls. */
int start_begin(struct start *start, struct service *service, struct psandbox *psandbox, json_t *build_spec,
                bool whole, struct csn_error *err);
void start_stop(struct start *start);      /* harmless twice */

#endif
