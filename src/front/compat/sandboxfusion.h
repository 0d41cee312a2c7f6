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

/* The body as an object.  NULL: the request has its answer. */
json_t *fusion_body(struct http_request *request);
/* One of pydantic's errors, in its words; takes the last part of its place, or NULL. */
void fusion_add_flaw(json_t *flaws, const char *type, const char *message, const char *field, json_t *part,
        json_t *input);
/* 422 {"detail": [...]}, the reference of which this takes. */
void fusion_answer_flaws(struct http_request *request, json_t *flaws);
/* {"detail": text} */
void fusion_answer_detail(struct http_request *request, unsigned status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A run as /run_code answers it, with `files`, whose reference this takes. */
json_t *fusion_answer(const struct run_result *result, json_t *files);
/* Whether the status in fusion_answer() is "Success". */
bool fusion_succeeded(const struct run_result *result);
/* The answer of a run that cannot begin: 200 with "SandboxError" and the text of the error. */
void fusion_refuse(struct http_request *request, const struct csn_error *error);

/* Handles POST /submit (sandboxfusion_submit.c). */
void fusion_submit(struct http_request *request);

#endif
