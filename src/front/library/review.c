/* Reviews without a daemon; see review.h. */
#include "front/library/review.h"

#include "backend/backend.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#define ANSWER_MAX (2 * MIB)
#define GRACE_MS 2000 /* for the start and the end of the process, beyond review.budget */
#define ARGUMENTS_MAX 80

struct asked {
        struct asked *next;
        struct outside *outside;
        struct review_query *query;
        pid_t pid;                     /* 0: the question waits for a place */
        int in, out;                   /* standard input and output of the process, or -1 */
        struct watch input, output;
        struct timer late;
        char *question;
        size_t len, sent;
        struct buf answer;
};

struct outside {
        const struct settings *settings;
        struct engine *engine;
        struct asked *asked;           /* in the order of the questions */
        size_t running;
        struct timer serve;
};

/* ---- the end of a question ---- */

static void asked_free(struct asked *asked)
{
        struct outside *outside = asked->outside;
        struct loop *loop = engine_loop(outside->engine);
        for (struct asked **at = &outside->asked; *at; at = &(*at)->next)
                if (*at == asked) {
                        *at = asked->next;
                        break;
                }
        loop_unwatch(loop, &asked->input);
        loop_unwatch(loop, &asked->output);
        loop_untimer(loop, &asked->late);
        fd_close(&asked->in);
        fd_close(&asked->out);
        if (asked->pid > 0) {
                kill(asked->pid, SIGKILL);
                while (waitpid(asked->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
                outside->running--;
                loop_timer(loop, &outside->serve, 0);
        }
        asked->query->work = NULL;
        buf_done(&asked->answer);
        free(asked->question);
        free(asked);
}

static void finish(struct asked *asked, const char *why)
{
        struct review_query *query = asked->query;
        if (why)
                review_fail(query, REVIEW_UNAVAILABLE, true, "%s", why);
        asked_free(asked);
        query->done(query);
}

/* The process is ours, and its answer is checked all the same: no answer, no verdict. */
static bool take_answer(struct asked *asked)
{
        struct review_query *query = asked->query;
        struct review review = { 0 };
        struct csn_error err;
        json_t *json = asked->answer.len ? json_loadb(asked->answer.bytes, asked->answer.len, 0, NULL) : NULL;
        const char *problem = json_string_value(json_object_get(json, "problem"));
        bool good = model_decode(&object_review, json_object_get(json, "review"), query->arena, &review, &err) == 0 &&
                (review.verdict != review_verdict_UNAVAILABLE || (problem && review.error)) &&
                (review.verdict != review_verdict_INSECURE || review.reason);
        if (good) {
                query->review = review;
                SET(&query->review, review, mode, query->mode);
                query->problem = problem ? REVIEW_UNAVAILABLE : NULL;
                query->retryable = json_is_true(json_object_get(json, "retryable"));
                query->answered = true;
        }
        json_decref(json);
        return good;
}

/* ---- the process ---- */

static void on_output(struct watch *watch, uint32_t events)
{
        struct asked *asked = watch->owner;
        char bytes[16 * KIB];
        (void)events;
        ssize_t n = read(asked->out, bytes, sizeof bytes);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0 && buf_add(&asked->answer, bytes, (size_t)n))
                return;
        finish(asked, n == 0 && take_answer(asked) ? NULL : "caisson-remote review ended without an answer");
}

static void on_input(struct watch *watch, uint32_t events)
{
        struct asked *asked = watch->owner;
        (void)events;
        ssize_t n = write(asked->in, asked->question + asked->sent, asked->len - asked->sent);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        asked->sent += n > 0 ? (size_t)n : 0;
        if (n > 0 && asked->sent < asked->len)
                return;
        loop_unwatch(engine_loop(asked->outside->engine), watch);
        fd_close(&asked->in);
}

static void on_late(struct timer *timer)
{
        finish(timer->owner, "there is no verdict within review.budget");
}

/* The settings of this program, whatever files the process would find. */
static char **make_arguments(const struct settings *settings, struct arena *arena)
{
        char **argv = arena_alloc(arena, ARGUMENTS_MAX * sizeof *argv);
        size_t n = 0;
        const char *const first[] = { "caisson-remote", "review", "--config", "/dev/null" };
        for (size_t i = 0; i < ARRAY_LEN(first); i++)
                argv[n++] = arena_text(arena, "%s", first[i]);
        for (size_t i = 0; i < settings->n && n + 5 < ARGUMENTS_MAX; i++) {
                const struct setting *setting = &settings->list[i];
                char value[SETTING_VALUE_MAX];
                bool wanted = strncmp(setting->key, "review.", 7) == 0 ||
                        strcmp(setting->key, "engine.tools_user") == 0 || strncmp(setting->key, "engine.uid_", 11) == 0;
                if (!wanted || strcmp(setting->source, "default") == 0)
                        continue;
                settings_value(setting, value, sizeof value);
                argv[n++] = arena_text(arena, "--set");
                argv[n++] = arena_text(arena, "%s=%s", setting->key, value);
        }
        argv[n++] = arena_text(arena, "--set");
        argv[n++] = arena_text(arena, "engine.state_dir=%s", settings_state_dir(settings, arena));
        return argv;
}

static _Noreturn void become_reviewer(const char *program, char **argv, int in, int out)
{
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
                _exit(125);
        execv(program, argv);
        _exit(127);
}

static int start_process(struct asked *asked, struct csn_error *err)
{
        struct loop *loop = engine_loop(asked->outside->engine);
        const char *program = backend_remote();
        struct arena arena = { 0 };
        int question[2], answer[2];
        if (pipe2(question, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "pipe2");
        auto_fd in = question[0];
        asked->in = question[1];
        if (pipe2(answer, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "pipe2");
        auto_fd out = answer[1];
        asked->out = answer[0];
        char **argv = make_arguments(asked->outside->settings, &arena);
        asked->pid = fork();
        if (asked->pid == 0)
                become_reviewer(program, argv, in, out);
        arena_done(&arena);
        if (asked->pid < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fork");
        asked->outside->running++;
        if (fcntl(asked->in, F_SETFL, O_NONBLOCK) < 0 || fcntl(asked->out, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fcntl");
        if (loop_watch(loop, &asked->input, asked->in, EPOLLOUT, err) < 0 ||
                loop_watch(loop, &asked->output, asked->out, EPOLLIN, err) < 0)
                return -err->code;
        return 0;
}

static struct asked *next_waiting(const struct outside *outside)
{
        struct asked *asked = outside->asked;
        while (asked && asked->pid)
                asked = asked->next;
        return asked;
}

static void on_serve(struct timer *timer)
{
        struct outside *outside = timer->owner;
        struct asked *asked;
        struct csn_error err;
        while (outside->running < outside->settings->review.concurrency && (asked = next_waiting(outside)))
                if (start_process(asked, &err) < 0)
                        finish(asked, err.text);
}

/* ---- the question ---- */

static char *make_question(const struct review_query *query)
{
        struct run_request request = { 0 };
        json_t *tools = json_array(), *findings = json_array();
        SET(&request, run_request, language, (char *)(uintptr_t)query->language);
        SET(&request, run_request, code, query->code);
        if (query->profile)
                SET(&request, run_request, profile, (char *)(uintptr_t)query->profile);
        if (query->env_n) {
                request.env_n = query->env_n;
                SET(&request, run_request, env, (struct pair *)(uintptr_t)query->env);
        }
        for (size_t i = 0; i < query->tools_n; i++)
                json_array_append_new(tools, json_string(query->tools[i]));
        for (size_t i = 0; i < query->findings_n; i++)
                json_array_append_new(findings, model_encode(&object_finding, &query->findings[i]));
        json_t *question = json_pack("{s:o, s:o, s:o, s:b, s:s}", "request", model_encode(&object_run_request, &request),
                "tools", tools, "findings", findings, "checked", query->checked, "id", query->id);
        char *text = question ? json_dumps(question, JSON_COMPACT) : NULL;
        json_decref(question);
        return text;
}

static bool ask(void *owner, struct review_query *query)
{
        struct outside *outside = owner;
        struct loop *loop = engine_loop(outside->engine);
        char *question = make_question(query);
        if (!question) {
                review_fail(query, REVIEW_UNAVAILABLE, false, "the program cannot be put into a question");
                return true;
        }
        struct asked *asked = mem_alloc(sizeof *asked), **last = &outside->asked;
        *asked = (struct asked){ .outside = outside,
                .query = query,
                .in = -1,
                .out = -1,
                .input = { .fd = -1, .ready = on_input, .owner = asked },
                .output = { .fd = -1, .ready = on_output, .owner = asked },
                .late = { .fired = on_late, .owner = asked },
                .question = question,
                .len = strlen(question) };
        buf_init(&asked->answer, ANSWER_MAX);
        while (*last)
                last = &(*last)->next;
        *last = asked;
        query->work = asked;
        loop_timer(loop, &asked->late, (outside->settings->review.budget + GRACE_MS) * 1000);
        loop_timer(loop, &outside->serve, 0);
        return false;
}

static void forget(void *owner, struct review_query *query)
{
        (void)owner;
        asked_free(query->work);
}

static void end(void *owner)
{
        struct outside *outside = owner;
        for (struct asked *asked = outside->asked, *next; asked; asked = next) {
                next = asked->next;
                asked_free(asked);
        }
        loop_untimer(engine_loop(outside->engine), &outside->serve);
        free(outside);
}

void library_set_review(struct engine *engine, const struct settings *settings)
{
        static const struct review_source source = { .ask = ask, .forget = forget, .end = end };
        const struct review_settings *review = &settings->review;
        if (!review->base_url[0] && !review->command[0] && !review->url[0])
                return;
        struct outside *outside = mem_alloc(sizeof *outside);
        *outside = (struct outside){ .settings = settings, .engine = engine };
        outside->serve = (struct timer){ .fired = on_serve, .owner = outside };
        engine_set_review(engine, &source, outside);
}
