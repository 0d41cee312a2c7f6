/*
 * header: what stands in headers of a request, from text.
 */
#ifndef FRONT_HEADER_H
#define FRONT_HEADER_H

#include "base/base.h"

/* Whether a list as in Accept and Prefer has this member, whatever parameters and weight it is given.  NULL has none. */
bool header_lists(const char *list, const char *member);

/*
 * Range (RFC 9110, 14.2): one range of bytes from somewhere on; a length of UINT64_MAX is to the end, and an offset
 * is never more than any file's (off_t).  False: there is none that we know, and all is sent.
 */
bool header_range(const char *text, uint64_t *ret_offset, uint64_t *ret_length);

/* The number of an event, as Last-Event-ID and ?after= have it. */
bool header_event(const char *text, uint64_t *ret);

/* The key in "Authorization: Bearer KEY"; of anything else all of it, which is none. */
const char *header_bearer(const char *authorization);

#endif
