/* The image of a launch: the host's own file system, or an imported one. */
#include "engine/launch/launch_private.h"

#include <stdio.h>

/* The interpreter needed by a built-in language; IMAGE_LANGUAGES: a language of the configuration. */
static enum image_language interpreter_of(const struct language *language)
{
        if (language == &lang_python)
                return IMAGE_PYTHON;
        if (language == &lang_javascript || language == &lang_typescript)
                return IMAGE_NODE;
        return language == &lang_bash ? IMAGE_BASH : IMAGE_LANGUAGES;
}

static const char *default_image(const struct launch *launch)
{
        const struct images_settings *images = &launch->settings->images;
        switch (interpreter_of(launch->language)) {
        case IMAGE_PYTHON: return images->python;
        case IMAGE_NODE: return images->javascript;
        case IMAGE_BASH: return images->bash;
        default: return "system";
        }
}

int launch_interpreter(const struct launch *launch, const struct language *language, const char **ret,
        struct csn_error *err)
{
        enum image_language wanted = interpreter_of(language);
        const struct stored_image *image = launch->image;
        *ret = NULL;
        if (!image || wanted == IMAGE_LANGUAGES)
                return 0;
        *ret = image->interpreters[wanted].path;
        if ((*ret)[0])
                return 0;
        char has[64] = "";
        for (int i = 0, len = 0; i < IMAGE_LANGUAGES; i++)
                if (image->interpreters[i].path[0])
                        len += snprintf(has + len, sizeof has - (size_t)len, "%s%s", len ? ", " : "",
                                image_language_name((enum image_language)i));
        return err_field(err, "/image",
                "image is \"%s\", which has no %s; it has %s. Name another image, or a language that it has",
                image->name, image_language_name(wanted), has[0] ? has : "none of python, node and bash");
}

int launch_find_image(struct launch *launch, struct csn_error *err)
{
        struct run_request *request = &launch->request;
        struct arena path = { 0 };
        bool here = launch->backend == &backend_native;
        if (!HAS(request, run_request, image))
                SET(request, run_request, image,
                        arena_text(&launch->arena, "%s", here ? default_image(launch) : "system"));
        for (size_t i = 0; i < choices_image.n; i++)
                if (strcmp(choices_image.values[i].text, request->image) == 0) {
                        launch->ahead = (int)i;
                        return 0;
                }
        if (launch->backend != &backend_native)
                return err_field(err, "/image", "image is \"%.64s\"; the backend %s has no images", request->image,
                        launch->backend->name);
        launch->ahead = image_SYSTEM;
        struct stored_image *image = arena_alloc(&launch->arena, sizeof *image);
        fd_close(&launch->image_hold);
        int rc = image_find(settings_images_dir(launch->settings, &path), request->image, "/image", &launch->arena,
                image, &launch->image_hold, err);
        arena_done(&path);
        if (rc < 0)
                return rc;
        launch->image = image;
        if (image_pins(launch->settings->images.layers, image->name, &launch->arena, &launch->pinned, &launch->pinned_n,
                    err) < 0)
                return -err->code;
        return launch->persistent ? 0 : launch_interpreter(launch, launch->language, &launch->interpreter, err);
}

void launch_describe_image(const struct launch *launch, struct image_use *ret)
{
        const struct stored_image *image = launch->image;
        SET(ret, image_use, name, (char *)(uintptr_t)image->name);
        SET(ret, image_use, id, (char *)(uintptr_t)image->id);
        SET(ret, image_use, digest, (char *)(uintptr_t)image->digest);
}
