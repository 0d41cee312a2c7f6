/*
 * All other ports of a sandbox: programs of the user listening inside.  The request is rewritten for the program, and
 * the program's answer is parsed and passed on (front/http/relay.h), because the program is hostile to daemon and
 * client.  After status 101 bytes are passed on unchanged in both directions.
 *
 * Each request has a connection of its own, through the sandbox's guest.
 */
#include "front/e2b/request.h"

#include "front/http/relay.h"
#include "hop/hop.h"
#include "net/tls_client.h"

#include <stdio.h>

#define TLS_EXTRA (4 * KIB)                /* around a piece of GUEST_DATA_MAX bytes, at most */

struct relay {
        struct http_request *request;      /* NULL: already answered */
        struct loop *loop;
        struct guest_call call;
        struct tls *tls;                   /* NULL: the program listens without TLS */
        unsigned port;
        struct http_answer answer;
        struct buf head;                   /* of the request */
        bool connected, chunked;           /* the head was sent; the body has chunked coding */
        bool whole, end_due;               /* the body has arrived; its last chunk could not be sent yet */
        bool over;                         /* the client has its answer */
        uint64_t in_flight;                /* bytes not read by the program yet */
        struct timer end;
};

/* ---- end ---- */

static void relay_free(struct relay *relay)
{
        loop_untimer(relay->loop, &relay->end);
        guest_call_close(&relay->call);
        tls_free(relay->tls);
        buf_done(&relay->head);
        http_answer_done(&relay->answer);
        free(relay);
}

static void on_end(struct timer *timer)
{
        relay_free(timer->owner);
}

static size_t take_nothing(struct http_request *request, const char *bytes, size_t len)
{
        (void)request, (void)bytes;
        return len;
}

/*
 * Called from a callback of the call, so the relay is freed only by a timer of the loop.  The caller ends the request.
 */
static struct http_request *finish(struct relay *relay)
{
        struct http_request *request = relay->request;
        relay->request = NULL;
        relay->over = true;
        http_answer_stop(&relay->answer);
        request->gone = NULL;
        request->room = NULL;
        request->take = take_nothing;      /* discard the rest of the body */
        guest_call_close(&relay->call);
        loop_timer(relay->loop, &relay->end, 0);
        return request;
}

static void on_gone(struct http_request *request)
{
        relay_free(request->owner);
}

/* Without a complete answer of the program. */
static void fail(struct relay *relay, const char *why)
{
        if (relay->over)
                return;
        struct http_request *request = finish(relay);
        if (relay->answer.status)
                http_cut(request);
        else
                e2b_error(request, MHD_HTTP_BAD_GATEWAY, "port %u: %s", relay->port, why);
}

/* ---- the request ---- */

static bool is_visible(const char *text)
{
        while (*text > ' ' && *text <= '~')
                text++;
        return !*text;
}

/*
 * The Host of the request: the client's, or the one in maskRequestHost with the port for ${PORT}.  NULL: the client
 * sent none.
 */
static const char *host_of(const struct relay *relay, const struct e2b_sandbox *sandbox, struct arena *arena)
{
        const char *mask = json_string_value(json_object_get(sandbox->wish.network, "maskRequestHost"));
        if (!mask || !is_visible(mask))
                return http_header(relay->request, "Host");
        const char *port = strstr(mask, "${PORT}");
        return port ? arena_text(arena, "%.*s%u%s", (int)(port - mask), mask, relay->port, port + strlen("${PORT}"))
                    : mask;
}

/* False: the head does not fit, or could be read in two ways. */
static bool write_head(struct relay *relay, const struct e2b_sandbox *sandbox)
{
        /* Credentials for the daemon are not for the program. */
        static const char *const drops[] = { "X-API-Key", "X-Access-Token", "E2b-Sandbox-Id", "E2b-Sandbox-Port",
                "E2B-Traffic-Access-Token", HOP_CALL_HEADER, HOP_ATTEMPT_HEADER, NULL };
        const struct relay_rules rules = { .drops = drops, .host = host_of(relay, sandbox, &relay->request->arena) };
        relay->answer.upgrade = relay_wants_upgrade(relay->request);
        relay->answer.head = strcmp(relay->request->method, "HEAD") == 0;
        buf_init(&relay->head, GUEST_DATA_MAX);
        return relay_write_head(relay->request, &rules, &relay->head, &relay->chunked);
}

static bool hand(struct relay *relay, const void *bytes, size_t len)
{
        if (!guest_call_send(&relay->call, GUEST_IN, bytes, len))
                return false;
        relay->in_flight += len;
        return true;
}

/* Sends TLS records as far as there is room.  False: some are left. */
static bool flush(struct relay *relay)
{
        const void *bytes;
        size_t len;
        while (relay->tls && (len = tls_waiting(relay->tls, &bytes))) {
                size_t room = relay->in_flight < GUEST_IN_MAX ? GUEST_IN_MAX - relay->in_flight : 0,
                       n = min_u64(min_u64(len, GUEST_DATA_MAX), room);
                if (!n || !hand(relay, bytes, n))
                        return false;
                tls_gone(relay->tls, n);
        }
        return true;
}

/* False: nothing was accepted. */
static bool put(struct relay *relay, const char *bytes, size_t len)
{
        if (!relay->tls)
                return hand(relay, bytes, len);
        if (!flush(relay) || !tls_write(relay->tls, bytes, len))
                return false;
        flush(relay);
        return true;
}

static size_t take(struct http_request *request, const char *bytes, size_t len)
{
        static char piece[GUEST_DATA_MAX];
        struct relay *relay = request->owner;
        size_t extra = RELAY_CHUNK_EXTRA + (relay->tls ? TLS_EXTRA : 0);
        size_t used = (size_t)min_u64(relay->in_flight, GUEST_IN_MAX) + extra,
               room = used < GUEST_IN_MAX ? GUEST_IN_MAX - used : 0;
        size_t n = min_u64(min_u64(room, len), sizeof piece - RELAY_CHUNK_EXTRA);
        if (!relay->connected || !n)
                return 0;
        if (!relay->chunked || relay->answer.raw)
                return put(relay, bytes, n) ? n : 0;
        size_t head = relay_chunk_head(piece, n);
        memcpy(piece + head, bytes, n);
        piece[head + n] = '\r';
        piece[head + n + 1] = '\n';
        return put(relay, piece, head + n + 2) ? n : 0;
}

static void send_end(struct relay *relay)
{
        relay->end_due = relay->chunked && !(relay->connected && put(relay, "0\r\n\r\n", 5));
}

static void whole(struct http_request *request)
{
        struct relay *relay = request->owner;
        relay->whole = true;
        send_end(relay);
}

/* ---- the answer ---- */

static void on_head(void *owner)
{
        struct relay *relay = owner;
        if (http_answer_is_empty(&relay->answer) && !relay->answer.head)
                relay_begin_answer(finish(relay), &relay->answer, NULL);
        else
                relay_begin_answer(relay->request, &relay->answer, NULL);
}

static void on_bytes(void *owner, const char *bytes, size_t len)
{
        struct relay *relay = owner;
        if (!http_add(relay->request, bytes, len))
                fail(relay, "its answer did not fit");   /* cannot happen: the call is held before */
        else if (!http_has_room(relay->request))
                guest_call_hold(&relay->call, true);
}

static void on_end_of_answer(void *owner)
{
        struct relay *relay = owner;
        http_end(finish(relay));
}

/* Read bytes of the program's answer; len 0: the connection's end. */
static void parse(struct relay *relay, const char *bytes, size_t len)
{
        if (!http_answer_take(&relay->answer, bytes, len))
                fail(relay, "what listens there does not answer as HTTP does");
}

/* ---- packets of the guest ---- */

static void go_on(struct relay *relay)
{
        if (!flush(relay))
                return;
        if (relay->end_due)
                send_end(relay);
        else if (relay->answer.raw || !relay->whole)
                http_more(relay->request);
}

static void on_room(struct guest_call *call)
{
        go_on(call->owner);
}

static void on_stream_room(struct http_request *request)
{
        struct relay *relay = request->owner;
        guest_call_hold(&relay->call, false);
}

/* The program is connected, and the TLS greeting with it over: send the request. */
static void begin(struct relay *relay)
{
        relay->connected = put(relay, relay->head.bytes, relay->head.len);
        relay->connected ? go_on(relay) : fail(relay, "it takes nothing");
}

static void greet(struct relay *relay)
{
        bool done;
        if (!tls_greet(relay->tls, &done))
                fail(relay, "what listens there does not speak TLS");
        else if (done)
                begin(relay);
        else
                flush(relay);
}

static void take_tls(struct relay *relay, const uint8_t *bytes, size_t len)
{
        static char said[GUEST_DATA_MAX];
        ssize_t n = tls_take(relay->tls, bytes, len) ? 0 : -1;
        if (n == 0 && !relay->connected)
                greet(relay);
        while (n >= 0 && relay->connected && !relay->over && (n = tls_read(relay->tls, said, sizeof said)) > 0)
                parse(relay, said, (size_t)n);
        if (n < 0)
                fail(relay, "its TLS broke off");
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct relay *relay = call->owner;
        struct csn_error err;
        uint64_t number;
        (void)fds;
        switch (kind) {
        case GUEST_STARTED:
                if (relay->connected)
                        break;             /* a hostile guest may send GUEST_STARTED twice */
                relay->tls ? greet(relay) : begin(relay);
                break;
        case GUEST_OUT:
                if (relay->tls && len > 1)
                        take_tls(relay, bytes + 1, len - 1);
                else if (relay->connected && len > 1)
                        parse(relay, (const char *)bytes + 1, len - 1);
                break;
        case GUEST_ROOM:
                if (guest_get_number(bytes, len, &number, &err) < 0)
                        break;
                relay->in_flight -= min_u64(number, relay->in_flight);
                go_on(relay);
                break;
        default:
                break;
        }
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct relay *relay = call->owner;
        if (!error && !relay->answer.raw && relay->connected)
                parse(relay, "", 0);
        if (relay->over)
                return;
        if (relay->answer.raw) {
                http_end(finish(relay));
        } else if (!relay->answer.status && error && (!call->refused || error->sys)) {
                struct http_request *request = finish(relay);
                call->refused ? e2b_closed_port(request, relay->port) : e2b_not_found(request);
        } else {
                fail(relay, "the connection ended before there was an answer");
        }
}

/* ---- requests ---- */

static bool speaks_tls(const struct e2b_sandbox *sandbox, unsigned port)
{
        json_t *one;
        size_t i;
        json_array_foreach(json_object_get(sandbox->wish.network, "httpsPorts"), i, one)
                if (json_integer_value(one) == port)
                        return true;
        return false;
}

static void pass_on(struct http_request *request)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        static const struct http_answer_events answers = { on_head, on_bytes, on_end_of_answer };
        struct e2b_sandbox *sandbox = e2b_target(request);
        struct csn_error err;
        if (!sandbox) {
                e2b_not_found(request);
                return;
        }
        struct relay *relay = mem_alloc(sizeof *relay);
        *relay = (struct relay){ .request = request,
                .loop = service_of(request)->loop,
                .port = e2b_port(request),
                .call = { .events = &events, .owner = relay },
                .end = { .fired = on_end, .owner = relay } };
        http_answer_init(&relay->answer, &answers, relay);
        if (request->uri[0] != '/' || !write_head(relay, sandbox)) {
                relay_free(relay);
                e2b_error(request, MHD_HTTP_BAD_REQUEST,
                        "the head of the request is too long, its path is none, or it has a control character or a blank where none may be");
                return;
        }
        if (speaks_tls(sandbox, relay->port) && !(relay->tls = tls_new(&err))) {
                relay_free(relay);
                e2b_error(request, MHD_HTTP_BAD_GATEWAY, "%s", err.text);
                return;
        }
        if (guest_call_connect(sandbox->psandbox, &relay->call, relay->port, &err) < 0) {
                relay_free(relay);
                e2b_error(request, MHD_HTTP_BAD_GATEWAY, "%s", err.text);
                return;
        }
        request->owner = relay;
        request->gone = on_gone;
        request->room = on_stream_room;
        request->take = take;
        request->whole = whole;
}

const struct http_route e2b_port_routes[] = {
        { "*", "*", "*", 0, BODY_STREAM, pass_on, "What a program in the sandbox answers.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};
