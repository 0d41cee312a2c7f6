/*
 * The last statement of a program is compiled by itself, for its value.  python3 compiles a program as one text, in which
 * equal constants are one object (merge_const_one() in Python/compile.c): `x is "hello world!"` tells whether they are.
 */
#ifndef PYTHON_CONSTANTS_H
#define PYTHON_CONSTANTS_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The code `last` with constants of `code` in place of its own that are equal to them.  A new reference, and never an error: at worst it is `last`. */
PyObject *constants_share(PyObject *code, PyObject *last);

/* share_constants(code, last): the same. */
PyObject *constants_share_of(PyObject *self, PyObject *args);

#endif
