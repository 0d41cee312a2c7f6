/* Bodies of multipart/form-data: the first byte says how they are cut, and however that is the same comes of it. */
#include "net/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static uint64_t read_all(const char *bytes, size_t len, size_t piece, size_t most)
{
        struct multipart multipart;
        struct csn_error err;
        uint64_t sum = 1;
        int step = MULTIPART_MORE;
        if (multipart_init(&multipart, "multipart/form-data; boundary=B", &err) < 0)
                abort();
        for (size_t at = 0; step >= 0 && step != MULTIPART_DONE && at < len;) {
                size_t n = multipart_add(&multipart, bytes + at, min_u64(piece, len - at));
                if (!n)
                        abort();               /* everything before was taken, so there has to be room */
                at += n;
                while ((step = multipart_next(&multipart, &err)) > MULTIPART_MORE && step != MULTIPART_DONE) {
                        size_t take = step == MULTIPART_DATA ? min_u64(multipart.len, most) : 0;
                        if (step == MULTIPART_DATA && !take)
                                abort();
                        for (size_t i = 0; i < take; i++)
                                sum = sum * 31 + (uint8_t)multipart.bytes[i];
                        if (step != MULTIPART_DATA)
                                sum = sum * 31 + 1000 + (unsigned)step +
                                        (multipart.has_name ? strlen(multipart.name) : 0);
                        multipart_take(&multipart, step, take);
                }
        }
        sum = sum * 31 + (step < 0 ? 7 : step == MULTIPART_DONE ? 5 : 3);
        multipart_done(&multipart);
        return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        if (!len)
                return 0;
        size_t piece = 1 + (bytes[0] & 15), most = 1 + (bytes[0] >> 4);
        if (read_all((const char *)bytes + 1, len - 1, piece, most) !=
                read_all((const char *)bytes + 1, len - 1, len, len))
                abort();
        return 0;
}
