/*
 * supervisor: the only program with privileges.  It makes sandboxes, keeps their clocks, ends them, and
 * tells how they ended.  No JSON, no source code, no file of a tenant by name; the messages of wire.h are
 * all it reads.
 *
 * It serves one peer, the engine that started it, over descriptor 3.  When that socket closes, everything
 * it made dies and is removed, and it ends.  A malformed message is an attack: it logs and ends likewise.
 *
 * A second small process, the janitor, waits for the supervisor's own death: SIGKILL leaves a supervisor
 * no time to remove its cgroups.  The processes inside die by themselves then (PR_SET_PDEATHSIG).
 */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include "sandbox/sandbox.h"

#define SUPERVISOR_SOCKET_FD 3

struct supervisor_options {
        struct uid_range uids;
        const char *cgroup_parent;   /* "": automatic */
        const char *runner_dir;      /* folder of the language runners */
};

/* Serve the peer on `sock` until it is gone.  0, or a negative code: the peer broke the protocol. */
int supervisor_serve(int sock, const struct supervisor_options *options, struct csn_error *err);

struct janitor {
        int pipe;                    /* its end of life is the end of this pipe */
        pid_t pid;
};

/*
 * Start the janitor for these cgroup folders (a text of cgroup_paths()).  It is this program again, by
 * /proc/self/exe, with argv[0] "caisson-janitor".  Stopping it waits for its end.
 */
int janitor_start(struct janitor *janitor, const char *paths, struct csn_error *err);
void janitor_stop(struct janitor *janitor);

/* The janitor's own main. */
int janitor_main(const char *paths);

/* ---- for an engine that has given up its rights (helper_starter.c, file_opener.c, tool_launcher.c) ---- */

/* The arguments of caisson-starter; after them come the sockets in the file system that WIRE_START_REMOVE removes. */
enum {
        STARTER_UID, STARTER_GID,            /* of the engine */
        STARTER_WORKER,                      /* the program caisson-policy */
        STARTER_POLICIES, STARTER_BUILTIN,   /* its folders */
        STARTER_RANGE, STARTER_CGROUP, STARTER_RUNNERS,
        STARTER_ARGS,
};

/* All serve descriptor 3 until it is closed, and return the exit status.  opener: UID GID; launcher: see wire/tool_launcher.h. */
int starter_main(int argc, char *const *argv);
int opener_main(int argc, char *const *argv);
int launcher_main(void);

#endif
