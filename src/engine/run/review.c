/* Runs and gradings waiting for a review. */
#include "engine/run/review.h"

#include "engine/run/run_private.h"

#include <stdio.h>

#define LOG_REASON_MAX 300 /* bytes of a reason in a line of the log */

int review_mode_of(const struct settings *settings, int asked)
{
        int least = settings->review.mode;
        return least > asked ? least : asked; /* off < advisory < required, in the order of fields.def */
}

/* ---- answers ---- */

static void begin_answer(struct review_query *query, int verdict)
{
        SET(&query->review, review, mode, query->mode);
        SET(&query->review, review, verdict, verdict);
        query->answered = true;
}

void review_fail(struct review_query *query, const char *problem, bool retryable, const char *fmt, ...)
{
        char text[500];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        begin_answer(query, review_verdict_UNAVAILABLE);
        SET(&query->review, review, error, arena_text(query->arena, "%s", text));
        query->problem = problem;
        query->retryable = retryable;
}

void review_skip(struct review_query *query)
{
        begin_answer(query, review_verdict_SKIPPED);
}

bool review_refuses(const struct review_query *query, struct failure *ret)
{
        const struct review *review = &query->review;
        if (query->mode != review_mode_REQUIRED || review->verdict == review_verdict_SECURE ||
                review->verdict == review_verdict_SKIPPED)
                return false;
        const bool insecure = review->verdict == review_verdict_INSECURE;
        *ret = (struct failure){ 0 };
        SET(ret, failure, code, arena_text(query->arena, "%s", insecure ? "review" : query->problem));
        SET(ret, failure, retryable, !insecure && query->retryable);
        SET(ret, failure, message,
                insecure ? arena_text(query->arena, "Code execution blocked due to security concerns: %s",
                                   review->reason)
                         : arena_text(query->arena, "A review is required, and there is no verdict: %s",
                                   review->error));
        return true;
}

const char *review_warning(const struct review_query *query, const char **ret_code)
{
        const struct review *review = &query->review;
        if (review->verdict == review_verdict_INSECURE) {
                *ret_code = REVIEW_INSECURE;
                return arena_text(query->arena, "the reviewer refuses the program, and only advises: %s",
                        review->reason);
        }
        *ret_code = query->problem;
        return review->verdict == review_verdict_UNAVAILABLE
                ? arena_text(query->arena, "there is no verdict of the reviewer: %s", review->error)
                : NULL;
}

/* The reason is a model's text: its beginning, and never the code. */
static void write_log(const struct review_query *query)
{
        static const char *const texts[] = { [review_verdict_SECURE] = "Code security review passed",
                [review_verdict_INSECURE] = "Code security review refused the program",
                [review_verdict_UNAVAILABLE] = "Code security review unavailable",
                [review_verdict_SKIPPED] = "Code security review skipped" };
        const struct review *review = &query->review;
        const struct log_context context = { .run = query->id, .trace = query->id, .owner = query->owner_key };
        const char *why = review->reason ? review->reason : review->error ? review->error : "by the settings";
        size_t len = strlen(why);
        if (len > LOG_REASON_MAX)
                len = utf8_whole(why, LOG_REASON_MAX);
        log_about(LOG_INFO, &context, "%s: %.*s", texts[review->verdict], (int)len, why);
}

static void account(struct engine *engine, const struct review_query *query)
{
        const struct review_accounts *accounts = engine->review_accounts;
        if (accounts && HAS(&query->review, review, usage))
                accounts->used(engine->review_accounts_owner, query->owner_key, query->quota, &query->review);
}

void review_settle(struct engine *engine, const struct review_query *query)
{
        write_log(query);
        counters_add_review(engine, &query->review);
        account(engine, query);
}

/* ---- asking ---- */

bool review_ask(struct engine *engine, struct review_query *query)
{
        const struct review_accounts *accounts = engine->review_accounts;
        bool answered = true;
        if (!engine->review_source)
                review_fail(query, REVIEW_UNAVAILABLE, true,
                        "no reviewer is configured; set review.base_url and review.model, review.command or review.url");
        else if (accounts && query->quota && accounts->spent(engine->review_accounts_owner, query->quota))
                review_fail(query, REVIEW_BUDGET_EXHAUSTED, false,
                        REVIEW_BUDGET_EXHAUSTED ": the budget of the key for reviews is used up");
        else
                answered = engine->review_source->ask(engine->review_source_owner, query);
        if (answered)
                review_settle(engine, query);
        return answered;
}

void review_forget(struct engine *engine, struct review_query *query)
{
        if (!query->work || !engine->review_source)
                return;
        engine->review_source->forget(engine->review_source_owner, query);
        query->work = NULL;
        account(engine, query);
}

/* ---- runs ---- */

/* Our own programs, and programs that are only compiled, need no review. */
bool run_needs_review(const struct run *run)
{
        return !run->unreviewed && !run->launch.compile_only &&
                review_mode_of(run->engine->settings, run->launch.request.review) != review_mode_OFF;
}

void run_set_unreviewed(struct run *run)
{
        run->unreviewed = true;
}

void run_set_reviewed_tools(struct run *run, const struct tools_request *tools)
{
        struct arena *arena = &run->launch.arena;
        char **names = arena_alloc(arena, (tools->allow_n + tools->client_n + 1) * sizeof *names);
        size_t n = 0;
        for (size_t i = 0; i < tools->allow_n; i++)
                names[n++] = arena_text(arena, "%s", tools->allow[i]);
        for (size_t i = 0; i < tools->client_n; i++)
                names[n++] = arena_text(arena, "%s", tools->client[i].name);
        run->review.tools = names;
        run->review.tools_n = n;
}

static void use(struct run *run)
{
        struct review_query *query = &run->review;
        const char *code = NULL, *text;
        if (review_refuses(query, &run->result.error)) {
                run->blocked = run->blocked_by_review = true;
                MARK(&run->result, run_result, error);
        } else if ((text = review_warning(query, &code))) {
                run_warn(run, code, "%s", text);
        }
}

static void on_answer(struct review_query *query)
{
        struct run *run = query->owner;
        query->work = NULL;
        run->waits_for_review = false;
        run->engine->checking--;
        review_settle(run->engine, query);
        use(run);
        run->reviewed(run);
}

void run_review(struct run *run, void (*reviewed)(struct run *run))
{
        const struct run_request *request = &run->launch.request;
        const struct check_result *checked = &run->check.result;
        if (!run->executor)
                run_set_reviewed_tools(run, &request->tools);
        run->review = (struct review_query){ .mode = review_mode_of(run->engine->settings, request->review),
                .id = run->id,
                .owner_key = run->owner_key,
                .quota = &run->quota,
                .language = run->launch.language->name,
                .profile = HAS(request, run_request, profile) ? request->profile : NULL,
                .code = request->code,
                .tools = run->review.tools,
                .tools_n = run->review.tools_n,
                .findings = checked->findings,
                .findings_n = checked->findings_n,
                .checked = strcmp(request->policy, "off") != 0,
                .env = request->env,
                .env_n = request->env_n,
                .arena = &run->launch.arena,
                .done = on_answer,
                .owner = run };
        run->reviewed = reviewed;
        if (review_ask(run->engine, &run->review)) {
                use(run);
                reviewed(run);
                return;
        }
        run->waits_for_review = true;
        run->engine->checking++;
        run->state = RUN_CHECKING;
}

void run_forget_review(struct run *run)
{
        if (!run->waits_for_review)
                return;
        review_forget(run->engine, &run->review);
        run->waits_for_review = false;
        run->engine->checking--;
}
