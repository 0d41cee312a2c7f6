/* Shared by the forms of render: parts of a record, and the forms of older systems, each in a file of its own. */
#ifndef ENGINE_OUTPUT_RENDER_FORMS_H
#define ENGINE_OUTPUT_RENDER_FORMS_H

#include "engine/output/render.h"

/* Parts of a record, as each form has them: streams without blanks at the end, and the value of the program. */
struct render_parts {
        const struct run_result *result;
        struct bytes out, error, value;
};

/* ---- the forms (render_FORM.c) ---- */

void render_kodeagent(const struct render_parts *parts, struct buf *buf);
void render_agentos(const struct render_parts *parts, struct buf *buf);
void render_linx(const struct render_parts *parts, struct buf *buf);
void render_codemie(const struct render_parts *parts, struct buf *buf);
void render_mcp_light(const struct render_parts *parts, struct buf *buf);

/* ---- parts (render_parts.c) ---- */

/* A line feed, unless `buf` is empty or ends with a line feed. */
void render_new_line(struct buf *buf);
/* A text on lines of its own; nothing where the text is empty. */
void render_line(struct buf *buf, const char *text);
/* Standard output, then the value, each on lines of its own; nothing where a part is empty. */
void render_output(const struct render_parts *parts, struct buf *buf);
/* Standard error on lines of its own, behind a title; nothing where it is empty. */
void render_stderr(const struct render_parts *parts, const char *title, struct buf *buf);
/* The sentence of the error, or the name of the status. */
const char *render_reason(const struct run_result *result);
/* Whether standard error has the traceback of the exception that ended the program. */
bool render_has_traceback(const struct render_parts *parts);
/* Whether the engine ended the program at a limit of time; *ret_seconds is the limit. */
bool render_time_limit(const struct run_result *result, double *ret_seconds);

#endif
