/* Programs of the configuration, started by the tool launcher (wire/tool_launcher.h). */
#ifndef TOOLS_SOURCES_LAUNCHER_CLIENT_H
#define TOOLS_SOURCES_LAUNCHER_CLIENT_H

#include "model/settings.h"
#include "wire/tool_launcher.h"

struct launcher {
        int sock;                          /* -1: no launcher */
        pid_t pid;
};

/*
 * Start the launcher with this table of programs, while the process still has its rights.  The table is copied.
 * Errors: CSN_E_SYSTEM.
 */
int launcher_start(struct launcher *launcher, const struct launch_program *programs, size_t n, struct csn_error *err);
/*
 * Set uid and gid of a program: those of the named user; "": as root a number of its own, by `number`, so that no
 * program can look into another's environment; else the caller's.  Errors: CSN_E_CONFIG.
 */
int launcher_user(const struct engine_settings *engine, const char *name, uint64_t number,
        struct launch_program *program, struct csn_error *err);
/* Stop the launcher.  Running programs continue until their control sockets close. */
void launcher_stop(struct launcher *launcher);

/*
 * A running program; embedded in the caller's object.  All descriptors are non-blocking and the caller's; -1 in all:
 * none.
 */
struct launched {
        int input, output, error, control;
};
#define LAUNCHED_NONE { -1, -1, -1, -1 }

/* Start program number `program` of the table.  Errors: CSN_E_INPUT (the values are too long), CSN_E_SYSTEM. */
int launch_start(const struct launcher *launcher, size_t program, const struct launch_values *values,
        struct launched *ret, struct csn_error *err);
/* Whether the program has ended; then text is its end in English ("it ended with exit status 3"). */
bool launch_over(const struct launched *launched, char *text, size_t size, int *ret_status);
/* End the program and its descendants: SIGTERM, and SIGKILL one second later.  Closes the descriptors. */
void launch_end(struct launched *launched);

#endif
