/*
 * _cold: the C functions of an interpreter started for a single program.  The zygote has the same, and more, in
 * _caisson.
 */
#include "lang/python/run/constants.h"
#include "lang/python/run/drive.h"

static PyMethodDef methods[] = {
        { "drive", drive_begin, METH_VARARGS, "drive(generator, main): see drive.h." },
        { "share_constants", constants_share_of, METH_VARARGS, "share_constants(code, last): see constants.h." },
        { NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "_cold", "Programs without frames of ours.", -1, methods,
        NULL, NULL, NULL, NULL };

__attribute__((visibility("default"))) PyMODINIT_FUNC PyInit__cold(void);

PyMODINIT_FUNC PyInit__cold(void)
{
        return PyModule_Create(&module);
}
