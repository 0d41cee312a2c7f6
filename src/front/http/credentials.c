/* The text of the key in a request. */
#include "front/http/credentials.h"

#include "net/http_headers.h"

#include <ctype.h>
#include <strings.h>

#define E2B_PREFIX "e2b_"

/* The password of "Basic ...", which a client sends for http://user:KEY@host; "" without a password. */
static const char *password(struct http_request *request, const char *basic)
{
        struct bytes bytes;
        basic += strspn(basic, " ");
        const char *colon =
                model_unbase64(&request->arena, basic, strlen(basic), &bytes) ? strchr(bytes.bytes, ':') : NULL;
        return colon ? colon + 1 : "";
}

const char *credentials_of(struct http_request *request)
{
        const char *authorization = http_header(request, "Authorization"), *plain = http_header(request, "X-API-Key");
        if (authorization && strncasecmp(authorization, "Basic ", 6) == 0)
                return password(request, authorization + 6);
        if (authorization)
                return header_bearer(authorization);
        return plain ? plain : http_header(request, "X-Auth-Token");
}

bool credentials_is_local_name(const char *host)
{
        static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
        const char *port = strrchr(host, ':');
        bool has_port = port && port[strspn(port + 1, "0123456789") + 1] == 0;   /* "[::1]" has none */
        size_t len = has_port ? (size_t)(port - host) : strlen(host);
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strlen(names[i]) == len && strncasecmp(host, names[i], len) == 0)
                        return true;
        return false;
}

const char *credentials_decode(struct http_request *request, const char *given)
{
        size_t len = strlen(given), prefix = strlen(E2B_PREFIX), n = 0;
        if (len <= prefix || strncmp(given, E2B_PREFIX, prefix) != 0)
                return given;
        char *text = arena_alloc(&request->arena, len);
        for (const char *at = given + prefix; isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1]);
                at += 2) {
                const char pair[] = { at[0], at[1], 0 };
                text[n++] = (char)strtoul(pair, NULL, 16);
        }
        text[n] = 0;
        return text;
}
