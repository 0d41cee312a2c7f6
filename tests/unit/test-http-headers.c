/* Headers of requests: lists, ranges, numbers of events, keys. */
#include "net/http_headers.h"

#include "tap.h"

static void a_list_has_its_members_whatever_stands_beside_them(void)
{
        static const char *const with[] = { "a/b", " a/b", "x, a/b", "x;q=1,\ta/b;q=0.5", "a/b ; q=1", "A/B", "x,,a/b",
                ",a/b," };
        static const char *const without[] = { "", ",", "a/bc", "xa/b", "x a/b", "a", "a/b-c", "*/*", "x;a/b" };
        CHECK(!header_lists(NULL, "a/b"));
        for (size_t i = 0; i < ARRAY_LEN(with); i++)
                CHECK(header_lists(with[i], "a/b"));
        for (size_t i = 0; i < ARRAY_LEN(without); i++)
                CHECK(!header_lists(without[i], "a/b"));
}

static void one_range_from_somewhere_on_is_known(void)
{
        uint64_t offset, size;
        CHECK(header_range("bytes=0-0", &offset, &size) && offset == 0 && size == 1);
        CHECK(header_range("bytes=10-19", &offset, &size) && offset == 10 && size == 10);
        CHECK(header_range("bytes=5-", &offset, &size) && offset == 5 && size == UINT64_MAX);
        CHECK(header_range("bytes=0-18446744073709551614", &offset, &size) && size == UINT64_MAX);
        CHECK(header_range("bytes=1-99999999999999999999999", &offset, &size) && size == UINT64_MAX);
        CHECK(header_range("bytes=99999999999999999999-", &offset, &size) && offset == INT64_MAX && size == UINT64_MAX);
}

static void any_other_range_is_none(void)
{
        static const char *const none[] = { "", "bytes", "bytes=", "bytes=-5", "bytes=-", "bytes=5", "bytes=5-4",
                "bytes=0-1,3-4", "bytes=+1-2", "bytes= 1-2", "bytes=1-+2", "bytes=1- 2", "bytes=1--2", "lines=0-1",
                "bytes=0-1 " };
        uint64_t offset, size;
        CHECK(!header_range(NULL, &offset, &size));
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                CHECK(!header_range(none[i], &offset, &size));
}

static void the_number_of_an_event_has_digits_only(void)
{
        static const char *const none[] = { "", "-1", "+1", " 1", " -1", "1 ", "0x1", "a", "1a" };
        uint64_t number;
        CHECK(header_event("0", &number) && number == 0);
        CHECK(header_event("42", &number) && number == 42);
        CHECK(header_event("18446744073709551615", &number) && number == UINT64_MAX);
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                CHECK(!header_event(none[i], &number));
}

static void a_key_stands_behind_bearer(void)
{
        CHECK(strcmp(header_bearer("Bearer csn_x"), "csn_x") == 0);
        CHECK(strcmp(header_bearer("bearer   csn_x"), "csn_x") == 0);
        CHECK(strcmp(header_bearer("Basic abc"), "Basic abc") == 0);
        CHECK(strcmp(header_bearer(""), "") == 0);
}

int main(void)
{
        RUN(a_list_has_its_members_whatever_stands_beside_them);
        RUN(one_range_from_somewhere_on_is_known);
        RUN(any_other_range_is_none);
        RUN(the_number_of_an_event_has_digits_only);
        RUN(a_key_stands_behind_bearer);
        return tap_done();
}
