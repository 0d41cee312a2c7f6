/*
 * TLS client for connections to a program in a sandbox that listens with TLS (httpsPorts).  The certificate is not
 * verified: the program made it, and no third party is between program and daemon.  The program is untrusted: at most
 * one packet and one record of its data are kept in memory.
 */
#ifndef NET_TLS_CLIENT_H
#define NET_TLS_CLIENT_H

#include "base/base.h"

struct tls;

/* Create a connection; the caller frees it with tls_free().  NULL: CSN_E_SYSTEM. */
struct tls *tls_new(struct csn_error *err);
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
