/* The life of a persistent sandbox: made, used, paused, ended. */
#include "engine/persistent/psandbox_private.h"

#include "base/discard.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

#define HELLO_MS 60000
#define USAGE_REPORT_US 60000000ULL
#define USAGE_REPORT_SOON_US 1000000   /* many may end at once */
#define SPENT_MORE_US 500000ULL        /* CPU time beyond a quota, after which the whole sandbox is ended */
#define DAY_MS 86400000        /* the supervisor lets nothing live longer */

/* ---- waiters ---- */

void psandbox_wait(struct psandbox *psandbox, enum psandbox_want want, struct psandbox_waiter *waiter)
{
        waiter->psandbox = psandbox;
        waiter->want = want;
        waiter->next = psandbox->waiters;
        psandbox->waiters = waiter;
}

void psandbox_unwait(struct psandbox_waiter *waiter)
{
        if (!waiter->psandbox)
                return;
        for (struct psandbox_waiter **at = &waiter->psandbox->waiters; *at; at = &(*at)->next)
                if (*at == waiter) {
                        *at = waiter->next;
                        break;
                }
        waiter->psandbox = NULL;
}

/* A callback may remove other waiters, so each search begins at the head of the list. */
static void tell(struct psandbox *psandbox, enum psandbox_want want, const struct csn_error *error)
{
        for (struct psandbox_waiter *waiter = psandbox->waiters; waiter;) {
                if (waiter->want != want) {
                        waiter = waiter->next;
                        continue;
                }
                psandbox_unwait(waiter);
                waiter->done(waiter, error);
                waiter = psandbox->waiters;
        }
}

/* ---- its end ---- */

static void psandbox_free(struct timer *timer)
{
        struct psandbox *psandbox = timer->owner;
        for (struct psandbox **at = &psandbox->engine->psandboxes; *at; at = &(*at)->next)
                if (*at == psandbox) {
                        *at = psandbox->next;
                        break;
                }
        loop_untimer(psandbox->engine->loop, &psandbox->gone);
        owner_settle(psandbox->payer, &psandbox->counted_us);
        owner_release(psandbox->engine, psandbox->payer);
        layer_query_release(&psandbox->layers);
        launch_done(&psandbox->launch);
        free(psandbox);
}

/* Delivers the pending packets of each call, then ends the call. */
static void end_calls(struct psandbox *psandbox, const struct csn_error *error)
{
        while (psandbox->calls) {
                struct guest_call *call = psandbox->calls;
                guest_call_hold(call, false);
                for (int i = 0; i < 64 && psandbox->calls == call && call->watch.active; i++)
                        call->watch.ready(&call->watch, EPOLLIN);
                if (psandbox->calls != call)
                        continue;
                guest_call_close(call);
                call->events->ended(call, error);
        }
}

static void end_now(struct psandbox *psandbox, const struct csn_error *error)
{
        struct csn_error over = psandbox->why;
        if (psandbox->state == PSANDBOX_OVER)
                return;
        if (!over.code && error)
                over = *error;
        if (!over.code)
                err_set(&over, CSN_E_BUSY, 0, "the sandbox has ended");
        psandbox->why = over;
        psandbox->instance = NULL;
        /* Callbacks of ending calls may ask for the state of the sandbox. */
        end_calls(psandbox, &over);
        if (psandbox->observer)
                psandbox->observer->ended(psandbox, &over);
        psandbox->state = PSANDBOX_OVER;
        psandbox_tell(psandbox, WATCHED_SANDBOX_ENDED);
        loop_untimer(psandbox->engine->loop, &psandbox->ttl);
        loop_untimer(psandbox->engine->loop, &psandbox->idle);
        loop_untimer(psandbox->engine->loop, &psandbox->greeting);
        loop_untimer(psandbox->engine->loop, &psandbox->usage_report);
        loop_unwatch(psandbox->engine->loop, &psandbox->sock);
        send_queue_done(&psandbox->out);
        fd_close(&psandbox->sock.fd);
        discard_fd(psandbox->engine->workers, psandbox->owner, &psandbox->home_fd); /* a tmpfs without other users */
        egress_close(psandbox->egress);
        psandbox->egress = NULL;
        tool_session_close(&psandbox->tool_session);
        tell(psandbox, PSANDBOX_WANTS_READY, &over);
        tell(psandbox, PSANDBOX_WANTS_PAUSED, &over);
        tell(psandbox, PSANDBOX_WANTS_STATS, &over);
        tell(psandbox, PSANDBOX_WANTS_OVER, NULL);
        loop_timer(psandbox->engine->loop, &psandbox->gone, 0);
}

/* While a context executes, the record of the execution has the use of the whole sandbox. */
static void charge(struct psandbox *psandbox, uint64_t used_us)
{
        if (psandbox->observer && psandbox->observer->is_executing(psandbox))
                return;
        uint64_t owed_ms = (used_us - min_u64(psandbox->told_us, used_us)) / 1000;
        psandbox->told_us += owed_ms * 1000;
        owner_charge(psandbox->engine, psandbox->payer, owed_ms);
}

void psandbox_count_use(struct psandbox *psandbox)
{
        uint64_t used_us = psandbox->seen.cpu_us;
        owner_use(psandbox->payer, &psandbox->counted_us, used_us - min_u64(psandbox->told_us, used_us));
}

static void report_usage(struct psandbox *psandbox)
{
        if (psandbox->engine->usage_listener && !psandbox->usage_report_due)
                loop_timer(psandbox->engine->loop, &psandbox->usage_report, USAGE_REPORT_SOON_US);
        psandbox->usage_report_due = true;
}

static void on_usage(struct timer *timer)
{
        struct psandbox *psandbox = timer->owner;
        psandbox->usage_report_due = false;
        psandbox_request_stats(psandbox);
        loop_timer(psandbox->engine->loop, timer, USAGE_REPORT_US);
}

static void on_exited(void *owner, struct instance *instance, const struct wire_exit *how)
{
        struct psandbox *psandbox = owner;
        (void)instance;
        struct csn_error why;
        if (how->reasons & WIRE_MEMORY)
                err_set(&why, CSN_E_BUSY, 0, "the sandbox was ended: it used more than memory_bytes=%" PRIu64,
                        psandbox->launch.request.limits.memory_bytes);
        else if (how->reasons & WIRE_WALL)
                err_set(&why, CSN_E_BUSY, 0, "the sandbox' time is over");
        else
                err_set(&why, CSN_E_BUSY, 0, "the sandbox has ended");
        end_now(psandbox, &why);
        charge(psandbox, how->cpu_us);
}

static void end(struct psandbox *psandbox, const struct csn_error *why);

/* Killing a program leaves processes that left its group; after SPENT_MORE_US more CPU time the sandbox ends. */
static void end_spent(struct psandbox *psandbox)
{
        struct csn_error why;
        uint64_t used_us = max_u64(psandbox->seen.cpu_us, 1);
        if (psandbox->spent_us && used_us - psandbox->spent_us >= SPENT_MORE_US) {
                err_set(&why, CSN_E_BUSY, 0,
                        "the sandbox was ended: the CPU time that its key allows in 24 hours is used up (" QUOTA_CPU
                        "=%" PRIu64 ")",
                        psandbox->quota.cpu_ms_per_day);
                end(psandbox, &why);
                return;
        }
        psandbox->spent_us = psandbox->spent_us ? psandbox->spent_us : used_us;
        if (psandbox->observer)
                psandbox->observer->quota_spent(psandbox);
        for (struct guest_call *call = psandbox->calls; call; call = call->next)
                if (call->counted) {
                        call->spent = true;
                        guest_call_signal(call, SIGKILL, 0);
                }
}

static void end(struct psandbox *psandbox, const struct csn_error *why)
{
        if (psandbox->why.code == 0 && why)
                psandbox->why = *why;
        if (psandbox->instance)
                instance_kill(psandbox->instance);
        else if (psandbox->waits_for_layers)
                loop_timer(psandbox->engine->loop, &psandbox->ttl, 0);   /* callers expect no callback from here */
        psandbox_forget_layers(psandbox);
}

void psandbox_kill(struct psandbox *psandbox)
{
        struct csn_error why;
        err_set(&why, CSN_E_CANCELLED, 0, "the sandbox was ended");
        end(psandbox, &why);
}

static void on_silence(struct timer *timer)
{
        struct csn_error why;
        err_set(&why, CSN_E_SYSTEM, 0, "the guest of the sandbox did not greet within %d seconds", HELLO_MS / 1000);
        end(timer->owner, &why);
}

static void on_ttl(struct timer *timer)
{
        struct psandbox *psandbox = timer->owner;
        struct csn_error why;
        err_set(&why, CSN_E_BUSY, 0, "the sandbox' time is over (ttl_ms)");
        if (psandbox->instance) {
                end(psandbox, &why);
                return;
        }
        psandbox_forget_layers(psandbox);
        end_now(psandbox, &why);
}

static bool is_busy(const struct psandbox *psandbox)
{
        size_t n = 0, idle = psandbox->observer ? psandbox->observer->idle_calls(psandbox) : 0;
        for (const struct guest_call *call = psandbox->calls; call; call = call->next)
                n += call != &psandbox->sudo;
        return n > idle || psandbox->state != PSANDBOX_READY;
}

static void on_idle(struct timer *timer)
{
        struct psandbox *psandbox = timer->owner;
        struct csn_error why;
        if (is_busy(psandbox)) {
                psandbox_touch(psandbox);
                return;
        }
        err_set(&why, CSN_E_BUSY, 0, "nobody used the sandbox for idle_ms=%" PRIu64, psandbox->request.idle_ms);
        end(psandbox, &why);
}

void psandbox_touch(struct psandbox *psandbox)
{
        if (psandbox->request.idle_ms && psandbox->state != PSANDBOX_OVER)
                loop_timer(psandbox->engine->loop, &psandbox->idle, psandbox->request.idle_ms * 1000);
}

/* ---- the guest ---- */

static void broken(struct psandbox *psandbox, const struct csn_error *err)
{
        if (!psandbox->why.code)
                log_text(LOG_WARN, "the guest of %s is not trusted any more: %s", psandbox->id, err->text);
        loop_unwatch(psandbox->engine->loop, &psandbox->sock);   /* no more packets until its death */
        end(psandbox, err);
}

static void on_sudo_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        (void)call, (void)kind, (void)bytes, (void)len, (void)fds;
}

static void on_sudo_room(struct guest_call *call)
{
        (void)call;
}

static void on_sudo_ended(struct guest_call *call, const struct csn_error *error)
{
        const struct psandbox *psandbox = call->owner;
        if (error && !psandbox->why.code)
                log_text(LOG_WARN, "there is no sudo in %s: %s", psandbox->id, error->text);
}

/* The first request to the guest, which serves requests in order. */
static void give_sudo(struct psandbox *psandbox)
{
        static const struct guest_call_events events = { on_sudo_packet, on_sudo_room, on_sudo_ended };
        struct csn_error err;
        psandbox->sudo = (struct guest_call){ .events = &events, .owner = psandbox };
        if (guest_call_sudo(psandbox, &psandbox->sudo, &err) < 0)
                on_sudo_ended(&psandbox->sudo, &err);
}

/* Ready after the guest's HELLO and the supervisor's boundary. */
static void mark_ready(struct psandbox *psandbox)
{
        if (psandbox->state != PSANDBOX_MAKING || psandbox->why.code || !psandbox->hello_received ||
                !psandbox->has_boundary)
                return;
        loop_untimer(psandbox->engine->loop, &psandbox->greeting);
        psandbox->state = PSANDBOX_READY;
        psandbox_tell(psandbox, WATCHED_SANDBOX_CREATED);
        psandbox_touch(psandbox);
        if (psandbox->request.sudo)
                give_sudo(psandbox);
        tell(psandbox, PSANDBOX_WANTS_READY, NULL);
}

static void on_confined(void *owner, struct instance *instance)
{
        struct psandbox *psandbox = owner;
        psandbox->boundary = instance->boundary;
        psandbox->has_boundary = true;
        mark_ready(psandbox);
}

static void guest_said(struct psandbox *psandbox, const uint8_t *bytes, size_t len)
{
        uint64_t version;
        struct csn_error err, error;
        enum guest_kind kind = guest_kind_of(bytes, len);
        if (kind == GUEST_FAILED && !psandbox->hello_received && guest_get_error(bytes, len, &error, &err) == 0) {
                broken(psandbox, &error);
        } else if (kind != GUEST_HELLO || psandbox->hello_received ||
                guest_get_number(bytes, len, &version, &err) < 0 || version != GUEST_VERSION) {
                err_set(&err, CSN_E_PROTOCOL, 0, "the guest said what it may not");
                broken(psandbox, &err);
        } else {
                psandbox->hello_received = true;
                mark_ready(psandbox);
        }
}

static void guest_ready(struct watch *watch, uint32_t events)
{
        static uint8_t bytes[WIRE_MAX];
        struct psandbox *psandbox = watch->owner;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct csn_error err;
        if (events & EPOLLOUT && send_queue_flush(&psandbox->out) < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "talk to the guest");
                broken(psandbox, &err);
                return;
        }
        if (!(events & ~(uint32_t)EPOLLOUT))
                return;
        ssize_t len = wire_receive(watch->fd, bytes, fds, &fds_n);
        for (size_t i = 0; i < fds_n; i++)
                fd_close(&fds[i]);
        if (len > 0)
                guest_said(psandbox, bytes, (size_t)len);
        else if (len == 0 || errno != EAGAIN)
                loop_unwatch(psandbox->engine->loop, watch);   /* the supervisor reports the end next */
}

static void on_connection(void *owner, const char *host, unsigned port, const char *refusal)
{
        const struct psandbox *psandbox = owner;
        if (refusal)
                log_text(LOG_INFO, "the proxy of %s refused %.100s:%u: %s", psandbox->id, host, port, refusal);
}

static int open_proxy(struct psandbox *psandbox, int fd, struct csn_error *err)
{
        static const struct egress_events events = { on_connection };
        const struct run_request *request = &psandbox->launch.request;
        const struct egress_rules rules = {
                .public_ = request->network == network_PUBLIC, .hosts = request->allow, .hosts_n = request->allow_n,
                .private_hosts = psandbox->engine->private_hosts, .private_hosts_n = psandbox->engine->private_hosts_n
        };
        return fd < 0 ? 0 : egress_open(psandbox->engine->loop, fd, &rules, &events, psandbox, &psandbox->egress, err);
}

static int open_tool_socket(struct psandbox *psandbox, int fd, struct csn_error *err)
{
        return fd < 0 ? 0 : tool_session_serve(&psandbox->tool_session, psandbox->engine->loop, fd, err);
}

int psandbox_set_network(struct psandbox *psandbox, const struct egress_rules *rules, struct csn_error *err)
{
        if (!psandbox->egress)
                return err_field(err, "/network", "the sandbox has no network: make one with \"network\": \"public\"");
        return egress_change(psandbox->egress, rules, err);
}

static void on_made(void *owner, struct instance *instance)
{
        struct psandbox *psandbox = owner;
        struct csn_error err;
        /* Its home is read through the guest, and the guest writes nothing of its own. */
        psandbox->home_fd = take_fd(&instance->ends.home);
        fd_close(&instance->ends.out);
        fd_close(&instance->ends.error);
        fd_close(&instance->ends.channel);
        if (open_proxy(psandbox, take_fd(&instance->ends.proxy), &err) < 0 ||
                open_tool_socket(psandbox, take_fd(&instance->ends.tool_socket), &err) < 0 ||
                instance_guest(instance, &psandbox->launch.program.limits, &psandbox->sock.fd, &err) < 0 ||
                loop_watch(psandbox->engine->loop, &psandbox->sock, psandbox->sock.fd, EPOLLIN, &err) < 0)
                broken(psandbox, &err);
        else
                loop_timer(psandbox->engine->loop, &psandbox->greeting, HELLO_MS * 1000ULL);
        if (psandbox->engine->usage_listener)
                loop_timer(psandbox->engine->loop, &psandbox->usage_report, USAGE_REPORT_US);
}

static const struct instance_user instance_user;

static void on_refused(void *owner, struct instance *instance, const struct csn_error *error, bool again)
{
        struct psandbox *psandbox = owner;
        (void)instance;
        struct csn_error err;
        psandbox->instance = NULL;
        if (!again || psandbox->hello_received || psandbox->why.code ||
                launch_wants_tools(&psandbox->launch.request.tools)) {
                end_now(psandbox, error);
                return;
        }
        loop_untimer(psandbox->engine->loop, &psandbox->greeting);
        loop_unwatch(psandbox->engine->loop, &psandbox->sock);
        send_queue_done(&psandbox->out);
        fd_close(&psandbox->sock.fd);
        fd_close(&psandbox->home_fd);
        egress_close(psandbox->egress);
        psandbox->egress = NULL;
        psandbox->has_boundary = false;
        if (instance_new(&psandbox->engine->instances, &backend_native, &psandbox->launch.shape, &instance_user,
                    psandbox, &psandbox->instance, &err) < 0)
                end_now(psandbox, &err);
}

/* ---- pausing ---- */

static void on_frozen(void *owner, bool on, const struct csn_error *error)
{
        struct psandbox *psandbox = owner;
        psandbox->changing = false;
        if (error) {
                tell(psandbox, PSANDBOX_WANTS_PAUSED, error);
                tell(psandbox, PSANDBOX_WANTS_READY, error);
                return;
        }
        psandbox->state = on ? PSANDBOX_PAUSED : PSANDBOX_READY;
        psandbox_tell(psandbox, on ? WATCHED_SANDBOX_PAUSED : WATCHED_SANDBOX_RESUMED);
        psandbox_touch(psandbox);
        if (on)
                psandbox->paused_us = clock_us();
        if (psandbox->observer)
                psandbox->observer->frozen(psandbox, on);
        if (on)
                loop_untimer(psandbox->engine->loop, &psandbox->idle);
        tell(psandbox, on ? PSANDBOX_WANTS_PAUSED : PSANDBOX_WANTS_READY, NULL);
}

static int change(struct psandbox *psandbox, enum psandbox_state from, bool on, struct csn_error *err)
{
        if (psandbox->state != from || psandbox->changing || !psandbox->instance)
                return err_set(err, CSN_E_BUSY, 0, "the sandbox is %s",
                        psandbox->changing                           ? "being paused or resumed"
                                : psandbox->state == PSANDBOX_MAKING ? "not ready yet"
                                : psandbox->state == PSANDBOX_PAUSED ? "paused already"
                                                                     : "not paused");
        psandbox->changing = true;
        instance_freeze(psandbox->instance, on);
        return 0;
}

int psandbox_pause(struct psandbox *psandbox, struct csn_error *err)
{
        return change(psandbox, PSANDBOX_READY, true, err);
}

int psandbox_resume(struct psandbox *psandbox, struct csn_error *err)
{
        return change(psandbox, PSANDBOX_PAUSED, false, err);
}

/* ---- statistics, lookup, lifetime ---- */

static void on_stats(void *owner, const struct wire_stats *seen)
{
        struct psandbox *psandbox = owner;
        psandbox->seen = *seen;
        if (psandbox->observer)
                psandbox->observer->stats(psandbox, seen);
        charge(psandbox, seen->cpu_us);
        psandbox_count_use(psandbox);
        if (owner_left_us(psandbox->engine, psandbox->payer, &psandbox->quota) == 0)
                end_spent(psandbox);
        else
                psandbox->spent_us = 0;
        tell(psandbox, PSANDBOX_WANTS_STATS, NULL);
}

static const struct instance_user instance_user = {
        .ready = on_made,
        .confined = on_confined,
        .stats = on_stats,
        .frozen = on_frozen,
        .exited = on_exited,
        .refused = on_refused,
};

void psandbox_request_stats(struct psandbox *psandbox)
{
        if (psandbox->instance)
                instance_request_stats(psandbox->instance);
}

enum psandbox_state psandbox_state(const struct psandbox *psandbox)
{
        return psandbox->state != PSANDBOX_MAKING && !psandbox->instance ? PSANDBOX_OVER : psandbox->state;
}

/* ---- making ---- */

struct psandbox *psandbox_next(struct engine *engine, struct psandbox *psandbox, const char *owner)
{
        for (psandbox = psandbox ? psandbox->next : engine->psandboxes; psandbox; psandbox = psandbox->next)
                /* An owner does not find a sandbox that is being ended. */
                if (psandbox->state != PSANDBOX_OVER &&
                        (!owner || (!psandbox->why.code && strcmp(psandbox->owner, owner) == 0)))
                        return psandbox;
        return NULL;
}

struct psandbox *psandbox_find(struct engine *engine, const char *id, const char *owner)
{
        for (struct psandbox *psandbox = psandbox_next(engine, NULL, owner); psandbox;
                psandbox = psandbox_next(engine, psandbox, owner))
                if (strcmp(psandbox->id, id) == 0)
                        return psandbox;
        return NULL;
}

static int has_room(struct engine *engine, const char *owner, struct csn_error *err)
{
        const struct engine_settings *settings = &engine->settings->engine;
        size_t all = 0, own = 0;
        for (const struct psandbox *psandbox = engine->psandboxes; psandbox; psandbox = psandbox->next) {
                all += psandbox->state != PSANDBOX_OVER;
                own += psandbox->state != PSANDBOX_OVER && strcmp(psandbox->owner, owner) == 0;
        }
        if (all >= settings->sandboxes_max)
                return err_set(err, CSN_E_BUSY, 0,
                        "persistent sandboxes: %zu, as many as engine.sandboxes_max allows; end one, or raise engine.sandboxes_max",
                        all);
        if (own >= settings->sandboxes_owner_max)
                return err_set(err, CSN_E_BUSY, 0,
                        "persistent sandboxes of yours: %zu, as many as engine.sandboxes_owner_max allows; end one",
                        own);
        return 0;
}

int psandbox_extend(struct psandbox *psandbox, uint64_t ttl_ms, struct csn_error *err)
{
        uint64_t most = psandbox->engine->settings->engine.sandbox_ttl_ms;
        int64_t now_ms = psandbox->expires_ms ? time_now_ms()
                                              : psandbox->created_ms; /* a whole day is possible at creation */
        if (ttl_ms > most)
                return err_field(err, "/ttl_ms",
                        "ttl_ms is %" PRIu64 "; the administrator allows %" PRIu64 " (engine.sandbox_ttl_ms)", ttl_ms,
                        most);
        if (now_ms + (int64_t)ttl_ms > psandbox->created_ms + DAY_MS)
                return err_field(err, "/ttl_ms",
                        "a sandbox ends %d hours after it was made; until then ttl_ms can be %lld", DAY_MS / 3600000,
                        (long long)max_u64((uint64_t)(psandbox->created_ms + DAY_MS - now_ms), 0));
        psandbox->expires_ms = now_ms + (int64_t)ttl_ms;
        psandbox->request.ttl_ms = ttl_ms;
        loop_timer(psandbox->engine->loop, &psandbox->ttl, ttl_ms * 1000);
        return 0;
}

/* As the request of a run: a sandbox has the same defaults, profiles and ceilings. */
static void as_run_request(const struct sandbox_request *from, struct arena *arena, struct run_request *to)
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
        TAKE(requirements);
        TAKE(lock);
#undef TAKE
        to->packages = from->packages;
        to->packages_n = from->packages_n;
        to->layers = from->layers;
        to->layers_n = from->layers_n;
        to->volumes = from->volumes;
        to->volumes_n = from->volumes_n;
        to->allow = from->allow;
        to->allow_n = from->allow_n;
        to->env = from->env;
        to->env_n = from->env_n;
        if (from->allow_n)
                MARK(to, run_request, allow);
        if (from->packages_n)
                MARK(to, run_request, packages);
        if (from->layers_n)
                MARK(to, run_request, layers);
        if (from->volumes_n)
                MARK(to, run_request, volumes);
        if (from->env_n)
                MARK(to, run_request, env);
}

/* The sandbox outlives the request, so everything is copied. */
static int copy_request(struct psandbox *psandbox, const struct sandbox_request *request, struct csn_error *err)
{
        json_t *json = model_encode(&object_sandbox_request, request);
        int rc = model_decode(&object_sandbox_request, json, &psandbox->launch.arena, &psandbox->request, err);
        json_decref(json);
        return rc;
}

static int prepare(struct psandbox *psandbox, const struct sandbox_request *request, struct csn_error *err)
{
        struct launch *launch = &psandbox->launch;
        if (copy_request(psandbox, request, err) < 0)
                return -err->code;
        as_run_request(&psandbox->request, &launch->arena,
                &launch->request); /* without defaults: profiles come before defaults */
        psandbox->bounds = psandbox->request.limits;
        model_defaults(&object_sandbox_request, &psandbox->request);
        if (!HAS(request, sandbox_request, ttl_ms))
                psandbox->request.ttl_ms =
                        min_u64(psandbox->request.ttl_ms, psandbox->engine->settings->engine.sandbox_ttl_ms);
        if (psandbox_extend(psandbox, psandbox->request.ttl_ms, err) < 0 || launch_prepare(launch, err) < 0)
                return -err->code;
        if (launch->backend != &backend_native)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "persistent sandboxes are made by the native backend only, and the settings name another");
        const struct tools_for whom = {
                .request = &launch->request.tools, .id = psandbox->id, .owner = psandbox->owner
        };
        const struct engine *engine = psandbox->engine;
        return launch_wants_tools(whom.request)
                ? tool_session_open(engine->tools, engine->tools_owner, &whom, &psandbox->tool_session, err)
                : 0;
}

static const struct guest_call_user call_user = { .used = psandbox_touch, .program_ended = report_usage };

void psandbox_set_quota(struct psandbox *psandbox, const struct run_quota *quota)
{
        psandbox->quota = *quota;
        if (quota->cpu_ms_per_day)
                psandbox->engine->hooks->sample_usage(psandbox->engine);
}

static int make_instance(struct psandbox *psandbox, struct csn_error *err)
{
        struct engine *engine = psandbox->engine;
        psandbox->instance = pools_take_bare(engine->pools, &psandbox->launch);
        if (!psandbox->instance)
                return instance_new(&engine->instances, &backend_native, &psandbox->launch.shape, &instance_user,
                        psandbox, &psandbox->instance, err);
        instance_set_user(psandbox->instance, &instance_user, psandbox);
        on_made(psandbox, psandbox->instance);
        return 0;
}

static void on_layers(struct psandbox *psandbox, const struct csn_error *error)
{
        struct csn_error err;
        if (error)
                end_now(psandbox, error);
        else if (make_instance(psandbox, &err) < 0)
                end_now(psandbox, &err);
}

int psandbox_open(struct engine *engine, const struct sandbox_request *request, const char *owner,
        const struct run_quota *quota, struct psandbox **ret, struct csn_error *err)
{
        if (request->root && !engine->settings->engine.sandbox_root)
                return err_field(err, "/root", "root inside is switched off here (engine.sandbox_root)");
        if (request->sudo && !request->root)
                return err_field(err, "/sudo", "sudo needs root: \"root\": true");
        if (request->tools.record)
                return err_field(err, "/tools/record",
                        "calls are kept in the record of a run, and a persistent sandbox has none; leave it out, or call from POST /v1/runs");
        if (has_room(engine, owner, err) < 0)
                return -err->code;
        struct psandbox *psandbox = mem_alloc(sizeof *psandbox);
        *psandbox = (struct psandbox){ .engine = engine,
                .call_user = &call_user,
                .number = clock_number(&engine->newest_psandbox),
                .created_ms = time_now_ms(),
                .sock = { .fd = -1, .ready = guest_ready, .owner = psandbox },
                .home_fd = -1,
                .layers = { .holds = { -1, -1 } },
                .out = { .loop = engine->loop, .watch = &psandbox->sock },
                .ttl = { .fired = on_ttl, .owner = psandbox },
                .idle = { .fired = on_idle, .owner = psandbox },
                .gone = { .fired = psandbox_free, .owner = psandbox },
                .greeting = { .fired = on_silence, .owner = psandbox },
                .usage_report = { .fired = on_usage, .owner = psandbox } };
        launch_init(&psandbox->launch, engine->settings, engine->languages);
        psandbox->launch.persistent = true;
        psandbox->launch.volumes = engine->volume_source;
        psandbox->launch.volumes_owner = engine->volume_source_owner;
        psandbox->launch.owner_key = psandbox->owner;
        snprintf(psandbox->id, sizeof psandbox->id, "sbx_");
        id_new(psandbox->id + 4);
        snprintf(psandbox->owner, sizeof psandbox->owner, "%s", owner);
        if (prepare(psandbox, request, err) < 0) {
                loop_untimer(engine->loop, &psandbox->ttl);
                tool_session_close(&psandbox->tool_session);
                launch_done(&psandbox->launch);
                free(psandbox);
                return -err->code;
        }
        psandbox->launch.shape.flags |= WIRE_PERSISTENT | (psandbox->request.root ? WIRE_ROOT : 0);
        psandbox->launch.shape.label = arena_text(&psandbox->launch.arena, "sandbox-%.12s", psandbox->id + 4);
        psandbox->launch.program.limits.wall_ms = DAY_MS;
        psandbox->launch.program.limits.cpu_ms = 0;
        psandbox->next = engine->psandboxes;
        engine->psandboxes = psandbox;
        psandbox->payer = owner_hold(engine, owner);
        psandbox_set_quota(psandbox, quota ? quota : &(const struct run_quota){ 0 });
        int rc = psandbox_find_layers(psandbox, on_layers, err);
        rc = rc > 0 ? make_instance(psandbox, err) : rc;
        if (rc < 0) {
                loop_untimer(engine->loop, &psandbox->ttl);
                tool_session_close(&psandbox->tool_session);
                psandbox_free(&psandbox->gone);
                return -err->code;
        }
        *ret = psandbox;
        return 0;
}

/* ---- the end of all ---- */

void psandboxes_close(struct engine *engine)
{
        struct csn_error over;
        err_set(&over, CSN_E_BUSY, 0, "the daemon ends");
        for (struct psandbox *psandbox = engine->psandboxes, *next; psandbox; psandbox = next) {
                end_now(psandbox, &over);
                next = psandbox->next;
                psandbox_free(&psandbox->gone);
        }
}
