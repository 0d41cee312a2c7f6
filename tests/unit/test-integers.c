/* Integers of any size in JSON: what is read is written with the same digits. */
#include "model/model.h"

#include "tap.h"

static void integers_of_any_size_go_through(void)
{
        static const char *const texts[] = {
                "{\"a\":[18446744073709551616,-9223372036854775809,1,\"18446744073709551616\"],\"b\":9223372036854775807}",
                "123456789012345678901234567890",
                "[-1e300,1.5,100000000000000000000,true,null,\"integer:\"]",
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
        RUN(integers_of_any_size_go_through);
        return tap_done();
}
