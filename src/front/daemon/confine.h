/*
 * confine: the rights that caissond gives up before it listens.
 *
 * caissond parses untrusted input, so it runs without rights: as an ordinary user without capabilities, with access to
 * the necessary files alone (Landlock) and to the necessary system calls alone (seccomp).  Work that needs more is done
 * by small helper processes, which were started before (helpers in backend.h).
 */
#ifndef FRONT_DAEMON_CONFINE_H
#define FRONT_DAEMON_CONFINE_H

#include "model/settings.h"

/* The result of confine(). */
struct confine {
        uid_t uid;                 /* the uid from then on */
        gid_t gid;
        char state_dir[4096];      /* "": no state */
        char sockets[3][120];      /* paths of sockets to be removed at the end; "": none */
        const char *config;        /* the configuration file named on the command line, or NULL */
};

/*
 * Choose the user, start the helpers, and give up all rights.  The state folder is created for this user before.
 * Errors: CSN_E_CONFIG (engine.user does not exist, or cannot access a necessary path), CSN_E_UNSUPPORTED
 * (engine.landlock is "require" and the kernel has none), CSN_E_SYSTEM.
 */
int confine(const struct settings *settings, struct confine *confine, struct csn_error *err);

/*
 * The confinement as the kernel reports it: {uid, capabilities, no_new_privs, seccomp, landlock_abi}.  The caller's
 * reference.
 */
json_t *confine_facts(void);

#endif
