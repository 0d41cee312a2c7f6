/* What `caisson check` and `caisson policy` have in common. */
#ifndef FRONT_CLI_CHECK_H
#define FRONT_CLI_CHECK_H

#include "front/cli/cli.h"

/* For people, with carets (findings.c). */
void findings_print(const struct check_result *result);

/* ---- SARIF 2.1.0 (sarif.c) ---- */

/* A document with one run that has no results yet.  The caller's reference. */
json_t *sarif_new(void);
void sarif_add(json_t *sarif, const struct check_result *result);
/* Something that could not be checked, and why. */
void sarif_add_trouble(json_t *sarif, const char *text);

/* ---- caisson policy test NAME [-l LANGUAGE] FILE... (policy_test.c) ---- */

/* From NAME on.  Returns the exit status. */
int cli_cases(int argc, char **argv, const char *language, const struct settings *settings);

#endif
