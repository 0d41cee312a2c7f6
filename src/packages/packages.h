/*
 * packages: layers of packages for the requests of runs.
 *
 *   imports    detected imports: their distributions, and what the image has
 *   image      layers in imported images
 *   named      existing layers: of a request, and pinned to an image
 *   source     answers to queries: an existing layer, a remembered failure, or a build
 *   build      one build: resolve, judge, download, install, publish
 *   programs   the two Python programs that run in build sandboxes
 *   index      (a room) the package index that a resolver reaches
 *
 * A build runs no code of a package.  pip resolves in a sandbox whose only address is our index; the engine judges the
 * result by what the index has offered, and fetches the files; pip installs in a second sandbox without network, by
 * hashes; what is installed is frozen into a layer (src/layers), and runs get the layer read-only.
 *
 * A layer belongs to a trust domain, the owner of the runs that asked for the layer.  The owner is part of the layer's
 * name, so a layer that one tenant's request has made is never mounted for another tenant.
 *
 * All functions belong to the thread of the engine's loop.
 */
#ifndef PACKAGES_PACKAGES_H
#define PACKAGES_PACKAGES_H

#include "engine/engine.h"
#include "layers/layers.h"

#define PACKAGES_BUILDS_MAX 4    /* builds that go on at once; further builds wait */
#define PACKAGES_WAITING_MAX 256 /* builds that wait or go on; a further request is refused (CSN_E_BUSY) */
/* The same for one owner: the others find a place at any time. */
#define PACKAGES_OWNER_BUILDS_MAX 3
#define PACKAGES_OWNER_WAITING_MAX 64

struct packages;

/*
 * Read the files that the settings name, with the rights of the caller; `settings` must outlive *ret, which is the
 * caller's until packages_open().  Errors: CSN_E_CONFIG (a file of a token or of certificates cannot be read).
 */
int packages_prepare(const struct settings *settings, struct packages **ret, struct csn_error *err);
/*
 * Open the folder of layers, and become the layer source of an engine until engine_close().  Takes *packages in each
 * case.  Errors: those of layers_open().
 */
int packages_open(struct packages *packages, struct engine *engine, struct csn_error *err);
/* Free what was prepared and not opened.  NULL is allowed. */
void packages_free(struct packages *packages);

#endif
