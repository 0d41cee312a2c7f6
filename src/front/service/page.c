/* Lists by pages; see api.h. */
#include "front/service/page.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT_MAX (64 * MIB) /* bytes of a page */

/* The end of the number, or NULL: there is none. */
static const char *parse(const char *text, uint64_t *ret)
{
        char *end;
        if (text[0] < '0' || text[0] > '9')
                return NULL;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        return errno == 0 && *ret <= INT64_MAX ? end : NULL;
}

static bool parse_limit(const char *text, uint64_t *ret)
{
        const char *end = parse(text, ret);
        return end && !*end && *ret >= 1 && *ret <= SERVICE_PAGE_MAX;
}

/* "12", or "12.3" */
static bool parse_cursor(const char *text, struct service_page *ret)
{
        const char *end = parse(text, &ret->below);
        ret->below_second = 0;
        if (end && *end == '.')
                end = parse(end + 1, &ret->below_second);
        return end && !*end;
}

static bool begin_text(struct service_page *page, const char *name)
{
        buf_init(&page->text, TEXT_MAX);
        buf_printf(&page->text, "{\"%s\":[", name);
        return true;
}

bool service_page_begin(struct http_request *request, uint64_t usual, const char *name, struct service_page *ret)
{
        const char *limit = http_query(request, "limit"), *cursor = http_query(request, "cursor");
        struct csn_error err;
        *ret = (struct service_page){ .most = usual, .below = INT64_MAX, .below_second = INT64_MAX };
        if (limit && !parse_limit(limit, &ret->most))
                err_field(&err, "limit", "limit is \"%.20s\"; it has to be a number from 1 to %d", limit,
                          SERVICE_PAGE_MAX);
        else if (cursor && !parse_cursor(cursor, ret))
                err_field(&err, "cursor", "cursor is \"%.20s\"; it has to be \"next\" of the page before", cursor);
        else
                return begin_text(ret, name);
        http_fail(request, &err);
        return false;
}

bool service_page_has(struct service_page *page, uint64_t number, uint64_t second)
{
        if (number > page->below || (number == page->below && second >= page->below_second))
                return false;
        if (page->n == page->most) {
                page->more = true;
                return false;
        }
        page->last = number;
        page->last_second = second;
        return true;
}

void service_page_add(struct service_page *page, json_t *member)
{
        if (page->n++)
                buf_add(&page->text, ",", 1);
        char *text = http_json_text(member);
        page->is_broken = !text || !buf_add(&page->text, text, strlen(text)) || page->is_broken;
        free(text);
}

void service_page_done(struct service_page *page)
{
        buf_done(&page->text);
}

void service_page_answer(struct http_request *request, struct service_page *page)
{
        struct csn_error err;
        buf_printf(&page->text, "]");
        if (page->more)
                buf_printf(&page->text, ",\"next\":\"%" PRIu64, page->last);
        if (page->more && page->last_second)
                buf_printf(&page->text, ".%" PRIu64, page->last_second);
        if (page->more)
                buf_printf(&page->text, "\"");
        if (page->tail)
                buf_printf(&page->text, ",%s", page->tail);
        if (buf_add(&page->text, "}", 1) && !page->is_broken) {
                http_answer(request, MHD_HTTP_OK, "application/json", page->text.bytes, page->text.len);
                return;
        }
        service_page_done(page);
        err_set(&err, CSN_E_SYSTEM, 0, "the list could not be written");
        http_fail(request, &err);
}
