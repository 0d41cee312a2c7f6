/*
 * json_body: a body of JSON in the format of another service, within ceilings of depth and size.
 *
 * Errors have only a text, with which the front answers in its own format.
 */
#ifndef FRONT_SERVICE_JSON_BODY_H
#define FRONT_SERVICE_JSON_BODY_H

#include "model/model.h"

#define JSON_BODY_PARTS_MAX 50000          /* values and names in one body */
#define JSON_BODY_DEPTH_MAX 64             /* levels of arrays and objects */

/*
 * Parse an object from outside; flags are jansson's.  The caller's reference; NULL with err->text: no object, or over a
 * ceiling.
 */
json_t *json_body_parse(const char *text, size_t len, size_t flags, struct csn_error *err);
/* Bytes as JSON text; bytes that are no UTF-8 become U+FFFD.  bytes may be NULL.  The caller's reference. */
json_t *json_text(const char *bytes, size_t len);

#endif
