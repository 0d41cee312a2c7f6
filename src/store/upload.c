/*
 * Files on the way into the store.  Received bytes go to a temporary file and into a digest, so an upload of any
 * size needs no memory.  Space is checked at the begin, while receiving (concurrent uploads count), and again in
 * the transaction that adds the row.
 */
#include "store/files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

/* ---- room ---- */

/* Bytes of all uploads in progress, and of the tenant's; without `but`. */
static void count_incoming(const struct store *store, const char *tenant, const struct incoming *but, uint64_t *ret_own,
        uint64_t *ret_all)
{
        *ret_own = *ret_all = 0;
        for (const struct incoming *one = store->incoming; one; one = one->next) {
                if (one == but)
                        continue;
                *ret_all += one->size;
                *ret_own += strcmp(one->tenant, tenant) == 0 ? one->size : 0;
        }
}

static int count_kept(struct store *store, const char *tenant, uint64_t *ret_own, uint64_t *ret_all,
        struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err,
                "SELECT (SELECT bytes FROM bytes_kept WHERE tenant = ?1), (SELECT sum(bytes) FROM bytes_kept)",
                SQL_VALUES(sql_text(tenant)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "add up what %.64s keeps", tenant);
        *ret_own = (uint64_t)sql_get_number(&rows, 0);
        *ret_all = (uint64_t)sql_get_number(&rows, 1);
        return 0;
}

/* Not by err_set(), which would append the errno's own text to ours. */
static int refuse(struct csn_error *err, int sys, const char *field)
{
        if (err) {
                err->sys = sys;
                snprintf(err->field, sizeof err->field, "%s", field);
        }
        return sys == EFBIG ? -CSN_E_INPUT : -CSN_E_BUSY;
}

static int refuse_size(const struct store_room *room, struct csn_error *err)
{
        err_set(err, CSN_E_INPUT, 0,
                "the file has more than %" PRIu64 " bytes, and engine.file_bytes_max allows no more of one",
                room->file_max);
        return refuse(err, EFBIG, "file_bytes_max");
}

static int refuse_room(int sys, const struct store_room *room, uint64_t used, uint64_t more, struct csn_error *err)
{
        if (sys == EDQUOT)
                err_set(err, CSN_E_BUSY, 0,
                        "stored_bytes of this key is %" PRIu64 ", %" PRIu64 " bytes are kept and %" PRIu64
                        " more are asked for; remove "
                        "files or workspaces",
                        room->tenant_max, used, more);
        else
                err_set(err, CSN_E_BUSY, 0,
                        "engine.files_bytes_max is %" PRIu64 ", %" PRIu64 " bytes of all tenants are kept and %" PRIu64
                        " more are asked "
                        "for",
                        room->all_max, used, more);
        return refuse(err, sys, sys == EDQUOT ? "stored_bytes" : "files_bytes_max");
}

static int check_use(const struct store_room *room, uint64_t own, uint64_t all, uint64_t more, struct csn_error *err)
{
        if (room->tenant_max && (own > room->tenant_max || more > room->tenant_max - own))
                return refuse_room(EDQUOT, room, own, more, err);
        if (room->all_max && (all > room->all_max || more > room->all_max - all))
                return refuse_room(ENOSPC, room, all, more, err);
        return 0;
}

static int count_use(struct store *store, const char *tenant, const struct incoming *but, uint64_t *ret_own,
        uint64_t *ret_all, struct csn_error *err)
{
        uint64_t own_coming, all_coming;
        if (count_kept(store, tenant, ret_own, ret_all, err) < 0)
                return -CSN_E_SYSTEM;
        count_incoming(store, tenant, but, &own_coming, &all_coming);
        *ret_own += own_coming;
        *ret_all += all_coming;
        return 0;
}

int room_check(struct store *store, const char *tenant, const struct store_room *room, const struct incoming *but,
        uint64_t more, struct csn_error *err)
{
        uint64_t own, all;
        if (!room->tenant_max && !room->all_max)
                return 0;
        if (count_use(store, tenant, but, &own, &all, err) < 0)
                return -CSN_E_SYSTEM;
        return check_use(room, own, all, more, err);
}

int store_room_check(struct store *store, const char *tenant, const struct store_room *room, uint64_t size,
        struct csn_error *err)
{
        if (room->file_max && size > room->file_max)
                return refuse_size(room, err);
        return room_check(store, tenant, room, NULL, size + STORE_ENTRY_BYTES, err);
}

static uint64_t less(uint64_t max, uint64_t used)
{
        return max == 0 ? UINT64_MAX : max > used ? max - used : 0;
}

int store_room_left(struct store *store, const char *tenant, const struct store_room *room, uint64_t *ret,
        struct csn_error *err)
{
        uint64_t own, all;
        if (count_use(store, tenant, NULL, &own, &all, err) < 0)
                return -CSN_E_SYSTEM;
        *ret = min_u64(less(room->tenant_max, own), less(room->all_max, all));
        return 0;
}

/* ---- coming in ---- */

static int make_incoming(struct store *store, const char *tenant, const struct store_room *room,
        struct incoming **ret, struct csn_error *err)
{
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
                return err_set(err, CSN_E_SYSTEM, errno, "getrandom");
        struct incoming *incoming = mem_alloc(sizeof *incoming);
        *incoming = (struct incoming){ .store = store, .room = *room, .fd = -1, .digest = EVP_MD_CTX_new() };
        snprintf(incoming->tenant, sizeof incoming->tenant, "%s", tenant);
        snprintf(incoming->name, sizeof incoming->name, INCOMING_PREFIX "%" PRIx64 ".%" PRIx64, (uint64_t)store->owner,
                number);
        incoming->fd =
                openat(store->files_fd, incoming->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int sys = incoming->fd < 0 ? errno : 0;
        if (incoming->fd < 0 || !incoming->digest || EVP_DigestInit_ex(incoming->digest, EVP_sha256(), NULL) != 1) {
                incoming->name[0] = incoming->fd < 0 ? 0 : incoming->name[0];
                incoming_close(incoming);
                return err_set(err, CSN_E_SYSTEM, sys, "make a file that comes in");
        }
        *ret = incoming;
        return 0;
}

int incoming_open(struct store *store, const char *tenant, const struct store_room *room, struct incoming **ret,
        struct csn_error *err)
{
        if (files_folder(store, err) < 0 || store_has_room(store, err) < 0 ||
                store_room_check(store, tenant, room, 0, err) < 0 ||
                make_incoming(store, tenant, room, ret, err) < 0)
                return -err->code;
        (*ret)->is_listed = true;
        (*ret)->next = store->incoming;
        store->incoming = *ret;
        return 0;
}

/* ---- by a helper thread ---- */

int store_use_open(struct store *store, const char *tenant, const struct store_room *room, struct store_use *ret,
        struct csn_error *err)
{
        *ret = (struct store_use){ .room = *room };
        if (files_folder(store, err) < 0 || store_has_room(store, err) < 0)
                return -err->code;
        return count_use(store, tenant, NULL, &ret->own, &ret->all, err);
}

int incoming_open_apart(struct store *store, const char *tenant, struct store_use *use, struct incoming **ret,
        struct csn_error *err)
{
        if (check_use(&use->room, use->own, use->all, STORE_ENTRY_BYTES, err) < 0 ||
                make_incoming(store, tenant, &use->room, ret, err) < 0)
                return -err->code;
        (*ret)->use = use;
        return 0;
}

int incoming_open_content(const struct incoming *incoming)
{
        return openat(incoming->store->files_fd, incoming->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

int incoming_seal(struct incoming *incoming, struct csn_error *err)
{
        struct store_use *use = incoming->use;
        if (incoming_digest(incoming, incoming->sha256, err) < 0)
                return -err->code;
        use->own += incoming->size + STORE_ENTRY_BYTES;
        use->all += incoming->size + STORE_ENTRY_BYTES;
        incoming->use = NULL;
        fd_close(&incoming->fd);
        EVP_MD_CTX_free(incoming->digest);
        incoming->digest = NULL;
        return 0;
}

/* ---- content ---- */

/* The database is asked once a MiB, and not for each packet. */
static int check_size(const struct incoming *incoming, size_t len, struct csn_error *err)
{
        uint64_t size = incoming->size + len;
        if (incoming->room.file_max && size > incoming->room.file_max)
                return refuse_size(&incoming->room, err);
        if (incoming->use)
                return check_use(&incoming->room, incoming->use->own, incoming->use->all, size + STORE_ENTRY_BYTES,
                        err);
        if (incoming->size && incoming->size >> 20 == size >> 20)
                return 0;
        return room_check(incoming->store, incoming->tenant, &incoming->room, incoming, size + STORE_ENTRY_BYTES, err);
}

int incoming_add(struct incoming *incoming, const void *bytes, size_t len, struct csn_error *err)
{
        int rc = check_size(incoming, len, err);
        if (rc < 0)
                return rc;
        if (io_write_all(incoming->fd, bytes, len) < 0) {
                bool full = errno == ENOSPC || errno == EDQUOT;
                return err_set(err, full ? CSN_E_BUSY : CSN_E_SYSTEM, errno, "write a file that comes in");
        }
        if (EVP_DigestUpdate(incoming->digest, bytes, len) != 1)
                return err_set(err, CSN_E_SYSTEM, 0, "libcrypto has no SHA-256");
        incoming->size += len;
        return 0;
}

uint64_t incoming_size(const struct incoming *incoming)
{
        return incoming->size;
}

int incoming_digest(struct incoming *incoming, char hex[static 65], struct csn_error *err)
{
        unsigned char digest[32];
        if (incoming->sha256[0]) {
                memmove(hex, incoming->sha256, sizeof incoming->sha256);
                return 0;
        }
        if (EVP_DigestFinal_ex(incoming->digest, digest, NULL) != 1)
                return err_set(err, CSN_E_SYSTEM, 0, "libcrypto has no SHA-256");
        hex_print(digest, sizeof digest, hex);
        return 0;
}

int incoming_move(struct incoming *incoming, int dir_fd, const char *name)
{
        if (renameat(incoming->store->files_fd, incoming->name, dir_fd, name) < 0)
                return -1;
        incoming->name[0] = 0;
        return 0;
}

int incoming_name(struct incoming *incoming, const char *name)
{
        return incoming_move(incoming, incoming->store->files_fd, name);
}

void incoming_close(struct incoming *incoming)
{
        if (!incoming)
                return;
        for (struct incoming **at = &incoming->store->incoming; incoming->is_listed && *at; at = &(*at)->next)
                if (*at == incoming) {
                        *at = incoming->next;
                        break;
                }
        fd_close(&incoming->fd); /* before the last name goes: then this close is short */
        if (incoming->name[0])
                content_remove(incoming->store, incoming->tenant, incoming->name);
        EVP_MD_CTX_free(incoming->digest);
        free(incoming);
}
