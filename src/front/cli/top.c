/* caisson ps, top and pool: runs and pools, from the daemon's status. */
#include "front/cli/cli.h"

#include "front/socket/client.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#define REFRESH_US 1000000ULL
#define LOOK_US 50000     /* for the daemon to measure its runs, if possible */

/* ---- tables ---- */

static const char *text_of(json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        return text ? text : "";
}

static void add_number(struct buf *buf, int width, json_t *object, const char *name,
        void (*print)(uint64_t number, char *text, size_t size))
{
        json_t *number = json_object_get(object, name);
        char text[40] = "-";
        if (json_is_number(number) && print)
                print((uint64_t)json_number_value(number), text, sizeof text);
        else if (json_is_number(number))
                snprintf(text, sizeof text, "%" PRIu64, (uint64_t)json_number_value(number));
        buf_printf(buf, "%*s ", width, text);
}

static void print_seconds(uint64_t ms, char *text, size_t size)
{
        snprintf(text, size, "%" PRIu64 ".%" PRIu64 "s", ms / 1000, ms / 100 % 10);
}

static void print_mib(uint64_t bytes, char *text, size_t size)
{
        snprintf(text, size, "%.1fMiB", (double)bytes / (double)MIB);
}

/* Letters of an id.  With SHORT_ID a line fits on a terminal. */
#define WHOLE_ID 36
#define SHORT_ID 12

static void add_runs(struct buf *buf, json_t *status, int id_width)
{
        size_t i;
        json_t *run;
        buf_printf(buf, "%-*s %-9s %-10s %-11s %-8s %7s %7s %9s\n", id_width, "ID", "OWNER", "LANGUAGE", "PROFILE",
                "STATE", "AGE", "CPU", "MEMORY");
        json_array_foreach(json_object_get(status, "runs"), i, run) {
                char id[WHOLE_ID + 1];
                snprintf(id, sizeof id, "%.*s", id_width, text_of(run, "id"));
                cli_add_cell(buf, id_width, id);
                cli_add_cell(buf, 9, text_of(run, "owner"));
                cli_add_cell(buf, 10, text_of(run, "language"));
                cli_add_cell(buf, 11, text_of(run, "profile"));
                cli_add_cell(buf, 8, text_of(run, "state"));
                add_number(buf, 7, run, "age_ms", print_seconds);
                add_number(buf, 7, run, "cpu_ms", print_seconds);
                add_number(buf, 9, run, "memory_bytes", print_mib);
                cli_end_line(buf);
        }
}

static void add_pools(struct buf *buf, json_t *status)
{
        size_t i;
        json_t *pool;
        buf_printf(buf, "%-30s %6s %6s %6s %10s %8s %8s\n", "POOL", "READY", "MIN", "MAX", "MEMORY", "HITS", "MISSES");
        json_array_foreach(json_object_get(status, "pools"), i, pool) {
                cli_add_cell(buf, 30, text_of(pool, "key"));
                add_number(buf, 6, pool, "ready", NULL);
                add_number(buf, 6, pool, "min", NULL);
                add_number(buf, 6, pool, "max", NULL);
                add_number(buf, 10, pool, "memory_bytes", print_mib);
                add_number(buf, 8, pool, "hits", NULL);
                add_number(buf, 8, pool, "misses", NULL);
                cli_end_line(buf);
        }
}

static json_int_t sum_of(json_t *list, const char *name)
{
        json_int_t sum = 0;
        size_t i;
        json_t *item;
        json_array_foreach(list, i, item)
                sum += json_integer_value(json_object_get(item, name));
        return sum;
}

static void add_totals(struct buf *buf, json_t *status)
{
        json_t *daemon = json_object_get(status, "daemon"), *queue = json_object_get(status, "queue");
        json_t *pools = json_object_get(status, "pools");
        char uptime[40], max[40] = "";
        json_int_t most = json_integer_value(json_object_get(queue, "max"));
        print_seconds((uint64_t)json_integer_value(json_object_get(daemon, "uptime_ms")), uptime, sizeof uptime);
        if (most)
                snprintf(max, sizeof max, " of %" JSON_INTEGER_FORMAT, most);
        buf_printf(buf, "caissond: process %" JSON_INTEGER_FORMAT ", up %s, connections: %" JSON_INTEGER_FORMAT "\n",
                json_integer_value(json_object_get(daemon, "pid")), uptime,
                json_integer_value(json_object_get(daemon, "connections")));
        buf_printf(buf, "runs: %" JSON_INTEGER_FORMAT "%s running, %" JSON_INTEGER_FORMAT " waiting\n",
                json_integer_value(json_object_get(queue, "running")), max,
                json_integer_value(json_object_get(queue, "waiting")));
        buf_printf(buf,
                "pools: %zu, %" JSON_INTEGER_FORMAT " ready, %" JSON_INTEGER_FORMAT " hits, %" JSON_INTEGER_FORMAT
                " misses\n\n",
                json_array_size(pools), sum_of(pools, "ready"), sum_of(pools, "hits"), sum_of(pools, "misses"));
}

static void add_top(struct buf *buf, json_t *status)
{
        add_totals(buf, status);
        add_runs(buf, status, SHORT_ID);
}

static void add_ps(struct buf *buf, json_t *status)
{
        add_runs(buf, status, WHOLE_ID);
}

/* ---- once ---- */

/*
 * The status has the use of runs measured after the question before (status.c), which may be long ago.  So there are
 * two questions.
 */
static int ask_twice(struct daemon_query *daemon_query)
{
        daemon_query_ask(daemon_query, FRAME_ASK, NULL, 0);
        if (daemon_query_wait(daemon_query) < 0 || json_array_size(json_object_get(daemon_query->answer, "runs")) == 0)
                return -daemon_query->err.code;
        usleep(LOOK_US);
        daemon_query_ask(daemon_query, FRAME_ASK, NULL, 0);
        return daemon_query_wait(daemon_query);
}

static void note_none(json_t *status, const char *part)
{
        bool pools = part && strcmp(part, "pools") == 0;
        if (json_array_size(json_object_get(status, pools ? "pools" : "runs")))
                return;
        if (pools)
                cli_note(
                        "nothing waits ready: interpreters are kept when a language and a profile were first used (engine.pool_min, engine.pool_max)");
        else
                cli_note("no run goes on or waits now; caisson runs lists those that are over");
}

/* With --json: `part` of the status, NULL: the whole; else the output of add(). */
static int show_once(const struct settings *settings, bool json, const char *part,
        void (*add)(struct buf *buf, json_t *status))
{
        struct daemon_query daemon_query;
        struct buf buf;
        buf_init(&buf, FRAME_STATUS_MAX);
        int status = 0;
        if (daemon_query_open(&daemon_query, settings) < 0 || ask_twice(&daemon_query) < 0)
                status = cli_fail(&daemon_query.err);
        if (status == 0 && json)
                cli_print_json(json_incref(part ? json_object_get(daemon_query.answer, part) : daemon_query.answer));
        else if (status == 0)
                add(&buf, daemon_query.answer);
        if (buf.len)
                fputs(buf.bytes, stdout);
        if (status == 0 && !json)
                note_none(daemon_query.answer, part);
        buf_done(&buf);
        daemon_query_close(&daemon_query);
        return status;
}

static int ps(int argc, char **argv, const struct settings *settings)
{
        bool json = cli_has_flag(&argc, argv, "--json");
        if (argc > 1)
                return cli_unknown_argument("ps", cli_json_options, argv[1]);
        return show_once(settings, json, "runs", add_ps);
}

static int pool(int argc, char **argv, const struct settings *settings)
{
        bool json = cli_has_flag(&argc, argv, "--json");
        if (argc > 1)
                return cli_unknown_argument("pool", cli_json_options, argv[1]);
        return show_once(settings, json, "pools", add_pools);
}

/* ---- again and again ---- */

struct screen {
        struct daemon_query daemon_query;
        struct watch keys, signals;
        struct timer refresh;
        struct termios before;
        bool over;
};

/* Cut to the terminal: longer lines would wrap and push the head out. */
static void draw(json_t *status)
{
        struct winsize size = { 0 };
        struct buf buf;
        buf_init(&buf, FRAME_STATUS_MAX);
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
                size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
        add_top(&buf, status);
        printf("\033[H\033[J");
        char *line = buf.bytes;
        for (int row = 0; row < size.ws_row && line && *line; row++) {
                char *end = strchrnul(line, '\n');
                printf("%s%.*s", row ? "\n" : "", (int)min_u64((uint64_t)(end - line), size.ws_col), line);
                line = *end ? end + 1 : end;
        }
        fflush(stdout);
        buf_done(&buf);
}

static void on_refresh(struct timer *timer)
{
        struct screen *screen = timer->owner;
        if (!screen->daemon_query.late.active)   /* else the last answer is still on its way */
                daemon_query_ask(&screen->daemon_query, FRAME_ASK, NULL, 0);
        loop_timer(screen->daemon_query.loop, &screen->refresh, REFRESH_US);
}

static void on_key(struct watch *watch, uint32_t what)
{
        struct screen *screen = watch->owner;
        char key = 0;
        (void)what;
        ssize_t n = read(watch->fd, &key, 1);
        screen->over = screen->over || n == 0 || (n < 0 && errno != EINTR) || key == 'q' || key == 'Q';
}

static void on_signal(struct watch *watch, uint32_t what)
{
        struct screen *screen = watch->owner;
        (void)what;
        screen->over = true;
}

static int watch_terminal(struct screen *screen, struct csn_error *err)
{
        screen->signals =
                (struct watch){ .fd = io_signals(io_ends, IO_ENDS, err), .ready = on_signal, .owner = screen };
        screen->keys = (struct watch){ .fd = STDIN_FILENO, .ready = on_key, .owner = screen };
        if (screen->signals.fd < 0)
                return -err->code;
        if (loop_watch(screen->daemon_query.loop, &screen->signals, screen->signals.fd, EPOLLIN, err) < 0)
                return -err->code;
        return isatty(STDIN_FILENO) ? loop_watch(screen->daemon_query.loop, &screen->keys, STDIN_FILENO, EPOLLIN, err)
                                    : 0;
}

static void show_again(struct screen *screen)
{
        struct daemon_query *daemon_query = &screen->daemon_query;
        struct termios keys;
        bool terminal = tcgetattr(STDIN_FILENO, &screen->before) == 0;
        keys = screen->before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        if (terminal)
                tcsetattr(STDIN_FILENO, TCSANOW, &keys);
        printf("\033[?1049h\033[?25l");   /* the other screen, no cursor: xterm(1) and its successors */
        on_refresh(&screen->refresh);
        while (!screen->over && !daemon_query->err.code) {
                loop_step(daemon_query->loop, -1, &daemon_query->err);
                if (daemon_query->answered && !daemon_query->err.code)
                        draw(daemon_query->answer);
                if (daemon_query->answered)
                        loop_untimer(daemon_query->loop, &daemon_query->late);
                daemon_query->answered = false;
        }
        printf("\033[?25h\033[?1049l");
        fflush(stdout);
        if (terminal)
                tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
}

static int show_live(const struct settings *settings)
{
        struct screen screen = {
                .keys = { .fd = -1 }, .signals = { .fd = -1 }, .refresh = { .fired = on_refresh, .owner = &screen }
        };
        struct daemon_query *daemon_query = &screen.daemon_query;
        if (daemon_query_open(daemon_query, settings) == 0 && watch_terminal(&screen, &daemon_query->err) == 0)
                show_again(&screen);
        int status = daemon_query->err.code ? cli_fail(&daemon_query->err) : 0;
        fd_close(&screen.signals.fd);
        daemon_query_close(daemon_query);
        return status;
}

const struct cli_option cli_top_options[] = {
        { "once", 0, NULL, "Show it once, and not again each second.", NULL },
        { "json", 0, NULL, "Print it once, as JSON.", NULL },
        { NULL, 0, NULL, NULL, NULL },
};

static int top(int argc, char **argv, const struct settings *settings)
{
        bool json = cli_has_flag(&argc, argv, "--json"), once = cli_has_flag(&argc, argv, "--once");
        if (argc > 1)
                return cli_unknown_argument("top", cli_top_options, argv[1]);
        return json || once || !isatty(STDOUT_FILENO) ? show_once(settings, json, NULL, add_top) : show_live(settings);
}

int cli_ps(int argc, char **argv)
{
        return cli_with_settings(argc, argv, ps);
}

int cli_top(int argc, char **argv)
{
        return cli_with_settings(argc, argv, top);
}

int cli_pool(int argc, char **argv)
{
        return cli_with_settings(argc, argv, pool);
}
