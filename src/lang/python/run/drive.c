#include "lang/python/run/drive.h"

#include <stdbool.h>

/* Of all versions since 3.9, but not of the limited API of 3.8. */
extern int PySys_Audit(const char *event, const char *format, ...) __attribute__((weak));
/* NOLINTBEGIN(readability-redundant-declaration): some headers declare both, too, but not weak */
extern void Py_LeaveRecursiveCall(void) __attribute__((weak));
extern int Py_EnterRecursiveCall(const char *where) __attribute__((weak));
/* NOLINTEND(readability-redundant-declaration) */

enum { TRACE, PROFILE, FUNCTIONS_N };

static const char *const getter_names[FUNCTIONS_N] = { "gettrace", "getprofile" };
static const char *const setter_names[FUNCTIONS_N] = { "settrace", "setprofile" };

static PyObject *generator, *main_module, *hook_before, *getters[FUNCTIONS_N], *setters[FUNCTIONS_N];

PyObject *(*drive_run)(PyObject *code, PyObject *last, PyObject *names) = drive_execute;

/* Like exec() and eval() (Python/bltinmodule.c), without another call: a program may count its depth. */
static PyObject *execute(PyObject *code, PyObject *names)
{
        if (!PyDict_GetItemString(names, "__builtins__") &&
                PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) < 0)
                return NULL;
        if (PySys_Audit && PySys_Audit("exec", "O", code) < 0)
                return NULL;
        return PyEval_EvalCode(code, names, names);
}

PyObject *drive_execute(PyObject *code, PyObject *last, PyObject *names)
{
        PyObject *value = execute(code, names);
        if (value && last != Py_None) {
                Py_DecRef(value);
                value = execute(last, names);
        }
        /* A signal during the program's last operation is still the program's. */
        if (value && Py_MakePendingCalls() < 0) {
                Py_DecRef(value);
                value = NULL;
        }
        return value;
}

static PyObject *nothing(void)
{
        Py_IncRef(Py_None);
        return Py_None;
}

/* Take the tracing functions.  None is set first: a tracing function must not see the other call. */
static PyObject *take_tracing(void)
{
        PyObject *found[FUNCTIONS_N];
        for (int i = 0; i < FUNCTIONS_N; i++) {
                found[i] = PyObject_CallObject(getters[i], NULL);
                if (!found[i]) {
                        PyErr_Clear();
                        found[i] = nothing();
                }
                if (found[i] != Py_None)
                        Py_DecRef(PyObject_CallFunctionObjArgs(setters[i], Py_None, NULL));
        }
        return Py_BuildValue("(NN)", found[TRACE], found[PROFILE]);
}

static bool give_tracing(PyObject *tracing)
{
        if (!PyTuple_Check(tracing))
                return true;
        for (int i = 0; i < FUNCTIONS_N; i++) {
                PyObject *function = PyTuple_GetItem(tracing, i), *set = NULL;
                if (!function ||
                        (function != Py_None && !(set = PyObject_CallFunctionObjArgs(setters[i], function, NULL))))
                        return false;
                Py_DecRef(set);
        }
        return true;
}

/* Take the current exception, with its traceback. */
static PyObject *take_error(void)
{
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        PyErr_NormalizeException(&type, &error, &trace);
        if (trace)
                PyException_SetTraceback(error, trace);
        Py_DecRef(type);
        Py_DecRef(trace);
        return error;
}

static PyObject *work(PyObject *asked)
{
        PyObject *what = PyTuple_GetItem(asked, 0), *given = PyTuple_GetItem(asked, 1),
                 *tracing = PyTuple_GetItem(asked, 2);
        if (!tracing || !give_tracing(tracing))
                return NULL;
        if (PyTuple_Check(what) && PyTuple_Size(what) == 2)
                return drive_run(PyTuple_GetItem(what, 0), PyTuple_GetItem(what, 1), given);
        return PyObject_CallObject(what, given);
}

/* (error, value, tracing) for a request; takes its reference. */
static PyObject *reply_to(PyObject *asked)
{
        PyObject *value = work(asked), *error = value ? nothing() : take_error();
        Py_DecRef(asked);
        PyObject *tracing = take_tracing();
        return Py_BuildValue("(NNN)", error, value ? value : nothing(), tracing);
}

/* The value returned by the generator; NULL with its error. */
static PyObject *drive(void)
{
        PyObject *reply = nothing(), *asked;
        while (reply && (asked = PyObject_CallMethod(generator, "send", "(O)", reply))) {
                Py_DecRef(reply);
                reply = reply_to(asked);
        }
        Py_DecRef(reply);
        if (!PyErr_ExceptionMatches(PyExc_StopIteration))
                return NULL;
        PyObject *stop = take_error(), *result = PyObject_GetAttrString(stop, "value");
        Py_DecRef(stop);
        return result;
}

/* Flush a stream, like the interpreter after the main file. */
static void flush(const char *name)
{
        PyObject *stream = PySys_GetObject(name), *result = stream ? PyObject_CallMethod(stream, "flush", NULL) : NULL;
        Py_DecRef(result);
        PyErr_Clear();
}

/* An error of ours is printed and ends the interpreter, before the interrupt of its start would. */
static void tell_own_error(void)
{
        if (PyErr_ExceptionMatches(PyExc_SystemExit))
                return;
        PyErr_Print();
        PyErr_SetObject(PyExc_SystemExit, Py_True);
}

/* Set the SystemExit of the interpreter; or nothing, and the interpreter dies of the interrupt of its start. */
static PyObject *end_with(PyObject *result)
{
        PyObject *ending, *tracing;
        if (!PyArg_ParseTuple(result, "OO", &ending, &tracing) || !give_tracing(tracing))
                return NULL;
        flush("stderr");
        flush("stdout");
        if (ending == Py_None)
                PyErr_SetObject(PyExc_SystemExit, Py_None);
        else if (!PyErr_GivenExceptionMatches(ending, PyExc_KeyboardInterrupt))
                PyErr_SetObject((PyObject *)Py_TYPE(ending), ending);
        return PyErr_Occurred() ? NULL : nothing();
}

static void forget_start(void)
{
        static const char *const left[] = { "last_type", "last_value", "last_traceback", "last_exc", NULL };
        for (const char *const *name = left; *name; name++)
                PySys_SetObject(*name, NULL);
        PyErr_Clear();
        PySys_SetObject("excepthook", hook_before);
}

/*
 * Calls on the way to a hook, but not to a main file: before Python 3.12 such calls count as the program's recursion.
 */
#define DEEPER 1

static PyObject *hook(PyObject *self, PyObject *args)
{
        (void)self, (void)args;
        forget_start();
        for (int i = 0; i < DEEPER && Py_LeaveRecursiveCall; i++)
                Py_LeaveRecursiveCall();
        PyObject *result = drive(), *ended = result ? end_with(result) : NULL;
        if (!ended)
                tell_own_error();
        for (int i = 0; i < DEEPER && Py_EnterRecursiveCall; i++)
                if (Py_EnterRecursiveCall("") < 0 && !ended)
                        PyErr_SetObject(PyExc_SystemExit, Py_True);
        Py_DecRef(result);
        return ended;
}

static PyMethodDef hook_method = { "excepthook", hook, METH_VARARGS, NULL };

PyObject *drive_begin(PyObject *self, PyObject *args)
{
        (void)self;
        if (!PyArg_ParseTuple(args, "OO", &generator, &main_module))
                return NULL;
        Py_IncRef(generator);
        Py_IncRef(main_module);
        hook_before = PySys_GetObject("excepthook");
        Py_IncRef(hook_before);
        for (int i = 0; i < FUNCTIONS_N; i++) {
                getters[i] = PySys_GetObject(getter_names[i]);
                setters[i] = PySys_GetObject(setter_names[i]);
                Py_IncRef(getters[i]);
                Py_IncRef(setters[i]);
        }
        PyObject *function = PyCFunction_New(&hook_method, NULL);
        int r = function ? PySys_SetObject("excepthook", function) : -1;
        Py_DecRef(function);
        return r < 0 ? NULL : nothing();
}
