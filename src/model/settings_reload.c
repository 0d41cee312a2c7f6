/*
 * Settings that can change in a running program.
 *
 * The settings listed here are read at each use.  All other settings are already part of an object: a socket, a
 * supervisor, an open file.  So a new setting in the table needs a restart until it is verified and listed here.
 */
#include "model/settings.h"

#include <stdio.h>

static const char *const live[] = {
        "engine.profile",
        "engine.landlock",
        "engine.cgroup",
        "engine.network",
        "engine.retention_ms",
        "engine.running_max",
        "engine.judged_max",
        "engine.starting_max",
        "engine.queue_max",
        "engine.pool_min",
        "engine.pool_max",
        "engine.pool_shells",
        "engine.pool_memory_bytes",
        "engine.pool_idle_ms",
        "engine.log_level",
        "engine.socket_uids",
        "engine.shutdown_ms",
        "sessions.idle",
        "http.allowed_hosts",
        "http.web",
        "volumes.max_bytes",
        "volumes.tenant_bytes",
        "volumes.total_bytes",
        "problems.set_bytes",
        "problems.set_count",
        "problems.tenant_sets",
        "images.python",
        "images.javascript",
        "images.bash",
        "images.e2b",
        "images.layers",
        "review.mode",
        "review.timeout",
        "review.attempts",
        "review.budget",
        "review.max_code_bytes",
        "review.max_output_tokens",
        "review.temperature",
        "review.concurrency",
        "review.cache",
        "review.only_if",
        "review.languages",
};

bool settings_is_live(const struct setting *setting)
{
        for (size_t i = 0; i < ARRAY_LEN(live); i++)
                if (strcmp(setting->key, live[i]) == 0)
                        return true;
        return strncmp(setting->key, "limits.", strlen("limits.")) == 0 ||
               strncmp(setting->key, "ceilings.", strlen("ceilings.")) == 0;
}

static void copy_value(struct settings *into, const struct setting *to, const struct setting *from)
{
        const struct field *field = to->field;
        char *target = (char *)to->into + field->at;
        const char *source = (const char *)from->into + field->at;
        switch (field->kind) {
        case KIND_NUM:
                *(uint64_t *)(void *)target = *(const uint64_t *)(const void *)source;
                break;
        case KIND_BOOL:
                *(bool *)target = *(const bool *)source;
                break;
        case KIND_ENUM:
                *(int *)(void *)target = *(const int *)(const void *)source;
                break;
        default:
                /* The old text stays in the arena: a run may be reading the text. */
                *(char **)(void *)target = arena_text(&into->arena, "%s", *(char *const *)(const void *)source);
        }
}

void settings_reload(struct settings *settings, const struct settings *fresh, settings_change_fn *changed, void *owner)
{
        char was[SETTING_VALUE_MAX], is[SETTING_VALUE_MAX];
        for (size_t i = 0; i < settings->n; i++) {
                struct setting *setting = &settings->list[i];
                settings_value(setting, was, sizeof was);
                settings_value(&fresh->list[i], is, sizeof is);
                if (strcmp(was, is) == 0)
                        continue;
                if (settings_is_live(setting)) {
                        copy_value(settings, setting, &fresh->list[i]);
                        snprintf(setting->source, sizeof setting->source, "%s", fresh->list[i].source);
                }
                changed(owner, setting, was, is);
        }
}
