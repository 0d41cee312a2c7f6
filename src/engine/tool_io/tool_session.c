/* The tools of a run or of a persistent sandbox: a broker, and the socket on which code asks the broker. */
#include "engine/tool_io/tool_session.h"

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

int tool_session_open(const struct engine_tools *tools, void *tools_owner, const struct tools_for *whom,
        struct tool_session *ret, struct csn_error *err)
{
        if (!tools)
                return err_field(err, "/tools", "this program has no tools: they are in caissond, and in caisson run");
        ret->tools = tools;
        ret->message_max = message_max(whom->request);
        ret->requests_max = requests_max(whom->request);
        return tools->open(tools_owner, whom, &ret->broker, err);
}

int tool_session_serve(struct tool_session *session, struct loop *loop, int listen_fd, struct csn_error *err)
{
        return tool_socket_open(loop, listen_fd, session->message_max, session->requests_max,
                &session->tools->tool_socket, session->broker, &session->tool_socket, err);
}

void tool_session_unserve(struct tool_session *session)
{
        if (session->tool_socket)
                session->tools->stop(session->broker);
        tool_socket_close(session->tool_socket);
        session->tool_socket = NULL;
}

void tool_session_close(struct tool_session *session)
{
        tool_session_unserve(session);
        if (session->broker)
                session->tools->close(session->broker);
        session->broker = NULL;
}
