/*
 * shares: one ledger of the bounded resources that clients of the daemon hold.
 *
 * A holder is a tenant; before admission, and for routes without a key, the holder is the address of the peer, or the
 * user of a Unix socket.  One rule holds for all resources (a dynamic threshold, as for the shared buffer of a switch):
 * a holder may have at most as much as is free after the request.  So one greedy holder gets half of the total, n
 * greedy holders get 1/(n+1) each, and a new holder always finds a part of the same size.  Below a small minimum a
 * holder is served while the total permits.
 *
 * The ledger counts, and owns no memory of the resources.  Each amount that was taken is given back once.
 */
#ifndef FRONT_HTTP_SHARES_H
#define FRONT_HTTP_SHARES_H

#include "base/base.h"

/* Resources; their names, units and minima are in shares.c. */
enum share {
        SHARE_BODIES,                      /* bytes of request bodies and of frames */
        SHARE_STREAMS,                     /* unread bytes of answers in parts */
        SHARE_READERS,                     /* streams of the events of a run or program */
        SHARE_REQUESTS,                    /* requests in progress at the listener of the network */
        SHARE_LOCAL_REQUESTS,              /* the same at the listener for users of this host */
        SHARE_SESSIONS,                    /* sessions of the Model Context Protocol */
        SHARE_CONNECTIONS,                 /* connections of an address or a user; counted, refused by the listeners */
        SHARES_N,
};

struct shares;
struct holder;

/* An amount of a holder, for an object with a longer life than its request.  Zero: nothing. */
struct share_charge {
        struct holder *holder;
        enum share share;
        uint64_t amount;
};

/* A ledger with these totals.  The ledger is the caller's until shares_free(), and must outlive its holders. */
struct shares *shares_new(const uint64_t totals[static SHARES_N]);
void shares_free(struct shares *shares);   /* NULL is allowed */
const char *share_name(enum share share);
uint64_t shares_total(const struct shares *shares, enum share share);
uint64_t shares_used(const struct shares *shares, enum share share);

/* A reference to the holder of this name, such as "tenant acme"; released by holder_put(), which takes NULL. */
struct holder *holder_get(struct shares *shares, const char *name);
struct holder *holder_ref(struct holder *holder);
const char *holder_name(const struct holder *holder);
void holder_put(struct holder *holder);

uint64_t share_held(const struct holder *holder, enum share share);
/* The present limit of the holder: the amount that is held counts. */
uint64_t share_limit(const struct holder *holder, enum share share);
/* Whether other holders are the cause of a refusal: this holder has no more than the minimum. */
bool share_is_exhausted(const struct holder *holder, enum share share, uint64_t amount);
/* Whether the holder may have this much more. */
bool share_fits(const struct holder *holder, enum share share, uint64_t amount);
/* Take an amount.  Errors: CSN_E_BUSY; the text has the resource, the limit and the holder's use. */
int share_take(struct holder *holder, enum share share, uint64_t amount, struct csn_error *err);
/* Count an amount without a check. */
void share_count(struct holder *holder, enum share share, uint64_t amount);
void share_give(struct holder *holder, enum share share, uint64_t amount);

/* Give the amount back; harmless for an empty charge. */
void share_charge_done(struct share_charge *charge);

#endif
