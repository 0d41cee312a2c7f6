/*
 * Hostile specifications of packages: they are refused, or their text has no option, address or control character and
 * is read again as the same set.
 */
#include "model/package_spec.h"

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void check(const struct package_set *set)
{
        struct csn_error err;
        struct package_set again = { .arena = set->arena, .language = set->language };
        char *text = package_set_text(set);
        for (const char *at = text; *at; at++)
                require((*at >= ' ' && *at <= '~') || *at == '\n');
        require(text[0] != '-' && !strstr(text, "\n-") && !strstr(text, "://"));
        if (strcmp(set->language, "python") != 0)
                return;
        require(package_set_add_requirements(&again, text, "/x", &err) == 0);
        require(strcmp(package_set_text(&again), text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static const char *const languages[] = { "python", "javascript" };
        struct arena arena = { 0 };
        struct csn_error err;
        char *text = arena_copy(&arena, (const char *)bytes, len);
        for (size_t i = 0; i < ARRAY_LEN(languages); i++) {
                struct package_set set = { .arena = &arena, .language = languages[i] };
                if (package_set_add(&set, text, "/x", &err) == 0)
                        check(&set);
        }
        struct package_set lines = { .arena = &arena, .language = "python" };
        if (package_set_add_requirements(&lines, text, "/x", &err) == 0)
                check(&lines);
        struct package_set script = { .arena = &arena, .language = "python" };
        if (package_set_add_script(&script, text, len, &err) == 0)
                check(&script);
        arena_done(&arena);
        return 0;
}
