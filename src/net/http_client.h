/*
 * fetch: outgoing HTTP requests, by libcurl in the engine's event loop (curl_multi_socket_action(3)).
 *
 * libcurl's own name resolution needs threads, which a confined daemon may not start; so names are resolved by c-ares
 * before (egress/egress.h).
 */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include "base/base.h"

#include <curl/curl.h>

struct fetcher;
struct lookup;

/* A client for one request at a time; embedded in the caller's object.  All zeros means none. */
struct fetch {
        struct fetch *next;
        struct fetcher *fetcher;
        CURL *easy;                        /* the caller sets method, headers, body and the callbacks for the answer */
        /* Called once for each start: the answer is complete (why is NULL), or the request failed. */
        void (*done)(struct fetch *fetch, long status, const char *why, CURLcode code);
        void *owner;
        char *host;
        unsigned port;
        bool named;                        /* host is a name, not an address */
        struct lookup *lookup;
        struct curl_slist *addresses;      /* of the name, once resolved */
        long ms;
        bool sending;                      /* handed to libcurl */
        /*
         * Set before fetch_start() with CURLOPT_CONNECT_ONLY: after done() without an error the connection stays open
         * for curl_easy_send(3) and curl_easy_recv(3), until fetch_close().
         */
        bool connects;
        struct timer late;                 /* reports from the loop a failure that is known at once */
        CURLcode code;
        char why[200];
};

/* Create a fetcher.  *ret is the caller's until fetcher_close().  Errors: CSN_E_SYSTEM. */
int fetcher_open(struct loop *loop, struct fetcher **ret, struct csn_error *err);
/* All its requests must be closed before, by fetch_close(). */
void fetcher_close(struct fetcher *fetcher);

/*
 * Prepare requests to a URL, http or https, without a user.  Errors: CSN_E_CONFIG, which names the setting `key` and
 * `secret`, the place where secrets belong; CSN_E_SYSTEM.
 */
int fetch_open(struct fetch *fetch, struct fetcher *fetcher, const char *url, const char *key, const char *secret,
        struct csn_error *err);
/*
 * Check a URL without preparing a request.  The URL may contain secrets: no error text has any.  `key` is the name of
 * the URL in error texts.  Errors: CSN_E_CONFIG.
 */
int fetch_check(const char *url, const char *key, const char *secret, struct csn_error *err);
/*
 * Start the request.  ms limits all of it; 0: no limit.  done() is called from the loop, never before the return.
 * Redirects are not followed.
 */
void fetch_start(struct fetch *fetch, long ms);
/* Run the request to its end while the loop waits; a name without known addresses is not resolved.  false: failed. */
bool fetch_now(struct fetch *fetch, long ms, long *ret_status);
/* Cancel the request without done(). */
void fetch_stop(struct fetch *fetch);
/* Cancel and free.  Harmless twice. */
void fetch_close(struct fetch *fetch);

#endif
