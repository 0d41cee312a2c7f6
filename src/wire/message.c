/* Encoding and decoding of the messages between engine and supervisor. */
#include "wire/wire.h"

#include <stdio.h>

/* ---- writing ---- */

static void put_u16(uint8_t *at, uint16_t v)
{
        at[0] = (uint8_t)v;
        at[1] = (uint8_t)(v >> 8);
}

static void put_u32(uint8_t *at, uint32_t v)
{
        put_u16(at, (uint16_t)v);
        put_u16(at + 2, (uint16_t)(v >> 16));
}

static bool add_u64(struct buf *buf, uint64_t v)
{
        uint8_t bytes[8];
        put_u32(bytes, (uint32_t)v);
        put_u32(bytes + 4, (uint32_t)(v >> 32));
        return buf_add(buf, bytes, sizeof bytes);
}

static bool add_text(struct buf *buf, const char *text)
{
        size_t len = text ? strlen(text) : 0;
        return add_u64(buf, len) && buf_add(buf, text ? text : "", len);
}

static bool add_texts(struct buf *buf, char *const *texts, size_t n)
{
        bool fits = add_u64(buf, n);
        for (size_t i = 0; fits && i < n; i++)
                fits = add_text(buf, texts[i]);
        return fits;
}

static bool add_header(struct buf *buf, enum wire_op op, uint32_t job)
{
        uint8_t bytes[WIRE_HEADER];
        put_u32(bytes, WIRE_MAGIC);
        put_u16(bytes + 4, WIRE_VERSION);
        put_u16(bytes + 6, (uint16_t)op);
        put_u32(bytes + 8, job);
        put_u32(bytes + 12, 0);
        return buf_add(buf, bytes, sizeof bytes);
}

/* The length is known only at the end. */
static bool finish(struct buf *buf, bool fits)
{
        if (fits)
                put_u32((uint8_t *)buf->bytes + 12, (uint32_t)(buf->len - WIRE_HEADER));
        return fits;
}

bool wire_put_plain(struct buf *buf, enum wire_op op, uint32_t job)
{
        return finish(buf, add_header(buf, op, job));
}

bool wire_put_shape(struct buf *buf, uint32_t job, const struct wire_shape *shape)
{
        bool fits = add_header(buf, WIRE_PREPARE, job);
#define N(name) fits = fits && add_u64(buf, shape->name);
        WIRE_SHAPE_NUMBERS(N)
#undef N
        return finish(buf, fits && add_text(buf, shape->label));
}

bool wire_put_join(struct buf *buf, uint32_t job, uint32_t zygote)
{
        return finish(buf, add_header(buf, WIRE_JOIN, job) && add_u64(buf, zygote));
}

bool wire_put_left(struct buf *buf, uint32_t job, uint32_t status)
{
        return finish(buf, add_header(buf, WIRE_LEFT, job) && add_u64(buf, status));
}

bool wire_put_limits(struct buf *buf, uint32_t job, const struct wire_limits *limits)
{
        bool fits = add_header(buf, WIRE_START, job);
#define N(name) fits = fits && add_u64(buf, limits->name);
        WIRE_LIMITS_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

static bool add_program(struct buf *buf, const struct wire_program *program)
{
        return add_texts(buf, program->argv, program->argv_n) && add_texts(buf, program->env, program->env_n);
}

bool wire_put_command(struct buf *buf, enum wire_op op, uint32_t job, const struct wire_program *program)
{
        return finish(buf, add_header(buf, op, job) && add_program(buf, program));
}

static bool add_door(struct buf *buf, enum wire_door door)
{
        uint8_t byte = (uint8_t)door;
        return buf_add(buf, &byte, 1);
}

bool wire_put_program(struct buf *buf, const struct wire_program *program)
{
        return add_door(buf, WIRE_DOOR_PROGRAM) && add_program(buf, program);
}

/* The content is the rest of the packet; whether it is there at all is a number before it. */
bool wire_put_file(struct buf *buf, const struct wire_file *file)
{
        return add_door(buf, WIRE_DOOR_FILE) && add_u64(buf, file->mode) && add_text(buf, file->name) &&
               add_u64(buf, file->content != NULL) && (!file->content || buf_add(buf, file->content, file->content_len));
}

bool wire_put_abilities(struct buf *buf, const struct wire_abilities *abilities)
{
        bool fits = add_header(buf, WIRE_HELLO, 0);
#define N(name) fits = fits && add_u64(buf, abilities->name);
        WIRE_ABILITIES_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

bool wire_put_boundary(struct buf *buf, enum wire_op op, uint32_t job, const struct wire_boundary *boundary)
{
        bool fits = add_header(buf, op, job);
#define N(name) fits = fits && add_u64(buf, boundary->name);
        WIRE_BOUNDARY_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

bool wire_put_seen(struct buf *buf, uint32_t job, const struct wire_seen *seen)
{
        bool fits = add_header(buf, WIRE_SEEN, job);
#define N(name) fits = fits && add_u64(buf, seen->name);
        WIRE_SEEN_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

bool wire_put_exit(struct buf *buf, uint32_t job, const struct wire_exit *how)
{
        bool fits = add_header(buf, WIRE_EXITED, job);
#define N(name) fits = fits && add_u64(buf, how->name);
        WIRE_EXIT_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

bool wire_put_error(struct buf *buf, enum wire_op op, uint32_t job, const struct csn_error *error)
{
        return finish(buf, add_header(buf, op, job) && add_u64(buf, (uint64_t)error->code) && add_u64(buf, (uint64_t)error->sys) &&
                                   add_text(buf, error->field) && add_text(buf, error->text));
}

bool wire_put_text(struct buf *buf, enum wire_op op, uint32_t job, const char *text)
{
        return finish(buf, add_header(buf, op, job) && add_text(buf, text));
}

/* ---- reading ---- */

/* A cursor that remembers that something was missing, so that each field need not be checked. */
struct cursor {
        const uint8_t *at;
        size_t left;
        bool bad;
};

static uint32_t load_u32(const uint8_t *at)
{
        return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t take_u64(struct cursor *c)
{
        if (c->left < 8) {
                c->bad = true;
                return 0;
        }
        uint64_t v = (uint64_t)load_u32(c->at) | (uint64_t)load_u32(c->at + 4) << 32;
        c->at += 8;
        c->left -= 8;
        return v;
}

/* A NUL inside would make two readers see two different texts, so it is refused. */
static char *take_text(struct cursor *c, struct arena *arena, size_t max)
{
        uint64_t len = take_u64(c);
        if (c->bad || len > c->left || len > max || memchr(c->at, 0, (size_t)len)) {
                c->bad = true;
                return NULL;
        }
        char *text = arena_copy(arena, (const char *)c->at, (size_t)len);
        c->at += len;
        c->left -= (size_t)len;
        return text;
}

static char **take_texts(struct cursor *c, struct arena *arena, size_t *ret_n)
{
        uint64_t n = take_u64(c);
        if (c->bad || n > WIRE_ARGS_MAX) {
                c->bad = true;
                return NULL;
        }
        char **texts = arena_alloc(arena, ((size_t)n + 1) * sizeof *texts);
        for (size_t i = 0; i < n && !c->bad; i++)
                texts[i] = take_text(c, arena, WIRE_TEXT_MAX);
        *ret_n = (size_t)n;
        return texts;
}

static int verdict(const struct cursor *c, const char *what, struct csn_error *err)
{
        if (!c->bad && c->left == 0)
                return 0;
        return err_set(err, CSN_E_PROTOCOL, 0, "%s message %s", what, c->bad ? "is cut or out of bounds" : "is too long");
}

int wire_get_header(const uint8_t *bytes, size_t len, struct wire_header *ret, struct csn_error *err)
{
        if (len < WIRE_HEADER)
                return err_set(err, CSN_E_PROTOCOL, 0, "message of %zu bytes has no header", len);
        if (load_u32(bytes) != WIRE_MAGIC)
                return err_set(err, CSN_E_PROTOCOL, 0, "message has a wrong magic number");
        unsigned version = bytes[4] | (unsigned)bytes[5] << 8;
        if (version != WIRE_VERSION)
                return err_set(err, CSN_E_PROTOCOL, 0, "peer speaks version %u, this program %d: install both from one build",
                               version, WIRE_VERSION);
        struct wire_header header = { .op = (uint16_t)(bytes[6] | bytes[7] << 8),
                                      .job = load_u32(bytes + 8),
                                      .len = load_u32(bytes + 12) };
        if (header.len != len - WIRE_HEADER)
                return err_set(err, CSN_E_PROTOCOL, 0, "message says %u bytes and has %zu", header.len, len - WIRE_HEADER);
        *ret = header;
        return 0;
}

static bool is_label(const char *text)
{
        for (const char *at = text; *at; at++)
                if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') || *at == '_' || *at == '-'))
                        return false;
        return text[0] != 0;
}

int wire_get_shape(const uint8_t *body, size_t len, struct arena *arena, struct wire_shape *ret, struct csn_error *err)
{
        struct cursor c = { body, len, false };
        struct wire_shape shape = { 0 };
#define N(name) shape.name = take_u64(&c);
        WIRE_SHAPE_NUMBERS(N)
#undef N
        shape.label = take_text(&c, arena, WIRE_LABEL_MAX);
        c.bad = c.bad || !is_label(shape.label) || (shape.flags & ~(uint64_t)WIRE_FLAGS) != 0;
        if (verdict(&c, "PREPARE", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = shape;
        return 0;
}

static int get_number(const uint8_t *body, size_t len, const char *what, uint32_t max, uint32_t *ret, struct csn_error *err)
{
        struct cursor c = { body, len, false };
        uint64_t number = take_u64(&c);
        c.bad = c.bad || number > max;
        if (verdict(&c, what, err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = (uint32_t)number;
        return 0;
}

int wire_get_join(const uint8_t *body, size_t len, uint32_t *ret_zygote, struct csn_error *err)
{
        return get_number(body, len, "JOIN", UINT32_MAX, ret_zygote, err);
}

int wire_get_left(const uint8_t *body, size_t len, uint32_t *ret_status, struct csn_error *err)
{
        return get_number(body, len, "LEFT", 255, ret_status, err);
}

int wire_get_limits(const uint8_t *body, size_t len, struct wire_limits *ret, struct csn_error *err)
{
        struct cursor c = { body, len, false };
        struct wire_limits limits;
#define N(name) limits.name = take_u64(&c);
        WIRE_LIMITS_NUMBERS(N)
#undef N
        if (verdict(&c, "START", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = limits;
        return 0;
}

static int take_program(struct cursor *c, const char *what, struct arena *arena, struct wire_program *ret, struct csn_error *err)
{
        struct wire_program program = { 0 };
        program.argv = take_texts(c, arena, &program.argv_n);
        program.env = take_texts(c, arena, &program.env_n);
        c->bad = c->bad || program.argv_n == 0 || program.argv[0][0] != '/';
        if (verdict(c, what, err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = program;
        return 0;
}

int wire_get_command(const uint8_t *body, size_t len, struct arena *arena, struct wire_program *ret, struct csn_error *err)
{
        struct cursor c = { body, len, false };
        return take_program(&c, "command", arena, ret, err);
}

static void take_door(struct cursor *c, enum wire_door door)
{
        if (c->left < 1 || c->at[0] != door) {
                c->bad = true;
                return;
        }
        c->at++;
        c->left--;
}

int wire_get_program(const uint8_t *bytes, size_t len, struct arena *arena, struct wire_program *ret, struct csn_error *err)
{
        struct cursor c = { bytes, len, false };
        take_door(&c, WIRE_DOOR_PROGRAM);
        return take_program(&c, "PROGRAM", arena, ret, err);
}

int wire_get_file(const uint8_t *bytes, size_t len, struct arena *arena, struct wire_file *ret, struct csn_error *err)
{
        struct cursor c = { bytes, len, false };
        take_door(&c, WIRE_DOOR_FILE);
        struct wire_file file = { .mode = take_u64(&c) };
        file.name = take_text(&c, arena, WIRE_NAME_MAX);
        uint64_t has_content = take_u64(&c);
        c.bad = c.bad || file.mode > 0777 || has_content > 1;
        if (!c.bad && has_content) {
                file.content = c.at;
                file.content_len = c.left;
                c.left = 0;
        }
        if (verdict(&c, "FILE", err) < 0)
                return -CSN_E_PROTOCOL;
        if (wire_name_check(file.name, strlen(file.name), err) < 0)
                return err_set(err, CSN_E_PROTOCOL, 0, "FILE message has a name that is not allowed");
        *ret = file;
        return 0;
}

int wire_get_abilities(const uint8_t *body, size_t len, struct wire_abilities *ret, struct csn_error *err)
{
        struct cursor c = { body, len, false };
        struct wire_abilities abilities;
#define N(name) abilities.name = take_u64(&c);
        WIRE_ABILITIES_NUMBERS(N)
#undef N
        if (verdict(&c, "HELLO", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = abilities;
        return 0;
}

int wire_get_boundary(const uint8_t *body, size_t len, struct wire_boundary *ret, struct csn_error *err)
{
        struct cursor c = { body, len, false };
        struct wire_boundary boundary;
#define N(name) boundary.name = take_u64(&c);
        WIRE_BOUNDARY_NUMBERS(N)
#undef N
        if (verdict(&c, "boundary", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = boundary;
        return 0;
}

int wire_get_seen(const uint8_t *body, size_t len, struct wire_seen *ret, struct csn_error *err)
{
        struct cursor c = { body, len, false };
        struct wire_seen seen;
#define N(name) seen.name = take_u64(&c);
        WIRE_SEEN_NUMBERS(N)
#undef N
        if (verdict(&c, "SEEN", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = seen;
        return 0;
}

int wire_get_exit(const uint8_t *body, size_t len, struct wire_exit *ret, struct csn_error *err)
{
        struct cursor c = { body, len, false };
        struct wire_exit how;
#define N(name) how.name = take_u64(&c);
        WIRE_EXIT_NUMBERS(N)
#undef N
        if (verdict(&c, "EXITED", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = how;
        return 0;
}

int wire_get_error(const uint8_t *body, size_t len, struct csn_error *ret, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct cursor c = { body, len, false };
        struct csn_error error = { .code = (int)take_u64(&c), .sys = (int)take_u64(&c) };
        const char *field = take_text(&c, &arena, sizeof error.field - 1);
        const char *text = take_text(&c, &arena, sizeof error.text - 1);
        c.bad = c.bad || error.code <= 0;
        int rc = verdict(&c, "error", err);
        if (rc == 0) {
                snprintf(error.field, sizeof error.field, "%s", field);
                snprintf(error.text, sizeof error.text, "%s", text);
                *ret = error;
        }
        arena_done(&arena);
        return rc;
}

int wire_get_text(const uint8_t *body, size_t len, struct arena *arena, char **ret, struct csn_error *err)
{
        struct cursor c = { body, len, false };
        char *text = take_text(&c, arena, WIRE_TEXT_MAX);
        if (verdict(&c, "text", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = text;
        return 0;
}

/* ---- names ---- */

/* U+202A..U+202E, U+2066..U+2069, U+200E, U+200F: they make a list of files read in another order. */
static bool is_bidi(const unsigned char *b)
{
        return b[0] == 0xe2 && ((b[1] == 0x80 && ((b[2] >= 0xaa && b[2] <= 0xae) || b[2] == 0x8e || b[2] == 0x8f)) ||
                                (b[1] == 0x81 && b[2] >= 0xa6 && b[2] <= 0xa9));
}

static int part_check(const char *part, size_t len, struct csn_error *err)
{
        if (len == 0)
                return err_set(err, CSN_E_INPUT, 0, "a part of the name is empty");
        if (len > 255)
                return err_set(err, CSN_E_INPUT, 0, "a part of the name has %zu bytes, 255 are allowed", len);
        if (part[0] == '.' && (len == 1 || (len == 2 && part[1] == '.')))
                return err_set(err, CSN_E_INPUT, 0, "\".\" and \"..\" are not allowed in a name");
        for (size_t i = 0; i < len; i++) {
                const unsigned char *b = (const unsigned char *)part + i;
                if (b[0] < 0x20 || b[0] == 0x7f || (b[0] == 0xc2 && i + 1 < len && b[1] >= 0x80 && b[1] <= 0x9f))
                        return err_set(err, CSN_E_INPUT, 0, "control characters are not allowed in a name");
                if (i + 2 < len && is_bidi(b))
                        return err_set(err, CSN_E_INPUT, 0, "characters that turn the direction of text are not allowed in a name");
        }
        return 0;
}

int wire_name_check(const char *name, size_t len, struct csn_error *err)
{
        if (len == 0 || len > WIRE_NAME_MAX)
                return err_set(err, CSN_E_INPUT, 0, "a name has 1 to %d bytes", WIRE_NAME_MAX);
        if (name[0] == '/')
                return err_set(err, CSN_E_INPUT, 0, "an absolute name is not allowed; names are relative to the home directory");
        if (!utf8_valid(name, len))
                return err_set(err, CSN_E_INPUT, 0, "the name is not UTF-8");
        size_t parts = 0;
        for (size_t at = 0; at <= len; parts++) {
                const char *slash = memchr(name + at, '/', len - at);
                size_t end = slash ? (size_t)(slash - name) : len;
                int rc = part_check(name + at, end - at, err);
                if (rc < 0)
                        return rc;
                at = end + 1;
        }
        if (parts > 32)
                return err_set(err, CSN_E_INPUT, 0, "the name has %zu parts, 32 are allowed", parts);
        return 0;
}
