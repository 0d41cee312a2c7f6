/*
 * The cases of a grading, as the Grader of cases.py asks for them: each is the call of a function in a process of its own (case.h), and ends as most do.
 * Where something is not as usual, it is handed to Python, as in fastpath.h and for the same reason: between two cases, too, each object that is looked
 * at is in a page to copy.
 */
#ifndef PYTHON_GRADER_H
#define PYTHON_GRADER_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/base.h"

/*
 * run_cases(first, cases, where, endings, message_max, null, alone, look, answer, end)
 *
 * cases has for each (index, cpu_s, wall_s, function, arguments, named), or None where there is nothing to call.  endings has for each type that a
 * case tells of without more what its message ends with.  look is what a case is looked through for:
 *
 *   the builtins that there were, and those that there are
 *   of tracing and profiling the function that gives what is set and the one that sets it
 *   the names of sys; for two streams that keep nothing back (name there, what it is, how large that is, its attributes) and the same of what is below,
 *   whose name is None, or () if the program's are others; and the name of what flushes
 *   the type of a coroutine, and what to do with one
 *
 * answer(value, error, writer) is called in a case's process where there is more to do than to tell a plain value; it does not come back.  end is (all
 * builtins that there were, what to tell when all cases are through and those are still there, whereupon the process ends), or None.
 *
 * From the first case on, results that are plain ones are sent.  Returns None when all are through, or (position in cases, message, status, reason,
 * cpu_s, wall_s, stdout, stderr) of one that there is to be judged, or (position,) of one without a call.
 */
PyObject *grader_run_cases(PyObject *args, pid_t (*fork)(void));

/* strangers(names, known, values): the keys of names that known has not, or with another value. */
PyObject *grader_unknown_names(PyObject *self, PyObject *args);

#endif
