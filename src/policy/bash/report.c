/* Facts of the program, each reported once. */
#include "policy/bash/bash.h"

void bash_report(struct shell *sh, enum fact_kind kind, const char *name, size_t len, uint32_t start, uint32_t end)
{
        struct facts *facts = sh->facts;
        if (!sh->report)
                return;
        if (sh->fixed)
                start = sh->start, end = sh->end;
        for (size_t i = facts->n; i > 0 && facts->n - i < 32 && facts->list[i - 1].start == start; i--)
                if (facts->list[i - 1].kind == kind && facts->list[i - 1].len == len &&
                        memcmp(facts->list[i - 1].name, name, len) == 0)
                        return;
        char *copy = arena_copy(sh->arena, name, len);
        for (size_t i = 0; i < len; i++)
                if (!copy[i])
                        copy[i] = '*';
        facts_add(facts, (struct fact){ .kind = kind, .name = copy, .len = len, .start = start, .end = end });
}
