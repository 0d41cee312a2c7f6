/* Grants of a launch beside its private file systems: volumes of the request, and devices of its profile. */
#include "engine/launch/launch_private.h"

#include "sandbox/sandbox.h"

#include <stdio.h>

/* ---- volumes ---- */

static int check_volumes(const struct launch *launch, struct csn_error *err)
{
        if (launch->backend != &backend_native)
                return err_field(err, "/volumes", "the backend %s has no volumes; they need the native one",
                        launch->backend->name);
        if (!launch->volumes)
                return err_field(err, "/volumes", "volumes belong to a daemon that serves HTTP and so keeps its state; start caissond with engine.http");
        if (launch->request.volumes_n > WIRE_VOLUMES_MAX)
                return err_field(err, "/volumes", "there are %zu volumes; a sandbox has at most %d",
                        launch->request.volumes_n, WIRE_VOLUMES_MAX);
        return 0;
}

/* "data" or "data:ro". */
static int read_volume(const char *text, struct wire_volume *ret, struct csn_error *err)
{
        struct csn_error why;
        const char *colon = strchr(text, ':');
        char name[WIRE_VOLUME_NAME_MAX + 2];
        size_t len = colon ? (size_t)(colon - text) : strlen(text);
        snprintf(name, sizeof name, "%.*s", (int)min_u64(len, sizeof name), text);
        if (colon && strcmp(colon, ":ro") != 0)
                return err_field(err, "/volumes", "\"%.80s\" is no volume: give NAME, or NAME:ro for one that is only read",
                        text);
        if (wire_volume_name_check(name, &why) < 0)
                return err_field(err, "/volumes", "\"%.80s\": %s", text, why.text);
        *ret = (struct wire_volume){ .read_only = colon != NULL };
        memcpy(ret->name, name, strlen(name) + 1);
        return 0;
}

int launch_find_volumes(struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        struct wire_shape *shape = &launch->shape;
        if (!request->volumes_n)
                return 0;
        if (check_volumes(launch, err) < 0)
                return -err->code;
        for (size_t i = 0; i < request->volumes_n; i++) {
                struct wire_volume *volume = &shape->volumes[i];
                if (read_volume(request->volumes[i], volume, err) < 0)
                        return -err->code;
                for (size_t k = 0; k < i; k++)
                        if (strcmp(shape->volumes[k].name, volume->name) == 0)
                                return err_field(err, "/volumes", "the volume \"%s\" is named twice", volume->name);
                if (launch->volumes->find(launch->volumes_owner, launch->owner_key, volume, err) < 0)
                        return -err->code;
        }
        shape->volumes_n = request->volumes_n;
        return 0;
}

/* ---- devices ---- */

static int wrong_grant(const char *entry, const char *why, struct csn_error *err)
{
        return err_set(err, CSN_E_CONFIG, 0, "engine.devices: \"%.80s\": %s", entry, why);
}

static int read_grant(char *entry, struct device_grants *ret, struct csn_error *err)
{
        struct csn_error why;
        char *colon = strchr(entry, ':');
        size_t i = 0;
        if (!colon || colon == entry)
                return wrong_grant(entry, "give PROFILE:/dev/NAME", err);
        if (device_check_path(colon + 1, &why) < 0)
                return wrong_grant(entry, why.text, err);
        if (ret->n == ARRAY_LEN(ret->list))
                return wrong_grant(entry, "there are too many grants", err);
        while (i < ret->paths_n && strcmp(ret->paths[i], colon + 1) != 0)
                i++;
        if (i == ARRAY_LEN(ret->paths))
                return wrong_grant(entry, "at most 8 devices can be granted", err);
        if (i == ret->paths_n)
                ret->paths[ret->paths_n++] = colon + 1;
        *colon = 0;
        ret->list[ret->n++] = (struct device_grant){ .profile = entry, .device = i };
        return 0;
}

int device_grants_read(const struct settings *settings, struct arena *arena, struct device_grants *ret,
        struct csn_error *err)
{
        *ret = (struct device_grants){ 0 };
        char *text = arena_text(arena, "%s", settings->engine.devices), *save = NULL;
        for (char *entry = strtok_r(text, ", \t\n", &save); entry; entry = strtok_r(NULL, ", \t\n", &save))
                if (read_grant(entry, ret, err) < 0)
                        return -err->code;
        return 0;
}

char *device_grants_list(const struct settings *settings, struct arena *arena)
{
        struct device_grants grants;
        struct csn_error err;
        char *list = arena_text(arena, "%s", "");
        if (device_grants_read(settings, arena, &grants, &err) < 0)
                return list;
        for (size_t i = 0; i < grants.paths_n; i++)
                list = arena_text(arena, "%s%s%s", list, i ? "," : "", grants.paths[i]);
        return list;
}

int launch_find_devices(struct launch *launch, struct csn_error *err)
{
        struct device_grants grants;
        if (!launch->settings->engine.devices[0] || launch->backend != &backend_native)
                return 0;
        if (device_grants_read(launch->settings, &launch->arena, &grants, err) < 0)
                return -err->code;
        for (size_t i = 0; i < grants.n; i++)
                if (strcmp(grants.list[i].profile, launch->request.profile) == 0)
                        launch->shape.devices |= 1ULL << grants.list[i].device;
        launch->devices = arena_alloc(&launch->arena, (WIRE_DEVICES_MAX + 1) * sizeof *launch->devices);
        for (size_t i = 0; i < grants.paths_n; i++)
                if (launch->shape.devices >> i & 1)
                        launch->devices[launch->devices_n++] = (char *)(uintptr_t)grants.paths[i];
        return 0;
}
