/*
 * egress: the one way out of a sandbox that was given a network.
 *
 * Such a sandbox still has a network namespace with nothing but loopback: no interface, no route.  On
 * 127.0.0.1:3128 in there a socket listens that was handed out to us by descriptor, so the kernel delivers the
 * program's connections to this process and to nobody else.  We speak HTTP's proxy protocol on them, decide,
 * resolve the name ourselves, check every address, connect to a checked address, and relay bytes.
 *
 *   rules.c   hosts, literal addresses, classes of addresses, what a rule allows    (pure)
 *   http.c    the head of a request, and where its body ends                        (pure, fuzzed)
 *   dns.c     names into addresses, c-ares in our loop
 *   proxy.c         connections: accept, answer, connect, relay
 *
 * What this cannot see: inside a CONNECT tunnel the bytes are the program's own.  An allowed server that
 * forwards for others (an open proxy, a content network that fronts for many names) is a way on from there.
 */
#ifndef ENGINE_EGRESS_H
#define ENGINE_EGRESS_H

#include "base/base.h"

#define EGRESS_HEAD_MAX 16384
#define EGRESS_HEADERS_MAX 64
#define EGRESS_HOST_MAX 253        /* RFC 1035, without the final dot */
#define EGRESS_TEXT_MAX 400        /* of a refusal */

struct egress;

/* Four bytes of IPv4 or sixteen of IPv6. */
struct egress_address {
        unsigned len;
        uint8_t bytes[16];
};

/* Addresses by their first bits. */
struct egress_range {
        struct egress_address address;
        unsigned bits;
        bool allowed;
};

struct egress_rules {
        bool public_;                  /* any name and any global address; else only `hosts` */
        char *const *hosts;            /* as egress_check_rule() accepts them */
        size_t hosts_n;
        /* Beside public_: an address in one that is allowed passes, else in one that is not it does not; hosts pass by their name. */
        const struct egress_range *ranges;
        size_t ranges_n;
        /* 0 is the default in brackets. */
        uint64_t connections_max;      /* at the same time (64); one more is answered with 503 */
        uint64_t requests_max;         /* in all (10000); then nobody listens any more, which the kernel answers */
        uint64_t bytes_max;            /* in all, both ways together (1 GiB) */
        uint64_t head_ms;              /* from accept to the end of the request's head (10000) */
        uint64_t connect_ms;           /* from there to an established connection, resolving included (10000) */
        uint64_t idle_ms;              /* without a byte either way (60000) */
        const char *dns;               /* "192.0.2.53,[2001:db8::53]:5353"; NULL: what /etc/resolv.conf says */
        /*
         * For tests, which have no global addresses: stands in for egress_class() and for the refusal of this
         * host's own addresses.  NULL in every program.
         */
        const char *(*class_)(const struct egress_address *address);
};

struct egress_events {
        /*
         * Once for each request that could be read: it was forwarded (refusal NULL), or why not, by rule or by
         * failure.  host is plain ASCII as egress_host() leaves it.  A program can cause requests_max of these.
         * Must not call egress_close().
         */
        void (*connection)(void *owner, const char *host, unsigned port, const char *refusal);
};

/*
 * "pypi.org": this name, ports 80 and 443.  "*.example.com": every name below, not itself.  "host:8443": this
 * port and no other.  Errors: CSN_E_INPUT, with a text that says what to write instead.
 */
int egress_check_rule(const char *rule, struct csn_error *err);

/*
 * Serve the listening socket, which is taken in any case.  rules and what they point to are copied; events
 * have to live as long.  Errors: CSN_E_INPUT (a rule, or dns), CSN_E_SYSTEM.
 */
int egress_open(struct loop *loop, int listen_fd, const struct egress_rules *rules, const struct egress_events *events,
                void *owner, struct egress **ret, struct csn_error *err);

/* Other hosts, ranges and public_ from now on, in requests that come.  Errors: those of egress_check_rule(). */
int egress_change(struct egress *egress, const struct egress_rules *rules, struct csn_error *err);
/* All connections end at once, without another event.  NULL is fine. */
void egress_close(struct egress *egress);

/* Requests, those that were not forwarded, bytes to the program and bytes from it (without our own answers). */
void egress_usage(const struct egress *egress, uint64_t *ret_connections, uint64_t *ret_refused, uint64_t *ret_bytes_in,
                  uint64_t *ret_bytes_out);

/* ---- hosts and addresses (rules.c) ---- */

struct egress_target {
        char host[EGRESS_HOST_MAX + 3];   /* lower case without a final dot; or an address as inet_ntop(3) writes it, IPv6 in [] */
        unsigned port;
        bool literal;                     /* host is the address below */
        struct egress_address address;
};

/*
 * A host as it stands in a URL; the port is left alone.  Everything that any resolver might take for a number
 * (2130706433, 0x7f.1, 0177.0.0.1) is an address here or an error, never a name.  Errors: CSN_E_INPUT; the
 * text holds none of the bytes.
 */
int egress_host(const char *text, size_t len, struct egress_target *ret, struct csn_error *err);

/*
 * NULL for an address of the public Internet, else what it is ("private 10.0.0.0/8").  Forms of IPv6 that
 * carry an IPv4 address are what that is.  Unknown is reserved: only 2000::/3 is handed out (RFC 4291).
 */
const char *egress_class(const struct egress_address *address);

/* "192.0.2.0/24", "2001:db8::/32", or one address.  Errors: CSN_E_INPUT. */
int egress_parse_range(const char *text, struct egress_range *ret, struct csn_error *err);
/* Whether the ranges let pass an address that this host has. */
bool egress_in_range(const struct egress_rules *rules, const struct egress_target *target, const struct egress_address *address);
/* Whether the rules let this host and port pass, before any resolving; if not, *ret_why says so. */
bool egress_allows(const struct egress_rules *rules, const struct egress_target *target, char ret_why[static EGRESS_TEXT_MAX]);

/* ---- requests (http.c) ---- */

enum egress_body_kind { EGRESS_BODY_TUNNEL, EGRESS_BODY_LENGTH, EGRESS_BODY_CHUNKED };

/* Where we are in the bytes after the head. */
struct egress_body {
        enum egress_body_kind kind;
        bool done;
        int state;                 /* of the chunks */
        unsigned line;             /* bytes of the line, or of all trailers */
        uint64_t left;
};

/* A piece of the head. */
struct egress_slice {
        uint16_t at, len;
};

struct egress_request {
        struct egress_target target;
        bool old;                                  /* HTTP/1.0 */
        struct egress_slice method, path;          /* plain HTTP: path and query, perhaps empty */
        struct { struct egress_slice name, value; bool drop; } headers[EGRESS_HEADERS_MAX];
        size_t headers_n;
        struct egress_body body;                   /* EGRESS_BODY_TUNNEL: it is CONNECT */
};

/*
 * Returns the bytes of the head, 0 if there must come more, or a negative code.  Errors: CSN_E_INPUT; the text
 * holds none of the bytes.
 */
ssize_t egress_parse(const char *bytes, size_t len, struct egress_request *ret, struct csn_error *err);

/* The head for the server: origin form, our Host and Connection, nothing that was meant for a proxy. */
bool egress_rewrite(const struct egress_request *request, const char *head, struct buf *buf);

/*
 * The next bytes after the head.  Returns how many of them are the request's; what is behind them, once
 * body->done, is not.  Negative: CSN_E_INPUT, chunks that are none.
 */
ssize_t egress_body_take(struct egress_body *body, const char *bytes, size_t len, struct csn_error *err);

/* ---- names (dns.c) ---- */

#define EGRESS_ADDRESSES_MAX 64

struct resolver;
struct lookup;

/* servers as egress_rules.dns.  Errors: CSN_E_INPUT (servers), CSN_E_SYSTEM. */
int resolver_open(struct loop *loop, const char *servers, uint64_t timeout_ms, struct resolver **ret, struct csn_error *err);

/* Lookups end with it, without an answer. */
void resolver_close(struct resolver *resolver);

/* How many questions are open, those that nobody waits for any more included. */
size_t resolver_pending(const struct resolver *resolver);

typedef void (*resolver_answer)(void *owner, const struct egress_address *addresses, size_t n, const char *problem,
                                bool timed_out);

/*
 * Ask for all addresses of a name.  answer() comes once, perhaps before this returns: addresses, or a problem
 * for people ("there is no such name").  *slot is the open question until then, and NULL afterwards.
 */
void resolver_ask(struct resolver *resolver, const char *name, resolver_answer answer, void *owner, struct lookup **slot);

/* The answer is not wanted any more; NULL in *slot is fine. */
void lookup_forget(struct lookup **slot);

#endif
