/*
 * Hostile programs for every policy: whatever the text is, there is a verdict with its reason, places are within
 * the text and in its order, and the result survives the way from the worker to the checker.
 *
 * The first byte says which policy (its lower four bits) and which language (the next two), so that '@' to 'O' are
 * policies of the first language and a corpus can be written by hand.  The rest is the program.
 */
#include "policy/analyses.h"
#include "policy/policy.h"

#include <stdio.h>

/* In tree-sitter 0.20 longer texts that do not parse wear the process out (policy/analysis/tree.h). */
#define LEN_MAX (UINT16_MAX - 1)

static void require(bool condition)
{
        if (!condition)
                abort();
}

static struct policies *policies;
static const char *const names[] = { "kodeagent", "agentos", "linx", "linx-strict", "codemie", "mcp-light", "off" };

static const char *language_at(size_t n)
{
        size_t count = 0;
        while (analysis_at(count))
                count++;
        return analysis_at(n % count)->language;
}

static void free_policies(void)
{
        policies_free(policies);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        char program[4000], folder[4100];
        ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
        const char *const folders[] = { folder };
        struct csn_error err;
        (void)argc;
        (void)argv;
        require(len > 0);
        program[len] = 0;
        *strrchr(program, '/') = 0;
        snprintf(folder, sizeof folder, "%s/../../src/policy/policies", program);
        require(policies_load(folders, 1, &policies, &err) == 0);
        atexit(free_policies);
        return 0;
}

static void is_sound(const struct check_request *request, const struct check_result *result)
{
        bool failed = HAS(result, check_result, error);
        uint64_t line = 0;
        require(failed ? result->verdict == verdict_DENY && result->error.message : true);
        require(failed || result->findings_n || result->verdict == verdict_ALLOW);
        require(failed || strcmp(request->policy, "off") != 0 ||
                (result->verdict == verdict_ALLOW && !result->findings_n));
        require(result->reason && (result->verdict == verdict_ALLOW || result->reason[0]));
        for (size_t i = 0; i < result->findings_n; i++) {
                const struct finding *finding = &result->findings[i];
                require(finding->line >= 1 && finding->column >= 1 && finding->line >= line);
                require(finding->end_line > finding->line ||
                        (finding->end_line == finding->line && finding->end_column >= finding->column));
                require(finding->line <= request->code.len + 1 && finding->message[0]);
                line = finding->line;
        }
}

static void survives_the_journey(const struct check_result *result, struct arena *arena)
{
        struct check_result again = { 0 };
        struct csn_error err;
        json_t *json = model_encode(&object_check_result, result);
        char *text = json_dumps(json, JSON_COMPACT);
        require(text && model_decode_text(&object_check_result, text, strlen(text), arena, &again, &err) == 0);
        require(again.verdict == result->verdict && again.score == result->score &&
                again.findings_n == result->findings_n);
        free(text);
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct check_request request = { 0 };
        struct check_result result;
        if (!len || len > LEN_MAX)
                return 0;
        SET(&request, check_request, policy, arena_text(&arena, "%s", names[(bytes[0] & 15) % ARRAY_LEN(names)]));
        SET(&request, check_request, language, arena_text(&arena, "%s", language_at(bytes[0] >> 4 & 3)));
        SET(&request, check_request, code,
                ((struct bytes){ arena_copy(&arena, (const char *)bytes + 1, len - 1), len - 1 }));
        policy_defaults(&request);
        policy_check(policies, &request, &arena, &result, NULL);
        is_sound(&request, &result);
        survives_the_journey(&result, &arena);
        arena_done(&arena);
        return 0;
}
