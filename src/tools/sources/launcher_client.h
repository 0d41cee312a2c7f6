/* launch: programs of the configuration, started by the launcher; see wire/tool_launcher.h. */
#ifndef TOOLS_LAUNCH_H
#define TOOLS_LAUNCH_H

#include "wire/tool_launcher.h"

struct launcher {
        int sock;                          /* -1: there is none */
        pid_t pid;
};

/* Start it with these programs.  While there are rights.  Errors: CSN_E_SYSTEM. */
int launcher_start(struct launcher *launcher, const struct launch_program *programs, size_t n, struct csn_error *err);
/* What it started goes on until its control sockets are closed. */
void launcher_stop(struct launcher *launcher);

/* A program that goes on; embedded in its owner.  All descriptors -1 is none; they are not blocking. */
struct launched {
        int input, output, error, control;
};
#define LAUNCHED_NONE { -1, -1, -1, -1 }

/* Errors: CSN_E_INPUT (the values are too long), CSN_E_SYSTEM. */
int launch_start(const struct launcher *launcher, size_t program, const struct launch_values *values, struct launched *ret, struct csn_error *err);
/* What came of it: false while it goes on.  A text for people: "it ended with exit status 3". */
bool launch_over(const struct launched *launched, char *text, size_t size, int *ret_status);
/* It ends, with all that came of it: SIGTERM, and a second later the rest. */
void launch_end(struct launched *launched);

#endif
