/*
 * The package of a module, printed by `caisson check --imports`.  Languages differ in data and in the parts of names.
 */
#include "policy/policy.h"

struct package {
        const char *module, *name;
};

static const char *const python_modules[] = {
#define MODULE(name) name,
#include "policy/python/modules.def"
#undef MODULE
};

static const struct package python_packages[] = {
#define PACKAGE(module, name) { module, name },
#include "policy/python/packages.def"
#undef PACKAGE
};

static const char *const node_modules[] = {
#define MODULE(name) name,
#include "policy/javascript/node_modules.def"
#undef MODULE
};

static bool is_one_of(const char *const *list, size_t n, const char *name, size_t len)
{
        for (size_t i = 0; i < n; i++)
                if (strlen(list[i]) == len && memcmp(list[i], name, len) == 0)
                        return true;
        return false;
}

/* google.protobuf.message: the longest part from the left with a line, or else the first word. */
static const char *python_package(const char *module, struct arena *arena)
{
        size_t top = strcspn(module, ".");
        if (!top || is_one_of(python_modules, ARRAY_LEN(python_modules), module, top) ||
                strcmp(module, "__main__") == 0)
                return NULL;
        for (size_t len = strlen(module); len >= top; len--) {
                if (module[len] && module[len] != '.')
                        continue;
                for (size_t i = 0; i < ARRAY_LEN(python_packages); i++)
                        if (strlen(python_packages[i].module) == len &&
                                memcmp(python_packages[i].module, module, len) == 0)
                                return python_packages[i].name;
        }
        return arena_copy(arena, module, top);
}

const char *package_known(const char *language, const char *module, struct arena *arena, bool *ret_known)
{
        size_t top = strcspn(module, ".");
        const char *package = package_of(language, module, arena);
        /* A module of Node has the name of its package. */
        *ret_known = !package || strcmp(language, "python") != 0;
        for (size_t i = 0; package && strcmp(language, "python") == 0 && i < ARRAY_LEN(python_packages); i++)
                *ret_known = *ret_known || (strcmp(python_packages[i].name, package) == 0 &&
                        strncmp(python_packages[i].module, module, top) == 0);
        return package;
}

/* lodash/fp is of lodash, @a/b/c of @a/b; a name with a scheme, or with the beginning of a path, is no package. */
static const char *node_package(const char *module, struct arena *arena)
{
        size_t len = strcspn(module, "/");
        if (strchr("./#", module[0]) || strchr(module, ':') || strchr(module, '\\') ||
            is_one_of(node_modules, ARRAY_LEN(node_modules), module, len))
                return NULL;
        if (module[0] == '@') {
                if (!module[len] || !module[len + 1] || len == 1)
                        return NULL;
                len += 1 + strcspn(module + len + 1, "/");
        }
        return arena_copy(arena, module, len);
}

const char *package_of(const char *language, const char *module, struct arena *arena)
{
        static const struct {
                const char *language;
                const char *(*find)(const char *module, struct arena *arena);
        } all[] = {
                { "python", python_package },
                { "javascript", node_package },
                { "typescript", node_package },
        };
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
                if (strcmp(all[i].language, language) == 0)
                        return all[i].find(module, arena);
        return NULL;
}
