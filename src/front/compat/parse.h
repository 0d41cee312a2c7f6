/*
 * Parsers of inputs other than JSON from clients of other services, and these services' comparisons of output.  Pure
 * functions on texts; the rules are those of the services.
 */
#ifndef FRONT_COMPAT_PARSE_H
#define FRONT_COMPAT_PARSE_H

#include "model/model.h"

/* Whether a version, "3.11.2", is in a range in npm's syntax: "^3.9 || 2.x". */
bool compat_in_range(const char *version, const char *ranges);

/*
 * The words that a shell makes of a line after removal of $, &, ;, <, >, | and `, without any expansion.  From the
 * arena.
 */
char **compat_split(const char *line, struct arena *arena, size_t *ret_n);

/*
 * Extract the program from a model's answer, in SandboxFusion's order: a fenced block, an unclosed fence, text that
 * looks like a program in this language (Caisson's name); else an empty program.  Points into the text, or from the
 * arena.
 */
struct bytes compat_program(const char *text, const char *language, struct arena *arena);

/* Judge0's comparison: equal except white space at the end of lines and of the text. */
bool compat_same(const struct bytes *a, const struct bytes *b);
/*
 * SandboxFusion's comparison: by line, without surrounding white space and case (of ASCII letters); numbers may differ
 * slightly.
 */
bool compat_alike(const struct bytes *output, const char *expected);

#endif
