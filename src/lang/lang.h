/*
 * lang: what the engine knows of a programming language: its names, its interpreter, its runner.
 *
 * A runner is a small program in the language itself (src/lang/<language>/run.*), mounted read-only at
 * /opt/caisson.  It is the first code inside that looks at the user's text: it checks the syntax, runs the
 * program as the language's users expect, and tells over the private channel where an error is and what
 * the program's value was.  Adding a language is a folder here and a line in the list of lang.c.
 */
#ifndef LANG_LANG_H
#define LANG_LANG_H

#include "base/base.h"

struct language {
        const char *name;
        const char *const *aliases;      /* NULL-terminated */
        const char *title;               /* as people write it */
        const char *interpreter;         /* absolute path inside, which is also the host's */
        const char *runner;              /* below /opt/caisson */
        const char *file;                /* the program's name in the home directory */
        const char *const *extensions;   /* of files on the command line, NULL-terminated */
        bool value;                      /* the runner reports the program's value */
};

extern const struct language lang_python, lang_javascript, lang_typescript, lang_bash;

/* Where the runners are seen inside. */
#define LANG_RUNNER_MOUNT "/opt/caisson"

/* The n-th language, NULL after the last. */
const struct language *lang_at(size_t n);

/*
 * By name or alias, in any case, blanks around it ignored.  Errors: CSN_E_LANGUAGE, whose text lists the
 * known names.
 */
int lang_find(const char *name, const struct language **ret, struct csn_error *err);

/* By the extension of a file's name; NULL if no language has it. */
const struct language *lang_of_file(const char *path);

/*
 * The interpreter's arguments for a program: interpreter, runner, options, file, args.  `options` is the
 * runner's comma list (src/lang/README.md).  NULL-terminated, from the arena.
 */
char **lang_argv(const struct language *language, struct arena *arena, const char *options, const char *file,
                 char *const *args, size_t args_n, size_t *ret_n);

#endif
