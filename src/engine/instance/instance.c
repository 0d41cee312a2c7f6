/* Instances: the requests to their backend, and its news for their user. */
#include "engine/instance/instance.h"

#include "model/settings.h"

static struct backend_link *link_of(const struct instance *instance)
{
        return instance->instances->links[backend_index(instance->backend)];
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

static void end_starting(struct instance *instance)
{
        if (instance->starting)
                instance->instances->starting--;
        instance->starting = false;
}

/* After this the instance counts for nothing and is on no list. */
static void detach(struct instance *instance)
{
        struct instances *instances = instance->instances;
        end_starting(instance);
        close_ends(instance);
        for (struct instance **at = &instances->all; *at; at = &(*at)->next)
                if (*at == instance) {
                        *at = instance->next;
                        instances->n--;
                        break;
                }
}

static void instance_free(struct instance *instance)
{
        detach(instance);
        free(instance);
}

void instances_free(struct instances *instances)
{
        for (struct instance *instance = instances->all, *next; instance; instance = next) {
                next = instance->next;
                close_ends(instance);
                free(instance);
        }
        instances->all = NULL;
        instances->n = instances->starting = 0;
}

void instance_set_user(struct instance *instance, const struct instance_user *user, void *owner)
{
        instance->user = user;
        instance->owner = owner;
}

void instances_changed(const struct instances *instances)
{
        instances->events->changed(instances->owner);
}

/* ---- news ---- */

static void on_ready(void *owner, const struct wire_boundary *boundary, const struct backend_ends *ends)
{
        struct instance *instance = owner;
        const struct instances *instances = instance->instances;
        instance->boundary = *boundary;
        instance->ends = *ends;
        instance->ready_us = clock_us();
        if (instance->state == INSTANCE_MAKING) {
                instance->state = INSTANCE_BARE;
                end_starting(instance);
        }
        if (instance->user && instance->user->ready)
                instance->user->ready(instance->owner, instance);
        instances_changed(instances);
}

static void on_confined(void *owner, const struct wire_boundary *boundary)
{
        struct instance *instance = owner;
        const struct instances *instances = instance->instances;
        instance->boundary = *boundary;
        instance->ready_us = clock_us();
        instance->state = INSTANCE_WARM;
        end_starting(instance);
        if (instance->user && instance->user->confined)
                instance->user->confined(instance->owner, instance);
        instances_changed(instances);
}

static void on_stats(void *owner, const struct wire_stats *stats)
{
        struct instance *instance = owner;
        instance->seen = *stats;
        if (instance->user && instance->user->stats)
                instance->user->stats(instance->owner, stats);
}

static void on_frozen(void *owner, bool on, const struct csn_error *error)
{
        const struct instance *instance = owner;
        if (instance->user && instance->user->frozen)
                instance->user->frozen(instance->owner, on, error);
}

static void on_sent(void *owner, int handoff)
{
        const struct instance *instance = owner;
        if (instance->user && instance->user->handoff_done)
                instance->user->handoff_done(instance->owner, handoff);
        else
                fd_close(&handoff);
}

static void on_exited(void *owner, const struct wire_exit *how)
{
        struct instance *instance = owner;
        const struct instances *instances = instance->instances;
        detach(instance);
        if (instance->user && instance->user->exited)
                instance->user->exited(instance->owner, instance, how);
        free(instance);
        instances_changed(instances);
}

static void on_refused(void *owner, const struct csn_error *error)
{
        struct instance *instance = owner;
        const struct instances *instances = instance->instances;
        bool again = instance->kept && error->code != CSN_E_INPUT;
        detach(instance);
        if (instance->user && instance->user->refused)
                instance->user->refused(instance->owner, instance, error, again);
        free(instance);
        instances_changed(instances);
}

static void on_zygote(void *owner, uint32_t id, const char *info, const struct csn_error *error)
{
        const struct instances *instances = owner;
        instances->events->zygote(instances->owner, id, info, error);
}

static void on_volume(void *owner, uint32_t ticket, const struct csn_error *error)
{
        const struct instances *instances = owner;
        instances->events->volume(instances->owner, ticket, error);
}

static void on_lost(void *owner, const struct csn_error *error)
{
        struct instances *instances = owner;
        log_text(LOG_ERROR, "%s", error->text);
        backend_at(0)->close(instances->links[0]);
        instances->links[0] = NULL;
        instances->losses++;
        instances->events->lost(instances->owner);
        instances_changed(instances);
}

static const struct backend_events backend_events = { on_ready, on_confined, on_stats, on_frozen, on_sent, on_exited,
        on_refused, on_zygote, on_volume, on_lost };

/* ---- requests to the backend ---- */

int instances_open_link(struct instances *instances, const struct backend *backend, struct csn_error *err)
{
        struct backend_link **link = &instances->links[backend_index(backend)];
        const struct backend_options options = { .uid_range = instances->uid_range,
                                                 .cgroup_parent = instances->settings->engine.cgroup_parent,
                                                 .layers_dir = instances->layers_dir,
                                                 .images_dir = instances->images_dir,
                                                 .volumes_dir = instances->volumes_dir,
                                                 .devices = instances->devices,
                                                 .settings = instances->settings,
                                                 .engine = instances };
        return *link ? 0 : backend->open(instances->loop, &options, &backend_events, link, err);
}

int instances_order_volume(struct instances *instances, uint32_t ticket, const struct wire_volume_order *order,
        struct csn_error *err)
{
        if (instances_open_link(instances, &backend_native, err) < 0)
                return -err->code;
        return backend_native.volume(instances->links[backend_index(&backend_native)], ticket, order, err);
}

bool instances_are_silent(const struct instances *instances)
{
        for (size_t i = 0; i < ARRAY_LEN(instances->links); i++)
                if (instances->links[i] && backend_at(i)->is_silent && backend_at(i)->is_silent(instances->links[i]))
                        return true;
        return false;
}

void instances_close_links(struct instances *instances)
{
        for (size_t i = 0; i < ARRAY_LEN(instances->links); i++) {
                if (instances->links[i])
                        backend_at(i)->close(instances->links[i]);
                instances->links[i] = NULL;
        }
}

static struct instance *make(struct instances *instances, const struct backend *backend,
        const struct instance_user *user, void *owner)
{
        struct instance *instance = mem_alloc(sizeof *instance);
        *instance = (struct instance){ .next = instances->all,
                .instances = instances,
                .backend = backend,
                .id = ++instances->made,
                .starting = true,
                .user = user,
                .owner = owner,
                .ends = { -1, -1, -1, -1, -1, -1 } };
        instances->all = instance;
        instances->n++;
        instances->starting++;
        return instance;
}

int instance_new(struct instances *instances, const struct backend *backend, const struct wire_shape *shape,
        const struct instance_user *user, void *owner, struct instance **ret, struct csn_error *err)
{
        if (instances_open_link(instances, backend, err) < 0)
                return -err->code;
        struct instance *instance = make(instances, backend, user, owner);
        instance->shape = *shape;
        instance->shape.label = NULL;
        instance->kept = shape->domain != 0;   /* without its zygote the same launch may succeed in the common domain */
        if (backend->prepare(link_of(instance), instance->id, instance, shape, err) < 0) {
                instance_free(instance);
                return -err->code;
        }
        *ret = instance;
        return 0;
}

int instance_join_guest(const struct instance *host, uint32_t zygote, const int fds[WIRE_ENTRY_HANDOFF],
        const struct instance_user *user, void *owner, struct instance **ret, struct csn_error *err)
{
        struct backend_link *link = link_of(host);
        if (!link)
                return err_set(err, CSN_E_BUSY, 0, "the supervisor is gone");
        struct instance *instance = make(host->instances, host->backend, user, owner);
        instance->state = INSTANCE_CONFINING;
        if (host->backend->enter(link, instance->id, instance, host->id, zygote, fds, err) < 0) {
                instance_free(instance);
                return -err->code;
        }
        *ret = instance;
        return 0;
}

static void begin_confining(struct instance *instance)
{
        instance->state = INSTANCE_CONFINING;
        instance->kept = true;
        if (!instance->starting)
                instance->instances->starting++;
        instance->starting = true;
}

int instance_join(struct instance *instance, uint32_t zygote, struct csn_error *err)
{
        begin_confining(instance);
        return instance->backend->join(link_of(instance), instance->id, zygote, err);
}

int instance_worker(struct instance *instance, const struct wire_program *program, struct csn_error *err)
{
        begin_confining(instance);
        return instance->backend->worker(link_of(instance), instance->id, program, err);
}

int instance_start(struct instance *instance, const struct backend_program *program, struct csn_error *err)
{
        return instance->backend->start(link_of(instance), instance->id, program, err);
}

int instance_guest(struct instance *instance, const struct wire_limits *limits, int *ret_sock, struct csn_error *err)
{
        return instance->backend->guest(link_of(instance), instance->id, limits, ret_sock, err);
}

void instance_freeze(struct instance *instance, bool on)
{
        struct backend_link *link = link_of(instance);
        if (link)
                instance->backend->freeze(link, instance->id, on);
}

void instance_request_stats(struct instance *instance)
{
        struct backend_link *link = link_of(instance);
        if (link && instance->backend->look)
                instance->backend->look(link, instance->id);
}

void instance_exiting(struct instance *instance, unsigned status)
{
        struct backend_link *link = link_of(instance);
        if (link && instance->backend->left)
                instance->backend->left(link, instance->id, status);
}

void instance_kill(struct instance *instance)
{
        if (link_of(instance))
                instance->backend->kill(link_of(instance), instance->id);
}
