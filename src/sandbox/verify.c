/*
 * The report of a zygote's child on itself is not trusted if the zygote has foreign code: the child began with the
 * zygote's memory.  So, before the program comes, the supervisor checks the kernel's data on the process (proc(5)).
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define STATUS_MAX 8192

/* The value of a line "NAME:\tvalue" of /proc/PID/status; "" if there is none. */
static const char *value_of(const char *status, const char *name)
{
        const char *at = strstr(status, name);
        return at && (at == status || at[-1] == '\n') ? at + strlen(name) : "";
}

static bool has_ids(const char *status, const char *name, uint32_t id)
{
        unsigned ids[4];
        if (sscanf(value_of(status, name), "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
                return false;
        return ids[0] == id && ids[1] == id && ids[2] == id && ids[3] == id;
}

static bool is_zero(const char *status, const char *name)
{
        char *end;
        const char *value = value_of(status, name);
        return value[0] && strtoull(value, &end, 16) == 0 && end > value;
}

/* The first wrong property, or NULL. */
static const char *flaw_of_status(const struct plan *plan, const char *status)
{
        static const char *const sets[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };
        if (!has_ids(status, "Uid:", plan->host_uid))
                return "uid";
        for (size_t i = 0; i < ARRAY_LEN(sets); i++)
                if (!is_zero(status, sets[i]))
                        return "capabilities";
        if (strtoul(value_of(status, "NoNewPrivs:"), NULL, 10) != 1)
                return "no_new_privs";
        return strtoul(value_of(status, "Seccomp:"), NULL, 10) == 2 ? NULL : "seccomp";
}

/* The namespaces of process 1. */
static const char *flaw_of_namespaces(pid_t first, pid_t pid)
{
        static const char *const kinds[] = { "user", "mnt", "pid", "net", "ipc", "uts" };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                char path[48];
                struct stat a, b;
                snprintf(path, sizeof path, "/proc/%d/ns/%s", first, kinds[i]);
                if (stat(path, &a) < 0)
                        continue;   /* without privileges: process 1 is not dumpable */
                snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, kinds[i]);
                if (stat(path, &b) < 0 || a.st_ino != b.st_ino || a.st_dev != b.st_dev)
                        return "namespaces";
        }
        return NULL;
}

static const char *flaw_of_cgroup(const struct cgroup_leaf *leaf, pid_t pid)
{
        char path[48], text[STATUS_MAX], wanted[sizeof leaf->name + 4];
        size_t due = 0, found = 0;
        for (size_t i = 0; i < ARRAY_LEN(leaf->dir); i++)
                due += leaf->dir[i] >= 0;
        if (!due)
                return NULL;
        snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
        if (io_read_file(AT_FDCWD, path, text, sizeof text - 1) < 0)
                return "cgroup";
        snprintf(wanted, sizeof wanted, "/%s\n", leaf->name);
        for (const char *at = text; (at = strstr(at, wanted)); at++)
                found++;
        return found >= due ? NULL : "cgroup";
}

int sandbox_verify(const struct sandbox *sandbox, struct csn_error *err)
{
        pid_t pid = sandbox_pid_of(sandbox->program_fd), first = sandbox_pid_of(sandbox->pid_fd);
        char path[48], status[STATUS_MAX];
        snprintf(path, sizeof path, "/proc/%d/status", pid);
        if (pid <= 0 || first <= 0 || io_read_file(AT_FDCWD, path, status, sizeof status - 1) < 0)
                return err_set(err, CSN_E_SYSTEM, 0, "the interpreter ended before the program began");
        const char *flaw = flaw_of_status(&sandbox->plan, status);
        flaw = flaw ? flaw : flaw_of_namespaces(first, pid);
        flaw = flaw ? flaw : flaw_of_cgroup(&sandbox->leaf, pid);
        return flaw ? err_set(err, CSN_E_SYSTEM, 0, "the zygote's child is not confined: its %s", flaw) : 0;
}
