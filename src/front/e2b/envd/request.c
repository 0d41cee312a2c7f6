/* Helpers for the handlers of port 49983: the target of a request, descriptions of files, and errors of calls. */
#include "front/e2b/envd/envd.h"

#include <stdio.h>
#include <sys/stat.h>

/* ---- the target of a request ---- */

struct e2b_envd *envd_of(struct e2b_sandbox *sandbox)
{
        if (!sandbox->envd) {
                sandbox->envd = mem_alloc(sizeof *sandbox->envd);
                sandbox->envd->sandbox = sandbox;
        }
        return sandbox->envd;
}

/* The name in "Basic NAME:", or "". */
static const char *user_of(struct http_request *request)
{
        const char *authorization = http_header(request, "Authorization");
        struct bytes bytes;
        if (!authorization || strncasecmp(authorization, "Basic ", 6) != 0)
                return "";
        authorization += 6 + strspn(authorization + 6, " ");
        if (!model_unbase64(&request->arena, authorization, strlen(authorization), &bytes))
                return "";
        return arena_copy(&request->arena, bytes.bytes, strcspn(bytes.bytes, ":"));
}

static bool find_account(struct e2b_sandbox *sandbox, const char *name, struct envd_target *ret)
{
        struct csn_error err;
        bool has_root = psandbox_has_account(sandbox->psandbox, account_ROOT, &err) == 0;
        const json_t *build_spec = sandbox->wish.build_spec;
        const char *usual = json_string_value(json_object_get(build_spec, "user"));
        *ret = (struct envd_target){ .sandbox = sandbox,
                .folder = json_string_value(json_object_get(build_spec, "workdir")) };
        if (!e2b_account(name[0] || !usual ? name : usual, &ret->account) ||
                (ret->account == account_ROOT && !has_root))
                return false;
        if (has_root)
                ret->flags = GUEST_FILE_AS_ROOT | (ret->account == account_USER ? GUEST_FILE_FOR_USER : 0);
        return true;
}

bool envd_target(struct http_request *request, bool stream, struct envd_target *ret)
{
        struct e2b_sandbox *sandbox = e2b_target(request);
        const char *user = user_of(request);
        if (!sandbox)
                e2b_not_found(request);
        else if (find_account(sandbox, user, ret))
                return true;
        else
                rpc_fail(request, stream, RPC_UNAUTHENTICATED, "invalid username: '%.60s'", user);
        return false;
}

static bool is_signed(struct http_request *request, const struct e2b_sandbox *sandbox, bool writes)
{
        char expected[SPELL_SIGNATURE_MAX];
        const char *path = http_query(request, "path"), *user = http_query(request, "username"),
                   *given = http_query(request, "signature");
        spell_signature(path ? path : "", writes, user ? user : "", sandbox->token,
                http_query(request, "signature_expiration"), expected);
        return given && e2b_same(expected, given);
}

/*
 * A signed URL names no sandbox if all sandboxes share a server name.  Each sandbox has its own token, so at most one
 * matches.
 */
static struct e2b_sandbox *find_signed(struct http_request *request, bool writes)
{
        for (struct e2b_sandbox *sandbox = e2b_of(service_of(request))->sandboxes; sandbox; sandbox = sandbox->next)
                if (sandbox->state == E2B_RUNNING && sandbox->token[0] && is_signed(request, sandbox, writes)) {
                        request->target = arena_text(&request->arena, "%s", sandbox->id);
                        return sandbox;
                }
        return NULL;
}

const char *envd_file_refusal(struct http_request *request, const struct e2b_sandbox *sandbox, bool writes)
{
        const char *token = http_header(request, "X-Access-Token"),
                   *expires = http_query(request, "signature_expiration");
        if (!sandbox->token[0])
                return NULL;
        if (token)
                return e2b_same(sandbox->token, token) ? NULL : "access token present in header but does not match";
        if (!http_query(request, "signature"))
                return "missing signature query parameter";
        if (!is_signed(request, sandbox, writes))
                return "invalid signature";
        return expires && strtoll(expires, NULL, 10) < time_now_ms() / 1000 ? "signature is already expired" : NULL;
}

bool envd_file_target(struct http_request *request, bool writes, struct envd_target *ret)
{
        bool named = request->target;
        if (!named && !find_signed(request, writes)) {
                e2b_error(request, MHD_HTTP_UNAUTHORIZED, "%s",
                        http_query(request, "signature") ? "invalid signature" : "missing signature query parameter");
                return false;
        }
        const char *user = http_query(request, "username"), *why;
        struct e2b_sandbox *sandbox = e2b_target(request);
        if (!sandbox)
                e2b_not_found(request);
        else if ((why = envd_file_refusal(request, sandbox, writes)))
                e2b_error(request, MHD_HTTP_UNAUTHORIZED, "%s", why);
        else if (find_account(sandbox, user ? user : "", ret))
                return true;
        else
                e2b_error(request, MHD_HTTP_UNAUTHORIZED, "error looking up user '%.60s': user: unknown user %.60s",
                        user ? user : "of the template", user ? user : "of the template");
        return false;
}

/* ---- files in answers ---- */

static json_t *text_json(const char *text)
{
        struct arena arena = { 0 };
        size_t len;
        const char *clean = model_utf8(&arena, text, strlen(text), &len);
        json_t *json = json_stringn(clean, len);
        arena_done(&arena);
        return json;
}

json_t *envd_metadata(const struct guest_entry *entry)
{
        json_t *json = entry->labels_n ? json_object() : NULL;
        for (size_t i = 0; i < entry->labels_n; i++) {
                struct arena arena = { 0 };
                size_t len, name_len = strcspn(entry->labels[i], "=");
                json_object_set_new(json, model_utf8(&arena, entry->labels[i], name_len, &len),
                        text_json(entry->labels[i] + name_len + 1));
                arena_done(&arena);
        }
        return json;
}

/* For a link, type and mode come from its target, and permissions from the link. */
json_t *envd_entry(const struct guest_entry *entry, const char *path)
{
        bool link = S_ISLNK(entry->mode);
        uint64_t mode = link ? entry->target_mode : entry->mode;
        char permissions[SPELL_MODE_MAX], modified[40], size[24];
        spell_mode(entry->mode, permissions);
        time_print((int64_t)entry->mtime_ms, modified, sizeof modified);
        snprintf(size, sizeof size, "%llu", (unsigned long long)entry->size);
        json_t *json = json_pack("{s:o, s:o, s:s, s:I, s:s, s:o, s:o, s:s}", "name", text_json(spell_name(path)),
                "path", text_json(path), "size", size, "mode", (json_int_t)(mode & 0777), "permissions", permissions,
                "owner", text_json(entry->owner), "group", text_json(entry->group), "modifiedTime", modified);
        if (S_ISREG(mode) || S_ISDIR(mode))
                json_object_set_new(json, "type",
                        json_string(S_ISREG(mode) ? "FILE_TYPE_FILE" : "FILE_TYPE_DIRECTORY"));
        if (link)
                json_object_set_new(json, "symlinkTarget", text_json(entry->real[0] ? entry->real : path));
        json_t *metadata = envd_metadata(entry);
        if (metadata)
                json_object_set_new(json, "metadata", metadata);
        return json;
}

/* ---- errors ---- */

void envd_refuse(struct http_request *request, bool stream, const struct csn_error *err)
{
        rpc_fail(request, stream,
                err->code == CSN_E_INPUT          ? RPC_INVALID_ARGUMENT
                        : err->code == CSN_E_BUSY ? RPC_UNAVAILABLE
                                                  : RPC_INTERNAL,
                "%s", err->text);
}

static bool is_full(int sys)
{
        return sys == ENOSPC || sys == EDQUOT || sys == EFBIG;
}

void envd_call_failed(struct http_request *request, bool stream, const struct guest_call *call,
        const struct csn_error *error, const char *path)
{
        static const struct { int sys; enum rpc_code code;
        } rows[] = {
                { ENOENT, RPC_NOT_FOUND },
                { ENOTDIR, RPC_INVALID_ARGUMENT },
                { EISDIR, RPC_INVALID_ARGUMENT },
                { EEXIST, RPC_INVALID_ARGUMENT },
                { EALREADY, RPC_ALREADY_EXISTS },
                { ELOOP, RPC_FAILED_PRECONDITION },
                { EACCES, RPC_PERMISSION_DENIED },
                { EPERM, RPC_PERMISSION_DENIED },
                { EROFS, RPC_PERMISSION_DENIED },
                { ENAMETOOLONG, RPC_INVALID_ARGUMENT },
                { EINVAL, RPC_INVALID_ARGUMENT },
        };
        enum rpc_code code = is_full(error->sys) || error->code == CSN_E_BUSY ? RPC_RESOURCE_EXHAUSTED : RPC_INTERNAL;
        if (!call->refused) {
                e2b_not_found(request);
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].sys == error->sys)
                        code = rows[i].code;
        if (code == RPC_NOT_FOUND)
                rpc_fail(request, stream, code, "path not found: '%.300s'", path);
        else if (code == RPC_ALREADY_EXISTS)
                rpc_fail(request, stream, code, "directory already exists: %.300s", path);
        else
                rpc_fail(request, stream, code, "%s", error->text);
}

void envd_file_failed(struct http_request *request, const struct guest_call *call, const struct csn_error *error,
        const char *path)
{
        int sys = error->sys;
        if (!call->refused)
                e2b_not_found(request);
        else if (sys == ENOENT)
                e2b_error(request, MHD_HTTP_NOT_FOUND, "path '%.300s' does not exist", path);
        else if (sys == EISDIR)
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "path '%.300s' is a directory", path);
        else if (is_full(sys))
                e2b_error(request, MHD_HTTP_INSUFFICIENT_STORAGE, "not enough disk space available to write '%.300s'",
                        path);
        else if (error->code == CSN_E_BUSY)
                e2b_error(request, MHD_HTTP_TOO_MANY_REQUESTS, "%s", error->text);
        else
                e2b_error(request, error->code == CSN_E_INPUT ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_INTERNAL_SERVER_ERROR,
                        "%s", error->text);
}
