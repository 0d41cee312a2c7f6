/* Calls: one operation of a guest, on a socket of its own.  All input is hostile. */
#include "engine/persistent/psandbox_private.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define PACKETS_AT_ONCE 16
#define PACKETS_US 2000 /* per step: owners write packets to files, and the disk may be busy */

static void forget(struct guest_call *call)
{
        if (!call->psandbox)
                return;
        for (struct guest_call **at = &call->psandbox->calls; *at; at = &(*at)->next)
                if (*at == call) {
                        *at = call->next;
                        break;
                }
        loop_unwatch(call->psandbox->engine->loop, &call->watch);
        fd_close(&call->watch.fd);
        if (call->counted) {
                owner_end_other(call->psandbox->payer);
                queue_changed(call->psandbox->engine);
        }
        call->counted = false;
        call->psandbox->call_user->used(call->psandbox);
        call->psandbox = NULL;
}

void guest_call_close(struct guest_call *call)
{
        forget(call);
}

static void end(struct guest_call *call, const struct csn_error *error)
{
        forget(call);
        call->events->ended(call, error);
}

/* ---- incoming packets ---- */

static bool take_packet(struct guest_call *call, const uint8_t *bytes, size_t len, int fds[WIRE_FDS_MAX])
{
        enum guest_kind kind = guest_kind_of(bytes, len);
        struct csn_error error, err;
        if (kind == GUEST_FAILED) {
                call->refused = true;
                end(call, guest_get_error(bytes, len, &error, &err) < 0 ? &err : &error);
                return false;
        }
        if (!kind || call->done) {
                err_set(&err, CSN_E_PROTOCOL, 0, "the guest sent what it may not");
                end(call, &err);
                return false;
        }
        call->done = kind == GUEST_EXITED || kind == GUEST_DONE;
        bool done = call->done;
        call->events->packet(call, kind, bytes, len, fds);
        if (!call->psandbox)
                return false;
        if (kind == GUEST_EXITED)
                call->psandbox->call_user->program_ended(call->psandbox);
        if (done)
                end(call, NULL);
        return !done;
}

/* Reads one packet.  False: no packet is there, or the call has ended. */
static bool read_packet(struct guest_call *call)
{
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct csn_error err;
        bool more = false;
        ssize_t len = wire_receive(call->watch.fd, bytes, fds, &fds_n);
        if (len < 0 && errno == EAGAIN)
                return false;
        if (len > 0) {
                more = take_packet(call, bytes, (size_t)len, fds);
        } else {
                err_set(&err, len < 0 ? CSN_E_PROTOCOL : CSN_E_BUSY, len < 0 ? errno : 0,
                        "the sandbox ended, or its guest broke off");
                /* The socket shows the end of a killed sandbox earlier than the supervisor reports the end. */
                end(call, call->psandbox->why.code ? &call->psandbox->why : &err);
        }
        for (size_t i = 0; i < WIRE_FDS_MAX; i++)
                fd_close(&fds[i]);
        return more;
}

static void guest_call_ready(struct watch *watch, uint32_t events)
{
        struct guest_call *call = watch->owner;
        struct csn_error err;
        uint64_t until_us = clock_us() + PACKETS_US;
        if (events & EPOLLOUT) {
                if (loop_watch(call->psandbox->engine->loop, watch, watch->fd, EPOLLIN, &err) < 0) {
                        end(call, &err);
                        return;
                }
                call->events->room(call);
                if (!(events & ~(uint32_t)EPOLLOUT))
                        return;
        }
        for (int i = 0; i < PACKETS_AT_ONCE && call->psandbox && call->watch.active && read_packet(call); i++)
                if (clock_us() >= until_us)
                        break;
}

/* ---- requests and outgoing packets ---- */

static int open_call(struct psandbox *psandbox, struct guest_call *call, struct buf *request, bool fits,
        struct csn_error *err)
{
        int pair[2];
        /* Without its instance the sandbox is ending: open calls are closed, and new calls refused. */
        if (psandbox->state != PSANDBOX_READY || !psandbox->instance)
                return err_set(err, CSN_E_BUSY, 0, "the sandbox is %s",
                        psandbox->state == PSANDBOX_MAKING           ? "not ready yet"
                                : psandbox->state == PSANDBOX_PAUSED ? "paused; resume it"
                                                                     : "over");
        if (!fits)
                return err_set(err, CSN_E_INPUT, 0, "command, environment and names are together longer than %d KiB",
                        WIRE_MAX / 1024);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return err_set(err, errno == EMFILE || errno == ENFILE ? CSN_E_BUSY : CSN_E_SYSTEM, errno,
                        "make a pair of sockets");
        auto_fd ours = pair[0], theirs = pair[1];
        call->watch = (struct watch){ .fd = -1, .ready = guest_call_ready, .owner = call };
        call->done = call->refused = call->spent = false;
        if (send_queue_put(&psandbox->out, request->bytes, request->len, &theirs, 1) < 0)
                return err_set(err, CSN_E_BUSY, errno, "talk to the guest of the sandbox");
        if (loop_watch(psandbox->engine->loop, &call->watch, ours, EPOLLIN, err) < 0)
                return -err->code;
        take_fd(&ours);
        call->psandbox = psandbox;
        call->next = psandbox->calls;
        psandbox->calls = call;
        psandbox->call_user->used(psandbox);
        return 0;
}

int guest_call_process(struct psandbox *psandbox, struct guest_call *call, const struct guest_process *process,
        struct csn_error *err)
{
        struct buf request;
        buf_init(&request, WIRE_MAX);
        int rc = open_call(psandbox, call, &request, guest_put_process(&request, process), err);
        buf_done(&request);
        return rc;
}

int guest_call_program(struct psandbox *psandbox, struct guest_call *call, const struct guest_process *process,
        struct csn_error *err)
{
        struct run_room room;
        if (owner_may_begin(psandbox->engine, psandbox->owner, &psandbox->quota, &room, err) < 0)
                return -err->code;
        if (!owner_left_us(psandbox->engine, psandbox->payer, &psandbox->quota))
                return err_set(err, CSN_E_BUSY, 0, "the CPU time that the key allows in 24 hours is used up");
        if (guest_call_process(psandbox, call, process, err) < 0)
                return -err->code;
        call->counted = true;
        owner_begin_other(psandbox->payer);
        return 0;
}

int guest_call_stdio(struct psandbox *psandbox, struct guest_call *call, struct csn_error *err)
{
        struct buf request;
        buf_init(&request, WIRE_MAX);
        int rc = open_call(psandbox, call, &request, guest_put(&request, GUEST_STDIO), err);
        buf_done(&request);
        return rc;
}

int guest_call_file(struct psandbox *psandbox, struct guest_call *call, const struct guest_file *file,
        struct csn_error *err)
{
        struct buf request;
        buf_init(&request, WIRE_MAX);
        int rc = open_call(psandbox, call, &request, guest_put_file(&request, file), err);
        buf_done(&request);
        return rc;
}

int guest_call_connect(struct psandbox *psandbox, struct guest_call *call, unsigned port, struct csn_error *err)
{
        struct buf request;
        buf_init(&request, WIRE_MAX);
        int rc = open_call(psandbox, call, &request, guest_put_number(&request, GUEST_CONNECT, port), err);
        buf_done(&request);
        return rc;
}

int guest_call_health(struct psandbox *psandbox, struct guest_call *call, unsigned port, struct csn_error *err)
{
        struct buf request;
        buf_init(&request, WIRE_MAX);
        int rc = open_call(psandbox, call, &request, guest_put_number(&request, GUEST_HEALTH, port), err);
        buf_done(&request);
        return rc;
}

int guest_call_sudo(struct psandbox *psandbox, struct guest_call *call, struct csn_error *err)
{
        struct buf request;
        buf_init(&request, WIRE_MAX);
        int rc = open_call(psandbox, call, &request, guest_put(&request, GUEST_SUDO), err);
        buf_done(&request);
        return rc;
}

static bool send_packet(struct guest_call *call, struct buf *packet, bool fits)
{
        struct csn_error err;
        bool sent = fits && call->psandbox && wire_send(call->watch.fd, packet->bytes, packet->len, NULL, 0) == 0;
        if (!sent && fits && call->psandbox && call->watch.active &&
                loop_watch(call->psandbox->engine->loop, &call->watch, call->watch.fd, EPOLLIN | EPOLLOUT, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        buf_done(packet);
        return sent;
}

bool guest_call_send(struct guest_call *call, enum guest_kind kind, const void *bytes, size_t len)
{
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        return send_packet(call, &packet, guest_put(&packet, kind) && buf_add(&packet, bytes, len));
}

bool guest_call_signal(struct guest_call *call, int signal, uint64_t pid)
{
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        return send_packet(call, &packet, guest_put_pair(&packet, GUEST_SIGNAL, (uint64_t)signal, pid));
}

bool guest_call_resize(struct guest_call *call, unsigned rows, unsigned columns)
{
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        return send_packet(call, &packet, guest_put_pair(&packet, GUEST_SIZE, rows, columns));
}

void guest_call_hold(struct guest_call *call, bool on)
{
        struct csn_error err;
        if (!call->psandbox)
                return;
        if (on)
                loop_unwatch(call->psandbox->engine->loop, &call->watch);
        else if (!call->watch.active &&
                loop_watch(call->psandbox->engine->loop, &call->watch, call->watch.fd, EPOLLIN, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}
