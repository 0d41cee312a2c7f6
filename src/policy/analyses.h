/* The list of analyses, by language. */
#ifndef POLICY_ANALYSES_H
#define POLICY_ANALYSES_H

#include "policy/analysis/facts.h"

/* NULL: no analysis exists for this language. */
const struct analysis *analysis_find(const char *language);
/* The n-th analysis of the list; NULL behind the last one. */
const struct analysis *analysis_at(size_t n);

#endif
