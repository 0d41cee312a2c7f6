/* model: what the tables say is what the decoder, the encoder and the schema do, for every field. */
#include "model/settings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "tap.h"

static const struct object *const objects[] = {
        &object_limits,    &object_input_file,  &object_export_rule, &object_run_request,
        &object_truncated, &object_value,       &object_display,     &object_failure,
        &object_finding,   &object_output_file, &object_taken_file,  &object_usage,
        &object_timings,   &object_boundary,    &object_warning,     &object_run_result,
        &object_check_request, &object_check_result, &object_grade_case,   &object_grade_request,
        &object_grade_result,
};

/* Room for any of the structs. */
union any {
        struct run_request request;
        struct run_result result;
        struct grade_request grade;
        struct grade_result graded;
        struct limits limits;
        uint64_t present;
};

static json_t *sample(const struct object *object);

/* A valid value of a field that is not its default. */
static json_t *sample_of(const struct field *field)
{
        switch (field->kind) {
        case KIND_NUM:
                return json_integer((json_int_t)(field->max ? field->max : 12345));
        case KIND_INT:
                return json_integer(-7);
        case KIND_REAL:
                return json_real(1.125);
        case KIND_BOOL:
                return json_true();
        case KIND_TEXT:
                return json_string("t\xc3\xa9xt");
        case KIND_BYTES:
                return json_stringn("a\0b\n", 4);
        case KIND_JSON:
                return json_pack("{s:[i, n, s]}", "k", 1, "\xe2\x82\xac");
        case KIND_ENUM:
                return json_string(field->choices->values[field->choices->n - 1].text);
        case KIND_TEXTS:
                return json_pack("[s, s]", "one", "");
        case KIND_PAIRS:
                return json_pack("{s:s, s:s}", "A", "1", "B", "");
        case KIND_SUB:
                return sample(field->object);
        case KIND_LIST:
                return json_pack("[o, o]", sample(field->object), sample(field->object));
        }
        return NULL;
}

static json_t *sample(const struct object *object)
{
        json_t *json = json_object();
        for (size_t i = 0; i < object->n; i++)
                json_object_set_new(json, object->fields[i].name, sample_of(&object->fields[i]));
        return json;
}

static int decode(const struct object *object, const char *text, struct arena *arena, union any *ret,
                  struct csn_error *err)
{
        *ret = (union any){ 0 };
        *err = (struct csn_error){ 0 };
        return model_decode_text(object, text, strlen(text), arena, ret, err);
}

/* True if the text is refused as input, at this place, with this in the explanation. */
static bool refused(const struct object *object, const char *text, const char *field, const char *part)
{
        struct arena arena = { 0 };
        union any any;
        struct csn_error err;
        bool as_said = decode(object, text, &arena, &any, &err) == -CSN_E_INPUT && err.code == CSN_E_INPUT &&
                       strcmp(err.field, field) == 0 && strstr(err.text, part);
        if (!as_said)
                printf("# %.80s: field \"%s\", text \"%s\"\n", text, err.field, err.text);
        arena_done(&arena);
        return as_said;
}

static bool accepted(const struct object *object, const char *text)
{
        struct arena arena = { 0 };
        union any any;
        struct csn_error err;
        bool good = decode(object, text, &arena, &any, &err) == 0;
        if (!good)
                printf("# %.80s: %s\n", text, err.text);
        arena_done(&arena);
        return good;
}

/* ---- every field ---- */

static void every_object_survives_the_journey(void)
{
        for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
                struct arena arena = { 0 };
                struct csn_error err = { 0 };
                union any any = { 0 };
                json_t *in = sample(objects[i]);
                CHECK(model_decode(objects[i], in, &arena, &any, &err) == 0);
                json_t *out = model_encode(objects[i], &any);
                if (!json_equal(in, out))
                        printf("# %s differs: %s\n", objects[i]->name, err.text);
                CHECK(json_equal(in, out));
                json_decref(in);
                json_decref(out);
                arena_done(&arena);
        }
}

static void fields_are_written_in_the_order_of_the_table(void)
{
        for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
                struct arena arena = { 0 };
                struct csn_error err;
                union any any = { 0 };
                json_t *in = sample(objects[i]);
                model_decode(objects[i], in, &arena, &any, &err);
                json_t *out = model_encode(objects[i], &any), *value;
                const char *key;
                size_t at = 0;
                bool ordered = true;
                json_object_foreach(out, key, value) {
                        ordered = ordered && at < objects[i]->n &&
                                  strcmp(objects[i]->fields[at].name, key) == 0;
                        at++;
                }
                CHECK(ordered && at == objects[i]->n);
                json_decref(in);
                json_decref(out);
                arena_done(&arena);
        }
}

static void each_number_keeps_to_its_bounds(void)
{
        for (size_t i = 0; i < object_limits.n; i++) {
                const struct field *field = &object_limits.fields[i];
                char text[100], where[80];
                if (field->kind != KIND_NUM)
                        continue;
                snprintf(where, sizeof where, "/%s", field->name);
                snprintf(text, sizeof text, "{\"%s\": %" PRIu64 "}", field->name, field->min);
                CHECK(accepted(&object_limits, text));
                snprintf(text, sizeof text, "{\"%s\": %" PRIu64 "}", field->name, field->max);
                CHECK(accepted(&object_limits, text));
                snprintf(text, sizeof text, "{\"%s\": %" PRIu64 "}", field->name, field->max + 1);
                CHECK(refused(&object_limits, text, where, "are allowed"));
                snprintf(text, sizeof text, "{\"%s\": %" PRId64 "}", field->name, (int64_t)field->min - 1);
                CHECK(refused(&object_limits, text, where, field->min ? "are allowed" : "not negative"));
                CHECK(field->def >= field->min && field->def <= field->max);
        }
}

static void each_field_refuses_another_type(void)
{
        static const char *const others[] = {
                [KIND_NUM] = "\"5\"", [KIND_INT] = "1.5",  [KIND_REAL] = "\"1\"",       [KIND_BOOL] = "1",
                [KIND_TEXT] = "5",    [KIND_BYTES] = "[]", [KIND_ENUM] = "\"neither\"", [KIND_TEXTS] = "5",
                [KIND_PAIRS] = "[]",  [KIND_SUB] = "[]",   [KIND_LIST] = "{}",
        };
        for (size_t i = 0; i < ARRAY_LEN(objects); i++)
                for (size_t k = 0; k < objects[i]->n; k++) {
                        const struct field *field = &objects[i]->fields[k];
                        char text[200], where[80];
                        if (field->kind == KIND_JSON)
                                continue;
                        snprintf(text, sizeof text, "{\"%s\": %s}", field->name, others[field->kind]);
                        snprintf(where, sizeof where, "/%s", field->name);
                        CHECK(refused(objects[i], text, where, "has to be"));
                }
}

static void what_is_required_is_missed(void)
{
        CHECK(refused(&object_export_rule, "{\"path\": \"o\"}", "/pattern", "pattern is missing"));
        CHECK(refused(&object_run_request, "{\"exports\": [{\"pattern\": \"*\", \"path\": \"o\"}, {}]}",
                      "/exports/1/pattern", "is missing"));
}

static void null_is_as_good_as_left_out(void)
{
        struct arena arena = { 0 };
        union any any;
        struct csn_error err;
        CHECK(decode(&object_run_request, "{\"code\": null, \"limits\": null, \"env\": null}", &arena, &any,
                     &err) == 0);
        CHECK(any.request.present == 0);
        arena_done(&arena);
}

/* ---- hostile input ---- */

static void unknown_fields_are_named_with_a_pointer(void)
{
        CHECK(refused(&object_run_request, "{\"limits\": {\"wal_ms\": 5}}", "/limits/wal_ms",
                      "did you mean \"wall_ms\"?"));
        CHECK(refused(&object_run_request, "{\"Code\": \"\"}", "/Code", "did you mean \"code\"?"));
        CHECK(refused(&object_run_request, "{\"colour\": \"\"}", "/colour", "known are language, code, "));
        CHECK(refused(&object_run_request, "{\"files\": [{\"nam\": \"x\"}]}", "/files/0/nam",
                      "did you mean \"name\"?"));
        CHECK(refused(&object_run_request, "{\"args_base64\": \"\"}", "/args_base64", "there is no field"));
}

static void what_is_not_json_is_refused(void)
{
        CHECK(refused(&object_run_request, "", "", "not JSON"));
        CHECK(refused(&object_run_request, "{\"code\": \"a\"", "", "not JSON"));
        CHECK(refused(&object_run_request, "{} {}", "", "not JSON"));
        CHECK(refused(&object_run_request, "{\"code\": \"a\", \"code\": \"b\"}", "", "duplicate object key"));
        CHECK(refused(&object_run_request, "{\"code\": \"\xff\xfe\"}", "", "not JSON"));
        CHECK(refused(&object_run_request, "{\"code\": \"\\ud800\"}", "", "not JSON"));
        CHECK(refused(&object_run_request, "{\"c\\u0000de\": 1}", "", "not JSON"));
        CHECK(refused(&object_run_request, "[]", "", "has to be an object"));
        CHECK(refused(&object_run_request, "5", "", "not JSON"));
}

static void nesting_ends_at_a_depth_that_nobody_needs(void)
{
        char text[400] = "{\"labels\": ";
        size_t len = strlen(text);
        memset(text + len, '[', 100);
        CHECK(refused(&object_run_request, text, "", "deeper than 32"));
        /* Brackets in a string are text. */
        snprintf(text, sizeof text, "{\"code\": \"\\\"");
        len = strlen(text);
        memset(text + len, '[', 100);
        snprintf(text + len + 100, sizeof text - len - 100, "\"}");
        CHECK(accepted(&object_run_request, text));
}

static void numbers_beyond_64_bits_are_refused(void)
{
        CHECK(refused(&object_limits, "{\"wall_ms\": 99999999999999999999999}", "/wall_ms",
                "wall_ms is 99999999999999999999999; "));
        CHECK(refused(&object_limits, "{\"wall_ms\": -99999999999999999999999}", "/wall_ms", "not negative"));
        CHECK(refused(&object_run_request, "{\"name\": 99999999999999999999999}", "/name", "a string"));
        CHECK(refused(&object_limits, "{\"wall_ms\": 9223372036854775807}", "/wall_ms", "are allowed"));
        CHECK(refused(&object_limits, "{\"wall_ms\": -9223372036854775808}", "/wall_ms", "not negative"));
        CHECK(refused(&object_limits, "{\"wall_ms\": 1e3}", "/wall_ms", "whole number"));
        CHECK(refused(&object_limits, "{\"wall_ms\": 1e999}", "", "not JSON"));
        CHECK(refused(&object_limits, "{\"wall_ms\": 30.5}", "/wall_ms", "whole number"));
}

static void a_nul_byte_has_a_place_in_bytes_only(void)
{
        struct arena arena = { 0 };
        union any any;
        struct csn_error err;
        CHECK(decode(&object_run_request, "{\"stdin\": \"a\\u0000b\"}", &arena, &any, &err) == 0);
        CHECK(any.request.stdin.len == 3 && memcmp(any.request.stdin.bytes, "a\0b", 3) == 0);
        CHECK(refused(&object_run_request, "{\"name\": \"a\\u0000b\"}", "/name", "NUL byte"));
        CHECK(refused(&object_run_request, "{\"args\": [\"a\", \"a\\u0000\"]}", "/args/1", "NUL byte"));
        CHECK(refused(&object_run_request, "{\"env\": {\"A\": \"a\\u0000\"}}", "/env/A", "NUL byte"));
        arena_done(&arena);
}

static void lengths_have_ends(void)
{
        struct buf buf;
        const struct field *name = model_field(&object_run_request, "name");
        buf_init(&buf, MIB * 4);
        buf_printf(&buf, "{\"name\": \"%*s\"}", (int)name->max, "");
        CHECK(accepted(&object_run_request, buf.bytes));
        buf.len = 0;
        buf_printf(&buf, "{\"name\": \"%*s\"}", (int)name->max + 1, "");
        CHECK(refused(&object_run_request, buf.bytes, "/name", "at most 255"));
        buf.len = 0;
        buf_printf(&buf, "{\"code\": \"%*s\"}", (int)MIB + 1, "");
        CHECK(refused(&object_run_request, buf.bytes, "/code", "at most 1048576"));
        buf.len = 0;
        buf_printf(&buf, "{\"preload\": [\"a\"");
        for (int i = 0; i < 100; i++)
                buf_printf(&buf, ", \"a\"");
        buf_printf(&buf, "]}");
        CHECK(refused(&object_run_request, buf.bytes, "/preload", "at most 100"));
        buf_done(&buf);
}

static void base64_is_strict(void)
{
        struct arena arena = { 0 };
        union any any;
        struct csn_error err;
        CHECK(decode(&object_run_request, "{\"code_base64\": \"/wBh\"}", &arena, &any, &err) == 0);
        CHECK(HAS(&any.request, run_request, code) && any.request.code.len == 3 &&
              memcmp(any.request.code.bytes, "\xff\0a", 3) == 0);
        CHECK(decode(&object_run_request, "{\"code_base64\": \"YQ==\"}", &arena, &any, &err) == 0 &&
              any.request.code.len == 1);
        CHECK(decode(&object_run_request, "{\"code_base64\": \"YWI=\"}", &arena, &any, &err) == 0 &&
              any.request.code.len == 2);
        CHECK(decode(&object_run_request, "{\"code_base64\": \"\"}", &arena, &any, &err) == 0 &&
              any.request.code.len == 0);
        static const char *const bad[] = { "a",        "YQ",   "YQ=",  "Y===",    "====",
                                           "YQ==YQ==", "YQ =", "-_-_", "YWJj\\n", "YWJ\\u0000" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                char text[80];
                snprintf(text, sizeof text, "{\"code_base64\": \"%s\"}", bad[i]);
                CHECK(refused(&object_run_request, text, "/code_base64", "is not base64"));
        }
        CHECK(refused(&object_run_request, "{\"code\": \"a\", \"code_base64\": \"YQ==\"}", "/code_base64",
                      "give one of them"));
        CHECK(refused(&object_run_request, "{\"code_base64\": \"YQ==\", \"code\": \"a\"}", "/code",
                      "give one of them"));
        arena_done(&arena);
}

/* ---- encoding ---- */

static void bytes_that_are_no_text_stand_there_twice(void)
{
        struct run_result result = { 0 };
        char noise[256];
        for (size_t i = 0; i < sizeof noise; i++)
                noise[i] = (char)i;
        SET(&result, run_result, stdout, ((struct bytes){ noise, sizeof noise }));
        SET(&result, run_result, stderr, ((struct bytes){ (char[]){ "gr\xc3\xbc\xc3\x9f" }, 6 }));
        json_t *json = model_encode(&object_run_result, &result);
        const char *shown = json_string_value(json_object_get(json, "stdout"));
        CHECK(shown && utf8_valid(shown, json_string_length(json_object_get(json, "stdout"))));
        struct arena arena = { 0 };
        json_t *exact = json_object_get(json, "stdout_base64");
        char *expected = model_base64(&arena, noise, sizeof noise);
        CHECK(exact && strcmp(json_string_value(exact), expected) == 0);
        CHECK(!json_object_get(json, "stderr_base64"));
        json_decref(json);
        arena_done(&arena);
}

static void every_invalid_byte_becomes_one_mark(void)
{
        struct arena arena = { 0 };
        static const struct { const char *in, *out; } cases[] = {
                { "abc", "abc" },
                { "a\xffz", "a\xef\xbf\xbdz" },
                { "\xc3", "\xef\xbf\xbd" },
                { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
                { "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
                { "", "" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                size_t len;
                char *out = model_utf8(&arena, cases[i].in, strlen(cases[i].in), &len);
                CHECK(len == strlen(cases[i].out) && strcmp(out, cases[i].out) == 0);
        }
        arena_done(&arena);
}

static void milliseconds_have_three_decimals(void)
{
        struct usage usage = { 0 };
        SET(&usage, usage, wall_ms, 1234.56789);
        SET(&usage, usage, cpu_ms, -1.0);
        json_t *json = model_encode(&object_usage, &usage);
        char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15));
        CHECK(strcmp(text, "{\"wall_ms\":1234.568,\"cpu_ms\":0.0}") == 0);
        free(text);
        json_decref(json);
}

/* Whether the text is byte for byte that of the tree. */
static bool is_written_alike(const struct object *object, const void *from)
{
        struct buf text, tree;
        buf_init(&text, MIB);
        buf_init(&tree, MIB);
        json_t *json = model_encode(object, from);
        bool alike = model_encode_text(object, from, &text) && model_dump(json, false, &tree) &&
                strcmp(text.bytes, tree.bytes) == 0;
        if (!alike)
                printf("# %s is\n# %s, and its tree\n# %s\n", object->name, text.bytes, tree.bytes);
        json_decref(json);
        buf_done(&text);
        buf_done(&tree);
        return alike;
}

static void a_text_is_what_its_tree_would_be(void)
{
        for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
                struct arena arena = { 0 };
                struct csn_error err;
                union any any = { 0 };
                CHECK(is_written_alike(objects[i], &any));
                json_t *in = sample(objects[i]);
                CHECK(model_decode(objects[i], in, &arena, &any, &err) == 0 && is_written_alike(objects[i], &any));
                json_decref(in);
                arena_done(&arena);
        }
}

static void numbers_of_every_size_are_written_as_in_a_tree(void)
{
        static const double numbers[] = { 0, 0.0004, 0.0005, 0.001, 0.01, 0.1, 0.25, 1, 1.5, 9.9995, 10, 100.01,
                1234.56789, 99999.999, 1e6, 123456789.125, 999999999.9994, 1e9, 1234567890.123, 1e11, 999999999999.0,
                1e12, 1e300, -1, -1e300, 1e-7, 4e-6, 99e-6, 100e-6, 0.000123, 0.123456, 1.000001 };
        static const int64_t integers[] = { 0, 1, -1, 9, 10, 4294967296, INT64_MAX, INT64_MIN };
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
                struct usage usage = { 0 };
                struct grade_case one = { 0 };
                SET(&usage, usage, wall_ms, numbers[i]);
                SET(&one, grade_case, tolerance, numbers[i]);
                CHECK(is_written_alike(&object_usage, &usage));
                CHECK(is_written_alike(&object_grade_case, &one));
        }
        for (size_t i = 0; i < ARRAY_LEN(integers); i++) {
                struct run_result result = { 0 };
                SET(&result, run_result, exit_code, integers[i]);
                SET(&result.limits, limits, memory_bytes, (uint64_t)integers[i]);
                CHECK(is_written_alike(&object_run_result, &result));
        }
}

static void texts_of_any_bytes_are_written_as_in_a_tree(void)
{
        struct run_result result = { 0 };
        struct pair labels[] = { { (char[]){ "twice" }, (char[]){ "1" } }, { (char[]){ "bad\xff" }, (char[]){ "2" } },
                { (char[]){ "twice" }, (char[]){ "3\xff" } } };
        struct pair data[] = { { (char[]){ "a\"b\\" }, (char[]){ "\x01\x7f/" } } };
        struct value *value = &result.result;
        char noise[512];
        for (size_t i = 0; i < sizeof noise; i++)
                noise[i] = (char)i;
        SET(&result, run_result, stdout, ((struct bytes){ noise, sizeof noise }));
        SET(&result, run_result, stderr, ((struct bytes){ noise, 128 }));
        SET(&result, run_result, id,
                (char[]){ "tab\there, \"quotes\", \\, gr\xc3\xbc\xc3\x9f, \xed\xa0\x80 and \xff" });
        SET(&result, run_result, labels, labels);
        result.labels_n = ARRAY_LEN(labels);
        SET(value, value, value, (char[]){ "{\"a\": [1.0, 0.1234567890123456, 1e100, null, \"\\u0000\"], \"b\": {}}" });
        SET(value, value, data, data);
        value->data_n = ARRAY_LEN(data);
        MARK(&result, run_result, result);
        CHECK(is_written_alike(&object_run_result, &result));
        value->value = (char[]){ "no JSON" };
        CHECK(is_written_alike(&object_run_result, &result));
}

static void a_text_ends_where_there_is_no_room(void)
{
        struct run_result result = { 0 };
        struct buf whole, some;
        buf_init(&whole, MIB);
        CHECK(model_encode_text(&object_run_result, &result, &whole));
        for (size_t max = 0; max < whole.len; max++) {
                buf_init(&some, max);
                CHECK(!model_encode_text(&object_run_result, &result, &some) && some.len <= max);
                buf_done(&some);
        }
        buf_done(&whole);
}

static void an_empty_result_still_has_every_required_field(void)
{
        struct run_result result = { 0 };
        json_t *json = model_encode(&object_run_result, &result);
        for (size_t i = 0; i < object_run_result.n; i++)
                CHECK(!!json_object_get(json, object_run_result.fields[i].name) ==
                      (object_run_result.fields[i].presence != OPTIONAL));
        CHECK(json_is_null(json_object_get(json, "exit_code")) &&
              json_is_null(json_object_get(json, "boundary")));
        json_decref(json);
}

static void names_of_older_systems_are_all_there(void)
{
        static const char *const names[] = {
                "success", "output", "execution_id", "return_code", "generated_files", "exception",
                "duration", "max_memory_mb", "test_results", "all_passed", "return_value", "metrics",
                "execution_time_seconds", "execution_time", "sandbox_id", "validation_result",
                "started_at", "completed_at",
        };
        struct run_result result = { 0 };
        struct output_file files[] = { { .name = (char[]){ "a/b.txt" } } };
        SET(&result, run_result, id, (char[]){ "run-1" });
        SET(&result, run_result, status, status_FAILED);
        SET(&result, run_result, exit_code, 3);
        SET(&result, run_result, stdout, ((struct bytes){ (char[]){ "h\xff" }, 2 }));
        SET(&result, run_result, files, files);
        result.files_n = 1;
        SET(&result.result, value, value, (char[]){ "[1, 2]" });
        MARK(&result, run_result, result);
        result.usage.wall_ms = 1500;
        result.usage.memory_peak_bytes = 3 * MIB;
        json_t *json = model_encode(&object_run_result, &result);
        model_add_aliases(json, &result);
        json_t *aliases = json_object_get(json, "aliases");
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                CHECK(json_object_get(aliases, names[i]));
        CHECK(json_is_false(json_object_get(aliases, "success")));
        CHECK(json_integer_value(json_object_get(aliases, "return_code")) == 3);
        CHECK(json_real_value(json_object_get(aliases, "duration")) == 1.5);
        CHECK(json_real_value(json_object_get(aliases, "max_memory_mb")) == 3);
        CHECK(json_array_size(json_object_get(aliases, "return_value")) == 2);
        CHECK(strcmp(json_string_value(json_array_get(json_object_get(aliases, "generated_files"), 0)),
                     "a/b.txt") == 0);
        CHECK(strcmp(json_string_value(json_object_get(aliases, "output")), "h\xef\xbf\xbd") == 0);
        json_decref(json);
}

static void each_status_has_a_name_and_an_exit_status(void)
{
        CHECK(choices_status.n == 17);
        for (int i = 0; i < (int)choices_status.n; i++)
                CHECK(status_name(i)[0] && status_exit(i) >= -1 && status_exit(i) < 256);
        CHECK(status_exit(status_TIMEOUT) == 124 && status_exit(status_MEMORY_EXCEEDED) == 137);
        CHECK(status_exit(status_ENGINE_ERROR) == 125 && status_exit(status_COMPLETED) == -1);
        CHECK(strcmp(status_name(99), "engine_error") == 0 && strcmp(status_name(-1), "engine_error") == 0 &&
              status_exit(99) == 125);
}

/* ---- defaults and overlays ---- */

static void defaults_fill_what_is_not_set(void)
{
        struct run_request request = { 0 };
        SET(&request.limits, limits, wall_ms, 5);
        model_defaults(&object_run_request, &request);
        CHECK(request.limits.wall_ms == 5 && request.limits.memory_bytes == 512 * MIB &&
              request.limits.pids == 64);
        CHECK(request.limits.output_bytes == 1000000 && request.limits.value_bytes == 200000);
        CHECK(strcmp(request.backend, "native") == 0 && strcmp(request.profile, "standard") == 0);
        CHECK(request.landlock == need_PREFER && request.network == network_NONE &&
              !HAS(&request, run_request, code));
}

static void an_overlay_changes_what_it_sets_and_nothing_else(void)
{
        struct arena arena = { 0 };
        struct run_request under = { 0 }, over = { 0 };
        struct csn_error err;
        static const char below[] = "{\"code\": \"old\", \"limits\": {\"wall_ms\": 1, \"pids\": 2}, \"env\": "
                                    "{\"A\": \"1\", \"B\": \"2\"},"
                                    " \"args\": [\"x\", \"y\"], \"strict_proc\": true}";
        static const char above[] = "{\"limits\": {\"pids\": 3}, \"env\": {\"B\": \"3\", \"C\": \"4\"}, "
                                    "\"args\": [\"z\"], \"strict_proc\": false}";
        CHECK(model_decode_text(&object_run_request, below, strlen(below), &arena, &under, &err) == 0);
        CHECK(model_decode_text(&object_run_request, above, strlen(above), &arena, &over, &err) == 0);
        model_overlay(&object_run_request, &under, &over, &arena);
        CHECK(under.limits.wall_ms == 1 && under.limits.pids == 3 && !under.strict_proc &&
              under.code.len == 3);
        CHECK(under.env_n == 3 && strcmp(under.env[0].value, "1") == 0 &&
              strcmp(under.env[1].value, "3") == 0 && strcmp(under.env[2].name, "C") == 0);
        CHECK(under.args_n == 1 && strcmp(under.args[0], "z") == 0);
        arena_done(&arena);
}

/* ---- text ---- */

static bool text_is(const char *name, bool exact, const char *text, uint64_t value)
{
        struct arena arena = { 0 };
        struct limits limits = { 0 };
        struct csn_error err;
        const struct field *field = model_field(&object_limits, name);
        int rc = exact ? model_set_value(&object_limits, field, &limits, text, "here", &arena, &err)
                       : model_set_text(&object_limits, field, &limits, text, "here", &arena, &err);
        uint64_t found = *(uint64_t *)(void *)((char *)&limits + field->at);
        arena_done(&arena);
        if (rc < 0 && (strcmp(err.field, "here") != 0 || !strstr(err.text, "here is \"")))
                return false;
        return value ? rc == 0 && found == value && limits.present : rc == -CSN_E_INPUT && !limits.present;
}

static void options_and_files_read_a_bare_number_in_their_own_way(void)
{
        CHECK(text_is("wall_ms", false, "30", 30000) && text_is("wall_ms", true, "30", 30));
        CHECK(text_is("wall_ms", false, "1.5", 1500) && text_is("wall_ms", true, "1.5", 0));
        CHECK(text_is("wall_ms", false, "2min", 120000) && text_is("wall_ms", true, "2min", 120000));
        CHECK(text_is("cpu_milli", false, "2", 2000) && text_is("cpu_milli", true, "2000", 2000));
        CHECK(text_is("cpu_milli", false, "0.5", 500) && text_is("cpu_milli", true, "0.5", 0));
        CHECK(text_is("cpu_milli", false, "500m", 500) && text_is("cpu_milli", true, "500m", 500));
        CHECK(text_is("memory_bytes", false, "512MiB", 512 * MIB) &&
              text_is("memory_bytes", true, "512Mi", 512 * MIB));
        CHECK(text_is("memory_bytes", true, "64000000", 64000000) && text_is("pids", true, "12", 12));
        static const char *const bad[] = {
                "", "-1", "+5", "abc", "1e9", "0x10", "30 000", "5ss", "99999999999999999999", ".", "1..5"
        };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                CHECK(text_is("wall_ms", false, bad[i], 0) && text_is("wall_ms", true, bad[i], 0) &&
                      text_is("pids", true, bad[i], 0));
}

static void switches_and_words_are_read(void)
{
        static const struct { const char *text; bool good, value; } words[] = {
                { "true", true, true }, { "YES", true, true },    { "On", true, true },
                { "1", true, true },    { "false", true, false }, { "no", true, false },
                { "OFF", true, false }, { "0", true, false },     { "maybe", false, false },
                { "", false, false },   { "2", false, false },
        };
        for (size_t i = 0; i < ARRAY_LEN(words); i++) {
                bool value = !words[i].value;
                CHECK(model_parse_bool(words[i].text, &value) == words[i].good &&
                      (!words[i].good || value == words[i].value));
        }
        struct arena arena = { 0 };
        struct run_request request = { 0 };
        struct csn_error err;
        const struct field *landlock = model_field(&object_run_request, "landlock");
        CHECK(model_set_text(&object_run_request, landlock, &request, "require", "--landlock", &arena,
                             &err) == 0);
        CHECK(request.landlock == need_REQUIRE);
        CHECK(model_set_text(&object_run_request, landlock, &request, "Require", "--landlock", &arena,
                             &err) == -CSN_E_INPUT);
        CHECK(strcmp(err.text, "--landlock is \"Require\"; it has to be prefer, require or off") == 0);
        const struct field *user = model_field(&object_run_request, "user");
        CHECK(model_set_text(&object_run_request, user, &request, "\xff", "--user", &arena, &err) ==
              -CSN_E_INPUT);
        const struct field *args = model_field(&object_run_request, "args");
        CHECK(model_set_text(&object_run_request, args, &request, "x", "--args", &arena, &err) ==
              -CSN_E_INPUT);
        arena_done(&arena);
}

static void names_that_are_nearly_right_are_recognised(void)
{
        CHECK(model_alike("wall_ms", "wal_ms") && model_alike("wall_ms", "wall_sm") &&
              model_alike("memory_bytes", "MEMORY_BYTE"));
        CHECK(model_alike("code", "cod") && !model_alike("code", "mode2") && !model_alike("code", "") &&
              !model_alike("wall_ms", "cpu_ms"));
        char text[300];
        memset(text, 'a', sizeof text - 1);
        text[sizeof text - 1] = 0;
        CHECK(!model_alike("wall_ms", text) && !model_alike(text, text));
}

/* ---- checks of whole requests ---- */

static int check(const char *text, bool local, struct csn_error *err)
{
        struct arena arena = { 0 };
        union any any;
        int rc = decode(&object_run_request, text, &arena, &any, err);
        if (rc == 0)
                rc = model_check_request(&any.request, local, err);
        arena_done(&arena);
        return rc;
}

static void variables_that_redirect_a_loader_are_refused(void)
{
        static const char *const bad[] = {
                "LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "BASH_ENV", "ENV", "NODE_OPTIONS",
                "PYTHONSTARTUP", "PYTHONPATH", "BASH_FUNC_x", "1A", "", "A-B", "A=B", "A B", "\xc3\x84",
        };
        static const char *const good[] = {
                "A", "_", "a1", "PATH", "ENVIRONMENT", "LDFLAGS", "PYTHONUNBUFFERED"
        };
        struct csn_error err;
        char text[100];
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                snprintf(text, sizeof text, "{\"env\": {\"%s\": \"x\"}}", bad[i]);
                CHECK(check(text, true, &err) == -CSN_E_INPUT && strcmp(err.field, "/env") == 0 &&
                      strstr(err.text, bad[i]));
        }
        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                snprintf(text, sizeof text, "{\"env\": {\"%s\": \"x\"}}", good[i]);
                CHECK(check(text, true, &err) == 0);
        }
}

static void paths_of_the_host_are_for_local_callers(void)
{
        static const char *const local_only[] = {
                "{\"work_dir\": \"/tmp\"}",
                "{\"exports\": [{\"pattern\": \"*\", \"path\": \"out\"}]}",
                "{\"files\": [{\"name\": \"x\", \"path\": \"/etc/passwd\"}]}",
        };
        struct csn_error err;
        for (size_t i = 0; i < ARRAY_LEN(local_only); i++)
                CHECK(check(local_only[i], true, &err) == 0 &&
                      check(local_only[i], false, &err) == -CSN_E_INPUT &&
                      strstr(err.text, "only the command line and the library"));
        CHECK(check("{\"files\": [{\"name\": \"x\", \"content\": \"\"}]}", false, &err) == 0);
        CHECK(check("{\"files\": [{\"name\": \"x\"}]}", true, &err) == -CSN_E_INPUT);
        CHECK(check("{\"files\": [{\"name\": \"x\", \"content\": \"\", \"path\": \"y\"}]}", true, &err) ==
              -CSN_E_INPUT);
        CHECK(check("{\"files\": [{\"content\": \"\"}]}", true, &err) == -CSN_E_INPUT);
}

static void only_words_of_the_table_can_be_asked_for(void)
{
        struct csn_error err;
        char text[100];
        for (size_t i = 0; i < choices_network.n; i++) {
                snprintf(text, sizeof text, "{\"network\": \"%s\"}", choices_network.values[i].text);
                CHECK(check(text, false, &err) == 0);
        }
        CHECK(check("{\"network\": \"host\"}", false, &err) == -CSN_E_INPUT);
        CHECK(strcmp(err.field, "/network") == 0 && strstr(err.text, "has to be none"));
        CHECK(check("{\"cgroup\": \"off\"}", false, &err) == -CSN_E_INPUT &&
              strstr(err.text, "prefer or require"));
}

static void a_line_of_packages_is_split_and_checked(void)
{
        struct arena arena = { 0 };
        struct csn_error err;
        char **list;
        size_t n;
        CHECK(model_parse_packages("numpy, pandas;requests==2.28.0;", &arena, &list, &n, &err) == 0 &&
              n == 3);
        CHECK(strcmp(list[0], "numpy") == 0 && strcmp(list[1], "pandas") == 0 &&
              strcmp(list[2], "requests==2.28.0") == 0);
        CHECK(model_parse_packages("\"markitdown[all]\"", &arena, &list, &n, &err) == 0 && n == 1 &&
              strcmp(list[0], "markitdown[all]") == 0);
        CHECK(model_parse_packages("numpy>=1.20,<2; x[a, b]~=1.0, NUMPY>=1.20,<2", &arena, &list, &n, &err) ==
                      0 &&
              n == 2 && strcmp(list[0], "numpy>=1.20,<2") == 0);
        CHECK(model_parse_packages("lodash@4.17.21, @types/node@^20, left-pad", &arena, &list, &n, &err) ==
                      0 &&
              n == 3);
        CHECK(model_parse_packages("", &arena, &list, &n, &err) == 0 && n == 0);
        CHECK(model_parse_packages(" ; , ;; ", &arena, &list, &n, &err) == 0 && n == 0);
        static const char *const bad[] = {
                "--index-url x",
                "-r requirements.txt",
                "git+https://example.org/x",
                "x;$(id)",
                "numpy\npandas",
                "../x",
                "/etc/passwd",
                "x @ https://example.org/x.whl",
                "file:x",
                "x==",
                "x==1;rm -rf",
                "x`id`",
                "x|y",
                "x&y",
                "x>",
                "[x]",
                "x[",
                "x]",
                "@/x",
                "x@",
                ".",
                "x y",
                "numpy>=1.0,--pre",
                "\xc3\xa4",
                "x\\y",
                "http://x",
        };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                bool said_no = model_parse_packages(bad[i], &arena, &list, &n, &err) == -CSN_E_INPUT;
                if (!said_no)
                        printf("# accepted: %s\n", bad[i]);
                CHECK(said_no && strcmp(err.field, "/packages") == 0);
        }
        struct buf buf;
        buf_init(&buf, MIB);
        for (int i = 0; i < 201; i++)
                buf_printf(&buf, "a%d,", i);
        CHECK(model_parse_packages(buf.bytes, &arena, &list, &n, &err) == -CSN_E_INPUT &&
              strstr(err.text, "at most 200"));
        buf.len = 0;
        buf_printf(&buf, "%0201d", 1);
        CHECK(model_parse_packages(buf.bytes, &arena, &list, &n, &err) == -CSN_E_INPUT &&
              strstr(err.text, "at most 200"));
        buf.len = 0;
        for (int i = 0; i < 10000; i++)
                buf_printf(&buf, "a,");
        CHECK(model_parse_packages(buf.bytes, &arena, &list, &n, &err) == -CSN_E_INPUT &&
              strstr(err.text, "at most 16384"));
        buf_done(&buf);
        CHECK(check("{\"packages\": \"numpy, pandas\"}", false, &err) == 0);
        CHECK(check("{\"packages\": [\"numpy\", \"-e .\"]}", false, &err) == -CSN_E_INPUT);
        arena_done(&arena);
}

static void names_of_modules_are_names(void)
{
        struct csn_error err;
        CHECK(check("{\"preload\": [\"json\", \"os.path\", \"node:fs\"]}", false, &err) == -CSN_E_INPUT);
        CHECK(check("{\"preload\": [\"json\", \"os.path\"]}", false, &err) == 0);
        CHECK(check("{\"preload\": [\"\"]}", false, &err) == -CSN_E_INPUT);
        CHECK(check("{\"preload\": [\"a,b\"]}", false, &err) == -CSN_E_INPUT);
}

/* ---- names ---- */

static void names_and_options_are_unique(void)
{
        for (size_t i = 0; i < ARRAY_LEN(objects); i++)
                for (size_t k = 0; k < objects[i]->n; k++) {
                        const struct field *field = &objects[i]->fields[k];
                        CHECK(model_field(objects[i], field->name) == field && field->help[0]);
                        for (size_t m = 0; field->option && m < object_limits.n; m++)
                                CHECK(&object_limits.fields[m] == field || !object_limits.fields[m].option ||
                                      strcmp(object_limits.fields[m].option, field->option) != 0);
                }
}

int main(void)
{
        RUN(every_object_survives_the_journey);
        RUN(fields_are_written_in_the_order_of_the_table);
        RUN(each_number_keeps_to_its_bounds);
        RUN(each_field_refuses_another_type);
        RUN(what_is_required_is_missed);
        RUN(null_is_as_good_as_left_out);
        RUN(unknown_fields_are_named_with_a_pointer);
        RUN(what_is_not_json_is_refused);
        RUN(nesting_ends_at_a_depth_that_nobody_needs);
        RUN(numbers_beyond_64_bits_are_refused);
        RUN(a_nul_byte_has_a_place_in_bytes_only);
        RUN(lengths_have_ends);
        RUN(base64_is_strict);
        RUN(bytes_that_are_no_text_stand_there_twice);
        RUN(every_invalid_byte_becomes_one_mark);
        RUN(milliseconds_have_three_decimals);
        RUN(a_text_is_what_its_tree_would_be);
        RUN(numbers_of_every_size_are_written_as_in_a_tree);
        RUN(texts_of_any_bytes_are_written_as_in_a_tree);
        RUN(a_text_ends_where_there_is_no_room);
        RUN(an_empty_result_still_has_every_required_field);
        RUN(names_of_older_systems_are_all_there);
        RUN(each_status_has_a_name_and_an_exit_status);
        RUN(defaults_fill_what_is_not_set);
        RUN(an_overlay_changes_what_it_sets_and_nothing_else);
        RUN(options_and_files_read_a_bare_number_in_their_own_way);
        RUN(switches_and_words_are_read);
        RUN(names_that_are_nearly_right_are_recognised);
        RUN(variables_that_redirect_a_loader_are_refused);
        RUN(paths_of_the_host_are_for_local_callers);
        RUN(only_words_of_the_table_can_be_asked_for);
        RUN(a_line_of_packages_is_split_and_checked);
        RUN(names_of_modules_are_names);
        RUN(names_and_options_are_unique);
        return tap_done();
}
