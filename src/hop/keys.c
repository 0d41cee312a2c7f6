/*
 * The file of shared keys.
 *
 * In Kubernetes the file is part of a mounted Secret: a link to a link to the file, and a new content is a new target
 * of the second link.  So the file is opened by its path each time, and a change is seen by the inode as well as by the
 * time and the size.
 */
#include "hop/secrets.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#define SETTING "gateway.key_file"
#define FILE_MAX (4 * KIB)

void hop_mac(const struct hop_keys *keys, size_t i, const char *bytes, size_t len, uint8_t ret[static HOP_MAC_LEN])
{
        const struct hop_secret *secret = &keys->secrets[i];
        char random[2 * HOP_MAC_LEN + 1];
        if (HMAC(EVP_sha256(), secret->text, (int)secret->len, (const unsigned char *)bytes, len, ret, NULL))
                return;
        log_text(LOG_ERROR, "libcrypto has no HMAC-SHA256");
        hex_random(HOP_MAC_LEN, random);
        memcpy(ret, random, HOP_MAC_LEN);
}

/* ---- the content ---- */

static bool is_printable(const char *text, size_t len)
{
        for (size_t i = 0; i < len; i++)
                if (text[i] <= ' ' || text[i] > '~')
                        return false;
        return true;
}

static int add_secret(struct hop_keys *keys, const char *line, size_t len, struct csn_error *err)
{
        if (keys->n == HOP_KEYS_MAX)
                return err_setting(err, SETTING, SETTING ": %.300s has more than %d lines", keys->path, HOP_KEYS_MAX);
        if (len < HOP_SECRET_MIN || len > HOP_SECRET_MAX || !is_printable(line, len))
                return err_setting(err, SETTING,
                        SETTING ": line %zu of %.300s is no secret of %d to %d printable characters without blanks",
                        keys->n + 1, keys->path, HOP_SECRET_MIN, HOP_SECRET_MAX);
        struct hop_secret *secret = &keys->secrets[keys->n++];
        memcpy(secret->text, line, len);
        secret->text[len] = 0;
        secret->len = len;
        return 0;
}

static int parse(struct hop_keys *keys, const char *text, size_t len, struct csn_error *err)
{
        const char *end = text + len;
        for (const char *line = text, *next; line < end; line = next + 1) {
                const char *newline = memchr(line, '\n', (size_t)(end - line));
                next = newline ? newline : end;
                size_t line_len = (size_t)(next - line);
                line_len -= line_len && line[line_len - 1] == '\r';
                if (line_len && add_secret(keys, line, line_len, err) < 0)
                        return -err->code;
        }
        return keys->n ? 0 : err_setting(err, SETTING, SETTING ": %.300s is empty", keys->path);
}

/* Sets path, read, secrets and n; on failure too, with n 0 or an unfinished list. */
static int load(const char *path, struct hop_keys *ret, struct csn_error *err)
{
        char text[FILE_MAX + 1];
        *ret = (struct hop_keys){ .path = (char *)path };
        auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &ret->read) < 0)
                return err_setting(err, SETTING, SETTING ": open %.300s: %s", path, strerrordesc_np(errno));
        if (!S_ISREG(ret->read.st_mode))
                return err_setting(err, SETTING, SETTING ": %.300s is no regular file", path);
        ssize_t len = ret->read.st_size > (off_t)FILE_MAX ? -1 : pread(fd, text, FILE_MAX + 1, 0);
        if (len < 0 || (size_t)len > FILE_MAX)
                return err_setting(err, SETTING, SETTING ": %.300s cannot be read, or has more than %d bytes", path,
                        (int)FILE_MAX);
        int rc = parse(ret, text, (size_t)len, err);
        explicit_bzero(text, sizeof text);
        return rc;
}

/* ---- the life ---- */

int hop_keys_open(const char *path, struct hop_keys **ret, struct csn_error *err)
{
        struct hop_keys new;
        int rc = load(path, &new, err);
        if (rc == 0) {
                *ret = mem_alloc(sizeof **ret);
                **ret = new;
                (*ret)->path = mem_copy(path, strlen(path));
        }
        explicit_bzero(&new, sizeof new);
        return rc;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
        return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_size == other->st_size &&
                one->st_mtim.tv_sec == other->st_mtim.tv_sec && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec &&
                one->st_ctim.tv_sec == other->st_ctim.tv_sec && one->st_ctim.tv_nsec == other->st_ctim.tv_nsec;
}

bool hop_keys_refresh(struct hop_keys *keys)
{
        struct stat now = { 0 };
        struct hop_keys new;
        struct csn_error err;
        if (stat(keys->path, &now) < 0)
                now = (struct stat){ 0 };
        if (is_same(&now, &keys->read))
                return false;
        int rc = load(keys->path, &new, &err);
        keys->read = new.read;
        if (rc < 0) {
                log_text(LOG_ERROR, "%s; the keys that were read before stay in force", err.text);
        } else {
                memcpy(keys->secrets, new.secrets, sizeof keys->secrets);
                keys->n = new.n;
                log_text(LOG_INFO, SETTING " has changed: keys: %zu", keys->n);
        }
        explicit_bzero(&new, sizeof new);
        return rc == 0;
}

void hop_keys_free(struct hop_keys *keys)
{
        if (!keys)
                return;
        free(keys->path);
        explicit_bzero(keys, sizeof *keys);
        free(keys);
}
