/* The analysis of Bash: whatever the text is, it comes back. */
#include "policy/analyses.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct facts facts = { .arena = &arena, .find_analysis = analysis_find };
        struct csn_error err = { 0 };
        const char *text = analysis_bash.prepare((const char *)bytes, len, &facts, &len);
        analysis_bash.analyse(text, len, &facts, &err);
        for (size_t i = 0; i < facts.n; i++)
                if (facts.list[i].start > facts.list[i].end || facts.list[i].end > len)
                        abort();
        arena_done(&arena);
        return 0;
}
