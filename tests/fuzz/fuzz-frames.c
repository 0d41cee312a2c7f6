/* The daemon's socket, both directions: the first byte says which, and how the rest is cut. */
#include "front/socket/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* What reads frames must end, keep to the length it was told, and say the same however the bytes come. */
static uint64_t read_all(const uint8_t *bytes, size_t len, enum frame_from from, size_t piece)
{
        struct frame_reader reader;
        struct csn_error err, told;
        uint64_t sum = 1;
        frame_reader_init(&reader, from);
        for (int step = FRAME_MORE; len && step >= 0;) {
                size_t part = len < piece ? len : piece;
                len -= part;
                do {
                        step = frame_read(&reader, &bytes, &part, &err);
                        if (step == FRAME_BEGUN)
                                reader.skip = reader.frame.id % 5 == 0;
                        if (step == FRAME_WHOLE && !reader.skip && reader.payload.len != reader.frame.len)
                                abort();
                        if (step == FRAME_WHOLE)
                                sum = sum * 31 + reader.frame.id + reader.payload.len * 7 + (uint64_t)reader.frame.type;
                        if (step == FRAME_WHOLE && reader.frame.type == FRAME_ERROR && reader.payload.bytes)
                                frame_get_error(reader.payload.bytes, reader.payload.len, &told);
                } while (step == FRAME_BEGUN || step == FRAME_WHOLE);
                if (step == FRAME_MORE && part)
                        abort();
                sum = step < 0 ? sum * 31 + 5 : sum;
        }
        frame_reader_done(&reader);
        return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        if (len < 1)
                return 0;
        enum frame_from from = bytes[0] & 1 ? FROM_DAEMON : FROM_CLIENT;
        size_t piece = 1 + (bytes[0] >> 1);
        if (read_all(bytes + 1, len - 1, from, piece) != read_all(bytes + 1, len - 1, from, len))
                abort();
        return 0;
}
