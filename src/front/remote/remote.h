/*
 * remote: caisson sandbox, caisson context, caisson mcp and caisson tools.  All but the last ask the daemon over HTTP on the socket of this host's
 * users.
 *
 *   remote          arguments, ids, the table of commands
 *   remote_http     requests, and answers that are streams of events (libcurl)
 *   remote_sandbox  create, list, logs, pause, resume, kill
 *   remote_exec     exec and shell: a program's streams, its signals, its terminal
 *   terminal        ours, in raw mode and back
 *   remote_copy     cp
 *   remote_tar      folders as streams, and back (libarchive)
 *   remote_context  contexts
 *   remote_tools    sources of tools, without the daemon
 *   remote_mcp      caisson mcp: messages of the Model Context Protocol, handed on
 *
 * It is a program of its own, caisson-remote, which caisson becomes.
 */
#ifndef FRONT_REMOTE_H
#define FRONT_REMOTE_H

#include "front/cli/cli.h"

#include <curl/curl.h>

int remote_main(int argc, char **argv);
int remote_mcp(int argc, char **argv);

/* ---- asking (http.c) ---- */

struct link {
        char path[108];                    /* of the socket */
        CURL *easy;                        /* for one request after the other, over one connection */
        long status;                       /* HTTP's, of the last answer; 0: there was none */
};

/* Errors: CSN_E_SYSTEM: there is no daemon, and the text says how to start one. */
int link_open(struct link *link, const struct settings *settings, struct csn_error *err);
void link_close(struct link *link);

/* A handle for one request to the daemon, to which more can be added. */
CURL *link_request(const struct link *link, const char *method, const char *path);

/*
 * Ask and wait.  body may be NULL, and is taken; ret may be NULL, and gets NULL where the answer has no JSON.  Errors: what the daemon says, by
 * link->status and with the code of its problem; CSN_E_SYSTEM: it did not answer.
 */
int link_ask(struct link *link, const char *method, const char *path, json_t *body, json_t **ret, struct csn_error *err);

/* What an answer with an error says.  Returns -err->code. */
int link_problem(long status, const char *text, size_t len, struct csn_error *err);
int link_broken(const struct link *link, CURLcode code, struct csn_error *err);

/* A name as part of a path or of a query; any bytes.  From the arena. */
char *link_escape(const char *text, struct arena *arena);

/* An answer that is lines of JSON, each of which is an event. */
struct stream {
        const struct link *link;
        CURL *easy;
        struct curl_slist *headers;
        char *body;
        struct buf line;                   /* what is not whole yet; of a problem, all of it */
        void (*event)(void *owner, const char *type, json_t *event);
        void *owner;
        bool started;                      /* an event came */
        struct csn_error error;            /* code 0: none */
        long status;
};

/* The body may be NULL, and is taken.  Then curl_easy_perform(), or a multi handle, and stream_end(). */
void stream_begin(struct stream *stream, const struct link *link, const char *method, const char *path, json_t *body);
int stream_end(struct stream *stream, CURLcode code);
void stream_close(struct stream *stream);

/* ---- a command ---- */

struct remote {
        const struct cli_part *part;
        struct cli_settings from;
        struct settings settings;
        struct arena arena;
        struct link link;
        char **args;                       /* before the program, if this command has one */
        size_t args_n;
        char **program;
        size_t program_n;
        struct { const char *name, *value; } given[16];   /* options of the table */
        size_t given_n;
        int failed;                        /* the exit status where an id was not found */
        struct sandbox_request sandbox;    /* those of fields */
        struct process_request process;
        struct context_request context;
};

/* An option's value, "" of a flag; NULL: it was not given. */
const char *remote_option(const struct remote *remote, const char *name);

/* Print what went wrong; the exit status that goes with it: 1 for what is not there. */
int remote_fail(const struct remote *remote, const struct csn_error *err);
/* The same of a command whose exit status is a program's: 1 would be taken for that, so 125 is said. */
int remote_status(int status);
int remote_usage(const struct remote *remote, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* link_ask(), and remote_fail().  The exit status. */
int remote_ask(struct remote *remote, const char *method, const char *path, json_t *body, json_t **ret);
/* GET of a list, page after page, as one array.  The caller's reference, also of what came before an error. */
int remote_ask_list(struct remote *remote, const char *path, const char *name, json_t **ret);

/* The whole id for what somebody typed: an id, its beginning, with or without "sbx_" or "ctx_".  From the arena; NULL: there is none, and that is said. */
const char *remote_sandbox(struct remote *remote, const char *typed);
const char *remote_context(struct remote *remote, const char *typed);
/* The command's name is asked of each argument, POST PATH/ID/NAME, or DELETE where it is `end`.  The exit status: that of the first that failed. */
typedef const char *remote_finds(struct remote *remote, const char *typed);
int remote_change_each(struct remote *remote, remote_finds *find, const char *path, const char *end);

/* A text of ours as JSON has it, "" where it is missing. */
const char *remote_text(json_t *object, const char *name);

/* Output of a program on a stream of ours, its control characters made visible on a terminal unless raw.  False: nobody reads it any more. */
bool remote_print(int stream, bool raw, const void *bytes, size_t len);
/* That of an event, its bytes as they were. */
bool remote_print_event(int stream, bool raw, json_t *event);

int remote_create(struct remote *remote);
int remote_list(struct remote *remote);
int remote_logs(struct remote *remote);
int remote_change(struct remote *remote);        /* pause, resume, kill */
int remote_exec(struct remote *remote);
int remote_copy(struct remote *remote);
int remote_create_context(struct remote *remote);
int remote_list_contexts(struct remote *remote);
int remote_run_context(struct remote *remote);
int remote_change_context(struct remote *remote);   /* interrupt, restart, close */
int remote_list_tools(struct remote *remote);
int remote_call_tool(struct remote *remote);
int remote_check_tools(struct remote *remote);

/* ---- our terminal (terminal.c) ---- */

/*
 * Raw: what is typed goes on as it is, Ctrl-C too.  It is put back by terminal_restore(), at exit(3), and before a signal
 * ends us that nobody handles.  False: standard input is none.
 */
bool terminal_raw(void);
void terminal_restore(void);
/* Of the first of our streams that is one.  False: none is. */
bool terminal_size(unsigned *ret_rows, unsigned *ret_columns);

/* ---- folders (tar.c) ---- */

struct packer;

/* What is in a folder as a stream of tar.  Errors: CSN_E_INPUT. */
int packer_open(const char *folder, struct packer **ret, struct csn_error *err);
/* Its next bytes; 0 at its end.  Errors: CSN_E_INPUT, what could not be read. */
ssize_t packer_read(struct packer *packer, char *bytes, size_t size, struct csn_error *err);
void packer_close(struct packer *packer);

/*
 * Unpack a stream into a folder that is there.  read() gives its next bytes, which stay until it is called again; 0 at
 * its end, a negative code with an error of its own.  Nothing is written outside of the folder, whatever the stream says: no "..", no
 * absolute names, no way through a symbolic link, and no more permissions than the umask leaves.  Changes the working
 * folder.  Errors: CSN_E_INPUT.
 */
int unpack(ssize_t (*read)(void *owner, const void **ret, struct csn_error *err), void *owner, const char *folder, struct csn_error *err);

#endif
