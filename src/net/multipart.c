/* Bodies of multipart/form-data; see multipart.h. */
#include "net/multipart.h"

#include <stdio.h>
#include <strings.h>

#define HELD_MAX (64 * KIB)

/* ---- parameters: "form-data; name=x; filename=\"y\"" ---- */

static bool is_token(char c)
{
        return c > ' ' && c < 0x7f && !strchr("()<>@,;:\\\"/[]?=", c);
}

/* The value of a parameter, without quotes.  False: missing, malformed, or too long. */
static bool parameter(const char *text, const char *wanted, char *ret, size_t size)
{
        for (text += strcspn(text, ";"); *text == ';';) {
                text += 1 + strspn(text + 1, " \t");
                size_t name_len = strcspn(text, "=; \t"), n = 0;
                bool found = name_len == strlen(wanted) && strncasecmp(text, wanted, name_len) == 0;
                text += name_len;
                if (*text++ != '=')
                        return false;
                bool quoted = *text == '"';
                for (text += quoted; quoted ? *text && *text != '"' : is_token(*text); text++) {
                        /*
                         * Browsers send "C:\x" without doubling the backslash, and a quote as %22; curl puts a
                         * backslash before a quote.
                         */
                        if (quoted && *text == '\\' && (text[1] == '"' || text[1] == '\\'))
                                text++;
                        if (found && n + 1 >= size)
                                return false;
                        if (found)
                                ret[n++] = *text;
                }
                if (quoted && *text++ != '"')
                        return false;
                if (found) {
                        ret[n] = 0;
                        return true;
                }
                text += strspn(text, " \t");
        }
        return false;
}

int multipart_init(struct multipart *multipart, const char *type, struct csn_error *err)
{
        char boundary[MULTIPART_BOUNDARY_MAX + 1];
        static const char wanted[] = "multipart/form-data";
        *multipart = (struct multipart){ 0 };
        buf_init(&multipart->buf, HELD_MAX);
        if (!type || strncasecmp(type, wanted, sizeof wanted - 1) != 0 || !strchr(" \t;", type[sizeof wanted - 1]) ||
            !parameter(type, "boundary", boundary, sizeof boundary) || !boundary[0])
                return err_field(err, "",
                        "Content-Type is \"%.100s\"; it has to be multipart/form-data with a boundary of at most %d characters",
                        type ? type : "", MULTIPART_BOUNDARY_MAX);
        multipart->delimiter_len =
                (size_t)snprintf(multipart->delimiter, sizeof multipart->delimiter, "\r\n--%s", boundary);
        buf_add(&multipart->buf, "\r\n", 2);   /* the first line may be the delimiter */
        return 0;
}

void multipart_done(struct multipart *multipart)
{
        buf_done(&multipart->buf);
}

size_t multipart_add(struct multipart *multipart, const char *bytes, size_t len)
{
        struct buf *buf = &multipart->buf;
        if (multipart->at) {
                memmove(buf->bytes, buf->bytes + multipart->at, buf->len - multipart->at);
                buf->len -= multipart->at;
                multipart->at = 0;
        }
        size_t n = min_u64(len, buf->max - buf->len);
        buf_add(buf, bytes, n);
        return n;
}

/* ---- steps ---- */

static int wrong(struct csn_error *err, const char *what)
{
        return err_field(err, "/", "the body is no multipart/form-data: %s", what);
}

static void read_name(struct multipart *multipart, char *head)
{
        multipart->has_name = false;
        multipart->field[0] = 0;
        for (char *line = head, *next; line; line = next) {
                next = strstr(line, "\r\n");
                if (next)
                        *next = 0, next += 2;
                if (strncasecmp(line, "Content-Disposition:", 20) != 0)
                        continue;
                multipart->has_name = parameter(line, "filename", multipart->name, sizeof multipart->name);
                if (!parameter(line, "name", multipart->field, sizeof multipart->field))
                        multipart->field[0] = 0;
        }
}

/* Headers end with an empty line; without headers there is only the empty line. */
static int read_head(struct multipart *multipart, const char *from, size_t len, struct csn_error *err)
{
        char head[MULTIPART_HEAD_MAX + 1];
        const char *end = memmem(from, len, "\r\n\r\n", 4);
        size_t size = end ? (size_t)(end - from) : len;
        if (size > MULTIPART_HEAD_MAX)
                return wrong(err, "the headers of a part are longer than 8 KiB");
        if (!end)
                return MULTIPART_MORE;
        if (memchr(from, 0, size))
                return wrong(err, "there is a NUL in the headers of a part");
        memcpy(head, from, size);
        head[size] = 0;
        read_name(multipart, head);
        return MULTIPART_PART;
}

/* Everything up to the delimiter, which may begin at the end of the buffer. */
static int read_body(struct multipart *multipart, const char *from, size_t len)
{
        const char *end = memmem(from, len, multipart->delimiter, multipart->delimiter_len);
        size_t kept = multipart->delimiter_len - 1;
        multipart->bytes = from;
        multipart->len = end ? (size_t)(end - from) : len > kept ? len - kept : 0;
        return multipart->len ? MULTIPART_DATA : end ? MULTIPART_END : MULTIPART_MORE;
}

/* Behind a delimiter: "--" after the last, blanks and the end of the line after others. */
static int read_between(struct multipart *multipart, const char *from, size_t len, struct csn_error *err)
{
        size_t blanks = 0;
        if (len >= 2 && memcmp(from, "--", 2) == 0) {
                multipart->state = MULTIPART_EPILOGUE;
                return MULTIPART_DONE;
        }
        while (blanks < len && (from[blanks] == ' ' || from[blanks] == '\t'))
                blanks++;
        if (blanks > MULTIPART_HEAD_MAX || (len > blanks && from[blanks] != '\r' && !(len == 1 && from[0] == '-')) ||
            (len > blanks + 1 && from[blanks + 1] != '\n'))
                return wrong(err, "behind a boundary there is something else");
        if (len < blanks + 2)
                return MULTIPART_MORE;
        multipart->at += blanks;               /* a part without headers has its empty line here already */
        multipart->state = MULTIPART_HEAD;
        return multipart_next(multipart, err);
}

int multipart_next(struct multipart *multipart, struct csn_error *err)
{
        int step;
        while (multipart->state == MULTIPART_PREAMBLE) {
                step = read_body(multipart, multipart->buf.bytes + multipart->at, multipart->buf.len - multipart->at);
                if (step == MULTIPART_MORE)
                        return step;
                multipart_take(multipart, step, multipart->len);
        }
        const char *from = multipart->buf.bytes + multipart->at;
        size_t len = multipart->buf.len - multipart->at;
        switch (multipart->state) {
        case MULTIPART_BETWEEN:
                return read_between(multipart, from, len, err);
        case MULTIPART_HEAD:
                return read_head(multipart, from, len, err);
        case MULTIPART_BODY:
                return read_body(multipart, from, len);
        default:
                multipart->at = multipart->buf.len;
                return MULTIPART_DONE;
        }
}

void multipart_take(struct multipart *multipart, int step, size_t len)
{
        const char *from = multipart->buf.bytes + multipart->at;
        if (step == MULTIPART_DATA) {
                multipart->at += len;
        } else if (step == MULTIPART_END) {
                multipart->at += multipart->delimiter_len;
                multipart->state = MULTIPART_BETWEEN;
        } else if (step == MULTIPART_PART) {
                const char *end = memmem(from, multipart->buf.len - multipart->at, "\r\n\r\n", 4);
                multipart->at += (size_t)(end - from) + 4;
                multipart->state = MULTIPART_BODY;
        }
}
