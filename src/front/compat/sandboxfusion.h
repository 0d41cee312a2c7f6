/*
 * fusion: the interface of SandboxFusion.
 *
 *   sandboxfusion.c         programs: POST /run_code; the front
 *   sandboxfusion_submit.c  programs with tests: POST /submit
 *   sandboxfusion_answer.c  the answers of both
 */
#ifndef FRONT_COMPAT_SANDBOXFUSION_H
#define FRONT_COMPAT_SANDBOXFUSION_H

#include "front/compat/compat.h"

#define FUSION_WALL_MS_MAX 86400000        /* the highest limits.wall_ms */

/* The flaws of a body that is no JSON object: the list for {"detail": [...]}.  The caller's reference. */
json_t *fusion_no_json(const struct csn_error *error);
/* One of pydantic's errors, in its words; takes the last part of its place, or NULL. */
void fusion_add_flaw(json_t *flaws, const char *type, const char *message, const char *field, json_t *part,
        json_t *input);
/* {"detail": flaws}, for 422.  Takes the reference. */
json_t *fusion_flaws(json_t *flaws);
/* {"detail": text} */
json_t *fusion_detail(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* A run as /run_code answers it, with `files`, whose reference this takes. */
json_t *fusion_answer(const struct run_result *result, json_t *files);
/* Whether the status in fusion_answer() is "Success". */
bool fusion_succeeded(const struct run_result *result);
/* The answer of a run that cannot begin: "SandboxError" and the text of the error, for 200. */
json_t *fusion_no_run(const struct csn_error *error);

/* Handles POST /submit (sandboxfusion_submit.c). */
void fusion_submit(struct http_request *request);
/* convert() and drop() of its converter; the context is the list of added languages. */
void *fusion_convert_submit(json_t *body, const struct csn_error *error, void *context, struct arena *arena);
void fusion_drop_submit(void *given);

#endif
