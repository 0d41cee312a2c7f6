/* A backend that records its requests and makes nothing; for the unit tests of instances and pools. */
#ifndef TESTS_UNIT_FAKE_BACKEND_H
#define TESTS_UNIT_FAKE_BACKEND_H

#include "backend/backend.h"

struct backend_link {
        const struct backend_events *events;
        void *engine;
        void *owner;                       /* of the instance that was prepared or entered last */
        size_t prepared, entered, joined, workers, started, killed, zygotes;   /* requests that were accepted */
        uint32_t zygote;                   /* of the last join(), enter() or zygote() */
        bool refuses;                      /* prepare() and enter() fail */
};

static struct backend_link fake;

static int fake_open(struct loop *loop, const struct backend_options *options, const struct backend_events *events,
        struct backend_link **ret, struct csn_error *err)
{
        (void)loop, (void)err;
        fake.events = events;
        fake.engine = options->engine;
        *ret = &fake;
        return 0;
}

static int accept_or_refuse(struct backend_link *link, void *owner, size_t *count, struct csn_error *err)
{
        link->owner = owner;
        *count += !link->refuses;
        return link->refuses ? err_set(err, CSN_E_SYSTEM, 0, "refused") : 0;
}

static int fake_prepare(struct backend_link *link, uint32_t id, void *owner, const struct wire_shape *shape,
        struct csn_error *err)
{
        (void)id, (void)shape;
        return accept_or_refuse(link, owner, &link->prepared, err);
}

static int fake_enter(struct backend_link *link, uint32_t id, void *owner, uint32_t sandbox, uint32_t zygote,
        const int fds[WIRE_ENTRY_HANDOFF], struct csn_error *err)
{
        (void)id, (void)sandbox, (void)fds;
        link->zygote = zygote;
        return accept_or_refuse(link, owner, &link->entered, err);
}

static int fake_join(struct backend_link *link, uint32_t id, uint32_t zygote, struct csn_error *err)
{
        (void)id, (void)err;
        link->joined++;
        link->zygote = zygote;
        return 0;
}

static int fake_worker(struct backend_link *link, uint32_t id, const struct wire_program *program,
        struct csn_error *err)
{
        (void)id, (void)program, (void)err;
        link->workers++;
        return 0;
}

static int fake_start(struct backend_link *link, uint32_t id, const struct backend_program *program,
        struct csn_error *err)
{
        (void)id, (void)program, (void)err;
        link->started++;
        return 0;
}

static int fake_zygote(struct backend_link *link, uint32_t id, const struct wire_shape *shape,
        const struct wire_program *program, struct csn_error *err)
{
        (void)shape, (void)program, (void)err;
        link->zygotes++;
        link->zygote = id;
        return 0;
}

static void fake_kill(struct backend_link *link, uint32_t id)
{
        (void)id;
        link->killed++;
}

static void fake_close(struct backend_link *link)
{
        (void)link;
}

static const struct backend fake_backend = {
        .name = "fake",
        .open = fake_open,
        .prepare = fake_prepare,
        .join = fake_join,
        .worker = fake_worker,
        .enter = fake_enter,
        .start = fake_start,
        .zygote = fake_zygote,
        .kill = fake_kill,
        .close = fake_close,
};

static const struct backend_ends fake_ends = { -1, -1, -1, -1, -1, -1 };

#endif
