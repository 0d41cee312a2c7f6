/* render: the record of a run as text, in the formats that models were trained to read. */
#ifndef ENGINE_OUTPUT_RENDER_H
#define ENGINE_OUTPUT_RENDER_H

#include "model/model.h"

/* "plain", "brief", "linx" or "codemie".  Errors: CSN_E_INPUT (another name). */
int render_text(const char *format, const struct run_result *result, struct buf *buf, struct csn_error *err);

#endif
