/*
 * caisson image: works on the folder of images itself, with and without a daemon.
 *
 * Root becomes the owner of the folder first, as for layers.  The process unpacking an archive gives up everything else
 * before the first byte is read: capabilities, all files but the folder of images (landlock(7)), and system calls to
 * start programs or make sockets (seccomp(2)).
 */
#include "front/remote/remote.h"

#include "images/import.h"
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define LIST_MAX (64 * MIB) /* bytes of a table */

/* ---- import ---- */

/* python311.tar.gz makes the image python311. */
static const char *name_of_file(struct remote *remote, const char *path)
{
        const char *slash = strrchr(path, '/');
        const char *name = slash && slash[1] ? slash + 1 : path;
        return arena_copy(&remote->arena, name, strcspn(name, "."));
}

static int confine(const char *images_path, const char *source, struct csn_error *err)
{
        const struct landlock_place places[] = { { images_path, LANDLOCK_WRITE }, { "/proc/self/fd", LANDLOCK_READ },
                { source, LANDLOCK_READ } };
        unsigned abi;
        auto_fd rules = -1;
        if (landlock_make(places, ARRAY_LEN(places), &rules, &abi, err) < 0 || privs_drop(err) < 0)
                return -err->code;
        /* Before Linux 5.19 (version 2) Landlock forbids each rename and link from one folder to another. */
        if (abi >= 2 && landlock_enter(rules, err) < 0)
                return -err->code;
        return seccomp_self(SECCOMP_ENGINE, err);
}

static int import(struct remote *remote, int fd, const char *source, struct stored_image *ret, struct csn_error *err)
{
        const char *path = settings_images_dir(&remote->settings, &remote->arena);
        const char *name = remote_option(remote, "name");
        struct images *images = NULL;
        const struct image_import wanted = { .fd = fd,
                .name = name ? name : name_of_file(remote, remote->args[0]),
                .replace = remote_option(remote, "replace"),
                .limits = { .max_bytes = remote->settings.images.max_bytes,
                        .max_files = remote->settings.images.max_files } };
        if (!name && strcmp(remote->args[0], "-") == 0)
                return err_field(err, "name", "an image from standard input needs --name NAME");
        int rc = privs_bound(err);
        rc = rc < 0 ? rc : remote_become_owner(path, err);
        rc = rc < 0 ? rc : images_open(path, true, &images, err);
        if (rc == 0)
                images_sweep(images);
        rc = rc < 0 ? rc : confine(path, source, err);
        rc = rc < 0 ? rc : image_import(images, &wanted, &remote->arena, ret, err);
        images_close(images);
        return rc;
}

int remote_import_image(struct remote *remote)
{
        struct csn_error err = { 0 };
        struct stored_image image;
        struct stat st;
        auto_fd fd = -1;
        remote_use_utf8();
        int rc = remote_open_file(remote->args[0], O_RDONLY, STDIN_FILENO, &fd, &err);
        bool is_folder = rc == 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
        /* By its descriptor: the owner of the images may have no right to the folders above. */
        const char *source = is_folder ? arena_text(&remote->arena, "/proc/self/fd/%d", fd) : "";
        rc = rc < 0 ? rc : import(remote, fd, source, &image, &err);
        if (rc < 0)
                return cli_fail(&err);
        if (remote_option(remote, "json"))
                cli_print_json(image_json(&image));
        else
                printf("%s\n", image.name);
        return 0;
}

/* ---- list, show, remove ---- */

static void add_line(struct buf *buf, const struct stored_image *image)
{
        char text[80];
        cli_add_cell(buf, 24, image->name);
        if (image->fault) {
                cli_add_cell(buf, 200, image->fault);
                cli_end_line(buf);
                return;
        }
        cli_add_cell(buf, 7, image->kind);
        snprintf(text, sizeof text, "%.1f", (double)image->bytes / (double)MIB);
        cli_add_cell(buf, 9, text);
        cli_add_time(buf, image->created_ms);
        for (int i = 0; i < IMAGE_LANGUAGES; i++)
                if (image->interpreters[i].path[0])
                        buf_printf(buf, "%s%s ", image_language_name((enum image_language)i),
                                image->interpreters[i].version);
        cli_end_line(buf);
}

int remote_list_images(struct remote *remote)
{
        const char *path = settings_images_dir(&remote->settings, &remote->arena);
        struct csn_error err = { 0 };
        struct stored_image *list;
        size_t n;
        struct buf buf;
        if (images_list(path, &remote->arena, &list, &n, &err) < 0)
                return cli_fail(&err);
        json_t *json = json_array();
        buf_init(&buf, LIST_MAX);
        buf_printf(&buf, "%-24s %-7s %-9s %-16s %s\n", "NAME", "KIND", "MIB", "CREATED", "INTERPRETERS");
        for (size_t i = 0; i < n; i++) {
                add_line(&buf, &list[i]);
                json_array_append_new(json, image_json(&list[i]));
        }
        if (remote_option(remote, "json"))
                cli_print_json(json_incref(json));
        else if (n)
                fputs(buf.bytes, stdout);
        else
                cli_note("there are no images in %s", path);
        json_decref(json);
        buf_done(&buf);
        return 0;
}

static void add_row(struct buf *buf, const char *name, const char *text)
{
        cli_add_cell(buf, 12, name);
        cli_add_cell(buf, 200, text[0] ? text : "-");
        cli_end_line(buf);
}

static void print_image(const struct stored_image *image)
{
        char text[200];
        struct buf buf;
        buf_init(&buf, LIST_MAX);
        add_row(&buf, "name", image->name);
        add_row(&buf, "id", image->id);
        add_row(&buf, "kind", image->kind);
        buf_printf(&buf, "%-12s %s\n", "digest", image->digest);
        snprintf(text, sizeof text, "%llu files, %.1f MiB", (unsigned long long)image->files,
                (double)image->bytes / (double)MIB);
        add_row(&buf, "size", text);
        snprintf(text, sizeof text, "%llu devices, pipes, sockets and files of /dev, /proc, /sys",
                (unsigned long long)image->dropped);
        add_row(&buf, "dropped", text);
        cli_add_cell(&buf, 12, "created");
        cli_add_time(&buf, image->created_ms);
        cli_end_line(&buf);
        for (int i = 0; i < IMAGE_LANGUAGES; i++) {
                const struct stored_interpreter *found = &image->interpreters[i];
                snprintf(text, sizeof text, "%s%s%s", found->path, found->version[0] ? " " : "", found->version);
                add_row(&buf, image_language_name((enum image_language)i), text);
        }
        add_row(&buf, "glibc", image->has_glibc ? "yes" : "no");
        for (size_t i = 0; i < image->expected_n; i++)
                add_row(&buf, "expected", image->expected[i]);
        for (size_t i = 0; i < image->libraries_n; i++)
                add_row(&buf, "library", image->libraries[i]);
        fputs(buf.bytes, stdout);
        buf_done(&buf);
}

int remote_show_image(struct remote *remote)
{
        const char *path = settings_images_dir(&remote->settings, &remote->arena);
        struct csn_error err = { 0 };
        struct stored_image image;
        auto_fd held = -1;
        if (image_find(path, remote->args[0], "name", &remote->arena, &image, &held, &err) < 0)
                return cli_fail(&err);
        if (remote_option(remote, "json"))
                cli_print_json(image_json(&image));
        else
                print_image(&image);
        return 0;
}

int remote_remove_images(struct remote *remote)
{
        const char *path = settings_images_dir(&remote->settings, &remote->arena);
        struct csn_error err = { 0 };
        struct images *images = NULL;
        int rc = remote_become_owner(path, &err);
        rc = rc < 0 ? rc : images_open(path, true, &images, &err);
        for (size_t i = 0; rc == 0 && i < remote->args_n; i++)
                rc = image_remove(images, remote->args[i], &err);
        images_close(images);
        return rc < 0 ? cli_fail(&err) : 0;
}
