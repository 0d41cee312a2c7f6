/* Encoders and decoders of the protocol between engine and guest. */
#include "wire/guest_protocol.h"

#include "wire/codec.h"

#include <stdio.h>

#define LABEL_NAME_MAX 255
#define ACCOUNT_MAX 64

/* ---- writing ---- */

bool guest_put(struct buf *buf, enum guest_kind kind)
{
        uint8_t byte = (uint8_t)kind;
        return buf_add(buf, &byte, 1);
}

bool guest_put_number(struct buf *buf, enum guest_kind kind, uint64_t number)
{
        return guest_put(buf, kind) && codec_add_u64(buf, number);
}

bool guest_put_pair(struct buf *buf, enum guest_kind kind, uint64_t first, uint64_t second)
{
        return guest_put_number(buf, kind, first) && codec_add_u64(buf, second);
}

bool guest_put_process(struct buf *buf, const struct guest_process *process)
{
        return guest_put_pair(buf, GUEST_PROCESS, process->flags, process->rows) &&
                codec_add_u64(buf, process->columns) && codec_add_u64(buf, process->open_files) &&
                codec_add_text(buf, process->folder) &&
                codec_add_texts(buf, process->argv, process->argv_n) &&
                codec_add_texts(buf, process->env, process->env_n);
}

bool guest_put_file(struct buf *buf, const struct guest_file *file)
{
        return guest_put_pair(buf, GUEST_FILE, file->verb, file->flags) && codec_add_u64(buf, file->mode) &&
                codec_add_u64(buf, file->offset) && codec_add_u64(buf, file->length) &&
                codec_add_u64(buf, file->depth) && codec_add_text(buf, file->path) && codec_add_text(buf, file->to) &&
                codec_add_text(buf, file->space) && codec_add_texts(buf, file->labels, file->labels_n);
}

bool guest_put_entry(struct buf *buf, const struct guest_entry *entry)
{
        return guest_put_pair(buf, GUEST_ENTRY, entry->mode, entry->size) && codec_add_u64(buf, entry->mtime_ms) &&
                codec_add_u64(buf, entry->links) && codec_add_u64(buf, entry->target_mode) &&
                codec_add_text(buf, entry->path) && codec_add_text(buf, entry->target) &&
                codec_add_text(buf, entry->real) && codec_add_text(buf, entry->owner) &&
                codec_add_text(buf, entry->group) && codec_add_texts(buf, entry->labels, entry->labels_n);
}

bool guest_put_event(struct buf *buf, const struct guest_event *event)
{
        return guest_put_pair(buf, GUEST_EVENT, event->what, event->is_folder) && codec_add_text(buf, event->path);
}

bool guest_put_error(struct buf *buf, const struct csn_error *error)
{
        return guest_put(buf, GUEST_FAILED) && codec_add_error(buf, error);
}

bool guest_put_facts(struct buf *buf, const struct guest_facts *facts)
{
        bool fits = guest_put(buf, GUEST_FACTS);
#define N(name) fits = fits && codec_add_u64(buf, facts->name);
        GUEST_FACTS_NUMBERS(N)
#undef N
        return fits;
}

/* ---- reading ---- */

enum guest_kind guest_kind_of(const uint8_t *bytes, size_t len)
{
        return len > 0 && len <= WIRE_MAX && bytes[0] < GUEST_KINDS ? (enum guest_kind)bytes[0] : 0;
}

static struct codec open_packet(const uint8_t *bytes, size_t len)
{
        return (struct codec){ bytes + 1, len - 1, false };
}

int guest_get_number(const uint8_t *bytes, size_t len, uint64_t *ret, struct csn_error *err)
{
        struct codec c = open_packet(bytes, len);
        *ret = codec_u64(&c);
        return codec_end(&c, "number", err);
}

int guest_get_pair(const uint8_t *bytes, size_t len, uint64_t *ret_first, uint64_t *ret_second, struct csn_error *err)
{
        struct codec c = open_packet(bytes, len);
        *ret_first = codec_u64(&c);
        *ret_second = codec_u64(&c);
        return codec_end(&c, "pair", err);
}

int guest_get_process(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_process *ret,
        struct csn_error *err)
{
        struct codec c = open_packet(bytes, len);
        struct guest_process process = { .flags = codec_u64(&c), .rows = codec_u64(&c), .columns = codec_u64(&c) };
        process.open_files = codec_u64(&c);
        process.folder = codec_text(&c, arena, GUEST_PATH_MAX);
        process.argv = codec_texts(&c, arena, &process.argv_n);
        process.env = codec_texts(&c, arena, &process.env_n);
        c.bad = c.bad || process.argv_n == 0 || process.flags & ~(uint64_t)GUEST_PROCESS_FLAGS ||
                process.rows > UINT16_MAX || process.columns > UINT16_MAX || process.open_files > INT32_MAX;
        *ret = process;
        return codec_end(&c, "PROCESS", err);
}

/* Each label has a name, and the total length is within its bound. */
static bool are_labels(char *const *labels, size_t n)
{
        size_t bytes = 0;
        for (size_t i = 0; labels && i < n; i++) {
                bytes += strlen(labels[i]);
                if (labels[i][0] == '=' || !strchr(labels[i], '='))
                        return false;
        }
        return labels && bytes <= GUEST_LABELS_MAX;
}

int guest_get_file(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_file *ret, struct csn_error *err)
{
        struct codec c = open_packet(bytes, len);
        struct guest_file file = { .verb = codec_u64(&c),
                .flags = codec_u64(&c),
                .mode = codec_u64(&c),
                .offset = codec_u64(&c),
                .length = codec_u64(&c),
                .depth = codec_u64(&c) };
        file.path = codec_text(&c, arena, GUEST_PATH_MAX);
        file.to = codec_text(&c, arena, GUEST_PATH_MAX);
        file.space = codec_text(&c, arena, LABEL_NAME_MAX);
        file.labels = codec_texts(&c, arena, &file.labels_n);
        c.bad = c.bad || file.verb == 0 || file.verb >= GUEST_VERBS || file.flags & ~(uint64_t)GUEST_FILE_FLAGS ||
                file.mode > 07777 || file.offset > INT64_MAX || !are_labels(file.labels, file.labels_n);
        *ret = file;
        return codec_end(&c, "FILE", err);
}

int guest_get_entry(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_entry *ret,
        struct csn_error *err)
{
        struct codec c = open_packet(bytes, len);
        struct guest_entry entry = { .mode = codec_u64(&c),
                .size = codec_u64(&c),
                .mtime_ms = codec_u64(&c),
                .links = codec_u64(&c),
                .target_mode = codec_u64(&c) };
        entry.path = codec_text(&c, arena, 2 * GUEST_PATH_MAX);
        entry.target = codec_text(&c, arena, GUEST_PATH_MAX);
        entry.real = codec_text(&c, arena, GUEST_PATH_MAX);
        entry.owner = codec_text(&c, arena, ACCOUNT_MAX);
        entry.group = codec_text(&c, arena, ACCOUNT_MAX);
        entry.labels = codec_texts(&c, arena, &entry.labels_n);
        c.bad = c.bad || entry.mode > UINT16_MAX || entry.size > INT64_MAX || entry.mtime_ms > INT64_MAX ||
                entry.links > INT64_MAX || entry.target_mode > UINT16_MAX || !are_labels(entry.labels, entry.labels_n);
        *ret = entry;
        return codec_end(&c, "ENTRY", err);
}

int guest_get_event(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_event *ret,
        struct csn_error *err)
{
        struct codec c = open_packet(bytes, len);
        struct guest_event event = { .what = codec_u64(&c), .is_folder = codec_u64(&c) };
        event.path = codec_text(&c, arena, 2 * GUEST_PATH_MAX);
        c.bad = c.bad || event.what == 0 || event.what > GUEST_LOST || event.is_folder > 1;
        *ret = event;
        return codec_end(&c, "EVENT", err);
}

int guest_get_error(const uint8_t *bytes, size_t len, struct csn_error *ret, struct csn_error *err)
{
        struct codec c = open_packet(bytes, len);
        codec_error(&c, ret);
        return codec_end(&c, "FAILED", err);
}

int guest_get_facts(const uint8_t *bytes, size_t len, struct guest_facts *ret, struct csn_error *err)
{
        struct codec c = open_packet(bytes, len);
#define N(name) ret->name = codec_u64(&c);
        GUEST_FACTS_NUMBERS(N)
#undef N
        return codec_end(&c, "FACTS", err);
}
