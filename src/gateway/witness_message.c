/* Bodies and messages of notes about Idempotency-Keys: POST /v1/gateway/witness. */
#include "gateway/gateway_private.h"

struct witness_message {
        struct witness_message *next;
        struct gateway *gateway;
        struct worker_call call;
};

/* ---- bodies ---- */

static json_t *begin_body(const struct hop_claims *claims, const char *key, const char *attempt)
{
        json_t *body = json_pack("{s:s, s:s}", "idempotency_key", key, "attempt", attempt);
        if (claims)
                json_object_set_new(body, "tenant", json_string(claims->tenant));
        return body;
}

json_t *witness_body(const struct hop_claims *claims, const char *key, const struct key_note *note, json_t *replaces)
{
        json_t *body = begin_body(claims, key, note->attempt);
        json_object_set_new(body, "tag", json_string(note->tag));
        json_object_set_new(body, "pod", json_string(note->pod));
        json_object_set_new(body, "uid", json_string(note->uid));
        json_object_set_new(body, "hash", json_string(note->hash));
        json_object_set_new(body, "replaces", replaces);
        return body;
}

json_t *witness_withdrawal(const struct hop_claims *claims, const char *key, const char *attempt)
{
        json_t *body = begin_body(claims, key, attempt);
        json_object_set_new(body, "withdraw", json_true());
        return body;
}

/* ---- messages ---- */

static void message_free(struct witness_message *message)
{
        worker_call_stop(&message->call);
        free(message);
}

static void on_told(struct worker_call *call, enum call_end end, const char *why)
{
        struct witness_message *message = call->owner, **at = &message->gateway->messages;
        (void)end, (void)why;
        while (*at != message)
                at = &(*at)->next;
        *at = message->next;
        message_free(message);
}

void witness_tell(const struct witness_sender *sender, struct gateway_worker *const *workers, size_t n, json_t *body)
{
        struct gateway *gateway = sender->gateway;
        char *text = json_dumps(body, JSON_COMPACT);
        json_decref(body);
        for (size_t i = 0; text && i < n; i++) {
                struct witness_message *message = mem_alloc(sizeof *message);
                *message = (struct witness_message){ .next = gateway->messages, .gateway = gateway };
                gateway->messages = message;
                message->call.owner = message;
                message->call.done = on_told;
                worker_call_start(&message->call, workers[i], "POST", "/v1/gateway/witness", sender->claims,
                        sender->head, text, strlen(text), ASK_MS);
        }
        free(text);
}

void witness_messages_close(struct gateway *gateway)
{
        while (gateway->messages) {
                struct witness_message *next = gateway->messages->next;
                message_free(gateway->messages);
                gateway->messages = next;
        }
}
