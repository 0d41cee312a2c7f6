/*
 * Fast path of a run in C.  It applies when the request equals the one the zygote was prepared for, the program is the
 * only input file, and no object needs a finalizer at exit.
 *
 * Python writes a reference count into every object it reads, and each written page must be copied: of 280 pages that a
 * run once copied, 65 remain.  This code uses borrowed references and changes no reference count.  Each step does the
 * work of the Python function named beside it; if anything is unusual, the step does nothing, reports so, and Python
 * takes over.  The Python code is complete, and is the only code of a cold run.
 */
#ifndef LANG_PYTHON_ZYGOTE_FASTPATH_H
#define LANG_PYTHON_ZYGOTE_FASTPATH_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/base.h"
#include "lang/python/run/channel.h"

/*
 * logging_shutdown(shutdown, handlers): an object that equals the function `shutdown` and does the same, but returns at
 * once if there is no handler.
 */
PyObject *fastpath_logging_shutdown(PyObject *self, PyObject *args);

/*
 * usual(names): takes a dict with the values of all names in fastpath.c.  Without this call no run takes the fast path.
 */
PyObject *fastpath_prepare(PyObject *self, PyObject *names);

/* begin(): whether the process is in the state after Fresh.state(), with its Channel open. */
PyObject *fastpath_begin(PyObject *self, PyObject *none);

/*
 * start(came): for the result of wait(), returns (code, last) as Zygote.receive() and Runner.start() do; or None.  A
 * syntax error is then in the run's `mistake`.  For a graded program: does the work of Zygote.receive() and compiles;
 * returns None, and the run has a channel and `compiled`.
 */
PyObject *fastpath_start(PyObject *self, PyObject *came);

/*
 * drive(generator, main): as drive.h.  With None in place of names the run is on the fast path, and drive() does not
 * return if the run ends in the ordinary way: nothing to report, to call, or to finalize.
 */
PyObject *fastpath_drive(PyObject *self, PyObject *args);

/*
 * is_plain(error, value): whether Runner.finish() has nothing to report.  Otherwise the run has its `source` from then
 * on.
 */
PyObject *fastpath_is_plain(PyObject *self, PyObject *args);

/*
 * end(ending, tracing, profiling): Leave.end(), if no exception and no tracing is set.  True: the interpreter must end
 * by itself, with status 0.
 */
PyObject *fastpath_end(PyObject *self, PyObject *args);

/*
 * leave(status, where): end the process at once, after EXITING on the channel unless where is None: the client need not
 * wait until the kernel has freed the memory.
 */
PyObject *fastpath_leave(PyObject *self, PyObject *args);
void fastpath_end_process(int status, const struct where *where);   /* where may be NULL */

/* split_last(source): as in runner.py. */
PyObject *fastpath_split_last(PyObject *self, PyObject *source);

/* is_usual_stream(fd): whether a standard stream is the default one, /dev/null for input or a pipe for output. */
PyObject *fastpath_is_usual_stream(PyObject *self, PyObject *args);

/* renew(bytes): overwrite the object with random bytes; the object must not have been hashed. */
PyObject *fastpath_renew(PyObject *self, PyObject *bytes);

/*
 * have_ends(objects, ref): whether the end of any object is observable: a finalizer, or a weak reference with a
 * callback.
 */
PyObject *fastpath_have_ends(PyObject *self, PyObject *args);

/*
 * Make this process a training run of this program, which stays the caller's: the process has the program at home, and
 * at its end writes the pages it used (memory_prefault.h) to answer_fd.
 */
void fastpath_train(PyObject *program, int answer_fd);
/* The result of wait() in a training run; NULL without an error in any other process. */
PyObject *fastpath_training_run(PyObject *arguments, PyObject *entries);

/*
 * A converter for PyArg_ParseTuple() to struct where: the target of a frame, in Python (descriptor, process, device,
 * inode).  A descriptor below 0 means the channel opened by begin(); Python does not get its number, because storing it
 * would dirty shared memory.
 */
int fastpath_to_where(PyObject *object, void *ret_where);

PyObject *fastpath_nothing(void);
PyObject *fastpath_error(const struct csn_error *err);   /* NULL, with the error set as an OSError */

#endif
