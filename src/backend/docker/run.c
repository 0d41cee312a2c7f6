/* One program in one container: its steps, limits and end; see run.h.  The functions of the backend follow. */
#include "backend/docker/run.h"

#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <stdio.h>

#define SETTLE_US 5000000ULL        /* wait for process 1 to kill all others and report, and for the last output */
#define BACKGROUND_LOOK_US 20000ULL /* between two checks for processes left behind by the program */
#define POLL_MIN_US 10000ULL        /* between two checks of CPU time */
#define FETCH_MS_MAX 120000ULL      /* to fetch the files */
#define HELD_BYTES (4 * MIB)        /* unread output, above which the container is not read */

static void run_step(struct docker_run *run, enum run_step step);
static void ask_facts(struct docker_run *run, bool kills);

/* ---- the end ---- */

static void end_operations(struct docker_run *run)
{
        guest_op_end(&run->program);
        guest_op_end(&run->file);
        guest_op_end(&run->facts);
}

static void run_free(struct docker_run *run)
{
        struct loop *loop = run->link->loop;
        for (struct docker_run **at = &run->link->runs; *at; at = &(*at)->next)
                if (*at == run) {
                        *at = run->next;
                        break;
                }
        run_sockets_close(run);
        end_operations(run);
        struct timer *const timers[] = { &run->wall, &run->poll, &run->late, &run->step_timer };
        for (size_t i = 0; i < ARRAY_LEN(timers); i++)
                loop_untimer(loop, timers[i]);
        if (run->container)
                container_end(run->container);
        far_ends_close(&run->ends);
        run_files_done(run);
        free(run);
}

static struct wire_exit how_of(const struct docker_run *run)
{
        const struct guest_facts *used = &run->used;
        uint64_t reasons = run->reasons;
        bool killed = reasons & (WIRE_WALL | WIRE_CPU | WIRE_KILLED | WIRE_MEMORY);
        /* The kernel kills one process of a container for memory; in a native sandbox, all of them. */
        if (!killed && used->oom_kills) {
                reasons |= WIRE_MEMORY;
                killed = true;
        }
        if (run->leftovers && !killed)
                reasons |= WIRE_LEFTOVERS;
        return (struct wire_exit){ .status = run->status,
                .has_status = run->exited && !killed,
                .reasons = reasons,
                .wall_us = run->began_us ? max_u64(run->ended_us, run->began_us) - run->began_us : 0,
                .cpu_us = used->cpu_us,
                .memory_peak = used->memory_peak,
                .pids_peak = used->pids_peak,
                .oom_kills = used->oom_kills,
                .pids_hits = used->pids_hits,
                .throttled_us = used->throttled_us,
                .home_full = used->home_full,
                .inodes_full = used->inodes_full,
                .prepare_us = run->began_us ? run->began_us - run->asked_us : 0 };
}

/* The engine has read all output: report the end. */
static void finish(struct docker_run *run)
{
        const struct backend_events *news = run->link->events;
        void *owner = run->owner;
        const struct csn_error error = run->error;
        const struct wire_exit how = how_of(run);
        bool well = !error.code || run->reasons;
        char folder[sizeof run->ends.folder];
        memcpy(folder, run->ends.folder, sizeof folder);
        if (run->began_us)
                pool_want(run->link, &run->key);
        run_free(run);
        if (well)
                news->exited(owner, &how);
        else
                news->refused(owner, &error);
        io_remove_tree(AT_FDCWD, folder);
}

static void finish_when_read(struct docker_run *run)
{
        if (run->step == STEP_OVER && !far_ends_waiting(&run->ends))
                loop_timer(run->link->loop, &run->step_timer, 0);
}

static void on_over(struct timer *timer)
{
        finish(timer->owner);
}

static void run_fail(struct docker_run *run, const struct csn_error *error)
{
        if (!run->error.code)
                run->error = *error;
        if (run->asked && !run->reasons)
                run->error.code = CSN_E_LOST;
        run_step(run, STEP_OVER);
}

/* ---- limits ---- */

/*
 * End the program for this reason.  Its output and files are kept, so process 1 kills all other processes first;
 * without an answer of process 1 the container is removed with its files.
 */
static void stop(struct docker_run *run, uint64_t reason)
{
        run->reasons |= reason;
        if (run->step == STEP_OVER)
                return;
        if (run->step < STEP_PROGRAM || !run->began_us) {
                run_step(run, STEP_OVER);
                return;
        }
        if (run->step >= STEP_LIST) {
                run_step(run, STEP_OVER);
                return;
        }
        if (run->step != STEP_PROGRAM)
                return;          /* already settling, within SETTLE_US */
        run->ended_us = clock_us();
        run_step(run, STEP_SETTLE);
}

static void on_wall(struct timer *timer)
{
        stop(timer->owner, WIRE_WALL);
}

static void on_late(struct timer *timer)
{
        struct docker_run *run = timer->owner;
        struct csn_error err;
        err_set(&err, CSN_E_SYSTEM, 0, "process 1 of the container did not %s",
                run->step <= STEP_PROGRAM       ? "begin the program within docker.start_timeout"
                        : run->step == STEP_SETTLE ? "tell the end of all processes in time"
                                                   : "hand out the files of the program in time");
        log_text(LOG_WARN, "%s; the container is removed", err.text);
        run_fail(run, &err);
}

static void poll_later(struct docker_run *run)
{
        const struct wire_limits *limits = &run->what->limits;
        uint64_t limit_us = limits->cpu_ms * 1000, left = limit_us - min_u64(limit_us, run->used.cpu_us);
        uint64_t cores = max_u64(1, (limits->cpu_milli + 999) / 1000);
        if (limit_us)
                loop_timer(run->link->loop, &run->poll, max_u64(left / cores, POLL_MIN_US));
}

static void on_poll(struct timer *timer)
{
        struct docker_run *run = timer->owner;
        if (!guest_op_is_on(&run->facts))
                ask_facts(run, false);
}

/* ---- facts ---- */

static void settle(struct docker_run *run)
{
        uint64_t background_us = run->what->limits.background_ms * 1000;
        if (run->kills) {
                run->leftovers = run->exited ? run->used.processes : 0;
                run->settled = true;
        } else if (run->used.processes && clock_us() - run->ended_us < background_us) {
                loop_timer(run->link->loop, &run->poll, BACKGROUND_LOOK_US);
                return;
        } else {
                ask_facts(run, true);
                return;
        }
        if (run->exited)
                run_step(run, STEP_LIST);
}

/* The last thing to do with an answer: the receiver may end the run. */
static void tell_stats(struct docker_run *run, const struct guest_facts *facts)
{
        const struct wire_stats seen = { .cpu_us = facts->cpu_us,
                .processes = facts->processes,
                .memory_peak = facts->memory_peak,
                .oom_kills = facts->oom_kills,
                .pids_hits = facts->pids_hits };
        if (!run->looks)
                return;
        run->looks = false;
        run->link->events->seen(run->owner, &seen);
}

static void on_facts(struct guest_op *op, const uint8_t *bytes, size_t len)
{
        struct docker_run *run = op->owner;
        struct guest_facts facts;
        struct csn_error err;
        if (!bytes || guest_kind_of(bytes, len) != GUEST_FACTS || guest_get_facts(bytes, len, &facts, &err) < 0) {
                err_set(&err, CSN_E_PROTOCOL, 0, "process 1 of the container reports no facts");
                run_fail(run, &err);
                return;
        }
        guest_op_end(op);
        run->used = facts;
        run->container->facts.oom_kills = facts.oom_kills;
        uint64_t cpu_ms = run->what->limits.cpu_ms;
        if (run->step == STEP_SETTLE)
                settle(run);
        else if (run->step == STEP_PROGRAM && cpu_ms && run->used.cpu_us >= cpu_ms * 1000)
                stop(run, WIRE_CPU);
        else if (run->step == STEP_PROGRAM)
                poll_later(run);
        tell_stats(run, &facts);
}

static void ask_facts(struct docker_run *run, bool kills)
{
        struct buf request;
        guest_op_end(&run->facts);
        run->kills = kills;
        run->facts.heard = on_facts;
        run->facts.owner = run;
        buf_init(&request, 64);
        if (guest_put_number(&request, GUEST_FACTS, kills))
                guest_op_begin(&run->container->guest, &run->facts, &request);
        buf_done(&request);
}

/* ---- the program ---- */

static void send_stdin(struct docker_run *run)
{
        static uint8_t packet[GUEST_PACKET_MAX];
        static const uint8_t end = GUEST_IN_END;
        const struct backend_program *what = run->what;
        if (!what->stdin_len || run->stdin_at > what->stdin_len)
                return;
        packet[0] = GUEST_IN;
        while (run->stdin_room && run->stdin_at < what->stdin_len) {
                size_t n = min_u64(min_u64(run->stdin_room, GUEST_DATA_MAX), what->stdin_len - run->stdin_at);
                memcpy(packet + 1, (const char *)what->stdin_bytes + run->stdin_at, n);
                guest_op_send(&run->program, packet, n + 1);
                run->stdin_at += n;
                run->stdin_room -= n;
        }
        if (run->stdin_at == what->stdin_len) {
                guest_op_send(&run->program, &end, 1);
                run->stdin_at++;
        }
}

static void begin_program(struct docker_run *run)
{
        struct wire_boundary boundary;
        if (run->began_us)
                return;
        run->began_us = clock_us();
        loop_untimer(run->link->loop, &run->late);
        container_boundary(run->container, run->sockets[0].listens, &boundary);
        loop_timer(run->link->loop, &run->wall, run->what->limits.wall_ms * 1000);
        poll_later(run);
        run->link->events->confined(run->owner, &boundary);
        send_stdin(run);
}

static void end_program(struct docker_run *run, uint64_t status)
{
        run->exited = true;
        run->status = status;
        guest_op_end(&run->program);
        if (run->step == STEP_PROGRAM) {
                run->ended_us = clock_us();
                run_step(run, STEP_SETTLE);
        } else if (run->settled) {
                run_step(run, STEP_LIST);
        }
}

/* Read nothing of the container while too much of it waits for readers on this host. */
static void control_flow(struct docker_run *run)
{
        if (run->container)
                attach_hold(&run->container->attach,
                        far_ends_waiting(&run->ends) > HELD_BYTES || run->connections_waiting > HELD_BYTES);
}

static void on_program(struct guest_op *op, const uint8_t *bytes, size_t len)
{
        struct docker_run *run = op->owner;
        uint64_t number;
        struct csn_error err, error;
        switch (bytes ? guest_kind_of(bytes, len) : 0) {
        case GUEST_STARTED:
                begin_program(run);
                return;
        case GUEST_OUT:
                far_ends_print(&run->ends, 0, bytes + 1, len - 1);
                control_flow(run);
                return;
        case GUEST_ERROR:
                far_ends_print(&run->ends, 1, bytes + 1, len - 1);
                control_flow(run);
                return;
        case GUEST_CHANNEL:
                far_ends_frame(&run->ends, bytes + 1, len - 1);
                control_flow(run);
                return;
        case GUEST_ROOM:
                if (guest_get_number(bytes, len, &number, &err) == 0 && number <= GUEST_IN_MAX - run->stdin_room) {
                        run->stdin_room += number;
                        send_stdin(run);
                }
                return;
        case GUEST_EXITED:
                if (guest_get_number(bytes, len, &number, &err) < 0)
                        break;
                end_program(run, number & 0xffff);
                return;
        case GUEST_FAILED:
                if (guest_get_error(bytes, len, &error, &err) < 0)
                        break;
                run->asked = run->began_us != 0; /* the program has not begun */
                err_set(&err, error.code == CSN_E_BUSY ? CSN_E_SYSTEM : CSN_E_CONFIG, 0,
                        "image_unsuitable: the image \"%.150s\": %.250s", run->key.image, error.text);
                run_fail(run, &err);
                return;
        default:
                break;
        }
        err_set(&err, CSN_E_PROTOCOL, 0, "process 1 of the container sent a packet that is not possible for a program");
        run_fail(run, &err);
}

static void start_program(struct docker_run *run)
{
        const struct wire_program *program = &run->what->program;
        const struct guest_process process = { .flags = GUEST_CHANNELED | (run->what->stdin_len ? GUEST_INPUT : 0),
                .open_files = run->what->limits.open_files,
                .folder = (char *)(uintptr_t)SANDBOX_HOME,
                .argv = program->argv,
                .argv_n = program->argv_n,
                .env = program->env,
                .env_n = program->env_n };
        struct buf request;
        struct csn_error err;
        run->stdin_room = GUEST_IN_MAX;
        run->program.heard = on_program;
        run->program.owner = run;
        buf_init(&request, WIRE_MAX);
        if (guest_put_process(&request, &process)) {
                run->asked = true;
                run->link->events->sent(run->owner, -1);
                guest_op_begin(&run->container->guest, &run->program, &request);
        } else {
                err_set(&err, CSN_E_INPUT, 0, "arguments and environment together are longer than %d KiB",
                        WIRE_MAX / 1024);
                run_fail(run, &err);
        }
        buf_done(&request);
}

/* ---- steps ---- */

static const struct container_events container_events;

static void take_container(struct docker_run *run)
{
        run->container = pool_take(run->link, &run->key);
        if (run->container) {
                container_set_owner(run->container, &container_events, run);
                run_step(run, STEP_PUT);
        } else {
                run->container = container_new(run->link, &run->key, &container_events, run);
        }
}

static void settle_begin(struct docker_run *run)
{
        loop_untimer(run->link->loop, &run->wall);
        loop_untimer(run->link->loop, &run->poll);
        loop_timer(run->link->loop, &run->late, SETTLE_US + run->what->limits.background_ms * 1000);
        /* A connection without a reader on this host would hold back the answer of process 1. */
        run_sockets_close(run);
        control_flow(run);
        ask_facts(run, run->reasons != 0);
}

static void over_begin(struct docker_run *run)
{
        loop_untimer(run->link->loop, &run->wall);
        loop_untimer(run->link->loop, &run->poll);
        loop_untimer(run->link->loop, &run->late);
        run_sockets_close(run);
        end_operations(run);
        run_files_stop(run);
        if (run->container)
                container_end(run->container);
        run->container = NULL;
        run->ended_us = run->ended_us ? run->ended_us : clock_us();
        run->step_timer.fired = on_over;
        finish_when_read(run);
}

static void run_step(struct docker_run *run, enum run_step step)
{
        if (run->step == STEP_OVER)
                return;
        run->step = step;
        switch (step) {
        case STEP_CONTAINER:
                take_container(run);
                break;
        case STEP_PUT:
                loop_timer(run->link->loop, &run->late, run->link->settings->start_timeout * 1000);
                run_put_next(run);
                break;
        case STEP_LISTEN:
                run_sockets_listen(run);
                break;
        case STEP_PROGRAM:
                start_program(run);
                break;
        case STEP_SETTLE:
                settle_begin(run);
                break;
        case STEP_LIST:
                loop_timer(run->link->loop, &run->late, FETCH_MS_MAX * 1000);
                run_list(run);
                break;
        case STEP_GET:
                run_get_next(run);
                break;
        default:
                over_begin(run);
        }
}

static void on_container_ready(void *owner)
{
        run_step(owner, STEP_PUT);
}

static void on_container_sent(void *owner)
{
        run_put_more(owner);
}

static void on_container_ended(void *owner, const struct csn_error *why, bool for_memory)
{
        struct docker_run *run = owner;
        if (for_memory && run->began_us) {
                run->reasons |= WIRE_MEMORY;
                run->used.memory_peak = 0; /* unknown: the last check was before the end */
        }
        run_fail(run, why);
}

static const struct container_events container_events = { on_container_ready, on_container_sent, on_container_ended };

static void on_begin(struct timer *timer)
{
        run_step(timer->owner, STEP_CONTAINER);
}

/* ---- the engine's end of the channel ---- */

static void on_heard(void *owner, const uint8_t *bytes, size_t len)
{
        static uint8_t packet[GUEST_PACKET_MAX];
        const struct docker_run *run = owner;
        if (len > sizeof packet - 1 || !guest_op_is_on(&run->program))
                return;
        packet[0] = GUEST_CHANNEL;
        memcpy(packet + 1, bytes, len);
        guest_op_send(&run->program, packet, len + 1);
}

static void on_taken(void *owner)
{
        struct docker_run *run = owner;
        control_flow(run);
        finish_when_read(run);
}

static const struct far_ends_events far_ends_events = { on_heard, on_taken };

/* ---- the functions of the backend ---- */

static int docker_open(struct loop *loop, const struct backend_options *options, const struct backend_events *events,
        struct backend_link **ret, struct csn_error *err)
{
        const struct settings *settings = options->settings;
        char host[256] = "", identity[32];
        struct arena arena = { 0 };
        if (container_check_settings(&settings->docker, err) < 0)
                return -err->code;
        /* One daemon has one state folder, so a container with this label is a leftover when the daemon starts. */
        gethostname(host, sizeof host - 1);
        const char *text =
                arena_text(&arena, "%s:%u:%s", host, (unsigned)geteuid(), settings_state_dir(settings, &arena));
        snprintf(identity, sizeof identity, "%016llx", (unsigned long long)hash_text(text, strlen(text)));
        arena_done(&arena);
        struct backend_link *link = mem_alloc(sizeof *link);
        *link = (struct backend_link){ .loop = loop, .events = events, .settings = &settings->docker };
        if (docker_engine_open(loop, &settings->docker, identity, &link->engine, err) < 0) {
                free(link);
                return -err->code;
        }
        pool_open(link);
        *ret = link;
        return 0;
}

static int docker_prepare(struct backend_link *link, uint32_t id, void *owner, const struct wire_shape *shape,
        struct csn_error *err)
{
        const struct wire_boundary unknown = { 0 };
        struct backend_ends ends;
        struct docker_run *run = mem_alloc(sizeof *run);
        *run = (struct docker_run){ .link = link,
                .id = id,
                .owner = owner,
                .key = { .memory_bytes = shape->memory_bytes,
                        .cpu_milli = shape->cpu_milli,
                        .pids = shape->pids,
                        .disk_bytes = shape->disk_bytes,
                        .disk_files = shape->disk_files,
                        .tmp_bytes = shape->tmp_bytes },
                .go = run_step,
                .fail = run_fail,
                .flow = control_flow,
                .source = -1,
                .target = -1,
                .wall = { .fired = on_wall, .owner = run },
                .poll = { .fired = on_poll, .owner = run },
                .late = { .fired = on_late, .owner = run },
                .step_timer = { .fired = on_begin, .owner = run } };
        if (far_ends_open(&run->ends, link->loop, "docker", &far_ends_events, run, &ends, err) < 0) {
                free(run);
                return -err->code;
        }
        run->next = link->runs;
        link->runs = run;
        if (run_sockets_open(run, shape->flags, &ends, err) < 0) {
                int *const all[] = { &ends.home, &ends.out, &ends.error, &ends.channel, &ends.proxy,
                        &ends.tool_socket };
                for (size_t i = 0; i < ARRAY_LEN(all); i++)
                        fd_close(all[i]);
                io_remove_tree(AT_FDCWD, run->ends.folder);
                run_free(run);
                return -err->code;
        }
        link->events->ready(owner, &unknown, &ends);
        return 0;
}

static struct docker_run *find_run(struct backend_link *link, uint32_t id)
{
        struct docker_run *run = link->runs;
        while (run && run->id != id)
                run = run->next;
        return run;
}

static int docker_start(struct backend_link *link, uint32_t id, const struct backend_program *what,
        struct csn_error *err)
{
        struct docker_run *run = find_run(link, id);
        if (!run)
                return err_set(err, CSN_E_SYSTEM, 0, "a program for a run that is gone");
        if (container_image(link->settings, what->language, run->key.image, sizeof run->key.image, err) < 0)
                return -err->code;
        run->what = what;
        run->asked_us = clock_us();
        loop_timer(link->loop, &run->step_timer, 0);
        return 0;
}

static void docker_kill(struct backend_link *link, uint32_t id)
{
        struct docker_run *run = find_run(link, id);
        if (run)
                stop(run, WIRE_KILLED);
}

static void docker_look(struct backend_link *link, uint32_t id)
{
        struct docker_run *run = find_run(link, id);
        if (!run || run->step != STEP_PROGRAM || !run->began_us)
                return;
        run->looks = true;
        if (!guest_op_is_on(&run->facts))
                ask_facts(run, false);
}

static void docker_close(struct backend_link *link)
{
        if (!link)
                return;
        pool_close(link);
        for (struct docker_run *run = link->runs, *next; run; run = next) {
                next = run->next;
                io_remove_tree(AT_FDCWD, run->ends.folder);
                run_free(run);
        }
        containers_remove(link);
        docker_engine_close(link->engine);
        free(link);
}

const struct backend backend_docker = {
        .name = "docker",
        .isolation = isolation_CONTAINER,
        .has_runners = true,
        .has_sockets = true,
        .open = docker_open,
        .prepare = docker_prepare,
        .start = docker_start,
        .kill = docker_kill,
        .look = docker_look,
        .close = docker_close,
};
