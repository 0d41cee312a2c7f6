/*
 * web: the page at /ui/, and previews of HTML that programs made.
 *
 *   front.c      the front: its routes, and the choice of requests for the page
 *   page.c       the page: its files are part of the program (assets.h), and go out as they are
 *   assets.h     the files, made by scripts/web-assets from web/dist; no_assets.c for a build without npm
 *   previews.c   POST /v1/previews: a document in memory, and a signed link to it for a minute
 *
 * Which requests are answered: the name in Host has to be of this host (service_is_page_host()), and an Origin has to be
 * the page's own.  docs/design/web.md has the whole.
 */
#ifndef FRONT_WEB_WEB_H
#define FRONT_WEB_WEB_H

#include "front/service/service.h"

/* ---- the page (page.c) ---- */

/* Whether this build has a page. */
bool page_is_built(void);
/* The application for requests of the page; NULL: the request is for another one. */
const struct http_app *page_app(struct service *service, struct http_request *request);

/* ---- previews (previews.c) ---- */

#define PREVIEW_US (60 * 1000000ULL)       /* microseconds for which a preview can be asked for */
#define PREVIEWS_MAX 256                   /* previews of all tenants; a tenant gets at most half */
#define PREVIEWS_BYTES_MAX (32 * MIB)      /* bytes of their documents; a tenant gets at most half */
#define PREVIEW_ID_BYTES 16
#define PREVIEW_KEY_BYTES 32

/*
 * The policy of a preview: the document has no origin, so it reads nothing of the page that shows it, and it loads
 * nothing.
 */
#define PREVIEW_POLICY \
        "sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'self'"

struct preview;

struct previews {
        struct preview *oldest, *newest;
        size_t n, bytes;
        char key[2 * PREVIEW_KEY_BYTES + 1];   /* of signatures; "" before the first preview */
};

void previews_post(struct http_request *request);
void previews_get(struct http_request *request);
void previews_close(struct service *service);

/* ---- the front (front.c) ---- */

struct web_state {
        struct previews previews;
};

struct web_state *web_state(const struct service *service);

extern const struct front web_front;

#endif
