/* Lines of `caisson doctor` on volumes, and on the devices granted to profiles by engine.devices. */
#include "front/cli/cli.h"

#include "engine/launch/launch.h"
#include "sandbox/sandbox.h"

#include <sys/stat.h>
#include <unistd.h>

static void set(struct doctor_check *check, enum check_state state, const char *fact, const char *remedy)
{
        check->state = state;
        snprintf(check->fact, sizeof check->fact, "%s", fact);
        snprintf(check->remedy, sizeof check->remedy, "%s", remedy);
}

static void look_at_volumes(const struct settings *settings, struct doctor_check *check)
{
        struct arena texts = { 0 };
        struct stat st;
        const char *dir = settings_volumes_dir(settings, &texts);
        *check = (struct doctor_check){ .name = "volumes", .state = CHECK_OK };
        if (geteuid() != 0)
                set(check, CHECK_NOTE, "only a daemon that root starts has volumes", "start caissond as root");
        else if (access("/dev/loop-control", R_OK | W_OK) < 0)
                set(check, CHECK_NOTE, "there are no volumes without /dev/loop-control",
                        "load the module loop; in a container, give it the loop devices");
        else if (access("/sbin/mke2fs", X_OK) < 0)
                set(check, CHECK_NOTE, "there are no new volumes without /sbin/mke2fs", "install e2fsprogs");
        else if (lstat(dir, &st) == 0 && (!S_ISDIR(st.st_mode) || st.st_uid != 0 || st.st_mode & 077))
                set(check, CHECK_WEAKER, "the folder of volumes (volumes.dir) is not root's alone, so it is not used",
                        "chown root and chmod 0700 the folder, after a look at who wrote to it");
        else
                snprintf(check->fact, sizeof check->fact, "can be made in %.100s", dir);
        arena_done(&texts);
}

/* Without its device a program of the profile is refused, so a missing device is more than a note. */
static void look_at_device(const char *path, const char *profile, struct doctor_check *check)
{
        struct csn_error err;
        *check = (struct doctor_check){ .name = "granted device", .state = CHECK_OK };
        if (device_look(path, &err) < 0) {
                set(check, CHECK_WEAKER, "", "programs of the profile are refused; load the driver, or change engine.devices");
                snprintf(check->fact, sizeof check->fact, "profile %.40s: %.110s", profile, err.text);
        } else if (geteuid() != 0) {
                set(check, CHECK_NOTE, "granted devices need a daemon that root starts", "start caissond as root");
        } else {
                snprintf(check->fact, sizeof check->fact, "%s is there, for the profile %.60s", path, profile);
        }
}

size_t cli_look_at_grants(const struct settings *settings, struct doctor_check *checks, size_t room)
{
        struct device_grants grants;
        struct csn_error err;
        struct arena texts = { 0 };
        size_t n = 0;
        if (room)
                look_at_volumes(settings, &checks[n++]);
        if (device_grants_read(settings, &texts, &grants, &err) < 0) {
                grants.n = 0;
                if (n < room) {
                        checks[n] = (struct doctor_check){ .name = "granted device" };
                        set(&checks[n++], CHECK_MISSING, err.text, "change engine.devices");
                }
        }
        for (size_t i = 0; i < grants.n && n < room; i++)
                look_at_device(grants.paths[grants.list[i].device], grants.list[i].profile, &checks[n++]);
        arena_done(&texts);
        return n;
}
