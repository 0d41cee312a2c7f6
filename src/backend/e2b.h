/* The backend `e2b`: runs programs in sandboxes of a remote server with E2B's API.  Registered with backend_add(). */
#ifndef FRONT_E2B_CLIENT_H
#define FRONT_E2B_CLIENT_H

#include "backend/backend.h"
#include "model/settings.h"

extern const struct backend backend_e2b;

#endif
