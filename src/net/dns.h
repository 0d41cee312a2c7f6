/* Names into addresses, by c-ares in a loop of ours. */
#ifndef NET_DNS_H
#define NET_DNS_H

#include "base/base.h"

/* Four bytes of IPv4 or sixteen of IPv6. */
struct net_address {
        unsigned len;
        uint8_t bytes[16];
};

#define DNS_ADDRESSES_MAX 64

struct resolver;
struct lookup;

/*
 * Create a resolver with these servers ("192.0.2.53,[2001:db8::53]:5353"; NULL: those of /etc/resolv.conf);
 * timeout_ms limits each lookup.  Errors: CSN_E_INPUT (servers), CSN_E_SYSTEM.
 */
int resolver_open(struct loop *loop, const char *servers, uint64_t timeout_ms, struct resolver **ret,
        struct csn_error *err);

/* End all lookups without an answer, and free the resolver. */
void resolver_close(struct resolver *resolver);

/* Number of pending queries, including cancelled lookups. */
size_t resolver_pending(const struct resolver *resolver);

typedef void (*resolver_answer)(void *owner, const struct net_address *addresses, size_t n, const char *problem,
                                bool timed_out);

/*
 * Look up all addresses of a name.  answer() is called once, perhaps before the return, with addresses or with a
 * problem in English ("there is no such name").  *slot is the pending lookup until then, and NULL afterwards.
 */
void resolver_ask(struct resolver *resolver, const char *name, resolver_answer answer, void *owner,
        struct lookup **slot);

/* Cancel a lookup: its answer() is not called.  NULL in *slot is fine. */
void lookup_forget(struct lookup **slot);

#endif
