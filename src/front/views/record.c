/* Records and requests as JSON, in both directions; see views.h. */
#include "front/views/views.h"

#include <stdio.h>

json_t *front_record(const struct run_result *result, bool aliases)
{
        json_t *record = model_encode(&object_run_result, result);
        if (aliases)
                model_add_aliases(record, result);
        return record;
}

bool front_record_text(const struct run_result *result, bool aliases, struct buf *buf)
{
        if (!aliases)
                return model_encode_text(&object_run_result, result, buf);
        json_t *record = front_record(result, aliases);
        bool fits = model_dump(record, false, buf);
        json_decref(record);
        return fits;
}

json_t *front_grade_result(const struct grade_result *result, bool aliases)
{
        json_t *json = model_encode(&object_grade_result, result);
        if (aliases)
                model_add_grade_aliases(json, result);
        return json;
}

/* Of bytes given both as text and as base64 keeps base64: a decoder accepts either, and not both. */
static void keep_base64(json_t *object, const char *name)
{
        char base64[64];
        snprintf(base64, sizeof base64, "%s_base64", name);
        if (json_object_get(object, base64))
                json_object_del(object, name);
}

int front_read_record(json_t *record, struct arena *arena, struct run_result *ret, struct csn_error *err)
{
        json_t *copy = json_copy(record);
        struct csn_error why = { .text = "it is no object" };
        keep_base64(copy, "stdout");
        keep_base64(copy, "stderr");
        json_object_del(copy, "aliases");
        *ret = (struct run_result){ 0 };
        int rc = model_decode(&object_run_result, copy, arena, ret, &why);
        json_decref(copy);
        return rc < 0 ? err_set(err, CSN_E_PROTOCOL, 0, "the daemon's record cannot be read: %s", why.text) : 0;
}

bool front_write_request(const struct run_request *request, struct buf *buf)
{
        json_t *json = model_encode(&object_run_request, request), *file;
        size_t i;
        keep_base64(json, "code");
        keep_base64(json, "stdin");
        json_array_foreach(json_object_get(json, "files"), i, file) {
                keep_base64(file, "content");
        }
        bool fits = model_dump(json, false, buf);
        json_decref(json);
        return fits;
}

bool front_write_check(const struct check_request *request, struct buf *buf)
{
        json_t *json = model_encode(&object_check_request, request);
        keep_base64(json, "code");
        bool fits = model_dump(json, false, buf);
        json_decref(json);
        return fits;
}
