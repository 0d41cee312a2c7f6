/* Detected imports: the packages needed, and the modules of the image. */
#include "packages/index/document.h"
#include "packages/packages_private.h"

#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>

/* Folders of the modules of this host's Python beside its library, and of its Node, as sandboxes see them. */
static const char *const python_globs[] = {
        "/usr/lib/python3/dist-packages",
        "/usr/local/lib/python3.*/dist-packages",
        "/usr/lib/python3.*/site-packages",
};

/* Default module folders of Debian's Node. */
static const char *const node_globs[] = { "/usr/share/nodejs", "/usr/lib/nodejs", "/usr/lib/*-linux-gnu*/nodejs" };

static bool has_match(const char *pattern)
{
        glob_t found;
        bool any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
        globfree(&found);
        return any;
}

static bool pin_has_module(const struct layer *pin, const char *module)
{
        for (size_t i = 0; pin && i < pin->meta.modules_n; i++)
                if (strcmp(pin->meta.modules[i], module) == 0)
                        return true;
        return false;
}

static bool is_plain_module(const char *name)
{
        for (const char *at = name; *at; at++)
                if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                            *at == '_'))
                        return false;
        return name[0] && strlen(name) <= SPEC_NAME_MAX;
}

static bool has_node_package(const struct stored_image *image, const char *package)
{
        if (image)
                return image_has_module(image, IMAGE_NODE, package);
        for (size_t i = 0; i < ARRAY_LEN(node_globs); i++) {
                char pattern[SPEC_NAME_MAX + 100];
                snprintf(pattern, sizeof pattern, "%s/%s", node_globs[i], package);
                if (!strpbrk(package, "*?[\\") && has_match(pattern))
                        return true;
        }
        return false;
}

static bool has_python_module(const struct stored_image *image, const char *module)
{
        if (image)
                return image_has_module(image, IMAGE_PYTHON, module);
        static const char *const forms[] = { "/%s", "/%s.py", "/%s.*.so" };
        for (size_t i = 0; i < ARRAY_LEN(python_globs); i++)
                for (size_t k = 0; k < ARRAY_LEN(forms); k++) {
                        char name[SPEC_NAME_MAX + 16], pattern[SPEC_NAME_MAX + 100];
                        snprintf(name, sizeof name, forms[k], module);
                        snprintf(pattern, sizeof pattern, "%s%s", python_globs[i], name);
                        if (has_match(pattern))
                                return true;
                }
        return false;
}

char **imports_split(const char *text, struct arena *arena, size_t *ret_n)
{
        char **list = arena_alloc(arena, (strlen(text) / 2 + 2) * sizeof *list);
        size_t n = 0;
        for (const char *at = text; *at;) {
                at += strspn(at, ", \t\r\n");
                size_t len = strcspn(at, ", \t\r\n");
                if (len)
                        list[n++] = arena_copy(arena, at, len);
                at += len;
        }
        *ret_n = n;
        return list;
}

/*
 * A module of Node has the name of its package, and no table lists the usual packages.  So "*" alone permits no
 * package: a name made up by a model may be an attacker's package.
 */
static size_t drop_any(char **list, size_t n)
{
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i], "*") != 0)
                        list[kept++] = list[i];
        return kept;
}

struct names {
        struct buf text;
};

static void add_name(struct names *names, const char *name)
{
        buf_printf(&names->text, "%s%s", names->text.len ? ", " : "", name);
}

static void warn(struct names *names, const char *code, const char *remedy, struct arena *arena,
        struct warning *warnings, size_t *n)
{
        if (names->text.len) {
                struct warning *warning = &warnings[(*n)++];
                SET(warning, warning, code, arena_text(arena, "%s", code));
                SET(warning, warning, text, arena_text(arena, "not installed: %.1500s; %s", names->text.bytes, remedy));
        }
        buf_done(&names->text);
}

void imports_add(struct package_set *set, char *const *imports, size_t imports_n, const struct import_rules *rules,
        struct arena *arena, struct warning **ret_warnings, size_t *ret_n)
{
        const enum package_kind kind = strcmp(set->language, "python") == 0 ? PACKAGE_PYTHON : PACKAGE_NODE;
        struct names unmapped, refused;
        size_t allowed_n, denied_n;
        char **allowed = imports_split(rules->allow, arena, &allowed_n);
        char **denied = imports_split(rules->deny, arena, &denied_n);
        if (kind == PACKAGE_NODE)
                allowed_n = drop_any(allowed, allowed_n);
        buf_init(&unmapped.text, 16 * KIB);
        buf_init(&refused.text, 16 * KIB);
        for (size_t i = 0; i < imports_n; i++) {
                struct csn_error err;
                bool known;
                const char *package = package_known(set->language, imports[i], arena, &known);
                const char *top = kind == PACKAGE_NODE ? package
                                                       : arena_copy(arena, imports[i], strcspn(imports[i], "."));
                if (known && !package)
                        continue;
                if (kind == PACKAGE_NODE ? has_node_package(rules->image, top)
                                         : !is_plain_module(top) || has_python_module(rules->image, top))
                        continue;
                if (pin_has_module(rules->pin, top))
                        continue;
                bool permitted = known && package_is_listed(kind, allowed, allowed_n, package) &&
                        !package_is_listed(kind, denied, denied_n, package);
                if (known && !permitted)
                        add_name(&refused, package);
                else if (!known || package_set_add(set, package, "/code", &err) < 0)
                        add_name(&unmapped, top);
        }
        *ret_warnings = arena_alloc(arena, 2 * sizeof **ret_warnings);
        *ret_n = 0;
        warn(&unmapped, "packages_unmapped",
                "no package is known for these imports; name the packages in the field packages", arena, *ret_warnings,
                ret_n);
        warn(&refused, "packages_not_allowed",
                "the setting packages.allow does not list these packages; name them in the field packages", arena,
                *ret_warnings, ret_n);
}
