/*
 * All other ports of a sandbox: programs of the user's that listen inside.  A request is written anew for the program,
 * and its answer read by http_parser and passed on, for the program is hostile to us as to the client; after 101, bytes
 * go both ways as they are.
 *
 * Each request has a connection of its own, through the sandbox's guest.
 */
#include "front/e2b/request.h"

#include "net/tls_client.h"
#include "net/http_headers.h"

#include <http_parser.h>
#include <stdio.h>
#include <strings.h>

#define HEADERS_MAX 200                    /* of an answer */
#define INTERIMS_MAX 10                    /* answers of 1xx before the real one */
#define CHUNK_EXTRA 32                     /* around a piece of a body: its size and line ends */
#define TLS_EXTRA (4 * KIB)                /* around a piece of GUEST_DATA_MAX bytes, at most */

struct answer_header {
        char *name, *value;
};

struct relay {
        struct http_request *request;      /* NULL: it has its answer */
        struct loop *loop;
        struct guest_call call;
        struct tls *tls;                   /* NULL: the program listens without */
        unsigned port;
        http_parser parser;
        struct arena arena;
        struct buf head;                   /* of the request */
        struct buf name, value;            /* of the header that is being read */
        struct answer_header headers[HEADERS_MAX];
        size_t headers_n;
        bool connected, chunked, upgrade;  /* the head has gone; the body goes in chunks; something else is wanted */
        bool whole, end_due;               /* the body has come; its last chunk could not go yet */
        bool begun, raw, over;             /* the answer is on its way; bytes go as they are; it is all done */
        bool valued;                       /* the value of the header is being read, which may be empty */
        bool interim;                      /* what is read is 1xx, and a better answer follows */
        unsigned interims;
        uint64_t in_flight;                /* bytes that the program has not read */
        struct timer end;
};

/* ---- its end ---- */

static void relay_free(struct relay *relay)
{
        loop_untimer(relay->loop, &relay->end);
        guest_call_close(&relay->call);
        tls_free(relay->tls);
        buf_done(&relay->head);
        buf_done(&relay->name);
        buf_done(&relay->value);
        arena_done(&relay->arena);
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
 * From within a callback of its call, which lives on until we are back in the loop.  The request is the caller's to
 * end.
 */
static struct http_request *finish(struct relay *relay)
{
        struct http_request *request = relay->request;
        relay->request = NULL;
        relay->over = true;
        request->gone = NULL;
        request->room = NULL;
        request->take = take_nothing;      /* what still comes of a body */
        guest_call_close(&relay->call);
        loop_timer(relay->loop, &relay->end, 0);
        return request;
}

static void on_gone(struct http_request *request)
{
        relay_free(request->owner);
}

/* Without an answer of the program's that is whole. */
static void fail(struct relay *relay, const char *why)
{
        if (relay->over)
                return;
        struct http_request *request = finish(relay);
        if (relay->begun)
                http_cut(request);
        else
                e2b_error(request, MHD_HTTP_BAD_GATEWAY, "port %u: %s", relay->port, why);
}

/* ---- the request ---- */

static bool is_any_of(const char *name, const char *const *names, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (strcasecmp(name, names[i]) == 0)
                        return true;
        return false;
}

/* What belongs to one connection, or to us. */
static bool goes_on(const char *name)
{
        static const char *const ours[] = { "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE",
                "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Host", "X-API-Key", "X-Access-Token",
                "E2b-Sandbox-Id", "E2b-Sandbox-Port", "E2B-Traffic-Access-Token" };
        return !is_any_of(name, ours, ARRAY_LEN(ours));
}

/*
 * Whether a text has no control characters and no blanks but these: some programs end a line at a carriage return
 * alone.
 */
static bool is_plain(const char *text, const char *blanks)
{
        for (; *text; text++)
                if (((unsigned char)*text <= ' ' || *text == 0x7f) && !strchr(blanks, *text))
                        return false;
        return true;
}

static bool check_header(void *owner, const char *name, const char *value)
{
        bool *plain = owner;
        *plain = *plain && is_plain(name, "") && is_plain(value, "\t ");
        return *plain;
}

struct hop {
        const char *name;
        bool listed;
};

static bool find_hop(void *owner, const char *name, const char *value)
{
        struct hop *hop = owner;
        hop->listed = strcasecmp(name, "Connection") == 0 && header_lists(value, hop->name);
        return !hop->listed;
}

/* What a client says is for its connection alone, in one Connection or several (RFC 9110, 7.6.1). */
static bool lists_hop(const struct http_request *request, const char *name)
{
        struct hop hop = { name, false };
        http_each_header(request, find_hop, &hop);
        return hop.listed;
}

static bool add_header(void *owner, const char *name, const char *value)
{
        struct relay *relay = owner;
        /* Of two lengths a program may take the other one. */
        bool length = strcasecmp(name, "Content-Length") == 0;
        if (!goes_on(name) || (length ? relay->chunked : lists_hop(relay->request, name)))
                return true;
        return buf_printf(&relay->head, "%s: %s\r\n", name, value);
}

static bool is_visible(const char *text)
{
        while (*text > ' ' && *text <= '~')
                text++;
        return !*text;
}

/* The Host that the client sent, or that the sandbox was made to show, with ${PORT} in it. */
static void add_host(struct relay *relay, const struct e2b_sandbox *sandbox)
{
        const char *host = http_header(relay->request, "Host"),
                   *mask = json_string_value(json_object_get(sandbox->wish.network, "maskRequestHost"));
        const char *port = mask ? strstr(mask, "${PORT}") : NULL;
        if (mask && !is_visible(mask))
                mask = NULL;
        if (mask && port)
                buf_printf(&relay->head, "Host: %.*s%u%s\r\n", (int)(port - mask), mask, relay->port,
                        port + strlen("${PORT}"));
        else if (mask || host)
                buf_printf(&relay->head, "Host: %s\r\n", mask ? mask : host);
}

/* False: it does not fit, or could be read in two ways. */
static bool write_head(struct relay *relay, const struct e2b_sandbox *sandbox)
{
        const struct http_request *request = relay->request;
        const char *upgrade = http_header(request, "Upgrade");
        bool plain = is_plain(request->uri, "");
        http_each_header(request, check_header, &plain);
        if (!plain)
                return false;
        relay->chunked = http_header(request, "Transfer-Encoding");
        relay->upgrade = upgrade && header_lists(http_header(request, "Connection"), "upgrade");
        buf_init(&relay->head, GUEST_DATA_MAX);
        buf_printf(&relay->head, "%s %s HTTP/1.1\r\n", request->method, request->uri);
        add_host(relay, sandbox);
        http_each_header(request, add_header, relay);
        if (relay->chunked)
                buf_printf(&relay->head, "Transfer-Encoding: chunked\r\n");
        return relay->upgrade ? buf_printf(&relay->head, "Connection: Upgrade\r\nUpgrade: %s\r\n\r\n", upgrade)
                              : buf_printf(&relay->head, "Connection: close\r\n\r\n");
}

static bool hand(struct relay *relay, const void *bytes, size_t len)
{
        if (!guest_call_send(&relay->call, GUEST_IN, bytes, len))
                return false;
        relay->in_flight += len;
        return true;
}

/* What TLS has ready goes, as far as there is room.  False: not all of it. */
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

/* False: nothing of it was taken. */
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
        size_t extra = CHUNK_EXTRA + (relay->tls ? TLS_EXTRA : 0);
        size_t used = (size_t)min_u64(relay->in_flight, GUEST_IN_MAX) + extra,
               room = used < GUEST_IN_MAX ? GUEST_IN_MAX - used : 0;
        size_t n = min_u64(min_u64(room, len), sizeof piece - CHUNK_EXTRA);
        if (!relay->connected || !n)
                return 0;
        if (!relay->chunked || relay->raw)
                return put(relay, bytes, n) ? n : 0;
        size_t head = (size_t)snprintf(piece, CHUNK_EXTRA, "%zx\r\n", n);
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

static struct relay *of(http_parser *parser)
{
        return parser->data;
}

static int end_header(struct relay *relay)
{
        if (!relay->valued)
                return 0;
        relay->valued = false;
        if (relay->headers_n == HEADERS_MAX)
                return -1;
        relay->headers[relay->headers_n++] = (struct answer_header){
                arena_copy(&relay->arena, relay->name.bytes ? relay->name.bytes : "", relay->name.len),
                arena_copy(&relay->arena, relay->value.bytes ? relay->value.bytes : "", relay->value.len)
        };
        relay->name.len = relay->value.len = 0;
        return 0;
}

static int on_message_begin(http_parser *parser)
{
        struct relay *relay = of(parser);
        relay->headers_n = 0;
        arena_done(&relay->arena);
        return 0;
}

static int on_header_field(http_parser *parser, const char *bytes, size_t len)
{
        struct relay *relay = of(parser);
        if (end_header(relay) < 0)
                return -1;
        return buf_add(&relay->name, bytes, len) ? 0 : -1;
}

static int on_header_value(http_parser *parser, const char *bytes, size_t len)
{
        struct relay *relay = of(parser);
        relay->valued = true;
        return buf_add(&relay->value, bytes, len) ? 0 : -1;
}

/* The last first, because what was set last is sent first. */
static void set_headers(struct relay *relay)
{
        for (size_t i = relay->headers_n; i-- > 0;) {
                const struct answer_header *header = &relay->headers[i];
                if (goes_on(header->name) && strcasecmp(header->name, "Content-Length") != 0)
                        http_set_header(relay->request, header->name, header->value);
        }
}

static int on_headers_complete(http_parser *parser)
{
        struct relay *relay = of(parser);
        struct http_request *request = relay->request;
        bool upgraded = parser->status_code == MHD_HTTP_SWITCHING_PROTOCOLS;
        if (end_header(relay) < 0 || relay->begun || relay->over || (upgraded && !relay->upgrade))
                return -1;
        relay->interim = parser->status_code < 200 && !upgraded;
        if (relay->interim)
                return ++relay->interims > INTERIMS_MAX ? -1 : 1;
        relay->begun = true;
        set_headers(relay);
        if (upgraded) {
                for (size_t i = 0; i < relay->headers_n; i++)
                        if (strcasecmp(relay->headers[i].name, "Upgrade") == 0)
                                http_set_header(request, "Upgrade", relay->headers[i].value);
                relay->raw = true;
                request->take = take;
                http_upgrade(request);
                return 2;
        }
        bool head = strcmp(request->method, "HEAD") == 0;
        if (parser->status_code == MHD_HTTP_NO_CONTENT || parser->status_code == MHD_HTTP_NOT_MODIFIED) {
                http_answer(finish(relay), parser->status_code, NULL, mem_copy("", 0), 0);
                return 1;
        }
        http_stream_sized(request, parser->status_code, NULL,
                parser->flags & F_CONTENTLENGTH ? parser->content_length : UINT64_MAX);
        return head ? 1 : 0;
}

static void add_bytes(struct relay *relay, const char *bytes, size_t len)
{
        if (!http_add(relay->request, bytes, len))
                fail(relay, "its answer did not fit");   /* cannot be: it is held before */
        else if (!http_has_room(relay->request))
                guest_call_hold(&relay->call, true);
}

static int on_body(http_parser *parser, const char *bytes, size_t len)
{
        add_bytes(of(parser), bytes, len);
        return 0;
}

static int on_message_complete(http_parser *parser)
{
        struct relay *relay = of(parser);
        if (!relay->interim && !relay->raw && !relay->over)
                http_end(finish(relay));
        return 0;
}

/* What the program answers; at its end nothing. */
static void parse(struct relay *relay, const char *bytes, size_t len)
{
        static const http_parser_settings settings = { .on_message_begin = on_message_begin,
                .on_header_field = on_header_field,
                .on_header_value = on_header_value,
                .on_headers_complete = on_headers_complete,
                .on_body = on_body,
                .on_message_complete = on_message_complete };
        if (relay->raw) {
                add_bytes(relay, bytes, len);
                return;
        }
        size_t used = http_parser_execute(&relay->parser, &settings, bytes, len);
        if (relay->over)
                return;
        if (relay->raw && used < len)
                add_bytes(relay, bytes + used, len - used);
        else if (!relay->raw && (HTTP_PARSER_ERRNO(&relay->parser) != HPE_OK || used != len))
                fail(relay, "what listens there does not answer as HTTP does");
}

/* ---- what the guest tells ---- */

static void go_on(struct relay *relay)
{
        if (!flush(relay))
                return;
        if (relay->end_due)
                send_end(relay);
        else if (relay->raw || !relay->whole)
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

/* The program is there, or a greeting with it is over: it gets the request. */
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
                        break;             /* a guest might say it twice */
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
        if (!error && !relay->raw && relay->connected)
                parse(relay, "", 0);
        if (relay->over)
                return;
        if (relay->raw) {
                http_end(finish(relay));
        } else if (!relay->begun && error && (!call->refused || error->sys)) {
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
        buf_init(&relay->name, KIB);
        buf_init(&relay->value, HTTP_HEAD_MAX);
        http_parser_init(&relay->parser, HTTP_RESPONSE);
        relay->parser.data = relay;
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
