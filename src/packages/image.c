/* Layers in imported images: which images can have layers of a language. */
#include "packages/packages_private.h"

#include <stdio.h>
#include <unistd.h>

/* The version in the name of the host's Python, such as 3.11. */
static void host_version(char *ret, size_t size)
{
        char target[64];
        ssize_t len = readlink(packages_python.files[0], target, sizeof target - 1);
        target[len > 0 ? len : 0] = 0;
        const char *name = strstr(target, "python");
        snprintf(ret, size, "%s", name ? name + strlen("python") : "");
}

static int refuse(const struct stored_image *image, const char *needed, const char *has, struct csn_error *err)
{
        return err_field(err, "/image",
                "image is \"%s\", and packages of %s; the image has %s. Leave out the packages, or name another image",
                image->name, needed, has);
}

static int fit_python(const struct stored_image *image, struct csn_error *err)
{
        char version[32], needed[100], has[100];
        const char *own = image->interpreters[IMAGE_PYTHON].version;
        const bool has_python = image->interpreters[IMAGE_PYTHON].path[0];
        host_version(version, sizeof version);
        snprintf(needed, sizeof needed, "Python are installed for Python %s with the GNU C library",
                version[0] ? version : "of the host");
        if (!version[0] || !has_python || strcmp(own, version) != 0) {
                const char *kind = !has_python ? "no Python" : own[0] ? "Python " : "an unknown Python";
                snprintf(has, sizeof has, "%s%.20s", kind, own);
                return refuse(image, needed, has, err);
        }
        return image->has_glibc ? 0 : refuse(image, needed, "another C library", err);
}

static int fit_node(const struct stored_image *image, struct csn_error *err)
{
        static const char needed[] = "Node are installed for Node with the GNU C library";
        if (!image->interpreters[IMAGE_NODE].path[0])
                return refuse(image, needed, "no Node", err);
        if (!image->has_glibc)
                return refuse(image, needed, "another C library", err);
        return image->hides_node_packages
                ? refuse(image, "Node are found by the link /node_modules", "a /node_modules of its own", err)
                : 0;
}

int packages_fit_image(const struct package_language *language, const struct stored_image *image,
        struct csn_error *err)
{
        if (!image)
                return 0;
        return language == &packages_python ? fit_python(image, err) : fit_node(image, err);
}

int packages_know_image(const struct stored_image *image, struct csn_error *err)
{
        if (!image || image->lists_modules)
                return 0;
        return err_field(err, "/deps",
                "deps is \"auto\", and the image \"%s\" does not list its modules, because an older version imported the "
                "image; import the image again, or name the packages",
                image->name);
}
