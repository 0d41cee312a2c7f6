/* Errors and the output of programs on our streams. */
#include "front/remote/remote.h"

int remote_fail(const struct csn_error *err)
{
        struct arena arena = { 0 };
        fprintf(stderr, "caisson: %s\n", cli_in_options(err->text, err->field, &arena));
        arena_done(&arena);
        return csn_code_exit(err->code);
}

int remote_usage(const struct remote *remote, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        fprintf(stderr, "caisson: %s %s: ", remote->part->command, remote->part->name);
        vfprintf(stderr, fmt, args);
        fprintf(stderr, "; see caisson help %s\n", remote->part->command);
        va_end(args);
        return 64;
}

bool remote_print(int stream, bool raw, const void *bytes, size_t len)
{
        static int is_terminal[3] = { -1, -1, -1 };
        if (is_terminal[stream] < 0)
                is_terminal[stream] = isatty(stream);
        if (raw || !is_terminal[stream])
                return io_write_all(stream, bytes, len) == 0;
        char *visible = mem_alloc(4 * len + 1);
        bool good = io_write_all(stream, visible, cli_visible(bytes, len, visible)) == 0;
        free(visible);
        return good;
}

/* RFC 4648.  Any other character ends the text, which comes from our own encoder. */
static size_t decode_base64(const char *text, size_t len, char *out)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        unsigned bits = 0, bits_n = 0;
        size_t n = 0;
        for (size_t i = 0; i < len; i++) {
                const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
                if (!digit)
                        break;
                bits = bits << 6 | (unsigned)(digit - digits);
                bits_n += 6;
                if (bits_n >= 8) {
                        bits_n -= 8;
                        out[n++] = (char)(bits >> bits_n & 0xff);
                }
        }
        return n;
}

bool remote_print_event(int stream, bool raw, json_t *event)
{
        json_t *exact = json_object_get(event, "base64"), *text = json_object_get(event, "text");
        if (!exact)
                return remote_print(stream, raw, json_string_value(text), json_string_length(text));
        char *bytes = mem_alloc(json_string_length(exact) + 1);
        bool good = remote_print(stream, raw, bytes,
                decode_base64(json_string_value(exact), json_string_length(exact), bytes));
        free(bytes);
        return good;
}
