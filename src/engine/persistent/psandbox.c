/* The life of a persistent sandbox: made, used, paused, ended. */
#include "engine/persistent/psandbox_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/vfs.h>

#define GREETING_MS 60000
#define METER_US 60000000ULL
#define METER_SOON_US 1000000   /* many may end at once */
#define DAY_MS 86400000        /* the supervisor lets nothing live longer */

/* ---- those who wait ---- */

void cell_wait(struct cell *cell, enum cell_want want, struct cell_waiter *waiter)
{
        waiter->cell = cell;
        waiter->want = want;
        waiter->next = cell->waiters;
        cell->waiters = waiter;
}

void cell_unwait(struct cell_waiter *waiter)
{
        if (!waiter->cell)
                return;
        for (struct cell_waiter **at = &waiter->cell->waiters; *at; at = &(*at)->next)
                if (*at == waiter) {
                        *at = waiter->next;
                        break;
                }
        waiter->cell = NULL;
}

/* A callback may take others off the list, so each time it is searched from its beginning. */
static void tell(struct cell *cell, enum cell_want want, const struct csn_error *error)
{
        for (struct cell_waiter *waiter = cell->waiters; waiter;) {
                if (waiter->want != want) {
                        waiter = waiter->next;
                        continue;
                }
                cell_unwait(waiter);
                waiter->done(waiter, error);
                waiter = cell->waiters;
        }
}

/* ---- its end ---- */

static void cell_free(struct timer *timer)
{
        struct cell *cell = timer->owner;
        for (struct cell **at = &cell->engine->cells; *at; at = &(*at)->next)
                if (*at == cell) {
                        *at = cell->next;
                        break;
                }
        loop_untimer(cell->engine->loop, &cell->gone);
        run_free(cell->template);
        free(cell);
}

/* What still was on its way is delivered, then all that is open ends. */
static void end_calls(struct cell *cell, const struct csn_error *error)
{
        while (cell->calls) {
                struct call *call = cell->calls;
                call_hold(call, false);
                for (int i = 0; i < 64 && cell->calls == call && call->watch.active; i++)
                        call->watch.ready(&call->watch, EPOLLIN);
                if (cell->calls != call)
                        continue;
                call_close(call);
                call->events->ended(call, error);
        }
}

void cell_ended(struct cell *cell, const struct csn_error *error)
{
        struct csn_error over = cell->why;
        if (cell->state == CELL_OVER)
                return;
        if (!over.code && error)
                over = *error;
        if (!over.code)
                err_set(&over, CSN_E_BUSY, 0, "the sandbox has ended");
        cell->instance = NULL;
        /* Calls may be asked for their sandbox' state while they end. */
        end_calls(cell, &over);
        contexts_end(cell, &over);
        cell->state = CELL_OVER;
        loop_untimer(cell->engine->loop, &cell->ttl);
        loop_untimer(cell->engine->loop, &cell->idle);
        loop_untimer(cell->engine->loop, &cell->greeting);
        loop_untimer(cell->engine->loop, &cell->meter);
        loop_unwatch(cell->engine->loop, &cell->sock);
        outbox_done(&cell->out);
        fd_close(&cell->sock.fd);
        fd_close(&cell->home_fd);
        egress_close(cell->egress);
        cell->egress = NULL;
        toolbox_close(&cell->template->toolbox);
        tell(cell, CELL_WANTS_READY, &over);
        tell(cell, CELL_WANTS_PAUSED, &over);
        tell(cell, CELL_WANTS_SEEN, &over);
        tell(cell, CELL_WANTS_OVER, NULL);
        loop_timer(cell->engine->loop, &cell->gone, 0);
}

/* While a context executes, what the whole sandbox uses goes into the record of that. */
static void charge(struct cell *cell, uint64_t used_us)
{
        const struct engine *engine = cell->engine;
        for (struct context *context = context_next(cell, NULL); context; context = context_next(cell, context))
                if (context->current)
                        return;
        uint64_t owed_ms = (used_us - min_u64(cell->told_us, used_us)) / 1000;
        if (!engine->meter || !owed_ms)
                return;
        cell->told_us += owed_ms * 1000;
        engine->meter(engine->meter_owner, cell->owner, owed_ms);
}

void cell_meter(struct cell *cell)
{
        if (cell->engine->meter && !cell->meter_due)
                loop_timer(cell->engine->loop, &cell->meter, METER_SOON_US);
        cell->meter_due = true;
}

static void on_meter(struct timer *timer)
{
        struct cell *cell = timer->owner;
        cell->meter_due = false;
        cell_look(cell);
        loop_timer(cell->engine->loop, timer, METER_US);
}

void cell_exited(struct cell *cell, const struct wire_exit *how)
{
        struct csn_error why;
        if (how->reasons & WIRE_MEMORY)
                err_set(&why, CSN_E_BUSY, 0, "the sandbox was ended: it used more than memory_bytes=%" PRIu64, cell->template->request.limits.memory_bytes);
        else if (how->reasons & WIRE_WALL)
                err_set(&why, CSN_E_BUSY, 0, "the sandbox' time is over");
        else
                err_set(&why, CSN_E_BUSY, 0, "the sandbox has ended");
        cell_ended(cell, &why);
        charge(cell, how->cpu_us);
}

static void end(struct cell *cell, const struct csn_error *why)
{
        if (cell->why.code == 0 && why)
                cell->why = *why;
        if (cell->instance)
                instance_kill(cell->instance);
}

void cell_kill(struct cell *cell)
{
        struct csn_error why;
        err_set(&why, CSN_E_CANCELLED, 0, "the sandbox was ended");
        end(cell, &why);
}

static void on_silence(struct timer *timer)
{
        struct csn_error why;
        err_set(&why, CSN_E_SYSTEM, 0, "the guest of the sandbox did not greet within %d seconds", GREETING_MS / 1000);
        end(timer->owner, &why);
}

static void on_ttl(struct timer *timer)
{
        struct csn_error why;
        err_set(&why, CSN_E_BUSY, 0, "the sandbox' time is over (ttl_ms)");
        end(timer->owner, &why);
}

static bool is_busy(const struct cell *cell)
{
        size_t n = 0;
        for (const struct call *call = cell->calls; call; call = call->next)
                n += call != &cell->sudo;
        return n > contexts_resting(cell) || cell->state != CELL_READY;
}

static void on_idle(struct timer *timer)
{
        struct cell *cell = timer->owner;
        struct csn_error why;
        if (is_busy(cell)) {
                cell_touch(cell);
                return;
        }
        err_set(&why, CSN_E_BUSY, 0, "nobody used the sandbox for idle_ms=%" PRIu64, cell->request.idle_ms);
        end(cell, &why);
}

void cell_touch(struct cell *cell)
{
        if (cell->request.idle_ms && cell->state != CELL_OVER)
                loop_timer(cell->engine->loop, &cell->idle, cell->request.idle_ms * 1000);
}

/* ---- the guest ---- */

static void broken(struct cell *cell, const struct csn_error *err)
{
        if (!cell->why.code)
                log_text(LOG_WARN, "the guest of %s is not trusted any more: %s", cell->id, err->text);
        loop_unwatch(cell->engine->loop, &cell->sock);   /* whatever else it says until it is dead */
        end(cell, err);
}

static void on_sudo_packet(struct call *call, enum guest_kind kind, const uint8_t *bytes, size_t len, int fds[WIRE_FDS_MAX])
{
        (void)call, (void)kind, (void)bytes, (void)len, (void)fds;
}

static void on_sudo_room(struct call *call)
{
        (void)call;
}

static void on_sudo_ended(struct call *call, const struct csn_error *error)
{
        const struct cell *cell = call->owner;
        if (error && !cell->why.code)
                log_text(LOG_WARN, "there is no sudo in %s: %s", cell->id, error->text);
}

/* Before anything else is asked of the guest, which serves in that order. */
static void give_sudo(struct cell *cell)
{
        static const struct call_events events = { on_sudo_packet, on_sudo_room, on_sudo_ended };
        struct csn_error err;
        cell->sudo = (struct call){ .events = &events, .owner = cell };
        if (call_sudo(cell, &cell->sudo, &err) < 0)
                on_sudo_ended(&cell->sudo, &err);
}

/* The guest and the supervisor have both told. */
static void stand(struct cell *cell)
{
        if (cell->state != CELL_MAKING || cell->why.code || !cell->greeted || !cell->template->has_boundary)
                return;
        loop_untimer(cell->engine->loop, &cell->greeting);
        cell->state = CELL_READY;
        cell_touch(cell);
        if (cell->request.sudo)
                give_sudo(cell);
        tell(cell, CELL_WANTS_READY, NULL);
}

void cell_confined(struct cell *cell, const struct wire_boundary *boundary)
{
        cell->template->boundary = *boundary;
        cell->template->has_boundary = true;
        stand(cell);
}

static void guest_said(struct cell *cell, const uint8_t *bytes, size_t len)
{
        uint64_t version;
        struct csn_error err, error;
        enum guest_kind kind = guest_kind_of(bytes, len);
        if (kind == GUEST_FAILED && !cell->greeted && guest_get_error(bytes, len, &error, &err) == 0) {
                broken(cell, &error);
        } else if (kind != GUEST_GREET || cell->greeted || guest_get_number(bytes, len, &version, &err) < 0 || version != GUEST_VERSION) {
                err_set(&err, CSN_E_PROTOCOL, 0, "the guest said what it may not");
                broken(cell, &err);
        } else {
                cell->greeted = true;
                stand(cell);
        }
}

static void guest_ready(struct watch *watch, uint32_t events)
{
        static uint8_t bytes[WIRE_MAX];
        struct cell *cell = watch->owner;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct csn_error err;
        if (events & EPOLLOUT && outbox_flush(&cell->out) < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "talk to the guest");
                broken(cell, &err);
                return;
        }
        if (!(events & ~(uint32_t)EPOLLOUT))
                return;
        ssize_t len = wire_receive(watch->fd, bytes, fds, &fds_n);
        for (size_t i = 0; i < fds_n; i++)
                fd_close(&fds[i]);
        if (len > 0)
                guest_said(cell, bytes, (size_t)len);
        else if (len == 0 || errno != EAGAIN)
                loop_unwatch(cell->engine->loop, watch);   /* its end is the supervisor's to tell, and comes next */
}

static void on_connection(void *owner, const char *host, unsigned port, const char *refusal)
{
        const struct cell *cell = owner;
        if (refusal)
                log_text(LOG_INFO, "the proxy of %s refused %.100s:%u: %s", cell->id, host, port, refusal);
}

static int open_proxy(struct cell *cell, int fd, struct csn_error *err)
{
        static const struct egress_events events = { on_connection };
        const struct run_request *request = &cell->template->request;
        const struct egress_rules rules = { .public_ = request->network == network_PUBLIC, .hosts = request->allow, .hosts_n = request->allow_n };
        return fd < 0 ? 0 : egress_open(cell->engine->loop, fd, &rules, &events, cell, &cell->egress, err);
}

static int open_hatch(struct cell *cell, int fd, struct csn_error *err)
{
        return fd < 0 ? 0 : toolbox_serve(&cell->template->toolbox, cell->engine->loop, fd, err);
}

int cell_set_network(struct cell *cell, const struct egress_rules *rules, struct csn_error *err)
{
        if (!cell->egress)
                return err_field(err, "/network", "the sandbox has no network: make one with \"network\": \"public\"");
        return egress_change(cell->egress, rules, err);
}

void cell_attached(struct cell *cell, struct instance *instance)
{
        struct csn_error err;
        /* Its home is read through the guest, and the guest writes nothing of its own. */
        cell->home_fd = take_fd(&instance->ends.home);
        fd_close(&instance->ends.out);
        fd_close(&instance->ends.error);
        fd_close(&instance->ends.channel);
        if (open_proxy(cell, take_fd(&instance->ends.proxy), &err) < 0 || open_hatch(cell, take_fd(&instance->ends.hatch), &err) < 0 || instance_guest(instance, &cell->template->what.limits, &cell->sock.fd, &err) < 0 ||
            loop_watch(cell->engine->loop, &cell->sock, cell->sock.fd, EPOLLIN, &err) < 0)
                broken(cell, &err);
        else
                loop_timer(cell->engine->loop, &cell->greeting, GREETING_MS * 1000ULL);
        if (cell->engine->meter)
                loop_timer(cell->engine->loop, &cell->meter, METER_US);
}

void cell_refused(struct cell *cell, const struct csn_error *error, bool again)
{
        struct csn_error err;
        cell->instance = NULL;
        if (!again || cell->greeted || cell->why.code || toolbox_wanted(&cell->template->request.tools)) {
                cell_ended(cell, error);
                return;
        }
        loop_untimer(cell->engine->loop, &cell->greeting);
        loop_unwatch(cell->engine->loop, &cell->sock);
        outbox_done(&cell->out);
        fd_close(&cell->sock.fd);
        fd_close(&cell->home_fd);
        egress_close(cell->egress);
        cell->egress = NULL;
        cell->template->has_boundary = false;
        cell->template->result = (struct run_result){ 0 };   /* it may have been described already */
        if (instance_new_cell(cell->engine, &cell->template->shape, cell, &cell->instance, &err) < 0)
                cell_ended(cell, &err);
}

/* ---- pausing ---- */

void cell_frozen(struct cell *cell, bool on, const struct csn_error *error)
{
        cell->changing = false;
        if (error) {
                tell(cell, CELL_WANTS_PAUSED, error);
                tell(cell, CELL_WANTS_READY, error);
                return;
        }
        cell->state = on ? CELL_PAUSED : CELL_READY;
        cell_touch(cell);
        if (on)
                cell->paused_us = clock_us();
        contexts_frozen(cell, on);
        if (on)
                loop_untimer(cell->engine->loop, &cell->idle);
        tell(cell, on ? CELL_WANTS_PAUSED : CELL_WANTS_READY, NULL);
}

static int change(struct cell *cell, enum cell_state from, bool on, struct csn_error *err)
{
        if (cell->state != from || cell->changing || !cell->instance)
                return err_set(err, CSN_E_BUSY, 0, "the sandbox is %s", cell->changing ? "being paused or resumed" : cell->state == CELL_MAKING ? "not ready yet"
                                                                        : cell->state == CELL_PAUSED ? "paused already" : "not paused");
        cell->changing = true;
        instance_freeze(cell->instance, on);
        return 0;
}

int cell_pause(struct cell *cell, struct csn_error *err)
{
        return change(cell, CELL_READY, true, err);
}

int cell_resume(struct cell *cell, struct csn_error *err)
{
        return change(cell, CELL_PAUSED, false, err);
}

/* ---- what is told of it ---- */

void cell_seen(struct cell *cell, const struct wire_seen *seen)
{
        cell->seen = *seen;
        for (struct context *context = context_next(cell, NULL); context; context = context_next(cell, context))
                context_cell_seen(context, seen);
        charge(cell, seen->cpu_us);
        tell(cell, CELL_WANTS_SEEN, NULL);
}

void cell_look(struct cell *cell)
{
        if (cell->instance)
                instance_look(cell->instance);
}

json_t *cell_use(const struct cell *cell)
{
        const struct wire_seen *seen = &cell->seen;
        const struct limits *limits = cell_limits(cell);
        struct statfs disk = { 0 };
        if (cell->home_fd < 0 || fstatfs(cell->home_fd, &disk) < 0)
                disk = (struct statfs){ 0 };
        uint64_t bytes = (disk.f_blocks - disk.f_bfree) * (uint64_t)disk.f_bsize;
        uint64_t files = disk.f_files - disk.f_ffree, own = !cell->request.root;   /* the home directory itself is no file of theirs */
        return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cpu_ms", (double)seen->cpu_us / 1000, "memory_bytes", (json_int_t)seen->memory_bytes,
                         "memory_peak_bytes", (json_int_t)seen->memory_peak, "processes", (json_int_t)(seen->processes ? seen->processes : 0), "oom_kills",
                         (json_int_t)seen->oom_kills, "pids_hits", (json_int_t)seen->pids_hits, "disk_bytes", (json_int_t)bytes,
                         "disk_files", (json_int_t)(files - min_u64(files, own)), "disk_bytes_max", (json_int_t)limits->disk_bytes, "disk_files_max",
                         (json_int_t)limits->disk_files);
}

const char *cell_id(const struct cell *cell)
{
        return cell->id;
}

enum cell_state cell_state(const struct cell *cell)
{
        return cell->state != CELL_MAKING && !cell->instance ? CELL_OVER : cell->state;
}

const struct limits *cell_limits(const struct cell *cell)
{
        return &cell->template->request.limits;
}

json_t *cell_describe(const struct cell *cell)
{
        static const char *const states[] = { [CELL_MAKING] = "starting", [CELL_READY] = "running", [CELL_PAUSED] = "paused", [CELL_OVER] = "over" };
        const struct run_request *request = &cell->template->request;
        char created[40], expires[40];
        size_t contexts = 0;
        time_print(cell->created_ms, created, sizeof created);
        time_print(cell->expires_ms, expires, sizeof expires);
        for (struct context *context = context_next((struct cell *)(uintptr_t)cell, NULL); context; context = context_next((struct cell *)(uintptr_t)cell, context))
                contexts++;
        json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:I}", "id", cell->id, "state", states[cell->state], "created_at", created, "expires_at",
                                 expires, "idle_ms", (json_int_t)cell->request.idle_ms, "profile", request->profile, "contexts", (json_int_t)contexts);
        json_object_set_new(json, "limits", model_encode(&object_limits, &request->limits));
        if (cell->request.root)
                json_object_set_new(json, "root", json_true());
        if (HAS(&cell->request, sandbox_request, user))
                json_object_set_new(json, "user", json_string(cell->request.user));
        json_t *labels = json_object();
        for (size_t i = 0; i < cell->request.labels_n; i++)
                json_object_set_new(labels, cell->request.labels[i].name, json_string(cell->request.labels[i].value));
        json_object_set_new(json, "labels", labels);
        if (cell->template->has_boundary) {
                if (!HAS(&cell->template->result, run_result, boundary))
                        run_record_boundary(cell->template);
                json_object_set_new(json, "boundary", model_encode(&object_boundary, &cell->template->result.boundary));
        }
        if (cell->state == CELL_PAUSED)
                json_object_set_new(json, "note", json_string("Nothing runs in it; its memory stays in use and is charged."));
        return json;
}

/* ---- making ---- */

struct cell *cell_next(struct engine *engine, struct cell *cell, const char *owner)
{
        for (cell = cell ? cell->next : engine->cells; cell; cell = cell->next)
                /* For its owner one that is being ended is not there any more. */
                if (cell->state != CELL_OVER && (!owner || (!cell->why.code && strcmp(cell->owner, owner) == 0)))
                        return cell;
        return NULL;
}

struct cell *cell_find(struct engine *engine, const char *id, const char *owner)
{
        for (struct cell *cell = cell_next(engine, NULL, owner); cell; cell = cell_next(engine, cell, owner))
                if (strcmp(cell->id, id) == 0)
                        return cell;
        return NULL;
}

uint64_t cell_number(const struct cell *cell)
{
        return cell->number;
}

static int has_room(struct engine *engine, const char *owner, struct csn_error *err)
{
        const struct engine_settings *settings = &engine->settings->engine;
        size_t all = 0, own = 0;
        for (const struct cell *cell = engine->cells; cell; cell = cell->next) {
                all += cell->state != CELL_OVER;
                own += cell->state != CELL_OVER && strcmp(cell->owner, owner) == 0;
        }
        if (all >= settings->sandboxes_max)
                return err_set(err, CSN_E_BUSY, 0, "there are %zu persistent sandboxes, as many as engine.sandboxes_max allows", all);
        if (own >= settings->sandboxes_owner_max)
                return err_set(err, CSN_E_BUSY, 0, "%zu persistent sandboxes are yours, as many as engine.sandboxes_owner_max allows; end one", own);
        return 0;
}

int cell_extend(struct cell *cell, uint64_t ttl_ms, struct csn_error *err)
{
        uint64_t most = cell->engine->settings->engine.sandbox_ttl_ms;
        int64_t now_ms = cell->expires_ms ? time_now_ms() : cell->created_ms;   /* a whole day is possible when it is made */
        if (ttl_ms > most)
                return err_field(err, "/ttl_ms", "ttl_ms is %" PRIu64 "; the administrator allows %" PRIu64 " (engine.sandbox_ttl_ms)", ttl_ms, most);
        if (now_ms + (int64_t)ttl_ms > cell->created_ms + DAY_MS)
                return err_field(err, "/ttl_ms", "a sandbox ends %d hours after it was made; until then ttl_ms can be %lld", DAY_MS / 3600000,
                                 (long long)max_u64((uint64_t)(cell->created_ms + DAY_MS - now_ms), 0));
        cell->expires_ms = now_ms + (int64_t)ttl_ms;
        cell->request.ttl_ms = ttl_ms;
        loop_timer(cell->engine->loop, &cell->ttl, ttl_ms * 1000);
        return 0;
}

/* What a run has of these values, a sandbox has: by the same defaults, profiles and ceilings. */
static void as_run(const struct sandbox_request *from, struct arena *arena, struct run_request *to)
{
        SET(to, run_request, language, arena_text(arena, "%s", lang_python.name));
        SET(to, run_request, code, ((struct bytes){ .bytes = arena_text(arena, "%s", "") }));
#define TAKE(member)                                    \
        if (HAS(from, sandbox_request, member))         \
                SET(to, run_request, member, from->member)
        TAKE(profile);
        TAKE(limits);
        TAKE(image);
        TAKE(network);
        TAKE(strict_proc);
        TAKE(landlock);
        TAKE(cgroup);
        TAKE(tools);
#undef TAKE
        to->allow = from->allow;
        to->allow_n = from->allow_n;
        to->env = from->env;
        to->env_n = from->env_n;
        if (from->allow_n)
                MARK(to, run_request, allow);
        if (from->env_n)
                MARK(to, run_request, env);
}

/* The request goes before the sandbox does, so everything in it is copied. */
static int copy_request(struct cell *cell, const struct sandbox_request *request, struct csn_error *err)
{
        json_t *json = model_encode(&object_sandbox_request, request);
        int rc = model_decode(&object_sandbox_request, json, &cell->template->arena, &cell->request, err);
        json_decref(json);
        return rc;
}

static int prepare(struct cell *cell, const struct sandbox_request *request, struct csn_error *err)
{
        struct run *template = cell->template;
        if (copy_request(cell, request, err) < 0)
                return -err->code;
        as_run(&cell->request, &template->arena, &template->request);   /* without defaults: a profile comes before them */
        cell->bounds = cell->request.limits;
        model_defaults(&object_sandbox_request, &cell->request);
        if (!HAS(request, sandbox_request, ttl_ms))
                cell->request.ttl_ms = min_u64(cell->request.ttl_ms, cell->engine->settings->engine.sandbox_ttl_ms);
        if (cell_extend(cell, cell->request.ttl_ms, err) < 0 || run_prepare(template, err) < 0)
                return -err->code;
        if (template->backend != &backend_native)
                return err_set(err, CSN_E_UNSUPPORTED, 0, "persistent sandboxes are made by the native backend only, and the settings name another");
        const struct tools_for whom = { .request = &template->request.tools, .id = cell->id, .owner = cell->owner };
        return toolbox_wanted(whom.request) ? toolbox_open(cell->engine, &whom, &template->toolbox, err) : 0;
}

int cell_open(struct engine *engine, const struct sandbox_request *request, const char *owner, struct cell **ret, struct csn_error *err)
{
        if (request->root && !engine->settings->engine.sandbox_root)
                return err_field(err, "/root", "root inside is switched off here (engine.sandbox_root)");
        if (request->sudo && !request->root)
                return err_field(err, "/sudo", "sudo needs root: \"root\": true");
        if (request->tools.record)
                return err_field(err, "/tools/record", "calls are kept in the record of a run, and a persistent sandbox has none; leave it out, or call from POST /v1/runs");
        if (has_room(engine, owner, err) < 0)
                return -err->code;
        struct run *template = run_new(engine);
        struct cell *cell = mem_alloc(sizeof *cell);
        *cell = (struct cell){ .engine = engine, .template = template, .number = ++engine->cells_made, .created_ms = time_now_ms(),
                               .sock = { .fd = -1, .ready = guest_ready, .owner = cell }, .home_fd = -1, .out = { .loop = engine->loop, .watch = &cell->sock },
                               .ttl = { .fired = on_ttl, .owner = cell }, .idle = { .fired = on_idle, .owner = cell },
                               .gone = { .fired = cell_free, .owner = cell }, .greeting = { .fired = on_silence, .owner = cell },
                               .meter = { .fired = on_meter, .owner = cell } };
        snprintf(cell->id, sizeof cell->id, "sbx_");
        hex_random(16, cell->id + 4);
        snprintf(cell->owner, sizeof cell->owner, "%s", owner);
        if (prepare(cell, request, err) < 0) {
                loop_untimer(engine->loop, &cell->ttl);
                run_free(template);
                free(cell);
                return -err->code;
        }
        template->shape.flags |= WIRE_LASTING | (cell->request.root ? WIRE_ROOT : 0);
        template->shape.label = arena_text(&template->arena, "sandbox-%.12s", cell->id + 4);
        template->what.limits.wall_ms = DAY_MS;
        template->what.limits.cpu_ms = 0;
        cell->next = engine->cells;
        engine->cells = cell;
        cell->instance = pools_take_shell(engine, template);
        if (cell->instance) {
                cell->instance->cell = cell;
                cell->instance->kept = true;
                cell_attached(cell, cell->instance);
        } else if (instance_new_cell(engine, &template->shape, cell, &cell->instance, err) < 0) {
                loop_untimer(engine->loop, &cell->ttl);
                cell_free(&cell->gone);
                return -err->code;
        }
        *ret = cell;
        return 0;
}

int cell_has_account(const struct cell *cell, int account, struct csn_error *err)
{
        if (account != account_ROOT || cell->request.root)
                return 0;
        return err_field(err, "/user", "the sandbox has no root; make one with \"root\": true");
}

static bool is_name(const struct pair *pair, const char *name, size_t len)
{
        return strlen(pair->name) == len && strncmp(pair->name, name, len) == 0;
}

/* In place of what is `user`'s: the home directory, and caches where `user` cannot lay something for root to find. */
static const struct pair root_env[] = {
        { (char[]){ "HOME" }, (char[]){ "/root" } },
        { (char[]){ "USER" }, (char[]){ "root" } },
        { (char[]){ "LOGNAME" }, (char[]){ "root" } },
        { (char[]){ "PATH" }, (char[]){ "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" } },
        { (char[]){ "MPLCONFIGDIR" }, (char[]){ "/root/.matplotlib" } },
        { (char[]){ "XDG_CACHE_HOME" }, (char[]){ "/root/.cache" } },
};

static char *env_of(char *usual, size_t len, int account, struct arena *arena)
{
        const char *path = strncmp(usual, "PATH=", 5) == 0 && strstr(usual, TOOLS_PATH) ? TOOLS_PATH : "";
        for (size_t i = 0; account == account_ROOT && i < ARRAY_LEN(root_env); i++)
                if (is_name(&root_env[i], usual, len))
                        return arena_text(arena, "%s=%s%s", root_env[i].name, root_env[i].value, path);
        return usual;
}

char **cell_env(const struct cell *cell, int account, const struct pair *more, size_t more_n, struct arena *arena, size_t *ret_n)
{
        const struct wire_program *usual = &cell->template->what.program;
        char **env = arena_alloc(arena, (usual->env_n + more_n + 1) * sizeof *env);
        size_t n = 0;
        for (size_t i = 0; i < usual->env_n; i++) {
                size_t len = strcspn(usual->env[i], "=");
                bool replaced = false;
                for (size_t k = 0; k < more_n; k++)
                        replaced = replaced || is_name(&more[k], usual->env[i], len);
                if (!replaced)
                        env[n++] = env_of(usual->env[i], len, account, arena);
        }
        for (size_t i = 0; i < more_n; i++)
                env[n++] = arena_text(arena, "%s=%s", more[i].name, more[i].value);
        *ret_n = n;
        return env;
}

/* ---- the end of all ---- */

void cells_close(struct engine *engine)
{
        struct csn_error over;
        err_set(&over, CSN_E_BUSY, 0, "the daemon ends");
        for (struct cell *cell = engine->cells, *next; cell; cell = next) {
                cell_ended(cell, &over);
                next = cell->next;
                cell_free(&cell->gone);
        }
}
