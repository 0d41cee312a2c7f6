/* The folders of workspaces; shared by the files of src/front/service. */
#ifndef FRONT_SERVICE_WORKSPACE_H
#define FRONT_SERVICE_WORKSPACE_H

#include "base/worker.h"
#include "store/store.h"

/*
 * A workspace is the folder workspaces/ID beside the store, with the folders `files`, its content, and `new`,
 * incomplete files.  A process that changes a workspace holds a lock on `files`; readers need no lock, because each
 * file is replaced as a whole.
 */
struct workspace {
        struct store *store;
        char id[WORKSPACE_ID_MAX];
        char tenant[TENANT_MAX + 1];
        int dir, temp;                     /* -1: not locked */
        uint64_t weight;                   /* bytes, by workspace_weigh(); 0: not measured */
};

/*
 * Lock a workspace, and create the workspace if missing and if there is space.  *ret is the caller's until
 * workspace_leave().  Errors: CSN_E_BUSY (locked by another), as incoming_add(), CSN_E_SYSTEM.
 */
int workspace_take(struct store *store, const char *tenant, const char *user, const char *name,
        const struct store_room *room, struct workspace *ret, struct csn_error *err);
/* Measure the space in use, for workspace_leave(); possible in a helper thread. */
void workspace_weigh(struct workspace *workspace);
/*
 * Record the space in use, and unlock.  Without workspace_weigh() a helper thread measures the space first; with
 * workers NULL, the caller.  Harmless twice.
 */
void workspace_leave(struct workspace *workspace, struct workers *workers);
/* Open the workspace's files for reading; the descriptor is the caller's.  -1: no folder. */
int workspace_look(struct store *store, const char *id);
/* Whether no process holds the lock. */
bool workspace_is_free(struct store *store, const char *id);
/*
 * Delete a workspace: its row, and the name of its folder, which becomes *ret.  workspace_remove() deletes the folder,
 * also in a helper thread; a folder that is left is deleted by workspace_sweep().  Errors: CSN_E_BUSY (locked),
 * CSN_E_SYSTEM.
 */
#define WORKSPACE_GONE_MAX 100
int workspace_detach(struct store *store, const char *id, char ret[static WORKSPACE_GONE_MAX], struct csn_error *err);
void workspace_remove(const struct store *store, const char *gone);

/*
 * Delete some workspaces that were last used more than keep_ms ago; helper threads delete the folders.  *ret_more: call
 * again.  Errors: CSN_E_SYSTEM.
 */
int workspace_clean(struct store *store, struct workers *workers, uint64_t keep_ms, bool *ret_more,
        struct csn_error *err);
/* Delete folders without a row in the store, and release rows in use by processes that died.  Errors: CSN_E_SYSTEM. */
int workspace_sweep(struct store *store, struct csn_error *err);

#endif
