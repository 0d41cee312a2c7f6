/*
 * front: one HTTP interface of the daemon, as the service and the description of the interface see it.
 *
 * A front is a constant: its routes, their description for OpenAPI, hooks for events in the daemon's life, and the size
 * of its state.  The daemon lists all fronts in front/daemon/fronts.c and hands the list to service_open().  The
 * service and the HTTP server call a front through this struct only, so adding a front changes no other front and no
 * file below it.
 *
 * Every pointer may be NULL: the front has no such part.  Every list ends with a row that has NULL as its first member.
 */
#ifndef FRONT_SERVICE_FRONT_H
#define FRONT_SERVICE_FRONT_H

#include "front/http/http.h"

struct service;
struct parse_converter; /* front/service/parse.h */

/*
 * An operation of OpenAPI beside its route.  A route without a note answers 200 with its object, and takes its object.
 */
struct front_note {
        void (*handle)(struct http_request *request);   /* the handler of the routes that the note describes */
        /*
         * "201:sandbox_info|events 204": statuses of success, each with its contents.  A content is an object of
         * fields.def, or a word of openapi_contents (front/api/openapi.h).
         */
        const char *answers;
        /*
         * "409 429 400:json": statuses of failure beside those of all routes; ":json" marks a body in the format of
         * another service.
         */
        const char *problems;
        const char *takes; /* "bytes|form": contents of the body; NULL: the object that the route takes */
        const char *headers;               /* of the request; "path=." is the example of the parameter `path` */
        const char *gives;                 /* headers of a successful answer */
        const char *example;               /* a body: JSON, or text for ndjson and bytes */
};

/*
 * A header of answers; or a parameter of a path ("{id}"), of a query or of the head of a request ("Name!": required
 * there).
 */
struct front_value {
        const char *name;
        const char *schema;                /* JSON Schema as text */
        const char *example;               /* or NULL */
        bool required;
        const char *text;
};

/* A group of operations: those with a path that begins with `path`; the longest match of all fronts decides. */
struct front_tag {
        const char *path, *tag;
        const char *text;                  /* NULL: another row of the tag has the text */
};

/* The name of an object that lies on one worker of a gateway. */
struct front_name {
        const char *tenant;
        const char *kind;                  /* "workspace", "volume", "layer", "template", "idempotency_key", ... */
        const char *name;                  /* the name, or the id */
        const char *user;                  /* of a workspace; "" where its requests name none */
};

/* FRONT_EVERYWHERE: the object is built in, so every worker has it. */
enum front_found { FRONT_ABSENT, FRONT_FOUND, FRONT_EVERYWHERE };

struct front {
        const char *name;
        const struct http_route
                *routes; /* admitted by the keys of the service; errors are answered as problems (RFC 9457) */

        const struct front_note *notes;
        const struct parse_converter *converters; /* of bodies of the front's routes, in any of its applications */
        const struct front_value *headers, *parameters;
        const struct front_tag *tags;
        const struct object *const *objects;   /* of answers that no route names */

        /*
         * Pages of this host may call its routes without a key; requests of all other pages are refused, with a key
         * too.
         */
        bool local_pages;
        size_t state_size;                 /* bytes of service_state(); they are zero when the service opens */

        /*
         * The application for a request that is the front's by its head, before any route is looked up; NULL: it is not
         * the front's.
         */
        const struct http_app *(*app)(struct service *service, struct http_request *request);

        /*
         * Whether this daemon keeps an object of that name for a tenant; asked of all fronts for POST /v1/gateway/find.
         */
        enum front_found (*find)(struct service *service, const struct front_name *name);

        /*
         * Hooks, called from the event loop.  `open` runs once in the order of the list, before the first request;
         * `stop` and `close` run once each, in the reverse order.
         */
        void (*open)(struct service *service);
        void (*changed)(struct service *service);   /* settings or policies were read again */
        void (*drain)(struct service *service);     /* the daemon begins nothing new: end what would wait for ever */
        void (*cancel)(struct service *service);    /* end what runs; the ends are reported as usual */
        void (*stop)(struct service *service);      /* free requests that wait, while connections are open */
        void (*close)(struct service *service);     /* free the rest of the state; connections are closed */
};

#endif
