/*
 * libcaisson: run code that you did not write in a closed sandbox.
 *
 * Requests and records are JSON, as `caisson schema request` and `caisson schema result` describe them: the
 * same as on the command line and over every other front.  One thread uses an engine at a time.  The
 * library never exits, prints or throws; without memory it ends the process, as its callers would.
 *
 *      struct csn_engine *engine;
 *      struct csn_error err;
 *      char *record;
 *      if (csn_engine_open(NULL, &engine, &err) < 0)
 *              return complain(err.text);
 *      static const char request[] = "{\"language\":\"python\",\"code\":\"print(1)\"}";
 *      if (csn_run(engine, request, sizeof request - 1, NULL, NULL, &record, &err) == 0) {
 *              puts(record);
 *              csn_free(record);
 *      }
 *      csn_engine_close(engine);
 */
#ifndef CAISSON_CAISSON_H
#define CAISSON_CAISSON_H

#include <caisson/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct csn_engine;
struct csn_run;

/* What happens during a run; each may be NULL.  Called from csn_run() or csn_engine_step() only. */
struct csn_events {
        /* Output as it comes, before it is in the record.  stream: 1 stdout, 2 stderr. */
        void (*output)(void *owner, int stream, const void *bytes, size_t len);
        /* The run is over; record is its JSON text, len bytes and a NUL, valid during this call. */
        void (*done)(void *owner, const char *record, size_t len);
};

/* "0.1.0". */
CSN_API const char *csn_version(void);

/*
 * An engine with its settings: from config_file, or with NULL from the usual places and the environment
 * (caisson.conf(5)).  On success *ret belongs to the caller until csn_engine_close().
 * Errors: CSN_E_CONFIG, CSN_E_SYSTEM.
 */
CSN_API int csn_engine_open(const char *config_file, struct csn_engine **ret, struct csn_error *err);

/* Runs that are not over are killed; their done() is not called. */
CSN_API void csn_engine_close(struct csn_engine *engine);

/*
 * Run a request to its end.  On success *ret_record is the record's JSON text, the caller's until
 * csn_free().  A program that fails is no error, and neither is a request that is refused: the record's
 * status says so.  Errors: CSN_E_SYSTEM (the engine itself broke).
 */
CSN_API int csn_run(struct csn_engine *engine, const char *request, size_t len, const struct csn_events *events, void *owner,
                    char **ret_record, struct csn_error *err);

/*
 * Compare a program with a source policy; it is not run.  The request has language and code, and if wanted policy,
 * allow_imports, block_at, id and file; the result is what `caisson check --json` prints, the caller's until
 * csn_free().  A program that is denied is no error.  Errors: CSN_E_INPUT (no such request), CSN_E_LANGUAGE,
 * CSN_E_SYSTEM.
 */
CSN_API int csn_check(struct csn_engine *engine, const char *request, size_t len, char **ret_result, struct csn_error *err);

/*
 * Start a request and return at once; done() comes from a later csn_engine_step().  *ret, which may be
 * NULL, is valid until then.  owner is handed to the events as it is.
 */
CSN_API int csn_submit(struct csn_engine *engine, const char *request, size_t len, const struct csn_events *events, void *owner,
                       struct csn_run **ret, struct csn_error *err);

/* End a submitted run now; its done() follows. */
CSN_API void csn_cancel(struct csn_run *run);

/* A descriptor that poll(2) finds readable when csn_engine_step() has something to do. */
CSN_API int csn_engine_fd(struct csn_engine *engine);

/* Serve what there is, waiting at most timeout_ms milliseconds (-1: until something happens). */
CSN_API int csn_engine_step(struct csn_engine *engine, int timeout_ms, struct csn_error *err);

CSN_API void csn_free(void *text);

#ifdef __cplusplus
}
#endif

#endif
