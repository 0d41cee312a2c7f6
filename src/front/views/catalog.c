/* Profiles and policies as JSON, for the command line and for HTTP. */
#include "front/views/views.h"

#include "backend/backend.h"

static json_t *describe(const struct profile *profile)
{
        json_t *json = json_pack("{s:s, s:s, s:o}", "name", profile->name, "description", profile->text, "sets",
                model_encode(&object_run_request, &profile->request));
        if (profile->has_session)
                json_object_set_new(json, "session", json_string(choices_session_mode.values[profile->session].text));
        if (profile_is_internal(profile->name))
                json_object_set_new(json, "internal", json_true());
        return json;
}

json_t *front_profiles(const struct settings *settings, struct csn_error *err)
{
        struct arena arena = { 0 };
        char **names = profile_names(settings, &arena);
        json_t *list = json_array();
        for (size_t i = 0; names[i] && list; i++) {
                struct profile profile;
                if (profile_find(settings, names[i], &arena, &profile, err) < 0) {
                        json_decref(list);
                        list = NULL;
                } else {
                        json_array_append_new(list, describe(&profile));
                }
        }
        arena_done(&arena);
        return list;
}

int front_profile(const struct settings *settings, const char *name, struct arena *arena, struct profile *ret,
        struct run_request *ret_whole, struct csn_error *err)
{
        *ret_whole = (struct run_request){ 0 };
        SET(ret_whole, run_request, profile, arena_text(arena, "%s", name));
        if (profile_find(settings, name, arena, ret, err) < 0)
                return -err->code;
        bool host = ret->request.backend && strcmp(ret->request.backend, "host") == 0;
        /* The host backend is refused unless allowed, but its profile can be shown all the same. */
        struct settings allowing = *settings;
        allowing.engine.allow_host = true;
        if (host)
                SET(ret_whole, run_request, backend, arena_text(arena, "host"));
        return settings_apply(host ? &allowing : settings, ret_whole, arena, err);
}

int front_load_policies(const struct settings *settings, struct policies **ret, struct csn_error *err)
{
        const char *const folders[] = { settings->engine.policies_dir, backend_policies_dir() };
        return policies_load(folders, ARRAY_LEN(folders), ret, err);
}

json_t *front_policies(const struct policies *policies)
{
        json_t *list = json_array();
        const struct policy *policy;
        for (size_t i = 0; policies_name(policies, i); i++) {
                if (policies_find(policies, policies_name(policies, i), &policy, NULL) < 0)
                        continue;
                json_t *all = policy_describe(policy);
                json_array_append_new(list,
                        json_pack("{s:O, s:O, s:O, s:O}", "name", json_object_get(all, "name"), "description",
                                json_object_get(all, "description"), "extends", json_object_get(all, "extends"), "file",
                                json_object_get(all, "file")));
                json_decref(all);
        }
        return list;
}
