/* Checks across several values of review.* */
#include "model/settings.h"

#include <stdio.h>

#define TEMPERATURE_PLACES 6
#define TEMPERATURE_MAX 2000000 /* 2 */
#define PRICE_PLACES 9

/* An address without credentials, which caisson config show would print. */
static int check_address(const char *key, const char *value, struct csn_error *err)
{
        size_t scheme = strncmp(value, "https://", 8) == 0 ? 8 : strncmp(value, "http://", 7) == 0 ? 7 : 0;
        const char *host = value + scheme;
        if (!value[0])
                return 0;
        if (!scheme || !*host || *host == '/')
                return err_setting(err, key, "%s is \"%.100s\"; it has to begin with http:// or https:// and name a host", key,
                        value);
        if (memchr(host, '@', strcspn(host, "/?#")))
                return err_setting(err, key,
                        "%s has a user or a password in it; write the key into a file and name the file in review.api_key_file",
                        key);
        return 0;
}

static int check_kind(const struct review_settings *review, struct csn_error *err)
{
        if ((review->base_url[0] != 0) + (review->command[0] != 0) + (review->url[0] != 0) > 1)
                return err_setting(err, "review.base_url",
                        "review.base_url, review.command and review.url exclude each other; set one of them");
        if (review->command[0] && review->command[0] != '/')
                return err_setting(err, "review.command",
                        "review.command is \"%.100s\"; it has to begin with an absolute path", review->command);
        return 0;
}

static int check_numbers(const struct settings *settings, struct csn_error *err)
{
        const struct review_price_settings *price = &settings->review_price;
        const struct {
                const char *key, *value;
        } prices[] = { { "review.price.input", price->input }, { "review.price.output", price->output },
                { "review.price.cached", price->cached } };
        const char *temperature = settings->review.temperature;
        uint64_t number;
        if (temperature[0] &&
                (!decimal_parse(temperature, TEMPERATURE_PLACES, &number) || number > TEMPERATURE_MAX))
                return err_setting(err, "review.temperature",
                        "review.temperature is \"%.20s\"; it has to be a decimal number from 0 to 2, or empty", temperature);
        for (size_t i = 0; i < ARRAY_LEN(prices); i++)
                if (prices[i].value[0] && !decimal_parse(prices[i].value, PRICE_PLACES, &number))
                        return err_setting(err, prices[i].key,
                                "%s is \"%.40s\"; it has to be dollars for a million tokens, such as 0.25",
                                prices[i].key, prices[i].value);
        return 0;
}

int settings_check_review(const struct settings *settings, struct csn_error *err)
{
        const struct review_settings *review = &settings->review;
        if (check_kind(review, err) < 0 || check_address("review.base_url", review->base_url, err) < 0 ||
                check_address("review.url", review->url, err) < 0)
                return -err->code;
        return check_numbers(settings, err);
}
