/*
 * librechat: the code interpreter of LibreChat, below /librechat/v1.
 *
 *   front         routes
 *   errors        answers {"message": ...}
 *   request       bodies as requests to run, and their files
 *   exec          POST /exec
 *   answer        records in the form of LibreChat
 *   programmatic  POST /exec/programmatic: runs, replayed with the results of tools
 *   prelude       tools as functions of a program
 *   files         lists, downloads, removal
 *   upload        POST /upload and /upload/batch
 *
 * A session is a run, or an upload, and has its files.  The id of a session is the id of its run, and the id of a file
 * is the id of the stored file, each in 21 characters (id_to_compact()): LibreChat refuses all other ids, and a gateway
 * reads the worker in such an id.  Stored files of a session have the run's id in `run`, and names by
 * stored_name_of_path().
 */
#ifndef FRONT_LIBRECHAT_LIBRECHAT_H
#define FRONT_LIBRECHAT_LIBRECHAT_H

#include "front/compat/compat.h"

#define LIBRECHAT_FILES_MAX 200            /* files of a request, of an upload, and of a session as input */
#define LIBRECHAT_TOOLS_MAX 200            /* of a request to /exec/programmatic */
#define LIBRECHAT_FOLDER "/mnt/data"       /* a link to the home directory */

/* Headers of @librechat/agents by which a request names an environment. */
#define LIBRECHAT_PROFILE_HEADER "X-CodeAPI-Expected-Profile"
#define LIBRECHAT_WORKSPACE_HEADER "X-LibreChat-Code-Workspace-ID"

/* A file in a request; texts live in the arena of the request's run, or of the programmatic execution. */
struct librechat_file {
        char session[ID_COMPACT_LEN + 1], id[ID_COMPACT_LEN + 1];
        const char *name;                  /* below the folder */
        const char *kind, *resource;       /* or NULL */
        int64_t version;                   /* or -1 */
};

/* A program with its inputs. */
struct librechat_exec {
        const struct language *language;
        struct librechat_file *files;
        size_t files_n;
        char session[ID_COMPACT_LEN + 1];  /* whose files are the inputs, where `files` has none; or "" */
};

/* ---- errors.c ---- */

/* Answer {"message": ...}. */
void librechat_problem(struct http_request *request, unsigned status, const struct csn_error *error);
/* Answer an error of a body, of the store or of the engine. */
void librechat_fail(struct http_request *request, const struct csn_error *error);
/* Answer 429 in the words of LibreChat, with the seconds until a retry. */
void librechat_busy(struct http_request *request, const struct http_limit *limit, const struct csn_error *error);

/* ---- request.c ---- */

/*
 * Read the members of both calls.  *ret_ours: a run_request as JSON without files, the caller's reference.
 * language: of a body without `lang`, or NULL.  Errors: CSN_E_INPUT with the field; CSN_E_LANGUAGE.
 */
int librechat_read(const struct http_request *request, json_t *body, const char *language, struct arena *arena,
        struct librechat_exec *ret, json_t **ret_ours, struct csn_error *err);
/*
 * Prepare a run with a decoded run_request: its id, its inputs and its storage.  The files of a session are added to
 * `exec`.  On failure the run is freed and the request answered.
 */
bool librechat_begin(struct http_request *request, struct run *run, struct librechat_exec *exec);

/* ---- answer.c ---- */

/* The record of a run; from any thread.  The caller's reference. */
json_t *librechat_answer(const struct librechat_exec *exec, const struct run_result *result);
/* The same for the last run of a programmatic execution: status is "completed" or "error". */
json_t *librechat_programmatic_answer(const struct librechat_exec *exec, const struct run_result *result);
/* Answer for a run without a begin; false: the run began. */
bool librechat_refused(struct http_request *request, const struct run_result *result);

/* ---- prelude.c ---- */

/* The name of a tool as a function of a program, as @librechat/agents writes it.  Lives in the arena. */
char *librechat_function(const struct language *language, const char *tool, struct arena *arena);
/*
 * The prelude with a function for each tool: functions[i] calls tools[i].  The caller's reference.
 */
json_t *librechat_prelude(const struct language *language, char *const *functions, char *const *tools, size_t n);

/* ---- files.c ---- */

/* The texts in `run` of stored files: of a run, and of an upload. */
#define LIBRECHAT_RUN "run_"
#define LIBRECHAT_UPLOAD "upload_"
#define LIBRECHAT_OWNER_MAX (sizeof LIBRECHAT_UPLOAD + ID_DIGITS)
/* The files of a session, oldest first, at most LIBRECHAT_FILES_MAX + 1. */
int librechat_session_files(struct store *store, const char *tenant, const char *session, struct arena *arena,
        struct store_file **ret, size_t *ret_n, struct csn_error *err);
/* Find a file by session and id; *ret_there is false for a file of another session or tenant, too. */
int librechat_find(struct store *store, const char *tenant, const char *session, const char *id, struct arena *arena,
        struct store_file *ret, bool *ret_there, struct csn_error *err);
/* The id of a stored file in 21 characters. */
void librechat_id_of(const struct store_file *file, char ret[static ID_COMPACT_LEN + 1]);
void librechat_list(struct http_request *request);
void librechat_download(struct http_request *request);
void librechat_delete(struct http_request *request);
void librechat_object(struct http_request *request);

/* ---- the others ---- */

void librechat_exec(struct http_request *request);
void librechat_programmatic(struct http_request *request);
void librechat_upload(struct http_request *request);
void librechat_upload_batch(struct http_request *request);

/* The front's state: programmatic executions waiting for results (programmatic.c). */
struct librechat_state {
        struct programmatic *paused;       /* newest first */
        size_t paused_n, paused_bytes;
};
void librechat_programmatic_close(struct service *service);

#endif
