/* Descriptions of a persistent sandbox for callers; its life is in psandbox.c. */
#include "engine/persistent/psandbox_private.h"

#include <sys/vfs.h>

const char *psandbox_id(const struct psandbox *psandbox)
{
        return psandbox->id;
}

uint64_t psandbox_number(const struct psandbox *psandbox)
{
        return psandbox->number;
}

uint64_t psandbox_count_program(struct psandbox *psandbox)
{
        return ++psandbox->programs_n;
}

const struct limits *psandbox_limits(const struct psandbox *psandbox)
{
        return &psandbox->launch.request.limits;
}

json_t *psandbox_use(const struct psandbox *psandbox)
{
        const struct wire_stats *seen = &psandbox->seen;
        const struct limits *limits = psandbox_limits(psandbox);
        struct statfs disk = { 0 };
        if (psandbox->home_fd < 0 || fstatfs(psandbox->home_fd, &disk) < 0)
                disk = (struct statfs){ 0 };
        uint64_t bytes = (disk.f_blocks - disk.f_bfree) * (uint64_t)disk.f_bsize;
        uint64_t files = disk.f_files - disk.f_ffree,
                 own = !psandbox->request.root; /* the home directory itself is no file of theirs */
        return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cpu_ms", (double)seen->cpu_us / 1000,
                "memory_bytes", (json_int_t)seen->memory_bytes, "memory_peak_bytes", (json_int_t)seen->memory_peak,
                "processes", (json_int_t)(seen->processes ? seen->processes : 0), "oom_kills",
                (json_int_t)seen->oom_kills, "pids_hits", (json_int_t)seen->pids_hits, "disk_bytes", (json_int_t)bytes,
                "disk_files", (json_int_t)(files - min_u64(files, own)), "disk_bytes_max",
                (json_int_t)limits->disk_bytes, "disk_files_max", (json_int_t)limits->disk_files);
}

static json_t *encode_boundary(const struct psandbox *psandbox)
{
        struct arena arena = { 0 };
        struct boundary boundary;
        boundary_describe(&psandbox->launch, &psandbox->boundary, false, &arena, &boundary);
        json_t *json = model_encode(&object_boundary, &boundary);
        arena_done(&arena);
        return json;
}

static void append(json_t *json, const char *name, json_t *one)
{
        if (!json_object_get(json, name))
                json_object_set_new(json, name, json_array());
        json_array_append_new(json_object_get(json, name), one);
}

json_t *psandbox_describe(const struct psandbox *psandbox)
{
        static const char *const states[] = { [PSANDBOX_MAKING] = "starting",
                [PSANDBOX_READY] = "running",
                [PSANDBOX_PAUSED] = "paused",
                [PSANDBOX_OVER] = "over" };
        const struct run_request *request = &psandbox->launch.request;
        char created[40], expires[40];
        size_t contexts = 0;
        time_print(psandbox->created_ms, created, sizeof created);
        time_print(psandbox->expires_ms, expires, sizeof expires);
        for (struct context *context = context_next((struct psandbox *)(uintptr_t)psandbox, NULL); context;
                context = context_next((struct psandbox *)(uintptr_t)psandbox, context))
                contexts++;
        json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:I}", "id", psandbox->id, "state",
                states[psandbox->state], "created_at", created, "expires_at", expires, "idle_ms",
                (json_int_t)psandbox->request.idle_ms, "profile", request->profile, "contexts", (json_int_t)contexts);
        json_object_set_new(json, "limits", model_encode(&object_limits, &request->limits));
        if (psandbox->request.root)
                json_object_set_new(json, "root", json_true());
        if (psandbox->launch.image) {
                struct image_use use = { 0 };
                launch_describe_image(&psandbox->launch, &use);
                json_object_set_new(json, "image", model_encode(&object_image_use, &use));
        }
        for (size_t i = 0; i < request->volumes_n; i++)
                append(json, "volumes", json_string(request->volumes[i]));
        for (size_t i = 0; i < psandbox->launch.devices_n; i++)
                append(json, "devices", json_string(psandbox->launch.devices[i]));
        for (size_t i = 0; i < psandbox->layers.uses_n; i++)
                append(json, "layers", model_encode(&object_layer_use, &psandbox->layers.uses[i]));
        for (size_t i = 0; i < psandbox->layers.warnings_n; i++)
                append(json, "warnings", model_encode(&object_warning, &psandbox->layers.warnings[i]));
        if (HAS(&psandbox->request, sandbox_request, user))
                json_object_set_new(json, "user", json_string(psandbox->request.user));
        json_t *labels = json_object();
        for (size_t i = 0; i < psandbox->request.labels_n; i++)
                json_object_set_new(labels, psandbox->request.labels[i].name,
                        json_string(psandbox->request.labels[i].value));
        json_object_set_new(json, "labels", labels);
        if (psandbox->has_boundary)
                json_object_set_new(json, "boundary", encode_boundary(psandbox));
        if (psandbox->state == PSANDBOX_PAUSED)
                json_object_set_new(json, "note",
                        json_string("Nothing runs in it; its memory stays in use and is charged."));
        return json;
}

/* ---- the environment of programs ---- */

int psandbox_has_account(const struct psandbox *psandbox, int account, struct csn_error *err)
{
        if (account != account_ROOT || psandbox->request.root)
                return 0;
        return err_field(err, "/user", "the sandbox has no root; make one with \"root\": true");
}

static bool is_name(const struct pair *pair, const char *name, size_t len)
{
        return strlen(pair->name) == len && strncmp(pair->name, name, len) == 0;
}

/* For root in place of `user`'s: the home directory, and caches in which `user` cannot plant files. */
static const struct pair root_env[] = {
        { (char[]){ "HOME" }, (char[]){ "/root" } },
        { (char[]){ "USER" }, (char[]){ "root" } },
        { (char[]){ "LOGNAME" }, (char[]){ "root" } },
        { (char[]){ "PATH" }, (char[]){ "/opt/caisson/installs/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" } },
        { (char[]){ "PIP_PYTHON" }, (char[]){ "" } },
        { (char[]){ "MPLCONFIGDIR" }, (char[]){ "/root/.matplotlib" } },
        { (char[]){ "XDG_CACHE_HOME" }, (char[]){ "/root/.cache" } },
};

static char *env_of(char *usual, size_t len, int account, struct arena *arena)
{
        const char *path = strncmp(usual, "PATH=", 5) == 0 && strstr(usual, TOOLS_PATH) ? TOOLS_PATH : "";
        for (size_t i = 0; account == account_ROOT && i < ARRAY_LEN(root_env); i++)
                if (is_name(&root_env[i], usual, len))
                        return arena_text(arena, "%s=%s%s", root_env[i].name, root_env[i].value, path);
        return usual;
}

char **psandbox_env(const struct psandbox *psandbox, int account, const struct pair *more, size_t more_n,
        struct arena *arena, size_t *ret_n)
{
        const struct wire_program *usual = &psandbox->launch.program.program;
        char **env = arena_alloc(arena, (usual->env_n + more_n + 1) * sizeof *env);
        size_t n = 0;
        for (size_t i = 0; i < usual->env_n; i++) {
                size_t len = strcspn(usual->env[i], "=");
                bool replaced = false;
                for (size_t k = 0; k < more_n; k++)
                        replaced = replaced || is_name(&more[k], usual->env[i], len);
                if (!replaced)
                        env[n++] = env_of(usual->env[i], len, account, arena);
        }
        for (size_t i = 0; i < more_n; i++)
                env[n++] = arena_text(arena, "%s=%s", more[i].name, more[i].value);
        *ret_n = n;
        return env;
}
