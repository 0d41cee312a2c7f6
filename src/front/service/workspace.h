/* Folders of workspaces; for the files of this folder. */
#ifndef FRONT_WORKSPACE_H
#define FRONT_WORKSPACE_H

#include "store/store.h"

/*
 * A workspace is the folder workspaces/ID beside the store, with `files`, what is in it, and `new`, what is not whole yet.
 * Whoever changes something holds a lock on `files`; reading needs none, for each file is replaced as a whole.
 */
struct workspace {
        struct store *store;
        char id[WORKSPACE_ID_MAX];
        int dir, temp;                     /* -1: nobody has it */
};

/* For us alone, made if it is not there and there is room.  Errors: CSN_E_BUSY, somebody else has it, or those of incoming_add(); CSN_E_SYSTEM. */
int workspace_take(struct store *store, const char *tenant, const char *user, const char *name, const struct store_room *room, struct workspace *ret,
                   struct csn_error *err);
/* What it takes is counted, and others may.  Harmless twice. */
void workspace_leave(struct workspace *workspace);
/* Its files, for reading; -1: it has no folder. */
int workspace_look(struct store *store, const char *id);
bool workspace_is_free(struct store *store, const char *id);
/* Errors: CSN_E_BUSY, CSN_E_SYSTEM. */
int workspace_remove(struct store *store, const char *id, struct csn_error *err);

/* Some of those that were used last so long ago. */
int workspace_clean(struct store *store, uint64_t keep_ms, bool *ret_more, struct csn_error *err);
/* Folders without a row, and rows whose user died. */
int workspace_sweep(struct store *store, struct csn_error *err);

#endif
