/* state: the state of the front of gradings, for the files of this folder. */
#ifndef FRONT_GRADING_STATE_H
#define FRONT_GRADING_STATE_H

#include "front/grading/gradings.h"
#include "grading/grading.h"

struct grading_state {
        struct grader *grader;             /* NULL until the first grading */
        struct grade_job *jobs;
        struct problem_put *puts;          /* sets that come in */
};

struct grading_state *grading_state(const struct service *service);

/* Hooks of the front: end all gradings; free them, without done(). */
void grade_jobs_cancel(struct service *service);
void grade_jobs_close(struct service *service);
/* The same for sets that come in. */
void problem_sets_stop(struct service *service);

/* Handlers. */
void problem_sets_handle_put(struct http_request *request);
void problem_sets_handle_list(struct http_request *request);
void problem_sets_handle_get(struct http_request *request);
void problem_sets_handle_delete(struct http_request *request);

#endif
