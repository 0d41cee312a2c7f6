/*
 * A case of a grading in a process of its own: the fork, and the wait for its end.  run_process() in cases.py does the
 * same for interpreters without this module.
 *
 * This is C because of memory.  After every fork, each page that the waiting process writes is copied, and Python
 * writes reference counts into every object it reads: between two cases this is some hundred pages, as many as a case
 * itself needs.
 */
#ifndef LANG_PYTHON_GRADING_CASE_H
#define LANG_PYTHON_GRADING_CASE_H

#include "base/base.h"

/* Limits of a case. */
struct case_rules {
        int channel_fd;        /* the engine's channel; closed in the case's process */
        int null_fd;           /* becomes standard input */
        bool alone;            /* no other processes are in the sandbox than its first, this process and its children */
        double cpu_s, wall_s;
        size_t message_max;
};

/* The end of a case. */
struct case_end {
        int status;            /* as from wait4(2) */
        const char *reason;    /* limit that ended the case: "cpu", "wall", "gone" (the engine is gone), or NULL */
        double cpu_s, wall_s;  /* used */
        unsigned long memory;  /* largest resident set in bytes: ru_maxrss of wait4(2) */
        int outputs[2];        /* output to standard output and standard error; the caller closes the descriptors */
        const char *message;   /* the case's message, valid until the next case */
        size_t len;            /* above message_max: the message was too long */
};

/*
 * Fork a case by `fork`, which has the result of fork(2).  In the child case_run() returns 1 with limits and standard
 * streams set; *ret_writer takes the child's message.  In the parent it returns 0 once the child and all its children
 * are gone.  Errors: CSN_E_SYSTEM.
 */
int case_run(const struct case_rules *rules, pid_t (*fork)(void), struct case_end *ret, int *ret_writer,
        struct csn_error *err);

#define CASE_RETURNED "{\"how\":\"returned\",\"value\":\""   /* followed by the value's canonical form, as JSON */

/*
 * Whether a message is {"how":"returned","value":"..." followed by `ending`, so that the text between can be forwarded
 * unchanged.  The text has no escapes but those of quotes and backslashes, because no canonical form needs others.
 */
bool case_is_plain(const char *message, size_t len, const char *ending);

#endif
