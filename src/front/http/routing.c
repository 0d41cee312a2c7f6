/* Routes: match the path, the method and the names of the query of a request against a table of routes. */
#include "front/http/http_private.h"

/* A segment of a path, decoded; NULL: the segment has a NUL, or a forbidden slash. */
static char *decode_segment(struct http_request *request, const char *segment, size_t len, bool slashes)
{
        char *text = arena_copy(&request->arena, segment, len);
        size_t decoded = MHD_http_unescape(text);
        return memchr(text, 0, decoded) || (!slashes && memchr(text, '/', decoded)) ? NULL : text;
}

/* By segments.  The text for {name} is the request's. */
static bool match_path(struct http_request *request, const char *pattern, bool slashes)
{
        const char *path = request->uri;
        size_t parts = 0;
        if (strcmp(pattern, "*") == 0)
                return true;
        while (*pattern == '/' && *path == '/') {
                size_t wanted = strcspn(++pattern, "/"), len = strcspn(++path, "/?");
                char *segment = decode_segment(request, path, len, slashes);
                bool named = *pattern == '{';
                if (!segment || (named && (!*segment || parts == HTTP_PARTS_MAX)))
                        return false;
                if (!named && (strlen(segment) != wanted || memcmp(segment, pattern, wanted) != 0))
                        return false;
                if (named)
                        request->parts[parts++] = segment;
                pattern += wanted;
                path += len;
        }
        return !*pattern && (!*path || *path == '?');
}

bool http_is_for(struct http_request *request, const struct http_route *routes, bool slashes)
{
        for (const struct http_route *route = routes; route->path; route++)
                if (match_path(request, route->path, slashes))
                        return true;
        return false;
}

static bool is_method(const struct http_route *route, const char *method)
{
        return strcmp(route->method, method) == 0 || strcmp(route->method, "*") == 0 ||
                (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

int http_find_route(struct http_request *request, const char *method, unsigned *ret_status, struct csn_error *err)
{
        struct buf allowed;
        buf_init(&allowed, KIB);
        for (const struct http_route *route = request->app->routes; route->path; route++) {
                if (!match_path(request, route->path, request->app->slashes))
                        continue;
                request->route = route;
                if (is_method(route, method)) {
                        buf_done(&allowed);
                        return 0;
                }
                buf_printf(&allowed, "%s%s", allowed.len ? ", " : "", route->method);
        }
        bool there = request->route;
        request->route = NULL;
        *ret_status = there ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND;
        if (there) {
                http_set_header(request, "Allow", allowed.bytes);
                err_field(err, "", "%.200s does not support %.20s; it supports %s", request->path, method,
                        allowed.bytes);
        } else {
                err_field(err, "",
                        "there is nothing at %.200s; /docs shows what there is, and /openapi.json describes it",
                        request->path);
        }
        buf_done(&allowed);
        return -err->code;
}

struct query_check {
        const char *known;
        struct csn_error *err;
        bool wrong;
};

static bool is_choice(const char *choices, const char *value)
{
        size_t len = strlen(value);
        for (const char *at = choices;; at += strcspn(at, "| ") + 1) {
                if (strcspn(at, "| ") == len && memcmp(at, value, len) == 0)
                        return true;
                if (at[strcspn(at, "| ")] != '|')
                        return false;
        }
}

static enum MHD_Result check_query_name(void *owner, enum MHD_ValueKind kind, const char *name, size_t name_size,
        const char *value, size_t value_size)
{
        struct query_check *check = owner;
        size_t len = strlen(name);
        (void)kind, (void)name_size;
        if (value && memchr(value, 0, value_size)) {
                check->wrong = true;
                err_field(check->err, name, "%.60s has a NUL in it (%%00)", name);
                return MHD_NO;
        }
        for (const char *at = check->known; at && *at; at += strcspn(at, " "), at += *at == ' ') {
                if (*at == '*')
                        return MHD_YES;
                if (strcspn(at, " =") != len || memcmp(at, name, len) != 0)
                        continue;
                if (at[len] != '=' || is_choice(at + len + 1, value ? value : ""))
                        return MHD_YES;
                check->wrong = true;
                err_field(check->err, name, "%s is \"%.40s\"; it can be: %.*s", name, value ? value : "",
                        (int)strcspn(at + len + 1, " "), at + len + 1);
                return MHD_NO;
        }
        check->wrong = true;
        err_field(check->err, "", "the query has an unknown name \"%.60s\"; known are: %s", name,
                check->known ? check->known : "none");
        return MHD_NO;
}

int http_check_query(struct http_request *request, struct csn_error *err)
{
        struct query_check check = { request->route ? request->route->query : NULL, err, false };
        MHD_get_connection_values_n(request->connection, MHD_GET_ARGUMENT_KIND, check_query_name, &check);
        return check.wrong ? -err->code : 0;
}
