/*
 * The front for gateways: questions to this worker.  Its routes are an application of their own, outside the
 * description of the interface for clients; without gateway.key_file the routes do not exist.
 */
#include "front/api/api.h"
#include "front/http/credentials.h"
#include "front/service/parse.h"
#include "hop/worker.h"

#include "config.h"

#define PATH "/v1/gateway/"
#define NOTE_KEY_MAX 255                   /* bytes of an Idempotency-Key, as in requests */

/* ---- GET /v1/gateway/status ---- */

static size_t count_sandboxes(struct engine *engine)
{
        size_t n = 0;
        for (struct psandbox *one = psandbox_next(engine, NULL, NULL); one; one = psandbox_next(engine, one, NULL))
                n++;
        return n;
}

static void get_status(struct http_request *request)
{
        struct service *service = service_of(request);
        const struct engine_load load = engine_load(service->engine);
        struct csn_error why = { 0 }, err;
        bool ready = service_is_ready(service, &why);
        int64_t newest = 0;
        if (service->store && runs_newest(service->store, &newest, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        http_json(request, MHD_HTTP_OK,
                json_pack("{s:s, s:s, s:s, s:b, s:s+, s:b, s:I, s:I, s:I, s:I, s:s, s:o, s:I}", "tag", service->worker->tag,
                        "boot", service->worker->boot, "version", VERSION, "ready", (int)ready, "why",
                        ready ? "" : why.text, "", "draining", service_draining(service, &err) < 0, "running",
                        (json_int_t)load.running, "queued", (json_int_t)load.queued, "slots", (json_int_t)load.slots,
                        "sandboxes", (json_int_t)count_sandboxes(service->engine), "tier", service->host->tier,
                        "missing", service_missing(service), "audit", (json_int_t)newest));
}

/* ---- GET /v1/gateway/audit ---- */

#define AUDIT_ROWS_MAX 500

/* A number of the query; negative: none, or no number. */
static int64_t query_number(struct http_request *request, const char *name, int64_t usual)
{
        const char *text = http_query(request, name);
        char *end;
        if (!text)
                return usual;
        errno = 0;
        long long number = strtoll(text, &end, 10);
        return *text < '0' || *text > '9' || *end || errno ? -1 : number;
}

static void get_audit(struct http_request *request)
{
        struct csn_error err;
        struct store *store = service_of(request)->store;
        struct store_run *rows = NULL;
        size_t n = 0;
        int64_t newest = 0, after = query_number(request, "after", 0),
                limit = query_number(request, "limit", AUDIT_ROWS_MAX);
        int rc = after < 0 || limit < 1 || limit > AUDIT_ROWS_MAX
                ? err_field(&err, "", "after is the number of a row, limit 1 to %d", AUDIT_ROWS_MAX) : 0;
        if (rc == 0 && store)
                rc = runs_newest(store, &newest, &err);
        if (rc == 0 && store)
                rc = runs_after(store, after, (size_t)limit, &request->arena, &rows, &n, &err);
        if (rc < 0) {
                http_fail(request, &err);
                return;
        }
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, runs_write_row(&rows[i]));
        http_json(request, MHD_HTTP_OK, json_pack("{s:o, s:I}", "rows", list, "newest", (json_int_t)newest));
}

/* ---- GET /v1/gateway/attempts/{id} ---- */

/* 404 bars the attempt.  `over`: its request has ended, so its results are in the store. */

static void get_attempt(struct http_request *request)
{
        struct csn_error err;
        const char *id = http_part(request, 0);
        if (attempts_is_id(id) && attempts_ask(service_of(request)->worker->attempts, id, clock_us())) {
                bool over = attempts_is_over(service_of(request)->worker->attempts, id);
                http_json(request, MHD_HTTP_OK, json_pack("{s:b, s:b}", "admitted", 1, "over", (int)over));
                return;
        }
        err_field(&err, "", "no attempt %.60s was admitted here, and none will be", id);
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
}

/* ---- POST /v1/gateway/find ---- */

static const char *const kinds[] = { "workspace", "volume", "layer", "template", "idempotency_key",
        "nemo_session" };

/* Sets tenant, kind, name and user; the texts belong to the JSON. */
static int read_name(const json_t *json, struct front_name *ret, struct csn_error *err)
{
        const json_t *user = json_object_get(json, "user");
        size_t n = 0;
        *ret = (struct front_name){ .tenant = json_string_value(json_object_get(json, "tenant")),
                .user = user ? json_string_value(user) : "" };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                const char *name = json_string_value(json_object_get(json, kinds[i]));
                if (!name)
                        continue;
                ret->kind = kinds[i];
                ret->name = name;
                n++;
        }
        bool has_tenant = json_object_get(json, "tenant");
        if ((ret->tenant || !has_tenant) && ret->user && n == 1 &&
                json_object_size(json) == 1 + (size_t)has_tenant + (user != NULL))
                return 0;
        return err_field(err, "/",
                "the body has one of workspace, volume, layer, template, idempotency_key and nemo_session, and perhaps a "
                "tenant, and of a workspace perhaps a user; all are texts");
}

/* Without a tenant in the body: the tenant of the request's key, which the gateway passed on. */
static int find_tenant(struct http_request *request, struct front_name *ret, struct csn_error *err)
{
        struct service *service = service_of(request);
        const char *given = credentials_of(request), *text = given ? credentials_decode(request, given) : NULL;
        bool is_ours = text && strncmp(text, "csn_", 4) == 0;
        struct store_key key;
        if (ret->tenant)
                return 0;
        if (service->settings->gateway.keys == gateway_keys_GATEWAY)
                return err_field(err, "/tenant", "the body has no tenant, and the keys are the gateway's");
        /* Clients of E2B always send some key, also where none is needed. */
        if (!is_ours && service->settings->engine.http_keyless) {
                ret->tenant = "local";
                return 0;
        }
        if (keys_find(service->store, text ? text : "", &request->arena, &key, err) < 0)
                return -err->code;
        ret->tenant = key.tenant;
        return 0;
}

/* The name or the id of a workspace, as in the routes of workspaces. */
static int find_workspace(struct store *store, const struct front_name *name, bool *ret, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct store_workspace found;
        char id[WORKSPACE_ID_MAX];
        workspaces_id(name->tenant, name->user, name->name, id);
        int rc = workspaces_find(store, id, name->tenant, &arena, &found, ret, err);
        if (rc == 0 && !*ret)
                rc = workspaces_find(store, name->name, name->tenant, &arena, &found, ret, err);
        arena_done(&arena);
        return rc;
}

static int find_volume(struct store *store, const struct front_name *name, bool *ret, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct store_volume found;
        int rc = volumes_find(store, name->tenant, name->name, &arena, &found, ret, err);
        arena_done(&arena);
        return rc;
}

static int find_key(struct store *store, const struct front_name *name, bool *ret, struct csn_error *err)
{
        struct arena arena = { 0 };
        enum idempotency_found found;
        char *answer;
        size_t len;
        int http, rc = idempotency_find(store, name->tenant, name->name, &arena, &found, &http, &answer, &len, err);
        *ret = rc == 0 && found != IDEMPOTENCY_NEW;
        arena_done(&arena);
        return rc;
}

static const struct {
        const char *kind;
        int (*find)(struct store *store, const struct front_name *name, bool *ret, struct csn_error *err);
} stored[] = { { "workspace", find_workspace }, { "volume", find_volume }, { "idempotency_key", find_key } };

static int find_name(struct service *service, const struct front_name *name, enum front_found *ret,
        struct csn_error *err)
{
        bool there = false;
        int rc = 0;
        *ret = FRONT_ABSENT;
        for (size_t i = 0; i < ARRAY_LEN(stored); i++)
                if (strcmp(stored[i].kind, name->kind) == 0)
                        rc = stored[i].find(service->store, name, &there, err);
        for (const struct front *const *front = service->fronts; rc == 0 && !there && *front; front++)
                if ((*front)->find && (*ret = (*front)->find(service, name)) != FRONT_ABSENT)
                        return 0;
        *ret = there ? FRONT_FOUND : FRONT_ABSENT;
        return rc;
}

/* This worker's note as a witness: the request with the key went to another worker; NULL: no note. */
static json_t *note_of(const struct service *service, const struct front_name *name)
{
        struct arena arena = { 0 };
        struct csn_error err;
        struct store_note note;
        bool there = false;
        json_t *json = NULL;
        if (witnesses_find(service->store, name->tenant, name->name, &arena, &note, &there, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        int64_t age_ms = there ? time_now_ms() - note.at_ms : 0;
        if (there)
                json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "tag", note.tag, "attempt", note.attempt, "pod",
                        note.pod, "uid", note.uid, "hash", note.hash, "age_ms",
                        (json_int_t)(age_ms > 0 ? age_ms : 0));
        arena_done(&arena);
        return json;
}

static void find(struct http_request *request, const json_t *json)
{
        struct csn_error err;
        struct front_name name;
        enum front_found found = FRONT_ABSENT;
        struct service *service = service_of(request);
        int rc = read_name(json, &name, &err);
        rc = rc < 0 ? rc : find_tenant(request, &name, &err);
        if (rc == 0 && strcmp(name.kind, "layer") == 0) {
                api_find_layer(request, name.tenant, name.name);
                return;
        }
        if (rc == 0)
                rc = find_name(service, &name, &found, &err);
        if (rc < 0) {
                http_fail(request, &err);
                return;
        }
        json_t *answer = json_pack("{s:b, s:b}", "found", found != FRONT_ABSENT, "everywhere",
                found == FRONT_EVERYWHERE);
        json_t *note = strcmp(name.kind, "idempotency_key") == 0 ? note_of(service, &name) : NULL;
        if (note)
                json_object_set_new(answer, "sent", note);
        http_json(request, MHD_HTTP_OK, answer);
}

static void post_find(struct http_request *request)
{
        struct csn_error err;
        json_t *json = json_body(request, &err);
        if (json)
                find(request, json);
        else
                http_fail(request, &err);
        json_decref(json);
}

/* ---- POST /v1/gateway/witness ---- */

#define REPLACES_MAX 64

/* A text of at most `most` bytes; "" if the member is missing and may be. */
static const char *member_of(const json_t *json, const char *name, bool required, size_t most, struct csn_error *err)
{
        json_t *value = json_object_get(json, name);
        const char *text = value || required ? json_string_value(value) : "";
        if (!err->code && (!text || strlen(text) > most || (required && !text[0]))) {
                char where[40];
                snprintf(where, sizeof where, "/%s", name);
                err_field(err, where, "%s is a text of at most %zu bytes", name, most);
        }
        return text;
}

static bool read_replaces(const json_t *list, const char *ret[static REPLACES_MAX], size_t *ret_n)
{
        json_t *one;
        size_t i;
        *ret_n = 0;
        if (list && (!json_is_array(list) || json_array_size(list) > REPLACES_MAX))
                return false;
        json_array_foreach(list, i, one) {
                if (!json_is_string(one) || !attempts_is_id(json_string_value(one)))
                        return false;
                ret[(*ret_n)++] = json_string_value(one);
        }
        return true;
}

/* The texts belong to the JSON. */
static int read_note(struct http_request *request, const json_t *json, struct store_note *ret, struct csn_error *err)
{
        struct front_name name = { .tenant = json_string_value(json_object_get(json, "tenant")),
                .kind = "idempotency_key",
                .user = "" };
        bool withdraw = json_is_true(json_object_get(json, "withdraw"));
        *err = (struct csn_error){ 0 };
        *ret = (struct store_note){
                .name = member_of(json, "idempotency_key", true, NOTE_KEY_MAX, err),
                .attempt = member_of(json, "attempt", true, HOP_ATTEMPT_LEN, err),
                .tag = member_of(json, "tag", !withdraw, HOP_TAG_LEN, err),
                .hash = member_of(json, "hash", !withdraw, 64, err),
                .pod = member_of(json, "pod", false, 253, err),
                .uid = member_of(json, "uid", false, 39, err),
                .at_ms = time_now_ms(),
        };
        if (!err->code && !attempts_is_id(ret->attempt))
                err_field(err, "/attempt", "attempt has %d hexadecimal digits in lower case", HOP_ATTEMPT_LEN);
        if (err->code || find_tenant(request, &name, err) < 0)
                return -err->code;
        ret->tenant = name.tenant;
        ret->expires_ms = ret->at_ms + (int64_t)service_of(request)->settings->gateway.witness_ttl;
        return 0;
}

/* No note is added if this worker has the key itself, or a note of the key unknown to the gateway. */
static void add_note(struct http_request *request, const json_t *json, const struct store_note *note)
{
        struct csn_error err;
        const struct service *service = service_of(request);
        const struct front_name name = { .tenant = note->tenant, .name = note->name };
        const char *replaces[REPLACES_MAX];
        size_t n;
        bool taken = false, added = false;
        if (!read_replaces(json_object_get(json, "replaces"), replaces, &n)) {
                err_field(&err, "/replaces", "replaces is a list of at most %d ids of attempts", REPLACES_MAX);
                http_fail(request, &err);
                return;
        }
        int rc = find_key(service->store, &name, &taken, &err);
        if (rc == 0 && !taken)
                rc = witnesses_add(service->store, note, replaces, n, service->settings->gateway.witness_max, &added,
                        &err);
        if (rc < 0) {
                service_fail_room(request, &err);
        } else if (added) {
                http_json(request, MHD_HTTP_OK, json_pack("{s:b}", "noted", 1));
        } else {
                err_set(&err, CSN_E_BUSY, 0, "the key was sent to a worker before");
                http_problem(request, MHD_HTTP_CONFLICT, &err);
        }
}

static void post_witness(struct http_request *request)
{
        struct csn_error err;
        struct store_note note;
        struct store *store = service_of(request)->store;
        json_t *json = json_body(request, &err);
        int rc = json && store ? read_note(request, json, &note, &err) : -1;
        if (json && !store)
                err_set(&err, CSN_E_UNSUPPORTED, 0, "this daemon keeps nothing");
        if (rc == 0 && json_is_true(json_object_get(json, "withdraw")))
                rc = witnesses_drop(store, note.tenant, note.name, note.attempt, &err);
        else if (rc == 0) {
                add_note(request, json, &note);
                json_decref(json);
                return;
        }
        if (rc < 0)
                http_fail(request, &err);
        else
                http_json(request, MHD_HTTP_OK, json_pack("{s:b}", "noted", 0));
        json_decref(json);
}

/* ---- the front ---- */

/* The greeting has refused all requests without a signature. */
static int admit(struct http_request *request, struct csn_error *err)
{
        if (service_caller(request))
                return 0;
        err_set(err, CSN_E_DENIED, 0, "gateways alone are answered here");
        return http_refuse(request, MHD_HTTP_FORBIDDEN, err);
}

static const struct http_route routes[] = {
        { "GET", PATH "status", NULL, 0, BODY_NONE, get_status, "What this worker is.", NULL,
                NULL },
        { "GET", PATH "audit", "after limit", 0, BODY_NONE, get_audit, "Rows of the audit.", NULL, NULL },
        { "GET", PATH "attempts/{id}", NULL, 0, BODY_NONE, get_attempt, "Whether one was admitted.", NULL,
                NULL },
        { "POST", PATH "find", NULL, 0, BODY_TREE | BODY_LATE, post_find, "Whether a name is here.", NULL, NULL },
        { "POST", PATH "witness", NULL, 0, BODY_TREE | BODY_LATE, post_witness,
                "Note where an Idempotency-Key is sent.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct http_app app = { .routes = routes, .admit = admit };

static const struct http_app *app_of(struct service *service, struct http_request *request)
{
        bool is_asked = strncmp(request->path, PATH, strlen(PATH)) == 0;
        return is_asked && service->worker && request->http == service->http ? &app : NULL;
}

const struct front gateway_front = { .name = "gateway", .app = app_of };
