/* Volumes of tenants: their files, loop devices, and the mounts of sandboxes; and the granted devices of a sandbox. */
#ifndef SUPERVISOR_VOLUMES_H
#define SUPERVISOR_VOLUMES_H

#include "supervisor/supervisor_private.h"

/*
 * Make or remove a volume.  Takes about 20 ms, in which the supervisor does nothing else.  Errors: CSN_E_BUSY (in use;
 * with err->sys ENOSPC: the disk is full), CSN_E_INPUT (size), CSN_E_UNSUPPORTED with the remedy, CSN_E_CONFIG (the
 * folder is not root's alone), CSN_E_SYSTEM.
 */
int volumes_order(struct supervisor *sup, const struct wire_volume_order *order, struct csn_error *err);
/* Remove unfinished files of dead supervisors. */
void volumes_sweep(struct supervisor *sup);

/*
 * Open the volumes and devices of plan->shape into the plan, and count the sandbox as a user of the volumes until
 * volumes_release().  On an error the sandbox is no user; descriptors in the plan stay the caller's.  Errors: as
 * volumes_order().
 */
int volumes_open_mounts(struct supervisor *sup, struct plan *plan, struct csn_error *err);
void volumes_release(struct supervisor *sup, const struct wire_shape *shape);
/* Let go of all volumes. */
void volumes_free(struct supervisor *sup);

#endif
