/*
 * compat_parse: what clients of other services write that is no JSON, and how those services compare what a program prints.  Texts in,
 * and nothing else; the rules are theirs.
 */
#ifndef FRONT_COMPAT_PARSE_H
#define FRONT_COMPAT_PARSE_H

#include "model/model.h"

/* Whether a version, "3.11.2", is in a range as npm writes them: "^3.9 || 2.x". */
bool compat_in_range(const char *version, const char *ranges);

/* What a shell makes of a line once $, &, ;, <, >, | and ` are taken out of it, without expanding anything.  From the arena. */
char **compat_split(const char *line, struct arena *arena, size_t *ret_n);

/*
 * The program in a model's answer, by SandboxFusion's order: what is fenced, what should have been, what looks like a program of this
 * language of ours; nothing is an empty one.  In the text, or in the arena.
 */
struct bytes compat_program(const char *text, const char *language, struct arena *arena);

/* Judge0's comparison: equal but for white space at the end of lines and of the whole. */
bool compat_same(const struct bytes *a, const struct bytes *b);
/* SandboxFusion's: line by line without white space around and case (of ASCII letters); numbers may differ a little. */
bool compat_alike(const struct bytes *output, const char *expected);

#endif
