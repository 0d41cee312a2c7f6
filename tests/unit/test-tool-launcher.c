/* Programs of tools: the table, requests, and which arguments come of them. */
#include "wire/tool_launcher.h"

#include "tap.h"

#include <stdio.h>

static char *const argv_of[] = { (char *)(uintptr_t) "Fls", (char *)(uintptr_t) "W1:--sort", (char *)(uintptr_t) "P1",
        (char *)(uintptr_t) "F--", (char *)(uintptr_t) "P0" };

static const struct launch_program program = { .uid = 7,
        .gid = 8,
        .flags = LAUNCH_ISOLATION,
        .memory_bytes = 1 << 20,
        .cpu_s = 3,
        .processes = 9,
        .folder = "/srv",
        .argv = { (char **)(uintptr_t)argv_of, ARRAY_LEN(argv_of) } };

static struct launch_texts texts(struct arena *arena, size_t n, const char *const *from)
{
        struct launch_texts list = { arena_alloc(arena, (n + 1) * sizeof(char *)), n };
        for (size_t i = 0; i < n; i++)
                list.texts[i] = arena_text(arena, "%s", from[i]);
        return list;
}

static bool fills(struct launch_values *values, const char *wanted)
{
        struct arena arena = { 0 };
        struct csn_error err;
        char **argv, line[200] = "";
        bool good = launch_fill(&program, values, &arena, &argv, &err) == 0;
        for (size_t i = 0; good && argv[i]; i++)
                snprintf(line + strlen(line), sizeof line - strlen(line), "%s|", argv[i]);
        arena_done(&arena);
        return good && strcmp(line, wanted) == 0;
}

static void a_table_is_read_as_it_was_written(void)
{
        struct buf buf;
        struct arena arena = { 0 };
        struct csn_error err;
        struct launch_program got;
        size_t at = 0;
        buf_init(&buf, LAUNCH_TABLE_MAX);
        CHECK(launch_put_program(&buf, &program) && launch_put_program(&buf, &program));
        for (int i = 0; i < 2; i++) {
                CHECK(launch_get_program(buf.bytes, buf.len, &at, &arena, &got, &err) == 0);
                CHECK(got.uid == 7 && got.gid == 8 && got.flags == LAUNCH_ISOLATION && got.memory_bytes == 1 << 20 &&
                        got.cpu_s == 3 && got.processes == 9);
                CHECK(strcmp(got.folder, "/srv") == 0 && got.argv.n == ARRAY_LEN(argv_of) &&
                        strcmp(got.argv.texts[1], "W1:--sort") == 0 && got.env.n == 0);
        }
        CHECK(at == buf.len);
        for (size_t len = 0; len < buf.len / 2; len++) {
                at = 0;
                CHECK(launch_get_program(buf.bytes, len, &at, &arena, &got, &err) < 0 && at == 0);
        }
        arena_done(&arena);
        buf_done(&buf);
}

static void values_fill_their_places_and_nothing_else(void)
{
        static const char *const files[] = { "a b", "$(id)", "" }, *const sort[] = { "--size" };
        static struct launch_values values;
        struct arena arena = { 0 };
        values.n = 2;
        CHECK(fills(&values, "ls|--|"));
        values.places[0] = texts(&arena, 3, files);
        CHECK(fills(&values, "ls|--|a b|$(id)||"));
        values.places[1] = texts(&arena, 1, sort);
        CHECK(fills(&values, "ls|--sort|--size|--|a b|$(id)||"));
        values.n = 1;
        CHECK(!fills(&values, ""));
        arena_done(&arena);
}

static void a_request_is_read_as_it_was_written(void)
{
        static const char *const files[] = { "a b", "" };
        static struct launch_values values, got;
        struct arena arena = { 0 };
        struct csn_error err;
        struct buf buf;
        size_t which = 0;
        values.n = 2;
        values.places[1] = texts(&arena, 2, files);
        buf_init(&buf, LAUNCH_REQUEST_MAX);
        CHECK(launch_put_request(&buf, 5, &values));
        CHECK(launch_get_request(buf.bytes, buf.len, &arena, &which, &got, &err) == 0);
        CHECK(which == 5 && got.n == 2 && got.places[0].n == 0 && got.places[1].n == 2 &&
                strcmp(got.places[1].texts[0], "a b") == 0);
        for (size_t len = 0; len < buf.len; len++)
                CHECK(launch_get_request(buf.bytes, len, &arena, &which, &got, &err) == -CSN_E_INPUT);
        buf_add(&buf, "x", 2);
        CHECK(launch_get_request(buf.bytes, buf.len, &arena, &which, &got, &err) == -CSN_E_INPUT);
        buf_done(&buf);
        arena_done(&arena);
}

static void requests_have_bounds(void)
{
        static struct launch_values values;
        static const char *const wrong[] = { "-1", "256", "1x", "", "99999999999999999999999" };
        struct arena arena = { 0 };
        struct csn_error err;
        struct buf buf;
        size_t which;
        char *const big = mem_alloc(LAUNCH_REQUEST_MAX + 1);
        memset(big, 'x', LAUNCH_REQUEST_MAX);
        values.n = 1;
        values.places[0] = (struct launch_texts){ (char *[]){ big }, 1 };
        buf_init(&buf, LAUNCH_REQUEST_MAX);
        CHECK(!launch_put_request(&buf, 0, &values));
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                buf.len = 0;
                buf_add(&buf, wrong[i], strlen(wrong[i]) + 1);
                buf_add(&buf, "0", 2);
                CHECK(launch_get_request(buf.bytes, buf.len, &arena, &which, &values, &err) == -CSN_E_INPUT);
        }
        free(big);
        buf_done(&buf);
        arena_done(&arena);
}

int main(void)
{
        RUN(a_table_is_read_as_it_was_written);
        RUN(values_fill_their_places_and_nothing_else);
        RUN(a_request_is_read_as_it_was_written);
        RUN(requests_have_bounds);
        return tap_done();
}
