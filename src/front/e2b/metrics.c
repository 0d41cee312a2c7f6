/* Resource use of a sandbox of E2B's clients, measured on request; see e2b.h. */
#include "front/e2b/request.h"

#include <stdio.h>

#define SLACK_S 5              /* accepted age of ?end= in seconds: E2B's last value is as old */

struct looking {
        struct psandbox_waiter waiter;
        struct guest_call call;                  /* stat(1) of the file system */
        struct buf said;
        struct http_request *request;
        char id[E2B_ID_LEN + 1];
};

static void looking_free(struct looking *one)
{
        psandbox_unwait(&one->waiter);
        guest_call_close(&one->call);
        buf_done(&one->said);
        free(one);
}

/* "blocks free size". */
static void parse_disk(struct looking *one, json_int_t *ret_used, json_int_t *ret_total)
{
        unsigned long long blocks = 0, free_blocks = 0, size = 0;
        buf_add(&one->said, "", 1);
        if (sscanf(one->said.bytes, "%10llu %10llu %7llu", &blocks, &free_blocks, &size) != 3 || free_blocks > blocks)
                blocks = free_blocks = 0;
        *ret_used = (json_int_t)((blocks - free_blocks) * size);
        *ret_total = (json_int_t)(blocks * size);
}

/* The disk of a sandbox is in memory, so the kernel counts disk use as cache. */
static json_t *metric_of(struct e2b_sandbox *sandbox, struct looking *one)
{
        json_t *use = psandbox_use(sandbox->psandbox);
        double cpu_ms = json_number_value(json_object_get(use, "cpu_ms"));
        json_int_t memory = json_integer_value(json_object_get(use, "memory_bytes")), disk_used, disk_total;
        int64_t now_ms = time_now_ms();
        /* Since the last measurement, or since the start of the sandbox. */
        double passed_ms =
                (double)max_u64((uint64_t)(now_ms - (sandbox->looked_ms ? sandbox->looked_ms : sandbox->started_ms)),
                        1);
        parse_disk(one, &disk_used, &disk_total);
        json_t *json = json_pack("{s:o, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "timestamp", e2b_time(now_ms),
                "timestampUnix", (json_int_t)(now_ms / 1000), "cpuCount", (json_int_t)sandbox->cpus, "cpuUsedPct",
                (cpu_ms - sandbox->looked_cpu_ms) * 100 / passed_ms, "memUsed", memory, "memTotal",
                (json_int_t)sandbox->memory_bytes, "memCache", disk_used, "diskUsed", disk_used, "diskTotal",
                disk_total);
        sandbox->looked_ms = now_ms;
        sandbox->looked_cpu_ms = cpu_ms;
        json_decref(use);
        return json;
}

static void answer(struct looking *one, bool seen)
{
        struct http_request *request = one->request;
        struct e2b_sandbox *sandbox = e2b_sandbox_find(service_of(request), one->id, request->tenant);
        request->gone = NULL;
        http_json(request, MHD_HTTP_OK,
                seen && sandbox && sandbox->psandbox ? json_pack("[o]", metric_of(sandbox, one)) : json_array());
        looking_free(one);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct looking *one = call->owner;
        (void)fds;
        if (kind == GUEST_OUT)
                buf_add(&one->said, bytes + 1, len - 1);
}

static void on_room(struct guest_call *call)
{
        (void)call;
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        answer(call->owner, !error);
}

static void on_stats(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        struct looking *one = waiter->owner;
        char *argv[] = { (char[]){ "/usr/bin/stat" }, (char[]){ "-f" }, (char[]){ "-c" }, (char[]){ "%b %f %S" },
                (char[]){ "/home/user" }, NULL },
             *env[] = { NULL };
        const struct guest_process process = {
                .folder = (char[]){ "/" }, .argv = argv, .argv_n = ARRAY_LEN(argv) - 1, .env = env
        };
        const struct e2b_sandbox *sandbox = e2b_sandbox_find(service_of(one->request), one->id, one->request->tenant);
        struct csn_error err;
        one->call = (struct guest_call){ .events = &events, .owner = one };
        if (error || !sandbox || sandbox->state != E2B_RUNNING ||
                guest_call_process(sandbox->psandbox, &one->call, &process, &err) < 0)
                answer(one, false);
}

static void on_gone(struct http_request *request)
{
        looking_free(request->owner);
}

void e2b_metrics(struct http_request *request)
{
        struct e2b_sandbox *sandbox = e2b_named(request);
        int64_t start_s, end_s, now_s = time_now_ms() / 1000;
        if (!sandbox || !e2b_query_number(request, "start", 0, &start_s) ||
                !e2b_query_number(request, "end", now_s, &end_s))
                return;
        if (sandbox->state != E2B_RUNNING || start_s > now_s || end_s + SLACK_S < now_s) {
                http_json(request, MHD_HTTP_OK, json_array());
                return;
        }
        struct looking *one = mem_alloc(sizeof *one);
        *one = (struct looking){ .waiter = { .done = on_stats, .owner = one }, .request = request };
        memcpy(one->id, sandbox->id, sizeof one->id);
        buf_init(&one->said, 100);
        request->owner = one;
        request->gone = on_gone;
        psandbox_wait(sandbox->psandbox, PSANDBOX_WANTS_STATS, &one->waiter);
        psandbox_request_stats(sandbox->psandbox);
}
