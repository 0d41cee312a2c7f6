/*
 * attempts: which requests of gateways this worker has admitted.
 *
 * A gateway that loses a connection before the first byte of the answer asks for the attempt.  "Not admitted" lets the
 * gateway send the request to another worker, so the word must stay true: an attempt that is asked for and unknown is
 * barred, and its request is refused if the request is still in a buffer of this host's kernel.
 *
 * The table holds ATTEMPTS_N attempts, at least those of the last ATTEMPTS_KEEP_US unless more come.  If attempts were
 * forgotten earlier, no attempt counts as not admitted until the forgotten ones are that old.
 */
#ifndef HOP_ATTEMPTS_H
#define HOP_ATTEMPTS_H

#include "hop/hop.h"

#define ATTEMPTS_N (1U << 17)
#define ATTEMPTS_KEEP_US (120 * 1000000ULL)

struct attempts;

struct attempts *attempts_new(void);
void attempts_free(struct attempts *attempts);   /* NULL is allowed */
/* Whether a text is the id of an attempt: HOP_ATTEMPT_LEN hexadecimal digits. */
bool attempts_is_id(const char *id);
/* Admit an attempt, at clock_us() `now_us`.  false: the attempt is barred, or was admitted before. */
bool attempts_admit(struct attempts *attempts, const char *id, uint64_t now_us);
/* Whether an attempt was admitted, or may have been.  false: it was not, and is barred from now on. */
bool attempts_ask(struct attempts *attempts, const char *id, uint64_t now_us);
/* The request of an admitted attempt is refused before it begins anything: the attempt counts as not admitted. */
void attempts_bar(struct attempts *attempts, const char *id);
/* The request of an admitted attempt has ended: answered, or left by its gateway. */
void attempts_end(struct attempts *attempts, const char *id);
/* Whether attempts_end() was called for an attempt; false also if the attempt is unknown. */
bool attempts_is_over(const struct attempts *attempts, const char *id);

#endif
