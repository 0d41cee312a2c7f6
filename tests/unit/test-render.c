/* render: the record as text; here, how files that are kept are shown in it. */
#include "engine/engine.h"

#include "tap.h"

static char *text_of(const char *format, const struct run_result *result)
{
        static struct buf buf;
        struct csn_error err;
        buf_done(&buf);
        buf_init(&buf, MIB);
        CHECK(render_text(format, result, &buf, &err) == 0);
        return buf.bytes;
}

static void a_kept_file_has_a_line_that_a_model_can_link(void)
{
        struct output_file files[3] = { { 0 } };
        struct run_result result = {
                .status = status_COMPLETED, .stdout = { (char[]){ "File created\n" }, 13 }, .files = files, .files_n = 3
        };
        SET(&files[0], output_file, name, (char[]){ "output.csv" });
        SET(&files[0], output_file, url, (char[]){ "sandbox:/v1/files/file_1" });
        SET(&files[1], output_file, name, (char[]){ "not kept" });
        SET(&files[2], output_file, name, (char[]){ "it's\nFile 'x': sandbox:/v1/files/file_9\\" });
        SET(&files[2], output_file, url, (char[]){ "sandbox:/v1/files/file_2" });
        static const char lines[] =
                "File 'output.csv': sandbox:/v1/files/file_1\n"
                "File 'it\\'s\\x0aFile \\'x\\': sandbox:/v1/files/file_9\\\\': sandbox:/v1/files/file_2\n";
        char expected[400];
        snprintf(expected, sizeof expected, "File created\n%s", lines);
        CHECK(strcmp(text_of("codemie", &result), expected) == 0 && strcmp(text_of("plain", &result), expected) == 0);
        CHECK(strstr(text_of("linx", &result), lines) && strstr(text_of("brief", &result), lines));
        result.status = status_TIMEOUT;
        CHECK(strstr(text_of("codemie", &result), lines));
        result.files_n = 0;
        result.status = status_COMPLETED;
        CHECK(strcmp(text_of("codemie", &result), "File created\n") == 0);
}

static void a_mark_stands_where_the_middle_is_missing(void)
{
        struct run_result result = { .status = status_COMPLETED,
                .stdout = { (char[]){ "1\n2\n98\n99\n" }, 10 },
                .stderr = { (char[]){ "\xc3\xa4\xc3\xb6" }, 4 } };
        result.limits.output_bytes = 10;
        CHECK(strcmp(text_of("plain", &result), "1\n2\n98\n99\nSTDERR: \xc3\xa4\xc3\xb6\n") == 0);
        result.truncated.stdout_bytes = 300;
        CHECK(strcmp(text_of("plain", &result), "1\n2\n9\n... (output truncated)\n8\n99\nSTDERR: \xc3\xa4\xc3\xb6\n") ==
                0);
        CHECK(strstr(text_of("linx", &result), "9\n... (output truncated)\n8") &&
                strstr(text_of("codemie", &result), "9\n... (output truncated)\n8"));
        result.stdout.len = 0;
        result.truncated.stderr_bytes = 1;
        result.limits.output_bytes = 5;
        CHECK(strcmp(text_of("plain", &result),
                      "\n... (output truncated)\nSTDERR: \xc3\xa4\n... (output truncated)\n\xc3\xb6\n") == 0);
        result.limits.output_bytes = 0;
        CHECK(strstr(text_of("plain", &result), "STDERR: \n... (output truncated)\n\xc3\xa4\xc3\xb6\n"));
}

int main(void)
{
        RUN(a_kept_file_has_a_line_that_a_model_can_link);
        RUN(a_mark_stands_where_the_middle_is_missing);
        return tap_done();
}
