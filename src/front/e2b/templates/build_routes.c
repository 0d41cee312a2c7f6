/* Routes of templates, builds and tags; see build.h. */
#include "front/e2b/templates/build.h"


#include <stdio.h>

#define NAME_LEN_MAX 128
#define STATUS_LINES 100                   /* in an answer */

/* The template named by the path, of this tenant; the caller's reference.  NULL: none; the request is answered. */
static json_t *named(struct http_request *request)
{
        const char *name = http_part(request, 0);
        json_t *template = template_store_find(service_of(request), request->tenant, name);
        if (template)
                return template;
        if (e2b_template_named(name))
                e2b_error(request, MHD_HTTP_FORBIDDEN, "template '%.100s' is part of this server", name);
        else
                e2b_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found", name);
        return NULL;
}

static bool save(struct http_request *request, const json_t *template)
{
        struct csn_error err;
        if (template_store_save(service_of(request), template, &err) == 0)
                return true;
        http_fail(request, &err);
        return false;
}

/* ---- tags ---- */

/* A list of tags, or none.  False: another value; the request is answered. */
static bool check_tags(struct http_request *request, const json_t *tags)
{
        const json_t *tag;
        size_t i;
        bool good = !tags || json_is_null(tags) || (json_is_array(tags) && json_array_size(tags) <= TAGS_MAX);
        json_array_foreach(tags, i, tag) {
                good = good && json_is_string(tag) && template_store_is_tag(json_string_value(tag));
        }
        if (!good)
                e2b_error(request, MHD_HTTP_BAD_REQUEST,
                        "tags has to be a list of at most %d texts of letters, digits, - _ and .", TAGS_MAX);
        return good;
}

static size_t tags_of(const json_t *template)
{
        const json_t *build;
        size_t i, n = 0;
        json_array_foreach(json_object_get(template, "builds"), i, build) {
                n += json_array_size(json_object_get(build, "tags"));
        }
        return n;
}

void builds_post_tags(struct http_request *request)
{
        static const struct e2b_member members[] = { { .name = "target", .kind = E2B_TEXT }, { 0 } };
        json_t *body = e2b_body(request, members), *tags = json_object_get(body, "tags"), *template = NULL,
               *build = NULL, *tag;
        const char *target = e2b_text(body, "target");
        size_t i;
        if (!body || !check_tags(request, tags)) {
                json_decref(body);
                return;
        }
        template = template_store_find(service_of(request), request->tenant, target);
        build = template_store_tagged(template, template_store_tag(target));
        if (!build || !json_array_size(tags)) {
                e2b_error(request, build ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_NOT_FOUND,
                        build ? "tags is empty" : "template '%.100s' not found", target);
        } else if (tags_of(template) + json_array_size(tags) > TAGS_MAX) {
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "the template has %zu tags; %d are possible",
                        tags_of(template), TAGS_MAX);
        } else {
                json_array_foreach(tags, i, tag) {
                        template_store_set_tag(template, build, json_string_value(tag));
                }
                if (save(request, template))
                        http_json(request, MHD_HTTP_CREATED,
                                json_pack("{s:s, s:O}", "buildID", e2b_text(build, "id"), "tags", tags));
        }
        json_decref(template);
        json_decref(body);
}

void builds_delete_tags(struct http_request *request)
{
        static const struct e2b_member members[] = { { .name = "name", .kind = E2B_TEXT }, { 0 } };
        json_t *body = e2b_body(request, members), *tags = json_object_get(body, "tags"), *tag;
        size_t i;
        if (!body || !check_tags(request, tags)) {
                json_decref(body);
                return;
        }
        json_t *template = template_store_find(service_of(request), request->tenant, e2b_text(body, "name"));
        bool known = template;
        json_array_foreach(tags, i, tag) {
                known = known && template_store_tagged(template, json_string_value(tag));
        }
        if (!known) {
                e2b_error(request, MHD_HTTP_NOT_FOUND,
                        template ? "template '%.100s' has not all of these tags" : "template '%.100s' not found",
                        e2b_text(body, "name"));
        } else {
                json_array_foreach(tags, i, tag) {
                        template_store_drop_tag(template, json_string_value(tag));
                }
                if (save(request, template))
                        e2b_no_content(request);
        }
        json_decref(template);
        json_decref(body);
}

void builds_get_tags(struct http_request *request)
{
        json_t *template = named(request), *list = json_array();
        const json_t *build, *tag;
        size_t i, j;
        json_array_foreach(json_object_get(template, "builds"), i, build) {
                json_array_foreach(json_object_get(build, "tags"), j, tag) {
                        json_array_append_new(list,
                                json_pack("{s:s, s:s, s:s}", "tag", json_string_value(tag), "buildID",
                                        e2b_text(build, "id"), "createdAt", e2b_text(build, "createdAt")));
                }
        }
        if (template)
                http_json(request, MHD_HTTP_OK, json_incref(list));
        json_decref(list);
        json_decref(template);
}

/* ---- templates ---- */

static void forget_builds(json_t *template)
{
        json_t *builds = json_object_get(template, "builds");
        for (size_t i = json_array_size(builds); i-- > 0 && json_array_size(builds) >= BUILDS_KEPT_MAX;)
                if (!json_array_size(json_object_get(json_array_get(builds, i), "tags")))
                        json_array_remove(builds, i);
}

/*
 * Adds a waiting build to the template `name`, a new template if there is none.  The caller's reference; NULL: failed,
 * the request is answered.
 */
static json_t *prepare(struct http_request *request, const char *name, const json_t *body, const char *build_id)
{
        struct service *service = service_of(request);
        char bare[NAME_LEN_MAX + 1];
        snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, ":"), name);
        json_t *template = template_store_find(service, request->tenant, bare), *tag;
        size_t i;
        if (!template && template_store_count(service, request->tenant) >= TEMPLATES_OWNER_MAX) {
                e2b_error(request, MHD_HTTP_TOO_MANY_REQUESTS,
                        "there are %d templates of yours, as many as there may be: delete one", TEMPLATES_OWNER_MAX);
                return NULL;
        }
        if (!template)
                template = template_store_new(request->tenant, bare);
        json_object_set(template, "cpuCount", json_object_get(body, "cpuCount"));
        json_object_set(template, "memoryMB", json_object_get(body, "memoryMB"));
        forget_builds(template);
        json_t *build = json_pack("{s:s, s:s, s:o, s:[]}", "id", build_id, "status", "waiting", "createdAt",
                e2b_time(time_now_ms()), "tags");
        json_array_insert_new(json_object_get(template, "builds"), 0, build);
        if (strchr(name, ':') || !json_array_size(json_object_get(body, "tags")))
                template_store_set_tag(template, build, template_store_tag(name));
        json_array_foreach(json_object_get(body, "tags"), i, tag) {
                template_store_set_tag(template, build, json_string_value(tag));
        }
        if (tags_of(template) <= TAGS_MAX && save(request, template))
                return template;
        if (tags_of(template) > TAGS_MAX)
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "the template has %zu tags; %d are possible",
                        tags_of(template), TAGS_MAX);
        json_decref(template);
        return NULL;
}

static bool is_name(const char *name)
{
        size_t len = strcspn(name, ":");
        return len > 0 && len <= NAME_LEN_MAX &&
                strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == len &&
                (!name[len] || template_store_is_tag(name + len + 1));
}

/* A whole number from 1 to `most`, or absent.  False: another value; the request is answered. */
static bool check_count(struct http_request *request, const json_t *body, const char *name, json_int_t most)
{
        const json_t *given = json_object_get(body, name);
        char shown[E2B_SHOWN_MAX];
        if (!given || json_is_null(given) ||
                (json_is_integer(given) && json_integer_value(given) >= 1 && json_integer_value(given) <= most))
                return true;
        e2b_show(given, shown);
        e2b_error(request, MHD_HTTP_BAD_REQUEST, "%s is %s; it has to be a whole number from 1 to %lld", name, shown,
                (long long)most);
        return false;
}

void builds_post_template(struct http_request *request)
{
        static const struct e2b_member members[] = { { .name = "name", .kind = E2B_TEXT },
                { .name = "alias", .kind = E2B_TEXT }, { 0 } };
        json_t *body = e2b_body(request, members);
        const char *given = e2b_text(body, "name"), *slash = strrchr(given[0] ? given : e2b_text(body, "alias"), '/');
        const char *name = slash ? slash + 1 : given[0] ? given : e2b_text(body, "alias");
        char build_id[BUILD_ID_LEN + 1];
        if (!body)
                return;
        if (!is_name(name))
                e2b_error(request, MHD_HTTP_BAD_REQUEST,
                        "name has to be letters, digits, - _ and ., at most %d, and may have a tag behind a colon",
                        NAME_LEN_MAX);
        else if (e2b_template_named(name))
                e2b_error(request, MHD_HTTP_FORBIDDEN, "template '%.100s' is part of this server", name);
        else if (check_count(request, body, "cpuCount", 1024) && check_count(request, body, "memoryMB", 1 << 24) &&
                check_tags(request, json_object_get(body, "tags"))) {
                id_new_uuid(build_id);
                json_t *template = prepare(request, name, body, build_id);
                if (template)
                        http_json(request, MHD_HTTP_ACCEPTED,
                                json_pack("{s:s, s:s, s:b, s:[s], s:[s], s:O}", "templateID", e2b_text(template, "id"),
                                        "buildID", build_id, "public", 0, "names", e2b_text(template, "name"),
                                        "aliases", e2b_text(template, "name"), "tags",
                                        json_object_get(template_store_build(template, build_id), "tags")));
                json_decref(template);
        }
        json_decref(body);
}

/* Only its owner sees a template, so this changes nothing; the command line sends the request all the same. */
void builds_patch_template(struct http_request *request)
{
        static const struct e2b_member members[] = { { .name = "public", .kind = E2B_BOOL }, { 0 } };
        json_t *body = e2b_body(request, members), *template = body ? named(request) : NULL;
        if (template && json_is_true(json_object_get(body, "public")))
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "templates here are their owner's; none is public");
        else if (template)
                http_json(request, MHD_HTTP_OK, json_pack("{s:[s]}", "names", e2b_text(template, "name")));
        json_decref(template);
        json_decref(body);
}

/* ---- builds ---- */

void builds_post(struct http_request *request)
{
        static const struct e2b_member members[] = { { .name = "fromImage", .kind = E2B_TEXT },
                { .name = "fromTemplate", .kind = E2B_TEXT }, { .name = "fromImageRegistry", .kind = E2B_OBJECT },
                { .name = "startCmd", .kind = E2B_TEXT }, { .name = "readyCmd", .kind = E2B_TEXT },
                { .name = "force", .kind = E2B_BOOL }, { 0 } };
        const char *id = http_part(request, 1);
        json_t *body = e2b_body(request, members), *template = body ? named(request) : NULL,
               *build = template_store_build(template, id);
        struct csn_error err;
        if (template && !build) {
                e2b_error(request, MHD_HTTP_NOT_FOUND, "build '%.60s' not found", id);
        } else if (template && strcmp(e2b_text(build, "status"), "waiting") != 0) {
                e2b_error(request, MHD_HTTP_CONFLICT, "build %s was begun already", id);
        } else if (template) {
                json_object_set_new(build, "status", json_string("building"));
                if (save(request, template)) {
                        if (build_begin(request, template, id, body, &err) == 0) {
                                http_json(request, MHD_HTTP_ACCEPTED, json_object());
                        } else {
                                json_object_set_new(build, "status", json_string("waiting"));
                                if (save(request, template))
                                        e2b_error(request,
                                                err.code == CSN_E_INPUT ? MHD_HTTP_BAD_REQUEST
                                                                        : MHD_HTTP_TOO_MANY_REQUESTS,
                                                "%s", err.text);
                        }
                }
        }
        json_decref(template);
        json_decref(body);
}

/* Status of a build without a log in memory.  A build in progress when the daemon ended has failed. */
static json_t *status_of(const json_t *kept)
{
        const char *status = e2b_text(kept, "status"), *reason = e2b_text(kept, "reason");
        bool lost = strcmp(status, "building") == 0;
        json_t *json = json_pack("{s:s, s:[], s:[]}", "status", lost ? "error" : status, "logs", "logEntries");
        if (lost || reason[0])
                json_object_set_new(json, "reason",
                        json_pack("{s:s, s:[]}", "message", lost ? "the build ended with the daemon" : reason,
                                "logEntries"));
        return json;
}

static json_t *status_of_build(const struct build *build, size_t from, size_t most)
{
        static const char *const names[] = {
                [BUILD_BUILDING] = "building", [BUILD_READY] = "ready", [BUILD_ERROR] = "error"
        };
        json_t *entries = json_array(), *logs = json_array();
        for (size_t i = from; i < json_array_size(build->log) && i - from < most; i++) {
                json_array_append(entries, json_array_get(build->log, i));
                json_array_append(logs, json_object_get(json_array_get(build->log, i), "message"));
        }
        json_t *json = json_pack("{s:s, s:o, s:o}", "status", names[build->state], "logs", logs, "logEntries", entries);
        if (build->state == BUILD_ERROR)
                json_object_set_new(json, "reason",
                        json_pack("{s:s, s:s, s:[]}", "message", build->reason, "step", build->step, "logEntries"));
        return json;
}

void builds_status(struct http_request *request)
{
        const char *id = http_part(request, 1), *offset = http_query(request, "logsOffset"),
                   *limit = http_query(request, "limit");
        json_t *template = named(request);
        const json_t *kept = template_store_build(template, id);
        const struct build *build = build_find(service_of(request), request->tenant, id);
        size_t most =
                limit && strtoul(limit, NULL, 10) ? min_u64(strtoul(limit, NULL, 10), STATUS_LINES) : STATUS_LINES;
        if (template && !kept) {
                e2b_error(request, MHD_HTTP_NOT_FOUND, "build '%.60s' not found", id);
        } else if (template) {
                json_t *json =
                        build ? status_of_build(build, offset ? strtoul(offset, NULL, 10) : 0, most) : status_of(kept);
                json_object_set_new(json, "templateID", json_string(e2b_text(template, "id")));
                json_object_set_new(json, "buildID", json_string(id));
                http_json(request, MHD_HTTP_OK, json);
        }
        json_decref(template);
}
