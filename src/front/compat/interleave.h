/*
 * Two streams of a program in one text, for APIs that have such a field.
 *
 * The streams are two pipes, and the kernel keeps no order between them, so the order is that of arrival.  A chunk can end in the middle of a line;
 * the rest of that line waits for its end, and a line of one stream never has bytes of the other one inside.
 */
#ifndef FRONT_INTERLEAVE_H
#define FRONT_INTERLEAVE_H

#include "base/base.h"

#define INTERLEAVE_STREAMS 2

struct interleave {
        struct buf text;                             /* whole lines; everything after interleave_end() */
        struct buf rests[INTERLEAVE_STREAMS];        /* the unfinished last line of each stream */
        unsigned first;                              /* the stream whose unfinished line began first */
};

/* text holds at most max bytes; what is beyond is left out. */
void interleave_init(struct interleave *lines, size_t max);
/* stream is 1 or 2, as in run_printed(). */
void interleave_add(struct interleave *lines, int stream, const void *bytes, size_t len);
/* Both streams are over: adds the unfinished lines, in the order in which they began. */
void interleave_end(struct interleave *lines);
void interleave_done(struct interleave *lines);

#endif
