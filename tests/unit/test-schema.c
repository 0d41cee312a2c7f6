/* model: the generated files, the JSON Schema of a request, and integers of any size in JSON. */
#include "model/settings.h"

#include <fcntl.h>
#include <stdio.h>

#include "tap.h"

static void generated_files_are_those_of_the_repository(void)
{
        size_t n = 0;
        for (;; n++) {
                static char kept[MIB + 1];
                struct buf buf;
                buf_init(&buf, MIB);
                const char *path = generated_file(n, &buf);
                if (!path) {
                        buf_done(&buf);
                        break;
                }
                ssize_t len = io_read_file(AT_FDCWD, path, kept, MIB);
                bool same = len >= 0 && (size_t)len == buf.len && memcmp(kept, buf.bytes, buf.len) == 0;
                if (!same)
                        printf("# %s is not what the tables say; run generate in the root of the sources\n",
                               path);
                CHECK(same);
                buf_done(&buf);
        }
        CHECK(n == 6);
}

static json_t *resolve(json_t *schema, json_t *root)
{
        const char *ref = json_string_value(json_object_get(schema, "$ref"));
        return ref ? json_object_get(json_object_get(root, "$defs"), ref + strlen("#/$defs/")) : schema;
}

static void schemas_say_what_the_decoder_does(void)
{
        json_t *schema = model_schema(&object_run_request);
        json_t *limits = resolve(json_object_get(json_object_get(schema, "properties"), "limits"), schema);
        CHECK(json_is_false(json_object_get(schema, "additionalProperties")));
        CHECK(strncmp(json_string_value(json_object_get(schema, "$id")), "urn:caisson:run_request:", 24) ==
              0);
        CHECK(json_is_false(json_object_get(limits, "additionalProperties")));
        for (size_t i = 0; i < object_limits.n; i++) {
                const struct field *field = &object_limits.fields[i];
                json_t *property = json_object_get(json_object_get(limits, "properties"), field->name);
                CHECK(property &&
                      strcmp(json_string_value(json_object_get(property, "description")), field->help) == 0);
                if (field->kind == KIND_NUM)
                        CHECK((uint64_t)json_integer_value(json_object_get(property, "minimum")) ==
                                      field->min &&
                              (uint64_t)json_integer_value(json_object_get(property, "maximum")) ==
                                      field->max &&
                              (uint64_t)json_integer_value(json_object_get(property, "default")) ==
                                      field->def);
        }
        CHECK(json_object_get(json_object_get(schema, "properties"), "code_base64"));
        json_decref(schema);
}

static void integers_of_any_size_go_through(void)
{
        static const char *const texts[] = {
                "{\"a\":[18446744073709551616,-9223372036854775809,1,\"18446744073709551616\"],\"b\":9223372036854775807}",
                "123456789012345678901234567890", "[-1e300,1.5,100000000000000000000,true,null,\"integer:\"]",
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                json_error_t where;
                json_t *json = model_read(texts[i], strlen(texts[i]), JSON_DECODE_ANY, &where);
                CHECK(json);
                char *text = model_write(json, JSON_COMPACT | JSON_ENCODE_ANY);
                CHECK(text && (i == 2 || strcmp(text, texts[i]) == 0));
                CHECK(i != 2 || (text && strstr(text, ",100000000000000000000,true,null,\"integer:\"]")));
                free(text);
                json_decref(json);
        }
        CHECK(!model_read("1e400", 5, JSON_DECODE_ANY, NULL));
        CHECK(!model_read("[18446744073709551616", 21, JSON_DECODE_ANY, NULL));
        CHECK(model_has_marks());
}

int main(void)
{
        RUN(generated_files_are_those_of_the_repository);
        RUN(schemas_say_what_the_decoder_does);
        RUN(integers_of_any_size_go_through);
        return tap_done();
}
