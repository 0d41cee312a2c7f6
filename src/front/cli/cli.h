/* The parts of the command line; for the files of this folder. */
#ifndef FRONT_CLI_H
#define FRONT_CLI_H

#include "front/views/views.h"

#include <getopt.h>
#include <stdio.h>

#define CLI_SERVE_ADDRESS "127.0.0.1:8080"   /* of caisson serve, without another */

struct cli_option {
        const char *name;
        char letter;               /* or 0 */
        const char *argument;      /* or NULL */
        const char *text;
        const struct choices *choices;   /* the words that it takes; NULL: others, or none */
};

enum cli_group { GROUP_FIRST, GROUP_PROGRAMS, GROUP_DAEMON, GROUP_SETTINGS, GROUP_ABOUT, GROUPS };

struct cli_command {
        const char *name;
        enum cli_group group;      /* of the overview */
        const char *arguments;     /* for the usage line */
        const char *text;          /* one sentence */
        const char *example;       /* a line of a shell */
        int (*run)(int argc, char **argv);
        const struct cli_option *options;   /* ended by name NULL; NULL: the few that are in `arguments` */
        const struct object *const *objects;   /* whose fields with an option are options too; NULL: none */
};

/* Of runs, and of gradings. */
extern const struct object *const cli_run_objects[], *const cli_grade_objects[];

/* Words of options that are no choices of fields.def. */
extern const struct choices choices_transports, choices_forms, choices_definitions, choices_levels;

/* All commands, ended by a name NULL. */
extern const struct cli_command cli_commands[];

extern const struct cli_option cli_run_options[];   /* those that are no field of fields.def */
extern const struct cli_option cli_check_options[], cli_describe_options[], cli_e2b_options[], cli_grade_options[], cli_keys_options[], cli_logs_options[],
        cli_mcp_options[], cli_policy_options[], cli_runs_options[], cli_serve_options[];

/*
 * Hand the options of argv to take(), without letters by their names; optind is where the other arguments are then.
 * Errors: CSN_E_INPUT naming argv[0] and the option, and those of take().
 */
int cli_parse(const struct cli_option *options, int argc, char **argv,
              int (*take)(void *owner, const char *name, const char *value, struct csn_error *err), void *owner, struct csn_error *err);

/* ---- did you mean (suggest.c) ---- */

/* The nearest of the words that it was shown; best is NULL where none is near. */
struct cli_guess {
        const char *typed;
        const char *best;
        size_t far;
};
void cli_guess(struct cli_guess *guess, const char *word);
/* "; did you mean --WORD?", or "". */
const char *cli_guess_text(const struct cli_guess *guess, const char *dashes, char *text, size_t size);
/* Behind a text that refuses a word. */
void cli_suggest_word(struct csn_error *err, const struct choices *choices, const char *typed);
void cli_print_words(const struct choices *choices, const char *between, const char *last, char *text, size_t size);
/* Errors: CSN_E_INPUT, the value is none of the option's words, in any case. */
int cli_check_word(const struct cli_option *option, const char *value, struct csn_error *err);
/* What getopt_long(3) means by '?' and ':', with opterr 0 and ':' first in its letters.  Errors: CSN_E_INPUT, always. */
int cli_bad_option(const char *who, int opt, char *const *argv, const struct option *longs, struct csn_error *err);
/* Each says so, and returns the exit status. */
int cli_unknown_command(const char *typed);
int cli_unknown_part(const char *command, const char *typed);
int cli_unknown_argument(const char *name, const char *typed);
/* On standard error: there is nothing to show, and what to do for there to be something. */
void cli_note(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* A whole file, or standard input for "-", of at most max bytes.  Errors: CSN_E_INPUT naming `field`. */
int cli_read_whole(const char *path, size_t max, const char *field, struct arena *arena, struct bytes *ret, struct csn_error *err);

/* Options that stand for fields, of these objects and in their order; the list ends with NULL. */
struct cli_field {
        const struct object *object;
        const struct field *field;
};
size_t cli_fields_of(const struct object *const *objects, struct cli_field *fields, size_t max);
char cli_field_letter(const struct cli_field *option);   /* or 0 */
const char *cli_field_text(const struct field *field);   /* of its option */
/* Put an option's value, NULL for a flag, into its object.  Lists grow.  Errors: CSN_E_INPUT naming the option. */
int cli_set_field(const struct cli_field *option, void *into, const char *text, struct arena *arena, struct csn_error *err);
void cli_add_text(char ***texts, size_t *n, char *text, struct arena *arena);

/* Commands within sandbox and context; see remote_commands.c. */
struct cli_part {
        const char *command, *name;
        const char *arguments, *text;
        const struct cli_option *options;
        const struct object *const *objects;   /* whose fields with an option are options too; NULL: none */
        bool program;              /* what comes after the first argument is a program and its arguments */
};
extern const struct cli_part cli_parts[];      /* ended by name NULL */
void cli_help_parts(const char *command);

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

/* Settings from --config and --set, which every command takes before its own options. */
struct cli_settings {
        const char *file;
        const char *flags[64];
        size_t flags_n;
};

/* Takes --config FILE and --set KEY=VALUE out of argv.  Returns the new argc, or -1 after a message. */
int cli_take_settings(int argc, char **argv, struct cli_settings *ret);
int cli_load_settings(const struct cli_settings *from, struct settings *ret);
/* Both, then the command with what is left of argv. */
int cli_with_settings(int argc, char **argv, int (*command)(int argc, char **argv, const struct settings *settings));

/* Takes a flag out of argv; whether it was there. */
bool cli_has_flag(int *argc, char **argv, const char *flag);

/* Indented, on standard output; takes the reference. */
void cli_print_json(json_t *json);

/*
 * A text of the engine with the options of the command line behind the fields that it names (vocabulary.c); pointer: of the field of
 * the request that is wrong, or NULL.  From the arena.  The second does so for the error and the warnings of a record.
 */
char *cli_in_options(const char *text, const char *pointer, struct arena *arena);
void cli_record_in_options(json_t *record);

/* "caisson: TEXT" on stderr; returns the exit status that goes with the error. */
int cli_fail(const struct csn_error *err);
int cli_usage(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* By its name, or NULL. */
const struct cli_command *cli_find_command(const char *name);

/* Lines of a help (help.c). */
void cli_print_options(const struct cli_option *options);
void cli_print_fields(const struct cli_field *fields, size_t n);

/* Colour only for people: on a terminal, without NO_COLOR (no-color.org), not for TERM=dumb. */
bool cli_colours(FILE *stream);

/* Control characters of foreign text made visible; out has room for 4 * len bytes.  Returns the bytes used. */
size_t cli_visible(const char *bytes, size_t len, char *out);

/* A cell of a table, and the end of its line.  Control characters are made visible; a text that is long is cut. */
void cli_add_cell(struct buf *buf, int width, const char *text);
void cli_end_line(struct buf *buf);

/* ---- a run as people see it (show.c) ---- */

struct cli_show {
        const char *format;
        bool json, raw, quiet, verbose;
        bool streaming;            /* output goes out as it comes */
        bool tty[3];
        bool closed[3];            /* nobody reads that stream of ours any more */
        uint64_t shown[3];         /* bytes of output that came */
        int exit_status;
        bool lost;                 /* something that was asked for is not there */
};

/* sysexits(3) EX_CANTCREAT: the program ended well, and something that was asked for besides is not there. */
#define EXIT_LOST 73

/* That is so, and a line on standard error says what.  A status that is not 0 stays. */
void show_lost(struct cli_show *show);

/* When the options are known.  Errors of show_check(): CSN_E_INPUT, there is no such format. */
void show_prepare(struct cli_show *show);
int show_check(const struct cli_show *show, struct csn_error *err);

/* False: nobody reads this stream any more, and the run may end. */
bool show_output(struct cli_show *show, int stream, const void *bytes, size_t len);

/* What is to be printed at the end, and the exit status.  record is needed with `json` alone. */
void show_result(struct cli_show *show, const struct run_result *result, json_t *record);

/* ---- a run by way of the daemon (via_daemon.c) ---- */

struct cli_transport;

struct cli_transport_events {
        void (*output)(void *owner, int stream, const void *bytes, size_t len);
        void (*done)(void *owner, const struct run_result *result, json_t *record);
        /* `alone`: nothing has run, and it may be run without the daemon. */
        void (*failed)(void *owner, const struct csn_error *error, bool alone);
};

/*
 * Send the request of a run that is not started to the daemon.  `word` is that of --daemon, or NULL: then
 * CAISSON_DAEMON's, or auto.  *ret stays NULL where the run is to be started here, and err says why.  The
 * request stays as it was.  Errors: CSN_E_INPUT (no such word; it has to be the daemon, and this request is
 * not for it), CSN_E_SYSTEM (it has to be the daemon, and there is none).
 */
int transport_open(struct loop *loop, const char *word, const struct settings *settings, const struct cli_settings *from, struct run *run,
              const struct cli_transport_events *events, void *owner, struct cli_transport **ret, struct csn_error *err);
/* The same for checks, which are asked one after the other.  *ret_there: *ret is open. */
struct daemon_query;
int transport_for_checks(const char *word, const struct settings *settings, const struct cli_settings *from, struct daemon_query *ret, bool *ret_there,
                    bool *ret_always, struct csn_error *err);
const char *transport_path(const struct cli_transport *transport);
void transport_cancel(struct cli_transport *transport);   /* harmless twice, for none, and after the end */
void transport_close(struct cli_transport *transport);    /* not from within its events */

#endif
