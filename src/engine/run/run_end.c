/*
 * The end of a run: its record, and done().
 *
 * The record of a small result is made at once, in the loop.  For any other result a helper thread (base/worker.h) does
 * the work, and the run is RUN_RECORDING:
 *
 *   begin          loop     take the record's data from the engine, the storage and the tools
 *   work_record    thread   collect, hash and copy files, make the record, encode it
 *   publish        loop     publish kept files, some in each step; the record has the errors, so
 *   work_encode    thread   encodes the record afterwards
 *   end            loop     done()
 *
 * A run being recorded counts as a running one: home directories of ended programs take memory, too.
 */
#include "engine/run/run_private.h"

#include "backend/backend.h"

#include <linux/magic.h>
#include <sys/vfs.h>

/* Largest results for a record made in the loop. */
#define SMALL_TEXT (128 * KIB)         /* bytes of output, code and labels */
#define SMALL_JSON (16 * KIB)          /* bytes from the private channel, which are parsed */
#define SMALL_FILES 32                 /* inodes of the home directory: each file is opened and hashed */
#define SMALL_HOME (512 * KIB)         /* bytes of the home directory */
#define SMALL_LISTS 64                 /* entries of other lists in the record */

#define PUBLISH_US 2000                /* of one step of publishing kept files */

/* ---- how much there is to do ---- */

static bool has_small_home(const struct run *run)
{
        struct statfs fs;
        if (run->home_fd < 0)
                return true;
        /* The home directory of a sandbox is a tmpfs of its own, which knows its inodes and blocks (tmpfs(5)). */
        return fstatfs(run->home_fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC && fs.f_files > 0 &&
                fs.f_files - fs.f_ffree <= SMALL_FILES &&
                (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize <= SMALL_HOME;
}

static bool has_small_text(const struct run *run)
{
        const struct run_request *request = &run->launch.request;
        uint64_t text = request->code.len, json = run->display_bytes;
        for (int i = 0; i < 2; i++)
                text += run->streams[i].capture.head + run->streams[i].capture.ring;
        for (size_t i = 0; i < request->labels_n; i++)
                text += strlen(request->labels[i].value);
        for (size_t i = 0; i < CHANNEL_TYPES; i++)
                json += run->channel.part[i].len;
        return text <= SMALL_TEXT && json <= SMALL_JSON;
}

static bool keeps_files(const struct run *run)
{
        const struct run_request *request = &run->launch.request;
        for (size_t i = 0; i < request->exports_n; i++)
                if (!HAS(&request->exports[i], export_rule, path))
                        return true;
        return false;
}

/* The other backends remove the folder of a run after its end. */
static bool is_small(const struct run *run)
{
        if (run->launch.backend != &backend_native)
                return true;
        return !run->launch.request.exports_n && run->launch.work_fd < 0 && !run->result.tools.list_n &&
                run->launch.inputs_n <= SMALL_LISTS && run->check.result.findings_n <= SMALL_LISTS &&
                has_small_text(run) && has_small_home(run);
}

/* ---- in the loop ---- */

static void begin(struct run *run)
{
        tool_session_unserve(&run->tool_session);
        run_drop_display(run);
        run_record_begin(run);
        run->publishes = keeps_files(run) && run->launch.storage && run->launch.storage->publish;
        if (run->launch.storage && run->launch.storage->begin && (run->launch.entered || run->publishes))
                run->launch.storage->begin(run->launch.storage_owner);
}

static void encode(struct run *run)
{
        if (run->events->encode)
                run->events->encode(run->owner, &run->result);
}

/* The listener of CPU time learns of the run by done(), so the run's time is counted at least once at any moment. */
static void end(struct run *run)
{
        struct engine *engine = run->engine;
        struct owner *payer = run->payer;
        uint64_t counted_us = run->counted_us;
        bool is_charged = run->is_charged;
        run->payer = NULL;
        if (run->queue_owner)
                queue_left(run);
        run->state = RUN_OVER;
        counters_add(run);
        run_tell_finished(run, &run->result);
        launch_close_work(&run->launch);
        loop_timer(engine->loop, &run->closing, 0); /* after the answer: no client waits for a dozen close calls */
        run->events->done(run->owner, &run->result);
        if (!payer)
                return;
        if (is_charged)
                owner_charge(engine, payer, counted_us / 1000);
        owner_settle(payer, &counted_us);
        owner_release(engine, payer);
}

static void end_recorded(struct run *run)
{
        struct engine *engine = run->engine;
        end(run);
        queue_changed(engine);
        pools_refill(engine->pools);
}

/* ---- in a helper thread ---- */

static void work_record(struct job *job)
{
        struct run *run = job->owner;
        run_record(run);
        fd_close(&run->home_fd);   /* a tmpfs without other users: the kernel frees its files in this call */
        if (run->launch.entered)
                run->launch.storage->weigh(run->launch.storage_owner);
        if (!run->publishes)
                encode(run);
}

static void work_encode(struct job *job)
{
        encode(job->owner);
}

static void on_encoded(struct job *job)
{
        end_recorded(job->owner);
}

static void submit(struct run *run, void (*work)(struct job *job), void (*done)(struct job *job))
{
        run->recording = (struct job){ .work = work, .done = done, .owner = run };
        worker_submit(run->engine->workers, run->owner_key, &run->recording);
}

/* ---- kept files ---- */

/* Kept files are published in the order of the record; `published` is the start of the search for the next file. */
static void lose_kept(struct run *run, const char *url, const struct csn_error *error)
{
        struct run_result *result = &run->result;
        for (; run->published < result->files_n; run->published++) {
                struct output_file *file = &result->files[run->published];
                if (!HAS(file, output_file, url) || strcmp(file->url, url) != 0)
                        continue;
                UNMARK(file, output_file, url);
                if (!HAS(file, output_file, error))
                        SET(file, output_file, error, arena_text(&run->launch.arena, "%s", error->text));
                return;
        }
}

static void publish(struct timer *timer)
{
        struct run *run = timer->owner;
        uint64_t until_us = clock_us() + PUBLISH_US;
        const char *url = "";
        struct csn_error err;
        int rc;
        do {
                rc = run->launch.storage->publish(run->launch.storage_owner, &url, &err);
                if (rc < 0)
                        lose_kept(run, url, &err);
        } while (rc != 0 && clock_us() < until_us);
        if (rc != 0)
                loop_timer(run->engine->loop, timer, 0);
        else
                submit(run, work_encode, on_encoded);
}

static void on_recorded(struct job *job)
{
        struct run *run = job->owner;
        if (run->publishes)
                loop_timer(run->engine->loop, &run->publish, 0);
        else
                end_recorded(run);
}

/* ---- for run.c ---- */

void run_end(struct run *run)
{
        begin(run);
        if (!run->engine->workers || is_small(run)) {
                run->state = RUN_OVER;
                run_record(run);
                encode(run);
                end(run);
                return;
        }
        run->state = RUN_RECORDING;
        run_stop_io(run);
        if (run->home_fd >= 0)
                helpers_serve_threads();
        run->publish = (struct timer){ .fired = publish, .owner = run };
        submit(run, work_record, on_recorded);
}

void run_detach(struct run *run)
{
        if (run && run->state == RUN_EXAMINING)
                run_examine_stop(run);
        if (!run || run->state != RUN_RECORDING)
                return;
        atomic_store(&run->given_up, true);
        worker_wait(run->engine->workers, &run->recording);
        loop_untimer(run->engine->loop, &run->publish);
        run->state = RUN_OVER;
        if (run->queue_owner)
                queue_left(run);
}
