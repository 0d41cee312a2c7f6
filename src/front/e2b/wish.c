/* The sources of a sandbox: the wish of a client, and the files of an image. */
#include "front/e2b/e2b.h"

#include "base/discard.h"

#include <fcntl.h>
#include <stdio.h>

/* ---- the end of long files ---- */

void e2b_close_file(const struct service *service, const char *tenant, int *fd)
{
        discard_fd(engine_workers(service->engine), tenant, fd);
}

int e2b_remove_file(const struct service *service, const char *tenant, int folder, const char *name)
{
        int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* so that unlink(2) frees nothing */
        int sys = unlinkat(folder, name, 0) < 0 ? errno : 0;
        e2b_close_file(service, tenant, &fd);
        errno = sys;
        return sys ? -1 : 0;
}

/* ---- images ---- */

int e2b_image_new(const struct service *service, const char *tenant, struct e2b_image **ret, struct csn_error *err)
{
        struct arena arena = { 0 };
        const char *folder = settings_state_dir(service->settings, &arena);
        auto_fd fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        int rc = fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "make a file in %s", folder) : 0;
        arena_done(&arena);
        if (rc == 0)
                *ret = e2b_image_of(service, tenant, take_fd(&fd));
        return rc;
}

struct e2b_image *e2b_image_of(const struct service *service, const char *tenant, int fd)
{
        struct e2b_image *image = mem_alloc(sizeof *image);
        *image = (struct e2b_image){ .refs = 1, .fd = fd, .service = service };
        snprintf(image->tenant, sizeof image->tenant, "%s", tenant);
        return image;
}

struct e2b_image *e2b_image_ref(struct e2b_image *image)
{
        if (image)
                image->refs++;
        return image;
}

void e2b_image_unref(struct e2b_image *image)
{
        if (!image || --image->refs)
                return;
        e2b_close_file(image->service, image->tenant, &image->fd);
        free(image);
}

/* ---- wishes ---- */

void e2b_wish_done(struct e2b_wish *wish)
{
        json_decref(wish->build_spec);
        json_decref(wish->env);
        json_decref(wish->metadata);
        json_decref(wish->network);
        *wish = (struct e2b_wish){ 0 };
}

struct e2b_wish e2b_wish_copy(const struct e2b_wish *wish)
{
        struct e2b_wish copy = *wish;
        json_incref(copy.build_spec);
        json_incref(copy.env);
        json_incref(copy.metadata);
        json_incref(copy.network);
        return copy;
}

const char *e2b_template_id(const struct e2b_wish *wish)
{
        const char *id = json_string_value(json_object_get(wish->build_spec, "templateID"));
        return id ? id : wish->template->id;
}

const char *e2b_template_name(const struct e2b_wish *wish)
{
        const char *name = json_string_value(json_object_get(wish->build_spec, "name"));
        return name ? name : wish->template->name;
}
