/*
 * Checks of a request's head demanded by RFC 9110 and 9112, and missing in libmicrohttpd.
 *
 * If a proxy in front of the daemon could read a head or a chunk in another way than the daemon, a second request may
 * be hidden in the body of the first, so the request is refused and the connection ends.
 */
#include "front/http/http_private.h"

#include <ctype.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define TOKEN "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"   /* RFC 9110, 5.6.2 */

struct head {
        unsigned hosts, lengths, codings;
        bool chunked;                      /* the last Transfer-Encoding is "chunked" alone */
        const char *wrong;                 /* a field name, not a token */
        const char *control;               /* the name of a field with a control character in its value */
        const char *length;                /* of a Content-Length without a number */
        const char *cut;                   /* the name of a field with more behind its value than the end of its line */
        const char *end, *last;            /* of the last value checked, and its name; first the version */
};

/*
 * libmicrohttpd ends a value at a NUL, and joins lines of a value elsewhere (obs-fold); names and values are in the
 * read buffer of the head, where CR and LF have become NULs.  Between a value and the next name are blanks and exactly
 * the NULs of its line end, behind the last value also the NULs of the empty line.  Otherwise the value has been cut or
 * moved, or its line ends with LF alone.
 */
static bool is_line_end(const char *at, const char *next, size_t wanted)
{
        size_t nuls = 0;
        if (next <= at || (size_t)(next - at) > HTTP_HEAD_MAX)
                return false;
        for (; at < next; at++) {
                nuls += !*at;
                if (*at && !strchr(" \t\r\n", *at))
                        return false;
        }
        return nuls == wanted;
}

static void look_behind(struct head *head, const char *next, size_t wanted)
{
        if (!HTTP_LIBRARY_IS_STRICT && !head->cut && !is_line_end(head->end, next, wanted))
                head->cut = head->last;
}

/* RFC 9110, 5.5: some readers end a value at such a character, and see another value than the rest. */
static bool has_control(const char *value, size_t len)
{
        for (size_t i = 0; i < len; i++)
                if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
                        return true;
        return false;
}

static enum MHD_Result look_at(void *owner, enum MHD_ValueKind kind, const char *name, size_t name_len,
        const char *value, size_t value_len)
{
        struct head *head = owner;
        (void)kind;
        look_behind(head, name, 2);
        head->last = name;
        head->end = value ? value + value_len : name + name_len;
        if (!name_len || strspn(name, TOKEN) != name_len)
                head->wrong = name;
        head->hosts += strcasecmp(name, "Host") == 0;
        if (value && has_control(value, value_len))
                head->control = name;
        if (strcasecmp(name, "Content-Length") == 0) {
                head->lengths++;
                if (!value || !value_len || strspn(value, "0123456789") != value_len)
                        head->length = value;
        }
        if (strcasecmp(name, "Transfer-Encoding") == 0) {
                head->codings++;
                head->chunked = value && strcasecmp(value, "chunked") == 0;
        }
        return MHD_YES;
}

/*
 * libmicrohttpd keeps target and version in the read buffer of the request line, so a target shorter than the space
 * between the two has a NUL inside.
 */
static bool has_whole_target(const struct http_request *request, const char *target, const char *version)
{
        for (const char *at = request->received_uri; *at; at++)
                if ((unsigned char)*at <= ' ' || *at == 0x7f)
                        return false;
        return HTTP_LIBRARY_IS_STRICT || version < target || (size_t)(version - target) > HTTP_HEAD_MAX ||
                (size_t)(version - target) == strlen(request->received_uri) + 1;
}

/* The head gives the end of the body once and in a single way (RFC 9112, 6.1 and 6.3). */
static int check_framing(const struct head *head, bool old, unsigned *ret_status, struct csn_error *err)
{
        if (head->codings && old)
                return err_field(err, "Transfer-Encoding", "HTTP/1.0 has no Transfer-Encoding");
        if (head->codings ? head->codings == 1 && head->chunked && !head->lengths : head->lengths <= 1)
                return 0;
        if (!head->codings || head->lengths)
                return err_field(err, "Content-Length",
                        "a request has one Content-Length, or Transfer-Encoding: chunked, and not both");
        *ret_status = MHD_HTTP_NOT_IMPLEMENTED;
        return err_field(err, "Transfer-Encoding", "the only Transfer-Encoding that is understood is chunked, once");
}

/*
 * The target of a request may be a whole URI, as to a proxy (RFC 9112, 3.2.2).  Its authority and Host have to agree,
 * for routes and rules look at Host.
 */
static int check_authority(const struct http_request *request, struct csn_error *err)
{
        const char *host = http_header(request, "Host");
        if (!request->authority || (host && strcasecmp(host, request->authority) == 0 && !strchr(host, '@')))
                return 0;
        return err_field(err, "Host",
                "the target of the request names the host \"%.100s\", and the header Host names \"%.100s\"",
                request->authority, host ? host : "");
}

/* The path and the query of a target with an authority. */
static const char *behind_authority(struct http_request *request, const char *target)
{
        size_t scheme = strncasecmp(target, "http://", 7) == 0 ? 7 : strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
        if (!scheme)
                return target;
        const char *rest = target + scheme + strcspn(target + scheme, "/?");
        request->authority = arena_copy(&request->arena, target + scheme, (size_t)(rest - target) - scheme);
        return *rest == '/' ? rest : arena_text(&request->arena, "/%s", rest);
}

void http_split_target(struct http_request *request)
{
        request->received_uri = request->uri;
        request->path = behind_authority(request, request->path);
        request->uri = behind_authority(request, request->uri);
}

static int check(const struct http_request *request, const char *target, const char *version, unsigned *ret_status,
        struct csn_error *err)
{
        bool old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
        struct head head = { .last = "", .end = version + strlen(version) };
        if (!old && strcmp(version, MHD_HTTP_VERSION_1_1) != 0) {
                *ret_status = MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED;
                return err_field(err, "", "the version %.8s is not spoken here; HTTP/1.1 and HTTP/1.0 are", version);
        }
        if (!request->method[0] || request->method[strspn(request->method, TOKEN)])
                return err_field(err, "", "the method \"%.60s\" is no token (RFC 9110, 5.6.2)", request->method);
        MHD_get_connection_values_n(request->connection, MHD_HEADER_KIND, look_at, &head);
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        if (info)
                look_behind(&head, target - strlen(request->method) - 1 + info->header_size, 4);
        if (!has_whole_target(request, target, version))
                return err_field(err, "", "the target of the request line has a blank or a control character in it");
        if (head.wrong)
                return err_field(err, "", "the header name \"%.60s\" is no token (RFC 9110, 5.6.2)", head.wrong);
        if (head.cut && !head.cut[0])
                return err_field(err, "", "the request line does not end with CR and LF (RFC 9112, 2.2)");
        if (head.cut)
                return err_field(err, head.cut,
                        "behind the value of the header \"%.60s\" comes something else than CR, LF and another header or the end of the head: a NUL, "
                        "LF alone, or a folded line (RFC 9110, 5.5; RFC 9112, 2.2 and 5.2)",
                        head.cut);
        if (head.control)
                return err_field(err, head.control,
                        "the value of the header \"%.60s\" has a control character (RFC 9110, 5.5)", head.control);
        if (head.length)
                return err_field(err, "Content-Length",
                        "Content-Length is \"%.40s\"; it has to be one number, on its line", head.length);
        if (head.hosts > 1 || (!head.hosts && !old))
                return err_field(err, "Host", "a request has one Host header; this one has %u", head.hosts);
        return check_framing(&head, old, ret_status, err) < 0 ? -err->code : check_authority(request, err);
}

int http_check_form(struct http_request *request, const char *target, const char *version, unsigned *ret_status,
        struct csn_error *err)
{
        *ret_status = MHD_HTTP_BAD_REQUEST;
        request->chunked = http_header(request, "Transfer-Encoding");
        int rc = check(request, target, version, ret_status, err);
        if (rc == 0)
                *ret_status = 0;
        /* Not every line of a body in chunks can be checked, so nothing behind the body is taken for a request. */
        if (rc < 0 || request->chunked)
                http_set_header(request, "Connection", "close");
        return rc;
}

int http_check_coding(struct http_request *request, unsigned *ret_status, struct csn_error *err)
{
        const char *coding = http_header(request, "Content-Encoding");
        if (!coding || !coding[0] || strcasecmp(coding, "identity") == 0)
                return 0;
        http_set_header(request, "Accept-Encoding", "identity");
        *ret_status = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
        return err_field(err, "Content-Encoding",
                "a body with Content-Encoding: %.60s is not read here; send it without one", coding);
}

/* ---- chunks ---- */

/* Whether the line of a chunk's size, without CR and LF, has digits and behind the digits at most an extension. */
static bool is_chunk_line(const char *line, const char *end)
{
        const char *rest = line;
        while (rest < end && isxdigit((unsigned char)*rest))
                rest++;
        return rest > line && rest - line <= 16 && (rest == end || *rest == ';') &&
                !has_control(rest, (size_t)(end - rest));
}

/*
 * libmicrohttpd takes LF alone for the end of a line (0.9.75).  A chunk's data is at the begin of the buffer, behind
 * the NUL at the end of the head; or behind the line of the chunk's size, and the end of the last chunk, if all came in
 * one read.
 */
bool http_check_chunk(const struct http_request *request, const char *bytes)
{
        const char *line = bytes - 2;
        if (HTTP_LIBRARY_IS_STRICT || bytes[-1] != '\n')
                return true;
        if (bytes[-2] != '\r')
                return false;
        while (line[-1] != '\n' && line[-1] && bytes - line < (ptrdiff_t)HTTP_HEAD_MAX)
                line--;
        bool is_behind_chunk = line[-1] == '\n';
        return is_chunk_line(line, bytes - 2) &&
                (!is_behind_chunk || (line[-2] == '\r' && line - 1 != request->chunk_end));
}

void http_took_chunk(struct http_request *request, const char *bytes, size_t len)
{
        /* Behind a single byte the next bytes may be read to the same place. */
        request->chunk_end = len > 1 ? bytes + len : NULL;
}

/* ---- chunks unreadable to libmicrohttpd ---- */

#define LOOK_US 100000
#define LOOKS_MAX 3

/* No other answer has begun, so this answer is whole; libmicrohttpd notices the end of the socket. */
void http_refuse_chunk(const struct http_request *request, const char *why)
{
        static const char answer[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        log_text(LOG_INFO, "http: the chunks of request %s %s", request->id, why);
        send(request->client->fd, answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(request->client->fd, SHUT_RDWR);
}

static void look_for_progress(struct http_request *request)
{
        int unread = 0;
        if (ioctl(request->client->fd, FIONREAD, &unread) < 0)
                return;
        request->looks = unread > 0 && unread == request->unread ? request->looks + 1 : 0;
        request->unread = unread;
        if (request->looks == LOOKS_MAX)
                http_refuse_chunk(request, "have an extension or a trailer that is longer than the buffer");
}

void http_cut_stuck(struct http *http)
{
        uint64_t now = clock_us();
        if (now - http->looked_us < LOOK_US)
                return;
        http->looked_us = now;
        for (struct http_request *request = http->requests; request; request = request->next)
                if (request->chunked && !request->suspended && !request->response &&
                        (request->state == HTTP_READING || request->state == HTTP_OWNED))
                        look_for_progress(request);
}
