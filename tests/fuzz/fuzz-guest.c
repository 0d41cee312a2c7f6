/* What a guest sends to the engine, and what the engine sends to a guest, from any bytes: the first is the kind. */
#include "wire/guest_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* What was decoded is encoded to the same bytes. */
static void compare(const uint8_t *bytes, size_t len, struct buf *again, bool fits)
{
        if (!fits || again->len != len || memcmp(again->bytes, bytes, len) != 0)
                abort();
        buf_done(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct csn_error err, told;
        struct guest_process process;
        struct guest_file file;
        struct guest_entry entry;
        struct guest_event event;
        struct guest_facts facts;
        struct guest_frame frame;
        uint64_t first, second;
        struct buf again;
        enum guest_kind kind = guest_kind_of(bytes, len);
        buf_init(&again, WIRE_MAX);
        ssize_t n = guest_stream_take(bytes, len, &frame, &err);
        if (n > 0 && (n > (ssize_t)len || frame.bytes + frame.len != bytes + n))
                abort();
        if (!kind)
                return 0;
        if (kind == GUEST_FACTS && guest_get_facts(bytes, len, &facts, &err) == 0)
                compare(bytes, len, &again, guest_put_facts(&again, &facts));
        if (kind == GUEST_PROCESS && guest_get_process(bytes, len, &arena, &process, &err) == 0) {
                if (!process.argv[0] || process.argv[process.argv_n] || process.env[process.env_n])
                        abort();
                compare(bytes, len, &again, guest_put_process(&again, &process));
        }
        if (kind == GUEST_FILE && guest_get_file(bytes, len, &arena, &file, &err) == 0)
                compare(bytes, len, &again, guest_put_file(&again, &file));
        if (kind == GUEST_ENTRY && guest_get_entry(bytes, len, &arena, &entry, &err) == 0)
                compare(bytes, len, &again, guest_put_entry(&again, &entry));
        if (kind == GUEST_EVENT && guest_get_event(bytes, len, &arena, &event, &err) == 0)
                compare(bytes, len, &again, guest_put_event(&again, &event));
        if (guest_get_number(bytes, len, &first, &err) == 0)
                compare(bytes, len, &again, guest_put_number(&again, kind, first));
        if (guest_get_pair(bytes, len, &first, &second, &err) == 0)
                compare(bytes, len, &again, guest_put_pair(&again, kind, first, second));
        if (kind == GUEST_FAILED && guest_get_error(bytes, len, &told, &err) == 0 && told.code <= 0)
                abort();
        arena_done(&arena);
        return 0;
}
