/*
 * judge0: the parts of the front for clients of Judge0.
 *
 *   judge0.c          routes, submissions as requests of ours, languages and configuration
 *   judge0_result.c   runs as submissions: statuses, and the fields of an answer
 *   judge0_lookup.c   submissions by their tokens
 *
 * Values of a submission that our record has no member for are kept as JSON in the label JUDGE0_LABEL of the run.
 */
#ifndef FRONT_COMPAT_JUDGE0_H
#define FRONT_COMPAT_JUDGE0_H

#include "front/service/run.h"

#define JUDGE0_LABEL "judge0"
#define JUDGE0_LANGUAGES 18
#define JUDGE0_STATUS_FIRST 1
#define JUDGE0_STATUS_LAST 14

/* An id of Judge0 CE, old or new; the host decides which version runs. */
struct judge0_language {
        int id;
        const char *name, *title;
};
extern const struct judge0_language judge0_languages_table[JUDGE0_LANGUAGES];

/* The form of an answer, from the query of a request. */
struct judge0_form {
        bool base64;
        const char *fields;                /* names with commas between; NULL: the usual ones; "*": all */
        bool broken;                       /* a text that is not UTF-8 was asked for as text */
};

/* Whether submissions have a field of this name; "*" means all fields. */
bool judge0_has_field(const char *name);
/* {"id", "description"} of a status.  The caller's reference. */
json_t *judge0_status(int id);
/*
 * The answer for a run with these labels.  result is NULL while the run goes on.  The caller's reference; NULL: the run
 * is no submission.
 */
json_t *judge0_submission_of(struct judge0_form *form, const char *token, const char *state, const struct pair *labels,
        size_t labels_n, const struct run_result *result);
/*
 * Look up n submissions by their tokens.  answer() gets the text `begin` and the submissions
 * as JSON with commas between, and may take the memory of the text.  "null" stands for a token without a submission of
 * the tenant.  Errors are answered: those of service_find_run(), CSN_E_PROTOCOL.
 */
typedef void judge0_answer(struct http_request *request, const struct judge0_form *form, struct buf *text);
void judge0_look_up(struct http_request *request, const struct judge0_form *form, const char *begin,
        const char *const *tokens, size_t n, judge0_answer *answer);

#endif
