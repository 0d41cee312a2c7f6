/*
 * tool_session: the tools of one run or persistent sandbox: a broker, which answers calls, and the socket on which code
 * inside asks the broker.
 */
#ifndef ENGINE_TOOL_IO_TOOL_SESSION_H
#define ENGINE_TOOL_IO_TOOL_SESSION_H

#include "engine/tool_io/tool_socket.h"
#include "model/model.h"

struct run;

/* The run or persistent sandbox that a broker serves.  All of it must outlive the broker. */
struct tools_for {
        const struct tools_request *request;   /* with all defaults */
        const char *id, *owner;                /* id of the run or the sandbox; key of its owner, or "" */
        struct run *run;                       /* NULL: a persistent sandbox */
};

/* The tools of an engine.  The engine moves the bytes of calls and knows no tool. */
struct engine_tools {
        struct tool_socket_events tool_socket; /* the owner is the broker; must not call tool_socket_close() */
        /* Make a broker.  Errors: CSN_E_INPUT with the field of the request. */
        int (*open)(void *owner, const struct tools_for *whom, void **ret_broker, struct csn_error *err);
        /* The sandbox is gone: forget all open calls. */
        void (*stop)(void *broker);
        /* Report the calls, from the arena, and add warnings to the record of the run. */
        void (*report)(void *broker, struct arena *arena, struct tools_used *ret);
        void (*close)(void *broker);
        /* The engine ends: no broker exists any more, and the loop still does. */
        void (*end)(void *owner);
};

/* All zeros: no tools. */
struct tool_session {
        const struct engine_tools *tools;
        void *broker;
        size_t message_max;
        uint64_t requests_max;
        struct tool_socket *tool_socket;           /* while the sandbox exists */
};

/* Make a broker.  tools NULL: this program has none.  Errors: CSN_E_INPUT. */
int tool_session_open(const struct engine_tools *tools, void *tools_owner, const struct tools_for *whom,
        struct tool_session *ret, struct csn_error *err);
/* The sandbox exists: accept on the socket.  Takes the descriptor. */
int tool_session_serve(struct tool_session *session, struct loop *loop, int listen_fd, struct csn_error *err);
/* The sandbox is gone. */
void tool_session_unserve(struct tool_session *session);
/* Close the broker.  Harmless twice. */
void tool_session_close(struct tool_session *session);

#endif
