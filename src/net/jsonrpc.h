/*
 * rpc: messages of JSON-RPC 2.0 (jsonrpc.org/specification) as the Model Context Protocol has them, for either side.
 *
 * That protocol allows less than JSON-RPC does: no batches, params and results that are objects, and ids that are texts or
 * integers.  What is none of that is refused here, so whoever reads on has a message that is one.
 */
#ifndef MODEL_RPC_H
#define MODEL_RPC_H

#include "model/model.h"

#define RPC_TEXT_MAX (64 * MIB)            /* of one message */
#define RPC_DEPTH_MAX 64
#define RPC_PARTS_MAX 1000000              /* values and names in one */
#define RPC_ID_MAX 200                     /* bytes of an id that is a text */
#define RPC_METHOD_MAX 200

enum rpc_code {
        RPC_PARSE_ERROR = -32700,
        RPC_INVALID_REQUEST = -32600,
        RPC_METHOD_NOT_FOUND = -32601,
        RPC_INVALID_PARAMS = -32602,
        RPC_INTERNAL_ERROR = -32603,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESULT, RPC_ERROR };

/* All but `json` is borrowed from it.  All zeros is none. */
struct rpc {
        json_t *json;                      /* the message; see rpc_done() */
        enum rpc_kind kind;
        json_t *id;                        /* NULL: a notification, or an error that is about no request */
        const char *method;                /* REQUEST, NOTIFICATION */
        json_t *params;                    /* the same; an object, or NULL */
        json_t *result;                    /* RESULT; an object */
        int64_t code;                      /* ERROR, or what to answer with where rpc_read() failed */
        const char *message;               /* ERROR */
        json_t *data;                      /* ERROR, or NULL */
};

/*
 * Text into a message.  Errors: CSN_E_INPUT; then ret->code is PARSE_ERROR or INVALID_REQUEST, ret->id what was readable of
 * it or NULL, and rpc_done() is due all the same.
 */
int rpc_read(const char *text, size_t len, struct rpc *ret, struct csn_error *err);
void rpc_done(struct rpc *rpc);

/* The text 1 is not the number 1. */
bool rpc_is_id(const json_t *json);
bool rpc_same_id(const json_t *one, const json_t *other);

/* Messages; they take the references of params, result and data (which may be NULL), and leave the id's.  The caller's reference. */
json_t *rpc_call(json_t *id, const char *method, json_t *params);
json_t *rpc_notification(const char *method, json_t *params);
json_t *rpc_result(json_t *id, json_t *result);
json_t *rpc_error(json_t *id, int64_t code, const char *message, json_t *data);   /* id NULL: it could not be read, and there is none */

/* A message in one line, without its end.  Takes the reference; the caller frees it.  NULL: it cannot be written. */
char *rpc_line(json_t *message, size_t *ret_len);

#endif
