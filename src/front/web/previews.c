/*
 * Previews: HTML that a program made, for a frame of a page.
 *
 * A frame sends no key, so the link has a signature (HMAC-SHA256) over the id and the end of the preview, and the
 * document is gone after a minute.  Documents are in memory, each once for all of its answers; a tenant has at most
 * half of all bytes, and loses its own oldest document first.
 */
#include "front/web/web.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdio.h>

#define SIGNATURE_LEN 64

struct preview {
        struct preview *next;
        struct service *service;
        char id[2 * PREVIEW_ID_BYTES + 1];
        char tenant[80];
        int64_t expires_ms;
        struct timer expiry;
        unsigned answers;                  /* that go on: the document stays in memory, and counts */
        bool ended;                        /* nobody finds it any more */
        size_t len;
        char text[];
};

static struct previews *previews_of(const struct service *service)
{
        return &web_state(service)->previews;
}

/* ---- the documents ---- */

static void preview_free(struct preview *preview)
{
        struct previews *all = previews_of(preview->service);
        struct preview *before = NULL;
        for (struct preview *one = all->oldest; one && one != preview; one = one->next)
                before = one;
        *(before ? &before->next : &all->oldest) = preview->next;
        if (all->newest == preview)
                all->newest = before;
        all->n--;
        all->bytes -= preview->len;
        loop_untimer(preview->service->loop, &preview->expiry);
        free(preview);
}

static void preview_end(struct preview *preview)
{
        preview->ended = true;
        if (!preview->answers)
                preview_free(preview);
}

static void on_expiry(struct timer *timer)
{
        preview_end(timer->owner);
}

/* An answer with the document is over. */
static void on_answered(void *text)
{
        struct preview *preview = (void *)((char *)text - offsetof(struct preview, text));
        preview->answers--;
        if (preview->ended && !preview->answers)
                preview_free(preview);
}

/* End the tenant's oldest previews until another one is within the tenant's half. */
static bool make_own_room(struct previews *all, const char *tenant, size_t len)
{
        size_t n = 1, bytes = len;
        for (const struct preview *one = all->oldest; one; one = one->next)
                if (strcmp(one->tenant, tenant) == 0) {
                        n++;
                        bytes += one->len;
                }
        for (struct preview *one = all->oldest, *next; one; one = next) {
                next = one->next;
                if (n <= PREVIEWS_MAX / 2 && bytes <= PREVIEWS_BYTES_MAX / 2)
                        return true;
                if (strcmp(one->tenant, tenant) != 0 || one->answers)
                        continue;
                n--;
                bytes -= one->len;
                preview_end(one);
        }
        return n <= PREVIEWS_MAX / 2 && bytes <= PREVIEWS_BYTES_MAX / 2;
}

/* First in the tenant's own half, then in the whole.  Documents in answers stay, and may leave no room. */
static bool make_room(struct previews *all, const char *tenant, size_t len)
{
        if (!make_own_room(all, tenant, len))
                return false;
        for (struct preview *one = all->oldest, *next; one; one = next) {
                next = one->next;
                if (all->n < PREVIEWS_MAX && all->bytes + len <= PREVIEWS_BYTES_MAX)
                        return true;
                if (!one->answers)
                        preview_end(one);
        }
        return all->n < PREVIEWS_MAX && all->bytes + len <= PREVIEWS_BYTES_MAX;
}

static struct preview *preview_new(struct http_request *request, const char *text, size_t len)
{
        struct service *service = service_of(request);
        struct previews *all = previews_of(service);
        struct preview *preview = mem_alloc(sizeof *preview + len + 1);
        *preview = (struct preview){ .service = service,
                .expires_ms = time_now_ms() + (int64_t)(PREVIEW_US / 1000),
                .expiry = { .fired = on_expiry, .owner = preview },
                .len = len };
        hex_random(PREVIEW_ID_BYTES, preview->id);
        snprintf(preview->tenant, sizeof preview->tenant, "%s", request->tenant);
        memcpy(preview->text, text, len);
        *(all->newest ? &all->newest->next : &all->oldest) = preview;
        all->newest = preview;
        all->n++;
        all->bytes += len;
        loop_timer(service->loop, &preview->expiry, PREVIEW_US);
        return preview;
}

/* ---- signatures ---- */

/* False: libcrypto has no SHA-256. */
static bool sign(struct previews *all, const struct preview *preview, char ret[static SIGNATURE_LEN + 1])
{
        uint8_t mac[EVP_MAX_MD_SIZE];
        unsigned len = 0;
        char text[120];
        if (!all->key[0])
                hex_random(PREVIEW_KEY_BYTES, all->key);
        int text_len = snprintf(text, sizeof text, "preview %s %" PRId64, preview->id, preview->expires_ms);
        if (!HMAC(EVP_sha256(), all->key, (int)strlen(all->key), (const uint8_t *)text, (size_t)text_len, mac, &len) ||
                len != SIGNATURE_LEN / 2)
                return false;
        hex_print(mac, len, ret);
        return true;
}

static bool is_signed(struct previews *all, const struct preview *preview, const char *given)
{
        char expected[SIGNATURE_LEN + 1];
        return given && strlen(given) == SIGNATURE_LEN && sign(all, preview, expected) &&
                CRYPTO_memcmp(expected, given, SIGNATURE_LEN) == 0;
}

/* ---- requests ---- */

void previews_post(struct http_request *request)
{
        struct previews *all = previews_of(service_of(request));
        struct preview_request given = { 0 };
        char signature[SIGNATURE_LEN + 1], until[40];
        struct csn_error err;
        if (!service_decode(request, &object_preview_request, &request->arena, &given))
                return;
        if (!make_room(all, request->tenant, strlen(given.html))) {
                err_set(&err, CSN_E_BUSY, 0,
                        "answers with previews of this tenant, or of all, hold the room for another one: read or end them");
                http_set_header(request, "Retry-After", "60");
                http_problem(request, MHD_HTTP_TOO_MANY_REQUESTS, &err);
                return;
        }
        struct preview *preview = preview_new(request, given.html, strlen(given.html));
        if (!sign(all, preview, signature)) {
                preview_free(preview);
                err_set(&err, CSN_E_SYSTEM, 0, "the link cannot be signed");
                http_fail(request, &err);
                return;
        }
        time_print(preview->expires_ms, until, sizeof until);
        http_json(request, MHD_HTTP_CREATED,
                json_pack("{s:o, s:s}", "url", json_sprintf("/v1/previews/%s?sig=%s", preview->id, signature),
                        "expires_at", until));
}

void previews_get(struct http_request *request)
{
        struct previews *all = previews_of(service_of(request));
        const char *id = http_part(request, 0);
        struct preview *preview = all->oldest;
        struct csn_error err;
        while (preview && (preview->ended || strcmp(preview->id, id) != 0))
                preview = preview->next;
        if (service_check_page(request, &err) < 0) {
                http_problem(request, MHD_HTTP_FORBIDDEN, &err);
                return;
        }
        /* The same answer for a wrong signature: a caller learns nothing about ids. */
        if (!preview || !is_signed(all, preview, http_query(request, "sig"))) {
                err_field(&err, "", "there is no such preview, its minute is over, or the signature is not that of the link");
                http_problem(request, MHD_HTTP_NOT_FOUND, &err);
                return;
        }
        http_set_header(request, "Content-Security-Policy", PREVIEW_POLICY);
        http_set_header(request, "Referrer-Policy", "no-referrer");
        http_set_header(request, "Cross-Origin-Resource-Policy", "same-origin");
        preview->answers++;
        http_answer_shared(request, MHD_HTTP_OK, "text/html; charset=utf-8", preview->text, preview->len, on_answered);
}

void previews_close(struct service *service)
{
        struct previews *all = previews_of(service);
        for (struct preview *preview = all->oldest, *next; preview; preview = next) {
                next = preview->next;
                preview_free(preview);
        }
}
