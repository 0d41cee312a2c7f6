/* Python zygotes: one per image, parent of the interpreters of pools and runs. */
#include "engine/instance/pool_private.h"

#include <inttypes.h>
#include <stdio.h>

#define RETRY_MS 1000          /* delay after a failure of a pool or a zygote; doubled with each failure in a row */
#define RETRY_MAX_MS 60000
#define OWN_RETRY_MS 60000
#define OWN_RETRY_MAX_MS 3600000
#define OWN_ARGUMENTS 2        /* the interpreter and its runner, at the head of every command line */

const char *const pool_image_names[POOL_IMAGES] = {
        [image_SYSTEM] = "system", [image_DATA] = "data", [image_SMALL] = "small"
};

uint64_t pool_next_backoff(uint64_t backoff_ms)
{
        return backoff_ms ? min_u64(backoff_ms * 2, RETRY_MAX_MS) : RETRY_MS;
}

/* A request with language, image, an empty program and perhaps a profile. */
static int prepare_bare(const struct pools *pools, const char *language, int image, const char *profile,
        struct launch *ret, struct csn_error *err)
{
        launch_init(ret, pools->instances->settings, pools->added);
        struct run_request *request = &ret->request;
        SET(request, run_request, language, arena_text(&ret->arena, "%s", language));
        SET(request, run_request, image, arena_text(&ret->arena, "%s", pool_image_names[image]));
        SET(request, run_request, code, ((struct bytes){ .bytes = arena_text(&ret->arena, "%s", "") }));
        if (profile)
                SET(request, run_request, profile, arena_text(&ret->arena, "%s", profile));
        ret->has_messages = image == image_SMALL;   /* nearly every request for this image grades */
        return launch_prepare(ret, err);
}

static bool has_image(const struct settings *settings, const char *name, int image)
{
        struct arena arena = { 0 };
        struct profile profile;
        struct csn_error err;
        bool has = profile_find(settings, name, &arena, &profile, &err) == 0 &&
                strcmp(HAS(&profile.request, run_request, image) ? profile.request.image
                                                                  : pool_image_names[image_SYSTEM],
                        pool_image_names[image]) == 0;
        arena_done(&arena);
        return has;
}

/*
 * Runs with the data image have the profile "data", and the number of its cores is in their environment; an
 * administrator may allow less.  Of the installation's profiles only the default profile is used: all runs of a zygote
 * see its environment.
 */
int pool_usual_launch(const struct pools *pools, const char *language, int image, struct launch *ret,
        struct csn_error *err)
{
        static const char *const profiles[POOL_IMAGES] = { [image_DATA] = "data" };
        const struct settings *settings = pools->instances->settings;
        if (profiles[image] && !has_image(settings, settings->engine.profile, image)) {
                if (prepare_bare(pools, language, image, profiles[image], ret, err) == 0)
                        return 0;
                launch_done(ret);
        }
        return prepare_bare(pools, language, image, NULL, ret, err);
}

/* Foreign code that fails once fails again; its runs have another way. */
static uint64_t next_own_backoff(uint64_t backoff_ms)
{
        return backoff_ms ? min_u64(backoff_ms * 2, OWN_RETRY_MAX_MS) : OWN_RETRY_MS;
}

void pool_zygote_failed(struct zygote *zygote, const char *why)
{
        zygote->failures++;
        snprintf(zygote->trouble, sizeof zygote->trouble, "%s", why);
        zygote->asked = zygote->serves = false;
        zygote->retry_ms = zygote->own ? next_own_backoff(zygote->retry_ms) : pool_next_backoff(zygote->retry_ms);
        zygote->retry_at_ms = clock_ms() + zygote->retry_ms;
}

/* Foreign imports of a zygote, beside the modules of its image (src/lang/python/zygote/preload.py). */
static size_t add_foreign(const struct pools *pools, struct arena *arena, char **env)
{
        const struct packages_settings *settings = &pools->instances->settings->packages;
        env[0] = arena_text(arena, "CAISSON_ZYGOTE_PRELOAD=%s", settings->preload);
        env[1] = arena_text(arena, "CAISSON_ZYGOTE_WALL=%" PRIu64, settings->preload_wall);
        return 2;
}

/* Arguments and environment are those of a usual run, so a fork finds both in place. */
static int request_zygote(struct pools *pools, const struct zygote *zygote, const struct launch *usual,
        struct arena *arena, struct csn_error *err)
{
        const struct wire_program *program = &usual->program.program;
        struct wire_shape shape = { .label = (char *)(uintptr_t)"zygote" };
        char *argv[16], warming[32];
        size_t n = 0;
        for (; lang_python.zygote[n]; n++)
                argv[n] = (char *)(uintptr_t)lang_python.zygote[n];
        if (usual->interpreter)
                argv[0] = (char *)(uintptr_t)usual->interpreter;
        argv[n++] = (char *)(uintptr_t)pool_image_names[usual->ahead];
        snprintf(warming, sizeof warming, "%" PRIu64, pools->instances->settings->engine.pool_warming);
        argv[n++] = warming;
        for (size_t i = OWN_ARGUMENTS; i < program->argv_n && n < ARRAY_LEN(argv); i++)
                argv[n++] = program->argv[i];
        struct wire_program wanted = {
                .argv = argv, .argv_n = n, .env = arena_alloc(arena, (program->env_n + 3) * sizeof *wanted.env)
        };
        for (; wanted.env_n < program->env_n; wanted.env_n++)
                wanted.env[wanted.env_n] = program->env[wanted.env_n];
        if (lang_python.zygote_env)
                wanted.env[wanted.env_n++] = arena_text(arena, "%s", lang_python.zygote_env);
        if (zygote->own) {
                wanted.env_n += add_foreign(pools, arena, wanted.env + wanted.env_n);
                shape = usual->shape;
                shape.label = (char *)(uintptr_t)"zygote";
                shape.domain = zygote->id;
                shape.memory_bytes = pools->instances->settings->packages.zygote_memory_bytes;
        }
        if (instances_open_link(pools->instances, pools->backend, err) < 0)
                return -err->code;
        return pools->backend->zygote(pools->instances->links[backend_index(pools->backend)], zygote->id, &shape,
                &wanted, err);
}

/* The launches of an own zygote.  Errors: those of launch_prepare(). */
static int own_launch(const struct pools *pools, const struct zygote *zygote, struct launch *ret,
        struct csn_error *err)
{
        const struct zygote_key *key = &zygote->key;
        launch_init(ret, pools->instances->settings, pools->added);
        struct run_request *request = &ret->request;
        SET(request, run_request, language, arena_text(&ret->arena, "%s", lang_python.name));
        SET(request, run_request, code, ((struct bytes){ .bytes = arena_text(&ret->arena, "%s", "") }));
        SET(request, run_request, image,
                arena_text(&ret->arena, "%s", key->image[0] ? key->image : pool_image_names[key->ahead]));
        if (key->profile[0])
                SET(request, run_request, profile, arena_text(&ret->arena, "%s", key->profile));
        if (launch_prepare(ret, err) < 0)
                return -err->code;
        /* The name may have passed to another image. */
        if (ret->shape.image_high != key->image_high || ret->shape.image_low != key->image_low)
                return err_set(err, CSN_E_BUSY, 0, "the image %s was replaced", key->image);
        const struct launch_layers layers = {
                .python_high = key->layer_high, .python_low = key->layer_low, .folders = key->folders
        };
        launch_set_layers(ret, &layers);
        return 0;
}

void pool_zygote_start(struct pools *pools, struct zygote *zygote)
{
        struct csn_error err = { 0 };
        struct launch usual;
        if (zygote->asked || clock_ms() < zygote->retry_at_ms)
                return;
        zygote->id = ++pools->zygotes_made;
        zygote->asked = true;
        int rc = zygote->own
                ? own_launch(pools, zygote, &usual, &err)
                : pool_usual_launch(pools, lang_python.name, (int)(zygote - pools->zygotes), &usual, &err);
        if (rc < 0 || request_zygote(pools, zygote, &usual, &usual.arena, &err) < 0)
                pools->instances->events->zygote(pools->instances->owner, zygote->id, NULL, &err);
        launch_done(&usual);
}

bool pools_zygote_comes(const struct pools *pools)
{
        for (size_t i = 0; i < POOL_IMAGES; i++)
                if (pools->zygotes[i].asked && !pools->zygotes[i].serves)
                        return true;
        return false;
}

uint32_t pools_zygote_for(struct pools *pools, const struct launch *launch)
{
        if (!pools || launch->image || launch->shape.devices)
                return 0;
        pool_zygote_start(pools, &pools->zygotes[launch->ahead]);
        return pools->zygotes[launch->ahead].serves ? pools->zygotes[launch->ahead].id : 0;
}

int pools_zygote_state(const struct pools *pools, struct csn_error *err)
{
        for (size_t i = 0; pools && i < POOL_IMAGES; i++) {
                const struct zygote *zygote = &pools->zygotes[i];
                if (zygote->serves)
                        return 1;
                if (zygote->failures)
                        return err_set(err, CSN_E_SYSTEM, 0, "%s", zygote->trouble);
        }
        return 0;
}

json_t *pools_zygotes(const struct pools *pools)
{
        json_t *list = json_array();
        for (size_t i = 0; pools && i < POOL_IMAGES; i++) {
                const struct zygote *zygote = &pools->zygotes[i];
                if (zygote->id)
                        json_array_append_new(list,
                                json_pack("{s:s, s:i, s:I}", "image", pool_image_names[i], "serves", zygote->serves,
                                        "failures", (json_int_t)zygote->failures));
        }
        /* Ids of layers are no label of a metric: all own zygotes are one line. */
        json_int_t serving = 0, failures = 0;
        for (const struct zygote *zygote = pools ? pools->own : NULL; zygote; zygote = zygote->next) {
                serving += zygote->serves;
                failures += (json_int_t)zygote->failures;
        }
        if (pools && pools->own)
                json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "image", "packages", "serves", serving,
                                                      "failures", failures));
        return list;
}
