/* caisson run: options into a request, output on arrival, and the customary exit status. */
#include "front/cli/cli.h"
#include "front/library/review.h"
#include "tools/tools.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

const struct cli_option cli_run_options[] = {
        { "code", 'c', "CODE", "The program itself, instead of a file.", NULL },
        { "prelude", 0, "FILE", "Code that runs before the program, in the same namespace.", NULL },
        { "stdin", 0, "FILE", "What the program reads from standard input; - is ours. Default: nothing.", NULL },
        { "request", 0, "FILE", "The whole request as JSON (caisson schema request); - is standard input.", NULL },
        { "record-tools", 0, "FILE", "Write the program's calls of tools to this file, as JSON.", NULL },
        { "replay-tools", 0, "FILE", "Answer them as in such a file; nothing is called outside.", NULL },
        { "json", 'j', NULL, "Print the record as JSON instead of the output.", NULL },
        { "format", 0, "NAME", "Print the record as text for a model.", &choices_text_form },
        { "raw", 0, NULL, "Do not make control characters of the output visible on a terminal.", NULL },
        { "quiet", 'q', NULL, "No summary on standard error.", NULL },
        { "verbose", 'v', NULL, "Say on standard error what is done.", NULL },
        { "daemon", 0, "WORD", "Run by way of caissond; auto: if there is one that can.", &choices_transports },
        { NULL, 0, NULL, NULL, NULL },
};

const struct object *const cli_run_objects[] = { &object_run_request, &object_limits, &object_tools_request, NULL };

/* ---- a run from the terminal's side ---- */

struct run_cli {
        struct run *run;
        struct engine *engine;
        const struct settings *settings;
        struct cli_settings from;
        struct cli_field fields[64];
        size_t fields_n;
        const char *code, *prelude_file, *stdin_file, *request_file, *daemon, *record_tools, *replay_tools;
        int record_fd;             /* the file of --record-tools, or -1 */
        struct cli_show show;
        struct cli_transport *transport;     /* by way of the daemon; NULL: by our own engine */
        bool done;
        struct watch signals;
        int interrupts;
};

/* ---- options ---- */

/* PATH or PATH:NAME; a file with a colon in its own name wins. */
static int add_file(struct run_request *request, const char *text, struct arena *arena)
{
        const char *colon = access(text, F_OK) == 0 ? NULL : strrchr(text, ':');
        struct input_file *more = arena_alloc(arena, (request->files_n + 1) * sizeof *more);
        if (request->files_n)
                memcpy(more, request->files, request->files_n * sizeof *more);
        struct input_file *file = &more[request->files_n++];
        if (colon)
                SET(file, input_file, name, arena_text(arena, "%s", colon + 1));
        SET(file, input_file, path, arena_copy(arena, text, colon ? (size_t)(colon - text) : strlen(text)));
        request->files = more;
        MARK(request, run_request, files);
        return 0;
}

/* PATH or PATH:NAME, as for a file; the content goes with the request. */
static int add_module(struct run_request *request, const char *text, struct arena *arena, struct csn_error *err)
{
        const char *colon = access(text, F_OK) == 0 ? NULL : strrchr(text, ':');
        char *path = arena_copy(arena, text, colon ? (size_t)(colon - text) : strlen(text));
        const char *slash = strrchr(path, '/'), *name = colon ? colon + 1 : slash ? slash + 1 : path;
        struct module_file *more = arena_alloc(arena, (request->modules_n + 1) * sizeof *more);
        if (request->modules_n)
                memcpy(more, request->modules, request->modules_n * sizeof *more);
        struct module_file *module = &more[request->modules_n];
        if (!utf8_valid(name, strlen(name)))
                return err_field(err, "--module", "--module: the name is not valid UTF-8");
        SET(module, module_file, name, arena_text(arena, "%s", name));
        if (cli_read_whole(path, MIB, "/modules", arena, &module->content, err) < 0)
                return -err->code;
        MARK(module, module_file, content);
        request->modules = more;
        request->modules_n++;
        MARK(request, run_request, modules);
        return 0;
}

static int add_export(struct run_request *request, const char *text, struct arena *arena, struct csn_error *err)
{
        const char *colon = strrchr(text, ':');
        if (!colon || colon == text || !colon[1])
                return err_field(err, "export", "--export %.60s: give GLOB:DIR, such as '*.csv:out'", text);
        struct export_rule *more = arena_alloc(arena, (request->exports_n + 1) * sizeof *more);
        if (request->exports_n)
                memcpy(more, request->exports, request->exports_n * sizeof *more);
        struct export_rule *rule = &more[request->exports_n++];
        SET(rule, export_rule, pattern, arena_copy(arena, text, (size_t)(colon - text)));
        SET(rule, export_rule, path, arena_text(arena, "%s", colon + 1));
        request->exports = more;
        MARK(request, run_request, exports);
        return 0;
}

static int set_field(struct run_cli *cli, const struct cli_field *option, const char *text, struct csn_error *err)
{
        struct run_request *request = run_request(cli->run);
        struct arena *arena = run_arena(cli->run);
        const struct field *field = option->field;
        char where[64];
        snprintf(where, sizeof where, "--%s", field->option);
        if (option->object == &object_limits) {
                MARK(request, run_request, limits);
                return cli_set_field(option, &request->limits, text, arena, err);
        }
        if (option->object == &object_tools_request) {
                MARK(request, run_request, tools);
                return cli_set_field(option, &request->tools, text, arena, err);
        }
        bool is_file = strcmp(field->name, "files") == 0, is_export = strcmp(field->name, "exports") == 0;
        bool is_module = strcmp(field->name, "modules") == 0;
        if (!is_file && !is_export && !is_module && strcmp(field->name, "packages") != 0)
                return cli_set_field(option, request, text, arena, err);
        if (!text)
                return err_field(err, where, "%s needs a value", where);
        if (is_file)                       /* its name may be any bytes */
                return add_file(request, text, arena);
        if (is_module)
                return add_module(request, text, arena, err);
        if (is_export)
                return add_export(request, text, arena, err);
        if (!utf8_valid(text, strlen(text)))
                return err_field(err, where, "%s is not valid UTF-8", where);
        if (model_parse_packages(text, arena, &request->packages, &request->packages_n, err) < 0)
                return -err->code;
        MARK(request, run_request, packages);
        return 0;
}

/* The word was compared with the choices before. */
static void set_form(struct run_cli *cli, const char *word)
{
        struct run_request *request = run_request(cli->run);
        for (size_t i = 0; i < choices_text_form.n; i++)
                if (strcasecmp(choices_text_form.values[i].text, word) == 0)
                        SET(request, run_request, format, (int)i);
}

static void set_plain(struct run_cli *cli, size_t i, const char *text)
{
        const char *name = cli_run_options[i].name;
        if (strcmp(name, "code") == 0)
                cli->code = text;
        else if (strcmp(name, "prelude") == 0)
                cli->prelude_file = text;
        else if (strcmp(name, "stdin") == 0)
                cli->stdin_file = text;
        else if (strcmp(name, "request") == 0)
                cli->request_file = text;
        else if (strcmp(name, "record-tools") == 0)
                cli->record_tools = text;
        else if (strcmp(name, "replay-tools") == 0)
                cli->replay_tools = text;
        else if (strcmp(name, "format") == 0)
                set_form(cli, text);
        else if (strcmp(name, "daemon") == 0)
                cli->daemon = text;
        cli->show.json = cli->show.json || strcmp(name, "json") == 0;
        cli->show.raw = cli->show.raw || strcmp(name, "raw") == 0;
        cli->show.quiet = cli->show.quiet || strcmp(name, "quiet") == 0;
        cli->show.verbose = cli->show.verbose || strcmp(name, "verbose") == 0;
}

/* Results of getopt_long(3): a letter, or the place in one of three tables. */
#define TABLE 1000
#define PLAIN (1 * TABLE)
#define FIELDS (2 * TABLE)
#define CONFIG (3 * TABLE)

static void take_setting(struct cli_settings *settings, bool is_file, const char *text)
{
        if (is_file)
                settings->file = text;
        else if (settings->flags_n + 1 < ARRAY_LEN(settings->flags))
                settings->flags[settings->flags_n++] = text;
}

/*
 * Twice: first with `settings`, for --config and --set alone, because there is no engine before there are
 * settings; then without, for all the rest.  The same table twice, so a program given by -c is never taken for an
 * option.
 */
static int parse_options(struct run_cli *cli, int argc, char **argv, struct cli_settings *settings,
        struct csn_error *err)
{
        struct option longs[128] = { { "config", required_argument, NULL, CONFIG },
                { "set", required_argument, NULL, CONFIG + 1 } };
        char shorts[32] = ":l:";   /* getopt(3): a missing value is told from an unknown option */
        size_t n = 2;
        for (size_t i = 0; cli_run_options[i].name; i++) {
                const struct cli_option *option = &cli_run_options[i];
                longs[n++] = (struct option){ option->name, option->argument ? required_argument : no_argument, NULL,
                        PLAIN + (int)i };
                if (option->letter)
                        snprintf(shorts + strlen(shorts), sizeof shorts - strlen(shorts), "%c%s", option->letter,
                                option->argument ? ":" : "");
        }
        for (size_t i = 0; i < cli->fields_n; i++)
                longs[n++] = (struct option){ cli->fields[i].field->option,
                        cli->fields[i].field->kind == KIND_BOOL ? no_argument : required_argument, NULL,
                        FIELDS + (int)i };
        /* Options may stand on both sides of the file, as people write options; "--" begins the program's own. */
        optind = 0;   /* GNU getopt(3): begin anew */
        opterr = 0;
        for (int opt; (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
                int rc = 0;
                int table = opt / TABLE;
                size_t at = (size_t)opt % TABLE;
                if (table == CONFIG / TABLE && settings)
                        take_setting(settings, opt == CONFIG, optarg);
                if (table == CONFIG / TABLE || settings)
                        continue;
                if (opt == '?' || opt == ':')
                        return cli_bad_option("run", opt, argv, longs, err);
                if (opt == 'l') {
                        struct run_request *request = run_request(cli->run);
                        SET(request, run_request, language, arena_text(run_arena(cli->run), "%s", optarg));
                } else if (table == 0) {
                        for (size_t i = 0; cli_run_options[i].name; i++)
                                if (cli_run_options[i].letter == opt)
                                        set_plain(cli, i, optarg);
                } else if (table == PLAIN / TABLE) {
                        rc = cli_check_word(&cli_run_options[at], optarg, err);
                        if (rc == 0)
                                set_plain(cli, at, optarg);
                } else {
                        rc = set_field(cli, &cli->fields[at], optarg, err);
                }
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* ---- the program ---- */

/* The language of a file by its name; main.mjs keeps its ending, which means something. */
static void name_after_file(const struct language *added, struct run_request *request, const char *path,
        struct arena *arena)
{
        const struct language *language = NULL;
        if (!HAS(request, run_request, language)) {
                language = lang_of_file(added, path);
                if (language)
                        SET(request, run_request, language, arena_text(arena, "%s", language->name));
        } else if (lang_find(added, request->language, &language, NULL) < 0) {
                return;   /* the engine has the better message */
        }
        const char *dot = strrchr(path, '.');
        if (language && dot && lang_of_file(added, path) == language && !HAS(request, run_request, name) &&
            strrchr(language->file, '.') && strcasecmp(dot, strrchr(language->file, '.')) != 0)
                SET(request, run_request, name, arena_text(arena, "main%s", dot));
}

static int take_program(struct run_cli *cli, int argc, char **argv, struct csn_error *err)
{
        struct run_request *request = run_request(cli->run);
        struct arena *arena = run_arena(cli->run);
        const char *path = NULL;
        int at = optind;
        if (!cli->code && !cli->request_file && at < argc) {
                path = argv[at++];   /* after "--" too, as for every other tool */
        } else if (!cli->code && !cli->request_file) {
                if (isatty(STDIN_FILENO))
                        return err_field(err, "", "there is no program; give a file, -c CODE, or - for standard input");
                path = "-";
        }
        if (at < argc && strcmp(argv[at], "--") == 0)
                at++;
        for (; at < argc; at++) {
                cli_add_text(&request->args, &request->args_n, arena_text(arena, "%s", argv[at]), arena);
                MARK(request, run_request, args);
        }
        if (cli->code)
                SET(request, run_request, code,
                        ((struct bytes){ arena_text(arena, "%s", cli->code), strlen(cli->code) }));
        if (path) {
                if (cli_read_whole(path, MIB, "/code", arena, &request->code, err) < 0)
                        return -err->code;
                MARK(request, run_request, code);
                name_after_file(engine_languages(cli->engine), request, path, arena);
        }
        if (cli->prelude_file) {
                if (cli_read_whole(cli->prelude_file, MIB, "/prelude", arena, &request->prelude, err) < 0)
                        return -err->code;
                MARK(request, run_request, prelude);
        }
        if (cli->stdin_file) {
                if (path && strcmp(path, "-") == 0 && strcmp(cli->stdin_file, "-") == 0)
                        return err_field(err, "/stdin", "standard input cannot be both the program and its input");
                if (cli_read_whole(cli->stdin_file, 64 * MIB, "/stdin", arena, &request->stdin, err) < 0)
                        return -err->code;
                MARK(request, run_request, stdin);
        }
        return 0;
}

/* A request in JSON is the ground, options are laid over it. */
static int take_request_file(struct run_cli *cli, struct csn_error *err)
{
        struct arena *arena = run_arena(cli->run);
        struct run_request *request = run_request(cli->run), given = { 0 };
        struct bytes text;
        if (!cli->request_file)
                return 0;
        if (cli_read_whole(cli->request_file, 256 * MIB, "/", arena, &text, err) < 0)
                return -err->code;
        if (model_decode_text(&object_run_request, text.bytes, text.len, arena, &given, err) < 0)
                return -err->code;
        model_overlay(&object_run_request, &given, request, arena);
        *request = given;
        return 0;
}

/* ---- calls of tools in files ---- */

static int take_calls(struct run_cli *cli, struct csn_error *err)
{
        struct run_request *request = run_request(cli->run);
        struct arena *arena = run_arena(cli->run);
        struct tools_request given = { 0 };
        struct bytes text;
        if (cli->record_tools) {
                /*
                 * Calls of tools cannot be repeated after a failed write, so the file is opened before the run.  An
                 * older file keeps its content until the end.
                 */
                cli->record_fd = open(cli->record_tools, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                if (cli->record_fd < 0)
                        return err_field(err, "--record-tools", "%s: %s; name a file that can be written",
                                cli->record_tools, strerrordesc_np(errno));
                SET(&request->tools, tools_request, record, true);
                MARK(request, run_request, tools);
        }
        if (!cli->replay_tools)
                return 0;
        if (cli_read_whole(cli->replay_tools, 256 * MIB, "/tools/replay", arena, &text, err) < 0)
                return -err->code;
        char *whole = arena_text(arena, "{\"replay\":%s}", text.bytes);
        if (model_decode_text(&object_tools_request, whole, strlen(whole), arena, &given, err) < 0)
                return err_wrap(err, "%s", cli->replay_tools);
        request->tools.replay = given.replay;
        request->tools.replay_n = given.replay_n;
        MARK(&request->tools, tools_request, replay);
        MARK(request, run_request, tools);
        return 0;
}

/* The file has the caller's arguments to tools, and its mode is for the caller alone. */
static void keep_calls(struct run_cli *cli, const struct run_result *result)
{
        if (cli->record_fd < 0 || !HAS(result, run_result, tools))
                return;
        json_t *list = json_array();
        for (size_t i = 0; i < result->tools.list_n; i++)
                json_array_append_new(list, model_encode(&object_tool_record, &result->tools.list[i]));
        char *text = model_write(list, JSON_INDENT(1));
        bool kept = false;
        if (!text || (ftruncate(cli->record_fd, 0) < 0 && errno != EINVAL) ||
                io_write_all(cli->record_fd, text, strlen(text)) < 0)
                fprintf(stderr, "caisson: %s: %s; the calls of tools are not kept\n", cli->record_tools,
                        strerrordesc_np(errno));
        else if (HAS(&result->tools, tools_used, list_truncated))
                fprintf(stderr, "caisson: %s has not all calls of tools, there were too many\n", cli->record_tools);
        else
                kept = true;
        if (!kept)
                show_lost(&cli->show);
        free(text);
        json_decref(list);
}

/* ---- a run of our own engine ---- */

static void on_output(void *owner, int stream, const void *bytes, size_t len)
{
        struct run_cli *cli = owner;
        if (!show_output(&cli->show, stream, bytes, len))
                run_cancel(cli->run);   /* "caisson run ... | head": the reader has gone */
}

static void on_done(void *owner, const struct run_result *result)
{
        struct run_cli *cli = owner;
        json_t *record = cli->show.json ? front_record(result, run_request(cli->run)->aliases) : NULL;
        cli->done = true;
        show_result(&cli->show, result, record);
        keep_calls(cli, result);
        json_decref(record);
}

static const struct run_events events = { .output = on_output, .done = on_done };

/* Without a daemon a run has no tools; a program of a profile with tools is refused before it starts. */
static int check_alone(struct run_cli *cli, struct csn_error *err)
{
        const struct run_request *request = run_request(cli->run);
        const char *name = HAS(request, run_request, profile) ? request->profile : cli->settings->engine.profile;
        struct profile profile;
        struct csn_error why;
        if (HAS(&request->tools, tools_request, replay))
                return 0;
        bool named = request->tools.allow_n ||
                (!HAS(&request->tools, tools_request, allow) &&
                        profile_find(cli->settings, name, run_arena(cli->run), &profile, &why) == 0 &&
                        profile.request.tools.allow_n);
        return named ? err_field(err, "/tools/allow",
                               "the run names tools, and only a daemon has servers of tools; start caissond (docs/use/tool-sources.md), or name none")
                     : 0;
}

static void run_alone(struct run_cli *cli, const struct csn_error *why)
{
        if (cli->show.verbose)
                fprintf(stderr, "caisson: running alone: %s\n", why->text);
        struct csn_error err;
        if (check_alone(cli, &err) < 0) {
                run_refuse(cli->run, &err, &events, cli);
                return;
        }
        run_start(cli->run, true, &events, cli);
}

/* ---- a run by way of the daemon ---- */

static void on_transport_output(void *owner, int stream, const void *bytes, size_t len)
{
        struct run_cli *cli = owner;
        if (!show_output(&cli->show, stream, bytes, len))
                transport_cancel(cli->transport);
}

/* The daemon waits for no reader: a slow reader misses output, and is told. */
static void tell_missing(struct cli_show *show, const struct run_result *result)
{
        const uint64_t total[3] = { 0, result->truncated.stdout_total_bytes, result->truncated.stderr_total_bytes };
        for (int stream = 1; stream <= 2; stream++)
                if (show->streaming && !show->closed[stream] && show->shown[stream] < total[stream]) {
                        fprintf(stderr,
                                "caisson: %" PRIu64
                                " bytes of %s are missing here, because they were not read fast enough\n",
                                total[stream] - show->shown[stream], stream == 1 ? "stdout" : "stderr");
                        show_lost(show);
                }
}

static void on_transport_done(void *owner, const struct run_result *result, json_t *record)
{
        struct run_cli *cli = owner;
        cli->done = true;
        tell_missing(&cli->show, result);
        show_result(&cli->show, result, record);
        keep_calls(cli, result);
}

static void on_transport_failed(void *owner, const struct csn_error *error, bool alone)
{
        struct run_cli *cli = owner;
        if (alone)
                run_alone(cli, error);
        else
                run_refuse(cli->run, error, &events, cli);
}

static const struct cli_transport_events transport_events = { on_transport_output, on_transport_done,
        on_transport_failed };

/* ---- signals ---- */

/* The first signal ends the run, with its record; the second does not wait for the record. */
static void on_signal(struct watch *watch, uint32_t what)
{
        struct run_cli *cli = watch->owner;
        struct signalfd_siginfo info;
        (void)what;
        if (read(watch->fd, &info, sizeof info) != (ssize_t)sizeof info)
                return;
        if (++cli->interrupts > 1)
                _exit(130);   /* the supervisor, or the daemon, sees our end and kills the rest */
        transport_cancel(cli->transport);
        run_cancel(cli->run);
}

static int watch_signals(struct run_cli *cli, struct csn_error *err)
{
        signal(SIGPIPE, SIG_IGN);
        int fd = io_signals(io_ends, IO_ENDS, err);
        if (fd < 0)
                return fd;
        cli->signals = (struct watch){ .fd = fd, .ready = on_signal, .owner = cli };
        return loop_watch(engine_loop(cli->engine), &cli->signals, fd, EPOLLIN, err);
}

/* ---- in order ---- */

/* The request, or an error. */
static int take_all(struct run_cli *cli, int argc, char **argv, struct csn_error *err)
{
        if (parse_options(cli, argc, argv, NULL, err) < 0 || take_program(cli, argc, argv, err) < 0 ||
                take_request_file(cli, err) < 0 || take_calls(cli, err) < 0)
                return -err->code;
        return 0;
}

/* The output is printed as it arrives, unless options, request or profile name a form. */
static void choose_form(struct run_cli *cli)
{
        const struct run_request *request = run_request(cli->run);
        const char *name = HAS(request, run_request, profile) ? request->profile : cli->settings->engine.profile;
        struct arena arena = { 0 };
        struct profile profile = { 0 };
        struct csn_error err;
        if (HAS(request, run_request, format)) {
                cli->show.as_text = true;
                cli->show.form = request->format;
        } else if (profile_find(cli->settings, name, &arena, &profile, &err) == 0) {
                cli->show.as_text = HAS(&profile.request, run_request, format);
                cli->show.form = profile.request.format;
        }
        arena_done(&arena);
}

static void start(struct run_cli *cli)
{
        struct csn_error err = { 0 };
        int rc = transport_open(engine_loop(cli->engine), cli->daemon, cli->settings, &cli->from, cli->run,
                &transport_events, cli, &cli->transport, &err);
        if (rc < 0)
                run_refuse(cli->run, &err, &events, cli);
        else if (!cli->transport)
                run_alone(cli, &err);
        else if (cli->show.verbose)
                fprintf(stderr, "caisson: by way of the daemon at %s\n", transport_path(cli->transport));
}

static int run_with(struct run_cli *cli, int argc, char **argv)
{
        struct csn_error err = { 0 };
        if (watch_signals(cli, &err) < 0)
                return cli_fail(&err);
        int rc = take_all(cli, argc, argv, &err);
        choose_form(cli);
        show_prepare(&cli->show);
        if (rc < 0)
                run_refuse(cli->run, &err, &events, cli);
        else
                start(cli);
        if (rc == 0 && cli->show.verbose)
                show_program(&cli->show, run_request(cli->run));
        while (!cli->done)
                if (engine_step(cli->engine, -1, &err) < 0)
                        return cli_fail(&err);
        return cli->show.exit_status;
}

int cli_run(int argc, char **argv)
{
        struct settings settings;
        struct csn_error err;
        struct run_cli cli = { .signals = { .fd = -1 }, .record_fd = -1, .settings = &settings };
        cli.fields_n = cli_fields_of(cli_run_objects, cli.fields, ARRAY_LEN(cli.fields));
        parse_options(&cli, argc, argv, &cli.from, &err);   /* errors are reported the second time */
        int status = cli_load_settings(&cli.from, &settings);
        if (status == 0 && engine_open(&settings, &cli.engine, &err) < 0)
                status = cli_fail(&err);
        if (status == 0) {
                tools_open(cli.engine);
                library_set_review(cli.engine, &settings);
                cli.run = run_new(cli.engine);
                status = run_with(&cli, argc, argv);
                transport_close(cli.transport);
                loop_unwatch(engine_loop(cli.engine), &cli.signals);
        }
        fd_close(&cli.signals.fd);
        fd_close(&cli.record_fd);
        engine_close(cli.engine);
        settings_done(&settings);
        return status;
}
