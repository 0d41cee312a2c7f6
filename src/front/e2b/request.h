/*
 * request: what the handlers of all rooms of E2B use: target and members of a request, and answers in E2B's format.
 *
 * After "the request was answered" the caller returns, and uses the request no more.
 */
#ifndef FRONT_E2B_REQUEST_H
#define FRONT_E2B_REQUEST_H

#include "front/e2b/e2b.h"

#define E2B_NO_PORT 65536                  /* the target of a request whose E2b-Sandbox-Port is no port number */

/* ---- the target of a request ---- */

/*
 * The sandbox of a request to one of its ports.  The sandbox runs when a handler is called: requests for a missing or
 * paused sandbox have been answered before, and a request that resumes a sandbox waits.  Later the sandbox may end:
 * call again, and answer the request if the result is NULL.  Guest calls and executions in the sandbox end before the
 * sandbox.
 */
struct e2b_sandbox *e2b_target(const struct http_request *request);
/* Whether a program may start in the sandbox now.  Errors: as service_may_begin_program(). */
int e2b_may_begin_program(const struct e2b_sandbox *sandbox, struct http_limit *ret_limit, struct csn_error *err);
/* Whether CPU time is left for an execution in the sandbox.  Errors: as service_tenant_has_cpu_time(). */
int e2b_has_cpu_time(const struct e2b_sandbox *sandbox, struct http_limit *ret_limit, struct csn_error *err);
/* The port of the target; 0: the control plane. */
unsigned e2b_port(const struct http_request *request);
/*
 * The port and the sandbox id in Host, E2b-Sandbox-Id or the token of a request.  The id is borrowed from the request
 * or the sandbox, and not terminated.  0: none; E2B_NO_PORT: E2b-Sandbox-Port is wrong.
 */
unsigned e2b_parse_target(const struct http_request *request, const char **ret_id, size_t *ret_len);

/* ---- answers ---- */

/* Answer with {"code": status, "message": ...}. */
void e2b_error(struct http_request *request, unsigned status, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Answer 502 with the reason: the sandbox is gone; no program listens on the port. */
void e2b_not_found(struct http_request *request);
void e2b_closed_port(struct http_request *request, unsigned port);
/* Answer without a body. */
void e2b_no_content(struct http_request *request);
/* Answer after a failed creation; after a failed change (409 for CSN_E_BUSY). */
void e2b_fail(struct http_request *request, const struct csn_error *error);
void e2b_conflict(struct http_request *request, const struct csn_error *error);

/* ---- members of a request ---- */

/*
 * The body, or an empty object without a body; the caller's reference.  NULL: the body or a member is wrong, and the
 * request was answered.
 */
json_t *e2b_body(struct http_request *request, const struct e2b_member *members);
/*
 * The life in a member, in seconds, as ms.  usual_s is the default, 0 if the member is required.  false: wrong, and the
 * request was answered.
 */
bool e2b_life(struct http_request *request, const json_t *body, const char *name, unsigned usual_s, uint64_t *ret_ms);
/* The sandbox in the path; NULL: none, or being killed, and the request was answered. */
struct e2b_sandbox *e2b_named(struct http_request *request);
/* The same, also for a sandbox that is being killed. */
struct e2b_sandbox *e2b_named_or_ending(struct http_request *request);
/* The query's limit for a list.  false: wrong, and the request was answered. */
bool e2b_limit(struct http_request *request, size_t *ret);
/* A number of the query, or the default if missing.  false: wrong, and the request was answered. */
bool e2b_query_number(struct http_request *request, const char *name, int64_t usual, int64_t *ret);

/* ---- texts ---- */

/* Whether two texts are equal, in a time independent of the first difference. */
bool e2b_same(const char *one, const char *other);

/* A text member of an object; "" if missing.  Borrowed. */
const char *e2b_text(const json_t *json, const char *name);
/* "2026-01-02T03:04:05.678Z" for milliseconds since 1970; the caller's reference. */
json_t *e2b_time(int64_t ms);

#endif
