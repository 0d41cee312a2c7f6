/*
 * page: lists by pages.
 *
 * Members have numbers that grow, and the newest comes first.  The query has limit= (members of a page) and cursor=
 * (`next` of the page before), so a member that is added or removed between two pages neither repeats nor hides another
 * one.
 */
#ifndef FRONT_SERVICE_PAGE_H
#define FRONT_SERVICE_PAGE_H

#include "front/http/http.h"

#define SERVICE_PAGE_MAX 1000              /* members of a page */

struct service_page {
        uint64_t most;                     /* members of this page */
        uint64_t below, below_second; /* it begins after this number, and among equal numbers after the second number */
        json_t *list;
        uint64_t last, last_second;        /* the numbers of its last member */
        bool more;                         /* further members follow */
};

/* Read the query; `usual` is the limit where it has none.  False: the query is wrong, and an error was answered. */
bool service_page_begin(struct http_request *request, uint64_t usual, struct service_page *ret);
/*
 * Whether a member belongs to the page; the caller then appends it to the list.  Called in list order; second: 0, or
 * among equal numbers.
 */
bool service_page_has(struct service_page *page, uint64_t number, uint64_t second);
/* Answer {name: [...], "next": "..."}; takes the list. */
void service_page_answer(struct http_request *request, struct service_page *page, const char *name);

#endif
