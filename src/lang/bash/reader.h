/*
 * Shared by context.c and reader.c, the object that the shell loads.
 *
 * The shell itself has none of these descriptors: it opens context.c's through /proc, each time for one use.
 */
#ifndef LANG_BASH_READER_H
#define LANG_BASH_READER_H

#define BASH "/bin/bash"

enum reader_fd {
        READER_GO_FD = 10,       /* pipe; one byte per execution */
        READER_REPORTS_FD,       /* pipe; lines: "b" at the begin of an execution, "e STATUS" at its end */
        READER_CODE_FD,          /* memfd: the text */
        READER_SETTINGS_FD,      /* memfd, see below */
};

/*
 * Settings begin with a byte, not 0 after an interrupt.  Texts follow, each with a NUL: the working directory, "" for
 * none, and the assignments of variables for this execution, quoted for Bash.  An empty text is the last.
 * READER_SETTINGS_MAX: bytes.
 */
#define READER_SETTINGS_MAX (16 << 20)

#endif
