/*
 * Templates built by clients, as files; see build.h.
 *
 * Three folders beside the store.  All names begin with OWNER, the first digits of a digest of the tenant, so a tenant
 * neither finds nor pays for files of another.  `templates` has OWNER-ID.json, with an id made of the tenant and the
 * name: a template is found by id or name without a search.  `layers` and `archives` have OWNER-KEY.tar.
 */
#include "front/e2b/templates/build.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_LEN 20
#define OWNER_LEN 16
#define FILE_NAME_LEN (OWNER_LEN + 1 + BUILD_KEY_LEN)
#define FILE_MAX MIB
#define TAG_LEN_MAX 64

static const struct {
        const char *folder;
        size_t max;
} kinds[] = { [TEMPLATE_STORE_LAYER] = { "layers", LAYERS_OWNER_MAX },
        [TEMPLATE_STORE_ARCHIVE] = { "archives", ARCHIVES_OWNER_MAX } };

static int open_folder(const struct service *service, const char *name, struct csn_error *err)
{
        int fd;
        if (!service->store)
                return err_set(err, CSN_E_UNSUPPORTED, 0, "this daemon keeps no templates, for engine.http is empty");
        return store_folder(service->store, name, &fd, err) < 0 ? -err->code : fd;
}

static void print_owner(const char *tenant, char owner[static OWNER_LEN + 1])
{
        uint8_t digest[SHA256_DIGEST_LENGTH];
        SHA256((const unsigned char *)tenant, strlen(tenant), digest);
        hex_print(digest, OWNER_LEN / 2, owner);
}

/* ---- templates ---- */

#define TEMPLATE_NAME (OWNER_LEN + 1 + ID_LEN + 5)

static void print_template(const char *tenant, const char *id, char name[static TEMPLATE_NAME + 1])
{
        char owner[OWNER_LEN + 1];
        print_owner(tenant, owner);
        snprintf(name, TEMPLATE_NAME + 1, "%s-%.*s.json", owner, ID_LEN, id);
}

static bool is_template(const char *name, const char *owner)
{
        return strlen(name) == TEMPLATE_NAME && strncmp(name, owner, OWNER_LEN) == 0 &&
                strcmp(name + TEMPLATE_NAME - 5, ".json") == 0;
}

/* The caller's reference; NULL: none. */
static json_t *load(int folder, const char *file)
{
        auto_fd fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        return fd < 0 || fstat(fd, &st) < 0 || st.st_size > (off_t)FILE_MAX ? NULL : json_loadfd(fd, 0, NULL);
}

/* The number of a tenant's templates.  With `ret`, also loads all into *ret, newest first. */
static size_t look(const struct service *service, const char *tenant, json_t **ret)
{
        char owner[OWNER_LEN + 1];
        struct csn_error err;
        size_t n = 0;
        int folder = open_folder(service, "templates", &err);
        DIR *dir = folder < 0 ? NULL : fdopendir(folder);
        print_owner(tenant, owner);
        for (struct dirent *found; dir && (found = readdir(dir));) {
                size_t at = 0;
                if (!is_template(found->d_name, owner))
                        continue;
                n++;
                json_t *one = ret ? load(folder, found->d_name) : NULL;
                while (one && at < json_array_size(*ret) &&
                        strcmp(e2b_text(json_array_get(*ret, at), "createdAt"), e2b_text(one, "createdAt")) > 0)
                        at++;
                if (one)
                        json_array_insert_new(*ret, at, one);
        }
        if (dir)
                closedir(dir);
        return n;
}

json_t *kept_all(const struct service *service, const char *tenant)
{
        json_t *list = json_array();
        look(service, tenant, &list);
        return list;
}

size_t template_store_count(const struct service *service, const char *tenant)
{
        return look(service, tenant, NULL);
}

static void print_id(const char *tenant, const char *name, size_t len, char id[static ID_LEN + 1])
{
        uint8_t digest[SHA256_DIGEST_LENGTH];
        struct arena arena = { 0 };
        const char *text = arena_text(&arena, "%s %.*s", tenant, (int)len, name);
        SHA256((const unsigned char *)text, strlen(text), digest);
        hex_print(digest, ID_LEN / 2, id);
        arena_done(&arena);
}

json_t *template_store_find(const struct service *service, const char *tenant, const char *name)
{
        const char *slash = strrchr(name, '/'), *bare = slash ? slash + 1 : name;
        size_t len = strcspn(bare, ":");
        char id[ID_LEN + 1], file[TEMPLATE_NAME + 1];
        struct csn_error err;
        auto_fd folder = open_folder(service, "templates", &err);
        if (folder < 0)
                return NULL;
        print_id(tenant, bare, len, id);
        print_template(tenant, id, file);
        json_t *found = load(folder, file);
        if (found || len != ID_LEN || strspn(bare, "0123456789abcdef") < len)
                return found;
        print_template(tenant, bare, file);
        return load(folder, file);
}

json_t *template_store_new(const char *tenant, const char *name)
{
        char id[ID_LEN + 1];
        print_id(tenant, name, strlen(name), id);
        return json_pack("{s:s, s:s, s:s, s:o, s:o, s:[]}", "id", id, "tenant", tenant, "name", name, "createdAt",
                e2b_time(time_now_ms()), "updatedAt", e2b_time(time_now_ms()), "builds");
}

int template_store_save(const struct service *service, const json_t *template, struct csn_error *err)
{
        char name[TEMPLATE_NAME + 1], other[TEMPLATE_NAME + 10];
        auto_fd folder = open_folder(service, "templates", err);
        if (folder < 0)
                return -err->code;
        print_template(e2b_text(template, "tenant"), e2b_text(template, "id"), name);
        snprintf(other, sizeof other, "%s.new", name);
        auto_fd fd = openat(folder, other, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 || json_dumpfd(template, fd, JSON_COMPACT) < 0 || renameat(folder, other, folder, name) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "keep the template %s", name);
        return 0;
}

int template_store_forget(const struct service *service, const json_t *template, struct csn_error *err)
{
        char name[TEMPLATE_NAME + 1];
        auto_fd folder = open_folder(service, "templates", err);
        if (folder < 0)
                return -err->code;
        print_template(e2b_text(template, "tenant"), e2b_text(template, "id"), name);
        return unlinkat(folder, name, 0) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "forget the template %s", name) : 0;
}

/* ---- builds and tags ---- */

json_t *template_store_build(const json_t *template, const char *id)
{
        json_t *build;
        size_t i;
        json_array_foreach(json_object_get(template, "builds"), i, build) {
                if (strcmp(e2b_text(build, "id"), id) == 0)
                        return build;
        }
        return NULL;
}

/* Index of a tag in a build's list, or SIZE_MAX. */
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

json_t *template_store_tagged(const json_t *template, const char *tag)
{
        json_t *build;
        size_t i;
        json_array_foreach(json_object_get(template, "builds"), i, build) {
                if (place_of(build, tag) != SIZE_MAX)
                        return build;
        }
        return NULL;
}

const char *template_store_tag(const char *name)
{
        const char *slash = strrchr(name, '/'), *colon = strchr(slash ? slash : name, ':');
        return colon ? colon + 1 : "default";
}

bool template_store_is_tag(const char *text)
{
        size_t len = strlen(text);
        return len > 0 && len <= TAG_LEN_MAX &&
                strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == len;
}

void template_store_drop_tag(json_t *template, const char *tag)
{
        json_t *build = template_store_tagged(template, tag);
        if (build)
                json_array_remove(json_object_get(build, "tags"), place_of(build, tag));
}

void template_store_set_tag(json_t *template, json_t *build, const char *tag)
{
        template_store_drop_tag(template, tag);
        json_array_append_new(json_object_get(build, "tags"), json_string(tag));
}

/* ---- layers and archives ---- */

static void print_name(const char *tenant, const char *key, char name[static FILE_NAME_LEN + 5])
{
        char owner[OWNER_LEN + 1];
        print_owner(tenant, owner);
        snprintf(name, FILE_NAME_LEN + 5, "%s-%.*s.tar", owner, BUILD_KEY_LEN, key);
}

int template_store_open(const struct service *service, enum template_store_kind kind, const char *tenant,
                        const char *key)
{
        char name[FILE_NAME_LEN + 5];
        struct csn_error err;
        auto_fd folder = open_folder(service, kinds[kind].folder, &err);
        print_name(tenant, key, name);
        int fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                futimens(fd, NULL);        /* the least recently used file is removed first */
        return fd;
}

bool template_store_has(const struct service *service, enum template_store_kind kind, const char *tenant,
                        const char *key)
{
        auto_fd fd = template_store_open(service, kind, tenant, key);
        return fd >= 0;
}

int template_store_file(const struct service *service, enum template_store_kind kind, struct csn_error *err)
{
        auto_fd folder = open_folder(service, kinds[kind].folder, err);
        int fd = folder < 0 ? -1 : openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        return folder < 0 ? -err->code
                : fd < 0  ? err_set(err, CSN_E_SYSTEM, errno, "make a file in %s", kinds[kind].folder)
                          : fd;
}

/* Whether a template of this tenant uses the layer. */
static bool is_needed(const json_t *templates, const char *name)
{
        const json_t *template, *build;
        size_t i, j;
        json_array_foreach(templates, i, template) {
                json_array_foreach(json_object_get(template, "builds"), j, build) {
                        const char *layer = e2b_text(json_object_get(build, "recipe"), "layer");
                        if (layer[0] && strncmp(name + OWNER_LEN + 1, layer, BUILD_KEY_LEN) == 0)
                                return true;
                }
        }
        return false;
}

struct census {
        size_t n;                          /* files of the owner */
        uint64_t bytes;                    /* of the files of all owners */
        char oldest[FILE_NAME_LEN + 5];    /* the owner's least recently used file without a template; "": none */
        struct timespec used;
};

static bool is_before(const struct timespec *one, const struct timespec *other)
{
        return one->tv_sec != other->tv_sec ? one->tv_sec < other->tv_sec : one->tv_nsec < other->tv_nsec;
}

static void count(int folder, const char *owner, const json_t *templates, struct census *ret)
{
        int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        *ret = (struct census){ 0 };
        for (struct dirent *found; dir && (found = readdir(dir));) {
                struct stat st;
                if (strlen(found->d_name) != FILE_NAME_LEN + 4 ||
                        fstatat(folder, found->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                ret->bytes += (uint64_t)st.st_size;
                if (strncmp(found->d_name, owner, OWNER_LEN) != 0)
                        continue;
                ret->n++;
                if (templates && (!ret->oldest[0] || is_before(&st.st_mtim, &ret->used)) &&
                        !is_needed(templates, found->d_name)) {
                        ret->used = st.st_mtim;
                        memcpy(ret->oldest, found->d_name, FILE_NAME_LEN + 5);
                }
        }
        if (dir)
                closedir(dir);
}

/* Removes the owner's least recently used files, except layers of templates, until `bytes` more fit. */
static int make_room(const struct service *service, enum template_store_kind kind, int folder, const char *tenant,
                     uint64_t bytes, struct csn_error *err)
{
        char owner[OWNER_LEN + 1];
        uint64_t most = service->settings->engine.files_bytes_max ? service->settings->engine.files_bytes_max
                : UINT64_MAX;
        struct census census;
        json_t *templates = NULL;
        int rc = 0;
        print_owner(tenant, owner);
        count(folder, owner, NULL, &census);
        while (rc == 0 && (census.n >= kinds[kind].max || census.bytes + bytes > most)) {
                if (!templates)
                        templates = kind == TEMPLATE_STORE_LAYER ? kept_all(service, tenant) : json_array();
                count(folder, owner, templates, &census);
                if (!census.oldest[0] || e2b_remove_file(service, tenant, folder, census.oldest) < 0)
                        rc = err_set(err, CSN_E_BUSY, 0,
                                "there are %zu %s of yours, and templates need them all, and %llu bytes of everybody; possible are %zu, and "
                                "engine.files_bytes_max: delete a template",
                                census.n, kinds[kind].folder, (unsigned long long)census.bytes, kinds[kind].max);
                count(folder, owner, NULL, &census);
        }
        json_decref(templates);
        return rc;
}

int template_store_name(const struct service *service, enum template_store_kind kind, const char *tenant,
                        const char *key, int fd, struct csn_error *err)
{
        char from[40], name[FILE_NAME_LEN + 5];
        struct stat st;
        auto_fd folder = open_folder(service, kinds[kind].folder, err);
        if (folder < 0)
                return -err->code;
        if (fstat(fd, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "keep a file in %s", kinds[kind].folder);
        if (make_room(service, kind, folder, tenant, (uint64_t)st.st_size, err) < 0)
                return -err->code;
        print_name(tenant, key, name);
        snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
        if (e2b_remove_file(service, tenant, folder, name) < 0 && errno != ENOENT)
                return err_set(err, CSN_E_SYSTEM, errno, "keep %s", name);
        return linkat(AT_FDCWD, from, folder, name, AT_SYMLINK_FOLLOW) < 0
                ? err_set(err, CSN_E_SYSTEM, errno, "keep %s", name)
                : 0;
}

/* ---- keys ---- */

void build_key(const char *text, char key[static BUILD_KEY_LEN + 1])
{
        uint8_t digest[SHA256_DIGEST_LENGTH];
        SHA256((const unsigned char *)text, strlen(text), digest);
        hex_print(digest, sizeof digest, key);
}
