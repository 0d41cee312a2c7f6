/*
 * tool socket: carries requests from programs in a sandbox to the engine, and the answers back.
 *
 * A socket listens inside at WIRE_TOOL_SOCKET_PATH; its descriptor was passed out to the engine, so threads, forked
 * processes and other programs inside can all use it.  A connection carries one request and one answer, each a length
 * of four bytes (little endian) and the message.  The owner defines the meaning of messages.
 *
 * The programs are untrusted: the number of connections, the size of a message and of all messages together are
 * limited, and each state has a time limit.  Connections beyond the limit wait in the kernel, and delay only their own
 * sandbox.
 */
#ifndef ENGINE_TOOL_IO_TOOL_SOCKET_H
#define ENGINE_TOOL_IO_TOOL_SOCKET_H

#include "base/base.h"

#define TOOL_SOCKET_CONNECTIONS_MAX 64           /* simultaneous connections; further ones wait to be accepted */
#define TOOL_SOCKET_MESSAGE_MAX (32 * MIB)       /* bytes of a message, whatever limit the owner sets */
#define TOOL_SOCKET_BYTES_MAX (64 * MIB)         /* bytes of all requests and answers together */
#define TOOL_SOCKET_READ_MS 10000                /* from the connection to the end of its request */
#define TOOL_SOCKET_WRITE_MS 60000               /* until the answer is read completely */

struct tool_socket;

/* A request without an answer.  Embedded in an object of the tool socket. */
struct tool_socket_call {
        void *owner;                       /* for the callee's use, NULL at first */
};

/* Events of a tool socket, from the loop. */
struct tool_socket_events {
        /*
         * A request arrived; tool_socket_answer() follows, possibly from here.  message NULL: `len` exceeds the limit,
         * and nothing was read.
         */
        void (*asked)(void *owner, struct tool_socket_call *call, const char *message, size_t len);
        /* The program has closed the connection; the call is freed after the return. */
        void (*gone)(void *owner, struct tool_socket_call *call);
};

/*
 * Serve the listening socket, which becomes the callee's even on failure.  message_max limits a request; after
 * requests_max requests the socket closes, and the kernel refuses connections.  *ret is the caller's until
 * tool_socket_close().  Errors: CSN_E_PROTOCOL (not a listening socket of this kind), CSN_E_SYSTEM.
 */
int tool_socket_open(struct loop *loop, int listen_fd, size_t message_max, uint64_t requests_max,
        const struct tool_socket_events *events, void *owner, struct tool_socket **ret, struct csn_error *err);
/* Whether an answer of len bytes fits beside all others.  If not, the caller sends a short error. */
bool tool_socket_has_room(const struct tool_socket_call *call, size_t len);
/* Answer and end the call; at most TOOL_SOCKET_MESSAGE_MAX bytes, which are copied. */
void tool_socket_answer(struct tool_socket_call *call, const char *message, size_t len);
/* Close all connections and the socket, without gone(), and free.  NULL is fine. */
void tool_socket_close(struct tool_socket *tool_socket);

/* Whether a program has ever connected.  NULL: false. */
bool tool_socket_was_asked(const struct tool_socket *tool_socket);

#endif
