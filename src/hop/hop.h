/*
 * hop: what a gateway and its workers agree on.
 *
 *   keys.c         the file of shared keys
 *   ids.c          ids that name their worker
 *   sign.c         the signature of a call from a gateway to a worker
 *   worker.[ch]    a worker: tag, boot id, and the attempts that it has admitted
 *   attempts.[ch]  the table of these
 *
 * A worker is a caissond with the setting gateway.key_file.  All gateways and workers of a fleet have the same file:
 * one or two lines, each a secret of HOP_SECRET_MIN to HOP_SECRET_MAX characters.  The first line signs; both lines
 * verify, so a secret is replaced in two steps without a failure.  The file is read again when it changes.
 */
#ifndef HOP_HOP_H
#define HOP_HOP_H

#include "model/model.h"

#define HOP_SECRET_MIN 32
#define HOP_SECRET_MAX 256
#define HOP_KEYS_MAX 2
#define HOP_TAG_LEN 8                      /* hexadecimal digits of a worker's tag */
#define HOP_ID_LEN 32                      /* digits of an id behind its prefix: tag, 16 random digits, 8 of a seal */
#define HOP_SHORT_ID_LEN 20                /* the same of E2B, of a-z and 0-9: 7 of the tag, 9 random, 4 of a seal */
#define HOP_SKEW_MS 60000                  /* how much the clocks of gateway and worker may differ, in milliseconds */
#define HOP_CALL_HEADER "Caisson-Gateway"  /* the signature of a call */
#define HOP_ATTEMPT_HEADER "Caisson-Attempt"   /* the id of an attempt, see GET /v1/gateway/attempts/{id} */
#define HOP_ATTEMPT_BARRED "barred"        /* value in the answer to an attempt that was not admitted */
#define HOP_ATTEMPT_LEN 32                 /* random hexadecimal digits of that id, in lower case: hex_random(16) */
#define HOP_BOOT_HEADER "Caisson-Boot"     /* of answers: the id of the worker's process */
#define HOP_LOAD_HEADER "Caisson-Load"     /* of answers: running, queued, slots, such as "3 0 8" */

struct hop_keys;

/* Read the file.  *ret is the caller's until hop_keys_free().  Errors: CSN_E_CONFIG, which names gateway.key_file. */
int hop_keys_open(const char *path, struct hop_keys **ret, struct csn_error *err);
/*
 * Read the file again if it has changed since, for the cost of a stat(2) if not.  true: there are new keys.  A wrong
 * new content is logged once, and the old keys stay.
 */
bool hop_keys_refresh(struct hop_keys *keys);
void hop_keys_free(struct hop_keys *keys);   /* NULL is allowed */

/* ---- ids ---- */

/*
 * Let id_new() and id_new_short() of this process (base/base.h) make ids that name the worker with this tag, sealed by
 * the first key (HMAC-SHA256, cut).  `keys` must outlive the process's last id.
 */
void hop_name_ids(const struct hop_keys *keys, const char *tag);
/*
 * The tag in an id of either form, with or without a prefix as in "run_" and in "i" of E2B, of a UUID by id_new_uuid(),
 * or of the 21 characters of id_to_compact(); the id begins at `text` and has `len` bytes.  false: the text is no id
 * that a worker with one of the keys has made.
 */
bool hop_tag_of(const struct hop_keys *keys, const char *text, size_t len, char ret_tag[HOP_TAG_LEN + 1]);
/*
 * The same without a check of the seal: a stored file has its id longer than the file of keys has the secret that
 * sealed the id.  If a worker has this tag, a request for the id can go there, and the worker decides; if no worker has
 * the tag, the id proves nothing.
 */
bool hop_tag_unsealed(const char *text, size_t len, char ret_tag[HOP_TAG_LEN + 1]);

/* ---- calls ---- */

/*
 * Whose a call is; sent where the gateway has the keys of users (gateway.keys = gateway).  Quotas are the worker's
 * share.
 */
struct hop_claims {
        char *tenant, *key;                /* key: the id of the key */
        uint64_t scopes;
        uint64_t running_max, queued_max, cpu_ms_per_day, stored_bytes, review_budget_nanousd;
};

/*
 * The value of HOP_CALL_HEADER for a request to a worker: version, time, claims (or "-") and a HMAC-SHA256 over these,
 * the method and the target as it stands in the request line.  claims may be NULL.  The text lives in the arena.  Body
 * and other headers are not signed.
 */
char *hop_sign(const struct hop_keys *keys, const char *method, const char *target, const struct hop_claims *claims,
        struct arena *arena);
/*
 * Check such a value.  *ret_claims lives in the arena; NULL: the call has none.  Errors: CSN_E_DENIED.
 */
int hop_verify(const struct hop_keys *keys, const char *value, const char *method, const char *target,
        struct arena *arena, struct hop_claims **ret_claims, struct csn_error *err);

#endif
