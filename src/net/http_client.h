/*
 * fetch: HTTP requests of our own, by libcurl in our event loop (curl_multi_socket_action(3)).
 *
 * libcurl's own way to find addresses needs threads, which a confined daemon may not start; so names go to c-ares first
 * (egress/egress.h).
 */
#ifndef ENGINE_FETCH_H
#define ENGINE_FETCH_H

#include "base/base.h"

#include <curl/curl.h>

struct fetcher;
struct lookup;

/* One request at a time; embedded in its owner.  All zeros is none. */
struct fetch {
        struct fetch *next;
        struct fetcher *fetcher;
        CURL *easy;                        /* the method, headers, body and who takes the answer are the owner's to set */
        /* Once for each start: the answer is there (why is NULL), or cannot be had. */
        void (*done)(struct fetch *fetch, long status, const char *why, CURLcode code);
        void *owner;
        char *host;
        unsigned port;
        bool named;                        /* host is a name */
        struct lookup *lookup;
        struct curl_slist *addresses;      /* of the name, once they are known */
        long ms;
        bool sending;                      /* libcurl has it */
        struct timer late;                 /* for a failure that is known at once */
        CURLcode code;
        char why[200];
};

/* Errors: CSN_E_SYSTEM. */
int fetcher_open(struct loop *loop, struct fetcher **ret, struct csn_error *err);
/* Its requests have to be over, by fetch_close(). */
void fetcher_close(struct fetcher *fetcher);

/*
 * For a URL, http or https, without a user in it.  Errors: CSN_E_CONFIG, which names the setting `key` and where what is secret
 * belongs, `secret`; CSN_E_SYSTEM.
 */
int fetch_open(struct fetch *fetch, struct fetcher *fetcher, const char *url, const char *key, const char *secret, struct csn_error *err);
/* The same question alone, for a URL that may have secrets in it: they are in no error.  `key` is how the text calls the URL. */
int fetch_check(const char *url, const char *key, const char *secret, struct csn_error *err);
/* ms: for all of it; 0: no limit.  done() comes from the loop, and never before this returns.  No redirect is followed. */
void fetch_start(struct fetch *fetch, long ms);
/* Now, whatever else waits; a name that was never resolved is not resolved now.  False: it failed. */
bool fetch_now(struct fetch *fetch, long ms, long *ret_status);
/* done() is not called any more. */
void fetch_stop(struct fetch *fetch);
/* Harmless twice. */
void fetch_close(struct fetch *fetch);

#endif
