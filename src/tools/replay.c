/*
 * Replay: answers calls from the recording of an earlier run.
 *
 * A recorded call is found by its tool and arguments, regardless of the order of argument names.  Equal calls get their
 * answers in the recorded order.  Different calls may come in another order than recorded, as threads cause.
 */
#include "tools/tools_private.h"

struct recorded {
        const struct tool_record *record;
        char *key;
        bool taken;
};

struct replay_source {
        struct tool_source source;
        struct tool *list;
        size_t n;
};

struct replay {
        struct arena arena;
        struct recorded *list;
        size_t n, first;                   /* index of the first record not taken */
        size_t tools_n, sources_n;
        struct tool_source *sources;
};

static const struct tool *source_list(struct tool_source *source, size_t *ret_n)
{
        const struct replay_source *one = (const struct replay_source *)source;
        *ret_n = one->n;
        return one->list;
}

static int source_call(struct tool_source *source, struct tool_call *call, struct csn_error *err)
{
        (void)source;
        (void)call;
        return err_set(err, CSN_E_BUSY, 0, "this run is a replay, and nothing is called outside");
}

static void source_nothing(struct tool_source *source, struct tool_call *call)
{
        (void)source;
        (void)call;
}

static void source_close(struct tool_source *source)
{
        (void)source;
}

static const struct tool_source_kind replay_kind = { source_list, source_call, source_nothing, source_close };

#define REPLAY_TOOLS_MAX 1000              /* tools in a recording */
#define REPLAY_SERVERS_MAX 64

/* NULL: there are too many. */
static struct replay_source *source_of(struct replay *replay, const char *server)
{
        for (struct tool_source *source = replay->sources; source; source = source->next)
                if (strcmp(source->server, server) == 0)
                        return (struct replay_source *)source;
        if (++replay->sources_n > REPLAY_SERVERS_MAX)
                return NULL;
        struct replay_source *one = arena_alloc(&replay->arena, sizeof *one);
        one->source = (struct tool_source){
                .kind = &replay_kind, .server = server, .state = TOOLS_READY, .next = replay->sources
        };
        one->list = arena_alloc(&replay->arena, REPLAY_TOOLS_MAX * sizeof *one->list);
        replay->sources = &one->source;
        return one;
}

static char *key_of(json_t *arguments)
{
        return json_dumps(arguments, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
}

static int take_record(struct replay *replay, const struct tool_record *record, struct csn_error *err)
{
        if (!tools_is_server(record->server) || !tools_is_name(record->tool))
                return err_field(err, "/tools/replay", "\"%.100s.%.100s\" is no tool of a server", record->server,
                        record->tool);
        struct replay_source *source = source_of(replay, record->server);
        bool known = false;
        for (size_t i = 0; source && i < source->n && !known; i++)
                known = strcmp(source->list[i].name, record->tool) == 0;
        if (!source || (!known && ++replay->tools_n > REPLAY_TOOLS_MAX))
                return err_field(err, "/tools/replay",
                        "there are calls of more than %d tools, or of more than %d servers", REPLAY_TOOLS_MAX,
                        REPLAY_SERVERS_MAX);
        if (!known)
                source->list[source->n++] = (struct tool){ .name = record->tool };
        json_t *arguments = json_loads(record->arguments, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        char *key = json_is_object(arguments) ? key_of(arguments) : NULL;
        json_decref(arguments);
        if (!key)
                return err_field(err, "/tools/replay", "arguments of %.100s have to be an object", record->tool);
        replay->list[replay->n++] = (struct recorded){ .record = record, .key = arena_text(&replay->arena, "%s", key) };
        free(key);
        return 0;
}

int replay_open(const struct tools_request *request, struct replay **ret, struct csn_error *err)
{
        *ret = NULL;
        /* A recording without calls also replaces all calls outside. */
        if (!HAS(request, tools_request, replay))
                return 0;
        struct replay *replay = mem_alloc(sizeof *replay);
        replay->list = arena_alloc(&replay->arena, (request->replay_n + 1) * sizeof *replay->list);
        for (size_t i = 0; i < request->replay_n; i++)
                if (take_record(replay, &request->replay[i], err) < 0) {
                        replay_close(replay);
                        return -err->code;
                }
        *ret = replay;
        return 0;
}

void replay_close(struct replay *replay)
{
        if (!replay)
                return;
        arena_done(&replay->arena);
        free(replay);
}

struct tool_source *replay_sources(const struct replay *replay)
{
        return replay->sources;
}

/* Take the first matching record not yet taken, or NULL. */
static const struct tool_record *take(struct replay *replay, const char *server, const char *tool, json_t *arguments)
{
        char *key = key_of(arguments);
        const struct tool_record *found = NULL;
        for (size_t i = replay->first; i < replay->n && key && !found; i++) {
                struct recorded *one = &replay->list[i];
                if (one->taken || strcmp(one->key, key) != 0 || strcmp(one->record->tool, tool) != 0 ||
                        strcmp(one->record->server, server) != 0)
                        continue;
                one->taken = true;
                found = one->record;
        }
        while (replay->first < replay->n && replay->list[replay->first].taken)
                replay->first++;
        free(key);
        return found;
}

/*
 * `tool add --a 1` converts its arguments by the tool's schema.  A recording has no schema, so texts with valid JSON
 * are converted to values.
 */
static json_t *read_texts(const json_t *arguments)
{
        json_t *read = json_object(), *value;
        const char *name;
        json_object_foreach((json_t *)(uintptr_t)arguments, name, value) {
                json_t *meant = json_is_string(value)
                        ? json_loadb(json_string_value(value), json_string_length(value), JSON_DECODE_ANY, NULL)
                        : NULL;
                json_object_set_new(read, name, meant ? meant : json_incref(value));
        }
        return read;
}

const struct tool_record *replay_take(struct replay *replay, const char *server, const char *tool, json_t *arguments)
{
        const struct tool_record *found = take(replay, server, tool, arguments);
        if (found)
                return found;
        json_t *read = read_texts(arguments);
        found = take(replay, server, tool, read);
        json_decref(read);
        return found;
}
