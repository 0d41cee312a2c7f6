/* client: requests and records as the socket carries them, and the list of users that are let in. */
#include "front/socket/client.h"
#include "front/views/views.h"

#include "tap.h"

static bool same_bytes(const struct bytes *bytes, const char *text, size_t len)
{
        return bytes->len == len && memcmp(bytes->bytes, text, len) == 0;
}

static void bytes_that_are_no_text_go_once_and_come_back(void)
{
        struct arena arena = { 0 };
        struct run_request request = { 0 }, got = { 0 };
        struct input_file file = { 0 };
        struct csn_error err;
        struct buf text;
        buf_init(&text, MIB);
        SET(&request, run_request, language, "python");
        SET(&request, run_request, code, ((struct bytes){ "\xff\0x", 3 }));
        SET(&request, run_request, stdin, ((struct bytes){ "plain", 5 }));
        SET(&file, input_file, name, "a");
        SET(&file, input_file, content, ((struct bytes){ "\x80", 1 }));
        request.files = &file;
        request.files_n = 1;
        MARK(&request, run_request, files);
        CHECK(front_write_request(&request, &text));
        CHECK(model_decode_text(&object_run_request, text.bytes, text.len, &arena, &got, &err) == 0);
        CHECK(same_bytes(&got.code, "\xff\0x", 3) && same_bytes(&got.stdin, "plain", 5));
        CHECK(got.files_n == 1 && same_bytes(&got.files[0].content, "\x80", 1));
        CHECK(got.present == request.present);
        buf_done(&text);
        arena_done(&arena);
}

static struct run_result sample(void)
{
        static struct run_result result;
        result = (struct run_result){ 0 };
        SET(&result, run_result, schema, "1");
        SET(&result, run_result, id, "run_1");
        SET(&result, run_result, status, status_FAILED);
        SET(&result, run_result, exit_code, 3);
        SET(&result, run_result, stdout, ((struct bytes){ "a\xff", 2 }));
        SET(&result, run_result, stderr, ((struct bytes){ "e\0", 2 }));
        SET(&result.result, value, type, "dict");
        SET(&result.result, value, value, "{\"stdout\":1,\"stdout_base64\":2,\"aliases\":3}");
        MARK(&result, run_result, result);
        SET(&result.usage, usage, wall_ms, 12.345);
        MARK(&result, run_result, usage);
        return result;
}

/* Text for the socket, and back into JSON. */
static json_t *journey(const struct run_result *result, bool aliases)
{
        struct buf text;
        buf_init(&text, MIB);
        front_record_text(result, aliases, &text);
        json_t *record = json_loadb(text.bytes, text.len, JSON_ALLOW_NUL, NULL);
        buf_done(&text);
        return record;
}

static void a_record_survives_the_journey(void)
{
        const struct run_result result = sample();
        for (int aliases = 0; aliases < 2; aliases++) {
                struct arena arena = { 0 };
                struct run_result got;
                struct csn_error err;
                json_t *record = journey(&result, aliases);
                CHECK(front_read_record(record, &arena, &got, &err) == 0);
                CHECK(same_bytes(&got.stdout, "a\xff", 2) && same_bytes(&got.stderr, "e\0", 2));
                CHECK(got.status == status_FAILED && got.exit_code == 3 && HAS(&got, run_result, exit_code));
                CHECK(!HAS(&got, run_result, signal) && !HAS(&got, run_result, error));
                CHECK(got.usage.wall_ms > 12.344 && got.usage.wall_ms < 12.346);
                CHECK(strcmp(got.result.value, result.result.value) == 0);   /* the program's own words are not ours */
                json_t *again = front_record(&got, aliases);
                CHECK(json_equal(record, again));
                json_decref(again);
                json_decref(record);
                arena_done(&arena);
        }
}

static void what_is_no_record_is_refused(void)
{
        static const char *const texts[] = { "[]", "{}", "{\"schema\":1}",
                "{\"schema\":\"1\",\"id\":\"x\",\"nosuch\":1}" };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct arena arena = { 0 };
                struct run_result got;
                struct csn_error err = { 0 };
                json_t *record = json_loads(texts[i], 0, NULL);
                CHECK(front_read_record(record, &arena, &got, &err) == -CSN_E_PROTOCOL && err.text[0]);
                json_decref(record);
                arena_done(&arena);
        }
        struct csn_error err;
        struct run_result got;
        CHECK(front_read_record(NULL, NULL, &got, &err) == -CSN_E_PROTOCOL);
}

static void lists_of_users_are_read(void)
{
        static const struct { const char *text; int n; uid_t last;
        } lists[] = {
                { "", 0, 0 },
                { "0", 1, 0 },
                { "0,1000", 2, 1000 },
                { " 1 , 2 ,3", 3, 3 },
                { "4294967294", 1, 4294967294U },
                { ",", -1, 0 },
                { "1,", -1, 0 },
                { "root", -1, 0 },
                { "4294967295", -1, 0 },
                { "-1", -1, 0 },
                { "1 2", -1, 0 },
                { "0x1", -1, 0 },
                { " ", -1, 0 },
        };
        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
                struct arena arena = { 0 };
                uid_t *uids = NULL;
                size_t n = 0;
                struct csn_error err = { 0 };
                int rc = endpoint_uids(lists[i].text, &arena, &uids, &n, &err);
                CHECK(lists[i].n < 0 ? rc == -CSN_E_CONFIG && err.text[0] : rc == 0 && (int)n == lists[i].n);
                CHECK(rc < 0 || n == 0 || uids[n - 1] == lists[i].last);
                arena_done(&arena);
        }
}

int main(void)
{
        RUN(bytes_that_are_no_text_go_once_and_come_back);
        RUN(a_record_survives_the_journey);
        RUN(what_is_no_record_is_refused);
        RUN(lists_of_users_are_read);
        return tap_done();
}
