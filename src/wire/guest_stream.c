/* Frames of the guest protocol over a byte stream. */
#include "wire/guest_stream.h"

#include "wire/codec.h"

bool guest_stream_put(struct buf *buf, uint32_t channel, const void *bytes, size_t len)
{
        if (len > WIRE_MAX)
                return false;
        uint8_t *at = (uint8_t *)buf_extend(buf, GUEST_STREAM_HEADER + len);
        if (!at)
                return false;
        codec_put_u32(at, (uint32_t)len);
        codec_put_u32(at + 4, channel);
        if (len)
                memcpy(at + GUEST_STREAM_HEADER, bytes, len);
        return true;
}

ssize_t guest_stream_take(const uint8_t *bytes, size_t len, struct guest_frame *ret, struct csn_error *err)
{
        if (len < GUEST_STREAM_HEADER)
                return 0;
        size_t packet = codec_load_u32(bytes);
        if (packet > WIRE_MAX)
                return err_set(err, CSN_E_PROTOCOL, 0, "a frame of the guest has %zu bytes; at most %d are possible",
                        packet, WIRE_MAX);
        if (len - GUEST_STREAM_HEADER < packet)
                return 0;
        *ret = (struct guest_frame){ codec_load_u32(bytes + 4), bytes + GUEST_STREAM_HEADER, packet };
        return (ssize_t)(GUEST_STREAM_HEADER + packet);
}
