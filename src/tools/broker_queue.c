/*
 * The pending requests of a broker: in the order of arrival, and within bounds of memory.
 *
 * A timer of the loop looks for requests to continue, because the end of one request may free any other.
 */
#include "tools/tools_private.h"

#include <inttypes.h>
#include <stdio.h>

struct loop *broker_loop(const struct broker *broker)
{
        return engine_loop(broker->tools->engine);
}

struct ask *ask_new(struct broker *broker, struct tool_socket_call *from, json_t *request,
        void (*fired)(struct timer *timer))
{
        struct ask *ask = mem_alloc(sizeof *ask), **at = &broker->asks;
        *ask = (struct ask){ .broker = broker,
                .from = from,
                .request = request,
                .timer = { .fired = fired, .owner = ask },
                .begun_us = clock_us() };
        snprintf(ask->id, sizeof ask->id, "call_%" PRIu64, ++broker->ids);
        while (*at)
                at = &(*at)->next;
        *at = ask;
        return ask;
}

void ask_free(struct ask *ask)
{
        struct broker *broker = ask->broker;
        for (struct ask **at = &broker->asks; *at; at = &(*at)->next)
                if (*at == ask) {
                        *at = ask->next;
                        break;
                }
        loop_untimer(broker_loop(broker), &ask->timer);
        broker->held -= ask->held;
        broker->tools->held -= ask->held;
        json_decref(ask->request);
        json_decref(ask->call.arguments);
        free(ask);
}

static size_t parts_of(json_t *json)
{
        const char *name;
        json_t *value;
        size_t i, n = 1;
        json_object_foreach(json, name, value)
                n += 1 + parts_of(value);
        json_array_foreach(json, i, value)
                n += parts_of(value);
        return n;
}

bool ask_hold(struct ask *ask)
{
        struct broker *broker = ask->broker;
        size_t bytes = ask->bytes + parts_of(ask->call.arguments) * PART_BYTES;
        if (broker->held + bytes > HELD_MAX || broker->tools->held + bytes > TOOLS_HELD_MAX)
                return false;
        ask->held = bytes;
        broker->held += bytes;
        broker->tools->held += bytes;
        return true;
}

struct ask *broker_next_due(const struct broker *broker)
{
        struct ask *ask = broker->asks;
        while (ask &&
                (ask->pass == broker->passes ||
                        !((ask->state == ASK_QUEUED && broker->running < broker->request->concurrent) ||
                                (ask->state == ASK_SETTLING && broker->changed))))
                ask = ask->next;
        return ask;
}

void broker_wake_queued(struct broker *broker)
{
        for (const struct ask *ask = broker->asks; ask; ask = ask->next)
                if (ask->state == ASK_QUEUED) {
                        loop_timer(broker_loop(broker), &broker->again, 0);
                        return;
                }
}
