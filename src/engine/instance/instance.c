/* Sandboxes, from the backend's news to the run that has one or the pool in which one waits. */
#include "engine/persistent/psandbox_private.h"

static struct backend_link *link_of(const struct engine *engine, const struct backend *backend)
{
        return engine->links[backend_index(backend)];
}

static void close_ends(struct box *box)
{
        fd_close(&box->ends.home);
        fd_close(&box->ends.out);
        fd_close(&box->ends.error);
        fd_close(&box->ends.channel);
        fd_close(&box->ends.proxy);
        fd_close(&box->ends.hatch);
}

static void is_ready(struct box *box)
{
        if (box->starting)
                box->engine->starting--;
        box->starting = false;
}

static void box_free(struct box *box)
{
        is_ready(box);
        close_ends(box);
        for (struct box **at = &box->engine->boxes; *at; at = &(*at)->next)
                if (*at == box) {
                        *at = box->next;
                        box->engine->boxes_n--;
                        break;
                }
        free(box);
}

void boxes_free(struct engine *engine)
{
        while (engine->boxes)
                box_free(engine->boxes);
}

/* ---- news ---- */

static void on_ready(void *owner, const struct wire_boundary *boundary, const struct backend_ends *ends)
{
        struct box *box = owner;
        struct engine *engine = box->engine;
        box->boundary = *boundary;
        box->ends = *ends;
        box->ready_us = clock_us();
        if (box->state == BOX_MAKING) {
                box->state = BOX_SHELL;
                is_ready(box);
        }
        if (box->run)
                run_attached(box->run, box);
        else if (box->cell)
                cell_attached(box->cell, box);
        else if (box->pool)
                pool_changed(box);
        engine_dispatch(engine);           /* one less is being made */
}

static void on_joined(void *owner, const struct wire_boundary *boundary)
{
        struct box *box = owner;
        box->boundary = *boundary;
        box->ready_us = clock_us();
        box->state = BOX_WARM;
        is_ready(box);
        if (box->context)
                context_joined(box->context);
        else if (box->run)
                run_confined(box->run, boundary);
        else if (box->cell)
                cell_confined(box->cell, boundary);
        else if (box->pool)
                pool_changed(box);
        engine_dispatch(box->engine);
}

static void on_seen(void *owner, const struct wire_seen *seen)
{
        struct box *box = owner;
        box->seen = *seen;
        if (box->cell)
                cell_seen(box->cell, seen);
}

static void on_frozen(void *owner, bool on, const struct csn_error *error)
{
        struct box *box = owner;
        if (box->cell)
                cell_frozen(box->cell, on, error);
}

static void on_sent(void *owner, int door)
{
        const struct box *box = owner;
        if (box->run)
                box->run->door_fd = door;
        else
                fd_close(&door);
}

static void on_exited(void *owner, const struct wire_exit *how)
{
        struct box *box = owner;
        struct engine *engine = box->engine;
        struct run *run = box->run;
        struct cell *cell = box->cell;
        struct context *context = box->context;
        if (box->pool)
                pool_lost(box);
        box_free(box);
        if (run)
                run_exited(run, how);
        else if (cell)
                cell_exited(cell, how);
        else if (context)
                context_left(context, how, NULL);
        engine_dispatch(engine);
}

static void on_refused(void *owner, const struct csn_error *error)
{
        struct box *box = owner;
        struct engine *engine = box->engine;
        struct run *run = box->run;
        struct cell *cell = box->cell;
        struct context *context = box->context;
        bool again = box->kept && error->code != CSN_E_INPUT;
        if (box->pool) {
                log_text(LOG_INFO, "a sandbox that waited is gone: %s", error->text);
                pool_lost(box);
        }
        box_free(box);
        if (run)
                run_refused(run, error, again);
        else if (cell)
                cell_refused(cell, error, again);
        else if (context)
                context_left(context, NULL, error);
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

const struct backend_events box_events = { on_ready, on_joined, on_seen, on_frozen, on_sent, on_exited, on_refused, on_zygote, on_lost };

/* ---- what is asked of the backend ---- */

int box_open_link(struct engine *engine, const struct backend *backend, struct csn_error *err)
{
        struct backend_link **link = &engine->links[backend_index(backend)];
        const struct backend_options options = { .uid_range = engine->uid_range,
                                                 .cgroup_parent = engine->settings->engine.cgroup_parent,
                                                 .settings = engine->settings,
                                                 .engine = engine };
        return *link ? 0 : backend->open(engine->loop, &options, &box_events, link, err);
}

static struct box *make(struct engine *engine, const struct backend *backend)
{
        struct box *box = mem_alloc(sizeof *box);
        *box = (struct box){ .next = engine->boxes, .engine = engine, .backend = backend, .id = ++engine->boxes_made, .starting = true,
                             .ends = { -1, -1, -1, -1, -1, -1 } };
        engine->boxes = box;
        engine->boxes_n++;
        engine->starting++;
        return box;
}

int box_new(struct engine *engine, const struct backend *backend, const struct wire_shape *shape, struct run *run, struct pool *pool,
            struct box **ret, struct csn_error *err)
{
        if (box_open_link(engine, backend, err) < 0)
                return -err->code;
        struct box *box = make(engine, backend);
        box->run = run;
        box->pool = pool;
        box->shape = *shape;
        box->shape.label = NULL;
        if (run)
                run->box = box;
        if (backend->prepare(link_of(engine, backend), box->id, box, shape, err) < 0) {
                if (run)
                        run->box = NULL;
                box_free(box);
                return -err->code;
        }
        *ret = box;
        return 0;
}

int box_new_cell(struct engine *engine, const struct wire_shape *shape, struct cell *cell, struct box **ret, struct csn_error *err)
{
        if (box_new(engine, &backend_native, shape, NULL, NULL, ret, err) < 0)
                return -err->code;
        (*ret)->cell = cell;
        return 0;
}

int box_guest(struct box *box, const struct wire_limits *limits, int *ret_sock, struct csn_error *err)
{
        return box->backend->guest(link_of(box->engine, box->backend), box->id, limits, ret_sock, err);
}

void box_freeze(struct box *box, bool on)
{
        struct backend_link *link = link_of(box->engine, box->backend);
        if (link)
                box->backend->freeze(link, box->id, on);
}

int box_enter(struct engine *engine, const struct box *host, struct context *context, uint32_t zygote, const int fds[WIRE_ENTRY_DOOR], struct box **ret,
              struct csn_error *err)
{
        struct backend_link *link = link_of(engine, host->backend);
        if (!link)
                return err_set(err, CSN_E_BUSY, 0, "the supervisor is gone");
        struct box *box = make(engine, host->backend);
        box->state = BOX_JOINING;
        box->context = context;
        if (host->backend->enter(link, box->id, box, host->id, zygote, fds, err) < 0) {
                box_free(box);
                return -err->code;
        }
        *ret = box;
        return 0;
}

int box_begin(struct box *box, const struct backend_program *program, struct csn_error *err)
{
        return box->backend->start(link_of(box->engine, box->backend), box->id, program, err);
}

static void is_joining(struct box *box)
{
        box->state = BOX_JOINING;
        box->kept = true;
        if (!box->starting)
                box->engine->starting++;
        box->starting = true;
}

int box_join(struct box *box, uint32_t zygote, struct csn_error *err)
{
        is_joining(box);
        return box->backend->join(link_of(box->engine, box->backend), box->id, zygote, err);
}

int box_worker(struct box *box, const struct wire_program *program, struct csn_error *err)
{
        is_joining(box);
        return box->backend->worker(link_of(box->engine, box->backend), box->id, program, err);
}

int box_start(struct box *box, struct run *run, struct csn_error *err)
{
        box->run = run;
        run->box = box;
        if (box->pool) {
                box->pool = NULL;
                box->kept = true;
        }
        if (box->ends.home >= 0)
                run_attached(run, box);
        return box->backend->start(link_of(box->engine, box->backend), box->id, &run->what, err);
}

void box_look(struct box *box)
{
        struct backend_link *link = link_of(box->engine, box->backend);
        if (link && box->backend->look)
                box->backend->look(link, box->id);
}

void box_left(struct box *box, unsigned status)
{
        struct backend_link *link = link_of(box->engine, box->backend);
        if (link && box->backend->left)
                box->backend->left(link, box->id, status);
}

void box_kill(struct box *box)
{
        if (link_of(box->engine, box->backend))
                box->backend->kill(link_of(box->engine, box->backend), box->id);
}
