/*
 * The program's frames are the first ones of its interpreter, as if nothing of ours were there.
 *
 * A runner is a generator (runner.py).  Where the program's code is to run, the generator yields that code, and its own frame is
 * on no stack until it is sent the result.  drive() has the interpreter call the generator where a hook of Python's is called with no frame at
 * all: in sys.excepthook, for the KeyboardInterrupt that the main file ends with (PyErr_Print() in Python/pythonrun.c, in all versions).
 *
 * What the generator yields is (work, given, tracing).
 *
 * work: a pair (code, last), executed in the dict `given`; last may be None.  Or a function, called with the arguments in the tuple `given`.
 * tracing: (trace function, profile function) for that work, or None.
 *
 * What the generator is sent is (error, value, (trace function, profile function)): an exception with the traceback of the program alone,
 * or None and the value, and what the program traces itself with from there on.
 *
 * What the generator returns is (ending, tracing).  The ending is None, a SystemExit or a KeyboardInterrupt, and the interpreter ends with it.
 */
#ifndef PYTHON_DRIVE_H
#define PYTHON_DRIVE_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* drive(generator, main): the next exception that ends the main file starts it.  The main file's module is kept for what the interpreter does to it later. */
PyObject *drive_begin(PyObject *self, PyObject *args);

/* The pair (code, last) in names, as exec() and eval() do; the value of the last.  NULL with the error. */
PyObject *drive_execute(PyObject *code, PyObject *last, PyObject *names);

/* What is done with a pair; drive_execute() if nothing else is said. */
extern PyObject *(*drive_run)(PyObject *code, PyObject *last, PyObject *names);

#endif
