/* The descriptions of all objects and choices, made by another inclusion of fields.def. */
#include "model/model.h"

#include <ctype.h>

#define ALIKE_MAX 80

#define CHOICES(set) static const struct choice values_##set[] = {
#define VALUE(set, name, text, number, meaning) { text, number, meaning },
#define END_CHOICES(set)                                                                                     \
        };                                                                                                   \
        const struct choices choices_##set = { #set, values_##set, ARRAY_LEN(values_##set) };
#define OBJECT(object, title, text)
#define NUM(object, member, presence, min, max, def, unit, option, help)
#define INT(object, member, presence, help)
#define REAL(object, member, presence, help)
#define BOOL(object, member, presence, def, option, help)
#define TEXT(object, member, presence, max, def, option, help)
#define BYTES(object, member, presence, max, option, help)
#define JSON(object, member, presence, help)
#define ENUM(object, member, presence, choices, def, option, help)
#define TEXTS(object, member, presence, items, max, option, help)
#define PAIRS(object, member, presence, items, option, help)
#define SUB(object, member, presence, other, help)
#define LIST(object, member, presence, other, items, option, help)
#define ALIAS(object, member, other)
#define END(object)
#include "model/fields.def"
#include "model/undef.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are whole initialisers. */
#define PLACE(object_, member_) .name = #member_, .at = offsetof(struct object_, member_)
#define COUNTED(object_, member_) PLACE(object_, member_), .count_at = offsetof(struct object_, member_##_n)

#define CHOICES(choices)
#define VALUE(choices, name, text, number, meaning)
#define END_CHOICES(choices)
#define OBJECT(name_, title_, text_)                                                                         \
        static const char title_of_##name_[] = title_, text_of_##name_[] = text_;                            \
        static const struct field fields_##name_[] = {
#define NUM(object, member, presence_, min_, max_, def_, unit_, option_, help_)                              \
        { PLACE(object, member), .kind = KIND_NUM, .presence = presence_, .min = min_, .max = max_,          \
          .def = def_, .unit = unit_, .option = option_, .help = help_ },
#define INT(object, member, presence_, help_)                                                                \
        { PLACE(object, member), .kind = KIND_INT, .presence = presence_, .help = help_ },
#define REAL(object, member, presence_, help_)                                                               \
        { PLACE(object, member), .kind = KIND_REAL, .presence = presence_, .help = help_ },
#define BOOL(object, member, presence_, def_, option_, help_)                                                \
        { PLACE(object, member), .kind = KIND_BOOL, .presence = presence_, .def = def_, .option = option_,   \
          .help = help_ },
#define TEXT(object, member, presence_, max_, def_, option_, help_)                                          \
        { PLACE(object, member), .kind = KIND_TEXT, .presence = presence_, .max = max_, .def_text = def_,    \
          .option = option_, .help = help_ },
#define BYTES(object, member, presence_, max_, option_, help_)                                               \
        { PLACE(object, member), .kind = KIND_BYTES, .presence = presence_, .max = max_, .option = option_,  \
          .help = help_ },
#define JSON(object, member, presence_, help_)                                                               \
        { PLACE(object, member), .kind = KIND_JSON, .presence = presence_, .help = help_ },
#define ENUM(object, member, presence_, set_, def_, option_, help_)                                          \
        { PLACE(object, member), .kind = KIND_ENUM, .presence = presence_, .choices = &choices_##set_,       \
          .def = set_##_##def_, .option = option_, .help = help_ },
#define TEXTS(object, member, presence_, items_, max_, option_, help_)                                       \
        { COUNTED(object, member), .kind = KIND_TEXTS, .presence = presence_, .max = items_,                 \
          .max_length = max_, .option = option_, .help = help_ },
#define PAIRS(object, member, presence_, items_, option_, help_)                                             \
        { COUNTED(object, member), .kind = KIND_PAIRS, .presence = presence_, .max = items_,                 \
          .option = option_, .help = help_ },
#define SUB(name_, member, presence_, other_, help_)                                                         \
        { PLACE(name_, member), .kind = KIND_SUB, .presence = presence_, .object = &object_##other_,         \
          .help = help_ },
#define LIST(name_, member, presence_, other_, items_, option_, help_)                                       \
        { COUNTED(name_, member), .kind = KIND_LIST, .presence = presence_, .object = &object_##other_,      \
          .max = items_, .option = option_, .help = help_ },
#define ALIAS(object, member, other)
#define END(name_)                                                                                           \
        };                                                                                                   \
        const struct object object_##name_ = {                                                               \
                #name_, title_of_##name_, text_of_##name_, sizeof(struct name_), fields_##name_,             \
                ARRAY_LEN(fields_##name_),                                                                   \
        };                                                                                                   \
        _Static_assert(ARRAY_LEN(fields_##name_) <= 64, "one bit for each field");
#include "model/fields.def"
#include "model/undef.h"
/* NOLINTEND(bugprone-macro-parentheses) */

const char *status_name(int status)
{
        bool known = status >= 0 && (size_t)status < choices_status.n;
        return known ? choices_status.values[status].text : "engine_error";
}

int status_exit(int status)
{
        return status >= 0 && (size_t)status < choices_status.n ? choices_status.values[status].number : 125;
}

/* Letters to insert, remove or change (Levenshtein), as far as `most`; case does not count. */
static size_t distance(const char *a, const char *b, size_t most)
{
        size_t row[ALIKE_MAX + 1], len = strlen(b);
        for (size_t k = 0; k <= len; k++)
                row[k] = k;
        for (size_t i = 0; a[i]; i++) {
                size_t before = row[0], least = ++row[0];
                for (size_t k = 0; k < len; k++) {
                        bool same = tolower((unsigned char)a[i]) == tolower((unsigned char)b[k]);
                        size_t changed = before + !same;
                        before = row[k + 1];
                        row[k + 1] = min_u64(changed, min_u64(row[k], row[k + 1]) + 1);
                        least = min_u64(least, row[k + 1]);
                }
                if (least > most)
                        return least;
        }
        return row[len];
}

bool model_alike(const char *known, const char *name)
{
        size_t most = strlen(known) < 6 ? 1 : 2;
        return strlen(known) <= ALIKE_MAX && strlen(name) <= ALIKE_MAX && distance(known, name, most) <= most;
}

const struct field *model_field(const struct object *object, const char *name)
{
        for (size_t i = 0; i < object->n; i++)
                if (strcmp(object->fields[i].name, name) == 0)
                        return &object->fields[i];
        return NULL;
}
