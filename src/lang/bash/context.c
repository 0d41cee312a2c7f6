/*
 * Executes texts in one persistent Bash (docs/protocols/runner-channel.md).
 *
 * Bash cannot receive packets, so this program serves the channel and drives a Bash.  The Bash is interactive, without
 * a terminal: only an interactive Bash stays at its top level after an interrupted command or a failed expansion, and
 * continues with the next line.  A loaded object (reader.c) reads the texts in place of standard input, so the texts
 * are executed as if typed in a login shell, without any command of ours in between.  The shell opens our descriptors
 * by their names in /proc, so its commands do not inherit our descriptors.
 *
 * Linked statically, and only with code independent of the image's libraries.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lang/bash/reader.h"
#include "wire/wire.h"

#define CHANNEL_FD 3
#define BROKEN_EXIT 70
#define TEXT_MAX 4000
/* for processes on their way to a command, 1 ms apart; then the interrupt is sent anyway */
#define SETTLE_LOOKS 2000
#define SETTLE_TICKS 3          /* of CPU time, after which the shell is not on its way but busy */
#define AGAIN_FIRST_MS 300
#define AGAIN_LAST_MS 60000
#define REQUEST_MAX (256 * (size_t)MIB)

#define EXECUTE 9

static struct {
        pid_t pid;
        int go;                 /* the reader waits for a byte */
        int reports;            /* lines from the reader */
        int code;               /* files in memory */
        int settings;
        int signals;
        char told[64];          /* an incomplete line of reports */
        size_t told_len;
} shell;

static _Noreturn void die(int status, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        fprintf(stderr, "context.sh: ");
        vfprintf(stderr, fmt, args);
        fprintf(stderr, "\n");
        va_end(args);
        if (shell.pid > 0)
                kill(-shell.pid, SIGKILL);
        _exit(status);
}

/* ---- the channel ---- */

static void send_frame(int type, const char *payload)
{
        const size_t room = CHANNEL_FRAME_MAX - CHANNEL_HEADER;
        size_t len = strlen(payload), at = 0;
        do {
                char frame[CHANNEL_FRAME_MAX] = "CSN1";
                size_t piece = len - at < room ? len - at : room;
                frame[4] = (char)type;
                frame[5] = at + piece < len ? CHANNEL_MORE : 0;
                for (int i = 0; i < 4; i++)
                        frame[8 + i] = (char)(piece >> (8 * i) & 0xff);
                memcpy(frame + CHANNEL_HEADER, payload + at, piece);
                if (send(CHANNEL_FD, frame, CHANNEL_HEADER + piece, MSG_NOSIGNAL) < 0)
                        return;   /* the engine is gone; the end of file follows */
                at += piece;
        } while (at < len);
}

static void send_json(int type, json_t *document)
{
        char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
        if (!text)
                die(BROKEN_EXIT, "no memory for a document");
        send_frame(type, text);
        free(text);
        json_decref(document);
}

static void send_error(const char *type, const char *message, int status)
{
        send_json(CHANNEL_ERROR, json_pack("{s:s, s:s, s:i}", "type", type, "message", message, "status", status));
}

/* The document of an EXECUTE, or NULL at the end of file. */
static json_t *receive(void)
{
        static uint8_t frame[CHANNEL_FRAME_MAX + 1];
        struct buf text;
        buf_init(&text, REQUEST_MAX);
        for (;;) {
                ssize_t n = recv(CHANNEL_FD, frame, sizeof frame, 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        buf_done(&text);
                        return NULL;
                }
                size_t piece = n < CHANNEL_HEADER ? 0 : (size_t)n - CHANNEL_HEADER;
                size_t told = n < CHANNEL_HEADER
                        ? 1
                        : frame[8] | (size_t)frame[9] << 8 | (size_t)frame[10] << 16 | (size_t)frame[11] << 24;
                if (piece != told || n > CHANNEL_FRAME_MAX || memcmp(frame, "CSN1", 4) != 0 || frame[4] != EXECUTE ||
                    frame[5] > CHANNEL_MORE || frame[6] || frame[7])
                        die(BROKEN_EXIT, "what came over the channel is no request: a frame has a wrong header");
                if (!buf_add(&text, frame + CHANNEL_HEADER, piece))
                        die(BROKEN_EXIT, "what came over the channel is no request: it has more than %zu bytes",
                                REQUEST_MAX);
                if (!frame[5])
                        break;
        }
        json_error_t error;
        json_t *document = json_loadb(text.bytes ? (const char *)text.bytes : "", text.len, JSON_ALLOW_NUL, &error);
        buf_done(&text);
        if (!document || !json_is_string(json_object_get(document, "code")))
                die(BROKEN_EXIT, "what came over the channel is no request: %s",
                        document ? "an execution needs \"code\", a text" : error.text);
        return document;
}

/* ---- the shell ---- */

/* Move a descriptor to the number known to the shell. */
static int put_at(int fd, enum reader_fd number)
{
        if (fd < 0 || dup3(fd, number, O_CLOEXEC) < 0)
                die(BROKEN_EXIT, "descriptor %d: %s", number, strerror(errno));
        close(fd);
        return number;
}

static void open_files(void)
{
        int go[2], reports[2];
        if (pipe2(go, O_CLOEXEC) < 0 || pipe2(reports, O_CLOEXEC) < 0)
                die(BROKEN_EXIT, "pipe: %s", strerror(errno));
        /* The ends of this process get numbers above the shell's. */
        shell.go = fcntl(go[1], F_DUPFD_CLOEXEC, READER_SETTINGS_FD + 1);
        shell.reports = fcntl(reports[0], F_DUPFD_CLOEXEC, READER_SETTINGS_FD + 1);
        close(go[1]);
        close(reports[0]);
        put_at(go[0], READER_GO_FD);
        put_at(reports[1], READER_REPORTS_FD);
        shell.code = put_at(memfd_create("code", MFD_CLOEXEC), READER_CODE_FD);
        shell.settings = put_at(memfd_create("settings", MFD_CLOEXEC), READER_SETTINGS_FD);
        fcntl(shell.reports, F_SETFL, O_NONBLOCK);
        if (shell.go < 0 || shell.reports < 0 || ftruncate(shell.settings, 4) < 0)
                die(BROKEN_EXIT, "descriptors: %s", strerror(errno));
}

/*
 * The shell's standard input at its start.  The reader has no builtin, so `enable` fails in any case; the second line
 * is read only if the load has failed.
 */
static const char beginning[] =
        "unset HISTFILE; set +o history; history -c; enable -f '%s' reader 2>/dev/null || :\n"
        "echo 'context.sh: this Bash cannot load what reads executions for it: %s' >&3; exit %d\n";

static void begin_shell(int script, const char *reader)
{
        char text[2 * PATH_MAX + sizeof beginning];
        int n = snprintf(text, sizeof text, beginning, reader, reader, BROKEN_EXIT);
        if (write(script, text, (size_t)n) != n)
                die(BROKEN_EXIT, "tell the shell: %s", strerror(errno));
        close(script);
}

static void start_shell(const char *reader)
{
        int script[2];
        sigset_t mask;
        if (pipe2(script, O_CLOEXEC) < 0)
                die(BROKEN_EXIT, "pipe: %s", strerror(errno));
        shell.pid = fork();
        if (shell.pid < 0)
                die(BROKEN_EXIT, "fork: %s", strerror(errno));
        if (shell.pid == 0) {
                /* Hides the complaint about the missing terminal; the reader restores our standard error. */
                int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
                setpgid(0, 0);
                sigemptyset(&mask);
                sigprocmask(SIG_SETMASK, &mask, NULL);
                signal(SIGINT, SIG_DFL);
                signal(SIGPIPE, SIG_DFL);
                dup2(2, CHANNEL_FD);
                dup2(null, 2);
                dup2(script[0], 0);
                execl(BASH, "bash", "--norc", "--noprofile", "--noediting", "+H", "-i", NULL);
                _exit(127);
        }
        setpgid(shell.pid, shell.pid);
        close(script[0]);
        begin_shell(script[1], reader);
}

/* 'text' for the shell. */
static void add_quoted(struct buf *buf, const char *text)
{
        buf_add(buf, "'", 1);
        for (; *text; text++) {
                if (*text == '\'')
                        buf_add(buf, "'\\''", 4);
                else
                        buf_add(buf, text, 1);
        }
        buf_add(buf, "'", 1);
}

static bool is_name(const char *name)
{
        if (!*name || (*name >= '0' && *name <= '9'))
                return false;
        return name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

/* Has the shell execute the text in the file of code. */
static void tell_execution(const json_t *request)
{
        struct buf settings;
        const char *cwd = json_string_value(json_object_get(request, "cwd"));
        const char *name;
        json_t *value;
        buf_init(&settings, READER_SETTINGS_MAX);
        buf_add(&settings, "", 1);
        buf_add(&settings, cwd ? cwd : "", cwd ? strlen(cwd) + 1 : 1);
        json_object_foreach(json_object_get(request, "env"), name, value) {
                if (!is_name(name) || !json_is_string(value))
                        continue;
                buf_printf(&settings, "%s=", name);
                add_quoted(&settings, json_string_value(value));
                buf_add(&settings, "", 1);
        }
        if (!buf_add(&settings, "", 1) ||
                pwrite(shell.settings, settings.bytes, settings.len, 0) != (ssize_t)settings.len)
                die(BROKEN_EXIT, "no memory for the variables of an execution");
        buf_done(&settings);
        if (write(shell.go, "", 1) < 0)
                return;   /* the shell has ended, and its end is seen elsewhere */
}

/* ---- syntax check ---- */

/* `bash -n` on the code, with its message.  Returns its status. */
static int check(bool extglob, char *message, size_t size)
{
        int errors[2], status;
        size_t len = 0;
        ssize_t n;
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), shell.code);
        if (pipe2(errors, O_CLOEXEC) < 0)
                die(BROKEN_EXIT, "pipe: %s", strerror(errno));
        pid_t pid = fork();
        if (pid == 0) {
                sigset_t mask;
                sigemptyset(&mask);
                sigprocmask(SIG_SETMASK, &mask, NULL);
                dup2(errors[1], 2);
                setenv("LC_MESSAGES", "C", 1);
                execl(BASH, "bash", extglob ? "-O" : "-n", extglob ? "extglob" : path, extglob ? "-n" : NULL, path,
                        NULL);
                _exit(127);
        }
        close(errors[1]);
        while ((n = read(errors[0], message + len, size - 1 - len)) > 0 || (n < 0 && errno == EINTR))
                len += n > 0 && len + (size_t)n < size - 1 ? (size_t)n : 0;
        message[len] = '\0';
        close(errors[0]);
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* The text of a line of the code, counted from 1; owned by the caller. */
static char *line_of(const char *code, long line)
{
        for (; line > 1 && code; line--) {
                code = strchr(code, '\n');
                code = code ? code + 1 : NULL;
        }
        return code ? strndup(code, strcspn(code, "\n")) : NULL;
}

static void refuse(const char *code, char *message, bool quiet)
{
        char *end = strchr(message, '\n'), *text = NULL, *at;
        long line = 0;
        if (end)
                *end = '\0';
        if ((at = strstr(message, ": line ")))
                line = strtol(at + 7, &at, 10);
        if (line > 0 && *at == ':') {
                message = at + 2;
                text = line_of(code, line);
        }
        message[strnlen(message, TEXT_MAX)] = '\0';
        if (!quiet && line > 0)
                fprintf(stderr, "bash: line %ld: %s\n", line, message);
        else if (!quiet)
                fprintf(stderr, "bash: %s\n", message);
        json_t *document = json_pack("{s:s, s:s, s:n}", "type", "SyntaxError", "message", message, "column");
        json_object_set_new(document, "line", line > 0 ? json_integer(line) : json_null());
        json_object_set_new(document, "text", text ? json_string(text) : json_null());
        send_json(CHANNEL_SYNTAX, document);
        free(text);
}

/* Put the code into the shell's file.  False: Bash cannot read the code, and the error was reported. */
static bool accept_code(const json_t *request)
{
        const json_t *code = json_object_get(request, "code");
        bool quiet = json_is_true(json_object_get(request, "quiet"));
        const char *text = json_string_value(code);
        static char message[64 * 1024];
        if (strlen(text) != json_string_length(code)) {
                snprintf(message, sizeof message, "a NUL byte in the text");
                refuse("", message, quiet);
                return false;
        }
        if (ftruncate(shell.code, 0) < 0 || pwrite(shell.code, text, strlen(text), 0) != (ssize_t)strlen(text))
                die(BROKEN_EXIT, "no memory for a program of %zu bytes", strlen(text));
        /* Extended patterns may be on by now. */
        if (check(false, message, sizeof message) == 2 && check(true, message, sizeof message) == 2) {
                refuse(text, message, quiet);
                return false;
        }
        return true;
}

/* ---- an execution ---- */

/* The next complete line of reports in *ret, without its end; false when there is none yet. */
static bool next_report(char ret[static sizeof shell.told])
{
        ssize_t n = read(shell.reports, shell.told + shell.told_len, sizeof shell.told - 1 - shell.told_len);
        if (n > 0)
                shell.told_len += (size_t)n;
        char *end = memchr(shell.told, '\n', shell.told_len);
        if (!end)
                return false;
        size_t len = (size_t)(end - shell.told);
        memcpy(ret, shell.told, len);
        ret[len] = '\0';
        shell.told_len -= len + 1;
        memmove(shell.told, end + 1, shell.told_len);
        return true;
}

/* The shell has ended, by exit or a signal.  Exit alike, for the engine. */
static _Noreturn void follow_shell(int status)
{
        if (WIFEXITED(status))
                _exit(WEXITSTATUS(status));
        _exit(128 + WTERMSIG(status));
}

/* Take the pending signals; true: with a SIGINT. */
static bool take_signals(void)
{
        struct signalfd_siginfo info;
        bool interrupted = false;
        int status;
        while (read(shell.signals, &info, sizeof info) == (ssize_t)sizeof info) {
                if (info.ssi_signo == SIGINT)
                        interrupted = true;
                else if (waitpid(shell.pid, &status, WNOHANG) == shell.pid)
                        follow_shell(status);
        }
        return interrupted;
}

/* The text of /proc/PID/NAME; "" for a process gone. */
static const char *read_proc(pid_t pid, const char *name, char *text, size_t size)
{
        char path[48];
        snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
        auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
        text[n > 0 ? n : 0] = '\0';
        return text;
}

/* The state of a process, a letter of proc_pid_stat(5), or 0; its group, and its CPU time in ticks. */
static char look_at(pid_t pid, pid_t *ret_group, unsigned long *ret_ticks)
{
        char text[1024], state;
        unsigned long user, system;
        const char *end =
                strrchr(read_proc(pid, "stat", text, sizeof text), ')'); /* of its name, which may have any character */
        if (!end ||
                sscanf(end + 1, " %c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, ret_group, &user,
                        &system) != 4)
                return 0;
        *ret_ticks = user + system;
        return state;
}

/* The signals with handlers, as written by the kernel. */
static bool handlers_of(pid_t pid, char ret[static 17])
{
        char text[4096];
        const char *line = strstr(read_proc(pid, "status", text, sizeof text), "\nSigCgt:");
        return line && sscanf(line, "\nSigCgt: %16s", ret) == 1;
}

/*
 * Whether the shell's group has a running process with the shell's handlers: a copy of the shell, before its command is
 * executed.
 */
static bool has_copies(void)
{
        char shells[17], theirs[17];
        DIR *all = opendir("/proc");
        bool found = false;
        if (!all || !handlers_of(shell.pid, shells)) {
                if (all)
                        closedir(all);
                return false;
        }
        for (const struct dirent *entry; !found && (entry = readdir(all));) {
                pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), group;
                unsigned long ticks;
                if (pid <= 0 || pid == shell.pid)
                        continue;
                char state = look_at(pid, &group, &ticks);
                found = (state == 'R' || state == 'D') && group == shell.pid && handlers_of(pid, theirs) &&
                        strcmp(theirs, shells) == 0;
        }
        closedir(all);
        return found;
}

/*
 * An interrupted copy of the shell ends by itself.  The shell, waiting for the copy, takes its end for an answer to the
 * interrupt and goes on with the next command (child_caught_sigint in job_table.c of Bash).  So processes on their way
 * arrive first: copies at their command, and the shell at its wait.
 */
static void settle(void)
{
        unsigned long begun = 0, ticks = 0;
        pid_t group = 0;
        for (int i = 0; i < SETTLE_LOOKS; i++) {
                char state = look_at(shell.pid, &group, &ticks);
                begun = i == 0 ? ticks : begun;
                if ((state != 'R' || ticks - begun >= SETTLE_TICKS) && !has_copies())
                        return;
                poll(NULL, 0, 1);
        }
}

static void interrupt_shell(void)
{
        settle();
        if (pwrite(shell.settings, "i", 1, 0) != 1)
                die(BROKEN_EXIT, "no memory for an interrupt");
        kill(-shell.pid, SIGINT);
}

static int await_status(void)
{
        bool begun = false, interrupted = false;
        int again_ms = -1;
        char report[sizeof shell.told];
        for (;;) {
                struct pollfd fds[] = { { .fd = shell.reports, .events = POLLIN },
                        { .fd = shell.signals, .events = POLLIN } };
                while (next_report(report)) {
                        if (report[0] == 'b')
                                begun = true;
                        else if (report[0] == 'e' && begun)
                                return (int)strtol(report + 1, NULL, 10);
                }
                /* Until the execution has begun, the shell takes an interrupt for an earlier execution. */
                if (begun && interrupted) {
                        interrupt_shell();
                        interrupted = false;
                        again_ms = again_ms < 0 ? AGAIN_FIRST_MS : again_ms < AGAIN_LAST_MS ? again_ms * 2 : again_ms;
                }
                int n = poll(fds, 2, again_ms);
                /* A command just being forked may have missed the interrupt. */
                if (n == 0 || take_signals())
                        interrupted = true;
        }
}

static void execute(const json_t *request)
{
        const char *cwd = json_string_value(json_object_get(request, "cwd"));
        char message[64];
        take_signals();
        if (!accept_code(request)) {
                send_frame(CHANNEL_DONE, "");
                return;
        }
        send_frame(CHANNEL_STARTED, "");
        auto_fd folder = cwd ? open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        if (cwd && (folder < 0 || faccessat(AT_FDCWD, cwd, X_OK, 0) < 0)) {
                char *text = NULL;
                if (asprintf(&text, "cd: %s: %s", cwd, strerror(errno)) < 0)
                        die(BROKEN_EXIT, "no memory for a message");
                if (!json_is_true(json_object_get(request, "quiet")))
                        fprintf(stderr, "bash: %s\n", text);
                send_error("ExitStatus", text, 1);
                free(text);
                send_frame(CHANNEL_DONE, "");
                return;
        }
        tell_execution(request);
        int status = await_status();
        snprintf(message, sizeof message, "exit status %d", status);
        if (status != 0)
                send_error("ExitStatus", message, status);
        send_frame(CHANNEL_DONE, "");
}

static void block_signals(void)
{
        sigset_t mask;
        sigemptyset(&mask);
        sigaddset(&mask, SIGINT);
        sigaddset(&mask, SIGCHLD);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        shell.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        if (shell.signals < 0)
                die(BROKEN_EXIT, "signalfd: %s", strerror(errno));
        signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
        int type = 0;
        socklen_t len = sizeof type;
        if (getsockopt(CHANNEL_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
                die(BROKEN_EXIT, "descriptor %d is no channel; nobody can ask for anything", CHANNEL_FD);
        fcntl(CHANNEL_FD, F_SETFD, FD_CLOEXEC);
        block_signals();
        if (argc < 4)
                die(BROKEN_EXIT, "its arguments are OPTIONS, the version of Bash and the path of its reader");
        open_files();
        start_shell(argv[3]);
        send_json(CHANNEL_HELLO,
                json_pack("{s:s, s:s, s:i, s:b}", "runner", "bash", "version", argv[2], "pid", (int)getpid(), "context",
                        1));
        for (;;) {
                struct pollfd fds[] = { { .fd = CHANNEL_FD, .events = POLLIN },
                        { .fd = shell.signals, .events = POLLIN } };
                poll(fds, 2, -1);
                take_signals();   /* nothing runs, so nothing is interrupted */
                if (!fds[0].revents)
                        continue;
                json_t *request = receive();
                if (!request)
                        break;
                execute(request);
                json_decref(request);
        }
        kill(-shell.pid, SIGKILL);
        return 0;
}
