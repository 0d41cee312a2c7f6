/*
 * tool_call: the body of POST /v1/tool, in the names by which clients of kodeagent, agentos, LinX, CodeMie and the
 * light executor send a program.
 */
#ifndef FRONT_COMPAT_TOOL_CALL_H
#define FRONT_COMPAT_TOOL_CALL_H

#include "model/model.h"

/*
 * Make a run_request, as JSON, of such a body.  Fields of a run_request keep their names and meaning.  A name without
 * a meaning here adds its sentence to the array `notes`.  The caller's reference; NULL with err: an unknown name, a
 * value of another kind, or two names for one field.
 */
json_t *tool_call_convert(json_t *body, json_t *notes, struct csn_error *err);

#endif
