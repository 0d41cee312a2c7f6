/*
 * caisson selftest: small programs and their expected results; in the Test Anything Protocol.
 * caisson bench: how long small programs take here.
 *
 * The runs follow each other and go to a capable daemon, else to an engine of this process.  The export and the
 * grading of the selftest are always done here.
 */
#include "front/cli/cli.h"
#include "grading/grading.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWER "42\n"

/* ---- runs ---- */

struct runner {
        const struct settings *settings;
        const struct cli_settings *from;
        const char *daemon;        /* value of --daemon, or NULL */
        struct engine *engine;
        struct run *run;           /* the next or the current run, or NULL */
        struct cli_transport *transport;
        bool warm, done;
        uint64_t begun_us;
        /* Of the last run. */
        json_t *record;
        double ms;                 /* from the request to the record */
        char path[128];            /* socket of its daemon; empty: our own engine */
};

static int runner_open(struct runner *runner, struct csn_error *err)
{
        return engine_open(runner->settings, &runner->engine, err);
}

/* The empty request of the next run, which no reviewer of this side looks at. */
static struct run_request *runner_request(struct runner *runner)
{
        if (!runner->run) {
                runner->run = run_new(runner->engine);
                run_set_unreviewed(runner->run);
        }
        return run_request(runner->run);
}

/* code outlives the run. */
static void runner_set_program(struct runner *runner, const char *language, const char *code)
{
        struct run_request *request = runner_request(runner);
        SET(request, run_request, language, arena_text(run_arena(runner->run), "%s", language));
        SET(request, run_request, code, ((struct bytes){ (char *)(uintptr_t)code, strlen(code) }));
}

static void runner_finished(struct runner *runner, json_t *record)
{
        runner->ms = (double)(clock_us() - runner->begun_us) / 1000;
        runner->record = record;
        runner->done = true;
}

static void on_run_done(void *owner, const struct run_result *result)
{
        struct runner *runner = owner;
        runner_finished(runner, NULL);                        /* the time of the record, without its JSON */
        runner->record = front_record(result, false);
}

static const struct run_events runner_events = { .done = on_run_done };

static void runner_run_alone(struct runner *runner)
{
        runner->path[0] = 0;
        if (!runner->warm)
                engine_warm(runner->engine, false);
        runner->warm = true;
        run_start(runner->run, true, &runner_events, runner);
}

static void on_transport_output(void *owner, int stream, const void *bytes, size_t len)
{
        (void)owner, (void)stream, (void)bytes, (void)len;   /* the record has the output */
}

static void on_transport_done(void *owner, const struct run_result *result, json_t *record)
{
        (void)result;
        runner_finished(owner, json_incref(record));
}

static void on_transport_failed(void *owner, const struct csn_error *error, bool alone)
{
        struct runner *runner = owner;
        if (alone)
                runner_run_alone(runner);
        else
                run_refuse(runner->run, error, &runner_events, runner);
}

static const struct cli_transport_events transport_events = { on_transport_output, on_transport_done,
        on_transport_failed };

static int runner_run(struct runner *runner, struct csn_error *err)
{
        json_decref(runner->record);
        runner->record = NULL;
        runner->done = false;
        runner->begun_us = clock_us();
        int rc = transport_open(engine_loop(runner->engine), runner->daemon, runner->settings, runner->from,
                runner->run, &transport_events, runner, &runner->transport, err);
        if (rc == 0 && runner->transport)
                snprintf(runner->path, sizeof runner->path, "%s", transport_path(runner->transport));
        else if (rc == 0)
                runner_run_alone(runner);
        while (rc == 0 && !runner->done)
                rc = engine_step(runner->engine, -1, err);
        transport_close(runner->transport);
        runner->transport = NULL;
        run_free(runner->run);
        runner->run = NULL;
        return rc;
}

/* NULL if the last run was completed and printed `expected`; else the reason, valid until the next run. */
static const char *runner_problem(struct runner *runner, const char *expected)
{
        const char *status = json_string_value(json_object_get(runner->record, "status"));
        const char *printed = json_string_value(json_object_get(runner->record, "stdout"));
        const char *message = json_string_value(json_object_get(json_object_get(runner->record, "error"), "message"));
        if (!status || strcmp(status, "completed") != 0)
                return message ? message : status ? status : "the record has no status";
        return printed && strcmp(printed, expected) == 0 ? NULL : "the program printed something else";
}

static void runner_close(struct runner *runner)
{
        run_free(runner->run);
        runner->run = NULL;
        transport_close(runner->transport);
        runner->transport = NULL;
        json_decref(runner->record);
        runner->record = NULL;
        engine_close(runner->engine);
        runner->engine = NULL;
}

/* ---- selftest ---- */

#define EXPORTED "answer.txt"
#define GRADING "{\"language\": \"python\", \"code\": \"def double(n): return n + n\", \"function\": \"double\"," \
        " \"cases\": [{\"args\": [21], \"expected\": 42}, {\"args\": [21], \"expected\": 41}]}"

const struct cli_option cli_selftest_options[] = {
        { "daemon", 0, "WORD", "Run by way of caissond; auto: if there is one that can.", &choices_transports },
        { NULL, 0, NULL, NULL, NULL },
};

static const struct test {
        const char *name, *language, *policy;
        enum status status;
        bool exports;
        uint64_t wall_ms;
        const char *printed, *code;
} tests[] = {
        { "a program in Python runs", "python", "off", status_COMPLETED, false, 20000, ANSWER, "print(6 * 7)" },
        { "a program in JavaScript runs", "javascript", "off", status_COMPLETED, false, 20000, ANSWER,
                "console.log(6 * 7)" },
        { "a program in Bash runs", "bash", "off", status_COMPLETED, false, 20000, ANSWER, "echo $((6 * 7))" },
        { "a policy refuses a program", "python", "linx", status_BLOCKED, false, 20000, "", "eval(input())" },
        { "an endless loop is ended, and its output is kept", "python", "off", status_TIMEOUT, false, 1000, ANSWER,
                "print(42, flush=True)\nwhile True:\n    pass\n" },
        { "a program has no network", "python", "off", status_COMPLETED, false, 20000, ANSWER,
                "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 5)\nexcept OSError:\n    print(42)\n" },
        { "a file is exported", "python", "off", status_COMPLETED, true, 20000, "",
                "print(42, file=open('" EXPORTED "', 'w'))" },
};

struct selftest_cli {
        struct runner runner;
        const char *daemon;
        unsigned n, failed;
        char folder[64];
        char verdict[300];         /* of the grading; empty: as expected */
        bool graded;
};

static int take_selftest_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct selftest_cli *cli = owner;
        (void)name, (void)err;
        cli->daemon = value;
        return 0;
}

static void selftest_report(struct selftest_cli *cli, const char *name, const char *problem)
{
        struct buf buf;
        buf_init(&buf, 8 * KIB);
        cli->n++;
        cli->failed += problem != NULL;
        buf_printf(&buf, "%s %u - %s\n%s", problem ? "not ok" : "ok", cli->n, name, problem ? "# " : "");
        if (problem)
                cli_add_reason(&buf, problem);
        fwrite(buf.bytes, 1, buf.len, stdout);
        fflush(stdout);
        buf_done(&buf);
}

static void selftest_fill(struct selftest_cli *cli, const struct test *test)
{
        struct run_request *request = runner_request(&cli->runner);
        struct arena *arena = run_arena(cli->runner.run);
        runner_set_program(&cli->runner, test->language, test->code);
        SET(request, run_request, profile, arena_text(arena, "standard"));
        SET(request, run_request, policy, arena_text(arena, "%s", test->policy));
        SET(&request->limits, limits, wall_ms, test->wall_ms);
        MARK(request, run_request, limits);
        if (!test->exports)
                return;
        struct export_rule *rule = arena_alloc(arena, sizeof *rule);
        *rule = (struct export_rule){ 0 };
        SET(rule, export_rule, pattern, arena_text(arena, EXPORTED));
        SET(rule, export_rule, path, arena_text(arena, "%s", cli->folder));
        request->exports = rule;
        request->exports_n = 1;
        MARK(request, run_request, exports);
}

/* The text of the exported file, which is removed. */
static void selftest_take_exported(struct selftest_cli *cli, char *text, size_t size)
{
        char path[sizeof cli->folder + sizeof EXPORTED];
        snprintf(path, sizeof path, "%s/" EXPORTED, cli->folder);
        auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
        text[n < 0 ? 0 : n] = 0;
        unlink(path);
        rmdir(cli->folder);
}

static void selftest_run(struct selftest_cli *cli, const struct test *test)
{
        struct runner *runner = &cli->runner;
        struct csn_error err = { 0 };
        char text[16] = "", problem[300];
        snprintf(cli->folder, sizeof cli->folder, "/tmp/caisson-selftest-XXXXXX");
        if (test->exports && !mkdtemp(cli->folder)) {
                snprintf(problem, sizeof problem, "%s: %s", cli->folder, strerrordesc_np(errno));
                selftest_report(cli, test->name, problem);
                return;
        }
        runner->daemon = test->exports ? "never" : cli->daemon;
        selftest_fill(cli, test);
        int rc = runner_run(runner, &err);
        if (test->exports)
                selftest_take_exported(cli, text, sizeof text);
        if (rc < 0) {
                selftest_report(cli, test->name, err.text);
                return;
        }
        const char *status = json_string_value(json_object_get(runner->record, "status"));
        const char *printed = json_string_value(json_object_get(runner->record, "stdout"));
        const char *message = json_string_value(json_object_get(json_object_get(runner->record, "error"), "message"));
        bool good = status && strcmp(status, status_name((int)test->status)) == 0;
        if (good && printed && strcmp(printed, test->printed) == 0 && (!test->exports || strcmp(text, ANSWER) == 0)) {
                selftest_report(cli, test->name, NULL);
                return;
        }
        if (good)
                snprintf(problem, sizeof problem, "the program's %s is not what it should be",
                        test->exports ? "file" : "output");
        else
                snprintf(problem, sizeof problem, "the status is %s instead of %s%s%s", status ? status : "missing",
                        status_name((int)test->status), message ? ": " : "", message ? message : "");
        selftest_report(cli, test->name, problem);
}

static void on_graded(void *owner, const struct grade_result *result)
{
        struct selftest_cli *cli = owner;
        bool good = result->status == status_COMPLETED && result->cases_n == 2 && result->passed == 1 &&
                result->failed == 1;
        if (!good)
                snprintf(cli->verdict, sizeof cli->verdict, "the status is %s, and %" PRIu64 " of %" PRIu64
                        " cases passed instead of 1 of 2: %.200s", status_name(result->status), result->passed,
                        result->total, result->error.message ? result->error.message : "");
        cli->graded = true;
}

static void selftest_grade(struct selftest_cli *cli)
{
        static const struct grading_events events = { .done = on_graded };
        static const char name[] = "a right case passes, and a wrong one fails";
        struct engine *engine = cli->runner.engine;
        struct csn_error err = { 0 };
        struct grader *grader = grader_open(engine, cli->runner.settings);
        struct grading *grading = grading_new(grader);
        json_t *json = model_load(GRADING, sizeof GRADING - 1, NULL);
        int rc = grading_decode(json, grading_arena(grading), grading_request(grading), &err);
        if (rc == 0)
                grading_start(grading, true, &events, cli);
        while (rc == 0 && !cli->graded)
                rc = engine_step(engine, -1, &err);
        selftest_report(cli, name, rc < 0 ? err.text : cli->verdict[0] ? cli->verdict : NULL);
        json_decref(json);
        grading_free(grading);
        grader_close(grader);
}

static int selftest(int argc, char **argv, const struct settings *settings, const struct cli_settings *from)
{
        struct selftest_cli cli = { .runner = { .settings = settings, .from = from } };
        struct csn_error err = { 0 };
        int rc = cli_parse(cli_selftest_options, argc, argv, take_selftest_option, &cli, &err);
        if (rc < 0)
                return cli_fail(&err);
        if (optind < argc)
                return cli_unknown_argument("selftest", cli_selftest_options, argv[optind]);
        if (runner_open(&cli.runner, &err) < 0) {
                printf("Bail out! %s\n", err.text);
                return 1;
        }
        printf("TAP version 13\n1..%zu\n", ARRAY_LEN(tests) + 1);
        for (size_t i = 0; i < ARRAY_LEN(tests); i++)
                selftest_run(&cli, &tests[i]);
        selftest_grade(&cli);
        if (cli.failed)
                printf("# %u of %u failed; caisson doctor names what this host lacks\n", cli.failed, cli.n);
        runner_close(&cli.runner);
        return cli.failed > 0;
}

/* ---- bench ---- */

#define RUNS 100
#define RUNS_MAX 10000
#define PACKAGES "six"
#define METHOD "Milliseconds from the request to the whole record; the runs of a row follow each other without a pause.\n" \
        "FIRST is the first run of a row, which is not among RUNS. New dependencies are built in that one run"

const struct cli_option cli_bench_options[] = {
        { "runs", 'n', "N", "Runs of each row. [100]", NULL },
        { "packages", 0, "SPECS", "Python packages of the rows with dependencies. [six]", NULL },
        { "json", 'j', NULL, "Print JSON.", NULL },
        { "daemon", 0, "WORD", "Run by way of caissond; auto: if there is one that can.", &choices_transports },
        { NULL, 0, NULL, NULL, NULL },
};

enum row_kind { ROW_PLAIN, ROW_NEW, ROW_CACHED };   /* the last two have packages */

static const struct row { const char *name, *title, *language, *code; enum row_kind kind; } rows[] = {
        { "simple_python",       "simple Python",       "python",     "print(6 * 7)",       ROW_PLAIN },
        { "new_dependencies",    "new dependencies",    "python",     "print(6 * 7)",       ROW_NEW },
        { "cached_dependencies", "cached dependencies", "python",     "print(6 * 7)",       ROW_CACHED },
        { "bash",                "Bash",                "bash",       "echo $((6 * 7))",    ROW_PLAIN },
        { "node",                "Node",                "javascript", "console.log(6 * 7)", ROW_PLAIN },
};

struct bench_cli {
        struct runner runner;
        uint64_t runs;
        const char *packages;
        bool json, failed;
        double *times;             /* of a row */
        json_t *rows;
};

static int take_bench_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct bench_cli *cli = owner;
        if (strcmp(name, "runs") == 0)
                return cli_parse_number("runs", value, 1, RUNS_MAX, &cli->runs, err);
        if (strcmp(name, "packages") == 0 && !value[strspn(value, " ,;")])
                return err_field(err, "--packages", "bench: --packages names no package; give one, such as six");
        if (strcmp(name, "packages") == 0)
                cli->packages = value;
        else if (strcmp(name, "daemon") == 0)
                cli->runner.daemon = value;
        else
                cli->json = true;
        return 0;
}

static int bench_run(struct bench_cli *cli, const struct row *row, struct csn_error *err)
{
        struct runner *runner = &cli->runner;
        struct run_request *request = runner_request(runner);
        runner_set_program(runner, row->language, row->code);
        if (row->kind != ROW_PLAIN) {
                if (model_parse_packages(cli->packages, run_arena(runner->run), &request->packages,
                        &request->packages_n, err) < 0)
                        return -err->code;
                MARK(request, run_request, packages);
        }
        return runner_run(runner, err);
}

/* Why the last run does not count for its row, or NULL.  *ret_failed: a plain program failed on this host. */
static const char *bench_obstacle(struct bench_cli *cli, const struct row *row, bool first, bool *ret_failed)
{
        const char *problem = runner_problem(&cli->runner, ANSWER);
        json_t *layer = json_array_get(json_object_get(cli->runner.record, "layers"), 0);
        bool cached = json_is_true(json_object_get(layer, "cached"));
        *ret_failed = problem && row->kind == ROW_PLAIN;
        if (problem || row->kind == ROW_PLAIN)
                return problem;
        if (!layer)
                return cli->runner.path[0] ? "the daemon installs no packages; see packages.python.index_url"
                                           : "packages are installed by a daemon only, and none was used";
        if (row->kind == ROW_NEW && cached)
                return "the layer of these packages was built before; see caisson layers remove, or --packages";
        return row->kind == ROW_CACHED && !first && !cached ? "the layer of the packages was not kept" : NULL;
}

static int by_size(const void *a, const void *b)
{
        const double *x = a, *y = b;
        return (*x > *y) - (*x < *y);
}

/* By nearest rank: the time of a real run. */
static double percentile(const double *times, uint64_t n, unsigned percent)
{
        return times[(n * percent + 99) / 100 - 1];
}

static json_t *json_ms(double ms)
{
        return json_real((double)(uint64_t)(ms * 1000 + 0.5) / 1000);
}

static json_t *bench_describe(const struct row *row, const double *times, uint64_t n, double first, const char *why,
        bool failed)
{
        json_t *json = json_object();
        json_object_set_new(json, "name", json_string(row->name));
        json_object_set_new(json, "title", json_string(row->title));
        json_object_set_new(json, "runs", json_integer((json_int_t)n));
        if (why) {
                json_object_set_new(json, failed ? "failed" : "left_out", json_string(why));
                return json;
        }
        json_object_set_new(json, "first_ms", json_ms(first));
        if (n) {
                json_object_set_new(json, "p50_ms", json_ms(percentile(times, n, 50)));
                json_object_set_new(json, "p99_ms", json_ms(percentile(times, n, 99)));
        }
        return json;
}

/* A layer is new once, so its row is the first run alone. */
static int bench_measure(struct bench_cli *cli, const struct row *row, struct csn_error *err)
{
        uint64_t n = row->kind == ROW_NEW ? 0 : cli->runs, done = 0;
        double first = 0;
        bool failed = false;
        const char *why = NULL;
        for (uint64_t i = 0; i <= n && !why; i++) {
                if (bench_run(cli, row, err) < 0)
                        return -err->code;
                why = bench_obstacle(cli, row, i == 0, &failed);
                if (i == 0)
                        first = cli->runner.ms;
                else
                        cli->times[done++] = cli->runner.ms;
        }
        if (!why)
                qsort(cli->times, done, sizeof *cli->times, by_size);
        cli->failed = cli->failed || failed;
        json_array_append_new(cli->rows, bench_describe(row, cli->times, why ? 0 : done, first, why, failed));
        return 0;
}

static void add_ms(struct buf *buf, json_t *row, const char *name)
{
        json_t *ms = json_object_get(row, name);
        char text[40] = "-";
        if (ms)
                snprintf(text, sizeof text, "%.2f", json_real_value(ms));
        buf_printf(buf, " %9s", text);
}

static void bench_print_text(const struct bench_cli *cli)
{
        struct buf buf;
        json_t *row;
        size_t i;
        buf_init(&buf, MIB);
        buf_printf(&buf, "%s%s.\n%s.\n\n%-20s %6s %9s %9s %9s\n",
                cli->runner.path[0] ? "By the daemon at " : "By an engine of this process, without a daemon",
                cli->runner.path, METHOD, "ROW", "RUNS", "FIRST", "P50", "P99");
        json_array_foreach(cli->rows, i, row) {
                const char *failed = json_string_value(json_object_get(row, "failed"));
                const char *why = failed ? failed : json_string_value(json_object_get(row, "left_out"));
                buf_printf(&buf, "%-20s ", json_string_value(json_object_get(row, "title")));
                if (why) {
                        buf_printf(&buf, "%s", failed ? "failed: " : "left out: ");
                        cli_add_reason(&buf, why);
                } else {
                        buf_printf(&buf, "%6" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(row, "runs")));
                        add_ms(&buf, row, "first_ms");
                        add_ms(&buf, row, "p50_ms");
                        add_ms(&buf, row, "p99_ms");
                        cli_end_line(&buf);
                }
        }
        fwrite(buf.bytes, 1, buf.len, stdout);
        buf_done(&buf);
}

static void bench_print_json(const struct bench_cli *cli)
{
        const char *path = cli->runner.path;
        cli_print_json(json_pack("{s:s, s:s?, s:s, s:O}", "by", path[0] ? "daemon" : "engine", "socket",
                path[0] ? path : NULL, "method",
                "request to record, one after another, the first apart", "rows", cli->rows));
}

static int bench(int argc, char **argv, const struct settings *settings, const struct cli_settings *from)
{
        struct bench_cli cli = { .runner = { .settings = settings, .from = from }, .runs = RUNS, .packages = PACKAGES };
        struct csn_error err = { 0 };
        int rc = cli_parse(cli_bench_options, argc, argv, take_bench_option, &cli, &err);
        if (rc == 0 && optind < argc)
                return cli_unknown_argument("bench", cli_bench_options, argv[optind]);
        cli.times = mem_alloc(cli.runs * sizeof *cli.times);
        cli.rows = json_array();
        rc = rc < 0 ? rc : runner_open(&cli.runner, &err);
        for (size_t i = 0; rc == 0 && i < ARRAY_LEN(rows); i++)
                rc = bench_measure(&cli, &rows[i], &err);
        if (rc == 0 && cli.json)
                bench_print_json(&cli);
        else if (rc == 0)
                bench_print_text(&cli);
        runner_close(&cli.runner);
        json_decref(cli.rows);
        free(cli.times);
        return rc < 0 ? cli_fail(&err) : cli.failed;
}

/* ---- commands ---- */

static int with_settings(int argc, char **argv,
        int (*command)(int argc, char **argv, const struct settings *settings, const struct cli_settings *from))
{
        struct cli_settings from;
        struct settings settings;
        argc = cli_take_settings(argc, argv, &from);
        int status = argc < 0 ? 64 : cli_load_settings(&from, &settings);
        if (status == 0)
                status = command(argc, argv, &settings, &from);
        if (argc >= 0)
                settings_done(&settings);
        return status;
}

int cli_selftest(int argc, char **argv)
{
        return with_settings(argc, argv, selftest);
}

int cli_bench(int argc, char **argv)
{
        return with_settings(argc, argv, bench);
}
