/* Members of records: taken out, parsed, and decompressed within bounds. */
#include "grading/formats/record.h"
#include "grading/formats/formats.h"

#include <stdio.h>
#include <zlib.h>

#define PARTS_MAX 4000000       /* values and names in all texts of JSON of a record: 200 MiB when parsed */
#define RECORD_BYTES (64 * MIB) /* default of grading.record_bytes, as in settings.def */
#define CHUNK (64 * KIB)

/* Helper threads read the bound. */
static _Atomic uint64_t record_bytes = RECORD_BYTES;

void format_set_record_bytes(uint64_t bytes)
{
        record_bytes = bytes;
}

/* Of the record being read by this thread. */
static _Thread_local size_t parts_left = PARTS_MAX;

void record_begin(void)
{
        parts_left = PARTS_MAX;
}

/* Counts as model_has_many_parts() does. */
static size_t count_parts(const char *text, size_t len)
{
        size_t n = 1;
        bool string = false;
        for (size_t i = 0; i < len; i++) {
                char c = text[i];
                if (string && c == '\\')
                        i++;
                else if (c == '"')
                        string = !string;
                else if (!string)
                        n += c == ',' || c == ':' || c == '[' || c == '{';
        }
        return n;
}

int record_fail(struct csn_error *err, const char *field, const char *fmt, ...)
{
        char text[600];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        err_field(err, field, "%s", text);
        err->code = CSN_E_RECORD;
        return -err->code;
}

json_t *record_take(json_t *json, const char *name)
{
        json_t *value = json_incref(json_object_get(json, name));
        json_object_del(json, name);
        if (!json_is_null(value))
                return value;
        json_decref(value);
        return NULL;
}

void record_default(json_t *json, const char *name, json_t *value)
{
        if (json_object_get(json, name))
                json_decref(value);
        else
                json_object_set_new(json, name, value);
}

json_t *record_parse(const char *text, size_t len, bool any)
{
        json_error_t where;
        size_t parts = count_parts(text, len);
        if (parts > parts_left || model_is_deeper(text, len, 2 * MODEL_DEPTH_MAX))
                return NULL;
        parts_left -= parts;
        return model_read(text, len, (any ? JSON_DECODE_ANY : 0) | JSON_ALLOW_NUL, &where);
}

int record_open(const json_t *value, const char *field, json_t **ret, struct csn_error *err)
{
        if (json_is_object(value) || json_is_array(value)) {
                *ret = json_incref((json_t *)(uintptr_t)value);
                return 0;
        }
        if (!json_is_string(value))
                return record_fail(err, field, "it has to be an object or an array, or JSON text of one");
        *ret = record_parse(json_string_value(value), json_string_length(value), false);
        return *ret ? 0 : record_fail(err, field, "the text is no JSON, or the record has more than %d values", PARTS_MAX);
}

/* zlib(3) into the buffer, whose ceiling bounds the result.  NULL, or the error. */
static const char *inflate_into(const struct bytes *packed, struct buf *ret)
{
        z_stream stream = { .next_in = (Bytef *)packed->bytes, .avail_in = (uInt)packed->len };
        char *chunk;
        int rc = inflateInit(&stream);
        const char *wrong = rc == Z_OK ? NULL : "zlib has no memory";
        if (wrong)
                return wrong;
        chunk = mem_alloc(CHUNK);
        while (rc == Z_OK) {
                stream.next_out = (Bytef *)chunk;
                stream.avail_out = CHUNK;
                rc = inflate(&stream, Z_NO_FLUSH);
                if ((rc == Z_OK || rc == Z_STREAM_END) && !buf_add(ret, chunk, CHUNK - stream.avail_out)) {
                        wrong = "it is longer than grading.record_bytes when it is decompressed; raise that setting";
                        break;
                }
        }
        if (!wrong && rc != Z_STREAM_END)
                wrong = "it is no zlib, or it is cut";
        free(chunk);
        inflateEnd(&stream);
        return wrong;
}

static int parse_packed(const struct buf *plain, const char *field, json_t **ret, struct csn_error *err)
{
        const char *text = plain->bytes, *why;
        size_t len = plain->len;
        bool is_json = len && strchr("[{ \t\r\n", *text);
        if (!is_json && !pickle_read_text(plain->bytes ? plain->bytes : "", plain->len, &text, &len, &why))
                return record_fail(err, field, "the decompressed tests are neither JSON nor a pickle of one text: %s",
                        why);
        *ret = record_parse(text, len, false);
        return *ret
                ? 0
                : record_fail(err, field, "the decompressed text is no JSON, or the record has more than %d values", PARTS_MAX);
}

int record_unpack(const json_t *value, const char *field, json_t **ret, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct bytes packed;
        struct buf plain;
        const char *text = json_string_value(value), *wrong;
        size_t len = json_string_length(value);
        if (!text || len == 0 || strchr("[{ \t\r\n", *text))
                return record_open(value, field, ret, err);
        if (!model_unbase64(&arena, text, len, &packed) || packed.len > UINT32_MAX) {
                arena_done(&arena);
                return record_fail(err, field, "the text is neither JSON nor base64 of compressed JSON");
        }
        buf_init(&plain, record_bytes);
        wrong = inflate_into(&packed, &plain);
        int rc = wrong ? record_fail(err, field, "the compressed text: %s", wrong)
                       : parse_packed(&plain, field, ret, err);
        buf_done(&plain);
        arena_done(&arena);
        return rc;
}

int record_move_text(json_t *json, const char *name, const char *ours, struct csn_error *err)
{
        char field[RECORD_FIELD_MAX];
        json_t *value = record_take(json, name);
        snprintf(field, sizeof field, "/%s", name);
        if (value && !json_is_string(value)) {
                json_decref(value);
                return record_fail(err, field, "%s has to be a text", name);
        }
        if (value)
                record_default(json, ours, value);
        return 0;
}
