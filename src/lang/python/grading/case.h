/*
 * A case of a grading in a process of its own: the fork and the wait for its end, as run_process() in cases.py does them for
 * interpreters without this module.
 *
 * Here it is C because of memory.  After every fork, whatever the waiting process touches is copied, and Python counts
 * references in all that it looks at: between two cases that is some hundred pages, as much as a case itself needs.
 */
#ifndef PYTHON_CASE_H
#define PYTHON_CASE_H

#include "base/base.h"

struct case_rules {
        int channel_fd;        /* the engine's; closed in the case's process */
        int null_fd;           /* what standard input is */
        bool alone;            /* in the sandbox is nobody but its first process, this one and what it starts */
        double cpu_s, wall_s;
        size_t message_max;
};

struct case_end {
        int status;            /* of wait4(2) */
        const char *reason;    /* why it was ended: "cpu", "wall", "gone" (the engine is), or NULL */
        double cpu_s, wall_s;  /* used */
        int outputs[2];        /* what it wrote to standard output and standard error; the caller's to close */
        const char *message;   /* what it told, until the next case */
        size_t len;            /* more than message_max: it told too much */
};

/*
 * Fork by `fork`, which is told nothing and gives what fork(2) does.  In the new process this returns 1 with limits and standard
 * streams set and *ret_writer, where it is to tell its end.  In the old one it returns 0 when that process and all that it
 * started are gone.  Errors: CSN_E_SYSTEM.
 */
int case_run(const struct case_rules *rules, pid_t (*fork)(void), struct case_end *ret, int *ret_writer, struct csn_error *err);

#define CASE_RETURNED "{\"how\":\"returned\",\"value\":\""   /* and the value's canonical form, as JSON writes it */

/*
 * Whether a message is {"how":"returned","value":"..." and then one of the usual endings, so that what is between can be handed
 * on as it is.  That text has no escapes but those of quotes and backslashes, as no canonical form needs others.
 */
bool case_is_plain(const char *message, size_t len, const char *ending);

#endif
