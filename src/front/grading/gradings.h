/*
 * gradings: gradings that requests of any front start, and stored sets of problems, which requests name.
 *
 *   front.c         the front: routes of problem sets, and hooks
 *   job.c           a grading, from the JSON of a request to its result
 *   problems.c      PUT, GET and DELETE /v1/problems
 *   problem_file.c  the file of a set: its problems, and an index
 *   state.[ch]      the state of the front
 *
 * A request names a stored problem by its member "problem", "SET/ID".  The loop finds the set.  A helper thread reads
 * the problem, adds the members of the request and decodes the sum.  A problem set belongs to a tenant.
 */
#ifndef FRONT_GRADING_GRADINGS_H
#define FRONT_GRADING_GRADINGS_H

#include "front/service/parse.h"
#include "front/service/service.h"

extern const struct front grading_front;

/* A grading of a request.  It exists until events->done() or grade_job_free(). */
struct grade_job;

struct grade_job_events {
        /*
         * The grading has ended, and done() follows.  Perhaps in a helper thread, as encode() of struct grading_events.
         * May be NULL.
         */
        void (*encode)(void *owner, const struct grade_request *request, const struct grade_result *result);
        /*
         * Called once, from the loop: a result; or an error, if the request could not be decoded or the problem that it
         * names does not exist.  The job is freed after the call.
         */
        void (*done)(void *owner, const struct grade_result *result, const struct csn_error *error);
};

/* decode() of struct parse_kind for a request to grade; keeps_tree() is problem_is_named(). */
int grade_job_decode(json_t *json, struct arena *arena, void *ret, struct csn_error *err);

/*
 * load() of struct parse_converter for a body with problems: an object with as many values as a request to grade, and
 * with integers of any size.
 */
json_t *grade_body_load(const char *text, size_t len, struct csn_error *err);

/*
 * Start a grading for the tenant of an HTTP request, with the quotas of the key.  `json`: as the body of POST
 * /v1/grade; the reference becomes the callee's.  trace: the span above the grading's runs.  *ret belongs to the
 * caller until done().
 *
 * Errors: CSN_E_BUSY with *ret_limit (no CPU time is left), CSN_E_INPUT with the field /problem, CSN_E_SYSTEM.
 */
int grade_job_start(struct http_request *request, const struct trace *trace, json_t *json,
        const struct grade_job_events *events, void *owner, struct grade_job **ret, struct http_limit *ret_limit,
        struct csn_error *err);
/* The same with a good result of grade_job_decode(). */
int grade_job_start_parsed(struct http_request *request, const struct trace *trace, struct parse *parse,
        const struct grade_job_events *events, void *owner, struct grade_job **ret, struct http_limit *ret_limit,
        struct csn_error *err);
/* done() follows with status "cancelled", or with an earlier end. */
void grade_job_cancel(struct grade_job *job);
/* End without done().  NULL is allowed. */
void grade_job_free(struct grade_job *job);

/* Answer 503 with Retry-After: a grading without a verdict.  The text becomes the callee's. */
void grade_answer_masked(struct http_request *request, char *text);

/* ---- problem_file.c ---- */

#define PROBLEM_NAME_MAX 64                /* bytes of the name of a set */
#define PROBLEM_ID_MAX 256                 /* bytes of the id of a problem */

/*
 * Split "SET/ID" at its first slash.  Errors: CSN_E_INPUT.  The texts live in the arena.
 */
int problem_split(const char *text, struct arena *arena, const char **ret_set, const char **ret_id,
        struct csn_error *err);
bool problem_is_set_name(const char *name);
/*
 * Whether a request names a stored problem.  A record of a data set, which has a format, may have a member "problem" of
 * its own.
 */
bool problem_is_named(const json_t *request);

/* Writes the file of a set from a text in pieces; used by one thread at a time, see store_use_open(). */
struct problem_writer;

struct problem_limits {
        int format;                        /* of enum grade_format */
        uint64_t bytes_max, count_max;     /* problems.set_bytes, problems.set_count */
};

/* `use` has to outlive the writer.  tenant: "" to TENANT_MAX bytes. */
struct problem_writer *problem_writer_new(struct store *store, const char *tenant, struct store_use *use,
        const struct problem_limits *limits);
/*
 * Add a piece of NDJSON or of a JSON array of problems: each is checked, and written as it stands.  Errors: CSN_E_INPUT
 * with the line, or the number, of the problem; those of incoming_add().
 */
int problem_writer_add(struct problem_writer *writer, const char *bytes, size_t len, struct csn_error *err);
/* The text is whole: write the index.  Errors: as problem_writer_add(). */
int problem_writer_end(struct problem_writer *writer, struct store_problem_set *ret, struct csn_error *err);
/* After problem_writer_end(), for problem_sets_put(); stays the writer's. */
struct incoming *problem_writer_incoming(struct problem_writer *writer);
/* Bytes of memory that the writer has. */
size_t problem_writer_memory(const struct problem_writer *writer);
void problem_writer_free(struct problem_writer *writer);

/*
 * Read a problem of a set: its JSON.  The caller's reference; NULL without an error: the set has no such problem.
 * Errors: CSN_E_SYSTEM.  For a helper thread.
 */
json_t *problem_read(int fd, const struct store_problem_set *set, const char *id, struct csn_error *err);

#endif
