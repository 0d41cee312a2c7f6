/* The list of facts of an analysis. */
#include "policy/analysis/facts.h"

void facts_add(struct facts *facts, struct fact fact)
{
        if (facts->full || facts->n == FACTS_MAX) {
                facts->full = true;
                return;
        }
        if (facts->n == facts->size) {
                size_t size = facts->size ? 2 * facts->size : 64;
                struct fact *list = arena_alloc(facts->arena, size * sizeof *list);
                if (facts->n)
                        memcpy(list, facts->list, facts->n * sizeof *list);
                facts->list = list;
                facts->size = size;
        }
        if (!fact.len && fact.name)
                fact.len = strlen(fact.name);
        facts->list[facts->n++] = fact;
}

void facts_break(struct facts *facts, uint32_t at, const char *why)
{
        if (facts->broken && facts->broken_at <= at)
                return;
        facts->broken = true;
        facts->broken_at = at;
        facts->broken_why = why;
}
