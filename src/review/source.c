/* Opening and closing of a reviewer and the files in its settings. */
#include "review/review_private.h"

#include "net/http_client.h"
#include "tools/sources/launcher_client.h"

#include <stdio.h>

#define KEY_FILE_MAX (64 * KIB)
#define CA_FILE_MAX (4 * MIB)
#define PROMPT_FILE_MAX (256 * KIB)
#define PRICE_FILE_MAX (32 * MIB)

bool reviewer_is_configured(const struct settings *settings)
{
        const struct review_settings *review = &settings->review;
        return review->base_url[0] || review->command[0] || review->url[0];
}

/* Read a file once. */
static int read_once(const char *path, const char *setting, size_t max, char **ret, size_t *ret_len,
        struct csn_error *err)
{
        struct config_file file;
        int rc = config_file_open(&file, path, setting, false, max, err);
        *ret = rc == 0 && file.text ? mem_copy(file.text, file.len) : NULL;
        *ret_len = rc == 0 ? file.len : 0;
        config_file_close(&file);
        return rc;
}

static int read_files(struct reviewer *reviewer, struct csn_error *err)
{
        const struct settings *settings = reviewer->settings;
        const struct review_settings *review = &settings->review;
        char *prices = NULL;
        size_t len;
        if (config_file_open(&reviewer->key, review->api_key_file, "review.api_key_file", true, KEY_FILE_MAX,
                    err) < 0 ||
                config_file_open(&reviewer->headers, review->headers_file, "review.headers_file", true, KEY_FILE_MAX,
                        err) < 0 ||
                config_file_open(&reviewer->prompt, review->prompt_file, "review.prompt_file", false, PROMPT_FILE_MAX,
                        err) < 0 ||
                read_once(review->ca_file, "review.ca_file", CA_FILE_MAX, &reviewer->ca, &len, err) < 0 ||
                read_once(settings->review_price.file, "review.price.file", PRICE_FILE_MAX, &prices, &len, err) < 0)
                return -err->code;
        int rc = review_price_read(settings, prices, len, &reviewer->price, err);
        free(prices);
        return rc;
}

static char *address_of(const struct review_settings *review)
{
        struct buf url;
        size_t len = strlen(review->base_url);
        while (len && review->base_url[len - 1] == '/')
                len--;
        buf_init(&url, 8 * KIB);
        if (len)
                buf_printf(&url, "%.*s/chat/completions", (int)len, review->base_url);
        else
                buf_printf(&url, "%s", review->url);
        return url.bytes;
}

static int check_model(const struct review_settings *review, struct csn_error *err)
{
        if (!review->base_url[0] || review->model[0])
                return 0;
        err_field(err, "review.model", "review.base_url is set and review.model is not; name the model");
        return -(err->code = CSN_E_CONFIG);
}

int reviewer_prepare(const struct settings *settings, struct reviewer **ret, struct csn_error *err)
{
        struct reviewer *reviewer = mem_alloc(sizeof *reviewer);
        const int format = settings->review.response_format;
        *reviewer = (struct reviewer){ .settings = settings,
                .key = { .fd = -1 },
                .headers = { .fd = -1 },
                .prompt = { .fd = -1 },
                .ladder = { .format = format == review_formats_AUTO ? review_formats_JSON_SCHEMA : format },
                .cache = review_cache_new(),
                .serve = { .fired = reviewer_serve, .owner = reviewer } };
        int rc = check_model(&settings->review, err);
        if (rc == 0)
                rc = read_files(reviewer, err);
        if (rc == 0 && settings->review.command[0])
                rc = command_prepare(reviewer, err);
        else if (rc == 0)
                reviewer->url = address_of(&settings->review);
        if (rc < 0) {
                reviewer_free(reviewer);
                return rc;
        }
        *ret = reviewer;
        return 0;
}

int reviewer_open(struct reviewer *reviewer, struct loop *loop, struct workers *workers, struct csn_error *err)
{
        reviewer->loop = loop;
        reviewer->workers = workers;
        if (!reviewer->url)
                return 0;
        const char *key = reviewer->settings->review.base_url[0] ? "review.base_url" : "review.url";
        if (fetch_check(reviewer->url, key, "review.api_key_file", err) < 0)
                return -err->code;
        return fetcher_open(loop, &reviewer->fetcher, err);
}

void reviewer_free(struct reviewer *reviewer)
{
        if (!reviewer)
                return;
        reviewer_stop(reviewer);
        if (reviewer->loop)
                loop_untimer(reviewer->loop, &reviewer->serve);
        fetcher_close(reviewer->fetcher);
        if (reviewer->launcher)
                launcher_stop(reviewer->launcher);
        free(reviewer->launcher);
        config_file_close(&reviewer->key);
        config_file_close(&reviewer->headers);
        config_file_close(&reviewer->prompt);
        review_cache_free(reviewer->cache);
        free(reviewer->url);
        free(reviewer->ca);
        free(reviewer);
}

static void end(void *owner)
{
        reviewer_free(owner);
}

const struct review_source reviewer_source = { .ask = reviewer_ask, .forget = reviewer_forget, .end = end };
