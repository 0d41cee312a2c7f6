/*
 * views: requests and records as JSON, and texts about profiles, policies and tools; shared by all fronts.
 *
 *   record.c      records and requests as JSON, in both directions
 *   catalog.c     profiles and policies
 *   explain.c     the meaning of a profile, in sentences
 *   describe.c    the description of run_code for a model
 *   tool_text.c   tools with signatures and examples
 *   log_reader.c  lines of the daemon's log
 *   usage_report.c  the usage of models
 */
#ifndef FRONT_VIEWS_VIEWS_H
#define FRONT_VIEWS_VIEWS_H

#include "engine/engine.h"

/*
 * Run caissond until a signal ends the daemon.  settings are used as given, except engine.allow_host, which is switched
 * off; SIGHUP loads the settings again from their sources.  Errors: as endpoint_open() and engine_open().
 */
int daemon_serve(const struct settings_sources *sources, struct settings *settings, struct csn_error *err);

#define FRONT_RECORD_MAX (4 * GIB)   /* bytes; each part of a record has a lower limit of its own */

/* A record as JSON, with aliases if requested.  The caller owns the reference. */
json_t *front_record(const struct run_result *result, bool aliases);
/* The same as text in one line, appended to buf.  false: buf is full. */
bool front_record_text(const struct run_result *result, bool aliases, struct buf *buf);
/* A result of grading as JSON, with aliases if requested.  The caller owns the reference. */
json_t *front_grade_result(const struct grade_result *result, bool aliases);
/* Decode a record's JSON: model_decode() without duplicate fields.  Memory: the arena.  Errors: CSN_E_PROTOCOL. */
int front_read_record(json_t *record, struct arena *arena, struct run_result *ret, struct csn_error *err);

/* Append a request as JSON text to buf; false: buf is full. */
bool front_write_request(const struct run_request *request, struct buf *buf);
bool front_write_check(const struct check_request *request, struct buf *buf);

/* ---- profiles and policies (catalog.c) ---- */

/*
 * [{name, description, sets, session, internal}]; the caller owns the reference.  NULL: a profile's file is wrong, see
 * err (errors of profile_find()).
 */
json_t *front_profiles(const struct settings *settings, struct csn_error *err);
/* A profile, and the complete request after it is applied; memory from the arena.  Errors: as profile_find(). */
int front_profile(const struct settings *settings, const char *name, struct arena *arena, struct profile *ret,
        struct run_request *ret_whole, struct csn_error *err);
/* The meaning of a profile in sentences (explain.c), appended to buf.  Errors: as profile_find(), policies_load(). */
int front_explain(const struct settings *settings, const char *name, struct buf *buf, struct csn_error *err);
/*
 * Load all policies of these settings; *ret is the caller's until policies_free().  Errors: as policies_load().
 */
int front_load_policies(const struct settings *settings, struct policies **ret, struct csn_error *err);
/* [{name, description, extends, file}]; the caller owns the reference. */
json_t *front_policies(const struct policies *policies);

/* ---- descriptions for models (describe.c) ---- */

/* What a description is about. */
struct describe {
        const char *profile;
        const char *const *files;          /* names of files that the program will find */
        size_t files_n;
        enum session_mode session;         /* the state that lasts between runs */
        bool by_context;                   /* state lasts in runs with a context alone */
        const json_t *tools;               /* callable tools, as tools_describe(); NULL: unknown here */
};

/*
 * Describe run_code in sentences, appended to buf: languages, libraries, limits and refusals as they are on this host
 * now.  `added`: languages of files, or NULL.  Errors: as profile_find() and policies_load().
 */
int front_describe(const struct settings *settings, const struct language *added, const struct describe *about,
        struct buf *buf, struct csn_error *err);
/* List tools with signatures, descriptions and examples (tool_text.c), appended to buf. */
void describe_tools(struct buf *buf, const json_t *tools, const struct tools_request *request);
/*
 * The same text in a format: "text", or the definition of a tool: "openai", "anthropic", "mcp".  Errors: CSN_E_INPUT
 * (unknown format).
 */
int front_describe_as(const struct settings *settings, const struct describe *about, const char *format,
        const char *text, struct buf *buf, struct csn_error *err);
/* The fields of a run_request for the tool run_code. */
extern const char front_run_code_fields[];
/*
 * The schema of the arguments of run_code with the profile, as a new reference: no language is required where the
 * profile gives the language, and defaults are the values of the profile.  With an unknown profile they are those of
 * fields.def.
 */
json_t *front_run_code_schema(const struct settings *settings, const char *profile);

#endif
