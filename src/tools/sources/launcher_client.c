/* Our side of the launcher; see launcher_client.h. */
#include "tools/sources/launcher_client.h"

#include "backend/backend.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "wire/wire.h"

#define SOCKET_FD 3
#define LAUNCHER_S 5

static _Noreturn void become_launcher(const char *program, int sock, int table)
{
        char *const argv[] = { (char *)(uintptr_t)"caisson-launcher", NULL }, *const env[] = { NULL };
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        int high_sock = fcntl(sock, F_DUPFD_CLOEXEC, LAUNCH_TABLE_FD + 1),
            high_table = fcntl(table, F_DUPFD_CLOEXEC, LAUNCH_TABLE_FD + 1);
        if (null < 0 || dup2(high_sock, SOCKET_FD) < 0 || dup2(high_table, LAUNCH_TABLE_FD) < 0 ||
                dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
                _exit(125);
        close_range(LAUNCH_TABLE_FD + 1, ~0U, 0);
        execve(program, argv, env);
        _exit(127);
}

int launcher_start(struct launcher *launcher, const struct launch_program *programs, size_t n, struct csn_error *err)
{
        struct buf table;
        int pair[2];
        bool fits = true;
        buf_init(&table, LAUNCH_TABLE_MAX);
        for (size_t i = 0; fits && i < n; i++)
                fits = launch_put_program(&table, &programs[i]);
        auto_fd file = fits ? io_memfd("programs", table.bytes, table.len) : -1;
        int sys = errno;
        buf_done(&table);
        if (file < 0)
                return err_set(err, CSN_E_SYSTEM, fits ? sys : E2BIG, "make the table of the tools' programs");
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        auto_fd theirs = pair[1];
        launcher->sock = pair[0];
        /* The launcher answers at once; a broken launcher must not block the engine's loop. */
        const struct timeval patience = { .tv_sec = LAUNCHER_S };
        if (setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
            setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "bound the wait for the launcher of tools");
        const char *program = backend_supervisor();
        launcher->pid = fork();
        if (launcher->pid == 0)
                become_launcher(program, theirs, file);
        return launcher->pid < 0 ? err_set(err, CSN_E_SYSTEM, errno, "fork the launcher of tools") : 0;
}

void launcher_stop(struct launcher *launcher)
{
        fd_close(&launcher->sock);
        if (!helpers_reap(launcher->pid, HELPER_ANSWER_MS))
                log_text(LOG_ERROR, "the launcher of tools does not end");   /* the launcher runs as root */
        launcher->pid = 0;
}

int launcher_user(const struct engine_settings *engine, const char *name, uint64_t number,
        struct launch_program *program, struct csn_error *err)
{
        char *end, room[16 * KIB];
        struct passwd user, *found = NULL;
        program->uid = geteuid();
        program->gid = getegid();
        if (!name[0]) {
                uint64_t own = engine->uid_first + engine->uid_count + 1 + number;
                if (geteuid() == 0 && own >= UINT32_MAX)
                        return err_set(err, CSN_E_CONFIG, 0,
                                "no number is left for it after the last of sandboxes; name a user, or lower engine.uid_first");
                if (geteuid() == 0)
                        program->uid = program->gid = (uint32_t)own;
                return 0;
        }
        unsigned long given = strtoul(name, &end, 10);
        bool is_number = name[0] >= '0' && name[0] <= '9' && !*end && given < UINT32_MAX;
        if (is_number) {
                program->uid = program->gid = (uint32_t)given;
                if (getpwuid_r(program->uid, &user, room, sizeof room, &found) == 0 && found)
                        program->gid = found->pw_gid;
        } else if (getpwnam_r(name, &user, room, sizeof room, &found) == 0 && found) {
                program->uid = found->pw_uid;
                program->gid = found->pw_gid;
        } else {
                return err_set(err, CSN_E_CONFIG, 0, "there is no user \"%.60s\" here", name);
        }
        if (geteuid() != 0 && program->uid != geteuid())
                return err_set(err, CSN_E_CONFIG, 0, "only root can start a program as another user");
        return 0;
}

/* ours[] and theirs[] by LAUNCH_STDIN and so on. */
static int make_ends(int ours[LAUNCH_FDS], int theirs[LAUNCH_FDS], struct csn_error *err)
{
        for (int i = LAUNCH_STDIN; i < LAUNCH_FDS; i++) {
                int pair[2], mine = i == LAUNCH_STDIN ? 1 : 0;   /* pipe(2): the second end is written to */
                int rc = i == LAUNCH_CONTROL ? socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)
                                             : pipe2(pair, O_CLOEXEC);
                if (rc < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make the pipes of a tool's program");
                ours[i] = pair[mine];
                theirs[i] = pair[!mine];
                if (fcntl(ours[i], F_SETFL, O_NONBLOCK) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "fcntl");
        }
        return 0;
}

/* The launcher answers at once: it is small, trusted, and does nothing else. */
static int ask(const struct launcher *launcher, const struct buf *request, const int fds[LAUNCH_FDS],
        struct csn_error *err)
{
        int32_t said = 0;
        int got[WIRE_FDS_MAX];
        size_t got_n;
        if (wire_send(launcher->sock, request->bytes, request->len, fds, LAUNCH_FDS) < 0 ||
            wire_receive_small(launcher->sock, &said, sizeof said, got, &got_n) != (ssize_t)sizeof said) {
                /* A late answer would be taken for the answer to the next request. */
                shutdown(launcher->sock, SHUT_RDWR);
                return err_set(err, CSN_E_SYSTEM, 0,
                        "the process that starts programs of tools does not answer");
        }
        return said < 0 ? err_set(err, CSN_E_SYSTEM, -said, "start a program of a tool") : 0;
}

int launch_start(const struct launcher *launcher, size_t program, const struct launch_values *values,
        struct launched *ret, struct csn_error *err)
{
        static const struct launch_values none;
        int ours[LAUNCH_FDS] = { -1, -1, -1, -1 }, theirs[LAUNCH_FDS] = { -1, -1, -1, -1 };
        struct buf request;
        buf_init(&request, LAUNCH_REQUEST_MAX);
        int rc = launch_put_request(&request, program, values ? values : &none)
                ? 0
                : err_set(err, CSN_E_INPUT, 0, "the arguments are too long; together they may have %d bytes",
                          LAUNCH_REQUEST_MAX);
        if (rc == 0 && (rc = make_ends(ours, theirs, err)) == 0)
                rc = ask(launcher, &request, theirs, err);
        buf_done(&request);
        for (int i = 0; i < LAUNCH_FDS; i++) {
                fd_close(&theirs[i]);
                if (rc < 0)
                        fd_close(&ours[i]);
        }
        if (rc == 0)
                *ret = (struct launched){ ours[LAUNCH_STDIN], ours[LAUNCH_STDOUT], ours[LAUNCH_STDERR],
                        ours[LAUNCH_CONTROL] };
        return rc;
}

bool launch_over(const struct launched *launched, char *text, size_t size, int *ret_status)
{
        int32_t status = -1;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        ssize_t n = wire_receive_small(launched->control, &status, sizeof status, fds, &fds_n);
        for (size_t i = 0; n > 0 && i < fds_n; i++)
                fd_close(&fds[i]);
        if (n < 0 && errno == EAGAIN)
                return false;
        *ret_status = n == (ssize_t)sizeof status ? status : -1;
        if (*ret_status >= 0 && WIFEXITED(status))
                snprintf(text, size, "it ended with exit status %d", WEXITSTATUS(status));
        else if (*ret_status >= 0 && WIFSIGNALED(status))
                snprintf(text, size, "it was ended by signal %d", WTERMSIG(status));
        else
                snprintf(text, size, "it was ended from outside");
        return true;
}

void launch_end(struct launched *launched)
{
        fd_close(&launched->input);
        fd_close(&launched->output);
        fd_close(&launched->error);
        fd_close(&launched->control);
}
