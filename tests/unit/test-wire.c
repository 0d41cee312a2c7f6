/* wire: what goes in comes out, and what is malformed is refused at every byte. */
#include "wire/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tap.h"

static struct wire_shape sample_shape(void)
{
        struct wire_shape shape = { .label = "run-1_A" };
        uint64_t n = 1000;
#define N(name) shape.name = n++;
        WIRE_SHAPE_NUMBERS(N)
#undef N
        shape.flags = WIRE_PROC_STRICT;
        shape.devices = 5;
        shape.volumes_n = 2;
        shape.volumes[0] = (struct wire_volume){ 1, UINT64_MAX, 1, "data" };
        shape.volumes[1] = (struct wire_volume){ 2, 3, 0, "0.a_b-c" };
        return shape;
}

static struct wire_program sample_program(void)
{
        static char *argv[] = { "/usr/bin/python3", "", "x y", NULL };
        static char *env[] = { "A=1", "EMPTY=", NULL };
        return (struct wire_program){ .argv = argv, .argv_n = 3, .env = env, .env_n = 2 };
}

static const uint8_t *body_of(const struct buf *buf)
{
        return (const uint8_t *)buf->bytes + WIRE_HEADER;
}

static void a_shape_survives_the_journey(void)
{
        struct wire_shape in = sample_shape(), out;
        struct wire_header header;
        struct buf buf;
        struct arena arena = { 0 };
        struct csn_error err;
        buf_init(&buf, WIRE_MAX);
        CHECK(wire_put_shape(&buf, 77, &in));
        CHECK(wire_get_header((uint8_t *)buf.bytes, buf.len, &header, &err) == 0);
        CHECK(header.op == WIRE_PREPARE && header.job == 77);
        CHECK(wire_get_shape(body_of(&buf), header.len, &arena, &out, &err) == 0);
        bool same = true;
#define N(name) same = same && in.name == out.name;
        WIRE_SHAPE_NUMBERS(N)
#undef N
        CHECK(same && strcmp(out.label, in.label) == 0);
        for (size_t i = 0; i < in.volumes_n; i++) {
#define N(name) same = same && in.volumes[i].name == out.volumes[i].name;
                WIRE_VOLUME_NUMBERS(N)
#undef N
                CHECK(same && strcmp(out.volumes[i].name, in.volumes[i].name) == 0);
        }
        arena_done(&arena);
        buf_done(&buf);
}

static bool is_taken(const struct wire_shape *shape)
{
        struct wire_shape out;
        struct buf buf;
        struct arena arena = { 0 };
        struct csn_error err;
        buf_init(&buf, WIRE_MAX);
        CHECK(wire_put_shape(&buf, 1, shape));
        bool taken = wire_get_shape(body_of(&buf), buf.len - WIRE_HEADER, &arena, &out, &err) == 0;
        arena_done(&arena);
        buf_done(&buf);
        return taken;
}

static void a_supervisor_takes_no_volume_that_leads_out(void)
{
        static const char *const names[] = { "", ".", "..", "../x", "/x", "a/b", ".a", "-a", "A", "a b", "a\n" };
        struct wire_shape shape = sample_shape();
        struct csn_error err;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                snprintf(shape.volumes[1].name, sizeof shape.volumes[1].name, "%s", names[i]);
                CHECK(!is_taken(&shape) && wire_volume_name_check(names[i], &err) == -CSN_E_INPUT);
        }
        shape = sample_shape();
        CHECK(is_taken(&shape));
        shape.volumes[0].read_only = 2;
        CHECK(!is_taken(&shape));
        shape = sample_shape();
        shape.volumes_n = WIRE_VOLUMES_MAX + 1;
        CHECK(!is_taken(&shape));
        shape = sample_shape();
        shape.devices = 1ULL << WIRE_DEVICES_MAX;
        CHECK(!is_taken(&shape));
}

static void an_order_of_a_volume_survives_the_journey(void)
{
        const struct wire_volume_order in = { 1, UINT64_MAX, 8 * MIB };
        struct wire_volume_order out = { 0 };
        struct wire_header header;
        struct buf buf;
        struct csn_error err;
        buf_init(&buf, WIRE_MAX);
        CHECK(wire_put_volume(&buf, 9, &in) && wire_get_header((uint8_t *)buf.bytes, buf.len, &header, &err) == 0);
        CHECK(header.op == WIRE_VOLUME && header.job == 9);
        CHECK(wire_get_volume(body_of(&buf), header.len, &out, &err) == 0);
        CHECK(out.high == in.high && out.low == in.low && out.bytes == in.bytes);
        CHECK(wire_get_volume(body_of(&buf), header.len - 1, &out, &err) == -CSN_E_PROTOCOL);
        buf_done(&buf);
}

static void limits_and_joins_survive_the_journey(void)
{
        struct wire_limits in, out;
        struct buf buf;
        struct csn_error err;
        uint64_t n = 5;
        uint32_t zygote = 0;
#define N(name) in.name = n++;
        WIRE_LIMITS_NUMBERS(N)
#undef N
        buf_init(&buf, WIRE_MAX);
        CHECK(wire_put_limits(&buf, WIRE_START, 1, &in) &&
                wire_get_limits(body_of(&buf), buf.len - WIRE_HEADER, &out, &err) == 0);
        CHECK(memcmp(&in, &out, sizeof in) == 0);
        buf_done(&buf);
        CHECK(wire_put_number(&buf, WIRE_EXITING, 1, 255) &&
                wire_get_number(body_of(&buf), buf.len - WIRE_HEADER, "EXITING", 255, &zygote, &err) == 0 &&
                zygote == 255);
        buf_done(&buf);
        CHECK(wire_put_number(&buf, WIRE_EXITING, 1, 256) &&
                wire_get_number(body_of(&buf), buf.len - WIRE_HEADER, "EXITING", 255, &zygote, &err) ==
                        -CSN_E_PROTOCOL);
        buf_done(&buf);
        CHECK(wire_put_number(&buf, WIRE_JOIN, 1, 42) &&
                wire_get_number(body_of(&buf), buf.len - WIRE_HEADER, "JOIN", UINT32_MAX, &zygote, &err) == 0 &&
                zygote == 42);
        buf_done(&buf);
}

static void a_program_survives_the_journey(void)
{
        struct wire_program in = sample_program(), out;
        struct buf buf;
        struct arena arena = { 0 };
        struct csn_error err;
        buf_init(&buf, WIRE_MAX);
        CHECK(wire_put_program(&buf, &in));
        CHECK(wire_get_program((uint8_t *)buf.bytes, buf.len, &arena, &out, &err) == 0);
        CHECK(out.argv_n == 3 && out.env_n == 2 && strcmp(out.argv[2], "x y") == 0 && out.argv[3] == NULL);
        CHECK(strcmp(out.env[1], "EMPTY=") == 0);
        buf_done(&buf);
        struct wire_shape shape = { .memory_bytes = 7, .domain = 3, .label = "zygote" }, got;
        CHECK(wire_put_zygote(&buf, 3, &shape, &in));
        CHECK(wire_get_zygote(body_of(&buf), buf.len - WIRE_HEADER, &arena, &got, &out, &err) == 0 && out.argv_n == 3);
        CHECK(got.memory_bytes == 7 && got.domain == 3 && strcmp(got.label, "zygote") == 0);
        buf_done(&buf);
        shape.domain = 1ULL << 32;
        CHECK(wire_put_zygote(&buf, 3, &shape, &in));
        CHECK(wire_get_zygote(body_of(&buf), buf.len - WIRE_HEADER, &arena, &got, &out, &err) == -CSN_E_PROTOCOL);
        arena_done(&arena);
        buf_done(&buf);
}

static void a_file_comes_with_its_content_or_without(void)
{
        struct wire_file in = { .mode = 0644, .name = "a/b", .content = "x\0y", .content_len = 3 }, out;
        struct buf buf;
        struct arena arena = { 0 };
        struct csn_error err;
        buf_init(&buf, WIRE_MAX);
        CHECK(wire_put_file(&buf, &in) && wire_get_file((uint8_t *)buf.bytes, buf.len, &arena, &out, &err) == 0);
        CHECK(out.mode == 0644 && strcmp(out.name, "a/b") == 0 && out.content_len == 3 &&
                memcmp(out.content, "x\0y", 3) == 0);
        buf_done(&buf);
        in.content_len = 0;
        CHECK(wire_put_file(&buf, &in) && wire_get_file((uint8_t *)buf.bytes, buf.len, &arena, &out, &err) == 0);
        CHECK(out.content != NULL && out.content_len == 0);
        buf_done(&buf);
        in.content = NULL;
        CHECK(wire_put_file(&buf, &in) && wire_get_file((uint8_t *)buf.bytes, buf.len, &arena, &out, &err) == 0 &&
                !out.content);
        buf_done(&buf);
        in.name = "../x";
        CHECK(wire_put_file(&buf, &in) &&
                wire_get_file((uint8_t *)buf.bytes, buf.len, &arena, &out, &err) == -CSN_E_PROTOCOL);
        arena_done(&arena);
        buf_done(&buf);
}

static void a_message_cut_anywhere_is_refused(void)
{
        struct wire_shape in = sample_shape(), out;
        struct wire_program program = sample_program(), program_out;
        struct buf buf, packet;
        struct csn_error err;
        unsigned accepted = 0;
        buf_init(&buf, WIRE_MAX);
        buf_init(&packet, WIRE_MAX);
        wire_put_shape(&buf, 1, &in);
        wire_put_program(&packet, &program);
        struct arena arena = { 0 };
        for (size_t len = 0; len < buf.len - WIRE_HEADER; len++)
                accepted += wire_get_shape(body_of(&buf), len, &arena, &out, &err) == 0;
        for (size_t len = 0; len < packet.len; len++)
                accepted += wire_get_program((uint8_t *)packet.bytes, len, &arena, &program_out, &err) == 0;
        CHECK(accepted == 0);
        struct wire_header header;
        for (size_t len = 0; len < buf.len; len++)
                accepted += wire_get_header((uint8_t *)buf.bytes, len, &header, &err) == 0;
        CHECK(accepted == 0);
        arena_done(&arena);
        buf_done(&packet);
        buf_done(&buf);
}

static void labels_and_programs_are_checked(void)
{
        static char *relative[] = { "python3", NULL };
        static const char *const bad[] = { "", "a/b", "..", "a b", "x\n" };
        struct csn_error err;
        struct wire_shape out;
        struct wire_program program = { .argv = relative, .argv_n = 1 };
        struct buf buf;
        struct arena arena = { 0 };
        buf_init(&buf, WIRE_MAX);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct wire_shape in = sample_shape();
                in.label = (char *)(uintptr_t)bad[i];
                wire_put_shape(&buf, 1, &in);
                CHECK(wire_get_shape(body_of(&buf), buf.len - WIRE_HEADER, &arena, &out, &err) == -CSN_E_PROTOCOL);
                buf_done(&buf);
        }
        wire_put_program(&buf, &program);
        CHECK(wire_get_program((uint8_t *)buf.bytes, buf.len, &arena, &program, &err) == -CSN_E_PROTOCOL);
        arena_done(&arena);
        buf_done(&buf);
}

static void exits_boundaries_and_refusals_survive(void)
{
        struct wire_exit exit_in = { .status = 256, .has_status = 1, .cpu_us = 5, .oom_kills = 2 }, exit_out;
        struct wire_boundary boundary_in = { .namespaces = 7, .host_uid = 1879048192, .seccomp = 1 }, boundary_out;
        struct csn_error error_in, error_out, err;
        struct buf buf;
        err_field(&error_in, "files", "two files have the name x");
        buf_init(&buf, WIRE_MAX);
        CHECK(wire_put_exit(&buf, 3, &exit_in));
        CHECK(wire_get_exit((uint8_t *)buf.bytes + WIRE_HEADER, buf.len - WIRE_HEADER, &exit_out, &err) == 0);
        CHECK(memcmp(&exit_in, &exit_out, sizeof exit_in) == 0);
        buf_done(&buf);
        struct wire_stats seen_in = { .cpu_us = 7, .memory_bytes = 8, .processes = 9 }, seen_out;
        CHECK(wire_put_stats(&buf, 3, &seen_in) &&
                wire_get_stats(body_of(&buf), buf.len - WIRE_HEADER, &seen_out, &err) == 0);
        CHECK(memcmp(&seen_in, &seen_out, sizeof seen_in) == 0);
        buf_done(&buf);
        CHECK(wire_put_boundary(&buf, WIRE_READY, 3, &boundary_in));
        CHECK(wire_get_boundary((uint8_t *)buf.bytes + WIRE_HEADER, buf.len - WIRE_HEADER, &boundary_out, &err) == 0);
        CHECK(memcmp(&boundary_in, &boundary_out, sizeof boundary_in) == 0);
        buf_done(&buf);
        CHECK(wire_put_error(&buf, WIRE_REFUSED, 3, &error_in));
        CHECK(wire_get_error((uint8_t *)buf.bytes + WIRE_HEADER, buf.len - WIRE_HEADER, &error_out, &err) == 0);
        CHECK(error_out.code == CSN_E_INPUT && strcmp(error_out.field, "files") == 0);
        CHECK(strcmp(error_out.text, error_in.text) == 0);
        buf_done(&buf);
}

static void a_message_too_long_does_not_fit(void)
{
        char *big = mem_alloc(WIRE_MAX + 10);
        memset(big, 'a', WIRE_MAX + 9);
        char *argv[] = { big, NULL };
        struct wire_program in = { .argv = argv, .argv_n = 1 };
        struct buf buf;
        buf_init(&buf, WIRE_MAX);
        CHECK(!wire_put_program(&buf, &in));
        buf_done(&buf);
        free(big);
}

static void names_that_people_use_are_allowed(void)
{
        static const char *const good[] = { "data.csv", "[Video] Template (1) \xc3\xa9.pptx", "a/b/c.txt",
                "\xc3\xbc (1).txt", ".env", "...", "a..b", "-rf", "with 'quotes' \"and\" $(x)", "\xf0\x9f\x98\x80" };
        struct csn_error err;
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                CHECK(wire_name_check(good[i], strlen(good[i]), &err) == 0);
}

static void names_that_leave_or_deceive_are_refused(void)
{
        static const char *const bad[] = { "", "/etc/passwd", "../x", "a/../b", "a/..", "..", ".", "a//b", "a/",
                "a/./b", "x\ny", "x\x1b[31m", "\xff", "\xc2\x85", "a\x7f" };
        struct csn_error err;
        static const char turned[] = { 'x', (char)0xe2, (char)0x80, (char)0xae, 'g', 'p', 'j', 0 };   /* U+202E */
        char deep[200], part[300];
        CHECK(wire_name_check(turned, strlen(turned), &err) == -CSN_E_INPUT);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                CHECK(wire_name_check(bad[i], strlen(bad[i]), &err) == -CSN_E_INPUT);
        CHECK(wire_name_check("a\0b", 3, &err) == -CSN_E_INPUT);
        for (size_t i = 0; i < 33; i++)
                memcpy(deep + 2 * i, "a/", 2);
        CHECK(wire_name_check(deep, 65, &err) == -CSN_E_INPUT && wire_name_check(deep, 63, &err) == 0);
        memset(part, 'p', sizeof part);
        CHECK(wire_name_check(part, 255, &err) == 0 && wire_name_check(part, 256, &err) == -CSN_E_INPUT);
}

static void what_a_peer_does_not_read_waits_in_order(void)
{
        int pair[2], fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct loop *loop;
        struct csn_error err;
        struct watch watch = { 0 };
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0 &&
                loop_new(&loop, &err) == 0);
        CHECK(loop_watch(loop, &watch, pair[0], EPOLLIN, &err) == 0);
        struct send_queue instance = { .loop = loop, .watch = &watch };
        uint32_t sent = 0;
        static uint8_t bytes[WIRE_MAX];
        for (; instance.n < 100; sent++) {
                uint8_t message[4096] = { (uint8_t)sent, (uint8_t)(sent >> 8) };
                if (send_queue_put(&instance, message, sizeof message, &pair[1], sent % 2) < 0)
                        break;
        }
        CHECK(instance.n == 100);
        for (uint32_t i = 0; i < sent; i++) {
                while (wire_receive(pair[1], bytes, fds, &fds_n) != 4096)
                        if (send_queue_flush(&instance) < 0)
                                break;
                CHECK((bytes[0] | bytes[1] << 8) == (int)i && fds_n == i % 2);
                fd_close(&fds[0]);
        }
        CHECK(instance.n == 0 && wire_receive(pair[1], bytes, fds, &fds_n) == -1);
        loop_unwatch(loop, &watch);
        loop_free(loop);
        fd_close(&pair[0]);
        fd_close(&pair[1]);
}

static void descriptors_travel_and_surplus_is_an_attack(void)
{
        int pair[2], fds[WIRE_FDS_MAX], send[WIRE_FDS_MAX];
        size_t n;
        static uint8_t bytes[WIRE_MAX];
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        for (size_t i = 0; i < WIRE_FDS_MAX; i++)
                send[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        CHECK(wire_send(pair[0], "x", 1, send, 2) == 0);
        CHECK(wire_receive(pair[1], bytes, fds, &n) == 1 && n == 2 && fds[2] == -1);
        CHECK(fcntl(fds[0], F_GETFD) == FD_CLOEXEC);
        close(fds[0]), close(fds[1]);
        char *big = mem_alloc(WIRE_MAX + 1);
        CHECK(wire_send(pair[0], big, WIRE_MAX + 1, send, 1) == 0);
        CHECK(wire_receive(pair[1], bytes, fds, &n) == -1 && errno == EPROTO && n == 0);
        free(big);
        close(pair[0]);
        CHECK(wire_receive(pair[1], bytes, fds, &n) == 0);
        close(pair[1]);
        for (size_t i = 0; i < WIRE_FDS_MAX; i++)
                close(send[i]);
}

/* ---- the private channel ---- */

static int feed(struct channel *channel, int type, int flags, const char *payload, size_t len)
{
        static uint8_t frame[CHANNEL_FRAME_MAX + 100];
        struct csn_error err;
        memcpy(frame, "CSN1", 4);
        frame[4] = (uint8_t)type, frame[5] = (uint8_t)flags, frame[6] = frame[7] = 0;
        for (int i = 0; i < 4; i++)
                frame[8 + i] = (uint8_t)(len >> (8 * i));
        memcpy(frame + CHANNEL_HEADER, payload, len);
        return channel_take(channel, frame, CHANNEL_HEADER + len, &err);
}

/* A peer that ends with unread packets; both ways to receive. */
static void packets_before_an_end_are_received(void)
{
        uint8_t bytes[WIRE_MAX];
        int pair[2], fds[WIRE_FDS_MAX];
        size_t n;
        for (int way = 0; way < 2; way++) {
                CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
                CHECK(wire_send(pair[0], "unread", 6, NULL, 0) == 0 && wire_send(pair[1], "one", 3, NULL, 0) == 0);
                fd_close(&pair[1]);
                ssize_t first = way ? wire_receive(pair[0], bytes, fds, &n)
                                    : wire_receive_packet(pair[0], bytes, sizeof bytes, 0);
                CHECK(first == 3 && memcmp(bytes, "one", 3) == 0);
                CHECK(wire_receive_packet(pair[0], bytes, sizeof bytes, 0) == 0);
                fd_close(&pair[0]);
        }
}

static void a_runner_that_keeps_to_the_order_is_believed(void)
{
        struct channel channel;
        channel_init(&channel, 1000);
        CHECK(feed(&channel, CHANNEL_HELLO, 0, "{}", 2) == 0 && channel.state == CHANNEL_READY);
        CHECK(feed(&channel, CHANNEL_STARTED, 0, "", 0) == 0 && channel.state == CHANNEL_RUNNING);
        CHECK(feed(&channel, CHANNEL_VALUE, CHANNEL_MORE, "{\"a\"", 4) == 0);
        CHECK(feed(&channel, CHANNEL_VALUE, 0, ":1}", 3) == 0);
        CHECK(strcmp(channel.part[CHANNEL_VALUE].bytes, "{\"a\":1}") == 0);
        CHECK(feed(&channel, CHANNEL_DONE, 0, "", 0) == 0 && channel.state == CHANNEL_ENDED &&
                channel_exit_status(&channel) == -1);
        CHECK(feed(&channel, CHANNEL_EXITING, 0, "42", 2) == 0 && channel.state == CHANNEL_GONE &&
                channel_exit_status(&channel) == 42);
        channel_done(&channel);
}

static void an_exit_status_that_is_none_is_not_believed(void)
{
        static const char *const texts[] = { "", "256", "999", "-1", "1x", " 1" };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct channel channel;
                channel_init(&channel, 1000);
                feed(&channel, CHANNEL_HELLO, 0, "{}", 2);
                feed(&channel, CHANNEL_STARTED, 0, "", 0);
                feed(&channel, CHANNEL_DONE, 0, "", 0);
                CHECK(feed(&channel, CHANNEL_EXITING, 0, texts[i], strlen(texts[i])) == 0 &&
                        channel_exit_status(&channel) == -1);
                channel_done(&channel);
        }
}

static void frames_out_of_order_break_the_channel(void)
{
        static const int orders[][4] = { { CHANNEL_STARTED }, { CHANNEL_VALUE }, { CHANNEL_HELLO, CHANNEL_HELLO },
                { CHANNEL_HELLO, CHANNEL_DONE }, { CHANNEL_HELLO, CHANNEL_STARTED, CHANNEL_SYNTAX },
                { CHANNEL_HELLO, CHANNEL_SYNTAX, CHANNEL_STARTED },
                { CHANNEL_HELLO, CHANNEL_STARTED, CHANNEL_DONE, CHANNEL_VALUE },
                { CHANNEL_HELLO, CHANNEL_STARTED, CHANNEL_VALUE, CHANNEL_VALUE }, { 0 }, { CHANNEL_EXITING },
                { CHANNEL_HELLO, CHANNEL_STARTED, CHANNEL_EXITING },
                { CHANNEL_HELLO, CHANNEL_STARTED, CHANNEL_EXECUTE }, { CHANNEL_TYPES }, { 255 } };
        for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
                struct channel channel;
                int rc = 0;
                channel_init(&channel, 1000);
                for (size_t k = 0; k < 4 && rc == 0; k++)
                        if (k == 0 || orders[i][k])
                                rc = feed(&channel, orders[i][k], 0, "x", orders[i][k] == CHANNEL_STARTED ? 0 : 1);
                CHECK(rc == -CSN_E_PROTOCOL && channel.state == CHANNEL_BROKEN);
                CHECK(feed(&channel, CHANNEL_HELLO, 0, "{}", 2) == -CSN_E_PROTOCOL);
                channel_done(&channel);
        }
}

static void bad_headers_and_sizes_break_the_channel(void)
{
        struct csn_error err;
        static char big[CHANNEL_FRAME_MAX];
        struct channel channel;
        channel_init(&channel, 1000);
        CHECK(channel_take(&channel, (const uint8_t *)"junk", 4, &err) == -CSN_E_PROTOCOL);
        channel_done(&channel);
        channel_init(&channel, 1000);
        CHECK(feed(&channel, CHANNEL_HELLO, 2, "{}", 2) == -CSN_E_PROTOCOL);
        channel_done(&channel);
        channel_init(&channel, 1000);
        CHECK(feed(&channel, CHANNEL_HELLO, 0, big, sizeof big - CHANNEL_HEADER) == -CSN_E_PROTOCOL);
        channel_done(&channel);
        channel_init(&channel, 1000);
        feed(&channel, CHANNEL_HELLO, 0, "{}", 2);
        feed(&channel, CHANNEL_STARTED, 0, "", 0);
        int rc = 0;
        for (int i = 0; i < 100 && rc == 0; i++)
                rc = feed(&channel, CHANNEL_VALUE, CHANNEL_MORE, big, 1000);
        CHECK(rc == -CSN_E_PROTOCOL && channel.part[CHANNEL_VALUE].len <= 2 * 1000 + 4096);
        channel_done(&channel);
}

static void endless_empty_frames_break_the_channel(void)
{
        struct channel channel;
        int rc = 0;
        channel_init(&channel, 1000);
        feed(&channel, CHANNEL_HELLO, 0, "{}", 2);
        feed(&channel, CHANNEL_STARTED, 0, "", 0);
        for (int i = 0; i < 100000 && rc == 0; i++)
                rc = feed(&channel, CHANNEL_VALUE, CHANNEL_MORE, "", 0);
        CHECK(rc == -CSN_E_PROTOCOL);
        channel_done(&channel);
}

static void a_role_talks_for_as_long_as_it_runs(void)
{
        static char big[CHANNEL_FRAME_MAX];
        struct channel channel;
        struct buf *part = &channel.part[CHANNEL_MESSAGE];
        channel_init(&channel, 1000);
        channel.has_messages = true;
        feed(&channel, CHANNEL_HELLO, 0, "{}", 2);
        CHECK(feed(&channel, CHANNEL_STARTED, 0, "", 0) == 0);
        for (int i = 0; i < 10000; i++) {
                if (feed(&channel, CHANNEL_MESSAGE, CHANNEL_MORE, "E{", 2) < 0 ||
                        feed(&channel, CHANNEL_MESSAGE, 0, "}", 1) < 0 || channel.pending)
                        CHECK(!"a message is taken");
                CHECK(part->len == 3 && memcmp(part->bytes, "E{}", 3) == 0);
                part->len = 0;
        }
        CHECK(feed(&channel, CHANNEL_VALUE, 0, "1", 1) == 0 && feed(&channel, CHANNEL_MESSAGE, 0, "E{}", 3) == 0);
        int rc = 0;
        for (size_t i = 0; i < 2 * CHANNEL_MESSAGE_MAX / sizeof big && rc == 0; i++)
                rc = feed(&channel, CHANNEL_MESSAGE, CHANNEL_MORE, big, sizeof big - CHANNEL_HEADER);
        CHECK(rc == -CSN_E_PROTOCOL && part->len <= CHANNEL_MESSAGE_MAX);
        channel_done(&channel);
}

static void who_has_no_role_does_not_talk(void)
{
        for (int has_messages = 0; has_messages < 2; has_messages++) {
                struct channel channel;
                channel_init(&channel, 1000);
                channel.has_messages = has_messages;
                feed(&channel, CHANNEL_HELLO, 0, "{}", 2);
                if (!has_messages)
                        feed(&channel, CHANNEL_STARTED, 0, "", 0);
                CHECK(feed(&channel, CHANNEL_MESSAGE, 0, "E{}", 3) ==
                        -CSN_E_PROTOCOL); /* without a role, or too early */
                channel_done(&channel);
        }
}

int main(void)
{
        RUN(a_shape_survives_the_journey);
        RUN(a_supervisor_takes_no_volume_that_leads_out);
        RUN(an_order_of_a_volume_survives_the_journey);
        RUN(limits_and_joins_survive_the_journey);
        RUN(a_program_survives_the_journey);
        RUN(a_file_comes_with_its_content_or_without);
        RUN(a_message_cut_anywhere_is_refused);
        RUN(labels_and_programs_are_checked);
        RUN(exits_boundaries_and_refusals_survive);
        RUN(a_message_too_long_does_not_fit);
        RUN(names_that_people_use_are_allowed);
        RUN(names_that_leave_or_deceive_are_refused);
        RUN(what_a_peer_does_not_read_waits_in_order);
        RUN(descriptors_travel_and_surplus_is_an_attack);
        RUN(packets_before_an_end_are_received);
        RUN(a_runner_that_keeps_to_the_order_is_believed);
        RUN(an_exit_status_that_is_none_is_not_believed);
        RUN(frames_out_of_order_break_the_channel);
        RUN(bad_headers_and_sizes_break_the_channel);
        RUN(endless_empty_frames_break_the_channel);
        RUN(a_role_talks_for_as_long_as_it_runs);
        RUN(who_has_no_role_does_not_talk);
        return tap_done();
}
