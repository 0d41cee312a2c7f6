/* credentials: the text of the key in a request, and names of this host, which web pages cannot have. */
#ifndef FRONT_HTTP_CREDENTIALS_H
#define FRONT_HTTP_CREDENTIALS_H

#include "front/http/http.h"

/*
 * "Authorization: Bearer KEY", the password of "Authorization: Basic", "X-API-Key: KEY", or "X-Auth-Token: KEY" of
 * Judge0's clients; NULL: the request has none.  Lives as long as the request.
 */
const char *credentials_of(struct http_request *request);

/*
 * Decode a key in the form of E2B: "e2b_" and the bytes of the key in hexadecimal digits, the only form that clients of
 * E2B accept.  A text without the prefix is returned unchanged.
 */
const char *credentials_decode(struct http_request *request, const char *given);

/* Whether a Host, with or without a port, is localhost, 127.0.0.1 or [::1]. */
bool credentials_is_local_name(const char *host);

#endif
