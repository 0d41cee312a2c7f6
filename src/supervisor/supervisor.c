/* The supervisor: a table of requests and of states in which the engine may send them, and the sockets of peers. */
#include "supervisor/domain.h"
#include "supervisor/volumes.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define END_MS 2000            /* for processes to die at the end; the janitor does the rest */

/* ---- requests of the engine ---- */

struct request {
        struct supervisor *sup;
        struct wire_header header;
        const uint8_t *body;
        int *fds;                  /* WIRE_ENTRIES with JOIN_GUEST; the callee takes descriptors to keep */
};

static int op_hello(struct request *request, struct csn_error *err)
{
        (void)err;
        const struct abilities *abilities = &request->sup->abilities;
        struct wire_abilities answer = { .rootless = abilities->rootless,
                                         .landlock_abi = abilities->landlock_abi,
                                         .cgroup = abilities->cgroup,
                                         .controllers = abilities->controllers };
        struct buf message;
        buf_init(&message, WIRE_MAX);
        sup_answer(request->sup, &message, wire_put_abilities(&message, &answer), NULL, 0);
        request->sup->hello_received = true;
        return 0;
}

static int op_prepare(struct request *request, struct csn_error *err)
{
        struct wire_shape shape;
        struct arena arena = { 0 };
        int rc = wire_get_shape(request->body, request->header.len, &arena, &shape, err);
        if (rc == 0)
                rc = job_prepare(request->sup, request->header.job, &shape, err);
        arena_done(&arena);
        return rc;
}

static int op_join(struct request *request, struct csn_error *err)
{
        uint32_t zygote;
        if (wire_get_number(request->body, request->header.len, "JOIN", UINT32_MAX, &zygote, err) < 0)
                return -err->code;
        return job_join(request->sup, request->header.job, zygote, err);
}

static int op_worker(struct request *request, struct csn_error *err)
{
        return job_worker(request->sup, request->header.job, err);
}

static int op_start(struct request *request, struct csn_error *err)
{
        struct wire_limits limits;
        if (wire_get_limits(request->body, request->header.len, &limits, err) < 0)
                return -err->code;
        return job_start(request->sup, request->header.job, &limits, err);
}

static int op_guest(struct request *request, struct csn_error *err)
{
        struct wire_limits limits;
        if (wire_get_limits(request->body, request->header.len, &limits, err) < 0)
                return -err->code;
        return job_guest(request->sup, request->header.job, &limits, err);
}

static int op_join_guest(struct request *request, struct csn_error *err)
{
        uint32_t sandbox, zygote;
        if (wire_get_join_guest(request->body, request->header.len, &sandbox, &zygote, err) < 0)
                return -err->code;
        return job_join_guest(request->sup, request->header.job, sandbox, zygote, request->fds, err);
}

static int op_freeze(struct request *request, struct csn_error *err)
{
        uint32_t on;
        if (wire_get_number(request->body, request->header.len, "FREEZE", 1, &on, err) < 0)
                return -err->code;
        job_freeze(request->sup, request->header.job, on == 1);
        return 0;
}

static int op_exiting(struct request *request, struct csn_error *err)
{
        uint32_t status;
        if (wire_get_number(request->body, request->header.len, "EXITING", 255, &status, err) < 0)
                return -err->code;
        job_exiting(request->sup, request->header.job, status);
        return 0;
}

static int op_kill(struct request *request, struct csn_error *err)
{
        (void)err;
        job_stop(request->sup, request->header.job);
        return 0;
}

static int op_get_stats(struct request *request, struct csn_error *err)
{
        (void)err;
        job_report_stats(request->sup, request->header.job);
        return 0;
}

static int op_volume(struct request *request, struct csn_error *err)
{
        struct wire_volume_order order;
        struct csn_error failure;
        struct buf message;
        if (wire_get_volume(request->body, request->header.len, &order, err) < 0)
                return -err->code;
        if (volumes_order(request->sup, &order, &failure) < 0) {
                sup_answer_error(request->sup, WIRE_VOLUME_FAILED, request->header.job, &failure);
                return 0;
        }
        buf_init(&message, WIRE_MAX);
        sup_answer(request->sup, &message, wire_put_plain(&message, WIRE_VOLUME_DONE, request->header.job), NULL, 0);
        return 0;
}

/*
 * Replaces a killed or stopped janitor.  Without the outer init no sandbox can be made; the socket of the outer init
 * closes at its end, but no event reports a stopped outer init.
 */
static void check_children(struct supervisor *sup)
{
        struct csn_error err;
        domains_check(sup);
        if (!janitor_is_lost(&sup->janitor))
                return;
        log_text(LOG_WARN, "the janitor was killed or stopped; it is started again");
        janitor_stop(&sup->janitor);
        if (janitor_start(&sup->janitor, cgroup_paths(sup->cgroups), &err) < 0)
                sup_give_up(sup, &err);
}

static int op_ping(struct request *request, struct csn_error *err)
{
        struct buf message;
        (void)err;
        check_children(request->sup);
        buf_init(&message, WIRE_MAX);
        sup_answer(request->sup, &message, wire_put_plain(&message, WIRE_PONG, 0), NULL, 0);
        return 0;
}

static int op_zygote(struct request *request, struct csn_error *err)
{
        struct wire_shape shape;
        struct wire_program program;
        struct arena arena = { 0 };
        int rc = wire_get_zygote(request->body, request->header.len, &arena, &shape, &program, err);
        if (rc == 0)
                rc = zygote_start(request->sup, request->header.job, &shape, &program, err);
        arena_done(&arena);
        return rc;
}

static int op_retire(struct request *request, struct csn_error *err)
{
        (void)err;
        zygote_retire(request->sup, request->header.job);
        return 0;
}

#define NEW 1U       /* before HELLO */
#define READY 2U     /* after HELLO */

static const struct {
        enum wire_op op;
        unsigned states;
        int (*run)(struct request *request, struct csn_error *err);
} ops[] = {
        { WIRE_HELLO,   NEW,   op_hello   },
        { WIRE_PREPARE, READY, op_prepare },
        { WIRE_JOIN,    READY, op_join    },
        { WIRE_WORKER,  READY, op_worker  },
        { WIRE_START,   READY, op_start   },
        { WIRE_GUEST,   READY, op_guest   },
        { WIRE_JOIN_GUEST,   READY, op_join_guest   },
        { WIRE_FREEZE,  READY, op_freeze  },
        { WIRE_EXITING,    READY, op_exiting    },
        { WIRE_KILL,    READY, op_kill    },
        { WIRE_GET_STATS,    READY, op_get_stats    },
        { WIRE_ZYGOTE,  READY, op_zygote  },
        { WIRE_RETIRE,  READY, op_retire  },
        { WIRE_PING,    READY, op_ping    },
        { WIRE_VOLUME,  READY, op_volume  },
};

static int dispatch(struct request *request, struct csn_error *err)
{
        unsigned state = request->sup->hello_received ? READY : NEW;
        for (size_t i = 0; i < ARRAY_LEN(ops); i++)
                if (ops[i].op == request->header.op) {
                        if (!(ops[i].states & state))
                                return err_set(err, CSN_E_PROTOCOL, 0, "message %u is not allowed now",
                                        request->header.op);
                        return ops[i].run(request, err);
                }
        return err_set(err, CSN_E_PROTOCOL, 0, "message %u does not exist", request->header.op);
}

static int check_fds(const struct wire_header *header, size_t fds_n, struct csn_error *err)
{
        if (fds_n == (header->op == WIRE_JOIN_GUEST ? WIRE_ENTRIES : 0))
                return 0;
        return err_set(err, CSN_E_PROTOCOL, 0, "message %u came with %zu descriptors", header->op, fds_n);
}

/* Only JOIN_GUEST comes with descriptors. */
static void take_message(struct supervisor *sup)
{
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct csn_error err = { 0 };
        struct request request = { .sup = sup, .body = bytes + WIRE_HEADER, .fds = fds };
        ssize_t len = wire_receive(sup->sock, bytes, fds, &fds_n);
        if (len < 0 && errno == EAGAIN)
                return;
        if (len == 0 || (len < 0 && errno == ECONNRESET)) {
                sup->over = true;
                return;
        }
        if (len < 0) {
                err_set(&err, CSN_E_PROTOCOL, errno, "receive from the engine");
                sup_give_up(sup, &err);
        } else if (wire_get_header(bytes, (size_t)len, &request.header, &err) < 0 ||
                check_fds(&request.header, fds_n, &err) < 0 || dispatch(&request, &err) < 0) {
                sup_give_up(sup, &err);
        }
        for (size_t i = 0; i < fds_n; i++)
                fd_close(&fds[i]);
}

static void peer_ready(struct watch *watch, uint32_t events)
{
        struct supervisor *sup = watch->owner;
        struct csn_error err;
        if (events & EPOLLOUT && send_queue_flush(&sup->answers) < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "send to the engine");
                sup_give_up(sup, &err);
        }
        if (events & ~(uint32_t)EPOLLOUT)
                take_message(sup);
}

/* ---- messages of outer inits ---- */

static void heard(struct domain *domain, const struct outer_init_message *message, int fd)
{
        const struct csn_error *error = message->op == OUTER_INIT_FAILED ? &message->error : NULL;
        if (message->op == OUTER_INIT_DIED) {
                /* A child has no job any more if it failed on its way into a sandbox. */
                if (!job_lost(domain, message) && !zygote_lost(domain, message))
                        log_text(LOG_DEBUG, "process %d of the outer init ended", message->pid);
        } else if (message->id & SUPERVISOR_ZYGOTE) {
                zygote_made(domain, message->id & ~SUPERVISOR_ZYGOTE, message->pid, fd, error);
        } else {
                job_made(domain, message->id, message->pid, fd, error);
        }
}

static void lost(struct domain *domain, const struct csn_error *why)
{
        zygote_domain_lost(domain, why);
        jobs_of_domain(domain, why);
}

static const struct domain_events domain_events = { .heard = heard, .lost = lost };

/* ---- begin and end ---- */

/* A waiting sandbox holds about ten descriptors, or twenty if its cgroup was used before. */
static void raise_descriptors(void)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
                return;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                log_text(LOG_WARN, "the number of descriptors could not be raised");
}

/*
 * Root without ids to give away makes sandboxes like an ordinary user, with one id for all.  This id is never root's:
 * a process inside would own the files of the host's root.
 */
static int choose_ids(struct supervisor *sup, struct csn_error *err)
{
        const struct uid_range *uids = &sup->options->uids;
        sup->abilities.rootless = geteuid() != 0;
        enum uid_way way = sup->abilities.rootless ? UIDS_RANGE : uid_way(uids);
        if (way == UIDS_RANGE)
                return 0;
        log_text(LOG_WARN,
                way == UIDS_OWN
                        ? "root of this user namespace has no ids to give to sandboxes, so all of them have its own"
                        : "root here has no CAP_SYS_ADMIN, so all sandboxes have one uid, the first of engine.uid_first");
        sup->abilities.rootless = true;
        if (way == UIDS_FIRST &&
                (setresgid(uids->first, uids->first, uids->first) < 0 ||
                        setresuid(uids->first, uids->first, uids->first) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0))
                return err_set(err, CSN_E_UNSUPPORTED, errno, "take the uid %u", uids->first);
        return 0;
}

static int begin(struct supervisor *sup, struct csn_error *err)
{
        raise_descriptors();
        if (choose_ids(sup, err) < 0)
                return -err->code;
        shared_dirs_open(&sup->options->folders, &sup->dirs);
        sup->abilities.landlock_abi = probe_landlock_abi();
        sup->abilities.merged_usr = probe_merged_usr();
        sup->abilities.id_blocks = uid_blocks(&sup->options->uids);
        if (cgroup_open(sup->options->cgroup_parent, &sup->cgroups, err) < 0)
                return -err->code;
        sup->abilities.cgroup = cgroup_mode(sup->cgroups);
        sup->abilities.controllers = cgroup_controllers(sup->cgroups);
        if (cgroup_paths(sup->cgroups)[0] && janitor_start(&sup->janitor, cgroup_paths(sup->cgroups), err) < 0)
                return -err->code;
        if (loop_new(&sup->loop, err) < 0)
                return -err->code;
        if (fcntl(sup->sock, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the engine's socket non-blocking");
        sup->peer = (struct watch){ .ready = peer_ready, .owner = sup };
        sup->answers = (struct send_queue){ .loop = sup->loop, .watch = &sup->peer };
        return loop_watch(sup->loop, &sup->peer, sup->sock, EPOLLIN, err);
}

/* No process and no cgroup made here may outlive us: kill all, and wait until all are gone. */
static void end(struct supervisor *sup)
{
        struct csn_error err;
        jobs_kill(sup);
        uint64_t until = clock_ms() + END_MS;
        while (sup->loop && sup->jobs && sup->common && sup->common->watch.active && clock_ms() < until)
                if (loop_step(sup->loop, 50, &err) < 0)
                        break;
        for (struct domain *domain = sup->domains; domain; domain = domain->next)
                outer_init_stop(&domain->outer_init);
        jobs_free(sup);
        zygotes_free(sup);
        volumes_free(sup);
        domains_close(sup);
        send_queue_done(&sup->answers);
        shared_dirs_close(&sup->dirs);
        cgroup_close(sup->cgroups);
        janitor_stop(&sup->janitor);
        loop_free(sup->loop);
}

/*
 * On a host unable to make sandboxes each job is refused, with the remedy; so a failed start of the outer init is no
 * failure of the supervisor.
 */
static void begin_outer_init(struct supervisor *sup)
{
        sup->common = domain_open(sup, &domain_events, 0);
        loop_set_batch_scheduling();   /* after the fork: the outer init and its descendants keep default scheduling */
}

bool supervisor_take_devices(struct supervisor_options *options, char *list)
{
        for (char *at = list, *save = NULL, *path; (path = strtok_r(at, ",", &save)); at = NULL) {
                if (options->devices_n == ARRAY_LEN(options->devices))
                        return false;
                options->devices[options->devices_n++] = path;
        }
        return true;
}

int supervisor_serve(int sock, const struct supervisor_options *options, struct csn_error *err)
{
        struct supervisor sup = {
                .sock = sock, .options = options, .janitor = { .pipe = -1 }, .dirs = { -1, -1, -1 }
        };
        int rc = begin(&sup, err);
        if (rc == 0) {
                begin_outer_init(&sup);
                volumes_sweep(&sup);
        }
        while (rc == 0 && !sup.over)
                rc = loop_step(sup.loop, -1, err);
        if (rc == 0 && sup.failure.code) {
                *err = sup.failure;
                rc = -err->code;
        }
        if (sup.loop)
                loop_unwatch(sup.loop, &sup.peer);
        end(&sup);
        return rc;
}
