/*
 * Fast path of the cases of a grading, for the class Grader in cases.py: each case is a call of a function in a process
 * of its own (case.h) with an ordinary end.  All other cases are handed to Python, as in fastpath.h and for the same
 * reason: each object read between two cases dirties a page.
 */
#ifndef LANG_PYTHON_ZYGOTE_CASE_FASTPATH_H
#define LANG_PYTHON_ZYGOTE_CASE_FASTPATH_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/base.h"

/*
 * run_cases(first, cases, where, endings, message_max, null, alone, look, answer, end)
 *
 * cases: for each case (index, cpu_s, wall_s, function, arguments, named), or None without a call.  endings: for each
 * type of value with a plain report, the end of its message.  look: the state to be compared after a case:
 *
 *   the builtins before, and the builtins now
 *   for tracing and for profiling, the function that reads the setting and the function that sets it
 *   the names of sys; for two unbuffered streams (name in sys, object, its size, its attributes) and the same of the
 *   object below, with the name None, or () if the program replaced the streams; and the name of the flush function
 *   the type of a coroutine, and the function that handles one
 *
 * answer(value, error, writer) is called in the case's process when the report is not a plain value; it does not
 * return.  end: (all builtins before, the message after all cases if the builtins are unchanged, whereupon the process
 * ends), or None.
 *
 * Plain results are sent from the first case on.  Returns None after the last case, or (position in cases, message,
 * status, reason, cpu_s, wall_s, memory, stdout, stderr) for a case that Python must judge, or (position,) for a case
 * without a call.
 */
PyObject *grader_run_cases(PyObject *args, pid_t (*fork)(void));

/* strangers(names, known, values): the keys of `names` missing in `known`, or with another value there. */
PyObject *grader_unknown_names(PyObject *self, PyObject *args);

#endif
