/*
 * Our own files: beside the running program when it runs out of its build folder, else where it was
 * installed.  The program's place comes from the kernel (/proc/self/exe) and not from the environment, so
 * that nobody can hand us another supervisor.
 */
#include "backend/backend.h"

#include <limits.h>
#include <stdio.h>

#include "config.h"

static const struct backend *const backends[] = { &backend_native, &backend_host };

const struct backend *backend_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(backends); i++)
                if (strcmp(backends[i]->name, name) == 0)
                        return backends[i];
        return NULL;
}

static const char *beside_us(const char *file, const char *installed, char path[static PATH_MAX])
{
        char exe[PATH_MAX];
        ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
        if (path[0])
                return path;
        if (len > 0) {
                exe[len] = 0;
                *strrchr(exe, '/') = 0;
                int n = snprintf(path, PATH_MAX, "%s/%s", exe, file);
                if (n > 0 && n < PATH_MAX && access(path, F_OK) == 0)
                        return path;
        }
        snprintf(path, PATH_MAX, "%s", installed);
        return path;
}

const char *backend_runner_dir(void)
{
        static char path[PATH_MAX];
        return beside_us("lang", RUNNER_DIR, path);
}

const char *backend_supervisor(void)
{
        static char path[PATH_MAX];
        return beside_us("caisson-supervisor", SUPERVISOR_PATH, path);
}
