/*
 * remote: the commands caisson sandbox, context, mcp, tools, layers, image and volume.  All but tools, layers and image
 * send HTTP requests to the daemon, on the socket for users of this host.
 *
 *   commands  the table of commands, arguments, main
 *   ids       ids from the beginning of an id, options, requests
 *   output    errors and output of programs
 *   http      requests, and answers that are streams of events (libcurl)
 *   sandbox   create, list, logs, pause, resume, kill
 *   exec      exec and shell: a program's streams, signals and terminal
 *   terminal  raw mode of the local terminal
 *   copy      cp
 *   tar       folders to tar streams, and back (libarchive)
 *   context   contexts
 *   tools     sources of tools, without the daemon
 *   layers    layers of packages, without the daemon
 *   images    images, without the daemon
 *   volumes   volumes
 *   review    one question to a reviewer, for programs without a daemon
 *   images_test  programs that use the interpreters and libraries of an image
 *   folder    what layers and images share
 *   mcp       caisson mcp: forwards messages of the Model Context Protocol
 *
 * A program of its own, caisson-remote, which caisson executes for these commands.
 */
#ifndef FRONT_REMOTE_REMOTE_H
#define FRONT_REMOTE_REMOTE_H

#include "front/cli/toolkit/toolkit.h"

#include <curl/curl.h>

/* main() of caisson-remote, and of its commands mcp and review.  All return the exit status. */
int remote_main(int argc, char **argv);
int remote_mcp(int argc, char **argv);
int remote_review(int argc, char **argv);

/* ---- requests (http.c) ---- */

/* A connection to the daemon. */
struct link {
        char path[108];                    /* of the socket */
        CURL *easy;                        /* for sequential requests over one connection */
        long status;                       /* HTTP status of the last answer; 0: no answer */
};

/* Find the daemon's socket.  Errors: CSN_E_SYSTEM (no daemon; the text says how to start one). */
int link_open(struct link *link, const struct settings *settings, struct csn_error *err);
void link_close(struct link *link);

/* A handle for one request to the daemon, for further options.  The caller frees it with curl_easy_cleanup(). */
CURL *link_request(const struct link *link, const char *method, const char *path);

/*
 * Send a request and wait for the answer.  body may be NULL; its reference becomes the callee's.  ret may be NULL; *ret
 * is the caller's reference, or NULL for an answer without JSON.  Errors: the daemon's problem by link->status and its
 * code; CSN_E_SYSTEM (no answer).
 */
int link_ask(struct link *link, const char *method, const char *path, json_t *body, json_t **ret,
        struct csn_error *err);

/* Convert an error answer, or a failed transfer, to an error.  Returns -err->code. */
int link_problem(long status, const char *text, size_t len, struct csn_error *err);
int link_broken(const struct link *link, CURLcode code, struct csn_error *err);

/* Escape a name for a path or a query; any bytes.  From the arena. */
char *link_escape(const char *text, struct arena *arena);

/* An answer of JSON lines; each line is an event. */
struct stream {
        const struct link *link;
        CURL *easy;
        struct curl_slist *headers;
        char *body;
        struct buf line;                   /* the incomplete line; the whole body of a problem */
        void (*event)(void *owner, const char *type, json_t *event);
        void *owner;
        bool started;                      /* an event arrived */
        struct csn_error error;            /* code 0: no error */
        long status;
};

/*
 * Prepare a request.  The body may be NULL; its reference becomes the callee's.  The caller runs curl_easy_perform() or
 * a multi handle, then stream_end(), which returns 0 or a negative code with stream->error, then stream_close().
 */
void stream_begin(struct stream *stream, const struct link *link, const char *method, const char *path, json_t *body);
int stream_end(struct stream *stream, CURLcode code);
void stream_close(struct stream *stream);

/* ---- a command ---- */

/* A command in execution. */
struct remote {
        const struct cli_part *part;
        struct cli_settings from;
        struct settings settings;
        struct arena arena;
        struct link link;
        char **args;                       /* arguments before the program, if the command has a program */
        size_t args_n;
        char **program;
        size_t program_n;
        struct { const char *name, *value; } given[16];   /* options of the table */
        size_t given_n;
        int failed;                        /* exit status for an unknown id */
        struct sandbox_request sandbox;    /* values from options that set fields */
        struct process_request process;
        struct context_request context;
        struct volume_request volume;
};

/* The value of an option, "" for a flag; NULL: not given. */
const char *remote_option(const struct remote *remote, const char *name);

/* Print an error.  Returns its exit status, by errors.def: 64 for an object that does not exist. */
int remote_fail(const struct csn_error *err);
int remote_usage(const struct remote *remote, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* link_ask(), and remote_fail() after an error.  Returns the exit status. */
int remote_ask(struct remote *remote, const char *method, const char *path, json_t *body, json_t **ret);
/* POST an object, and print the id of what was made, or with --json its description.  Returns the exit status. */
int remote_make(struct remote *remote, const char *path, json_t *body);
/* GET a list, page by page, as one array.  The caller owns the reference, also of a part before an error. */
int remote_ask_list(struct remote *remote, const char *path, const char *name, json_t **ret);

/*
 * Find the full id for a typed one: an id or its beginning, with or without "sbx_" or "ctx_".  From the arena; NULL:
 * not found, and a message was printed.
 */
const char *remote_sandbox(struct remote *remote, const char *typed);
const char *remote_context(struct remote *remote, const char *typed);
/*
 * Send POST PATH/ID/NAME with the command's name for each argument, or DELETE if the name is `end`.  Returns the exit
 * status of the first failure.
 */
typedef const char *remote_finds(struct remote *remote, const char *typed);
int remote_change_each(struct remote *remote, remote_finds *find, const char *path, const char *end);

/* A text in an object of the daemon's JSON, "" if missing. */
const char *remote_text(json_t *object, const char *name);

/*
 * Print a program's output on a standard stream, with control characters visible on a terminal unless raw.  false: the
 * reader of the stream is gone.
 */
bool remote_print(int stream, bool raw, const void *bytes, size_t len);
/* Print the output in an event, with its bytes unchanged. */
bool remote_print_event(int stream, bool raw, json_t *event);

int remote_create(struct remote *remote);
int remote_create_volume(struct remote *remote);
int remote_list_volumes(struct remote *remote);
int remote_show_volume(struct remote *remote);
int remote_remove_volumes(struct remote *remote);
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
int remote_describe_tools(struct remote *remote);
int remote_call_tool(struct remote *remote);
int remote_check_tools(struct remote *remote);
int remote_build_layer(struct remote *remote);
int remote_list_layers(struct remote *remote);
int remote_show_layer(struct remote *remote);
int remote_verify_layers(struct remote *remote);
int remote_remove_layers(struct remote *remote);
int remote_prune_layers(struct remote *remote);
int remote_export_layer(struct remote *remote);
int remote_import_layer(struct remote *remote);

int remote_import_image(struct remote *remote);
int remote_list_images(struct remote *remote);
int remote_show_image(struct remote *remote);
int remote_remove_images(struct remote *remote);
int remote_test_image(struct remote *remote);

/* ---- folders of the daemon (folder.c) ---- */

/*
 * Root becomes the owner of a folder, or of the nearest folder above that exists; nothing happens for other users and
 * for a folder of root.  Errors: CSN_E_SYSTEM.
 */
int remote_become_owner(const char *path, struct csn_error *err);
/*
 * Open a file of the caller, or for "-" a copy of the descriptor `standard`, before root becomes another user.  Errors:
 * CSN_E_INPUT.
 */
int remote_open_file(const char *path, int flags, int standard, int *ret_fd, struct csn_error *err);
/* Set LC_CTYPE: names beyond ASCII go through the locale in libarchive. */
void remote_use_utf8(void);

/* ---- the local terminal (terminal.c) ---- */

/*
 * Switch the terminal to raw mode: each byte is passed on, Ctrl-C too.  terminal_restore() restores the mode; so do
 * exit(3) and signals without a handler that end the process.  false: standard input is no terminal.
 */
bool terminal_raw(void);
void terminal_restore(void);
/* Size of the first standard stream with a terminal.  false: none has one. */
bool terminal_size(unsigned *ret_rows, unsigned *ret_columns);

/* ---- folders (tar.c) ---- */

struct packer;

/* Open a folder as a tar stream.  *ret is the caller's until packer_close().  Errors: CSN_E_SYSTEM. */
int packer_open(const char *folder, struct packer **ret, struct csn_error *err);
/* The next bytes of the stream; 0 at its end.  Errors: CSN_E_SYSTEM (a file could not be read). */
ssize_t packer_read(struct packer *packer, char *bytes, size_t size, struct csn_error *err);
void packer_close(struct packer *packer);

/*
 * Unpack a tar stream into an existing folder.  read() returns the next bytes, valid until the next call; 0 at the end,
 * or a negative code with an error.  Nothing is written outside of the folder, whatever the stream contains: no "..",
 * no absolute names, no path through a symbolic link, and no more permissions than the umask leaves.  Changes the
 * working directory.  Errors: CSN_E_INPUT (no such folder), CSN_E_SYSTEM (an entry could not be unpacked), and those of
 * read().
 */
int unpack(ssize_t (*read)(void *owner, const void **ret, struct csn_error *err), void *owner, const char *folder,
        struct csn_error *err);

#endif
