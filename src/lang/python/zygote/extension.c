/*
 * _caisson: the part of a Python zygote in C.  serve() forks, wait() brings the program.
 *
 * The fork is a clone(2) of ours, because the child's parent has to be the outer init (CLONE_PARENT) and its pid
 * namespace a sandbox's.  The other work of fork(3) is for programs with threads and locks, and a zygote has a single
 * thread and holds no lock: the handlers of pthread_atfork(3) and of Python (os.register_at_fork) do not run, and
 * reset_state.py renews the state of a child.  Only the thread id in the C library remains (tid_address()).
 */
#include "lang/python/zygote/fastpath.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lang/python/zygote/memory_arenas.h"
#include "lang/python/run/constants.h"
#include "lang/python/zygote/case_fastpath.h"
#include "lang/python/zygote/imports.h"
#include "lang/python/zygote/memory_prefault.h"
#include "lang/python/zygote/memory_padding.h"
#include "lang/python/zygote/memory_layout.h"
#include "sandbox/sandbox.h"

static struct plan plan;
static PyObject *fastpath_argv, *fastpath_env;   /* lists of bytes, or None: the values of most programs */

/* The result of a function of ours in Python: None, or NULL with an error. */
static PyObject *done(int rc, const struct csn_error *err)
{
        return rc < 0 ? fastpath_error(err) : fastpath_nothing();
}

/* ---- the fork ---- */

/* pthread_self() is a struct pthread with fields at other places in each glibc, so many of its words are searched. */
#define PTHREAD_WORDS 512
extern pid_t _Fork(void) __attribute__((weak));   /* NOLINT(readability-redundant-declaration): since glibc 2.34 */

static int own_tid(void)
{
        return (int)syscall(SYS_gettid);
}

/*
 * In a process made by _Fork(): the first word with the parent's thread id before, and with this process's now.  An
 * exit status is too narrow for the answer.
 */
static void tell_tid_word(const int *words, const int *before, int parent, int fd)
{
        int32_t at = 0;
        while (at < PTHREAD_WORDS && (before[at] != parent || words[at] != own_tid()))
                at++;
        _exit(at < PTHREAD_WORDS && write(fd, &at, sizeof at) == (ssize_t)sizeof at ? 0 : 1);
}

static int *probe_tid(void)
{
        static int before[PTHREAD_WORDS];
        int *words = (int *)(uintptr_t)pthread_self(),
            ends[2]; /* NOLINT(performance-no-int-to-ptr): glibc's pthread_t is an address */
        int32_t at = -1;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return NULL;
        auto_fd reader = ends[0], writer = ends[1];
        memcpy(before, words, sizeof before);
        int parent = own_tid();
        pid_t pid = _Fork();
        if (pid == 0)
                tell_tid_word(words, before, parent, writer);
        fd_close(&writer);
        bool told = pid > 0 && read(reader, &at, sizeof at) == (ssize_t)sizeof at;
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        return told ? words + at : NULL;
}

/*
 * The place of this thread's number in the C library.  A new process has another number, and the library's own fork is
 * not used.  Up to glibc 2.42 the kernel clears this word at the thread's end; since then the kernel clears another
 * word, and the library is watched as it forks.
 */
static int *tid_address(void)
{
        static int *address;
        if (!address && _Fork)
                address = probe_tid();
        if (!address && (prctl(PR_GET_TID_ADDRESS, &address) < 0 || !address || *address != own_tid()))
                address = NULL;
        return address;
}

#define INTO_SANDBOX (CLONE_PARENT | CLONE_PIDFD)

static pid_t fork_into(unsigned long flags, int *tid, int *ret_pid_fd)
{
        /*
         * clone(2) on x86_64: flags, stack, parent_tid (the pidfd), child_tid, tls; the last two are swapped elsewhere.
         */
        flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
#if defined(__x86_64__)
        return (pid_t)syscall(SYS_clone, flags, NULL, ret_pid_fd, tid, NULL);
#else
        return (pid_t)syscall(SYS_clone, flags, NULL, ret_pid_fd, NULL, tid);
#endif
}

static void answer(const struct zygote_message *message, int fd)
{
        if (wire_send(ZYGOTE_SOCKET_FD, message, sizeof *message, &fd, fd >= 0) < 0)
                _exit(0);   /* the supervisor is gone */
}

static void refuse(uint32_t id, const struct csn_error *err)
{
        struct zygote_message failed = { .op = ZYGOTE_FAILED, .id = id, .error = *err };
        answer(&failed, -1);
}

/* The child of a request, in its sandbox: true.  The zygote: false. */
static bool serve_one(const struct zygote_message *request, int fds[WIRE_FDS_MAX], int own_pid_ns, int *tid)
{
        struct csn_error err = { 0 };
        int pid_fd = -1;
        plan = request->plan;
        if (setns(fds[0], CLONE_NEWPID) < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "enter the pid namespace of the sandbox");
                refuse(request->id, &err);
                return false;
        }
        pid_t pid = fork_into(INTO_SANDBOX, tid, &pid_fd);
        int sys = errno;
        if (pid == 0) {
                pages_text();
                if (join_enter(&plan, fds, pages_memory, &err) < 0)
                        _exit(1);
                return true;
        }
        if (setns(own_pid_ns, CLONE_NEWPID) < 0)
                _exit(1);   /* no child of ours may start in another's sandbox */
        if (pid < 0) {
                err_set(&err, CSN_E_SYSTEM, sys, "fork the interpreter");
                refuse(request->id, &err);
                return false;
        }
        struct zygote_message forked = { .op = ZYGOTE_FORKED, .id = request->id, .pid = pid };
        answer(&forked, pid_fd);
        fd_close(&pid_fd);
        return false;
}

static PyObject *begin_room(PyObject *self, PyObject *none)
{
        (void)self, (void)none;
        room_begin();
        return fastpath_nothing();
}

static PyObject *fill_room(PyObject *self, PyObject *none)
{
        (void)self, (void)none;
        room_fill();
        return fastpath_nothing();
}

static int settle(struct csn_error *err)
{
        static struct range arenas[ARENAS_MAX];
        room_fill();
        size_t n = arenas_gathered(arenas);
        return shared_settle(arenas, n, err);
}

/* The same fork without a sandbox. */
static pid_t fork_alone(void)
{
        int *tid = tid_address();
        return tid ? fork_into(0, tid, NULL) : -1;
}

/* ---- training run: a process with a sample program (memory_prefault.h) ---- */

struct sample {
        PyObject *program;      /* NULL: there is none */
        const char *message;    /* the engine's message to a role */
        Py_ssize_t len;
};

/* The descriptors of a run.  Their other ends stay open without a reader. */
static int set_up_training_run(const struct sample *sample, struct csn_error *err)
{
        int channel[2], outputs[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0 || pipe2(outputs, O_CLOEXEC) < 0 ||
                (sample->len && send(channel[0], sample->message, (size_t)sample->len, 0) < 0) ||
                dup2(channel[1], 3) < 0 || dup2(outputs[1], STDOUT_FILENO) < 0 || dup2(outputs[1], STDERR_FILENO) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "descriptors for a rehearsal");
        return pages_remember(err);
}

/*
 * Read the answer of a child; in the child: 1, and *ret_fd is the pipe of the answer.  Nothing else runs here
 * meanwhile.
 */
static int ask_fork(int *ret_fd, struct csn_error *err)
{
        int answer[2];
        if (pipe2(answer, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "pipe");
        pid_t pid = fork_alone();
        fd_close(&answer[pid == 0 ? 0 : 1]);
        *ret_fd = answer[1];
        if (pid == 0)
                return 1;
        int r = pid < 0 ? err_set(err, CSN_E_SYSTEM, errno, "fork the interpreter") : pages_take(answer[0], err);
        fd_close(&answer[0]);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        return r;
}

/* Find the pages touched by a run.  True in the process of the training run. */
static bool learn_pages(const struct sample *sample)
{
        struct csn_error err;
        int fd, r = ask_fork(&fd, &err);
        if (r == 1) {
                fastpath_train(sample->program, fd);
                if (set_up_training_run(sample, &err) < 0)
                        _exit(1);
                return true;
        }
        if (r == 0 && (r = ask_fork(&fd, &err)) == 1)
                _exit(pages_thin(fd, &err) < 0 ? 1 : 0);
        if (r < 0)
                dprintf(STDERR_FILENO,
                        "zygote.py: the pages that a run touches are not all known, runs will be slower: %s\n",
                        err.text);
        return false;
}

static int own_pid_namespace(struct csn_error *err)
{
        int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
        return fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "pidfd_open (Linux 5.3)") : fd;
}

static PyObject *serve(PyObject *self, PyObject *args)
{
        const char *info;
        Py_ssize_t len;
        struct sample sample = { 0 };
        struct csn_error err;
        struct zygote_message message = { .op = ZYGOTE_SERVES };
        (void)self;
        if (!PyArg_ParseTuple(args, "y#OO|Sy#", &info, &len, &fastpath_argv, &fastpath_env, &sample.program,
                    &sample.message, &sample.len))
                return NULL;
        Py_IncRef(fastpath_argv);
        Py_IncRef(fastpath_env);
        if ((size_t)len >= sizeof message.info)
                return PyErr_Format(PyExc_ValueError, "info has %zd bytes, %zu are possible", len,
                        sizeof message.info - 1);
        memcpy(message.info, info, (size_t)len);
        int *tid = tid_address();
        if (!tid) {
                err_set(&err, CSN_E_UNSUPPORTED, 0,
                        "this kernel does not tell the address of the thread id (CONFIG_CHECKPOINT_RESTORE)");
                refuse(0, &err);
                return fastpath_error(&err);
        }
        int own_pid_ns = own_pid_namespace(&err); /* while serving; join_enter() closes the descriptor in a child */
        if (own_pid_ns < 0) {
                refuse(0, &err);
                return fastpath_error(&err);
        }
        size_t filter_len;
        seccomp_program(SECCOMP_LAST, &filter_len);   /* once, and not in every child */
        if (settle(&err) < 0) {
                refuse(0, &err);
                return fastpath_error(&err);
        }
        if (sample.program && learn_pages(&sample))
                return PyBool_FromLong(true);
        answer(&message, -1);
        for (;;) {
                int fds[WIRE_FDS_MAX];
                size_t fds_n;
                ssize_t n = wire_receive_small(ZYGOTE_SOCKET_FD, &message, sizeof message, fds, &fds_n);
                if (n == 0)
                        _exit(0);
                if (n != (ssize_t)sizeof message || message.op != ZYGOTE_FORK || fds_n != 6)
                        _exit(1);
                if (serve_one(&message, fds, own_pid_ns, tid))
                        return PyBool_FromLong(false);
                for (size_t i = 0; i < fds_n; i++)
                        fd_close(&fds[i]);
        }
}

/* ---- the program ---- */

static PyObject *list_of(char *const *texts, size_t n)
{
        PyObject *list = PyList_New((Py_ssize_t)n);
        for (size_t i = 0; list && i < n; i++) {
                PyObject *text = PyBytes_FromString(texts[i]);
                if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) < 0) {
                        Py_DecRef(list);
                        return NULL;
                }
        }
        return list;
}

static bool is_list_of(PyObject *list, char *const *texts, size_t n)
{
        if (!PyList_Check(list) || PyList_Size(list) != (Py_ssize_t)n)
                return false;
        for (size_t i = 0; i < n; i++)
                if (strcmp(PyBytes_AsString(PyList_GetItem(list, (Py_ssize_t)i)), texts[i]) != 0)
                        return false;
        return true;
}

/* The usual list if equal: a new list, and a comparison in Python, would touch shared memory. */
static PyObject *list_or_usual(PyObject *usual, char *const *texts, size_t n)
{
        if (!is_list_of(usual, texts, n))
                return list_of(texts, n);
        Py_IncRef(usual);
        return usual;
}

/* The interpreter and the runner, as on the cold command line, are no arguments of the program. */
#define OWN_ARGUMENTS 2

static bool is_dots(const char *name)
{
        return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Without opendir(3): its buffer would be 32 KiB of shared memory. */
static bool is_folder_empty(const char *path)
{
        auto_fd folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _Alignas(struct dirent64) char entries[1024];
        long n = -1;
        while (folder >= 0 && (n = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
                const struct dirent64 *entry;
                for (long at = 0; at < n; at += entry->d_reclen) {
                        entry = (const struct dirent64 *)(entries + at);
                        if (!is_dots(entry->d_name))
                                return false;
                }
        }
        return n == 0;
}

/* (name, content) of the only file at home, or None. */
static PyObject *only_file(bool was_empty, const struct wire_file *file)
{
        if (!was_empty || !file->name)
                return fastpath_nothing();
        return Py_BuildValue("(yy#)", file->name, file->content, (Py_ssize_t)file->content_len);
}

static PyObject *wait_for_program(PyObject *self, PyObject *none)
{
        struct arena arena = { 0 };
        struct handoff_taken taken;
        const struct wire_program *program = &taken.program;
        struct csn_error err = { 0 };
        (void)self, (void)none;
        /* In the home of a guest other processes are at work.  Checked now, while no client waits. */
        bool was_empty = is_folder_empty(".") && !(plan.shape.flags & WIRE_PERSISTENT);
        PyObject *training_run = fastpath_training_run(fastpath_argv, fastpath_env);
        if (training_run || PyErr_Occurred())
                return training_run;
        if (join_wait(&plan, &arena, &taken, &err) < 0)
                _exit(1);   /* the error was sent */
        size_t own = program->argv_n < OWN_ARGUMENTS ? program->argv_n : OWN_ARGUMENTS;
        PyObject *argv = list_or_usual(fastpath_argv, program->argv + own, program->argv_n - own);
        PyObject *env = list_or_usual(fastpath_env, program->env, program->env_n);
        PyObject *only = only_file(was_empty, &taken.only);
        arena_done(&arena);
        if (!argv || !env || !only) {
                Py_DecRef(argv);
                Py_DecRef(env);
                Py_DecRef(only);
                return NULL;
        }
        return Py_BuildValue("(NNN)", argv, env, only);
}

/* ---- the channel ---- */

static PyObject *send_python_frame(PyObject *self, PyObject *args)
{
        struct where to;
        int type, flags;
        const char *payload;
        Py_ssize_t len;
        bool sent = false;
        (void)self;
        if (!PyArg_ParseTuple(args, "O&iiy#", fastpath_to_where, &to, &type, &flags, &payload, &len))
                return NULL;
        do {
                Py_BEGIN_ALLOW_THREADS
                sent = channel_send(&to, type, flags, payload, (size_t)len, 0);
                Py_END_ALLOW_THREADS
        } while (!sent && errno == EINTR && PyErr_CheckSignals() == 0);
        return PyErr_Occurred() ? NULL : PyBool_FromLong(sent);
}

/* The end of a case, at once.  Python would have to look for _exit(2) in all libraries first, in each process anew. */
static PyObject *quit(PyObject *self, PyObject *args)
{
        int status;
        (void)self;
        if (!PyArg_ParseTuple(args, "i", &status))
                return NULL;
        _exit(status);
}

static PyObject *fork_here(PyObject *self, PyObject *none)
{
        struct csn_error err;
        (void)self, (void)none;
        pid_t pid = fork_alone();
        if (pid >= 0)
                return PyLong_FromLong(pid);
        err_set(&err, CSN_E_SYSTEM, errno, "fork the interpreter");
        return fastpath_error(&err);
}

/* ---- cases of a grading ---- */

static PyObject *run_cases(PyObject *self, PyObject *args)
{
        (void)self;
        return grader_run_cases(args, fork_alone);
}

/* ---- memory ---- */

static PyObject *forget_text(PyObject *self, PyObject *none)
{
        struct csn_error err;
        (void)self, (void)none;
        return done(shared_forget_text(&err), &err);
}

static PyMethodDef methods[] = {
        { "fork", fork_here, METH_NOARGS, "fork() -> pid, and 0 in the new process, in which no handler has run." },
        { "run_cases", run_cases, METH_VARARGS,
                "run_cases(first, cases, where, endings, message_max, null, alone, look, answer, end): see grader.h." },
        { "forget_text", forget_text, METH_NOARGS,
                "forget_text(): drop what is mapped of program text; what is needed comes back." },
        { "ahead", imports_ahead, METH_VARARGS,
                "ahead(names, places, needs, path): modules that a program has not imported yet; see imports.h." },
        { "__import__", (PyCFunction)(void (*)(void))imports_import, METH_VARARGS | METH_KEYWORDS, "Import a module." },
        { "_gcd_import", (PyCFunction)(void (*)(void))imports_gcd_import, METH_VARARGS | METH_KEYWORDS,
                "Import a module by its absolute name." },
        { "set_gcd_import", imports_set_gcd, METH_O, "set_gcd_import(function): what _gcd_import() calls." },
        { "begin_room", begin_room, METH_NOARGS, "begin_room(): what comes is in pages where nothing else is." },
        { "fill_room", fill_room, METH_NOARGS, "fill_room(): leave no room between what is allocated." },
        { "strangers", grader_unknown_names, METH_VARARGS,
                "strangers(names, known, values): the keys of names that known has not, or with another value." },
        { "is_usual_stream", fastpath_is_usual_stream, METH_VARARGS,
                "is_usual_stream(fd): whether it is what most runs have there." },
        { "renew", fastpath_renew, METH_O,
                "renew(bytes): put other random bytes into it, which nobody may have hashed." },
        { "have_ends", fastpath_have_ends, METH_VARARGS,
                "have_ends(objects, ref): whether the end of one could be told: a finalizer, a weak reference." },
        { "serve", serve, METH_VARARGS,
                "serve(info, argv, env[, program, message]): tell that everything is loaded, and fork at each request; returns in the children, True in one that runs the sample." },
        { "wait", wait_for_program, METH_NOARGS,
                "wait() -> (argv, env, only): the program's, as lists of bytes, those of serve() if they are the same; (name, content) of the only file at home, if it is short and this is no guest's, or None." },
        { "send_frame", send_python_frame, METH_VARARGS,
                "send_frame(where, type, flags, payload): whether it was sent on the channel." },
        { "quit", quit, METH_VARARGS, "quit(status): end this process at once." },
        { "leave", fastpath_leave, METH_VARARGS,
                "leave(status, where): end this process at once, and say so on the channel if it is not None." },
        { "share_constants", constants_share_of, METH_VARARGS, "share_constants(code, last): see constants.h." },
        { "split_last", fastpath_split_last, METH_O, "split_last(source): see runner.py." },
        /* fastpath.h */
        { "usual", fastpath_prepare, METH_O, "usual(names): what the five below have to do with." },
        { "logging_shutdown", fastpath_logging_shutdown, METH_VARARGS,
                "logging_shutdown(shutdown, handlers): what does the same, at once if there is no handler." },
        { "begin", fastpath_begin, METH_NOARGS, "begin(): whether this process is ready for a usual run." },
        { "start", fastpath_start, METH_O, "start(came) -> (code, last) for what wait() gave, or None." },
        { "drive", fastpath_drive, METH_VARARGS, "drive(generator, main): see drive.h; a usual run ends there." },
        { "is_plain", fastpath_is_plain, METH_VARARGS,
                "is_plain(error, value): whether there is nothing to tell of them." },
        { "end", fastpath_end, METH_VARARGS,
                "end(ending, tracing, profiling): end this process, or tell whether the interpreter must." },
        { NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "_caisson", "The zygote's side of a sandbox.", -1, methods,
        NULL, NULL, NULL, NULL };

#define OWN_MAPPING_MAX (2 * MIB)

/*
 * Loaded with the interpreter by LD_PRELOAD, not by the interpreter (memory_arenas.h).  The variable is to be seen by
 * no other process, in proc_pid_environ(5) either.
 */
__attribute__((constructor)) static void begin(void)
{
        static const char name[] = "LD_PRELOAD";
        char *value = getenv(name);
        if (!value || Py_IsInitialized())
                return;
        char *start = value - sizeof name;
        unsetenv(name);
        explicit_bzero(start, strlen(start));
        arenas_gather();
        /*
         * After free(3) of a block in a mapping of its own, malloc(3) takes blocks up to this size from the heap, which
         * is laid out anew (memory_layout.h).
         */
        void *volatile large = malloc(OWN_MAPPING_MAX);
        free(large);
}

__attribute__((visibility("default"))) PyMODINIT_FUNC PyInit__caisson(void);

PyMODINIT_FUNC PyInit__caisson(void)
{
        arenas_gather();   /* all but the first, if we were not loaded with the interpreter */
        PyObject *created = PyModule_Create(&module);
        return created && PyModule_AddIntConstant(created, "CHANNEL", CHANNEL_USUAL_FD) == 0 ? created : NULL;
}
