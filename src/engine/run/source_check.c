/* Checks a program without running it; Python's own syntax errors come from the interpreter. */
#include "engine/run/run_private.h"

#include <inttypes.h>

static void finish(struct source_check *source_check)
{
        source_check->done(source_check);
}

/*
 * Takes the interpreter's error in place of our parser's error and findings.  Any other outcome of the run says nothing
 * about the program.
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
        struct source_check *source_check = owner;
        take_words(&source_check->check, record);
        run_free(source_check->run);
        source_check->run = NULL;
        finish(source_check);
}

static const struct run_events words_events = { .done = on_words };

/* Compiled from the start and never run, whatever a policy would answer. */
static void ask_interpreter(struct source_check *source_check)
{
        struct run *run = source_check->run = run_new(source_check->engine);
        struct run_request *request = &run->launch.request;
        if (source_check->run_owner)
                run_set_owner(run, source_check->run_owner);
        const struct bytes *code = &source_check->check.request.code;
        run->launch.compile_only = true;
        SET(request, run_request, language, arena_text(&run->launch.arena, "%s", lang_python.name));
        SET(request, run_request, code,
                ((struct bytes){ arena_copy(&run->launch.arena, code->bytes, code->len), code->len }));
        SET(request, run_request, policy, arena_text(&run->launch.arena, "off"));
        run_start(run, true, &words_events, source_check);
}

static void on_checked(struct check *check)
{
        struct source_check *source_check = check->owner;
        const struct check_result *result = &check->result;
        bool broken = HAS(result, check_result, error) && HAS(&result->error, failure, line);
        if ((broken || check->doubtful) && HAS(&check->request, check_request, language) &&
                strcmp(check->request.language, lang_python.name) == 0)
                ask_interpreter(source_check);
        else
                finish(source_check);
}

static int take_profile(const struct settings *settings, struct check_request *request, struct arena *arena,
        struct csn_error *err)
{
        struct run_request own = { 0 }, whole = { 0 };
        struct profile profile;
        const char *name = HAS(request, check_request, profile) ? request->profile : settings->engine.profile;
#define KEEP(to, to_object, from, from_object, member) \
        if (HAS(from, from_object, member)) \
                SET(to, to_object, member, (from)->member)
        KEEP(&own, run_request, request, check_request, policy);
        KEEP(&own, run_request, request, check_request, allow_imports);
        KEEP(&own, run_request, request, check_request, forbidden_modules);
        own.allow_imports_n = request->allow_imports_n;
        own.forbidden_modules_n = request->forbidden_modules_n;
        if (profile_find(settings, name, arena, &profile, err) < 0 ||
                profile_overlay(&profile, &own, arena, &whole, err) < 0)
                return -err->code;
        if (HAS(&own, run_request, policy) || (whole.policy && strcmp(whole.policy, "off") != 0))
                KEEP(request, check_request, &whole, run_request, policy);
        KEEP(request, check_request, &whole, run_request, allow_imports);
        KEEP(request, check_request, &whole, run_request, forbidden_modules);
#undef KEEP
        request->allow_imports_n = whole.allow_imports_n;
        request->forbidden_modules_n = whole.forbidden_modules_n;
        return 0;
}

int source_check_prepare(struct engine *engine, struct source_check *source_check, struct csn_error *err)
{
        struct check_request *request = &source_check->check.request;
        const struct language *language;
        if (!HAS(request, check_request, language))
                return err_field(err, "/language", "no language is given; give language, such as python");
        if (lang_find(engine->languages, request->language, &language, err) < 0)
                return -err->code;
        request->language = arena_text(&source_check->check.arena, "%s", language->name);
        return take_profile(engine->settings, request, &source_check->check.arena, err);
}

void source_check_start(struct engine *engine, struct source_check *source_check)
{
        source_check->engine = engine;
        source_check->check.done = on_checked;
        source_check->check.owner = source_check;
        source_check->check.key = source_check->run_owner;
        policy_defaults(&source_check->check.request);
        checker_start(engine_checker(engine, &source_check->check), &source_check->check);
}

static void note_end(struct source_check *source_check)
{
        *(bool *)source_check->owner = true;
}

int source_check_wait(struct engine *engine, struct source_check *source_check, struct csn_error *err)
{
        bool done = false;
        int rc = 0;
        source_check->done = note_end;
        source_check->owner = &done;
        source_check_start(engine, source_check);
        while (rc == 0 && !done)
                rc = loop_step(engine->loop, -1, err);
        source_check->owner = NULL;
        return rc;
}

bool source_check_is_denied(const struct source_check *source_check, bool *ret_checked)
{
        const struct check_result *result = &source_check->check.result;
        struct csn_error trouble;
        *ret_checked = policy_trouble(result, &trouble) == 0;
        return *ret_checked && result->verdict == verdict_DENY;
}

void source_check_cancel(struct source_check *source_check)
{
        if (source_check->run)
                run_cancel(source_check->run);   /* the checker has bounds of its own */
}

void source_check_done(struct source_check *source_check)
{
        if (source_check->check.active)
                checker_cancel(engine_checker(source_check->engine, &source_check->check), &source_check->check);
        if (source_check->run)
                run_free(source_check->run);
        source_check->run = NULL;
        check_done(&source_check->check);
}
