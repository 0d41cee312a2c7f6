/* A schema and a value, both of strangers: whatever they are, there is an answer, and the same one again. */
#include "tools/tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        json_t *json = json_loadb((const char *)bytes, len, JSON_ALLOW_NUL, NULL);
        json_t *schema = json_object_get(json, "schema"), *value = json_object_get(json, "value");
        struct csn_error err, again;
        if (schema && value && schema_check(schema, value, &err) != schema_check(schema, value, &again))
                abort();
        json_decref(json);
        return 0;
}
