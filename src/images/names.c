/* Names of images, and shared functions: errors, texts for people, removal. */
#include "images/images_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *const reserved[] = { "system", "data", "small" };

static bool is_reserved(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
                if (strcmp(reserved[i], name) == 0)
                        return true;
        return false;
}

int image_name_check(const char *name, const char *field, struct csn_error *err)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        static const char all[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
        size_t len = strlen(name);
        if (len && len <= IMAGE_NAME_MAX && strchr(letters, name[0]) && strspn(name, all) == len)
                return 0;
        char shown[IMAGE_NAME_MAX + 1];
        snprintf(shown, sizeof shown, "%s", name);
        image_clean_text(shown);
        return err_field(err, field,
                "\"%s\" is no name of an image; a name has 1 to %d of the characters a-z, 0-9, \".\", \"_\" and \"-\", "
                "and begins with a letter or digit",
                shown, IMAGE_NAME_MAX);
}

int image_may_be_named(const char *name, struct csn_error *err)
{
        if (image_name_check(name, "name", err) < 0)
                return -err->code;
        return is_reserved(name)
                ? err_field(err, "name", "the name \"%s\" is that of the host's own file system; give another one", name)
                : 0;
}

int image_exists(const char *name, struct csn_error *err)
{
        return err_field(err, "name", "there is an image \"%s\"; --replace puts the new one in its place", name);
}

void image_clean_text(char *text)
{
        for (; *text; text++)
                if (*text < 0x20 || *text > 0x7e)
                        *text = '?';
}

int image_remove_entry(int dir_fd, const char *name)
{
        struct stat st;
        if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno == EISDIR || errno == EPERM)
                io_remove_tree(dir_fd, name);
        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT ? 0 : -1;
}
