/*
 * instance: the news of a backend reaches the user of an instance, and the counts follow.  The backend records its
 * requests.
 */
#include "engine/instance/instance.h"

#include "model/settings.h"

#include <fcntl.h>

#include "fake-backend.h"
#include "tap.h"

/* ---- a user and an owner that count their news ---- */

struct heard {
        int ready, confined, stats, frozen, handoffs, exited, refused;
        bool again;
        size_t n_at_end;               /* instances that were counted when the last news came */
};

static int changed;

static void on_ready(void *owner, struct instance *instance)
{
        struct heard *heard = owner;
        heard->ready += instance->state == INSTANCE_BARE;
}

static void on_confined(void *owner, struct instance *instance)
{
        struct heard *heard = owner;
        heard->confined += instance->state == INSTANCE_WARM;
}

static void on_stats(void *owner, const struct wire_stats *stats)
{
        struct heard *heard = owner;
        heard->stats += stats->cpu_us == 7;
}

static void on_frozen(void *owner, bool on, const struct csn_error *error)
{
        struct heard *heard = owner;
        heard->frozen += on && !error;
}

static void on_handoff_done(void *owner, int fd)
{
        struct heard *heard = owner;
        heard->handoffs++;
        close(fd);
}

static void on_exited(void *owner, struct instance *instance, const struct wire_exit *how)
{
        struct heard *heard = owner;
        heard->exited += how->has_status == 1;
        heard->n_at_end = instance->instances->n;
}

static void on_refused(void *owner, struct instance *instance, const struct csn_error *error, bool again)
{
        struct heard *heard = owner;
        heard->refused += error->code != 0;
        heard->again = again;
        heard->n_at_end = instance->instances->n;
}

static const struct instance_user user = { on_ready, on_confined, on_stats, on_frozen, on_handoff_done, on_exited,
        on_refused };

static void on_changed(void *owner)
{
        (void)owner;
        changed++;
}

static const struct instances_events events = { .changed = on_changed };
static const struct settings settings;
static const struct wire_boundary boundary = { .memory_bytes = 9 };
static const struct wire_shape shape = { 0 };

static struct instances begin(void)
{
        fake = (struct backend_link){ 0 };
        changed = 0;
        return (struct instances){ .settings = &settings, .events = &events, .places = 4 };
}

static struct instance *make(struct instances *instances, struct heard *heard)
{
        struct csn_error err;
        struct instance *instance = NULL;
        CHECK(instance_new(instances, &fake_backend, &shape, &user, heard, &instance, &err) == 0);
        return instance;
}

/* ---- tests ---- */

static void an_instance_is_made_confined_and_ended(void)
{
        struct instances instances = begin();
        struct heard heard = { 0 };
        const struct instance *instance = make(&instances, &heard);
        CHECK(instances.n == 1 && instances.starting == 1 && instance->state == INSTANCE_MAKING &&
                fake.owner == instance);
        fake.events->ready(fake.owner, &boundary, &fake_ends);
        CHECK(heard.ready == 1 && instances.starting == 0 && changed == 1);
        fake.events->confined(fake.owner, &boundary);
        CHECK(heard.confined == 1 && instance->boundary.memory_bytes == 9 && changed == 2);
        fake.events->exited(fake.owner, &(struct wire_exit){ .has_status = 1 });
        CHECK(heard.exited == 1 && heard.n_at_end == 0 && instances.n == 0 && !instances.all && changed == 3);
}

static void a_user_hears_of_use_pause_and_handoff(void)
{
        struct instances instances = begin();
        struct heard heard = { 0 };
        const struct instance *instance = make(&instances, &heard);
        fake.events->seen(fake.owner, &(struct wire_stats){ .cpu_us = 7 });
        fake.events->frozen(fake.owner, true, NULL);
        fake.events->sent(fake.owner, open("/dev/null", O_RDONLY | O_CLOEXEC));
        CHECK(heard.stats == 1 && instance->seen.cpu_us == 7 && heard.frozen == 1 && heard.handoffs == 1);
        instances_free(&instances);
        CHECK(instances.n == 0 && instances.starting == 0 && heard.exited == 0);
}

static void a_request_that_the_backend_does_not_accept_leaves_nothing(void)
{
        struct instances instances = begin();
        struct heard heard = { 0 };
        struct instance *instance = NULL;
        struct csn_error err;
        fake.refuses = true;
        CHECK(instance_new(&instances, &fake_backend, &shape, &user, &heard, &instance, &err) == -CSN_E_SYSTEM);
        CHECK(!instance && instances.n == 0 && instances.starting == 0 && heard.refused == 0);
}

static void another_may_do_only_after_one_that_waited(void)
{
        struct instances instances = begin();
        struct heard first = { 0 }, kept = { 0 }, wrong = { 0 };
        struct csn_error error, input, err;
        err_set(&error, CSN_E_SYSTEM, 0, "gone");
        err_set(&input, CSN_E_INPUT, 0, "wrong");
        make(&instances, &first);
        fake.events->refused(fake.owner, &error);
        CHECK(first.refused == 1 && !first.again && first.n_at_end == 0);
        CHECK(instance_join(make(&instances, &kept), 5, &err) == 0 && fake.zygote == 5);
        fake.events->refused(fake.owner, &error);
        CHECK(kept.refused == 1 && kept.again && instances.starting == 0);
        CHECK(instance_join(make(&instances, &wrong), 5, &err) == 0);
        fake.events->refused(fake.owner, &input);
        CHECK(wrong.refused == 1 && !wrong.again);
}

static void an_instance_goes_from_one_user_to_another(void)
{
        struct instances instances = begin();
        struct heard before = { 0 }, after = { 0 };
        struct instance *instance = make(&instances, &before);
        fake.events->ready(fake.owner, &boundary, &fake_ends);
        instance_set_user(instance, &user, &after);
        fake.events->confined(fake.owner, &boundary);
        CHECK(before.ready == 1 && before.confined == 0 && after.confined == 1);
        instance_set_user(instance, NULL, NULL);
        instance_kill(instance);
        fake.events->sent(fake.owner, open("/dev/null", O_RDONLY | O_CLOEXEC));
        fake.events->exited(fake.owner, &(struct wire_exit){ .has_status = 1 });
        CHECK(fake.killed == 1 && before.exited == 0 && after.exited == 0 && after.handoffs == 0 && instances.n == 0);
}

static void a_zygote_enters_the_sandbox_of_a_guest(void)
{
        struct instances instances = begin();
        struct heard host = { 0 }, guest = { 0 };
        struct instance *inside = NULL;
        const int fds[WIRE_ENTRY_HANDOFF] = { 0 };
        const struct backend_program program = { 0 };
        struct csn_error err;
        const struct instance *outside = make(&instances, &host);
        fake.events->ready(fake.owner, &boundary, &fake_ends);
        CHECK(instance_join_guest(outside, 3, fds, &user, &guest, &inside, &err) == 0 && fake.zygote == 3);
        CHECK(inside->state == INSTANCE_CONFINING && instances.n == 2 && instances.starting == 1);
        fake.events->confined(inside, &boundary);
        CHECK(guest.confined == 1 && host.confined == 0 && instance_start(inside, &program, &err) == 0 &&
                fake.started == 1);
        instances_free(&instances);
}

int main(void)
{
        backend_add(&fake_backend);
        RUN(an_instance_is_made_confined_and_ended);
        RUN(a_user_hears_of_use_pause_and_handoff);
        RUN(a_request_that_the_backend_does_not_accept_leaves_nothing);
        RUN(another_may_do_only_after_one_that_waited);
        RUN(an_instance_goes_from_one_user_to_another);
        RUN(a_zygote_enters_the_sandbox_of_a_guest);
        return tap_done();
}
