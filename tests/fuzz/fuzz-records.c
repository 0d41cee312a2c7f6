/* Records of data sets: hostile JSON in every format, and bytes as a pickle and as compressed tests. */
#include "grading/formats/formats.h"
#include "grading/formats/record.h"

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void read_pickle(const char *bytes, size_t len)
{
        const char *text, *why;
        size_t text_len;
        if (pickle_read_text(bytes, len, &text, &text_len, &why))
                require(text >= bytes && text + text_len < bytes + len);
        else
                require(why != NULL);
}

static void unpack(const char *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct csn_error err;
        json_t *value = json_string(model_base64(&arena, bytes, len)), *opened = NULL;
        record_begin();
        if (record_unpack(value, "/x", &opened, &err) < 0)
                require(err.code == CSN_E_RECORD);
        json_decref(opened);
        json_decref(value);
        arena_done(&arena);
}

/* What is refused says where; what is accepted has tests. */
static void apply(const char *bytes, size_t len, const char *format)
{
        json_error_t where;
        struct csn_error err;
        json_t *json = model_load(bytes, len, &where);
        if (json_is_object(json)) {
                json_object_set_new(json, "format", json_string(format));
                if (format_apply(json, &err) < 0)
                        require(err.code == CSN_E_RECORD && err.text[0]);
                else
                        require(json_object_size(json) >= 2);
        }
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        const char *text = (const char *)bytes;
        format_set_record_bytes(1 * MIB);
        read_pickle(text, len);
        unpack(text, len);
        if (len && !model_is_deeper(text, len, MODEL_DEPTH_MAX))
                for (size_t i = 0; i < choices_grade_format.n; i++)
                        if (i != grade_format_CAISSON)
                                apply(text, len, choices_grade_format.values[i].text);
        return 0;
}
