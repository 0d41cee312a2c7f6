#include "lang/python/zygote/case_fastpath.h"

#include <endian.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lang/python/grading/case.h"
#include "lang/python/run/channel.h"
#include "lang/python/zygote/fastpath.h"
#include "wire/wire.h"

#define FASTPATH_MESSAGE 4096
#define PLAIN_MESSAGE 512
#define LENGTH_SIZE 8   /* of a message from the process of a case */
#define OUTPUT_MAX 8192 /* bytes of a program's output reported without Python */

struct grading {
        struct where to;
        struct case_rules rules;   /* but for times, which are each case's own */
        PyObject *endings;
        PyObject *functions, *builtins, *hooks, *sys, *streams, *flush;   /* to look through */
        PyObject *coroutine, *run_coroutine;   /* a type, and its runner */
        PyObject *answer;
        PyObject *all_builtins, *last_words;   /* or NULL */
};

struct call {
        Py_ssize_t index;
        double cpu_s, wall_s;
        Py_ssize_t keep;       /* reported bytes of the output of a main program; -1: the case is a call */
        PyObject *function, *arguments, *named;   /* function is NULL: there is none */
};

/* The TextIOWrapper and the FileIO of two streams, flushed before the call: their memory at the time. */
#define PARTS 4
#define PART_MAX 512
struct part {
        PyObject *name, *object, *attributes;   /* a FileIO has no name */
        Py_ssize_t size;
        char before[PART_MAX];
};

/*
 * The next name of a dict missing in the other dict.  In Python each look at an object counts a reference, which copies
 * the object's page; this function only reads.  NULL: no more names.
 */
static PyObject *next_unknown_name(PyObject *names, PyObject *known, bool compare_values, Py_ssize_t *at)
{
        PyObject *name, *value;
        while (PyDict_Next(names, at, &name, &value)) {
                /* To look up any other key would run code of the program's. */
                const PyObject *other = PyUnicode_CheckExact(name) ? PyDict_GetItemWithError(known, name) : NULL;
                if (!other || (compare_values && other != value))
                        return name;
        }
        return NULL;
}

PyObject *grader_unknown_names(PyObject *self, PyObject *args)
{
        PyObject *names, *known, *name;
        Py_ssize_t at = 0;
        int compare_values;
        (void)self;
        if (!PyArg_ParseTuple(args, "O!O!p", &PyDict_Type, &names, &PyDict_Type, &known, &compare_values))
                return NULL;
        PyObject *found = PyList_New(0);
        while (found && (name = next_unknown_name(names, known, compare_values, &at)))
                if (PyList_Append(found, name) < 0) {
                        Py_DecRef(found);
                        return NULL;
                }
        return found;
}

/* ---- in the case's process ---- */

/* hooks: of each kind the getter and the setter. */
static bool has_hooks(PyObject *hooks)
{
        for (Py_ssize_t i = 0; i < PyTuple_Size(hooks); i += 2) {
                PyObject *hook = PyObject_CallObject(PyTuple_GetItem(hooks, i), NULL);
                Py_DecRef(hook);
                if (hook != Py_None)
                        return true;
        }
        return false;
}

/* Unset the hooks before the next frame of ours. */
static void drop_hooks(PyObject *hooks)
{
        for (Py_ssize_t i = 1; i < PyTuple_Size(hooks); i += 2)
                Py_DecRef(PyObject_CallFunctionObjArgs(PyTuple_GetItem(hooks, i), Py_None, NULL));
        PyErr_Clear();
}

/*
 * The decimal digits of a number before `end`.  Not by the C library: its text is mapped page by page in each process
 * anew.
 */
static char *write_number(long long number, char *end)
{
        unsigned long long left = number < 0 ? -(unsigned long long)number : (unsigned long long)number;
        do
                *--end = (char)('0' + left % 10);
        while (left /= 10);
        if (number < 0)
                *--end = '-';
        return end;
}

#define NUMBER_SIZE 24

/* The canonical form of the usual return values, in `room` or elsewhere.  NULL for any other value. */
static const char *plain_text(PyObject *value, char room[static NUMBER_SIZE])
{
        int overflow;
        if (value == Py_None)
                return "null";
        if (value == Py_True || value == Py_False)
                return value == Py_True ? "true" : "false";
        if (!PyLong_CheckExact(value))
                return NULL;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        room[NUMBER_SIZE - 1] = 0;
        return overflow ? NULL : write_number(number, room + NUMBER_SIZE - 1);
}

/* False if the program's streams are of another kind. */
static bool remember(const struct grading *grading, struct part parts[PARTS])
{
        if (PyTuple_Size(grading->streams) != PARTS)
                return false;
        for (Py_ssize_t i = 0; i < PARTS; i++) {
                struct part *part = &parts[i];
                if (!PyArg_ParseTuple(PyTuple_GetItem(grading->streams, i), "OOnO!", &part->name, &part->object,
                            &part->size, &PyDict_Type, &part->attributes) ||
                        part->size > PART_MAX) {
                        PyErr_Clear();
                        return false;
                }
                memcpy(part->before, part->object, (size_t)part->size);
        }
        return true;
}

/*
 * Whether there is nothing to flush: all parts are as after the last flush, and no function was replaced.  Another
 * flush would touch five pages for each.
 */
static bool are_flushed(const struct grading *grading, const struct part parts[PARTS])
{
        for (size_t i = 0; i < PARTS; i++) {
                const struct part *part = &parts[i];
                if ((part->name != Py_None && PyDict_GetItemWithError(grading->sys, part->name) != part->object) ||
                        memcmp(part->before, part->object, (size_t)part->size) != 0 ||
                        PyDict_GetItemWithError(part->attributes, grading->flush))
                        return false;
        }
        return true;
}

/* flush_streams(); each may be any object by now, or gone. */
static void flush_streams(void)
{
        static const char *const names[] = { "stdout", "stderr" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                PyObject *stream = PySys_GetObject(names[i]);
                Py_IncRef(stream);
                Py_DecRef(stream ? PyObject_CallMethod(stream, "flush", NULL) : NULL);
                Py_DecRef(stream);
                PyErr_Clear();
        }
}

static char *add(char *at, const char *end, const char *text)
{
        while (at && *text && at < end)
                *at++ = *text++;
        return *text ? NULL : at;
}

/* tell_outcome() in cases.py for a plain value, and the end of the process.  Returns for other cases. */
static void end_plainly(const struct grading *grading, PyObject *value, const struct part *parts, int writer)
{
        char message[PLAIN_MESSAGE], number[NUMBER_SIZE];
        Py_ssize_t at = 0;
        const char *text = has_hooks(grading->hooks) ? NULL : plain_text(value, number),
                   *end = message + sizeof message;
        if (!text || next_unknown_name(grading->functions, grading->builtins, true, &at))
                return;
        PyObject *ending = PyDict_GetItemWithError(grading->endings,
                (PyObject *)Py_TYPE(value)); /* or none: a program can empty any dict */
        char *rest = ending && PyBytes_Check(ending)
                ? add(add(add(message + LENGTH_SIZE, end, CASE_RETURNED), end, text), end, PyBytes_AsString(ending))
                : NULL;
        if (!rest)
                return;
        uint64_t told = htole64((uint64_t)(rest - message) - LENGTH_SIZE);
        memcpy(message, &told, sizeof told);
        if (!parts || !are_flushed(grading, parts))
                flush_streams();
        _exit(io_write_all(writer, message, (size_t)(rest - message)) < 0 ? 1 : 0);
}

/* The current exception, as for `except`; NULL if there is none. */
static PyObject *caught(void)
{
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        PyErr_NormalizeException(&type, &error, &trace);
        if (error && trace)
                PyException_SetTraceback(error, trace);
        Py_DecRef(type);
        Py_DecRef(trace);
        return error;
}

/* Only the process of the call answers: a program may fork, and its copies come back here, too. */
static _Noreturn void answer(const struct grading *grading, const struct call *call, int writer)
{
        long pid = syscall(SYS_getpid);   /* the C library's getpid() is in otherwise unused text */
        struct part parts[PARTS];
        bool are_known = remember(grading, parts);
        PyObject *value = PyObject_Call(call->function, call->arguments, PyDict_Size(call->named) ? call->named : NULL);
        if (value && (PyObject *)Py_TYPE(value) == grading->coroutine)
                value = PyObject_CallFunctionObjArgs(grading->run_coroutine, value, NULL);
        PyObject *error = value ? NULL : caught();
        if (syscall(SYS_getpid) != pid)
                _exit(0);
        if (value)
                end_plainly(grading, value, are_known ? parts : NULL, writer);
        PyErr_Clear();
        drop_hooks(grading->hooks);
        PyObject_CallFunction(grading->answer, "OOi", value ? value : Py_None, error ? error : Py_None, writer);
        _exit(1);   /* not reached */
}

/* ---- in the waiting process ---- */

static bool is_empty(int fd)
{
        struct stat about;
        return fstat(fd, &about) == 0 && about.st_size == 0;
}

/* Whether a case ended in the usual way: with a plain value, one of the endings, and nothing else. */
static bool is_usual(const struct case_end *end, PyObject *endings)
{
        uint64_t told;
        Py_ssize_t at = 0;
        if (end->status || end->reason || end->len <= LENGTH_SIZE || end->len > FASTPATH_MESSAGE ||
                !is_empty(end->outputs[0]) || !is_empty(end->outputs[1]))
                return false;
        memcpy(&told, end->message, sizeof told);
        if (le64toh(told) != end->len - LENGTH_SIZE)
                return false;
        for (PyObject *ending; PyDict_Next(endings, &at, NULL, &ending);)
                if (PyBytes_Check(ending) &&
                        case_is_plain(end->message + LENGTH_SIZE, end->len - LENGTH_SIZE, PyBytes_AsString(ending)))
                        return true;
        return false;
}

/* Like send() of the Grader in cases.py. */
static void tell_end(const struct where *to, Py_ssize_t index, const struct case_end *end)
{
        char text[FASTPATH_MESSAGE + 200];
        /* Not as floating point: a program may have set a locale with a decimal comma. */
        unsigned long cpu_us = (unsigned long)(end->cpu_s * 1e6), wall_us = (unsigned long)(end->wall_s * 1e6);
        int len = snprintf(text, sizeof text,
                "E{\"op\":\"result\",\"i\":%zd,\"cpu_ms\":%lu.%03lu,\"wall_ms\":%lu.%03lu,\"memory\":%lu,\"stdout\":\"\",\"stderr\":\"\",%.*s",
                index, cpu_us / 1000, cpu_us % 1000, wall_us / 1000, wall_us % 1000, end->memory,
                (int)(end->len - LENGTH_SIZE - 1), end->message + LENGTH_SIZE + 1);
        channel_say(to, CHANNEL_MESSAGE, text, (size_t)len);
}

/* JSON of a text of printable ASCII and usual white space, and its end; NULL: the text has other bytes. */
static char *put_text(char *at, const char *text, size_t len)
{
        static const char from[] = "\"\\\n\r\t", to[] = "\"\\nrt";
        for (size_t i = 0; i < len; i++) {
                const char *found = text[i] ? strchr(from, text[i]) : NULL;
                if (!found && (text[i] < ' ' || text[i] > '~'))
                        return NULL;
                if (found)
                        *at++ = '\\';
                *at++ = found ? to[found - from] : text[i];
        }
        return at;
}

/*
 * Report the end of a main program as tell_end() in main_program.py does; false: more than a short output and an exit
 * status.
 */
static bool tell_program(const struct where *to, const struct call *call, const struct case_end *end)
{
        char output[OUTPUT_MAX + 1], text[2 * OUTPUT_MAX + 600];
        if (call->keep < 0 || end->reason || !WIFEXITED(end->status) || end->len || !is_empty(end->outputs[1]))
                return false;
        ssize_t len = pread(end->outputs[0], output, sizeof output, 0);
        if (len < 0 || len > OUTPUT_MAX || len > call->keep)
                return false;
        unsigned long cpu_us = (unsigned long)(end->cpu_s * 1e6), wall_us = (unsigned long)(end->wall_s * 1e6);
        char *at = text +
                snprintf(text, 200, "E{\"op\":\"result\",\"i\":%zd,\"how\":\"exited\",\"exit_code\":%d,\"output\":\"",
                        call->index, WEXITSTATUS(end->status));
        at = put_text(at, output, (size_t)len);
        if (!at)
                return false;
        at += snprintf(at, 300, "\",\"output_bytes\":%zd,\"cpu_ms\":%lu.%03lu,\"wall_ms\":%lu.%03lu,\"memory\":%lu,"
                "\"stdout\":\"\",\"stderr\":\"\",\"signs\":[]}",
                len, cpu_us / 1000, cpu_us % 1000, wall_us / 1000, wall_us % 1000, end->memory);
        channel_say(to, CHANNEL_MESSAGE, text, (size_t)(at - text));
        return true;
}

/* The work left for Python; NULL with an error, or when the case is done. */
static PyObject *run_case(const struct grading *grading, const struct call *call, Py_ssize_t position,
        pid_t (*fork)(void))
{
        struct case_rules rules = grading->rules;
        struct case_end end;
        struct csn_error err;
        int writer;
        rules.cpu_s = call->cpu_s;
        rules.wall_s = call->wall_s;
        int where = case_run(&rules, fork, &end, &writer, &err);
        if (where < 0)
                return fastpath_error(&err);
        if (where)
                answer(grading, call, writer);
        bool told = tell_program(&grading->to, call, &end);
        if (!told && (call->keep >= 0 || !is_usual(&end, grading->endings)))
                return Py_BuildValue("(ny#izddkii)", position, end.message, (Py_ssize_t)end.len, end.status, end.reason,
                        end.cpu_s, end.wall_s, end.memory, end.outputs[0], end.outputs[1]);
        fd_close(&end.outputs[0]);
        fd_close(&end.outputs[1]);
        if (!told)
                tell_end(&grading->to, call->index, &end);
        return NULL;
}

/* The end of Grader.run(), unless there is more to report. */
static void end_grading(const struct grading *grading)
{
        Py_ssize_t at = 0;
        if (!grading->all_builtins || next_unknown_name(grading->all_builtins, grading->builtins, true, &at)) {
                PyErr_Clear();
                return;
        }
        channel_say(&grading->to, CHANNEL_MESSAGE, PyBytes_AsString(grading->last_words),
                (size_t)PyBytes_Size(grading->last_words));
        channel_say(&grading->to, CHANNEL_DONE, "", 0);
        fastpath_end_process(0, &grading->to);
}

/* Read all calls before the first process exists. */
static bool read_calls(PyObject *cases, Py_ssize_t first, struct call *ret)
{
        for (Py_ssize_t i = first; i < PyTuple_Size(cases); i++) {
                struct call *call = &ret[i - first];
                PyObject *item = PyTuple_GetItem(cases, i);
                if (item != Py_None &&
                        !PyArg_ParseTuple(item, "nddnOO!O!", &call->index, &call->cpu_s, &call->wall_s, &call->keep,
                                &call->function, &PyTuple_Type, &call->arguments, &PyDict_Type, &call->named))
                        return false;
        }
        return true;
}

PyObject *grader_run_cases(PyObject *args, pid_t (*fork)(void))
{
        struct grading grading = { 0 };
        PyObject *cases, *end, *result = NULL;
        Py_ssize_t first, message_max;
        int alone;
        if (!PyArg_ParseTuple(args, "nO!O&O!nip(O!O!O!O!O!UOO)OO", &first, &PyTuple_Type, &cases, fastpath_to_where,
                    &grading.to, &PyDict_Type, &grading.endings, &message_max, &grading.rules.null_fd, &alone,
                    &PyDict_Type, &grading.functions, &PyDict_Type, &grading.builtins, &PyTuple_Type, &grading.hooks,
                    &PyDict_Type, &grading.sys, &PyTuple_Type, &grading.streams, &grading.flush, &grading.coroutine,
                    &grading.run_coroutine, &grading.answer, &end) ||
                (end != Py_None &&
                        !PyArg_ParseTuple(end, "O!S", &PyDict_Type, &grading.all_builtins, &grading.last_words)))
                return NULL;
        grading.rules.channel_fd = grading.to.fd;
        grading.rules.message_max = (size_t)message_max;
        grading.rules.alone = alone;
        Py_ssize_t n = PyTuple_Size(cases) - first;
        struct call *calls = mem_alloc((size_t)(n > 0 ? n : 1) * sizeof *calls);
        bool are_read = read_calls(cases, first, calls);
        for (Py_ssize_t i = 0; are_read && i < n && !result && !PyErr_Occurred(); i++)
                result = calls[i].function ? run_case(&grading, &calls[i], first + i, fork)
                                           : Py_BuildValue("(n)", first + i);
        free(calls);
        if (result || PyErr_Occurred())
                return result;
        end_grading(&grading);
        return fastpath_nothing();
}
