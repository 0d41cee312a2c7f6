/*
 * Objects of a list or a watch; see stream.h.
 *
 * A list of 1,000 pods has 3.4 MiB: a scanner finds the items by their brackets, and each item is parsed by itself.
 */
#include "gateway/kube/stream.h"

static const char *const types[KUBE_EVENT_TYPES] = {
        [KUBE_ADDED] = "ADDED",
        [KUBE_MODIFIED] = "MODIFIED",
        [KUBE_DELETED] = "DELETED",
        [KUBE_BOOKMARK] = "BOOKMARK",
        [KUBE_ERROR] = "ERROR",
};

void kube_stream_init(struct kube_stream *stream, enum kube_stream_kind kind, const struct kube_stream_events *events,
        void *owner)
{
        *stream = (struct kube_stream){ .kind = kind, .events = events, .owner = owner };
        buf_init(&stream->object, KUBE_OBJECT_MAX);
}

void kube_stream_done(struct kube_stream *stream)
{
        buf_done(&stream->object);
}

static int wrong(struct csn_error *err, const char *what)
{
        return err_set(err, CSN_E_PROTOCOL, 0, "the API server's answer is unusable: %s", what);
}

static int keep(struct kube_stream *stream, const char *bytes, size_t len, struct csn_error *err)
{
        return buf_add(&stream->object, bytes, len) ? 0 : wrong(err, "an object has more than 2 MiB");
}

/* ---- watches ---- */

static int take_line(struct kube_stream *stream, struct csn_error *err)
{
        const char *line = stream->object.bytes;
        size_t len = stream->object.len;
        if (!len || strspn(line, " \t\r") == len)
                return 0;
        json_t *event = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
        const char *type = json_string_value(json_object_get(event, "type"));
        const json_t *object = json_object_get(event, "object");
        if (!type || !json_is_object(object)) {
                json_decref(event);
                return wrong(err, "a line of the watch is no event");
        }
        for (enum kube_event_type i = 0; i < KUBE_EVENT_TYPES; i++)
                if (strcmp(types[i], type) == 0)
                        stream->events->object(stream->owner, i, object);
        json_decref(event);
        return 0;
}

static int take_lines(struct kube_stream *stream, const char *bytes, size_t len, struct csn_error *err)
{
        while (len) {
                const char *end = memchr(bytes, '\n', len);
                size_t n = end ? (size_t)(end - bytes) : len;
                if (n && keep(stream, bytes, n, err) < 0)
                        return -err->code;
                if (!end)
                        return 0;
                int rc = take_line(stream, err);
                stream->object.len = 0;
                buf_trim(&stream->object);
                if (rc < 0)
                        return rc;
                bytes += n + 1;
                len -= n + 1;
        }
        return 0;
}

/* ---- lists ---- */

/* An item or the metadata is complete. */
static int end_object(struct kube_stream *stream, struct csn_error *err)
{
        json_t *object = json_loadb(stream->object.bytes, stream->object.len, JSON_REJECT_DUPLICATES, NULL);
        bool good = json_is_object(object);
        if (good && stream->is_metadata)
                stream->events->metadata(stream->owner, object);
        else if (good)
                stream->events->object(stream->owner, KUBE_ADDED, object);
        json_decref(object);
        stream->object.len = 0;
        buf_trim(&stream->object);
        stream->is_object = stream->is_metadata = false;
        return good ? 0 : wrong(err, "an item of the list is no JSON");
}

static bool has_key(const struct kube_stream *stream, const char *key)
{
        return stream->key_len == strlen(key) && memcmp(stream->key, key, stream->key_len) == 0;
}

static void open_bracket(struct kube_stream *stream, char c)
{
        unsigned depth = ++stream->depth;
        if (depth == 1)
                stream->is_key = c == '{';
        else if (depth == 2 && c == '[' && has_key(stream, "items"))
                stream->in_items = true;
        else if (c == '{' && ((depth == 3 && stream->in_items) || (depth == 2 && has_key(stream, "metadata")))) {
                stream->is_object = true;
                stream->is_metadata = depth == 2;
        }
}

/* Does the bracket end the object being collected? */
static bool close_bracket(struct kube_stream *stream)
{
        unsigned depth = --stream->depth;
        if (stream->is_object)
                return depth == (stream->is_metadata ? 1 : 2);
        if (depth == 1)
                stream->in_items = false;
        stream->is_over = depth == 0;
        return false;
}

static void take_text(struct kube_stream *stream, char c)
{
        bool key = stream->is_key && stream->depth == 1;
        if (!stream->escaped && c == '"') {
                stream->in_text = false;
                return;
        }
        stream->escaped = !stream->escaped && c == '\\';
        if (key && stream->key_len < sizeof stream->key)
                stream->key[stream->key_len++] = c;
}

/* A byte outside of texts.  Sets *ret_ends for the last byte of a collected object. */
static int take_byte(struct kube_stream *stream, char c, bool *ret_ends, struct csn_error *err)
{
        if (strchr(" \t\r\n", c) && c)
                return 0;
        if (stream->is_over || (!stream->depth && c != '{'))
                return wrong(err, "no list");
        switch (c) {
        case '"':
                stream->in_text = true;
                if (stream->depth == 1 && stream->is_key)
                        stream->key_len = 0;
                return 0;
        case '{':
        case '[':
                open_bracket(stream, c);
                return 0;
        case '}':
        case ']':
                *ret_ends = close_bracket(stream);
                return 0;
        case ':':
        case ',':
                if (stream->depth == 1)
                        stream->is_key = c == ',';
                return 0;
        default:
                return 0;
        }
}

static int take_list(struct kube_stream *stream, const char *bytes, size_t len, struct csn_error *err)
{
        size_t from = 0;
        for (size_t i = 0; i < len; i++) {
                bool was = stream->is_object, ends = false;
                if (stream->in_text)
                        take_text(stream, bytes[i]);
                else if (take_byte(stream, bytes[i], &ends, err) < 0)
                        return -err->code;
                if (stream->is_object && !was)
                        from = i;
                if (ends) {
                        if (keep(stream, bytes + from, i + 1 - from, err) < 0 || end_object(stream, err) < 0)
                                return -err->code;
                        from = i + 1;
                }
        }
        if (stream->is_object && from < len)
                return keep(stream, bytes + from, len - from, err);
        return 0;
}

int kube_stream_take(struct kube_stream *stream, const char *bytes, size_t len, struct csn_error *err)
{
        return stream->kind == KUBE_LIST ? take_list(stream, bytes, len, err) : take_lines(stream, bytes, len, err);
}

bool kube_stream_is_complete(const struct kube_stream *stream)
{
        return stream->kind == KUBE_WATCH || stream->is_over;
}
