/*
 * The backend `docker`: runs programs in containers of a Docker or Podman engine.  Registered with backend_add().
 *
 *   engine.c       calls to the REST API: version, time limits, leftovers of an earlier life
 *   attach.c       the stream to process 1 of a container: a connection outside of HTTP
 *   guest_link.c   operations of the guest over that stream
 *   container.c    the life of a container, from its creation until process 1 answers
 *   describe.c     the request for a container, and the boundary in its report
 *   pool.c         waiting containers, each for one run
 *   run.c          a run: input files, the program, its end
 *   run_files.c    files into and out of the container
 *   run_sockets.c  connections of programs to the tool socket and to the proxy
 *
 * Process 1 is caisson-guest with its framed protocol on standard input and output (wire/guest_stream.h).  So nothing
 * depends on exec or archive calls, which differ between engines.  An engine is as untrusted as a container: answers
 * have ceilings and time limits, and a missing answer is an error of the run.
 */
#ifndef BACKEND_DOCKER_DOCKER_H
#define BACKEND_DOCKER_DOCKER_H

#include "backend/backend.h"
#include "model/settings.h"

extern const struct backend backend_docker;

#endif
