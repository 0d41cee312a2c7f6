/*
 * rpc: JSON-RPC 2.0 messages (jsonrpc.org/specification) as the Model Context Protocol uses them, for both sides.
 *
 * The protocol allows less than JSON-RPC: no batches, params and results are objects, ids are texts or integers.  All
 * else is refused here, so later code has a valid message.
 */
#ifndef NET_JSONRPC_H
#define NET_JSONRPC_H

#include "model/model.h"

#define RPC_TEXT_MAX (64 * MIB)            /* bytes of a message */
#define RPC_DEPTH_MAX 64
#define RPC_PARTS_MAX 1000000              /* values and names in a message of rpc_read() */
#define RPC_ID_MAX 200                     /* bytes of a text id */
#define RPC_METHOD_MAX 200

enum rpc_code {
        RPC_PARSE_ERROR = -32700,
        RPC_INVALID_REQUEST = -32600,
        RPC_METHOD_NOT_FOUND = -32601,
        RPC_INVALID_PARAMS = -32602,
        RPC_INTERNAL_ERROR = -32603,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESULT, RPC_ERROR };

/* A message.  All but `json` is borrowed from `json`.  All zeros means none. */
struct rpc {
        json_t *json;                      /* the message, freed by rpc_done() */
        enum rpc_kind kind;
        json_t *id;                        /* NULL: a notification, or an error about no request */
        const char *method;                /* REQUEST, NOTIFICATION */
        json_t *params;                    /* REQUEST, NOTIFICATION; an object, or NULL */
        json_t *result;                    /* RESULT; an object */
        int64_t code;                      /* ERROR; after a failed rpc_read() the code for the answer */
        const char *message;               /* ERROR */
        json_t *data;                      /* ERROR, or NULL */
};

/*
 * Parse a message.  Errors: CSN_E_INPUT; then ret->code is PARSE_ERROR or INVALID_REQUEST, and ret->id is the readable
 * id or NULL.  The caller ends with rpc_done() in any case.
 */
int rpc_read(const char *text, size_t len, struct rpc *ret, struct csn_error *err);
/*
 * The two halves of rpc_read(): parse a text of at most parts_max values and names (NULL and *err: PARSE_ERROR); check
 * a tree, whose reference becomes the callee's.
 */
json_t *rpc_load(const char *text, size_t len, size_t parts_max, struct csn_error *err);
int rpc_take(json_t *json, struct rpc *ret, struct csn_error *err);
void rpc_done(struct rpc *rpc);

/* Whether a value is a valid id; whether two ids are equal: the text 1 is not the number 1. */
bool rpc_is_id(const json_t *json);
bool rpc_same_id(const json_t *one, const json_t *other);

/*
 * Create messages.  References to params, result and data (which may be NULL) become the callee's, the id's stays the
 * caller's.  The result is the caller's reference.
 */
json_t *rpc_call(json_t *id, const char *method, json_t *params);
json_t *rpc_notification(const char *method, json_t *params);
json_t *rpc_result(json_t *id, json_t *result);
json_t *rpc_error(json_t *id, int64_t code, const char *message, json_t *data); /* id NULL: the id could not be read */

/*
 * A message as text in one line, without a line end; the caller frees the text.  The reference becomes the callee's.
 * NULL: not representable.
 */
char *rpc_line(json_t *message, size_t *ret_len);

#endif
