/* Names, file names, versions, times and lists; see document.h.  The names of problems, see index.h. */
#include "packages/index/document.h"

#include <stdio.h>
#include <time.h>

#define VERSION_MAX 128            /* bytes, the limit of PyPI and npm */
#define TIME_DIGITS_MAX 9          /* digits of a fraction of a second */

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_in(char c, const char *others)
{
        return is_letter(c) || is_digit(c) || (c && strchr(others, c));
}

static bool all_in(const char *text, size_t len, const char *others)
{
        for (size_t i = 0; i < len; i++)
                if (!is_in(text[i], others))
                        return false;
        return len > 0;
}

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* ---- names of projects ---- */

/* PEP 508: letters, digits, "-", "_" and ".", with a letter or a digit at both ends; PEP 503 folds them. */
static bool python_name(const char *text, size_t len, char ret[static PACKAGE_NAME_MAX])
{
        size_t n = 0;
        char last = 0;
        if (!all_in(text, len, "-_.") || !is_in(text[0], "") || !is_in(text[len - 1], ""))
                return false;
        for (size_t i = 0; i < len; i++) {
                char c = is_in(text[i], "") ? lower(text[i]) : '-';
                if (c != '-' || last != '-')
                        ret[n++] = c;
                last = c;
        }
        ret[n] = 0;
        return true;
}

/* Old packages of npm have upper-case letters, so nothing is folded. */
static bool node_part(const char *text, size_t len)
{
        return all_in(text, len, "-_.~") && text[0] != '.' && text[0] != '_';
}

static bool node_name(const char *text, size_t len, char ret[static PACKAGE_NAME_MAX])
{
        const char *slash = len && text[0] == '@' ? memchr(text, '/', len) : NULL;
        if (slash ? !node_part(text + 1, (size_t)(slash - text - 1)) ||
                                !node_part(slash + 1, (size_t)(text + len - slash - 1))
                  : !node_part(text, len))
                return false;
        memcpy(ret, text, len);
        ret[len] = 0;
        return true;
}

bool package_name_canonical(enum package_kind kind, const char *text, size_t len, char ret[static PACKAGE_NAME_MAX])
{
        if (len == 0 || len >= PACKAGE_NAME_MAX)
                return false;
        return kind == PACKAGE_NODE ? node_name(text, len, ret) : python_name(text, len, ret);
}

static bool entry_matches(enum package_kind kind, const char *entry, const char *name)
{
        char canonical[PACKAGE_NAME_MAX];
        size_t len = strlen(entry);
        if (len && entry[len - 1] == '*')
                return strncasecmp(entry, name, len - 1) == 0;
        return package_name_canonical(kind, entry, len, canonical) && strcmp(canonical, name) == 0;
}

bool package_is_listed(enum package_kind kind, char *const *list, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (entry_matches(kind, list[i], name))
                        return true;
        return false;
}

/* ---- file names of Python ---- */

static bool is_of_project(const char *text, size_t len, const char *name)
{
        char canonical[PACKAGE_NAME_MAX];
        return package_name_canonical(PACKAGE_PYTHON, text, len, canonical) && strcmp(canonical, name) == 0;
}

static bool ends_in(const char *text, size_t len, const char *suffix, size_t *ret_len)
{
        size_t n = strlen(suffix);
        if (len <= n || memcmp(text + len - n, suffix, n) != 0)
                return false;
        *ret_len = len - n;
        return true;
}

static bool take_version(const char *text, size_t len, char ret[static PACKAGE_VERSION_MAX])
{
        if (len >= PACKAGE_VERSION_MAX || !all_in(text, len, "._!+"))
                return false;
        memcpy(ret, text, len);
        ret[len] = 0;
        return true;
}

bool package_wheel_version(const char *filename, const char *name, char ret[static PACKAGE_VERSION_MAX])
{
        size_t len = strlen(filename), begin[WHEEL_PARTS_MAX + 1] = { 0 }, parts = 1;
        if (!ends_in(filename, len, ".whl", &len))
                return false;
        for (size_t i = 0; i < len; i++)
                if (filename[i] == '-') {
                        if (parts == WHEEL_PARTS_MAX)
                                return false;
                        begin[parts++] = i + 1;
                }
        if (parts < WHEEL_PARTS_MAX - 1)
                return false;
        begin[parts] = len + 1;
        for (size_t i = 2; i < parts; i++)
                if (!all_in(filename + begin[i], begin[i + 1] - 1 - begin[i], "._"))
                        return false;
        if (parts == WHEEL_PARTS_MAX && !is_digit(filename[begin[2]]))
                return false;              /* a build number begins with a digit */
        return is_of_project(filename, begin[1] - 1, name) &&
                take_version(filename + begin[1], begin[2] - 1 - begin[1], ret);
}

bool package_archive_version(const char *filename, const char *name, char ret[static PACKAGE_VERSION_MAX])
{
        size_t len = strlen(filename);
        if (!ends_in(filename, len, ".tar.gz", &len) && !ends_in(filename, len, ".zip", &len))
                return false;
        for (size_t i = len; i-- > 0;)
                if (filename[i] == '-' && is_of_project(filename, i, name))
                        return take_version(filename + i + 1, len - i - 1, ret);
        return false;
}

/* ---- versions of npm (semver.org, 2.0.0) ---- */

static bool read_number(const char **at, uint64_t *ret)
{
        const char *begin = *at;
        uint64_t number = 0;
        for (; is_digit(**at); ++*at) {
                if (number > UINT32_MAX)
                        return false;
                number = number * 10 + (uint64_t)(**at - '0');
        }
        *ret = number;
        return *at > begin;
}

bool package_semver_parse(const char *text, struct package_semver *ret)
{
        if (strlen(text) > VERSION_MAX)
                return false;
        for (size_t i = 0; i < ARRAY_LEN(ret->numbers); i++) {
                if (i && *text++ != '.')
                        return false;
                if (!read_number(&text, &ret->numbers[i]))
                        return false;
        }
        size_t len = *text == '-' ? strcspn(text, "+") : 0;
        ret->pre = len ? text + 1 : "";
        ret->pre_len = len ? len - 1 : 0;
        if (len && !all_in(ret->pre, ret->pre_len, "-."))
                return false;
        text += len;
        return !*text || (*text == '+' && all_in(text + 1, strlen(text + 1), "-."));
}

/* Numbers are below texts, and are compared as numbers. */
static int compare_identifiers(const char *a, size_t a_len, const char *b, size_t b_len)
{
        bool a_number = strspn(a, "0123456789") >= a_len, b_number = strspn(b, "0123456789") >= b_len;
        if (a_number != b_number)
                return a_number ? -1 : 1;
        if (a_number && a_len != b_len)
                return a_len < b_len ? -1 : 1;
        int order = memcmp(a, b, min_u64(a_len, b_len));
        return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_pre(const struct package_semver *a, const struct package_semver *b)
{
        size_t a_at = 0, b_at = 0;
        if (!a->pre_len || !b->pre_len)
                return (b->pre_len > 0) - (a->pre_len > 0);
        while (a_at < a->pre_len && b_at < b->pre_len) {
                size_t a_len = min_u64(strcspn(a->pre + a_at, "."), a->pre_len - a_at);
                size_t b_len = min_u64(strcspn(b->pre + b_at, "."), b->pre_len - b_at);
                int order = compare_identifiers(a->pre + a_at, a_len, b->pre + b_at, b_len);
                if (order)
                        return order;
                a_at += a_len + 1;
                b_at += b_len + 1;
        }
        return (a_at < a->pre_len) - (b_at < b->pre_len);
}

int package_semver_compare(const struct package_semver *a, const struct package_semver *b)
{
        for (size_t i = 0; i < ARRAY_LEN(a->numbers); i++)
                if (a->numbers[i] != b->numbers[i])
                        return a->numbers[i] < b->numbers[i] ? -1 : 1;
        return compare_pre(a, b);
}

/* ---- times and hashes ---- */

static bool in_ranges(const struct tm *tm)
{
        static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        return tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1 && tm->tm_mday <= days[tm->tm_mon] &&
                tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* The pattern has a "0" for each digit. */
static bool has_pattern(const char *text, const char *pattern)
{
        for (; *pattern; text++, pattern++)
                if (*pattern == '0' ? !is_digit(*text) : *text != *pattern)
                        return false;
        return true;
}

static int digits_at(const char *text, size_t n)
{
        int number = 0;
        for (size_t i = 0; i < n; i++)
                number = number * 10 + (text[i] - '0');
        return number;
}

bool package_time_parse(const char *text, int64_t *ret_ms)
{
        int64_t part = 0;
        if (!has_pattern(text, "0000-00-00T00:00:00"))
                return false;
        struct tm tm = { .tm_year = digits_at(text, 4) - 1900, .tm_mon = digits_at(text + 5, 2) - 1,
                .tm_mday = digits_at(text + 8, 2), .tm_hour = digits_at(text + 11, 2),
                .tm_min = digits_at(text + 14, 2), .tm_sec = digits_at(text + 17, 2) };
        text += sizeof "0000-00-00T00:00:00" - 1;
        if (*text == '.') {
                size_t n = strspn(text + 1, "0123456789");
                if (n == 0 || n > TIME_DIGITS_MAX)
                        return false;
                for (size_t i = 0; i < 3; i++)
                        part = part * 10 + (i < n ? text[1 + i] - '0' : 0);
                text += 1 + n;
        }
        if (!in_ranges(&tm) || (strcmp(text, "Z") != 0 && strcmp(text, "+00:00") != 0))
                return false;
        *ret_ms = (int64_t)timegm(&tm) * 1000 + part;
        return *ret_ms > 0;
}

bool package_hex_parse(const char *text, uint8_t *digest, size_t len)
{
        static const char digits[] = "0123456789abcdef";
        if (strlen(text) != 2 * len)
                return false;
        for (size_t i = 0; i < 2 * len; i++) {
                const char *digit = strchr(digits, lower(text[i]));
                if (!digit)
                        return false;
                digest[i / 2] = (uint8_t)(digest[i / 2] << 4 | (digit - digits));
        }
        return true;
}

/* ---- problems ---- */

const char *package_problem_name(enum package_problem problem)
{
        static const char *const names[] = {
                [PACKAGE_FINE] = "",
                [PACKAGE_NOT_FOUND] = "package_not_found",
                [PACKAGE_UNREACHABLE] = "index_unreachable",
                [PACKAGE_UNTRUSTED] = "index_untrusted",
                [PACKAGE_TOO_NEW] = "too_new",
                [PACKAGE_NO_UPLOAD_TIME] = "no_upload_time",
                [PACKAGE_NO_WHEEL] = "no_wheel",
                [PACKAGE_NOT_ALLOWED] = "not_allowed",
                [PACKAGE_TOO_LARGE] = "too_large",
                [PACKAGE_TOO_MANY] = "too_many",
                [PACKAGE_HASH_MISMATCH] = "hash_mismatch",
        };
        return names[problem];
}
