/*
 * guest stream: the guest protocol over a byte stream in each direction, which are the standard input and output of
 * process 1 of a container.
 *
 * A frame is {u32 length of the packet, u32 channel} and a packet of guest_protocol.h, little-endian.  A channel stands
 * for the socket of an operation:
 *
 *     channel with GUEST_STREAM_OPEN    ->   a request, which opens the channel; numbers are the engine's choice
 *     channel 0                         <-   HELLO
 *     other channels                    <->  packets of the operation; an empty packet closes the channel
 */
#ifndef WIRE_GUEST_STREAM_H
#define WIRE_GUEST_STREAM_H

#include "wire/guest_protocol.h"

#define GUEST_STREAM_OPEN 0x80000000U
#define GUEST_STREAM_HEADER 8
#define GUEST_STREAM_FRAME_MAX (GUEST_STREAM_HEADER + WIRE_MAX)

struct guest_frame {
        uint32_t channel;
        const uint8_t *bytes; /* the packet, inside of the bytes that were read */
        size_t len;
};

/* Append a frame; false, and unchanged: the packet is longer than WIRE_MAX, or the buffer is full. */
bool guest_stream_put(struct buf *buf, uint32_t channel, const void *bytes, size_t len);
/*
 * Take the first frame of these bytes.  Returns the bytes of the frame, 0 if more bytes are needed, or -CSN_E_PROTOCOL:
 * the packet is longer than WIRE_MAX, and the stream has no further meaning.
 */
ssize_t guest_stream_take(const uint8_t *bytes, size_t len, struct guest_frame *ret, struct csn_error *err);

#endif
