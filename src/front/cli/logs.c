/* caisson logs: the log of daemons. */
#include "front/cli/cli.h"
#include "front/views/log_reader.h"

#include <poll.h>

#define LIST_MAX (64 * MIB)
#define LOOK_MS 200

const struct cli_option cli_logs_options[] = {
        { "follow", 'f', NULL, "Wait for more, until Ctrl-C.", NULL },
        { "lines", 'n', "N", "How many. [100]", NULL },
        { "level", 0, "WORD", "Lines of this level, and of what is worse. [debug]", &choices_levels },
        { "run", 0, "ID", "Those about a run.", NULL },
        { "request", 0, "ID", "Those about a request of the HTTP interface.", NULL },
        { "trace", 0, "ID", "Those that belong to a trace.", NULL },
        { "owner", 0, "NAME", "Those about a tenant, or a user of the socket such as uid:1000.", NULL },
        { "json", 'j', NULL, "Print lines of JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

struct logs_cli {
        struct logs_filter filter;
        uint64_t lines;
        bool follow, json;
};

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct logs_cli *cli = owner;
        const struct { const char *name, **into;
        } texts[] = {
                { "run", &cli->filter.run },
                { "request", &cli->filter.request },
                { "trace", &cli->filter.trace },
                { "owner", &cli->filter.owner },
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                if (strcmp(name, texts[i].name) == 0)
                        *texts[i].into = value;
        if (strcmp(name, "level") == 0)
                return logs_level(value, "--level", &cli->filter.level, err);
        if (strcmp(name, "lines") == 0)
                return cli_parse_number(name, value, 0, LOGS_LIST_MAX, &cli->lines, err);
        cli->follow = cli->follow || strcmp(name, "follow") == 0;
        cli->json = cli->json || strcmp(name, "json") == 0;
        return 0;
}

static const char *colour_of(const char *level)
{
        return strcmp(level, "error") == 0 ? "\033[31m" : strcmp(level, "warn") == 0 ? "\033[33m" : "";
}

static const char *text_of(const json_t *json, const char *name)
{
        const char *text = json_string_value(json_object_get(json, name));
        return text ? text : "";
}

/* A line of our own, with known members; other lines are left out. */
static void print_line(const char *line, size_t len, bool colours)
{
        static const char *const fields[] = { "owner", "run_id", "request_id", "trace_id" };
        json_t *json = json_loadb(line, len, 0, NULL);
        struct buf buf;
        buf_init(&buf, 64 * KIB);
        const char *level = text_of(json, "level"), *colour = colours ? colour_of(level) : "",
                   *text = text_of(json, "text");
        char visible[4 * 2048 + 1];
        visible[cli_visible(text, min_u64(strlen(text), 2048), visible)] = 0;
        buf_printf(&buf, "%s %s%-5s%s ", text_of(json, "time"), colour, level, colour[0] ? "\033[0m" : "");
        for (char *c = visible; *c; c++)
                *c = *c == '\n' || *c == '\t' ? ' ' : *c;
        buf_printf(&buf, "%s ", visible);
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
                if (text_of(json, fields[i])[0]) {
                        buf_printf(&buf, "%s=", fields[i]);
                        cli_add_cell(&buf, 0, text_of(json, fields[i]));
                }
        cli_end_line(&buf);
        if (json)
                fputs(buf.bytes, stdout);
        buf_done(&buf);
        json_decref(json);
}

/* False: the reader has gone. */
static bool print_lines(struct buf *lines, bool json)
{
        bool colours = cli_colours(stdout);
        if (json && lines->len)
                fwrite(lines->bytes, 1, lines->len, stdout);
        for (size_t at = 0, len; !json && at < lines->len; at += len) {
                len = (size_t)((char *)memchr(lines->bytes + at, '\n', lines->len - at) - (lines->bytes + at)) + 1;
                print_line(lines->bytes + at, len, colours);
        }
        lines->len = 0;
        return fflush(stdout) == 0;
}

static int show(const struct logs_cli *cli, const struct settings *settings, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct logs_place place = { .fd = -1 };
        struct buf lines;
        buf_init(&lines, LIST_MAX);
        const char *path = logs_path(settings, &arena);
        int rc = logs_read(path, &cli->filter, (size_t)cli->lines, &lines, &place, err);
        bool more = rc == 0 && print_lines(&lines, cli->json) && cli->follow;
        while (more) {
                rc = logs_more(path, &cli->filter, &place, &lines, err);
                more = rc == 0 && print_lines(&lines, cli->json);
                poll(NULL, 0, LOOK_MS);
        }
        fd_close(&place.fd);
        buf_done(&lines);
        arena_done(&arena);
        return rc;
}

static int logs(int argc, char **argv, const struct settings *settings)
{
        struct logs_cli cli = { .filter = { .level = LOG_DEBUG }, .lines = LOGS_DEFAULT };
        struct csn_error err = { 0 };
        if (cli_parse(cli_logs_options, argc, argv, take_option, &cli, &err) < 0)
                return cli_fail(&err);
        if (optind < argc)
                return cli_unknown_argument("logs", cli_logs_options, argv[optind]);
        return show(&cli, settings, &err) < 0 ? cli_fail(&err) : 0;
}

int cli_logs(int argc, char **argv)
{
        return cli_with_settings(argc, argv, logs);
}
