/*
 * launch: programs that an engine may have started beside it, though it has no rights left: MCP servers and commands.
 *
 * Which programs there are is said once, while the engine still has its rights, in a file that is the launcher's
 * descriptor 4 (supervisor/tool_launcher.c).  From then on a request can name one of them and give values for the places that
 * its arguments leave open, whole arguments each, and nothing else.  Everything is texts that end with a NUL; numbers are
 * texts too.
 */
#ifndef WIRE_LAUNCH_H
#define WIRE_LAUNCH_H

#include "base/base.h"

#define LAUNCH_TABLE_FD 4
#define LAUNCH_TABLE_MAX (4 * MIB)
#define LAUNCH_PROGRAMS_MAX 256
#define LAUNCH_TEXTS_MAX 512               /* in one list */
#define LAUNCH_PLACES_MAX 64               /* that the arguments of a program leave open */
#define LAUNCH_REQUEST_MAX (128 * 1024)    /* bytes of a request: one send is enough */

enum launch_flag {
        LAUNCH_NETWORK = 1,                /* that of the host; else none at all */
        LAUNCH_ISOLATION = 2,                  /* files only where `read` and `write` say, and where programs and libraries are */
};

struct launch_texts {
        char **texts;
        size_t n;
};

/* An argument of the table, by its first byte: */
#define LAUNCH_FIXED 'F'                   /* the text behind it */
#define LAUNCH_PLACE 'P'                   /* "P3": the values of place 3, as many arguments; none where it has none */
#define LAUNCH_WITH 'W'                    /* "W3:--days": this text, if place 3 has a value */

struct launch_program {
        uint32_t uid, gid;
        unsigned flags;
        uint64_t memory_bytes, cpu_s, processes;   /* 0: no limit of ours */
        const char *folder;                /* in which it starts */
        struct launch_texts argv, env, read, write;
};

/* The values of each place. */
struct launch_values {
        struct launch_texts places[LAUNCH_PLACES_MAX];
        size_t n;
};

/* With descriptors: its standard input, output and error, and a socket that stays with whoever minds it. */
enum { LAUNCH_STDIN, LAUNCH_STDOUT, LAUNCH_STDERR, LAUNCH_CONTROL, LAUNCH_FDS };

/*
 * That socket has no messages but one: when the program has ended, its status as waitpid(2) has it, an int32.  Closing our
 * end, or shutting it down, ends the program and all that came of it.
 */

/* Where a program cannot be started: this exit status, and on its standard error this and the reason, which names what is on the host. */
#define LAUNCH_NOT_STARTED 127
#define LAUNCH_PROBLEM "caisson: "

/* False: it does not fit. */
bool launch_put_program(struct buf *buf, const struct launch_program *program);
bool launch_put_request(struct buf *buf, size_t program, const struct launch_values *values);

/*
 * The next program at *at, which moves on.  Texts stay in the bytes.  0; a negative code where they are none: CSN_E_INPUT.
 */
int launch_get_program(const char *bytes, size_t len, size_t *at, struct arena *arena, struct launch_program *ret, struct csn_error *err);
int launch_get_request(const char *bytes, size_t len, struct arena *arena, size_t *ret_program, struct launch_values *ret, struct csn_error *err);

/* The arguments as they are started with, NULL-terminated.  Errors: CSN_E_INPUT, the table names a place that is not there. */
int launch_fill(const struct launch_program *program, const struct launch_values *values, struct arena *arena, char ***ret_argv, struct csn_error *err);

#endif
