/* Frames of caissond's socket as bytes; see frames.h. */
#include "front/socket/frames.h"

#include "model/model.h"

static const struct rule {
        enum frame_type type;
        enum frame_from from;
        const char *name;
        uint64_t min, max;
} rules[] = {
        { FRAME_REQUEST, FROM_CLIENT, "REQUEST", 2, FRAME_REQUEST_MAX },
        { FRAME_CANCEL, FROM_CLIENT, "CANCEL", 0, 0 },
        { FRAME_ASK, FROM_CLIENT, "ASK", 0, 0 },
        { FRAME_CHECK, FROM_CLIENT, "CHECK", 2, FRAME_CHECK_MAX },
        { FRAME_OUTPUT, FROM_DAEMON, "OUTPUT", 2, 1 + FRAME_OUTPUT_MAX },
        { FRAME_RECORD, FROM_DAEMON, "RECORD", 2, FRAME_RECORD_MAX },
        { FRAME_STATUS, FROM_DAEMON, "STATUS", 2, FRAME_STATUS_MAX },
        { FRAME_ERROR, FROM_DAEMON, "ERROR", 2, FRAME_ERROR_MAX },
        { FRAME_CHECKED, FROM_DAEMON, "CHECKED", 2, FRAME_CHECKED_MAX },
};

static void put_u32(uint8_t *bytes, uint32_t number)
{
        for (int i = 0; i < 4; i++)
                bytes[i] = (uint8_t)(number >> 8 * i);
}

static uint32_t get_u32(const uint8_t *bytes)
{
        return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

void frame_put(uint8_t bytes[static FRAME_HEADER], const struct frame *frame)
{
        memset(bytes, 0, FRAME_HEADER);
        put_u32(bytes, frame->len);
        put_u32(bytes + 4, frame->id);
        bytes[8] = (uint8_t)frame->type;
}

int frame_get(const uint8_t bytes[static FRAME_HEADER], enum frame_from from, struct frame *ret, struct csn_error *err)
{
        const struct frame frame = { .len = get_u32(bytes), .id = get_u32(bytes + 4), .type = bytes[8] };
        const struct rule *rule = NULL;
        for (size_t i = 0; i < ARRAY_LEN(rules) && !rule; i++)
                if (rules[i].type == frame.type && rules[i].from == from)
                        rule = &rules[i];
        if (!rule)
                return err_set(err, CSN_E_PROTOCOL, 0, "there is no frame of type %u in this direction", bytes[8]);
        if (bytes[9] || bytes[10] || bytes[11])
                return err_set(err, CSN_E_PROTOCOL, 0, "the last three bytes of a header have to be 0");
        if (frame.len < rule->min || frame.len > rule->max)
                return err_set(err, CSN_E_PROTOCOL, 0, "a %s of %u bytes; %llu to %llu are allowed", rule->name,
                        frame.len, (unsigned long long)rule->min, (unsigned long long)rule->max);
        if (frame.id == 0 && frame.type != FRAME_ERROR)
                return err_set(err, CSN_E_PROTOCOL, 0, "a %s needs an id that is not 0", rule->name);
        *ret = frame;
        return 0;
}

void frame_reader_init(struct frame_reader *reader, enum frame_from from)
{
        *reader = (struct frame_reader){ .from = from };
}

void frame_reader_done(struct frame_reader *reader)
{
        buf_done(&reader->payload);
        frame_reader_init(reader, reader->from);
}

bool frame_is_partial(const struct frame_reader *reader)
{
        bool whole = reader->head_n == FRAME_HEADER && reader->body_n == reader->frame.len + 1ULL;
        return reader->head_n && !whole;
}

/* Moves the caller's bytes on by as many as are wanted and there. */
static size_t take(const uint8_t **bytes, size_t *len, size_t wanted, const uint8_t **ret)
{
        size_t n = min_u64(*len, wanted);
        *ret = *bytes;
        *bytes += n;
        *len -= n;
        return n;
}

static int read_head(struct frame_reader *reader, const uint8_t **bytes, size_t *len, struct csn_error *err)
{
        const uint8_t *part;
        size_t n = take(bytes, len, FRAME_HEADER - reader->head_n, &part);
        if (n)
                memcpy(reader->head + reader->head_n, part, n);
        reader->head_n += n;
        if (reader->head_n < FRAME_HEADER)
                return FRAME_MORE;
        if (frame_get(reader->head, reader->from, &reader->frame, err) < 0) {
                reader->head_n = 0;
                return -err->code;
        }
        buf_init(&reader->payload, reader->frame.len);
        return FRAME_BEGUN;
}

int frame_read(struct frame_reader *reader, const uint8_t **bytes, size_t *len, struct csn_error *err)
{
        const uint8_t *part;
        if (reader->head_n == FRAME_HEADER && reader->body_n == reader->frame.len + 1ULL)
                frame_reader_done(reader);   /* the frame of the last call */
        if (reader->head_n < FRAME_HEADER)
                return read_head(reader, bytes, len, err);
        size_t n = take(bytes, len, reader->frame.len - reader->body_n, &part);
        if (!reader->body_n && !reader->skip)
                buf_reserve(&reader->payload, reader->frame.len);
        reader->body_n += n;
        if (!reader->skip && !buf_add(&reader->payload, part, n))
                return err_set(err, CSN_E_PROTOCOL, 0, "a payload is longer than its header says");
        if (reader->body_n < reader->frame.len)
                return FRAME_MORE;
        reader->body_n++;   /* one past its end: whole, and told */
        return FRAME_WHOLE;
}

bool frame_put_error(struct buf *buf, const struct csn_error *error)
{
        /* Our sentences may quote bytes that are no UTF-8; JSON has to be. */
        struct arena arena = { 0 };
        size_t text_len, field_len;
        const char *text = model_utf8(&arena, error->text, strlen(error->text), &text_len);
        const char *field = model_utf8(&arena, error->field, strlen(error->field), &field_len);
        json_t *json = json_pack("{s:s, s:s, s:s}", "code", csn_code_name(error->code), "text", text, "field", field);
        char *dump = json_dumps(json, JSON_COMPACT);
        bool fits = dump && buf_add(buf, dump, strlen(dump));
        free(dump);
        json_decref(json);
        arena_done(&arena);
        return fits;
}

void frame_get_error(const char *text, size_t len, struct csn_error *ret)
{
        json_t *json = json_loadb(text, len, 0, NULL);
        const char *name = json_string_value(json_object_get(json, "code"));
        const char *field = json_string_value(json_object_get(json, "field"));
        const char *sentence = json_string_value(json_object_get(json, "text"));
        int code = name ? err_code_of(name) : 0;
        err_set(ret, code ? code : CSN_E_PROTOCOL, 0, "%s",
                sentence ? sentence : "the daemon sent an error that cannot be read");
        memset(ret->field, 0, sizeof ret->field);
        memcpy(ret->field, field ? field : "", min_u64(field ? strlen(field) : 0, sizeof ret->field - 1));
        json_decref(json);
}
