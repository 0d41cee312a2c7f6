/* Programs of entries, for the tool launcher: user, folders, environment and memory. */
#include "tools/sources/config_read.h"
#include "tools/sources/launcher_client.h"

/* The user of a program: by default another user than the daemon under root, whose files are secret. */
static int get_user(struct config_reader *r, json_t *json, struct launch_program *program)
{
        const struct engine_settings *engine = &r->settings->engine;
        const char *name = engine->tools_user;
        struct csn_error why;
        if (config_text(r, json, "user", &name) < 0)
                return -CSN_E_CONFIG;
        return launcher_user(engine, name, r->registry->programs_n, program, &why) < 0
                ? config_wrong(r, "user", "%s", why.text)
                : 0;
}

static int get_folders(struct config_reader *r, json_t *json, const char *key, struct launch_texts *ret)
{
        struct texts list = { 0 };
        if (config_texts(r, json, key, &list) < 0)
                return -CSN_E_CONFIG;
        for (size_t i = 0; i < list.n; i++)
                if (list.texts[i][0] != '/' || access(list.texts[i], F_OK) < 0)
                        return config_wrong(r, key,
                                "%.200s has to be a file or a folder that is there, from the root on", list.texts[i]);
        *ret = (struct launch_texts){ list.texts, list.n };
        return 0;
}

/* The environment holds the usual variables, and none of the daemon's. */
static int get_environment(struct config_reader *r, json_t *json, struct launch_program *program)
{
        struct texts given = { 0 }, env = { 0 };
        const char *const usual[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "LANG=C.UTF-8", arena_text(r->arena, "HOME=%s", program->folder) };
        if (config_pairs(r, json, "env", "=", &given) < 0)
                return -CSN_E_CONFIG;
        for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
                bool set = false;
                for (size_t k = 0; k < given.n; k++)
                        set |= strncmp(usual[i], given.texts[k], strcspn(usual[i], "=") + 1) == 0;
                if (!set)
                        config_add_text(r, &env, usual[i]);
        }
        for (size_t k = 0; k < given.n; k++)
                config_add_text(r, &env, given.texts[k]);
        program->env = (struct launch_texts){ env.texts, env.n };
        return 0;
}

int config_program(struct config_reader *r, json_t *json, struct launch_program *program)
{
        const char *folder = "/";
        bool network = program->flags & LAUNCH_NETWORK;
        if (config_text(r, json, "cwd", &folder) < 0 || get_user(r, json, program) < 0 ||
                get_folders(r, json, "read", &program->read) < 0 ||
                get_folders(r, json, "write", &program->write) < 0 || config_bool(r, json, "network", &network) < 0 ||
                config_size(r, json, "memory", 1024 * GIB, &program->memory_bytes) < 0)
                return -CSN_E_CONFIG;
        if (folder[0] != '/')
                return config_wrong(r, "cwd", "it has to be a folder from the root on");
        program->folder = folder;
        program->flags = network ? LAUNCH_NETWORK : 0;
        if (json_object_get(json, "read") || json_object_get(json, "write"))
                program->flags |= LAUNCH_ISOLATION;
        return get_environment(r, json, program);
}

int config_add_program(struct config_reader *r, const struct launch_program *program, size_t *ret)
{
        struct registry *registry = r->registry;
        if (registry->programs_n == LAUNCH_PROGRAMS_MAX)
                return config_wrong(r, NULL, "there are more than %d programs", LAUNCH_PROGRAMS_MAX);
        *ret = registry->programs_n;
        registry->programs[registry->programs_n++] = *program;
        return 0;
}
