/*
 * Checks the members of a body by tables.  A member of the wrong kind is refused with its name and its value, for a
 * client misunderstood in silence would find out only by the result.  A member missing or null counts as absent, and
 * members not in a table are ignored, as in proto3's JSON and in E2B's service.
 */
#include "front/e2b/e2b.h"

#include <math.h>
#include <stdio.h>

#define WHOLE_MAX 9007199254740992.0       /* up to this a double has every whole number */

void e2b_show(const json_t *value, char ret[static E2B_SHOWN_MAX])
{
        char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
        bool whole = !text || strlen(text) < E2B_SHOWN_MAX;
        snprintf(ret, E2B_SHOWN_MAX, "%.*s%s", whole ? E2B_SHOWN_MAX - 1 : E2B_SHOWN_MAX - 4, text ? text : "missing",
                whole ? "" : "...");
        free(text);
}

bool e2b_number(const json_t *value, uint64_t *ret)
{
        const char *text = json_string_value(value);
        double real = json_is_real(value) ? json_real_value(value) : -1;
        if (json_is_integer(value) && json_integer_value(value) >= 0)
                *ret = (uint64_t)json_integer_value(value);
        else if (real >= 0 && real <= WHOLE_MAX && floor(real) == real)
                *ret = (uint64_t)real;
        else if (text && text[0] && strlen(text) < 20 && !text[strspn(text, "0123456789")])
                *ret = strtoull(text, NULL, 10);
        else
                return false;
        return true;
}

static bool is_texts(json_t *value)
{
        json_t *one;
        size_t i;
        bool good = json_is_array(value);
        json_array_foreach(value, i, one)
                good = good && json_is_string(one);
        return good;
}

static bool is_variables(json_t *value)
{
        json_t *one;
        const char *name;
        bool good = json_is_object(value);
        json_object_foreach(value, name, one)
                good = good && json_is_string(one) && name[0] && !strchr(name, '=');
        return good;
}

/* A word of a list separated by blanks. */
static bool is_word(const json_t *value, const char *words)
{
        const char *text = json_string_value(value);
        for (size_t len; text && *words; words += len + (words[len] == ' ')) {
                len = strcspn(words, " ");
                if (strlen(text) == len && memcmp(text, words, len) == 0)
                        return true;
        }
        return false;
}

static bool is_good(const struct e2b_member *member, json_t *value)
{
        uint64_t number;
        switch (member->kind) {
        case E2B_TEXT: return json_is_string(value);
        case E2B_BOOL: return json_is_boolean(value);
        case E2B_NUMBER: return e2b_number(value, &number) && number <= member->most;
        case E2B_OBJECT: return json_is_object(value);
        case E2B_TEXTS: return is_texts(value);
        case E2B_VARIABLES: return is_variables(value);
        case E2B_WORD: return is_word(value, member->words);
        }
        return false;
}

static int refuse(const struct e2b_member *member, const json_t *value, struct csn_error *err)
{
        static const char *const kinds[] = { [E2B_TEXT] = "a text",
                [E2B_BOOL] = "true or false",
                [E2B_OBJECT] = "an object",
                [E2B_TEXTS] = "a list of texts",
                [E2B_VARIABLES] = "an object of texts, with names that are not empty and have no =" };
        char shown[E2B_SHOWN_MAX];
        e2b_show(value, shown);
        if (member->kind == E2B_NUMBER)
                return err_field(err, member->name, "%s is %s; it has to be a whole number from 0 to %llu",
                        member->name, shown, (unsigned long long)member->most);
        if (member->kind == E2B_WORD)
                return err_field(err, member->name, "%s is %s; it has to be one of: %s", member->name, shown,
                        member->words);
        return err_field(err, member->name, "%s is %s; it has to be %s", member->name, shown, kinds[member->kind]);
}

static json_t *find(const json_t *json, const char *name)
{
        size_t len = strcspn(name, ".");
        json_t *value = json_object_getn(json, name, len);
        return name[len] ? find(value, name + len + 1) : value;
}

int e2b_check(const json_t *body, const struct e2b_member *members, struct csn_error *err)
{
        for (const struct e2b_member *member = members; member->name; member++) {
                json_t *value = find(body, member->name);
                if (value && !json_is_null(value) && !is_good(member, value))
                        return refuse(member, value, err);
        }
        return 0;
}

bool e2b_account(const char *name, int *ret)
{
        bool root = strcmp(name, "root") == 0;
        if (!root && name[0] && strcmp(name, "user") != 0)
                return false;
        *ret = root ? account_ROOT : account_USER;
        return true;
}
