/*
 * frames: what a client and caissond say to each other on a stream socket, as bytes.
 *
 * A frame is a header of 12 bytes and a payload:
 *
 *   u32 length of the payload, little endian
 *   u32 id, chosen by the client: the answers to a frame carry the frame's own
 *   u8  type
 *   3 bytes 0
 *
 *   from the client    1 REQUEST   JSON: caisson schema request     starts a run
 *                      2 CANCEL    nothing                          ends the run of that id
 *                      3 ASK       nothing                          asks for STATUS
 *                      4 CHECK     JSON: caisson schema check_request   checks a program, and runs nothing
 *   from the daemon   17 OUTPUT    u8 stream (1, 2), bytes          as it comes; left out for who reads too slowly
 *                     18 RECORD    JSON: caisson schema result      the last frame of a run
 *                     19 STATUS    JSON: runs, queue, pools         the answer to ASK
 *                     20 ERROR     JSON: code, text, field          instead of the answer; with id 0 the connection ends
 *                     21 CHECKED   JSON: caisson schema check_result    the answer to CHECK
 *
 * A client's id is never 0, and no two of its live requests have the same.  No I/O here: bytes in, frames out.
 */
#ifndef FRONT_FRAMES_H
#define FRONT_FRAMES_H

#include "base/base.h"

#define FRAME_HEADER 12
#define FRAME_REQUEST_MAX (64 * MIB)
#define FRAME_OUTPUT_MAX (64 * KIB)              /* bytes of output in one frame */
#define FRAME_RECORD_MAX UINT32_MAX              /* what the header can say; each part of a record has its own ceiling */
#define FRAME_STATUS_MAX (64 * MIB)
#define FRAME_CHECK_MAX (16 * MIB)               /* a program and 1,000 modules, each byte of which may be six in JSON */
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

void frame_put(uint8_t bytes[static FRAME_HEADER], const struct frame *frame);

/* Errors: CSN_E_PROTOCOL naming the rule that is broken. */
int frame_get(const uint8_t bytes[static FRAME_HEADER], enum frame_from from, struct frame *ret, struct csn_error *err);

/* One direction of a connection; frame_reader_init() before, frame_reader_done() after. */
struct frame_reader {
        enum frame_from from;
        struct frame frame;        /* valid from FRAME_BEGUN on */
        struct buf payload;        /* whole at FRAME_WHOLE; taking it away leaves {0} */
        bool skip;                 /* set at FRAME_BEGUN: the payload is read and thrown away */
        uint8_t head[FRAME_HEADER];
        size_t head_n, body_n;
};

enum frame_step {
        FRAME_MORE,                /* the bytes are used up */
        FRAME_BEGUN,               /* a header is read: the owner may look at it before its payload costs anything */
        FRAME_WHOLE,               /* a frame is there, until the next call */
};

void frame_reader_init(struct frame_reader *reader, enum frame_from from);
void frame_reader_done(struct frame_reader *reader);

/*
 * Take of these bytes what belongs to the next step, which is returned; *bytes and *len move on.  Errors:
 * CSN_E_PROTOCOL, after which the stream cannot be read any further.
 */
int frame_read(struct frame_reader *reader, const uint8_t **bytes, size_t *len, struct csn_error *err);

/* The payload of ERROR.  Reading gives CSN_E_PROTOCOL itself for a text that is none. */
bool frame_put_error(struct buf *buf, const struct csn_error *error);
void frame_get_error(const char *text, size_t len, struct csn_error *ret);

#endif
