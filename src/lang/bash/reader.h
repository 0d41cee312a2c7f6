/*
 * What context.c and the object that it has the shell load (reader.c) agree on.
 *
 * The shell has none of these descriptors: it opens context.c's by their names in /proc, each time for one use.
 */
#ifndef LANG_BASH_READER_H
#define LANG_BASH_READER_H

#define BASH "/bin/bash"

enum reader_fd {
        READER_GO_FD = 10,       /* a pipe; one byte for each execution */
        READER_REPORTS_FD,       /* a pipe; lines: "b" as an execution begins, "e STATUS" when it has ended */
        READER_CODE_FD,          /* a file in memory: the text */
        READER_SETTINGS_FD,      /* a file in memory, see below */
};

/*
 * Settings begin with a byte that is not 0 once the execution was interrupted.  Texts follow, each with a NUL behind it:
 * the folder to go to, "" if there is none, and the assignments of variables for this execution, quoted as Bash reads them.
 * One that is empty is the last.
 */
#define READER_SETTINGS_MAX (16 << 20)

#endif
