/* model: the generated files, and the JSON Schema of a request. */
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

int main(void)
{
        RUN(generated_files_are_those_of_the_repository);
        RUN(schemas_say_what_the_decoder_does);
        return tap_done();
}
