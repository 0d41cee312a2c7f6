/* The setting images.layers: which layers of packages programs in an image have. */
#include "images/images_private.h"

#define SEPARATORS ", \t\r\n"

int image_pins(const char *text, const char *name, struct arena *arena, const char *const **ret, size_t *ret_n,
        struct csn_error *err)
{
        const char **ids = arena_alloc(arena, (strlen(text) / 2 + 1) * sizeof *ids);
        size_t n = 0;
        for (const char *at = text + strspn(text, SEPARATORS); *at; at += strspn(at, SEPARATORS)) {
                size_t len = strcspn(at, SEPARATORS);
                const char *entry = arena_copy(arena, at, len), *equals = strchr(entry, '=');
                const char *image = arena_copy(arena, entry, equals ? (size_t)(equals - entry) : 0);
                struct csn_error why;
                at += len;
                if (!equals || !equals[1] || image_name_check(image, "", &why) < 0) {
                        err_field(err, "images.layers",
                                "images.layers has \"%.80s\"; an entry is the name of an image, = and the id of a layer, "
                                "such as python-data=lyr_0123...",
                                entry);
                        return -(err->code = CSN_E_CONFIG);
                }
                if (!name || strcmp(image, name) == 0)
                        ids[n++] = equals + 1;
        }
        *ret = ids;
        *ret_n = n;
        return 0;
}
