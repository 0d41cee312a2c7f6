/* The sandboxes of E2B's clients and their lifecycle; see e2b.h. */
#include "front/e2b/command.h"
#include "front/e2b/request.h"

#include <inttypes.h>
#include <stdio.h>

#define AGAIN_US 100000        /* retry of an expiry during a pause or resume */
/*
 * Minimum time from the start of a program to the freeze of its sandbox: clients count a program's time from its start,
 * and freeze the sandbox at once.
 */
#define STARTED_US 250000

/* ---- what a sandbox is made with ---- */

static void make_id(char id[static E2B_ID_LEN + 1])
{
        id[0] = 'i';
        id_new_short(id + 1);
}

/* Longest life of a sandbox, and of a paused sandbox without memory. */
static uint64_t longest_ms(const struct service *service)
{
        return min_u64(service->settings->engine.sandbox_ttl_ms, E2B_TIMEOUT_MAX_S * 1000ULL);
}

/* CPUs and memory of the template's build, limited by the ceilings. */
static json_t *limits_of(const struct settings *settings, const json_t *build_spec)
{
        json_t *limits = json_object();
        json_int_t cpus = json_integer_value(json_object_get(build_spec, "cpuCount")),
                   memory = json_integer_value(json_object_get(build_spec, "memoryMB"));
        if (cpus)
                json_object_set_new(limits, "cpu_milli",
                        json_integer((json_int_t)min_u64((uint64_t)cpus * 1000, settings->ceilings.cpu_milli)));
        if (memory)
                json_object_set_new(limits, "memory_bytes",
                        json_integer((json_int_t)min_u64((uint64_t)memory * MIB, settings->ceilings.memory_bytes)));
        return limits;
}

/* pip of Debian refuses to install beside Debian's own packages (PEP 668), a protection of no use in a sandbox. */
static json_t *with_pip(json_t *env)
{
        json_t *with = json_pack("{s:s}", "PIP_BREAK_SYSTEM_PACKAGES", "1");
        json_object_update(with, env);
        return with;
}

int e2b_open_psandbox(struct service *service, const char *tenant, const struct run_quota *quota,
        const struct e2b_template *template, const json_t *build_spec, json_t *env, const char *label,
        struct psandbox **ret, struct csn_error *err)
{
        const struct settings *settings = service->settings;
        const char *own = settings->images.e2b, *image = strcmp(own, "system") == 0 ? template->image : own;
        struct sandbox_request given = { 0 };
        struct arena arena = { 0 };
        json_t *words = json_pack("{s:s, s:s, s:b, s:b, s:I, s:i, s:s, s:o, s:o, s:{s:s, s:s}}", "profile", "e2b",
                "image", image, "root", settings->engine.sandbox_root, "sudo", settings->engine.sandbox_root,
                "ttl_ms", (json_int_t)longest_ms(service), "idle_ms", 0, "network",
                settings->engine.network == network_PUBLIC ? "public" : "none", "env", with_pip(env), "limits",
                limits_of(settings, build_spec), "labels", "e2b", label, "template", template->name);
        if (json_object_get(build_spec, "packages"))
                json_object_set(words, "packages", json_object_get(build_spec, "packages"));
        int rc = model_decode(&object_sandbox_request, words, &arena, &given, err);
        json_decref(words);
        rc = rc < 0 ? rc : psandbox_open(service->engine, &given, tenant, quota, ret, err);
        arena_done(&arena);
        return rc;
}

/* The template's variables, overridden by the client's, and both by E2B's. */
static json_t *env_of(const struct e2b_sandbox *sandbox)
{
        json_t *env = json_copy(sandbox->wish.env), *of = json_object_get(sandbox->wish.build_spec, "env");
        json_object_update_missing(env, of);
        json_object_set_new(env, "E2B_SANDBOX", json_string("true"));
        json_object_set_new(env, "E2B_SANDBOX_ID", json_string(sandbox->id));
        json_object_set_new(env, "E2B_TEMPLATE_ID", json_string(e2b_template_id(&sandbox->wish)));
        return env;
}

static void on_psandbox_over(struct psandbox_waiter *waiter, const struct csn_error *error);
static void on_psandbox_ready(struct psandbox_waiter *waiter, const struct csn_error *error);

static int open_psandbox(struct e2b_sandbox *sandbox, struct csn_error *err)
{
        const struct e2b_wish *wish = &sandbox->wish;
        json_t *env = env_of(sandbox);
        sandbox->networked = sandbox->service->settings->engine.network == network_PUBLIC;
        int rc = e2b_open_psandbox(sandbox->service, sandbox->tenant, &wish->quota, wish->template, wish->build_spec,
                                   env, sandbox->id, &sandbox->psandbox, err);
        json_decref(env);
        if (rc < 0)
                return rc;
        const struct limits *limits = psandbox_limits(sandbox->psandbox);
        sandbox->cpus = (limits->cpu_milli + 999) / 1000;
        sandbox->memory_bytes = limits->memory_bytes;
        sandbox->disk_bytes = limits->disk_bytes;
        psandbox_wait(sandbox->psandbox, PSANDBOX_WANTS_OVER, &sandbox->over);
        sandbox->news.done = on_psandbox_ready;
        psandbox_wait(sandbox->psandbox, PSANDBOX_WANTS_READY, &sandbox->news);
        return 0;
}

/* ---- end ---- */

static void end_start(struct e2b_sandbox *sandbox)
{
        e2b_env_files_free(sandbox->env_files);
        sandbox->env_files = NULL;
        if (sandbox->start)
                start_stop(sandbox->start);
        free(sandbox->start);
        sandbox->start = NULL;
}

static void sandbox_free(struct e2b_sandbox *sandbox)
{
        end_start(sandbox);
        for (struct e2b_sandbox **at = &e2b_of(sandbox->service)->sandboxes; *at; at = &(*at)->next)
                if (*at == sandbox) {
                        *at = sandbox->next;
                        break;
                }
        loop_untimer(sandbox->service->loop, &sandbox->end);
        loop_untimer(sandbox->service->loop, &sandbox->freeze);
        psandbox_unwait(&sandbox->over);
        psandbox_unwait(&sandbox->news);
        psandbox_copy_done(&sandbox->copy);
        e2b_image_unref(sandbox->image);
        sandbox->wish.hooks->ended(sandbox);
        e2b_wish_done(&sandbox->wish);
        free(sandbox->logs);
        free(sandbox);
}

static void is_over(struct e2b_sandbox *sandbox)
{
        struct csn_error over;
        err_set(&over, CSN_E_BUSY, 0, "the sandbox has ended");
        e2b_notify(sandbox, E2B_WANTS_READY, &over);
        e2b_notify(sandbox, E2B_WANTS_PAUSED, &over);
        e2b_notify(sandbox, E2B_WANTS_OVER, NULL);
        sandbox_free(sandbox);
}

/* The sandbox is killed after a pause with saved files, or after a failed resume from them: the entry stays, paused. */
static void on_psandbox_over(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct e2b_sandbox *sandbox = waiter->owner;
        struct csn_error asleep;
        (void)error;
        sandbox->psandbox = NULL;
        if (!sandbox->image || sandbox->killing || (sandbox->state != E2B_PAUSING && sandbox->state != E2B_RESUMING)) {
                is_over(sandbox);
                return;
        }
        end_start(sandbox);
        sandbox->wish.hooks->ended(sandbox);
        sandbox->state = E2B_PAUSED;
        loop_timer(sandbox->service->loop, &sandbox->end, longest_ms(sandbox->service) * 1000);
        e2b_log(sandbox, "info", "the sandbox is paused, without its memory");
        err_set(&asleep, CSN_E_SYSTEM, 0, "the sandbox could not be resumed; it is paused");
        e2b_notify(sandbox, E2B_WANTS_READY, &asleep);
        e2b_notify(sandbox, E2B_WANTS_PAUSED, NULL);
}

void e2b_sandbox_kill(struct e2b_sandbox *sandbox)
{
        sandbox->killing = true;
        if (sandbox->psandbox)
                psandbox_kill(sandbox->psandbox);
        else
                is_over(sandbox);
}

static void on_end(struct timer *timer)
{
        struct e2b_sandbox *sandbox = timer->owner;
        struct csn_error err;
        if (sandbox->psandbox && sandbox->state != E2B_RUNNING)
                loop_timer(sandbox->service->loop, timer, AGAIN_US);
        else if (!sandbox->psandbox || !sandbox->wish.auto_pause ||
                e2b_sandbox_pause(sandbox, sandbox->wish.keep_memory, &err) < 0)
                e2b_sandbox_kill(sandbox);
}

void e2b_sandbox_set_end(struct e2b_sandbox *sandbox, uint64_t ms)
{
        sandbox->end_ms = time_now_ms() + (int64_t)ms;
        sandbox->life_ms = ms;
        if (sandbox->psandbox && sandbox->state != E2B_PAUSING)
                loop_timer(sandbox->service->loop, &sandbox->end, ms * 1000);
}

void e2b_sandboxes_close(struct service *service)
{
        while (e2b_of(service)->sandboxes)
                sandbox_free(e2b_of(service)->sandboxes);
}

/* ---- start ---- */

static void runs(struct e2b_sandbox *sandbox)
{
        e2b_image_unref(sandbox->image);
        sandbox->image = NULL;
        e2b_log(sandbox, "info", "the sandbox %s", sandbox->state == E2B_RESUMING ? "goes on" : "runs");
        sandbox->state = E2B_RUNNING;
        sandbox->wish.hooks->runs(sandbox);
        e2b_notify(sandbox, E2B_WANTS_READY, NULL);
}

/* A sandbox being resumed from saved files becomes paused again. */
static void give_up(struct e2b_sandbox *sandbox, const struct csn_error *error)
{
        e2b_notify(sandbox, E2B_WANTS_READY, error);
        if (sandbox->state == E2B_RESUMING && sandbox->image)
                psandbox_kill(sandbox->psandbox);
        else
                e2b_sandbox_kill(sandbox);
}

static void on_start_line(struct start *start, bool error, const char *text)
{
        e2b_log(start->owner, error ? "warn" : "info", "start command: %s", text);
}

static void on_started(struct start *start, const struct csn_error *error)
{
        error ? give_up(start->owner, error) : runs(start->owner);
}

static void starts(struct e2b_sandbox *sandbox)
{
        struct csn_error err;
        if (!start_is_there(sandbox->wish.build_spec)) {
                runs(sandbox);
                return;
        }
        sandbox->start = mem_alloc(sizeof *sandbox->start);
        *sandbox->start = (struct start){ .line = on_start_line, .done = on_started, .owner = sandbox };
        if (start_begin(sandbox->start, sandbox->service, sandbox->psandbox, sandbox->wish.build_spec, false, &err) < 0)
                give_up(sandbox, &err);
}

/* The sandbox is new, or its files are restored: run the start command of its template. */
static void boots(struct e2b_sandbox *sandbox)
{
        sandbox->service->settings->engine.sandbox_root ? e2b_mark(sandbox, starts) : starts(sandbox);
}

static void on_loaded(struct psandbox_copy *copy, const struct csn_error *error)
{
        struct e2b_sandbox *sandbox = copy->owner;
        psandbox_copy_done(copy);
        if (error) {
                give_up(sandbox, error);
                return;
        }
        boots(sandbox);
}

static void on_psandbox_ready(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct e2b_sandbox *sandbox = waiter->owner;
        struct csn_error err;
        if (error) {               /* a sandbox killed while being made reports its end next */
                if (sandbox->state == E2B_RESUMING && psandbox_state(sandbox->psandbox) == PSANDBOX_PAUSED) {
                        sandbox->state = E2B_PAUSED;
                        loop_untimer(sandbox->service->loop, &sandbox->end);
                }
                e2b_notify(sandbox, E2B_WANTS_READY, error);
                return;
        }
        if (e2b_network_apply(sandbox, &err) < 0) {
                give_up(sandbox, &err);
                return;
        }
        if (!sandbox->image) {             /* new, or thawed with all its processes */
                sandbox->state == E2B_RESUMING ? runs(sandbox) : boots(sandbox);
                return;
        }
        sandbox->copy = (struct psandbox_copy){ .done = on_loaded, .owner = sandbox };
        if (psandbox_load(sandbox->psandbox, &sandbox->copy, sandbox->image->fd, &err) < 0)
                give_up(sandbox, &err);
}

/* The engine does not count paused sandboxes without memory, so all are counted here. */
static int has_room(const struct service *service, const char *tenant, struct csn_error *err)
{
        const struct engine_settings *most = &service->settings->engine;
        size_t all = 0, own = 0;
        for (const struct e2b_sandbox *one = e2b_of(service)->sandboxes; one; one = one->next) {
                all++;
                own += strcmp(one->tenant, tenant) == 0;
        }
        if (own >= most->sandboxes_owner_max)
                return err_set(err, CSN_E_BUSY, 0,
                        "there are %zu sandboxes, paused ones too, and engine.sandboxes_owner_max is %" PRIu64
                        ": end one",
                        own, most->sandboxes_owner_max);
        if (all >= most->sandboxes_max)
                return err_set(err, CSN_E_BUSY, 0,
                        "there are %zu sandboxes of all, and engine.sandboxes_max is %" PRIu64, all,
                        most->sandboxes_max);
        return 0;
}

int e2b_sandbox_new(struct service *service, const char *tenant, const struct e2b_wish *wish, struct e2b_image *image,
                    struct e2b_sandbox **ret,
                    struct csn_error *err)
{
        if (has_room(service, tenant, err) < 0)
                return -err->code;
        struct e2b_sandbox *sandbox = mem_alloc(sizeof *sandbox);
        *sandbox = (struct e2b_sandbox){ .service = service,
                .started_ms = time_now_ms(),
                .end = { .fired = on_end, .owner = sandbox },
                .over = { .done = on_psandbox_over, .owner = sandbox },
                .news = { .owner = sandbox },
                .wish = e2b_wish_copy(wish),
                .image = e2b_image_ref(image) };
        make_id(sandbox->id);
        snprintf(sandbox->tenant, sizeof sandbox->tenant, "%s", tenant);
        if (wish->secure)
                hex_random(16, sandbox->token);
        if (wish->closed)
                hex_random(16, sandbox->traffic_token);
        if (open_psandbox(sandbox, err) < 0) {
                sandbox_free(sandbox);
                return -err->code;
        }
        sandbox->next = e2b_of(service)->sandboxes;
        e2b_of(service)->sandboxes = sandbox;
        *ret = sandbox;
        return 0;
}

/* ---- pause and resume ---- */

/*
 * The sandbox continues for its remaining time.  A pause at the end of its life leaves none: the sandbox is killed, or
 * it would live for ever.
 */
static void not_paused(struct e2b_sandbox *sandbox, const struct csn_error *error)
{
        int64_t left_ms = sandbox->end_ms - time_now_ms();
        e2b_log(sandbox, "warn", "the sandbox could not be paused: %s", error->text);
        sandbox->state = E2B_RUNNING;
        if (left_ms > 0)
                loop_timer(sandbox->service->loop, &sandbox->end, (uint64_t)left_ms * 1000);
        e2b_notify(sandbox, E2B_WANTS_PAUSED, error);
        if (left_ms <= 0)
                e2b_sandbox_kill(sandbox);
}

static void on_paused(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct e2b_sandbox *sandbox = waiter->owner;
        if (error) {
                not_paused(sandbox, error);
                return;
        }
        sandbox->state = E2B_PAUSED;
        e2b_log(sandbox, "info", "the sandbox is paused");
        e2b_notify(sandbox, E2B_WANTS_PAUSED, NULL);
}

static void on_saved(struct psandbox_copy *copy, const struct csn_error *error)
{
        struct e2b_sandbox *sandbox = copy->owner;
        psandbox_copy_done(copy);
        if (!error) {
                psandbox_kill(sandbox->psandbox);
                return;
        }
        e2b_image_unref(sandbox->image);
        sandbox->image = NULL;
        not_paused(sandbox, error);
}

static int freeze(struct e2b_sandbox *sandbox, struct csn_error *err)
{
        sandbox->news.done = on_paused;
        psandbox_wait(sandbox->psandbox, PSANDBOX_WANTS_PAUSED, &sandbox->news);
        int rc = psandbox_pause(sandbox->psandbox, err);
        if (rc < 0)
                psandbox_unwait(&sandbox->news);
        return rc;
}

static void on_freeze(struct timer *timer)
{
        struct e2b_sandbox *sandbox = timer->owner;
        struct csn_error err;
        if (freeze(sandbox, &err) < 0)
                not_paused(sandbox, &err);
}

static int begin_pause(struct e2b_sandbox *sandbox, bool memory, struct csn_error *err)
{
        if (memory) {
                uint64_t now_us = clock_us(), due_us = sandbox->wish.hooks->program_started_us(sandbox) + STARTED_US;
                if (due_us <= now_us)
                        return freeze(sandbox, err);
                sandbox->freeze = (struct timer){ .fired = on_freeze, .owner = sandbox };
                loop_timer(sandbox->service->loop, &sandbox->freeze, due_us - now_us);
                return 0;
        }
        if (e2b_image_new(sandbox->service, sandbox->tenant, &sandbox->image, err) < 0)
                return -err->code;
        sandbox->copy = (struct psandbox_copy){ .done = on_saved, .owner = sandbox };
        if (psandbox_save(sandbox->psandbox, &sandbox->copy, sandbox->image->fd, err) == 0)
                return 0;
        e2b_image_unref(sandbox->image);
        sandbox->image = NULL;
        return -err->code;
}

int e2b_sandbox_pause(struct e2b_sandbox *sandbox, bool memory, struct csn_error *err)
{
        if (sandbox->state != E2B_RUNNING)
                return err_set(err, CSN_E_BUSY, 0, "sandbox %s is %s", sandbox->id,
                        sandbox->state == E2B_PAUSED ? "paused already" : "being paused or resumed");
        sandbox->state = E2B_PAUSING;
        if (begin_pause(sandbox, memory, err) < 0) {
                sandbox->state = E2B_RUNNING;
                return -err->code;
        }
        loop_untimer(sandbox->service->loop, &sandbox->end);
        return 0;
}

static int begin_resume(struct e2b_sandbox *sandbox, struct csn_error *err)
{
        if (!sandbox->psandbox)
                return open_psandbox(sandbox, err);
        sandbox->news.done = on_psandbox_ready;
        psandbox_wait(sandbox->psandbox, PSANDBOX_WANTS_READY, &sandbox->news);
        int rc = psandbox_resume(sandbox->psandbox, err);
        if (rc < 0)
                psandbox_unwait(&sandbox->news);
        return rc;
}

int e2b_sandbox_resume(struct e2b_sandbox *sandbox, uint64_t ms, struct csn_error *err)
{
        if (sandbox->state == E2B_RESUMING)
                return 0;
        if (sandbox->state != E2B_PAUSED)
                return err_set(err, CSN_E_BUSY, 0, "sandbox %s is %s", sandbox->id,
                        sandbox->state == E2B_RUNNING ? "running" : "being paused");
        sandbox->state = E2B_RESUMING;
        if (begin_resume(sandbox, err) < 0) {
                sandbox->state = E2B_PAUSED;
                return -err->code;
        }
        e2b_sandbox_set_end(sandbox, ms);
        return 0;
}

/* ---- descriptions ---- */

json_t *e2b_sandbox_made(const struct e2b_sandbox *sandbox)
{
        json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:n}", "sandboxID", sandbox->id, "templateID",
                e2b_template_id(&sandbox->wish), "alias", e2b_template_name(&sandbox->wish), "clientID", "caisson",
                "envdVersion", E2B_ENVD_VERSION, "domain");
        if (sandbox->token[0])
                json_object_set_new(json, "envdAccessToken", json_string(sandbox->token));
        if (sandbox->traffic_token[0])
                json_object_set_new(json, "trafficAccessToken", json_string(sandbox->traffic_token));
        return json;
}

json_t *e2b_sandbox_describe(const struct e2b_sandbox *sandbox, bool tokens)
{
        const struct e2b_wish *wish = &sandbox->wish;
        json_t *json = e2b_sandbox_made(sandbox);
        if (!tokens) {
                json_object_del(json, "envdAccessToken");
                json_object_del(json, "trafficAccessToken");
        }
        json_t *more = json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:O, s:b, s:{s:s, s:b}, s:[]}", "startedAt",
                e2b_time(sandbox->started_ms), "endAt", e2b_time(sandbox->end_ms), "state",
                e2b_sandbox_is_paused(sandbox) ? "paused" : "running", "cpuCount", (json_int_t)sandbox->cpus,
                "memoryMB", (json_int_t)(sandbox->memory_bytes / MIB), "diskSizeMB",
                (json_int_t)(sandbox->disk_bytes / MIB), "metadata", wish->metadata, "allowInternetAccess",
                wish->internet, "lifecycle", "onTimeout", wish->auto_pause ? "pause" : "kill", "autoResume",
                wish->auto_resume, "volumeMounts");
        json_object_update(json, more);
        json_decref(more);
        if (wish->network)
                json_object_set(json, "network", wish->network);
        return json;
}
