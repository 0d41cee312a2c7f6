/* Findings of a check for people: each place with its line and a mark below. */
#include "front/cli/check.h"

#include <inttypes.h>

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

/* The line, and below the line a mark from `column` to `end`; tabs stay, so both lines agree. */
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
        printf("%s%s:%" PRIu64 ":%" PRIu64 ":%s %s%s%s ", colours->bold, file, finding->line, finding->column,
                colours->off, serious[finding->severity & 3] ? colours->red : colours->yellow,
                choices_severity.values[finding->severity].text, colours->off);
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

void findings_print(const struct check_result *result)
{
        struct colours colours = colours_of(stdout);
        const char *file = result->file ? result->file : "program";
        for (size_t i = 0; i < result->findings_n; i++)
                print_finding(file, &result->findings[i], &colours);
        if (HAS(result, check_result, error) && HAS(&result->error, failure, line)) {
                const char *type = result->error.type ? result->error.type : "error", *message = result->error.message;
                size_t len = strlen(type);
                if (strncmp(message, type, len) == 0 && strncmp(message + len, ": ", 2) == 0)
                        message += len + 2;   /* Node.js repeats the type in its message */
                printf("%s%s:%" PRIu64 ":%" PRIu64 ":%s %s%s:%s ", colours.bold, file, result->error.line,
                        result->error.column, colours.off, colours.red, type, colours.off);
                print_visible(message);
                putchar('\n');
                if (result->error.text)
                        print_line(result->error.text, result->error.column, 0, &colours);
        }
        bool denied = result->verdict == verdict_DENY;
        printf("%s%s:%s %s%s%s by %s", colours.bold, file, colours.off, denied ? colours.red : "",
                denied ? "denied" : "allowed", denied ? colours.off : "", result->policy);
        if (result->reason[0]) {
                printf(": ");
                for (const char *c = result->reason; *c; c++)
                        fputc(*c == '\n' ? ' ' : (unsigned char)*c < ' ' ? '?' : *c, stdout);
        }
        putchar('\n');
}
