/* The two halves of a launch; for the files of this folder. */
#ifndef ENGINE_LAUNCH_LAUNCH_PRIVATE_H
#define ENGINE_LAUNCH_LAUNCH_PRIVATE_H

#include "engine/launch/launch.h"

/*
 * Open and lock the work folder or workspace that the request names, if any.  Errors: CSN_E_INPUT, CSN_E_BUSY,
 * CSN_E_SYSTEM.
 */
int work_open(struct launch *launch, struct csn_error *err);

/*
 * Find the image of the request, or the default image of its language.  Errors: CSN_E_INPUT (no such image, or it lacks
 * the interpreter), CSN_E_SYSTEM.
 */
int launch_find_image(struct launch *launch, struct csn_error *err);

/*
 * Put the volumes of the request, and the devices that are granted to its profile, into the shape.  Errors: CSN_E_INPUT
 * with the field, CSN_E_CONFIG (engine.devices), those of the source of volumes.
 */
int launch_find_volumes(struct launch *launch, struct csn_error *err);
int launch_find_devices(struct launch *launch, struct csn_error *err);

#define LAUNCH_EXTRAS_MAX 2            /* input files that are no file of the request: the prelude, the input as JSON */

/* Check the length of the program, the prelude, the modules and the input.  Errors: CSN_E_INPUT with the field. */
int extras_check(struct launch *launch, struct csn_error *err);
/* The input files for them, in the memory of the request.  Returns their number. */
size_t extras_inputs(const struct launch *launch, struct launch_input ret[LAUNCH_EXTRAS_MAX]);

#endif
