/* The backend `e2b`: runs programs in sandboxes of a remote server with E2B's API.  Registered with backend_add(). */
#ifndef BACKEND_E2B_H
#define BACKEND_E2B_H

#include "backend/backend.h"
#include "model/settings.h"

extern const struct backend backend_e2b;

#endif
