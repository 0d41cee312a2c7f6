#include "lang/python/zygote/imports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "base/base.h"

/* Not of the limited API of 3.8, and the same in all versions since. */
/* NOLINTBEGIN(readability-redundant-declaration): some headers declare both, too, but not weak */
extern void Py_LeaveRecursiveCall(void) __attribute__((weak));
extern int Py_EnterRecursiveCall(const char *where) __attribute__((weak));
/* NOLINTEND(readability-redundant-declaration) */

struct module {
        PyObject *name;
        int place;
        int needs, needs_n;     /* beginning and length of its part of needs[] */
};

/* Modules imported ahead; SEEN: known to the program, or removed. */
enum { AHEAD, SEEN };

static PyObject *numbers;       /* of modules, by name; NULL: none */
static PyObject *known;         /* the list of folders indexed by path[] of a module */
static struct module *modules;
static int *needs, modules_n;
static char *states, *shadowed, *passed;
static PyObject *gcd_import;

static int number_of(PyObject *name)
{
        PyObject *number = numbers ? PyDict_GetItem(numbers, name) : NULL;
        return number ? (int)PyLong_AsLong(number) : -1;
}

/* ---- modules in a folder ---- */

static bool is_package(int folder, const char *name)
{
        char path[NAME_MAX + 16];
        snprintf(path, sizeof path, "%s/__init__.py", name);
        return faccessat(folder, path, F_OK, 0) == 0;
}

/* Whether a name in a folder is a module's; *ret_len is its length without the suffix. */
static bool is_module(int folder, const char *name, size_t *ret_len)
{
        const char *end = strchr(name, '.');
        *ret_len = end ? (size_t)(end - name) : strlen(name);
        if (!end)
                return is_package(folder, name);
        const char *last = strrchr(name, '.');
        return strcmp(last, ".so") == 0 || (last == end && (strcmp(last, ".py") == 0 || strcmp(last, ".pyc") == 0));
}

static bool can_be_shadowed(int i)
{
        return i >= 0 && states[i] == AHEAD && modules[i].place >= 0 && !passed[modules[i].place];
}

static bool look_at_entry(int folder, const char *name)
{
        size_t len;
        if (!is_module(folder, name, &len) || len == 0)
                return false;
        PyObject *text = PyUnicode_DecodeFSDefaultAndSize(name, (Py_ssize_t)len);
        int i = text ? number_of(text) : -1;
        Py_DecRef(text);
        PyErr_Clear();
        if (!can_be_shadowed(i))
                return false;
        shadowed[i] = 1;
        return true;
}

static bool look_at_folder(int folder)
{
        _Alignas(struct dirent64) char entries[4096];
        bool found = false;
        long n;
        while ((n = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
                for (long at = 0; at < n; at += ((const struct dirent64 *)(entries + at))->d_reclen)
                        found |= look_at_entry(folder, ((const struct dirent64 *)(entries + at))->d_name);
        return found;
}

/* An entry other than a folder, such as a zip file, has an importer to ask. */
static bool ask_importer(PyObject *entry)
{
        PyObject *importer = PyImport_GetImporter(entry);
        bool found = false;
        for (int i = 0; importer && importer != Py_None && i < modules_n; i++) {
                if (!can_be_shadowed(i))
                        continue;
                PyObject *spec = PyObject_CallMethod(importer, "find_spec", "O", modules[i].name);
                if (spec && spec != Py_None) {
                        shadowed[i] = 1;
                        found = true;
                }
                Py_DecRef(spec);
        }
        Py_DecRef(importer);
        PyErr_Clear();
        return found;
}

static bool look_at(PyObject *entry)
{
        PyObject *bytes = PyUnicode_Check(entry) ? PyUnicode_EncodeFSDefault(entry) : NULL;
        const char *path = bytes ? PyBytes_AsString(bytes) : NULL;
        auto_fd folder = path ? open(*path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        bool is_other = path && folder < 0 && errno == ENOTDIR;
        Py_DecRef(bytes);
        PyErr_Clear();
        return folder >= 0 ? look_at_folder(folder) : is_other && ask_importer(entry);
}

/* ---- sys.path ---- */

static bool is_same(PyObject *a, PyObject *b)
{
        return a == b || (PyUnicode_Check(a) && PyUnicode_Check(b) && PyUnicode_Compare(a, b) == 0);
}

static int place_of(PyObject *entry)
{
        for (Py_ssize_t i = 0; i < PyList_Size(known); i++)
                if (is_same(PyList_GetItem(known, i), entry))
                        return (int)i;
        return -1;
}

/* Find the modules with a namesake earlier in the path. */
static bool has_namesakes(void)
{
        PyObject *path = PySys_GetObject("path");
        bool found = false;
        memset(shadowed, 0, (size_t)modules_n);
        memset(passed, 0, (size_t)PyList_Size(known));
        for (Py_ssize_t i = 0; path && PyList_Check(path) && i < PyList_Size(path); i++) {
                PyObject *entry = PyList_GetItem(path, i);
                int place = place_of(entry);
                if (place >= 0)
                        passed[place] = 1;
                else
                        found |= look_at(entry);
        }
        return found;
}

/* ---- modules imported ahead ---- */

static void see(int i)
{
        if (states[i] == SEEN)
                return;
        states[i] = SEEN;
        for (int n = 0; n < modules[i].needs_n; n++)
                see(needs[modules[i].needs + n]);
}

static bool needs_shadowed(const struct module *one)
{
        for (int n = 0; n < one->needs_n; n++)
                if (shadowed[needs[one->needs + n]])
                        return true;
        return false;
}

/* Modules with a namesake, and their importers: as if never imported. */
static void drop_shadowed(void)
{
        bool more = true;
        while (more) {
                more = false;
                for (int i = 0; i < modules_n; i++) {
                        if (states[i] != AHEAD || shadowed[i] || !needs_shadowed(&modules[i]))
                                continue;
                        shadowed[i] = 1;
                        more = true;
                }
        }
        PyObject *loaded = PyImport_GetModuleDict();
        for (int i = 0; i < modules_n; i++) {
                if (states[i] != AHEAD || !shadowed[i])
                        continue;
                states[i] = SEEN;
                if (PyObject_DelItem(loaded, modules[i].name) < 0)
                        PyErr_Clear();
        }
}

static void look(PyObject *name)
{
        int i = number_of(name);
        if (i < 0 || states[i] == SEEN)
                return;
        if (has_namesakes())
                drop_shadowed();
        if (states[i] == AHEAD)
                see(i);
}

/* from PACKAGE import NAME, ... may name modules. */
static void look_at_names(PyObject *package, PyObject *names)
{
        if (number_of(package) < 0 || !PyTuple_Check(names))
                return;
        for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
                PyObject *name = PyUnicode_FromFormat("%U.%S", package, PyTuple_GetItem(names, i));
                if (name)
                        look(name);
                Py_DecRef(name);
        }
        PyErr_Clear();
}

static void look_from(PyObject *name, PyObject *names)
{
        look(name);
        if (names)
                look_at_names(name, names);
}

PyObject *imports_import(PyObject *self, PyObject *args, PyObject *named)
{
        static char *words[] = { "name", "globals", "locals", "fromlist", "level", NULL };
        PyObject *name, *globals = NULL, *locals = NULL, *names = NULL;
        int level = 0;
        (void)self;
        if (!PyArg_ParseTupleAndKeywords(args, named, "U|OOOi:__import__", words, &name, &globals, &locals, &names,
                    &level))
                return NULL;
        if (numbers && level == 0)
                look_from(name, names);
        /* The interpreter's own is called with no call between. */
        if (Py_LeaveRecursiveCall)
                Py_LeaveRecursiveCall();
        PyObject *module = PyImport_ImportModuleLevelObject(name, globals, locals, names, level);
        if (Py_EnterRecursiveCall && Py_EnterRecursiveCall("") < 0) {
                Py_DecRef(module);
                return NULL;
        }
        return module;
}

PyObject *imports_gcd_import(PyObject *self, PyObject *args, PyObject *named)
{
        PyObject *name = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
        (void)self;
        if (numbers && name && PyUnicode_Check(name))
                look(name);
        return PyObject_Call(gcd_import, args, named);
}

PyObject *imports_set_gcd(PyObject *self, PyObject *function)
{
        (void)self;
        Py_IncRef(function);
        gcd_import = function;
        Py_IncRef(Py_None);
        return Py_None;
}

/* ---- in the zygote ---- */

static int count_needs(PyObject *lists)
{
        int n = 0;
        for (Py_ssize_t i = 0; i < PyList_Size(lists); i++)
                n += (int)PyList_Size(PyList_GetItem(lists, i));
        return n;
}

static void take_needs(PyObject *list, struct module *one, int *next)
{
        one->needs = *next;
        one->needs_n = (int)PyList_Size(list);
        for (int n = 0; n < one->needs_n; n++)
                needs[(*next)++] = (int)PyLong_AsLong(PyList_GetItem(list, n));
}

PyObject *imports_ahead(PyObject *self, PyObject *args)
{
        PyObject *names, *places, *lists, *found = PyDict_New();
        int next = 0;
        (void)self;
        if (!found ||
                !PyArg_ParseTuple(args, "O!O!O!O!", &PyList_Type, &names, &PyList_Type, &places, &PyList_Type, &lists,
                        &PyList_Type, &known))
                return NULL;
        Py_IncRef(known);
        Py_IncRef(names);
        modules_n = (int)PyList_Size(names);
        modules = calloc((size_t)modules_n + 1, sizeof *modules);
        needs = calloc((size_t)count_needs(lists) + 1, sizeof *needs);
        states = calloc((size_t)modules_n + 1, 1);
        shadowed = calloc((size_t)modules_n + 1, 1);
        passed = calloc((size_t)PyList_Size(known) + 1, 1);
        if (!modules || !needs || !states || !shadowed || !passed)
                return PyErr_NoMemory();
        for (int i = 0; i < modules_n; i++) {
                PyObject *number = PyLong_FromLong(i);
                modules[i].name = PyList_GetItem(names, i);
                modules[i].place = (int)PyLong_AsLong(PyList_GetItem(places, i));
                take_needs(PyList_GetItem(lists, i), &modules[i], &next);
                if (!number || PyDict_SetItem(found, modules[i].name, number) < 0)
                        return NULL;
                Py_DecRef(number);
        }
        if (PyErr_Occurred())
                return NULL;
        numbers = found;
        Py_IncRef(Py_None);
        return Py_None;
}
