/* Output of a run: the stream of output, the record, a text, or a summary; the same with and without the daemon. */
#include "front/cli/toolkit/toolkit.h"

#include <inttypes.h>

void show_lost(struct cli_show *show)
{
        show->lost = true;
        if (show->exit_status == 0)
                show->exit_status = EXIT_LOST;
}

bool show_output(struct cli_show *show, int stream, const void *bytes, size_t len)
{
        static char visible[4 * 64 * KIB];
        show->shown[stream] += len;
        if (!show->streaming || show->closed[stream])
                return true;
        if (show->tty[stream] && !show->raw && len <= sizeof visible / 4) {
                len = cli_visible(bytes, len, visible);
                bytes = visible;
        }
        show->closed[stream] = io_write_all(stream, bytes, len) < 0;
        /* EPIPE: the reader is gone, which is no error.  A full disk is an error. */
        if (show->closed[stream] && errno != EPIPE) {
                fprintf(stderr, "caisson: write %s: %s\n", stream == 1 ? "standard output" : "standard error",
                        strerrordesc_np(errno));
                show_lost(show);
        }
        return !show->closed[stream];
}

static int exit_status(const struct run_result *result)
{
        int fixed = status_exit(result->status);
        if (fixed >= 0)
                return fixed;
        if (HAS(result, run_result, signal))
                return 128 + (int)result->signal;
        int code = HAS(result, run_result, exit_code) ? (int)result->exit_code : 125;
        /* A limit was hit although the program's first process ended well (a fork bomb in the background). */
        return code == 0 && result->status != status_COMPLETED ? 1 : code;
}

static void print_line(const char *colour, bool colours, const char *head, const char *text)
{
        char *visible = mem_alloc(4 * strlen(text) + 1);
        visible[cli_visible(text, strlen(text), visible)] = 0;
        fprintf(stderr, "%s%s%s%s%s\n", colours ? colour : "", head, colours ? "\033[0m" : "", head[0] ? ": " : "",
                visible);
        free(visible);
}

/* A sentence of the engine; pointer: the wrong field of the request, or NULL. */
static void print_told(const char *colour, const char *head, const char *text, const char *pointer)
{
        struct arena arena = { 0 };
        print_line(colour, cli_colours(stderr), head, cli_in_options(text, pointer, &arena));
        arena_done(&arena);
}

#define FINDINGS_SHOWN 20

static void print_finding(const struct finding *finding, bool colours)
{
        struct arena arena = { 0 };
        char place[60];
        snprintf(place, sizeof place, "%" PRIu64 ":%" PRIu64, finding->line, finding->column);
        bool more = HAS(finding, finding, advice);
        print_line("\033[33m", colours, place,
                arena_text(&arena, "%s%s%s", finding->message, more ? ". " : "", more ? finding->advice : ""));
        arena_done(&arena);
}

/* A program ending by itself has printed its error; the end of any other program is known to the engine alone. */
static bool is_ours_to_tell(const struct run_result *result)
{
        return result->status != status_COMPLETED && result->status != status_FAILED &&
               !(result->status == status_SYNTAX_ERROR && result->error.type);
}

static bool is_loss(const struct warning *warning)
{
        return strcmp(warning->code, RUN_EXPORT_FAILED) == 0;
}

static void print_losses(struct cli_show *show, const struct run_result *result)
{
        for (size_t i = 0; i < result->warnings_n; i++)
                if (is_loss(&result->warnings[i])) {
                        show_lost(show);
                        if (!show->quiet)
                                print_told("\033[31m", "caisson", result->warnings[i].text, NULL);
                }
}

/*
 * Gaps of the record are no news for a reader of the output: the stream was printed whole, and a text form marks its
 * gaps.
 */
static bool is_about_the_record(const struct warning *warning)
{
        return strcmp(warning->code, RUN_OUTPUT_TRUNCATED) == 0 || strcmp(warning->code, RUN_VALUE_TRUNCATED) == 0;
}

/* Warnings do not depend on a terminal: a log of cron or of CI is read later, when the output is gone. */
static void print_warnings(const struct cli_show *show, const struct run_result *result)
{
        for (size_t i = 0; i < result->warnings_n && !show->quiet; i++)
                if (!is_loss(&result->warnings[i]) && (show->verbose || !is_about_the_record(&result->warnings[i])))
                        print_told("\033[33m", "caisson: warning", result->warnings[i].text, NULL);
}

static void print_error(const struct run_result *result, bool colours)
{
        const struct failure *error = &result->error;
        char head[80];
        snprintf(head, sizeof head, "caisson: %s", status_name(result->status));
        bool told = error->type && result->status == status_FAILED;   /* the traceback is on stderr already */
        if (HAS(result, run_result, error) && !told && !(result->status == status_SYNTAX_ERROR && error->type))
                print_told("\033[31m", head, error->message, error->field);
        if (HAS(result, run_result, error) && HAS(error, failure, hint))
                print_told("\033[33m", "hint", error->hint, NULL);
        for (size_t i = 0; i < result->findings_n && i < FINDINGS_SHOWN; i++)
                print_finding(&result->findings[i], colours);
}

static void print_files(const struct run_result *result, bool colours)
{
        for (size_t i = 0; i < result->files_n && i < 20; i++) {
                const struct output_file *file = &result->files[i];
                char size[40], text[1400];
                size_print(file->size_bytes, size, sizeof size);
                snprintf(text, sizeof text, "%s %s (%s, %s)%s%s", file->changed ? "changed" : "new", file->name, size,
                        file->mime,
                        file->path            ? " -> "
                                : file->error ? ": "
                                              : "",
                        file->path            ? file->path
                                : file->error ? file->error
                                              : "");
                print_line("\033[2m", colours, "file", text);
        }
}

static void print_summary(const struct cli_show *show, const struct run_result *result)
{
        bool colours = cli_colours(stderr), is_watched = !show->quiet && (show->tty[2] || show->verbose);
        if (is_watched || (!show->quiet && is_ours_to_tell(result)))
                print_error(result, colours);
        print_warnings(show, result);
        if (is_watched)
                print_files(result, colours);
        if (is_watched && show->verbose)
                fprintf(stderr,
                        "%s%s: %.1f ms wall, %.1f ms CPU, %.1f MiB, prepared in %.1f ms, collected in %.1f ms%s\n",
                        colours ? "\033[2m" : "", result->id, result->usage.wall_ms, result->usage.cpu_ms,
                        (double)result->usage.memory_peak_bytes / (double)MIB, result->timings.prepare_ms,
                        result->timings.collect_ms, colours ? "\033[0m" : "");
}

static void print_record(struct cli_show *show, json_t *record)
{
        struct buf text;
        cli_record_in_options(record);
        buf_init(&text, FRONT_RECORD_MAX);
        model_dump(record, show->tty[1], &text);
        if (!buf_add(&text, "\n", 1) || io_write_all(STDOUT_FILENO, text.bytes, text.len) < 0)
                show->exit_status = 125;
        buf_done(&text);
}

static void print_visible(struct cli_show *show, const char *bytes, size_t len)
{
        char *visible = mem_alloc(4 * len + 1);
        if (io_write_all(STDOUT_FILENO, visible, cli_visible(bytes, len, visible)) < 0)
                show->exit_status = 125;
        free(visible);
}

static void print_text(struct cli_show *show, const struct run_result *result)
{
        struct buf buf;
        buf_init(&buf, 8 * MIB + 4 * (size_t)result->limits.output_bytes);
        render_text(show->form, result, &buf);
        if (show->tty[1] && !show->raw)
                print_visible(show, buf.bytes, buf.len);
        else if (io_write_all(STDOUT_FILENO, buf.bytes, buf.len) < 0)
                show->exit_status = 125;
        buf_done(&buf);
}

void show_result(struct cli_show *show, const struct run_result *result, json_t *record)
{
        show->exit_status = exit_status(result);
        if (show->verbose)
                show_outcome(show, result);
        if (show->json)
                print_record(show, record);
        else if (show->as_text)
                print_text(show, result), print_warnings(show, result);
        else
                print_summary(show, result);
        print_losses(show, result);
        if (show->lost)
                show_lost(show);
}

void show_prepare(struct cli_show *show)
{
        for (int stream = 1; stream <= 2; stream++)
                show->tty[stream] = isatty(stream);
        show->streaming = !show->json && !show->as_text;
}
