/*
 * openapi: the description of the HTTP interface, for programs (OpenAPI 3.1) and for people (a page).
 *
 *   openapi.c        the description, made of fields.def and of the routes and notes of all fronts
 *   openapi_notes.c  the notes of the front of /v1, and the words for contents that every front may use
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

/* The description of all fronts of the service.  The caller's reference. */
json_t *openapi_describe(const struct service *service);

#endif
