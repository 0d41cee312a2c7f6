/* Wire format of Connect RPC: codes, envelopes, headers and members of messages; see envd.h. */
#include "front/e2b/envd/envd.h"

/* ---- codes ---- */

static const struct { const char *name; unsigned status; } codes[RPC_CODES] = {
        [RPC_CANCELED] = { "canceled", 499 },
        [RPC_UNKNOWN] = { "unknown", 500 },
        [RPC_INVALID_ARGUMENT] = { "invalid_argument", 400 },
        [RPC_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
        [RPC_NOT_FOUND] = { "not_found", 404 },
        [RPC_ALREADY_EXISTS] = { "already_exists", 409 },
        [RPC_PERMISSION_DENIED] = { "permission_denied", 403 },
        [RPC_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
        [RPC_FAILED_PRECONDITION] = { "failed_precondition", 400 },
        [RPC_ABORTED] = { "aborted", 409 },
        [RPC_OUT_OF_RANGE] = { "out_of_range", 400 },
        [RPC_UNIMPLEMENTED] = { "unimplemented", 501 },
        [RPC_INTERNAL] = { "internal", 500 },
        [RPC_UNAVAILABLE] = { "unavailable", 503 },
        [RPC_DATA_LOSS] = { "data_loss", 500 },
        [RPC_UNAUTHENTICATED] = { "unauthenticated", 401 },
};

const char *rpc_code_name(enum rpc_code code)
{
        return codes[code].name;
}

unsigned rpc_code_status(enum rpc_code code)
{
        return codes[code].status;
}

/* ---- envelopes ---- */

void rpc_wrap(unsigned flags, size_t len, uint8_t ret[static RPC_ENVELOPE])
{
        ret[0] = (uint8_t)flags;
        for (int i = 0; i < 4; i++)
                ret[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}

int rpc_unwrap(const char *body, size_t len, size_t *ret_at, size_t *ret_len, struct csn_error *err)
{
        const uint8_t *bytes = (const uint8_t *)body;
        if (len < RPC_ENVELOPE)
                return err_field(err, "/", "protocol error: incomplete envelope: %zu bytes", len);
        size_t size = (size_t)bytes[1] << 24 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 8 | bytes[4];
        if (bytes[0] != 0)
                return err_field(err, "/",
                        "the flags of the envelope are %u; it has to be one message that is not compressed", bytes[0]);
        if (size != len - RPC_ENVELOPE)
                return err_field(err, "/", "protocol error: the envelope promises %zu bytes, and %zu are there", size,
                        len - RPC_ENVELOPE);
        *ret_at = RPC_ENVELOPE;
        *ret_len = size;
        return 0;
}

uint64_t rpc_header_number(const char *text)
{
        size_t len = text ? strspn(text, "0123456789") : 0;
        return len && len <= 10 && !text[len] ? strtoull(text, NULL, 10) : 0;
}

/* ---- members of messages ---- */

const char *rpc_string(const json_t *json, const char *name)
{
        return json_string_value(json_object_get(json, name));
}

uint64_t rpc_number(const json_t *json, const char *name, uint64_t def)
{
        uint64_t number;
        return e2b_number(json_object_get(json, name), &number) ? number : def;
}

bool rpc_bool(const json_t *json, const char *name, bool def)
{
        const json_t *value = json_object_get(json, name);
        return json_is_boolean(value) ? json_is_true(value) : def;
}
