/*
 * Integers of any size in JSON.  jansson supports 64 bits and fails for larger integers.  After such a failure
 * the text is parsed again, with each larger integer as a string with a mark in front.  When a document is
 * written as text, the mark is removed and the digits are unchanged.  The mark is random, so no string of a
 * caller contains the mark.
 */
#include "model/model.h"

#include <pthread.h>
#include <stdatomic.h>

#define TAG "integer:"
#define TAG_RANDOM 16 /* random bytes of the mark, as hexadecimal digits */
#define DIGITS 19      /* of the largest integer of 64 bits: a shorter integer always fits */

static atomic_bool is_used;   /* without a mark there is nothing to take off */

static char mark_text[sizeof TAG + 2 * TAG_RANDOM];

static void make_mark(void)
{
        memcpy(mark_text, TAG, sizeof TAG);
        hex_random(TAG_RANDOM, mark_text + strlen(TAG));
}

/* Helper threads parse, too. */
static const char *mark(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, make_mark);
        return mark_text;
}

/* Bytes of the number at `at`; *ret_whole: without a point and an exponent. */
static size_t number_at(const char *at, const char *end, bool *ret_whole)
{
        size_t len = 0;
        *ret_whole = true;
        for (; at + len < end && at[len] && strchr("+-.eE0123456789", at[len]); len++)
                *ret_whole = *ret_whole && !strchr("+.eE", at[len]);
        return len;
}

/* A string with both quotes. */
static size_t string_at(const char *at, const char *end)
{
        size_t len = 1;
        while (at + len < end && at[len] != '"')
                len += at[len] == '\\' ? 2 : 1;
        return min_u64(len + 1, (uint64_t)(end - at));
}

static void mark_integers(const char *at, const char *end, struct buf *out)
{
        while (at < end) {
                bool whole = false;
                size_t len = *at == '"' ? string_at(at, end) : number_at(at, end, &whole);
                if (!len)
                        len = 1;
                if (whole && len >= DIGITS)
                        buf_printf(out, "\"%s%.*s\"", mark(), (int)len, at);
                else
                        buf_add(out, at, len);
                at += len;
        }
}

json_t *model_read(const char *text, size_t len, size_t flags, json_error_t *ret_where)
{
        struct buf marked;
        json_error_t where;
        json_t *json = json_loadb(text, len, flags, &where);
        if (!json && json_error_code(&where) == json_error_numeric_overflow) {
                is_used = true;
                buf_init(&marked, 4 * len + KIB);
                mark_integers(text, text + len, &marked);
                json = json_loadb(marked.bytes, marked.len, flags, &where);
                buf_done(&marked);
        }
        if (!json && ret_where)
                *ret_where = where;
        return json;
}

json_t *model_load(const char *text, size_t len, json_error_t *ret_where)
{
        return model_read(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, ret_where);
}

/* Replace all marked strings in a JSON text by their integers. */
static void model_unmark(char *text)
{
        size_t len = strlen(mark());
        char *to = text;
        while (*text) {
                if (*text == '"' && strncmp(text + 1, mark(), len) == 0) {
                        for (text += 1 + len; *text && *text != '"';)
                                *to++ = *text++;
                        text += *text == '"';
                } else {
                        *to++ = *text++;
                }
        }
        *to = 0;
}

char *model_write(const json_t *json, size_t flags)
{
        char *text = json_dumps(json, flags);
        if (text && is_used)
                model_unmark(text);
        return text;
}

bool model_has_marks(void)
{
        return is_used;
}

const char *model_digits(const json_t *json)
{
        const char *text = json_string_value(json);
        return text && strncmp(text, mark(), strlen(mark())) == 0 ? text + strlen(mark()) : NULL;
}
