/* The gateway's own answers: health, metrics, the wish for more workers. */
#include "gateway/gateway_private.h"

#include <inttypes.h>
#include <stdio.h>

/* Liveness of the process, and the state of Kubernetes. */
void own_health(struct http_request *request)
{
        const struct gateway *gateway = gateway_of(request);
        char why[200] = "";
        bool connected = !gateway->kube || kube_is_connected(gateway->kube, why, sizeof why);
        json_t *answer = json_pack("{s:s, s:I, s:b}", "status", "ok", "workers_ready",
                (json_int_t)fleet_ready(gateway->fleet), "kubernetes", connected && gateway->kube);
        if (!connected)
                json_object_set_new(answer, "why", json_string(why));
        http_json(request, MHD_HTTP_OK, answer);
}

void own_ready(struct http_request *request)
{
        const struct gateway *gateway = gateway_of(request);
        const char *trouble = gateway->pool ? pool_trouble(gateway->pool) : "";
        struct csn_error err;
        if (gateway->draining)
                err_set(&err, CSN_E_BUSY, 0, "the gateway ends");
        else if (fleet_ready(gateway->fleet) || (gateway->pool && !trouble[0] && kube_has_listed(gateway->kube))) {
                http_json(request, MHD_HTTP_OK, json_pack("{s:s}", "status", "ready"));
                return;
        } else
                err_set(&err, CSN_E_BUSY, 0, "no worker is ready%s%s", trouble[0] ? ": " : "", trouble);
        http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
}

/* ---- the load ---- */

struct load {
        uint64_t ready, slots, used;       /* used: running and queued */
};

static struct load load_of(const struct gateway *gateway)
{
        struct load load = { 0 };
        for (const struct gateway_worker *worker = fleet_first(gateway->fleet); worker; worker = worker->next)
                if (worker_takes_work(worker)) {
                        load.ready++;
                        load.slots += worker->slots;
                        load.used += worker->running + worker->queued;
                }
        return load;
}

static double utilization(const struct load *load)
{
        return load->slots ? (double)load->used / (double)load->slots : 0;
}

void own_scale(struct http_request *request)
{
        const struct gateway *gateway = gateway_of(request);
        const struct load load = load_of(gateway);
        const struct kubernetes_settings *settings = &gateway->settings->kubernetes;
        uint64_t each = load.ready ? load.slots / load.ready : 0, waiting = gateway->waiting_n,
                 target = settings->scale_up_at * each,
                 desired = target ? ((load.used + waiting) * 100 + target - 1) / target : load.ready + (waiting > 0);
        desired = min_u64(max_u64(desired, settings->pool_min), settings->pool_max);
        http_json(request, MHD_HTTP_OK, json_pack("{s:s, s:f, s:I, s:I, s:I}", "pool", settings->pod_prefix, "utilization",
                utilization(&load), "desired", (json_int_t)desired, "ready", (json_int_t)load.ready, "waiting",
                (json_int_t)waiting));
}

void own_workers(struct http_request *request)
{
        const struct gateway *gateway = gateway_of(request);
        json_t *list = json_array();
        for (const struct gateway_worker *worker = fleet_first(gateway->fleet); worker; worker = worker->next)
                json_array_append_new(list,
                        json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "name", worker->name,
                                "url", worker->url, "state", worker_state_name(worker->state), "cordoned",
                                worker->cordoned, "why", worker->why, "version", worker->version, "tier", worker->tier,
                                "missing", worker->missing, "running", (json_int_t)worker->running, "queued",
                                (json_int_t)worker->queued, "slots", (json_int_t)worker->slots, "sandboxes",
                                (json_int_t)worker->sandboxes));
        http_json(request, MHD_HTTP_OK, json_pack("{s:o}", "workers", list));
}

/* ---- metrics ---- */

static void add_gauge(struct buf *text, const char *name, const char *kind, const char *help, uint64_t value)
{
        buf_printf(text, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help, name, kind, name, value);
}

static uint64_t state_of(const struct gateway_worker *worker) { return worker->state == WORKER_READY; }
static uint64_t running_of(const struct gateway_worker *worker) { return worker->running; }
static uint64_t queued_of(const struct gateway_worker *worker) { return worker->queued; }
static uint64_t slots_of(const struct gateway_worker *worker) { return worker->slots; }
static uint64_t sandboxes_of(const struct gateway_worker *worker) { return worker->sandboxes; }
static uint64_t sent_of(const struct gateway_worker *worker) { return worker->sent; }
static uint64_t requests_of(const struct gateway_worker *worker) { return worker->requests; }
static uint64_t failures_of(const struct gateway_worker *worker) { return worker->failures; }

static const struct {
        const char *name, *kind, *help;
        uint64_t (*value)(const struct gateway_worker *worker);
} worker_metrics[] = {
        { "caisson_gateway_worker_ready", "gauge", "Whether the worker takes work.", state_of },
        { "caisson_gateway_worker_running", "gauge", "Runs of the worker.", running_of },
        { "caisson_gateway_worker_queued", "gauge", "Runs that wait at the worker.", queued_of },
        { "caisson_gateway_worker_slots", "gauge", "Runs that the worker carries out at the same time.", slots_of },
        { "caisson_gateway_worker_sandboxes", "gauge", "Persistent sandboxes of the worker.", sandboxes_of },
        { "caisson_gateway_worker_in_flight", "gauge", "Requests of this gateway at the worker.", sent_of },
        { "caisson_gateway_worker_requests_total", "counter", "Attempts at the worker.", requests_of },
        { "caisson_gateway_worker_failures_total", "counter", "Refused and broken connections.", failures_of },
};

void own_metrics(struct http_request *request)
{
        const struct gateway *gateway = gateway_of(request);
        const struct load load = load_of(gateway);
        struct buf text;
        buf_init(&text, 16 * MIB);
        add_gauge(&text, "caisson_gateway_requests_total", "counter", "Requests for workers.", gateway->count.requests);
        add_gauge(&text, "caisson_gateway_retries_total", "counter", "Requests that another worker got.", gateway->count.retried);
        add_gauge(&text, "caisson_gateway_lost_total", "counter", "Requests whose worker was lost.", gateway->count.lost);
        add_gauge(&text, "caisson_gateway_refused_total", "counter", "Requests that no worker accepted.", gateway->count.refused);
        add_gauge(&text, "caisson_gateway_waited_total", "counter", "Requests that waited for a worker.", gateway->count.waited);
        add_gauge(&text, "caisson_gateway_waiting", "gauge", "Requests that wait for a worker.", gateway->waiting_n);
        add_gauge(&text, "caisson_gateway_workers_ready", "gauge", "Workers that take work.", load.ready);
        buf_printf(&text, "# HELP caisson_gateway_utilization Runs and queue of all ready workers, over their slots.\n"
                          "# TYPE caisson_gateway_utilization gauge\ncaisson_gateway_utilization %.4f\n",
                utilization(&load));
        for (size_t i = 0; i < ARRAY_LEN(worker_metrics); i++) {
                buf_printf(&text, "# HELP %s %s\n# TYPE %s %s\n", worker_metrics[i].name, worker_metrics[i].help,
                        worker_metrics[i].name, worker_metrics[i].kind);
                for (const struct gateway_worker *worker = fleet_first(gateway->fleet); worker; worker = worker->next)
                        buf_printf(&text, "%s{worker=\"%s\",version=\"%s\",tier=\"%s\"} %" PRIu64 "\n",
                                worker_metrics[i].name, worker->name, worker->version, worker->tier,
                                worker_metrics[i].value(worker));
        }
        http_answer(request, MHD_HTTP_OK, "text/plain; version=0.0.4", text.bytes, text.len);
}
