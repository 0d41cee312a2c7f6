/*
 * One connection to caissond: frames in, runs, frames out.
 *
 * Nothing here waits.  What a client does not read is queued up to a ceiling; from PEER_PAUSE on it is not
 * read from either, so it cannot ask for more than it takes.  Closing happens from the loop alone, so no
 * connection goes under the feet of who has just queued something for it.
 */
#include "front/daemon/daemon.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "config.h"

#define READS_AT_ONCE 64           /* of one connection, before another gets its turn */

static const char ending[] = "the daemon is about to end";

/* ---- out ---- */

static bool is_paused(const struct peer *peer)
{
        return peer->closing || peer->queued > PEER_PAUSE;
}

static void watch_again(struct peer *peer)
{
        struct csn_error err;
        uint32_t events = (is_paused(peer) ? 0 : EPOLLIN) | (peer->queue ? EPOLLOUT : 0);
        if (loop_watch(peer->daemon->loop, &peer->watch, peer->watch.fd, events, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}

static void drop_first(struct peer *peer)
{
        struct outgoing *out = peer->queue;
        peer->queue = out->next;
        if (!peer->queue)
                peer->queue_end = &peer->queue;
        peer->queued -= out->len;
        peer->daemon->queued -= out->len;
        free(out->payload);
        free(out);
}

/* False: the client is gone. */
static bool flush(struct peer *peer)
{
        while (peer->queue) {
                struct outgoing *out = peer->queue;
                size_t head = min_u64(out->sent, FRAME_HEADER), body = out->sent - head;
                struct iovec parts[2] = { { out->head + head, FRAME_HEADER - head },
                                          { out->payload + body, out->len - FRAME_HEADER - body } };
                const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
                ssize_t n = sendmsg(peer->watch.fd, &message, MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN;
                out->sent += (size_t)n;
                if (out->sent == out->len)
                        drop_first(peer);
        }
        return true;
}

/* Takes the payload, which was allocated.  What the client has room for is sent; one that is gone is the loop's to notice. */
static void queue_frame(struct peer *peer, enum frame_type type, uint32_t id, char *payload, size_t len)
{
        bool is_first = !peer->queue;
        struct outgoing *out = mem_alloc(sizeof *out);
        const struct frame frame = { .len = (uint32_t)len, .id = id, .type = type };
        frame_put(out->head, &frame);
        out->payload = payload;
        out->len = FRAME_HEADER + len;
        *peer->queue_end = out;
        peer->queue_end = &out->next;
        peer->queued += out->len;
        peer->daemon->queued += out->len;
        if (peer->queued > PEER_QUEUE_MAX) {
                log_text(LOG_WARN, "a client of uid %u does not read its records; its connection ends", peer->uid);
                shutdown(peer->watch.fd, SHUT_RDWR);   /* the loop hears that and closes it */
        }
        if (is_first)
                flush(peer);
        watch_again(peer);
}

static void queue_error(struct peer *peer, uint32_t id, const struct csn_error *error)
{
        struct buf text;
        buf_init(&text, FRAME_ERROR_MAX);
        if (frame_put_error(&text, error))
                queue_frame(peer, FRAME_ERROR, id, text.bytes, text.len);
        else
                buf_done(&text);
}

/* ---- runs and checks ---- */

static void on_output(void *owner, int stream, const void *bytes, size_t len)
{
        const struct job *job = owner;
        struct peer *peer = job->peer;
        for (size_t n; peer && len; bytes = (const char *)bytes + n, len -= n) {
                n = min_u64(len, FRAME_OUTPUT_MAX);
                if (peer->closing || peer->queued + n > PEER_OUTPUT_MAX || peer->daemon->queued + n > DAEMON_OUTPUT_MAX)
                        return;
                char *payload = mem_alloc(n + 1);
                payload[0] = (char)stream;
                memcpy(payload + 1, bytes, n);
                queue_frame(peer, FRAME_OUTPUT, job->id, payload, n + 1);
        }
}

static void job_free(struct job *job)
{
        struct daemon *daemon = job->daemon;
        for (struct job **at = &daemon->jobs; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        break;
                }
        if (job->peer)
                job->peer->jobs_n--;
        daemon->held -= job->held;
        run_free(job->run);
        source_check_done(&job->source_check);
        free(job);
        daemon_look(daemon);
}

/* Whose answer is there, or why there is none.  Takes the text. */
static void answer(struct job *job, enum frame_type type, struct buf *text, bool good)
{
        struct csn_error err;
        if (!job->peer || !good)
                buf_done(text);
        if (job->peer && good) {
                queue_frame(job->peer, type, job->id, text->bytes, text->len);
        } else if (job->peer) {
                err_set(&err, CSN_E_SYSTEM, 0, "the answer could not be written");
                queue_error(job->peer, job->id, &err);
        }
        job_free(job);
}

static void on_done(void *owner, const struct run_result *result)
{
        struct job *job = owner;
        struct buf text;
        buf_init(&text, FRAME_RECORD_MAX);
        bool good = job->peer && front_record_text(result, job->aliases, &text);
        audit_run(job->daemon->store, &(struct log_context){ .owner = job->owner }, "", job->run, result);
        answer(job, FRAME_RECORD, &text, good);
}

static void send_result(struct job *job, const struct check_result *result)
{
        struct buf text;
        buf_init(&text, FRAME_CHECKED_MAX);
        bool good = model_encode_text(&object_check_result, result, &text);
        answer(job, FRAME_CHECKED, &text, good);
}

static void on_checked(struct source_check *source_check)
{
        send_result(source_check->owner, &source_check->check.result);
}

static const struct run_events events_of_runs = { .output = on_output, .done = on_done };

static struct job *find_job(const struct peer *peer, uint32_t id)
{
        for (struct job *job = peer->daemon->jobs; job; job = job->next)
                if (job->peer == peer && job->id == id)
                        return job;
        return NULL;
}

static struct job *job_new(struct peer *peer)
{
        struct daemon *daemon = peer->daemon;
        struct job *job = mem_alloc(sizeof *job);
        *job = (struct job){ .next = daemon->jobs, .daemon = daemon, .peer = peer, .id = peer->reader.frame.id, .held = peer->held };
        daemon->jobs = job;
        peer->jobs_n++;
        peer->held = 0;   /* the job's now */
        snprintf(job->owner, sizeof job->owner, "uid:%u", peer->uid);
        return job;
}

static void start_run(struct peer *peer)
{
        struct run_request given = { 0 };
        struct csn_error refusal;
        struct job *job = job_new(peer);
        const struct buf *text = &peer->reader.payload;
        job->run = run_new(peer->daemon->engine);
        run_set_owner(job->run, job->owner);
        if (model_decode_text(&object_run_request, text->bytes, text->len, run_arena(job->run), &given, &refusal) < 0) {
                run_refuse(job->run, &refusal, &events_of_runs, job);
                return;
        }
        *run_request(job->run) = given;
        job->aliases = given.aliases;
        const struct log_context about = { .owner = job->owner };
        if (audit_begin(peer->daemon->store, &about, "", job->run, NULL, false, &refusal) < 0)
                run_refuse(job->run, &refusal, &events_of_runs, job);
        else
                run_start(job->run, false, &events_of_runs, job);
}

/* A request that is none is answered as one that cannot be checked. */
static void start_check(struct peer *peer)
{
        struct csn_error refusal;
        struct engine *engine = peer->daemon->engine;
        struct job *job = job_new(peer);
        struct check *check = &job->source_check.check;
        const struct buf *text = &peer->reader.payload;
        job->source_check.done = on_checked;
        job->source_check.owner = job;
        job->source_check.run_owner = job->owner;
        if (model_decode_text(&object_check_request, text->bytes, text->len, &check->arena, &check->request, &refusal) < 0 ||
            source_check_find_language(engine, &job->source_check, &refusal) < 0) {
                policy_refuse(&check->request, &refusal, &check->arena, &check->result);
                send_result(job, &check->result);
                return;
        }
        source_check_start(engine, &job->source_check);
}

void job_cancel(struct job *job)
{
        if (job->run)
                run_cancel(job->run);
        else
                source_check_cancel(&job->source_check);
}

/* They end, and nobody hears of them. */
static void abandon_jobs(struct peer *peer)
{
        for (struct job *job = peer->daemon->jobs; job; job = job->next)
                if (job->peer == peer) {
                        job->peer = NULL;
                        job_cancel(job);
                }
        peer->jobs_n = 0;
}

/* ---- in ---- */

static int refuse_request(const struct peer *peer, struct csn_error *err)
{
        const struct daemon *daemon = peer->daemon;
        if (daemon->state != SERVING)
                return err_set(err, CSN_E_BUSY, 0, "%s", ending);
        if (peer->jobs_n >= PEER_JOBS_MAX)
                return err_set(err, CSN_E_BUSY, 0, "this connection has %d live requests, and may not have more", PEER_JOBS_MAX);
        if (daemon->held + peer->reader.frame.len > DAEMON_HELD_MAX)
                return err_set(err, CSN_E_BUSY, 0, "the live requests of all clients are together longer than %llu MiB",
                               DAEMON_HELD_MAX / MIB);
        return 0;
}

/* Before the payload costs anything. */
static int begin_request(struct peer *peer, struct csn_error *err)
{
        struct csn_error refusal;
        uint32_t id = peer->reader.frame.id;
        if (find_job(peer, id))
                return err_set(err, CSN_E_PROTOCOL, 0, "the id %u belongs to a live request", id);
        if (refuse_request(peer, &refusal) < 0) {
                peer->reader.skip = true;
                queue_error(peer, id, &refusal);
                return 0;
        }
        peer->held = peer->reader.frame.len;
        peer->daemon->held += peer->held;
        return 0;
}

static void take_request(struct peer *peer)
{
        struct csn_error err;
        if (peer->reader.skip)
                return;
        if (peer->daemon->state == SERVING) {
                peer->reader.frame.type == FRAME_CHECK ? start_check(peer) : start_run(peer);
                return;
        }
        peer->daemon->held -= peer->held;
        peer->held = 0;
        refuse_request(peer, &err);
        queue_error(peer, peer->reader.frame.id, &err);
}

static void send_status(struct peer *peer)
{
        struct daemon *daemon = peer->daemon;
        json_t *status = engine_status(daemon->engine);
        json_object_set_new(status, "daemon",
                            json_pack("{s:s, s:i, s:I, s:I}", "version", VERSION, "pid", (int)getpid(), "uptime_ms",
                                      (json_int_t)((clock_us() - daemon->started_us) / 1000), "connections", (json_int_t)daemon->peers_n));
        json_object_set_new(json_object_get(status, "daemon"), "confinement", confine_facts());
        const char *http = daemon->api ? api_address(daemon->api) : NULL;
        if (http)
                json_object_set_new(json_object_get(status, "daemon"), "http",
                                    json_pack("{s:s, s:b}", "address", http, "keyless", daemon->settings->engine.http_keyless));
        char *text = model_write(status, JSON_COMPACT);
        json_decref(status);
        if (text)
                queue_frame(peer, FRAME_STATUS, peer->reader.frame.id, text, strlen(text));
}

static void take_frame(struct peer *peer)
{
        struct job *job;
        switch (peer->reader.frame.type) {
        case FRAME_REQUEST:
        case FRAME_CHECK:
                take_request(peer);
                break;
        case FRAME_CANCEL:
                job = find_job(peer, peer->reader.frame.id);
                if (job)   /* else it ended while the client asked */
                        job_cancel(job);
                break;
        default:
                send_status(peer);
        }
}

/* The connection ends with a reason. */
static void fail(struct peer *peer, const struct csn_error *error)
{
        log_text(LOG_WARN, "a client of uid %u: %s", peer->uid, error->text);
        abandon_jobs(peer);
        queue_error(peer, 0, error);
        peer_end(peer);
}

static void take_input(struct peer *peer)
{
        struct csn_error err;
        while (peer->input_at < peer->input_n && !is_paused(peer)) {
                const uint8_t *bytes = peer->input + peer->input_at;
                size_t left = peer->input_n - peer->input_at;
                int step;
                do {
                        step = frame_read(&peer->reader, &bytes, &left, &err);
                        enum frame_type type = peer->reader.frame.type;
                        if (step == FRAME_BEGUN && (type == FRAME_REQUEST || type == FRAME_CHECK) && begin_request(peer, &err) < 0)
                                step = -err.code;
                        /* A frame without a payload is whole before any further byte comes. */
                } while (step == FRAME_BEGUN);
                peer->input_at = peer->input_n - left;
                if (step < 0)
                        fail(peer, &err);
                else if (step == FRAME_WHOLE)
                        take_frame(peer);
        }
}

/* False: the client is gone. */
static bool serve(struct peer *peer)
{
        for (int i = 0; i < READS_AT_ONCE; i++) {
                take_input(peer);
                if (is_paused(peer))
                        return true;
                ssize_t n = read(peer->watch.fd, peer->input, sizeof peer->input);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 && errno == EAGAIN;
                peer->input_at = 0;
                peer->input_n = (size_t)n;
                if (peer->input_n < sizeof peer->input)
                        break;   /* there was no more */
        }
        take_input(peer);
        return true;
}

static void peer_ready(struct watch *watch, uint32_t events)
{
        struct peer *peer = watch->owner;
        bool there = !(events & (EPOLLHUP | EPOLLERR)) && flush(peer) && serve(peer);
        if (!there || (peer->closing && !peer->queue))
                peer_close(peer);
        else
                watch_again(peer);
}

/* ---- beginning and end ---- */

static bool is_welcome(const struct daemon *daemon, uid_t uid)
{
        for (size_t i = 0; i < daemon->uids_n; i++)
                if (daemon->uids[i] == uid)
                        return true;
        return daemon->uids_n == 0;
}

static size_t peers_max(void)
{
        return min_u64(http_connections_max(true), PEERS_MAX);
}

static void greet(struct peer *peer)
{
        struct csn_error err;
        struct ucred who = { .uid = (uid_t)-1 };
        socklen_t len = sizeof who;
        int rc = 0;
        if (getsockopt(peer->watch.fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
                rc = err_set(&err, CSN_E_SYSTEM, errno, "ask who the client is");
        peer->uid = who.uid;
        if (rc == 0 && !is_welcome(peer->daemon, who.uid))
                rc = err_set(&err, CSN_E_DENIED, 0, "user %u is not in engine.socket_uids", who.uid);
        else if (rc == 0 && peer->daemon->state != SERVING)
                rc = err_set(&err, CSN_E_BUSY, 0, "%s", ending);
        else if (rc == 0 && peer->daemon->peers_n > peers_max())
                rc = err_set(&err, CSN_E_BUSY, 0, "the daemon has %zu connections, and may not have more", peers_max());
        if (rc < 0)
                fail(peer, &err);
}

void peer_new(struct daemon *daemon, int fd)
{
        struct peer *peer = mem_alloc(sizeof *peer);
        struct csn_error err;
        *peer = (struct peer){ .next = daemon->peers, .daemon = daemon, .watch = { .fd = fd, .ready = peer_ready, .owner = peer } };
        peer->queue_end = &peer->queue;
        frame_reader_init(&peer->reader, FROM_CLIENT);
        daemon->peers = peer;
        daemon->peers_n++;
        if (loop_watch(daemon->loop, &peer->watch, fd, EPOLLIN, &err) < 0) {
                log_text(LOG_ERROR, "%s", err.text);
                peer_close(peer);
                return;
        }
        greet(peer);
}

void peer_end(struct peer *peer)
{
        peer->closing = true;
        if (peer->queue)
                watch_again(peer);
        else
                shutdown(peer->watch.fd, SHUT_RDWR);
}

void peer_close(struct peer *peer)
{
        struct daemon *daemon = peer->daemon;
        for (struct peer **at = &daemon->peers; *at; at = &(*at)->next)
                if (*at == peer) {
                        *at = peer->next;
                        break;
                }
        daemon->peers_n--;
        abandon_jobs(peer);
        daemon->held -= peer->held;
        loop_unwatch(daemon->loop, &peer->watch);
        fd_close(&peer->watch.fd);
        while (peer->queue)
                drop_first(peer);
        frame_reader_done(&peer->reader);
        free(peer);
        daemon_look(daemon);
}
