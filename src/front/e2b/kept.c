/*
 * What is kept of templates that clients build; see build.h.
 *
 * Three folders beside the store: `templates` has ID.json of each; `layers` and `archives` have files OWNER-KEY.tar, where OWNER is the beginning of
 * a digest of the tenant, so that nobody finds what is another's.
 */
#include "front/e2b/build.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_LEN 20
#define OWNER_LEN 16
#define FILE_NAME_LEN (OWNER_LEN + 1 + BUILD_KEY_LEN)
#define FILE_MAX (2 * MIB)
#define TAG_LEN_MAX 64

static const struct { const char *folder; size_t max; } kinds[] = { [KEPT_LAYER] = { "layers", LAYERS_OWNER_MAX }, [KEPT_ARCHIVE] = { "archives", ARCHIVES_OWNER_MAX } };

static int open_folder(const struct api *api, const char *name, struct csn_error *err)
{
        int fd;
        if (!api->store)
                return err_set(err, CSN_E_UNSUPPORTED, 0, "this daemon keeps no templates, for engine.http is empty");
        return store_folder(api->store, name, &fd, err) < 0 ? -err->code : fd;
}

static const char *text_of(const json_t *json, const char *name)
{
        const char *text = json_string_value(json_object_get(json, name));
        return text ? text : "";
}

/* ---- templates ---- */

/* The caller's reference; NULL: it is none, or another tenant's. */
static json_t *load(int folder, const char *file, const char *tenant)
{
        auto_fd fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > (off_t)FILE_MAX)
                return NULL;
        json_t *json = json_loadfd(fd, 0, NULL);
        if (json && strcmp(text_of(json, "tenant"), tenant) == 0)
                return json;
        json_decref(json);
        return NULL;
}

json_t *kept_all(const struct api *api, const char *tenant)
{
        struct csn_error err;
        json_t *list = json_array();
        int folder = open_folder(api, "templates", &err);
        DIR *dir = folder < 0 ? NULL : fdopendir(folder);
        for (struct dirent *found; dir && (found = readdir(dir));) {
                size_t len = strlen(found->d_name), at = 0;
                json_t *one = len == ID_LEN + 5 && strcmp(found->d_name + ID_LEN, ".json") == 0 ? load(folder, found->d_name, tenant) : NULL;
                while (one && at < json_array_size(list) && strcmp(text_of(json_array_get(list, at), "createdAt"), text_of(one, "createdAt")) > 0)
                        at++;
                if (one)
                        json_array_insert_new(list, at, one);
        }
        if (dir)
                closedir(dir);
        return list;
}

json_t *kept_find(const struct api *api, const char *tenant, const char *name)
{
        const char *slash = strrchr(name, '/'), *bare = slash ? slash + 1 : name;
        size_t len = strcspn(bare, ":"), i;
        json_t *list = kept_all(api, tenant), *one, *found = NULL;
        json_array_foreach(list, i, one) {
                const char *id = text_of(one, "id"), *called = text_of(one, "name");
                if (!found && ((strlen(id) == len && memcmp(id, bare, len) == 0) || (strlen(called) == len && memcmp(called, bare, len) == 0)))
                        found = json_incref(one);
        }
        json_decref(list);
        return found;
}

json_t *kept_new(const char *tenant, const char *name)
{
        char id[ID_LEN + 1];
        hex_random(ID_LEN / 2, id);
        return json_pack("{s:s, s:s, s:s, s:o, s:o, s:[], s:i}", "id", id, "tenant", tenant, "name", name, "createdAt", e2b_time(time_now_ms()), "updatedAt",
                         e2b_time(time_now_ms()), "builds", "spawnCount", 0);
}

int kept_save(const struct api *api, const json_t *template, struct csn_error *err)
{
        char name[ID_LEN + 6], other[ID_LEN + 10];
        auto_fd folder = open_folder(api, "templates", err);
        if (folder < 0)
                return -err->code;
        snprintf(name, sizeof name, "%.*s.json", ID_LEN, text_of(template, "id"));
        snprintf(other, sizeof other, "%s.new", name);
        auto_fd fd = openat(folder, other, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 || json_dumpfd(template, fd, JSON_COMPACT) < 0 || renameat(folder, other, folder, name) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "keep the template %s", name);
        return 0;
}

int kept_forget(const struct api *api, const json_t *template, struct csn_error *err)
{
        char name[ID_LEN + 6];
        auto_fd folder = open_folder(api, "templates", err);
        if (folder < 0)
                return -err->code;
        snprintf(name, sizeof name, "%.*s.json", ID_LEN, text_of(template, "id"));
        return unlinkat(folder, name, 0) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "forget the template %s", name) : 0;
}

/* ---- builds and tags ---- */

json_t *kept_build(const json_t *template, const char *id)
{
        json_t *build;
        size_t i;
        json_array_foreach(json_object_get(template, "builds"), i, build) {
                if (strcmp(text_of(build, "id"), id) == 0)
                        return build;
        }
        return NULL;
}

/* Where it is in the list of a build's tags, or SIZE_MAX. */
static size_t place_of(const json_t *build, const char *tag)
{
        const json_t *one;
        size_t i;
        json_array_foreach(json_object_get(build, "tags"), i, one) {
                if (json_is_string(one) && strcmp(json_string_value(one), tag) == 0)
                        return i;
        }
        return SIZE_MAX;
}

json_t *kept_tagged(const json_t *template, const char *tag)
{
        json_t *build;
        size_t i;
        json_array_foreach(json_object_get(template, "builds"), i, build) {
                if (place_of(build, tag) != SIZE_MAX)
                        return build;
        }
        return NULL;
}

const char *kept_tag(const char *name)
{
        const char *slash = strrchr(name, '/'), *colon = strchr(slash ? slash : name, ':');
        return colon ? colon + 1 : "default";
}

bool kept_is_tag(const char *text)
{
        size_t len = strlen(text);
        return len > 0 && len <= TAG_LEN_MAX && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == len;
}

void kept_drop_tag(json_t *template, const char *tag)
{
        json_t *build = kept_tagged(template, tag);
        if (build)
                json_array_remove(json_object_get(build, "tags"), place_of(build, tag));
}

void kept_set_tag(json_t *template, json_t *build, const char *tag)
{
        kept_drop_tag(template, tag);
        json_array_append_new(json_object_get(build, "tags"), json_string(tag));
}

/* ---- layers and archives ---- */

static void print_owner(const char *tenant, char owner[static OWNER_LEN + 1])
{
        uint8_t digest[SHA256_DIGEST_LENGTH];
        SHA256((const unsigned char *)tenant, strlen(tenant), digest);
        hex_print(digest, OWNER_LEN / 2, owner);
}

static void print_name(const char *tenant, const char *key, char name[static FILE_NAME_LEN + 5])
{
        char owner[OWNER_LEN + 1];
        print_owner(tenant, owner);
        snprintf(name, FILE_NAME_LEN + 5, "%s-%.*s.tar", owner, BUILD_KEY_LEN, key);
}

int kept_open(const struct api *api, enum kept_kind kind, const char *tenant, const char *key)
{
        char name[FILE_NAME_LEN + 5];
        struct csn_error err;
        auto_fd folder = open_folder(api, kinds[kind].folder, &err);
        print_name(tenant, key, name);
        int fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                futimens(fd, NULL);        /* what is used stays */
        return fd;
}

bool kept_has(const struct api *api, enum kept_kind kind, const char *tenant, const char *key)
{
        auto_fd fd = kept_open(api, kind, tenant, key);
        return fd >= 0;
}

int kept_file(const struct api *api, enum kept_kind kind, struct csn_error *err)
{
        auto_fd folder = open_folder(api, kinds[kind].folder, err);
        int fd = folder < 0 ? -1 : openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        return folder < 0 ? -err->code : fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "make a file in %s", kinds[kind].folder) : fd;
}

/* Whether a template of this tenant has that layer. */
static bool is_needed(const json_t *templates, const char *name)
{
        const json_t *template, *build;
        size_t i, j;
        json_array_foreach(templates, i, template) {
                json_array_foreach(json_object_get(template, "builds"), j, build) {
                        const char *layer = text_of(json_object_get(build, "recipe"), "layer");
                        if (layer[0] && strncmp(name + OWNER_LEN + 1, layer, BUILD_KEY_LEN) == 0)
                                return true;
                }
        }
        return false;
}

/* The one that was not used for the longest time goes, if there are too many. */
static int make_room(const struct api *api, enum kept_kind kind, const char *tenant, struct csn_error *err)
{
        char owner[OWNER_LEN + 1], oldest[FILE_NAME_LEN + 5] = "";
        struct timespec when = { 0 };
        size_t n = 0;
        int folder = open_folder(api, kinds[kind].folder, err);
        DIR *dir = folder < 0 ? NULL : fdopendir(folder);
        json_t *templates = kind == KEPT_LAYER ? kept_all(api, tenant) : NULL;
        print_owner(tenant, owner);
        for (struct dirent *found; dir && (found = readdir(dir));) {
                struct stat st;
                if (strlen(found->d_name) != FILE_NAME_LEN + 4 || strncmp(found->d_name, owner, OWNER_LEN) != 0 || fstatat(folder, found->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                n++;
                bool older = !oldest[0] || st.st_mtim.tv_sec < when.tv_sec || (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec < when.tv_nsec);
                if (older && !is_needed(templates, found->d_name)) {
                        when = st.st_mtim;
                        snprintf(oldest, sizeof oldest, "%s", found->d_name);
                }
        }
        int rc = n < kinds[kind].max ? 0 : oldest[0] && unlinkat(folder, oldest, 0) == 0 ? 0
                 : err_set(err, CSN_E_BUSY, 0, "there are %zu %s of yours, and templates need them all; %zu are possible: delete a template", n, kinds[kind].folder,
                           kinds[kind].max);
        json_decref(templates);
        if (dir)
                closedir(dir);
        return rc;
}

int kept_name(const struct api *api, enum kept_kind kind, const char *tenant, const char *key, int fd, struct csn_error *err)
{
        char from[40], name[FILE_NAME_LEN + 5];
        if (make_room(api, kind, tenant, err) < 0)
                return -err->code;
        auto_fd folder = open_folder(api, kinds[kind].folder, err);
        if (folder < 0)
                return -err->code;
        print_name(tenant, key, name);
        snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
        if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
                return err_set(err, CSN_E_SYSTEM, errno, "keep %s", name);
        return linkat(AT_FDCWD, from, folder, name, AT_SYMLINK_FOLLOW) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "keep %s", name) : 0;
}
