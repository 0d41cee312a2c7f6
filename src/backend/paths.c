/*
 * Locates installed files: next to the executable or libcaisson.so when run from a build folder, otherwise under the
 * install prefix.  The paths come from the kernel and the loader, not from the environment, so the environment cannot
 * inject another supervisor.
 */
#include "backend/backend.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

#include "config.h"

static bool our_folder(char folder[static PATH_MAX])
{
        Dl_info info;
        ssize_t len;
        if (dladdr((void *)(uintptr_t)&backend_runner_dir, &info) && info.dli_fname && strstr(info.dli_fname, ".so"))
                len = realpath(info.dli_fname, folder) ? (ssize_t)strlen(folder) : -1;
        else
                len = readlink("/proc/self/exe", folder, PATH_MAX - 1);
        if (len <= 0)
                return false;
        folder[len] = 0;
        *strrchr(folder, '/') = 0;
        return true;
}

static const char *beside_us(const char *file, const char *installed, char path[static PATH_MAX])
{
        char folder[PATH_MAX];
        if (path[0])
                return path;
        if (our_folder(folder)) {
                int n = snprintf(path, PATH_MAX, "%s/%s", folder, file);
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

const char *backend_policy_worker(void)
{
        static char path[PATH_MAX];
        return beside_us("caisson-policy", POLICY_WORKER_PATH, path);
}

const char *backend_daemon(void)
{
        static char path[PATH_MAX];
        return beside_us("caissond", DAEMON_PATH, path);
}

const char *backend_remote(void)
{
        static char path[PATH_MAX];
        return beside_us("caisson-remote", REMOTE_PATH, path);
}

const char *backend_gateway(void)
{
        static char path[PATH_MAX];
        return beside_us("caisson-gateway", GATEWAY_PATH, path);
}

const char *backend_policies_dir(void)
{
        static char path[PATH_MAX];
        return beside_us("src/policy/policies", POLICIES_DIR, path);
}
