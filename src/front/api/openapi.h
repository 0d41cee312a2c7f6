/*
 * openapi: the description of the HTTP interface, for programs (OpenAPI 3.1) and for people (a page).
 *
 *   openapi.c        the description, made of fields.def and of the routes and notes of all fronts
 *   openapi_notes.c  the notes of the front of /v1, and the words for contents that every front may use
 *   descriptions.c   requests for the texts, which a helper thread makes once
 *   openapi_page.c   the page /docs, made of the description, and /problems, made of errors.def
 */
#ifndef FRONT_API_OPENAPI_H
#define FRONT_API_OPENAPI_H

#include "front/service/service.h"

/* A word of notes for a content that is no object of fields.def. */
struct openapi_content {
        const char *word, *type;           /* a media type */
        const char *schema;                /* JSON Schema as text */
};

extern const struct openapi_content openapi_contents[];    /* ends with a NULL word */

/* Content-Security-Policy of the pages, which have no scripts and load nothing. */
#define OPENAPI_PAGE_POLICY "default-src 'none'; style-src 'unsafe-inline'"

/*
 * The functions below use nothing of the service but its fronts and routes, so helper threads may call the functions.
 * openapi_describe(): the description of all fronts, the caller's reference.  The others append a text to `buf`: the
 * description, and the pages /docs and /problems.
 */
json_t *openapi_describe(const struct service *service);
void openapi_write(const struct service *service, struct buf *buf);
void openapi_write_docs(const struct service *service, struct buf *buf);
void openapi_write_problems(const struct service *service, struct buf *buf);

#endif
