/* The list of analyses: a row for each language. */
#include "policy/analyses.h"

static const struct analysis *const analyses[] = { &analysis_python, &analysis_javascript, &analysis_typescript,
        &analysis_bash };

const struct analysis *analysis_at(size_t n)
{
        return n < ARRAY_LEN(analyses) ? analyses[n] : NULL;
}

const struct analysis *analysis_find(const char *language)
{
        for (size_t i = 0; i < ARRAY_LEN(analyses); i++)
                if (strcmp(analyses[i]->language, language) == 0)
                        return analyses[i];
        return NULL;
}
