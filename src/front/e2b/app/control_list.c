/* Sandboxes by pages and filters; see e2b.h. */
#include "front/e2b/app/app.h"
#include "front/e2b/templates/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

struct filter {
        json_t *metadata;                  /* all of these pairs */
        bool running, paused;
        int64_t after_ms;                  /* started at or after this time */
        const char *template;              /* id of a template, or NULL */
        bool ascending;
        size_t limit;
        int64_t at_ms;                     /* start time of the last sandbox of the page before */
        const char *at_id;                 /* its id; "": this is the first page */
};

/* ---- parameters ---- */

/* Metadata is a query of names and values already encoded, and so is decoded twice. */
static char *decode_twice(struct arena *arena, const char *text, size_t len)
{
        char *copy = arena_copy(arena, text, len);
        for (char *at = copy; *at; at++)
                *at = *at == '+' ? ' ' : *at;
        MHD_http_unescape(copy);
        MHD_http_unescape(copy);
        return copy;
}

/* The caller's reference; NULL: not UTF-8. */
static json_t *parse_metadata(struct arena *arena, const char *query)
{
        json_t *pairs = json_object();
        while (pairs && query && *query) {
                size_t len = strcspn(query, "&"), name = min_u64(strcspn(query, "="), len);
                const char *value = query + name + (name < len);
                if (len &&
                        json_object_set_new(pairs, decode_twice(arena, query, name),
                                json_string(decode_twice(arena, value, len - (size_t)(value - query)))) < 0) {
                        json_decref(pairs);
                        pairs = NULL;
                }
                query += len + (query[len] != 0);
        }
        return pairs;
}

/* "2026-01-02T03:04:05.678Z", also without parts of a second. */
static bool parse_time(const char *text, int64_t *ret_ms)
{
        struct tm tm = { 0 };
        const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        char *end = NULL;
        double part = rest && *rest == '.' ? strtod(rest, &end) : 0;
        if (!rest || strcmp(end ? end : rest, "Z") != 0)
                return false;
        *ret_ms = (int64_t)timegm(&tm) * 1000 + (int64_t)(part * 1000 + 0.5);
        return true;
}

static bool parse_token(const char *text, struct filter *filter)
{
        char *end;
        filter->at_ms = strtoll(text, &end, 10);
        filter->at_id = end + 1;
        return *end == '-' && end != text;
}

/* Id of a base or built template, by its name or id; NULL: none. */
static const char *template_id(struct http_request *request, const char *name)
{
        const struct e2b_template *ours = e2b_template_named(name);
        json_t *kept = ours ? NULL : template_store_find(service_of(request), request->tenant, name);
        const char *id = ours ? ours->id
                : kept        ? arena_text(&request->arena, "%s", json_string_value(json_object_get(kept, "id")))
                              : NULL;
        json_decref(kept);
        return id;
}

/* "running", "paused", or both with a comma between. */
static bool is_states(const char *text)
{
        for (size_t len; *text; text += len + (text[len] == ',')) {
                len = strcspn(text, ",");
                if ((len != 7 || memcmp(text, "running", len) != 0) && (len != 6 || memcmp(text, "paused", len) != 0))
                        return false;
        }
        return true;
}

/* False: the request is answered, with an error or an empty list. */
static bool parse_filter(struct http_request *request, struct filter *ret)
{
        const char *state = http_query(request, "state"), *order = http_query(request, "order"),
                   *after = http_query(request, "startedAfter");
        const char *template = http_query(request, "template"), *token = http_query(request, "nextToken");
        *ret = (struct filter){ .running = !state || strstr(state, "running"),
                .paused = state ? strstr(state, "paused") != NULL : true,
                .at_id = "" };
        if (!e2b_limit(request, &ret->limit))
                return false;
        if (state && !is_states(state))
                e2b_error(request, MHD_HTTP_BAD_REQUEST,
                        "state is \"%.40s\"; it has to be running, paused, or both with a comma between", state);
        else if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "order is \"%.40s\"; it has to be asc or desc", order);
        else if (after && !parse_time(after, &ret->after_ms))
                e2b_error(request, MHD_HTTP_BAD_REQUEST,
                        "startedAfter is \"%.40s\"; it has to be a time as 2026-01-02T03:04:05Z", after);
        else if (token && !parse_token(token, ret))
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "nextToken is \"%.40s\", which no answer had", token);
        else if (template && !(ret->template = template_id(request, template)))
                http_json(request, MHD_HTTP_OK, json_array());
        else {
                ret->ascending = order && strcmp(order, "asc") == 0;
                ret->metadata = parse_metadata(&request->arena, http_query(request, "metadata"));
                if (ret->metadata)
                        return true;
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "metadata has to be names and texts in UTF-8");
        }
        return false;
}

/* ---- the list ---- */

/* The order of a list: by time, then by id. */
static int compare(int64_t ms, const char *id, int64_t other_ms, const char *other_id, bool ascending)
{
        int order = ms != other_ms ? (ms > other_ms ? 1 : -1) : strcmp(id, other_id);
        return ascending ? order : -order;
}

static bool has_metadata(const struct e2b_sandbox *sandbox, json_t *wanted)
{
        json_t *value;
        const char *name;
        json_object_foreach(wanted, name, value) {
                if (!json_equal(json_object_get(sandbox->wish.metadata, name), value))
                        return false;
        }
        return true;
}

static bool is_wanted(const struct e2b_sandbox *sandbox, const struct filter *filter, const char *tenant)
{
        bool paused = e2b_sandbox_is_paused(sandbox);
        return sandbox->state != E2B_MAKING && !sandbox->killing && strcmp(sandbox->tenant, tenant) == 0 &&
                (paused ? filter->paused : filter->running) && sandbox->started_ms >= filter->after_ms &&
                (!filter->template || strcmp(e2b_template_id(&sandbox->wish), filter->template) == 0) &&
                has_metadata(sandbox, filter->metadata);
}

/* The next sandbox behind a position; NULL: none. */
static const struct e2b_sandbox *next(const struct service *service, const struct filter *filter, const char *tenant,
                                      int64_t at_ms, const char *at_id)
{
        const struct e2b_sandbox *best = NULL;
        for (const struct e2b_sandbox *one = e2b_of(service)->sandboxes; one; one = one->next)
                if (is_wanted(one, filter, tenant) &&
                        (!*at_id || compare(one->started_ms, one->id, at_ms, at_id, filter->ascending) > 0) &&
                        (!best || compare(one->started_ms, one->id, best->started_ms, best->id, filter->ascending) < 0))
                        best = one;
        return best;
}

void e2b_list(struct http_request *request)
{
        const struct service *service = service_of(request);
        struct filter filter;
        json_t *list = json_array();
        char token[60];
        if (!parse_filter(request, &filter)) {
                json_decref(list);
                return;
        }
        const struct e2b_sandbox *one = next(service, &filter, request->tenant, filter.at_ms, filter.at_id),
                *last = NULL;
        for (; one && json_array_size(list) < filter.limit; one = next(service, &filter, request->tenant,
                                                                       one->started_ms, one->id)) {
                json_array_append_new(list, e2b_sandbox_describe(one, false));
                last = one;
        }
        if (one && last) {
                snprintf(token, sizeof token, "%" PRId64 "-%s", last->started_ms, last->id);
                http_set_header(request, "x-next-token", token);
        }
        json_decref(filter.metadata);
        http_json(request, MHD_HTTP_OK, list);
}
