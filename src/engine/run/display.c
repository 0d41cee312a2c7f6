/* What an execution in a context displays: bundles of MIME types, which are a program's to say. */
#include "engine/run/run_private.h"

#define DISPLAYS_MAX 100
#define DISPLAYS_BYTES_MAX (32 * MIB)
#define DISPLAY_PARTS_MAX 250000   /* values and names of one */

void run_display(struct run *run)
{
        struct buf *part = &run->channel.part[CHANNEL_DISPLAY];
        run->display_bytes += part->len;
        bool fits = json_array_size(run->displays) < DISPLAYS_MAX && run->display_bytes <= DISPLAYS_BYTES_MAX &&
                !model_has_many_parts(part->bytes, part->len, DISPLAY_PARTS_MAX);
        json_t *json = fits ? model_read(part->bytes, part->len, 0, NULL) : NULL, *data = json_object_get(json, "data");
        if (!run->displays)
                run->displays = json_array();
        if (json_is_object(data)) {
                json_array_append(run->displays, data);
                if (run->events->display)
                        run->events->display(run->owner, data);
        } else {
                run_warn(run, "display_lost",
                        "a display was no bundle of MIME types, or one too many: %d, and %d MiB in all, are kept, of at most %d values each",
                        DISPLAYS_MAX, (int)(DISPLAYS_BYTES_MAX / MIB), DISPLAY_PARTS_MAX);
        }
        json_decref(json);
        size_t max = part->max;
        buf_done(part);
        buf_init(part, max);
}
