/* Fields of fields.def as options of the command line. */
#include "front/cli/toolkit/toolkit.h"

size_t cli_fields_of(const struct object *const *objects, struct cli_field *fields, size_t max)
{
        size_t n = 0;
        for (; *objects; objects++)
                for (size_t i = 0; i < (*objects)->n && n < max; i++)
                        if ((*objects)->fields[i].option)
                                fields[n++] = (struct cli_field){ *objects, &(*objects)->fields[i] };
        return n;
}

char cli_field_letter(const struct cli_field *option)
{
        if (strcmp(option->field->option, "language") == 0)
                return 'l';
        return option->object == &object_process_request && strcmp(option->field->option, "env") == 0 ? 'e' : 0;
}

/* A field has the unit of its name; the value of an option may have another unit (model_set_text). */
const char *cli_field_text(const struct field *field)
{
        return field->unit && strcmp(field->unit, "milli") == 0 ? "Share of the machine in cores: 0.5, or 500m."
                                                                : field->help;
}

static int add_pair(struct pair **pairs, size_t *n, const char *text, const char *option, struct arena *arena,
        struct csn_error *err)
{
        const char *equals = strchr(text, '=');
        if (!equals || equals == text)
                return err_field(err, option, "--%s %.60s: give NAME=VALUE", option, text);
        for (size_t i = 0; i < *n; i++)
                if (strlen((*pairs)[i].name) == (size_t)(equals - text) &&
                        strncmp((*pairs)[i].name, text, (size_t)(equals - text)) == 0) {
                        (*pairs)[i].value = arena_text(arena, "%s", equals + 1);
                        return 0;
                }
        struct pair *more = arena_alloc(arena, (*n + 1) * sizeof *more);
        if (*n)
                memcpy(more, *pairs, *n * sizeof *more);
        more[(*n)++] =
                (struct pair){ arena_copy(arena, text, (size_t)(equals - text)), arena_text(arena, "%s", equals + 1) };
        *pairs = more;
        return 0;
}

void cli_add_text(char ***texts, size_t *n, char *text, struct arena *arena)
{
        char **more = arena_alloc(arena, (*n + 1) * sizeof *more);
        if (*n)
                memcpy(more, *texts, *n * sizeof *more);
        more[(*n)++] = text;
        *texts = more;
}

static int set_text(const struct cli_field *option, void *into, const char *text, const char *where,
        struct arena *arena, struct csn_error *err)
{
        int rc = model_set_text(option->object, option->field, into, text, where, arena, err);
        if (rc < 0)
                cli_suggest_word(err, option->field->choices, text);
        return rc;
}

int cli_set_field(const struct cli_field *option, void *into, const char *text, struct arena *arena,
        struct csn_error *err)
{
        const struct field *field = option->field;
        void *at = (char *)into + field->at;
        size_t *count = (size_t *)(void *)((char *)into + field->count_at);
        char where[64];
        snprintf(where, sizeof where, "--%s", field->option);
        if (!text && field->kind != KIND_BOOL)
                return err_field(err, where, "%s needs a value", where);
        /* Values of the environment may be any bytes. */
        if (text && strcmp(field->name, "env") != 0 && !utf8_valid(text, strlen(text)))
                return err_field(err, where, "%s is not valid UTF-8", where);
        if (field->kind == KIND_BOOL)
                *(bool *)at = true;
        else if (field->kind == KIND_PAIRS && add_pair(at, count, text, field->option, arena, err) < 0)
                return -err->code;
        else if (field->kind == KIND_TEXTS)
                cli_add_text(at, count, arena_text(arena, "%s", text), arena);
        else if (field->kind != KIND_PAIRS)
                return set_text(option, into, text, where, arena, err);
        *(uint64_t *)into |=
                (uint64_t)1 << (field - option->object->fields); /* `present`, the first member of every object */
        return 0;
}
