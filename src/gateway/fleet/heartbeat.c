/* GET /v1/gateway/status of a worker, once in gateway.heartbeat. */
#include "gateway/fleet/fleet_private.h"

#include <jansson.h>
#include <stdio.h>

#define TARGET "/v1/gateway/status"

static void send_heartbeat(struct timer *timer);

static const char *text_of(json_t *status, const char *name)
{
        const char *text = json_string_value(json_object_get(status, name));
        return text ? text : "";
}

static uint64_t number_of(json_t *status, const char *name)
{
        json_int_t number = json_integer_value(json_object_get(status, name));
        return number > 0 ? (uint64_t)number : 0;
}

static void read_missing(struct gateway_worker *worker, json_t *list)
{
        json_t *one;
        size_t i, len = 0;
        worker->missing[0] = 0;
        json_array_foreach(list, i, one)
                if (len < sizeof worker->missing)
                        len += (size_t)snprintf(worker->missing + len, sizeof worker->missing - len, "%s%s",
                                len ? "," : "", json_string_value(one) ? json_string_value(one) : "");
}

/* Another process answers at the worker's address than before. */
static void look_at_boot(struct gateway_worker *worker, const char *boot)
{
        if (worker->boot[0] && strcmp(worker->boot, boot) != 0)
                worker_lose(worker, worker->restart_reason[0] ? worker->restart_reason : "Restarted");
        if (strcmp(worker->boot, boot) != 0)
                worker->restart_reason[0] = 0;
        snprintf(worker->boot, sizeof worker->boot, "%s", boot);
}

static void read_status(struct gateway_worker *worker, json_t *status)
{
        look_at_boot(worker, text_of(status, "boot"));
        snprintf(worker->tag, sizeof worker->tag, "%s", text_of(status, "tag"));
        snprintf(worker->version, sizeof worker->version, "%s", text_of(status, "version"));
        snprintf(worker->tier, sizeof worker->tier, "%s", text_of(status, "tier"));
        read_missing(worker, json_object_get(status, "missing"));
        worker->running = number_of(status, "running");
        worker->queued = number_of(status, "queued");
        worker->slots = number_of(status, "slots");
        worker->sandboxes = number_of(status, "sandboxes");
        worker->audit_newest = number_of(status, "audit");
        worker->answered_us = clock_us();
        if (json_is_true(json_object_get(status, "draining")))
                worker_set_state(worker, WORKER_DRAINING, "");
        else if (json_is_true(json_object_get(status, "ready")))
                worker_set_state(worker, WORKER_READY, "");
        else
                worker_set_state(worker, WORKER_NOT_READY, text_of(status, "why"));
}

/* Why an answer is no status. */
static void refuse(struct gateway_worker *worker, int status)
{
        char why[sizeof worker->why];
        if (status == 403 || status == 401)
                snprintf(why, sizeof why, "it refuses this gateway (%d): gateway.key_file has to be the same at both",
                        status);
        else if (status == 404)
                snprintf(why, sizeof why, "it has no %s (404): it is no caissond with gateway.key_file", TARGET);
        else
                snprintf(why, sizeof why, "it answers %s with %d", TARGET, status);
        worker->answered_us = clock_us();
        worker_set_state(worker, WORKER_NOT_READY, why);
}

static void on_answered(struct worker_call *call, enum call_end end, const char *why)
{
        struct gateway_worker *worker = call->owner;
        const struct gateway_settings *settings = &worker->fleet->settings->gateway;
        json_t *status = end == CALL_ANSWERED && call->answer->status == 200
                ? json_loadb(call->body.bytes ? call->body.bytes : "", call->body.len, 0, NULL) : NULL;
        if (json_is_object(status))
                read_status(worker, status);
        else if (end == CALL_ANSWERED)
                refuse(worker, (int)call->answer->status);
        else if (end == CALL_LATE && worker->boot[0]) {
                worker_set_state(worker, WORKER_DOWN, why);
                worker_lose(worker, "Unreachable");
        } else
                worker_set_state(worker, WORKER_DOWN, why);
        json_decref(status);
        worker_call_stop(call);
        if (!worker->removed)
                loop_timer(worker->fleet->loop, &worker->heartbeat_timer, settings->heartbeat * 1000);
}

static void send_heartbeat(struct timer *timer)
{
        struct gateway_worker *worker = timer->owner;
        worker->heartbeat->owner = worker;
        worker->heartbeat->done = on_answered;
        worker_call_start(worker->heartbeat, worker, "GET", TARGET, NULL, NULL, NULL, 0,
                worker->fleet->settings->gateway.down_after);
}

void heartbeat_start(struct gateway_worker *worker)
{
        worker->heartbeat_timer.fired = send_heartbeat;
        loop_timer(worker->fleet->loop, &worker->heartbeat_timer, 0);
}

void heartbeat_stop(struct gateway_worker *worker)
{
        loop_untimer(worker->fleet->loop, &worker->heartbeat_timer);
        worker_call_stop(worker->heartbeat);
}

void heartbeat_now(struct gateway_worker *worker)
{
        if (!worker->heartbeat->worker && worker->heartbeat_timer.fired && !worker->removed)
                loop_timer(worker->fleet->loop, &worker->heartbeat_timer, 0);
}
