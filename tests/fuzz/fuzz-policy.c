/* Hostile source text: whatever it is, there is a verdict, and every finding has its place in the text. */
#include "policy/policy.h"

static void require(bool condition)
{
        if (!condition)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static struct policies *policies;
        static const char *const names[] = { "kodeagent", "linx-strict", "codemie", "mcp-light" };
        const char *folders[] = { POLICIES };
        struct csn_error err;
        struct arena arena = { 0 };
        struct check_request request = { 0 };
        struct check_result result;
        if (!policies)
                require(policies_load(folders, 1, &policies, &err) == 0);
        SET(&request, check_request, language, arena_text(&arena, "python"));
        SET(&request, check_request, policy, arena_text(&arena, "%s", names[len % ARRAY_LEN(names)]));
        request.code = (struct bytes){ arena_copy(&arena, (const char *)bytes, len), len };
        MARK(&request, check_request, code);
        policy_check(policies, &request, &arena, &result);
        require(result.reason && result.policy);
        for (size_t i = 0; i < result.findings_n; i++)
                require(result.findings[i].line && result.findings[i].column && result.findings[i].message[0] && result.findings[i].text);
        arena_done(&arena);
        return 0;
}
