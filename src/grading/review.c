/*
 * The review of a submission, once for a grading and before its first sandbox.
 *
 * The source policy looks at the submission first, for its findings; each run of the submission is compared with the
 * policy again.  A submission denied by the policy is not reviewed: its runs end as blocked, or would be reviewed
 * separately.  Test code, set-up code and checkers are the caller's own and are not reviewed.
 */
#include "grading/grading_private.h"

static int mode_of(struct grading *grading)
{
        const struct grade_request *request = &grading->request;
        const struct settings *settings = grading->grader->settings;
        const char *name = HAS(request, grade_request, profile) ? request->profile : settings->engine.profile;
        struct profile profile;
        struct csn_error err;
        int asked = HAS(request, grade_request, review) ? request->review : review_mode_OFF;
        if (profile_find(settings, name, &grading->arena, &profile, &err) == 0 && profile.request.review > asked)
                asked = profile.request.review;
        return review_mode_of(settings, asked);
}

static void use(struct grading *grading)
{
        struct grade_result *result = &grading->result;
        struct failure error;
        const char *code = NULL, *text;
        result->review = grading->review.review;
        MARK(result, grade_result, review);
        if (review_refuses(&grading->review, &error)) {
                grading_fail(grading, status_BLOCKED, &error);
        } else if ((text = review_warning(&grading->review, &code))) {
                result->warnings = arena_alloc(&grading->arena, sizeof *result->warnings);
                SET(&result->warnings[0], warning, code, arena_text(&grading->arena, "%s", code));
                SET(&result->warnings[0], warning, text, arena_text(&grading->arena, "%s", text));
                result->warnings_n = 1;
                MARK(result, grade_result, warnings);
        }
}

static void on_answer(struct review_query *query)
{
        struct grading *grading = query->owner;
        query->work = NULL;
        review_settle(grading->grader->engine, query);
        use(grading);
        grading->reviewing = false;
        grading->go_on(grading);
}

/* Whether the review goes on. */
static bool ask(struct grading *grading)
{
        const struct check_result *checked = &grading->source_check.check.result;
        struct review_query *query = &grading->review;
        query->findings = checked->findings;
        query->findings_n = checked->findings_n;
        if (!review_ask(grading->grader->engine, query))
                return true;
        use(grading);
        return false;
}

static void on_checked(struct source_check *source_check)
{
        struct grading *grading = source_check->owner;
        grading->reviewing = !source_check_is_denied(source_check, &grading->review.checked) && ask(grading);
        if (!grading->reviewing)
                grading->go_on(grading);
}

/* False: no policy holds for the submission, or the request is wrong and its runs report the error. */
static bool check(struct grading *grading)
{
        const struct grade_request *given = &grading->request;
        struct check_request *request = &grading->source_check.check.request;
        struct csn_error err;
        SET(request, check_request, language, arena_text(&grading->arena, "%s", grading->language->name));
        SET(request, check_request, code, given->code);
#define KEEP(member) \
        if (HAS(given, grade_request, member)) \
                SET(request, check_request, member, given->member)
        KEEP(profile);
        KEEP(policy);
        KEEP(allow_imports);
        KEEP(forbidden_modules);
#undef KEEP
        request->allow_imports_n = given->allow_imports_n;
        request->forbidden_modules_n = given->forbidden_modules_n;
        if (source_check_prepare(grading->grader->engine, &grading->source_check, &err) < 0)
                return false;
        if (!HAS(request, check_request, policy))
                SET(request, check_request, policy, arena_text(&grading->arena, "off"));
        if (strcmp(request->policy, "off") == 0 && !request->forbidden_modules_n)
                return false;
        grading->source_check.done = on_checked;
        grading->source_check.owner = grading;
        grading->source_check.run_owner = grading->owner_key;
        source_check_start(grading->grader->engine, &grading->source_check);
        return true;
}

bool grading_review(struct grading *grading)
{
        const struct grade_request *request = &grading->request;
        const int mode = mode_of(grading);
        if (mode == review_mode_OFF)
                return false;
        grading->review = (struct review_query){ .mode = mode,
                .id = grading->id,
                .owner_key = grading->owner_key,
                .quota = &grading->quota,
                .language = grading->language->name,
                .profile = HAS(request, grade_request, profile) ? request->profile : NULL,
                .code = request->code,
                .env = request->env,
                .env_n = request->env_n,
                .arena = &grading->arena,
                .done = on_answer,
                .owner = grading };
        grading->reviewing = check(grading) || ask(grading);
        return grading->reviewing;
}

void grading_review_end(struct grading *grading)
{
        source_check_done(&grading->source_check);
        review_forget(grading->grader->engine, &grading->review);
        grading->reviewing = false;
}
