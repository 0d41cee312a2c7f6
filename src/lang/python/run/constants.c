#include "lang/python/run/constants.h"

#include <math.h>
#include <stdbool.h>

/* The constants of a code object, a new reference; NULL with an error. */
static PyObject *constants_of(PyObject *code)
{
        return PyObject_GetAttrString(code, "co_consts");
}

static bool is_same_number(double one, double other)
{
        return one == other && signbit(one) == signbit(other);   /* 0.0 is not -0.0 */
}

/* Equality as for the keys of the compiler's table (_PyCode_ConstantKey() in Objects/codeobject.c). */
static bool is_same(PyObject *one, PyObject *other)
{
        if (one == other || Py_TYPE(one) != Py_TYPE(other))
                return one == other;
        if (PyUnicode_Check(one) || PyBytes_Check(one) || PyLong_Check(one))
                return PyObject_RichCompareBool(one, other, Py_EQ) == 1;
        if (PyFloat_Check(one))
                return is_same_number(PyFloat_AsDouble(one), PyFloat_AsDouble(other));
        if (PyComplex_Check(one))
                return is_same_number(PyComplex_RealAsDouble(one), PyComplex_RealAsDouble(other)) &&
                       is_same_number(PyComplex_ImagAsDouble(one), PyComplex_ImagAsDouble(other));
        if (!PyTuple_Check(one) || PyTuple_Size(one) != PyTuple_Size(other))
                return false;
        for (Py_ssize_t i = 0; i < PyTuple_Size(one); i++)
                if (!is_same(PyTuple_GetItem(one, i), PyTuple_GetItem(other, i)))
                        return false;
        return true;
}

/*
 * An equal constant among these constants, in tuples inside, and in functions inside.  A new reference, or NULL without
 * an error.
 */
static PyObject *find(PyObject *constants, PyObject *wanted, PyTypeObject *code_type)
{
        PyObject *found = NULL;
        for (Py_ssize_t i = 0; i < PyTuple_Size(constants) && !found; i++) {
                PyObject *one = PyTuple_GetItem(constants, i);
                if (is_same(one, wanted)) {
                        Py_IncRef(one);
                        return one;
                }
                PyObject *inner = NULL;
                if (PyTuple_Check(one))
                        Py_IncRef(inner = one);
                else if (Py_TYPE(one) == code_type)
                        inner = constants_of(one);
                found = inner ? find(inner, wanted, code_type) : NULL;
                Py_DecRef(inner);
        }
        PyErr_Clear();
        return found;
}

static PyObject *shared(PyObject *constants, PyObject *one, PyTypeObject *code_type);

/* The tuple with its items shared, or the tuple itself.  A new reference; NULL with an error. */
static PyObject *shared_tuple(PyObject *constants, PyObject *tuple, PyTypeObject *code_type)
{
        Py_ssize_t n = PyTuple_Size(tuple), changed = 0;
        PyObject *result = PyTuple_New(n);
        for (Py_ssize_t i = 0; i < n && result; i++) {
                PyObject *item = PyTuple_GetItem(tuple, i), *other = shared(constants, item, code_type);
                changed += other != item;
                if (!other || PyTuple_SetItem(result, i, other) < 0) {
                        Py_DecRef(result);
                        result = NULL;
                }
        }
        if (result && !changed) {
                Py_DecRef(result);
                Py_IncRef(result = tuple);
        }
        return result;
}

static PyObject *with_constants(PyObject *code, PyObject *constants)
{
        PyObject *replace = PyObject_GetAttrString(code, "replace"), *none = PyTuple_New(0),
                 *named = Py_BuildValue("{s:O}", "co_consts", constants);
        PyObject *result = replace && none && named ? PyObject_Call(replace, none, named) : NULL;
        Py_DecRef(replace);
        Py_DecRef(none);
        Py_DecRef(named);
        return result;
}

static PyObject *shared_code(PyObject *constants, PyObject *code, PyTypeObject *code_type)
{
        PyObject *own = constants_of(code), *other = own ? shared_tuple(constants, own, code_type) : NULL,
                 *result = NULL;
        if (other == own)
                Py_IncRef(result = own ? code : NULL);
        else if (other)
                result = with_constants(code, other);
        Py_DecRef(own);
        Py_DecRef(other);
        return result;
}

/* The replacement of a constant.  A new reference; NULL with an error. */
static PyObject *shared(PyObject *constants, PyObject *one, PyTypeObject *code_type)
{
        if (Py_TYPE(one) == code_type)
                return shared_code(constants, one, code_type);
        PyObject *found = one == Py_None ? NULL : find(constants, one, code_type);
        if (!found && PyTuple_Check(one))
                return shared_tuple(constants, one, code_type);
        if (!found)
                Py_IncRef(found = one);
        return found;
}

PyObject *constants_share(PyObject *code, PyObject *last)
{
        PyObject *constants = constants_of(code);
        PyObject *result = constants && PyTuple_Check(constants) ? shared_code(constants, last, Py_TYPE(code)) : NULL;
        Py_DecRef(constants);
        PyErr_Clear();
        if (!result)
                Py_IncRef(result = last);
        return result;
}

PyObject *constants_share_of(PyObject *self, PyObject *args)
{
        PyObject *code, *last;
        (void)self;
        return PyArg_ParseTuple(args, "OO", &code, &last) ? constants_share(code, last) : NULL;
}
