/*
 * frames: the protocol between clients and caissond on a stream socket, as bytes.
 *
 * A frame is a header of 12 bytes and a payload:
 *
 *   u32 length of the payload, little endian
 *   u32 id, chosen by the client: the answers to a frame carry the frame's own
 *   u8  type
 *   3 bytes 0
 *
 *   from the client    1 REQUEST   JSON: caisson schema request     starts a run
 *                      2 CANCEL    nothing                          ends the run with this id
 *                      3 ASK       nothing                          requests STATUS
 *                      4 CHECK     JSON: caisson schema check_request   checks a program without running it
 *   from the daemon   17 OUTPUT    u8 stream (1, 2), bytes          as it arrives; left out for slow readers
 *                     18 RECORD    JSON: caisson schema result      the last frame of a run
 *                     19 STATUS    JSON: runs, queue, pools         the answer to ASK
 *                     20 ERROR     JSON: code, text, field          replaces the answer; with id 0 the connection ends
 *                     21 CHECKED   JSON: caisson schema check_result    the answer to CHECK
 *
 * A client's id is never 0, and no two of its live requests have the same id.  No I/O here: bytes in, frames out.
 */
#ifndef FRONT_SOCKET_FRAMES_H
#define FRONT_SOCKET_FRAMES_H

#include "base/base.h"

#define FRAME_HEADER 12
#define FRAME_REQUEST_MAX (64 * MIB)
#define FRAME_OUTPUT_MAX (64 * KIB)              /* bytes of output in one frame */
#define FRAME_RECORD_MAX UINT32_MAX /* the header's maximum; each part of a record has a limit of its own */
#define FRAME_STATUS_MAX (64 * MIB)
#define FRAME_CHECK_MAX (16 * MIB)               /* a program and 1,000 modules; each byte may take six in JSON */
#define FRAME_CHECKED_MAX (32 * MIB)
#define FRAME_ERROR_MAX (8 * KIB)

enum frame_type {
        FRAME_REQUEST = 1, FRAME_CANCEL, FRAME_ASK, FRAME_CHECK,
        FRAME_OUTPUT = 17, FRAME_RECORD, FRAME_STATUS, FRAME_ERROR, FRAME_CHECKED,
};
enum frame_from { FROM_CLIENT, FROM_DAEMON };

struct frame {
        uint32_t len, id;
        enum frame_type type;
};

/* Encode a header. */
void frame_put(uint8_t bytes[static FRAME_HEADER], const struct frame *frame);

/* Decode a header.  Errors: CSN_E_PROTOCOL naming the violated rule. */
int frame_get(const uint8_t bytes[static FRAME_HEADER], enum frame_from from, struct frame *ret, struct csn_error *err);

/* Parser for one direction of a connection; frame_reader_init() before, frame_reader_done() after. */
struct frame_reader {
        enum frame_from from;
        struct frame frame;        /* valid from FRAME_BEGUN on */
        struct buf payload;        /* complete at FRAME_WHOLE; a reader that takes it leaves {0} */
        bool skip;                 /* set by the caller at FRAME_BEGUN: the payload is read and discarded */
        uint8_t head[FRAME_HEADER];
        size_t head_n, body_n;
};

enum frame_step {
        FRAME_MORE,                /* all bytes are consumed */
        FRAME_BEGUN,               /* a header is complete: the caller may check it before its payload uses memory */
        FRAME_WHOLE,               /* a frame is complete, until the next call */
};

void frame_reader_init(struct frame_reader *reader, enum frame_from from);
void frame_reader_done(struct frame_reader *reader);

/*
 * Consume the bytes of the next step, which is returned; *bytes and *len advance.  Errors: CSN_E_PROTOCOL; the stream
 * is then unusable.
 */
int frame_read(struct frame_reader *reader, const uint8_t **bytes, size_t *len, struct csn_error *err);

/* Whether a frame, or its header, has begun and is not whole. */
bool frame_is_partial(const struct frame_reader *reader);

/* Encode and decode the payload of ERROR.  A malformed payload decodes to CSN_E_PROTOCOL.  false: buf is full. */
bool frame_put_error(struct buf *buf, const struct csn_error *error);
void frame_get_error(const char *text, size_t len, struct csn_error *ret);

#endif
