/* The private channel: a stream of frames as a hostile program would send them; two bytes of length before each. */
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct channel channel;
        struct csn_error err;
        channel_init(&channel, 1000);
        while (len >= 2) {
                size_t frame = (size_t)bytes[0] | (size_t)bytes[1] << 8;
                bytes += 2;
                len -= 2;
                if (frame > len)
                        frame = len;
                enum channel_state before = channel.state;
                int rc = channel_take(&channel, bytes, frame, &err);
                if ((rc < 0) != (channel.state == CHANNEL_BROKEN) || (before == CHANNEL_BROKEN && rc == 0))
                        abort();
                bytes += frame;
                len -= frame;
        }
        if (channel.part[CHANNEL_VALUE].len > 1000 * 2 + 4096)
                abort();
        channel_done(&channel);
        return 0;
}
