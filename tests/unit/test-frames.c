/* frames: what goes in comes out whatever way it is cut, and each rule is kept. */
#include "front/socket/frames.h"

#include "tap.h"

static const uint8_t *at_of(const struct buf *buf)
{
        return (const uint8_t *)buf->bytes;
}

static void add_frame(struct buf *buf, enum frame_type type, uint32_t id, const char *payload)
{
        uint8_t head[FRAME_HEADER];
        const struct frame frame = { .len = (uint32_t)strlen(payload), .id = id, .type = type };
        frame_put(head, &frame);
        buf_add(buf, head, sizeof head);
        buf_add(buf, payload, strlen(payload));
}

/* All frames of these bytes, which come in pieces, as "type id payload;". */
static void read_all(struct frame_reader *reader, const struct buf *in, size_t piece, struct buf *out)
{
        struct csn_error err;
        for (size_t at = 0; at < in->len;) {
                size_t len = in->len - at < piece ? in->len - at : piece;
                const uint8_t *bytes = at_of(in) + at;
                at += len;
                for (int step = FRAME_BEGUN; step != FRAME_MORE;) {
                        step = frame_read(reader, &bytes, &len, &err);
                        if (step < 0) {
                                buf_printf(out, "error");
                                return;
                        }
                        if (step == FRAME_WHOLE)
                                buf_printf(out, "%d %u %s;", (int)reader->frame.type, reader->frame.id,
                                           reader->payload.bytes ? reader->payload.bytes : "");
                }
        }
}

static void frames_survive_whatever_way_they_are_cut(void)
{
        struct buf in;
        buf_init(&in, 1000);
        add_frame(&in, FRAME_REQUEST, 7, "{\"code\":\"1\"}");
        add_frame(&in, FRAME_CANCEL, 7, "");
        add_frame(&in, FRAME_ASK, 0xfffffffeU, "");
        add_frame(&in, FRAME_REQUEST, 8, "{}");
        for (size_t piece = 1; piece <= in.len; piece++) {
                struct frame_reader reader;
                struct buf out;
                buf_init(&out, 1000);
                frame_reader_init(&reader, FROM_CLIENT);
                read_all(&reader, &in, piece, &out);
                CHECK(strcmp(out.bytes, "1 7 {\"code\":\"1\"};2 7 ;3 4294967294 ;1 8 {};") == 0);
                frame_reader_done(&reader);
                buf_done(&out);
        }
        buf_done(&in);
}

static void a_payload_that_is_skipped_costs_nothing(void)
{
        struct frame_reader reader;
        struct csn_error err;
        struct buf in;
        buf_init(&in, 1000);
        add_frame(&in, FRAME_REQUEST, 1, "{\"a\":1}");
        add_frame(&in, FRAME_REQUEST, 2, "{}");
        frame_reader_init(&reader, FROM_CLIENT);
        const uint8_t *bytes = at_of(&in);
        size_t len = in.len;
        CHECK(frame_read(&reader, &bytes, &len, &err) == FRAME_BEGUN && reader.frame.len == 7);
        reader.skip = true;
        CHECK(frame_read(&reader, &bytes, &len, &err) == FRAME_WHOLE && reader.payload.len == 0);
        CHECK(frame_read(&reader, &bytes, &len, &err) == FRAME_BEGUN && !reader.skip && reader.frame.id == 2);
        CHECK(frame_read(&reader, &bytes, &len, &err) == FRAME_WHOLE && strcmp(reader.payload.bytes, "{}") == 0);
        CHECK(frame_read(&reader, &bytes, &len, &err) == FRAME_MORE);
        frame_reader_done(&reader);
        buf_done(&in);
}

static void each_rule_is_kept(void)
{
        static const struct {
                uint64_t len;
                enum frame_from from;
                uint32_t id;
                uint8_t type, byte;
                bool good;
        } heads[] = {
                { 2, FROM_CLIENT, 1, FRAME_REQUEST, 0, true },
                { FRAME_REQUEST_MAX, FROM_CLIENT, 1, FRAME_REQUEST, 0, true },
                { FRAME_REQUEST_MAX + 1, FROM_CLIENT, 1, FRAME_REQUEST, 0, false },
                { 1, FROM_CLIENT, 1, FRAME_REQUEST, 0, false },
                { 2, FROM_CLIENT, 0, FRAME_REQUEST, 0, false },
                { 2, FROM_CLIENT, 1, FRAME_REQUEST, 1, false },
                { 0, FROM_CLIENT, 1, FRAME_CANCEL, 0, true },
                { 1, FROM_CLIENT, 1, FRAME_CANCEL, 0, false },
                { 0, FROM_CLIENT, 1, FRAME_ASK, 0, true },
                { 1, FROM_CLIENT, 1, FRAME_ASK, 0, false },
                { 0, FROM_CLIENT, 1, 0, 0, false },
                { 2, FROM_CLIENT, 1, FRAME_CHECK, 0, true },
                { 1, FROM_CLIENT, 1, FRAME_CHECK, 0, false },
                { 2, FROM_DAEMON, 1, FRAME_CHECKED, 0, true },
                { 2, FROM_CLIENT, 1, FRAME_CHECKED, 0, false },
                { 2, FROM_CLIENT, 1, 5, 0, false },
                { 0, FROM_CLIENT, 1, 255, 0, false },
                { 2, FROM_CLIENT, 1, FRAME_OUTPUT, 0, false },
                { 2, FROM_DAEMON, 1, FRAME_REQUEST, 0, false },
                { 2, FROM_DAEMON, 1, FRAME_OUTPUT, 0, true },
                { 1, FROM_DAEMON, 1, FRAME_OUTPUT, 0, false },
                { FRAME_OUTPUT_MAX + 1, FROM_DAEMON, 1, FRAME_OUTPUT, 0, true },
                { FRAME_OUTPUT_MAX + 2, FROM_DAEMON, 1, FRAME_OUTPUT, 0, false },
                { FRAME_RECORD_MAX, FROM_DAEMON, 1, FRAME_RECORD, 0, true },
                { 2, FROM_DAEMON, 0, FRAME_RECORD, 0, false },
                { FRAME_STATUS_MAX + 1, FROM_DAEMON, 1, FRAME_STATUS, 0, false },
                { 2, FROM_DAEMON, 0, FRAME_ERROR, 0, true },
                { FRAME_ERROR_MAX + 1, FROM_DAEMON, 0, FRAME_ERROR, 0, false },
        };
        for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
                uint8_t bytes[FRAME_HEADER];
                struct frame frame = { .len = (uint32_t)heads[i].len, .id = heads[i].id, .type = heads[i].type }, got;
                struct csn_error err = { 0 };
                frame_put(bytes, &frame);
                bytes[9 + i % 3] = heads[i].byte;
                int rc = frame_get(bytes, heads[i].from, &got, &err);
                CHECK(heads[i].good ? rc == 0 && got.len == frame.len && got.id == frame.id && got.type == frame.type
                                    : rc == -CSN_E_PROTOCOL && err.text[0]);
        }
}

static void a_wrong_header_ends_the_stream(void)
{
        struct frame_reader reader;
        struct buf in, out;
        buf_init(&in, 100);
        buf_init(&out, 100);
        add_frame(&in, FRAME_CANCEL, 1, "x");
        frame_reader_init(&reader, FROM_CLIENT);
        read_all(&reader, &in, 5, &out);
        CHECK(strcmp(out.bytes, "error") == 0);
        frame_reader_done(&reader);
        buf_done(&in);
        buf_done(&out);
}

static void errors_survive_and_odd_bytes_in_them_too(void)
{
        struct csn_error error, got;
        struct buf buf;
        buf_init(&buf, FRAME_ERROR_MAX);
        err_field(&error, "/files", "%s", "");
        error.code = CSN_E_BUSY;
        snprintf(error.text, sizeof error.text, "no room for \"a\xff\x01\" here"); /* as another process may send it */
        CHECK(frame_put_error(&buf, &error));
        frame_get_error(buf.bytes, buf.len, &got);
        CHECK(got.code == CSN_E_BUSY && strcmp(got.field, "/files") == 0);
        CHECK(strcmp(got.text, "no room for \"a\xef\xbf\xbd\x01\" here") == 0);
        buf_done(&buf);

        buf_init(&buf, FRAME_ERROR_MAX);
        memset(error.text, 1, sizeof error.text - 1);
        CHECK(frame_put_error(&buf, &error));   /* the longest text there can be */
        buf_done(&buf);
}

static void what_is_no_error_is_one_of_the_protocol(void)
{
        static const char *const texts[] = { "", "{", "[]", "{}", "{\"code\":1,\"text\":[]}",
                "{\"code\":\"nosuch\",\"text\":\"x\"}" };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct csn_error got;
                frame_get_error(texts[i], strlen(texts[i]), &got);
                CHECK(got.code == CSN_E_PROTOCOL && got.text[0] && got.field[0] == 0);
        }
}

int main(void)
{
        RUN(frames_survive_whatever_way_they_are_cut);
        RUN(a_payload_that_is_skipped_costs_nothing);
        RUN(each_rule_is_kept);
        RUN(a_wrong_header_ends_the_stream);
        RUN(errors_survive_and_odd_bytes_in_them_too);
        RUN(what_is_no_error_is_one_of_the_protocol);
        return tap_done();
}
