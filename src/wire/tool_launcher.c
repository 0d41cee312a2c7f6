/* NUL-terminated texts; see tool_launcher.h. */
#include "wire/tool_launcher.h"

#include <inttypes.h>
#include <stdio.h>

static bool put_text(struct buf *buf, const char *text)
{
        return buf_add(buf, text, strlen(text) + 1);
}

static bool put_number(struct buf *buf, uint64_t number)
{
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, number);
        return put_text(buf, text);
}

static bool put_texts(struct buf *buf, const struct launch_texts *list)
{
        bool fits = list->n <= LAUNCH_TEXTS_MAX && put_number(buf, list->n);
        for (size_t i = 0; fits && i < list->n; i++)
                fits = put_text(buf, list->texts[i]);
        return fits;
}

bool launch_put_program(struct buf *buf, const struct launch_program *program)
{
        return put_number(buf, program->uid) && put_number(buf, program->gid) && put_number(buf, program->flags) &&
                put_number(buf, program->memory_bytes) && put_number(buf, program->cpu_s) &&
                put_number(buf, program->processes) && put_text(buf, program->folder) &&
                put_texts(buf, &program->argv) && put_texts(buf, &program->env) && put_texts(buf, &program->read) &&
                put_texts(buf, &program->write);
}

bool launch_put_request(struct buf *buf, size_t program, const struct launch_values *values)
{
        bool fits = put_number(buf, program) && put_number(buf, values->n);
        for (size_t i = 0; fits && i < values->n; i++)
                fits = put_texts(buf, &values->places[i]);
        return fits;
}

/* ---- reading ---- */

struct reader {
        const char *bytes;
        size_t len, at;
        bool bad;
};

static char *get_text(struct reader *reader)
{
        const char *text = reader->bytes + reader->at;
        const char *end = reader->bad ? NULL : memchr(text, 0, reader->len - reader->at);
        if (!end) {
                reader->bad = true;
                return (char *)(uintptr_t)"";
        }
        reader->at += (size_t)(end - text) + 1;
        return (char *)(uintptr_t)text;
}

static uint64_t get_number(struct reader *reader, uint64_t max)
{
        char *end;
        const char *text = get_text(reader);
        errno = 0;
        uint64_t number = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end || errno || number > max)
                reader->bad = true;
        return reader->bad ? 0 : number;
}

static struct launch_texts get_texts(struct reader *reader, struct arena *arena)
{
        struct launch_texts list = { .n = get_number(reader, LAUNCH_TEXTS_MAX) };
        list.texts = arena_alloc(arena, (list.n + 1) * sizeof *list.texts);
        for (size_t i = 0; i < list.n; i++)
                list.texts[i] = get_text(reader);
        return list;
}

int launch_get_program(const char *bytes, size_t len, size_t *at, struct arena *arena, struct launch_program *ret,
        struct csn_error *err)
{
        struct reader reader = { bytes, len, *at, false };
        *ret = (struct launch_program){ 0 };
        ret->uid = (uint32_t)get_number(&reader, UINT32_MAX);
        ret->gid = (uint32_t)get_number(&reader, UINT32_MAX);
        ret->flags = (unsigned)get_number(&reader, LAUNCH_NETWORK | LAUNCH_ISOLATION);
        ret->memory_bytes = get_number(&reader, UINT64_MAX);
        ret->cpu_s = get_number(&reader, UINT64_MAX);
        ret->processes = get_number(&reader, UINT64_MAX);
        ret->folder = get_text(&reader);
        ret->argv = get_texts(&reader, arena);
        ret->env = get_texts(&reader, arena);
        ret->read = get_texts(&reader, arena);
        ret->write = get_texts(&reader, arena);
        if (reader.bad || !ret->argv.n)
                return err_set(err, CSN_E_INPUT, 0, "the table of programs is none");
        *at = reader.at;
        return 0;
}

int launch_get_request(const char *bytes, size_t len, struct arena *arena, size_t *ret_program,
        struct launch_values *ret, struct csn_error *err)
{
        struct reader reader = { bytes, len, 0, false };
        *ret_program = get_number(&reader, LAUNCH_PROGRAMS_MAX - 1);
        ret->n = get_number(&reader, LAUNCH_PLACES_MAX);
        for (size_t i = 0; i < ret->n; i++)
                ret->places[i] = get_texts(&reader, arena);
        if (reader.bad || reader.at != len)
                return err_set(err, CSN_E_INPUT, 0, "a request to start a program is none");
        return 0;
}

/* ---- arguments ---- */

/* The values of an argument's place, and the text behind; false: no such place, or an unknown kind of argument. */
static bool place_of(const char *argument, const struct launch_values *values, const struct launch_texts **ret,
        const char **ret_rest)
{
        char *end;
        *ret = NULL;
        *ret_rest = argument + 1;
        if (argument[0] == LAUNCH_FIXED)
                return true;
        if (argument[0] != LAUNCH_PLACE && argument[0] != LAUNCH_WITH)
                return false;
        unsigned long place = strtoul(argument + 1, &end, 10);
        *ret_rest = *end == ':' ? end + 1 : end;
        if (place >= values->n)
                return false;
        *ret = &values->places[place];
        return true;
}

int launch_fill(const struct launch_program *program, const struct launch_values *values, struct arena *arena,
        char ***ret_argv, struct csn_error *err)
{
        const struct launch_texts *place;
        const char *rest;
        size_t most = 1, n = 0;
        for (size_t i = 0; i < program->argv.n; i++) {
                if (!place_of(program->argv.texts[i], values, &place, &rest))
                        return err_set(err, CSN_E_INPUT, 0,
                                "a program's arguments have a place that the request does not");
                most += place && program->argv.texts[i][0] == LAUNCH_PLACE ? place->n : 1;
        }
        char **argv = arena_alloc(arena, most * sizeof *argv);
        for (size_t i = 0; i < program->argv.n; i++) {
                place_of(program->argv.texts[i], values, &place, &rest);
                if (place && program->argv.texts[i][0] == LAUNCH_PLACE)
                        for (size_t k = 0; k < place->n; k++)
                                argv[n++] = place->texts[k];
                else if (!place || place->n)
                        argv[n++] = (char *)(uintptr_t)rest;
        }
        if (!n)
                return err_set(err, CSN_E_INPUT, 0, "a program without a name");
        *ret_argv = argv;
        return 0;
}
