/*
 * SIGHUP: settings and policies are read again.
 *
 * Everything is read and checked before anything changes, so a configuration with an error changes nothing.  Settings
 * fixed while the daemon runs are logged, and wait for a restart.
 */
#include "front/daemon/daemon.h"

#include "front/daemon/sd_notify.h"

struct count {
        unsigned changed, waiting;
};

static void on_changed(void *owner, const struct setting *setting, const char *was, const char *is)
{
        struct count *count = owner;
        if (settings_is_live(setting)) {
                count->changed++;
                log_text(LOG_INFO, "reload: %s is \"%.300s\" now, and was \"%.300s\"", setting->key, is, was);
        } else {
                count->waiting++;
                log_text(LOG_WARN, "reload: %s stays \"%.300s\"; it needs a restart to become \"%.300s\"", setting->key,
                        was, is);
        }
}

/* Reports a faulty policy file now, and not at its first use. */
int daemon_test_policies(const struct settings *settings, struct csn_error *err)
{
        struct policies *policies = NULL;
        int rc = front_load_policies(settings, &policies, err);
        policies_free(policies);
        return rc;
}

static int load(struct daemon *daemon, struct settings *fresh, uid_t **ret_uids, size_t *ret_uids_n,
        struct csn_error *err)
{
        if (settings_load(daemon->sources, fresh, err) < 0)
                return -err->code;
        fresh->engine.allow_host = false;   /* as at the start */
        if (!fresh->engine.state_dir[0])
                fresh->engine.state_dir = arena_text(&fresh->arena, "%s", daemon->settings->engine.state_dir);
        if (endpoint_uids(fresh->engine.socket_uids, &daemon->arena, ret_uids, ret_uids_n, err) < 0)
                return -err->code;
        return engine_check_settings(fresh, err) < 0 ? -err->code : daemon_test_policies(fresh, err);
}

void daemon_reload(struct daemon *daemon)
{
        struct settings fresh = { 0 };
        struct csn_error err;
        struct count count = { 0 };
        uid_t *uids = NULL;
        size_t uids_n = 0;
        notify_reloading();
        if (load(daemon, &fresh, &uids, &uids_n, &err) < 0) {
                log_text(LOG_ERROR, "reload: nothing is changed, because of an error: %s", err.text);
                notify_send("READY=1\nSTATUS=Serving; the last reload was refused: %.200s", err.text);
        } else {
                log_set_level((enum log_level)fresh.engine.log_level);
                settings_reload(daemon->settings, &fresh, on_changed, &count);
                if (!json_equal(daemon->settings->tools ? daemon->settings->tools : json_null(),
                            fresh.tools ? fresh.tools : json_null())) {
                        count.waiting++;
                        log_text(LOG_WARN,
                                "reload: mcpServers and tools stay as they were; they need a restart, for the daemon cannot start other programs");
                }
                daemon->uids = uids;
                daemon->uids_n = uids_n;
                engine_reload(daemon->engine);
                service_changed(daemon->service);
                log_text(LOG_INFO, "reload: settings changed: %u, waiting for a restart: %u; policies are read again",
                        count.changed, count.waiting);
                notify_send(
                        "READY=1\nSTATUS=Serving; settings changed by the last reload: %u, waiting for a restart: %u",
                        count.changed, count.waiting);
        }
        settings_done(&fresh);
}
