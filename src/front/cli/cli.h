/* Shared by the files of src/front/cli: the table of commands, options, help, errors and output. */
#ifndef FRONT_CLI_CLI_H
#define FRONT_CLI_CLI_H

#include "front/views/views.h"

#include <getopt.h>
#include <stdio.h>

#define CLI_SERVE_ADDRESS "127.0.0.1:8080"   /* default address of caisson serve */

/* An option of a command. */
struct cli_option {
        const char *name;
        char letter;               /* 0: none */
        const char *argument;      /* NULL: a flag */
        const char *text;
        const struct choices *choices;   /* valid words of the argument; NULL: other values, or a flag */
};

enum cli_group { GROUP_FIRST, GROUP_PROGRAMS, GROUP_DAEMON, GROUP_SETTINGS, GROUP_ABOUT, GROUPS };

/* A command: one row of the table. */
struct cli_command {
        const char *name;
        enum cli_group group;      /* group in the overview */
        const char *arguments;     /* arguments in the usage line */
        const char *text;          /* one sentence */
        const char *example;       /* a shell command line */
        int (*run)(int argc, char **argv);
        const struct cli_option *options;       /* ended by name NULL; NULL: the few options in `arguments` */
        const struct object *const *objects;    /* objects with fields that are options, too; NULL: none */
};

/* Objects with options: of runs, and of gradings. */
extern const struct object *const cli_run_objects[], *const cli_grade_objects[];

/* Valid words of options that are not choices of fields.def. */
extern const struct choices choices_transports, choices_forms, choices_definitions, choices_levels;

/* The table of commands, ended by name NULL. */
extern const struct cli_command cli_commands[];

extern const struct cli_option cli_run_options[];   /* options that are no fields of fields.def */
extern const struct cli_option cli_check_options[], cli_describe_options[], cli_e2b_options[], cli_grade_options[], cli_keys_options[], cli_logs_options[],
        cli_mcp_options[], cli_policy_options[], cli_runs_options[], cli_serve_options[];

/*
 * Pass the options of argv to take(), an option without a letter by its name; afterwards optind is the index of the
 * first other argument.  Errors: CSN_E_INPUT naming argv[0] and the option, and those of take().
 */
int cli_parse(const struct cli_option *options, int argc, char **argv,
              int (*take)(void *owner, const char *name, const char *value, struct csn_error *err), void *owner, struct csn_error *err);

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
void cli_print_words(const struct choices *choices, const char *between, const char *last, char *text, size_t size);
/* Errors: CSN_E_INPUT (the value is none of the option's words; upper and lower case are equal). */
int cli_check_word(const struct cli_option *option, const char *value, struct csn_error *err);
/*
 * The error for getopt_long(3)'s '?' and ':', with opterr 0 and a leading ':' in optstring.  Errors: CSN_E_INPUT,
 * always.
 */
int cli_bad_option(const char *who, int opt, char *const *argv, const struct option *longs, struct csn_error *err);
/* Print the error on standard error, and return the exit status. */
int cli_unknown_command(const char *typed);
int cli_unknown_part(const char *command, const char *typed);
int cli_unknown_argument(const char *name, const char *typed);
/* Print on standard error that there is nothing to show, and the remedy. */
void cli_note(const char *fmt, ...) PRINTF_LIKE(1, 2);

/*
 * Read a whole file, or standard input for "-", of at most max bytes, into the arena.  Errors: CSN_E_INPUT naming
 * `field`.
 */
int cli_read_whole(const char *path, size_t max, const char *field, struct arena *arena, struct bytes *ret, struct csn_error *err);

/*
 * An option that sets a field.  cli_fields_of() lists the options of some objects in their order; the list of objects
 * ends with NULL.
 */
struct cli_field {
        const struct object *object;
        const struct field *field;
};
size_t cli_fields_of(const struct object *const *objects, struct cli_field *fields, size_t max);
char cli_field_letter(const struct cli_field *option);   /* 0: none */
const char *cli_field_text(const struct field *field);   /* help text of its option */
/*
 * Set a field from an option's value, NULL for a flag; an item is appended to a list.  Memory: the arena.  Errors:
 * CSN_E_INPUT naming the option.
 */
int cli_set_field(const struct cli_field *option, void *into, const char *text, struct arena *arena, struct csn_error *err);
void cli_add_text(char ***texts, size_t *n, char *text, struct arena *arena);

/* Subcommands of sandbox and context; see remote_commands.c. */
struct cli_part {
        const char *command, *name;
        const char *arguments, *text;
        const struct cli_option *options;
        const struct object *const *objects;    /* objects with fields that are options, too; NULL: none */
        bool program;                           /* a program and its arguments follow the first argument */
};
extern const struct cli_part cli_parts[];      /* ended by name NULL */
void cli_help_parts(const char *command);

/* The commands.  Each returns the exit status. */
int cli_run(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_grade(int argc, char **argv);
int cli_describe(int argc, char **argv);
int cli_policy(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_profiles(int argc, char **argv);
int cli_config(int argc, char **argv);
int cli_schema(int argc, char **argv);
int cli_gc(int argc, char **argv);
int cli_ps(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_pool(int argc, char **argv);
int cli_e2b(int argc, char **argv);
int cli_keys(int argc, char **argv);
int cli_logs(int argc, char **argv);
int cli_runs(int argc, char **argv);
int cli_sandbox(int argc, char **argv);
int cli_context(int argc, char **argv);
int cli_tools(int argc, char **argv);
int cli_mcp(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_completion(int argc, char **argv);
int cli_version(int argc, char **argv);
int cli_help(int argc, char **argv);

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

/* Remove a flag from argv.  Returns whether the flag was there. */
bool cli_has_flag(int *argc, char **argv, const char *flag);

/* Print JSON with indentation on standard output.  The reference becomes the callee's. */
void cli_print_json(json_t *json);

/*
 * Translate field names in a text of the engine to options of the command line (vocabulary.c).  pointer: JSON pointer
 * of the wrong field of the request, or NULL.  The result is from the arena.  cli_record_in_options() translates the
 * error and the warnings of a record.
 */
char *cli_in_options(const char *text, const char *pointer, struct arena *arena);
void cli_record_in_options(json_t *record);

/* Print "caisson: TEXT" on standard error.  Returns the exit status of the error. */
int cli_fail(const struct csn_error *err);
int cli_usage(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The command with this name, or NULL. */
const struct cli_command *cli_find_command(const char *name);

/* Print lines of a help text (help.c). */
void cli_print_options(const struct cli_option *options);
void cli_print_fields(const struct cli_field *fields, size_t n);

/* Whether to use colours: on a terminal, without NO_COLOR (no-color.org), and TERM is not "dumb". */
bool cli_colours(FILE *stream);

/* Make control characters of untrusted text visible.  out has room for 4 * len bytes.  Returns the bytes used. */
size_t cli_visible(const char *bytes, size_t len, char *out);

/* Append a cell of a table; end its line.  Control characters become visible; a text wider than the cell is cut. */
void cli_add_cell(struct buf *buf, int width, const char *text);
void cli_end_line(struct buf *buf);

/* ---- output of a run (show.c) ---- */

/* Output options of a run, and the state of the output. */
struct cli_show {
        const char *format;
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

/* Complete the options after parsing.  Errors of show_check(): CSN_E_INPUT (unknown format). */
void show_prepare(struct cli_show *show);
int show_check(const struct cli_show *show, struct csn_error *err);

/* Print output of a run.  false: the reader of the stream is gone, and the run may end. */
bool show_output(struct cli_show *show, int stream, const void *bytes, size_t len);

/* Print the final output and set exit_status.  record is used with `json` only. */
void show_result(struct cli_show *show, const struct run_result *result, json_t *record);

/* ---- a run by the daemon (via_daemon.c) ---- */

struct cli_transport;

/* Events of such a run, from the loop. */
struct cli_transport_events {
        void (*output)(void *owner, int stream, const void *bytes, size_t len);
        void (*done)(void *owner, const struct run_result *result, json_t *record);
        /* `alone`: nothing has run, so the run may start without the daemon */
        void (*failed)(void *owner, const struct csn_error *error, bool alone);
};

/*
 * Send the request of an unstarted run to the daemon.  `word` is the value of --daemon; NULL: CAISSON_DAEMON's value,
 * or auto.  *ret is NULL if the run should start in this process; then err has the reason.  The request is not changed.
 * Errors: CSN_E_INPUT (unknown word; or the daemon is required and cannot run this request), CSN_E_SYSTEM (the daemon
 * is required and there is none).
 */
int transport_open(struct loop *loop, const char *word, const struct settings *settings, const struct cli_settings *from, struct run *run,
              const struct cli_transport_events *events, void *owner, struct cli_transport **ret, struct csn_error *err);
/* The same for checks, sent one after the other.  *ret_there: *ret is open.  Errors: as above. */
struct daemon_query;
int transport_for_checks(const char *word, const struct settings *settings, const struct cli_settings *from, struct daemon_query *ret, bool *ret_there,
                    bool *ret_always, struct csn_error *err);
const char *transport_path(const struct cli_transport *transport);
void transport_cancel(struct cli_transport *transport);   /* harmless twice, for NULL, and after the end */
void transport_close(struct cli_transport *transport);    /* not from within its events */

#endif
