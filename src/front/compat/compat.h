/*
 * compat: what the fronts share that take requests in the formats of other services (sandboxfusion.c, piston.c,
 * judge0.c).
 *
 * Such a front makes a run_request of the request as JSON, which model_decode() reads, so every bound of fields.def
 * holds for it, too.  Fields that a front does not know are ignored, as the services do.  Errors of admission, quotas
 * and sizes are problems (RFC 9457); errors in the content are answered in the format of the service.
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
/* service_new_run() for a judge's API: see run_set_judged(). */
struct run *compat_judged_run(struct http_request *request, json_t *ours, struct csn_error *err);
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
