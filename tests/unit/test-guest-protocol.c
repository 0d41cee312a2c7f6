/*
 * guest: what engine and guest tell each other comes out as it went in, and is refused at every byte where it is
 * malformed.
 */
#include "wire/guest_stream.h"

#include <stdio.h>

#include "tap.h"

static char *text(const char *value)
{
        return (char *)(uintptr_t)value;
}

static const uint8_t *bytes_of(const struct buf *buf)
{
        return (const uint8_t *)buf->bytes;
}

/* Every decoder, by kind; what it gave back goes with the arena. */
static int get(enum guest_kind kind, const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct csn_error err = { 0 }, told;
        struct guest_process process;
        struct guest_file file;
        struct guest_entry entry;
        struct guest_event event;
        struct guest_facts facts;
        uint64_t first, second;
        int rc = kind == GUEST_FACTS    ? guest_get_facts(bytes, len, &facts, &err)
                 : kind == GUEST_PROCESS  ? guest_get_process(bytes, len, &arena, &process, &err)
                 : kind == GUEST_FILE   ? guest_get_file(bytes, len, &arena, &file, &err)
                 : kind == GUEST_ENTRY  ? guest_get_entry(bytes, len, &arena, &entry, &err)
                 : kind == GUEST_EVENT  ? guest_get_event(bytes, len, &arena, &event, &err)
                 : kind == GUEST_FAILED ? guest_get_error(bytes, len, &told, &err)
                 : kind == GUEST_SIZE   ? guest_get_pair(bytes, len, &first, &second, &err)
                                        : guest_get_number(bytes, len, &first, &err);
        CHECK(rc == 0 || (rc == -CSN_E_PROTOCOL && err.code == CSN_E_PROTOCOL && err.text[0]));
        arena_done(&arena);
        return rc;
}

/* A whole packet is taken; each part of it, and more than it, is not. */
static void is_exact(struct buf *packet, enum guest_kind kind)
{
        CHECK(guest_kind_of(bytes_of(packet), packet->len) == kind && get(kind, bytes_of(packet), packet->len) == 0);
        for (size_t len = 1; len < packet->len; len++) {
                /* In a room of its own length, so that the sanitizers see every byte that is read beyond it. */
                uint8_t *part = mem_alloc(len);
                memcpy(part, packet->bytes, len);
                CHECK(get(kind, part, len) == -CSN_E_PROTOCOL);
                free(part);
        }
        buf_add(packet, "", 1);
        CHECK(get(kind, bytes_of(packet), packet->len) == -CSN_E_PROTOCOL);
        buf_done(packet);
}

static void a_process_survives_the_journey(void)
{
        char *argv[] = { text("/bin/sh"), text(""), text("a b\n\xff"), NULL },
             *env[] = { text("A=1"), text("B="), NULL };
        struct guest_process in = { .flags = GUEST_TERMINAL | GUEST_INPUT,
                .rows = 24,
                .columns = UINT16_MAX,
                .open_files = 77,
                .folder = text("/tmp"),
                .argv = argv,
                .argv_n = 3,
                .env = env,
                .env_n = 2 },
                             out;
        struct arena arena = { 0 };
        struct csn_error err;
        struct buf buf;
        buf_init(&buf, WIRE_MAX);
        CHECK(guest_put_process(&buf, &in) && guest_get_process(bytes_of(&buf), buf.len, &arena, &out, &err) == 0);
        CHECK(out.flags == in.flags && out.rows == 24 && out.columns == UINT16_MAX &&
                out.open_files == 77 && strcmp(out.folder, "/tmp") == 0);
        CHECK(out.argv_n == 3 && strcmp(out.argv[2], argv[2]) == 0 && !out.argv[3] && out.env_n == 2 &&
                strcmp(out.env[1], "B=") == 0 && !out.env[2]);
        arena_done(&arena);
        is_exact(&buf, GUEST_PROCESS);
}

static void a_process_that_cannot_be_is_refused(void)
{
        char *argv[] = { text("x"), NULL };
        const struct guest_process wrong[] = {
                { .folder = text("/") },
                { .folder = text("/"), .argv = argv, .argv_n = 1, .flags = GUEST_PROCESS_FLAGS + 1 },
                { .folder = text("/"), .argv = argv, .argv_n = 1, .rows = UINT16_MAX + 1 },
                { .folder = text("/"), .argv = argv, .argv_n = 1, .columns = UINT64_MAX },
                { .folder = text("/"), .argv = argv, .argv_n = 1, .open_files = UINT32_MAX },
        };
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                struct buf buf;
                buf_init(&buf, WIRE_MAX);
                CHECK(guest_put_process(&buf, &wrong[i]) &&
                        get(GUEST_PROCESS, bytes_of(&buf), buf.len) == -CSN_E_PROTOCOL);
                buf_done(&buf);
        }
}

static void an_operation_on_files_survives_the_journey(void)
{
        char *labels[] = { text("a=b"), text("c=") }, *nameless[] = { text("=b") }, *valueless[] = { text("b") };
        struct guest_file in = { .verb = GUEST_READ,
                .flags = GUEST_FILE_FLAGS,
                .mode = 07777,
                .offset = INT64_MAX,
                .length = UINT64_MAX,
                .depth = 3,
                .path = text("a\nb"),
                .to = text(""),
                .space = text("user.x."),
                .labels = labels,
                .labels_n = 2 };
        struct guest_file out;
        struct arena arena = { 0 };
        struct csn_error err;
        struct buf buf;
        buf_init(&buf, WIRE_MAX);
        CHECK(guest_put_file(&buf, &in) && guest_get_file(bytes_of(&buf), buf.len, &arena, &out, &err) == 0);
        CHECK(out.verb == in.verb && out.mode == in.mode && out.offset == in.offset && out.length == in.length &&
                out.depth == 3);
        CHECK(strcmp(out.path, in.path) == 0 && out.to[0] == 0 && out.flags == in.flags &&
                strcmp(out.space, "user.x.") == 0);
        CHECK(out.labels_n == 2 && strcmp(out.labels[0], "a=b") == 0 && strcmp(out.labels[1], "c=") == 0 &&
                !out.labels[2]);
        arena_done(&arena);
        is_exact(&buf, GUEST_FILE);
        const struct guest_file wrong[] = { { .verb = 0 }, { .verb = GUEST_VERBS }, { .verb = 1, .mode = 010000 },
                { .verb = 1, .offset = (uint64_t)INT64_MAX + 1 }, { .verb = 1, .flags = GUEST_FILE_FLAGS + 1 },
                { .verb = 1, .labels = nameless, .labels_n = 1 }, { .verb = 1, .labels = valueless, .labels_n = 1 } };
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                CHECK(guest_put_file(&buf, &wrong[i]) && get(GUEST_FILE, bytes_of(&buf), buf.len) == -CSN_E_PROTOCOL);
                buf_done(&buf);
        }
}

static void an_entry_survives_the_journey(void)
{
        char long_label[GUEST_LABELS_MAX + 2] = "a=", *labels[] = { text("a=b") }, *long_labels[] = { long_label };
        memset(long_label + 2, 'x', GUEST_LABELS_MAX - 1);
        struct guest_entry in = { .mode = 0120777,
                .size = INT64_MAX,
                .mtime_ms = 1,
                .links = 2,
                .target_mode = 0100644,
                .path = text("\xff"),
                .target = text("t"),
                .real = text("/t"),
                .owner = text("user"),
                .group = text("1000"),
                .labels = labels,
                .labels_n = 1 },
                           out;
        struct arena arena = { 0 };
        struct csn_error err;
        struct buf buf;
        buf_init(&buf, WIRE_MAX);
        CHECK(guest_put_entry(&buf, &in) && guest_get_entry(bytes_of(&buf), buf.len, &arena, &out, &err) == 0);
        CHECK(out.mode == in.mode && out.size == in.size && out.mtime_ms == 1 && out.links == 2 &&
                strcmp(out.path, "\xff") == 0 && strcmp(out.target, "t") == 0);
        CHECK(out.target_mode == 0100644 && strcmp(out.real, "/t") == 0 && strcmp(out.owner, "user") == 0 &&
                strcmp(out.group, "1000") == 0 && out.labels_n == 1);
        arena_done(&arena);
        is_exact(&buf, GUEST_ENTRY);
        const struct guest_entry wrong[] = { { .mode = UINT16_MAX + 1 }, { .size = UINT64_MAX },
                { .mtime_ms = UINT64_MAX }, { .links = UINT64_MAX }, { .target_mode = UINT16_MAX + 1 },
                { .labels = long_labels, .labels_n = 1 } };
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                CHECK(guest_put_entry(&buf, &wrong[i]) && get(GUEST_ENTRY, bytes_of(&buf), buf.len) == -CSN_E_PROTOCOL);
                buf_done(&buf);
        }
}

static void events_numbers_and_errors_survive_the_journey(void)
{
        struct guest_event in = { .what = GUEST_LOST, .is_folder = 1, .path = text("p") }, out;
        struct csn_error error, told, err;
        struct arena arena = { 0 };
        struct buf buf;
        uint64_t first = 0, second = 0;
        buf_init(&buf, WIRE_MAX);
        CHECK(guest_put_event(&buf, &in) && guest_get_event(bytes_of(&buf), buf.len, &arena, &out, &err) == 0);
        CHECK(out.what == GUEST_LOST && out.is_folder == 1 && strcmp(out.path, "p") == 0);
        arena_done(&arena);
        is_exact(&buf, GUEST_EVENT);
        CHECK(guest_put_number(&buf, GUEST_EXITED, UINT64_MAX) &&
                guest_get_number(bytes_of(&buf), buf.len, &first, &err) == 0 && first == UINT64_MAX);
        is_exact(&buf, GUEST_EXITED);
        CHECK(guest_put_pair(&buf, GUEST_SIZE, 1, 2) &&
                guest_get_pair(bytes_of(&buf), buf.len, &first, &second, &err) == 0 && first == 1 && second == 2);
        is_exact(&buf, GUEST_SIZE);
        err_field(&error, "/a", "what went wrong");
        error.sys = 28;
        CHECK(guest_put_error(&buf, &error) && guest_get_error(bytes_of(&buf), buf.len, &told, &err) == 0);
        CHECK(told.code == error.code && told.sys == 28 && strcmp(told.text, error.text) == 0 &&
                strcmp(told.field, "/a") == 0);
        is_exact(&buf, GUEST_FAILED);
        const struct guest_event wrong[] = { { .what = 0 }, { .what = GUEST_LOST + 1 }, { .what = 1, .is_folder = 2 } };
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                CHECK(guest_put_event(&buf, &wrong[i]) && get(GUEST_EVENT, bytes_of(&buf), buf.len) == -CSN_E_PROTOCOL);
                buf_done(&buf);
        }
}

static void texts_that_are_too_long_or_have_a_nul_are_refused(void)
{
        char *path = mem_alloc(2 * GUEST_PATH_MAX + 2);
        struct guest_entry entry = { .path = path };
        struct buf buf;
        buf_init(&buf, WIRE_MAX);
        memset(path, 'x', 2 * GUEST_PATH_MAX);
        CHECK(guest_put_entry(&buf, &entry) && get(GUEST_ENTRY, bytes_of(&buf), buf.len) == 0);
        buf.bytes[1 + 5 * 8 + 8 + 5] = 0;
        CHECK(get(GUEST_ENTRY, bytes_of(&buf), buf.len) == -CSN_E_PROTOCOL);
        buf_done(&buf);
        path[2 * GUEST_PATH_MAX] = 'x';
        CHECK(guest_put_entry(&buf, &entry) && get(GUEST_ENTRY, bytes_of(&buf), buf.len) == -CSN_E_PROTOCOL);
        buf_done(&buf);
        free(path);
}

static void what_does_not_fit_is_not_sent(void)
{
        char *argv[] = { mem_alloc(WIRE_MAX), NULL };
        struct guest_process process = { .folder = text("/"), .argv = argv, .argv_n = 1 };
        struct buf buf;
        memset(argv[0], 'x', WIRE_MAX - 1);
        buf_init(&buf, WIRE_MAX);
        CHECK(!guest_put_process(&buf, &process));
        buf_done(&buf);
        free(argv[0]);
}

static void facts_survive_the_journey(void)
{
        struct guest_facts in, out = { 0 };
        struct csn_error err;
        struct buf packet;
        uint64_t n = 0;
#define N(name) in.name = ++n;
        GUEST_FACTS_NUMBERS(N)
#undef N
        buf_init(&packet, WIRE_MAX);
        CHECK(guest_put_facts(&packet, &in) && guest_get_facts(bytes_of(&packet), packet.len, &out, &err) == 0);
        CHECK(memcmp(&in, &out, sizeof in) == 0);
        is_exact(&packet, GUEST_FACTS);
}

/* Three frames, in pieces of each size. */
static void frames_of_a_stream_are_taken_whole(void)
{
        struct buf stream;
        struct csn_error err;
        struct guest_frame frame;
        buf_init(&stream, 4 * WIRE_MAX);
        char *long_packet = mem_alloc(WIRE_MAX + 1);
        CHECK(guest_stream_put(&stream, 0, "hello", 5) && guest_stream_put(&stream, 7 | GUEST_STREAM_OPEN, "", 0) &&
                guest_stream_put(&stream, UINT32_MAX, long_packet, WIRE_MAX));
        CHECK(!guest_stream_put(&stream, 1, long_packet, WIRE_MAX + 1));
        const uint8_t *at = bytes_of(&stream);
        for (size_t len = 0; len < GUEST_STREAM_HEADER + 5; len++)
                CHECK(guest_stream_take(at, len, &frame, &err) == 0);
        CHECK(guest_stream_take(at, stream.len, &frame, &err) == GUEST_STREAM_HEADER + 5 && frame.channel == 0 &&
                frame.len == 5 && memcmp(frame.bytes, "hello", 5) == 0);
        at += GUEST_STREAM_HEADER + 5;
        CHECK(guest_stream_take(at, GUEST_STREAM_HEADER, &frame, &err) == GUEST_STREAM_HEADER && frame.len == 0 &&
                frame.channel == (7 | GUEST_STREAM_OPEN));
        at += GUEST_STREAM_HEADER;
        CHECK(guest_stream_take(at, GUEST_STREAM_FRAME_MAX - 1, &frame, &err) == 0);
        CHECK(guest_stream_take(at, GUEST_STREAM_FRAME_MAX, &frame, &err) == GUEST_STREAM_FRAME_MAX &&
                frame.channel == UINT32_MAX && frame.len == WIRE_MAX);
        free(long_packet);
        buf_done(&stream);
}

static void a_frame_that_is_too_long_is_refused(void)
{
        const uint8_t header[GUEST_STREAM_HEADER] = { (WIRE_MAX + 1) & 0xff, (WIRE_MAX + 1) >> 8 & 0xff,
                (WIRE_MAX + 1) >> 16 };
        struct guest_frame frame;
        struct csn_error err;
        CHECK(guest_stream_take(header, sizeof header, &frame, &err) == -CSN_E_PROTOCOL);
}

static void kinds_are_those_that_there_are(void)
{
        uint8_t byte = 0;
        CHECK(guest_kind_of(&byte, 0) == 0 && guest_kind_of(&byte, 1) == 0);
        for (unsigned kind = 1; kind < 256; kind++) {
                byte = (uint8_t)kind;
                CHECK(guest_kind_of(&byte, 1) == (kind < GUEST_KINDS ? kind : 0));
        }
        byte = GUEST_DATA;
        CHECK(guest_kind_of(&byte, WIRE_MAX + 1) == 0);
}

int main(void)
{
        RUN(a_process_survives_the_journey);
        RUN(a_process_that_cannot_be_is_refused);
        RUN(an_operation_on_files_survives_the_journey);
        RUN(an_entry_survives_the_journey);
        RUN(events_numbers_and_errors_survive_the_journey);
        RUN(texts_that_are_too_long_or_have_a_nul_are_refused);
        RUN(what_does_not_fit_is_not_sent);
        RUN(facts_survive_the_journey);
        RUN(frames_of_a_stream_are_taken_whole);
        RUN(a_frame_that_is_too_long_is_refused);
        RUN(kinds_are_those_that_there_are);
        return tap_done();
}
