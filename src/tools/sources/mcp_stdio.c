/*
 * MCP over the standard streams of a program started by the launcher: one message a line.
 *
 * Bounded: the length of a line, logged lines of standard error, and unread output to the program.
 */
#include "tools/sources/mcp.h"

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

#define OUTPUT_MAX (32 * MIB)              /* bytes not yet read by the program */
#define READ_SIZE (64 * 1024)
#define READS_AT_ONCE 8
#define LOG_LINE_MAX 1000
#define LOG_LINES_MAX 100                  /* logged lines in LOG_US */
#define LOG_US (10 * 1000000ULL)
#define STATUS_US 100000ULL                /* wait for the exit status */
#define JUNK_MAX 100                       /* malformed lines before the program is ended */

struct stdio {
        struct launched launched;
        struct watch input, output, error, control;
        struct buf out, line, noise;
        size_t sent;                       /* of out */
        bool over;                         /* shut during one of its own events */
        unsigned junk, logged;
        uint64_t logged_us;
        char last[200];                    /* last line of standard error */
        struct timer lost;
};

static void on_lost(struct timer *timer)
{
        struct mcp *mcp = timer->owner;
        const struct stdio *stdio = mcp->way;
        char text[100] = "it has closed its output", last[sizeof stdio->last];
        int status;
        launch_over(&stdio->launched, text, sizeof text, &status);
        snprintf(last, sizeof last, "%s", stdio->last);
        mcp_lost(mcp, text, last);
}

/*
 * Report the loss from a timer: callers may still use the connection.  A program closes its output before its exit
 * status arrives.
 */
static void lose(struct mcp *mcp)
{
        struct stdio *stdio = mcp->way;
        loop_unwatch(mcp->loop, &stdio->input);
        loop_unwatch(mcp->loop, &stdio->output);
        loop_timer(mcp->loop, &stdio->lost, stdio->control.active ? STATUS_US : 0);
}

/* ---- output to the program ---- */

static void flush(struct mcp *mcp)
{
        struct stdio *stdio = mcp->way;
        struct buf *out = &stdio->out;
        struct csn_error err;
        while (stdio->sent < out->len) {
                ssize_t n = write(stdio->launched.input, out->bytes + stdio->sent, out->len - stdio->sent);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno != EAGAIN) {
                        lose(mcp);
                        return;
                }
                if (n < 0)
                        break;
                stdio->sent += (size_t)n;
        }
        if (stdio->sent == out->len)
                stdio->sent = out->len = 0;
        if (!out->len)
                loop_unwatch(mcp->loop, &stdio->input);
        else if (!stdio->input.active &&
                loop_watch(mcp->loop, &stdio->input, stdio->launched.input, EPOLLOUT, &err) < 0)
                lose(mcp);
}

static void on_input(struct watch *watch, uint32_t events)
{
        (void)events;
        flush(watch->owner);
}

static int stdio_send(struct mcp *mcp, json_t *message, struct waiting *waiting, struct csn_error *err)
{
        struct stdio *stdio = mcp->way;
        size_t len;
        (void)waiting;
        char *text = rpc_line(message, &len);
        if (!text)
                return err_set(err, CSN_E_INPUT, 0, "the arguments cannot be written as JSON");
        if (stdio->sent > stdio->out.len / 2) {
                memmove(stdio->out.bytes, stdio->out.bytes + stdio->sent, stdio->out.len - stdio->sent);
                stdio->out.len -= stdio->sent;
                stdio->sent = 0;
        }
        bool fits = stdio->launched.input >= 0 && stdio->out.len + len + 1 <= stdio->out.max;
        if (fits) {
                buf_add(&stdio->out, text, len);
                buf_add(&stdio->out, "\n", 1);
        }
        free(text);
        if (!fits)
                return err_set(err, CSN_E_BUSY, 0, "the server %s does not read what it is asked", mcp->server->name);
        flush(mcp);
        return 0;
}

/* ---- input from the program ---- */

/* Pass on whole lines; `line` keeps the incomplete rest.  False: a line is too long. */
static bool take_lines(struct mcp *mcp, struct buf *line, const char *bytes, size_t len,
        void (*take)(struct mcp *mcp, const char *text, size_t len))
{
        const struct stdio *stdio = mcp->way;
        const char *end = bytes + len;
        for (const char *newline; !stdio->over && (newline = memchr(bytes, '\n', (size_t)(end - bytes)));
                bytes = newline + 1) {
                if (!line->len) {
                        take(mcp, bytes, (size_t)(newline - bytes));
                } else if (buf_add(line, bytes, (size_t)(newline - bytes))) {
                        take(mcp, line->bytes, line->len);
                        line->len = 0;
                } else {
                        return false;
                }
        }
        return stdio->over || buf_add(line, bytes, (size_t)(end - bytes));
}

static void take_message(struct mcp *mcp, const char *text, size_t len)
{
        struct stdio *stdio = mcp->way;
        if (len && text[len - 1] == '\r')
                len--;
        if (!len || mcp_message(mcp, text, len) || stdio->over)
                return;
        if (++stdio->junk > JUNK_MAX)
                lose(mcp);
}

static void on_output(struct watch *watch, uint32_t events)
{
        struct mcp *mcp = watch->owner;
        struct stdio *stdio = mcp->way;
        static char bytes[READ_SIZE];
        (void)events;
        for (int i = 0; i < READS_AT_ONCE && !stdio->over && watch->active; i++) {
                ssize_t n = read(stdio->launched.output, bytes, sizeof bytes);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n <= 0) {
                        lose(mcp);
                        return;
                }
                if (!take_lines(mcp, &stdio->line, bytes, (size_t)n, take_message)) {
                        snprintf(stdio->last, sizeof stdio->last, "a line of more than %llu bytes", MCP_MESSAGE_MAX);
                        lose(mcp);
                        return;
                }
                if (n < (ssize_t)sizeof bytes)
                        return;
        }
}

/* For the log: bytes other than printable UTF-8 become dots. */
static void take_noise(struct mcp *mcp, const char *text, size_t len)
{
        struct stdio *stdio = mcp->way;
        char line[LOG_LINE_MAX + 1];
        size_t n = 0;
        for (size_t at = 0, step; at < len && n + 4 < sizeof line; at += step ? step : 1) {
                step = utf8_step(text + at, len - at);
                bool plain = step > 1 || (step == 1 && text[at] >= ' ' && text[at] != 0x7f);
                memcpy(line + n, plain ? text + at : ".", plain ? step : 1);
                n += plain ? step : 1;
        }
        line[n] = 0;
        if (!n)
                return;
        snprintf(stdio->last, sizeof stdio->last, "%s", line);
        uint64_t now_us = clock_us();
        if (now_us - stdio->logged_us > LOG_US) {
                stdio->logged_us = now_us;
                stdio->logged = 0;
        }
        if (stdio->logged++ < LOG_LINES_MAX)
                log_text(LOG_INFO, "MCP server %s: %s", mcp->server->name, line);
        else if (stdio->logged == LOG_LINES_MAX + 1)
                log_text(LOG_WARN, "MCP server %s prints too much; for a while it is not logged", mcp->server->name);
}

static void on_error(struct watch *watch, uint32_t events)
{
        struct mcp *mcp = watch->owner;
        struct stdio *stdio = mcp->way;
        char bytes[4096];
        (void)events;
        ssize_t n = read(stdio->launched.error, bytes, sizeof bytes);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                loop_unwatch(mcp->loop, watch);
        if (n > 0 && !take_lines(mcp, &stdio->noise, bytes, (size_t)n, take_noise)) {
                take_noise(mcp, stdio->noise.bytes, stdio->noise.len);
                stdio->noise.len = 0;
        }
}

/* The program has ended.  Read its last output before reporting the loss. */
static void on_control(struct watch *watch, uint32_t events)
{
        struct mcp *mcp = watch->owner;
        struct stdio *stdio = mcp->way;
        loop_unwatch(mcp->loop, watch);
        if (stdio->error.active)
                on_error(&stdio->error, events);
        if (stdio->output.active)
                on_output(&stdio->output, events);
        if (!stdio->over)
                lose(mcp);
}

/* ---- the beginning and the end ---- */

static void stdio_shut(struct mcp *mcp)
{
        struct stdio *stdio = mcp->way;
        if (!stdio)
                return;
        stdio->over = true;
        struct watch *const watches[] = { &stdio->input, &stdio->output, &stdio->error, &stdio->control };
        for (size_t i = 0; i < ARRAY_LEN(watches); i++)
                loop_unwatch(mcp->loop, watches[i]);
        loop_untimer(mcp->loop, &stdio->lost);
        launch_end(&stdio->launched);
        buf_done(&stdio->out);
}

static void stdio_done(struct mcp *mcp)
{
        struct stdio *stdio = mcp->way;
        if (!stdio)
                return;
        buf_done(&stdio->line);            /* not in shut(): take_message() may be reading `line` */
        buf_done(&stdio->noise);
        free(stdio);
        mcp->way = NULL;
}

static int stdio_open(struct mcp *mcp, struct csn_error *err)
{
        struct stdio *stdio = mcp->way;
        if (!stdio)
                mcp->way = stdio = mem_alloc(sizeof *stdio);
        buf_done(&stdio->line);
        buf_done(&stdio->noise);
        *stdio = (struct stdio){ .launched = LAUNCHED_NONE, .lost = { .fired = on_lost, .owner = mcp } };
        buf_init(&stdio->out, OUTPUT_MAX);
        buf_init(&stdio->line, MCP_MESSAGE_MAX);
        buf_init(&stdio->noise, LOG_LINE_MAX);
        stdio->input = (struct watch){ .fd = -1, .ready = on_input, .owner = mcp };
        stdio->output = (struct watch){ .fd = -1, .ready = on_output, .owner = mcp };
        stdio->error = (struct watch){ .fd = -1, .ready = on_error, .owner = mcp };
        stdio->control = (struct watch){ .fd = -1, .ready = on_control, .owner = mcp };
        if (launch_start(&mcp->sources->launcher, mcp->server->program, NULL, &stdio->launched, err) < 0 ||
            loop_watch(mcp->loop, &stdio->output, stdio->launched.output, EPOLLIN, err) < 0 ||
            loop_watch(mcp->loop, &stdio->error, stdio->launched.error, EPOLLIN, err) < 0 ||
            loop_watch(mcp->loop, &stdio->control, stdio->launched.control, EPOLLIN, err) < 0)
                return -err->code;
        return 0;
}

/* False: all requests share one pair of pipes, so the server needs a message. */
static bool stdio_forget(struct mcp *mcp, struct waiting *waiting)
{
        (void)mcp, (void)waiting;
        return false;
}

const struct mcp_transport mcp_stdio = {
        .open = stdio_open, .send = stdio_send, .forget = stdio_forget, .shut = stdio_shut, .done = stdio_done
};
