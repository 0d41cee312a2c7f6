/*
 * GET /readyz: the last known ability to run a program, from runs over HTTP.  After a while without a run, or after a
 * run unable to begin, a small program is run before the answer; for a host unable to run anything gets no requests to
 * show otherwise.
 */
#include "front/service/service.h"

#include <stdio.h>

#define GOOD_US 30000000ULL                /* how long a started run proves the ability */
#define BAD_US 1000000ULL                  /* how long a run proves the opposite */
#define PROBE_MS 10000
#define CONTROLLERS 3                      /* memory, cpu, pids */

struct ready_wait {
        struct ready_wait *next;
        struct service *service;
        struct http_request *request;
};

/* The engine cannot tell, and the program may have begun. */
static bool is_lost(const struct run_result *result)
{
        return HAS(result, run_result, error) && HAS(&result->error, failure, code) &&
                strcmp(result->error.code, csn_code_name(CSN_E_LOST)) == 0;
}

bool service_ran_nothing(const struct run_result *result)
{
        return !HAS(result, run_result, boundary) && !is_lost(result) && (result->status == status_CAPACITY ||
                                                      result->status == status_ISOLATION_UNAVAILABLE ||
                                                       result->status == status_ENGINE_ERROR);
}

void service_error_of(const struct run_result *result, struct csn_error *ret)
{
        int code = result->status == status_CAPACITY ? CSN_E_BUSY : result->status == status_ISOLATION_UNAVAILABLE
                ? CSN_E_UNSUPPORTED : CSN_E_SYSTEM;
        err_set(ret, code, 0, "%s", HAS(result, run_result, error) ? result->error.message : "the run could not begin");
}

/* Others run.  A lack of capacity without any run means an exhausted resource. */
static bool is_only_full(const struct service *service, const struct run_result *result)
{
        return result->status == status_CAPACITY && engine_running(service->engine) > 0;
}

/* The small program has the daemon's own limits, so its boundary shows the enforceable limits. */
static void note_boundary(struct service_ability *ability, const struct run_result *result)
{
        const struct boundary *boundary = &result->boundary;
        if (HAS(result, run_result, boundary) && strcmp(boundary->backend, "native") == 0)
                ability->lacks_cgroup = boundary->controllers_n < CONTROLLERS;
}

/* why NULL: programs can be run. */
static void learn(struct service *service, const struct csn_error *why)
{
        struct service_ability *ability = &service->ability;
        struct csn_error err;
        ability->known = true;
        ability->at_us = clock_us();
        ability->why = why ? *why : (struct csn_error){ 0 };
        engine_answers(service->engine, &ability->losses, &err);
}

/*
 * A full host can run programs, and a request may ask for something missing on this host: only the small program
 * proves the inability.
 */
void service_note_run(struct service *service, const struct run_result *result)
{
        struct service_ability *ability = &service->ability;
        bool began = HAS(result, run_result, boundary), lost = began && result->status == status_ENGINE_ERROR;
        if (began && !lost)
                learn(service, NULL);
        else if (lost || (service_ran_nothing(result) && !is_only_full(service, result) && !ability->why.code))
                ability->known = false;   /* the supervisor of a lost run is gone */
}

/* A supervisor ended since then may have no successor. */
static bool is_known(const struct service *service)
{
        const struct service_ability *ability = &service->ability;
        struct csn_error err;
        uint32_t losses;
        engine_answers(service->engine, &losses, &err);
        return ability->known && ability->losses == losses &&
               clock_us() - ability->at_us < (ability->why.code ? BAD_US : GOOD_US);
}

/* Why nothing can be begun, as far as known.  Errors: CSN_E_BUSY, and the error of the last run. */
static int judge(const struct service *service, struct csn_error *err)
{
        const struct service_ability *ability = &service->ability;
        uint32_t losses;
        if (service_draining(service, err) < 0)
                return -err->code;
        if (engine_answers(service->engine, &losses, err) < 0)
                return -err->code;
        if (ability->why.code) {
                *err = ability->why;
                return -err->code;
        }
        return service->store ? runs_can_begin(service->store, err) : 0;
}

json_t *service_missing(const struct service *service)
{
        json_t *list = json_array();
        const char *names = service->host ? service->host->missing : "";
        for (size_t len; *names; names += len + (names[len] == ' ')) {
                len = strcspn(names, " ");
                json_array_append_new(list, json_stringn(names, len));
        }
        if (service->ability.lacks_cgroup)
                json_array_append_new(list, json_string("cgroup"));
        return list;
}

static void answer(struct service *service, struct http_request *request)
{
        struct csn_error why;
        if (judge(service, &why) < 0)
                http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &why);
        else
                http_json(request, MHD_HTTP_OK, json_pack("{s:s, s:s, s:o}", "status", "ready", "tier",
                                service->host ? service->host->tier : "host", "missing", service_missing(service)));
}

static void on_probed(void *owner, const struct run_result *result)
{
        struct service *service = owner;
        struct service_ability *ability = &service->ability;
        struct run *probe = ability->probe;
        struct ready_wait *waiting = ability->waiting;
        struct csn_error why;
        bool ran_nothing = service_ran_nothing(result) && !is_only_full(service, result);
        if (ran_nothing)
                service_error_of(result, &why);
        note_boundary(ability, result);
        learn(service, ran_nothing ? &why : NULL);
        ability->probe = NULL;
        ability->waiting = NULL;
        for (struct ready_wait *one = waiting, *next; one; one = next) {
                next = one->next;
                if (one->request) {
                        one->request->gone = NULL;
                        answer(service, one->request);
                }
                free(one);
        }
        run_free(probe);
}

static void start_probe(struct service *service)
{
        static const struct run_events events = { .done = on_probed };
        static char language[] = "bash", code[] = ":", off[] = "off";
        struct run *run = run_new(service->engine);
        struct run_request *request = run_request(run);
        run_set_unreviewed(run);
        SET(request, run_request, language, language);
        SET(request, run_request, code, ((struct bytes){ code, strlen(code) }));
        SET(request, run_request, policy, off);
        SET(&request->limits, limits, wall_ms, PROBE_MS);
        MARK(request, run_request, limits);
        service->ability.probe = run;
        run_start(run, true, &events, service);
}

static void on_gone(struct http_request *request)
{
        struct ready_wait *one = request->owner;
        one->request = NULL;
}

void service_answer_ready(struct http_request *request)
{
        struct csn_error err;
        struct service *service = service_of(request);
        struct service_ability *ability = &service->ability;
        uint32_t losses;
        if (service_draining(service, &err) < 0 || engine_answers(service->engine, &losses, &err) < 0) {
                http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
                return;
        }
        if (is_known(service)) {
                answer(service, request);
                return;
        }
        struct ready_wait *one = mem_alloc(sizeof *one);
        *one = (struct ready_wait){ .next = ability->waiting, .service = service, .request = request };
        ability->waiting = one;
        request->owner = one;
        request->gone = on_gone;
        if (!ability->probe)
                start_probe(service);
}

bool service_is_ready(struct service *service, struct csn_error *ret_why)
{
        struct service_ability *ability = &service->ability;
        if (!is_known(service) && !ability->probe && service_draining(service, ret_why) == 0)
                start_probe(service);
        if (ability->at_us)
                return judge(service, ret_why) == 0;
        err_set(ret_why, CSN_E_BUSY, 0, "the first program has not begun yet");
        return false;
}

void service_ready_close(struct service *service)
{
        for (struct ready_wait *one = service->ability.waiting, *next; one; one = next) {
                next = one->next;
                if (one->request)
                        one->request->gone = NULL;
                free(one);
        }
        run_free(service->ability.probe);
        service->ability = (struct service_ability){ 0 };
}
