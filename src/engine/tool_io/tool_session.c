/* The tools of a run or of a persistent sandbox: a broker, whoever that is, and the tool socket through which code asks it. */
#include "engine/run/run_private.h"

void engine_set_tools(struct engine *engine, const struct engine_tools *tools, void *owner)
{
        engine->tools = tools;
        engine->tools_owner = owner;
}

bool tool_session_wanted(const struct tools_request *request)
{
        return request->enabled || request->allow_n || request->client_n || HAS(request, tools_request, replay);
}

/* Texts in JSON may take twice their bytes; beyond that the broker need not look. */
static size_t message_max(const struct tools_request *request)
{
        return (size_t)request->payload_bytes * 2 + 4096;
}

/* Each call may be looked up before, and be refused now and then; more than that is a loop that does nothing else. */
static uint64_t requests_max(const struct tools_request *request)
{
        return request->calls * 3 + 10000;
}

int tool_session_open(struct engine *engine, const struct tools_for *whom, struct tool_session *ret, struct csn_error *err)
{
        if (!engine->tools)
                return err_field(err, "/tools", "this program has no tools: they are in caissond, and in caisson run");
        ret->tools = engine->tools;
        ret->message_max = message_max(whom->request);
        ret->requests_max = requests_max(whom->request);
        return engine->tools->open(engine->tools_owner, whom, &ret->broker, err);
}

int tool_session_serve(struct tool_session *instance, struct loop *loop, int listen_fd, struct csn_error *err)
{
        return tool_socket_open(loop, listen_fd, instance->message_max, instance->requests_max, &instance->tools->tool_socket, instance->broker, &instance->tool_socket, err);
}

void tool_session_unserve(struct tool_session *instance)
{
        if (instance->tool_socket)
                instance->tools->stop(instance->broker);
        tool_socket_close(instance->tool_socket);
        instance->tool_socket = NULL;
}

void tool_session_close(struct tool_session *instance)
{
        tool_session_unserve(instance);
        if (instance->broker)
                instance->tools->close(instance->broker);
        instance->broker = NULL;
}

void *run_broker(const struct run *run)
{
        return run->tool_session.broker;
}

void run_set_listener(struct run *run, const struct run_listener *listener, void *owner)
{
        run->listener = listener;
        run->listener_owner = owner;
}

bool run_has_listener(const struct run *run)
{
        return run->listener != NULL;
}

void run_tell(struct run *run, json_t *event)
{
        if (run->listener)
                run->listener->told(run->listener_owner, event);
        else
                json_decref(event);
}
