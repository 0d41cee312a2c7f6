/*
 * compat: what the fronts share that take requests in the formats of other services (sandboxfusion.c, piston.c,
 * judge0.c, tool_call.c).
 *
 * Such a front makes a run_request of the request as JSON, which model_decode() reads, so every bound of fields.def
 * holds for it, too.  Fields that a front does not know are ignored, as the services do; tool_call.c refuses unknown
 * fields.  Errors of admission, quotas and sizes are problems (RFC 9457); errors in the content are answered in the
 * format of the service.
 *
 * A struct parse_converter does the conversion, in a helper thread if the body is long.  The converter uses a context
 * that begin() makes in the loop: copies of settings, and the languages, which do not change while the daemon runs.
 */
#ifndef FRONT_COMPAT_COMPAT_H
#define FRONT_COMPAT_COMPAT_H

#include "front/service/json_body.h"
#include "front/service/parse.h"
#include "front/service/service.h"

/* A finite number, or a text of one.  False: it is neither. */
bool compat_number(const json_t *json, double *ret);
/*
 * Seconds or milliseconds of theirs as a whole number of ours from `least` on; beyond `most` it is that.  The caller's
 * reference.
 */
json_t *compat_scaled(double number, double unit, uint64_t least, uint64_t most);
/* Base64 as their decoders take it, with line breaks in it, as ours does.  The caller's reference. */
json_t *compat_base64(const json_t *text);

/* The result of a converter, first in the front's own struct: an answer, or a request to run. */
struct compat_given {
        unsigned status; /* of the answer; 0: there is a request */
        char *answer;    /* from http_json_text() */
        struct run_request request;
};
/* Refuse a body with this answer.  The reference becomes the callee's. */
void compat_refuse(struct compat_given *given, unsigned status, json_t *answer);
/* Send the answer, if there is one.  False: there is a request. */
bool compat_answer(struct http_request *request, struct compat_given *given);
/* drop() of a converter, for a struct that begins with a struct compat_given. */
void compat_drop(void *given);
/* Decode JSON of ours as the request.  The reference becomes the callee's; texts live in the arena. */
int compat_decode(json_t *ours, struct arena *arena, struct run_request *ret, struct csn_error *err);
/* A new run for a judge's API, see run_set_judged(); the memory of `given` has to live as long as the run. */
struct run *compat_run(struct http_request *request, const struct run_request *given);
/* Whether it may start.  False: it is gone, and the request has its answer. */
bool compat_may_run(struct http_request *request, struct run *run);

/* How a program ended, as those see it who run it by isolate(1): Judge0, and Piston. */
struct compat_ending {
        const char *status; /* NULL, "RE", "SG", "TO", "OL" or "EL" (output, errors); "XX": it did not run */
        const char *message;               /* NULL: it ended well */
        int64_t code;                      /* -1: none */
        int signal;                        /* 0: none */
};
/* Texts live in the arena. */
void compat_ending(const struct run_result *result, struct arena *arena, struct compat_ending *ret);

#endif
