/*
 * Imports of a program find what a cold interpreter would find, although the zygote has preloaded modules in
 * sys.modules.
 *
 * The module search reads sys.modules first, so a preloaded module would hide a module of the same name which the
 * program writes, or finds in a folder added to sys.path.  So a program's imports come here first.  A preloaded module
 * counts as imported once the program imports the module, or one of its importers.  Before, each folder in sys.path
 * ahead of the module's own folder is searched.  If a module of the same name is there, the preloaded module and all
 * its importers are removed from sys.modules, and the search continues as in a cold start.
 */
#ifndef LANG_PYTHON_ZYGOTE_IMPORTS_H
#define LANG_PYTHON_ZYGOTE_IMPORTS_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/*
 * ahead(names, places, needs, path): the preloaded modules; for each the index in path of its folder, or -1 if no
 * folder can precede it; and the indexes of the modules that it imports.  path is sys.path without the program's
 * folder.
 */
PyObject *imports_ahead(PyObject *self, PyObject *args);

/* __import__() and importlib._bootstrap._gcd_import() with this search. */
PyObject *imports_import(PyObject *self, PyObject *args, PyObject *named);
PyObject *imports_gcd_import(PyObject *self, PyObject *args, PyObject *named);
/* set_gcd_import(function): the function to call after the search. */
PyObject *imports_set_gcd(PyObject *self, PyObject *function);

#endif
