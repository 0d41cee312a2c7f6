/* A program in a sandbox, with its output by lines and its end; see command.h. */
#include "front/e2b/command.h"

#define LINE_BYTES_MAX 2000                /* longer lines are split */

static void tell(struct build_command *build_command, int stream)
{
        struct buf *line = &build_command->lines[stream];
        struct arena arena = { 0 };
        size_t len;
        if (line->len)
                build_command->line(build_command, stream == 1, model_utf8(&arena, line->bytes, line->len, &len));
        line->len = 0;
        arena_done(&arena);
}

static void take(struct build_command *build_command, int stream, const char *bytes, size_t len)
{
        for (size_t i = 0; i < len; i++)
                if (bytes[i] == '\n')
                        tell(build_command, stream);
                else if (bytes[i] != '\r' && bytes[i] != 0 && !buf_add(&build_command->lines[stream], bytes + i, 1)) {
                        tell(build_command, stream);
                        buf_add(&build_command->lines[stream], bytes + i, 1);
                }
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct build_command *build_command = call->owner;
        struct csn_error err;
        uint64_t number;
        (void)fds;
        if (kind == GUEST_OUT || kind == GUEST_ERROR)
                take(build_command, kind == GUEST_ERROR, (const char *)bytes + 1, len - 1);
        else if (kind == GUEST_EXITED && guest_get_number(bytes, len, &number, &err) == 0)
                build_command->status = (int)(number & 0xffff);
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct build_command *build_command = call->owner;
        tell(build_command, 0);
        tell(build_command, 1);
        build_command->done(build_command, build_command->status, error);
}

static const struct pair *pairs_of(json_t *env, struct arena *arena, size_t *ret_n)
{
        struct pair *pairs = arena_alloc(arena, (json_object_size(env) + 1) * sizeof *pairs);
        const char *name;
        json_t *value;
        *ret_n = 0;
        json_object_foreach(env, name, value) pairs[(*ret_n)++] =
                (struct pair){ arena_text(arena, "%s", name), arena_text(arena, "%s", json_string_value(value)) };
        return pairs;
}

int build_command_run(struct psandbox *psandbox, struct build_command *build_command,
        const struct build_command_what *what, struct csn_error *err)
{
        static const struct guest_call_events events = { .packet = on_packet, .ended = on_ended };
        struct arena arena = { 0 };
        size_t pairs_n, argv_n = 0;
        const struct pair *pairs = pairs_of(what->env, &arena, &pairs_n);
        char *argv[6 + ARRAY_LEN(what->args)];
        const char *const head[] = { "/bin/bash", "-l", "-c", what->command, "bash" };
        for (size_t i = 0; i < ARRAY_LEN(head); i++)
                argv[argv_n++] = arena_text(&arena, "%s", head[i]);
        for (size_t i = 0; i < ARRAY_LEN(what->args) && what->args[i]; i++)
                argv[argv_n++] = arena_text(&arena, "%s", what->args[i]);
        argv[argv_n] = NULL;
        struct guest_process process = { .folder = arena_text(&arena, "%s", what->folder),
                .argv = argv,
                .argv_n = argv_n,
                .flags = what->account == account_ROOT ? GUEST_AS_ROOT : 0 };
        process.env = psandbox_env(psandbox, what->account, pairs, pairs_n, &arena, &process.env_n);
        for (int i = 0; i < 2; i++) {
                buf_done(&build_command->lines[i]);
                buf_init(&build_command->lines[i], LINE_BYTES_MAX);
        }
        build_command->status = 0;
        build_command->call = (struct guest_call){ .events = &events, .owner = build_command };
        int rc = guest_call_program(psandbox, &build_command->call, &process, err);
        arena_done(&arena);
        return rc;
}

void build_command_stop(struct build_command *build_command)
{
        guest_call_close(&build_command->call);
        for (int i = 0; i < 2; i++)
                buf_done(&build_command->lines[i]);
}
