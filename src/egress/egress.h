/*
 * egress: the only network path out of a sandbox.
 *
 * A sandbox with network access still has a network namespace with nothing but loopback: no interface, no route.
 * Inside, a socket listens on 127.0.0.1:3128; its descriptor was passed out to the engine, so the kernel delivers the
 * program's connections to this process and to no other.  On each connection the engine speaks HTTP's proxy protocol:
 * it decides by rules, resolves the name itself, checks every address, connects to a checked address and relays bytes.
 *
 *   rules.c   hosts, literal addresses, classes of addresses, the match of rules    (pure)
 *   http.c    the head of a request, and the end of its body                        (pure, fuzzed)
 *   proxy.c   connections: accept, answer, connect, relay
 *
 * src/net/dns.c resolves names, by c-ares in the engine's loop.
 *
 * Limit of the check: the bytes inside a CONNECT tunnel are the program's own.  An allowed server that forwards for
 * others (an open proxy, a CDN that fronts for many names) gives the program access beyond the rules.
 */
#ifndef EGRESS_EGRESS_H
#define EGRESS_EGRESS_H

#include "base/base.h"
#include "net/dns.h"

#define EGRESS_HEAD_MAX 16384
#define EGRESS_HEADERS_MAX 64
#define EGRESS_HOST_MAX 253        /* RFC 1035, without the final dot */
#define EGRESS_TEXT_MAX 400        /* of a refusal, with its NUL */

struct egress;

/* An address prefix (CIDR). */
struct egress_range {
        struct net_address address;
        unsigned bits;
        bool allowed;
};

/* Rules and limits of one proxy.  egress_open() copies them. */
struct egress_rules {
        bool public_;                  /* any name and any global address; false: only `hosts` */
        char *const *hosts;            /* rules in the format of egress_check_rule() */
        size_t hosts_n;
        /*
         * In addition to public_: an address in an allowed range passes; else an address in a denied range is refused.
         * Targets named in `hosts` pass without this check.
         */
        const struct egress_range *ranges;
        size_t ranges_n;
        /*
         * Hosts of the setting engine.private_hosts, in the format of egress_check_private().  The proxy connects to
         * these hosts also at private addresses.  `hosts` and public_ decide first; public_ allows the port of the
         * entry.  Addresses of egress_is_metadata() stay refused.
         */
        char *const *private_hosts;
        size_t private_hosts_n;
        /* 0 means the default in brackets. */
        uint64_t connections_max;      /* simultaneous connections (64); the next connection gets 503 */
        /* in all (10000); then the listening socket closes, and the kernel resets further connections */
        uint64_t requests_max;
        uint64_t bytes_max;            /* in all, both directions together (1 GiB) */
        uint64_t head_ms;              /* from accept to the end of the request's head, in ms (10000) */
        /* from the end of the head to an established connection, name resolution included, in ms (10000) */
        uint64_t connect_ms;
        uint64_t idle_ms;              /* without a byte in either direction, in ms (60000) */
        const char *dns;               /* "192.0.2.53,[2001:db8::53]:5353"; NULL: the servers of /etc/resolv.conf */
        /*
         * For tests, which have no global addresses: replaces egress_class() and the refusal of this host's own
         * addresses.  NULL in every program.
         */
        const char *(*class_)(const struct net_address *address);
};

struct egress_events {
        /*
         * Called once for each request that could be parsed: refusal is NULL if the request was forwarded, else the
         * reason (a rule or a failure).  host is plain ASCII, in the form of egress_host().  A program can cause at
         * most requests_max events.  Must not call egress_close().
         */
        void (*connection)(void *owner, const char *host, unsigned port, const char *refusal);
};

/*
 * Check the syntax of a rule.  "pypi.org": this name, ports 80 and 443.  "*.example.com": every name below, not the
 * name itself.  "host:8443": this port alone.  Errors: CSN_E_INPUT, with a text that names the correction.
 */
int egress_check_rule(const char *rule, struct csn_error *err);

/* The same for an entry of private_hosts, which may be an address, too: "10.1.2.3:8080", "[fd00::1]". */
int egress_check_private(const char *entry, struct csn_error *err);

/*
 * Serve the listening socket listen_fd, which becomes the callee's even on failure.  rules and their arrays are copied;
 * events must outlive the proxy.  *ret is the caller's until egress_close().  Errors: CSN_E_INPUT (a rule, or dns),
 * CSN_E_SYSTEM.
 */
int egress_open(struct loop *loop, int listen_fd, const struct egress_rules *rules, const struct egress_events *events,
                void *owner, struct egress **ret, struct csn_error *err);

/*
 * Replace hosts, ranges and public_ for later requests; open connections go on.  Errors: those of egress_check_rule();
 * the old rules then stay.
 */
int egress_change(struct egress *egress, const struct egress_rules *rules, struct csn_error *err);
/* Close all connections and the listening socket, without further events, and free the proxy.  NULL is fine. */
void egress_close(struct egress *egress);

/*
 * Totals: requests, requests not forwarded, bytes to the program and bytes from the program.  The proxy's own answers
 * do not count.
 */
void egress_usage(const struct egress *egress, uint64_t *ret_connections, uint64_t *ret_refused, uint64_t *ret_bytes_in,
                  uint64_t *ret_bytes_out);

/* ---- hosts and addresses (rules.c) ---- */

struct egress_target {
        /* lower case without a final dot; or an address in the format of inet_ntop(3), IPv6 in [] */
        char host[EGRESS_HOST_MAX + 3];
        unsigned port;
        bool literal;                     /* host is the address below */
        struct net_address address;
};

/*
 * Parse the host of a URL; the port of *ret is not changed.  Every form that some resolver might read as a number
 * (2130706433, 0x7f.1, 0177.0.0.1) becomes an address or an error, never a name.  Errors: CSN_E_INPUT; the error text
 * has none of the input bytes.
 */
int egress_host(const char *text, size_t len, struct egress_target *ret, struct csn_error *err);

/*
 * NULL for an address of the public Internet, else its class ("private 10.0.0.0/8").  An IPv6 form that carries an IPv4
 * address has the class of the IPv4 address.  Unknown space is reserved: only 2000::/3 is assigned (RFC 4291).  Static
 * text.
 */
const char *egress_class(const struct net_address *address);

/* egress_class(), and for a public address of this very host a text, too: the address is not to be connected to. */
const char *egress_refused_class(const struct net_address *address);

/* Parse "192.0.2.0/24", "2001:db8::/32", or one address.  Errors: CSN_E_INPUT. */
int egress_parse_range(const char *text, struct egress_range *ret, struct csn_error *err);
/* Whether the ranges let pass this address, to which the target's name resolved. */
bool egress_in_range(const struct egress_rules *rules, const struct egress_target *target,
        const struct net_address *address);
/* Whether private_hosts has this host and port. */
bool egress_is_private_host(const struct egress_rules *rules, const struct egress_target *target);
/* Whether an address with this text of egress_class() is refused for a target of private_hosts, too. */
bool egress_is_metadata(const char *class_);
/* Whether the rules allow this host and port, before name resolution; false: *ret_why is the reason. */
bool egress_allows(const struct egress_rules *rules, const struct egress_target *target,
        char ret_why[static EGRESS_TEXT_MAX]);

/* ---- requests (http.c) ---- */

enum egress_body_kind { EGRESS_BODY_TUNNEL, EGRESS_BODY_LENGTH, EGRESS_BODY_CHUNKED };

/* Position of a parser in the bytes after the head. */
struct egress_body {
        enum egress_body_kind kind;
        bool done;
        int state;                 /* of the chunk parser */
        unsigned line;             /* bytes of the current line, or of all trailers */
        uint64_t left;
};

/* A part of the head, by its offset. */
struct egress_slice {
        uint16_t at, len;
};

struct egress_request {
        struct egress_target target;
        bool old;                                  /* HTTP/1.0 */
        struct egress_slice method, path;          /* plain HTTP: path with query, may be empty */
        struct { struct egress_slice name, value; bool drop; } headers[EGRESS_HEADERS_MAX];
        size_t headers_n;
        struct egress_body body;                   /* EGRESS_BODY_TUNNEL: the request is CONNECT */
};

/*
 * Parse the head of a request.  Returns its length in bytes, 0 if more bytes are needed, or a negative code.  Errors:
 * CSN_E_INPUT; the error text has none of the input bytes.
 */
ssize_t egress_parse(const char *bytes, size_t len, struct egress_request *ret, struct csn_error *err);

/*
 * Write the head for the server: origin form, the proxy's own Host and Connection, no header meant for a proxy.  false:
 * buf is full.
 */
bool egress_rewrite(const struct egress_request *request, const char *head, struct buf *buf);

/*
 * Consume the next bytes after the head.  Returns the number of bytes that belong to the request; once body->done,
 * later bytes do not.  Errors: CSN_E_INPUT (malformed chunks).
 */
ssize_t egress_body_take(struct egress_body *body, const char *bytes, size_t len, struct csn_error *err);

#endif
