/* The caller's side of the worker: a single process, requests in a row, each with its deadline. */
#include "policy/policy.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#define RESULT_MAX (16 * MIB)
#define LOOK_US 1000000ULL             /* between two checks for a worker stopped by a signal */
#define STOPPED_MAX_US 5000000ULL      /* a worker stopped for so long is replaced */

struct checker {
        struct loop *loop;
        struct checker_paths paths;
        pid_t pid;                     /* 0: no worker */
        struct watch watch;
        struct timer deadline, refused;
        struct check *first, *last;    /* the worker has the first, if `sent` */
        struct check *unsendable;      /* refused without asking the worker */
        char last_key[80];             /* of the last check sent */
        bool sent;
        uint64_t stopped_us;           /* first sight of a stopped worker; 0: not stopped */
        uint64_t sent_us, work_us;     /* time of sending, and the worker's CPU time then */
        bool used;                     /* this worker has answered before */
        bool stale;                    /* has policies from before a reload, and ends after its answer */
        struct buf out, in;
        size_t written;                /* of `out`, and then of the code of the first check */
};

/* ---- answers ---- */

static void finish(struct check *check)
{
        check->active = false;
        check->done(check);
}

static struct check *take_first(struct checker *checker)
{
        struct check *check = checker->first;
        checker->first = check->next;
        if (!checker->first)
                checker->last = NULL;
        check->next = NULL;
        checker->sent = false;
        loop_untimer(checker->loop, &checker->deadline);
        return check;
}

static void refuse(struct check *check, const struct csn_error *err)
{
        policy_refuse(&check->request, err, &check->arena, &check->result);
}

/* ---- the worker's life ---- */

static void stop_worker(struct checker *checker)
{
        loop_unwatch(checker->loop, &checker->watch);
        fd_close(&checker->watch.fd);
        if (checker->pid) {
                kill(checker->pid, SIGKILL);
                while (waitpid(checker->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        checker->pid = 0;
        checker->in.len = checker->out.len = checker->written = 0;
        checker->sent = checker->used = checker->stale = false;
        checker->stopped_us = 0;
}

/* Between fork and exec: nothing but system calls. */
static _Noreturn void become_worker(const struct checker_paths *paths, int sock)
{
        const char *argv[] = { "caisson-policy", NULL, NULL, NULL }, *env[] = { NULL };
        int n = 1;
        sigset_t none;
        for (size_t i = 0; i < ARRAY_LEN(paths->folders); i++)
                if (paths->folders[i])
                        argv[n++] = paths->folders[i];
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (sock == WORKER_SOCKET_FD ? fcntl(sock, F_SETFD, 0) < 0 : dup2(sock, WORKER_SOCKET_FD) < 0)
                _exit(125);
        execve(paths->worker, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
        _exit(127);
}

static void socket_ready(struct watch *watch, uint32_t events);
static void work(struct checker *checker);

static int fork_worker(int sock, const struct checker_paths *paths, pid_t *ret_pid, struct csn_error *err)
{
        if (access(paths->worker, X_OK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "the program that checks sources, %s", paths->worker);
        pid_t pid = fork();
        if (pid == 0)
                become_worker(paths, sock);
        *ret_pid = pid;
        return pid < 0 ? err_set(err, CSN_E_SYSTEM, errno, "fork") : 0;
}

static int start_worker(struct checker *checker, struct csn_error *err)
{
        int pair[2];
        pid_t pid;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        auto_fd ours = pair[0], theirs = pair[1];
        /* The worker waits in read(2). */
        if (fcntl(theirs, F_SETFL, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fcntl");
        if ((checker->paths.start ? checker->paths.start(theirs, &pid, err)
                                  : fork_worker(theirs, &checker->paths, &pid, err)) < 0)
                return -err->code;
        checker->pid = pid;
        checker->watch = (struct watch){ .fd = take_fd(&ours), .ready = socket_ready, .owner = checker };
        return loop_watch(checker->loop, &checker->watch, checker->watch.fd, EPOLLIN, err);
}

/* The program was too much for the worker; the next program gets a new worker. */
static void worker_lost(struct checker *checker, const char *why)
{
        struct csn_error err;
        bool working = checker->sent;
        stop_worker(checker);
        if (working) {
                struct check *check = take_first(checker);
                err_field(&err, "/code", "the program could not be checked: %s", why);
                refuse(check, &err);
                finish(check);
        }
        work(checker);
}

/*
 * A worker with earlier answers may have ended for another reason: a worn worker leaves after its answer
 * (tree_is_worn), perhaps with the next request on its way.  A new worker gets the request once more.
 */
static void worker_died(struct checker *checker, const char *why)
{
        if (!checker->used) {
                worker_lost(checker, why);
                return;
        }
        stop_worker(checker);
        loop_untimer(checker->loop, &checker->deadline);
        work(checker);
}

/* The worker's CPU time so far; 0 for a dead worker: its socket reports the death. */
static uint64_t worked_us(const struct checker *checker)
{
        clockid_t clock;
        struct timespec time;
        if (clock_getcpuclockid(checker->pid, &clock) != 0 || clock_gettime(clock, &time) < 0)
                return 0;
        return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* No event tells of so much CPU time: the timer checks at the earliest possible moment. */
static bool is_stopped(const struct checker *checker)
{
        siginfo_t info = { 0 };
        return waitid(P_PID, (id_t)checker->pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

static void look_at_worker(struct checker *checker)
{
        if (!is_stopped(checker))
                checker->stopped_us = 0;
        else if (!checker->stopped_us)
                checker->stopped_us = clock_us();
        else if (clock_us() - checker->stopped_us >= STOPPED_MAX_US) {
                log_text(LOG_WARN, "the policy worker was stopped; it is killed, and another one is started");
                checker->used = true;   /* not stopped by the program: another worker gets the check */
                worker_died(checker, "its checker was stopped");
                return;
        }
        uint64_t work = worked_us(checker), most = CHECK_TIME_MS * 1000ULL + checker->work_us;
        uint64_t wall = clock_us() - checker->sent_us,
                 wall_most = 1000 * (checker->paths.wall_ms ? checker->paths.wall_ms : CHECK_WALL_MS);
        if (work >= most || wall >= wall_most)
                worker_lost(checker, "it took too long");
        else
                loop_timer(checker->loop, &checker->deadline,
                        min_u64(LOOK_US, min_u64(most - work, wall_most - wall)));
}

static void too_late(struct timer *timer)
{
        look_at_worker(timer->owner);
}

/* ---- sending and reading ---- */

static int add_part(const char *bytes, size_t len, void *buf)
{
        return buf_add(buf, bytes, len) ? 0 : -1;
}

static void encode(struct checker *checker, const struct check_request *request)
{
        struct worker_head head = { .code = (uint32_t)request->code.len };
        struct check_request rest = *request;
        SET(&rest, check_request, code, ((struct bytes){ 0 }));
        json_t *json = model_encode(&object_check_request, &rest);
        /* Bytes outside of UTF-8 are encoded in both forms, for people; a request has a single form. */
        if (json_object_get(json, "prelude_base64"))
                json_object_del(json, "prelude");
        checker->out.len = checker->written = 0;
        buf_add(&checker->out, &head, sizeof head);
        json_dump_callback(json, add_part, &checker->out, JSON_COMPACT);
        json_decref(json);
        head.json = (uint32_t)(checker->out.len - sizeof head);
        memcpy(checker->out.bytes, &head, sizeof head);
}

/* Send the rest of the request, if any; false: the send failed. */
static bool write_more(struct checker *checker)
{
        const struct bytes none = { 0 }, *code = checker->sent ? &checker->first->request.code : &none;
        size_t all = checker->out.len + code->len;
        while (checker->written < all) {
                size_t done = checker->written < checker->out.len ? checker->written : checker->out.len;
                const struct iovec parts[] = { { checker->out.bytes + done, checker->out.len - done },
                        { code->bytes + (checker->written - done), code->len - (checker->written - done) } };
                const struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = 2 };
                ssize_t n = sendmsg(checker->watch.fd, &message, MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0)
                        return false;
                checker->written += (size_t)n;
        }
        struct csn_error err;
        int fd = checker->watch.fd;
        uint32_t wanted = EPOLLIN | (checker->written < all ? (uint32_t)EPOLLOUT : 0);
        loop_unwatch(checker->loop, &checker->watch);
        return loop_watch(checker->loop, &checker->watch, fd, wanted, &err) == 0;
}

static bool is_of(const struct check *check, const char *key)
{
        return strcmp(check->key ? check->key : "", key) == 0;
}

/* Move the first check of another key to the front: a key with many checks does not hold up the others. */
static void let_others_pass(struct checker *checker)
{
        struct check *before = NULL, *check = checker->first;
        while (check && is_of(check, checker->last_key)) {
                before = check;
                check = check->next;
        }
        if (check && before) {
                before->next = check->next;
                if (!check->next)
                        checker->last = before;
                check->next = checker->first;
                checker->first = check;
        }
        snprintf(checker->last_key, sizeof checker->last_key, "%s", checker->first->key ? checker->first->key : "");
}

static void work(struct checker *checker)
{
        struct csn_error err = { 0 };
        while (checker->first && !checker->sent) {
                let_others_pass(checker);
                if (!checker->pid && start_worker(checker, &err) < 0) {
                        stop_worker(checker);
                        struct check *check = take_first(checker);
                        refuse(check, &err);
                        finish(check);
                        continue;
                }
                encode(checker, &checker->first->request);
                checker->sent = true;
                checker->sent_us = clock_us();
                checker->work_us = worked_us(checker);
                look_at_worker(checker);
                if (!write_more(checker)) {
                        worker_died(checker, "its checker died");
                        return;
                }
        }
}

/* Take a whole answer from the front of the input; false: not yet.  A wrong answer counts as a death. */
static bool take_answer(struct checker *checker, bool *ret_wrong)
{
        uint32_t len;
        struct csn_error err;
        if (checker->in.len < sizeof len)
                return false;
        memcpy(&len, checker->in.bytes, sizeof len);
        bool last = len & WORKER_LAST, doubtful = len & WORKER_DOUBTFUL;
        len &= ~(WORKER_LAST | WORKER_DOUBTFUL);
        *ret_wrong = len > RESULT_MAX || !checker->sent;
        if (*ret_wrong || checker->in.len < sizeof len + len)
                return false;
        struct check *check = checker->first;
        *ret_wrong = checker->in.len != sizeof len + len ||
                model_decode_text(&object_check_result, checker->in.bytes + sizeof len, len, &check->arena,
                        &check->result, &err) < 0;
        if (*ret_wrong)
                return false;
        check->doubtful = doubtful;
        checker->in.len = 0;
        checker->used = true;
        take_first(checker);
        if (last || checker->stale)
                stop_worker(checker);
        finish(check);
        return true;
}

static void socket_ready(struct watch *watch, uint32_t events)
{
        struct checker *checker = watch->owner;
        char bytes[16 * KIB];
        bool wrong = false;
        if (events & EPOLLOUT && !write_more(checker)) {
                worker_died(checker, "its checker died");
                return;
        }
        ssize_t n = recv(watch->fd, bytes, sizeof bytes, 0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return;
        if (n <= 0 || !buf_add(&checker->in, bytes, (size_t)n)) {
                worker_died(checker, "its checker died of it");
                return;
        }
        if (take_answer(checker, &wrong))
                work(checker);
        else if (wrong)
                worker_lost(checker, "its checker gave no answer");
}

/* ---- the checker ---- */

static void tell_refused(struct timer *timer)
{
        struct checker *checker = timer->owner;
        while (checker->unsendable) {
                struct check *check = checker->unsendable;
                checker->unsendable = check->next;
                check->next = NULL;
                finish(check);
        }
        work(checker);
}

void checker_open(struct loop *loop, const struct checker_paths *paths, struct checker **ret)
{
        struct checker *checker = mem_alloc(sizeof *checker);
        *checker = (struct checker){ .loop = loop,
                .paths = *paths,
                .watch = { .fd = -1 },
                .deadline = { .fired = too_late, .owner = checker },
                .refused = { .fired = tell_refused, .owner = checker } };
        buf_init(&checker->out, 8 * MIB);
        buf_init(&checker->in, RESULT_MAX + sizeof(uint32_t) + 1);
        *ret = checker;
}

void checker_close(struct checker *checker)
{
        if (!checker)
                return;
        loop_untimer(checker->loop, &checker->deadline);
        loop_untimer(checker->loop, &checker->refused);
        stop_worker(checker);
        buf_done(&checker->out);
        buf_done(&checker->in);
        free(checker);
}

void checker_reload(struct checker *checker, const struct checker_paths *paths)
{
        checker->paths = *paths;
        checker->stale = checker->pid && checker->sent;
        if (!checker->stale)
                stop_worker(checker);
}

void checker_start(struct checker *checker, struct check *check)
{
        struct csn_error err;
        check->active = true;
        check->doubtful = false;
        check->next = NULL;
        loop_timer(checker->loop, &checker->refused, 0);
        if (check->request.code.len > CHECK_CODE_MAX) {
                err_field(&err, "/code", "the program is longer than %llu bytes", CHECK_CODE_MAX);
                refuse(check, &err);
                check->next = checker->unsendable;
                checker->unsendable = check;
                return;
        }
        if (checker->last)
                checker->last->next = check;
        else
                checker->first = check;
        checker->last = check;
}

static void unlink_check(struct check **list, struct check **last, const struct check *check)
{
        struct check *before = NULL;
        for (struct check **at = list; *at; before = *at, at = &(*at)->next)
                if (*at == check) {
                        *at = check->next;
                        if (last && *last == check)
                                *last = before;
                        return;
                }
}

void checker_cancel(struct checker *checker, struct check *check)
{
        if (!checker || !check->active)
                return;
        bool working = checker->sent && checker->first == check;
        if (working) {
                stop_worker(checker);
                loop_untimer(checker->loop, &checker->deadline);
        }
        unlink_check(&checker->first, &checker->last, check);
        unlink_check(&checker->unsendable, NULL, check);
        check->active = false;
        loop_timer(checker->loop, &checker->refused, 0);
}

void check_done(struct check *check)
{
        arena_done(&check->arena);
        check->result = (struct check_result){ 0 };
}

void policy_defaults(struct check_request *request)
{
        static char usual[] = "linx";
        bool own = HAS(request, check_request, block_at);
        if (!HAS(request, check_request, policy))
                SET(request, check_request, policy, usual);
        model_defaults(&object_check_request, request);
        if (!own)
                request->present &= ~((uint64_t)1 << FIELD_check_request_block_at);
}
