/*
 * Merges the two output streams of a program into one text, for APIs with such a field.
 *
 * The streams are two pipes, and the kernel keeps no order between them, so the order is the order of arrival.  A chunk
 * can end inside a line; the rest of the line then waits for its end, and a line of one stream never contains bytes of
 * the other stream.
 */
#ifndef FRONT_COMPAT_INTERLEAVE_H
#define FRONT_COMPAT_INTERLEAVE_H

#include "base/base.h"

#define INTERLEAVE_STREAMS 2

struct interleave {
        struct buf text;                             /* complete lines; all bytes after interleave_end() */
        struct buf rests[INTERLEAVE_STREAMS];        /* the incomplete last line of each stream */
        unsigned first;                              /* the stream with the older incomplete line */
};

/* text is limited to max bytes; further bytes are dropped. */
void interleave_init(struct interleave *lines, size_t max);
/* Add bytes of a stream, 1 or 2, as in run_printed(). */
void interleave_add(struct interleave *lines, int stream, const void *bytes, size_t len);
/* End of both streams: adds the incomplete lines, the older line first. */
void interleave_end(struct interleave *lines);
void interleave_done(struct interleave *lines);

#endif
