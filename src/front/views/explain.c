/*
 * A profile in sentences: caisson profiles explain.
 *
 * Each sentence comes from the profile's own values and from the complete request, so no sentence can differ from the
 * rules of a run.
 */
#include "front/views/views.h"

#include <inttypes.h>

static void add_names(struct buf *buf, char *const *names, size_t n)
{
        for (size_t i = 0; i < n; i++)
                buf_printf(buf, "%s%s", i ? ", " : "", names[i]);
}

static void add_language(struct buf *buf, const struct profile *profile)
{
        if (HAS(&profile->request, run_request, language))
                buf_printf(buf, "A program whose request names no language is %s.\n", profile->request.language);
        else
                buf_printf(buf, "A request has to name the language.\n");
}

static void add_extract(struct buf *buf, const struct run_request *whole)
{
        if (whole->extract != extract_NONE)
                buf_printf(buf, "Of the text of a request: %s.\n", choices_extract.values[whole->extract].meaning);
}

/* Modules able to load others by name: allowing such a module allows all. */
static bool loads_any(const char *module)
{
        static const char *const loaders[] = { "importlib", "runpy", "pkgutil", "imp", "zipimport", "builtins",
                "ctypes" };
        for (size_t i = 0; i < ARRAY_LEN(loaders); i++)
                if (strcmp(module, loaders[i]) == 0 || strncmp(module, "importlib.", strlen("importlib.")) == 0)
                        return true;
        return false;
}

static void add_imports(struct buf *buf, const struct run_request *whole)
{
        if (whole->allow_imports_n) {
                buf_printf(buf, "Whatever the policy says, these modules can be imported: ");
                add_names(buf, whole->allow_imports, whole->allow_imports_n);
                buf_printf(buf, ".\n");
        }
        for (size_t i = 0; i < whole->allow_imports_n; i++)
                if (loads_any(whole->allow_imports[i]))
                        buf_printf(buf, "%s loads any module by its name, so allowing it allows everything.\n",
                                whole->allow_imports[i]);
        if (HAS(whole, run_request, forbidden_modules) && whole->forbidden_modules_n) {
                buf_printf(buf, "These modules cannot be imported, in place of the policy's list: ");
                add_names(buf, whole->forbidden_modules, whole->forbidden_modules_n);
                buf_printf(buf, ".\n");
        } else if (HAS(whole, run_request, forbidden_modules)) {
                buf_printf(buf, "No module is forbidden, in place of the policy's list.\n");
        }
        if (!whole->allow_imports_n && strcmp(whole->policy, "off") != 0)
                buf_printf(buf, "A request with allow_imports adds modules. Allowing importlib allows everything, because importlib loads any module by its name.\n");
}

static int add_policy(struct buf *buf, const struct settings *settings, const struct run_request *whole,
        struct csn_error *err)
{
        struct policies *policies = NULL;
        const struct policy *policy;
        if (strcmp(whole->policy, "off") == 0) {
                buf_printf(buf, "Source policy off: each program that parses is run.\n");
                return 0;
        }
        int rc = front_load_policies(settings, &policies, err);
        rc = rc < 0 ? rc : policies_find(policies, whole->policy, &policy, err);
        if (rc == 0) {
                json_t *json = policy_describe(policy);
                const char *text = json_string_value(json_object_get(json, "description"));
                buf_printf(buf, "Source policy %s: %s\n", whole->policy, text ? text : "");
                buf_printf(buf, whole->advise ? "What the policy finds is recorded, and the program runs all the same.\n"
                                              : "A program that the policy refuses does not start.\n");
                json_decref(json);
        }
        policies_free(policies);
        return rc;
}

static void add_review(struct buf *buf, const struct settings *settings, const struct run_request *whole)
{
        int mode = whole->review > settings->review.mode ? whole->review : settings->review.mode;
        buf_printf(buf, "Review by a model: %s: %s.\n", choices_review_mode.values[mode].text,
                choices_review_mode.values[mode].meaning);
}

static void add_network(struct buf *buf, const struct run_request *whole)
{
        if (whole->backend && strcmp(whole->backend, "host") == 0)
                buf_printf(buf, "Network: the host's own.\n");
        else if (whole->network == network_PUBLIC)
                buf_printf(buf, "Network: public addresses by HTTP and HTTPS, by way of a proxy that refuses private ones.\n");
        else if (whole->network == network_ALLOW && whole->allow_n) {
                buf_printf(buf, "Network: by way of a proxy, these hosts alone: ");
                add_names(buf, whole->allow, whole->allow_n);
                buf_printf(buf, ".\n");
        } else {
                buf_printf(buf, "Network: none.\n");
        }
}

static void add_limits(struct buf *buf, const struct profile *profile, const struct run_request *whole)
{
        buf_printf(buf, "Limits:");
        for (size_t i = 0; i < object_limits.n; i++) {
                const struct field *field = &object_limits.fields[i];
                char text[60];
                if (field->kind != KIND_NUM || !(profile->request.limits.present >> i & 1))
                        continue;
                model_print(field, *(const uint64_t *)(const void *)((const char *)&whole->limits + field->at), text,
                        sizeof text);
                buf_printf(buf, " %s=%s", field->name, text);
        }
        buf_printf(buf, "%s. All others are those of the settings limits.*, and a request can set each up to its ceiling.\n",
                profile->request.limits.present ? "" : " none of its own");
}

static void add_session(struct buf *buf, const struct profile *profile)
{
        static const char *const texts[] = {
                [session_mode_NONE] = "nothing lasts from one run to the next",
                [session_mode_FILES] = "in a session the files last, and each run has a new interpreter",
                [session_mode_INTERPRETER] = "in a session the files and the variables last",
        };
        buf_printf(buf, "State: %s.\n", texts[profile->session]);
}

static void add_tools(struct buf *buf, const struct run_request *whole)
{
        const struct tools_request *tools = &whole->tools;
        if (tools->allow_n) {
                buf_printf(buf, "Tools that code can call: ");
                add_names(buf, tools->allow, tools->allow_n);
                buf_printf(buf, "; %" PRIu64 " calls of %" PRIu64 " bytes at the most.\n", tools->calls,
                        tools->payload_bytes);
        } else {
                buf_printf(buf, tools->enabled ? "Code finds `tools`, and a request names the tools that code can call.\n"
                                               : "Code finds no tools, unless a request names some.\n");
        }
}

static void add_isolation(struct buf *buf, const struct run_request *whole)
{
        if (whole->backend && strcmp(whole->backend, "host") == 0)
                buf_printf(buf, "There is no sandbox: a program can do what the caller can do.\n");
        else
                buf_printf(buf, "The sandbox is the same under each profile; the source policy is advice, and the sandbox the boundary.\n");
        if (whole->landlock == need_REQUIRE || whole->cgroup == cgroup_need_REQUIRE)
                buf_printf(buf, "A host that cannot enforce%s%s runs nothing.\n",
                        whole->landlock == need_REQUIRE ? " Landlock" : "",
                        whole->cgroup == cgroup_need_REQUIRE ? " limits by cgroups" : "");
}

int front_explain(const struct settings *settings, const char *name, struct buf *buf, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct profile profile;
        struct run_request whole;
        int rc = front_profile(settings, name, &arena, &profile, &whole, err);
        if (rc == 0) {
                buf_printf(buf, "%s: %s\n", profile.name, profile.text);
                if (profile_is_internal(name))
                        buf_printf(buf, "The engine uses this profile itself; a request cannot name it.\n");
                else
                        add_language(buf, &profile);
                add_extract(buf, &whole);
                rc = add_policy(buf, settings, &whole, err);
        }
        if (rc == 0) {
                add_imports(buf, &whole);
                add_review(buf, settings, &whole);
                add_network(buf, &whole);
                add_limits(buf, &profile, &whole);
                add_session(buf, &profile);
                add_tools(buf, &whole);
                add_isolation(buf, &whole);
                buf_printf(buf, "As text, an answer has the form %s.\n", choices_text_form.values[whole.format].text);
        }
        arena_done(&arena);
        return rc;
}
