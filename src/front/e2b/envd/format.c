/* E2B's form of accounts, paths, permissions, signatures and metadata; see envd.h. */
#include "front/e2b/envd/envd.h"

#include <ctype.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *spell_home(int account)
{
        return account == account_ROOT ? "/root" : "/home/user";
}

/* ---- paths ---- */

/* "a/./b//../c" behind a home is "HOME/a/c", and nothing is above "/". */
static bool add_parts(char path[static GUEST_PATH_MAX], const char *more)
{
        size_t len = strlen(path);
        while (*more) {
                size_t part = strcspn(more, "/");
                if (part == 2 && memcmp(more, "..", 2) == 0) {
                        while (len && path[len - 1] != '/')
                                len--;
                        len -= len > 0;
                        path[len] = 0;
                } else if (part && !(part == 1 && more[0] == '.')) {
                        if (len + 1 + part >= GUEST_PATH_MAX)
                                return false;
                        path[len++] = '/';
                        memcpy(path + len, more, part);
                        len += part;
                        path[len] = 0;
                }
                more += part;
                more += *more == '/';
        }
        if (!len)
                memcpy(path, "/", 2);
        return true;
}

int spell_path(const char *path, int account, const char *folder, char ret[static GUEST_PATH_MAX],
        struct csn_error *err)
{
        bool home = path[0] == '~';
        if (home && path[1] && path[1] != '/')
                return err_field(err, "path",
                        "failed to expand path '%.200s' for user '%s': cannot expand user-specific home dir", path,
                        account == account_ROOT ? "root" : "user");
        if (path[0] == '/') {
                /* Absolute paths stay unchanged: the kernel resolves ".." in paths with links. */
                size_t len = strlen(path);
                while (len > 1 && path[len - 1] == '/')
                        len--;
                if (len >= GUEST_PATH_MAX)
                        return err_field(err, "path", "the path is longer than %d bytes", GUEST_PATH_MAX - 1);
                memcpy(ret, path, len);
                ret[len] = 0;
                return 0;
        }
        snprintf(ret, GUEST_PATH_MAX, "%s",
                home || !folder                    ? spell_home(account)
                        : strcmp(folder, "/") == 0 ? ""
                                                   : folder);
        return add_parts(ret, path + home)
                ? 0
                : err_field(err, "path", "the path is longer than %d bytes", GUEST_PATH_MAX - 1);
}

const char *spell_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash && slash[1] ? slash + 1 : path;
}

bool spell_is_home(const char *path)
{
        static const int accounts[] = { account_USER, account_ROOT };
        char plain[GUEST_PATH_MAX] = "";
        if (!add_parts(plain, path))
                return false;
        size_t len = strcmp(plain, "/") == 0 ? 0 : strlen(plain);
        for (size_t i = 0; i < ARRAY_LEN(accounts); i++) {
                const char *home = spell_home(accounts[i]);
                if (strncmp(home, plain, len) == 0 && (home[len] == 0 || home[len] == '/'))
                        return true;
        }
        return false;
}

/* ---- permissions ---- */

void spell_mode(uint64_t mode, char ret[static SPELL_MODE_MAX])
{
        static const struct { unsigned bits, of; const char *letters;
        } kinds[] = {
                { S_IFDIR, S_IFMT, "d" },
                { S_IFLNK, S_IFMT, "L" },
                { S_IFBLK, S_IFMT, "D" },
                { S_IFIFO, S_IFMT, "p" },
                { S_IFSOCK, S_IFMT, "S" },
                { S_ISUID, S_ISUID, "u" },
                { S_ISGID, S_ISGID, "g" },
                { S_IFCHR, S_IFMT, "Dc" },
                { S_ISVTX, S_ISVTX, "t" },
        };
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                for (const char *letter = kinds[i].letters; (mode & kinds[i].of) == kinds[i].bits && *letter; letter++)
                        ret[n++] = *letter;
        if (!n)
                ret[n++] = '-';
        for (int i = 8; i >= 0; i--)
                ret[n++] = mode >> i & 1 ? "xwr"[i % 3] : '-';
        ret[n] = 0;
}

/* ---- signatures ---- */

void spell_signature(const char *path, bool writes, const char *user, const char *token, const char *expires,
        char ret[static SPELL_SIGNATURE_MAX])
{
        struct arena arena = { 0 };
        uint8_t digest[SHA256_DIGEST_LENGTH];
        const char *text = arena_text(&arena, "%s:%s:%s:%s%s%s", path, writes ? "write" : "read", user, token,
                expires ? ":" : "", expires ? expires : "");
        SHA256((const unsigned char *)text, strlen(text), digest);
        const char *base64 = model_base64(&arena, (const char *)digest, sizeof digest);
        snprintf(ret, SPELL_SIGNATURE_MAX, "v1_%.*s", (int)strcspn(base64, "="), base64);
        arena_done(&arena);
}

/* ---- metadata ---- */

int spell_label(const char *header, const char *value, struct arena *arena, char **ret, struct csn_error *err)
{
        static const char prefix[] = "X-Metadata-";
        size_t len = strlen(prefix), bytes = strlen(value);
        if (strncasecmp(header, prefix, len) != 0)
                return 0;
        const char *name = header + len;
        bool good = name[0] && !strchr(name, '=') && strlen(name) + strlen(ENVD_LABELS) <= 255;
        for (size_t i = 0; i < bytes; i++)
                good = good && value[i] >= ' ' && value[i] <= '~';
        if (!good)
                return err_field(err, header,
                        "metadata %.60s: its name has to be one of a header, of at most %zu bytes, and its value printable ASCII",
                        name, 255 - strlen(ENVD_LABELS));
        char *label = arena_text(arena, "%s=%s", name, value);
        for (char *at = label; *at != '='; at++)
                *at = (char)tolower((unsigned char)*at);
        *ret = label;
        return 1;
}
