/* Questions to caissond, one after the other; see client.h. */
#include "front/socket/client.h"

#define ANSWER_US (20 * 1000000ULL)    /* a check that waits for others may take some seconds */

static void no_output(void *owner, int stream, const void *bytes, size_t len)
{
        (void)owner, (void)stream, (void)bytes, (void)len;
}

static void on_answer(void *owner, enum frame_type type, const char *text, size_t len)
{
        struct asker *asker = owner;
        json_t *answer = type == FRAME_STATUS || type == FRAME_CHECKED ? model_read(text, len, JSON_ALLOW_NUL, NULL) : NULL;
        if (!answer)
                err_set(&asker->err, CSN_E_PROTOCOL, 0, "the daemon's answer cannot be read");
        json_decref(asker->answer);
        asker->answer = answer;
        asker->answered = true;
}

static void on_failed(void *owner, const struct csn_error *error, bool refused)
{
        struct asker *asker = owner;
        (void)refused;
        asker->err = *error;
}

static void on_late(struct timer *timer)
{
        struct asker *asker = timer->owner;
        err_set(&asker->err, CSN_E_SYSTEM, 0, "the daemon does not answer");
}

int asker_open(struct asker *asker, const struct settings *settings)
{
        static const struct client_events events = { no_output, on_answer, on_failed };
        *asker = (struct asker){ .late = { .fired = on_late, .owner = asker } };
        if (loop_new(&asker->loop, &asker->err) < 0)
                return -asker->err.code;
        return client_open(asker->loop, settings, &events, asker, &asker->client, &asker->err);
}

void asker_close(struct asker *asker)
{
        client_close(asker->client);
        if (asker->loop)
                loop_untimer(asker->loop, &asker->late);
        loop_free(asker->loop);
        json_decref(asker->answer);
}

void asker_ask(struct asker *asker, enum frame_type type, const char *text, size_t len)
{
        asker->answered = false;
        loop_timer(asker->loop, &asker->late, ANSWER_US);
        client_send(asker->client, type, text, len);
}

int asker_wait(struct asker *asker)
{
        while (!asker->answered && !asker->err.code)
                loop_step(asker->loop, -1, &asker->err);
        return -asker->err.code;
}
