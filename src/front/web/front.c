/* The front of the page: routes of previews, and the requests that are for the page. */
#include "front/web/web.h"

static const struct http_route routes[] = {
        { "POST", "/v1/previews", NULL, SCOPE_RUN, BODY_WHOLE | BODY_MIB(8), previews_post,
                "Keep HTML for a minute, and get a link to it for `<iframe sandbox=\"allow-scripts\">`. A tenant has at most half of all previews, and loses its oldest first.",
                &object_preview_request, &object_preview_info },
        { "GET", "/v1/previews/{id}", "sig", 0, BODY_NONE, previews_get,
                "The document of a preview, by the signature of its link. It is shown without an origin, and loads nothing.",
                NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { previews_post, "201:preview_info", NULL, NULL, NULL, NULL, "{\"html\": \"<b>42</b>\"}" },
        { previews_get, "200:page", NULL, NULL, "sig=$SIG",
                "Content-Security-Policy Referrer-Policy Cross-Origin-Resource-Policy", NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

#define TEXT_SCHEMA "{\"type\": \"string\"}"

static const struct front_value headers[] = {
        { "Referrer-Policy", TEXT_SCHEMA, NULL, false, "`no-referrer`." },
        { "Cross-Origin-Resource-Policy", TEXT_SCHEMA, NULL, false, "`same-origin`." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_value parameters[] = {
        { "sig", TEXT_SCHEMA, NULL, true, "The signature of the link." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_tag tags[] = {
        { "/v1/previews", "Previews", "HTML that a program made, in a frame of a page." },
        { NULL, NULL, NULL },
};

/* The log says once why there is no page; GET /v1/me says it to each caller. */
static void on_open(struct service *service)
{
        service->has_page = page_is_built();
        if (!service->has_page && service->settings->http.web == web_modes_ON)
                log_text(LOG_WARN, "http.web is on, and this program has no page: it was built without npm");
}

static void on_close(struct service *service)
{
        previews_close(service);
        page_close(service);
}

const struct front web_front = { .name = "web",
        .routes = routes,
        .notes = notes,
        .headers = headers,
        .parameters = parameters,
        .tags = tags,
        .app = page_app,
        .state_size = sizeof(struct web_state),
        .open = on_open,
        .close = on_close };
