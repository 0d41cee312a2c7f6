/*
 * The event loop: epoll(7) for descriptors, a pairing heap for timers.
 *
 * A gateway has some timers for each worker and each connection.  Setting a timer takes constant time, and stopping a
 * timer logarithmic time on average.  Timers of the same microsecond fire in the order of their setting.
 *
 * epoll_pwait2 (Linux 5.11) would have a resolution of microseconds; epoll_wait's milliseconds, rounded up, are exact
 * enough for limits in milliseconds.
 */
#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#define EVENTS_AT_ONCE 64
/*
 * Longer than the kernel's own slice, 0.7 to 3 ms; 100 ms would be as good for a client, and late if all processors are
 * busy.
 */
#define LONG_SLICE_NS 10000000U

static const struct loop_observer *observer;   /* NULL: no step is measured */

struct loop {
        int epoll_fd;
        struct timer *timers;   /* the soonest: the root of a pairing heap */
        uint64_t timers_made;
        /* Events being served; a callback that stops a watch clears its entries here. */
        struct epoll_event *serving;
        int serving_n;
};

int loop_new(struct loop **ret, struct csn_error *err)
{
        auto_fd fd = epoll_create1(EPOLL_CLOEXEC);
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "epoll_create1");
        struct loop *loop = mem_alloc(sizeof *loop);
        loop->epoll_fd = take_fd(&fd);
        *ret = loop;
        return 0;
}

/*
 * The first version of struct sched_attr in sched_setattr(2).  <linux/sched/types.h> has the struct, and repeats
 * definitions of <sched.h>.
 */
struct scheduling {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
};

/* Of this thread; its nice value stays.  Slice 0: the kernel's own. */
static int set_scheduling(uint32_t policy, uint64_t slice_ns)
{
        struct scheduling now;
        if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) < 0)
                return -1;
        struct scheduling next = { .size = sizeof next, .policy = policy, .nice = now.nice, .runtime = slice_ns };
        return (int)syscall(SYS_sched_setattr, 0, &next, 0);
}

static bool is_batch;

void loop_set_usual_scheduling(void)
{
        if (is_batch)
                set_scheduling(SCHED_OTHER, 0);
        is_batch = false;
}

void loop_set_batch_scheduling(void)
{
        if (sched_getscheduler(0) != SCHED_OTHER)
                return;   /* the policy was set from outside */
        is_batch = true;
        if (set_scheduling(SCHED_BATCH, LONG_SLICE_NS) < 0 ||
                pthread_atfork(NULL, NULL, loop_set_usual_scheduling) != 0)
                log_text(LOG_WARN, "SCHED_BATCH is refused, so runs are interrupted more often");
}

void loop_free(struct loop *loop)
{
        if (!loop)
                return;
        fd_close(&loop->epoll_fd);
        free(loop);
}

int loop_fd(struct loop *loop)
{
        return loop->epoll_fd;
}

int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t epoll_events, struct csn_error *err)
{
        struct epoll_event event = { .events = epoll_events, .data.ptr = watch };
        if (watch->active && watch->fd == fd && watch->events == epoll_events)
                return 0;
        int op = watch->active ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
        if (epoll_ctl(loop->epoll_fd, op, fd, &event) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "watch descriptor %d", fd);
        watch->fd = fd;
        watch->events = epoll_events;
        watch->active = true;
        return 0;
}

void loop_unwatch(struct loop *loop, struct watch *watch)
{
        if (!watch->active)
                return;
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
        watch->active = false;
        for (int i = 0; i < loop->serving_n; i++)
                if (loop->serving[i].data.ptr == watch)
                        loop->serving[i].data.ptr = NULL;
}

static bool is_sooner(const struct timer *one, const struct timer *other)
{
        return one->at_us != other->at_us ? one->at_us < other->at_us : one->number < other->number;
}

/* Joins two separate trees. */
static struct timer *join(struct timer *one, struct timer *other)
{
        if (!one || !other)
                return one ? one : other;
        struct timer *top = is_sooner(other, one) ? other : one, *below = top == one ? other : one;
        below->prev = top;
        below->next = top->child;
        if (top->child)
                top->child->prev = below;
        top->child = below;
        return top;
}

/* Joins siblings: in pairs, then all pairs from the last to the first, so trees stay flat. */
static struct timer *join_all(struct timer *first)
{
        struct timer *pairs = NULL, *all = NULL;
        while (first) {
                struct timer *one = first, *other = first->next;
                first = other ? other->next : NULL;
                one->next = one->prev = NULL;
                if (other)
                        other->next = other->prev = NULL;
                one = join(one, other);
                one->next = pairs;
                pairs = one;
        }
        while (pairs) {
                struct timer *next = pairs->next;
                pairs->next = NULL;
                all = join(all, pairs);
                pairs = next;
        }
        return all;
}

void loop_untimer(struct loop *loop, struct timer *timer)
{
        if (!timer->active)
                return;
        struct timer *below = join_all(timer->child);
        if (loop->timers == timer) {
                loop->timers = below;
        } else {
                if (timer->prev->child == timer)
                        timer->prev->child = timer->next;
                else
                        timer->prev->next = timer->next;
                if (timer->next)
                        timer->next->prev = timer->prev;
                loop->timers = join(loop->timers, below);
        }
        timer->active = false;
        timer->next = timer->prev = timer->child = NULL;
}

void loop_timer(struct loop *loop, struct timer *timer, uint64_t after_us)
{
        loop_untimer(loop, timer);
        timer->at_us = clock_us() + after_us;
        timer->number = loop->timers_made++;
        timer->next = timer->prev = timer->child = NULL;
        timer->active = true;
        loop->timers = join(loop->timers, timer);
}

void loop_set_observer(const struct loop_observer *given)
{
        observer = given;
}

static void serve_watch(struct watch *watch, uint32_t events)
{
        void (*ready)(struct watch *, uint32_t) = watch->ready;
        if (observer)
                observer->begin();
        ready(watch, events);
        if (observer)
                observer->end((const void *)(uintptr_t)ready);
}

static void serve_timer(struct timer *timer)
{
        void (*fired)(struct timer *) = timer->fired;
        if (observer)
                observer->begin();
        fired(timer);
        if (observer)
                observer->end((const void *)(uintptr_t)fired);
}

static void serve_timers(struct loop *loop)
{
        uint64_t now = clock_us();
        while (loop->timers && loop->timers->at_us <= now) {
                struct timer *timer = loop->timers;
                loop_untimer(loop, timer);
                serve_timer(timer);
        }
}

int loop_step(struct loop *loop, int max_ms, struct csn_error *err)
{
        if (loop->timers) {
                uint64_t now = clock_us();
                uint64_t left_us = loop->timers->at_us > now ? loop->timers->at_us - now : 0;
                uint64_t left_ms = min_u64((left_us + 999) / 1000, 3600000);
                if (max_ms < 0 || left_ms < (uint64_t)max_ms)
                        max_ms = (int)left_ms;
        }
        struct epoll_event events[EVENTS_AT_ONCE];
        int n = epoll_wait(loop->epoll_fd, events, EVENTS_AT_ONCE, max_ms);
        if (n < 0 && errno != EINTR)
                return err_set(err, CSN_E_SYSTEM, errno, "epoll_wait");
        loop->serving = events;
        loop->serving_n = n < 0 ? 0 : n;
        for (int i = 0; i < loop->serving_n; i++) {
                struct watch *watch = events[i].data.ptr;
                if (watch)
                        serve_watch(watch, events[i].events);
        }
        loop->serving_n = 0;
        serve_timers(loop);
        return 0;
}
