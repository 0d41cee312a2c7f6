/*
 * supervisor: the only program with privileges.  The supervisor creates sandboxes, enforces their time limits, ends
 * them and reports their ends.  Its only input is the messages of wire/wire.h: no JSON, no source code, no file of a
 * tenant by name.
 *
 * One peer is served over descriptor 3: the engine that started the program.  When this socket closes, the supervisor
 * kills and removes every sandbox and exits.  A malformed message is treated as an attack: the supervisor logs the
 * error and ends in the same way.
 *
 * A second small process, the janitor, waits for the death of the supervisor: SIGKILL leaves a supervisor no time to
 * remove its cgroups.  The processes inside the sandboxes then die by PR_SET_PDEATHSIG (prctl(2)).
 */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include "sandbox/sandbox.h"

#define SUPERVISOR_SOCKET_FD 3

struct supervisor_options {
        struct uid_range uids;
        const char *cgroup_parent;   /* "": chosen automatically */
        struct shared_folders folders;
        const char *volumes_dir;     /* folder of volumes, root's; "": none */
        const char *devices[WIRE_DEVICES_MAX];   /* paths that the configuration grants to profiles */
        size_t devices_n;
};

/* The paths of a list with commas, as the option --devices has them; false: more than WIRE_DEVICES_MAX. */
bool supervisor_take_devices(struct supervisor_options *options, char *list);

/*
 * Serve the engine on `sock` until the engine closes the socket.  `sock` stays the caller's; options must live as long
 * as the call.  Errors: CSN_E_PROTOCOL (the engine broke the protocol), CSN_E_SYSTEM.
 */
int supervisor_serve(int sock, const struct supervisor_options *options, struct csn_error *err);

struct janitor {
        int pipe;                    /* write end; the janitor reads until this end closes */
        pid_t pid;
};

/*
 * Start the janitor for these cgroup folders (a text of cgroup_paths()).  The janitor is this program, executed again
 * through /proc/self/exe with argv[0] "caisson-janitor".  Errors: CSN_E_SYSTEM.  On success the pipe and the process
 * belong to *janitor until janitor_stop(), which closes the pipe and waits for the process.
 */
int janitor_start(struct janitor *janitor, const char *paths, struct csn_error *err);
/* Whether the janitor has ended or was stopped by a signal; janitor_stop() follows, and kills a stopped janitor. */
bool janitor_is_lost(const struct janitor *janitor);
void janitor_stop(struct janitor *janitor);

/* main() of the janitor: waits for the end of its pipe and removes the cgroups.  Returns the exit status. */
int janitor_main(const char *paths);

/* ---- for an engine that has given up its rights (helper_starter.c, file_opener.c, tool_launcher.c) ---- */

/* Arguments of caisson-starter.  The paths of the listening sockets that WIRE_START_REMOVE unlinks follow. */
enum {
        STARTER_UID, STARTER_GID,            /* of the engine */
        STARTER_WORKER,                      /* path of the program caisson-policy */
        STARTER_POLICIES, STARTER_BUILTIN,   /* folders of policies */
        STARTER_RANGE, STARTER_CGROUP, STARTER_RUNNERS, STARTER_LAYERS, STARTER_IMAGES, STARTER_VOLUMES,
        STARTER_DEVICES,
        STARTER_ARGS,
};

/*
 * main() of caisson-starter, of the file opener and of the tool launcher.  Each serves descriptor 3 until the peer
 * closes the socket, and returns the exit status.  Arguments: starter as above, opener UID GID, launcher none (see
 * wire/tool_launcher.h).
 */
int starter_main(int argc, char *const *argv);
int opener_main(int argc, char *const *argv);
int launcher_main(void);

#endif
