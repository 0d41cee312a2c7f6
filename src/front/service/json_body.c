/* Bodies of JSON within ceilings; see json_body.h. */
#include "front/service/json_body.h"

json_t *json_body_parse(const char *text, size_t len, size_t flags, struct csn_error *err)
{
        json_error_t where;
        if (model_is_deeper(text, len, JSON_BODY_DEPTH_MAX)) {
                err_field(err, "", "the body is nested deeper than %d levels", JSON_BODY_DEPTH_MAX);
                return NULL;
        }
        if (model_has_many_parts(text, len, JSON_BODY_PARTS_MAX)) {
                err_field(err, "", "the body has more than %d values and names", JSON_BODY_PARTS_MAX);
                return NULL;
        }
        json_t *json = json_loadb(text, len, flags, &where);
        if (json_is_object(json))
                return json;
        err_field(err, "", "%s", json ? "the body is no object" : where.text);
        json_decref(json);
        return NULL;
}

json_t *json_text(const char *bytes, size_t len)
{
        struct arena arena = { 0 };
        size_t n;
        const char *text = model_utf8(&arena, bytes ? bytes : "", len, &n);
        json_t *json = json_stringn(text, n);
        arena_done(&arena);
        return json;
}
