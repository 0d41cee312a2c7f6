/* A check of a program that is not run; and the interpreter's own words where it does not parse. */
#include "engine/run/run_private.h"

#include <inttypes.h>

static void finish(struct inquiry *inquiry)
{
        inquiry->done(inquiry);
}

void check_unreadable(struct check *check)
{
        struct check_result *result = &check->result;
        SET(&result->error, failure, message, arena_text(&check->arena, "%s", "Python can read this, but the check cannot; please write it in another way"));
        SET(result, check_result, reason, arena_text(&check->arena, "Line %" PRIu64 ": %s", result->error.line, result->error.message));
}

/*
 * Its error instead of our parser's, or of what was found in a program that is none.  Whatever else became of the run
 * says nothing about the program.
 */
static void take_words(struct check *check, const struct run_result *record)
{
        struct check_result *result = &check->result;
        struct arena *arena = &check->arena;
        const struct failure *said = &record->error;
        if (record->status == status_COMPLETED) {
                if (!check->doubtful)
                        check_unreadable(check);
                return;
        }
        if (record->status != status_SYNTAX_ERROR || !HAS(record, run_result, error) || !HAS(said, failure, message) ||
            !HAS(said, failure, line))
                return;
        policy_result(&check->request, arena, result);
        SET(result, check_result, verdict, verdict_DENY);
        MARK(result, check_result, error);
        if (HAS(said, failure, type))
                SET(&result->error, failure, type, arena_text(arena, "%s", said->type));
        SET(&result->error, failure, message, arena_text(arena, "%s", said->message));
        SET(&result->error, failure, line, said->line);
        if (HAS(said, failure, column))
                SET(&result->error, failure, column, said->column);
        if (HAS(said, failure, text))
                SET(&result->error, failure, text, arena_text(arena, "%s", said->text));
        SET(result, check_result, reason, arena_text(arena, "Line %" PRIu64 ": %s", said->line, said->message));
}

static void on_words(void *owner, const struct run_result *record)
{
        struct inquiry *inquiry = owner;
        take_words(&inquiry->check, record);
        run_free(inquiry->run);
        inquiry->run = NULL;
        finish(inquiry);
}

static const struct run_events words_events = { .done = on_words };

/* It is compiled and never run, from the beginning: no other answer of a policy could change that. */
static void ask_interpreter(struct inquiry *inquiry)
{
        struct run *run = inquiry->run = run_new(inquiry->engine);
        struct run_request *request = &run->request;
        if (inquiry->run_owner)
                run_set_owner(run, inquiry->run_owner);
        const struct bytes *code = &inquiry->check.request.code;
        run->compile_only = true;
        SET(request, run_request, language, arena_text(&run->arena, "%s", lang_python.name));
        SET(request, run_request, code, ((struct bytes){ arena_copy(&run->arena, code->bytes, code->len), code->len }));
        SET(request, run_request, policy, arena_text(&run->arena, "off"));
        run_start(run, true, &words_events, inquiry);
}

static void on_checked(struct check *check)
{
        struct inquiry *inquiry = check->owner;
        const struct check_result *result = &check->result;
        bool broken = HAS(result, check_result, error) && HAS(&result->error, failure, line);
        if ((broken || check->doubtful) && HAS(&check->request, check_request, language) && strcmp(check->request.language, lang_python.name) == 0)
                ask_interpreter(inquiry);
        else
                finish(inquiry);
}

int inquiry_find_language(struct engine *engine, struct inquiry *inquiry, struct csn_error *err)
{
        struct check_request *request = &inquiry->check.request;
        const struct language *language;
        if (!HAS(request, check_request, language))
                return err_field(err, "/language", "no language is given; give language");
        if (lang_find(engine_languages(engine), request->language, &language, err) < 0)
                return -err->code;
        request->language = arena_text(&inquiry->check.arena, "%s", language->name);
        return 0;
}

void inquiry_start(struct engine *engine, struct inquiry *inquiry)
{
        inquiry->engine = engine;
        inquiry->check.done = on_checked;
        inquiry->check.owner = inquiry;
        inquiry->check.key = inquiry->run_owner;
        policy_defaults(&inquiry->check.request);
        checker_start(engine_checker(engine), &inquiry->check);
}

static void note_end(struct inquiry *inquiry)
{
        *(bool *)inquiry->owner = true;
}

int inquiry_wait(struct engine *engine, struct inquiry *inquiry, struct csn_error *err)
{
        bool done = false;
        int rc = 0;
        inquiry->done = note_end;
        inquiry->owner = &done;
        inquiry_start(engine, inquiry);
        while (rc == 0 && !done)
                rc = engine_step(engine, -1, err);
        inquiry->owner = NULL;
        return rc;
}

void inquiry_cancel(struct inquiry *inquiry)
{
        if (inquiry->run)
                run_cancel(inquiry->run);   /* the checker has bounds of its own */
}

void inquiry_done(struct inquiry *inquiry)
{
        if (inquiry->engine)
                checker_cancel(inquiry->engine->checker, &inquiry->check);
        if (inquiry->run)
                run_free(inquiry->run);
        inquiry->run = NULL;
        check_done(&inquiry->check);
}
