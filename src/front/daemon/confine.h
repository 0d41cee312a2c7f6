/*
 * confine: what caissond gives up before it listens.
 *
 * It parses what strangers send, so it has no rights: it becomes an ordinary user without a capability, sees the files that
 * it needs (Landlock), and has the system calls that it uses (seccomp).  What needs more is done by small processes that
 * were started before (backend.h, helpers).
 */
#ifndef FRONT_CONFINE_H
#define FRONT_CONFINE_H

#include "model/settings.h"

struct confine {
        uid_t uid;                 /* who it is from then on */
        gid_t gid;
        char state_dir[4096];      /* "": it uses none */
        char sockets[3][120];      /* in the file system, that it removes at its end; "" */
        const char *config;        /* the file that was named, or NULL */
};

/*
 * Choose the user, start the helpers, give up everything.  The folder of the state is made and given to that user first.
 * Errors: CSN_E_CONFIG (engine.user is nobody, or cannot reach what it has to), CSN_E_UNSUPPORTED (engine.landlock is
 * require, and there is none), CSN_E_SYSTEM.
 */
int confine(const struct settings *settings, struct confine *confine, struct csn_error *err);

/* What is in force, as the kernel says: {uid, capabilities, no_new_privs, seccomp, landlock_abi}.  The caller's reference. */
json_t *confine_facts(void);

#endif
