/*
 * The way of a usual run: one that is what its zygote was prepared for, is alone at home, and ends with nothing of its own to be taken down.
 *
 * In Python whatever is looked at has its references counted, and each page that this writes to is one to copy: of 280 pages that a run once made its own,
 * 65 are left.  Here things are looked at and not touched.  Each step does what the Python
 * that is named beside it does; where something is not as usual it does nothing, says so, and Python takes over.  That has the whole truth about
 * a run, and is all that a cold one has.
 */
#ifndef PYTHON_USUAL_H
#define PYTHON_USUAL_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/base.h"
#include "lang/python/run/channel.h"

/* logging_shutdown(shutdown, handlers) -> what is equal to that function and does the same, at once if there is no handler. */
PyObject *fastpath_logging_shutdown(PyObject *self, PyObject *args);

/* usual(names): a dict with what there is under each of the names in fastpath.c.  Without it no run is usual. */
PyObject *fastpath_prepare(PyObject *self, PyObject *names);

/* begin() -> whether the process is as Fresh.state() makes it, and its Channel is open. */
PyObject *fastpath_begin(PyObject *self, PyObject *none);

/*
 * start(came) -> (code, last) as of Zygote.receive() and Runner.start(), for what wait() gave; or None.  What is wrong with a program is the run's
 * `mistake` then.  Of one that is graded it does what Zygote.receive() does, and compiles: None, and the run has a channel and `compiled`.
 */
PyObject *fastpath_start(PyObject *self, PyObject *came);

/*
 * drive(generator, main): as of drive.h.  None in place of names is the usual run's, which does not come back if the
 * run ends as most do: with nothing to tell, to call, or to take down.
 */
PyObject *fastpath_drive(PyObject *self, PyObject *args);

/* is_plain(error, value) -> whether Runner.finish() has nothing to tell.  If it has, the run has its `source` from here on. */
PyObject *fastpath_is_plain(PyObject *self, PyObject *args);

/* end(ending, tracing, profiling): Leave.end(), if nothing is to be raised or traced.  True if the interpreter has to end by itself, with 0. */
PyObject *fastpath_end(PyObject *self, PyObject *args);

/* leave(status, where): end this process at once, and say so on the channel if it is not None: nobody has to wait for the kernel to take our memory down. */
PyObject *fastpath_leave(PyObject *self, PyObject *args);
void fastpath_end_process(int status, const struct where *where);   /* where may be NULL */

/* split_last(source), as in runner.py. */
PyObject *fastpath_split_last(PyObject *self, PyObject *source);

/* is_usual_stream(fd): whether it is what most runs have there, /dev/null or a pipe. */
PyObject *fastpath_is_usual_stream(PyObject *self, PyObject *args);

/* renew(bytes): put other random bytes into it, which nobody may have hashed. */
PyObject *fastpath_renew(PyObject *self, PyObject *bytes);

/* have_ends(objects, ref): whether the end of one could be told: a finalizer, a weak reference. */
PyObject *fastpath_have_ends(PyObject *self, PyObject *args);

/* This process only finds out what a run with that program, which stays the caller's, touches (memory_prefault.h): it has it at home, and tells at its end, there. */
void fastpath_train(PyObject *program, int answer_fd);
/* What wait() gives there; without an error NULL if this is no such process. */
PyObject *fastpath_training_run(PyObject *arguments, PyObject *entries);

/*
 * A converter (PyArg_ParseTuple()) to a struct where: where a frame is to go, as Python has it, (descriptor, process, device, inode).  A descriptor
 * below 0 is for the channel that begin() has opened; Python is told of no other, for to tell it writes to memory that is shared.
 */
int fastpath_to_where(PyObject *object, void *ret_where);

PyObject *fastpath_nothing(void);
PyObject *fastpath_error(const struct csn_error *err);   /* NULL, with the error as an OSError */

#endif
