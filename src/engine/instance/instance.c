/* Sandboxes, from the backend's news to the run that has one or the pool in which one waits. */
#include "engine/persistent/psandbox_private.h"

static struct backend_link *link_of(const struct engine *engine, const struct backend *backend)
{
        return engine->links[backend_index(backend)];
}

static void close_ends(struct instance *instance)
{
        fd_close(&instance->ends.home);
        fd_close(&instance->ends.out);
        fd_close(&instance->ends.error);
        fd_close(&instance->ends.channel);
        fd_close(&instance->ends.proxy);
        fd_close(&instance->ends.tool_socket);
}

static void is_ready(struct instance *instance)
{
        if (instance->starting)
                instance->engine->starting--;
        instance->starting = false;
}

static void instance_free(struct instance *instance)
{
        is_ready(instance);
        close_ends(instance);
        for (struct instance **at = &instance->engine->instances; *at; at = &(*at)->next)
                if (*at == instance) {
                        *at = instance->next;
                        instance->engine->instances_n--;
                        break;
                }
        free(instance);
}

void instances_free(struct engine *engine)
{
        while (engine->instances)
                instance_free(engine->instances);
}

/* ---- news ---- */

static void on_ready(void *owner, const struct wire_boundary *boundary, const struct backend_ends *ends)
{
        struct instance *instance = owner;
        struct engine *engine = instance->engine;
        instance->boundary = *boundary;
        instance->ends = *ends;
        instance->ready_us = clock_us();
        if (instance->state == INSTANCE_MAKING) {
                instance->state = INSTANCE_BARE;
                is_ready(instance);
        }
        if (instance->run)
                run_attached(instance->run, instance);
        else if (instance->psandbox)
                psandbox_attached(instance->psandbox, instance);
        else if (instance->pool)
                pool_changed(instance);
        engine_dispatch(engine);           /* one less is being made */
}

static void on_confined(void *owner, const struct wire_boundary *boundary)
{
        struct instance *instance = owner;
        instance->boundary = *boundary;
        instance->ready_us = clock_us();
        instance->state = INSTANCE_WARM;
        is_ready(instance);
        if (instance->context)
                context_confined(instance->context);
        else if (instance->run)
                run_confined(instance->run, boundary);
        else if (instance->psandbox)
                psandbox_confined(instance->psandbox, boundary);
        else if (instance->pool)
                pool_changed(instance);
        engine_dispatch(instance->engine);
}

static void on_stats(void *owner, const struct wire_stats *seen)
{
        struct instance *instance = owner;
        instance->seen = *seen;
        if (instance->psandbox)
                psandbox_on_stats(instance->psandbox, seen);
}

static void on_frozen(void *owner, bool on, const struct csn_error *error)
{
        struct instance *instance = owner;
        if (instance->psandbox)
                psandbox_frozen(instance->psandbox, on, error);
}

static void on_sent(void *owner, int handoff)
{
        const struct instance *instance = owner;
        if (instance->run)
                instance->run->handoff_fd = handoff;
        else
                fd_close(&handoff);
}

static void on_exited(void *owner, const struct wire_exit *how)
{
        struct instance *instance = owner;
        struct engine *engine = instance->engine;
        struct run *run = instance->run;
        struct psandbox *psandbox = instance->psandbox;
        struct context *context = instance->context;
        if (instance->pool)
                pool_lost(instance);
        instance_free(instance);
        if (run)
                run_exited(run, how);
        else if (psandbox)
                psandbox_exited(psandbox, how);
        else if (context)
                context_exiting(context, how, NULL);
        engine_dispatch(engine);
}

static void on_refused(void *owner, const struct csn_error *error)
{
        struct instance *instance = owner;
        struct engine *engine = instance->engine;
        struct run *run = instance->run;
        struct psandbox *psandbox = instance->psandbox;
        struct context *context = instance->context;
        bool again = instance->kept && error->code != CSN_E_INPUT;
        if (instance->pool) {
                log_text(LOG_INFO, "a sandbox that waited is gone: %s", error->text);
                pool_lost(instance);
        }
        instance_free(instance);
        if (run)
                run_refused(run, error, again);
        else if (psandbox)
                psandbox_refused(psandbox, error, again);
        else if (context)
                context_exiting(context, NULL, error);
        engine_dispatch(engine);
}

static void on_zygote(void *owner, uint32_t id, const char *info, const struct csn_error *error)
{
        pools_zygote(owner, id, info, error);
}

static void on_lost(void *owner, const struct csn_error *error)
{
        struct engine *engine = owner;
        log_text(LOG_ERROR, "%s", error->text);
        backend_native.close(engine->links[0]);
        engine->links[0] = NULL;
        pools_lost(engine);
        engine_dispatch(engine);
}

const struct backend_events instance_events = { on_ready, on_confined, on_stats, on_frozen, on_sent, on_exited, on_refused, on_zygote, on_lost };

/* ---- what is asked of the backend ---- */

int instance_open_link(struct engine *engine, const struct backend *backend, struct csn_error *err)
{
        struct backend_link **link = &engine->links[backend_index(backend)];
        const struct backend_options options = { .uid_range = engine->uid_range,
                                                 .cgroup_parent = engine->settings->engine.cgroup_parent,
                                                 .settings = engine->settings,
                                                 .engine = engine };
        return *link ? 0 : backend->open(engine->loop, &options, &instance_events, link, err);
}

static struct instance *make(struct engine *engine, const struct backend *backend)
{
        struct instance *instance = mem_alloc(sizeof *instance);
        *instance = (struct instance){ .next = engine->instances, .engine = engine, .backend = backend, .id = ++engine->instances_made, .starting = true,
                             .ends = { -1, -1, -1, -1, -1, -1 } };
        engine->instances = instance;
        engine->instances_n++;
        engine->starting++;
        return instance;
}

int instance_new(struct engine *engine, const struct backend *backend, const struct wire_shape *shape, struct run *run, struct pool *pool,
            struct instance **ret, struct csn_error *err)
{
        if (instance_open_link(engine, backend, err) < 0)
                return -err->code;
        struct instance *instance = make(engine, backend);
        instance->run = run;
        instance->pool = pool;
        instance->shape = *shape;
        instance->shape.label = NULL;
        if (run)
                run->instance = instance;
        if (backend->prepare(link_of(engine, backend), instance->id, instance, shape, err) < 0) {
                if (run)
                        run->instance = NULL;
                instance_free(instance);
                return -err->code;
        }
        *ret = instance;
        return 0;
}

int instance_new_psandbox(struct engine *engine, const struct wire_shape *shape, struct psandbox *psandbox, struct instance **ret, struct csn_error *err)
{
        if (instance_new(engine, &backend_native, shape, NULL, NULL, ret, err) < 0)
                return -err->code;
        (*ret)->psandbox = psandbox;
        return 0;
}

int instance_guest(struct instance *instance, const struct wire_limits *limits, int *ret_sock, struct csn_error *err)
{
        return instance->backend->guest(link_of(instance->engine, instance->backend), instance->id, limits, ret_sock, err);
}

void instance_freeze(struct instance *instance, bool on)
{
        struct backend_link *link = link_of(instance->engine, instance->backend);
        if (link)
                instance->backend->freeze(link, instance->id, on);
}

int instance_join_guest(struct engine *engine, const struct instance *host, struct context *context, uint32_t zygote, const int fds[WIRE_ENTRY_HANDOFF], struct instance **ret,
              struct csn_error *err)
{
        struct backend_link *link = link_of(engine, host->backend);
        if (!link)
                return err_set(err, CSN_E_BUSY, 0, "the supervisor is gone");
        struct instance *instance = make(engine, host->backend);
        instance->state = INSTANCE_CONFINING;
        instance->context = context;
        if (host->backend->enter(link, instance->id, instance, host->id, zygote, fds, err) < 0) {
                instance_free(instance);
                return -err->code;
        }
        *ret = instance;
        return 0;
}

int instance_begin(struct instance *instance, const struct backend_program *program, struct csn_error *err)
{
        return instance->backend->start(link_of(instance->engine, instance->backend), instance->id, program, err);
}

static void is_confining(struct instance *instance)
{
        instance->state = INSTANCE_CONFINING;
        instance->kept = true;
        if (!instance->starting)
                instance->engine->starting++;
        instance->starting = true;
}

int instance_join(struct instance *instance, uint32_t zygote, struct csn_error *err)
{
        is_confining(instance);
        return instance->backend->join(link_of(instance->engine, instance->backend), instance->id, zygote, err);
}

int instance_worker(struct instance *instance, const struct wire_program *program, struct csn_error *err)
{
        is_confining(instance);
        return instance->backend->worker(link_of(instance->engine, instance->backend), instance->id, program, err);
}

int instance_start(struct instance *instance, struct run *run, struct csn_error *err)
{
        instance->run = run;
        run->instance = instance;
        if (instance->pool) {
                instance->pool = NULL;
                instance->kept = true;
        }
        if (instance->ends.home >= 0)
                run_attached(run, instance);
        return instance->backend->start(link_of(instance->engine, instance->backend), instance->id, &run->what, err);
}

void instance_request_stats(struct instance *instance)
{
        struct backend_link *link = link_of(instance->engine, instance->backend);
        if (link && instance->backend->look)
                instance->backend->look(link, instance->id);
}

void instance_exiting(struct instance *instance, unsigned status)
{
        struct backend_link *link = link_of(instance->engine, instance->backend);
        if (link && instance->backend->left)
                instance->backend->left(link, instance->id, status);
}

void instance_kill(struct instance *instance)
{
        if (link_of(instance->engine, instance->backend))
                instance->backend->kill(link_of(instance->engine, instance->backend), instance->id);
}
