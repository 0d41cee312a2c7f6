/* caisson-remote: arguments, ids, and which command it is. */
#include "front/remote/remote.h"

static const struct { const char *command, *name; int (*run)(struct remote *remote); size_t least, most; bool alone; } commands[] = {
        { "sandbox", "create", remote_create, 0, 0, false },
        { "sandbox", "list", remote_list, 0, 0, false },
        { "sandbox", "exec", remote_exec, 1, 1, false },
        { "sandbox", "shell", remote_exec, 1, 1, false },
        { "sandbox", "cp", remote_copy, 2, 2, false },
        { "sandbox", "logs", remote_logs, 1, 2, false },
        { "sandbox", "pause", remote_change, 1, SIZE_MAX, false },
        { "sandbox", "resume", remote_change, 1, SIZE_MAX, false },
        { "sandbox", "kill", remote_change, 1, SIZE_MAX, false },
        { "context", "create", remote_create_context, 1, 1, false },
        { "context", "list", remote_list_contexts, 0, 1, false },
        { "context", "run", remote_run_context, 1, 2, false },
        { "context", "interrupt", remote_change_context, 1, SIZE_MAX, false },
        { "context", "restart", remote_change_context, 1, SIZE_MAX, false },
        { "context", "close", remote_change_context, 1, SIZE_MAX, false },
        { "tools", "list", remote_list_tools, 0, 1, true },
        { "tools", "call", remote_call_tool, 1, 2, true },
        { "tools", "check", remote_check_tools, 0, 0, true },
};

/* ---- what went wrong ---- */

int remote_fail(const struct remote *remote, const struct csn_error *err)
{
        struct arena arena = { 0 };
        fprintf(stderr, "caisson: %s\n", cli_in_options(err->text, err->field, &arena));
        arena_done(&arena);
        if (remote->link.status == 404)
                return 1;
        return remote->link.status >= 300 && remote->link.status != 422 ? 125 : csn_code_exit(err->code);
}

int remote_status(int status)
{
        return status == 1 ? 125 : status;
}

int remote_usage(const struct remote *remote, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        fprintf(stderr, "caisson: %s %s: ", remote->part->command, remote->part->name);
        vfprintf(stderr, fmt, args);
        fprintf(stderr, "; see caisson help %s\n", remote->part->command);
        va_end(args);
        return 64;
}

int remote_ask(struct remote *remote, const char *method, const char *path, json_t *body, json_t **ret)
{
        struct csn_error err;
        return link_ask(&remote->link, method, path, body, ret, &err) < 0 ? remote_fail(remote, &err) : 0;
}

const char *remote_text(json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        return text ? text : "";
}

/* ---- arguments ---- */

const char *remote_option(const struct remote *remote, const char *name)
{
        for (size_t i = remote->given_n; i > 0; i--)   /* the last one wins */
                if (strcmp(remote->given[i - 1].name, name) == 0)
                        return remote->given[i - 1].value;
        return NULL;
}

static int take_field(struct remote *remote, const struct cli_field *option, const char *text, struct csn_error *err)
{
        const struct { const struct object *object; void *into; } rows[] = {
                { &object_sandbox_request, &remote->sandbox }, { &object_limits, &remote->sandbox.limits }, { &object_tools_request, &remote->sandbox.tools },
                { &object_process_request, &remote->process }, { &object_context_request, &remote->context },
        };
        if (text && !utf8_valid(text, strlen(text)))
                return err_field(err, option->field->option, "--%s is not valid UTF-8", option->field->option);
        if (option->object == &object_limits)
                MARK(&remote->sandbox, sandbox_request, limits);
        if (option->object == &object_tools_request)
                MARK(&remote->sandbox, sandbox_request, tools);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].object == option->object)
                        return cli_set_field(option, rows[i].into, text, &remote->arena, err);
        return 0;
}

static void take_setting(struct cli_settings *from, bool is_file, const char *text)
{
        if (is_file)
                from->file = text;
        else if (from->flags_n + 1 < ARRAY_LEN(from->flags))
                from->flags[from->flags_n++] = text;
}

#define TABLE 1000
#define PLAIN (1 * TABLE)
#define FIELDS (2 * TABLE)
#define CONFIG (3 * TABLE)
#define ARGUMENT 1                 /* getopt_long(3) with "-": one that is no option */

struct options {
        struct option longs[80];
        char shorts[32];
        struct cli_field fields[64];
        size_t fields_n;
};

static void list_options(const struct cli_part *part, struct options *ret)
{
        size_t n = 2;
        *ret = (struct options){ .longs = { { "config", required_argument, NULL, CONFIG }, { "set", required_argument, NULL, CONFIG + 1 } }, .shorts = "-:" };
        ret->fields_n = part->objects ? cli_fields_of(part->objects, ret->fields, ARRAY_LEN(ret->fields)) : 0;
        for (size_t i = 0; part->options && part->options[i].name; i++) {
                const struct cli_option *option = &part->options[i];
                ret->longs[n++] = (struct option){ option->name, option->argument ? required_argument : no_argument, NULL, PLAIN + (int)i };
                if (option->letter)
                        snprintf(ret->shorts + strlen(ret->shorts), 4, "%c%s", option->letter, option->argument ? ":" : "");
        }
        for (size_t i = 0; i < ret->fields_n; i++) {
                char letter = cli_field_letter(&ret->fields[i]);
                ret->longs[n++] = (struct option){ ret->fields[i].field->option, ret->fields[i].field->kind == KIND_BOOL ? no_argument : required_argument,
                                                   NULL, FIELDS + (int)i };
                if (letter)
                        snprintf(ret->shorts + strlen(ret->shorts), 4, "%c:", letter);
        }
}

static void take_plain(struct remote *remote, const struct cli_option *option, const char *text)
{
        if (remote->given_n == ARRAY_LEN(remote->given))
                return;
        remote->given[remote->given_n].name = option->name;
        remote->given[remote->given_n++].value = text ? text : "";
}

static int take_option(struct remote *remote, const struct options *options, int opt, struct csn_error *err)
{
        const struct cli_option *plain = remote->part->options;
        size_t at = (size_t)opt % TABLE;
        if (opt >= CONFIG) {
                take_setting(&remote->from, opt == CONFIG, optarg);
                return 0;
        }
        if (opt >= PLAIN && opt < FIELDS)
                take_plain(remote, &plain[at], optarg);
        for (size_t i = 0; opt < PLAIN && plain && plain[i].name; i++)
                if (plain[i].letter == opt)
                        take_plain(remote, &plain[i], optarg);
        for (size_t i = 0; i < options->fields_n && options->fields[i].field; i++)
                if (opt == FIELDS + (int)i || cli_field_letter(&options->fields[i]) == opt)
                        return take_field(remote, &options->fields[i], optarg, err);
        return 0;
}

/* Options may stand on both sides of the first argument; what comes after a second one, or after --, is the program's own. */
static int parse(struct remote *remote, int argc, char **argv, struct csn_error *err)
{
        struct options options;
        list_options(remote->part, &options);
        optind = 0;
        opterr = 0;
        remote->args = arena_alloc(&remote->arena, ((size_t)argc + 1) * sizeof *remote->args);
        for (int opt; (opt = getopt_long(argc, argv, options.shorts, options.longs, NULL)) != -1;) {
                if (opt == '?' || opt == ':') {
                        const char *who = arena_text(&remote->arena, "%s %s", remote->part->command, remote->part->name);
                        return cli_bad_option(who, opt, argv, options.longs, err);
                }
                if (opt != ARGUMENT && take_option(remote, &options, opt, err) < 0)
                        return -err->code;
                if (opt == ARGUMENT && remote->part->program && remote->args_n == 1) {
                        optind--;
                        break;
                }
                if (opt == ARGUMENT)
                        remote->args[remote->args_n++] = optarg;
        }
        for (; optind < argc && !(remote->part->program && remote->args_n); optind++)
                remote->args[remote->args_n++] = argv[optind];
        remote->program = argv + optind;
        remote->program_n = (size_t)(argc - optind);
        return 0;
}

/* ---- ids ---- */

#define ID_LENGTH 36               /* "sbx_" and 32 digits */

static bool begins(const char *id, const char *typed)
{
        const char *digits = id + 4;       /* behind "sbx_" or "ctx_" */
        return strncmp(id, typed, strlen(typed)) == 0 || strncmp(digits, typed, strlen(typed)) == 0;
}

struct search {
        const char *typed, *found;
        size_t n;
};

static void look_at(struct search *search, json_t *list, struct arena *arena)
{
        size_t i;
        json_t *one;
        json_array_foreach(list, i, one) {
                const char *id = remote_text(one, "id");
                if (strlen(id) > 4 && begins(id, search->typed)) {
                        search->found = arena_text(arena, "%s", id);
                        search->n++;
                }
        }
}

static const char *found(const struct search *search, const char *what)
{
        if (search->n == 1)
                return search->found;
        if (search->n)
                fprintf(stderr, "caisson: %zu %ses begin with %s; give more of the id\n", search->n, what, search->typed);
        else
                fprintf(stderr, "caisson: there is no %s %s; see caisson %s list\n", what, search->typed, what);
        return NULL;
}

static bool is_whole(const char *typed, const char *kind)
{
        return strlen(typed) == ID_LENGTH && strncmp(typed, kind, 4) == 0 && strspn(typed + 4, "0123456789abcdef") == ID_LENGTH - 4;
}

int remote_ask_list(struct remote *remote, const char *path, const char *name, json_t **ret)
{
        json_t *all = json_array(), *answer = NULL;
        const char *next = "";
        int status = 0;
        while (status == 0 && next) {
                status = remote_ask(remote, "GET", next[0] ? arena_text(&remote->arena, "%s?cursor=%s", path, next) : path, NULL, &answer);
                json_array_extend(all, json_object_get(answer, name));
                const char *told = json_string_value(json_object_get(answer, "next"));
                next = told ? arena_text(&remote->arena, "%s", told) : NULL;
                json_decref(answer);
                answer = NULL;
        }
        *ret = all;
        return status;
}

const char *remote_sandbox(struct remote *remote, const char *typed)
{
        struct search search = { .typed = typed };
        json_t *answer = NULL;
        if (is_whole(typed, "sbx_"))
                return typed;
        remote->failed = remote_ask_list(remote, "/v1/sandboxes", "sandboxes", &answer);
        if (typed[0] && !remote->failed)
                look_at(&search, answer, &remote->arena);
        json_decref(answer);
        if (remote->failed)
                return NULL;
        remote->failed = 1;
        return found(&search, "sandbox");
}

const char *remote_context(struct remote *remote, const char *typed)
{
        struct search search = { .typed = typed };
        json_t *answer = NULL, *one;
        size_t i;
        if (is_whole(typed, "ctx_"))
                return typed;
        int status = remote_ask_list(remote, "/v1/sandboxes", "sandboxes", &answer);
        json_array_foreach(answer, i, one) {
                json_t *contexts = NULL;
                if (status == 0 && typed[0])
                        status = remote_ask_list(remote, arena_text(&remote->arena, "/v1/sandboxes/%s/contexts", remote_text(one, "id")), "contexts", &contexts);
                look_at(&search, contexts, &remote->arena);
                json_decref(contexts);
        }
        json_decref(answer);
        remote->failed = status ? status : 1;
        return status ? NULL : found(&search, "context");
}

/* ---- output of programs ---- */

bool remote_print(int stream, bool raw, const void *bytes, size_t len)
{
        static int is_terminal[3] = { -1, -1, -1 };
        if (is_terminal[stream] < 0)
                is_terminal[stream] = isatty(stream);
        if (raw || !is_terminal[stream])
                return io_write_all(stream, bytes, len) == 0;
        char *visible = mem_alloc(4 * len + 1);
        bool good = io_write_all(stream, visible, cli_visible(bytes, len, visible)) == 0;
        free(visible);
        return good;
}

/* RFC 4648.  What is no digit ends it: it comes from our own encoder. */
static size_t decode_base64(const char *text, size_t len, char *out)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        unsigned bits = 0, bits_n = 0;
        size_t n = 0;
        for (size_t i = 0; i < len; i++) {
                const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
                if (!digit)
                        break;
                bits = bits << 6 | (unsigned)(digit - digits);
                bits_n += 6;
                if (bits_n >= 8) {
                        bits_n -= 8;
                        out[n++] = (char)(bits >> bits_n & 0xff);
                }
        }
        return n;
}

bool remote_print_event(int stream, bool raw, json_t *event)
{
        json_t *exact = json_object_get(event, "base64"), *text = json_object_get(event, "text");
        if (!exact)
                return remote_print(stream, raw, json_string_value(text), json_string_length(text));
        char *bytes = mem_alloc(json_string_length(exact) + 1);
        bool good = remote_print(stream, raw, bytes, decode_base64(json_string_value(exact), json_string_length(exact), bytes));
        free(bytes);
        return good;
}

/* ---- in order ---- */

static int run(struct remote *remote, int argc, char **argv)
{
        struct csn_error err;
        size_t i = 0;
        while (strcmp(commands[i].command, remote->part->command) != 0 || strcmp(commands[i].name, remote->part->name) != 0)
                i++;
        if (parse(remote, argc, argv, &err) < 0)
                return cli_fail(&err);
        if (remote->args_n < commands[i].least || remote->args_n > commands[i].most)
                return remote_usage(remote, remote->args_n < commands[i].least ? "arguments are missing: %s" : "too many arguments: %s", remote->part->arguments);
        int status = cli_load_settings(&remote->from, &remote->settings);
        if (status)
                return status;
        status = !commands[i].alone && link_open(&remote->link, &remote->settings, &err) < 0 ? cli_fail(&err) : commands[i].run(remote);
        link_close(&remote->link);
        settings_done(&remote->settings);
        return status;
}

int remote_main(int argc, char **argv)
{
        struct remote remote = { 0 };
        if (argc > 1 && strcmp(argv[1], "mcp") == 0)
                return remote_mcp(argc - 1, argv + 1);
        for (const struct cli_part *part = cli_parts; argc > 2 && part->name; part++)
                if (strcmp(part->command, argv[1]) == 0 && strcmp(part->name, argv[2]) == 0)
                        remote.part = part;
        if (!remote.part)
                return cli_usage("caisson-remote is started by caisson sandbox, context, mcp and tools");
        int status = run(&remote, argc - 2, argv + 2);
        arena_done(&remote.arena);
        return status;
}
