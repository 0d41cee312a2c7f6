/* multipart: bodies of forms, cut anywhere; what is no form is refused. */
#include "net/multipart.h"

#include <stdio.h>

#include "tap.h"

static const char type[] = "multipart/form-data; boundary=B";

/* "name=content|" for each part, in pieces of this length; "!" at an error, "." at the end. */
static void read_form(const char *body, size_t len, size_t piece, char *ret, size_t size)
{
        struct multipart form;
        struct csn_error err;
        size_t n = 0;
        int step = MULTIPART_MORE;
        CHECK(multipart_init(&form, type, &err) == 0);
        for (size_t at = 0; at < len && step >= 0 && step != MULTIPART_DONE;) {
                at += multipart_add(&form, body + at, min_u64(piece, len - at));
                while ((step = multipart_next(&form, &err)) > MULTIPART_MORE && step != MULTIPART_DONE) {
                        if (step == MULTIPART_PART)
                                n += (size_t)snprintf(ret + n, size - n, "%s=", form.has_name ? form.name : "?");
                        else if (step == MULTIPART_DATA)
                                n += (size_t)snprintf(ret + n, size - n, "%.*s", (int)form.len, form.bytes);
                        else
                                n += (size_t)snprintf(ret + n, size - n, "|");
                        multipart_take(&form, step, form.len);
                }
        }
        snprintf(ret + n, size - n, "%s", step < 0 ? "!" : step == MULTIPART_DONE ? "." : "");
        multipart_done(&form);
}

static bool gives(const char *body, const char *wanted)
{
        char got[1000];
        bool same = true;
        for (size_t piece = 1; piece <= strlen(body); piece++) {
                read_form(body, strlen(body), piece, got, sizeof got);
                same = same && strcmp(got, wanted) == 0;
        }
        if (!same)
                printf("# %s\n", got);
        return same;
}

#define HEAD(name) "Content-Disposition: form-data; name=\"f\"; filename=\"" name "\"\r\n\r\n"

static void parts_come_out_however_they_are_cut(void)
{
        CHECK(gives("--B\r\n" HEAD("a") "1\r\n--B\r\n" HEAD("b") "\r\n--B--\r\n", "a=1|b=|."));
        CHECK(gives("preamble\r\n--B \t\r\n" HEAD("a") "\r\n--\r\n-\r\n--\r\r\n--B--epilogue",
                "a=\r\n--\r\n-\r\n--\r|."));
        CHECK(gives("--B\r\n\r\nplain\r\n--B\r\nX: y\r\n\r\n\r\n--B--", "?=plain|?=|."));
        CHECK(gives("--B--", "."));
        CHECK(gives("--B\r\n" HEAD("a") "half", "a="));
}

static void names_are_read_as_they_are_sent(void)
{
        CHECK(gives("--B\r\n" HEAD("a \\\"b\\\" \\\\ c") "\r\n--B--", "a \"b\" \\ c=|."));
        CHECK(gives("--B\r\ncontent-disposition: form-data; x=\"filename=no; \"; FILENAME=token; y\r\n\r\n\r\n--B--",
                "token=|."));
        CHECK(gives("--B\r\nContent-Disposition: form-data; filename=\"open\r\n\r\n\r\n--B--", "?=|."));
        CHECK(gives("--B\r\nContent-Disposition: form-data\r\n\r\n\r\n--B--", "?=|."));
        CHECK(gives("--B\r\n" HEAD("C:\\x") "\r\n--B--", "C:\\x=|."));
}

static void what_is_no_form_is_refused(void)
{
        static char head[MULTIPART_HEAD_MAX + 100], got[100];
        struct multipart form;
        struct csn_error err;
        CHECK(gives("--Bx\r\n", "!") && gives("--B-\r\n", "!") && gives("--B\r\r\n", "!"));
        size_t n = (size_t)snprintf(head, sizeof head, "--B\r\nX: ");
        memset(head + n, 'x', sizeof head - n);
        read_form(head, sizeof head, sizeof head, got, sizeof got);
        CHECK(strcmp(got, "!") == 0);
        read_form("--B\r\nX\0\r\n\r\n", 12, 12, got, sizeof got);
        CHECK(strcmp(got, "!") == 0);
        static const char *const types[] = { NULL, "", "text/plain", "multipart/form-data",
                "multipart/form-data; boundary=", "multipart/form-data; boundary=\"x",
                "multipart/form-dataX; boundary=x", "multipart/mixed; boundary=x" };
        for (size_t i = 0; i < ARRAY_LEN(types); i++) {
                CHECK(multipart_init(&form, types[i], &err) == -CSN_E_INPUT);
                multipart_done(&form);
        }
        CHECK(multipart_init(&form, "Multipart/Form-Data ; a=b; Boundary=\"x y\"", &err) == 0 &&
                strcmp(form.delimiter, "\r\n--x y") == 0);
        multipart_done(&form);
}

int main(void)
{
        RUN(parts_come_out_however_they_are_cut);
        RUN(names_are_read_as_they_are_sent);
        RUN(what_is_no_form_is_refused);
        return tap_done();
}
