/*
 * codec: numbers and texts in messages, for the protocols of wire.h and guest_protocol.h.  All integers are
 * little-endian.
 */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "wire/wire.h"

void codec_put_u16(uint8_t *at, uint16_t v);
void codec_put_u32(uint8_t *at, uint32_t v);
uint32_t codec_load_u32(const uint8_t *at);

/* Append to a message; false: the field does not fit. */
bool codec_add_u64(struct buf *buf, uint64_t v);
bool codec_add_text(struct buf *buf, const char *text);
bool codec_add_texts(struct buf *buf, char *const *texts, size_t n);
bool codec_add_error(struct buf *buf, const struct csn_error *error);

/* A cursor over a message.  `bad` records any missing or wrong field, so callers check only once, by codec_end(). */
struct codec {
        const uint8_t *at;
        size_t left;
        bool bad;
};

/* The next number; 0 if missing. */
uint64_t codec_u64(struct codec *c);
/* A text of at most `max` bytes without NUL, copied to `arena`; otherwise NULL, and `bad` is set. */
char *codec_text(struct codec *c, struct arena *arena, size_t max);
/* At most WIRE_ARGS_MAX texts of at most WIRE_TEXT_MAX bytes, NULL-terminated, in `arena`. */
char **codec_texts(struct codec *c, struct arena *arena, size_t *ret_n);
void codec_error(struct codec *c, struct csn_error *ret);

/*
 * Check for the end of the message: all fields present, no bytes left.  0, or -CSN_E_PROTOCOL; `what` is the
 * message's name for the error text.
 */
int codec_end(const struct codec *c, const char *what, struct csn_error *err);

#endif
