/*
 * Displays of an execution in a context: bundles of MIME types, chosen by the program.
 *
 * A helper thread parses a long display and makes the text for its reader.  Meanwhile the context is not read, so that
 * displays and output keep their order.  A run loses the display if its interpreter or its sandbox ends during the
 * parse.
 */
#include "engine/run/run_private.h"

#define DISPLAYS_MAX 100
#define DISPLAYS_BYTES_MAX (32 * MIB)
#define DISPLAY_PARTS_MAX 250000   /* values and names of a display */
#define AT_ONCE_MAX (16 * KIB)     /* bytes of a display parsed in the loop */

struct display_work {
        struct job job;
        struct run *run;               /* NULL: the run has ended */
        struct workers *workers;
        char share[OWNER_KEY_MAX];
        struct buf frame;
        display_encoder *encode;       /* NULL: no text is made */
        json_t *data;                  /* the bundle; NULL: the frame has none */
        char *text;
        size_t len;
};

/* ---- in a helper thread, or at once ---- */

static void work(struct job *job)
{
        struct display_work *display = job->owner;
        const struct buf *frame = &display->frame;
        json_t *json = model_has_many_parts(frame->bytes, frame->len, DISPLAY_PARTS_MAX)
                ? NULL
                : model_read(frame->bytes, frame->len, 0, NULL);
        json_t *data = json_object_get(json, "data");
        if (json_is_object(data)) {
                display->data = json_incref(data);
                display->text = display->encode ? display->encode(data) : NULL;
                display->len = display->text ? strlen(display->text) : 0;
        }
        json_decref(json);
        buf_done(&display->frame);
}

static void release(struct job *job)
{
        struct display_work *display = job->owner;
        json_decref(display->data);
        free(display->text);
        buf_done(&display->frame);
}

/* ---- in the loop ---- */

static void on_released(struct job *job)
{
        if (job->dropped)
                release(job);
        free(job->owner);
}

/* A bundle has up to DISPLAY_PARTS_MAX parts, so a helper thread frees it. */
static void submit_release(struct display_work *display)
{
        display->job = (struct job){ .work = release, .done = on_released, .owner = display };
        worker_submit(display->workers, display->share, &display->job);
}

static void warn_lost(struct run *run)
{
        run_warn(run, "display_lost",
                "a display was no bundle of MIME types, or one too many: %d, and %d MiB in all, are kept, of at most %d values each",
                DISPLAYS_MAX, (int)(DISPLAYS_BYTES_MAX / MIB), DISPLAY_PARTS_MAX);
}

static void deliver(struct run *run, struct display_work *display)
{
        if (!display->data) {
                warn_lost(run);
                return;
        }
        json_array_append_new(run->displays, display->data);
        display->data = NULL;
        if (display->text)
                run->events->display(run->owner, display->text, display->len);
        free(display->text);
        display->text = NULL;
}

static void on_worked(struct job *job)
{
        struct display_work *display = job->owner;
        struct run *run = display->run;
        if (!run) {
                submit_release(display);
                return;
        }
        run->display = NULL;
        deliver(run, display);
        run->executor->hold(run, run->held);
        free(display);
}

/* A frame that arrives during a parse is the last frame of an ended sandbox. */
static bool has_room(const struct run *run)
{
        return !run->display && json_array_size(run->displays) < DISPLAYS_MAX &&
                run->display_bytes <= DISPLAYS_BYTES_MAX;
}

static struct display_work *begin(struct run *run)
{
        struct buf *part = &run->channel.part[CHANNEL_DISPLAY];
        struct display_work *display = mem_alloc(sizeof *display);
        *display = (struct display_work){ .run = run, .workers = run->engine->workers, .frame = *part };
        if (run->events->display_encoder)
                display->encode = run->events->display_encoder(run->owner);
        snprintf(display->share, sizeof display->share, "%s", run->owner_key);
        display->job = (struct job){ .work = work, .done = on_worked, .owner = display };
        *part = (struct buf){ 0 };
        return display;
}

void run_display(struct run *run)
{
        struct buf *part = &run->channel.part[CHANNEL_DISPLAY];
        size_t max = part->max, len = part->len;
        run->display_bytes += len;
        if (!run->displays)
                run->displays = json_array();
        if (!has_room(run)) {
                warn_lost(run);
                buf_done(part);
        } else if (run->engine->workers && len > AT_ONCE_MAX) {
                run->display = begin(run);
                run->executor->hold(run, true);
                worker_submit(run->display->workers, run->display->share, &run->display->job);
        } else {
                struct display_work *display = begin(run);
                work(&display->job);
                deliver(run, display);
                free(display);
        }
        buf_init(part, max);
}

bool run_has_display(const struct run *run)
{
        return run->display;
}

void run_drop_display(struct run *run)
{
        struct display_work *display = run->display;
        if (!display)
                return;
        run->display = NULL;
        display->run = NULL;
        if (run->context)
                run->executor->hold(run, false);
        if (worker_cancel(display->workers, &display->job))
                submit_release(display);
        run_warn(run, "display_lost", "the execution ended while a display was read");
}
