/* worker: helper threads, their fairness, and the end of jobs in the loop. */
#include "base/worker.h"

#include <stdatomic.h>

#include "tap.h"

/* A job that waits in work() until a byte can be read. */
struct held {
        struct job job;
        int gate[2];
        atomic_int begun;
        int done, dropped;
};

static void held_work(struct job *job)
{
        struct held *held = job->owner;
        char byte;
        atomic_store(&held->begun, 1);
        if (read(held->gate[0], &byte, 1) != 1)
                abort();
}

static void held_done(struct job *job)
{
        struct held *held = job->owner;
        held->done++;
        held->dropped += job->dropped;
}

static void held_init(struct held *held)
{
        *held = (struct held){ .job = { .work = held_work, .done = held_done, .owner = held } };
        if (pipe(held->gate) < 0)
                abort();
}

static void held_open(struct held *held)
{
        if (write(held->gate[1], "x", 1) != 1)
                abort();
}

static void held_free(struct held *held)
{
        fd_close(&held->gate[0]);
        fd_close(&held->gate[1]);
}

static struct loop *loop;
static struct workers *workers;

static void begin(void)
{
        struct csn_error err;
        if (loop_new(&loop, &err) < 0 || workers_new(loop, &workers, &err) < 0)
                abort();
}

static void end(void)
{
        workers_free(workers);
        loop_free(loop);
}

static void step_until(const int *done, int wanted)
{
        struct csn_error err;
        for (int i = 0; i < 1000 && *done < wanted; i++)
                loop_step(loop, 10, &err);
}

static void wait_until_begun(struct held *held)
{
        for (int i = 0; i < 5000 && !atomic_load(&held->begun); i++)
                usleep(1000);
}

static void a_job_ends_in_the_loop(void)
{
        struct held one;
        begin();
        held_init(&one);
        held_open(&one);
        worker_submit(workers, "a", &one.job);
        wait_until_begun(&one);
        CHECK(one.done == 0 && one.job.active);
        step_until(&one.done, 1);
        CHECK(one.done == 1 && !one.job.active && !one.dropped);
        worker_submit(workers, "a", &one.job);   /* again */
        held_open(&one);
        step_until(&one.done, 2);
        CHECK(one.done == 2);
        end();
        held_free(&one);
}

static void one_share_leaves_a_thread_for_others(void)
{
        enum { MANY = WORKER_THREADS_MAX + 3 };
        static struct held many[MANY];
        struct held other;
        size_t waiting, running;
        begin();
        for (size_t i = 0; i < MANY; i++) {
                held_init(&many[i]);
                worker_submit(workers, "greedy", &many[i].job);
        }
        held_init(&other);
        held_open(&other);
        worker_submit(workers, "other", &other.job);
        step_until(&other.done, 1);
        CHECK(other.done == 1);   /* though the greedy share has more jobs than there are threads */
        workers_count(workers, &waiting, &running);
        CHECK(running < WORKER_THREADS_MAX && waiting + running == MANY);
        for (size_t i = 0; i < MANY; i++)
                held_open(&many[i]);
        for (size_t i = 0; i < MANY; i++)
                step_until(&many[i].done, 1);
        workers_count(workers, &waiting, &running);
        CHECK(waiting == 0 && running == 0);
        end();
        for (size_t i = 0; i < MANY; i++) {
                CHECK(many[i].done == 1 && !many[i].dropped);
                held_free(&many[i]);
        }
        held_free(&other);
}

static void a_waiting_job_can_be_cancelled_and_a_running_one_not(void)
{
        static struct held many[WORKER_THREADS_MAX + 2];
        struct held *last = &many[ARRAY_LEN(many) - 1];
        begin();
        for (size_t i = 0; i < ARRAY_LEN(many); i++) {
                held_init(&many[i]);
                worker_submit(workers, "a", &many[i].job);
        }
        wait_until_begun(&many[0]);
        CHECK(worker_cancel(workers, &last->job) && !last->job.active);
        CHECK(!worker_cancel(workers, &last->job));
        CHECK(!worker_cancel(workers, &many[0].job) && many[0].job.active);
        for (size_t i = 0; i < ARRAY_LEN(many); i++)
                held_open(&many[i]);
        for (size_t i = 0; i + 1 < ARRAY_LEN(many); i++)
                step_until(&many[i].done, 1);
        CHECK(last->done == 0 && !atomic_load(&last->begun));
        for (size_t i = 0; i + 1 < ARRAY_LEN(many); i++)
                CHECK(many[i].done == 1);
        end();
        for (size_t i = 0; i < ARRAY_LEN(many); i++)
                held_free(&many[i]);
}

static void the_end_waits_for_running_jobs_and_drops_the_others(void)
{
        static struct held many[WORKER_THREADS_MAX + 3];
        int ran = 0, dropped = 0;
        begin();
        for (size_t i = 0; i < ARRAY_LEN(many); i++) {
                held_init(&many[i]);
                worker_submit(workers, i % 2 ? "a" : "b", &many[i].job);
        }
        wait_until_begun(&many[0]);
        for (size_t i = 0; i < ARRAY_LEN(many); i++)
                held_open(&many[i]);
        end();
        for (size_t i = 0; i < ARRAY_LEN(many); i++) {
                CHECK(many[i].done == 1);
                ran += !many[i].dropped;
                dropped += many[i].dropped;
                CHECK((many[i].dropped == 0) == (atomic_load(&many[i].begun) == 1));
                held_free(&many[i]);
        }
        CHECK(ran > 0 && ran + dropped == (int)ARRAY_LEN(many));
}

static void a_large_arena_is_freed_by_a_thread(void)
{
        struct arena arena = { 0 };
        size_t waiting, running;
        struct csn_error err;
        begin();
        arena_alloc(&arena, WORKER_FREE_MIN - 1000);
        CHECK(!arena_is_large(&arena, WORKER_FREE_MIN));
        worker_free(workers, "a", &arena);
        workers_count(workers, &waiting, &running);
        CHECK(!arena.blocks && waiting + running == 0);
        struct held held[2];
        for (int i = 0; i < 2; i++) {
                held_init(&held[i]);
                worker_submit(workers, "a", &held[i].job);
        }
        for (int i = 0; i < 2; i++)
                arena_alloc(&arena, WORKER_FREE_MIN - 1000);
        CHECK(arena_is_large(&arena, WORKER_FREE_MIN));
        worker_free(workers, "a", &arena);
        workers_count(workers, &waiting, &running);
        CHECK(!arena.blocks && waiting >= 1);
        for (int i = 0; i < 2; i++)
                held_open(&held[i]);
        while (held[0].done + held[1].done < 2)
                CHECK(loop_step(loop, 1000, &err) == 0);
        for (int i = 0; i < 2; i++)
                held_free(&held[i]);
        end();
        arena_alloc(&arena, WORKER_FREE_MIN);
        worker_free(NULL, "a", &arena);
        CHECK(!arena.blocks);
}

int main(void)
{
        RUN(a_job_ends_in_the_loop);
        RUN(one_share_leaves_a_thread_for_others);
        RUN(a_waiting_job_can_be_cancelled_and_a_running_one_not);
        RUN(the_end_waits_for_running_jobs_and_drops_the_others);
        RUN(a_large_arena_is_freed_by_a_thread);
        return tap_done();
}
