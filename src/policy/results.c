/* The beginning of every result, and results of programs without a check. */
#include "policy/policy.h"

void policy_result(const struct check_request *request, struct arena *arena, struct check_result *ret)
{
        *ret = (struct check_result){ 0 };
        SET(ret, check_result, policy, arena_text(arena, "%s", request->policy ? request->policy : ""));
        if (HAS(request, check_request, id))
                SET(ret, check_result, id, arena_text(arena, "%s", request->id));
        if (HAS(request, check_request, file))
                SET(ret, check_result, file, arena_text(arena, "%s", request->file));
        if (HAS(request, check_request, language))
                SET(ret, check_result, language, arena_text(arena, "%s", request->language));
}

void policy_refuse(const struct check_request *request, const struct csn_error *err, struct arena *arena,
        struct check_result *ret)
{
        policy_result(request, arena, ret);
        SET(ret, check_result, verdict, verdict_DENY);
        SET(ret, check_result, reason, arena_text(arena, "%s", err->text));
        SET(&ret->error, failure, code, arena_text(arena, "%s", csn_code_name(err->code)));
        SET(&ret->error, failure, message, ret->reason);
        if (err->field[0])
                SET(&ret->error, failure, field, arena_text(arena, "%s", err->field));
        MARK(ret, check_result, error);
}

int policy_trouble(const struct check_result *result, struct csn_error *ret)
{
        const struct failure *error = &result->error;
        if (!HAS(result, check_result, error) || !HAS(error, failure, code))
                return 0;
        const char *field = HAS(error, failure, field) ? error->field : "";
        if (strcmp(field, "/code") == 0)
                return 0;
        err_field(ret, field, "%s", error->message);
        ret->code = err_code_of(error->code);
        return -ret->code;
}
