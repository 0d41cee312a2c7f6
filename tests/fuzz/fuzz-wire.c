/* Every message of the supervisor's protocol, and the names of files, from any bytes. */
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct csn_error err, refused;
        struct wire_header header;
        struct wire_shape shape;
        struct wire_limits limits;
        struct wire_volume_order order;
        struct wire_program program;
        uint32_t zygote;
        char *text;
        struct wire_file file;
        struct wire_abilities abilities;
        struct wire_boundary boundary;
        struct wire_exit how;
        struct wire_stats seen;

        wire_get_header(bytes, len, &header, &err);
        if (wire_get_shape(bytes, len, &arena, &shape, &err) == 0) {
                /* What was decoded is encoded to the same bytes. */
                struct buf buf;
                buf_init(&buf, WIRE_MAX + len);
                if (!wire_put_shape(&buf, 1, &shape) || buf.len != len + WIRE_HEADER ||
                        memcmp(buf.bytes + WIRE_HEADER, bytes, len) != 0)
                        abort();
                buf_done(&buf);
        }
        if (wire_get_file(bytes, len, &arena, &file, &err) == 0 &&
                (file.name[0] == '/' || strncmp(file.name, "../", 3) == 0 || strstr(file.name, "/../")))
                abort();
        if (wire_get_program(bytes, len, &arena, &program, &err) == 0) {
                struct buf buf;
                buf_init(&buf, WIRE_MAX + len);
                if (!wire_put_program(&buf, &program) || buf.len != len || memcmp(buf.bytes, bytes, len) != 0)
                        abort();
                buf_done(&buf);
        }
        wire_get_zygote(bytes, len, &arena, &shape, &program, &err);
        wire_get_limits(bytes, len, &limits, &err);
        wire_get_volume(bytes, len, &order, &err);
        wire_get_number(bytes, len, "JOIN", UINT32_MAX, &zygote, &err);
        wire_get_join_guest(bytes, len, &zygote, &zygote, &err);
        wire_get_text(bytes, len, &arena, &text, &err);
        wire_get_abilities(bytes, len, &abilities, &err);
        wire_get_boundary(bytes, len, &boundary, &err);
        wire_get_stats(bytes, len, &seen, &err);
        wire_get_exit(bytes, len, &how, &err);
        wire_get_error(bytes, len, &refused, &err);
        wire_name_check((const char *)bytes, len, &err);
        arena_done(&arena);
        return 0;
}
