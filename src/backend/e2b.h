/* The backend `e2b`: runs in sandboxes of a server that speaks E2B's words.  For backend_add(). */
#ifndef FRONT_E2B_CLIENT_H
#define FRONT_E2B_CLIENT_H

#include "backend/backend.h"
#include "model/settings.h"

extern const struct backend backend_e2b;

#endif
