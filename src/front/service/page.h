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
        struct buf text;              /* of the members */
        uint64_t n;                   /* members so far */
        bool is_broken;               /* a member could not be written */
        uint64_t last, last_second;        /* the numbers of its last member */
        bool more;                         /* further members follow */
        const char *tail;                  /* further members of the answer, such as "\"truncated\":false"; or NULL */
};

/*
 * Read the query, and begin a list of this name; `usual` is the limit of a query without a limit.  False: the query is
 * wrong, and an error was answered.
 */
bool service_page_begin(struct http_request *request, uint64_t usual, const char *name, struct service_page *ret);
/*
 * Whether a member belongs to the page; the caller then adds the member.  Called in list order; second: 0, or among
 * equal numbers.
 */
bool service_page_has(struct service_page *page, uint64_t number, uint64_t second);
/*
 * Add a member as text, and take the reference.  So a page that is made in slices has no long text to write at its end.
 */
void service_page_add(struct service_page *page, json_t *member);
/* Free a page that is not answered. */
void service_page_done(struct service_page *page);
/* Answer {name: [...], "next": "..."}, and free the page. */
void service_page_answer(struct http_request *request, struct service_page *page);

#endif
