/* Messages of JSON-RPC: what is one, what is not, and which code tells so. */
#include "net/jsonrpc.h"

#include "tap.h"

/* The message's kind, or the code of its refusal. */
static int64_t kind_of(const char *text)
{
        struct csn_error err;
        struct rpc rpc;
        int64_t kind = rpc_read(text, strlen(text), &rpc, &err) < 0 ? rpc.code : (int64_t)rpc.kind;
        rpc_done(&rpc);
        return kind;
}

static void messages_are_told_apart(void)
{
        CHECK(kind_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}") == RPC_REQUEST);
        CHECK(kind_of("{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\",\"params\":{}}") == RPC_REQUEST);
        CHECK(kind_of("{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}") == RPC_NOTIFICATION);
        CHECK(kind_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}") == RPC_RESULT);
        CHECK(kind_of("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-1,\"message\":\"m\"}}") == RPC_ERROR);
        CHECK(kind_of("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-1,\"message\":\"m\"}}") == RPC_ERROR);
}

static void what_is_no_message_is_refused_with_its_code(void)
{
        static const struct { const char *text; int64_t code;
        } rows[] = {
                { "", RPC_PARSE_ERROR },
                { "{", RPC_PARSE_ERROR },
                { "{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\",\"method\":\"a\"}", RPC_PARSE_ERROR },
                { "7", RPC_PARSE_ERROR },
                { "[]", RPC_INVALID_REQUEST },
                { "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}]", RPC_INVALID_REQUEST },
                { "{}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"a\"}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"result\":{}}", RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}",
                        RPC_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"\"}}", RPC_INVALID_REQUEST },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                CHECK(kind_of(rows[i].text) == rows[i].code);
}

/* "[[[…" or "1,1,1,…" of n, as the params of a request. */
static int64_t kind_of_many(const char *part, size_t n)
{
        struct buf buf;
        buf_init(&buf, 8 * MIB);
        buf_printf(&buf, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"p\":");
        for (size_t i = 0; i < n; i++)
                buf_add(&buf, part, strlen(part));
        int64_t kind = kind_of(buf.bytes);
        buf_done(&buf);
        return kind;
}

static void depth_parts_and_ids_have_bounds(void)
{
        char id[RPC_ID_MAX + 2], text[RPC_ID_MAX + 100];
        CHECK(kind_of_many("[", 100000) == RPC_PARSE_ERROR);
        CHECK(kind_of_many("1,", RPC_PARTS_MAX + 1) == RPC_PARSE_ERROR);
        memset(id, 'x', sizeof id);
        id[RPC_ID_MAX + 1] = 0;
        snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"a\"}", id);
        CHECK(kind_of(text) == RPC_INVALID_REQUEST);
        snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"a\"}", id + 1);
        CHECK(kind_of(text) == RPC_REQUEST);
}

static void a_refusal_has_the_id_that_could_be_read(void)
{
        struct csn_error err;
        struct rpc rpc;
        const char *text = "{\"jsonrpc\":\"2.0\",\"id\":\"seven\",\"method\":7}";
        CHECK(rpc_read(text, strlen(text), &rpc, &err) < 0);
        CHECK(rpc.id && strcmp(json_string_value(rpc.id), "seven") == 0);
        rpc_done(&rpc);
}

static void the_text_1_is_not_the_number_1(void)
{
        json_t *text = json_string("1"), *number = json_integer(1), *other = json_integer(1);
        CHECK(!rpc_same_id(text, number));
        CHECK(rpc_same_id(other, number));
        CHECK(!rpc_same_id(NULL, number) && !rpc_same_id(NULL, NULL));
        json_decref(text);
        json_decref(number);
        json_decref(other);
}

static bool writes(json_t *message, const char *expected)
{
        size_t len;
        char *text = rpc_line(message, &len);
        bool same = text && strcmp(text, expected) == 0 && strlen(text) == len;
        free(text);
        return same;
}

static void messages_are_written(void)
{
        json_t *id = json_integer(3);
        CHECK(writes(rpc_call(id, "a/b", json_pack("{s:i}", "x", 1)),
                "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a/b\",\"params\":{\"x\":1}}"));
        CHECK(writes(rpc_notification("n", NULL), "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}"));
        CHECK(writes(rpc_result(id, NULL), "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}"));
        CHECK(writes(rpc_error(id, RPC_INVALID_PARAMS, "no\xff", NULL),
                     "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32602,\"message\":\"no\xef\xbf\xbd\"}}"));
        CHECK(writes(rpc_error(NULL, RPC_PARSE_ERROR, "m", json_true()),
                     "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"m\",\"data\":true}}"));
        json_decref(id);
}

int main(void)
{
        RUN(messages_are_told_apart);
        RUN(what_is_no_message_is_refused_with_its_code);
        RUN(depth_parts_and_ids_have_bounds);
        RUN(a_refusal_has_the_id_that_could_be_read);
        RUN(the_text_1_is_not_the_number_1);
        RUN(messages_are_written);
        return tap_done();
}
