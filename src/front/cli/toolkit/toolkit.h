/*
 * toolkit: what the commands of the command line share, in caisson and in caisson-remote.
 *
 *   text        errors, control characters, colours, lines of tables, JSON
 *   vocabulary  names of fields in a text of the engine, as options
 *   suggest     "did you mean"; words that options take
 *   options     options of a command: parsing, and errors
 *   fields      fields of fields.def as options
 *   settings    --config and --set, which every command takes
 *   read        whole files
 *   show        output of a run
 *   parts       the subcommands of sandbox, context, tools and layers
 *
 * A function with an exit status as its result has printed the error.  The others return errors, for cli_fail().
 */
#ifndef FRONT_CLI_TOOLKIT_TOOLKIT_H
#define FRONT_CLI_TOOLKIT_TOOLKIT_H

#include "front/views/views.h"

#include <getopt.h>
#include <stdio.h>

/* ---- text (text.c) ---- */

/* Print "caisson: TEXT" on standard error.  Returns the exit status of the error. */
int cli_fail(const struct csn_error *err);
/* The same for a wrong command line, with a reference to the help. */
int cli_usage(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The same for an error of one command, whose help is named. */
int cli_usage_of(const char *command, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Print on standard error that there is nothing to show, and the remedy. */
void cli_note(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Whether to use colours: on a terminal, without NO_COLOR (no-color.org), and TERM is not "dumb". */
bool cli_colours(FILE *stream);
/* Make control characters of untrusted text visible.  out has room for 4 * len bytes.  Returns the bytes used. */
size_t cli_visible(const char *bytes, size_t len, char *out);

/* Append a cell of a table; end its line.  Control characters become visible; a text wider than the cell is cut. */
void cli_add_cell(struct buf *buf, int width, const char *text);
void cli_end_line(struct buf *buf);
/* Append the reason of a failure in one line, as it is visible; longer than 300 bytes it is cut. */
void cli_add_reason(struct buf *buf, const char *text);
/* Append a cell with a time: "2026-11-21 10:00" in UTC, "-" for never.  ms since the epoch. */
void cli_add_time(struct buf *buf, int64_t ms);

/* A time in RFC 3339 format, null for never.  The caller owns the reference. */
json_t *cli_json_time(int64_t ms);
/* Print JSON with indentation on standard output.  The reference becomes the callee's. */
void cli_print_json(json_t *json);

/* ---- names of fields as options (vocabulary.c) ---- */

/*
 * Translate field names in a text of the engine to options of the command line.  pointer: JSON pointer of the wrong
 * field of the request, or NULL.  The result is from the arena.
 */
char *cli_in_options(const char *text, const char *pointer, struct arena *arena);
/* Translate the error and the warnings of a record. */
void cli_record_in_options(json_t *record);

/* ---- suggestions for mistyped words (suggest.c) ---- */

/* The nearest of the words passed to cli_guess(); best is NULL if none is near. */
struct cli_guess {
        const char *typed;
        const char *best;
        size_t far;
};
void cli_guess(struct cli_guess *guess, const char *word);
/* "; did you mean --WORD?", or "".  Written to text, which is returned. */
const char *cli_guess_text(const struct cli_guess *guess, const char *dashes, char *text, size_t size);
/* Append a suggestion to an error text that refuses a word. */
void cli_suggest_word(struct csn_error *err, const struct choices *choices, const char *typed);
/* Write the words of choices to text: `last` separates the last two words, `between` the others. */
void cli_print_words(const struct choices *choices, const char *between, const char *last, char *text, size_t size);

/* Valid words of options that are not choices of fields.def. */
extern const struct choices choices_transports, choices_definitions, choices_levels;

/* ---- options of a command (options.c) ---- */

/* An option.  A table of options ends with name NULL. */
struct cli_option {
        const char *name;
        char letter;               /* 0: none */
        const char *argument;      /* NULL: a flag */
        const char *text;
        const struct choices *choices;   /* valid words of the argument; NULL: other values, or a flag */
};

/* The table of a command with --json as its only option. */
extern const struct cli_option cli_json_options[];

/*
 * Pass the options of argv to take(), an option without a letter by its name; afterwards optind is the index of the
 * first other argument.  Errors: CSN_E_INPUT naming argv[0] and the option, and those of take().
 */
int cli_parse(const struct cli_option *options, int argc, char **argv,
              int (*take)(void *owner, const char *name, const char *value, struct csn_error *err), void *owner,
              struct csn_error *err);
/* Remove a flag from argv.  Returns whether the flag was there. */
bool cli_has_flag(int *argc, char **argv, const char *flag);

/* Errors: CSN_E_INPUT (the value is none of the option's words; upper and lower case are equal). */
int cli_check_word(const struct cli_option *option, const char *value, struct csn_error *err);
/* Parse the number of --NAME, between min and max.  Errors: CSN_E_INPUT naming option, value and range. */
int cli_parse_number(const char *name, const char *value, uint64_t min, uint64_t max, uint64_t *ret,
                     struct csn_error *err);

/*
 * The error for getopt_long(3)'s '?' and ':', with opterr 0 and a leading ':' in optstring.  Errors: CSN_E_INPUT,
 * always.
 */
int cli_bad_option(const char *who, int opt, char *const *argv, const struct option *longs, struct csn_error *err);
/*
 * Print that the command `name` does not take an argument.  options: the command's, or NULL.  Returns the exit status.
 */
int cli_unknown_argument(const char *name, const struct cli_option *options, const char *typed);

/* ---- fields of fields.def as options (fields.c) ---- */

/* An option that sets a field. */
struct cli_field {
        const struct object *object;
        const struct field *field;
};

/* List the options of some objects in their order.  The list of objects ends with NULL. */
size_t cli_fields_of(const struct object *const *objects, struct cli_field *fields, size_t max);
char cli_field_letter(const struct cli_field *option);   /* 0: none */
const char *cli_field_text(const struct field *field);   /* help text of its option */
/*
 * Set a field from an option's value, NULL for a flag; an item is appended to a list.  Memory: the arena.  Errors:
 * CSN_E_INPUT naming the option.
 */
int cli_set_field(const struct cli_field *option, void *into, const char *text, struct arena *arena,
                  struct csn_error *err);
void cli_add_text(char ***texts, size_t *n, char *text, struct arena *arena);

/* ---- settings (settings.c) ---- */

/* Values of --config and --set, which every command accepts before its own options. */
struct cli_settings {
        const char *file;
        const char *flags[64];
        size_t flags_n;
};

/* Remove --config FILE and --set KEY=VALUE from argv.  Returns the new argc, or -1 after a message. */
int cli_take_settings(int argc, char **argv, struct cli_settings *ret);
/* Load the settings.  Returns 0, or the exit status after a message. */
int cli_load_settings(const struct cli_settings *from, struct settings *ret);
/* Do both, then call the command with the remaining argv. */
int cli_with_settings(int argc, char **argv, int (*command)(int argc, char **argv, const struct settings *settings));

/* ---- files (read.c) ---- */

/*
 * Read a whole file, or standard input for "-", of at most max bytes, into the arena.  Errors: CSN_E_INPUT naming
 * `field`.
 */
int cli_read_whole(const char *path, size_t max, const char *field, struct arena *arena, struct bytes *ret,
                   struct csn_error *err);

/* ---- output of a run (show.c) ---- */

/* Output options of a run, and the state of the output. */
struct cli_show {
        bool as_text;              /* print the record in `form`, of enum text_form, instead of the output */
        int form;
        bool json, raw, quiet, verbose;
        bool streaming;            /* output is printed as it arrives */
        bool tty[3];
        bool closed[3];            /* the reader of this standard stream is gone */
        uint64_t shown[3];         /* bytes of output so far */
        int exit_status;
        bool lost;                 /* a requested output could not be written */
};

/* sysexits(3) EX_CANTCREAT: the program succeeded, but an additional requested output could not be written. */
#define EXIT_LOST 73

/* Set `lost`, and exit status EXIT_LOST unless another failure is set.  The caller prints the reason. */
void show_lost(struct cli_show *show);

/* Complete the options after parsing. */
void show_prepare(struct cli_show *show);

/*
 * Print the beginning of the program on standard error, without values of its environment: code may repeat a secret
 * (verbose.c).
 */
void show_program(const struct cli_show *show, const struct run_request *request);
/* Print the outcome of a run on standard error, in a line or two (verbose.c). */
void show_outcome(const struct cli_show *show, const struct run_result *result);

/* Print output of a run.  false: the reader of the stream is gone, and the run may end. */
bool show_output(struct cli_show *show, int stream, const void *bytes, size_t len);

/* Print the final output and set exit_status.  record is used with `json` only. */
void show_result(struct cli_show *show, const struct run_result *result, json_t *record);

/* ---- subcommands of sandbox, context, tools and layers (parts.c) ---- */

struct cli_part {
        const char *command, *name;
        const char *arguments, *text;
        const struct cli_option *options;
        const struct object *const *objects;    /* objects with fields that are options, too; NULL: none */
        bool program;                           /* a program and its arguments follow the first argument */
};

extern const struct cli_part cli_parts[];       /* ended by name NULL */
bool cli_has_parts(const char *command);

extern const struct cli_option cli_mcp_options[];   /* of mcp, which has no parts */

#endif
