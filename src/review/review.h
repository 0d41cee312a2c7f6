/*
 * review: a model, a program or a service of the administrator looks at programs before they run.
 *
 *   source        life of a reviewer: files, launcher, settings; the review source of an engine
 *   reviewer      one review: queue, budget, ladder of answer forms, retries, circuit breaker
 *   prompt        the messages: tools, boundary, visible control characters, secrets      (pure)
 *   answer        the text of an answer as a verdict                                      (pure; hostile bytes)
 *   completion    bodies of chat/completions and of review.command, both directions       (pure; hostile bytes)
 *   price         prices and cost, in integers                                            (pure)
 *   cache         verdicts of earlier reviews
 *   config_file   files of keys, headers and prompts, which are read again when they change
 *   http_exchange, command_exchange   one request: to a server; to a program by the tool launcher
 *
 * A reviewer sees a program and the names of tools, and no other part of a request (docs/use/review.md).  Answers are
 * as hostile as programs, because the program can speak to the model.  So an answer counts only with exactly one object
 * of the schema, and each failure is a review without a verdict.
 *
 * Only programs with libcurl link the folder.  All functions belong to the thread of the loop.
 */
#ifndef REVIEW_REVIEW_H
#define REVIEW_REVIEW_H

#include "engine/run/review.h"

#define REVIEW_ANSWER_MAX (1 * MIB) /* bytes of a server's or program's answer; a longer answer is no verdict */
#define REVIEW_SECRET_MIN 6         /* bytes from which a value of the environment is replaced in the program */

struct reviewer;
struct workers;

/* Whether the settings name a model, a program or a service. */
bool reviewer_is_configured(const struct settings *settings);
/*
 * Read the files of the settings, and start the launcher for review.command, with the rights of the caller;
 * `settings` must outlive *ret, which is the caller's until reviewer_free() or the end() of reviewer_source.  Errors:
 * CSN_E_CONFIG (a file), CSN_E_SYSTEM.
 */
int reviewer_prepare(const struct settings *settings, struct reviewer **ret, struct csn_error *err);
/* Use this loop from now on; workers NULL: no helper threads.  Errors: CSN_E_SYSTEM, CSN_E_CONFIG (an address). */
int reviewer_open(struct reviewer *reviewer, struct loop *loop, struct workers *workers, struct csn_error *err);
/* NULL is allowed. */
void reviewer_free(struct reviewer *reviewer);

/* The functions of a reviewer for engine_set_review(), whose owner is the reviewer; end() frees the owner. */
extern const struct review_source reviewer_source;

#endif
