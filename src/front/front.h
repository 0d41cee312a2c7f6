/*
 * front: the vocabularies in which one can ask.
 *
 *   library   the public C functions (include/caisson/caisson.h): JSON in, JSON out
 *   cli       the command line
 *   daemon    frames on a Unix socket (frames.h)
 *
 * A front turns its own words into a run_request and a run_result into its own words, and knows nothing
 * else.  Adding one is a file and a line.
 */
#ifndef FRONT_FRONT_H
#define FRONT_FRONT_H

#include "engine/engine.h"

/* The whole command line; returns the exit status. */
int cli_main(int argc, char **argv);

/* caissond until a signal ends it, with these settings but for engine.allow_host.  Errors: those of endpoint_open() and engine_open(). */
int daemon_serve(const struct settings *settings, struct csn_error *err);

#define FRONT_RECORD_MAX (4 * GIB)   /* every part of a record has its own, lower ceiling */

/* A record as JSON, with aliases if the request asked for them.  The caller's reference. */
json_t *front_record(const struct run_result *result, bool aliases);
/* JSON of ours as text at the end of buf, in one line or indented. */
bool front_dump(json_t *record, bool indented, struct buf *buf);
/* Both, in one line. */
bool front_record_text(const struct run_result *result, bool aliases, struct buf *buf);

#endif
