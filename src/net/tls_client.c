/* TLS by libssl without a socket: input and output are bytes in memory. */
#include "net/tls_client.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>

struct tls {
        SSL *ssl;
        BIO *in, *out;               /* its own */
};

static SSL_CTX *context(void)
{
        static SSL_CTX *made;        /* for all, and for good */
        if (!made && (made = SSL_CTX_new(TLS_client_method()))) {
                SSL_CTX_set_options(made, SSL_OP_NO_RENEGOTIATION);
                SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
                SSL_CTX_set_verify(made, SSL_VERIFY_NONE, NULL);
        }
        return made;
}

/* A context for these authorities; the last context is kept, because all connections of a program have the same. */
static SSL_CTX *verified_context(const char *ca, struct csn_error *err)
{
        static SSL_CTX *made;
        static char made_of[4096];
        if (made && strcmp(made_of, ca) == 0)
                return made;
        SSL_CTX *fresh = SSL_CTX_new(TLS_client_method());
        if (!fresh ||
                (ca[0] ? SSL_CTX_load_verify_locations(fresh, ca, NULL) : SSL_CTX_set_default_verify_paths(fresh)) !=
                        1) {
                SSL_CTX_free(fresh);
                ERR_clear_error();
                err_set(err, CSN_E_CONFIG, 0, "%s has no certificates (PEM) that can be read", ca[0] ? ca : "this host");
                return NULL;
        }
        SSL_CTX_set_options(fresh, SSL_OP_NO_RENEGOTIATION);
        SSL_CTX_set_verify(fresh, SSL_VERIFY_PEER, NULL);
        SSL_CTX_free(made);
        made = fresh;
        snprintf(made_of, sizeof made_of, "%s", ca);
        return made;
}

/* Let the certificate be valid for this name or address alone. */
static bool expect_host(SSL *ssl, const char *host)
{
        X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
        if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
                return true;
        ERR_clear_error();
        return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static struct tls *make(SSL_CTX *made, struct csn_error *err)
{
        SSL *ssl = made ? SSL_new(made) : NULL;
        BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
        if (!ssl || !in || !out) {
                SSL_free(ssl);
                BIO_free(in);
                BIO_free(out);
                ERR_clear_error();
                err_set(err, CSN_E_SYSTEM, 0, "TLS cannot begin");
                return NULL;
        }
        BIO_set_mem_eof_return(in, -1);   /* more may come */
        SSL_set_bio(ssl, in, out);
        SSL_set_connect_state(ssl);
        struct tls *tls = mem_alloc(sizeof *tls);
        *tls = (struct tls){ ssl, in, out };
        return tls;
}

struct tls *tls_new(struct csn_error *err)
{
        return make(context(), err);
}

struct tls *tls_new_verified(const char *ca, const char *host, struct csn_error *err)
{
        SSL_CTX *made = verified_context(ca, err);
        struct tls *tls = made ? make(made, err) : NULL;
        if (tls && !expect_host(tls->ssl, host)) {
                tls_free(tls);
                err_set(err, CSN_E_SYSTEM, 0, "TLS cannot check the name %.200s", host);
                return NULL;
        }
        return tls;
}

void tls_free(struct tls *tls)
{
        if (tls)
                SSL_free(tls->ssl);
        free(tls);
}

/* Whether the result of an operation is no failure. */
static bool goes_on(struct tls *tls, int got)
{
        int why = SSL_get_error(tls->ssl, got);
        ERR_clear_error();
        return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_ZERO_RETURN;
}

bool tls_greet(struct tls *tls, bool *ret_done)
{
        int got = SSL_do_handshake(tls->ssl);
        *ret_done = got == 1;
        return got == 1 || goes_on(tls, got);
}

bool tls_take(struct tls *tls, const void *bytes, size_t len)
{
        return BIO_write(tls->in, bytes, (int)len) == (int)len;
}

ssize_t tls_read(struct tls *tls, void *bytes, size_t size)
{
        int got = SSL_read(tls->ssl, bytes, (int)size);
        return got > 0 ? got : goes_on(tls, got) ? 0 : -1;
}

bool tls_write(struct tls *tls, const void *bytes, size_t len)
{
        int got = SSL_write(tls->ssl, bytes, (int)len);
        ERR_clear_error();
        return got == (int)len;
}

size_t tls_waiting(struct tls *tls, const void **ret)
{
        char *bytes;
        long len = BIO_get_mem_data(tls->out, &bytes);
        *ret = bytes;
        return len > 0 ? (size_t)len : 0;
}

void tls_gone(struct tls *tls, size_t len)
{
        char piece[4 * KIB];
        while (len) {
                int got = BIO_read(tls->out, piece, (int)min_u64(len, sizeof piece));
                if (got <= 0)
                        break;
                len -= (size_t)got;
        }
}
