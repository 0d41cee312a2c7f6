/* The pods of a gateway: creation, replacement and removal; see pool.h. */
#include "gateway/pool/pool.h"

#include "gateway/pool/acts.h"
#include "gateway/pool/template.h"

#include <inttypes.h>
#include <stdio.h>

#define ASKED_US 10000000ULL               /* how long a cordon or a deletion may be missing in the watch */
#define SCALE_MARK "scale"
#define ROLL_MARK "roll"

static const struct pool_times usual_times = { .step = 1000,
        .stuck = 60000,
        .ready = 300000,
        .lost = 60000,
        .hold = 60000,
        .invalid = 300000,
        .backoff_min = 1000,
        .backoff_max = 300000,
        .expected = 30000,
        .lease = 15000,
        .up_after = SCALE_UP_AFTER_MS,
        .down_every = SCALE_DOWN_EVERY_MS };

/* Counts over all pods. */
struct look {
        uint64_t now_us;
        uint64_t total;                    /* pods in every phase, and expected pods */
        uint64_t staying;                  /* neither ended nor marked for removal, and expected pods */
        uint64_t ready;                    /* staying, and their worker is ready */
        uint64_t outdated;                 /* staying, with another template or too high an index */
        uint64_t rolling;                  /* marked because of the template, and still present */
        uint64_t idle;                     /* ready, and without sandboxes and runs for kubernetes.idle */
        uint64_t slots, running, queued;   /* of ready pods */
};

/* ---- one pod ---- */

/* The index behind the prefix.  false: the pod is no pod of the pool. */
static bool pod_index(const struct pool *pool, const struct kube_pod *pod, uint64_t *ret)
{
        const char *prefix = pool->set->pod_prefix, *digits = pod->name + strlen(prefix);
        if (strncmp(pod->name, prefix, strlen(prefix)) != 0 || !digits[0] || strlen(digits) > 6 ||
                strspn(digits, "0123456789") != strlen(digits) || (digits[0] == '0' && digits[1]))
                return false;
        *ret = strtoull(digits, NULL, 10);
        return true;
}

static bool is_ours(const struct pool *pool, const struct kube_pod *pod)
{
        uint64_t index;
        return pod->owner && pod_index(pool, pod, &index);
}

static bool has_ended(const struct kube_pod *pod)
{
        return strcmp(pod->phase, "Succeeded") == 0 || strcmp(pod->phase, "Failed") == 0;
}

static bool has_mark(const struct kube_pod *pod, const char *word)
{
        size_t len = strlen(word);
        return strncmp(pod->cordon, word, len) == 0 && pod->cordon[len] == ' ';
}

static bool is_marked(const struct kube_pod *pod)
{
        return has_mark(pod, SCALE_MARK) || has_mark(pod, ROLL_MARK);
}

static bool was_asked(uint64_t asked_us, uint64_t now_us)
{
        return asked_us && now_us - asked_us < ASKED_US;
}

static bool is_staying(const struct kube_pod *pod, uint64_t now_us)
{
        const struct pool_pod *own = pod->owner;
        return !pod->deleting && !has_ended(pod) && !is_marked(pod) && !was_asked(own->cordon_asked_us, now_us) &&
                !was_asked(own->delete_asked_us, now_us);
}

static bool is_outdated(const struct pool *pool, const struct kube_pod *pod)
{
        uint64_t index = 0;
        pod_index(pool, pod, &index);
        return index >= pool->set->pool_max || strcmp(pod->template_hash, pool->hash) != 0;
}

static bool is_ready(const struct kube_pod *pod)
{
        return pod->worker && pod->worker->state == WORKER_READY && !pod->worker->cordoned;
}

/* Ready by the kubelet's report, before the first heartbeat. */
static bool is_useful(const struct kube_pod *pod)
{
        return is_ready(pod) || pod->ready;
}

static uint64_t work_of(const struct gateway_worker *worker)
{
        return max_u64(worker->running + worker->queued, worker->sent);
}

/* Unschedulable is no reason to make the pod again: free room or another node ends the wait. */
static bool cannot_start(const struct kube_pod *pod)
{
        return pod->waiting[0] && strcmp(pod->waiting, "Unschedulable") != 0 && !pod->ready;
}

static void mark_since(uint64_t *since_us, bool condition, uint64_t now_us)
{
        if (!condition)
                *since_us = 0;
        else if (!*since_us)
                *since_us = now_us;
}

static void pod_look(struct pool *pool, struct kube_pod *pod, uint64_t now_us)
{
        struct pool_pod *own = pod->owner;
        const struct gateway_worker *worker = pod->worker;
        bool busy = !worker || worker->sandboxes || work_of(worker) || worker->requests != own->requests;
        if (pod->ready && !own->was_ready) {
                own->was_ready = true;
                pool->failures = 0;
        }
        own->requests = worker ? worker->requests : 0;
        mark_since(&own->idle_us, !busy && worker->state == WORKER_READY, now_us);
        mark_since(&own->waiting_us, cannot_start(pod), now_us);
        mark_since(&own->down_us, own->was_ready && !pod->ready && worker && worker->state == WORKER_DOWN, now_us);
        mark_since(&own->cordon_seen_us, is_marked(pod), now_us);
}

/* ---- all pods ---- */

static bool is_expected(const struct pool *pool, size_t index, uint64_t now_us)
{
        return pool->slots[index].expected_us > now_us;
}

static struct look pool_look(struct pool *pool)
{
        struct look look = { .now_us = clock_us() };
        uint64_t index;
        for (size_t i = 0; i < pool->set->pool_max; i++)
                pool->slots[i].taken = false;
        for (struct kube_pod *pod = kube_first(pool->kube); pod; pod = pod->next) {
                const struct pool_pod *own = pod->owner;
                if (!pod->owner || !pod_index(pool, pod, &index))
                        continue;
                if (index < pool->set->pool_max)
                        pool->slots[index].taken = true;
                pod_look(pool, pod, look.now_us);
                look.total++;
                look.rolling += has_mark(pod, ROLL_MARK) ||
                        (!pod->cordoned && was_asked(own->cordon_asked_us, look.now_us) && is_outdated(pool, pod));
                if (!is_staying(pod, look.now_us))
                        continue;
                look.staying++;
                look.outdated += is_outdated(pool, pod);
                if (!is_ready(pod))
                        continue;
                look.ready++;
                look.slots += pod->worker->slots;
                look.running += max_u64(pod->worker->running, work_of(pod->worker) - pod->worker->queued);
                look.queued += pod->worker->queued;
                look.idle += own->idle_us && look.now_us - own->idle_us >= pool->set->idle * 1000;
        }
        for (size_t i = 0; i < pool->set->pool_max; i++)
                if (is_expected(pool, i, look.now_us)) {
                        look.total++;
                        look.staying++;
                }
        return look;
}

/* ---- creation ---- */

/* The lowest free index.  SIZE_MAX: none. */
static size_t free_index(const struct pool *pool, uint64_t now_us)
{
        for (size_t i = 0; i < pool->set->pool_max; i++)
                if (!pool->slots[i].taken && !is_expected(pool, i, now_us) && pool->slots[i].foreign_us <= now_us)
                        return i;
        return SIZE_MAX;
}

static uint64_t surge_of(const struct pool *pool)
{
        return max_u64((pool->scale.wanted * pool->set->surge + 99) / 100, 1);
}

static void pool_create(struct pool *pool, const struct look *look)
{
        uint64_t needed = pool->scale.wanted, surge = surge_of(pool);
        /* Old pods under draining are a part of the surge. */
        if (look->outdated && pool_lease_is_held(&pool->lease))
                needed += min_u64(surge - min_u64(surge, look->rolling), look->outdated);
        if (look->staying >= needed || look->total >= pool->set->pool_max || !act_is_free(pool, ACT_CREATE) ||
                look->now_us < pool->create_after_us)
                return;
        size_t index = free_index(pool, look->now_us);
        if (index != SIZE_MAX)
                act_create(pool, index);
}

/* ---- removal ---- */

/* The better victim of two: with less work to lose, then with the higher index, so that low indices stay. */
static bool is_better_victim(const struct pool *pool, const struct kube_pod *pod, const struct kube_pod *than)
{
        uint64_t a = 0, b = 0, index_a = 0, index_b = 0;
        if (!than)
                return true;
        if (is_useful(pod) != is_useful(than))
                return !is_useful(pod);
        if (pod->worker && than->worker) {
                a = pod->worker->sandboxes + work_of(pod->worker);
                b = than->worker->sandboxes + work_of(than->worker);
        }
        pod_index(pool, pod, &index_a);
        pod_index(pool, than, &index_b);
        return a != b ? a < b : index_a > index_b;
}

static struct kube_pod *find_victim(struct pool *pool, const struct look *look, bool outdated)
{
        struct kube_pod *victim = NULL;
        for (struct kube_pod *pod = kube_first(pool->kube); pod; pod = pod->next) {
                const struct pool_pod *own = pod->owner;
                if (!is_ours(pool, pod) || !is_staying(pod, look->now_us))
                        continue;
                bool fits = outdated
                        ? is_outdated(pool, pod)
                        : is_ready(pod) && own->idle_us && look->now_us - own->idle_us >= pool->set->idle * 1000;
                if (fits && is_better_victim(pool, pod, victim))
                        victim = pod;
        }
        return victim;
}

/*
 * Replace pods of another template.  With room for a new pod, an old pod goes when the wanted number is ready; without
 * room, as many may be missing as the surge allows.
 */
static void pool_roll(struct pool *pool, const struct look *look)
{
        uint64_t surge = surge_of(pool), wanted = pool->scale.wanted;
        bool full = look->total >= pool->set->pool_max;
        uint64_t needed = full && look->staying <= wanted ? wanted - min_u64(wanted, surge) : wanted;
        if (!look->outdated || look->rolling >= surge || !act_is_free(pool, ACT_CORDON))
                return;
        struct kube_pod *victim = find_victim(pool, look, true);
        if (victim && (look->ready > needed || !is_useful(victim)))
                act_cordon(pool, victim, ROLL_MARK);
}

static void pool_shrink(struct pool *pool, const struct look *look)
{
        if (!act_is_free(pool, ACT_CORDON))
                return;
        struct kube_pod *victim = find_victim(pool, look, false);
        if (victim)
                act_cordon(pool, victim, SCALE_MARK);
}

/*
 * Has a marked pod finished?  True once its worker reports no work after all gateways have seen the mark, or after the
 * grace.
 */
static bool is_drained(const struct pool *pool, const struct kube_pod *pod, uint64_t now_us)
{
        const struct pool_pod *own = pod->owner;
        const struct gateway_worker *worker = pod->worker;
        uint64_t settled_us = own->cordon_seen_us + pool->settings->gateway.heartbeat * 1000;
        if (!own->cordon_seen_us)
                return false;
        if (!worker || now_us - own->cordon_seen_us >= pool->set->grace * 1000000)
                return true;
        bool missing = worker->audited && worker->audit_taken < worker->audit_newest;   /* rows of the audit */
        return worker->answered_us >= settled_us && !worker->sandboxes && !work_of(worker) && !missing &&
                worker->state != WORKER_DOWN;
}

/* Why a pod has to be replaced, or NULL.  The doubling of `stuck` is bounded. */
static const char *fault_of(const struct pool *pool, const struct kube_pod *pod, uint64_t now_us)
{
        const struct pool_pod *own = pod->owner;
        unsigned doublings = pool->failures < 5 ? pool->failures : 5;
        uint64_t stuck_us = pool->times.stuck * 1000 << doublings;
        bool waits_for_node = strcmp(pod->waiting, "Unschedulable") == 0;
        if (own->waiting_us && now_us - own->waiting_us >= stuck_us)
                return pod->waiting;
        if (!own->was_ready && !waits_for_node && now_us - own->seen_us >= (pool->times.ready * 1000 << doublings))
                return "it was never ready";
        if (own->down_us && now_us - own->down_us >= pool->times.lost * 1000)
                return "neither its node nor its worker answers";
        return NULL;
}

/* The next pod is made after a back-off. */
static void pod_failed(struct pool *pool, struct kube_pod *pod)
{
        struct pool_pod *own = pod->owner;
        unsigned doublings = pool->failures < 16 ? pool->failures : 16;
        uint64_t ms = min_u64(pool->times.backoff_min << doublings, pool->times.backoff_max);
        if (own->has_failed)
                return;
        own->has_failed = true;
        pool->failures++;
        pool->create_after_us = max_u64(pool->create_after_us, clock_us() + ms * 1000);
}

/* Ended pods hold their name, so any gateway deletes such pods.  Other removals are the work of the lease's holder. */
static const char *removal_of(struct pool *pool, struct kube_pod *pod, uint64_t now_us)
{
        if (has_ended(pod)) {
                pod_failed(pool, pod);
                return pod->reason[0] ? pod->reason : "it has ended";
        }
        if (!pool_lease_is_held(&pool->lease))
                return NULL;
        if (is_marked(pod))
                return is_drained(pool, pod, now_us) ? "it has no work any more" : NULL;
        const char *fault = fault_of(pool, pod, now_us);
        if (fault)
                pod_failed(pool, pod);
        return fault;
}

static void pool_remove(struct pool *pool, const struct look *look)
{
        for (struct kube_pod *pod = kube_first(pool->kube); pod; pod = pod->next) {
                const struct pool_pod *own = pod->owner;
                if (!act_is_free(pool, ACT_DELETE))
                        return;
                if (!is_ours(pool, pod) || pod->deleting || was_asked(own->delete_asked_us, look->now_us))
                        continue;
                const char *why = removal_of(pool, pod, look->now_us);
                if (why)
                        act_delete(pool, pod, why);
        }
}

/* ---- the step ---- */

static struct scale_limits limits_of(const struct pool *pool)
{
        const struct kubernetes_settings *set = pool->set;
        return (struct scale_limits){ .pool_min = min_u64(set->pool_min, set->pool_max),
                .pool_max = set->pool_max,
                .up_at = (unsigned)set->scale_up_at,
                .down_at = (unsigned)set->scale_down_at,
                .up_after_us = pool->times.up_after * 1000,
                .down_after_us = set->scale_down_after * 1000,
                .down_every_us = pool->times.down_every * 1000 };
}

static void pool_step(struct pool *pool)
{
        struct scale_limits limits = limits_of(pool);
        struct look look = pool_look(pool);
        char why[512];
        if (!pool->begun) {
                scale_begin(&pool->scale, &limits, look.staying);
                pool->begun = true;
        }
        struct scale_load load = { .now_us = look.now_us,
                .ready = look.ready,
                .pods = look.staying,
                .slots = look.slots,
                .running = look.running,
                .queued = look.queued,
                .waiting = pool->waiting,
                .wait_ms = pool->wait_ms,
                .idle = look.idle,
                .woken = pool->woken,
                .may_remove = pool_lease_is_held(&pool->lease) && !look.outdated && !look.rolling &&
                        act_is_free(pool, ACT_CORDON) };
        struct scale_step step = scale_step(&pool->scale, &limits, &load);
        pool->woken = false;
        pool->utilization = step.utilization;
        /* Without the API server the state may be old: create and remove no pod. */
        if (!kube_is_connected(pool->kube, why, sizeof why))
                return;
        pool_remove(pool, &look);
        if (pool_lease_is_held(&pool->lease))
                pool_roll(pool, &look);
        if (step.remove)
                pool_shrink(pool, &look);
        pool_create(pool, &look);
}

static void on_timer(struct timer *timer)
{
        struct pool *pool = timer->owner;
        loop_timer(pool->loop, &pool->timer, pool->times.step * 1000);
        if (kube_has_listed(pool->kube))
                pool_step(pool);
}

/* ---- news ---- */

/* Each gateway lowers its wanted number by the marks seen, so that no gateway recreates a removed pod. */
static void pod_marked(struct pool *pool)
{
        struct scale_limits limits = limits_of(pool);
        uint64_t staying = pool_look(pool).staying;
        if (pool->begun && staying < pool->scale.wanted)
                pool->scale.wanted = max_u64(staying, limits.pool_min);
}

static void on_pod(void *owner, struct kube_pod *pod)
{
        struct pool *pool = owner;
        struct pool_pod *own = pod->owner;
        uint64_t index;
        if (!own) {
                pod->owner = own = mem_alloc(sizeof *own);
                own->seen_us = clock_us();
                if (pod_index(pool, pod, &index) && index < pool->set->pool_max)
                        pool->slots[index] = (struct pool_slot){ 0 };
        }
        if (has_mark(pod, SCALE_MARK) && !own->cordon_seen_us && is_ours(pool, pod))
                pod_marked(pool);
        pool_step_soon(pool);
}

/* The name is free again. */
static void on_gone(void *owner, struct kube_pod *pod)
{
        struct pool *pool = owner;
        free(pod->owner);
        pod->owner = NULL;
        pool_step_soon(pool);
}

static void on_listed(void *owner)
{
        pool_step_soon(owner);
}

static void on_worker(void *owner, struct gateway_worker *worker)
{
        (void)worker;
        pool_step_soon(owner);
}

static void on_lost(void *owner, struct gateway_worker *worker, const char *reason)
{
        (void)reason;
        on_worker(owner, worker);
}

static void on_lease(void *owner)
{
        pool_step_soon(owner);
}

static const struct kube_events kube_events = { on_pod, on_gone, on_listed };
static const struct fleet_events fleet_events = { on_worker, on_lost };

/* ---- open and close ---- */

int pool_new(struct loop *loop, const struct settings *settings, struct fleet *fleet, struct kube *kube,
        struct pool **ret, struct csn_error *err)
{
        struct pool *pool = mem_alloc(sizeof *pool);
        if (pool_template_new(settings, &pool->template, err) < 0) {
                free(pool);
                return -err->code;
        }
        pool->loop = loop;
        pool->settings = settings;
        pool->set = &settings->kubernetes;
        pool->fleet = fleet;
        pool->kube = kube;
        pool->times = usual_times;
        pool->hash = pool_template_hash(pool->template);
        pool->slots = mem_alloc(pool->set->pool_max * sizeof *pool->slots);
        pool->timer = (struct timer){ .fired = on_timer, .owner = pool };
        kube_listen(kube, &kube_events, pool);
        fleet_listen(fleet, &fleet_events, pool);
        pool_set_times(pool, &usual_times);
        *ret = pool;
        return 0;
}

void pool_set_times(struct pool *pool, const struct pool_times *times)
{
        pool->times = *times;
        pool_lease_stop(&pool->lease);
        pool_lease_start(&pool->lease, pool->loop, pool->kube, pool->set->pod_prefix, times->lease, on_lease, pool);
        loop_timer(pool->loop, &pool->timer, times->step * 1000);
}

void pool_free(struct pool *pool)
{
        if (!pool)
                return;
        acts_stop(pool);
        pool_lease_stop(&pool->lease);
        loop_untimer(pool->loop, &pool->timer);
        kube_listen(pool->kube, NULL, NULL);
        for (struct kube_pod *pod = kube_first(pool->kube); pod; pod = pod->next) {
                free(pod->owner);
                pod->owner = NULL;
        }
        json_decref(pool->template);
        free(pool->slots);
        free(pool);
}

/* ---- the gateway's questions ---- */

void pool_wake(struct pool *pool)
{
        pool->woken = true;
        pool_step_soon(pool);
}

void pool_set_waiting(struct pool *pool, uint64_t requests, uint64_t wait_ms)
{
        pool->waiting = requests;
        pool->wait_ms = wait_ms;
}

static bool tell_pod(struct pool *pool, const struct kube_pod *pod)
{
        if (strcmp(pod->waiting, "Unschedulable") == 0)
                snprintf(pool->trouble, sizeof pool->trouble, "the pod %s finds no node: %s", pod->name, pod->waiting_text);
        else if (cannot_start(pod))
                snprintf(pool->trouble, sizeof pool->trouble, "the pod %s does not start: %s: %s%s", pod->name, pod->waiting,
                        pod->waiting_text, strstr(pod->waiting, "Image") ? " (see kubernetes.image)" : "");
        else if (has_ended(pod))
                snprintf(pool->trouble, sizeof pool->trouble, "the pod %s has ended: %s", pod->name,
                        pod->reason[0] ? pod->reason : "Succeeded");
        else
                return false;
        return true;
}

const char *pool_trouble(struct pool *pool)
{
        if (pool->refused[0])
                return pool->refused;
        for (const struct kube_pod *pod = kube_first(pool->kube); pod; pod = pod->next)
                if (is_ours(pool, pod) && tell_pod(pool, pod))
                        return pool->trouble;
        for (size_t i = 0; i < pool->set->pool_max; i++)
                if (pool->slots[i].foreign_us > clock_us()) {
                        snprintf(pool->trouble, sizeof pool->trouble,
                                "a pod %s%zu is there without the labels of kubernetes.selector", pool->set->pod_prefix, i);
                        return pool->trouble;
                }
        return pool->lease.trouble;
}

void pool_facts(const struct pool *pool, struct pool_facts *ret)
{
        *ret = (struct pool_facts){ .wanted = pool->scale.wanted,
                .maximum = pool->set->pool_max,
                .utilization = pool->utilization,
                .leads = pool_lease_is_held(&pool->lease) };
        for (const struct kube_pod *pod = kube_first(pool->kube); pod; pod = pod->next)
                if (is_ours(pool, pod)) {
                        ret->pods++;
                        ret->ready += is_ready(pod);
                }
}
