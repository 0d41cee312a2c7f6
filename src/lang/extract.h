/* extract: the program in a text that a model wrote, with Markdown around the program. */
#ifndef LANG_EXTRACT_H
#define LANG_EXTRACT_H

#include "lang/lang.h"

struct lang_extracted {
        struct bytes program;                    /* from the arena */
        size_t line;                             /* of the text, from 1, in which the program begins */
        const struct language *language;         /* the language that the tag names, or NULL */
};

/*
 * Find the program in a text: the last fenced code block, of enum extract.  A block that is not closed ends with the
 * text, and a block without text does not count.  `wanted`: the language of the program, or NULL; then tagged_fence
 * takes any block whose tag names a language.  verl takes the text behind the last fence with the tag python up to the
 * next fence, else the text between the first two fences; a fence is three backquotes anywhere.  `added`: as for
 * lang_find().  False: there is no such block, and the program is the whole text.
 */
bool lang_extract(const struct language *added, int mode, const struct language *wanted, const struct bytes *text,
        struct arena *arena, struct lang_extracted *ret);

#endif
