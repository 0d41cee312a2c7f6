/* Objects of lists and watches, however the bytes come, and their bounds. */
#include "gateway/kube/stream.h"

#include "tap.h"

static const char *const names[KUBE_EVENT_TYPES] = { "+", "~", "-", "b", "!" };

static void on_object(void *owner, enum kube_event_type type, const json_t *object)
{
        const char *name = json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
        buf_printf(owner, "%s%s ", names[type], name ? name : "");
}

static void on_metadata(void *owner, const json_t *metadata)
{
        const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));
        buf_printf(owner, "@%s ", version ? version : "");
}

static const struct kube_stream_events events = { on_object, on_metadata };

/* What comes of these bytes, in pieces of `step`: 0, or a negative code. */
static int take(enum kube_stream_kind kind, const char *bytes, size_t step, struct buf *ret, bool *ret_complete)
{
        struct kube_stream stream;
        struct csn_error err;
        int rc = 0;
        buf_init(ret, 10000);
        kube_stream_init(&stream, kind, &events, ret);
        for (size_t at = 0, len = strlen(bytes); rc == 0 && at < len; at += step)
                rc = kube_stream_take(&stream, bytes + at, min_u64(step, len - at), &err);
        *ret_complete = kube_stream_is_complete(&stream);
        kube_stream_done(&stream);
        return rc;
}

static bool gives(enum kube_stream_kind kind, const char *bytes, const char *wanted, bool wanted_complete)
{
        bool good = true, complete;
        for (size_t step = 1; step < 40; step++) {
                struct buf text;
                int rc = take(kind, bytes, step, &text, &complete);
                good = good && rc == 0 && strcmp(text.len ? text.bytes : "", wanted) == 0 &&
                        complete == wanted_complete;
                if (!good)
                        printf("# step %zu: %d %s\n", step, rc, text.len ? text.bytes : "");
                buf_done(&text);
        }
        return good;
}

static bool refused(enum kube_stream_kind kind, const char *bytes)
{
        bool good = true, complete;
        for (size_t step = 1; step < 40; step++) {
                struct buf text;
                good = good && take(kind, bytes, step, &text, &complete) == -CSN_E_PROTOCOL;
                buf_done(&text);
        }
        return good;
}

static void items_of_a_list_come_one_by_one(void)
{
        static const struct {
                const char *bytes, *wanted;
        } rows[] = {
                { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"12\",\"items\":[{}]},\"items\":[{\"metadata\":{\"name\":"
                  "\"a\"}},{\"metadata\":{\"name\":\"b\"},\"spec\":{\"items\":[{\"x\":[1]}]}}]}\n", "@12 +a +b " },
                { "{\"items\" : [ {\"metadata\":{\"name\":\"}]\\\"{\"}} ] , \"metadata\": {\"resourceVersion\":\"1\"} }", "+}]\"{ @1 " },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}", "@1 " },
                { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}", "@1 " },
                { "{\"x\":{\"items\":[{\"metadata\":{}}]},\"other\":[{\"metadata\":{\"name\":\"a\"}}],\"y\":\"items\"}", "" },
                { "{\"ite\\u006ds\":[{\"metadata\":{\"name\":\"a\"}}]}", "" },
                { "{\"a-key-that-is-longer-than-the-buffer\":[{}],\"items\":[{\"metadata\":{\"name\":\"c\"}}]}", "+c " },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                CHECK(gives(KUBE_LIST, rows[i].bytes, rows[i].wanted, true));
}

static void a_list_that_breaks_off_is_incomplete(void)
{
        CHECK(gives(KUBE_LIST, "{\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"na", "+a ", false));
        CHECK(gives(KUBE_LIST, "{\"items\":[{\"metadata\":{\"name\":\"a\"}}]", "+a ", false));
        CHECK(gives(KUBE_LIST, "", "", false));
}

static void what_is_no_list_is_refused(void)
{
        CHECK(refused(KUBE_LIST, "[]"));
        CHECK(refused(KUBE_LIST, "<html>"));
        CHECK(refused(KUBE_LIST, "{}{}"));
        CHECK(refused(KUBE_LIST, "{\"items\":[{a}]}"));
        CHECK(refused(KUBE_LIST, "{\"items\":[{\"a\":1,\"a\":2}]}"));
        CHECK(refused(KUBE_LIST, "}"));
}

static void lines_of_a_watch_are_events(void)
{
        CHECK(gives(KUBE_WATCH,
                "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n\r\n"
                "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\r\n"
                "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n"
                "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"
                "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"
                "{\"type\":\"FUTURE\",\"object\":{}}\n"
                "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n",
                "+a ~a b -a +a ! ", true));
}

static void a_line_without_its_end_is_no_event(void)
{
        CHECK(gives(KUBE_WATCH, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}", "", true));
        CHECK(gives(KUBE_WATCH, "{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"DEL", "+ ", true));
}

static void a_line_that_is_no_event_is_refused(void)
{
        CHECK(refused(KUBE_WATCH, "hello\n"));
        CHECK(refused(KUBE_WATCH, "{\"type\":\"ADDED\"}\n"));
        CHECK(refused(KUBE_WATCH, "{\"type\":5,\"object\":{}}\n"));
        CHECK(refused(KUBE_WATCH, "[]\n"));
}

static void an_object_has_a_ceiling(void)
{
        static const char *const heads[] = { "{\"items\":[{\"a\":\"", "{\"type\":\"ADDED\",\"object\":{\"a\":\"" };
        char *filler = mem_alloc(64 * KIB);
        memset(filler, 'x', 64 * KIB);
        for (enum kube_stream_kind kind = KUBE_LIST; kind <= KUBE_WATCH; kind++) {
                struct kube_stream stream;
                struct csn_error err;
                struct buf text;
                size_t pieces = 0;
                buf_init(&text, 1000);
                kube_stream_init(&stream, kind, &events, &text);
                int rc = kube_stream_take(&stream, heads[kind], strlen(heads[kind]), &err);
                while (rc == 0 && pieces++ < 100)
                        rc = kube_stream_take(&stream, filler, 64 * KIB, &err);
                CHECK(rc == -CSN_E_PROTOCOL && strstr(err.text, "2 MiB") && pieces == 32);
                kube_stream_done(&stream);
                buf_done(&text);
        }
        free(filler);
}

/* 1,000 pods of 3.4 KiB: what is kept is one item. */
static void a_long_list_needs_little_memory(void)
{
        struct kube_stream stream;
        struct csn_error err;
        struct buf text;
        char item[3500];
        size_t kept = 0;
        buf_init(&text, MIB);
        kube_stream_init(&stream, KUBE_LIST, &events, &text);
        CHECK(kube_stream_take(&stream, "{\"items\":[", 10, &err) == 0);
        for (int i = 0; i < 1000; i++) {
                int len = snprintf(item, sizeof item, "%s{\"metadata\":{\"name\":\"w-%d\"},\"spec\":{\"text\":\"%03300d\"}}",
                        i ? "," : "", i, 0);
                CHECK(kube_stream_take(&stream, item, (size_t)len, &err) == 0);
                kept = max_u64(kept, stream.object.size);
        }
        CHECK(kube_stream_take(&stream, "]}", 2, &err) == 0 && kube_stream_is_complete(&stream));
        CHECK(kept <= 64 * KIB && strstr(text.bytes, "+w-999 "));
        kube_stream_done(&stream);
        buf_done(&text);
}

int main(void)
{
        RUN(items_of_a_list_come_one_by_one);
        RUN(a_list_that_breaks_off_is_incomplete);
        RUN(what_is_no_list_is_refused);
        RUN(lines_of_a_watch_are_events);
        RUN(a_line_without_its_end_is_no_event);
        RUN(a_line_that_is_no_event_is_refused);
        RUN(an_object_has_a_ceiling);
        RUN(a_long_list_needs_little_memory);
        return tap_done();
}
