/*
 * launch: the protocol by which an engine without rights starts configured programs outside of sandboxes: MCP
 * servers and tool commands.
 *
 * The allowed programs are written once, before the engine gives up its rights, to a table file: descriptor 4 of
 * the launcher (supervisor/tool_launcher.c).  A later request selects a program and gives values, each a whole
 * argument, for the places left open in its arguments; nothing else can be changed.  Table and requests are
 * NUL-terminated texts; numbers are decimal texts.
 */
#ifndef WIRE_TOOL_LAUNCHER_H
#define WIRE_TOOL_LAUNCHER_H

#include "base/base.h"

#define LAUNCH_TABLE_FD 4
#define LAUNCH_TABLE_MAX (4 * MIB)
#define LAUNCH_PROGRAMS_MAX 256
#define LAUNCH_TEXTS_MAX 512               /* in a list */
#define LAUNCH_PLACES_MAX 64               /* places left open in a program's arguments */
#define LAUNCH_REQUEST_MAX (128 * 1024)    /* bytes of a request; a single send is enough */

enum launch_flag {
        LAUNCH_NETWORK = 1,                /* the host's network; without this flag no network */
        /* Files are limited to `read`, `write` and the folders of programs and libraries. */
        LAUNCH_ISOLATION = 2,
};

struct launch_texts {
        char **texts;
        size_t n;
};

/* An argument of the table, by its first byte. */
#define LAUNCH_FIXED 'F'                   /* the text after the byte */
/* "P3": the values of place 3, each an argument; no argument without a value. */
#define LAUNCH_PLACE 'P'
#define LAUNCH_WITH 'W'                    /* "W3:--days": this text, if place 3 has a value */

struct launch_program {
        uint32_t uid, gid;
        unsigned flags;
        uint64_t memory_bytes, cpu_s, processes;   /* 0: no limit set by us */
        const char *folder;                /* working directory */
        struct launch_texts argv, env, read, write;
};

/* Values for the places, by place number. */
struct launch_values {
        struct launch_texts places[LAUNCH_PLACES_MAX];
        size_t n;
};

/* Descriptors of a request: standard input, output and error, and a control socket. */
enum { LAUNCH_STDIN, LAUNCH_STDOUT, LAUNCH_STDERR, LAUNCH_CONTROL, LAUNCH_FDS };

/*
 * The control socket carries one message: after the program's end its waitpid(2) status word, an int32.  Closing
 * or shutting down the engine's end kills the program and all its descendants.
 */

/*
 * Program that cannot be started: the exit status, and the prefix on standard error of the reason (the reason
 * names paths of the host).
 */
#define LAUNCH_NOT_STARTED 127
#define LAUNCH_PROBLEM "caisson: "

/* Append to `buf`; false: the text does not fit. */
bool launch_put_program(struct buf *buf, const struct launch_program *program);
bool launch_put_request(struct buf *buf, size_t program, const struct launch_values *values);

/*
 * Decode the program at *at (moved to the next program), or a request.  Texts point into `bytes`, lists live in
 * `arena`.  0, or -CSN_E_INPUT: malformed.
 */
int launch_get_program(const char *bytes, size_t len, size_t *at, struct arena *arena, struct launch_program *ret,
        struct csn_error *err);
int launch_get_request(const char *bytes, size_t len, struct arena *arena, size_t *ret_program,
        struct launch_values *ret, struct csn_error *err);

/*
 * Build the final argument list, NULL-terminated, in `arena`.  Errors: CSN_E_INPUT (the arguments use a place
 * missing in the request, or the list is empty).
 */
int launch_fill(const struct launch_program *program, const struct launch_values *values, struct arena *arena,
        char ***ret_argv, struct csn_error *err);

#endif
