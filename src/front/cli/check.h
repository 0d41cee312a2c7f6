/* Output of findings; shared by `caisson check` and `caisson policy`. */
#ifndef FRONT_CLI_CHECK_H
#define FRONT_CLI_CHECK_H

#include "front/cli/cli.h"

/* Print findings for a person, with carets (findings.c). */
void findings_print(const struct check_result *result);

/* ---- SARIF 2.1.0 (sarif.c) ---- */

/* Create a document with one run and no results.  The caller owns the reference. */
json_t *sarif_new(void);
void sarif_add(json_t *sarif, const struct check_result *result);
/* Add a program that could not be checked, and the reason. */
void sarif_add_trouble(json_t *sarif, const char *text);

/* ---- caisson policy import FILE [NAME] (policy_import.c) ---- */

/*
 * Print the policy of a file of CodeMie's executor as a policy of Caisson; name NULL: that of the file.  Errors:
 * CSN_E_INPUT with file and line.
 */
int cli_import_policy(const char *file, const char *name, struct csn_error *err);

/* ---- caisson policy test NAME [-l LANGUAGE] FILE... (policy_test.c) ---- */

/* Run the cases of the files; argv begins with NAME.  Returns the exit status. */
int cli_cases(int argc, char **argv, const char *language, const struct settings *settings);

#endif
