/*
 * A connection to caissond: frames in, runs, frames out.
 *
 * Nothing here blocks.  Output unread by the client is queued up to a ceiling; from CONNECTION_PAUSE on the daemon
 * stops reading from the client, too, so a client cannot request more than it reads.  Only the loop closes connections,
 * so a connection outlives each function queueing frames.
 */
#include "front/daemon/daemon.h"

#include "front/http/http.h"
#include "front/service/connections.h"
#include "front/service/parse.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "config.h"

#define READS_AT_ONCE 64           /* of a connection, before another gets its turn */

#define SENDS_AT_ONCE (MIB)        /* bytes to a connection, before another gets its turn */

static const char ending[] = "the daemon is about to end";

/* ---- out ---- */

static bool is_paused(const struct connection *connection)
{
        return connection->closing || connection->queued > CONNECTION_PAUSE;
}

static void watch_again(struct connection *connection)
{
        struct csn_error err;
        uint32_t events = (is_paused(connection) ? 0 : EPOLLIN) | (connection->queue ? EPOLLOUT : 0);
        if (loop_watch(connection->daemon->loop, &connection->watch, connection->watch.fd, events, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}

static void drop_first(struct connection *connection)
{
        struct outgoing *out = connection->queue;
        connection->queue = out->next;
        if (!connection->queue)
                connection->queue_end = &connection->queue;
        connection->queued -= out->len;
        connection->daemon->queued -= out->len;
        free(out->payload);
        free(out);
}

/* False: the client is gone.  A fast reader gets a long record in several steps of the loop. */
static bool flush(struct connection *connection)
{
        size_t left = SENDS_AT_ONCE;
        while (connection->queue && left) {
                struct outgoing *out = connection->queue;
                size_t head = min_u64(out->sent, FRAME_HEADER), body = out->sent - head;
                struct iovec parts[2] = { { out->head + head, FRAME_HEADER - head },
                                          { out->payload + body, out->len - FRAME_HEADER - body } };
                const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
                ssize_t n = sendmsg(connection->watch.fd, &message, MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN;
                out->sent += (size_t)n;
                left -= min_u64(left, (uint64_t)n);
                if (out->sent == out->len)
                        drop_first(connection);
        }
        return true;
}

/* Takes the allocated payload, and sends as much as the socket takes.  The loop notices a closed connection. */
static void queue_frame(struct connection *connection, enum frame_type type, uint32_t id, char *payload, size_t len)
{
        bool is_first = !connection->queue;
        struct outgoing *out = mem_alloc(sizeof *out);
        const struct frame frame = { .len = (uint32_t)len, .id = id, .type = type };
        frame_put(out->head, &frame);
        out->payload = payload;
        out->len = FRAME_HEADER + len;
        *connection->queue_end = out;
        connection->queue_end = &out->next;
        connection->queued += out->len;
        connection->daemon->queued += out->len;
        if (connection->queued > CONNECTION_QUEUE_MAX) {
                log_text(LOG_WARN, "a client of uid %u does not read its records; its connection ends",
                        connection->uid);
                shutdown(connection->watch.fd, SHUT_RDWR);   /* the loop sees the end and closes the connection */
        }
        if (is_first)
                flush(connection);
        watch_again(connection);
}

static void queue_error(struct connection *connection, uint32_t id, const struct csn_error *error)
{
        struct buf text;
        buf_init(&text, FRAME_ERROR_MAX);
        if (frame_put_error(&text, error))
                queue_frame(connection, FRAME_ERROR, id, text.bytes, text.len);
        else
                buf_done(&text);
}

/* ---- runs and checks ---- */

static void on_output(void *owner, int stream, const void *bytes, size_t len)
{
        const struct request *request = owner;
        struct connection *connection = request->connection;
        for (size_t n; connection && len; bytes = (const char *)bytes + n, len -= n) {
                n = min_u64(len, FRAME_OUTPUT_MAX);
                if (connection->closing || connection->queued + n > CONNECTION_OUTPUT_MAX ||
                        connection->daemon->queued + n > DAEMON_OUTPUT_MAX)
                        return;
                char *payload = mem_alloc(n + 1);
                payload[0] = (char)stream;
                memcpy(payload + 1, bytes, n);
                queue_frame(connection, FRAME_OUTPUT, request->id, payload, n + 1);
        }
}

void request_free(struct request *request)
{
        struct daemon *daemon = request->daemon;
        for (struct request **at = &daemon->requests; *at; at = &(*at)->next)
                if (*at == request) {
                        *at = request->next;
                        break;
                }
        if (request->connection)
                request->connection->requests_n--;
        share_charge_done(&request->body);
        run_free(request->run);
        source_check_done(&request->source_check);
        parse_free(request->parse);
        buf_done(&request->record);
        free(request);
        daemon_look(daemon);
}

/* Sends the answer, or an error unless `good`, and frees the request.  Takes the text. */
static void answer(struct request *request, enum frame_type type, struct buf *text, bool good)
{
        struct csn_error err;
        if (!request->connection || !good)
                buf_done(text);
        if (request->connection && good) {
                queue_frame(request->connection, type, request->id, text->bytes, text->len);
        } else if (request->connection) {
                err_set(&err, CSN_E_SYSTEM, 0, "the answer could not be written");
                queue_error(request->connection, request->id, &err);
        }
        request_free(request);
}

/* May run in a helper thread. */
static void on_encode(void *owner, const struct run_result *result)
{
        struct request *request = owner;
        buf_init(&request->record, FRAME_RECORD_MAX);
        request->recorded = front_record_text(result, request->aliases, &request->record);
        buf_trim(&request->record);
}

static void on_done(void *owner, const struct run_result *result)
{
        struct request *request = owner;
        struct buf text = request->record;
        request->record = (struct buf){ 0 };
        audit_run(request->daemon->store, &(struct log_context){ .owner = request->owner }, "", request->run, result);
        answer(request, FRAME_RECORD, &text, request->recorded);
}

static void send_result(struct request *request, const struct check_result *result)
{
        struct buf text;
        buf_init(&text, FRAME_CHECKED_MAX);
        bool good = model_encode_text(&object_check_result, result, &text);
        answer(request, FRAME_CHECKED, &text, good);
}

static void on_checked(struct source_check *source_check)
{
        send_result(source_check->owner, &source_check->check.result);
}

static const struct run_events events_of_runs = {
        .output = on_output, .encode = on_encode, .done = on_done
};

static struct request *find_request(const struct connection *connection, uint32_t id)
{
        for (struct request *request = connection->daemon->requests; request; request = request->next)
                if (request->connection == connection && request->id == id)
                        return request;
        return NULL;
}

static struct request *job_new(struct connection *connection)
{
        struct daemon *daemon = connection->daemon;
        struct request *request = mem_alloc(sizeof *request);
        *request = (struct request){ .next = daemon->requests,
                .daemon = daemon,
                .connection = connection,
                .id = connection->reader.frame.id,
                .body = connection->body };
        daemon->requests = request;
        connection->requests_n++;
        connection->body = (struct share_charge){ 0 };   /* the job's now */
        snprintf(request->owner, sizeof request->owner, "uid:%u", connection->uid);
        return request;
}

static void start_run(struct request *request)
{
        struct csn_error refusal = request->parse->error;
        const struct daemon *daemon = request->daemon;
        struct run_request given = { 0 };
        request->run = run_new(daemon->engine);
        run_set_owner(request->run, request->owner);
        if (refusal.code) {
                run_refuse(request->run, &refusal, &events_of_runs, request);
                return;
        }
        parse_take(request->parse, run_arena(request->run), &given);
        *run_request(request->run) = given;
        request->aliases = given.aliases;
        const struct log_context about = { .owner = request->owner };
        if (audit_begin(daemon->store, &about, "", request->run, NULL, false, &refusal) < 0)
                run_refuse(request->run, &refusal, &events_of_runs, request);
        else
                run_start(request->run, false, &events_of_runs, request);
        if (request->cancelled)
                run_cancel(request->run);
}

/* A malformed request is answered by a check result, as is a program impossible to check. */
static void start_check(struct request *request)
{
        struct csn_error refusal = request->parse->error;
        struct engine *engine = request->daemon->engine;
        struct check *check = &request->source_check.check;
        request->source_check.done = on_checked;
        request->source_check.owner = request;
        request->source_check.run_owner = request->owner;
        if (!refusal.code)
                parse_take(request->parse, &check->arena, &check->request);
        if (refusal.code || source_check_prepare(engine, &request->source_check, &refusal) < 0) {
                policy_refuse(&check->request, &refusal, &check->arena, &check->result);
                send_result(request, &check->result);
                return;
        }
        source_check_start(engine, &request->source_check);
}

static void on_parsed(void *owner)
{
        struct request *request = owner;
        struct csn_error err;
        if (request->connection && request->daemon->state != SERVING) {
                err_set(&err, CSN_E_BUSY, 0, "%s", ending);
                queue_error(request->connection, request->id, &err);
        }
        if (!request->connection || request->daemon->state != SERVING)
                request_free(request);
        else if (request->is_check)
                start_check(request);
        else
                start_run(request);
}

/* A long payload belongs to the parser from here on. */
static void start_parse(struct connection *connection)
{
        const struct parse_kind runs = { .object = &object_run_request, .values_max = PARSE_VALUES_MAX },
                                checks = { .object = &object_check_request, .values_max = PARSE_VALUES_MAX };
        struct request *request = job_new(connection);
        struct buf *text = &connection->reader.payload;
        request->is_check = connection->reader.frame.type == FRAME_CHECK;
        const struct parse_kind *kind = request->is_check ? &checks : &runs;
        if (text->len > PARSE_AT_ONCE_MAX) {
                request->parse = parse_start(engine_workers(connection->daemon->engine), request->owner, kind,
                        text->bytes, text->len, false, on_parsed, request);
                *text = (struct buf){ 0 };
                return;
        }
        request->parse = parse_now(kind, text->bytes ? text->bytes : "", text->len);
        on_parsed(request);
}

void job_cancel(struct request *request)
{
        request->cancelled = true;
        if (request->run)
                run_cancel(request->run);
        else if (request->is_check)
                source_check_cancel(&request->source_check);
}

/* Cancels all requests of the connection; their results are dropped. */
static void abandon_jobs(struct connection *connection)
{
        for (struct request *request = connection->daemon->requests; request; request = request->next)
                if (request->connection == connection) {
                        request->connection = NULL;
                        job_cancel(request);
                }
        connection->requests_n = 0;
}

/* ---- in ---- */

static int refuse_request(const struct connection *connection, struct csn_error *err)
{
        const struct daemon *daemon = connection->daemon;
        if (daemon->state != SERVING)
                return err_set(err, CSN_E_BUSY, 0, "%s", ending);
        if (connection->requests_n >= CONNECTION_REQUESTS_MAX)
                return err_set(err, CSN_E_BUSY, 0, "this connection has %d live requests, and may not have more",
                        CONNECTION_REQUESTS_MAX);
        return 0;
}

/* The holder is the same as for HTTP requests of this uid on the local socket. */
static int charge(struct connection *connection, uint64_t bytes, struct csn_error *err)
{
        char name[40];
        snprintf(name, sizeof name, "tenant uid:%u", connection->uid);
        struct holder *holder = holder_get(connection->daemon->service->shares, name);
        if (share_take(holder, SHARE_BODIES, bytes, err) < 0) {
                holder_put(holder);
                return -err->code;
        }
        connection->body = (struct share_charge){ holder, SHARE_BODIES, bytes };
        return 0;
}

/* Before the payload costs anything. */
static int begin_request(struct connection *connection, struct csn_error *err)
{
        struct csn_error refusal;
        uint32_t id = connection->reader.frame.id;
        if (find_request(connection, id))
                return err_set(err, CSN_E_PROTOCOL, 0, "the id %u belongs to a live request", id);
        if (refuse_request(connection, &refusal) < 0 ||
                charge(connection, connection->reader.frame.len, &refusal) < 0) {
                connection->reader.skip = true;
                queue_error(connection, id, &refusal);
                return 0;
        }
        return 0;
}

static void take_request(struct connection *connection)
{
        struct csn_error err;
        if (connection->reader.skip)
                return;
        if (connection->daemon->state == SERVING) {
                start_parse(connection);
                return;
        }
        share_charge_done(&connection->body);
        refuse_request(connection, &err);
        queue_error(connection, connection->reader.frame.id, &err);
}

static void send_status(struct connection *connection)
{
        struct daemon *daemon = connection->daemon;
        json_t *status = engine_status(daemon->engine);
        json_object_set_new(status, "daemon",
                json_pack("{s:s, s:i, s:I, s:I}", "version", VERSION, "pid", (int)getpid(), "uptime_ms",
                        (json_int_t)((clock_us() - daemon->started_us) / 1000), "connections",
                        (json_int_t)daemon->connections_n));
        json_object_set_new(json_object_get(status, "daemon"), "confinement", confine_facts());
        const char *http = daemon->service ? service_address(daemon->service) : NULL;
        if (http)
                json_object_set_new(json_object_get(status, "daemon"), "http",
                        json_pack("{s:s, s:b}", "address", http, "keyless", daemon->settings->engine.http_keyless));
        char *text = model_write(status, JSON_COMPACT | MODEL_MEASURED);
        json_decref(status);
        if (text)
                queue_frame(connection, FRAME_STATUS, connection->reader.frame.id, text, strlen(text));
}

static void take_frame(struct connection *connection)
{
        struct request *request;
        switch (connection->reader.frame.type) {
        case FRAME_REQUEST:
        case FRAME_CHECK:
                take_request(connection);
                break;
        case FRAME_CANCEL:
                request = find_request(connection, connection->reader.frame.id);
                if (request)   /* else the request has ended meanwhile */
                        job_cancel(request);
                break;
        default:
                send_status(connection);
        }
}

/* The connection ends with a reason. */
static void fail(struct connection *connection, const struct csn_error *error)
{
        log_text(LOG_WARN, "a client of uid %u: %s", connection->uid, error->text);
        abandon_jobs(connection);
        queue_error(connection, 0, error);
        connection_end(connection);
}

/* ---- slow clients ---- */

/* As for bodies over HTTP: HTTP_RATE_MIN, averaged over engine.http_head_ms or HTTP_WINDOW_US. */
static uint64_t window_us(const struct connection *connection)
{
        return min_u64(connection->daemon->settings->engine.http_head_ms * 1000, HTTP_WINDOW_US);
}

static void watch_rate(struct connection *connection)
{
        struct loop *loop = connection->daemon->loop;
        if (!frame_is_partial(&connection->reader)) {
                loop_untimer(loop, &connection->slow);
        } else if (!connection->slow.active) {
                connection->mark = connection->received;
                loop_timer(loop, &connection->slow, window_us(connection));
        }
}

/* A paused client is not slow. */
static void on_window(struct timer *timer)
{
        struct connection *connection = timer->owner;
        uint64_t wanted = HTTP_RATE_MIN * window_us(connection) / 1000000;
        struct csn_error err;
        if (connection->closing)
                return;
        if (is_paused(connection) || connection->received - connection->mark >= wanted) {
                watch_rate(connection);
                return;
        }
        err_set(&err, CSN_E_PROTOCOL, 0, "a frame comes more slowly than %d bytes a second", HTTP_RATE_MIN);
        fail(connection, &err);
}

static void take_input(struct connection *connection)
{
        struct csn_error err;
        while (connection->input_at < connection->input_n && !is_paused(connection)) {
                const uint8_t *bytes = connection->input + connection->input_at;
                size_t left = connection->input_n - connection->input_at;
                int step;
                do {
                        step = frame_read(&connection->reader, &bytes, &left, &err);
                        enum frame_type type = connection->reader.frame.type;
                        if (step == FRAME_BEGUN && (type == FRAME_REQUEST || type == FRAME_CHECK) &&
                                begin_request(connection, &err) < 0)
                                step = -err.code;
                        /* A frame without a payload is whole before any further byte comes. */
                } while (step == FRAME_BEGUN);
                connection->input_at = connection->input_n - left;
                if (step < 0)
                        fail(connection, &err);
                else if (step == FRAME_WHOLE)
                        take_frame(connection);
        }
}

/* False: the client is gone. */
static bool serve(struct connection *connection)
{
        for (int i = 0; i < READS_AT_ONCE; i++) {
                take_input(connection);
                if (is_paused(connection))
                        return true;
                ssize_t n = read(connection->watch.fd, connection->input, sizeof connection->input);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 && errno == EAGAIN;
                connection->input_at = 0;
                connection->input_n = (size_t)n;
                connection->received += (uint64_t)n;
                if (connection->input_n < sizeof connection->input)
                        break;   /* there was no more */
        }
        take_input(connection);
        return true;
}

static void connection_ready(struct watch *watch, uint32_t events)
{
        struct connection *connection = watch->owner;
        bool there = !(events & (EPOLLHUP | EPOLLERR)) && flush(connection) && serve(connection);
        if (!there || (connection->closing && !connection->queue)) {
                connection_close(connection);
                return;
        }
        watch_again(connection);
        watch_rate(connection);
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
        return min_u64(service_connections_max(true), PEERS_MAX);
}

static size_t count_of(const struct daemon *daemon, uid_t uid)
{
        size_t n = 0;
        for (const struct connection *one = daemon->connections; one; one = one->next)
                n += one->uid == uid && !one->closing;
        return n;
}

/* A connection without a request and without unread frames; a frame that is not complete is no request. */
static bool is_idle(const struct connection *connection)
{
        return !connection->requests_n && !connection->queue && !connection->closing;
}

/* End the oldest idle connection of the user with the most, so that idle and half-open connections lock out no user. */
static void make_room(const struct daemon *daemon, const struct connection *newest)
{
        struct connection *victim = NULL;
        size_t most = 0;
        for (struct connection *one = daemon->connections; one; one = one->next) {
                if (one == newest || !is_idle(one))
                        continue;
                size_t n = victim && victim->uid == one->uid ? most : count_of(daemon, one->uid);
                if (n >= most) {
                        victim = one;
                        most = n;
                }
        }
        if (victim)
                connection_end(victim);
}

/* Whether there are too many connections, or too many of this user for the last places. */
static bool is_full(const struct connection *connection)
{
        const struct daemon *daemon = connection->daemon;
        size_t most = peers_max(), reserve = most / PEERS_RESERVE, n = 0;
        for (const struct connection *one = daemon->connections; one; one = one->next)
                n += !one->closing;
        return n > most || (n > most - reserve && count_of(daemon, connection->uid) > reserve);
}

static void greet(struct connection *connection)
{
        struct csn_error err;
        struct ucred who = { .uid = (uid_t)-1 };
        socklen_t len = sizeof who;
        int rc = 0;
        if (getsockopt(connection->watch.fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
                rc = err_set(&err, CSN_E_SYSTEM, errno, "ask who the client is");
        connection->uid = who.uid;
        if (rc == 0 && !is_welcome(connection->daemon, who.uid))
                rc = err_set(&err, CSN_E_DENIED, 0, "user %u is not in engine.socket_uids", who.uid);
        else if (rc == 0 && connection->daemon->state != SERVING)
                rc = err_set(&err, CSN_E_BUSY, 0, "%s", ending);
        if (rc == 0 && is_full(connection))
                make_room(connection->daemon, connection);
        if (rc == 0 && is_full(connection))
                rc = err_set(&err, CSN_E_BUSY, 0,
                        "connections of the daemon: %zu; user %u has %zu of them, and may not have more; try again later",
                        peers_max(), who.uid, count_of(connection->daemon, who.uid) - 1);
        if (rc < 0)
                fail(connection, &err);
}

void connection_new(struct daemon *daemon, int fd)
{
        struct connection *connection = mem_alloc(sizeof *connection);
        struct csn_error err;
        *connection = (struct connection){ .next = daemon->connections,
                .daemon = daemon,
                .watch = { .fd = fd, .ready = connection_ready, .owner = connection },
                .slow = { .fired = on_window, .owner = connection } };
        connection->queue_end = &connection->queue;
        frame_reader_init(&connection->reader, FROM_CLIENT);
        daemon->connections = connection;
        daemon->connections_n++;
        if (loop_watch(daemon->loop, &connection->watch, fd, EPOLLIN, &err) < 0) {
                log_text(LOG_ERROR, "%s", err.text);
                connection_close(connection);
                return;
        }
        greet(connection);
}

void connection_end(struct connection *connection)
{
        connection->closing = true;
        if (connection->queue)
                watch_again(connection);
        else
                shutdown(connection->watch.fd, SHUT_RDWR);
}

void connection_close(struct connection *connection)
{
        struct daemon *daemon = connection->daemon;
        for (struct connection **at = &daemon->connections; *at; at = &(*at)->next)
                if (*at == connection) {
                        *at = connection->next;
                        break;
                }
        daemon->connections_n--;
        abandon_jobs(connection);
        share_charge_done(&connection->body);
        loop_unwatch(daemon->loop, &connection->watch);
        loop_untimer(daemon->loop, &connection->slow);
        fd_close(&connection->watch.fd);
        while (connection->queue)
                drop_first(connection);
        frame_reader_done(&connection->reader);
        free(connection);
        daemon_look(daemon);
}
