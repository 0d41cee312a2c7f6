/* The life of a worker; see worker.h. */
#include "hop/worker.h"

#include "hop/secrets.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#define TAG_FILE "worker.id"
#define REFRESH_US 1000000ULL

int hop_worker_open(const char *key_file, struct hop_worker **ret, struct csn_error *err)
{
        struct hop_keys *keys;
        *ret = NULL;
        if (!key_file[0])
                return 0;
        if (hop_keys_open(key_file, &keys, err) < 0)
                return -err->code;
        *ret = mem_alloc(sizeof **ret);
        **ret = (struct hop_worker){
                .keys = keys, .tag_fd = -1, .refreshed_us = clock_us(), .attempts = attempts_new()
        };
        hex_random(HOP_BOOT_LEN / 2, (*ret)->boot);
        return 0;
}

static bool is_tag(const char *text)
{
        return strlen(text) == HOP_TAG_LEN && strspn(text, "0123456789abcdef") == HOP_TAG_LEN;
}

/*
 * Read the tag of the file into `tag`, or write `tag` to the file.  *ret_fd holds a lock, so that two daemons with the
 * same state folder do not share a tag.
 */
static int open_tag(const char *state_dir, char tag[static HOP_TAG_LEN + 1], int *ret_fd, struct csn_error *err)
{
        char text[HOP_TAG_LEN + 2] = "";
        auto_fd dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_fd fd = dir < 0 ? -1 : openat(dir, TAG_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %.300s/" TAG_FILE, state_dir);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return err_set(err, CSN_E_BUSY, errno, "another daemon has %.300s/" TAG_FILE, state_dir);
        ssize_t len = pread(fd, text, HOP_TAG_LEN + 1, 0);
        if (len < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "read %.300s/" TAG_FILE, state_dir);
        text[strcspn(text, "\n")] = 0;
        if (is_tag(text)) {
                memcpy(tag, text, HOP_TAG_LEN + 1);
                *ret_fd = take_fd(&fd);
                return 0;
        }
        snprintf(text, sizeof text, "%s\n", tag);
        if (ftruncate(fd, 0) < 0 || pwrite(fd, text, HOP_TAG_LEN + 1, 0) != HOP_TAG_LEN + 1 || fsync(fd) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "write %.300s/" TAG_FILE, state_dir);
        *ret_fd = take_fd(&fd);
        return 0;
}

void hop_worker_start(struct hop_worker *worker, const char *state_dir)
{
        struct csn_error err;
        hex_random(HOP_TAG_LEN / 2, worker->tag);
        if (open_tag(state_dir, worker->tag, &worker->tag_fd, &err) < 0)
                log_text(LOG_WARN, "%s; the tag of this worker is a new one at each start", err.text);
        if (access(worker->keys->path, R_OK) < 0)
                log_text(LOG_WARN, "gateway.key_file: %s cannot be read again (%s); a new secret needs a restart",
                        worker->keys->path, strerrordesc_np(errno));
        hop_name_ids(worker->keys, worker->tag);
        log_text(LOG_INFO, "a worker of a gateway: tag %s, boot %s", worker->tag, worker->boot);
}

int hop_worker_verify(struct hop_worker *worker, const char *value, const char *method, const char *target,
        struct arena *arena, struct hop_claims **ret_claims, struct csn_error *err)
{
        uint64_t now_us = clock_us();
        if (now_us - worker->refreshed_us >= REFRESH_US) {
                worker->refreshed_us = now_us;
                hop_keys_refresh(worker->keys);
        }
        int rc = hop_verify(worker->keys, value, method, target, arena, ret_claims, err);
        if (rc < 0 && hop_keys_refresh(worker->keys))
                rc = hop_verify(worker->keys, value, method, target, arena, ret_claims, err);
        return rc;
}

void hop_worker_free(struct hop_worker *worker)
{
        if (!worker)
                return;
        id_set_form(NULL);
        fd_close(&worker->tag_fd);
        hop_keys_free(worker->keys);
        attempts_free(worker->attempts);
        free(worker);
}
