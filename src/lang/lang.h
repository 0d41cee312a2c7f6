/*
 * lang: what the engine knows of a programming language: its names, its interpreter, its runner.
 *
 * A runner is a small program in the language itself (src/lang/<language>/run.*), mounted read-only at
 * /opt/caisson.  It is the first code inside that looks at the user's text: it checks the syntax, runs the
 * program as the language's users expect, and tells over the private channel where an error is and what
 * the program's value was.  Adding a language is a folder here and a line in the list of lang.c; or,
 * without a runner and so without values and error positions, a file in the folder engine.languages_dir.
 */
#ifndef LANG_LANG_H
#define LANG_LANG_H

#include "model/settings.h"
#include "wire/wire.h"

struct language {
        const char *name;
        const char *const *aliases;      /* NULL-terminated */
        const char *title;               /* as people write it */
        const char *interpreter;         /* absolute path inside, which is also the host's */
        const char *runner;              /* below /opt/caisson */
        const char *file;                /* the program's name in the home directory */
        const char *const *extensions;   /* of files on the command line, NULL-terminated */
        bool value;                      /* the runner reports the program's value */
        bool cases;                      /* the runner has the role `cases` */
        const char *const *zygote;       /* command line of an interpreter that is forked, before the image's name; or NULL */
        const char *zygote_env;          /* what it needs in its environment besides the usual, and takes out of it; or NULL */
        const char *const *wait_argv;    /* command line of an interpreter that waits for its program (README.md), or NULL */
        const char *const *wait_env;     /* what it needs in its environment besides the usual, or NULL */
        const char *const *cold_env;     /* variables, or prefixes with a * behind, that an interpreter reads when it starts */
        bool starts_fast;                /* its interpreter starts in a millisecond or two: nothing is gained where a run waits for another's start */
        bool wait_plain;                 /* it waits for a program without arguments only */
        const char *const *command;      /* instead of a runner: arguments, in which {file} is the program; or NULL */
        const char *const *context;      /* command line of a context's interpreter, the first option's beginning last; or NULL */
        const struct language *next;     /* of those that were added by a file */
};

extern const struct language lang_python, lang_javascript, lang_typescript, lang_bash;

/* Where the runners are seen inside. */
#define LANG_RUNNER_MOUNT "/opt/caisson"

/* The n-th built-in language, NULL after the last. */
const struct language *lang_at(size_t n);

/*
 * The languages of a folder: NAME.yaml or NAME.json each, with `command` (a list; its first item is the
 * interpreter's absolute path inside, {file} stands for the program), and if wanted `title`, `aliases`,
 * `file` and `extensions`.  Everything lives in the arena; *ret is a chain by `next`, NULL for an empty
 * folder name.  Errors: CSN_E_CONFIG naming file and line.
 */
int lang_load(const char *folder, struct arena *arena, const struct language **ret, struct csn_error *err);

/*
 * By name or alias, in any case, blanks around it ignored; `added` is a chain of lang_load(), or NULL.
 * Errors: CSN_E_LANGUAGE, whose text lists the known names.
 */
int lang_find(const struct language *added, const char *name, const struct language **ret, struct csn_error *err);

/* By the extension of a file's name; NULL if no language has it. */
const struct language *lang_of_file(const struct language *added, const char *path);

/* The command line and environment of an interpreter that waits; everything but `usual` lives in the arena. */
void lang_wait_program(const struct language *language, const char *const *usual, struct arena *arena, struct wire_program *ret);

/* The command line of a context; `warm` is for an interpreter that a zygote forks. */
void lang_context_program(const struct language *language, struct arena *arena, bool warm, struct wire_program *ret);

/*
 * The interpreter's arguments for a program: interpreter, runner, options, file, args.  `options` is the
 * runner's comma list (docs/protocols/runner-channel.md).  The result is NULL-terminated and from the arena; its texts
 * stay the caller's.
 */
char **lang_argv(const struct language *language, struct arena *arena, const char *options, const char *file,
                 char *const *args, size_t args_n, size_t *ret_n);

#endif
