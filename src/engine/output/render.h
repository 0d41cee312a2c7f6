/* render: the record of a run as text, in the forms that models were trained to read. */
#ifndef ENGINE_OUTPUT_RENDER_H
#define ENGINE_OUTPUT_RENDER_H

#include "model/model.h"

/* Append the text of a record in a form, of enum text_form, with a line feed at the end. */
void render_text(int form, const struct run_result *result, struct buf *buf);

#endif
