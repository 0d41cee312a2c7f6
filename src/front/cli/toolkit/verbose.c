/* The output of `-v` about a run on standard error: the beginning of the program, and the outcome. */
#include "front/cli/toolkit/toolkit.h"

#define CODE_SHOWN 500             /* characters of the program */
#define OUTPUT_SHOWN 200           /* characters of the output */
#define SECRET_MIN 4               /* bytes; a shorter value is in most programs by chance */
#define RULE "============================================================"

/* Where the first `max` characters of a text end; bytes outside UTF-8 count as characters. */
static size_t end_of(const char *text, size_t len, size_t max)
{
        size_t at = 0;
        for (size_t n = 0; at < len && n < max; n++) {
                size_t step = utf8_step(text + at, len - at);
                at += step ? step : 1;
        }
        return at;
}

static size_t characters(const char *text, size_t len)
{
        size_t n = 0;
        for (size_t at = 0; at < len; n++) {
                size_t step = utf8_step(text + at, len - at);
                at += step ? step : 1;
        }
        return n;
}

/* The first characters of a text on lines of their own, with `...` where there are more. */
static void print_head(const char *title, const char *text, size_t len, size_t max)
{
        size_t head = end_of(text, len, max);
        char *visible = mem_alloc(4 * head + 1);
        visible[cli_visible(text, head, visible)] = 0;
        fprintf(stderr, "%s%s%s\n", title, visible, head < len ? "..." : "");
        free(visible);
}

/* The length of the longest value of the environment beginning at `at`; 0: none begins there. */
static size_t secret_at(const struct run_request *request, const char *at, size_t left)
{
        size_t longest = 0;
        for (size_t i = 0; i < request->env_n; i++) {
                size_t len = strlen(request->env[i].value);
                if (len >= SECRET_MIN && len <= left && len > longest && memcmp(at, request->env[i].value, len) == 0)
                        longest = len;
        }
        return longest;
}

void show_program(const struct cli_show *show, const struct run_request *request)
{
        const struct bytes *code = &request->code;
        struct buf text;
        if (show->quiet)
                return;
        buf_init(&text, 8 * MIB);
        for (size_t at = 0; at < code->len && text.len < 4 * CODE_SHOWN + 4;) {
                size_t secret = secret_at(request, code->bytes + at, code->len - at);
                buf_add(&text, secret ? "***" : code->bytes + at, secret ? 3 : 1);
                at += secret ? secret : 1;
        }
        fprintf(stderr, RULE "\nSANDBOX EXECUTION\n" RULE "\nCode (%zu chars):\n",
                characters(code->bytes ? code->bytes : "", code->len));
        print_head("", text.bytes ? text.bytes : "", text.len, CODE_SHOWN);
        fprintf(stderr, RULE "\n");
        buf_done(&text);
}

void show_outcome(const struct cli_show *show, const struct run_result *result)
{
        static const struct { int status; const char *title; } rows[] = {
                { status_TIMEOUT, "⏱️ Timeout: " },
                { status_BLOCKED, "❌ Security error: " },
        };
        const char *title = "❌ Execution error: ";
        if (show->quiet)
                return;
        if (result->status == status_COMPLETED) {
                fprintf(stderr, "✅ Execution successful (%.2fs)\n", result->usage.wall_ms / 1000);
                size_t len = result->stdout.len;
                while (len && strchr(" \t\r\n", result->stdout.bytes[len - 1]))
                        len--;
                if (len)
                        print_head("Output: ", result->stdout.bytes, len, OUTPUT_SHOWN);
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].status == result->status)
                        title = rows[i].title;
        const char *text = !HAS(result, run_result, error)      ? status_name(result->status)
                : HAS(&result->error, failure, summary) ? result->error.summary
                                                        : result->error.message;
        print_head(title, text, strlen(text), OUTPUT_SHOWN);
}
