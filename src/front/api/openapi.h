/*
 * openapi: the description of the HTTP interface, for programs (OpenAPI 3.1) and for people (a page).
 *
 *   openapi         the description, made of the table of routes (routes.c), of fields.def and of the notes below
 *   openapi_notes   what an operation takes and answers beside what its route says
 *   openapi_page    the page /docs, made of the description, and /problems, made of errors.def
 */
#ifndef FRONT_OPENAPI_H
#define FRONT_OPENAPI_H

#include "front/http/http.h"

/* Of a route without a note: 200 with the object that it gives, and a body of the object that it takes. */
struct openapi_note {
        void (*handle)(struct http_request *request);   /* of the routes that the note is about */
        /*
         * "201:sandbox_info 204": the statuses of what was done, each with its contents and "|" between them: an object of fields.def, or a word of
         * openapi_contents.
         */
        const char *answers;
        /* "409 429 400:json": the problems beside those of all routes of the kind; of ":json" the body is in the words of another service. */
        const char *problems;
        const char *takes;                 /* "bytes|form": the contents of a body, or NULL: the object that the route takes */
        const char *headers;               /* of the request, of openapi_parameters; "path=." is the example of a parameter */
        const char *gives;                 /* headers of what was done */
        const char *example;               /* a body */
};

/* A word for what is no object of fields.def. */
struct openapi_content {
        const char *word, *type;           /* a media type */
        const char *schema;                /* JSON */
};

/* A header, or a parameter of a path or of a query. */
struct openapi_value {
        const char *name;
        const char *schema;                /* JSON */
        const char *example;               /* or NULL */
        bool required;
        const char *text;
};

extern const struct openapi_note openapi_notes[];          /* they end with a NULL handle */
extern const struct openapi_content openapi_contents[];    /* these lists with a NULL word or name */
extern const struct openapi_value openapi_headers[], openapi_parameters[];
extern const struct object *const openapi_objects[];       /* of answers that no route names */

/* The one of a route, or one that is empty. */
const struct openapi_note *openapi_note(const struct http_route *route);
/* The caller's reference. */
json_t *openapi_describe(void);

#endif
