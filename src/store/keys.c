/* API keys. */
#include "store/sql.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <sys/random.h>

#define PREFIX "csn_"
#define ID_LEN 16
#define SECRET_LEN 43              /* 43 letters out of 62 are 256 bits */
#define HASH_LEN 32
#define USED_EVERY_MS 60000

static const char *const scope_names[] = { "run", "check", "read", "files", "sandboxes", "metrics", "admin", "tools" };

/* ---- scopes ---- */

const char *scope_name(size_t i)
{
        return i < ARRAY_LEN(scope_names) ? scope_names[i] : NULL;
}

void scopes_print(unsigned scopes, char *text, size_t size)
{
        size_t len = 0;
        text[0] = 0;
        for (size_t i = 0; i < ARRAY_LEN(scope_names) && len < size; i++)
                if (scopes & 1U << i)
                        len += (size_t)snprintf(text + len, size - len, "%s%s", len ? "," : "", scope_names[i]);
}

static unsigned scope_of(const char *word, size_t len)
{
        for (size_t i = 0; i < ARRAY_LEN(scope_names); i++)
                if (strlen(scope_names[i]) == len && memcmp(scope_names[i], word, len) == 0)
                        return 1U << i;
        return 0;
}

int scopes_parse(const char *text, unsigned *ret, struct csn_error *err)
{
        unsigned scopes = 0;
        for (const char *word = text;; word++) {
                size_t len = strcspn(word, ",");
                unsigned scope = scope_of(word, len);
                if (!scope) {
                        char known[KEY_SCOPES_MAX];
                        scopes_print(~0U, known, sizeof known);
                        return err_set(err, CSN_E_INPUT, 0, "there is no scope \"%.*s\"; there are %s",
                                (int)min_u64(len, 60), word, known);
                }
                scopes |= scope;
                word += len;
                if (!*word)
                        break;
        }
        *ret = scopes;
        return 0;
}

/* ---- making ---- */

/* Letters that a double click selects as a word, each of 62 with the same chance. */
static int random_letters(char *text, size_t len, struct csn_error *err)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        uint8_t bytes[64];
        size_t n = 0, at = sizeof bytes;
        while (n < len) {
                if (at == sizeof bytes) {
                        if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
                                return err_set(err, CSN_E_SYSTEM, errno, "getrandom");
                        at = 0;
                }
                uint8_t byte = bytes[at++];
                if (byte < 4 * 62)
                        text[n++] = letters[byte % 62];
        }
        text[len] = 0;
        explicit_bzero(bytes, sizeof bytes);
        return 0;
}

static int hash_key(const struct store *store, const char *text, uint8_t ret[static HASH_LEN], struct csn_error *err)
{
        if (!HMAC(EVP_sha256(), store->secret, sizeof store->secret, (const unsigned char *)text, strlen(text), ret,
                    NULL))
                return err_set(err, CSN_E_SYSTEM, 0, "libcrypto has no HMAC-SHA256");
        return 0;
}

static bool is_name(const char *text)
{
        size_t len = strlen(text);
        for (size_t i = 0; i < len; i++)
                if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
                        return false;
        return len > 0 && len <= KEY_NAME_MAX && utf8_valid(text, len);
}

static bool is_tenant(const char *text)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@:";
        size_t len = strlen(text);
        return len > 0 && len <= TENANT_MAX && strspn(text, letters) == len;
}

int keys_check(const struct store_key *key, struct csn_error *err)
{
        if (!key->name || !is_name(key->name))
                return err_field(err, "name", "a key needs a name of 1 to %d bytes without control characters",
                        KEY_NAME_MAX);
        if (!key->tenant || !is_tenant(key->tenant))
                return err_field(err, "tenant",
                        "\"%.100s\" is no tenant; it has 1 to %d letters of A-Z, a-z, 0-9, '.', '_', '-', '@' and ':'",
                        key->tenant ? key->tenant : "", TENANT_MAX);
        if (key->scopes == 0 || key->scopes >> ARRAY_LEN(scope_names))
                return err_field(err, "scopes", "a key needs at least one scope, and 0x%x is none", key->scopes);
        return 0;
}

int keys_add(struct store *store, struct store_key *key, char ret_text[static KEY_TEXT_MAX], struct csn_error *err)
{
        struct store_key new = *key;
        char secret[SECRET_LEN + 1], text[KEY_TEXT_MAX];
        uint8_t hash[HASH_LEN];
        int rc = keys_check(key, err);
        rc = rc < 0 ? rc : random_letters(new.id, ID_LEN, err);
        rc = rc < 0 ? rc : random_letters(secret, SECRET_LEN, err);
        if (rc < 0)
                return rc;
        new.created_ms = time_now_ms();
        snprintf(text, sizeof text, PREFIX "%s_%s", new.id, secret);
        rc = hash_key(store, text, hash, err);
        if (rc == 0)
                rc = sql_do(store, err,
                        "INSERT INTO keys (id, hash, name, tenant, scopes, created_ms, expires_ms, running_max, queued_max, "
                        "cpu_ms_per_day, stored_bytes, review_budget_nanousd) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                        SQL_VALUES(sql_text(new.id), sql_bytes(SQLITE_BLOB, hash, sizeof hash), sql_text(new.name),
                                sql_text(new.tenant), sql_number(new.scopes), sql_number(new.created_ms),
                                sql_number(new.expires_ms), sql_count(new.running_max), sql_count(new.queued_max),
                                sql_count(new.cpu_ms_per_day), sql_count(new.stored_bytes),
                                sql_count(new.review_budget_nanousd)));
        if (rc == 0) {
                *key = new;
                memcpy(ret_text, text, sizeof text);
        }
        explicit_bzero(secret, sizeof secret);
        explicit_bzero(text, sizeof text);
        return rc < 0 ? err_wrap(err, "add a key") : 0;
}

/* ---- reading ---- */

#define COLUMNS "id, name, tenant, scopes, created_ms, expires_ms, revoked_ms, used_ms, running_max, queued_max, cpu_ms_per_day, stored_bytes, review_budget_nanousd"
#define COLUMN_HASH 13

static void read_key(struct sql_rows *rows, struct arena *arena, struct store_key *ret)
{
        *ret = (struct store_key){
                .name = sql_get_text(rows, 1, arena),
                .tenant = sql_get_text(rows, 2, arena),
                .scopes = (unsigned)sql_get_number(rows, 3),
                .created_ms = sql_get_number(rows, 4),
                .expires_ms = sql_get_number(rows, 5),
                .revoked_ms = sql_get_number(rows, 6),
                .used_ms = sql_get_number(rows, 7),
                .running_max = (uint64_t)sql_get_number(rows, 8),
                .queued_max = (uint64_t)sql_get_number(rows, 9),
                .cpu_ms_per_day = (uint64_t)sql_get_number(rows, 10),
                .stored_bytes = (uint64_t)sql_get_number(rows, 11),
                .review_budget_nanousd = (uint64_t)sql_get_number(rows, 12),
        };
        snprintf(ret->id, sizeof ret->id, "%s", sql_get_text(rows, 0, arena));
}

/* Row and hash of a key's text; zeros without a row, so that comparing costs the same. */
static int look_up(struct store *store, const char *text, struct arena *arena, struct store_key *ret,
        uint8_t ret_hash[static HASH_LEN], struct csn_error *err)
{
        char id[ID_LEN + 1] = "";
        auto_rows rows = { 0 };
        size_t len = 0;
        if (strncmp(text, PREFIX, strlen(PREFIX)) == 0)
                snprintf(id, sizeof id, "%s", text + strlen(PREFIX));
        *ret = (struct store_key){ 0 };
        memset(ret_hash, 0, HASH_LEN);
        int rc = sql_open(store, &rows, err, "SELECT " COLUMNS ", hash FROM keys WHERE id = ?1",
                SQL_VALUES(sql_text(id)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc > 0) {
                read_key(&rows, arena, ret);
                const char *hash = sql_get_bytes(&rows, COLUMN_HASH, arena, &len);
                memcpy(ret_hash, hash, min_u64(len, HASH_LEN));
        }
        return rc < 0 ? rc : 0;
}

/* The use of a key is noted at most once a minute.  A store without write access is no reason to refuse a key. */
static void note_use(struct store *store, struct store_key *key, int64_t now)
{
        struct csn_error err;
        if (now - key->used_ms < USED_EVERY_MS)
                return;
        if (sql_do(store, &err, "UPDATE keys SET used_ms = ?2 WHERE id = ?1",
                    SQL_VALUES(sql_text(key->id), sql_number(now))) < 0)
                log_text(LOG_WARN, "note that the key %s is used: %s", key->id, err.text);
        else
                key->used_ms = now;
}

int keys_find(struct store *store, const char *text, struct arena *arena, struct store_key *ret, struct csn_error *err)
{
        struct store_key key;
        uint8_t hash[HASH_LEN], expected[HASH_LEN];
        int64_t now = time_now_ms();
        bool too_long = strlen(text) >= KEY_TEXT_MAX;
        int rc = look_up(store, too_long ? "" : text, arena, &key, expected, err);
        rc = rc < 0 ? rc : hash_key(store, too_long ? "" : text, hash, err);
        if (rc < 0)
                return err_wrap(err, "look for a key");
        bool same = CRYPTO_memcmp(hash, expected, sizeof hash) == 0;
        if (!same || key.revoked_ms || (key.expires_ms && key.expires_ms <= now))
                return err_set(err, CSN_E_DENIED, 0, "there is no such key, or it is not valid any more");
        note_use(store, &key, now);
        *ret = key;
        return 0;
}

int keys_list(struct store *store, struct arena *arena, struct store_key **ret, size_t *ret_n, struct csn_error *err)
{
        auto_rows rows = { 0 };
        struct store_key *keys = NULL;
        size_t n = 0, room = 0;
        int rc = sql_open(store, &rows, err, "SELECT " COLUMNS " FROM keys ORDER BY rowid", NULL, 0);
        while (rc >= 0 && (rc = sql_next(&rows, err)) > 0) {
                if (n == room) {
                        struct store_key *more = arena_alloc(arena, (room = room * 2 + 16) * sizeof *more);
                        if (n)
                                memcpy(more, keys, n * sizeof *more);
                        keys = more;
                }
                read_key(&rows, arena, &keys[n++]);
        }
        if (rc < 0)
                return err_wrap(err, "list keys");
        *ret = keys;
        *ret_n = n;
        return 0;
}

int keys_revoke(struct store *store, const char *id, struct csn_error *err)
{
        int rc = sql_do_surely(store, err,
                "UPDATE keys SET revoked_ms = CASE revoked_ms WHEN 0 THEN ?2 ELSE revoked_ms END WHERE id = ?1",
                SQL_VALUES(sql_text(id), sql_number(time_now_ms())));
        if (rc < 0)
                return err_wrap(err, "revoke the key %.40s", id);
        if (sqlite3_changes(store->db) == 0)
                return err_field(err, "id", "there is no key \"%.40s\"; see caisson keys list", id);
        return 0;
}
