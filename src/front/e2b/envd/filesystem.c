/* filesystem.Filesystem: operations of the guest on files, each a unary call. */
#include "front/e2b/envd/envd.h"

#include <stdio.h>

#define LIST_MAX 100000                    /* entries of an answer */
#define LIST_BYTES_MAX (32 * MIB)          /* of their names and labels */
#define DEPTH_MAX 64

struct operation {
        struct http_request *request;
        struct guest_call call;
        enum guest_verb verb;
        char *path;                        /* of the entry, or of the folder listed */
        char *missing;                     /* path to name in an error of ENOENT */
        json_t *entries;
        size_t bytes;
        bool too_many;
        struct csn_error broken;           /* a malformed entry of the guest; code 0: none */
};

static void operation_free(struct operation *op)
{
        guest_call_close(&op->call);
        json_decref(op->entries);
        free(op->path);
        free(op->missing);
        free(op);
}

static void on_gone(struct http_request *request)
{
        operation_free(request->owner);
}

/* ---- answers of the guest ---- */

static void add_entry(struct operation *op, const struct guest_entry *entry)
{
        struct arena arena = { 0 };
        const char *path = op->path;
        if (op->verb == GUEST_LIST)
                path = arena_text(&arena, "%s%s%s", op->path, strcmp(op->path, "/") == 0 ? "" : "/", entry->path);
        op->bytes += strlen(path) + strlen(entry->real) + GUEST_LABELS_MAX * (entry->labels_n > 0);
        op->too_many = json_array_size(op->entries) >= LIST_MAX || op->bytes > LIST_BYTES_MAX;
        if (!op->too_many)
                json_array_append_new(op->entries, envd_entry(entry, path));
        arena_done(&arena);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct operation *op = call->owner;
        struct arena arena = { 0 };
        struct guest_entry entry;
        (void)fds;
        if (kind == GUEST_ENTRY && !op->too_many && guest_get_entry(bytes, len, &arena, &entry, &op->broken) == 0)
                add_entry(op, &entry);
        arena_done(&arena);
}

static void on_room(struct guest_call *call)
{
        (void)call;
}

static void answer(struct operation *op)
{
        struct http_request *request = op->request;
        if (op->verb == GUEST_REMOVE)
                rpc_answer(request, json_object());
        else if (op->verb == GUEST_LIST)
                rpc_answer(request, json_pack("{s:O}", "entries", op->entries));
        else
                rpc_answer(request, json_pack("{s:O}", "entry", json_array_get(op->entries, 0)));
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct operation *op = call->owner;
        struct http_request *request = op->request;
        request->gone = NULL;
        bool none = op->verb == GUEST_REMOVE && call->refused && error &&
                (error->sys == ENOENT || error->sys == ENOTDIR); /* nothing to remove */
        bool lost = op->broken.code ||
                (op->verb != GUEST_REMOVE && op->verb != GUEST_LIST && !json_array_size(op->entries));
        if (error && !none)
                envd_call_failed(request, false, call, error, error->sys == ENOENT ? op->missing : op->path);
        else if (op->too_many)
                rpc_fail(request, false, RPC_RESOURCE_EXHAUSTED,
                        "%.300s has more than %d entries, or their names are too long together; list less of it",
                        op->path, LIST_MAX);
        else if (lost)
                rpc_fail(request, false, RPC_INTERNAL, "the sandbox answered what is no entry");
        else
                answer(op);
        operation_free(op);
}

/* ---- requests ---- */

/* Removing and renaming need a path: proto3 leaves out an empty text, and an empty path would be the home folder. */
static int check_taken(enum guest_verb verb, const char *name, const char *given, const char *path,
        struct csn_error *err)
{
        if (verb != GUEST_REMOVE && verb != GUEST_RENAME)
                return 0;
        if (!given || !given[0])
                return err_field(err, name, "%s is missing or empty; name the file or folder that is meant", name);
        if (spell_is_home(path))
                return err_field(err, name,
                        "%s is %.300s, which the sandbox needs, or which has a home folder in it; name what is in it",
                        name, path);
        return 0;
}

/*
 * Applies `verb` to the path in the first member of a request; the second member, if any, is the destination.  The
 * answer comes now or later.
 */
static void ask(struct http_request *request, enum guest_verb verb, const struct e2b_member *members)
{
        const char *path_name = members[0].name, *to_name = verb == GUEST_RENAME ? members[1].name : NULL;
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        struct envd_target target;
        char path[GUEST_PATH_MAX], to[GUEST_PATH_MAX] = "";
        struct csn_error err;
        json_t *message = envd_target(request, false, &target) ? rpc_body(request, false, members) : NULL;
        const char *given = rpc_string(message, path_name), *given_to = to_name ? rpc_string(message, to_name) : NULL;
        if (!message)
                return;
        uint64_t depth = rpc_number(message, "depth", 1);
        int rc = spell_path(given ? given : "", target.account, target.folder, path, &err);
        if (rc == 0 && to_name)
                rc = spell_path(given_to ? given_to : "", target.account, target.folder, to, &err);
        rc = rc < 0 ? rc : check_taken(verb, path_name, given, path, &err);
        if (rc == 0 && to_name)
                rc = check_taken(verb, to_name, given_to, to, &err);
        json_decref(message);
        if (rc < 0) {
                envd_refuse(request, false, &err);
                return;
        }
        struct operation *op = mem_alloc(sizeof *op);
        const char *about = to_name ? to : path;
        *op = (struct operation){ .request = request, .verb = verb, .path = mem_copy(about, strlen(about)),
                                  .missing = mem_copy(path, strlen(path)), .entries = json_array(),
                                  .call = { .events = &events, .owner = op } };
        const struct guest_file file = { .verb = verb,
                .flags = target.flags | (verb == GUEST_FOLDER ? GUEST_FILE_NEW : 0),
                .depth = depth ? min_u64(depth, DEPTH_MAX) : 1,
                .path = path,
                .to = to,
                .space = (char[]){ ENVD_LABELS } };
        if (guest_call_file(target.sandbox->psandbox, &op->call, &file, &err) < 0) {
                operation_free(op);
                envd_refuse(request, false, &err);
                return;
        }
        request->owner = op;
        request->gone = on_gone;
}

static const struct e2b_member path_members[] = { { .name = "path", .kind = E2B_TEXT }, { 0 } };

void envd_stat(struct http_request *request)
{
        ask(request, GUEST_STAT, path_members);
}

void envd_list(struct http_request *request)
{
        static const struct e2b_member members[] = { { .name = "path", .kind = E2B_TEXT },
                { .name = "depth", .kind = E2B_NUMBER, .most = UINT32_MAX }, { 0 } };
        ask(request, GUEST_LIST, members);
}

void envd_make_folder(struct http_request *request)
{
        ask(request, GUEST_FOLDER, path_members);
}

void envd_move(struct http_request *request)
{
        static const struct e2b_member members[] = { { .name = "source", .kind = E2B_TEXT },
                { .name = "destination", .kind = E2B_TEXT }, { 0 } };
        ask(request, GUEST_RENAME, members);
}

void envd_remove(struct http_request *request)
{
        ask(request, GUEST_REMOVE, path_members);
}
