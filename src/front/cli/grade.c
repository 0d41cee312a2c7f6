/*
 * caisson grade: submissions as JSON lines, verdicts in the same order.
 *
 * The command has an engine of its own, kept warm for the batch: the engine does no other work, and a batch takes
 * nothing from a daemon's users but the machine.
 */
#include "front/cli/grade.h"
#include "front/library/review.h"

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LINE_MAX_BYTES (64 * MIB)
#define JOBS_MAX 1024
#define AHEAD 64                   /* results waiting for an earlier result */
#define PROGRESS_MS 100
#define BAR 30

enum { EXIT_PASSED = 0, EXIT_NOT_PASSED = 1, EXIT_BAD = 64, EXIT_ENGINE = 125, EXIT_INTERRUPTED = 130 };

const struct cli_option cli_grade_options[] = {
        { "jobs", 'j', "N", "Submissions at once; without it as many as there are cores.", NULL },
        { "json", 0, NULL, "One JSON object a line for each submission.", NULL },
        { "junit", 0, NULL, "One JUnit XML document.", NULL },
        { "checker", 0, "WORD", "The older name of --compare.", &choices_compare },
        { "verbose", 'v', NULL, "Show what passed, too, and every case that did not.", NULL },
        { "progress", 0, NULL, "Show how far it is on standard error, also where that is no terminal.", NULL },
        { "no-progress", 0, NULL, "Do not.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

const struct object *const cli_grade_objects[] = { &object_grade_request, &object_limits, NULL };

/* A submission, until its result is printed. */
struct item {
        struct item *next;
        struct grade_cli *cli;
        struct grading *grading;
        struct buf text;           /* to print */
        bool done;
};

struct grade_cli {
        struct arena arena;
        struct engine *engine;
        struct grader *grader;
        struct grade_request options;
        struct cli_field fields[96];
        size_t fields_n, jobs;
        bool json, junit, verbose, progress, no_progress, interrupted;
        char **paths;
        size_t paths_n, path_at;
        FILE *file;
        uint64_t line, total;      /* total: lines of all files; 0: not known */
        char *text;
        size_t text_size;
        struct item *first, *last;
        size_t live, items;
        struct grade_totals totals;
        uint64_t shown_us;
        size_t done;
        struct watch signals;
        int status;
};

/* ---- options ---- */

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct grade_cli *cli = owner;
        if (strcmp(name, "jobs") == 0) {
                char *end;
                errno = 0;
                cli->jobs = strtoul(value, &end, 10);
                if (*end || errno || cli->jobs < 1 || cli->jobs > JOBS_MAX)
                        return err_field(err, "--jobs", "grade: --jobs is \"%.20s\"; it has to be 1 to %d", value,
                                JOBS_MAX);
                return 0;
        }
        bool *const flags[] = { &cli->json, &cli->junit, &cli->verbose, &cli->progress, &cli->no_progress };
        static const char *const names[] = { "json", "junit", "verbose", "progress", "no-progress" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strcmp(name, names[i]) == 0) {
                        *flags[i] = true;
                        return 0;
                }
        if (strcmp(name, "checker") == 0)
                name = "compare";
        for (size_t i = 0; i < cli->fields_n; i++)
                if (strcmp(name, cli->fields[i].field->option) == 0) {
                        bool limit = cli->fields[i].object == &object_limits;
                        if (limit)
                                MARK(&cli->options, grade_request, limits);
                        return cli_set_field(&cli->fields[i],
                                limit ? (void *)&cli->options.limits : (void *)&cli->options, value, &cli->arena, err);
                }
        return 0;
}

/* Options of the command and of the fields; from the arena. */
static const struct cli_option *all_options(struct grade_cli *cli)
{
        size_t n = ARRAY_LEN(cli_grade_options) - 1;
        cli->fields_n = cli_fields_of(cli_grade_objects, cli->fields, ARRAY_LEN(cli->fields));
        struct cli_option *options = arena_alloc(&cli->arena, (n + cli->fields_n + 1) * sizeof *options);
        memcpy(options, cli_grade_options, n * sizeof *options);
        for (size_t i = 0; i < cli->fields_n; i++) {
                const struct field *field = cli->fields[i].field;
                options[n++] = (struct cli_option){ field->option, cli_field_letter(&cli->fields[i]),
                        field->kind == KIND_BOOL ? NULL : "VALUE", field->help, field->choices };
        }
        options[n] = (struct cli_option){ NULL, 0, NULL, NULL, NULL };
        return options;
}

/* ---- output ---- */

static void show_progress(struct grade_cli *cli, bool last)
{
        uint64_t now = clock_us();
        double seconds = (double)(now - cli->totals.begun_us) / 1e6;
        char bar[BAR + 1];
        if (!cli->progress || (!last && now - cli->shown_us < PROGRESS_MS * 1000))
                return;
        cli->shown_us = now;
        if (last) {
                fprintf(stderr, "\r\033[K");
        } else if (cli->total) {
                size_t full = (size_t)(cli->done * BAR / cli->total);
                memset(bar, ' ', BAR);
                memset(bar, '#', full < BAR ? full : BAR);
                bar[BAR] = 0;
                fprintf(stderr, "\r[%s] %zu/%llu, %zu passed, %.1f/s\033[K", bar, cli->done,
                        (unsigned long long)cli->total, cli->totals.all_passed, (double)cli->done / seconds);
        } else {
                fprintf(stderr, "\r%zu graded, %zu passed, %.1f/s\033[K", cli->done, cli->totals.all_passed,
                        (double)cli->done / seconds);
        }
        fflush(stderr);
}

static void note_status(struct grade_cli *cli, const struct grade_result *result)
{
        int status = EXIT_PASSED;
        if (grade_is_trouble(result))
                status = result->status == status_BAD_REQUEST || result->status == status_UNSUPPORTED_LANGUAGE
                        ? EXIT_BAD
                        : EXIT_ENGINE;
        else if (!grade_is_good(result))
                status = EXIT_NOT_PASSED;
        cli->status = status > cli->status ? status : cli->status;
}

/* In the order of the input. */
static void print_done(struct grade_cli *cli)
{
        while (cli->first && cli->first->done) {
                struct item *item = cli->first;
                if (cli->progress && item->text.len && isatty(STDOUT_FILENO))
                        fprintf(stderr, "\r\033[K");
                fwrite(item->text.bytes ? item->text.bytes : "", 1, item->text.len, stdout);
                cli->first = item->next;
                if (!cli->first)
                        cli->last = NULL;
                cli->items--;
                buf_done(&item->text);
                free(item);
        }
        fflush(stdout);
}

static void on_done(void *owner, const struct grade_result *result)
{
        struct item *item = owner;
        struct grade_cli *cli = item->cli;
        grade_count(&cli->totals, result);
        note_status(cli, result);
        if (cli->json) {
                json_t *json = front_grade_result(result, grading_request(item->grading)->aliases);
                if (model_dump(json, false, &item->text))
                        buf_add(&item->text, "\n", 1);
                json_decref(json);
        } else if (cli->junit) {
                grade_junit(result, &item->text);
        } else {
                grade_show(result, cli->verbose, &item->text);
        }
        grading_free(item->grading);
        item->grading = NULL;
        item->done = true;
        cli->live--;
        cli->done++;
        print_done(cli);
        show_progress(cli, false);
}

static const struct grading_events events = { .done = on_done };

/* ---- input ---- */

static struct item *new_item(struct grade_cli *cli)
{
        struct item *item = mem_alloc(sizeof *item);
        *item = (struct item){ .cli = cli, .grading = grading_new(cli->grader) };
        buf_init(&item->text, FRONT_RECORD_MAX);
        if (cli->last)
                cli->last->next = item;
        else
                cli->first = item;
        cli->last = item;
        cli->items++;
        cli->live++;
        return item;
}

/* Options are laid over a request read before, but the format decides how a line is read. */
static void set_format(const struct grade_cli *cli, json_t *json)
{
        if (HAS(&cli->options, grade_request, format) && json_is_object(json))
                json_object_set_new(json, "format",
                        json_string(choices_grade_format.values[cli->options.format].text));
}

static void begin(struct grade_cli *cli, json_t *json)
{
        struct csn_error err;
        struct item *item = new_item(cli);
        struct arena *arena = grading_arena(item->grading);
        struct grade_request *request = grading_request(item->grading), given = { 0 };
        set_format(cli, json);
        if (grading_decode(json, arena, &given, &err) < 0) {
                if (err.code == CSN_E_RECORD)
                        err_wrap(&err, "%s, line %llu", cli->paths[cli->path_at], (unsigned long long)cli->line);
                if (HAS(&given, grade_request, id))
                        SET(request, grade_request, id, given.id);
                grading_refuse(item->grading, &err, &events, item);
                return;
        }
        model_overlay(&object_grade_request, &given, &cli->options, arena);
        *request = given;
        grading_start(item->grading, true, &events, item);
}

static void refuse_line(struct grade_cli *cli, const char *why)
{
        struct csn_error err;
        struct item *item = new_item(cli);
        err_field(&err, "", "%s, line %llu: %s", cli->paths[cli->path_at], (unsigned long long)cli->line, why);
        grading_refuse(item->grading, &err, &events, item);
}

static int open_next(struct grade_cli *cli, struct csn_error *err)
{
        const char *path = cli->paths[cli->path_at];
        cli->line = 0;
        cli->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
        return cli->file ? 0 : err_field(err, "", "grade: %s: %s", path, strerrordesc_np(errno));
}

static void close_file(struct grade_cli *cli)
{
        if (cli->file && cli->file != stdin)
                fclose(cli->file);
        cli->file = NULL;
}

/* Begin the next submission.  1: begun; 0: the input is at its end; negative: an error. */
static int take_next(struct grade_cli *cli, struct csn_error *err)
{
        while (cli->path_at < cli->paths_n) {
                json_error_t where;
                if (!cli->file && open_next(cli, err) < 0)
                        return -err->code;
                ssize_t len = getline(&cli->text, &cli->text_size, cli->file);
                if (len < 0) {
                        close_file(cli);
                        cli->path_at++;
                        continue;
                }
                cli->line++;
                if (strspn(cli->text, " \t\r\n") == (size_t)len)
                        continue;
                if ((uint64_t)len > LINE_MAX_BYTES) {
                        refuse_line(cli, "the line is longer than 64 MiB");
                        return 1;
                }
                json_t *json = model_load(cli->text, (size_t)len, &where);
                if (json) {
                        begin(cli, json);
                } else {
                        char why[JSON_ERROR_TEXT_LENGTH + 40];
                        snprintf(why, sizeof why, "the line is not JSON (%s)", where.text);
                        refuse_line(cli, why);
                }
                json_decref(json);
                return 1;
        }
        return 0;
}

/* For the progress bar; an unreadable file is reported at its turn. */
static void count_lines(struct grade_cli *cli)
{
        for (size_t i = 0; i < cli->paths_n; i++) {
                FILE *file = strcmp(cli->paths[i], "-") == 0 ? NULL : fopen(cli->paths[i], "re");
                if (!file) {
                        cli->total = 0;
                        return;
                }
                while (getline(&cli->text, &cli->text_size, file) >= 0)
                        cli->total += strspn(cli->text, " \t\r\n") != strlen(cli->text);
                fclose(file);
        }
}

/* ---- in order ---- */

static void on_signal(struct watch *watch, uint32_t what)
{
        struct grade_cli *cli = watch->owner;
        struct signalfd_siginfo info;
        (void)what;
        if (read(watch->fd, &info, sizeof info) != (ssize_t)sizeof info)
                return;
        if (cli->interrupted)
                _exit(EXIT_INTERRUPTED);   /* the supervisor sees our end and kills the rest */
        cli->interrupted = true;
        for (struct item *item = cli->first; item; item = item->next)
                if (item->grading)
                        grading_cancel(item->grading);
}

static int watch_signals(struct grade_cli *cli, struct csn_error *err)
{
        signal(SIGPIPE, SIG_IGN);
        int fd = io_signals(io_ends, IO_ENDS, err);
        if (fd < 0)
                return fd;
        cli->signals = (struct watch){ .fd = fd, .ready = on_signal, .owner = cli };
        return loop_watch(engine_loop(cli->engine), &cli->signals, fd, EPOLLIN, err);
}

static const char *input_of(const struct grade_cli *cli)
{
        return cli->paths_n > 1 ? "these files" : strcmp(cli->paths[0], "-") == 0 ? "standard input" : cli->paths[0];
}

static int grade_all(struct grade_cli *cli, struct csn_error *err)
{
        bool more = true;
        cli->totals.begun_us = clock_us();
        if (cli->junit)
                printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
        while (more || cli->live) {
                while (more && !cli->interrupted && cli->live < cli->jobs && cli->items < cli->jobs + AHEAD) {
                        int rc = take_next(cli, err);
                        if (rc < 0)
                                return rc;
                        more = rc > 0;
                }
                more = more && !cli->interrupted;
                if (cli->live && engine_step(cli->engine, -1, err) < 0)
                        return -err->code;
        }
        show_progress(cli, true);
        if (cli->junit)
                printf("</testsuites>\n");
        if (!cli->done && !cli->interrupted)
                return err_field(err, "", "grade: there is no submission in %s; give JSON lines, one submission a line",
                        input_of(cli));
        if (!cli->json && !cli->junit) {
                struct buf text;
                buf_init(&text, 4 * KIB);
                grade_show_totals(&cli->totals, &text);
                fwrite(text.bytes, 1, text.len, stdout);
                buf_done(&text);
        }
        return 0;
}

static int prepare(struct grade_cli *cli, int argc, char **argv, struct csn_error *err)
{
        static char dash[] = "-", *standard[] = { dash };
        if (cli_parse(all_options(cli), argc, argv, take_option, cli, err) < 0)
                return -err->code;
        if (cli->json && cli->junit)
                return err_field(err, "--junit", "grade: --json and --junit do not go together");
        cli->paths = argv + optind;
        cli->paths_n = (size_t)(argc - optind);
        if (!cli->paths_n && isatty(STDIN_FILENO))
                return err_field(err, "",
                        "grade: there is nothing to grade; give files of JSON lines, or - for standard input");
        if (!cli->paths_n) {
                cli->paths = standard;
                cli->paths_n = 1;
        }
        if (!cli->jobs)
                cli->jobs = (size_t)max_u64((uint64_t)sysconf(_SC_NPROCESSORS_ONLN), 1);
        cli->progress = !cli->no_progress && (cli->progress || isatty(STDERR_FILENO));
        if (cli->progress)
                count_lines(cli);
        return 0;
}

static int grade(int argc, char **argv, const struct settings *settings)
{
        struct grade_cli cli = { .signals = { .fd = -1 } };
        struct csn_error err = { 0 };
        if (prepare(&cli, argc, argv, &err) == 0 && engine_open(settings, &cli.engine, &err) == 0 &&
                watch_signals(&cli, &err) == 0) {
                loop_set_batch_scheduling();
                library_set_review(cli.engine, settings);
                engine_warm(cli.engine, true);
                cli.grader = grader_open(cli.engine, settings);
                grade_all(&cli, &err);
        }
        grader_close(cli.grader);
        for (struct item *next; cli.first; cli.first = next) {
                next = cli.first->next;
                buf_done(&cli.first->text);
                free(cli.first);
        }
        if (cli.engine)
                loop_unwatch(engine_loop(cli.engine), &cli.signals);
        fd_close(&cli.signals.fd);
        engine_close(cli.engine);
        close_file(&cli);
        free(cli.text);
        arena_done(&cli.arena);
        if (err.code)
                return cli_fail(&err);
        return cli.interrupted ? EXIT_INTERRUPTED : cli.status;
}

int cli_grade(int argc, char **argv)
{
        return cli_with_settings(argc, argv, grade);
}
