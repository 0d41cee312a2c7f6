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

/* ---- what there is (info.c) ---- */

/* [{name, description, sets}]; the caller's reference.  NULL: a profile's file is wrong, see err. */
json_t *front_profiles(const struct settings *settings, struct csn_error *err);
/* A profile, and the whole request that it makes.  Errors: those of profile_find(). */
int front_profile(const struct settings *settings, const char *name, struct arena *arena, struct profile *ret, struct run_request *ret_whole,
                  struct csn_error *err);
/* All policies that these settings know.  Errors: those of policies_load(). */
int front_load_policies(const struct settings *settings, struct policies **ret, struct csn_error *err);
/* [{name, description, extends, file}]; the caller's reference. */
json_t *front_policies(const struct policies *policies);

#endif
