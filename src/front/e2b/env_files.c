/*
 * Files in /run/e2b with the values of E2B_SANDBOX and its like, for programs started with another environment.  The
 * files are written one after another, before the sandbox is reported ready.
 */
#include "front/e2b/request.h"

#include <stdio.h>

struct e2b_env_files {
        struct e2b_sandbox *sandbox;
        void (*done)(struct e2b_sandbox *sandbox);
        struct guest_call call;
        size_t at;
};

static void write_next(struct e2b_env_files *env_files);

void e2b_env_files_free(struct e2b_env_files *env_files)
{
        if (env_files)
                guest_call_close(&env_files->call);
        free(env_files);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        (void)call, (void)kind, (void)bytes, (void)len, (void)fds;
}

static void on_room(struct guest_call *call)
{
        (void)call;
}

/*
 * A file that could not be written is left out: a program inside filled the disk, or put another file there.  If the
 * call fails with the sandbox, the end of the sandbox follows.
 */
static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        if (!error || call->refused)
                write_next(call->owner);
}

static void write_next(struct e2b_env_files *env_files)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        struct e2b_sandbox *sandbox = env_files->sandbox;
        const struct {
                const char *name, *text;
        } all[] = { { "E2B_SANDBOX", "true" }, { "E2B_SANDBOX_ID", sandbox->id },
                { "E2B_TEMPLATE_ID", e2b_template_id(&sandbox->wish) } };
        while (env_files->at < ARRAY_LEN(all)) {
                const char *text = all[env_files->at].text;
                char path[40];
                snprintf(path, sizeof path, "/run/e2b/.%s", all[env_files->at++].name);
                const struct guest_file file = {
                        .verb = GUEST_WRITE, .flags = GUEST_FILE_AS_ROOT, .path = path, .space = (char[]){ "" }
                };
                struct csn_error err;
                env_files->call = (struct guest_call){ .events = &events, .owner = env_files };
                if (guest_call_file(sandbox->psandbox, &env_files->call, &file, &err) < 0)
                        continue;
                if (guest_call_send(&env_files->call, GUEST_DATA, text, strlen(text)) &&
                        guest_call_send(&env_files->call, GUEST_DATA_END, "", 0))
                        return;
                guest_call_close(&env_files->call);
        }
        sandbox->env_files = NULL;
        void (*done)(struct e2b_sandbox *) = env_files->done;
        free(env_files);
        done(sandbox);
}

void e2b_mark(struct e2b_sandbox *sandbox, void (*done)(struct e2b_sandbox *sandbox))
{
        struct e2b_env_files *env_files = mem_alloc(sizeof *env_files);
        *env_files = (struct e2b_env_files){ .sandbox = sandbox, .done = done };
        sandbox->env_files = env_files;
        write_next(env_files);
}
