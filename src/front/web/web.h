/*
 * web: the page at /ui/, and previews of HTML from programs.
 *
 *   front.c      the front: its routes, and the choice of requests for the page
 *   page.c       the page, whose files are part of the program (assets.h)
 *   assets.h     the files, made by scripts/web-assets from web/dist; no_assets.c for a build without npm
 *   previews.c   POST /v1/previews: a document in memory, and a signed link to it for a minute
 *
 * Requests need a Host of this daemon, and an Origin of the page itself (service_check_page()); see docs/design/web.md.
 */
#ifndef FRONT_WEB_WEB_H
#define FRONT_WEB_WEB_H

#include "front/service/service.h"

/* ---- the page (page.c) ---- */

/* Whether this build has a page. */
bool page_is_built(void);
/* Free the unpacked files of the page; connections are closed. */
void page_close(struct service *service);
/* The application for requests of the page; NULL: the request is for another application. */
const struct http_app *page_app(struct service *service, struct http_request *request);

/* ---- previews (previews.c) ---- */

#define PREVIEW_US (60 * 1000000ULL)       /* microseconds for which a preview can be asked for */
#define PREVIEWS_MAX 256                   /* previews of all tenants; a tenant gets at most half */
#define PREVIEWS_BYTES_MAX (32 * MIB)      /* bytes of their documents, those in answers included; a tenant gets half */
#define PREVIEW_ID_BYTES 16
#define PREVIEW_KEY_BYTES 32

/* The policy of a preview: the document has no origin, so the page around is out of reach, and loads nothing. */
#define PREVIEW_POLICY \
        "sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'self'"

struct preview;

struct previews {
        struct preview *oldest, *newest;
        size_t n, bytes;                   /* of all previews in memory */
        char key[2 * PREVIEW_KEY_BYTES + 1];   /* of signatures; "" before the first preview */
};

void previews_post(struct http_request *request);
void previews_get(struct http_request *request);
void previews_close(struct service *service);

/* ---- the front (front.c) ---- */

struct web_state {
        struct previews previews;
        char **unpacked;                   /* by the place in web_assets; NULL: no client without gzip asked yet */
};

static inline struct web_state *web_state(const struct service *service)
{
        return service_state_of(service, "web");
}

extern const struct front web_front;

#endif
