/*
 * The certificates of authorities, parsed once: 140 certificates take 55 ms, too long for a step of the loop at each
 * connection.  Debian's libcurl4 uses OpenSSL, and the store becomes part of its SSL_CTX.
 */
#include "packages/index/index_private.h"

#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

struct package_trust {
        X509_STORE *store;
        size_t n;
};

/* Add all certificates of the text.  false: a certificate cannot be read. */
static bool add_all(struct package_trust *trust, BIO *text)
{
        for (X509 *one; (one = PEM_read_bio_X509(text, NULL, NULL, NULL)); trust->n++) {
                int added = X509_STORE_add_cert(trust->store, one);
                X509_free(one);
                if (!added)
                        return false;
        }
        /* The end of the text is the only error expected (PEM_read_bio_X509(3)). */
        return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
}

int package_trust_new(const char *pem, struct package_trust **ret, struct csn_error *err)
{
        struct package_trust *trust = mem_alloc(sizeof *trust);
        BIO *text = BIO_new_mem_buf(pem, -1);
        trust->store = X509_STORE_new();
        bool whole = text && trust->store && add_all(trust, text);
        ERR_clear_error();
        BIO_free(text);
        if (!whole || !trust->n) {
                package_trust_free(trust);
                return err_set(err, CSN_E_CONFIG, 0, "%s",
                        whole ? "there is no certificate in PEM" : "a certificate cannot be read");
        }
        *ret = trust;
        return 0;
}

void package_trust_free(struct package_trust *trust)
{
        if (!trust)
                return;
        X509_STORE_free(trust->store);
        free(trust);
}

/* CURLOPT_SSL_CTX_FUNCTION(3). */
static CURLcode on_context(CURL *easy, void *context, void *owner)
{
        const struct package_trust *trust = owner;
        (void)easy;
        SSL_CTX_set1_cert_store(context, trust->store);
        return CURLE_OK;
}

void package_trust_use(const struct package_trust *trust, void *easy)
{
        curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context);
        curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, trust);
}
