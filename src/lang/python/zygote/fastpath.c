#include "lang/python/zygote/fastpath.h"

#include <sched.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "lang/python/run/constants.h"
#include "lang/python/run/drive.h"
#include "lang/python/zygote/memory_prefault.h"
#include "sandbox/sandbox.h"

/* Objects needed here, by their names in Python. */
enum name {
        ARGUMENTS,
        ENTRIES,
        MAIN_FILE,
        RUN,
        GRADED,
        NAMES,
        PATH,
        HELLO,
        COMPILE,
        COMPILE_WHOLE,
        FILTERS,
        FAIL,
        NOTHING,
        PREPARE,
        SHOWS,
        RESEEDERS,
        KEY,
        START_TIME,
        MAIN_THREAD,
        CHANNEL,
        GET_TRACE,
        GET_PROFILE,
        MODULES,
        THREADING,
        SHUTDOWN,
        EXITS,
        RUN_EXITS,
        IDLE_EXITS,
        COUNT_EXITS,
        COUNT_THREADS,
        STDOUT,
        STDOUT_NAMES,
        FLUSH_STDOUT,
        STDERR,
        STDERR_NAMES,
        FLUSH_STDERR,
        GET_OBJECTS,
        REF,
        CALLBACKS,
        GET_DEBUG,
        NAMES_N
};

static const char *const texts[NAMES_N] = {
        /* Zygote.receive() and Runner.start() */
        [ARGUMENTS] = "arguments",
        [ENTRIES] = "entries",
        [MAIN_FILE] = "main_file",
        [RUN] = "run",
        [GRADED] = "graded",
        [NAMES] = "names",
        [PATH] = "path",
        [HELLO] = "hello",
        [COMPILE] = "compile",
        [COMPILE_WHOLE] = "compile_whole",
        [FILTERS] = "filters",
        [FAIL] = "warnings_fail",
        [NOTHING] = "nothing",
        [PREPARE] = "prepare",
        [SHOWS] = "shows",
        /* Fresh.state(), Channel */
        [RESEEDERS] = "reseeders",
        [KEY] = "key",
        [START_TIME] = "start_time",
        [MAIN_THREAD] = "main_thread",
        [CHANNEL] = "channel",
        /* Leave.end() */
        [GET_TRACE] = "get_trace",
        [GET_PROFILE] = "get_profile",
        [MODULES] = "modules",
        [THREADING] = "threading",
        [SHUTDOWN] = "shutdown",
        [EXITS] = "exits",
        [RUN_EXITS] = "run_exits",
        [IDLE_EXITS] = "idle_exits",
        [COUNT_EXITS] = "count_exits",
        [COUNT_THREADS] = "count_threads",
        [STDOUT] = "stdout",
        [STDOUT_NAMES] = "stdout_names",
        [FLUSH_STDOUT] = "flush_stdout",
        [STDERR] = "stderr",
        [STDERR_NAMES] = "stderr_names",
        [FLUSH_STDERR] = "flush_stderr",
        [GET_OBJECTS] = "get_objects",
        [REF] = "ref",
        [CALLBACKS] = "callbacks",
        [GET_DEBUG] = "get_debug",
};

static PyObject *own[NAMES_N];   /* all NULL: no run takes the fast path */
static struct where channel;
static bool has_channel, has_begun;
static PyObject *program_text;   /* from start() on */

static PyObject *trained;      /* the program; the caller keeps a reference for good */
static int training_run_fd;

#define FASTPATH_THREAD 2           /* as in reset_state.py */

PyObject *fastpath_nothing(void)
{
        Py_IncRef(Py_None);
        return Py_None;
}

PyObject *fastpath_error(const struct csn_error *err)
{
        PyErr_SetString(PyExc_OSError, err->text);
        return NULL;
}

void fastpath_train(PyObject *program, int answer_fd)
{
        trained = program;
        training_run_fd = answer_fd;
}

/* A grader alone in its sandbox would kill all other processes, in a training run the zygote. */
static bool is_not_alone(void)
{
        PyObject *options = PyObject_GetAttrString(own[RUN], "options"), *no = PyUnicode_FromString("0");
        bool is_set = options && no && PyDict_SetItemString(options, "alone", no) == 0;
        Py_DecRef(options);
        Py_DecRef(no);
        return is_set;
}

PyObject *fastpath_training_run(PyObject *arguments, PyObject *entries)
{
        if (trained && !own[RUN])
                PyErr_SetString(PyExc_RuntimeError, "no run is usual, and so there is none to rehearse");
        if (!trained || !own[RUN] || (own[GRADED] == Py_True && !is_not_alone()))
                return NULL;
        return Py_BuildValue("(OO(yy#))", arguments, entries, PyBytes_AsString(own[MAIN_FILE]),
                PyBytes_AsString(trained), PyBytes_Size(trained));
}

/* Drop our references before Python takes down the objects of a run. */
static void drop(void)
{
        for (int i = 0; i < NAMES_N; i++) {
                Py_DecRef(own[i]);
                own[i] = NULL;
        }
        Py_DecRef(program_text);
        program_text = NULL;
}

/*
 * Registered in place of logging.shutdown() and equal to the function: without a handler there is nothing to do, and to
 * find out in Python is to write to the function's memory.
 */
static PyObject *logging_shutdown, *logging_handlers;

static PyObject *shut_logging_down(PyObject *self, PyObject *args, PyObject *named)
{
        (void)self;
        if (!logging_shutdown || PyList_Size(logging_handlers) == 0)
                return fastpath_nothing();
        return PyObject_Call(logging_shutdown, args, named);
}

static PyObject *compare_shutdown(PyObject *self, PyObject *other, int how)
{
        bool is_same = self == other || (logging_shutdown && other == logging_shutdown);
        if (how == Py_EQ || how == Py_NE)
                return PyBool_FromLong(is_same == (how == Py_EQ));
        Py_IncRef(Py_NotImplemented);
        return Py_NotImplemented;
}

PyObject *fastpath_logging_shutdown(PyObject *self, PyObject *args)
{
        PyType_Slot slots[] = { { Py_tp_call, shut_logging_down }, { Py_tp_richcompare, compare_shutdown },
                { 0, NULL } };
        PyType_Spec spec = {
                .name = "_caisson.Shutdown", .basicsize = sizeof(PyObject), .flags = Py_TPFLAGS_DEFAULT, .slots = slots
        };
        (void)self;
        if (!PyArg_ParseTuple(args, "OO!", &logging_shutdown, &PyList_Type, &logging_handlers))
                return NULL;
        Py_IncRef(logging_shutdown);
        Py_IncRef(logging_handlers);
        PyObject *type = PyType_FromSpec(&spec), *shutdown = type ? PyObject_CallObject(type, NULL) : NULL;
        Py_DecRef(type);
        return shutdown;
}

static bool is_there(enum name name)
{
        return own[name] && own[name] != Py_None;
}

/*
 * The value of a float object, overwritten in place (PyFloatObject in Include/cpython/floatobject.h, of all versions):
 * no hash of the number and no other reference exists.  To rebind the module's attribute would write to its dict and to
 * a new object.
 */
static void *number_in(PyObject *number)
{
        return (char *)number + sizeof(PyObject);
}

static bool has_number_in(PyObject *number)
{
        double there;
        memcpy(&there, number_in(number), sizeof there);
        return there == PyFloat_AsDouble(number);
}

PyObject *fastpath_prepare(PyObject *self, PyObject *names)
{
        (void)self;
        for (int i = 0; i < NAMES_N; i++) {
                own[i] = PyDict_GetItemString(names, texts[i]);
                if (!own[i])
                        return PyErr_Format(PyExc_KeyError, "usual() wants %s", texts[i]);
                Py_IncRef(own[i]);
        }
        if (is_there(START_TIME) && !has_number_in(own[START_TIME]))
                drop();   /* an interpreter with other floats: no run takes the fast path */
        return fastpath_nothing();
}

/*
 * With room for arguments, though there are none: without room a function prepares for arguments by name
 * (Python/getargs.c).
 */
static PyObject *result_of(PyObject *function)
{
        PyObject *none = PyTuple_New(0), *result = none ? PyObject_Call(function, none, NULL) : NULL;
        Py_DecRef(none);
        return result;
}

/* False with an error. */
static bool call(PyObject *function)
{
        PyObject *result = result_of(function);
        Py_DecRef(result);
        return result;
}

/* The same for each of a list. */
static bool call_all(PyObject *functions)
{
        for (Py_ssize_t i = 0; i < PyList_Size(functions); i++)
                if (!call(PyList_GetItem(functions, i)))
                        return false;
        return true;
}

/* ---- before there is a program ---- */

static bool is_usual_stream(int fd)
{
        struct stat about;
        if (fstat(fd, &about) < 0)
                return false;
        return fd == STDIN_FILENO ? S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3) : S_ISFIFO(about.st_mode);
}

PyObject *fastpath_is_usual_stream(PyObject *self, PyObject *args)
{
        int fd;
        (void)self;
        return PyArg_ParseTuple(args, "i", &fd) ? PyBool_FromLong(is_usual_stream(fd)) : NULL;
}

static bool renew(PyObject *bytes)
{
        char *text = PyBytes_AsString(bytes);
        if (text && getrandom(text, (size_t)PyBytes_Size(bytes), 0) != PyBytes_Size(bytes))
                PyErr_SetFromErrno(PyExc_OSError);
        return !PyErr_Occurred();
}

PyObject *fastpath_renew(PyObject *self, PyObject *bytes)
{
        (void)self;
        return renew(bytes) ? fastpath_nothing() : NULL;
}

static bool set(PyObject *object, const char *name, PyObject *value)
{
        bool is_set = value && PyObject_SetAttrString(object, name, value) == 0;
        Py_DecRef(value);
        return is_set;
}

static void set_start_time(PyObject *time)
{
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        double seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
        memcpy(number_in(time), &seconds, sizeof seconds);
}

int fastpath_to_where(PyObject *object, void *ret_where)
{
        struct where *to = ret_where;
        if (!PyArg_ParseTuple(object, "iiKK", &to->fd, &to->pid, &to->device, &to->inode))
                return 0;
        if (to->fd < 0 && has_channel)
                *to = channel;
        return 1;
}

/* Python's Channel has the usual descriptor, unless changed here. */
static bool open_channel(void)
{
        has_channel = channel_open(&channel);
        if (!has_channel)
                return set(own[CHANNEL], "fd", PyLong_FromLong(-1)) && set(own[CHANNEL], "where", fastpath_nothing());
        return channel.fd == CHANNEL_USUAL_FD || set(own[CHANNEL], "fd", PyLong_FromLong(channel.fd));
}

PyObject *fastpath_begin(PyObject *self, PyObject *none)
{
        (void)self, (void)none;
        if (!own[RUN] || !is_usual_stream(STDOUT_FILENO) || !is_usual_stream(STDERR_FILENO)) {
                drop();
                return PyBool_FromLong(false);
        }
        if (!call_all(own[RESEEDERS]) || (is_there(KEY) && !renew(own[KEY])))
                return NULL;
        if (is_there(START_TIME))
                set_start_time(own[START_TIME]);
        if (is_there(MAIN_THREAD) && !trained && syscall(SYS_gettid) != FASTPATH_THREAD) {
                PyObject *result = PyObject_CallMethod(own[MAIN_THREAD], "_set_native_id", NULL);
                Py_DecRef(result);
                if (!result)
                        return NULL;
        }
        if (!open_channel())
                return NULL;
        has_begun = true;
        return PyBool_FromLong(true);
}

/* ---- as the program comes ---- */

/* The content of the program's file, if no other file is at home; or NULL.  A borrowed reference. */
static PyObject *source_of(PyObject *came)
{
        PyObject *only = PyTuple_GetItem(came, 2);
        if (only == Py_None ||
                strcmp(PyBytes_AsString(PyTuple_GetItem(only, 0)), PyBytes_AsString(own[MAIN_FILE])) != 0)
                return NULL;
        return PyTuple_GetItem(only, 1);
}

struct piece {
        const char *text;
        size_t len;
};

static bool has(struct piece source, const char *word)
{
        return memmem(source.text, source.len, word, strlen(word));
}

static bool is_among(struct piece word, const char *const *words)
{
        for (; *words; words++)
                if (strlen(*words) == word.len && memcmp(*words, word.text, word.len) == 0)
                        return true;
        return false;
}

static struct piece first_lines(struct piece source, int n)
{
        struct piece lines = { source.text, 0 };
        while (n-- && lines.len < source.len) {
                const char *end = memchr(source.text + lines.len, '\n', source.len - lines.len);
                lines.len = end ? (size_t)(end - source.text) + 1 : source.len;
        }
        return lines;
}

static const char *const hard[] = { "\r", "__future__", "global", "settrace", "set_trace", "breakpoint", "import trace",
        "rofile", "coverage", NULL };
static const char *const statements[] = { "async", "class", "def", "for", "if", "try", "while", "with", NULL };
static const char *const continuations[] = { "elif", "else", "except", "finally", NULL };

/* The beginning of the last statement, and its mode of compilation; NULL if not easy to find. */
static const char *find_last(struct piece source, const char **ret_mode)
{
        for (const char *const *word = hard; *word; word++)
                if (has(source, *word))
                        return NULL;
        if (has(first_lines(source, 2), "coding"))
                return NULL;
        size_t end = source.len;
        while (end > 0 && strchr(" \t\n\r\v\f", source.text[end - 1]) && source.text[end - 1])
                end--;
        while (end > 0) {
                const char *before = memrchr(source.text, '\n', end), *line = before ? before + 1 : source.text;
                struct piece word = { line, 0 };
                while (line + word.len < source.text + end && line[word.len] != ' ' && line[word.len] != ':')
                        word.len++;
                if (word.len && !(*line && strchr(" \t\f#)]}@", *line)) && !is_among(word, continuations)) {
                        *ret_mode = is_among(word, statements) ? "exec" : "eval";
                        return line;
                }
                if (!before)
                        break;
                end = (size_t)(before - source.text);
        }
        return NULL;
}

/* The last statement behind as many empty lines as there are lines before. */
static PyObject *with_lines(struct piece before, struct piece last)
{
        size_t lines = 0;
        for (const char *at = before.text; (at = memchr(at, '\n', (size_t)(before.text + before.len - at))); at++)
                lines++;
        PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(lines + last.len));
        if (bytes) {
                memset(PyBytes_AsString(bytes), '\n', lines);
                memcpy(PyBytes_AsString(bytes) + lines, last.text, last.len);
        }
        return bytes;
}

struct parts {
        PyObject *before, *last;
        const char *mode;
};

/* split_last() in runner.py; without an error for a text not easy to split. */
static bool split(PyObject *source, struct parts *ret)
{
        struct piece all = { PyBytes_AsString(source), 0 };
        *ret = (struct parts){ 0 };
        if (!all.text)
                return false;
        all.len = (size_t)PyBytes_Size(source);
        const char *start = find_last(all, &ret->mode);
        if (!start)
                return false;
        struct piece before = { all.text, (size_t)(start - all.text) }, last = { start, all.len - before.len };
        ret->before = PyBytes_FromStringAndSize(before.text, (Py_ssize_t)before.len);
        ret->last = with_lines(before, last);
        return ret->before && ret->last;
}

PyObject *fastpath_split_last(PyObject *self, PyObject *source)
{
        struct parts parts;
        (void)self;
        if (split(source, &parts))
                return Py_BuildValue("(NNs)", parts.before, parts.last, parts.mode);
        Py_DecRef(parts.before);
        return PyErr_Occurred() ? NULL : fastpath_nothing();
}

/* NULL with an error; also if there is no text. */
static PyObject *compile_part(PyObject *text, const char *mode)
{
        return text ? PyObject_CallFunction(own[COMPILE], "OOsiO", text, own[PATH], mode, 0, Py_True) : NULL;
}

/* The code of no text is made once, by the zygote. */
static PyObject *compile_before(PyObject *text)
{
        if (PyBytes_Size(text) > 0)
                return compile_part(text, "exec");
        Py_IncRef(own[NOTHING]);
        return own[NOTHING];
}

/* The mistake in a program is found once, with the warnings before; Runner.start() reports the mistake. */
static void keep_mistake(void)
{
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        PyErr_NormalizeException(&type, &error, &trace);
        if (error && PyObject_SetAttrString(own[RUN], "mistake", error) < 0)
                PyErr_Clear();
        Py_DecRef(type);
        Py_DecRef(error);
        Py_DecRef(trace);
}

/* The two pieces; NULL with an error. */
static PyObject *compile_parts(const struct parts *parts)
{
        PyObject *last = compile_part(parts->last, parts->mode), *code = last ? compile_before(parts->before) : NULL;
        PyObject *pair = code ? Py_BuildValue("(ON)", code, constants_share(code, last)) : NULL;
        Py_DecRef(code);
        Py_DecRef(last);
        return pair;
}

/* compile_parts() with warnings as errors: compile_whole() reports all warnings, in their order. */
static PyObject *compile_silently(const struct parts *parts)
{
        if (PyList_Insert(own[FILTERS], 0, own[FAIL]) < 0)
                return NULL;
        PyObject *pair = compile_parts(parts), *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        PyList_SetSlice(own[FILTERS], 0, 1, NULL);
        PyErr_Restore(type, error, trace);
        return pair;
}

/* compile_program() in runner.py: (code, last), or NULL without an error, which the run has then. */
static PyObject *compile_program(PyObject *source)
{
        struct parts parts;
        PyObject *pair = split(source, &parts) ? compile_silently(&parts) : NULL;
        Py_DecRef(parts.before);
        Py_DecRef(parts.last);
        if (!pair && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
                PyErr_Clear();
        if (!pair && !PyErr_Occurred())
                pair = PyObject_CallFunctionObjArgs(own[COMPILE_WHOLE], source, own[PATH], NULL);
        if (!pair)
                keep_mistake();
        return pair;
}

static void say(int type, const char *payload, size_t len)
{
        if (has_channel)
                channel_say(&channel, type, payload, len);
}

/* The source, for Runner.finish() to report an error, and for a role of the program. */
static bool give_source(void)
{
        return !program_text || PyObject_SetAttrString(own[RUN], "source", program_text) == 0;
}

/* For programs with pictures: see figures.py.  False with an error. */
static bool prepare_to_show(PyObject *source)
{
        struct piece text = { PyBytes_AsString(source), (size_t)PyBytes_Size(source) };
        return own[GRADED] == Py_True || !has(text, "show") || call_all(own[SHOWS]);
}

PyObject *fastpath_start(PyObject *self, PyObject *came)
{
        (void)self;
        PyObject *pair = NULL, *text = NULL;
        bool is_usual = has_begun && is_there(COMPILE) && PyTuple_GetItem(came, 0) == own[ARGUMENTS] &&
                PyTuple_GetItem(came, 1) == own[ENTRIES] && is_usual_stream(STDIN_FILENO) && (text = source_of(came)) &&
                (pair = compile_program(text)) && call_all(own[PREPARE]) && prepare_to_show(text);
        if (is_usual) {
                say(CHANNEL_HELLO, PyBytes_AsString(own[HELLO]), (size_t)PyBytes_Size(own[HELLO]));
                Py_IncRef(text);
                program_text = text;
        }
        if (is_usual && own[GRADED] == Py_False) {
                say(CHANNEL_STARTED, "", 0);
                return pair;
        }
        if (is_usual && give_source())
                PyObject_SetAttrString(own[RUN], "compiled", pair);
        drop();
        Py_DecRef(pair);
        return PyErr_Occurred() ? NULL : fastpath_nothing();
}

/* ---- the end ---- */

/*
 * Whether a program could notice the end of an object: by a finalizer, or by the callback of a weak reference.  Other
 * objects end in silence.
 */
static bool has_end(PyObject *one, PyTypeObject *reference)
{
        PyTypeObject *type = Py_TYPE(one);
        if (PyType_GetSlot(type, Py_tp_finalize) || PyType_GetSlot(type, Py_tp_del))
                return true;
        if (type == reference) {
                PyObject *callback = PyObject_GetAttrString(one, "__callback__");
                Py_DecRef(callback);
                return callback != Py_None;   /* compared and not looked at */
        }
        if (PyType_IsSubtype(type, reference))
                return true;   /* its attributes may be code of the program */
        /* A class of the program may have objects unknown to the collector. */
        return PyType_IsSubtype(type, &PyType_Type) && PyType_GetSlot((PyTypeObject *)one, Py_tp_finalize);
}

static bool have_ends(PyObject *objects, PyTypeObject *reference)
{
        bool found = false;
        Py_ssize_t n = PyList_Size(objects);
        for (Py_ssize_t i = 0; i < n && !found; i++)
                found = has_end(PyList_GetItem(objects, i), reference) || PyErr_Occurred();
        PyErr_Clear();   /* Python 3.9 and before give no slots of their own types */
        return found;
}

PyObject *fastpath_have_ends(PyObject *self, PyObject *args)
{
        PyObject *objects, *reference;
        (void)self;
        if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &objects, &PyType_Type, &reference))
                return NULL;
        return PyBool_FromLong(have_ends(objects, (PyTypeObject *)reference));
}

void fastpath_end_process(int status, const struct where *where)
{
        struct csn_error err;
        char digits[4];
        fflush(NULL);   /* output of C code of the program */
        if (trained)
                _exit(status || pages_tell(training_run_fd, &err) < 0 ? 1 : 0);
        if (where)
                channel_send(where, CHANNEL_EXITING, 0, digits,
                        (size_t)snprintf(digits, sizeof digits, "%d", status & 0xff), MSG_DONTWAIT);
        sched_yield();   /* a process woken here would wait milliseconds for the kernel to free our memory */
        _exit(status);
}

PyObject *fastpath_leave(PyObject *self, PyObject *args)
{
        struct where to;
        PyObject *where;
        int status;
        (void)self;
        if (PyArg_ParseTuple(args, "iO", &status, &where) && (where == Py_None || fastpath_to_where(where, &to)))
                fastpath_end_process(status, where == Py_None ? NULL : &to);
        return NULL;
}

static bool has_nothing_to_tell(PyObject *value)
{
        return value == Py_None && own[NAMES] && !PyDict_GetItemString(own[NAMES], "__return_value__");
}

PyObject *fastpath_is_plain(PyObject *self, PyObject *args)
{
        PyObject *error, *value;
        (void)self;
        if (!PyArg_ParseTuple(args, "OO", &error, &value))
                return NULL;
        bool is_plain = error == Py_None && has_nothing_to_tell(value);
        return is_plain || give_source() ? PyBool_FromLong(is_plain) : NULL;
}

static long number_of(PyObject *function)
{
        PyObject *result = result_of(function);
        long number = result ? PyLong_AsLong(result) : -1;
        Py_DecRef(result);
        return number;
}

/* Whether threading._shutdown() would do nothing but mark the main thread. */
static bool is_shut_down(void)
{
        if (PyDict_GetItemString(own[MODULES], "threading") != (is_there(THREADING) ? own[THREADING] : NULL))
                return false;
        if (!is_there(THREADING))
                return true;
        PyObject *names = PyModule_GetDict(own[THREADING]), *exits = PyDict_GetItemString(names, "_threading_atexits");
        if (PyDict_GetItemString(names, "_shutdown") != own[SHUTDOWN])
                return false;
        return exits && PyList_Check(exits) && PyList_Size(exits) == PyLong_AsLong(own[EXITS]);
}

/* Whether the stream is the zygote's, unchanged: its only own attribute is the mode. */
static bool is_ours(const char *name, enum name usual, enum name names)
{
        return PySys_GetObject(name) == own[usual] && PyDict_Size(own[names]) == 1 &&
                PyDict_GetItemString(own[names], "mode");
}

static bool has_nothing_to_take_down(void)
{
        if (PyList_Size(own[CALLBACKS]) != 0 || number_of(own[GET_DEBUG]) != 0)
                return false;
        PyObject *objects = result_of(own[GET_OBJECTS]);
        bool ends = !objects || have_ends(objects, (PyTypeObject *)own[REF]);
        Py_DecRef(objects);
        return !ends;
}

/* Ends the process, with flush_streams(), where the streams are ours and there is nothing to take down. */
static void leave_as_usual(void)
{
        if (is_ours("stdout", STDOUT, STDOUT_NAMES) && is_ours("stderr", STDERR, STDERR_NAMES) &&
                has_nothing_to_take_down() && call(own[FLUSH_STDOUT]) && call(own[FLUSH_STDERR])) {
                say(CHANNEL_DONE, "", 0);
                fastpath_end_process(0, has_channel ? &channel : NULL);
        }
}

static bool is_none(PyObject *function)
{
        PyObject *result = result_of(function);
        Py_DecRef(result);
        return result == Py_None;   /* compared and not looked at */
}

/* has_ended: end() is not repeated; has_threads: an exit function has left threads. */
static bool has_ended, has_threads;

static void end(void)
{
        if (has_ended)
                return;
        has_ended = true;
        if (number_of(own[COUNT_THREADS]) == 0 && is_shut_down() && call(own[RUN_EXITS])) {
                has_threads = number_of(own[COUNT_THREADS]) != 0;
                if (has_threads)
                        say(CHANNEL_DONE, "", 0);
                else
                        leave_as_usual();
        }
        PyErr_Clear();   /* Python tries again, and has the right to tell */
}

/*
 * is_plain() and end() for a run without a registered exit function: such a function may do things for Python to know
 * of.
 */
static void end_here(PyObject *value)
{
        if (own[RUN] && has_nothing_to_tell(value) && is_none(own[GET_TRACE]) && is_none(own[GET_PROFILE]) &&
            number_of(own[COUNT_EXITS]) == PyLong_AsLong(own[IDLE_EXITS]))
                end();
        PyErr_Clear();   /* as in end() */
}

static PyObject *run(PyObject *code, PyObject *last, PyObject *names)
{
        PyObject *value = drive_execute(code, last, names == Py_None ? own[NAMES] : names);
        if (value)
                end_here(value);
        return value;
}

PyObject *fastpath_drive(PyObject *self, PyObject *args)
{
        drive_run = run;
        return drive_begin(self, args);
}

PyObject *fastpath_end(PyObject *self, PyObject *args)
{
        PyObject *ending, *tracing, *profiling;
        (void)self;
        if (!PyArg_ParseTuple(args, "OOO", &ending, &tracing, &profiling))
                return NULL;
        if (own[RUN] && ending == Py_None && tracing == Py_None && profiling == Py_None)
                end();
        drop();
        return PyBool_FromLong(has_threads);
}
