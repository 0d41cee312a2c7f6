/*
 * Records of runs as text: for a client with a form in the query, or with text/plain in Accept.
 *
 * A helper thread reads a long record and writes its text.
 */
#include "front/api/api.h"

#include "base/worker.h"
#include "engine/output/render.h"
#include "front/service/run.h"
#include "front/views/views.h"

#include <unistd.h>

#define AT_ONCE_MAX (32 * KIB)         /* bytes of a record read in the loop */

/* A client accepting JSON as well gets JSON: many send "application/json, text/plain, *" with each request. */
static bool takes_text_alone(const struct http_request *request)
{
        return http_accepts(request, "text/plain") && !http_accepts(request, "application/json") &&
                !http_accepts(request, "*/*");
}

bool api_wants_text(const struct http_request *request, int *ret_form)
{
        const char *name = http_query(request, "format");
        if (!name && http_query(request, "brief"))
                name = choices_text_form.values[text_form_BRIEF].text;
        *ret_form = SERVICE_OWN_FORM;
        for (size_t i = 0; name && i < choices_text_form.n; i++)
                if (strcmp(choices_text_form.values[i].text, name) == 0)
                        *ret_form = (int)i;
        return name || takes_text_alone(request);
}

/* A record to answer with as text. */
struct run_text {
        struct http_request *request;  /* NULL: the client has gone */
        int form;
        struct job job;
        char *record;
        size_t len;
        int fd;                        /* in place of `record`; or -1 */
        struct buf text;
        struct csn_error error;
};

static int load(struct run_text *one)
{
        size_t at = 0;
        ssize_t n = 1;
        one->record = mem_alloc(one->len + 1);
        while (at < one->len && (n = pread(one->fd, one->record + at, one->len - at, (off_t)at)) > 0)
                at += (size_t)n;
        return at == one->len ? 0 : err_set(&one->error, CSN_E_SYSTEM, n < 0 ? errno : 0, "read the record");
}

/* Perhaps in a helper thread. */
static void work(struct job *job)
{
        struct run_text *one = job->owner;
        struct arena arena = { 0 };
        struct run_result result;
        buf_init(&one->text, FRONT_RECORD_MAX);
        if (one->fd < 0 || load(one) == 0) {
                json_t *record = model_read(one->record, one->len, JSON_ALLOW_NUL, NULL);
                if (front_read_record(record, &arena, &result, &one->error) == 0)
                        render_text(one->form == SERVICE_OWN_FORM ? result.format : one->form, &result, &one->text);
                json_decref(record);
        }
        arena_done(&arena);
}

static void on_done(struct job *job)
{
        struct run_text *one = job->owner;
        if (one->request) {
                one->request->gone = NULL;
                if (one->error.code) {
                        http_fail(one->request, &one->error);
                } else {
                        http_answer(one->request, MHD_HTTP_OK, SERVICE_TEXT_TYPE, one->text.bytes, one->text.len);
                        one->text = (struct buf){ 0 };
                }
        }
        free(one->record);
        fd_close(&one->fd);
        buf_done(&one->text);
        free(one);
}

/* A request waits for a job, so on_done() follows. */
static void on_gone(struct http_request *request)
{
        struct run_text *one = request->owner;
        one->request = NULL;
}

void api_answer_text(struct http_request *request, int form, const struct service_found *found)
{
        struct run_text *one = mem_alloc(sizeof *one);
        *one = (struct run_text){ .request = request,
                .form = form,
                .len = found->len,
                .fd = found->fd,
                .record = found->record ? mem_copy(found->record, found->len) : NULL,
                .job = { .work = work, .done = on_done } };
        one->job.owner = one;
        request->owner = one;
        request->gone = on_gone;
        if (found->len > AT_ONCE_MAX) {
                worker_submit(engine_workers(service_of(request)->engine), request->tenant, &one->job);
                return;
        }
        work(&one->job);
        on_done(&one->job);
}
