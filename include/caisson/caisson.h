/*
 * libcaisson: run untrusted code in a closed sandbox.
 *
 * Requests and records are JSON, as `caisson schema request` and `caisson schema result` describe them: the same as on
 * the command line and in every other front.  One thread uses an engine at a time.  The library never exits, prints or
 * throws, with one exception: without memory it ends the process.
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

/* Callbacks during a run; each may be NULL.  Called from csn_run() or csn_engine_step() only. */
struct csn_events {
        /*
         * Output as soon as it arrives, before the record has it.  stream: 1 stdout, 2 stderr.  bytes are valid during
         * the call.
         */
        void (*output)(void *owner, int stream, const void *bytes, size_t len);
        /* The run has ended; record is its JSON text, len bytes and a NUL, valid during the call. */
        void (*done)(void *owner, const char *record, size_t len);
};

/* The version of the library, "0.1.0".  Static text. */
CSN_API const char *csn_version(void);

/*
 * Open an engine with settings from config_file, or for NULL from the default places and the environment
 * (caisson.conf(5)).  On success *ret belongs to the caller until csn_engine_close().  Errors: CSN_E_CONFIG,
 * CSN_E_SYSTEM.
 */
CSN_API int csn_engine_open(const char *config_file, struct csn_engine **ret, struct csn_error *err);

/* Close an engine and free its memory.  Unfinished runs are killed; their done() is not called. */
CSN_API void csn_engine_close(struct csn_engine *engine);

/*
 * Run a request to its end.  On success *ret_record is the record's JSON text, the caller's until csn_free().  A
 * failing program and a refused request are no errors: the record's status has the outcome.  Errors: CSN_E_INPUT (an
 * argument is NULL), CSN_E_SYSTEM (the engine itself failed).
 */
CSN_API int csn_run(struct csn_engine *engine, const char *request, size_t len, const struct csn_events *events,
        void *owner, char **ret_record, struct csn_error *err);

/*
 * Check a program against a source policy without running it.  The request has language and code, optionally policy,
 * allow_imports, block_at, id and file.  *ret_result is the output of `caisson check --json`, the caller's until
 * csn_free().  A denied program is no error.  Errors: CSN_E_INPUT (malformed request), CSN_E_LANGUAGE, CSN_E_SYSTEM.
 */
CSN_API int csn_check(struct csn_engine *engine, const char *request, size_t len, char **ret_result,
        struct csn_error *err);

/*
 * Start a request and return at once; a later csn_engine_step() calls done().  *ret, which may be NULL, is valid until
 * done().  owner is passed to the events.  Request bytes are copied.  Errors: CSN_E_INPUT (an argument is NULL).
 */
CSN_API int csn_submit(struct csn_engine *engine, const char *request, size_t len, const struct csn_events *events,
        void *owner, struct csn_run **ret, struct csn_error *err);

/* End a submitted run now; its done() follows.  NULL is fine. */
CSN_API void csn_cancel(struct csn_run *run);

/* The engine's descriptor: readable, by poll(2), when csn_engine_step() has work.  Stays the engine's. */
CSN_API int csn_engine_fd(struct csn_engine *engine);

/*
 * Handle pending events, waiting at most timeout_ms milliseconds for the first (-1: without limit).  Errors:
 * CSN_E_SYSTEM.
 */
CSN_API int csn_engine_step(struct csn_engine *engine, int timeout_ms, struct csn_error *err);

/* Free a text that the library returned.  NULL is fine. */
CSN_API void csn_free(void *text);

#ifdef __cplusplus
}
#endif

#endif
