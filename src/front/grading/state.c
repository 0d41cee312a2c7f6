/* The state of the front of gradings, found by the front's name, so that jobs and sets do not name the front. */
#include "front/grading/state.h"

struct grading_state *grading_state(const struct service *service)
{
        size_t i = 0;
        while (strcmp(service->fronts[i]->name, "gradings") != 0)
                i++;
        return service->states[i];
}
