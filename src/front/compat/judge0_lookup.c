/*
 * Submissions by their tokens.
 *
 * The tokens of a request are answered in their order.  A helper thread reads a long record and writes its answer; the
 * next token follows afterwards.
 */
#include "front/compat/judge0.h"

#include "base/worker.h"
#include "engine/engine.h"
#include "front/views/views.h"

#include <unistd.h>

#define AT_ONCE_MAX (32 * KIB)         /* bytes of a record read in the loop */
#define SEPARATOR ","

struct lookup {
        struct http_request *request;  /* NULL: the client has gone */
        judge0_answer *answer;
        struct arena arena;
        struct judge0_form form;
        char **tokens;
        size_t n, at;                  /* tokens; answered tokens */
        struct buf text;               /* the answers of the tokens before `at`, with SEPARATOR between */
        /* The record of the token at `at`.  A helper thread reading the record owns `form` and `text`, too. */
        struct job job;
        char *record;
        size_t len;
        int fd;                        /* in place of `record`; or -1 */
        struct csn_error error;
};

static void lookup_free(struct lookup *lookup)
{
        free(lookup->record);
        fd_close(&lookup->fd);
        buf_done(&lookup->text);
        arena_done(&lookup->arena);
        free(lookup);
}

/* ---- a submission ---- */

static void add(struct lookup *lookup, json_t *submission)
{
        char *text = submission ? http_json_text(submission) : NULL;
        const char *answer = text ? text : "null";
        if (lookup->at)
                buf_add(&lookup->text, SEPARATOR, strlen(SEPARATOR));
        buf_add(&lookup->text, answer, strlen(answer));
        free(text);
}

static int load(struct lookup *lookup)
{
        size_t at = 0;
        ssize_t n = 1;
        lookup->record = mem_alloc(lookup->len + 1);
        while (at < lookup->len && (n = pread(lookup->fd, lookup->record + at, lookup->len - at, (off_t)at)) > 0)
                at += (size_t)n;
        return at == lookup->len ? 0
                                 : err_set(&lookup->error, CSN_E_SYSTEM, n < 0 ? errno : 0, "read the record of %s",
                                           lookup->tokens[lookup->at]);
}

/* Perhaps in a helper thread. */
static void read_record(struct lookup *lookup)
{
        struct arena arena = { 0 };
        struct run_result result;
        if (lookup->fd < 0 || load(lookup) == 0) {
                json_t *record = json_loadb(lookup->record, lookup->len, JSON_ALLOW_NUL, NULL);
                if (front_read_record(record, &arena, &result, &lookup->error) == 0)
                        add(lookup, judge0_submission_of(&lookup->form, lookup->tokens[lookup->at], "over",
                                result.labels, result.labels_n, &result));
                json_decref(record);
        }
        arena_done(&arena);
        free(lookup->record);
        lookup->record = NULL;
        fd_close(&lookup->fd);
}

static void work(struct job *job)
{
        read_record(job->owner);
}

/* ---- all tokens of a request ---- */

/* Answer the next token.  False: a helper thread reads the record. */
static bool answer_next(struct lookup *lookup)
{
        struct http_request *request = lookup->request;
        const char *token = lookup->tokens[lookup->at];
        struct service_found found;
        if (service_find_run(request, token, &found, &lookup->error) < 0)
                return true;
        if (found.run) {
                const struct run_request *given = run_request(found.run);
                add(lookup, judge0_submission_of(&lookup->form, token, run_state_name(found.run), given->labels,
                        given->labels_n, NULL));
                return true;
        }
        if (!found.record && found.fd < 0) {
                add(lookup, NULL);
                return true;
        }
        lookup->fd = found.fd;
        lookup->len = found.len;
        lookup->record = found.record ? mem_copy(found.record, found.len) : NULL;
        if (found.len > AT_ONCE_MAX) {
                worker_submit(engine_workers(service_of(request)->engine), request->tenant, &lookup->job);
                return false;
        }
        read_record(lookup);
        return true;
}

static void go_on(struct lookup *lookup)
{
        struct http_request *request = lookup->request;
        while (lookup->at < lookup->n && !lookup->error.code) {
                if (!answer_next(lookup))
                        return;
                lookup->at++;
        }
        request->gone = NULL;
        if (lookup->error.code)
                http_fail(request, &lookup->error);
        else
                lookup->answer(request, &lookup->form, &lookup->text);
        lookup_free(lookup);
}

static void on_read(struct job *job)
{
        struct lookup *lookup = job->owner;
        if (!lookup->request) {
                lookup_free(lookup);
                return;
        }
        lookup->at++;
        go_on(lookup);
}

/* A request waits for a job, so lookup_free() follows in on_read(). */
static void on_gone(struct http_request *request)
{
        struct lookup *lookup = request->owner;
        lookup->request = NULL;
}

void judge0_look_up(struct http_request *request, const struct judge0_form *form, const char *begin,
        const char *const *tokens, size_t n, judge0_answer *answer)
{
        struct lookup *lookup = mem_alloc(sizeof *lookup);
        *lookup = (struct lookup){
                .request = request, .answer = answer, .form = *form, .n = n, .fd = -1, .job = { .work = work }
        };
        lookup->job.done = on_read;
        lookup->job.owner = lookup;
        lookup->tokens = arena_alloc(&lookup->arena, n * sizeof *lookup->tokens);
        if (form->fields)   /* the request may go while a helper thread works */
                lookup->form.fields = arena_text(&lookup->arena, "%s", form->fields);
        for (size_t i = 0; i < n; i++)
                lookup->tokens[i] = arena_text(&lookup->arena, "%s", tokens[i]);
        buf_init(&lookup->text, FRONT_RECORD_MAX);
        buf_add(&lookup->text, begin, strlen(begin));
        request->owner = lookup;
        request->gone = on_gone;
        go_on(lookup);
}
