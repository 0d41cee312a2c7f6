/* Python zygotes: one per image, from which the interpreters of pools and runs are forked. */
#include "engine/instance/pool_private.h"

#include <inttypes.h>
#include <stdio.h>

#define RETRY_MS 1000          /* delay after a failure of a pool or a zygote; doubled with each failure in a row */
#define RETRY_MAX_MS 60000
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
 * Runs with the data image have the profile of that name, and the number of its cores is in their environment; an
 * administrator may allow less.  Of the installation's profiles only the default one is used: all runs of a zygote see
 * its environment.
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

void pool_zygote_failed(struct zygote *zygote, const char *why)
{
        zygote->failures++;
        snprintf(zygote->trouble, sizeof zygote->trouble, "%s", why);
        zygote->asked = zygote->serves = false;
        zygote->retry_ms = pool_next_backoff(zygote->retry_ms);
        zygote->retry_at_ms = clock_ms() + zygote->retry_ms;
}

/* Arguments and environment are those of a usual run, whose interpreter then finds them as they are. */
static int request_zygote(struct pools *pools, const struct launch *usual, int image, struct arena *arena,
        struct csn_error *err)
{
        const struct wire_program *program = &usual->program.program;
        char *argv[16], warming[32];
        size_t n = 0;
        for (; lang_python.zygote[n]; n++)
                argv[n] = (char *)(uintptr_t)lang_python.zygote[n];
        argv[n++] = (char *)(uintptr_t)pool_image_names[image];
        snprintf(warming, sizeof warming, "%" PRIu64, pools->instances->settings->engine.pool_warming);
        argv[n++] = warming;
        for (size_t i = OWN_ARGUMENTS; i < program->argv_n && n < ARRAY_LEN(argv); i++)
                argv[n++] = program->argv[i];
        struct wire_program wanted = {
                .argv = argv, .argv_n = n, .env = arena_alloc(arena, (program->env_n + 1) * sizeof *wanted.env)
        };
        for (; wanted.env_n < program->env_n; wanted.env_n++)
                wanted.env[wanted.env_n] = program->env[wanted.env_n];
        if (lang_python.zygote_env)
                wanted.env[wanted.env_n++] = arena_text(arena, "%s", lang_python.zygote_env);
        if (instances_open_link(pools->instances, pools->backend, err) < 0)
                return -err->code;
        return pools->backend->zygote(pools->instances->links[backend_index(pools->backend)], pools->zygotes[image].id,
                &wanted, err);
}

void pool_zygote_start(struct pools *pools, int image)
{
        struct zygote *zygote = &pools->zygotes[image];
        struct csn_error err = { 0 };
        struct launch usual;
        if (zygote->asked || clock_ms() < zygote->retry_at_ms)
                return;
        zygote->id = ++pools->zygotes_made;
        zygote->asked = true;
        if (pool_usual_launch(pools, lang_python.name, image, &usual, &err) < 0 ||
                request_zygote(pools, &usual, image, &usual.arena, &err) < 0)
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
        if (!pools || launch->image)
                return 0;
        pool_zygote_start(pools, launch->ahead);
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
        return list;
}
