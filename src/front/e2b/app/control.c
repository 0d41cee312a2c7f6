/* E2B's control plane: sandboxes are made, described, changed and ended; see e2b.h. */
#include "front/e2b/app/app.h"
#include "front/e2b/envd/envd.h"
#include "front/e2b/interpreter/interpreter.h"
#include "front/e2b/templates/build.h"

#include <stdio.h>

#define LIFE_V1_S 15                       /* default for requests without timeout */

/* ---- waiting for a sandbox ---- */

struct waiting {
        struct e2b_waiter waiter;
        struct http_request *request;
        struct e2b_sandbox *sandbox;
        unsigned status;
        bool made;                         /* by this request; killed if the client disconnects before the answer */
};

static void on_waited(struct e2b_waiter *waiter, const struct csn_error *error)
{
        struct waiting *one = waiter->owner;
        struct http_request *request = one->request;
        request->gone = NULL;
        if (error && one->made)
                e2b_fail(request, error);
        else if (error)
                e2b_conflict(request, error);
        else if (one->status == MHD_HTTP_NO_CONTENT)
                e2b_no_content(request);
        else
                http_json(request, one->status, e2b_sandbox_made(one->sandbox));
        free(one);
}

static void on_waiting_gone(struct http_request *request)
{
        struct waiting *one = request->owner;
        e2b_unwait(&one->waiter);
        if (one->made)
                e2b_sandbox_kill(one->sandbox);
        free(one);
}

static void answer_when(struct http_request *request, struct e2b_sandbox *sandbox, enum e2b_want want, unsigned status,
        bool made)
{
        struct waiting *one = mem_alloc(sizeof *one);
        *one = (struct waiting){ .waiter = { .done = on_waited, .owner = one },
                .request = request,
                .sandbox = sandbox,
                .status = status,
                .made = made };
        request->owner = one;
        request->gone = on_waiting_gone;
        e2b_wait(sandbox, want, &one->waiter);
}

/* ---- making ---- */

/* Whether a kept member is at most E2B_KEPT_MAX long as text. */
static int check_length(const json_t *body, const char *name, struct csn_error *err)
{
        const json_t *given = json_object_get(body, name);
        size_t len = given ? json_dumpb(given, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) : 0;
        return len > E2B_KEPT_MAX
                ? err_field(err, name, "%s has %zu bytes as JSON, %llu are possible", name, len, E2B_KEPT_MAX)
                : 0;
}

/* Volume mounts are not supported here, and refused: no client may find a folder without its volume. */
static int check_mounts(const json_t *body, struct csn_error *err)
{
        const json_t *mounts = json_object_get(body, "volumeMounts");
        if (!mounts || json_is_null(mounts) || (json_is_array(mounts) && !json_array_size(mounts)))
                return 0;
        return err_field(err, "volumeMounts",
                "volume mounts are not enabled for clients of E2B; leave volumeMounts out, or use POST /v1/sandboxes with volumes");
}

/* An object of texts, or nothing.  The caller's reference; NULL: another value. */
static json_t *texts_of(const json_t *body, const char *name, struct csn_error *err)
{
        json_t *given = json_object_get(body, name), *value;
        const char *key;
        if (!given || json_is_null(given))
                return json_object();
        if (!json_is_object(given) || json_object_size(given) > E2B_TEXTS_MAX) {
                err_field(err, name, "%s has to be an object of texts, at most %d", name, E2B_TEXTS_MAX);
                return NULL;
        }
        json_object_foreach(given, key, value) {
                if (!json_is_string(value)) {
                        err_field(err, name, "%s: the value of %.60s has to be a text", name, key);
                        return NULL;
                }
        }
        return json_incref(given);
}

/* ---- hooks of a sandbox ---- */

static void on_runs(struct e2b_sandbox *sandbox)
{
        if (sandbox->wish.template->interprets && !sandbox->interpreter)
                e2b_interpreter_warm(sandbox);
}

static uint64_t program_started_us(const struct e2b_sandbox *sandbox)
{
        return e2b_envd_started_us(sandbox->envd);
}

static void on_ended(struct e2b_sandbox *sandbox)
{
        e2b_envd_free(sandbox->envd);
        e2b_interpreter_free(sandbox->interpreter);
        sandbox->envd = NULL;
        sandbox->interpreter = NULL;
}

static const struct e2b_hooks hooks = { .runs = on_runs, .program_started_us = program_started_us, .ended = on_ended };

/* The caller frees *ret and *ret_image, also after an error. */
static int wish_of(struct http_request *request, const json_t *body, bool secure, struct e2b_wish *ret,
        struct e2b_image **ret_image, struct csn_error *err)
{
        const char *name = json_string_value(json_object_get(body, "templateID"));
        const json_t *resume = json_object_get(body, "autoResume"), *policy = json_object_get(resume, "policy");
        json_t *network = json_object_get(body, "network");
        *ret = (struct e2b_wish){ .hooks = &hooks,
                .internet = !json_is_false(json_object_get(body, "allow_internet_access")),
                .secure = secure,
                .closed = json_is_false(json_object_get(network, "allowPublicTraffic")),
                .auto_pause = json_is_true(json_object_get(body, "autoPause")),
                .keep_memory = !json_is_false(json_object_get(body, "autoPauseMemory")),
                .quota = service_quota(request),
                .auto_resume = json_is_true(json_object_get(resume, "enabled")) ||
                        (json_is_string(policy) && strcmp(json_string_value(policy), "off") != 0) };
        if (!name)
                return err_field(err, "templateID",
                        "templateID is missing: base, code-interpreter-v1, or one that was built");
        if (e2b_template_find(service_of(request), request->tenant, name, &ret->template, ret_image, &ret->build_spec,
                              err) < 0)
                return -err->code;
        if (check_mounts(body, err) < 0 || check_length(body, "network", err) < 0 ||
                check_length(body, "metadata", err) < 0 || check_length(body, "envVars", err) < 0 ||
                e2b_network_check(network, err) < 0)
                return -err->code;
        if (json_is_object(network))
                ret->network = json_incref(network);
        ret->env = texts_of(body, "envVars", err);
        ret->metadata = ret->env ? texts_of(body, "metadata", err) : NULL;
        return ret->metadata ? 0 : -err->code;
}

static void create(struct http_request *request, const json_t *body, bool secure, unsigned usual_s)
{
        struct e2b_sandbox *sandbox;
        struct e2b_wish wish = { 0 };
        struct e2b_image *image = NULL;
        struct http_limit limit = { 0 };
        struct csn_error err;
        uint64_t life_ms;
        if (!e2b_life(request, body, "timeout", usual_s, &life_ms))
                return;
        if (service_has_cpu_time(request, &limit, &err) < 0) {
                e2b_fail(request, &err);
                return;
        }
        if (!life_ms) {
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "timeout is 0; a new sandbox needs some seconds");
                return;
        }
        if (wish_of(request, body, secure, &wish, &image, &err) < 0 ||
            e2b_sandbox_new(service_of(request), request->tenant, &wish, image, &sandbox, &err) < 0) {
                e2b_fail(request, &err);
        } else {
                e2b_sandbox_set_end(sandbox, life_ms);
                answer_when(request, sandbox, E2B_WANTS_READY, MHD_HTTP_CREATED, true);
        }
        e2b_image_unref(image);
        e2b_wish_done(&wish);
}

static const struct e2b_member new_members[] = {
        { .name = "templateID", .kind = E2B_TEXT },
        { .name = "secure", .kind = E2B_BOOL },
        { .name = "allow_internet_access", .kind = E2B_BOOL },
        { .name = "network", .kind = E2B_OBJECT },
        { .name = "network.allowPublicTraffic", .kind = E2B_BOOL },
        { .name = "autoPause", .kind = E2B_BOOL },
        { .name = "autoPauseMemory", .kind = E2B_BOOL },
        { .name = "autoResume", .kind = E2B_OBJECT },
        { .name = "autoResume.enabled", .kind = E2B_BOOL },
        { .name = "autoResume.policy", .kind = E2B_TEXT },
        { 0 },
};

static void post_v2(struct http_request *request)
{
        json_t *body = e2b_body(request, new_members);
        if (body)
                create(request, body, true, E2B_LIFE_S);
        json_decref(body);
}

static void post_v1(struct http_request *request)
{
        json_t *body = e2b_body(request, new_members);
        if (body)
                create(request, body, json_is_true(json_object_get(body, "secure")), LIFE_V1_S);
        json_decref(body);
}

/* ---- a sandbox ---- */

static const struct e2b_member no_members[] = { { 0 } },
                               memory_members[] = { { .name = "memory", .kind = E2B_BOOL }, { 0 } };

static void get(struct http_request *request)
{
        const struct e2b_sandbox *sandbox = e2b_named(request);
        const struct store_key *key = service_key(request);
        if (sandbox)
                http_json(request, MHD_HTTP_OK, e2b_sandbox_describe(sandbox, !key || key->scopes & SCOPE_SANDBOXES));
}

/* A sandbox already ending is accepted: the client may wait for its end. */
static void delete(struct http_request *request)
{
        struct e2b_sandbox *sandbox = e2b_named_or_ending(request);
        if (!sandbox)
                return;
        answer_when(request, sandbox, E2B_WANTS_OVER, MHD_HTTP_NO_CONTENT, false);
        e2b_sandbox_kill(sandbox);
}

static void set_life(struct http_request *request, const char *name, unsigned usual_s, bool only_longer)
{
        struct e2b_sandbox *sandbox = e2b_named(request);
        json_t *body = sandbox ? e2b_body(request, no_members) : NULL;
        uint64_t life_ms;
        if (body && e2b_life(request, body, name, usual_s, &life_ms)) {
                if (!e2b_sandbox_is_paused(sandbox) &&
                        (!only_longer || time_now_ms() + (int64_t)life_ms > sandbox->end_ms))
                        e2b_sandbox_set_end(sandbox, life_ms);
                e2b_no_content(request);
        }
        json_decref(body);
}

static void timeout(struct http_request *request)
{
        set_life(request, "timeout", 0, false);   /* a missing timeout must not end the sandbox */
}

static void refresh(struct http_request *request)
{
        set_life(request, "duration", LIFE_V1_S, true);
}

static void resume(struct http_request *request, struct e2b_sandbox *sandbox, uint64_t life_ms)
{
        struct csn_error err;
        if (sandbox->state != E2B_PAUSED && sandbox->state != E2B_RESUMING)
                e2b_error(request, MHD_HTTP_CONFLICT, "sandbox %s is running", sandbox->id);
        else if (e2b_sandbox_resume(sandbox, life_ms, &err) < 0)
                e2b_conflict(request, &err);
        else
                answer_when(request, sandbox, E2B_WANTS_READY, MHD_HTTP_CREATED, false);
}

static void join(struct http_request *request, unsigned usual_s)
{
        struct e2b_sandbox *sandbox = e2b_named(request);
        json_t *body = sandbox ? e2b_body(request, memory_members) : NULL;
        uint64_t life_ms;
        if (body && e2b_life(request, body, "timeout", usual_s, &life_ms)) {
                if (e2b_sandbox_is_paused(sandbox)) {
                        resume(request, sandbox, life_ms);
                } else {
                        if (time_now_ms() + (int64_t)life_ms > sandbox->end_ms)
                                e2b_sandbox_set_end(sandbox, life_ms);
                        http_json(request, MHD_HTTP_OK, e2b_sandbox_made(sandbox));
                }
        }
        json_decref(body);
}

static void connect_v2(struct http_request *request)
{
        join(request, E2B_LIFE_S);
}

static void connect_v1(struct http_request *request)
{
        join(request, LIFE_V1_S);
}

static void post_resume(struct http_request *request)
{
        struct e2b_sandbox *sandbox = e2b_named(request);
        json_t *body = sandbox ? e2b_body(request, no_members) : NULL;
        uint64_t life_ms;
        if (body && e2b_life(request, body, "timeout", LIFE_V1_S, &life_ms))
                resume(request, sandbox, life_ms);
        json_decref(body);
}

static void post_pause(struct http_request *request)
{
        struct e2b_sandbox *sandbox = e2b_named(request);
        json_t *body = sandbox ? e2b_body(request, memory_members) : NULL;
        struct csn_error err;
        if (body && e2b_sandbox_pause(sandbox, !json_is_false(json_object_get(body, "memory")), &err) < 0)
                e2b_conflict(request, &err);
        else if (body)
                answer_when(request, sandbox, E2B_WANTS_PAUSED, MHD_HTTP_NO_CONTENT, false);
        json_decref(body);
}

static void health(struct http_request *request)
{
        http_answer(request, MHD_HTTP_OK, "text/plain", mem_copy("OK", 2), 2);
}

/* ---- routes ---- */

#define MAKES SCOPE_SANDBOXES
#define READS (SCOPE_SANDBOXES | SCOPE_READ)

const struct http_route e2b_control_routes[] = {
        { "POST", "/v2/sandboxes", "*", MAKES, BODY_TREE, post_v2, "As E2B: make a sandbox.", NULL, NULL },
        { "GET", "/v2/sandboxes", "*", READS, BODY_NONE, e2b_list, "As E2B: the sandboxes, by pages and filters.", NULL,
                NULL },
        { "POST", "/v2/sandboxes/{id}/connect", "*", MAKES, BODY_TREE, connect_v2,
                "As E2B: let a sandbox live longer, or wake it.", NULL, NULL },
        { "POST", "/sandboxes", "*", MAKES, BODY_TREE, post_v1, "As E2B: make a sandbox.", NULL, NULL },
        { "GET", "/sandboxes", "*", READS, BODY_NONE, e2b_list, "As E2B: the sandboxes.", NULL, NULL },
        { "GET", "/sandboxes/{id}", "*", READS, BODY_NONE, get, "As E2B: a sandbox.", NULL, NULL },
        { "DELETE", "/sandboxes/{id}", "*", MAKES, BODY_NONE, delete, "As E2B: end a sandbox.", NULL, NULL },
        { "POST", "/sandboxes/{id}/timeout", "*", MAKES, BODY_TREE, timeout, "As E2B: when it ends.", NULL, NULL },
        { "POST", "/sandboxes/{id}/refreshes", "*", MAKES, BODY_TREE, refresh, "As E2B: let it live longer.", NULL,
                NULL },
        { "POST", "/sandboxes/{id}/connect", "*", MAKES, BODY_TREE, connect_v1,
                "As E2B: let a sandbox live longer, or wake it.", NULL, NULL },
        { "POST", "/sandboxes/{id}/pause", "*", MAKES, BODY_TREE, post_pause, "As E2B: everything in it stands still.",
                NULL, NULL },
        { "POST", "/sandboxes/{id}/resume", "*", MAKES, BODY_TREE, post_resume, "As E2B: it goes on.", NULL, NULL },
        { "POST", "/sandboxes/{id}/snapshots", "*", MAKES, BODY_TREE, e2b_post_snapshot,
                "As E2B: keep its files, as a template.", NULL, NULL },
        { "POST", "/sandboxes/{id}/fork", "*", MAKES, BODY_TREE, e2b_fork, "As E2B: make others with its files.", NULL,
                NULL },
        { "GET", "/sandboxes/{id}/metrics", "*", READS, BODY_NONE, e2b_metrics, "As E2B: what a sandbox uses.", NULL,
                NULL },
        { "PUT", "/sandboxes/{id}/network", "*", MAKES, BODY_TREE, e2b_put_network,
                "As E2B: what programs in a sandbox may reach.", NULL, NULL },
        { "GET", "/sandboxes/{id}/logs", "*", READS, BODY_NONE, e2b_get_logs, "As E2B: what happened in a sandbox.",
                NULL, NULL },
        { "GET", "/v2/sandboxes/{id}/logs", "*", READS, BODY_NONE, e2b_get_logs, "As E2B: what happened in a sandbox.",
                NULL, NULL },
        { "GET", "/snapshots", "*", READS, BODY_NONE, e2b_list_snapshots, "As E2B: the snapshots, by pages.", NULL,
                NULL },
        { "GET", "/templates/aliases/{alias}", "*", READS, BODY_NONE, e2b_template_alias,
                "As E2B: which template has a name.", NULL, NULL },
        { "GET", "/templates", "*", READS, BODY_NONE, e2b_list_templates, "As E2B: the templates.", NULL, NULL },
        { "GET", "/v2/templates", "*", READS, BODY_NONE, e2b_list_templates, "As E2B: the templates.", NULL, NULL },
        { "GET", "/templates/{id}", "*", READS, BODY_NONE, e2b_get_template, "As E2B: a template.", NULL, NULL },
        { "DELETE", "/templates/tags", "*", MAKES, BODY_TREE, builds_delete_tags, "As E2B: take tags away.", NULL,
                NULL },
        { "DELETE", "/templates/{id}", "*", MAKES, BODY_NONE, e2b_delete_template,
                "As E2B: forget a template or a snapshot.", NULL, NULL },
        { "PATCH", "/v2/templates/{id}", "*", MAKES, BODY_TREE, builds_patch_template,
                "As E2B: whether others see a template; here nobody does.", NULL, NULL },
        { "POST", "/v3/templates", "*", MAKES, BODY_TREE, builds_post_template,
                "As E2B: a template, and a build of it that waits.", NULL, NULL },
        { "POST", "/v2/templates", "*", MAKES, BODY_TREE, builds_post_template,
                "As E2B: a template, and a build of it that waits.", NULL, NULL },
        { "GET", "/templates/{id}/files/{hash}", "*", MAKES, BODY_NONE, archive_get,
                "As E2B: where to put the files of a step.", NULL, NULL },
        { "PUT", "/templates/files/{key}", "*", 0, BODY_STREAM, archive_put,
                "The files of a step, as an archive of tar.", NULL, NULL },
        { "POST", "/v2/templates/{id}/builds/{build}", "*", MAKES, BODY_TREE | BODY_MIB(1), builds_post,
                "As E2B: begin a build.", NULL, NULL },
        { "GET", "/templates/{id}/builds/{build}/status", "*", READS, BODY_NONE, builds_status,
                "As E2B: how a build goes on, and its log.", NULL, NULL },
        { "POST", "/templates/tags", "*", MAKES, BODY_TREE, builds_post_tags, "As E2B: give a build tags.", NULL,
                NULL },
        { "GET", "/templates/{id}/tags", "*", READS, BODY_NONE, builds_get_tags, "As E2B: the tags of a template.",
                NULL, NULL },
        { "GET", "/health", "*", 0, BODY_NONE, health, "As E2B: whether it answers.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};
