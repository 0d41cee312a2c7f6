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

/*
 * caissond until a signal ends it, with these settings but for engine.allow_host, which it switches off; SIGHUP has it
 * load them from their sources again.  Errors: those of endpoint_open() and engine_open().
 */
int daemon_serve(const struct settings_sources *sources, struct settings *settings, struct csn_error *err);

#define FRONT_RECORD_MAX (4 * GIB)   /* every part of a record has its own, lower ceiling */

/* A record as JSON, with aliases if the request asked for them.  The caller's reference. */
json_t *front_record(const struct run_result *result, bool aliases);
/* The same as text, in one line. */
bool front_record_text(const struct run_result *result, bool aliases, struct buf *buf);

/* ---- what there is (catalog.c) ---- */

/* [{name, description, sets}]; the caller's reference.  NULL: a profile's file is wrong, see err. */
json_t *front_profiles(const struct settings *settings, struct csn_error *err);
/* A profile, and the whole request that it makes.  Errors: those of profile_find(). */
int front_profile(const struct settings *settings, const char *name, struct arena *arena, struct profile *ret, struct run_request *ret_whole,
                  struct csn_error *err);
/* All policies that these settings know.  Errors: those of policies_load(). */
int front_load_policies(const struct settings *settings, struct policies **ret, struct csn_error *err);
/* [{name, description, extends, file}]; the caller's reference. */
json_t *front_policies(const struct policies *policies);

/* ---- what a model is told (describe.c) ---- */

struct describe {
        const char *profile;
        const char *const *files;          /* names that the program finds */
        size_t files_n;
        enum session_mode session;         /* what lasts from one run to the next */
};

/*
 * run_code in sentences, at the end of buf: languages, libraries, limits and what is refused as they are here, now.  `added`:
 * languages of files, or NULL.  Errors: those of profile_find() and policies_load().
 */
int front_describe(const struct settings *settings, const struct language *added, const struct describe *about, struct buf *buf, struct csn_error *err);
/* The same text as "text", or as the definition of a tool: "openai", "anthropic", "mcp".  Errors: CSN_E_INPUT, there is no such format. */
int front_describe_as(const char *format, const char *text, struct buf *buf, struct csn_error *err);
/* The fields of a run_request that the tool run_code has, and those of them that each call has to give. */
extern const char front_run_code_fields[], front_run_code_required[];

#endif
