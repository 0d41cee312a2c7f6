/*
 * TLS towards a program in a sandbox that listens with it (httpsPorts).  Nobody's certificate is looked at: it is one that the program made
 * itself, and between it and us there is nobody.  The program is hostile: of what it sends at most a packet and a record are kept.
 */
#ifndef FRONT_E2B_TLS_H
#define FRONT_E2B_TLS_H

#include "base/base.h"

struct tls;

/* Errors: CSN_E_SYSTEM. */
struct tls *tls_new(struct csn_error *err);
void tls_free(struct tls *tls);

/* The greeting goes on, as far as it does; *ret_done is when it is over.  False: what is there speaks no TLS. */
bool tls_greet(struct tls *tls, bool *ret_done);
/* What the program sent.  It has to be read, until there is none, before more is taken. */
bool tls_take(struct tls *tls, const void *bytes, size_t len);
/* What it says.  0: there is no more now; -1: it broke off. */
ssize_t tls_read(struct tls *tls, void *bytes, size_t size);
/* For the program, after the greeting.  False: it has broken off. */
bool tls_write(struct tls *tls, const void *bytes, size_t len);
/* What is to be sent to it, which is here until it is gone: valid until another call. */
size_t tls_waiting(struct tls *tls, const void **ret);
void tls_gone(struct tls *tls, size_t len);

#endif
