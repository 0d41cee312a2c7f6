/* The list of backends. */
#include "backend/backend.h"

static const struct backend *backends[BACKENDS_MAX] = { &backend_native, &backend_host };

const struct backend *backend_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(backends) && backends[i]; i++)
                if (strcmp(backends[i]->name, name) == 0)
                        return backends[i];
        return NULL;
}

size_t backend_index(const struct backend *backend)
{
        size_t i = 0;
        while (i + 1 < ARRAY_LEN(backends) && backends[i] != backend)
                i++;
        return i;
}

const struct backend *backend_at(size_t i)
{
        return backends[i];
}

void backend_add(const struct backend *backend)
{
        size_t i = 0;
        while (backends[i] && backends[i] != backend)
                i++;
        backends[i] = backend;
}
