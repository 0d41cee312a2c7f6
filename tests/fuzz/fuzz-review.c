/*
 * Hostile answers of models and their servers: a text becomes at most one verdict, within its bounds, and the object of
 * a verdict is read again as the same verdict; hidden characters of a program are shown.
 */
#include "review/review_private.h"

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void check_answer(const char *text, size_t len)
{
        struct arena arena = { 0 };
        struct review review = { 0 }, again = { 0 };
        char *object = NULL, *same = NULL;
        if (!review_answer_read(text, len, (struct bytes){ 0 }, &arena, &review, &object)) {
                require(review.verdict == review_verdict_SECURE || review.verdict == review_verdict_INSECURE);
                require(review.reason && strlen(review.reason) <= 2000 && review.findings_n <= 100);
                require(!review_answer_read(object, strlen(object), (struct bytes){ 0 }, &arena, &again, &same));
                require(again.verdict == review.verdict && strcmp(again.reason, review.reason) == 0);
                /* What the answer has a second time is no verdict. */
                char *twice = arena_text(&arena, "%s %s", object, object);
                require(review_answer_read(twice, strlen(twice), (struct bytes){ 0 }, &arena, &again, &same) != NULL);
        }
        arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct review_completion completion;
        struct buf shown, again;
        const char *text = arena_copy(&arena, (const char *)bytes, len);
        check_answer(text, len);
        review_chat_read(text, len, &arena, &completion);
        if (!completion.problem)
                check_answer(completion.content, completion.content_len);
        require(!completion.has_usage || completion.usage.prompt_tokens <= 1000000000);
        review_hook_read(text, len, &arena, &completion);
        buf_init(&shown, 10 * len + 1);
        buf_init(&again, 10 * len + 1);
        require(review_add_visible(&shown, text, len));
        require(utf8_valid(shown.len ? shown.bytes : "", shown.len));
        require(review_add_visible(&again, shown.len ? shown.bytes : "", shown.len) && again.len == shown.len);
        buf_done(&shown);
        buf_done(&again);
        arena_done(&arena);
        return 0;
}
