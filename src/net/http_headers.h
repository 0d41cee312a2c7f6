/* Parsers for the values of request headers. */
#ifndef NET_HTTP_HEADERS_H
#define NET_HTTP_HEADERS_H

#include "base/base.h"

/* Whether a list, as in Accept and Prefer, has this member, with any parameters and weight.  NULL is an empty list. */
bool header_lists(const char *list, const char *member);

/*
 * Parse Range (RFC 9110, 14.2): one range of bytes with a start; length UINT64_MAX means to the end, and the offset is
 * at most the maximum of off_t.  false: no supported range; the whole content is sent.
 */
bool header_range(const char *text, uint64_t *ret_offset, uint64_t *ret_length);

/* Parse the number of an event in Last-Event-ID and ?after=.  false: no number. */
bool header_event(const char *text, uint64_t *ret);

/* The key in "Authorization: Bearer KEY"; the whole value of any other form, which is then no valid key. */
const char *header_bearer(const char *authorization);

#endif
