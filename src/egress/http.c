/*
 * The head of a request to a proxy (RFC 9110, RFC 9112), and the end of its body.
 *
 * The bytes are hostile, and a server parses the forwarded request again.  So only one spelling passes: lines end in CR
 * LF, no line is folded, and no byte is repaired.  Ambiguous heads (two lengths, a length and chunks, a second Host)
 * are refused, since the server could see another request.
 */
#include "egress/egress.h"

#include <stdio.h>
#include <strings.h>

#define LINE_MAX_CHUNK 256         /* bytes of a chunk size with its extensions */
#define TRAILERS_MAX 4096

/* A piece of text, without a final NUL. */
struct text {
        const char *at;
        size_t len;
};

static bool text_is(struct text text, const char *word)
{
        return strlen(word) == text.len && strncasecmp(text.at, word, text.len) == 0;
}

static bool is_token_byte(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct text text)
{
        for (size_t i = 0; i < text.len; i++)
                if (!is_token_byte(text.at[i]))
                        return false;
        return text.len > 0;
}

/* Cut off the text up to the first `c`, and `c`; without `c`, the whole text. */
static struct text cut(struct text *rest, char c)
{
        const char *found = memchr(rest->at, c, rest->len);
        struct text piece = { rest->at, found ? (size_t)(found - rest->at) : rest->len };
        size_t used = piece.len + (found ? 1 : 0);
        rest->at += used;
        rest->len -= used;
        return piece;
}

static struct text trim(struct text text)
{
        while (text.len && (text.at[0] == ' ' || text.at[0] == '\t')) {
                text.at++;
                text.len--;
        }
        while (text.len && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
                text.len--;
        return text;
}

static struct egress_slice slice(const char *head, struct text text)
{
        return (struct egress_slice){ (uint16_t)(text.at - head), (uint16_t)text.len };
}

static struct text text_of(const char *head, struct egress_slice slice)
{
        return (struct text){ head + slice.at, slice.len };
}

/* ---- the head as lines ---- */

/* The length of the head with its empty line; 0: incomplete; negative: malformed. */
static ssize_t find_head(const char *bytes, size_t len, struct csn_error *err)
{
        size_t window = len < EGRESS_HEAD_MAX ? len : EGRESS_HEAD_MAX, line = 0, lines = 0;
        const char *end;
        /* Bytes behind the head may be NUL; a NUL within a complete head is found by the parsers of its parts. */
        if (memchr(bytes, 0, window) && !memmem(bytes, window, "\r\n\r\n", 4))
                return err_set(err, CSN_E_INPUT, 0, "there is a NUL in the head");
        while ((end = memchr(bytes + line, '\n', window - line))) {
                size_t at = (size_t)(end - bytes);
                if (at == line || bytes[at - 1] != '\r')
                        return err_set(err, CSN_E_INPUT, 0, "a line of the head ends without a carriage return");
                if (at == line + 1 && line == 0)
                        return err_set(err, CSN_E_INPUT, 0, "the first line is empty");
                if (at == line + 1)
                        return (ssize_t)at + 1;
                if (lines++ > EGRESS_HEADERS_MAX)
                        return err_set(err, CSN_E_INPUT, 0, "the head has more than %d fields", EGRESS_HEADERS_MAX);
                line = at + 1;
        }
        if (window == EGRESS_HEAD_MAX)
                return err_set(err, CSN_E_INPUT, 0, "the head is longer than %d bytes", EGRESS_HEAD_MAX);
        return 0;
}

/* ---- the request line ---- */

/* "host:port", or "host" where the port may be missing. */
static int parse_authority(struct text text, unsigned usual_port, struct egress_target *ret, struct csn_error *err)
{
        size_t host = text.len;
        const char *bracket = text.len && text.at[0] == '[' ? memchr(text.at, ']', text.len) : NULL;
        const char *from = bracket ? bracket : text.at;
        const char *colon = memchr(from, ':', text.len - (size_t)(from - text.at));
        unsigned port = usual_port;
        if (colon) {
                host = (size_t)(colon - text.at);
                size_t digits = text.len - host - 1;
                port = 0;
                for (size_t i = 0; i < digits && port <= 65535; i++)
                        port = colon[1 + i] >= '0' && colon[1 + i] <= '9' ? port * 10 + (unsigned)(colon[1 + i] - '0')
                                                                          : 65536;
                if (digits == 0 || colon[1] == '0' || port > 65535)
                        return err_set(err, CSN_E_INPUT, 0, "the port is not a number from 1 to 65535");
        }
        if (port == 0)
                return err_set(err, CSN_E_INPUT, 0, "CONNECT needs a port: CONNECT example.org:443 HTTP/1.1");
        ret->port = port;
        return egress_host(text.at, host, ret, err);
}

static int parse_absolute(const char *head, struct text target, struct egress_request *ret, struct csn_error *err)
{
        if (target.len > 8 && strncasecmp(target.at, "https://", 8) == 0)
                return err_set(err, CSN_E_INPUT, 0, "https goes through CONNECT, not through an absolute URL");
        if (target.len <= 7 || strncasecmp(target.at, "http://", 7) != 0)
                return err_set(err, CSN_E_INPUT, 0,
                        "this is a proxy: ask with CONNECT host:port or with a whole http:// URL");
        struct text rest = { target.at + 7, target.len - 7 };
        size_t authority = 0;
        while (authority < rest.len && rest.at[authority] != '/' && rest.at[authority] != '?')
                authority++;
        ret->path = slice(head, (struct text){ rest.at + authority, rest.len - authority });
        return parse_authority((struct text){ rest.at, authority }, 80, &ret->target, err);
}

static int parse_request_line(const char *head, struct text line, struct egress_request *ret, struct csn_error *err)
{
        struct text method = cut(&line, ' '), target = cut(&line, ' ');
        if (!is_token(method) || method.len > 32)
                return err_set(err, CSN_E_INPUT, 0, "the method is not a word");
        if (line.len != 8 || (memcmp(line.at, "HTTP/1.1", 8) != 0 && memcmp(line.at, "HTTP/1.0", 8) != 0))
                return err_set(err, CSN_E_INPUT, 0, "the request line is not METHOD TARGET HTTP/1.1");
        for (size_t i = 0; i < target.len; i++)
                if (target.at[i] <= ' ' || target.at[i] > '~' || target.at[i] == '#')
                        return err_set(err, CSN_E_INPUT, 0, "the target has a byte that does not belong into a URL");
        ret->old = line.at[7] == '0';
        ret->method = slice(head, method);
        if (method.len == 7 && memcmp(method.at, "CONNECT", 7) == 0) {
                ret->body.kind = EGRESS_BODY_TUNNEL;
                return parse_authority(target, 0, &ret->target, err);
        }
        ret->body.kind = EGRESS_BODY_LENGTH;
        return parse_absolute(head, target, ret, err);
}

/* ---- fields ---- */

/* Hop-by-hop fields (RFC 9110, 7.6.1), not forwarded; Host is written anew from the target (RFC 9112, 3.2.2). */
static const char *const hop_fields[] = { "connection", "host", "keep-alive", "te", "upgrade", "http2-settings" };
/* Fields not allowed in Connection: dropping such a field would make the server see another message. */
static const char *const whole_fields[] = { "content-length", "transfer-encoding", "host" };

static bool is_one_of(struct text name, const char *const *words, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (text_is(name, words[i]))
                        return true;
        return false;
}

static int parse_field(const char *head, struct text line, struct egress_request *ret, struct csn_error *err)
{
        const char *colon = memchr(line.at, ':', line.len);
        struct text name = cut(&line, ':');
        if (!colon || !is_token(name))
                return err_set(err, CSN_E_INPUT, 0, "a field of the head is not NAME: VALUE, or is folded");
        for (size_t i = 0; i < line.len; i++)
                if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == 0x7f)
                        return err_set(err, CSN_E_INPUT, 0, "a field of the head has a control byte");
        if (ret->headers_n == EGRESS_HEADERS_MAX)
                return err_set(err, CSN_E_INPUT, 0, "the head has more than %d fields", EGRESS_HEADERS_MAX);
        ret->headers[ret->headers_n].name = slice(head, name);
        ret->headers[ret->headers_n].value = slice(head, trim(line));
        ret->headers[ret->headers_n].drop = is_one_of(name, hop_fields, ARRAY_LEN(hop_fields)) ||
                                            (name.len >= 6 && strncasecmp(name.at, "proxy-", 6) == 0);
        ret->headers_n++;
        return 0;
}

static int parse_length(struct text value, uint64_t *ret, struct csn_error *err)
{
        uint64_t length = 0;
        for (size_t i = 0; i < value.len; i++) {
                if (value.at[i] < '0' || value.at[i] > '9' || i >= 18)
                        return err_set(err, CSN_E_INPUT, 0, "Content-Length is not a number");
                length = length * 10 + (uint64_t)(value.at[i] - '0');
        }
        if (value.len == 0)
                return err_set(err, CSN_E_INPUT, 0, "Content-Length is not a number");
        *ret = length;
        return 0;
}

/* The single field of this name, or NULL in text.at.  False: several fields. */
static bool find_one(const struct egress_request *request, const char *head, const char *name, struct text *ret)
{
        *ret = (struct text){ 0 };
        for (size_t i = 0; i < request->headers_n; i++)
                if (text_is(text_of(head, request->headers[i].name), name)) {
                        if (ret->at)
                                return false;
                        *ret = text_of(head, request->headers[i].value);
                }
        return true;
}

static int find_body(const char *head, struct egress_request *ret, struct csn_error *err)
{
        struct text length, coding, host;
        if (!find_one(ret, head, "content-length", &length) || !find_one(ret, head, "transfer-encoding", &coding) ||
            !find_one(ret, head, "host", &host))
                return err_set(err, CSN_E_INPUT, 0, "the head has Host, Content-Length or Transfer-Encoding twice");
        if (length.at && coding.at)
                return err_set(err, CSN_E_INPUT, 0, "the head has both Content-Length and Transfer-Encoding");
        if (coding.at && (ret->old || !text_is(coding, "chunked")))
                return err_set(err, CSN_E_INPUT, 0, "the only Transfer-Encoding here is chunked, in HTTP/1.1");
        if (ret->body.kind == EGRESS_BODY_TUNNEL)
                return coding.at ? err_set(err, CSN_E_INPUT, 0, "CONNECT has no body") : 0;
        if (coding.at)
                ret->body.kind = EGRESS_BODY_CHUNKED;
        else if (length.at && parse_length(length, &ret->body.left, err) < 0)
                return -CSN_E_INPUT;
        ret->body.done = ret->body.kind == EGRESS_BODY_LENGTH && ret->body.left == 0;
        return 0;
}

/* Drop the fields named by Connection: they are hop-by-hop, too. */
static int drop_named(const char *head, struct egress_request *ret, struct csn_error *err)
{
        unsigned names = 0;
        for (size_t i = 0; i < ret->headers_n; i++) {
                if (!text_is(text_of(head, ret->headers[i].name), "connection"))
                        continue;
                struct text list = text_of(head, ret->headers[i].value);
                while (list.len) {
                        struct text name = trim(cut(&list, ','));
                        if (is_one_of(name, whole_fields, ARRAY_LEN(whole_fields)))
                                return err_set(err, CSN_E_INPUT, 0, "Connection names a field that it must not name");
                        if (++names > EGRESS_HEADERS_MAX)
                                return err_set(err, CSN_E_INPUT, 0, "Connection names more than %d fields",
                                        EGRESS_HEADERS_MAX);
                        for (size_t j = 0; j < ret->headers_n; j++) {
                                struct text field = text_of(head, ret->headers[j].name);
                                if (field.len == name.len && strncasecmp(field.at, name.at, name.len) == 0)
                                        ret->headers[j].drop = true;
                        }
                }
        }
        return 0;
}

ssize_t egress_parse(const char *bytes, size_t len, struct egress_request *ret, struct csn_error *err)
{
        ssize_t used = find_head(bytes, len, err);
        if (used <= 0)
                return used;
        struct egress_request request;
        memset(&request, 0, sizeof request);
        struct text rest = { bytes, (size_t)used - 2 };
        for (bool first = true; rest.len; first = false) {
                struct text line = cut(&rest, '\n');
                line.len--;             /* CR, as find_head() has checked */
                if (memchr(line.at, '\r', line.len))
                        return err_set(err, CSN_E_INPUT, 0, "there is a carriage return inside a line of the head");
                int rc = first ? parse_request_line(bytes, line, &request, err)
                               : parse_field(bytes, line, &request, err);
                if (rc < 0)
                        return rc;
        }
        if (find_body(bytes, &request, err) < 0 || drop_named(bytes, &request, err) < 0)
                return -CSN_E_INPUT;
        *ret = request;
        return used;
}

bool egress_rewrite(const struct egress_request *request, const char *head, struct buf *buf)
{
        struct text method = text_of(head, request->method), path = text_of(head, request->path);
        const char *root = path.len && path.at[0] == '/' ? "" : text_is(method, "OPTIONS") && !path.len ? "*" : "/";
        bool fits = buf_printf(buf, "%.*s %s%.*s HTTP/1.%d\r\nHost: %s", (int)method.len, method.at, root,
                (int)path.len, path.at, request->old ? 0 : 1, request->target.host);
        if (request->target.port != 80)
                fits = fits && buf_printf(buf, ":%u", request->target.port);
        fits = fits && buf_printf(buf, "\r\n");
        for (size_t i = 0; i < request->headers_n; i++) {
                if (request->headers[i].drop)
                        continue;
                struct text name = text_of(head, request->headers[i].name),
                            value = text_of(head, request->headers[i].value);
                fits = fits && buf_add(buf, name.at, name.len) && buf_add(buf, ": ", 2) &&
                        buf_add(buf, value.at, value.len) && buf_add(buf, "\r\n", 2);
        }
        return fits && buf_printf(buf, "Connection: close\r\n\r\n");
}

/* ---- the body ---- */

enum chunk_state { CHUNK_FIRST, CHUNK_SIZE, CHUNK_EXTENSION, CHUNK_LF, CHUNK_DATA, CHUNK_DATA_CR, CHUNK_DATA_LF,
                   CHUNK_TRAILER, CHUNK_TRAILER_LINE, CHUNK_TRAILER_LF, CHUNK_END_LF };

static int hex_of(char c)
{
        return c >= '0' && c <= '9'    ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
}

static bool is_text_byte(char c)
{
        return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

/* Parse a byte of a chunk-size line.  Returns the next state, or -1 for a malformed line. */
static int step_size(struct egress_body *body, char c)
{
        if (++body->line > LINE_MAX_CHUNK)
                return -1;
        int digit = body->state == CHUNK_EXTENSION ? -1 : hex_of(c);
        if (digit >= 0) {
                body->left = body->left << 4 | (uint64_t)digit;
                return body->left >> 56 ? -1 : CHUNK_SIZE;
        }
        if (body->state == CHUNK_FIRST)
                return -1;
        if (c == '\r')
                return CHUNK_LF;
        if (body->state == CHUNK_SIZE)
                return c == ';' ? CHUNK_EXTENSION : -1;
        return is_text_byte(c) ? CHUNK_EXTENSION : -1;
}

static int step_trailer(struct egress_body *body, char c)
{
        if (++body->line > TRAILERS_MAX)
                return -1;
        switch (body->state) {
        case CHUNK_TRAILER:
                return c == '\r' ? CHUNK_END_LF : is_token_byte(c) ? CHUNK_TRAILER_LINE : -1;
        case CHUNK_TRAILER_LINE:
                return c == '\r' ? CHUNK_TRAILER_LF : is_text_byte(c) ? CHUNK_TRAILER_LINE : -1;
        case CHUNK_TRAILER_LF:
                return c == '\n' ? CHUNK_TRAILER : -1;
        default:
                body->done = c == '\n';
                return body->done ? CHUNK_END_LF : -1;
        }
}

/* Parse a byte outside the data. */
static int step_chunk(struct egress_body *body, char c)
{
        switch (body->state) {
        case CHUNK_FIRST:
        case CHUNK_SIZE:
        case CHUNK_EXTENSION:
                return step_size(body, c);
        case CHUNK_LF:
                body->line = 0;
                return c != '\n' ? -1 : body->left ? CHUNK_DATA : CHUNK_TRAILER;
        case CHUNK_DATA_CR:
                return c == '\r' ? CHUNK_DATA_LF : -1;
        case CHUNK_DATA_LF:
                return c == '\n' ? CHUNK_FIRST : -1;
        default:
                return step_trailer(body, c);
        }
}

static ssize_t take_chunks(struct egress_body *body, const char *bytes, size_t len, struct csn_error *err)
{
        size_t i = 0;
        while (i < len && !body->done) {
                if (body->state == CHUNK_DATA) {
                        size_t data = (size_t)min_u64(body->left, len - i);
                        i += data;
                        body->left -= data;
                        if (!body->left)
                                body->state = CHUNK_DATA_CR;
                        continue;
                }
                int state = step_chunk(body, bytes[i++]);
                if (state < 0)
                        return err_set(err, CSN_E_INPUT, 0, "the body is not in chunks");
                body->state = state;
        }
        return (ssize_t)i;
}

ssize_t egress_body_take(struct egress_body *body, const char *bytes, size_t len, struct csn_error *err)
{
        if (body->kind == EGRESS_BODY_TUNNEL)
                return (ssize_t)len;
        if (body->done)
                return 0;
        if (body->kind == EGRESS_BODY_CHUNKED)
                return take_chunks(body, bytes, len, err);
        size_t taken = (size_t)min_u64(body->left, len);
        body->left -= taken;
        body->done = body->left == 0;
        return (ssize_t)taken;
}
