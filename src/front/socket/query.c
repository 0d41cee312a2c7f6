/* Questions to caissond, one after the other; see client.h. */
#include "front/socket/client.h"

#define ANSWER_US (20 * 1000000ULL)    /* a check that waits for others may take some seconds */

static void no_output(void *owner, int stream, const void *bytes, size_t len)
{
        (void)owner, (void)stream, (void)bytes, (void)len;
}

static void on_answer(void *owner, enum frame_type type, const char *text, size_t len)
{
        struct daemon_query *daemon_query = owner;
        json_t *answer =
                type == FRAME_STATUS || type == FRAME_CHECKED ? model_read(text, len, JSON_ALLOW_NUL, NULL) : NULL;
        if (!answer)
                err_set(&daemon_query->err, CSN_E_PROTOCOL, 0, "the daemon's answer cannot be read");
        json_decref(daemon_query->answer);
        daemon_query->answer = answer;
        daemon_query->answered = true;
}

static void on_failed(void *owner, const struct csn_error *error, bool refused)
{
        struct daemon_query *daemon_query = owner;
        (void)refused;
        daemon_query->err = *error;
}

static void on_late(struct timer *timer)
{
        struct daemon_query *daemon_query = timer->owner;
        err_set(&daemon_query->err, CSN_E_SYSTEM, 0, "the daemon does not answer");
}

int daemon_query_open(struct daemon_query *daemon_query, const struct settings *settings)
{
        static const struct client_events events = { no_output, on_answer, on_failed };
        *daemon_query = (struct daemon_query){ .late = { .fired = on_late, .owner = daemon_query } };
        if (loop_new(&daemon_query->loop, &daemon_query->err) < 0)
                return -daemon_query->err.code;
        return client_open(daemon_query->loop, settings, &events, daemon_query, &daemon_query->client,
                &daemon_query->err);
}

void daemon_query_close(struct daemon_query *daemon_query)
{
        client_close(daemon_query->client);
        if (daemon_query->loop)
                loop_untimer(daemon_query->loop, &daemon_query->late);
        loop_free(daemon_query->loop);
        json_decref(daemon_query->answer);
}

void daemon_query_ask(struct daemon_query *daemon_query, enum frame_type type, const char *text, size_t len)
{
        daemon_query->answered = false;
        loop_timer(daemon_query->loop, &daemon_query->late, ANSWER_US);
        client_send(daemon_query->client, type, text, len);
}

int daemon_query_wait(struct daemon_query *daemon_query)
{
        while (!daemon_query->answered && !daemon_query->err.code)
                loop_step(daemon_query->loop, -1, &daemon_query->err);
        return -daemon_query->err.code;
}
