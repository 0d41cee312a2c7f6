/* base: what everything stands on. */
#include "base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "tap.h"

static void an_error_carries_code_errno_and_text(void)
{
        struct csn_error err;
        CHECK(err_set(&err, CSN_E_SYSTEM, ENOENT, "open %s", "x") == -CSN_E_SYSTEM);
        CHECK(strcmp(err.text, "open x: No such file or directory") == 0);
        CHECK(err.sys == ENOENT);
        CHECK(err_wrap(&err, "limit job %d", 7) == -CSN_E_SYSTEM);
        CHECK(strcmp(err.text, "limit job 7: open x: No such file or directory") == 0);
}

static void a_long_error_is_cut_and_stays_a_text(void)
{
        struct csn_error err;
        char *text = mem_alloc(2000);
        memset(text, 'a', 1999);
        err_set(&err, CSN_E_INPUT, EINVAL, "%s", text);
        CHECK(strlen(err.text) == sizeof err.text - 1);
        err_wrap(&err, "%s", text);
        CHECK(strlen(err.text) == sizeof err.text - 1);
        free(text);
}

static void an_error_is_text_wherever_another_s_was_cut(void)
{
        struct csn_error err;
        char text[sizeof err.text + 10] = "x", field[sizeof err.field + 10] = "/";
        for (size_t i = 1; i + 3 <= sizeof text; i += 2)
                memcpy(text + i, "\xc3\xa9", 3);
        for (size_t i = 1; i + 3 <= sizeof field; i += 2)
                memcpy(field + i, "\xc3\xa9", 3);
        err_set(&err, CSN_E_INPUT, 0, "no \"%.2s\"; \xff", text);
        CHECK(strcmp(err.text, "no \"x?\"; ?") == 0);
        err_field(&err, field, "%s", text);
        CHECK(utf8_valid(err.text, strlen(err.text)) && strlen(err.text) == sizeof err.text - 1);
        CHECK(utf8_valid(err.field, strlen(err.field)) && strlen(err.field) == sizeof err.field - 1);
        err_wrap(&err, "%.4s", text);
        CHECK(utf8_valid(err.text, strlen(err.text)));
}

static void every_code_has_a_name_of_its_own(void)
{
        static const int codes[] = {
#define ERROR(name, number, text, http, exit, meaning) CSN_E_##name,
#include <caisson/errors.def>
#undef ERROR
        };
        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
                CHECK(strcmp(csn_code_name(codes[i]), "unknown") != 0);
                CHECK(csn_code_http(codes[i]) >= 400 && csn_code_exit(codes[i]) > 0);
                for (size_t k = 0; k < i; k++)
                        CHECK(codes[i] != codes[k] && strcmp(csn_code_name(codes[i]), csn_code_name(codes[k])) != 0);
        }
        CHECK(strcmp(csn_code_name(9999), "unknown") == 0);
}

static void a_buffer_stops_at_its_ceiling(void)
{
        struct buf buf;
        buf_init(&buf, 10);
        CHECK(buf_add(&buf, "12345", 5));
        CHECK(buf_printf(&buf, "%d", 67890));
        CHECK(!buf_add(&buf, "x", 1) && buf.len == 10);
        CHECK(!buf_add(&buf, "x", SIZE_MAX));
        CHECK(!buf_printf(&buf, "%s", "x"));
        CHECK(strcmp(buf.bytes, "1234567890") == 0);
        buf_done(&buf);
        buf_done(&buf);
}

/* Every total length around the borders, fed in pieces of every small size. */
static void a_capture_keeps_head_and_tail(void)
{
        for (size_t max = 0; max <= 9; max++)
                for (size_t total = 0; total <= 40; total++)
                        for (size_t piece = 1; piece <= 11; piece++) {
                                struct capture cap;
                                struct arena arena = { 0 };
                                char all[64];
                                size_t len, cut;
                                for (size_t i = 0; i < total; i++)
                                        all[i] = (char)('A' + i);
                                capture_init(&cap, max);
                                for (size_t at = 0; at < total; at += piece)
                                        capture_add(&cap, all + at, total - at < piece ? total - at : piece);
                                const char *text = capture_text(&cap, &arena, &len, &cut);
                                bool good = cap.total == total && len == (total < max ? total : max);
                                good = good && memcmp(text, all, cut) == 0;
                                good = good && memcmp(text + cut, all + total - (len - cut), len - cut) == 0;
                                if (!good)
                                        CHECK(good);
                                capture_done(&cap);
                                arena_done(&arena);
                        }
        CHECK(true);
}

static void sizes_are_read_as_people_write_them(void)
{
        static const struct { const char *text; uint64_t value; } good[] = {
                { "0", 0 }, { "1000", 1000 }, { "512MiB", 512 * MIB }, { "512Mi", 512 * MIB }, { "1.5GiB", 1536 * MIB },
                { "64k", 64000 }, { "64K", 64000 }, { "64KiB", 65536 }, { "100M", 100000000 }, { "100MB", 100000000 },
                { "2G", 2000000000 }, { "7B", 7 }, { "0.5KiB", 512 }, { "1 MiB", MIB },
        };
        static const char *const bad[] = { "", "x", "-1", "1MiBx", "MiB", ".", "1..5", "99999999999999999999", "1e3",
                                           "18446744073709551615GiB", " 1", "1  k" };
        uint64_t value;
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                CHECK(size_parse(good[i].text, &value) && value == good[i].value);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                CHECK(!size_parse(bad[i], &value));
}

static void durations_and_cores_are_read_exactly(void)
{
        uint64_t value;
        CHECK(duration_parse("30", &value) && value == 30000);
        CHECK(duration_parse("30s", &value) && value == 30000);
        CHECK(duration_parse("0.1s", &value) && value == 100);
        CHECK(duration_parse("250ms", &value) && value == 250);
        CHECK(duration_parse("2min", &value) && value == 120000);
        CHECK(duration_parse("1.5h", &value) && value == 5400000);
        CHECK(duration_parse("30d", &value) && value == 2592000000);
        CHECK(duration_parse("0.5 d", &value) && value == 43200000);
        CHECK(!duration_parse("99999999999999d", &value) && !duration_parse("1D", &value) &&
                !duration_parse("1day", &value));
        CHECK(!duration_parse("5 parsecs", &value));
        CHECK(cores_parse("1", &value) && value == 1000);
        CHECK(cores_parse("0.5", &value) && value == 500);
        CHECK(cores_parse("500m", &value) && value == 500);
        CHECK(!cores_parse("half", &value));
}

static void printed_numbers_are_read_back(void)
{
        static const uint64_t values[] = { 0, 1, 999, 1000, 1024, 1500, 65536, 500, 30000, 1536 * MIB, 5 * GIB, 1000000,
                123456789 };
        for (size_t i = 0; i < ARRAY_LEN(values); i++) {
                char text[40];
                uint64_t value;
                size_print(values[i], text, sizeof text);
                CHECK(size_parse(text, &value) && value == values[i]);
                duration_print(values[i], text, sizeof text);
                CHECK(duration_parse(text, &value) && value == values[i]);
                cores_print(values[i], text, sizeof text);
                CHECK(cores_parse(text, &value) && value == values[i]);
        }
}

static void utf8_is_rfc_3629(void)
{
        CHECK(utf8_valid("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 10));
        static const char *const bad[] = { "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xc3", "\xe2\x82",
                                           "\xf0\x8f\xbf\xbf", "\x80" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                CHECK(!utf8_valid(bad[i], strlen(bad[i])));
}

static void a_character_that_is_not_whole_yet_is_told_apart_from_what_is_none(void)
{
        CHECK(utf8_whole("", 0) == 0);
        CHECK(utf8_whole("ab", 2) == 2);
        CHECK(utf8_whole("a\xc3", 2) == 1 && utf8_whole("a\xc3\xa4", 3) == 3);
        CHECK(utf8_whole("a\xf0\x9f\x98", 4) == 1 && utf8_whole("\xf0\x9f\x98\x80", 4) == 4);
        CHECK(utf8_whole("a\xff", 2) == 2 && utf8_whole("\x80\x80\x80\x80", 4) == 4);
}

static void moments_are_printed_in_utc(void)
{
        char text[40];
        time_print(0, text, sizeof text);
        CHECK(strcmp(text, "1970-01-01T00:00:00.000Z") == 0);
        time_print(1772323199007, text, sizeof text);
        CHECK(strcmp(text, "2026-02-28T23:59:59.007Z") == 0);
        CHECK(time_now_ms() > 1772323199007);
}

static void folders_are_made_with_those_above(void)
{
        char top[] = "/tmp/caisson-test-XXXXXX", path[100];
        struct stat st;
        CHECK(mkdtemp(top));
        snprintf(path, sizeof path, "%s/a//b/c", top);
        CHECK(io_make_folders(path) == 0 && io_make_folders(path) == 0);
        CHECK(stat(path, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700);
        CHECK(io_make_folders("/proc/version/a") == -1 && errno == ENOTDIR);
        auto_fd tmp = open("/tmp", O_DIRECTORY | O_CLOEXEC);
        io_remove_tree(tmp, top + strlen("/tmp/"));
}

static void a_file_longer_than_allowed_is_not_read(void)
{
        char path[] = "/tmp/caisson-test-XXXXXX", buf[16];
        auto_fd fd = mkstemp(path);
        CHECK(fd >= 0 && io_write_all(fd, "0123456789", 10) == 0);
        CHECK(io_read_file(AT_FDCWD, path, buf, 10) == 10 && strcmp(buf, "0123456789") == 0);
        CHECK(io_read_file(AT_FDCWD, path, buf, 9) == -1 && errno == EFBIG);
        unlink(path);
}

static void a_sealed_memfd_cannot_be_changed(void)
{
        auto_fd fd = io_memfd("test", "abc", 3);
        char byte;
        CHECK(fd >= 0 && read(fd, &byte, 1) == 1 && byte == 'a');
        CHECK(write(fd, "x", 1) < 0 && ftruncate(fd, 0) < 0);
}

static int fired;

static void count(struct timer *timer)
{
        fired = fired * 10 + *(int *)timer->owner;
}

static void timers_fire_in_order_and_can_be_moved(void)
{
        struct loop *loop;
        struct csn_error err;
        int ids[] = { 1, 2, 3 };
        struct timer timers[3] = { { .fired = count, .owner = &ids[0] }, { .fired = count, .owner = &ids[1] },
                                   { .fired = count, .owner = &ids[2] } };
        CHECK(loop_new(&loop, &err) == 0);
        fired = 0;
        loop_timer(loop, &timers[0], 400000);
        loop_timer(loop, &timers[1], 1000);
        loop_timer(loop, &timers[2], 2000);
        loop_timer(loop, &timers[1], 200000);
        for (int i = 0; i < 100 && fired < 321; i++)
                CHECK(loop_step(loop, 50, &err) == 0);
        CHECK(fired == 321);
        loop_free(loop);
}

#define MANY 1000

static struct loop *shared_loop;
static struct timer many[MANY];
static size_t many_fired;
static uint64_t last_us;

/* In order, and none that was stopped; each stops one that comes later. */
static void look_at_order(struct timer *timer)
{
        CHECK(timer->at_us >= last_us && !timer->active && timer->owner);
        last_us = timer->at_us;
        many_fired++;
        struct timer *later = &many[(size_t)(timer - many) * 7 % MANY];
        if (later->active && many_fired % 4 == 0) {
                loop_untimer(shared_loop, later);
                later->owner = NULL;
                many_fired++;
        }
}

static void many_timers_fire_in_order(void)
{
        struct csn_error err;
        CHECK(loop_new(&shared_loop, &err) == 0);
        many_fired = 0;
        for (size_t round = 0; round < 3; round++)         /* the last round counts */
                for (size_t i = 0; i < MANY; i++) {
                        many[i].fired = look_at_order;
                        many[i].owner = many;
                        loop_timer(shared_loop, &many[i], (i * 7919 + round * 31) % 50000);
                        if (i % 5 == 0)
                                loop_untimer(shared_loop, &many[(i * 3) % MANY]);
                }
        for (size_t i = 0; i < MANY; i++)
                if (!many[i].active)
                        loop_timer(shared_loop, &many[i], 1000);
        for (int i = 0; i < 1000 && many_fired < MANY; i++)
                CHECK(loop_step(shared_loop, 50, &err) == 0);
        CHECK(many_fired == MANY);
        loop_free(shared_loop);
}

static struct watch watches[2];

static void stop_both(struct watch *watch, uint32_t events)
{
        (void)watch, (void)events;
        fired++;
        loop_unwatch(shared_loop, &watches[0]);
        loop_unwatch(shared_loop, &watches[1]);
}

static void a_watch_that_was_stopped_is_not_served(void)
{
        struct csn_error err;
        int a[2], b[2];
        CHECK(pipe(a) == 0 && pipe(b) == 0 && loop_new(&shared_loop, &err) == 0);
        watches[0] = watches[1] = (struct watch){ .ready = stop_both };
        CHECK(loop_watch(shared_loop, &watches[0], a[0], EPOLLIN, &err) == 0);
        CHECK(loop_watch(shared_loop, &watches[1], b[0], EPOLLIN, &err) == 0);
        CHECK(write(a[1], "x", 1) == 1 && write(b[1], "x", 1) == 1);
        fired = 0;
        CHECK(loop_step(shared_loop, 100, &err) == 0);
        CHECK(fired == 1);
        loop_free(shared_loop);
        close(a[0]), close(a[1]), close(b[0]), close(b[1]);
}

/* The text of a file of at most 8 KiB. */
static const char *text_of(const char *path)
{
        static char text[8 * KIB + 1];
        return io_read_file(AT_FDCWD, path, text, sizeof text - 1) < 0 ? "" : text;
}

static void a_line_of_the_log_cannot_be_forged(void)
{
        char path[] = "/tmp/test-base-log-XXXXXX";
        struct csn_error err;
        fd_close(&(int){ mkstemp(path) });
        CHECK(log_open(path, 8 * KIB, &err) == 0);
        log_about(LOG_INFO, &(struct log_context){ .run = "r\n{\"level\":\"error\"}", .owner = "o\\", .trace = "" },
                "a\"\n\xff%s", "\x1b[2J");
        log_text(LOG_DEBUG, "not kept");
        log_close();
        const char *text = text_of(path), *feed = strchr(text, '\n');
        CHECK(feed && !feed[1] && !strstr(text, "not kept") && !strstr(text, "trace_id"));
        CHECK(strstr(text,
                "\"level\":\"info\",\"text\":\"a\\u0022\\u000a\\ufffd\\u001b[2J\",\"run_id\":\"r\\u000a{\\u0022level\\u0022:\\u0022error\\u0022}\","
                "\"owner\":\"o\\u005c\"}\n"));
        unlink(path);
}

static void the_log_is_moved_before_it_is_full_and_by_one_alone(void)
{
        char folder[] = "/tmp/test-base-logs-XXXXXX", path[60], old[64];
        struct csn_error err;
        struct stat now, before;
        CHECK(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/log", folder);
        snprintf(old, sizeof old, "%s" LOG_OLD, path);
        CHECK(log_open("/nonexistent/log", KIB, &err) == -CSN_E_SYSTEM && strstr(err.text, "/nonexistent/log"));
        CHECK(log_open(path, 4000, &err) == 0);
        for (int i = 0; i < 200; i++)
                log_text(LOG_INFO, "line %d", i);
        CHECK(stat(path, &now) == 0 && stat(old, &before) == 0 && now.st_size <= 2000 && before.st_size <= 2000 &&
                before.st_size > 1800);
        CHECK(strstr(text_of(path), "line 199\"") && !strstr(text_of(old), "line 199\""));
        /* Somebody else has moved it: ours is the old one, and is left alone. */
        CHECK(unlink(path) == 0 && log_open(path, 4000, &err) == 0);
        CHECK(rename(path, old) == 0);
        auto_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(io_write_all(fd, "theirs\n", 7) == 0);
        for (int i = 0; i < 30; i++)
                log_text(LOG_INFO, "later %d", i);
        CHECK(strncmp(text_of(path), "theirs\n", 7) == 0 && strstr(text_of(path), "later 29\"") &&
                strstr(text_of(old), "later 0\""));
        log_close();
        unlink(path);
        unlink(old);
        rmdir(folder);
}

static void bytes_are_printed_as_digits_and_no_id_comes_twice(void)
{
        char text[2 * HEX_RANDOM_MAX + 2], other[2 * HEX_RANDOM_MAX + 2];
        hex_print("\x00\x7f\x80\xff", 4, text);
        CHECK(strcmp(text, "007f80ff") == 0);
        hex_print("", 0, text);
        CHECK(!text[0]);
        for (size_t i = 0; i < 2000; i++) {
                hex_random(1, text);
                CHECK(strlen(text) == 2 && strcmp(text, "00") != 0);
        }
        hex_random(HEX_RANDOM_MAX, text);
        hex_random(HEX_RANDOM_MAX, other);
        CHECK(strlen(text) == 2 * HEX_RANDOM_MAX && strspn(text, "0123456789abcdef") == strlen(text) &&
                strcmp(text, other) != 0);
}

static void a_text_in_an_arena_is_whole_wherever_its_block_ends(void)
{
        struct arena arena = { 0 };
        char text[9001];
        bool whole = true, zero = true;
        memset(text, 'x', sizeof text);
        for (size_t len = 0; len < sizeof text; len += 1 + len / 40) {
                const char *printed = arena_text(&arena, "%zu %.*s", len, (int)len, text);
                char number[24];
                size_t at = (size_t)snprintf(number, sizeof number, "%zu ", len);
                whole = whole && strncmp(printed, number, at) == 0 && strlen(printed) == at + len &&
                        memcmp(printed + at, text, len) == 0;
                const char *empty = arena_alloc(&arena, 48);
                for (size_t i = 0; i < 48; i++)
                        zero = zero && !empty[i];
        }
        CHECK(whole && zero);
        arena_done(&arena);
}

int main(void)
{
        RUN(a_text_in_an_arena_is_whole_wherever_its_block_ends);
        RUN(an_error_carries_code_errno_and_text);
        RUN(a_long_error_is_cut_and_stays_a_text);
        RUN(an_error_is_text_wherever_another_s_was_cut);
        RUN(every_code_has_a_name_of_its_own);
        RUN(a_buffer_stops_at_its_ceiling);
        RUN(a_capture_keeps_head_and_tail);
        RUN(sizes_are_read_as_people_write_them);
        RUN(durations_and_cores_are_read_exactly);
        RUN(printed_numbers_are_read_back);
        RUN(utf8_is_rfc_3629);
        RUN(a_character_that_is_not_whole_yet_is_told_apart_from_what_is_none);
        RUN(bytes_are_printed_as_digits_and_no_id_comes_twice);
        RUN(moments_are_printed_in_utc);
        RUN(folders_are_made_with_those_above);
        RUN(a_file_longer_than_allowed_is_not_read);
        RUN(a_sealed_memfd_cannot_be_changed);
        RUN(timers_fire_in_order_and_can_be_moved);
        RUN(many_timers_fire_in_order);
        RUN(a_watch_that_was_stopped_is_not_served);
        RUN(a_line_of_the_log_cannot_be_forged);
        RUN(the_log_is_moved_before_it_is_full_and_by_one_alone);
        return tap_done();
}
