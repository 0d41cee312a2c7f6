/*
 * Answers to requests and failures: a small JSON file each, written under a temporary name and renamed.  An unreadable
 * file counts as missing.
 */
#include "layers/layers_private.h"

#include <fcntl.h>
#include <stdio.h>

#define FILE_MAX_BYTES (16 * KIB) /* a text of struct layer_failure with all bytes escaped */

/* Takes over the reference. */
static int remember(int dir_fd, const char *hash, json_t *json, struct csn_error *err)
{
        char random[33], name[40];
        char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
        json_decref(json);
        if (!text)
                return err_field(err, "text", "the text is not UTF-8");
        hex_random(16, random);
        snprintf(name, sizeof name, ".%s", random);
        auto_fd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int rc = fd < 0 || io_write_all(fd, text, strlen(text)) < 0 || renameat(dir_fd, name, dir_fd, hash) < 0
                ? err_storage(err, errno, "remember the request %s", hash)
                : 0;
        if (rc < 0 && fd >= 0)
                unlinkat(dir_fd, name, 0);
        free(text);
        return rc;
}

/* The caller owns the reference.  NULL: none, or older than ttl_ms, or from the future after a change of the clock. */
static json_t *recall(int dir_fd, const char *hash, uint64_t ttl_ms)
{
        char text[FILE_MAX_BYTES + 1];
        ssize_t len = io_read_file(dir_fd, hash, text, FILE_MAX_BYTES);
        if (len < 0 || model_is_deeper(text, (size_t)len, 2))
                return NULL;
        json_t *json = json_loadb(text, (size_t)len, JSON_REJECT_DUPLICATES, NULL);
        int64_t then = json_integer_value(json_object_get(json, "time_ms")), now = time_now_ms();
        if (then > 0 && then <= now && (uint64_t)(now - then) < ttl_ms)
                return json;
        json_decref(json);
        return NULL;
}

int layers_remember_request(struct layers *layers, const char *hash, const char *id, struct csn_error *err)
{
        if (key_check(hash, err) < 0)
                return -CSN_E_INPUT;
        return remember(layers->requests_fd, hash,
                json_pack("{s:s,s:I}", "id", id, "time_ms", (json_int_t)time_now_ms()), err);
}

int layers_request(struct layers *layers, const char *hash, uint64_t ttl_ms, char ret_id[static LAYER_ID_MAX],
        struct csn_error *err)
{
        uint8_t bytes[LAYER_ID_BYTES];
        if (key_check(hash, err) < 0)
                return -CSN_E_INPUT;
        json_t *json = recall(layers->requests_fd, hash, ttl_ms);
        const char *id = json_string_value(json_object_get(json, "id"));
        bool good = id && layer_id_parse(id, bytes);
        if (good)
                memcpy(ret_id, id, LAYER_ID_MAX);
        json_decref(json);
        return good;
}

int layers_remember_failure(struct layers *layers, const char *hash, const struct layer_failure *failure,
        struct csn_error *err)
{
        if (key_check(hash, err) < 0)
                return -CSN_E_INPUT;
        return remember(layers->failed_fd, hash,
                json_pack("{s:s,s:s,s:I}", "code", failure->code, "text", failure->text, "time_ms",
                        (json_int_t)time_now_ms()),
                err);
}

int layers_failure(struct layers *layers, const char *hash, uint64_t ttl_ms, struct layer_failure *ret,
        struct csn_error *err)
{
        if (key_check(hash, err) < 0)
                return -CSN_E_INPUT;
        json_t *json = recall(layers->failed_fd, hash, ttl_ms);
        const char *code = json_string_value(json_object_get(json, "code"));
        const char *text = json_string_value(json_object_get(json, "text"));
        if (code && text) {
                snprintf(ret->code, sizeof ret->code, "%s", code);
                snprintf(ret->text, sizeof ret->text, "%s", text);
        }
        json_decref(json);
        return code && text;
}
