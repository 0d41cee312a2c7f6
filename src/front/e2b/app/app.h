/*
 * app: E2B as one front: the control plane, all tables of routes, and the table for a request.
 *
 * Only this room names the handlers and the state of front/e2b/envd, interpreter and templates.
 *
 *   control, control_list  the control plane: create, describe, list, change and end sandboxes
 *   cors                   web pages of other origins as clients
 *   routing                the table for a request, and its authorization
 */
#ifndef FRONT_E2B_APP_APP_H
#define FRONT_E2B_APP_APP_H

#include "front/e2b/request.h"

extern const struct http_route e2b_control_routes[];

/* For a page in a browser: adds CORS headers, and answers the preflight request (cors.c).  app may be NULL. */
const struct http_app *e2b_app_for_page(const struct service *service, struct http_request *request,
                                        const struct http_app *app);

/* Handler of GET /sandboxes and /v2/sandboxes. */
void e2b_list(struct http_request *request);

#endif
