/*
 * tool socket: where programs in a sandbox ask for something outside, and get an answer.
 *
 * A socket listens at WIRE_TOOL_SOCKET_PATH inside that was handed out to us, so threads, forked processes and other programs in
 * there can all use it.  A connection has one request and one answer, each a number of four bytes (its length, the lowest
 * byte first) and that many bytes.  What they mean is its owner's to know.
 *
 * Whoever asks is hostile: there are ceilings for connections, for a message, for all of them together, and a clock in every
 * state.  Those that find no room wait in the kernel, and only their own sandbox waits with them.
 */
#ifndef ENGINE_TOOL_SOCKET_H
#define ENGINE_TOOL_SOCKET_H

#include "base/base.h"

#define TOOL_SOCKET_CONNECTIONS_MAX 64           /* at once; others wait to be accepted */
#define TOOL_SOCKET_MESSAGE_MAX (32 * MIB)       /* of one message, whatever its owner says */
#define TOOL_SOCKET_BYTES_MAX (64 * MIB)         /* of all requests and answers at once */
#define TOOL_SOCKET_READ_MS 10000                /* from the connection to the end of its request */
#define TOOL_SOCKET_WRITE_MS 60000               /* until the answer is read to its end */

struct tool_socket;

/* A request that has no answer yet.  Embedded in what is the tool socket's. */
struct tool_socket_call {
        void *owner;                       /* the callee's own, NULL at first */
};

struct tool_socket_events {
        /* tool_socket_answer() follows, perhaps from here.  message NULL: it was too long, `len` bytes, and was not read. */
        void (*asked)(void *owner, struct tool_socket_call *call, const char *message, size_t len);
        /* Who asked has gone, and the call with him. */
        void (*gone)(void *owner, struct tool_socket_call *call);
};

/*
 * Serve the listening socket, which is taken in any case.  message_max is that of a request; after requests_max of them nobody
 * listens any more, which the kernel answers.  Errors: CSN_E_PROTOCOL (it is not
 * such a socket), CSN_E_SYSTEM.
 */
int tool_socket_open(struct loop *loop, int listen_fd, size_t message_max, uint64_t requests_max, const struct tool_socket_events *events, void *owner, struct tool_socket **ret,
               struct csn_error *err);
/* Whether an answer of that many bytes fits beside all others.  If not, a short one says so in its place. */
bool tool_socket_has_room(const struct tool_socket_call *call, size_t len);
/* The call is over; at most TOOL_SOCKET_MESSAGE_MAX bytes, which are copied. */
void tool_socket_answer(struct tool_socket_call *call, const char *message, size_t len);
/* All connections end; gone() is not called.  NULL is fine. */
void tool_socket_close(struct tool_socket *tool_socket);

/* Whether somebody inside has connected; NULL: nobody has. */
bool tool_socket_was_asked(const struct tool_socket *tool_socket);

#endif
