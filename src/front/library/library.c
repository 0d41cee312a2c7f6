/* The public C functions: JSON in, JSON out, over the same engine as every other front. */
#include <caisson/caisson.h>

#include "front/library/review.h"
#include "front/views/views.h"

#include "config.h"
#include "tools/tools.h"

struct csn_engine {
        struct settings settings;
        struct engine *engine;
};

struct csn_run {
        struct run *run;
        const struct csn_events *events;
        void *owner;
        bool aliases;
        char **ret_record;         /* csn_run(): where the record goes */
        bool done;
        struct buf text;           /* the record, by on_encode() */
};

const char *csn_version(void)
{
        return VERSION;
}

void csn_free(void *text)
{
        free(text);
}

int csn_engine_open(const char *config_file, struct csn_engine **ret, struct csn_error *err)
{
        struct csn_engine *engine = mem_alloc(sizeof *engine);
        const struct settings_sources sources = { .file = config_file, .env = environ };
        if (settings_load(&sources, &engine->settings, err) < 0 ||
                engine_open(&engine->settings, &engine->engine, err) < 0) {
                csn_engine_close(engine);
                return -err->code;
        }
        for (size_t i = 0; i < engine->settings.notes_n; i++)
                log_text(LOG_WARN, "%s", engine->settings.notes[i]);
        tools_open(engine->engine);
        library_set_review(engine->engine, &engine->settings);
        *ret = engine;
        return 0;
}

void csn_engine_close(struct csn_engine *engine)
{
        if (!engine)
                return;
        engine_close(engine->engine);
        settings_done(&engine->settings);
        free(engine);
}

static void on_output(void *owner, int stream, const void *bytes, size_t len)
{
        struct csn_run *run = owner;
        if (run->events && run->events->output)
                run->events->output(run->owner, stream, bytes, len);
}

/* Perhaps in a helper thread. */
static void on_encode(void *owner, const struct run_result *result)
{
        struct csn_run *run = owner;
        buf_init(&run->text, FRONT_RECORD_MAX);
        front_record_text(result, run->aliases, &run->text);
}

static void on_done(void *owner, const struct run_result *result)
{
        struct csn_run *run = owner;
        struct buf text = run->text;
        (void)result;
        run->text = (struct buf){ 0 };
        if (run->events && run->events->done)
                run->events->done(run->owner, text.bytes ? text.bytes : "", text.len);
        run_free(run->run);
        run->done = true;
        if (run->ret_record) {
                *run->ret_record = text.bytes;   /* csn_run() owns it, and the rest */
                return;
        }
        buf_done(&text);
        free(run);
}

static const struct run_events events_of_runs = {
        .output = on_output, .encode = on_encode, .done = on_done
};

static struct csn_run *start(struct csn_engine *engine, const char *request, size_t len,
        const struct csn_events *events, void *owner, char **ret_record)
{
        struct csn_error refusal;
        struct csn_run *run = mem_alloc(sizeof *run);
        *run = (struct csn_run){
                .run = run_new(engine->engine), .events = events, .owner = owner, .ret_record = ret_record
        };
        struct run_request given = { 0 };
        if (model_decode_text(&object_run_request, request, len, run_arena(run->run), &given, &refusal) < 0) {
                run_refuse(run->run, &refusal, &events_of_runs, run);
        } else {
                *run_request(run->run) = given;
                run->aliases = given.aliases;
                run_start(run->run, true, &events_of_runs, run);
        }
        return run;
}

int csn_submit(struct csn_engine *engine, const char *request, size_t len, const struct csn_events *events, void *owner,
               struct csn_run **ret, struct csn_error *err)
{
        if (!engine || !request)
                return err_set(err, CSN_E_INPUT, 0, "engine and request are needed");
        struct csn_run *run = start(engine, request, len, events, owner, NULL);
        if (ret)
                *ret = run;
        return 0;
}

int csn_run(struct csn_engine *engine, const char *request, size_t len, const struct csn_events *events, void *owner,
            char **ret_record, struct csn_error *err)
{
        char *record = NULL;
        int rc = 0;
        if (!engine || !request || !ret_record)
                return err_set(err, CSN_E_INPUT, 0, "engine, request and a place for the record are needed");
        struct csn_run *run = start(engine, request, len, events, owner, &record);
        while (rc == 0 && !run->done)
                rc = engine_step(engine->engine, -1, err);
        if (!run->done)
                run_free(run->run);
        buf_done(&run->text);
        free(run);
        if (rc == 0 && !record)
                rc = err_set(err, CSN_E_SYSTEM, 0, "the record could not be written");
        if (rc == 0)
                *ret_record = record;
        return rc;
}

static int check_to_end(struct csn_engine *engine, const char *request, size_t len, struct source_check *source_check,
        struct csn_error *err)
{
        struct check_request *given = &source_check->check.request;
        struct arena *arena = &source_check->check.arena;
        if (model_decode_text(&object_check_request, request, len, arena, given, err) < 0 ||
            source_check_prepare(engine->engine, source_check, err) < 0)
                return -err->code;
        return source_check_wait(engine->engine, source_check, err);
}

int csn_check(struct csn_engine *engine, const char *request, size_t len, char **ret_result, struct csn_error *err)
{
        struct source_check source_check = { 0 };
        if (!engine || !request || !ret_result)
                return err_set(err, CSN_E_INPUT, 0, "engine, request and a place for the result are needed");
        int rc = check_to_end(engine, request, len, &source_check, err);
        if (rc == 0) {
                json_t *json = model_encode(&object_check_result, &source_check.check.result);
                char *text = model_write(json, JSON_COMPACT);
                json_decref(json);
                if (text)
                        *ret_result = text;
                else
                        rc = err_set(err, CSN_E_SYSTEM, 0, "the result could not be written");
        }
        source_check_done(&source_check);
        return rc;
}

void csn_cancel(struct csn_run *run)
{
        if (run)
                run_cancel(run->run);
}

int csn_engine_fd(struct csn_engine *engine)
{
        return loop_fd(engine_loop(engine->engine));
}

int csn_engine_step(struct csn_engine *engine, int timeout_ms, struct csn_error *err)
{
        return engine_step(engine->engine, timeout_ms, err);
}
