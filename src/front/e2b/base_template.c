/* The templates of the server; all others are built from these. */
#include "front/e2b/e2b.h"

static const struct e2b_template templates[] = {
        { "rki5dems9wqfm4r03t7g", "base", "system", false },
        { "nlhz8vlwyupq845jsdg9", "code-interpreter-v1", "data", true },
        { "k0wmwk4vs6mdkzzf3n2c", "mcp-gateway", "system", false },
};

const struct e2b_template *e2b_template_named(const char *name)
{
        const char *slash = strrchr(name, '/'), *bare = slash ? slash + 1 : name;
        size_t len = strcspn(bare, ":");
        if (bare[len] && strcmp(bare + len, ":default") != 0)
                return NULL;
        for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
                const struct e2b_template *one = &templates[i];
                if ((strlen(one->id) == len && memcmp(one->id, bare, len) == 0) ||
                        (strlen(one->name) == len && memcmp(one->name, bare, len) == 0))
                        return one;
        }
        return NULL;
}

const struct e2b_template *e2b_base_template(size_t n)
{
        return n < ARRAY_LEN(templates) ? &templates[n] : NULL;
}
