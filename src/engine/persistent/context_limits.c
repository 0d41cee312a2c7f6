/* How a context and its executions use their sandbox: its folder, its isolation, its limits. */
#include "engine/persistent/psandbox_private.h"

#include "sandbox/sandbox.h"

#include <stdio.h>

/* ---- the folder in which a context begins ---- */

/* Checked before the interpreter starts: a fork of a zygote enters the folder only with its first execution. */
static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        (void)call, (void)kind, (void)bytes, (void)len, (void)fds;
}

static void on_room(struct guest_call *call)
{
        (void)call;
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct context *context = call->owner;
        struct csn_error err;
        const char *why = error ? strerrordesc_np(error->sys) : NULL;
        if (error && call->refused) {
                err_field(&err, "/cwd", "a context cannot begin in %.300s: %s; make the folder first, or name another",
                        context->request.cwd, why ? why : "it is not allowed");
                error = &err;
        }
        context->looked(context, error);
}

bool context_is_elsewhere(const struct context *context)
{
        return strcmp(context->request.cwd, SANDBOX_HOME) != 0;
}

int context_look(struct context *context, void (*looked)(struct context *context, const struct csn_error *error),
        struct csn_error *err)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        /* A stat of "FOLDER/." needs search permission for the folder. */
        const struct guest_file file = { .verb = GUEST_STAT,
                .flags = context->request.user == account_ROOT ? GUEST_FILE_AS_ROOT : 0,
                .path = arena_text(&context->arena, "%s/.", context->request.cwd),
                .to = (char[]){ "" },
                .space = (char[]){ "" } };
        context->looked = looked;
        context->look.events = &events;
        context->look.owner = context;
        return guest_call_file(context->psandbox, &context->look, &file, err);
}

/* ---- the request of an execution, and the limits of its sandbox ---- */

/* Limits of each execution; all others are limits of the whole sandbox. */
static bool is_of_execution(const char *limit)
{
        static const char *const limits[] = { "wall_ms", "cpu_ms", "output_bytes", "output_action", "value_bytes",
                "background_ms", "output_files", "input_bytes" };
        for (size_t i = 0; i < ARRAY_LEN(limits); i++)
                if (strcmp(limits[i], limit) == 0)
                        return true;
        return false;
}

static int differs(const char *of, const char *name, json_t *asked, json_t *own, struct csn_error *err)
{
        char *asked_text = json_dumps(asked, JSON_ENCODE_ANY),
             *own_text = own ? json_dumps(own, JSON_ENCODE_ANY) : NULL, where[80];
        snprintf(where, sizeof where, "/%s%s%s", of, of[0] ? "/" : "", name);
        err_field(err, where,
                "%s%s%s is %.100s, and the sandbox of the context has %.100s: it is for all that is in the sandbox. Leave it out, or make a sandbox with it",
                of, of[0] ? "." : "", name, asked_text ? asked_text : "", own_text ? own_text : "none");
        free(asked_text);
        free(own_text);
        return -err->code;
}

/* The members of a request that belong to the sandbox.  The caller's reference. */
static json_t *part_of_sandbox(const struct run_request *request)
{
        struct run_request part = { 0 };
#define TAKE(member)                                    \
        if (HAS(request, run_request, member))          \
                SET(&part, run_request, member, request->member)
        TAKE(limits);
        TAKE(image);
        TAKE(network);
        TAKE(strict_proc);
        TAKE(landlock);
        TAKE(cgroup);
        TAKE(backend);
#undef TAKE
        part.allow = request->allow;
        part.allow_n = request->allow_n;
        part.volumes = request->volumes;
        part.volumes_n = request->volumes_n;
        if (part.allow_n)
                MARK(&part, run_request, allow);
        if (part.volumes_n)
                MARK(&part, run_request, volumes);
        return model_encode(&object_run_request, &part);
}

static int check_same(const char *of, json_t *asked, json_t *own, struct csn_error *err)
{
        const char *name;
        json_t *value;
        json_object_foreach(asked, name, value) {
                json_t *has = json_object_get(own, name);
                if (!json_is_object(value) && !is_of_execution(name) && !json_equal(value, has))
                        return differs(of, name, value, has, err);
        }
        return 0;
}

/* An execution has the values of its sandbox and cannot change them. */
static int check_part_of_sandbox(const struct run_request *request, const struct psandbox *psandbox,
        struct csn_error *err)
{
        json_t *asked = part_of_sandbox(request), *own = part_of_sandbox(&psandbox->launch.request);
        int rc = check_same("limits", json_object_get(asked, "limits"), json_object_get(own, "limits"), err);
        if (rc == 0)
                rc = check_same("", asked, own, err);
        json_decref(asked);
        json_decref(own);
        return rc;
}

/* cpu_ms 0: not limited. */
static uint64_t limit_of(const struct limits *limits, const struct field *field)
{
        uint64_t value = *(const uint64_t *)(const void *)((const char *)limits + field->at);
        return value || field->at != offsetof(struct limits, cpu_ms) ? value : UINT64_MAX;
}

/* The limits in the request of the sandbox are the maxima for its executions. */
static int check_bounds(const struct limits *asked, const struct limits *most, struct csn_error *err)
{
        for (size_t i = 0; i < object_limits.n; i++) {
                const struct field *field = &object_limits.fields[i];
                char value[40], bound[40], where[80];
                if (field->kind != KIND_NUM || !is_of_execution(field->name) ||
                        !(asked->present & most->present & (uint64_t)1 << i) ||
                        limit_of(asked, field) <= limit_of(most, field))
                        continue;
                model_print_exact(field, *(const uint64_t *)(const void *)((const char *)asked + field->at), value,
                        sizeof value);
                model_print_exact(field, limit_of(most, field), bound, sizeof bound);
                snprintf(where, sizeof where, "/limits/%s", field->name);
                return err_field(err, where,
                        "limits.%s is %s; the sandbox of the context was made with %s, which is the most for an execution in it",
                        field->name, value, bound);
        }
        return 0;
}

/* Defaults for the limits of an execution: the sandbox's, lowered to the current ceilings. */
static void take_limits(struct run *run, const struct psandbox *psandbox)
{
        struct limits limits = psandbox->launch.request.limits;
        const struct limits *ceilings = &run->engine->settings->ceilings;
        for (size_t i = 0; i < object_limits.n; i++) {
                const struct field *field = &object_limits.fields[i];
                uint64_t *value = (uint64_t *)(void *)((char *)&limits + field->at);
                if (field->kind == KIND_NUM)
                        *value = min_u64(*value, *(const uint64_t *)(const void *)((const char *)ceilings + field->at));
        }
        model_overlay(&object_limits, &limits, &run->launch.request.limits, &run->launch.arena);
        run->launch.request.limits = limits;
        MARK(&run->launch.request, run_request, limits);
}

/*
 * Each execution is checked by the source policy of the sandbox's profile, or else of the profile in the settings: no
 * sandbox is a way around the policy.  Packages of the profile are in the sandbox already.
 */
static void take_policy(struct run *run, const struct psandbox *psandbox)
{
        struct run_request *request = &run->launch.request;
        const char *name = psandbox->launch.request.profile;
        struct profile profile;
        struct csn_error err;
        if (HAS(request, run_request, profile) ||
                profile_find(run->launch.settings, name, &run->launch.arena, &profile, &err) < 0 ||
                !HAS(&profile.request, run_request, policy))
                return;
        SET(request, run_request, profile, arena_text(&run->launch.arena, "%s", name));
        request->packages_n = 0;
        MARK(request, run_request, packages);
}

int context_take_limits(struct run *run, const struct context *context, struct csn_error *err)
{
        struct run_request *request = &run->launch.request;
        const struct language *language;
        if (request->files_n || request->exports_n || request->stdin.len || request->args_n ||
                HAS(request, run_request, work_dir) || HAS(request, run_request, workspace))
                return err_field(err, "/context",
                        "an execution in a context has no files, exports, stdin or args of its own; use the files of its sandbox");
        if (request->modules_n || HAS(request, run_request, input))
                return err_field(err, request->modules_n ? "/modules" : "/input",
                        "an execution in a context has no modules and no input of its own; write files of its sandbox");
        if (HAS(request, run_request, prelude) && context->language != &lang_python)
                return err_field(err, "/prelude",
                        "a context of %s has no prelude; execute its text once before, for what it defines lasts",
                        context->language->title);
        if (HAS(request, run_request, tools))
                return err_field(err, "/tools",
                        "an execution in a context has the tools of its sandbox; give tools when that is made");
        if (!HAS(request, run_request, language))
                SET(request, run_request, language, arena_text(&run->launch.arena, "%s", context->language->name));
        else if (lang_find(NULL, request->language, &language, err) < 0)
                return -err->code;
        else if (language != context->language)
                return err_field(err, "/language", "the context is one of %s, not of %s", context->language->title,
                        language->title);
        if (check_part_of_sandbox(request, context->psandbox, err) < 0 ||
                check_bounds(&request->limits, &context->psandbox->bounds, err) < 0)
                return -err->code;
        take_limits(run, context->psandbox);
        take_policy(run, context->psandbox);
        /*
         * Otherwise a profile might ask for a forbidden network; the network of the sandbox was allowed at its
         * creation.
         */
        SET(request, run_request, network, network_NONE);
        request->allow_n = 0;
        MARK(request, run_request, allow);
        return 0;
}

static void copy_texts(struct arena *arena, char *const *from, size_t n, char ***ret, size_t *ret_n)
{
        *ret = arena_alloc(arena, (n + 1) * sizeof **ret);
        for (size_t i = 0; i < n; i++)
                (*ret)[i] = arena_text(arena, "%s", from[i]);
        *ret_n = n;
}

void context_adopt(struct run *run)
{
        struct run_request *request = &run->launch.request;
        const struct context *context = context_find(run->engine, request->context, run->owner_key);
        const struct launch *launch = &context->psandbox->launch;
        const struct run_request *own = &launch->request;
        for (size_t i = 0; i < object_limits.n; i++) {
                const struct field *field = &object_limits.fields[i];
                if (field->kind == KIND_NUM && !is_of_execution(field->name))
                        memcpy((char *)&request->limits + field->at, (const char *)&own->limits + field->at,
                                sizeof(uint64_t));
        }
        run->launch.backend = launch->backend;
        request->backend = arena_text(&run->launch.arena, "%s", own->backend);
        SET(request, run_request, image, arena_text(&run->launch.arena, "%s", own->image));
        copy_texts(&run->launch.arena, own->volumes, own->volumes_n, &request->volumes, &request->volumes_n);
        copy_texts(&run->launch.arena, launch->devices, launch->devices_n, &run->launch.devices,
                &run->launch.devices_n);
        request->network = own->network;
        request->strict_proc = own->strict_proc;
        request->landlock = own->landlock;
        request->cgroup = own->cgroup;
        if (!run->keeps_profile)
                request->profile = arena_text(&run->launch.arena, "%s", own->profile);
}
