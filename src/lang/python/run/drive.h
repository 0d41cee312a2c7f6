/*
 * Runs a program so that the program's frames are the first frames of the interpreter, without frames of the runner
 * below.
 *
 * A runner is a generator (runner.py).  To run the program's code, the generator yields it; while the code runs, the
 * generator's frame is on no stack.  drive() makes the interpreter call the generator where Python calls a hook without
 * any frame: in sys.excepthook, for the KeyboardInterrupt that ends the main file (PyErr_Print() in Python/pythonrun.c,
 * in all versions).
 *
 * The generator yields (work, given, tracing).
 *
 * work: a pair (code, last), executed in the dict `given`; last may be None.  Or a function, called with the arguments
 * in the tuple `given`.  tracing: (trace function, profile function) for the work, or None.
 *
 * The generator is sent (error, value, (trace function, profile function)): an exception with the traceback of the
 * program alone, or None and the value; and the functions with which the program traces itself from then on.
 *
 * The generator returns (ending, tracing).  The ending is None, a SystemExit or a KeyboardInterrupt, and the
 * interpreter ends with it.
 */
#ifndef LANG_PYTHON_RUN_DRIVE_H
#define LANG_PYTHON_RUN_DRIVE_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/*
 * drive(generator, main): the next exception that ends the main file starts the generator.  The reference to the main
 * file's module is kept for the interpreter's finalization.
 */
PyObject *drive_begin(PyObject *self, PyObject *args);

/* Execute (code, last) in names, as exec() and eval().  Returns the value of the last; NULL with a Python error. */
PyObject *drive_execute(PyObject *code, PyObject *last, PyObject *names);

/* Executes a pair; drive_execute() by default. */
extern PyObject *(*drive_run)(PyObject *code, PyObject *last, PyObject *names);

#endif
