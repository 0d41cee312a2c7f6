/* Messages to the engine. */
#include "supervisor/supervisor_private.h"

void sup_give_up(struct supervisor *sup, const struct csn_error *err)
{
        if (!sup->over)
                sup->failure = *err;
        sup->over = true;
}

void sup_answer(struct supervisor *sup, struct buf *message, bool fits, const int *fds, size_t fds_n)
{
        struct csn_error err;
        if (!fits) {
                err_set(&err, CSN_E_SYSTEM, 0, "an answer does not fit in a message");
                sup_give_up(sup, &err);
        } else if (send_queue_put(&sup->answers, message->bytes, message->len, fds, fds_n) < 0 && errno != EPIPE &&
                errno != ECONNRESET) {
                /*
                 * The engine closed its end, with messages unread (ECONNRESET) or without (EPIPE); the reader of the
                 * socket ends us.  All else is our failure.
                 */
                err_set(&err, CSN_E_SYSTEM, errno, "send an answer to the engine");
                sup_give_up(sup, &err);
        }
        buf_done(message);
}

void sup_answer_error(struct supervisor *sup, enum wire_op op, uint32_t id, const struct csn_error *error)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        sup_answer(sup, &message, wire_put_error(&message, op, id, error), NULL, 0);
}
