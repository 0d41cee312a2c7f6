/*
 * Pickles of a single text.  A pickle is a program, and can import and call anything; this reader has no stack and no
 * memo, and knows only the opcodes of pickle.dumps() for a text.
 */
#include "grading/formats/record.h"

enum {
        OP_PROTO = 0x80,
        OP_FRAME = 0x95,
        OP_MEMOIZE = 0x94,
        OP_STOP = '.',
        OP_BINUNICODE = 'X',
        OP_SHORT_BINUNICODE = 0x8c,
        OP_BINUNICODE8 = 0x8d,
        OP_BINPUT = 'q',
        OP_LONG_BINPUT = 'r',
};
#define PROTOCOL_MAX 5

struct reader {
        const unsigned char *at, *end;
        const char *text; /* NULL: none yet */
        size_t len;
        const char *why;
};

static bool fail(struct reader *reader, const char *why)
{
        reader->why = why;
        return false;
}

/* A little-endian number of `width` bytes. */
static bool take_number(struct reader *reader, size_t width, uint64_t *ret)
{
        *ret = 0;
        if ((size_t)(reader->end - reader->at) < width)
                return fail(reader, "it ends within an opcode");
        for (size_t i = 0; i < width; i++)
                *ret |= (uint64_t)reader->at[i] << (8 * i);
        reader->at += width;
        return true;
}

static bool take_text(struct reader *reader, size_t width)
{
        uint64_t len;
        if (!take_number(reader, width, &len))
                return false;
        if (reader->text)
                return fail(reader, "it has more than one object");
        if (len > (uint64_t)(reader->end - reader->at))
                return fail(reader, "its text is longer than the pickle");
        reader->text = (const char *)reader->at;
        reader->len = (size_t)len;
        reader->at += len;
        return true;
}

/* Takes an opcode; *ret_over is set at STOP. */
static bool take_opcode(struct reader *reader, bool *ret_over)
{
        uint64_t number;
        switch (*reader->at++) {
        case OP_PROTO:
                return take_number(reader, 1, &number) &&
                        (number <= PROTOCOL_MAX || fail(reader, "its protocol is unknown"));
        case OP_FRAME:
                return take_number(reader, 8, &number) &&
                        (number <= (uint64_t)(reader->end - reader->at) ||
                                fail(reader, "a frame is longer than the pickle"));
        case OP_SHORT_BINUNICODE: return take_text(reader, 1);
        case OP_BINUNICODE: return take_text(reader, 4);
        case OP_BINUNICODE8: return take_text(reader, 8);
        case OP_MEMOIZE: return reader->text || fail(reader, "there is nothing to remember");
        case OP_BINPUT: return take_number(reader, 1, &number);
        case OP_LONG_BINPUT: return take_number(reader, 4, &number);
        case OP_STOP: *ret_over = true; return reader->text || fail(reader, "it has no text");
        default: return fail(reader, "it has an opcode that makes no text; only a pickle of one text is read");
        }
}

bool pickle_read_text(const char *bytes, size_t len, const char **ret_text, size_t *ret_len, const char **ret_why)
{
        struct reader reader = { .at = (const unsigned char *)bytes, .end = (const unsigned char *)bytes + len };
        bool over = false, good = true;
        while (good && !over)
                good = reader.at < reader.end ? take_opcode(&reader, &over) : fail(&reader, "it has no end");
        if (good && reader.at != reader.end)
                good = fail(&reader, "there are bytes behind its end");
        *ret_text = reader.text;
        *ret_len = reader.len;
        *ret_why = reader.why;
        return good;
}
