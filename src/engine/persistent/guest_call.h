/*
 * guest_call: one operation of the guest of a persistent sandbox (wire/guest_protocol.h), on a socket of its own.
 *
 * The guest runs inside; every packet is as hostile as the program.  A client that sends much and reads little delays
 * only its own calls.
 */
#ifndef ENGINE_PERSISTENT_GUEST_CALL_H
#define ENGINE_PERSISTENT_GUEST_CALL_H

#include "base/base.h"
#include "wire/guest_protocol.h"

struct guest_call;
struct psandbox;

/* Events of a guest call, from the loop. */
struct guest_call_events {
        /* A packet of the guest; the callee may take descriptors by setting them to -1. */
        void (*packet)(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
                int fds[WIRE_FDS_MAX]);
        /* The socket has room, after guest_call_send() returned false. */
        void (*room)(struct guest_call *call);
        /*
         * The last event: success (error is NULL), or failure.  The call is closed and may be freed.  EXITED and DONE
         * arrive as packets before.
         */
        void (*ended)(struct guest_call *call, const struct csn_error *error);
};

/* Embedded in the caller's object; all zeros means none. */
struct guest_call {
        struct guest_call *next;
        struct psandbox *psandbox;           /* NULL: the call is over */
        struct watch watch;
        const struct guest_call_events *events;
        void *owner;
        bool done;      /* EXITED or DONE arrived: the following end is a success */
        bool counted;   /* for the running work of the sandbox's owner, until the call is over */
        bool spent;     /* killed, because the owner's quota of CPU time is used up */
        bool refused;   /* the guest reported why the operation failed; other errors come from the end of the sandbox */
};

/*
 * Begin a call; ended() follows unless the call is closed.  Errors: CSN_E_BUSY (the sandbox is paused, not ready, or
 * over), CSN_E_INPUT (too long), CSN_E_SYSTEM.
 */
int guest_call_process(struct psandbox *psandbox, struct guest_call *call, const struct guest_process *process,
        struct csn_error *err);
/*
 * The same for a client's program, which counts for the running work of the sandbox's owner and is ended when the CPU
 * time of the owner is used up.  Errors: also CSN_E_BUSY (the sandbox's quotas leave no room).
 */
int guest_call_program(struct psandbox *psandbox, struct guest_call *call, const struct guest_process *process,
        struct csn_error *err);
int guest_call_stdio(struct psandbox *psandbox, struct guest_call *call, struct csn_error *err);
int guest_call_file(struct psandbox *psandbox, struct guest_call *call, const struct guest_file *file,
        struct csn_error *err);
/*
 * Connect to a program that listens on this port of the sandbox's loopback: STARTED when connected, then as a process.
 * Fails with ECONNREFUSED in sys if no program listens.  Errors: as above.
 */
int guest_call_connect(struct psandbox *psandbox, struct guest_call *call, unsigned port, struct csn_error *err);

/*
 * While the call is open, programs of `user` may become root by sudo.  Fails in a sandbox without root.  Errors: as
 * above.
 */
int guest_call_sudo(struct psandbox *psandbox, struct guest_call *call, struct csn_error *err);
/*
 * While the call is open, GET /health on this port of the sandbox's loopback is answered with success.  Fails if the
 * port is in use.  Errors: as above.
 */
int guest_call_health(struct psandbox *psandbox, struct guest_call *call, unsigned port, struct csn_error *err);

/* Send one packet, a kind and its bytes.  false: no room now, or the call is over. */
bool guest_call_send(struct guest_call *call, enum guest_kind kind, const void *bytes, size_t len);
bool guest_call_signal(struct guest_call *call, int signal, uint64_t pid);
bool guest_call_resize(struct guest_call *call, unsigned rows, unsigned columns);
/* Stop reading, so that the guest waits; or continue. */
void guest_call_hold(struct guest_call *call, bool on);
/* Close the call without ended().  A running program is killed.  Harmless twice. */
void guest_call_close(struct guest_call *call);

#endif
