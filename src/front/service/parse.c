/* JSON from a client by way of a helper thread; see parse.h. */
#include "front/service/parse.h"

#include "engine/engine.h"
#include "engine/output/files.h"
#include "front/service/json_body.h"
#include "front/service/service.h"
#include "net/jsonrpc.h"

#include <stdio.h>

/* ---- in a helper thread, or at once ---- */

/* An id too large for an integer of JSON here is reported as a text. */
static json_t *take_member(json_t *json, const char *name)
{
        json_t *member = json_object_get(json, name);
        const char *digits = model_digits(member);
        member = digits ? json_string(digits) : json_incref(member);
        json_object_del(json, name);
        return member;
}

static int decode(struct parse *parse, json_t *json)
{
        const struct parse_kind *kind = &parse->kind;
        if (kind->is_line) {
                parse->id = take_member(json, "id");
                parse->cancel = take_member(json, "cancel");
        }
        if (parse->cancel)
                return 0;
        if (kind->keeps_tree && kind->keeps_tree(json)) {
                parse->tree = json_incref(json);
                return 0;
        }
        parse->given = arena_alloc(&parse->arena, kind->object->size);
        return kind->decode ? kind->decode(json, &parse->arena, parse->given, &parse->error)
                            : model_decode(kind->object, json, &parse->arena, parse->given, &parse->error);
}

static int parse_struct(struct parse *parse, const char *text, size_t len)
{
        struct csn_error *err = &parse->error;
        json_error_t where;
        if (model_is_deeper(text, len, MODEL_DEPTH_MAX))
                return err_field(err, "", "the JSON is nested deeper than %d levels", MODEL_DEPTH_MAX);
        if (model_has_many_parts(text, len, parse->kind.values_max)) {
                err_field(err, "", "the JSON has more than %zu values and names", parse->kind.values_max);
                err->sys = EFBIG;
                return -err->code;
        }
        json_t *json = model_load(text, len, &where);
        if (!json)
                return err_field(err, "", "not JSON: %s (line %d, column %d)", where.text, where.line, where.column);
        int rc = decode(parse, json);
        json_decref(json);
        return rc;
}

static void parse_tree(struct parse *parse, const char *text, size_t len)
{
        const struct parse_converter *converter = parse->converter;
        parse->tree = parse->kind.load(text, len, &parse->error);
        if (!converter || !converter->convert)
                return;
        parse->given = converter->convert(parse->tree, &parse->error, parse->context, &parse->arena);
        if (converter->keeps_tree)
                return;
        json_decref(parse->tree);
        parse->tree = NULL;
}

static void parse_text(struct parse *parse, const char *text, size_t len)
{
        if (parse->digests)
                files_sha256_bytes(text, len, parse->sha256);
        if (parse->kind.load)
                parse_tree(parse, text, len);
        else
                parse_struct(parse, text, len);
}

static void work(struct job *job)
{
        struct parse *parse = job->owner;
        parse_text(parse, parse->text, parse->len);
        free(parse->text);
        parse->text = NULL;
}

/* ---- the end ---- */

static void release(struct job *job)
{
        struct parse *parse = job->owner;
        if (parse->given && parse->converter && parse->converter->drop)
                parse->converter->drop(parse->given);
        arena_done(&parse->arena);
        json_decref(parse->tree);
        json_decref(parse->id);
        json_decref(parse->cancel);
        free(parse->text);
}

static void on_released(struct job *job)
{
        if (job->dropped)
                release(job);
        free(job->owner);
}

/* A tree has as many parts as the text had values, so a helper thread frees the tree, too, and an untaken struct. */
static void parse_release(struct parse *parse)
{
        parse->job = (struct job){ .work = release, .done = on_released, .owner = parse };
        if ((parse->tree || (parse->given && parse->converter)) && parse->workers)
                worker_submit(parse->workers, parse->share, &parse->job);
        else
                release(&parse->job), on_released(&parse->job);
}

static void on_done(struct job *job)
{
        struct parse *parse = job->owner;
        if (!parse->done)
                parse_release(parse);
        else if (!job->dropped)
                parse->done(parse->owner);
}

static struct parse *parse_new(const struct parse_kind *kind)
{
        struct parse *parse = mem_alloc(sizeof *parse);
        parse->kind = *kind;
        return parse;
}

static void submit(struct workers *workers, struct parse *parse, const char *share, char *text, size_t len,
        void (*done)(void *owner), void *owner)
{
        parse->workers = workers;
        parse->text = text;
        parse->len = len;
        parse->done = done;
        parse->owner = owner;
        snprintf(parse->share, sizeof parse->share, "%s", share);
        parse->job = (struct job){ .work = work, .done = on_done, .owner = parse };
        worker_submit(parse->workers, share, &parse->job);
}

struct parse *parse_start(struct workers *workers, const char *share, const struct parse_kind *kind, char *text,
        size_t len, bool digests, void (*done)(void *owner), void *owner)
{
        struct parse *parse = parse_new(kind);
        parse->digests = digests;
        submit(workers, parse, share, text, len, done, owner);
        return parse;
}

struct parse *parse_now(const struct parse_kind *kind, const char *text, size_t len)
{
        struct parse *parse = parse_new(kind);
        parse_text(parse, text, len);
        return parse;
}

void parse_free(struct parse *parse)
{
        if (!parse)
                return;
        parse->done = NULL;
        if (!parse->job.active || worker_cancel(parse->workers, &parse->job))
                parse_release(parse);
}

void parse_take(struct parse *parse, struct arena *arena, void *ret)
{
        memcpy(ret, parse->given, parse->kind.object->size);
        parse_move(parse, arena);
}

void parse_move(struct parse *parse, struct arena *arena)
{
        arena_join(arena, &parse->arena);
        parse->given = NULL;
}

/* ---- bodies of requests ---- */

static json_t *load_tree(const char *text, size_t len, struct csn_error *err)
{
        return json_body_parse(text, len, JSON_ALLOW_NUL, err);
}

static json_t *load_message(const char *text, size_t len, struct csn_error *err)
{
        return rpc_load(text, len, JSON_BODY_PARTS_MAX, err);
}

static bool find_kind(const struct http_request *request, struct parse_kind *ret)
{
        const struct http_route *route = request->route;
        *ret = (struct parse_kind){ .object = route->takes, .values_max = PARSE_VALUES_MAX };
        if (http_body_of(route) == BODY_TREE)
                ret->load = load_tree;
        else if (http_body_of(route) == BODY_RPC)
                ret->load = load_message;
        return ret->load || ret->object;
}

static void on_parsed(void *owner)
{
        http_parsed(owner);
}

static void free_parsed(struct http_request *request)
{
        parse_free(request->parsed);
}

static const struct parse_converter *find_converter(const struct service *service, const struct http_route *route)
{
        for (const struct front *const *front = service->fronts; *front; front++)
                for (const struct parse_converter *one = (*front)->converters; one && one->handle; one++)
                        if (one->handle == route->handle)
                                return one;
        return NULL;
}

bool parse_body(void *owner, struct http_request *request)
{
        const struct service *service = owner;
        struct parse_kind kind;
        bool is_long = request->body.len > PARSE_AT_ONCE_MAX;
        const struct parse_converter *converter = find_converter(service, request->route);
        if (!find_kind(request, &kind) || (!is_long && !converter))
                return false;
        struct parse *parse = parse_new(&kind);
        request->parsed_free = free_parsed;
        request->parsed = parse;
        parse->digests = http_header(request, "Idempotency-Key") != NULL;
        parse->converter = converter;
        if (converter && converter->load)
                parse->kind.load = converter->load;
        if (converter && converter->begin)
                parse->context = converter->begin(request, &parse->arena);
        char *text = request->body.bytes;
        if (!is_long) {
                parse_text(parse, text ? text : "", request->body.len);
                return false;
        }
        request->body.bytes = NULL;
        request->body.size = 0;
        /* A request to a sandbox of E2B has its tenant by its handler only. */
        const char *share = request->tenant[0] ? request->tenant : holder_name(request->holder);
        submit(engine_workers(service->engine), parse, share, text, request->body.len, on_parsed, request);
        return true;
}

struct parse *parse_of(const struct http_request *request)
{
        return request->parsed;
}

json_t *json_body(const struct http_request *request, struct csn_error *err)
{
        const struct parse *parse = parse_of(request);
        if (parse) {
                *err = parse->error;
                return json_incref(parse->tree);
        }
        return load_tree(request->body.bytes ? request->body.bytes : "", request->body.len, err);
}
