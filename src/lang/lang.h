/*
 * lang: the engine's knowledge of a programming language: names, interpreter, runner.
 *
 * A runner is a small program in the language itself (src/lang/LANGUAGE/), mounted read-only at /opt/caisson.  The
 * runner is the first code inside that reads the user's text: it checks the syntax, runs the program as users of the
 * language expect, and reports errors with their positions and the program's value over the private channel.  A new
 * language is a folder here and a line in the list of lang.c; or a file in the folder engine.languages_dir, then
 * without a runner, values and error positions.
 */
#ifndef LANG_LANG_H
#define LANG_LANG_H

#include "model/settings.h"
#include "wire/wire.h"

/* One language.  Constant, or from the arena of lang_load(). */
struct language {
        const char *name;
        const char *const *aliases;      /* NULL-terminated */
        const char *title;               /* as people write the name */
        const char *interpreter;         /* absolute path, inside and on the host */
        const char *runner;              /* below /opt/caisson */
        const char *file;                /* name of the program's file in the home directory */
        const char *prelude;             /* name of the prelude's file beside it; NULL: no prelude is possible */
        const char *const *extensions;   /* of files on the command line, NULL-terminated */
        bool value;                      /* the runner reports the program's value */
        bool cases;                      /* the runner has the role `cases` */
        const char *const *zygote;       /* command line of a zygote, before the image's name; or NULL */
        const char *zygote_env;          /* additional variable for a zygote, which removes it; or NULL */
        /* command line of an interpreter that waits for its program (docs/protocols/runner-channel.md), or NULL */
        const char *const *wait_argv;
        const char *const *wait_env; /* additional environment of such an interpreter, or NULL */
        const char *const *cold_env; /* variables that an interpreter reads at its start; a final * means a prefix */
        bool starts_fast; /* the interpreter starts in 1 to 2 ms: waiting for another run's start gains nothing */
        bool wait_plain;             /* interpreters wait only for programs without arguments */
        const char *const *command;  /* replaces the runner: arguments, in which {file} is the program; or NULL */
        /* command line of a context's interpreter, ending with the start of its first option; or NULL */
        const char *const *context;
        const struct language *next;     /* next language added by a file */
};

extern const struct language lang_python, lang_javascript, lang_typescript, lang_bash;

/* The folder of the runners inside a sandbox. */
#define LANG_RUNNER_MOUNT "/opt/caisson"

/* The n-th built-in language, NULL after the last. */
const struct language *lang_at(size_t n);

/*
 * Load the languages of a folder: one NAME.yaml or NAME.json each, with `command` (a list; its first item is the
 * interpreter's absolute path inside, {file} stands for the program), and optionally `title`, `aliases`, `file` and
 * `extensions`.  Everything lives in the arena; *ret is a list linked by `next`, NULL for an empty folder name.
 * Errors: CSN_E_CONFIG naming file and line.
 */
int lang_load(const char *folder, struct arena *arena, const struct language **ret, struct csn_error *err);

/*
 * Find a language by name or alias, in any case, without surrounding blanks; `added` is a list of lang_load(), or NULL.
 * Errors: CSN_E_LANGUAGE, with a text that lists the known names.
 */
int lang_find(const struct language *added, const char *name, const struct language **ret, struct csn_error *err);

/* The language with the extension of a file's name; NULL: none. */
const struct language *lang_of_file(const struct language *added, const char *path);

/*
 * The command line and environment of a waiting interpreter.  All but the texts of `usual` lives in the arena.
 * `interpreter`, here and below: the path of the interpreter in an image, or NULL.
 */
void lang_wait_program(const struct language *language, const char *interpreter, const char *const *usual,
        struct arena *arena, struct wire_program *ret);

/* The command line of a context; `warm`: for an interpreter forked by a zygote. */
void lang_context_program(const struct language *language, const char *interpreter, struct arena *arena, bool warm,
        struct wire_program *ret);

/*
 * The interpreter's arguments for a program: interpreter, runner, options, file, args.  `options` is the runner's
 * comma-separated list (docs/protocols/runner-channel.md).  The result is NULL-terminated and from the arena; the given
 * texts stay the caller's.
 */
char **lang_argv(const struct language *language, const char *interpreter, struct arena *arena, const char *options,
        const char *file, char *const *args, size_t args_n, size_t *ret_n);

#endif
