/* caisson check: programs against a policy, for people with carets and for programs as JSON. */
#include "front/cli.h"

#include <inttypes.h>

#include "backend/backend.h"
#include "policy/policy.h"

/* So that a file that is far too long is refused by the policy's words, and not by ours. */
#define FILE_MAX (64 * MIB)

enum { EXIT_CLEAN = 0, EXIT_FOUND = 1, EXIT_BLOCKED = 2, EXIT_SYNTAX = 3 };

const struct cli_option cli_check_options[] = {
        { "language", 'l', "TEXT", "The language of all files; else each file's name tells." },
        { "policy", 'p', "NAME", "The policy: kodeagent, agentos, linx, linx-strict, codemie, mcp-light, off, or one of yours. [linx]" },
        { "allow-import", 0, "MODULE", "A module that may be imported whatever the policy says." },
        { "block-at", 0, "WORD", "The lowest severity that is refused: LOW, MEDIUM, HIGH or CRITICAL." },
        { "code", 'c', "CODE", "A program to check, instead of files." },
        { "json", 'j', NULL, "One JSON object a line for each program." },
        { NULL, 0, NULL, NULL },
};

struct check_cli {
        const struct settings *settings;
        const struct language *languages;
        struct arena arena;
        struct loop *loop;
        struct checker *checker;
        struct check_request options;
        const char *code;
        bool json, done;
        int status;
};

/* ---- options ---- */

static void add_import(struct check_cli *cli, const char *name)
{
        struct check_request *options = &cli->options;
        char **more = arena_alloc(&cli->arena, (options->allow_imports_n + 1) * sizeof *more);
        if (options->allow_imports_n)
                memcpy(more, options->allow_imports, options->allow_imports_n * sizeof *more);
        more[options->allow_imports_n++] = arena_text(&cli->arena, "%s", name);
        options->allow_imports = more;
        MARK(options, check_request, allow_imports);
}

static int take_option(struct check_cli *cli, const char *name, const char *value, struct csn_error *err)
{
        struct check_request *options = &cli->options;
        if (strcmp(name, "json") == 0)
                cli->json = true;
        else if (strcmp(name, "code") == 0)
                cli->code = value;
        else if (strcmp(name, "allow-import") == 0)
                add_import(cli, value);
        else if (strcmp(name, "policy") == 0)
                SET(options, check_request, policy, arena_text(&cli->arena, "%s", value));
        else if (strcmp(name, "language") == 0)
                SET(options, check_request, language, arena_text(&cli->arena, "%s", value));
        else
                return model_set_text(&object_check_request, model_field(&object_check_request, "block_at"), options, value, "--block-at",
                                      &cli->arena, err);
        return 0;
}

static int parse_options(struct check_cli *cli, int argc, char **argv, struct csn_error *err)
{
        struct option longs[ARRAY_LEN(cli_check_options) + 1] = { { 0 } };
        char shorts[32] = "";
        for (int i = 0; cli_check_options[i].name; i++) {
                const struct cli_option *option = &cli_check_options[i];
                longs[i] = (struct option){ option->name, option->argument ? required_argument : no_argument, NULL, 256 + i };
                if (option->letter)
                        snprintf(shorts + strlen(shorts), sizeof shorts - strlen(shorts), "%c%s", option->letter, option->argument ? ":" : "");
        }
        optind = 0;
        opterr = 0;
        for (int opt; (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
                int i = opt - 256;
                for (int k = 0; i < 0 && opt != '?' && cli_check_options[k].name; k++)
                        if (cli_check_options[k].letter == opt)
                                i = k;
                if (i < 0)
                        return err_field(err, "", "check: there is no option %s, or it needs a value; see caisson help",
                                         optind > 0 && argv[optind - 1] ? argv[optind - 1] : "");
                if (take_option(cli, cli_check_options[i].name, optarg, err) < 0)
                        return -err->code;
        }
        return 0;
}

/* ---- for people ---- */

struct colours {
        const char *bold, *red, *yellow, *dim, *off;
};

static struct colours colours_of(FILE *stream)
{
        return cli_colours(stream) ? (struct colours){ "\033[1m", "\033[31m", "\033[33m", "\033[2m", "\033[0m" }
                                   : (struct colours){ "", "", "", "", "" };
}

static void print_visible(const char *text)
{
        size_t len = strlen(text);
        char *visible = mem_alloc(4 * len + 1);
        visible[cli_visible(text, len, visible)] = 0;
        fputs(visible, stdout);
        free(visible);
}

/* The line, and below it a mark from the one column to the other; tabs stay, so that both lines agree. */
static void print_line(const char *text, uint64_t column, uint64_t end, const struct colours *colours)
{
        printf("    ");
        for (const char *c = text; *c; c++)
                fputc((unsigned char)*c < ' ' && *c != '\t' ? ' ' : *c, stdout);
        printf("\n    %s", colours->red);
        uint64_t at = 1;
        for (const char *c = text; *c && at < column; c++)
                if (((unsigned char)*c & 0xc0) != 0x80) {
                        fputc(*c == '\t' ? '\t' : ' ', stdout);
                        at++;
                }
        if (at == column)
                putchar('^');
        for (at++; at < end; at++)
                putchar('~');
        printf("%s\n", colours->off);
}

static void print_finding(const char *file, const struct finding *finding, const struct colours *colours)
{
        static const bool serious[] = { false, false, true, true };
        printf("%s%s:%" PRIu64 ":%" PRIu64 ":%s %s%s%s ", colours->bold, file, finding->line, finding->column, colours->off,
               serious[finding->severity & 3] ? colours->red : colours->yellow, choices_severity.values[finding->severity].text, colours->off);
        print_visible(finding->message);
        printf(" %s[%s]%s\n", colours->dim, finding->rule, colours->off);
        uint64_t line_len = finding->text ? strlen(finding->text) + 1 : 0;
        uint64_t end = finding->end_line == finding->line ? finding->end_column : line_len;
        if (finding->text)
                print_line(finding->text, finding->column, end < line_len ? end : line_len, colours);
        if (finding->advice) {
                printf("    %s", colours->dim);
                print_visible(finding->advice);
                printf("%s\n", colours->off);
        }
}

static void print_result(const struct check_result *result)
{
        struct colours colours = colours_of(stdout);
        const char *file = result->file ? result->file : "program";
        for (size_t i = 0; i < result->findings_n; i++)
                print_finding(file, &result->findings[i], &colours);
        if (HAS(result, check_result, error) && HAS(&result->error, failure, line)) {
                printf("%s%s:%" PRIu64 ":%" PRIu64 ":%s %s%s:%s ", colours.bold, file, result->error.line, result->error.column, colours.off,
                       colours.red, result->error.type ? result->error.type : "error", colours.off);
                print_visible(result->error.message);
                putchar('\n');
                if (result->error.text)
                        print_line(result->error.text, result->error.column, 0, &colours);
        }
        bool denied = result->verdict == verdict_DENY;
        printf("%s%s:%s %s%s%s by %s", colours.bold, file, colours.off, denied ? colours.red : "", denied ? "denied" : "allowed",
               denied ? colours.off : "", result->policy);
        if (result->reason[0]) {
                printf(": ");
                for (const char *c = result->reason; *c; c++)
                        fputc(*c == '\n' ? ' ' : (unsigned char)*c < ' ' ? '?' : *c, stdout);
        }
        putchar('\n');
}

/* ---- results ---- */

/* Trouble of the caller's or of ours; 0 if the error is the program's own. */
static int trouble_of(const struct check_result *result)
{
        const struct failure *error = &result->error;
        if (!HAS(result, check_result, error) || !HAS(error, failure, code))
                return 0;
        bool input = strcmp(error->code, csn_code_name(CSN_E_INPUT)) == 0;
        for (int code = 1; code < 32; code++)
                if (strcmp(csn_code_name(code), error->code) == 0 && (!input || (error->field && strcmp(error->field, "/code") != 0)))
                        return csn_code_exit(code);
        return 0;
}

static int status_of(const struct check_result *result)
{
        int trouble = trouble_of(result);
        if (trouble)
                return trouble;
        if (HAS(result, check_result, error) && HAS(&result->error, failure, line))
                return EXIT_SYNTAX;
        return result->verdict == verdict_DENY ? EXIT_BLOCKED : result->findings_n ? EXIT_FOUND : EXIT_CLEAN;
}

static void on_done(struct check *check)
{
        struct check_cli *cli = check->owner;
        int status = status_of(&check->result);
        cli->done = true;
        if (cli->json) {
                char *text;
                json_t *json = model_encode(&object_check_result, &check->result);
                text = json_dumps(json, JSON_COMPACT);
                puts(text ? text : "null");
                free(text);
                json_decref(json);
        } else if (trouble_of(&check->result)) {
                fprintf(stderr, "caisson: %s\n", check->result.error.message);
        } else {
                print_result(&check->result);
        }
        if (status > cli->status)
                cli->status = status;
}

/* ---- in order ---- */

static int language_of(struct check_cli *cli, const char *path, struct check_request *request, struct csn_error *err)
{
        const struct language *language = NULL;
        if (HAS(&cli->options, check_request, language)) {
                if (lang_find(cli->languages, cli->options.language, &language, err) < 0)
                        return -err->code;
        } else if (path) {
                language = lang_of_file(cli->languages, path);
        }
        if (!language)
                return err_field(err, "/language", "%s: no language is given, and the file's name does not tell one; give --language (-l)",
                                 path ? path : "program");
        SET(request, check_request, language, arena_text(&cli->arena, "%s", language->name));
        return 0;
}

static int check_one(struct check_cli *cli, const char *path, struct csn_error *err)
{
        struct check check = { .request = cli->options, .done = on_done, .owner = cli };
        struct check_request *request = &check.request;
        if (language_of(cli, path, request, err) < 0)
                return -err->code;
        if (path) {
                if (cli_read_whole(path, FILE_MAX, "/code", &check.arena, &request->code, err) < 0)
                        return -err->code;
                size_t len;
                SET(request, check_request, file, model_utf8(&check.arena, path, strlen(path), &len));
        } else {
                request->code = (struct bytes){ arena_text(&check.arena, "%s", cli->code), strlen(cli->code) };
        }
        MARK(request, check_request, code);
        policy_defaults(request);
        int rc = 0;
        cli->done = false;
        checker_start(cli->checker, &check);
        while (rc == 0 && !cli->done)
                rc = loop_step(cli->loop, -1, err);
        checker_cancel(cli->checker, &check);
        check_done(&check);
        return rc;
}

static int check_all(struct check_cli *cli, int argc, char **argv, struct csn_error *err)
{
        if (parse_options(cli, argc, argv, err) < 0)
                return -err->code;
        if (cli->code)
                return optind < argc ? err_field(err, "", "check: give files, or -c CODE") : check_one(cli, NULL, err);
        if (optind == argc)
                return err_field(err, "", "check: there is no program; give files, -c CODE, or - for standard input");
        for (int i = optind; i < argc; i++)
                if (check_one(cli, argv[i], err) < 0)
                        return -err->code;
        return 0;
}

static int check(int argc, char **argv, const struct settings *settings)
{
        struct check_cli cli = { .settings = settings };
        struct csn_error err = { 0 };
        const struct checker_paths paths = { backend_policy_worker(), { settings->engine.policies_dir, backend_policies_dir() } };
        if (lang_load(settings->engine.languages_dir, &cli.arena, &cli.languages, &err) == 0 && loop_new(&cli.loop, &err) == 0) {
                checker_open(cli.loop, &paths, &cli.checker);
                check_all(&cli, argc, argv, &err);
                checker_close(cli.checker);
        }
        loop_free(cli.loop);
        arena_done(&cli.arena);
        return err.code ? cli_fail(&err) : cli.status;
}

int cli_check(int argc, char **argv)
{
        return cli_with_settings(argc, argv, check);
}
