/* The standard streams of a container; see attach.h. */
#include "backend/docker/attach.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define CONNECT_MS 20000L
#define HEAD_MAX (16 * KIB)
#define OUT_MAX (256 * MIB)
#define READ_SIZE (64 * KIB)
#define READS_AT_ONCE 16 /* before others have their turn */

enum { STREAM_OUT = 1, STREAM_ERROR = 2 };

static void end(struct attach *attach, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void end(struct attach *attach, const char *fmt, ...)
{
        struct csn_error err;
        char text[400];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        err_set(&err, CSN_E_SYSTEM, 0, "%s", text);
        attach->state = ATTACH_ENDED;
        loop_unwatch(attach->loop, &attach->watch);
        attach->events->ended(attach->owner, &err);
}

/* ---- sending ---- */

static void watch_now(struct attach *attach)
{
        uint32_t events = (attach->held ? 0 : EPOLLIN) | (attach_waiting(attach) ? EPOLLOUT : 0);
        if (attach->broken)
                events = EPOLLIN;
        if (!events)
                loop_unwatch(attach->loop, &attach->watch);
        else
                loop_watch(attach->loop, &attach->watch, attach->watch.fd, events, NULL);
}

/* The caller may be anywhere, so the loop reports the end: a connection after shutdown(2) is readable. */
static void break_off(struct attach *attach)
{
        attach->broken = true;
        shutdown(attach->watch.fd, SHUT_RDWR);
        watch_now(attach);
}

static void send_out(struct attach *attach)
{
        while (attach_waiting(attach) && !attach->broken) {
                size_t n = 0;
                if (attach->piece_at == attach->piece_n) {
                        attach->piece_n = min_u64(sizeof attach->piece, attach->out.len - attach->out_at);
                        memcpy(attach->piece, attach->out.bytes + attach->out_at, attach->piece_n);
                        attach->out_at += attach->piece_n;
                        attach->piece_at = 0;
                }
                CURLcode code = curl_easy_send(attach->fetch.easy, attach->piece + attach->piece_at,
                        attach->piece_n - attach->piece_at, &n);
                attach->piece_at += n;
                if (code == CURLE_AGAIN)
                        break;
                if (code != CURLE_OK) {
                        break_off(attach);
                        return;
                }
        }
        size_t left = attach->out.len - attach->out_at;
        if (attach->out_at && (!left || attach->out_at > MIB)) {
                if (left)
                        memmove(attach->out.bytes, attach->out.bytes + attach->out_at, left);
                attach->out.len = left;
                attach->out_at = 0;
        }
        watch_now(attach);
}

void attach_send(struct attach *attach, const void *bytes, size_t len)
{
        bool idle = !attach_waiting(attach);
        if (attach->state == ATTACH_ENDED || attach->broken)
                return;
        if (!buf_add(&attach->out, bytes, len) && attach->state == ATTACH_OPEN)
                break_off(attach);       /* a part of the stream would be missing */
        else if (attach->state == ATTACH_OPEN && idle)
                send_out(attach);
}

size_t attach_waiting(const struct attach *attach)
{
        return attach->out.len - attach->out_at + attach->piece_n - attach->piece_at;
}

void attach_hold(struct attach *attach, bool on)
{
        if (attach->held == on)
                return;
        attach->held = on;
        if (attach->state == ATTACH_OPEN)
                watch_now(attach);
}

/* ---- receiving ---- */

static void keep_errors(struct attach *attach, const uint8_t *bytes, size_t len)
{
        size_t n = min_u64(len, ATTACH_ERROR_MAX - attach->errors_n);
        for (size_t i = 0; i < n; i++)
                attach->errors[attach->errors_n++] = bytes[i] >= ' ' && bytes[i] < 0x7f ? (char)bytes[i] : ' ';
        attach->errors[attach->errors_n] = 0;
}

/* False: the stream has ended, perhaps by the owner. */
static bool take_frames(struct attach *attach, const uint8_t *bytes, size_t len)
{
        while (len && attach->state == ATTACH_OPEN) {
                if (attach->header_n < sizeof attach->header) {
                        attach->header[attach->header_n++] = *bytes++;
                        len--;
                        const uint8_t *h = attach->header;
                        attach->left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
                        if (attach->header_n == sizeof attach->header && (h[0] > STREAM_ERROR || h[1] | h[2] | h[3])) {
                                end(attach,
                                        "the engine sent no frame of a container's streams (is the container without a terminal?)");
                                return false;
                        }
                } else {
                        size_t n = min_u64(len, attach->left);
                        attach->left -= (uint32_t)n;
                        if (attach->header[0] == STREAM_OUT)
                                attach->events->output(attach->owner, bytes, n);
                        else
                                keep_errors(attach, bytes, n);
                        bytes += n;
                        len -= n;
                }
                if (attach->header_n == sizeof attach->header && !attach->left)
                        attach->header_n = 0;
        }
        return attach->state == ATTACH_OPEN;
}

/* The answer's head, and what came behind the head.  False: the stream has ended. */
static bool take_head(struct attach *attach, const uint8_t *bytes, size_t len)
{
        unsigned status = 0;
        if (!buf_add(&attach->head, bytes, len)) {
                end(attach, "the engine's answer to attach has a head of more than %d KiB", (int)(HEAD_MAX / KIB));
                return false;
        }
        const char *body = strstr(attach->head.bytes, "\r\n\r\n");
        if (!body)
                return true;
        body += 4;
        if (sscanf(attach->head.bytes, "HTTP/1.%*u %u", &status) != 1 || (status != 101 && status != 200)) {
                end(attach, "the engine answers attach with %u: %.300s", status, body);
                return false;
        }
        attach->state = ATTACH_OPEN;
        struct buf rest = attach->head;
        attach->head = (struct buf){ 0 };
        size_t at = (size_t)(body - rest.bytes);
        attach->events->opened(attach->owner);
        if (attach->state == ATTACH_OPEN)
                send_out(attach);
        bool open = attach->state == ATTACH_OPEN &&
                take_frames(attach, (const uint8_t *)rest.bytes + at, rest.len - at);
        buf_done(&rest);
        return open;
}

/* False: nothing more can be read now. */
static bool read_some(struct attach *attach)
{
        static uint8_t bytes[READ_SIZE];
        size_t n = 0;
        CURLcode code = curl_easy_recv(attach->fetch.easy, bytes, sizeof bytes, &n);
        if (code == CURLE_AGAIN)
                return false;
        if (code != CURLE_OK)
                end(attach, "the stream to the container broke off: %s", curl_easy_strerror(code));
        else if (!n)
                end(attach, "the engine closed the stream to the container");
        else
                return attach->state == ATTACH_ASKING ? take_head(attach, bytes, n) : take_frames(attach, bytes, n);
        return false;
}

static void on_ready(struct watch *watch, uint32_t events)
{
        struct attach *attach = watch->owner;
        bool sent = events & EPOLLOUT && attach_waiting(attach);
        if (attach->broken) {
                end(attach, "the stream to the container broke off");
                return;
        }
        if (events & EPOLLOUT)
                send_out(attach);
        for (int i = 0; i < READS_AT_ONCE && !attach->held && read_some(attach); i++)
                ;
        if (sent && !attach_waiting(attach) && attach->state == ATTACH_OPEN)
                attach->events->sent(attach->owner);
}

/* ---- opening and closing ---- */

static void on_connected(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct attach *attach = fetch->owner;
        curl_socket_t sock = CURL_SOCKET_BAD;
        size_t n = 0;
        (void)status, (void)code;
        if (!why)
                curl_easy_getinfo(fetch->easy, CURLINFO_ACTIVESOCKET, &sock);
        if (why || sock == CURL_SOCKET_BAD) {
                docker_engine_forget(attach->engine);
                end(attach, "backend_unreachable: the engine at %.200s (docker.host): %.150s",
                        docker_engine_host(attach->engine), why ? why : "no connection");
                return;
        }
        attach->state = ATTACH_ASKING;
        attach->watch.fd = sock;
        /* The buffer of a new connection has room for a head. */
        size_t len = strlen(attach->request);
        if (curl_easy_send(fetch->easy, attach->request, len, &n) != CURLE_OK || n != len)
                end(attach, "the engine does not take the request to attach");
        else if (loop_watch(attach->loop, &attach->watch, sock, EPOLLIN, NULL) < 0)
                end(attach, "the stream to the container cannot be watched");
}

void attach_open(struct attach *attach, struct loop *loop, struct docker_engine *engine, const char *container,
        const struct attach_events *events, void *owner)
{
        const char *prefix;
        struct csn_error err;
        struct buf request;
        *attach = (struct attach){ .loop = loop,
                .engine = engine,
                .events = events,
                .owner = owner,
                .state = ATTACH_CONNECTING,
                .watch = { .fd = -1, .ready = on_ready, .owner = attach } };
        buf_init(&attach->head, HEAD_MAX);
        buf_init(&attach->out, OUT_MAX);
        if (docker_engine_connect(engine, &attach->fetch, &prefix, &err) < 0)
                log_text(LOG_WARN, "%s", err.text); /* the connection fails from the loop */
        buf_init(&request, 4 * KIB);
        buf_printf(&request,
                "POST %s/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\n"
                "Host: docker\r\nUpgrade: tcp\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
                prefix, container);
        attach->request = mem_copy(request.bytes, request.len);
        buf_done(&request);
        curl_easy_setopt(attach->fetch.easy, CURLOPT_CONNECT_ONLY, 1L);
        attach->fetch.connects = true;
        attach->fetch.done = on_connected;
        attach->fetch.owner = attach;
        fetch_start(&attach->fetch, CONNECT_MS);
}

void attach_close(struct attach *attach)
{
        if (attach->state == ATTACH_NONE)
                return;
        loop_unwatch(attach->loop, &attach->watch);
        fetch_close(&attach->fetch);
        free(attach->request);
        buf_done(&attach->head);
        buf_done(&attach->out);
        *attach = (struct attach){ 0 };
}
