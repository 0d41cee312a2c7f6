/* A lease among gateways; see lease.h. */
#include "gateway/pool/lease.h"

#include <stdio.h>
#include <time.h>

#define RENEWALS 3                         /* in a duration */
#define DENIED_MS 60000                    /* between attempts without the right */

static void ask_lease(struct pool_lease *lease);

bool pool_lease_is_held(const struct pool_lease *lease)
{
        return lease->held_until_us > clock_us();
}

/* MicroTime of the API: six digits of a second. */
static void print_now(char *text, size_t size)
{
        int64_t ms = time_now_ms();
        time_t seconds = (time_t)(ms / 1000);
        struct tm tm;
        char head[32];
        gmtime_r(&seconds, &tm);
        strftime(head, sizeof head, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(text, size, "%s.%03d000Z", head, (int)(ms % 1000));
}

static json_t *lease_body(const struct pool_lease *lease, const char *version, json_int_t transitions)
{
        char now[48];
        print_now(now, sizeof now);
        json_t *body = json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:I, s:s, s:s, s:I}}", "apiVersion", "coordination.k8s.io/v1",
                "kind", "Lease", "metadata", "name", lease->name, "spec", "holderIdentity", lease->identity,
                "leaseDurationSeconds", (json_int_t)max_u64((lease->duration_ms + 999) / 1000, 1), "acquireTime", now,
                "renewTime", now, "leaseTransitions", transitions);
        if (version)
                json_object_set_new(json_object_get(body, "metadata"), "resourceVersion", json_string(version));
        return body;
}

static void lease_next(struct pool_lease *lease, uint64_t ms)
{
        bool held = pool_lease_is_held(lease);
        loop_timer(lease->loop, &lease->timer, ms * 1000);
        if (held == lease->held)
                return;
        lease->held = held;
        log_text(LOG_INFO, held ? "this gateway holds the lease %s, and removes pods" : "another gateway holds the lease %s",
                lease->name);
        lease->changed(lease->owner);
}

static uint64_t renewal_ms(const struct pool_lease *lease)
{
        return lease->duration_ms / RENEWALS;
}

static void lease_failed(struct pool_lease *lease, const struct kube_answer *answer)
{
        bool denied = answer->refusal == KUBE_RIGHTS_MISSING;
        if (denied && !lease->trouble[0])
                log_text(LOG_WARN, "%s; this gateway removes no pods", answer->error->text);
        snprintf(lease->trouble, sizeof lease->trouble, "%s", denied ? answer->error->text : "");
        lease_next(lease, denied ? DENIED_MS : renewal_ms(lease));
}

/* The answer to a POST or PUT: whether the lease is this gateway's. */
static void on_written(void *owner, const struct kube_answer *answer)
{
        struct pool_lease *lease = owner;
        if (answer->refusal != KUBE_DONE) {
                lease_failed(lease, answer);
                return;
        }
        lease->trouble[0] = 0;
        lease->held_until_us = lease->asked_us + lease->duration_ms * 1000;
        lease_next(lease, renewal_ms(lease));
}

static void write_lease(struct pool_lease *lease, const json_t *old)
{
        const json_t *metadata = json_object_get(old, "metadata"), *spec = json_object_get(old, "spec");
        char path[100];
        json_int_t transitions = json_integer_value(json_object_get(spec, "leaseTransitions"));
        const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));
        bool own = holder && strcmp(holder, lease->identity) == 0;
        lease->asked_us = clock_us();
        if (!old) {
                kube_ask(lease->kube, "POST", "leases", lease_body(lease, NULL, 0), on_written, lease);
                return;
        }
        const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));
        snprintf(path, sizeof path, "leases/%s", lease->name);
        kube_ask(lease->kube, "PUT", path, lease_body(lease, version ? version : "", transitions + !own), on_written,
                lease);
}

/* Another gateway's lease: expired if not renewed for its duration, by this host's clock. */
static bool is_expired(struct pool_lease *lease, const json_t *body)
{
        const json_t *spec = json_object_get(body, "spec");
        const char *version = json_string_value(json_object_get(json_object_get(body, "metadata"), "resourceVersion"));
        const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));
        json_int_t seconds = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));
        if (!holder || !holder[0])
                return true;
        if (!version || strcmp(lease->seen, version) != 0) {
                snprintf(lease->seen, sizeof lease->seen, "%s", version ? version : "");
                lease->seen_us = clock_us();
                return false;
        }
        uint64_t duration_us = seconds > 0 && seconds < 3600 ? (uint64_t)seconds * 1000000 : lease->duration_ms * 1000;
        return clock_us() - lease->seen_us >= duration_us;
}

static void on_read(void *owner, const struct kube_answer *answer)
{
        struct pool_lease *lease = owner;
        const json_t *spec = json_object_get(answer->body, "spec");
        const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));
        if (answer->refusal == KUBE_NOT_FOUND) {
                write_lease(lease, NULL);
                return;
        }
        if (answer->refusal != KUBE_DONE) {
                lease_failed(lease, answer);
                return;
        }
        bool own = holder && strcmp(holder, lease->identity) == 0;
        if (own || is_expired(lease, answer->body)) {
                write_lease(lease, answer->body);
                return;
        }
        lease->trouble[0] = 0;
        lease->held_until_us = 0;
        lease_next(lease, renewal_ms(lease));
}

static void ask_lease(struct pool_lease *lease)
{
        char path[100];
        snprintf(path, sizeof path, "leases/%s", lease->name);
        kube_ask(lease->kube, "GET", path, NULL, on_read, lease);
}

static void on_timer(struct timer *timer)
{
        ask_lease(timer->owner);
}

void pool_lease_start(struct pool_lease *lease, struct loop *loop, struct kube *kube, const char *prefix,
        uint64_t duration_ms, void (*changed)(void *owner), void *owner)
{
        char host[65] = "", random[17];
        size_t len = strlen(prefix);
        gethostname(host, sizeof host - 1);
        hex_random(8, random);
        *lease = (struct pool_lease){
                .loop = loop, .kube = kube, .duration_ms = duration_ms, .changed = changed, .owner = owner
        };
        lease->timer = (struct timer){ .fired = on_timer, .owner = lease };
        while (len && (prefix[len - 1] == '-' || prefix[len - 1] == '.'))
                len--;
        snprintf(lease->name, sizeof lease->name, "%.*s-pool", (int)len, prefix);
        snprintf(lease->identity, sizeof lease->identity, "%s_%s", host, random);
        loop_timer(loop, &lease->timer, 0);
}

void pool_lease_stop(struct pool_lease *lease)
{
        if (!lease->loop)
                return;
        loop_untimer(lease->loop, &lease->timer);
        kube_forget(lease->kube, lease);
        lease->loop = NULL;
}
