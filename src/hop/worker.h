/*
 * A worker as its gateways know it: the keys, the tag in its ids, the boot id of its process, the attempts that it has
 * admitted.
 */
#ifndef HOP_WORKER_H
#define HOP_WORKER_H

#include "hop/attempts.h"
#include "hop/hop.h"

#define HOP_BOOT_LEN 32                    /* hexadecimal digits of a boot id */

struct hop_worker {
        struct hop_keys *keys;
        uint64_t refreshed_us;             /* clock_us() of the last look at the file of keys */
        char tag[HOP_TAG_LEN + 1];         /* "" until hop_worker_start() */
        int tag_fd;                        /* of the file worker.id, locked; or -1 */
        char boot[HOP_BOOT_LEN + 1];       /* of this process */
        struct attempts *attempts;
};

/*
 * Read the keys, before the daemon gives up its rights.  *ret is the caller's until hop_worker_free(), and NULL if the
 * path is "".  Errors: CSN_E_CONFIG.
 */
int hop_worker_open(const char *key_file, struct hop_worker **ret, struct csn_error *err);
/*
 * Find the tag in the file worker.id of the state folder, or make both, and let all ids from now on name this worker.
 * If the file cannot be used, or another daemon uses it, the tag is a random one.
 */
void hop_worker_start(struct hop_worker *worker, const char *state_dir);
/*
 * hop_verify(), with a look at the file of keys once a second, and after a failure: a gateway may have the new content
 * earlier.  Errors: CSN_E_DENIED.
 */
int hop_worker_verify(struct hop_worker *worker, const char *value, const char *method, const char *target,
        struct arena *arena, struct hop_claims **ret_claims, struct csn_error *err);
void hop_worker_free(struct hop_worker *worker);   /* NULL is allowed */

#endif
