/* caisson check: programs against a policy, for people with carets and for programs as JSON. */
#include "front/cli/check.h"
#include "front/socket/client.h"

#include <fts.h>
#include <inttypes.h>
#include <sys/stat.h>

/* Large enough for the policy's own refusal of a file far too long. */
#define FILE_MAX (64 * MIB)
#define LINE_MAX_BYTES (16 * MIB)  /* of a request in JSON lines */

enum { EXIT_CLEAN = 0, EXIT_FOUND = 1, EXIT_BLOCKED = 2, EXIT_SYNTAX = 3 };

const struct cli_option cli_check_options[] = {
        { "language", 'l', "TEXT", "The language of all files; else each file's name tells.", NULL },
        { "policy", 'p', "NAME",
                "The policy: kodeagent, agentos, linx, linx-strict, codemie, mcp-light, off, or one of yours. Without it that of the profile, or linx.",
                NULL },
        { "profile", 0, "NAME", "The profile whose policy and lists of modules a run would have. [engine.profile]", NULL },
        { "allow-import", 0, "MODULE", "A module that may be imported whatever the policy says.", NULL },
        { "forbid-import", 0, "MODULE", "A module that may not be imported, in place of the policy's own list.", NULL },
        { "prelude", 0, "FILE", "The prelude of the programs, checked separately.", NULL },
        { "block-at", 0, "WORD", "The lowest severity that is refused; SAFE refuses nothing.", &choices_threshold },
        { "code", 'c', "CODE", "A program to check, instead of files.", NULL },
        { "json", 'j', NULL, "One JSON object a line for each program.", NULL },
        { "jsonl", 0, NULL, "Each line of the files is a request as JSON, and is answered by a line.", NULL },
        { "sarif", 0, NULL, "One SARIF 2.1.0 document, for tools that show findings.", NULL },
        { "imports", 0, NULL, "Print the packages that the programs need, and check nothing.", NULL },
        { "daemon", 0, "WORD", "Check by way of caissond; auto: if there is one that can.", &choices_transports },
        { NULL, 0, NULL, NULL, NULL },
};

struct check_cli {
        struct arena arena;
        struct engine *engine;
        struct daemon_query daemon_query;        /* the daemon, if by_daemon */
        bool by_daemon, always;    /* always: in no other way */
        struct check_request options;
        const char *code, *daemon;
        bool json, jsonl, imports;
        size_t lines_n;            /* requests of --jsonl */
        json_t *sarif;             /* NULL: not asked for */
        json_t *modules, *packages;    /* as keys of objects, so each is there once */
        const char *root;          /* the folder being walked, or NULL */
        int status;
};

/* ---- options ---- */

static int take_prelude(struct check_cli *cli, const char *path, struct csn_error *err)
{
        struct check_request *options = &cli->options;
        if (cli_read_whole(path, MIB, "/prelude", &cli->arena, &options->prelude, err) < 0)
                return -err->code;
        MARK(options, check_request, prelude);
        return 0;
}

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct check_cli *cli = owner;
        struct check_request *options = &cli->options;
        if (strcmp(name, "json") == 0)
                cli->json = true;
        else if (strcmp(name, "jsonl") == 0)
                cli->jsonl = true;
        else if (strcmp(name, "imports") == 0)
                cli->imports = true;
        else if (strcmp(name, "sarif") == 0)
                cli->sarif = cli->sarif ? cli->sarif : sarif_new();
        else if (strcmp(name, "code") == 0)
                cli->code = value;
        else if (strcmp(name, "daemon") == 0)
                cli->daemon = value;
        else if (strcmp(name, "allow-import") == 0) {
                cli_add_text(&options->allow_imports, &options->allow_imports_n, arena_text(&cli->arena, "%s", value),
                        &cli->arena);
                MARK(options, check_request, allow_imports);
        } else if (strcmp(name, "forbid-import") == 0) {
                cli_add_text(&options->forbidden_modules, &options->forbidden_modules_n,
                        arena_text(&cli->arena, "%s", value), &cli->arena);
                MARK(options, check_request, forbidden_modules);
        } else if (strcmp(name, "prelude") == 0)
                return take_prelude(cli, value, err);
        else if (strcmp(name, "policy") == 0)
                SET(options, check_request, policy, arena_text(&cli->arena, "%s", value));
        else if (strcmp(name, "profile") == 0)
                SET(options, check_request, profile, arena_text(&cli->arena, "%s", value));
        else if (strcmp(name, "language") == 0)
                SET(options, check_request, language, arena_text(&cli->arena, "%s", value));
        else
                return model_set_text(&object_check_request, model_field(&object_check_request, "block_at"), options,
                        value, "--block-at", &cli->arena, err);
        return 0;
}

/* ---- results ---- */

static int status_of(const struct check_result *result, bool *ret_trouble)
{
        struct csn_error trouble;
        *ret_trouble = policy_trouble(result, &trouble) < 0;
        if (*ret_trouble)
                return csn_code_exit(trouble.code);
        if (HAS(result, check_result, error) && HAS(&result->error, failure, line))
                return EXIT_SYNTAX;
        return result->verdict == verdict_DENY ? EXIT_BLOCKED : result->findings_n ? EXIT_FOUND : EXIT_CLEAN;
}

static void note_status(struct check_cli *cli, int status)
{
        if (status > cli->status)
                cli->status = status;
}

static void print_json(json_t *json)
{
        char *text = json_dumps(json, JSON_COMPACT);
        puts(text ? text : "null");
        free(text);
        json_decref(json);
}

/* A program of several files: a module beside the program, or at the top of the walked folder, is its own. */
static bool is_beside(const char *folder, size_t folder_len, const char *module)
{
        static const char *const endings[] = { "", ".py" };
        char path[4096];
        for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
                int n = snprintf(path, sizeof path, "%.*s/%.*s%s", (int)folder_len, folder, (int)strcspn(module, "."),
                        module, endings[i]);
                if (n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0)
                        return true;
        }
        return false;
}

static bool is_own(const struct check_cli *cli, const char *file, const char *module)
{
        const char *slash = file ? strrchr(file, '/') : NULL;
        if (cli->root && is_beside(cli->root, strlen(cli->root), module))
                return true;
        return file && (slash ? is_beside(file, (size_t)(slash - file), module) : is_beside(".", 1, module));
}

static bool is_optional(const struct check_result *result, const char *module)
{
        for (size_t i = 0; i < result->optional_imports_n; i++)
                if (strcmp(result->optional_imports[i], module) == 0)
                        return true;
        return false;
}

/* `file` is NULL for a program without a place.  A package needed by any program is not optional for all. */
static void note_imports(struct check_cli *cli, const struct check_result *result, const char *file)
{
        bool python = strcmp(result->language, lang_python.name) == 0;
        for (size_t i = 0; i < result->imports_n; i++) {
                const char *module = result->imports[i];
                json_object_set_new(cli->modules, module, json_true());
                const char *package = package_of(result->language, module, &cli->arena);
                if (!package || (python && is_own(cli, file, module)))
                        continue;
                bool needed = !is_optional(result, module) || json_is_true(json_object_get(cli->packages, package));
                json_object_set_new(cli->packages, package, json_boolean(needed));
        }
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static json_t *sorted_keys(json_t *object)
{
        size_t n = 0;
        const char *key;
        json_t *value, *list = json_array();
        const char **keys = mem_alloc((json_object_size(object) + 1) * sizeof *keys);
        json_object_foreach(object, key, value)
                keys[n++] = key;
        qsort(keys, n, sizeof *keys, by_text);
        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, json_string(keys[i]));
        free(keys);
        return list;
}

/* The lines form a requirements file, with optional packages as comments. */
static void print_imports(const struct check_cli *cli)
{
        json_t *packages = sorted_keys(cli->packages), *optional = json_array(), *package;
        size_t i;
        json_array_foreach(packages, i, package) {
                bool needed = json_is_true(json_object_get(cli->packages, json_string_value(package)));
                if (!needed)
                        json_array_append(optional, package);
                if (!cli->json)
                        printf(needed ? "%s\n" : "# %s (optional)\n", json_string_value(package));
        }
        if (cli->json)
                print_json(json_pack("{s:o, s:O, s:O}", "imports", sorted_keys(cli->modules), "packages", packages,
                        "optional_packages", optional));
        json_decref(optional);
        json_decref(packages);
}

static void emit(struct check_cli *cli, const struct check_result *result, const char *path)
{
        bool trouble;
        int status = status_of(result, &trouble);
        note_status(cli, cli->imports && status < EXIT_SYNTAX ? EXIT_CLEAN : status);
        if (cli->imports && (trouble || status == EXIT_SYNTAX))
                fprintf(stderr, "caisson: %s: %s\n", result->file ? result->file : "program", result->reason);
        else if (cli->imports)
                note_imports(cli, result, path);
        else if (cli->sarif)
                trouble ? sarif_add_trouble(cli->sarif, result->error.message) : sarif_add(cli->sarif, result);
        else if (cli->json || cli->jsonl)
                print_json(model_encode(&object_check_result, result));
        else if (trouble)
                fprintf(stderr, "caisson: %s\n", result->error.message);
        else
                findings_print(result);
}

/* ---- a program ---- */

static int language_of(struct check_cli *cli, const char *path, struct arena *arena, struct check_request *request,
        struct csn_error *err)
{
        const struct language *added = engine_languages(cli->engine), *language = NULL;
        if (HAS(request, check_request, language)) {
                if (lang_find(added, request->language, &language, err) < 0)
                        return -err->code;
        } else if (path) {
                language = lang_of_file(added, path);
        }
        if (!language)
                return err_field(err, "/language",
                        "%s: no language is given, and the file's name does not tell one; give --language (-l)",
                        path ? path : "program");
        SET(request, check_request, language, arena_text(arena, "%s", language->name));
        return 0;
}

static int take_program(struct check_cli *cli, const char *path, struct source_check *source_check,
        struct csn_error *err)
{
        struct check_request *request = &source_check->check.request;
        struct arena *arena = &source_check->check.arena;
        if (language_of(cli, path, arena, request, err) < 0)
                return -err->code;
        if (path) {
                size_t len;
                if (cli_read_whole(path, FILE_MAX, "/code", arena, &request->code, err) < 0)
                        return -err->code;
                SET(request, check_request, file, model_utf8(arena, path, strlen(path), &len));
        } else {
                request->code = (struct bytes){ arena_text(arena, "%s", cli->code), strlen(cli->code) };
        }
        MARK(request, check_request, code);
        return 0;
}

/* A request above FRAME_CHECK_MAX is refused here as by the daemon. */
static int ask_daemon(struct check_cli *cli, struct source_check *source_check, struct csn_error *err)
{
        struct check *check = &source_check->check;
        struct buf text;
        buf_init(&text, FRAME_CHECK_MAX);
        if (!front_write_check(&check->request, &text)) {
                buf_done(&text);
                return err_field(err, "/", "the request is longer than %llu MiB", FRAME_CHECK_MAX / MIB);
        }
        daemon_query_ask(&cli->daemon_query, FRAME_CHECK, text.bytes, text.len);
        buf_done(&text);
        if (daemon_query_wait(&cli->daemon_query) < 0) {
                *err = cli->daemon_query.err;
                return -err->code;
        }
        return model_decode(&object_check_result, cli->daemon_query.answer, &check->arena, &check->result, err);
}

static int wait_for(struct check_cli *cli, struct source_check *source_check, struct csn_error *err)
{
        bool fits = source_check->check.request.code.len <= CHECK_CODE_MAX;
        if (cli->by_daemon && fits) {
                int rc = ask_daemon(cli, source_check, err);
                if (rc == 0 || cli->always)
                        return rc;
                daemon_query_close(&cli->daemon_query);
                cli->by_daemon = false;
                err->code = 0;
        }
        struct check *check = &source_check->check;
        struct csn_error bad;
        if (source_check_prepare(cli->engine, source_check, &bad) == 0)
                return source_check_wait(cli->engine, source_check, err);
        policy_refuse(&check->request, &bad, &check->arena, &check->result);   /* as the daemon does */
        return 0;
}

static int check_one(struct check_cli *cli, const char *path, struct csn_error *err)
{
        struct source_check source_check = { .check = { .request = cli->options } };
        int rc = take_program(cli, path, &source_check, err);
        if (rc == 0)
                rc = wait_for(cli, &source_check, err);
        if (rc == 0)
                emit(cli, &source_check.check.result, path && strcmp(path, "-") != 0 ? path : NULL);
        source_check_done(&source_check);
        return rc;
}

/* ---- JSON lines ---- */

/* A line without a valid request is answered, too, with its number and its id. */
static void tell_bad_line(struct check_cli *cli, uint64_t number, const char *text, size_t len,
        const struct csn_error *err)
{
        json_t *given = json_loadb(text, len, 0, NULL);
        const char *id = json_string_value(json_object_get(given, "id"));
        json_t *answer = id ? json_pack("{s:s}", "id", id) : json_object();
        json_t *error = json_pack("{s:s, s:s}", "code", csn_code_name(err->code), "message", err->text);
        if (err->field[0])
                json_object_set_new(error, "field", json_string(err->field));
        json_object_set_new(answer, "line", json_integer((json_int_t)number));
        json_object_set_new(answer, "error", error);
        print_json(answer);
        json_decref(given);
        note_status(cli, csn_code_exit(err->code));
}

static int check_line(struct check_cli *cli, uint64_t number, const char *text, size_t len, struct csn_error *err)
{
        struct source_check source_check = { .check = { .request = cli->options } };
        struct check_request *request = &source_check.check.request, given = { 0 };
        struct arena *arena = &source_check.check.arena;
        struct csn_error bad;
        int rc = 0;
        if (model_decode_text(&object_check_request, text, len, arena, &given, &bad) < 0) {
                tell_bad_line(cli, number, text, len, &bad);
        } else {
                model_overlay(&object_check_request, request, &given, arena);
                if (language_of(cli, given.file, arena, request, &bad) < 0) {
                        tell_bad_line(cli, number, text, len, &bad);
                } else {
                        rc = wait_for(cli, &source_check, err);
                        if (rc == 0)
                                emit(cli, &source_check.check.result, NULL);
                }
        }
        fflush(stdout);   /* a client writing line by line waits for the answer */
        source_check_done(&source_check);
        return rc;
}

static bool is_blank(const char *text, size_t len)
{
        while (len && strchr(" \t\r", text[len - 1]) && text[len - 1])
                len--;
        return len == 0;
}

static int check_lines(struct check_cli *cli, FILE *file, struct csn_error *err)
{
        struct buf line;
        struct csn_error bad;
        bool fits = true;
        int rc = 0;
        uint64_t number = 1;
        buf_init(&line, LINE_MAX_BYTES);
        for (int c = 0; c != EOF && rc == 0;) {
                c = getc_unlocked(file);
                char byte = (char)c;
                if (c != EOF && c != '\n') {
                        fits = buf_add(&line, &byte, 1) && fits;
                        continue;
                }
                if (!fits) {
                        err_field(&bad, "", "the line is longer than %llu bytes", LINE_MAX_BYTES);
                        tell_bad_line(cli, number, "", 0, &bad);
                        fflush(stdout);
                } else if (!is_blank(line.bytes, line.len)) {
                        cli->lines_n++;
                        rc = check_line(cli, number, line.bytes, line.len, err);
                }
                line.len = 0;
                fits = true;
                number++;
        }
        buf_done(&line);
        return rc;
}

static int check_lines_of(struct check_cli *cli, const char *path, struct csn_error *err)
{
        if (strcmp(path, "-") == 0)
                return check_lines(cli, stdin, err);
        FILE *file = fopen(path, "re");
        if (!file)
                return err_field(err, "", "%s: %s", path, strerrordesc_np(errno));
        int rc = check_lines(cli, file, err);
        fclose(file);
        return rc;
}

/* ---- folders ---- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
        return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Whether a file in a folder is checked: its name has a language, and the language of --language if given. */
static bool is_program(struct check_cli *cli, const char *path)
{
        const struct language *added = engine_languages(cli->engine), *wanted = NULL,
                              *language = lang_of_file(added, path);
        if (HAS(&cli->options, check_request, language) && lang_find(added, cli->options.language, &wanted, NULL) < 0)
                return true;   /* the check then reports the unknown language */
        return language && (!wanted || wanted == language);
}

static int check_folder(struct check_cli *cli, const char *folder, struct csn_error *err)
{
        char *const roots[] = { arena_text(&cli->arena, "%s", folder), NULL };
        for (size_t len = strlen(roots[0]); len > 1 && roots[0][len - 1] == '/';)
                roots[0][--len] = 0;
        FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
        int rc = 0;
        if (!walk)
                return err_set(err, CSN_E_SYSTEM, errno, "read %s", folder);
        cli->root = roots[0];
        for (FTSENT *entry; rc == 0 && (entry = fts_read(walk));) {
                if (entry->fts_level > 0 && entry->fts_name[0] == '.')
                        fts_set(walk, entry, FTS_SKIP);
                else if (entry->fts_info == FTS_F && is_program(cli, entry->fts_path))
                        rc = check_one(cli, entry->fts_path, err);
                else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
                        rc = err_field(err, "", "%s: %s", entry->fts_path, strerrordesc_np(entry->fts_errno));
        }
        cli->root = NULL;
        fts_close(walk);
        return rc;
}

/* ---- in order ---- */

static int check_path(struct check_cli *cli, const char *path, struct csn_error *err)
{
        struct stat info;
        if (cli->jsonl)
                return check_lines_of(cli, path, err);
        if (strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
                return check_folder(cli, path, err);
        return check_one(cli, path, err);
}

static int check_all(struct check_cli *cli, int argc, char **argv, struct csn_error *err)
{
        if (cli->jsonl + cli->imports + (cli->sarif != NULL) > 1 || (cli->json && (cli->jsonl || cli->sarif)))
                return err_field(err, "",
                        "check: of --json, --jsonl, --sarif and --imports only --json and --imports go together");
        if (cli->code)
                return optind < argc || cli->jsonl ? err_field(err, "", "check: give files, or -c CODE")
                                                   : check_one(cli, NULL, err);
        if (optind == argc && cli->jsonl && check_lines(cli, stdin, err) < 0)
                return -err->code;
        if (optind == argc && !cli->jsonl)
                return err_field(err, "", "check: there is no program; give files, -c CODE, or - for standard input");
        for (int i = optind; i < argc; i++)
                if (check_path(cli, argv[i], err) < 0)
                        return -err->code;
        if (cli->jsonl && !cli->lines_n)
                return err_field(err, "",
                        "check: there is no request in the input; give JSON lines, one request a line");
        return 0;
}

static int check(int argc, char **argv, const struct settings *settings, const struct cli_settings *from)
{
        struct check_cli cli = { .modules = json_object(), .packages = json_object() };
        struct csn_error err = { 0 };
        if (engine_open(settings, &cli.engine, &err) == 0 &&
                cli_parse(cli_check_options, argc, argv, take_option, &cli, &err) == 0 &&
                transport_for_checks(cli.daemon, settings, from, &cli.daemon_query, &cli.by_daemon, &cli.always,
                        &err) == 0) {
                err.code = 0;   /* why there is no daemon is nothing to tell */
                if (cli.imports)
                        SET(&cli.options, check_request, policy, arena_text(&cli.arena, "off"));
                int rc = check_all(&cli, argc, argv, &err);
                if (rc < 0 && cli.sarif)
                        sarif_add_trouble(cli.sarif, err.text);
                if (cli.sarif)
                        cli_print_json(json_incref(cli.sarif));
                if (cli.imports && rc == 0)
                        print_imports(&cli);
        }
        if (cli.by_daemon)
                daemon_query_close(&cli.daemon_query);
        engine_close(cli.engine);
        json_decref(cli.sarif);
        json_decref(cli.modules);
        json_decref(cli.packages);
        arena_done(&cli.arena);
        return err.code ? cli_fail(&err) : cli.status;
}

int cli_check(int argc, char **argv)
{
        struct cli_settings from;
        struct settings settings;
        argc = cli_take_settings(argc, argv, &from);
        int status = argc < 0 ? 64 : cli_load_settings(&from, &settings);
        if (status == 0)
                status = check(argc, argv, &settings, &from);
        if (argc >= 0)
                settings_done(&settings);
        return status;
}
