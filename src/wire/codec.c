/* Numbers and texts in messages, for the protocols of wire.h and guest_protocol.h. */
#include "wire/codec.h"

#include <stdio.h>

/* ---- writing ---- */

void codec_put_u16(uint8_t *at, uint16_t v)
{
        at[0] = (uint8_t)v;
        at[1] = (uint8_t)(v >> 8);
}

void codec_put_u32(uint8_t *at, uint32_t v)
{
        codec_put_u16(at, (uint16_t)v);
        codec_put_u16(at + 2, (uint16_t)(v >> 16));
}

bool codec_add_u64(struct buf *buf, uint64_t v)
{
        uint8_t bytes[8];
        codec_put_u32(bytes, (uint32_t)v);
        codec_put_u32(bytes + 4, (uint32_t)(v >> 32));
        return buf_add(buf, bytes, sizeof bytes);
}

bool codec_add_text(struct buf *buf, const char *text)
{
        size_t len = text ? strlen(text) : 0;
        return codec_add_u64(buf, len) && buf_add(buf, text ? text : "", len);
}

bool codec_add_texts(struct buf *buf, char *const *texts, size_t n)
{
        bool fits = codec_add_u64(buf, n);
        for (size_t i = 0; fits && i < n; i++)
                fits = codec_add_text(buf, texts[i]);
        return fits;
}

bool codec_add_error(struct buf *buf, const struct csn_error *error)
{
        return codec_add_u64(buf, (uint64_t)error->code) && codec_add_u64(buf, (uint64_t)error->sys) &&
                codec_add_text(buf, error->field) && codec_add_text(buf, error->text);
}

/* ---- reading ---- */

uint32_t codec_load_u32(const uint8_t *at)
{
        return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint64_t codec_u64(struct codec *c)
{
        if (c->left < 8) {
                c->bad = true;
                return 0;
        }
        uint64_t v = (uint64_t)codec_load_u32(c->at) | (uint64_t)codec_load_u32(c->at + 4) << 32;
        c->at += 8;
        c->left -= 8;
        return v;
}

/* A NUL inside is refused, for two readers would see two different texts. */
char *codec_text(struct codec *c, struct arena *arena, size_t max)
{
        uint64_t len = codec_u64(c);
        if (c->bad || len > c->left || len > max || memchr(c->at, 0, (size_t)len)) {
                c->bad = true;
                return NULL;
        }
        char *text = arena_copy(arena, (const char *)c->at, (size_t)len);
        c->at += len;
        c->left -= (size_t)len;
        return text;
}

char **codec_texts(struct codec *c, struct arena *arena, size_t *ret_n)
{
        uint64_t n = codec_u64(c);
        if (c->bad || n > WIRE_ARGS_MAX) {
                c->bad = true;
                return NULL;
        }
        char **texts = arena_alloc(arena, ((size_t)n + 1) * sizeof *texts);
        for (size_t i = 0; i < n && !c->bad; i++)
                texts[i] = codec_text(c, arena, WIRE_TEXT_MAX);
        *ret_n = (size_t)n;
        return texts;
}

void codec_error(struct codec *c, struct csn_error *ret)
{
        struct arena arena = { 0 };
        *ret = (struct csn_error){ .code = (int)codec_u64(c), .sys = (int)codec_u64(c) };
        const char *field = codec_text(c, &arena, sizeof ret->field - 1);
        const char *text = codec_text(c, &arena, sizeof ret->text - 1);
        c->bad = c->bad || ret->code <= 0;
        snprintf(ret->field, sizeof ret->field, "%s", c->bad ? "" : field);
        snprintf(ret->text, sizeof ret->text, "%s", c->bad ? "" : text);
        arena_done(&arena);
}

int codec_end(const struct codec *c, const char *what, struct csn_error *err)
{
        if (!c->bad && c->left == 0)
                return 0;
        return err_set(err, CSN_E_PROTOCOL, 0, "%s message %s", what,
                c->bad ? "is cut or out of bounds" : "is too long");
}
