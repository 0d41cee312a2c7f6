/*
 * bulk: many requests in one body, one a line, each answered by a line when it is done.
 *
 * Lines are read only while few of them go on, and answers wait in a file without a name until the whole body has come;
 * so neither side can make the other hold more than some ceilings, however many lines there are.
 */
#ifndef FRONT_SERVICE_BULK_H
#define FRONT_SERVICE_BULK_H

#include "front/service/parse.h"
#include "front/service/service.h"

struct bulk_one;                           /* a line that is not answered yet */

struct bulk_kind {
        struct parse_kind parse;           /* of a line; is_line is set */
        /*
         * Begin the job of a line by its struct, see parse_take().  After success bulk_answer() follows from the loop,
         * once.
         */
        int (*begin)(struct http_request *request, struct bulk_one *one, struct parse *parse, void **ret_job,
                struct csn_error *err);
        void (*cancel)(void *job);         /* bulk_answer() follows all the same */
};

/* Handle a request whose body is a stream of lines of this kind. */
void bulk_begin(struct http_request *request, const struct bulk_kind *kind);
/*
 * Answer a line with this member, which is JSON text; NULL: the text could not be written, which is an error.  The text
 * becomes the callee's, and is freed by free(3).  `one` is freed; the job must be freed by then.
 */
void bulk_answer(struct bulk_one *one, const char *name, char *text, size_t len);
/* Answer a line with an error.  `one` is freed; the job must be freed by then. */
void bulk_fail(struct bulk_one *one, const struct csn_error *error);
struct log_context bulk_context(const struct bulk_one *one);
const char *bulk_key(const struct bulk_one *one);       /* id of the request's key, or "" */
const struct trace *bulk_trace(const struct bulk_one *one);
/* End all: a client that has sent its whole body gets the answers, others are cut. */
void bulks_cancel(struct service *service);

#endif
