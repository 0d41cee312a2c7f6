/* Results of a program, in the form of E2B's code interpreter; see interpreter.h. */
#include "front/e2b/interpreter/interpreter.h"

#define CHART "application/vnd.caisson.chart+json"
#define TABLE "application/vnd.caisson.table+json"
#define PLAIN "text/plain"
#define JSON "application/json"

static const struct {
        const char *mime, *name;
} members[] = {
        { PLAIN, "text" },
        { "text/html", "html" },
        { "text/markdown", "markdown" },
        { "image/svg+xml", "svg" },
        { "image/png", "png" },
        { "image/jpeg", "jpeg" },
        { "application/pdf", "pdf" },
        { "text/latex", "latex" },
        { JSON, "json" },
        { "application/javascript", "javascript" },
        { TABLE, "data" },
        { CHART, "chart" },
};

static const char *member_of(const char *mime)
{
        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                if (strcmp(members[i].mime, mime) == 0)
                        return members[i].name;
        return NULL;
}

/* A quoted text is shown without its quotes.  The caller's reference. */
static json_t *unquoted(const json_t *text)
{
        const char *from = json_string_value(text);
        size_t len = json_string_length(text);
        bool quoted = len >= 2 && (from[0] == '\'' || from[0] == '"') && from[len - 1] == from[0];
        return json_stringn(quoted ? from + 1 : from, quoted ? len - 2 : len);
}

bool e2b_is_script(const char *language)
{
        return strcmp(language, lang_javascript.name) == 0 || strcmp(language, lang_typescript.name) == 0;
}

/* JSON is left out beside a table, and beside the text of a script: E2B has another form, or only text. */
static bool is_left_out(const json_t *bundle, const char *mime, const char *language)
{
        if (strcmp(mime, JSON) != 0)
                return false;
        return json_object_get(bundle, TABLE) ||
                (e2b_is_script(language) && json_object_size(bundle) == 2 && json_object_get(bundle, PLAIN));
}

json_t *e2b_result(const json_t *bundle, const char *language, bool is_main)
{
        json_t *line = json_pack("{s:s}", "type", "result"), *extra = json_object(), *content;
        const char *mime;
        json_object_foreach((json_t *)bundle, mime, content) {
                const char *name = member_of(mime);
                if (is_left_out(bundle, mime, language))
                        continue;
                if (strcmp(mime, PLAIN) == 0 && json_is_string(content))
                        json_object_set_new(line, name, unquoted(content));
                else
                        json_object_set(name ? line : extra, name ? name : mime, content);
        }
        if (json_object_size(extra))
                json_object_set(line, "extra", extra);
        json_decref(extra);
        json_object_set_new(line, "is_main_result", json_boolean(is_main));
        return line;
}
