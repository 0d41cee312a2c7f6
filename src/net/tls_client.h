/*
 * TLS client without a socket, for servers that may be hostile: at most one packet and one record of data are kept in
 * memory.
 *
 * A program in a sandbox that listens with TLS (httpsPorts) has a certificate of its own making, which is not verified:
 * no third party is between program and daemon.  The certificate of a worker of a gateway is verified.
 */
#ifndef NET_TLS_CLIENT_H
#define NET_TLS_CLIENT_H

#include "base/base.h"

struct tls;

/* Create a connection; the caller frees it with tls_free().  NULL: CSN_E_SYSTEM. */
struct tls *tls_new(struct csn_error *err);
/*
 * The same to a server with a certificate that is verified: signed by an authority in the file `ca` (PEM; "": those of
 * this host), for `host`, a name or an address.  NULL: CSN_E_CONFIG (the file), CSN_E_SYSTEM.
 */
struct tls *tls_new_verified(const char *ca, const char *host, struct csn_error *err);
void tls_free(struct tls *tls);

/* Continue the handshake; *ret_done: the handshake is complete.  false: the peer does not speak TLS. */
bool tls_greet(struct tls *tls, bool *ret_done);
/* Pass bytes from the program.  The caller must call tls_read() until 0 before the next call.  false: not accepted. */
bool tls_take(struct tls *tls, const void *bytes, size_t len);
/* Decrypted bytes.  0: none now; -1: the connection failed. */
ssize_t tls_read(struct tls *tls, void *bytes, size_t size);
/* Encrypt bytes for the program, after the handshake.  false: the connection failed. */
bool tls_write(struct tls *tls, const void *bytes, size_t len);
/* Encrypted bytes to be sent to the program, valid until another call; tls_gone() removes the bytes that were sent. */
size_t tls_waiting(struct tls *tls, const void **ret);
void tls_gone(struct tls *tls, size_t len);

#endif
