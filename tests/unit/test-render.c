/* render: the record as text; here, how files that are kept are shown in it. */
#include "engine/engine.h"

#include "tap.h"

static char *text_of(const char *format, const struct run_result *result)
{
        static struct buf buf;
        buf_done(&buf);
        buf_init(&buf, MIB);
        for (size_t i = 0; i < choices_text_form.n; i++)
                if (strcmp(choices_text_form.values[i].text, format) == 0)
                        render_text((int)i, result, &buf);
        buf_add(&buf, "", 1);
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
        /* A name that is refused is told, too: line ends of Unicode, directions of text, commands of terminals. */
        result.files_n = 1;
        char hostile[40];
        snprintf(hostile, sizeof hostile, "a\xe2\x80\xa8" "b\xc2\x9b" "c%c%c%cd\xc3\xa4\xe2\x82\xac", 0xe2, 0x80, 0xae);
        SET(&files[0], output_file, name, hostile);
        CHECK(strstr(text_of("plain", &result),
                "File 'a\\xe2\\x80\\xa8b\\xc2\\x9bc\\xe2\\x80\\xaed\xc3\xa4\xe2\x82\xac': "));
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

static void a_refusal_by_review_is_an_exception_of_kodeagent(void)
{
        /* S0-51 */
        struct run_result result = { .status = status_BLOCKED };
        SET(&result.error, failure, message, (char[]){ "refused" });
        MARK(&result, run_result, error);
        CHECK(strcmp(text_of("kodeagent", &result), "*** Error running code: CodeSecurityError: refused\n") == 0);
        SET(&result.review, review, verdict, review_verdict_INSECURE);
        SET(&result.review, review, reason, (char[]){ "it deletes files" });
        MARK(&result, run_result, review);
        CHECK(strcmp(text_of("kodeagent", &result),
                      "*** Error running code: CodeSecurityError: Code execution blocked due to security concerns: "
                      "it deletes files\n") == 0);
        CHECK(strcmp(text_of("codemie", &result),
                      "Code failed security validation: refused\n\nPlease review your code and remove any restricted "
                      "operations.\n") == 0);
}

static void an_unknown_environment_has_the_type_of_kodeagent(void)
{
        struct run_result result = { .status = status_BAD_REQUEST };
        SET(&result.error, failure, message, (char[]){ "Unsupported code execution env: x" });
        MARK(&result, run_result, error);
        CHECK(strcmp(text_of("kodeagent", &result),
                      "*** Error running code: UnknownCodeEnvError: Unsupported code execution env: x\n") == 0);
}

static void the_form_agentos_ends_with_five_lines_of_standard_error(void)
{
        /* S1-44 */
        struct run_result result = { .status = status_FAILED, .stderr = { (char[]){ "1\n2\n3\n4\n5\n6\n" }, 12 } };
        const char *text = text_of("agentos", &result);
        CHECK(strncmp(text, "STDERR: 2\n3\n4\n5\n6\n", 18) == 0);
        result.stderr.len = 9;
        CHECK(strncmp(text_of("agentos", &result), "STDERR: 1\n2\n3\n4\n5\n", 18) == 0);
        result.stderr.len = 0;
        CHECK(strncmp(text_of("agentos", &result), "failed\n", 7) == 0);
}

/* S4-04: with another policy the sentence names the rule. */
static void the_form_mcp_light_names_the_rule(void)
{
        struct finding findings[2] = {
                { .rule = (char[]){ "PD-03" }, .message = (char[]){ "System command" }, .line = 2 },
                { .rule = (char[]){ "x" },
                        .message = (char[]){ "Forbidden operation detected: 'open('. Cannot." },
                        .line = 3 } };
        struct run_result result = { .status = status_BLOCKED, .findings = findings, .findings_n = 2 };
        CHECK(strcmp(text_of("mcp-light", &result),
                      "Forbidden operation detected: 'PD-03'. Cannot execute code that accesses filesystem, network, or "
                      "OS. (line 2)\nForbidden operation detected: 'open('. Cannot. (line 3)\n") == 0);
}

static void each_form_has_a_text_for_an_empty_record(void)
{
        const struct run_result nothing = { 0 };
        for (size_t i = 0; i < choices_text_form.n; i++) {
                const char *text = text_of(choices_text_form.values[i].text, &nothing);
                CHECK(text[0] && text[strlen(text) - 1] == '\n');
        }
}

int main(void)
{
        RUN(a_kept_file_has_a_line_that_a_model_can_link);
        RUN(a_mark_stands_where_the_middle_is_missing);
        RUN(a_refusal_by_review_is_an_exception_of_kodeagent);
        RUN(an_unknown_environment_has_the_type_of_kodeagent);
        RUN(the_form_agentos_ends_with_five_lines_of_standard_error);
        RUN(the_form_mcp_light_names_the_rule);
        RUN(each_form_has_a_text_for_an_empty_record);
        return tap_done();
}
