/*
 * words: what the fronts have in common that speak the words of another service (sandboxfusion.c, piston.c, judge0.c).
 *
 * Such a front makes a request of ours from theirs as JSON, which model_decode() reads: so every bound of fields.def holds for
 * them too, and there is one place where a request is judged.  It ignores fields that it does not know, as those services do.
 * What concerns the door (keys, quotas, sizes) is answered as everywhere; what is wrong with the words, in theirs.
 */
#ifndef FRONT_COMPAT_H
#define FRONT_COMPAT_H

#include "front/api/api.h"

#define COMPAT_PARTS_MAX 200000             /* values and names in one body: some 20 MB */
#define COMPAT_DEPTH_MAX 64

/* An object of JSON by a stranger, the caller's reference; flags are jansson's.  NULL with err->text: it is none, deeper, or of more parts. */
json_t *compat_load(const char *text, size_t len, size_t flags, struct csn_error *err);
/* The request's body, the caller's reference.  NULL with err->text: it is no JSON, or no object. */
json_t *compat_body(const struct http_request *request, struct csn_error *err);
/* A number, or a text that is one: most services take both.  False for anything else, infinities included. */
bool compat_number(const json_t *json, double *ret);
/* Seconds or milliseconds of theirs as a whole number of ours from `least` on; beyond `most` it is that.  The caller's reference. */
json_t *compat_scaled(double number, double unit, uint64_t least, uint64_t most);
/* Base64 as their decoders take it, with line breaks in it, as ours does.  The caller's reference. */
json_t *compat_base64(const json_t *text);
/* Bytes as text: what is no UTF-8 becomes U+FFFD.  The caller's reference. */
json_t *compat_text(const char *bytes, size_t len);

/* A run of `ours`, whose reference this takes.  NULL with err: it is no request. */
struct run *compat_run(struct http_request *request, json_t *ours, struct csn_error *err);
/* The same of a judge's API: see run_set_judged(). */
struct run *compat_judged_run(struct http_request *request, json_t *ours, struct csn_error *err);
/* Whether it may start.  False: it is gone, and the request has its answer. */
bool compat_may_run(struct http_request *request, struct run *run);

/* How a program ended, as those see it who run it by isolate(1): Judge0, and Piston. */
struct compat_ending {
        const char *status;                /* NULL, "RE", "SG", "TO", "OL" or "EL" (output, errors); "XX": it did not run */
        const char *message;               /* NULL: it ended well */
        int64_t code;                      /* -1: none */
        int signal;                        /* 0: none */
};
/* Texts live in the arena. */
void compat_ending(const struct run_result *result, struct arena *arena, struct compat_ending *ret);

#endif
