/*
 * Hostile YAML as a configuration file and as a profile: it is refused with a place, or every value is within
 * its bounds and can be written and read again.
 */
#include "model/settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void fill(int fd, const uint8_t *bytes, size_t len)
{
        require(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 && io_write_all(fd, bytes, len) == 0);
}

static void read_as_settings(const char *path)
{
        struct settings settings;
        struct csn_error err = { 0 };
        if (settings_load(&(struct settings_sources){ .file = path }, &settings, &err) < 0)
                require(err.code == CSN_E_CONFIG && err.text[0]);
        else
                for (size_t i = 0; i < settings.n; i++) {
                        const struct setting *setting = &settings.list[i];
                        char value[5000];
                        settings_value(setting, value, sizeof value);
                        require(model_set_value(setting->object, setting->field, setting->into, value,
                                                setting->key, &settings.arena, &err) == 0);
                }
        settings_done(&settings);
}

/* The folder has one profile, a link to the same bytes. */
static void read_as_profile(const char *folder)
{
        struct settings settings;
        struct csn_error err = { 0 };
        struct arena arena = { 0 };
        struct profile profile;
        char flag[200];
        snprintf(flag, sizeof flag, "engine.profiles_dir=%s", folder);
        require(settings_load(&(struct settings_sources){ .file = "/dev/null",
                                                          .flags = (const char *[]){ flag, NULL } },
                              &settings, &err) == 0);
        if (profile_find(&settings, "fuzz", &arena, &profile, &err) == 0)
                require(model_check_request(&profile.request, true, &err) == 0 &&
                        !HAS(&profile.request, run_request, code));
        else
                require(err.code == CSN_E_CONFIG && err.text[0]);
        arena_done(&arena);
        settings_done(&settings);
}

static char folder[] = "/tmp/fuzz-settings-XXXXXX";

static void remove_folder(void)
{
        auto_fd tmp = open("/tmp", O_DIRECTORY | O_CLOEXEC);
        io_remove_tree(tmp, folder + strlen("/tmp/"));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static int fd = -1;
        static char path[100];
        if (fd < 0) {
                char file[100];
                fd = memfd_create("settings", MFD_CLOEXEC);
                snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), fd);
                require(fd >= 0 && mkdtemp(folder));
                snprintf(file, sizeof file, "%s/fuzz.yaml", folder);
                require(symlink(path, file) == 0);
                atexit(remove_folder);
        }
        fill(fd, bytes, len);
        read_as_settings(path);
        read_as_profile(folder);
        return 0;
}
