/* Ids of objects for use by clients; see struct id_form. */
#include "base/base.h"

#include <stdio.h>

#define TAG_DIGITS 8
#define SEAL_DIGITS 8
#define SHORT_TAG_DIGITS 7                 /* 36^7 > 2^32 */
#define SHORT_SEAL_DIGITS 4
#define BASE 36

static const char letters[BASE + 1] = "0123456789abcdefghijklmnopqrstuvwxyz";
static const struct id_form *current;

void id_set_form(const struct id_form *form)
{
        current = form;
}

/* The lowest `len` digits of a number in base 36, the highest digit first. */
static void print_base36(uint64_t number, size_t len, char *text)
{
        for (size_t i = len; i-- > 0; number /= BASE)
                text[i] = letters[number % BASE];
        text[len] = 0;
}

static uint64_t number_of(const uint8_t bytes[8])
{
        uint64_t number = 0;
        for (size_t i = 0; i < 8; i++)
                number = number << 8 | bytes[i];
        return number;
}

void id_print_seal(const uint8_t seal[8], size_t id_len, char text[static 9])
{
        if (id_len == ID_SHORT_DIGITS)
                print_base36(number_of(seal), SHORT_SEAL_DIGITS, text);
        else
                hex_print(seal, SEAL_DIGITS / 2, text);
}

static void add_seal(char *text, size_t id_len)
{
        uint8_t seal[8];
        size_t at = id_len - (id_len == ID_SHORT_DIGITS ? SHORT_SEAL_DIGITS : SEAL_DIGITS);
        char digits[9];
        current->seal(current->owner, text, at, seal);
        id_print_seal(seal, id_len, digits);
        memcpy(text + at, digits, id_len - at);
}

static void finish_id(char *text)
{
        if (!current)
                return;
        memcpy(text, current->tag, TAG_DIGITS);
        add_seal(text, ID_DIGITS);
}

void id_new(char text[static ID_DIGITS + 1])
{
        hex_random(ID_DIGITS / 2, text);
        finish_id(text);
}

void id_new_uuid(char text[static ID_UUID_LEN + 1])
{
        char hex[ID_DIGITS + 1];
        hex_random(ID_DIGITS / 2, hex);
        hex[12] = '4';                     /* version */
        hex[16] = 'a';                     /* variant */
        finish_id(hex);
        snprintf(text, ID_UUID_LEN + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

/* Random digits of base 36, seven at a time of 64 random bits: no digit is more frequent by more than 2^-27. */
static void random_base36(size_t len, char *text)
{
        char hex[2 * HEX_RANDOM_MAX + 1];
        for (size_t i = 0; i < len; i += SHORT_TAG_DIGITS) {
                hex_random(8, hex);
                char digits[SHORT_TAG_DIGITS + 1];
                print_base36(strtoull(hex, NULL, 16), SHORT_TAG_DIGITS, digits);
                memcpy(text + i, digits, min_u64(SHORT_TAG_DIGITS, len - i));
        }
        text[len] = 0;
}

void id_new_short(char text[static ID_SHORT_DIGITS + 1])
{
        random_base36(ID_SHORT_DIGITS, text);
        if (!current)
                return;
        char tag[SHORT_TAG_DIGITS + 1];
        print_base36(strtoull(current->tag, NULL, 16), SHORT_TAG_DIGITS, tag);
        memcpy(text, tag, SHORT_TAG_DIGITS);
        add_seal(text, ID_SHORT_DIGITS);
}

/* ---- the form of 21 characters ---- */

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static unsigned digit_of(char digit)
{
        return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/*
 * Three hexadecimal digits are two characters; the last two digits end with two zero bits and are a single character.
 */
void id_to_compact(const char digits[static ID_DIGITS], char ret[static ID_COMPACT_LEN + 1])
{
        for (size_t i = 0; i < ID_COMPACT_LEN; i++) {
                size_t at = i / 2 * 3;
                unsigned third = at + 2 < ID_DIGITS ? digit_of(digits[at + 2]) : 0;
                unsigned bits = digit_of(digits[at]) << 8 | digit_of(digits[at + 1]) << 4 | third;
                ret[i] = base64url[i % 2 ? bits & 63 : bits >> 6];
        }
        ret[ID_COMPACT_LEN] = 0;
}

bool id_from_compact(const char *text, size_t len, char ret[static ID_DIGITS + 1])
{
        if (len != ID_COMPACT_LEN)
                return false;
        for (size_t i = 0, at = 0; i < len; i += 2, at += 3) {
                const char *first = text[i] ? strchr(base64url, text[i]) : NULL;
                const char *second = i + 1 == len ? base64url : text[i + 1] ? strchr(base64url, text[i + 1]) : NULL;
                if (!first || !second)
                        return false;
                unsigned bits = (unsigned)(first - base64url) << 6 | (unsigned)(second - base64url);
                for (size_t k = 0; k < 3 && at + k < ID_DIGITS; k++)
                        ret[at + k] = letters[bits >> (8 - 4 * k) & 15];
        }
        ret[ID_DIGITS] = 0;
        return true;
}

/* The digits of a seal follow from the id, so new ids are made until a seal fits: four on average. */
void id_new_compact(char text[static ID_DIGITS + 1])
{
        char compact[ID_COMPACT_LEN + 1];
        bool is_short;
        do {
                id_new(text);
                id_to_compact(text, compact);
                is_short = compact[0] == 'i' && strspn(compact + 1, letters) == ID_SHORT_DIGITS;
        } while (is_short || digit_of(text[ID_DIGITS - 1]) % 4);
}

bool id_short_tag(const char *text, char ret_tag[static 9])
{
        uint64_t number = 0;
        for (size_t i = 0; i < SHORT_TAG_DIGITS; i++) {
                const char *at = text[i] ? strchr(letters, text[i]) : NULL;
                if (!at)
                        return false;
                number = number * BASE + (uint64_t)(at - letters);
        }
        snprintf(ret_tag, 9, "%08llx", (unsigned long long)number);
        return number <= UINT32_MAX;
}
