/*
 * caisson-remote review: a question as JSON on standard input, its answer as JSON on standard output.  Programs
 * without a daemon start this command (front/library/review.c); caisson has no such command.
 */
#include "front/remote/remote.h"

#include "review/review.h"
#include "store/store.h"

#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

#define QUESTION_MAX (64 * MIB)

struct question {
        struct loop *loop;
        struct reviewer *reviewer;
        struct watch parent;           /* the reader of standard output */
        struct run_request request;
        struct review_query query;
        struct arena arena;
        bool done;
};

static void on_done(struct review_query *query)
{
        struct question *question = query->owner;
        question->done = true;
}

/* The reader of the answer has gone: all started work ends with this process. */
static void on_parent(struct watch *watch, uint32_t events)
{
        (void)watch, (void)events;
        _exit(125);
}

static int read_findings(struct question *question, json_t *list, struct csn_error *err)
{
        size_t n = json_array_size(list);
        struct finding *findings = arena_alloc(&question->arena, (n + 1) * sizeof *findings);
        for (size_t i = 0; i < n; i++)
                if (model_decode(&object_finding, json_array_get(list, i), &question->arena, &findings[i], err) < 0)
                        return -err->code;
        question->query.findings = findings;
        question->query.findings_n = n;
        return 0;
}

static int read_question(struct question *question, json_t *json, struct csn_error *err)
{
        struct review_query *query = &question->query;
        struct run_request *request = &question->request;
        json_t *tools = json_object_get(json, "tools");
        const char *id = json_string_value(json_object_get(json, "id"));
        if (model_decode(&object_run_request, json_object_get(json, "request"), &question->arena, request, err) < 0 ||
                read_findings(question, json_object_get(json, "findings"), err) < 0)
                return -err->code;
        char **names = arena_alloc(&question->arena, (json_array_size(tools) + 1) * sizeof *names);
        *query = (struct review_query){ .mode = review_mode_REQUIRED,
                .id = arena_text(&question->arena, "%s", id ? id : ""),
                .owner_key = "",
                .language = HAS(request, run_request, language) ? request->language : "",
                .profile = HAS(request, run_request, profile) ? request->profile : NULL,
                .code = request->code,
                .tools = names,
                .findings = query->findings,
                .findings_n = query->findings_n,
                .checked = json_is_true(json_object_get(json, "checked")),
                .env = request->env,
                .env_n = request->env_n,
                .arena = &question->arena,
                .done = on_done,
                .owner = question };
        for (size_t i = 0; i < json_array_size(tools); i++) {
                const char *name = json_string_value(json_array_get(tools, i));
                if (name)
                        names[query->tools_n++] = arena_text(&question->arena, "%s", name);
        }
        return 0;
}

static int wait_for_answer(struct question *question, const struct settings *settings, struct csn_error *err)
{
        if (reviewer_prepare(settings, &question->reviewer, err) < 0 || loop_new(&question->loop, err) < 0)
                return -err->code;
        question->parent = (struct watch){ .fd = -1, .ready = on_parent };
        /* A file or terminal cannot be watched, and a person has started this. */
        (void)loop_watch(question->loop, &question->parent, STDOUT_FILENO, EPOLLERR, NULL);
        if (reviewer_open(question->reviewer, question->loop, NULL, err) < 0)
                return -err->code;
        question->done = reviewer_source.ask(question->reviewer, &question->query);
        int rc = 0;
        while (rc == 0 && !question->done)
                rc = loop_step(question->loop, -1, err);
        return rc;
}

/* In the store of the state folder, where caisson stats looks.  A failure changes no verdict. */
static void keep_usage(const struct question *question, const struct settings *settings)
{
        struct store *store = NULL;
        struct csn_error err;
        char tenant[40];
        if (!HAS(&question->query.review, review, usage))
                return;
        snprintf(tenant, sizeof tenant, "uid:%u", (unsigned)getuid());
        int rc = store_open_default(settings, &store, &err);
        rc = rc < 0 ? rc : usage_add_review(store, tenant, "", &question->query.review, &err);
        if (rc < 0)
                log_text(LOG_WARN, "the usage of a review is not recorded: %s", err.text);
        store_close(store);
}

static void print_answer(const struct question *question)
{
        const struct review_query *query = &question->query;
        json_t *answer = json_pack("{s:o, s:s*, s:b}", "review", model_encode(&object_review, &query->review),
                "problem", query->problem, "retryable", query->retryable);
        char *text = answer ? json_dumps(answer, JSON_COMPACT | MODEL_MEASURED) : NULL;
        if (text)
                fputs(text, stdout);
        free(text);
        json_decref(answer);
}

static int answer(int argc, char **argv, const struct settings *settings)
{
        struct question question = { 0 };
        struct csn_error err = { 0 };
        struct bytes text = { 0 };
        (void)argv;
        if (argc > 1)
                return cli_usage("caisson-remote review has no arguments");
        signal(SIGPIPE, SIG_IGN);
        int rc = cli_read_whole("-", QUESTION_MAX, "question", &question.arena, &text, &err);
        json_t *json = rc == 0 ? model_read(text.bytes, text.len, 0, NULL) : NULL;
        if (rc == 0 && !json)
                rc = err_set(&err, CSN_E_INPUT, 0, "caisson-remote review: standard input is no JSON");
        if (rc == 0 && (rc = read_question(&question, json, &err)) == 0) {
                if (wait_for_answer(&question, settings, &err) < 0)
                        review_fail(&question.query, REVIEW_UNAVAILABLE, true, "%s", err.text);
                print_answer(&question);
                fflush(stdout);
                keep_usage(&question, settings);
        }
        json_decref(json);
        reviewer_free(question.reviewer);
        if (question.loop)
                loop_unwatch(question.loop, &question.parent);
        loop_free(question.loop);
        arena_done(&question.arena);
        return rc < 0 ? cli_fail(&err) : 0;
}

int remote_review(int argc, char **argv)
{
        return cli_with_settings(argc, argv, answer);
}
