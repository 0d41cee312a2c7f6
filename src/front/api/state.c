/* Shared by the handlers of the folder: the states of its two fronts, and errors inside of answers. */
#include "front/api/api.h"

struct api_state *api_state(const struct service *service)
{
        return service_state_of(service, "api");
}

struct operations_state *operations_state(const struct service *service)
{
        return service_state_of(service, "operations");
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
