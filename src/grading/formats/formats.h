/*
 * formats: records of public data sets as requests to grade.
 *
 * A record has the problem under the names of its data set, and beside them members of a request (code or completion,
 * limits, options).  Each family of data sets has one file with a function that takes the members of the record out of
 * the object and puts fields of grade_request in.  formats.c has the table of formats, with the defaults that the
 * trainer of the data set has.
 *
 *   record    members of records, JSON within texts, and compressed tests
 *   pickle    a reader of pickles that accepts one text and executes nothing
 *   literal   values as literals of Python, for tuples, sets and keys that are integers
 *   entries   inputs and outputs as cases
 *   others    one family of data sets each
 */
#ifndef GRADING_FORMATS_FORMATS_H
#define GRADING_FORMATS_FORMATS_H

#include "model/model.h"

/*
 * Change the record in `json`, whose member `format` names the data set, into a request.  A request without a format
 * stays as it is.  Errors: CSN_E_FORMAT, an unknown format; CSN_E_RECORD with a JSON pointer into the record.
 */
int format_apply(json_t *json, struct csn_error *err);

/* Set the size of decompressed tests at the most, in bytes: grading.record_bytes. */
void format_set_record_bytes(uint64_t bytes);

#endif
