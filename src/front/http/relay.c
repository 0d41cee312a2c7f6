/* Heads of relayed requests and answers; see relay.h. */
#include "front/http/relay.h"

#include "net/http_headers.h"

#include <stdio.h>
#include <strings.h>

static bool is_any_of(const char *name, const char *const *names)
{
        for (; names && *names; names++)
                if (strcasecmp(name, *names) == 0)
                        return true;
        return false;
}

/* Headers for a single connection. */
static bool is_hop(const char *name)
{
        static const char *const names[] = { "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization",
                "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Host", NULL };
        return is_any_of(name, names);
}

/* Whether a text has no control characters and no blanks but `blanks`: some servers end a line at a carriage return. */
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

/* Whether a Connection header of the client names this header: one Connection or several (RFC 9110, 7.6.1). */
static bool lists_hop(const struct http_request *request, const char *name)
{
        struct hop hop = { name, false };
        http_each_header(request, find_hop, &hop);
        return hop.listed;
}

struct head_writer {
        const struct http_request *request;
        const struct relay_rules *rules;
        struct buf *head;
        bool chunked, fits;
};

static bool add_header(void *owner, const char *name, const char *value)
{
        struct head_writer *writer = owner;
        /* Of two lengths a server may take the other. */
        bool length = strcasecmp(name, "Content-Length") == 0;
        if (is_hop(name) || is_any_of(name, writer->rules->drops) ||
                (length ? writer->chunked || writer->rules->whole : lists_hop(writer->request, name)))
                return true;
        writer->fits = buf_printf(writer->head, "%s: %s\r\n", name, value);
        return writer->fits;
}

bool relay_wants_upgrade(const struct http_request *request)
{
        const char *upgrade = http_header(request, "Upgrade");
        return upgrade && header_lists(http_header(request, "Connection"), "upgrade");
}

bool relay_write_head(const struct http_request *request, const struct relay_rules *rules, struct buf *head,
        bool *ret_chunked)
{
        const char *uri = rules->uri ? rules->uri : request->uri;
        bool plain = is_plain(uri, "");
        http_each_header(request, check_header, &plain);
        if (!plain)
                return false;
        struct head_writer writer = { .request = request, .rules = rules, .head = head, .fits = true };
        writer.chunked = *ret_chunked = !rules->whole && http_header(request, "Transfer-Encoding");
        buf_printf(head, "%s %s HTTP/1.1\r\n", request->method, uri);
        if (rules->host)
                buf_printf(head, "Host: %s\r\n", rules->host);
        http_each_header(request, add_header, &writer);
        if (writer.chunked)
                buf_printf(head, "Transfer-Encoding: chunked\r\n");
        if (rules->whole && (request->body.len || strcmp(request->method, "GET") != 0))
                buf_printf(head, "Content-Length: %zu\r\n", request->body.len);
        bool fits = writer.fits && buf_printf(head, "%s", rules->more ? rules->more : "");
        if (relay_wants_upgrade(request))
                return fits && buf_printf(head, "Connection: Upgrade\r\nUpgrade: %s\r\n\r\n",
                                       http_header(request, "Upgrade"));
        return fits && buf_printf(head, "%s\r\n", rules->keeps ? "" : "Connection: close\r\n");
}

size_t relay_chunk_head(char text[static RELAY_CHUNK_EXTRA], size_t len)
{
        return (size_t)snprintf(text, RELAY_CHUNK_EXTRA, "%zx\r\n", len);
}

/* The last header first, because the header set last is sent first. */
static void set_headers(struct http_request *request, const struct http_answer *answer, const char *const *drops)
{
        for (size_t i = answer->headers_n; i-- > 0;) {
                const struct http_answer_header *header = &answer->headers[i];
                if (!is_hop(header->name) && !is_any_of(header->name, drops) &&
                        strcasecmp(header->name, "Content-Length") != 0)
                        http_set_header(request, header->name, header->value);
        }
}

bool relay_begin_answer(struct http_request *request, const struct http_answer *answer, const char *const *drops)
{
        set_headers(request, answer, drops);
        if (answer->raw) {
                const char *protocol = http_answer_header(answer, "Upgrade");
                if (protocol)
                        http_set_header(request, "Upgrade", protocol);
                http_upgrade(request);
                return false;
        }
        if (answer->status == MHD_HTTP_NO_CONTENT || answer->status == MHD_HTTP_NOT_MODIFIED) {
                http_answer(request, answer->status, NULL, mem_copy("", 0), 0);
                return true;
        }
        http_stream_sized(request, answer->status, NULL, answer->length);
        return false;
}
