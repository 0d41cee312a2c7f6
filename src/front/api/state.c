/* What the handlers of the folder share: the states of its two fronts, and errors inside of answers. */
#include "front/api/api.h"

/* The state of a front by its name: the fronts name the handlers, so the handlers do not name the fronts. */
static void *state_of(const struct service *service, const char *name)
{
        size_t i = 0;
        while (strcmp(service->fronts[i]->name, name) != 0)
                i++;
        return service->states[i];
}

struct api_state *api_state(const struct service *service)
{
        return state_of(service, "api");
}

struct operations_state *operations_state(const struct service *service)
{
        return state_of(service, "operations");
}

json_t *api_error(const struct csn_error *error)
{
        struct arena arena = { 0 };
        size_t len;
        json_t *json = json_pack("{s:s, s:s}", "code", csn_code_name(error->code), "message",
                model_utf8(&arena, error->text, strlen(error->text), &len));
        arena_done(&arena);
        return json;
}
