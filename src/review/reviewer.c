/*
 * Reviews: from a query to a verdict.
 *
 * A work waits for a place (review.concurrency, in the order of the queries), makes its messages, sends them, and reads
 * the answer.  Between two requests are steps of the ladder (completion.c), which are no attempts, and pauses.
 * Everything happens within review.budget, whose timer ends a work in any state.
 *
 * The circuit breaker counts reviews without an answer of the server.  An answer without a verdict does not count, nor
 * does a status that refuses the question, such as 400 for a program too long for the model: a program can cause
 * either, and could close the reviewer for all other tenants.
 */
#include "review/review_private.h"

#include <inttypes.h>
#include <stdio.h>

#define AT_ONCE_MAX (32 * KIB)  /* bytes of code or of an answer processed in the loop, not in a thread */
#define FAILURES_MAX 5          /* consecutive failures that open the breaker */
#define OPEN_US 10000000ULL
#define PAUSE_MS 1000           /* the first pause at most; each further pause is twice as long */
#define PAUSE_MAX_MS 60000

struct review_work {
        struct review_work *next;
        struct reviewer *reviewer;
        struct review_query *query;
        struct arena arena;            /* of the messages, and of the answer */
        enum { WORK_WAITING, WORK_MAKING, WORK_SENDING, WORK_PAUSING, WORK_READING } state;
        bool has_place, is_probe;
        uint64_t asked_us;
        struct review_settings settings; /* for a helper thread: a reload changes the engine's */
        struct timer budget, pause;
        struct review_exchange exchange;
        struct job job;
        const char *tools, *system, *user;
        struct bytes code;             /* as sent */
        struct review_ladder ladder;   /* of the current request */
        unsigned attempts;             /* requests, without steps of the ladder */
        struct review_usage usage;
        uint8_t key[REVIEW_KEY_SIZE];
        char *body;                    /* of the next request, from malloc(3) */
        /* The answer, and its parsed parts. */
        char *answer;
        size_t answer_len;
        struct review_completion completion;
        struct review found;
        char *found_text;
        const char *why;
};

static const struct review_settings *settings_of(const struct review_work *work)
{
        return &work->reviewer->settings->review;
}

static bool is_chat(const struct reviewer *reviewer)
{
        return reviewer->settings->review.base_url[0];
}

static const char *model_of(const struct reviewer *reviewer)
{
        return is_chat(reviewer) ? reviewer->settings->review.model : reviewer->launcher ? "command" : "url";
}

static const char *prompt_of(const struct reviewer *reviewer)
{
        return reviewer->prompt.text ? reviewer->prompt.text : review_prompt;
}

/* ---- the end of a work ---- */

static void serve_later(struct reviewer *reviewer)
{
        loop_timer(reviewer->loop, &reviewer->serve, 0);
}

static void work_free(struct review_work *work)
{
        struct reviewer *reviewer = work->reviewer;
        for (struct review_work **at = &reviewer->works; *at; at = &(*at)->next)
                if (*at == work) {
                        *at = work->next;
                        break;
                }
        loop_untimer(reviewer->loop, &work->budget);
        loop_untimer(reviewer->loop, &work->pause);
        review_exchange_stop(&work->exchange);
        if (work->job.active)
                worker_wait(reviewer->workers, &work->job);
        if (work->has_place) {
                reviewer->running--;
                serve_later(reviewer);
        }
        if (work->is_probe)
                reviewer->probing = false;
        work->query->work = NULL;
        free(work->body);
        free(work->answer);
        arena_done(&work->arena);
        free(work);
}

static void take_usage(struct review_work *work)
{
        struct review *review = &work->query->review;
        if (!work->usage.calls)
                return;
        work->usage.cost_nanousd = review_price_of(&work->reviewer->price, &work->usage);
        review->usage = work->usage;
        MARK(review, review, usage);
}

/* Add the work's part to the query's review, and finish the query. */
static void conclude(struct review_work *work)
{
        struct review_query *query = work->query;
        struct review *review = &query->review;
        SET(review, review, model, arena_text(query->arena, "%s", model_of(work->reviewer)));
        SET(review, review, latency_ms, (double)(clock_us() - work->asked_us) / 1000);
        review->attempts = work->usage.calls;
        take_usage(work);
        arena_join(query->arena, &work->arena);
        work_free(work);
        query->done(query);
}

static void fail(struct review_work *work, const char *why)
{
        review_fail(work->query, REVIEW_UNAVAILABLE, true, "%s", why);
        conclude(work);
}

/* The server gave no answer. */
static void server_failed(struct review_work *work, const char *why)
{
        struct reviewer *reviewer = work->reviewer;
        reviewer->failures++;
        if (work->is_probe || reviewer->failures >= FAILURES_MAX) {
                log_text(LOG_WARN, "the reviewer failed %u times in a row; reviews pause for 10 s: %s",
                        reviewer->failures, why);
                reviewer->open_until_us = clock_us() + OPEN_US;
        }
        fail(work, why);
}

static void server_answered(struct reviewer *reviewer)
{
        reviewer->failures = 0;
        reviewer->open_until_us = 0;
}

static bool is_open(const struct reviewer *reviewer)
{
        return reviewer->open_until_us && (reviewer->probing || clock_us() < reviewer->open_until_us);
}

#define OPEN_TEXT "the reviewer failed several times in a row, and is asked again in some seconds"

static void on_budget(struct timer *timer)
{
        struct review_work *work = timer->owner;
        char text[100], limit[40];
        duration_print(settings_of(work)->budget, limit, sizeof limit);
        snprintf(text, sizeof text, "there is no verdict within review.budget=%s", limit);
        if (work->state == WORK_SENDING || work->state == WORK_PAUSING)
                server_failed(work, text);
        else
                fail(work, text);
}

/* ---- the cache ---- */

static bool use_cached(struct reviewer *reviewer, struct review_query *query, const uint8_t *key)
{
        const char *text = review_cache_find(reviewer->cache, key);
        char *same;
        if (!text || review_answer_read(text, strlen(text), (struct bytes){ 0 }, query->arena, &query->review, &same))
                return false;
        SET(&query->review, review, mode, query->mode);
        SET(&query->review, review, cached, true);
        query->answered = true;
        return true;
}

/*
 * The question without the code, as part of the cache key.  A hook gets more than a model, and may decide by all of the
 * question.
 */
static const char *question_of(const struct reviewer *reviewer, const struct review_query *query)
{
        if (is_chat(reviewer))
                return prompt_of(reviewer);
        char *body = review_hook_body(query, (struct bytes){ 0 });
        const char *question = arena_text(query->arena, "%s", body ? body : "");
        free(body);
        return question;
}

/* ---- requests ---- */

static void send_request(struct review_work *work);

/* Perhaps in a helper thread. */
static void work_make(struct job *job)
{
        struct review_work *work = job->owner;
        const struct review_query *query = work->query;
        work->code = review_without_secrets(query->code, query->env, query->env_n, &work->arena);
        free(work->body);
        if (!is_chat(work->reviewer)) {
                work->body = review_hook_body(query, work->code);
                return;
        }
        if (!work->user) {
                work->system = review_system_message(work->system, work->tools, &work->arena);
                work->user = review_user_message(query->language, work->code, &work->arena);
        }
        work->body = work->user ? review_chat_body(&work->settings, &work->ladder, work->system, work->user) : NULL;
}

static void on_made(struct job *job)
{
        send_request(job->owner);
}

static void do_job(struct review_work *work, void (*make)(struct job *job), void (*done)(struct job *job), size_t size)
{
        struct reviewer *reviewer = work->reviewer;
        work->job = (struct job){ .work = make, .done = done, .owner = work };
        if (reviewer->workers && size > AT_ONCE_MAX) {
                worker_submit(reviewer->workers, work->query->owner_key, &work->job);
                return;
        }
        make(&work->job);
        done(&work->job);
}

static void make_request(struct review_work *work)
{
        work->state = WORK_MAKING;
        work->ladder = work->reviewer->ladder;
        work->settings = *settings_of(work);
        do_job(work, work_make, on_made, work->query->code.len);
}

static void on_pause(struct timer *timer)
{
        make_request(timer->owner);
}

static uint64_t random_part(uint64_t max)
{
        char digits[9];
        hex_random(4, digits);
        return max / 4 + strtoull(digits, NULL, 16) % (max - max / 4 + 1);
}

/* Try again after a pause, if attempts and budget allow. */
static void retry(struct review_work *work, const struct review_reply *reply, const char *why)
{
        uint64_t now = clock_us(), end_us = work->asked_us + settings_of(work)->budget * 1000;
        uint64_t longest = min_u64((uint64_t)PAUSE_MS << (work->attempts - 1), PAUSE_MAX_MS);
        uint64_t pause_ms = reply->has_retry_after ? reply->retry_after_ms : random_part(longest);
        char text[300];
        if (work->attempts < settings_of(work)->attempts && now + pause_ms * 1000 < end_us) {
                review_exchange_stop(&work->exchange);
                work->state = WORK_PAUSING;
                loop_timer(work->reviewer->loop, &work->pause, pause_ms * 1000);
                return;
        }
        snprintf(text, sizeof text, "%s (attempts: %u)", why, work->attempts);
        server_failed(work, text);
}

/* ---- answers ---- */

/* Perhaps in a helper thread. */
static void work_read(struct job *job)
{
        struct review_work *work = job->owner;
        struct review_completion *completion = &work->completion;
        if (is_chat(work->reviewer))
                review_chat_read(work->answer, work->answer_len, &work->arena, completion);
        else
                review_hook_read(work->answer, work->answer_len, &work->arena, completion);
        work->found = (struct review){ 0 };
        work->why = completion->problem;
        if (!work->why)
                work->why = review_answer_read(completion->content, completion->content_len, work->code, &work->arena,
                        &work->found, &work->found_text);
}

static void add_usage(struct review_work *work)
{
        const struct review_usage *more = &work->completion.usage;
        struct review_usage *sum = &work->usage;
        if (!work->completion.has_usage) {
                sum->usage_missing++;
                return;
        }
        sum->prompt_tokens += more->prompt_tokens;
        sum->completion_tokens += more->completion_tokens;
        sum->total_tokens += more->total_tokens;
        sum->cached_tokens += more->cached_tokens;
        sum->reasoning_tokens += more->reasoning_tokens;
}

static void on_read(struct job *job)
{
        struct review_work *work = job->owner;
        struct review_query *query = work->query;
        if (job->dropped) {
                fail(work, "the engine ends");
                return;
        }
        add_usage(work);
        if (work->why) {
                fail(work, work->why);
                return;
        }
        query->review = work->found;
        SET(&query->review, review, mode, query->mode);
        query->answered = true;
        review_cache_put(work->reviewer->cache, work->key, work->found_text, settings_of(work)->cache);
        conclude(work);
}

static void read_answer(struct review_work *work, const struct review_reply *reply)
{
        work->answer = mem_copy(reply->body, reply->len);
        work->answer_len = reply->len;
        work->state = WORK_READING;
        server_answered(work->reviewer);
        review_exchange_stop(&work->exchange);
        do_job(work, work_read, on_read, reply->len);
}

/* Concurrent works take the same steps; the furthest step counts. */
static void keep_step(struct reviewer *reviewer, const struct review_ladder *step)
{
        if (step->format > reviewer->ladder.format)
                reviewer->ladder.format = step->format;
        reviewer->ladder.no_temperature |= step->no_temperature;
        reviewer->ladder.completion_tokens |= step->completion_tokens;
}

/* The server works, but refuses the question. */
static bool is_about_question(long status)
{
        return status == 400 || status == 413 || status == 422;
}

static bool may_come_back(long status)
{
        return status == 408 || status == 429 || (status >= 500 && status <= 504);
}

static void on_reply(struct review_exchange *exchange, const struct review_reply *reply)
{
        struct review_work *work = exchange->owner;
        const bool fixed = settings_of(work)->response_format != review_formats_AUTO;
        char text[200];
        if (reply->why && reply->may_retry) {
                snprintf(text, sizeof text, "%s", reply->why);
                retry(work, reply, text);
        } else if (reply->why) {
                server_failed(work, reply->why);
        } else if (reply->status / 100 == 2) {
                read_answer(work, reply);
        } else if (is_chat(work->reviewer) &&
                review_ladder_step(&work->ladder, fixed, reply->status, reply->body, reply->len)) {
                review_exchange_stop(exchange);
                keep_step(work->reviewer, &work->ladder);
                work->attempts--;
                make_request(work);
        } else {
                snprintf(text, sizeof text, "the server of the reviewer answered with status %ld%s", reply->status,
                        reply->status / 100 == 3           ? "; redirects are not followed"
                                : reply->status == 401     ? "; see review.api_key_file"
                                                           : "");
                if (may_come_back(reply->status))
                        retry(work, reply, text);
                else if (is_about_question(reply->status))
                        fail(work, text);
                else
                        server_failed(work, text);
        }
}

static void send_request(struct review_work *work)
{
        const struct review_settings *settings = settings_of(work);
        uint64_t used_ms = (clock_us() - work->asked_us) / 1000;
        struct csn_error err;
        char *body = work->body;
        if (!body) {
                fail(work, "the program cannot be put into a question");
                return;
        }
        uint64_t rest_ms = used_ms < settings->budget ? settings->budget - used_ms : 1;
        work->body = NULL;
        work->state = WORK_SENDING;
        work->attempts++;
        work->exchange = (struct review_exchange){ .reviewer = work->reviewer, .done = on_reply, .owner = work };
        int rc = work->reviewer->launcher
                ? command_exchange_start(&work->exchange, body, min_u64(settings->timeout, rest_ms), &err)
                : http_exchange_start(&work->exchange, body, work->query->id, min_u64(settings->timeout, rest_ms),
                          &err);
        if (rc < 0)
                fail(work, err.text);
        else
                work->usage.calls++;
}

/* ---- places ---- */

static void begin(struct review_work *work)
{
        struct reviewer *reviewer = work->reviewer;
        if (use_cached(reviewer, work->query, work->key)) {
                conclude(work);
                return;
        }
        if (is_open(reviewer)) {
                fail(work, OPEN_TEXT);
                return;
        }
        work->is_probe = reviewer->probing = reviewer->open_until_us != 0;
        work->has_place = true;
        reviewer->running++;
        make_request(work);
}

static struct review_work *next_waiting(const struct reviewer *reviewer)
{
        struct review_work *work = reviewer->works;
        while (work && work->state != WORK_WAITING)
                work = work->next;
        return work;
}

void reviewer_serve(struct timer *timer)
{
        struct reviewer *reviewer = timer->owner;
        struct review_work *work;
        while (reviewer->running < reviewer->settings->review.concurrency && (work = next_waiting(reviewer)))
                begin(work);
}

/* ---- the source ---- */

static bool is_exempt(const struct review_settings *settings, const struct review_query *query)
{
        const char *at = settings->languages;
        const size_t len = strlen(query->language);
        bool named = !at[0];
        while (*at && !named) {
                at += strspn(at, ", \t[]\"'");
                size_t n = strcspn(at, ", \t[]\"'");
                named = n == len && memcmp(at, query->language, n) == 0;
                at += n;
        }
        /* An unchecked program has no findings, and is still reviewed. */
        return !named || (settings->only_if == review_only_if_FINDINGS && query->checked && !query->findings_n);
}

static void add_work(struct reviewer *reviewer, struct review_query *query, const uint8_t *key, const char *tools)
{
        struct review_work *work = mem_alloc(sizeof *work), **last = &reviewer->works;
        *work = (struct review_work){ .reviewer = reviewer, .query = query, .asked_us = clock_us() };
        work->budget = (struct timer){ .fired = on_budget, .owner = work };
        work->pause = (struct timer){ .fired = on_pause, .owner = work };
        work->tools = arena_text(&work->arena, "%s", tools);
        work->system = arena_text(&work->arena, "%s", prompt_of(reviewer));
        memcpy(work->key, key, sizeof work->key);
        while (*last)
                last = &(*last)->next;
        *last = work;
        query->work = work;
        loop_timer(reviewer->loop, &work->budget, reviewer->settings->review.budget * 1000);
        serve_later(reviewer);
}

bool reviewer_ask(void *owner, struct review_query *query)
{
        struct reviewer *reviewer = owner;
        const struct review_settings *settings = &reviewer->settings->review;
        uint8_t key[REVIEW_KEY_SIZE];
        if (is_exempt(settings, query)) {
                review_skip(query);
                return true;
        }
        if (query->code.len > settings->max_code_bytes) {
                review_fail(query, REVIEW_UNAVAILABLE, false,
                        "review_too_long: the program has %zu bytes; review.max_code_bytes=%" PRIu64, query->code.len,
                        settings->max_code_bytes);
                return true;
        }
        if (!config_file_refresh(&reviewer->prompt)) {
                review_fail(query, REVIEW_UNAVAILABLE, true, "%s", reviewer->prompt.why);
                return true;
        }
        const char *tools = review_tools_list(query->tools, query->tools_n, query->arena);
        if (!review_cache_key(query, question_of(reviewer, query), tools, model_of(reviewer), key)) {
                review_fail(query, REVIEW_UNAVAILABLE, true, "libcrypto cannot hash the program");
                return true;
        }
        if (use_cached(reviewer, query, key)) {
                SET(&query->review, review, model, arena_text(query->arena, "%s", model_of(reviewer)));
                return true;
        }
        if (is_open(reviewer)) {
                review_fail(query, REVIEW_UNAVAILABLE, true, OPEN_TEXT);
                return true;
        }
        add_work(reviewer, query, key, tools);
        return false;
}

void reviewer_forget(void *owner, struct review_query *query)
{
        (void)owner;
        struct review_work *work = query->work;
        if (!work)
                return;
        /* The answer of a pending request will not be read, so its usage is missing. */
        work->usage.usage_missing += work->state == WORK_SENDING;
        take_usage(work);
        SET(&query->review, review, model, arena_text(query->arena, "%s", model_of(work->reviewer)));
        work_free(work);
}

void reviewer_stop(struct reviewer *reviewer)
{
        for (struct review_work *work = reviewer->works, *next; work; work = next) {
                next = work->next;
                work_free(work);
        }
}
