/*
 * The signature of a call: "v1 TIME CLAIMS HMAC".
 *
 * TIME is milliseconds since 1970.  CLAIMS is the JSON of struct hop_claims in base64url without padding (RFC 4648,
 * section 5), or "-".  HMAC is HMAC-SHA256 in hexadecimal digits, over "v1", TIME, CLAIMS, method and target with
 * newlines between.  None of these contains a newline, so different calls have different texts.
 *
 * The body of a call and its other headers are not signed: a reader of the network could change them, or send the same
 * call again for HOP_SKEW_MS.  TLS between gateway and worker prevents both.
 */
#include "hop/secrets.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>

#define VERSION_WORD "v1"
#define NO_CLAIMS "-"
#define VALUE_MAX (4 * KIB)
#define PARTS 4
#define TIME_DIGITS_MAX 16

/* ---- claims ---- */

static const struct {
        const char *name;
        size_t at;
} numbers[] = {
        { "scopes", offsetof(struct hop_claims, scopes) },
        { "running_max", offsetof(struct hop_claims, running_max) },
        { "queued_max", offsetof(struct hop_claims, queued_max) },
        { "cpu_ms_per_day", offsetof(struct hop_claims, cpu_ms_per_day) },
        { "stored_bytes", offsetof(struct hop_claims, stored_bytes) },
        { "review_budget_nanousd", offsetof(struct hop_claims, review_budget_nanousd) },
};

static uint64_t *number_of(const struct hop_claims *claims, size_t i)
{
        return (uint64_t *)((char *)claims + numbers[i].at);
}

static void translate(char *text, const char *from, const char *to)
{
        for (; *text; text++)
                if (*text == from[0] || *text == from[1])
                        *text = *text == from[0] ? to[0] : to[1];
}

static char *print_claims(const struct hop_claims *claims, struct arena *arena)
{
        json_t *json = json_pack("{s:s, s:s}", "tenant", claims->tenant, "key", claims->key);
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
                json_object_set_new(json, numbers[i].name,
                        json_integer((json_int_t)min_u64(*number_of(claims, i), INT64_MAX)));
        char *text = json_dumps(json, JSON_COMPACT), *coded = model_base64(arena, text, strlen(text));
        translate(coded, "+/", "-_");
        coded[strcspn(coded, "=")] = 0;
        free(text);
        json_decref(json);
        return coded;
}

/* All members, and no others: a newer gateway might send a member that restricts rights. */
static struct hop_claims *read_claims(const json_t *json, struct arena *arena)
{
        struct hop_claims *ret = arena_alloc(arena, sizeof *ret);
        const char *tenant = json_string_value(json_object_get(json, "tenant"));
        const char *key = json_string_value(json_object_get(json, "key"));
        if (!tenant || !key || json_object_size(json) != 2 + ARRAY_LEN(numbers))
                return NULL;
        ret->tenant = arena_copy(arena, tenant, strlen(tenant));
        ret->key = arena_copy(arena, key, strlen(key));
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
                const json_t *number = json_object_get(json, numbers[i].name);
                if (!json_is_integer(number) || json_integer_value(number) < 0)
                        return NULL;
                *number_of(ret, i) = (uint64_t)json_integer_value(number);
        }
        return ret;
}

static struct hop_claims *parse_claims(const char *coded, struct arena *arena)
{
        struct bytes bytes;
        size_t len = strlen(coded);
        char *text = arena_text(arena, "%s%.*s", coded, (int)(-len % 4), "===");
        translate(text, "-_", "+/");
        if (!model_unbase64(arena, text, strlen(text), &bytes))
                return NULL;
        json_t *json = json_loadb(bytes.bytes, bytes.len, JSON_REJECT_DUPLICATES, NULL);
        struct hop_claims *claims = json ? read_claims(json, arena) : NULL;
        json_decref(json);
        return claims;
}

/* ---- calls ---- */

static void print_mac(const struct hop_keys *keys, size_t i, const char *text, char ret[static 2 * HOP_MAC_LEN + 1])
{
        uint8_t mac[HOP_MAC_LEN];
        hop_mac(keys, i, text, strlen(text), mac);
        hex_print(mac, sizeof mac, ret);
}

static char *text_of(const char *time, const char *claims, const char *method, const char *target, struct arena *arena)
{
        return arena_text(arena, VERSION_WORD "\n%s\n%s\n%s\n%s", time, claims, method, target);
}

char *hop_sign(const struct hop_keys *keys, const char *method, const char *target, const struct hop_claims *claims,
        struct arena *arena)
{
        char mac[2 * HOP_MAC_LEN + 1];
        const char *time = arena_text(arena, "%" PRId64, time_now_ms());
        const char *coded = claims ? print_claims(claims, arena) : NO_CLAIMS;
        print_mac(keys, 0, text_of(time, coded, method, target, arena), mac);
        return arena_text(arena, VERSION_WORD " %s %s %s", time, coded, mac);
}

/* Split at single blanks.  False: another number of parts, or an empty part. */
static bool split(char *value, char *parts[static PARTS])
{
        for (size_t i = 0; i < PARTS; i++) {
                char *end = value + strcspn(value, " ");
                bool is_last = !*end;
                if (end == value || is_last != (i == PARTS - 1))
                        return false;
                parts[i] = value;
                *end = 0;
                value = end + 1;
        }
        return true;
}

static bool is_signed(const struct hop_keys *keys, const char *text, const char *mac)
{
        char expected[2 * HOP_MAC_LEN + 1];
        bool found = false;
        if (strlen(mac) != 2 * HOP_MAC_LEN)
                return false;
        for (size_t i = 0; i < keys->n; i++) {
                print_mac(keys, i, text, expected);
                found |= CRYPTO_memcmp(expected, mac, 2 * HOP_MAC_LEN) == 0;
        }
        return found;
}

static int check_time(const char *time, struct csn_error *err)
{
        int64_t apart = (int64_t)strtoull(time, NULL, 10) - time_now_ms();
        if (apart <= HOP_SKEW_MS && apart >= -HOP_SKEW_MS)
                return 0;
        return err_set(err, CSN_E_DENIED, 0,
                HOP_CALL_HEADER " was signed %" PRId64 " ms %s this worker's time; at most %d ms are allowed",
                apart < 0 ? -apart : apart, apart < 0 ? "before" : "after", HOP_SKEW_MS);
}

int hop_verify(const struct hop_keys *keys, const char *value, const char *method, const char *target,
        struct arena *arena, struct hop_claims **ret_claims, struct csn_error *err)
{
        char *parts[PARTS];
        struct hop_claims *claims = NULL;
        if (strlen(value) > VALUE_MAX)
                return err_set(err, CSN_E_DENIED, 0, HOP_CALL_HEADER " has more than %d bytes", (int)VALUE_MAX);
        if (!split(arena_copy(arena, value, strlen(value)), parts) || strcmp(parts[0], VERSION_WORD) != 0 ||
                strspn(parts[1], "0123456789") != strlen(parts[1]) || strlen(parts[1]) > TIME_DIGITS_MAX)
                return err_set(err, CSN_E_DENIED, 0,
                        HOP_CALL_HEADER " is not \"" VERSION_WORD " TIME CLAIMS HMAC\"; gateway and worker differ in their version");
        if (!is_signed(keys, text_of(parts[1], parts[2], method, target, arena), parts[3]))
                return err_set(err, CSN_E_DENIED, 0,
                        HOP_CALL_HEADER " is not signed for this request by a key of gateway.key_file");
        if (check_time(parts[1], err) < 0)
                return -err->code;
        if (strcmp(parts[2], NO_CLAIMS) != 0 && !(claims = parse_claims(parts[2], arena)))
                return err_set(err, CSN_E_DENIED, 0,
                        "the claims in " HOP_CALL_HEADER " are not those of this version; gateway and worker differ in their version");
        *ret_claims = claims;
        return 0;
}
