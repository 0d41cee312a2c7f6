/*
 * review: reviews without a daemon.  This program has no HTTP client, so each question is answered by a process of
 * caisson-remote, which gets the settings review.* of this program and ends with the question.
 */
#ifndef FRONT_LIBRARY_REVIEW_H
#define FRONT_LIBRARY_REVIEW_H

#include "engine/engine.h"

/* Become the review source of an engine if the settings name a reviewer.  `settings` must outlive the engine. */
void library_set_review(struct engine *engine, const struct settings *settings);

#endif
