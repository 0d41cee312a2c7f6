/*
 * The command line's words in a text of the engine.
 *
 * The engine names fields of the request (wall_ms=5000, memory_bytes, tools.allow, and error.field), as written by
 * callers of the other interfaces.  A caller of the command line writes options: the option is added behind the field,
 * from fields.def.
 */
#include "front/cli/toolkit/toolkit.h"

#include <ctype.h>

/* Fields taken by the command line in another way than by an option of the same field. */
static const struct { const char *field, *option;
} others[] = {
        { "/code", "-c CODE, a file, or - for standard input" },
        { "/stdin", "--stdin" },
        { "/args", "arguments behind --" },
};

static const struct field *field_named(const struct object *object, const char *name, size_t len)
{
        for (size_t i = 0; i < object->n; i++)
                if (strlen(object->fields[i].name) == len && memcmp(object->fields[i].name, name, len) == 0)
                        return object->fields[i].option ? &object->fields[i] : NULL;
        return NULL;
}

static const struct object *const sections[] = { &object_limits, &object_tools_request };
static const char *const section_names[] = { "limits", "tools" };

/*
 * The field of a word: "tools.allow", or a limit's own name if the name is no English word, or has a value.
 * limits.pids is a setting.
 */
static const struct field *field_of_word(const char *word, size_t len, bool has_value)
{
        if (len > 6 && memcmp(word, "tools.", 6) == 0)
                return field_named(&object_tools_request, word + 6, len - 6);
        return has_value || memchr(word, '_', len) ? field_named(&object_limits, word, len) : NULL;
}

/* "/language", "/limits/pids", "/tools/allow"; members below a list belong to the list. */
static const struct field *field_of_pointer(const char *pointer)
{
        for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
                size_t prefix = strlen(section_names[i]) + 1;
                if (strncmp(pointer + 1, section_names[i], prefix - 1) == 0 && pointer[prefix] == '/')
                        return field_named(sections[i], pointer + prefix + 1, strcspn(pointer + prefix + 1, "/"));
        }
        return field_named(&object_run_request, pointer + 1, strcspn(pointer + 1, "/"));
}

static bool is_limit(const struct field *field)
{
        return field >= object_limits.fields && field < object_limits.fields + object_limits.n;
}

static bool is_told(const struct buf *buf, const char *text, const struct field *field)
{
        char option[80];
        snprintf(option, sizeof option, "(--%s", field->option);
        return (buf->bytes && strstr(buf->bytes, option)) || strstr(text, option);
}

static void add_option(struct buf *buf, const struct field *field, bool has_value)
{
        buf_printf(buf, " (--%s", field->option);
        if (has_value && is_limit(field)) {
                buf_printf(buf, ", CAISSON_LIMITS_");
                for (const char *at = field->name; *at; at++)
                        buf_printf(buf, "%c", toupper((unsigned char)*at));
        }
        buf_printf(buf, ")");
}

static const char *add_value(struct buf *buf, const char *at)
{
        size_t len = 1 + strspn(at + 1, "0123456789");
        buf_add(buf, at, len);
        return at + len;
}

static void add_field(struct buf *buf, const char *text, const char *pointer)
{
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                if (strcmp(others[i].field, pointer) == 0 && !strstr(text, "-c CODE")) {
                        buf_printf(buf, " (%s)", others[i].option);
                        return;
                }
        const struct field *field = field_of_pointer(pointer);
        if (field && !strstr(buf->bytes ? buf->bytes : "", "--"))
                add_option(buf, field, false);
}

char *cli_in_options(const char *text, const char *pointer, struct arena *arena)
{
        struct buf buf;
        buf_init(&buf, 4 * strlen(text) + 4096);
        for (const char *at = text; *at;) {
                size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_./-");
                if (!len) {
                        buf_add(&buf, at++, 1);
                        continue;
                }
                bool has_value = at[len] == '=' && isdigit((unsigned char)at[len + 1]);
                size_t name = !has_value && at[len - 1] == '.' ? len - 1 : len;   /* the end of the sentence */
                const struct field *field = field_of_word(at, name, has_value);
                buf_add(&buf, at, name);
                at += name;
                if (has_value)
                        at = add_value(&buf, at);
                if (field && !is_told(&buf, at, field))
                        add_option(&buf, field, has_value);
                if (name < len)
                        buf_add(&buf, at++, 1);
        }
        if (pointer && pointer[0] == '/')
                add_field(&buf, text, pointer);
        char *told = arena_copy(arena, buf.bytes ? buf.bytes : "", buf.len);
        buf_done(&buf);
        return told;
}

static void change(json_t *object, const char *member, const char *pointer)
{
        struct arena arena = { 0 };
        json_t *text = json_object_get(object, member);
        /* A text with a NUL is the program's, and no sentence of the engine. */
        if (json_is_string(text) && strlen(json_string_value(text)) == json_string_length(text))
                json_object_set_new(object, member,
                        json_string(cli_in_options(json_string_value(text), pointer, &arena)));
        arena_done(&arena);
}

void cli_record_in_options(json_t *record)
{
        json_t *error = json_object_get(record, "error"), *warning;
        size_t i;
        if (json_is_object(error) && !json_object_get(error, "type")) {
                change(error, "message", json_string_value(json_object_get(error, "field")));
                change(error, "hint", NULL);
        }
        json_array_foreach(json_object_get(record, "warnings"), i, warning) {
                change(warning, "text", NULL);
        }
}
