/* The parts of the command line; for the files of this folder. */
#ifndef FRONT_CLI_H
#define FRONT_CLI_H

#include "front/front.h"

#include <getopt.h>
#include <stdio.h>

struct cli_command {
        const char *name;
        const char *arguments;     /* for the usage line */
        const char *text;          /* one sentence */
        int (*run)(int argc, char **argv);
};

/* All commands, ended by a name NULL. */
extern const struct cli_command cli_commands[];

/* An option of `caisson run` that is no field of fields.def. */
struct cli_option {
        const char *name;
        char letter;               /* or 0 */
        const char *argument;      /* or NULL */
        const char *text;
};
extern const struct cli_option cli_run_options[];   /* ended by name NULL */

/* Options that stand for fields: of run_request and of limits, in their order. */
struct cli_field {
        const struct object *object;
        const struct field *field;
};
size_t cli_fields(struct cli_field *fields, size_t max);

int cli_run(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_profiles(int argc, char **argv);
int cli_config(int argc, char **argv);
int cli_schema(int argc, char **argv);
int cli_gc(int argc, char **argv);
int cli_completion(int argc, char **argv);
int cli_version(int argc, char **argv);
int cli_help(int argc, char **argv);

/* Settings from --config and --set, which every command takes before its own options. */
struct cli_settings {
        const char *file;
        const char *flags[64];
        size_t flags_n;
};

/* Takes --config FILE and --set KEY=VALUE out of argv.  Returns the new argc, or -1 after a message. */
int cli_take_settings(int argc, char **argv, struct cli_settings *ret);
int cli_load_settings(const struct cli_settings *from, struct settings *ret);

/* "caisson: TEXT" on stderr; returns the exit status that goes with the error. */
int cli_fail(const struct csn_error *err);
int cli_usage(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Colour only for people: on a terminal, without NO_COLOR (no-color.org), not for TERM=dumb. */
bool cli_colours(FILE *stream);

#endif
