/*
 * Hostile messages of JSON-RPC: what is refused says why and with which code, and what is accepted keeps what the
 * header promises, and is the same message when it was written and read again.
 */
#include "net/jsonrpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void check_refused(const struct rpc *rpc, const struct csn_error *err)
{
        size_t len;
        require(rpc->code == RPC_PARSE_ERROR || rpc->code == RPC_INVALID_REQUEST);
        require(err->code == CSN_E_INPUT && err->text[0]);
        char *text = rpc_line(rpc_error(rpc->id, rpc->code, err->text, NULL), &len);
        require(text && !memchr(text, '\n', len));
        free(text);
}

static void check_message(const struct rpc *rpc)
{
        struct csn_error err;
        struct rpc again;
        size_t len;
        require(!rpc->id || rpc_is_id(rpc->id));
        if (rpc->kind == RPC_REQUEST || rpc->kind == RPC_NOTIFICATION)
                require(rpc->method && (!rpc->params || json_is_object(rpc->params)) &&
                        !!rpc->id == (rpc->kind == RPC_REQUEST));
        else
                require(rpc->kind == RPC_RESULT ? rpc->id && json_is_object(rpc->result) : !!rpc->message);
        char *text = rpc_line(json_incref(rpc->json), &len);
        require(text && rpc_read(text, len, &again, &err) == 0 && again.kind == rpc->kind &&
                json_equal(again.json, rpc->json));
        rpc_done(&again);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct csn_error err = { 0 };
        struct rpc rpc;
        /* libFuzzer reads the random mark of large integers (model/integers.c) out of comparisons; a client cannot. */
        if (memmem(bytes, len, "integer:", strlen("integer:")))
                return 0;
        if (rpc_read((const char *)bytes, len, &rpc, &err) < 0)
                check_refused(&rpc, &err);
        else
                check_message(&rpc);
        rpc_done(&rpc);
        return 0;
}
