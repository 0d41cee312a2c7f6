/* Encoding and decoding of the messages between engine and supervisor. */
#include "wire/codec.h"
#include "wire/wire.h"

#include <stdio.h>

/* ---- writing ---- */

static bool add_header(struct buf *buf, enum wire_op op, uint32_t job)
{
        uint8_t bytes[WIRE_HEADER];
        codec_put_u32(bytes, WIRE_MAGIC);
        codec_put_u16(bytes + 4, WIRE_VERSION);
        codec_put_u16(bytes + 6, (uint16_t)op);
        codec_put_u32(bytes + 8, job);
        codec_put_u32(bytes + 12, 0);
        return buf_add(buf, bytes, sizeof bytes);
}

/* The length is known only at the end. */
static bool finish(struct buf *buf, bool fits)
{
        if (fits)
                codec_put_u32((uint8_t *)buf->bytes + 12, (uint32_t)(buf->len - WIRE_HEADER));
        return fits;
}

bool wire_put_plain(struct buf *buf, enum wire_op op, uint32_t job)
{
        return finish(buf, add_header(buf, op, job));
}

static bool add_shape(struct buf *buf, const struct wire_shape *shape)
{
        bool fits = true;
#define N(name) fits = fits && codec_add_u64(buf, shape->name);
        WIRE_SHAPE_NUMBERS(N)
#undef N
        fits = fits && codec_add_text(buf, shape->label);
        for (size_t i = 0; i < shape->volumes_n && i < WIRE_VOLUMES_MAX; i++) {
#define N(name) fits = fits && codec_add_u64(buf, shape->volumes[i].name);
                WIRE_VOLUME_NUMBERS(N)
#undef N
                fits = fits && codec_add_text(buf, shape->volumes[i].name);
        }
        return fits;
}

bool wire_put_shape(struct buf *buf, uint32_t job, const struct wire_shape *shape)
{
        return finish(buf, add_header(buf, WIRE_PREPARE, job) && add_shape(buf, shape));
}

bool wire_put_volume(struct buf *buf, uint32_t job, const struct wire_volume_order *order)
{
        bool fits = add_header(buf, WIRE_VOLUME, job);
#define N(name) fits = fits && codec_add_u64(buf, order->name);
        WIRE_VOLUME_ORDER_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

bool wire_put_number(struct buf *buf, enum wire_op op, uint32_t job, uint64_t number)
{
        return finish(buf, add_header(buf, op, job) && codec_add_u64(buf, number));
}

bool wire_put_join_guest(struct buf *buf, uint32_t job, uint32_t sandbox, uint32_t zygote)
{
        return finish(buf,
                add_header(buf, WIRE_JOIN_GUEST, job) && codec_add_u64(buf, sandbox) && codec_add_u64(buf, zygote));
}

bool wire_put_limits(struct buf *buf, enum wire_op op, uint32_t job, const struct wire_limits *limits)
{
        bool fits = add_header(buf, op, job);
#define N(name) fits = fits && codec_add_u64(buf, limits->name);
        WIRE_LIMITS_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

static bool add_program(struct buf *buf, const struct wire_program *program)
{
        return codec_add_texts(buf, program->argv, program->argv_n) &&
                codec_add_texts(buf, program->env, program->env_n);
}

bool wire_put_zygote(struct buf *buf, uint32_t job, const struct wire_shape *shape, const struct wire_program *program)
{
        return finish(buf, add_header(buf, WIRE_ZYGOTE, job) && add_shape(buf, shape) && add_program(buf, program));
}

static bool add_handoff(struct buf *buf, enum wire_handoff handoff)
{
        uint8_t byte = (uint8_t)handoff;
        return buf_add(buf, &byte, 1);
}

bool wire_put_program(struct buf *buf, const struct wire_program *program)
{
        return add_handoff(buf, WIRE_HANDOFF_PROGRAM) && add_program(buf, program);
}

/* The content is the rest of the packet; a number before the content says whether there is content. */
bool wire_put_file(struct buf *buf, const struct wire_file *file)
{
        return add_handoff(buf, file->module ? WIRE_HANDOFF_MODULE : WIRE_HANDOFF_FILE) &&
                codec_add_u64(buf, file->mode) &&
                codec_add_text(buf, file->name) && codec_add_u64(buf, file->content != NULL) &&
                (!file->content || buf_add(buf, file->content, file->content_len));
}

bool wire_put_abilities(struct buf *buf, const struct wire_abilities *abilities)
{
        bool fits = add_header(buf, WIRE_HELLO, 0);
#define N(name) fits = fits && codec_add_u64(buf, abilities->name);
        WIRE_ABILITIES_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

bool wire_put_boundary(struct buf *buf, enum wire_op op, uint32_t job, const struct wire_boundary *boundary)
{
        bool fits = add_header(buf, op, job);
#define N(name) fits = fits && codec_add_u64(buf, boundary->name);
        WIRE_BOUNDARY_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

bool wire_put_stats(struct buf *buf, uint32_t job, const struct wire_stats *seen)
{
        bool fits = add_header(buf, WIRE_STATS, job);
#define N(name) fits = fits && codec_add_u64(buf, seen->name);
        WIRE_STATS_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

bool wire_put_exit(struct buf *buf, uint32_t job, const struct wire_exit *how)
{
        bool fits = add_header(buf, WIRE_EXITED, job);
#define N(name) fits = fits && codec_add_u64(buf, how->name);
        WIRE_EXIT_NUMBERS(N)
#undef N
        return finish(buf, fits);
}

bool wire_put_error(struct buf *buf, enum wire_op op, uint32_t job, const struct csn_error *error)
{
        return finish(buf, add_header(buf, op, job) && codec_add_error(buf, error));
}

bool wire_put_text(struct buf *buf, enum wire_op op, uint32_t job, const char *text)
{
        return finish(buf, add_header(buf, op, job) && codec_add_text(buf, text));
}

/* ---- reading ---- */

int wire_get_header(const uint8_t *bytes, size_t len, struct wire_header *ret, struct csn_error *err)
{
        if (len < WIRE_HEADER)
                return err_set(err, CSN_E_PROTOCOL, 0, "message of %zu bytes has no header", len);
        if (codec_load_u32(bytes) != WIRE_MAGIC)
                return err_set(err, CSN_E_PROTOCOL, 0, "message has a wrong magic number");
        unsigned version = bytes[4] | (unsigned)bytes[5] << 8;
        if (version != WIRE_VERSION)
                return err_set(err, CSN_E_PROTOCOL, 0,
                        "peer speaks version %u, this program %d: install both from one build", version, WIRE_VERSION);
        struct wire_header header = { .op = (uint16_t)(bytes[6] | bytes[7] << 8),
                                      .job = codec_load_u32(bytes + 8),
                                      .len = codec_load_u32(bytes + 12) };
        if (header.len != len - WIRE_HEADER)
                return err_set(err, CSN_E_PROTOCOL, 0, "message says %u bytes and has %zu", header.len,
                        len - WIRE_HEADER);
        *ret = header;
        return 0;
}

static bool is_label(const char *text)
{
        for (const char *at = text; *at; at++)
                if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                            *at == '_' || *at == '-'))
                        return false;
        return text[0] != 0;
}

static void take_volume(struct codec *c, struct arena *arena, struct wire_volume *ret)
{
#define N(name) ret->name = codec_u64(c);
        WIRE_VOLUME_NUMBERS(N)
#undef N
        const char *name = codec_text(c, arena, WIRE_VOLUME_NAME_MAX);
        c->bad = c->bad || ret->read_only > 1 || wire_volume_name_check(name, NULL) < 0;
        if (!c->bad)
                snprintf(ret->name, sizeof ret->name, "%s", name);
}

static struct wire_shape take_shape(struct codec *c, struct arena *arena)
{
        struct wire_shape shape = { 0 };
#define N(name) shape.name = codec_u64(c);
        WIRE_SHAPE_NUMBERS(N)
#undef N
        shape.label = codec_text(c, arena, WIRE_LABEL_MAX);
        c->bad = c->bad || !is_label(shape.label) || (shape.flags & ~(uint64_t)WIRE_FLAGS) != 0 ||
                shape.domain > UINT32_MAX || shape.volumes_n > WIRE_VOLUMES_MAX || shape.devices >> WIRE_DEVICES_MAX;
        for (size_t i = 0; !c->bad && i < shape.volumes_n; i++)
                take_volume(c, arena, &shape.volumes[i]);
        return shape;
}

int wire_get_shape(const uint8_t *body, size_t len, struct arena *arena, struct wire_shape *ret, struct csn_error *err)
{
        struct codec c = { body, len, false };
        struct wire_shape shape = take_shape(&c, arena);
        if (codec_end(&c, "PREPARE", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = shape;
        return 0;
}

int wire_get_number(const uint8_t *body, size_t len, const char *what, uint32_t max, uint32_t *ret,
        struct csn_error *err)
{
        struct codec c = { body, len, false };
        uint64_t number = codec_u64(&c);
        c.bad = c.bad || number > max;
        if (codec_end(&c, what, err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = (uint32_t)number;
        return 0;
}

int wire_get_join_guest(const uint8_t *body, size_t len, uint32_t *ret_sandbox, uint32_t *ret_zygote,
        struct csn_error *err)
{
        struct codec c = { body, len, false };
        uint64_t sandbox = codec_u64(&c), zygote = codec_u64(&c);
        c.bad = c.bad || sandbox > UINT32_MAX || zygote > UINT32_MAX;
        if (codec_end(&c, "JOIN_GUEST", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret_sandbox = (uint32_t)sandbox;
        *ret_zygote = (uint32_t)zygote;
        return 0;
}

int wire_get_volume(const uint8_t *body, size_t len, struct wire_volume_order *ret, struct csn_error *err)
{
        struct codec c = { body, len, false };
        struct wire_volume_order order;
#define N(name) order.name = codec_u64(&c);
        WIRE_VOLUME_ORDER_NUMBERS(N)
#undef N
        if (codec_end(&c, "VOLUME", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = order;
        return 0;
}

int wire_get_limits(const uint8_t *body, size_t len, struct wire_limits *ret, struct csn_error *err)
{
        struct codec c = { body, len, false };
        struct wire_limits limits;
#define N(name) limits.name = codec_u64(&c);
        WIRE_LIMITS_NUMBERS(N)
#undef N
        if (codec_end(&c, "START", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = limits;
        return 0;
}

static int take_program(struct codec *c, const char *what, struct arena *arena, struct wire_program *ret,
        struct csn_error *err)
{
        struct wire_program program = { 0 };
        program.argv = codec_texts(c, arena, &program.argv_n);
        program.env = codec_texts(c, arena, &program.env_n);
        c->bad = c->bad || program.argv_n == 0 || program.argv[0][0] != '/';
        if (codec_end(c, what, err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = program;
        return 0;
}

int wire_get_zygote(const uint8_t *body, size_t len, struct arena *arena, struct wire_shape *ret_shape,
        struct wire_program *ret_program, struct csn_error *err)
{
        struct codec c = { body, len, false };
        struct wire_shape shape = take_shape(&c, arena);
        if (take_program(&c, "ZYGOTE", arena, ret_program, err) < 0)
                return -CSN_E_PROTOCOL;
        *ret_shape = shape;
        return 0;
}

static void take_handoff(struct codec *c, enum wire_handoff handoff)
{
        if (c->left < 1 || c->at[0] != handoff) {
                c->bad = true;
                return;
        }
        c->at++;
        c->left--;
}

int wire_get_program(const uint8_t *bytes, size_t len, struct arena *arena, struct wire_program *ret,
        struct csn_error *err)
{
        struct codec c = { bytes, len, false };
        take_handoff(&c, WIRE_HANDOFF_PROGRAM);
        return take_program(&c, "PROGRAM", arena, ret, err);
}

int wire_get_file(const uint8_t *bytes, size_t len, struct arena *arena, struct wire_file *ret, struct csn_error *err)
{
        struct codec c = { bytes, len, false };
        bool module = len > 0 && bytes[0] == WIRE_HANDOFF_MODULE;
        take_handoff(&c, module ? WIRE_HANDOFF_MODULE : WIRE_HANDOFF_FILE);
        struct wire_file file = { .module = module, .mode = codec_u64(&c) };
        file.name = codec_text(&c, arena, WIRE_NAME_MAX);
        uint64_t has_content = codec_u64(&c);
        c.bad = c.bad || file.mode > 0777 || has_content > 1;
        if (!c.bad && has_content) {
                file.content = c.at;
                file.content_len = c.left;
                c.left = 0;
        }
        if (codec_end(&c, "FILE", err) < 0)
                return -CSN_E_PROTOCOL;
        if (wire_name_check(file.name, strlen(file.name), err) < 0)
                return err_set(err, CSN_E_PROTOCOL, 0, "FILE message has a name that is not allowed");
        *ret = file;
        return 0;
}

int wire_get_abilities(const uint8_t *body, size_t len, struct wire_abilities *ret, struct csn_error *err)
{
        struct codec c = { body, len, false };
        struct wire_abilities abilities;
#define N(name) abilities.name = codec_u64(&c);
        WIRE_ABILITIES_NUMBERS(N)
#undef N
        if (codec_end(&c, "HELLO", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = abilities;
        return 0;
}

int wire_get_boundary(const uint8_t *body, size_t len, struct wire_boundary *ret, struct csn_error *err)
{
        struct codec c = { body, len, false };
        struct wire_boundary boundary;
#define N(name) boundary.name = codec_u64(&c);
        WIRE_BOUNDARY_NUMBERS(N)
#undef N
        if (codec_end(&c, "boundary", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = boundary;
        return 0;
}

int wire_get_stats(const uint8_t *body, size_t len, struct wire_stats *ret, struct csn_error *err)
{
        struct codec c = { body, len, false };
        struct wire_stats seen;
#define N(name) seen.name = codec_u64(&c);
        WIRE_STATS_NUMBERS(N)
#undef N
        if (codec_end(&c, "STATS", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = seen;
        return 0;
}

int wire_get_exit(const uint8_t *body, size_t len, struct wire_exit *ret, struct csn_error *err)
{
        struct codec c = { body, len, false };
        struct wire_exit how;
#define N(name) how.name = codec_u64(&c);
        WIRE_EXIT_NUMBERS(N)
#undef N
        if (codec_end(&c, "EXITED", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = how;
        return 0;
}

int wire_get_error(const uint8_t *body, size_t len, struct csn_error *ret, struct csn_error *err)
{
        struct codec c = { body, len, false };
        struct csn_error error;
        codec_error(&c, &error);
        if (codec_end(&c, "error", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = error;
        return 0;
}

int wire_get_text(const uint8_t *body, size_t len, struct arena *arena, char **ret, struct csn_error *err)
{
        struct codec c = { body, len, false };
        char *text = codec_text(&c, arena, WIRE_TEXT_MAX);
        if (codec_end(&c, "text", err) < 0)
                return -CSN_E_PROTOCOL;
        *ret = text;
        return 0;
}

/* ---- names ---- */

/* U+202A..U+202E, U+2066..U+2069, U+200E, U+200F: these characters make a list of files read in another order. */
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
                        return err_set(err, CSN_E_INPUT, 0,
                                "characters that turn the direction of text are not allowed in a name");
        }
        return 0;
}

int wire_name_check(const char *name, size_t len, struct csn_error *err)
{
        if (len == 0 || len > WIRE_NAME_MAX)
                return err_set(err, CSN_E_INPUT, 0, "a name has 1 to %d bytes", WIRE_NAME_MAX);
        if (name[0] == '/')
                return err_set(err, CSN_E_INPUT, 0,
                        "an absolute name is not allowed; names are relative to the home directory");
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

int wire_volume_name_check(const char *name, struct csn_error *err)
{
        size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-");
        if (len == 0 || name[len] || len > WIRE_VOLUME_NAME_MAX || strchr("._-", name[0]))
                return err_set(err, CSN_E_INPUT, 0,
                        "a volume has a name of 1 to %d characters, which are a-z, 0-9, \".\", \"_\" and \"-\", and begins "
                        "with a letter or a digit",
                        WIRE_VOLUME_NAME_MAX);
        return 0;
}
