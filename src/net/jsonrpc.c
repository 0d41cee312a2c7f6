/* Messages of JSON-RPC 2.0; see jsonrpc.h. */
#include "net/jsonrpc.h"

/* ---- reading ---- */

bool rpc_is_id(const json_t *json)
{
        return json_is_integer(json) || (json_is_string(json) && json_string_length(json) <= RPC_ID_MAX);
}

bool rpc_same_id(const json_t *one, const json_t *other)
{
        return one && other && json_equal(one, other);
}

static int refuse(struct rpc *rpc, enum rpc_code code, struct csn_error *err, const char *field, const char *why)
{
        rpc->code = code;
        return err_field(err, field, "%s", why);
}

json_t *rpc_load(const char *text, size_t len, size_t parts_max, struct csn_error *err)
{
        json_error_t where;
        json_t *json = NULL;
        if (len > RPC_TEXT_MAX)
                err_field(err, "", "the message is longer than %llu MiB", RPC_TEXT_MAX / MIB);
        else if (model_is_deeper(text, len, RPC_DEPTH_MAX))
                err_field(err, "", "the message is nested deeper than %d levels", RPC_DEPTH_MAX);
        else if (model_has_many_parts(text, len, parts_max))
                err_field(err, "", "the message has more than %zu values and names", parts_max);
        else if (!(json = model_read(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where)))
                err_field(err, "", "not JSON: %s (line %d, column %d)", where.text, where.line, where.column);
        return json;
}

static int read_call(struct rpc *rpc, struct csn_error *err)
{
        const json_t *method = json_object_get(rpc->json, "method");
        rpc->kind = rpc->id ? RPC_REQUEST : RPC_NOTIFICATION;
        rpc->method = json_string_value(method);
        rpc->params = json_object_get(rpc->json, "params");
        if (!rpc->method || json_string_length(method) > RPC_METHOD_MAX ||
                strlen(rpc->method) != json_string_length(method))
                return refuse(rpc, RPC_INVALID_REQUEST, err, "/method", "the method is a short text");
        if (rpc->params && !json_is_object(rpc->params))
                return refuse(rpc, RPC_INVALID_REQUEST, err, "/params", "params are an object");
        return 0;
}

static int read_answer(struct rpc *rpc, struct csn_error *err)
{
        json_t *error = json_object_get(rpc->json, "error");
        const json_t *code = json_object_get(error, "code");
        rpc->kind = error ? RPC_ERROR : RPC_RESULT;
        rpc->result = json_object_get(rpc->json, "result");
        rpc->message = json_string_value(json_object_get(error, "message"));
        rpc->data = json_object_get(error, "data");
        if (!error == !rpc->result)
                return refuse(rpc, RPC_INVALID_REQUEST, err, "",
                        "a message has a method, a result or an error, and one of these only");
        if (rpc->result && (!rpc->id || !json_is_object(rpc->result)))
                return refuse(rpc, RPC_INVALID_REQUEST, err, "/result",
                        "a result is an object and has the id of its request");
        if (error && (!json_is_integer(code) || !rpc->message))
                return refuse(rpc, RPC_INVALID_REQUEST, err, "/error",
                        "an error has a number as its code, and a message");
        rpc->code = json_integer_value(code);
        return 0;
}

int rpc_read(const char *text, size_t len, struct rpc *ret, struct csn_error *err)
{
        json_t *json = rpc_load(text, len, RPC_PARTS_MAX, err);
        if (json)
                return rpc_take(json, ret, err);
        *ret = (struct rpc){ .code = RPC_PARSE_ERROR };
        return -err->code;
}

int rpc_take(json_t *json, struct rpc *ret, struct csn_error *err)
{
        *ret = (struct rpc){ .json = json };
        if (json_is_array(ret->json))
                return refuse(ret, RPC_INVALID_REQUEST, err, "", "batches are not taken; send one message at a time");
        if (!json_is_object(ret->json))
                return refuse(ret, RPC_INVALID_REQUEST, err, "", "a message is an object");
        json_t *id = json_object_get(ret->json, "id");
        bool answer = !json_object_get(ret->json, "method");
        ret->id = rpc_is_id(id) ? id : NULL;
        const char *version = json_string_value(json_object_get(ret->json, "jsonrpc"));
        if (!version || strcmp(version, "2.0") != 0)
                return refuse(ret, RPC_INVALID_REQUEST, err, "/jsonrpc", "jsonrpc has to be \"2.0\"");
        if (id && !ret->id && !(json_is_null(id) && answer))
                return refuse(ret, RPC_INVALID_REQUEST, err, "/id",
                        "an id is an integer or a text of at most 200 bytes");
        return answer ? read_answer(ret, err) : read_call(ret, err);
}

void rpc_done(struct rpc *rpc)
{
        json_decref(rpc->json);
        *rpc = (struct rpc){ 0 };
}

/* ---- writing ---- */

static json_t *with(json_t *message, const char *name, json_t *value)
{
        if (value)
                json_object_set_new(message, name, value);
        return message;
}

json_t *rpc_call(json_t *id, const char *method, json_t *params)
{
        return with(json_pack("{s:s, s:O, s:s}", "jsonrpc", "2.0", "id", id, "method", method), "params", params);
}

json_t *rpc_notification(const char *method, json_t *params)
{
        return with(json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method", method), "params", params);
}

json_t *rpc_result(json_t *id, json_t *result)
{
        return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result ? result : json_object());
}

json_t *rpc_error(json_t *id, int64_t code, const char *message, json_t *data)
{
        struct arena arena = { 0 };
        size_t len;
        const char *text = model_utf8(&arena, message, strlen(message), &len);
        json_t *error = with(json_pack("{s:I, s:s}", "code", (json_int_t)code, "message", text), "data", data);
        arena_done(&arena);
        return with(with(json_pack("{s:s}", "jsonrpc", "2.0"), "id", json_incref(id)), "error", error);
}

char *rpc_line(json_t *message, size_t *ret_len)
{
        char *text = model_write(message, JSON_COMPACT | MODEL_MEASURED);
        json_decref(message);
        *ret_len = text ? strlen(text) : 0;
        return text;
}
