/*
 * Shared constants of a program's two code objects.  The last statement is compiled separately, for its value.  python3
 * compiles a program as one text, in which equal constants are one object (merge_const_one() in Python/compile.c): `x
 * is "hello world!"` shows the difference.
 */
#ifndef LANG_PYTHON_RUN_CONSTANTS_H
#define LANG_PYTHON_RUN_CONSTANTS_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/*
 * The code `last`, with each constant replaced by an equal constant of `code`.  A new reference; on failure `last`
 * itself, never an error.
 */
PyObject *constants_share(PyObject *code, PyObject *last);

/* share_constants(code, last): the same for Python. */
PyObject *constants_share_of(PyObject *self, PyObject *args);

#endif
