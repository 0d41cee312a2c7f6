/*
 * What a program imports is what a cold interpreter would find, though the zygote has it in sys.modules already.
 *
 * The module search looks into sys.modules first, so a module that was imported ahead would come before a namesake that the
 * program writes, or that a folder has which the program puts into sys.path.  The imports of a program therefore ask here first.  A module that was
 * imported ahead counts as imported from the time on when the program imports it, or one that imports it.  Before that, each folder is looked at that comes before the
 * module's own in sys.path.  If there is a namesake, that module and all that import it are taken out of sys.modules, and the search goes on as in a cold start.
 */
#ifndef PYTHON_IMPORTS_H
#define PYTHON_IMPORTS_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/*
 * imports_ahead(names, places, needs, path): modules that were imported ahead; for each the index in path of where it was found, or -1
 * if nothing can come before it; and the indexes of those that it imports.  path is sys.path without the program's folder.
 */
PyObject *imports_ahead(PyObject *self, PyObject *args);

/* __import__() and importlib._bootstrap._gcd_import(), with that. */
PyObject *imports_import(PyObject *self, PyObject *args, PyObject *named);
PyObject *imports_gcd_import(PyObject *self, PyObject *args, PyObject *named);
/* gcd_import(function): the one that is called when we have looked. */
PyObject *imports_set_gcd(PyObject *self, PyObject *function);

#endif
