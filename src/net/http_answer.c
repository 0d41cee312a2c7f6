/* The reader of an answer of an HTTP/1.1 server; see http_answer.h. */
#include "net/http_answer.h"

#include <strings.h>

static struct http_answer *of(http_parser *parser)
{
        return parser->data;
}

static int end_header(struct http_answer *answer)
{
        if (!answer->valued)
                return 0;
        answer->valued = false;
        if (answer->headers_n == HTTP_ANSWER_HEADERS_MAX)
                return -1;
        answer->headers[answer->headers_n++] = (struct http_answer_header){
                arena_copy(&answer->arena, answer->name.bytes ? answer->name.bytes : "", answer->name.len),
                arena_copy(&answer->arena, answer->value.bytes ? answer->value.bytes : "", answer->value.len)
        };
        answer->name.len = answer->value.len = 0;
        return 0;
}

static int on_message_begin(http_parser *parser)
{
        struct http_answer *answer = of(parser);
        answer->headers_n = 0;
        arena_done(&answer->arena);
        return 0;
}

static int on_header_field(http_parser *parser, const char *bytes, size_t len)
{
        struct http_answer *answer = of(parser);
        if (end_header(answer) < 0)
                return -1;
        return buf_add(&answer->name, bytes, len) ? 0 : -1;
}

static int on_header_value(http_parser *parser, const char *bytes, size_t len)
{
        struct http_answer *answer = of(parser);
        answer->valued = true;
        return buf_add(&answer->value, bytes, len) ? 0 : -1;
}

bool http_answer_is_empty(const struct http_answer *answer)
{
        return answer->head || answer->status == 204 || answer->status == 304;
}

/* The values of http_parser: 0: a body follows, 1: none, 2: the connection is raw. */
static int on_headers_complete(http_parser *parser)
{
        struct http_answer *answer = of(parser);
        bool upgraded = parser->status_code == 101;
        if (end_header(answer) < 0 || answer->status || (upgraded && !answer->upgrade))
                return -1;
        answer->interim = parser->status_code < 200 && !upgraded;
        if (answer->interim)
                return ++answer->interims > HTTP_ANSWER_INTERIMS_MAX ? -1 : 1;
        answer->status = parser->status_code;
        answer->length = parser->flags & F_CONTENTLENGTH ? parser->content_length : UINT64_MAX;
        answer->raw = upgraded;
        answer->events->head(answer->owner);
        return upgraded ? 2 : http_answer_is_empty(answer) ? 1 : 0;
}

static int on_body(http_parser *parser, const char *bytes, size_t len)
{
        struct http_answer *answer = of(parser);
        if (!answer->stopped)
                answer->events->bytes(answer->owner, bytes, len);
        return 0;
}

static int on_message_complete(http_parser *parser)
{
        struct http_answer *answer = of(parser);
        if (answer->interim || answer->raw || answer->stopped || answer->complete)
                return 0;
        answer->complete = true;
        answer->keeps = http_should_keep_alive(parser);
        answer->events->end(answer->owner);
        return 0;
}

void http_answer_init(struct http_answer *answer, const struct http_answer_events *events, void *owner)
{
        *answer = (struct http_answer){ .events = events, .owner = owner };
        buf_init(&answer->name, HTTP_ANSWER_NAME_MAX);
        buf_init(&answer->value, HTTP_ANSWER_VALUE_MAX);
        http_parser_init(&answer->parser, HTTP_RESPONSE);
        answer->parser.data = answer;
}

void http_answer_done(struct http_answer *answer)
{
        buf_done(&answer->name);
        buf_done(&answer->value);
        arena_done(&answer->arena);
}

void http_answer_free(struct http_answer *answer)
{
        if (!answer)
                return;
        answer->stopped = answer->freed = true;
        if (answer->taking)
                return;
        http_answer_done(answer);
        free(answer);
}

void http_answer_stop(struct http_answer *answer)
{
        answer->stopped = true;
}

static bool take(struct http_answer *answer, const char *bytes, size_t len)
{
        static const http_parser_settings settings = { .on_message_begin = on_message_begin,
                .on_header_field = on_header_field,
                .on_header_value = on_header_value,
                .on_headers_complete = on_headers_complete,
                .on_body = on_body,
                .on_message_complete = on_message_complete };
        if (answer->stopped)
                return true;
        if (answer->complete)
                return len == 0;           /* bytes without a request */
        if (answer->raw) {
                if (len)
                        answer->events->bytes(answer->owner, bytes, len);
                return true;
        }
        size_t used = http_parser_execute(&answer->parser, &settings, bytes, len);
        if (answer->stopped || answer->complete)
                return answer->stopped || used == len;
        if (answer->raw) {
                if (used < len)
                        answer->events->bytes(answer->owner, bytes + used, len - used);
                return true;
        }
        return HTTP_PARSER_ERRNO(&answer->parser) == HPE_OK && used == len;
}

bool http_answer_take(struct http_answer *answer, const char *bytes, size_t len)
{
        answer->taking = true;
        bool good = take(answer, bytes, len);
        answer->taking = false;
        if (answer->freed)
                http_answer_free(answer);
        return good;
}

const char *http_answer_header(const struct http_answer *answer, const char *name)
{
        for (size_t i = 0; i < answer->headers_n; i++)
                if (strcasecmp(answer->headers[i].name, name) == 0)
                        return answer->headers[i].value;
        return NULL;
}
