/* Verdicts of earlier reviews: a hash table with a list in the order of use. */
#include "review/review_private.h"

#include <openssl/evp.h>

#define SEARCHED_MAX (4 * MIB) /* bytes of code times values of the environment */
#define SLOTS 16384 /* a power of two; the key is a hash already */

struct entry {
        struct entry *next;            /* in the slot */
        struct entry *newer, *older;
        uint8_t key[REVIEW_KEY_SIZE];
        char *text;
};

struct review_cache {
        struct entry *slots[SLOTS];
        struct entry *newest, *oldest;
        size_t n;
};

struct review_cache *review_cache_new(void)
{
        return mem_alloc(sizeof(struct review_cache));
}

static struct entry **slot_of(struct review_cache *cache, const uint8_t *key)
{
        return &cache->slots[(key[0] | (size_t)key[1] << 8) % SLOTS];
}

static void unlink_entry(struct review_cache *cache, struct entry *entry)
{
        *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
        *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
        entry->newer = entry->older = NULL;
}

static void link_newest(struct review_cache *cache, struct entry *entry)
{
        entry->older = cache->newest;
        *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
        cache->newest = entry;
}

static void drop(struct review_cache *cache, struct entry *entry)
{
        struct entry **at = slot_of(cache, entry->key);
        while (*at != entry)
                at = &(*at)->next;
        *at = entry->next;
        unlink_entry(cache, entry);
        cache->n--;
        free(entry->text);
        free(entry);
}

static struct entry *find(struct review_cache *cache, const uint8_t *key)
{
        struct entry *entry = *slot_of(cache, key);
        while (entry && memcmp(entry->key, key, REVIEW_KEY_SIZE) != 0)
                entry = entry->next;
        return entry;
}

const char *review_cache_find(struct review_cache *cache, const uint8_t key[REVIEW_KEY_SIZE])
{
        struct entry *entry = find(cache, key);
        if (!entry)
                return NULL;
        unlink_entry(cache, entry);
        link_newest(cache, entry);
        return entry->text;
}

void review_cache_put(struct review_cache *cache, const uint8_t key[REVIEW_KEY_SIZE], const char *text, size_t max)
{
        struct entry *old = find(cache, key), **slot = slot_of(cache, key);
        if (old)
                drop(cache, old);
        if (max && strlen(text) <= REVIEW_CACHED_MAX) {
                struct entry *entry = mem_alloc(sizeof *entry);
                entry->text = mem_copy(text, strlen(text));
                memcpy(entry->key, key, REVIEW_KEY_SIZE);
                entry->next = *slot;
                *slot = entry;
                link_newest(cache, entry);
                cache->n++;
        }
        for (struct entry *entry = cache->oldest, *newer; entry && cache->n > max; entry = newer) {
                newer = entry->newer;
                drop(cache, entry);
        }
}

void review_cache_free(struct review_cache *cache)
{
        if (!cache)
                return;
        for (struct entry *entry = cache->newest, *older; entry; entry = older) {
                older = entry->older;
                free(entry->text);
                free(entry);
        }
        free(cache);
}

/* Lengths stand before the parts, so no two lists of parts have the same bytes. */
static bool add_part(EVP_MD_CTX *hash, const void *bytes, size_t len)
{
        const uint64_t size = len;
        return EVP_DigestUpdate(hash, &size, sizeof size) == 1 && EVP_DigestUpdate(hash, bytes ? bytes : "", len) == 1;
}

/*
 * Hash secret values, hidden from the reviewer: with another value the program is another program.  Values are hashed
 * without a search of the code if the search would take long.
 */
static bool add_secrets(EVP_MD_CTX *hash, const struct review_query *query)
{
        const struct bytes *code = &query->code;
        bool good = true;
        for (size_t i = 0; good && i < query->env_n; i++) {
                const char *value = query->env[i].value;
                if (review_is_secret(value) &&
                        (query->env_n * code->len > SEARCHED_MAX ||
                                memmem(code->bytes, code->len, value, strlen(value))))
                        good = add_part(hash, value, strlen(value));
        }
        return good;
}

bool review_cache_key(const struct review_query *query, const char *prompt, const char *tools, const char *who,
        uint8_t ret[REVIEW_KEY_SIZE])
{
        const char *const texts[] = { query->language, prompt, tools, who };
        EVP_MD_CTX *hash = EVP_MD_CTX_new();
        bool good = hash && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1 &&
                add_part(hash, query->code.bytes, query->code.len);
        for (size_t i = 0; good && i < ARRAY_LEN(texts); i++)
                good = add_part(hash, texts[i], strlen(texts[i]));
        good = good && add_secrets(hash, query) && EVP_DigestFinal_ex(hash, ret, NULL) == 1;
        EVP_MD_CTX_free(hash);
        return good;
}
