/*
 * The Kubernetes side of a gateway without the gateway, for tests: kube-pool-serve [KEY=VALUE ...].
 *
 * A word that begins with "kube:" or "pool:" sets a time of struct kube_times or struct pool_times; any other word is a
 * setting.  Workers are ready as soon as they are known, and have four slots.  Each line of the input is a command, and
 * gets one line of JSON as its answer; the program ends with its input.
 *
 *     state                                          all that is known; `log` is what was new for the fleet
 *     load NAME RUNNING QUEUED SANDBOXES             what the worker says from now on
 *     worker NAME ready|down                         whether the worker answers
 *     waiting N MS                                   requests that wait in the gateway
 *     wake                                           a request found no worker
 */
#include "gateway/pool/pool.h"

#include "fake-fleet.h"

#include <inttypes.h>
#include <sys/epoll.h>

#define ANSWER_US 20000                    /* between two answers of ready workers */

static struct fleet fleet;
static struct kube *kube;
static struct pool *pool;
static struct loop *loop;
static struct buf input;
static bool at_end;

static void answer(json_t *json)
{
        char *text = json_dumps(json, JSON_COMPACT);
        puts(text);
        fflush(stdout);
        free(text);
        json_decref(json);
}

static json_t *pods_json(void)
{
        json_t *pods = json_object();
        for (const struct kube_pod *pod = kube_first(kube); pod; pod = pod->next)
                json_object_set_new(pods, pod->name,
                        json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:I, s:b}", "uid", pod->uid, "phase",
                                pod->phase, "reason", pod->reason, "waiting", pod->waiting, "cordon", pod->cordon,
                                "ready", pod->ready, "deleting", pod->deleting, "cordoned", pod->cordoned, "restarts",
                                (json_int_t)pod->restarts, "has_worker", pod->worker != NULL));
        return pods;
}

static json_t *workers_json(void)
{
        json_t *workers = json_object();
        for (const struct gateway_worker *worker = fleet.workers; worker; worker = worker->next)
                json_object_set_new(workers, worker->name, json_pack("{s:s, s:s, s:b}", "uid", worker->uid, "url",
                        worker->url, "cordoned", worker->cordoned));
        return workers;
}

static void answer_state(void)
{
        char why[512] = "";
        struct pool_facts facts = { 0 };
        bool connected = kube_is_connected(kube, why, sizeof why);
        if (pool)
                pool_facts(pool, &facts);
        answer(json_pack("{s:b, s:b, s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:f, s:b}", "listed",
                kube_has_listed(kube), "connected", connected, "why", why, "pods", pods_json(), "workers",
                workers_json(), "log", fleet.log.len ? fleet.log.bytes : "", "trouble", pool ? pool_trouble(pool) : "",
                "wanted", (json_int_t)facts.wanted, "ready", (json_int_t)facts.ready, "all", (json_int_t)facts.pods,
                "utilization", facts.utilization, "leads", facts.leads));
        fleet.log.len = 0;
}

static struct gateway_worker *find_worker(const char *name)
{
        struct gateway_worker *worker = fleet.workers;
        while (worker && strcmp(worker->name, name) != 0)
                worker = worker->next;
        return worker;
}

static void tell_pool(struct gateway_worker *worker)
{
        if (fleet.events && fleet.events->changed)
                fleet.events->changed(fleet.owner, worker);
}

static void obey(const char *line)
{
        char name[254] = "", state[16] = "";
        uint64_t numbers[3] = { 0 };
        struct gateway_worker *worker;
        if (strcmp(line, "state") == 0) {
                answer_state();
                return;
        }
        if (strcmp(line, "wake") == 0)
                pool_wake(pool);
        else if (sscanf(line, "waiting %" SCNu64 " %" SCNu64, &numbers[0], &numbers[1]) == 2)
                pool_set_waiting(pool, numbers[0], numbers[1]);
        else if (sscanf(line, "load %253s %" SCNu64 " %" SCNu64 " %" SCNu64, name, &numbers[0], &numbers[1],
                         &numbers[2]) == 4 && (worker = find_worker(name))) {
                worker->running = numbers[0];
                worker->queued = numbers[1];
                worker->sandboxes = numbers[2];
                tell_pool(worker);
        } else if (sscanf(line, "worker %253s %15s", name, state) == 2 && (worker = find_worker(name))) {
                worker->state = strcmp(state, "down") == 0 ? WORKER_DOWN : WORKER_READY;
                tell_pool(worker);
        } else {
                answer(json_pack("{s:s}", "wrong", line));
                return;
        }
        answer(json_object());
}

static void on_input(struct watch *watch, uint32_t events)
{
        char bytes[4096], *end;
        ssize_t n = read(watch->fd, bytes, sizeof bytes);
        (void)events;
        if (n <= 0) {
                at_end = true;
                return;
        }
        buf_add(&input, bytes, (size_t)n);
        while (input.len && (end = memchr(input.bytes, '\n', input.len))) {
                size_t used = (size_t)(end - input.bytes) + 1;
                *end = 0;
                obey(input.bytes);
                memmove(input.bytes, input.bytes + used, input.len - used);
                input.len -= used;
        }
}

static void on_answers(struct timer *timer)
{
        for (struct gateway_worker *worker = fleet.workers; worker; worker = worker->next)
                if (worker->state == WORKER_READY)
                        worker->answered_us = clock_us();
        loop_timer(loop, timer, ANSWER_US);
}

static struct kube_times kube_times = { .watch_s = 290,
        .silent_ms = 320000,
        .backoff_min_ms = 50,
        .backoff_max_ms = 400,
        .token_ms = 60000,
        .request_ms = 5000 };
static struct pool_times pool_times = { .step = 20,
        .stuck = 400,
        .ready = 60000,
        .lost = 300,
        .hold = 500,
        .invalid = 1000,
        .backoff_min = 50,
        .backoff_max = 400,
        .expected = 30000,
        .lease = 1500,
        .up_after = 100,
        .down_every = 200 };

static bool set_time(const char *word)
{
        const struct {
                const char *name;
                uint64_t *into;
        } times[] = {
                { "kube:silent=", &kube_times.silent_ms },
                { "kube:request=", &kube_times.request_ms },
                { "kube:token=", &kube_times.token_ms },
                { "kube:backoff=", &kube_times.backoff_min_ms },
                { "pool:stuck=", &pool_times.stuck },
                { "pool:ready=", &pool_times.ready },
                { "pool:lost=", &pool_times.lost },
                { "pool:hold=", &pool_times.hold },
                { "pool:invalid=", &pool_times.invalid },
                { "pool:lease=", &pool_times.lease },
                { "pool:backoff=", &pool_times.backoff_min },
                { "pool:expected=", &pool_times.expected },
                { "pool:up=", &pool_times.up_after },
                { "pool:down=", &pool_times.down_every },
        };
        if (strncmp(word, "kube:watch=", 11) == 0) {
                kube_times.watch_s = (unsigned)strtoul(word + 11, NULL, 10);
                return true;
        }
        for (size_t i = 0; i < ARRAY_LEN(times); i++)
                if (strncmp(word, times[i].name, strlen(times[i].name)) == 0) {
                        *times[i].into = strtoull(word + strlen(times[i].name), NULL, 10);
                        return true;
                }
        return false;
}

/* The words that are settings, for settings_load(). */
static int read_words(int argc, char **argv, struct settings *settings, struct csn_error *err)
{
        const char **flags = mem_alloc((size_t)argc * sizeof *flags);
        size_t n = 0;
        for (int i = 1; i < argc; i++)
                if (!set_time(argv[i]))
                        flags[n++] = argv[i];
        int rc = settings_load(&(struct settings_sources){ .flags = flags, .env = environ }, settings, err);
        free(flags);
        return rc;
}

static int serve(const struct settings *settings, struct csn_error *err)
{
        struct fetcher *fetcher;
        struct watch in = { .fd = -1, .ready = on_input };
        struct timer answers = { .fired = on_answers };
        if (loop_new(&loop, err) < 0 || fetcher_open(loop, &fetcher, err) < 0 ||
                kube_open(loop, fetcher, settings, &fleet, &kube, err) < 0)
                return -err->code;
        kube_set_times(kube, &kube_times);
        if (settings->kubernetes.mode == kubernetes_mode_OWNED) {
                if (pool_new(loop, settings, &fleet, kube, &pool, err) < 0)
                        return -err->code;
                pool_set_times(pool, &pool_times);
        }
        kube_start(kube);
        loop_timer(loop, &answers, 0);
        if (loop_watch(loop, &in, STDIN_FILENO, EPOLLIN, err) < 0)
                return -err->code;
        while (!at_end && loop_step(loop, -1, err) == 0)
                ;
        loop_unwatch(loop, &in);
        loop_untimer(loop, &answers);
        pool_free(pool);
        kube_close(kube);
        fetcher_close(fetcher);
        loop_free(loop);
        return 0;
}

int main(int argc, char **argv)
{
        struct settings settings = { 0 };
        struct csn_error err;
        log_set_level(LOG_INFO);
        log_set_format(LOG_FORMAT_TEXT);
        buf_init(&fleet.log, MIB);
        buf_init(&input, 64 * KIB);
        int rc = read_words(argc, argv, &settings, &err);
        if (rc == 0)
                rc = serve(&settings, &err);
        if (rc < 0)
                fprintf(stderr, "%s\n", err.text);
        settings_done(&settings);
        fake_fleet_done(&fleet);
        buf_done(&input);
        return rc < 0;
}
