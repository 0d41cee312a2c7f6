/* The target of a request: the worker of an id, or a name. */
#include "gateway/gateway_private.h"

#include <strings.h>

/* ---- ids ---- */

typedef bool tag_finder(const struct gateway *gateway, const char *text, size_t len, char ret_tag[HOP_TAG_LEN + 1]);

/* A place of an id: a text, its separators, and whether requests to sandboxes have the place as well. */
struct place {
        const char *text, *between;
        bool is_sandbox;
};

/* The tag of an id, behind a prefix such as "run_", or E2B's letter i. */
static bool sealed_tag(const struct gateway *gateway, const char *text, size_t len, char ret_tag[HOP_TAG_LEN + 1])
{
        return hop_tag_of(gateway->keys, text, len, ret_tag);
}

static bool unsealed_tag(const struct gateway *gateway, const char *text, size_t len, char ret_tag[HOP_TAG_LEN + 1])
{
        (void)gateway;
        return hop_tag_unsealed(text, len, ret_tag);
}

/* The first id among the pieces of a text. */
static bool tag_among(const struct gateway *gateway, const struct place *place, tag_finder *find,
        char ret_tag[HOP_TAG_LEN + 1])
{
        const char *text = place->text;
        for (size_t len; text && *text; text += len + (text[len] != 0)) {
                len = strcspn(text, place->between);
                if (find(gateway, text, len, ret_tag))
                        return true;
        }
        return false;
}

/* Ids of E2B's sandboxes begin with i; for an unknown id any worker's front answers. */
bool target_is_sandbox(struct http_request *request)
{
        char tag[HOP_TAG_LEN + 1];
        const char *host = http_header(request, "Host");
        size_t label = host ? strcspn(host, ".:") : 0, port = host ? strspn(host, "0123456789") : 0;
        if (http_header(request, "E2b-Sandbox-Id"))
                return true;
        return port && port + 1 < label && host[port] == '-' &&
               (host[port + 1] == 'i' || hop_tag_of(gateway_of(request)->keys, host + port + 1, label - port - 1, tag));
}

bool target_has_sandbox_app(const struct http_request *request)
{
        return request->app->slashes;
}

/* The first tag found by `find` in the places of ids in a request. */
static bool tag_in(struct http_request *request, tag_finder *find, char ret_tag[HOP_TAG_LEN + 1])
{
        const char *sandbox = http_header(request, "E2b-Sandbox-Id"), *host = http_header(request, "Host");
        const char *label = host ? host + strspn(host, "0123456789") : "";
        struct place places[] = {
                { sandbox, "", true },
                { label > host && *label == '-' ? label + 1 : NULL, ".:", true },
                { http_header(request, "Mcp-Session-Id"), "", false },
                { request->path, "/", false },
                { http_query(request, "tokens"), ",", false },
                { http_query(request, "sandboxID"), "", false },
                { http_query(request, "upload"), "", false },
        };
        for (size_t i = 0; i < ARRAY_LEN(places); i++)
                if ((places[i].is_sandbox || !target_has_sandbox_app(request)) &&
                        tag_among(gateway_of(request), &places[i], find, ret_tag))
                        return true;
        return false;
}

bool target_tag(struct http_request *request, char ret_tag[HOP_TAG_LEN + 1])
{
        return tag_in(request, sealed_tag, ret_tag);
}

bool target_old_tag(struct http_request *request, char ret_tag[HOP_TAG_LEN + 1])
{
        return tag_in(request, unsealed_tag, ret_tag);
}

/* ---- names ---- */

/* The kind of object named by a path. */
static const struct { const char *path, *kind; } named_paths[] = {
        { "/v1/workspaces/", "workspace" },
        { "/v1/volumes/", "volume" },
        { "/v1/layers/", "layer" },
        { "/v1/idempotency-keys/", "idempotency_key" },
        { "/templates/aliases/", "template" },
        { "/templates/", "template" },
        { "/v2/templates/", "template" },
        { "/sessions/", "nemo_session" },
};

/* Members of a body naming an object of one worker. */
static const struct { const char *member, *kind; } named_members[] = {
        { "workspace", "workspace" },
        { "volumes", "volume" },
        { "layers", "layer" },
        { "templateID", "template" },
};

static const char *text_in(json_t *value)
{
        return json_string_value(json_is_array(value) ? json_array_get(value, 0) : value);
}

/* The id of a kept file among the inputs; its worker has the content. */
static const char *kept_file(json_t *body)
{
        json_t *file;
        size_t i;
        json_array_foreach(json_object_get(body, "files"), i, file)
                if (json_string_value(json_object_get(file, "id")))
                        return json_string_value(json_object_get(file, "id"));
        return NULL;
}

/* Members with an id in a body of LibreChat: of a program waiting for results, and of a session. */
static const char *const librechat_members[] = { "continuation_token", "session_id" };

static const char *librechat_id(const struct http_request *request, json_t *body)
{
        const char *text = NULL;
        if (strncmp(request->path, "/librechat/", strlen("/librechat/")) != 0)
                return NULL;
        for (size_t i = 0; i < ARRAY_LEN(librechat_members) && !text; i++)
                text = json_string_value(json_object_get(body, librechat_members[i]));
        return text;
}

/* Could the body have one of the members?  If not, parsing is needless. */
static bool may_name(const struct buf *body)
{
        if (!body->len)
                return false;
        for (size_t i = 0; i < ARRAY_LEN(named_members); i++)
                if (memmem(body->bytes, body->len, named_members[i].member, strlen(named_members[i].member)))
                        return true;
        for (size_t i = 0; i < ARRAY_LEN(librechat_members); i++)
                if (memmem(body->bytes, body->len, librechat_members[i], strlen(librechat_members[i])))
                        return true;
        return memmem(body->bytes, body->len, "\"id\"", 4);
}

static bool name_in_body(struct http_request *request, struct target_name *ret)
{
        if (!may_name(&request->body))
                return false;
        json_t *body = json_loadb(request->body.bytes, request->body.len, JSON_ALLOW_NUL, NULL);
        const char *text = NULL;
        for (size_t i = 0; i < ARRAY_LEN(named_members) && !text; i++)
                if ((text = text_in(json_object_get(body, named_members[i].member)))) {
                        ret->kind = named_members[i].kind;
                        /* A volume may have a mode behind its name: NAME:ro. */
                        size_t len = strcmp(ret->kind, "volume") == 0 ? strcspn(text, ":") : strlen(text);
                        ret->name = arena_copy(&request->arena, text, len);
                }
        const char *user = json_string_value(json_object_get(body, "user"));
        if (user && text && strcmp(ret->kind, "workspace") == 0)
                ret->user = arena_copy(&request->arena, user, strlen(user));
        if (!text && ((text = kept_file(body)) || (text = librechat_id(request, body)))) {
                ret->kind = "id";
                ret->name = arena_copy(&request->arena, text, strlen(text));
        }
        json_decref(body);
        return text;
}

bool target_name(struct http_request *request, struct target_name *ret)
{
        const char *key = http_header(request, "Idempotency-Key"), *session = http_header(request, "X-Session-ID");
        for (size_t i = 0; i < ARRAY_LEN(named_paths); i++)
                if (strncmp(request->path, named_paths[i].path, strlen(named_paths[i].path)) == 0) {
                        ret->kind = named_paths[i].kind;
                        ret->name = http_part(request, 0);
                        ret->user = strcmp(ret->kind, "workspace") == 0 ? http_query(request, "user") : NULL;
                        return true;
                }
        if (session && strcmp(request->path, "/execute") == 0) {
                *ret = (struct target_name){ .kind = "nemo_session", .name = session };
                return true;
        }
        if (name_in_body(request, ret))
                return true;
        if (!key || strcmp(request->method, "POST") != 0)
                return false;
        *ret = (struct target_name){ .kind = "idempotency_key", .name = key };
        return true;
}

const char *target_key(struct http_request *request)
{
        static const char path[] = "/v1/idempotency-keys/";
        const char *key = http_header(request, "Idempotency-Key");
        if (strncmp(request->path, path, strlen(path)) == 0)
                return http_part(request, 0);
        /* Other routes have no Idempotency-Key; the worker refuses an empty one. */
        return strcmp(request->path, "/v1/runs") == 0 && key && key[0] ? key : NULL;
}
