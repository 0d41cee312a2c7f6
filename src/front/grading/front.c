/* The front of gradings: routes of problem sets, and hooks for the gradings of all fronts. */
#include "front/grading/state.h"

static const struct http_route routes[] = {
        { "PUT", "/v1/problems/{set}", "format", SCOPE_FILES, BODY_STREAM, problem_sets_handle_put,
                "Store a set of problems, in place of an earlier one: one problem a line, or an array of problems, each with an id. "
                "A request to grade names a problem by `problem`, `SET/ID`.",
                NULL, &object_problem_set_info },
        { "GET", "/v1/problems", NULL, SCOPE_FILES | SCOPE_READ, BODY_NONE, problem_sets_handle_list,
                "The sets of problems of this key's tenant, by name.", NULL, &object_problem_set_list },
        { "GET", "/v1/problems/{set}", NULL, SCOPE_FILES | SCOPE_READ, BODY_NONE, problem_sets_handle_get,
                "A set of problems.", NULL, &object_problem_set_info },
        { "DELETE", "/v1/problems/{set}", NULL, SCOPE_FILES, BODY_NONE, problem_sets_handle_delete,
                "Remove a set of problems. Gradings that have begun keep their problem.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { problem_sets_handle_put, "200:problem_set_info 201:problem_set_info", "413 429 507", "ndjson", NULL, NULL,
                "{\"id\": \"double\", \"function\": \"double\", \"cases\": [{\"args\": [2], \"expected\": 4}]}" },
        { problem_sets_handle_delete, "204", NULL, NULL, NULL, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

static const struct front_value parameters[] = {
        { "{set}", "{\"type\": \"string\", \"maxLength\": 64}", "mine", true, "The name of a set of problems." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_tag tags[] = {
        { "/v1/problems", "Problem sets", "Problems that are stored once, for gradings that name them." },
        { NULL, NULL, NULL },
};

const struct front grading_front = { .name = "gradings",
        .routes = routes,
        .notes = notes,
        .parameters = parameters,
        .tags = tags,
        .state_size = sizeof(struct grading_state),
        .cancel = grade_jobs_cancel,
        .stop = problem_sets_stop,
        .close = grade_jobs_close };
