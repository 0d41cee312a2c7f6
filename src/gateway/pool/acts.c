/* Requests of a pool to the API server; see acts.h. */
#include "gateway/pool/acts.h"

#include "gateway/pool/template.h"

#include <inttypes.h>
#include <stdio.h>

#define EXISTING_MAX 2                     /* 409s until a name counts as foreign */
#define ANOTHER_MS 10000                   /* how long another gateway's new pod may be missing in the watch */
#define UNSURE_MS 5000                     /* the same for a creation without an answer */

void pool_step_soon(struct pool *pool)
{
        loop_timer(pool->loop, &pool->timer, 0);
}

bool act_is_free(const struct pool *pool, enum act_kind kind)
{
        return !pool->acts[kind].pool && clock_us() >= pool->act_after_us[kind];
}

static struct pool_act *act_begin(struct pool *pool, enum act_kind kind, const char *name)
{
        struct pool_act *act = &pool->acts[kind];
        *act = (struct pool_act){ .pool = pool, .kind = kind };
        snprintf(act->name, sizeof act->name, "%s", name);
        return act;
}

/* ---- create ---- */

static void hold_creation(struct pool *pool, uint64_t ms, const struct kube_answer *answer)
{
        pool->create_after_us = max_u64(pool->create_after_us, clock_us() + max_u64(ms, answer->retry_after_ms) * 1000);
        if (strcmp(pool->refused, answer->error->text) != 0)
                log_text(LOG_WARN, "no worker can be made: %s", answer->error->text);
        snprintf(pool->refused, sizeof pool->refused, "%s", answer->error->text);
}

/* The watch may show the pod before the answer arrives; then do not expect the pod. */
static void expect_pod(struct pool *pool, struct pool_act *act, uint64_t ms)
{
        const struct kube_pod *pod = kube_first(pool->kube);
        while (pod && strcmp(pod->name, act->name) != 0)
                pod = pod->next;
        if (!pod)
                pool->slots[act->index].expected_us = clock_us() + ms * 1000;
}

static void on_created(void *owner, const struct kube_answer *answer)
{
        struct pool_act *act = owner;
        struct pool *pool = act->pool;
        struct pool_slot *slot = &pool->slots[act->index];
        act->pool = NULL;
        slot->existing = answer->refusal == KUBE_EXISTS ? slot->existing + 1 : 0;
        switch (answer->refusal) {
        case KUBE_DONE:
                log_text(LOG_INFO, "the pod %s was made", act->name);
                expect_pod(pool, act, pool->times.expected);
                pool->refused[0] = 0;
                break;
        case KUBE_EXISTS:
                /* Another gateway was first, and the watch will have its pod; or the pod is none of ours. */
                if (slot->existing > EXISTING_MAX)
                        slot->foreign_us = clock_us() + pool->times.hold * 1000;
                else
                        expect_pod(pool, act, min_u64(ANOTHER_MS, pool->times.expected));
                break;
        case KUBE_QUOTA_REACHED:
        case KUBE_RIGHTS_MISSING:
        case KUBE_TOKEN_REFUSED:
                hold_creation(pool, pool->times.hold, answer);
                break;
        case KUBE_POD_REFUSED:
        case KUBE_INVALID:
        case KUBE_NAMESPACE_MISSING:
                hold_creation(pool, pool->times.invalid, answer);
                break;
        default:
                if (answer->refusal == KUBE_UNREACHABLE)
                        expect_pod(pool, act, min_u64(UNSURE_MS, pool->times.expected));
                hold_creation(pool, pool->times.backoff_min, answer);
        }
        pool_step_soon(pool);
}

void act_create(struct pool *pool, size_t index)
{
        char name[300];
        snprintf(name, sizeof name, "%s%zu", pool->set->pod_prefix, index);
        struct pool_act *act = act_begin(pool, ACT_CREATE, name);
        act->index = index;
        kube_ask(pool->kube, "POST", "pods?fieldValidation=Strict", pool_template_pod(pool->template, name), on_created, act);
}

/* ---- cordon, delete ---- */

/* After a failed act the pod may be tried again after a pause. */
static void act_failed(struct pool *pool, const struct pool_act *act, uint64_t ms)
{
        pool->act_after_us[act->kind] = clock_us() + ms * 1000;
        for (struct kube_pod *pod = kube_first(pool->kube); pod; pod = pod->next) {
                struct pool_pod *own = pod->owner;
                if (!own || strcmp(pod->name, act->name) != 0)
                        continue;
                if (act->kind == ACT_CORDON)
                        own->cordon_asked_us = 0;
                else
                        own->delete_asked_us = 0;
        }
}

/* A conflict, or a missing pod, is no failure: the next step checks the pod again. */
static void on_changed(void *owner, const struct kube_answer *answer)
{
        struct pool_act *act = owner;
        struct pool *pool = act->pool;
        bool denied = answer->refusal == KUBE_RIGHTS_MISSING;
        act->pool = NULL;
        if (answer->refusal != KUBE_DONE)
                act_failed(pool, act, denied ? pool->times.hold : pool->times.backoff_min);
        if (answer->refusal != KUBE_DONE && answer->refusal != KUBE_CONFLICT && answer->refusal != KUBE_NOT_FOUND)
                log_text(LOG_WARN, "the pod %s cannot be %s: %s", act->name,
                        act->kind == ACT_CORDON ? "cordoned" : "deleted", answer->error->text);
        pool_step_soon(pool);
}

void act_cordon(struct pool *pool, struct kube_pod *pod, const char *word)
{
        struct pool_pod *own = pod->owner;
        char path[300], mark[48], now[32];
        time_print(time_now_ms(), now, sizeof now);
        snprintf(mark, sizeof mark, "%.10s %.30s", word, now);
        snprintf(path, sizeof path, "pods/%s", pod->name);
        json_t *body = json_pack("{s:{s:s, s:s, s:{s:s}}}", "metadata", "uid", pod->uid, "resourceVersion",
                pod->resource_version, "annotations", KUBE_CORDONED, mark);
        log_text(LOG_INFO, "the pod %s gets no new work (%s)", pod->name, word);
        own->cordon_asked_us = clock_us();
        kube_ask(pool->kube, "PATCH", path, body, on_changed, act_begin(pool, ACT_CORDON, pod->name));
}

void act_delete(struct pool *pool, struct kube_pod *pod, const char *why)
{
        struct pool_pod *own = pod->owner;
        char path[300];
        snprintf(path, sizeof path, "pods/%s", pod->name);
        json_t *body = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "DeleteOptions", "preconditions",
                "uid", pod->uid);
        log_text(LOG_INFO, "the pod %s is deleted: %s", pod->name, why);
        own->delete_asked_us = clock_us();
        kube_ask(pool->kube, "DELETE", path, body, on_changed, act_begin(pool, ACT_DELETE, pod->name));
}

void acts_stop(struct pool *pool)
{
        for (size_t i = 0; i < ACT_KINDS; i++)
                if (pool->acts[i].pool)
                        kube_forget(pool->kube, &pool->acts[i]);
}
