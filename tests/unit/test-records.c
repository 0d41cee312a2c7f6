/* formats: the readers of what records hide: pickles of one text, compressed tests, literals of Python. */
#include "grading/formats/formats.h"
#include "grading/formats/record.h"

#include <zlib.h>

#include "tap.h"

static const char *why;

/* The text of a pickle, or NULL.  The pickle is on the heap, where a read behind its end is seen. */
static const char *text_of(const char *pickle, size_t len)
{
        static char kept[100];
        char *copy = mem_alloc(len ? len : 1);
        const char *text;
        size_t text_len;
        memcpy(copy, pickle, len);
        bool good = pickle_read_text(copy, len, &text, &text_len, &why);
        if (good)
                snprintf(kept, sizeof kept, "%.*s", (int)text_len, text);
        free(copy);
        return good ? kept : NULL;
}

#define IS(text, want) CHECK(is(text, want))
#define PICKLE(text) (text), sizeof(text) - 1
#define REFUSED(pickle, words)                          \
        do {                                            \
                CHECK(!text_of(PICKLE(pickle)));        \
                CHECK(why && strstr(why, words));       \
        } while (0)

static bool is(const char *text, const char *want)
{
        return text && strcmp(text, want) == 0;
}

static void a_pickle_of_one_text_is_read(void)
{
        IS(text_of(PICKLE("\x80\x04\x95\x07\x00\x00\x00\x00\x00\x00\x00\x8c\x03" "abc" "\x94.")), "abc");
        IS(text_of(PICKLE("\x80\x02X\x02\x00\x00\x00" "ab" "q\x00.")), "ab");
        IS(text_of(PICKLE("X\x02\x00\x00\x00" "ab" "r\x00\x00\x00\x00.")), "ab");
        IS(text_of(PICKLE("\x80\x05\x8d\x01\x00\x00\x00\x00\x00\x00\x00" "x" "\x94.")), "x");
        IS(text_of(PICKLE("\x80\x04\x8c\x00.")), "");
}

static void a_pickle_of_anything_else_is_refused(void)
{
        REFUSED("", "no end");
        REFUSED("\x80\x04.", "no text");
        REFUSED("\x80\x04\x94.", "nothing to remember");
        REFUSED("\x80\x09.", "protocol");
        REFUSED("\x80\x04\x8c\x05" "abc", "longer than the pickle");
        REFUSED("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "longer than the pickle");
        REFUSED("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f\x8c\x01" "a.", "longer than the pickle");
        REFUSED("\x80\x04\x8c\x01" "a", "no end");
        REFUSED("\x80\x04\x8c\x01" "a..", "behind its end");
        REFUSED("\x80\x04\x8c\x01" "a\x8c\x01" "b.", "more than one object");
        REFUSED("X\x01\x00", "within an opcode");
        REFUSED("cos\nsystem\n(S'true'\ntR.", "opcode");
        REFUSED("\x80\x04]\x94.", "opcode");
        REFUSED("\x80\x04K\x01.", "opcode");
        REFUSED("\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93.", "more than one object");
}

static char *packed_of(const char *bytes, size_t len, struct arena *arena)
{
        uLongf size = compressBound(len);
        Bytef *to = mem_alloc(size);
        compress(to, &size, (const Bytef *)bytes, len);
        char *text = model_base64(arena, (const char *)to, size);
        free(to);
        return text;
}

/* The error of an unpacked text, or "". */
static const char *unpacked(const char *text, json_t **ret)
{
        static struct csn_error err;
        json_t *value = json_string(text);
        int rc = record_unpack(value, "/x", ret, &err);
        json_decref(value);
        CHECK(rc == 0 || (rc == -CSN_E_RECORD && strcmp(err.field, "/x") == 0));
        return rc == 0 ? "" : err.text;
}

static void compressed_tests_are_json_or_a_pickle_of_json(void)
{
        static const char pickle[] = "\x80\x04\x8c\x03[5]\x94.";
        struct arena arena = { 0 };
        json_t *value = NULL;
        CHECK(strcmp(unpacked(packed_of("[1, 2]", 6, &arena), &value), "") == 0 && json_array_size(value) == 2);
        json_decref(value);
        CHECK(strcmp(unpacked(packed_of(PICKLE(pickle), &arena), &value), "") == 0 && json_array_size(value) == 1);
        json_decref(value);
        CHECK(strcmp(unpacked("[3]", &value), "") == 0 && json_array_size(value) == 1);
        json_decref(value);
        CHECK(strstr(unpacked(packed_of("x", 1, &arena), &value), "pickle of one text"));
        CHECK(strstr(unpacked(packed_of("[1", 2, &arena), &value), "no JSON"));
        CHECK(strstr(unpacked("####", &value), "base64"));
        CHECK(strstr(unpacked("aGFsbG8=", &value), "no zlib"));
        arena_done(&arena);
}

static void decompressed_tests_have_a_bound(void)
{
        struct arena arena = { 0 };
        json_t *value = NULL;
        char *text = mem_alloc(100001);
        memset(text, ' ', 100000);
        text[0] = '[';
        text[99999] = ']';
        const char *packed = packed_of(text, 100000, &arena);
        format_set_record_bytes(100000);
        CHECK(strcmp(unpacked(packed, &value), "") == 0);
        json_decref(value);
        format_set_record_bytes(99999);
        CHECK(strstr(unpacked(packed, &value), "grading.record_bytes"));
        format_set_record_bytes(64 * MIB);
        free(text);
        arena_done(&arena);
}

static const char *literal_of(const char *json, enum literal_shape shape)
{
        static char kept[200];
        struct buf buf;
        json_t *value = record_parse(json, strlen(json), true);
        buf_init(&buf, KIB);
        bool fits = literal_put(&buf, value, shape);
        snprintf(kept, sizeof kept, "%.*s", (int)buf.len, buf.bytes ? buf.bytes : "");
        buf_done(&buf);
        json_decref(value);
        return fits ? kept : "-";
}

static void values_become_literals_of_python(void)
{
        IS(literal_of("[1, 2.5, null, true, \"a\\n\\u0000\"]", LITERAL_PLAIN), "[1, 2.5, None, True, \"a\\n\\u0000\"]");
        IS(literal_of("{\"1\": {\"-2\": 3}, \"2\": {}}", LITERAL_PLAIN), "{1: {-2: 3}, 2: {}}");
        IS(literal_of("{\"1\": 1, \"a\": 2, \"-\": 3}", LITERAL_PLAIN), "{\"1\": 1, \"a\": 2, \"-\": 3}");
        IS(literal_of("123456789012345678901234567890", LITERAL_PLAIN), "123456789012345678901234567890");
        IS(literal_of("[1, [2]]", LITERAL_TUPLE), "(1, [2])");
        IS(literal_of("[[1]]", LITERAL_ITEMS), "[(1,)]");
        IS(literal_of("[[1], 2]", LITERAL_BOTH), "((1,), 2)");
        IS(literal_of("[[[1]], []]", LITERAL_ALL), "(((1,),), ())");
        IS(literal_of("[[1, 2], []]", LITERAL_SETS), "[{1, 2}, {}]");
        IS(literal_of("{\"a\": [1]}", LITERAL_VALUES), "{\"a\": (1,)}");
        IS(literal_of("\"(1+2j)\"", LITERAL_FLOAT), "(1+2j)");
        IS(literal_of("\"__import__('os')\"", LITERAL_FLOAT), "-");
        IS(literal_of("[1]", LITERAL_FLOAT), "-");
}

int main(void)
{
        RUN(a_pickle_of_one_text_is_read);
        RUN(a_pickle_of_anything_else_is_refused);
        RUN(compressed_tests_are_json_or_a_pickle_of_json);
        RUN(decompressed_tests_have_a_bound);
        RUN(values_become_literals_of_python);
        return tap_done();
}
