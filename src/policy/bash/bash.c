/* The analysis of Bash: parse the text, walk the program in rounds until stable, then look for fork bombs. */
#include "policy/bash/bash.h"

/* Whether the function `to` leads back to `from`; `stamp` marks visited functions. */
static bool leads_to(struct function *to, const struct function *from, unsigned stamp, unsigned depth)
{
        if (to == from)
                return true;
        if (to->seen == stamp || !depth)
                return false;
        to->seen = stamp;
        for (const struct edge *edge = to->edges; edge; edge = edge->next)
                if (leads_to(edge->to, from, stamp, depth - 1))
                        return true;
        return false;
}

static void fork_bombs(struct shell *sh)
{
        unsigned looked = 0;
        for (const struct function *f = sh->functions; f; f = f->next)
                for (const struct edge *edge = f->edges; edge && looked < 1000; edge = edge->next)
                        if (edge->bomb && leads_to(edge->to, f, ++looked, 30))
                                bash_report(sh, FACT_FORK_BOMB, f->name, f->len, edge->start, edge->end);
}

static int analyse(const char *text, size_t len, struct facts *facts, struct csn_error *err)
{
        struct bash_reader reader = {
                .text = text, .len = len, .arena = facts->arena, .extglob = memmem(text, len, "extglob", 7) != NULL
        };
        struct shell sh = { .arena = facts->arena, .facts = facts };
        if (facts->broken)
                return 0;
        const struct command *list = bash_parse(&reader);
        if (reader.failed) {
                facts_break(facts, (uint32_t)reader.failed_at, reader.why);
                return 0;
        }
        bool last = false;
        for (unsigned round = 0; !last; round++) {
                last = sh.report = round && (bash_stable(&sh) || round >= 4);
                bash_round(&sh);
                sh.frame = &sh.top;
                sh.top.shift = 0;
                sh.top.shifted = false;
                sh.code_bytes = 0;
                sh.exec_fed = FED_NOT;
                sh.cwd = NULL;
                bash_walk(&sh, list);
        }
        fork_bombs(&sh);
        return sh.too_complex
                ? err_field(err, "/code", "the program is too complex to be checked: more than %d commands and values",
                          STEPS_MAX)
                : 0;
}

static const char *prepare(const char *text, size_t len, struct facts *facts, size_t *ret_len)
{
        const char *nul = memchr(text, 0, len);
        if (nul)
                facts_break(facts, (uint32_t)(nul - text), "a program cannot contain null bytes");
        *ret_len = len;
        return text;
}

const struct analysis analysis_bash = { "bash", analyse, prepare };
